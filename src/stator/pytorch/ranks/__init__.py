"""Ranks that agree: what the processes of a group compile is compared (`config.check_ranks`)."""
