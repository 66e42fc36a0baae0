"""Generic aliases, and constructors under other names."""
