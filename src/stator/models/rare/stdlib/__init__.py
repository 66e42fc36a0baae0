"""C modules of the standard library that few programs need."""
