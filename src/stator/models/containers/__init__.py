"""Lists, tuples, dicts, sets and their relations."""
