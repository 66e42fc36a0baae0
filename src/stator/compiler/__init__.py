"""From a `compile()` call, and a cache miss in it, to a cache entry."""
