"""The commands of the command line, a file each: `add(commands)` says how it is called, its `run` does it."""
