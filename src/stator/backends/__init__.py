"""Backends: what compiles a graph. `resolve` turns the argument of `compile(backend=…)` into a callable."""

from stator.backends.registry import list_backends, lookup_backend, register_backend, resolve

__all__ = ["list_backends", "lookup_backend", "register_backend", "resolve"]
