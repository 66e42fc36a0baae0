"""Communication with other processes."""
