"""torch's global state: modes, contexts, generators, other tracers at work."""
