"""Subclasses of Tensor: wrappers of other tensors, their construction, and what torch would ask of which class."""
