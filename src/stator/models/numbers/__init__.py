"""Numbers, and the modules that compute with them."""
