"""Which object is which: keys of host containers, aliases, and what the program can still reach."""
