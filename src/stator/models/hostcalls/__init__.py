"""What runs for real on known operands, and on proxies for those that are not known."""
