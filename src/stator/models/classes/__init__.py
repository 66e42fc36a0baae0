"""Classes, their instances, and the descriptors in them."""
