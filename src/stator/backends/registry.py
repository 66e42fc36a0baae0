"""The names of backends."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from stator.backends.inductor import Inductor
from stator.errors import UnknownBackendError
from stator.pytorch import internals

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    import torch.fx

__all__ = ["Backend", "list_backends", "lookup_backend", "register_backend", "resolve"]

Function: TypeAlias = Callable[..., Any]
#: called with a GraphModule and example inputs, it returns what runs in the graph's place
Backend: TypeAlias = Function
Inputs: TypeAlias = list[object]
_registry: dict[str, Backend] = {}
_ENTRY_POINTS = "stator.backends"


def register_backend(backend: Backend | None = None, *, name: str | None = None) -> Function:
    """Make a backend known by a name (its own, unless given); usable as a decorator.

    >>> @register_backend
    ... def mine(gm, example_inputs): return gm.forward
    """
    if backend is None:
        return lambda function: register_backend(function, name=name)
    _registry[name or backend.__name__] = backend
    return backend


def list_backends() -> list[str]:
    """The names that can be looked up, without importing what torch itself registers lazily."""
    return sorted({*_registry, *_entry_points()})


def lookup_backend(name: str) -> Backend:
    """The backend of this name: registered here, as an entry point, or with torch's own registry."""
    found = _registry.get(name)
    if found is not None:
        return found
    points = _entry_points()
    if name in points:
        return register_backend(points[name].load(), name=name)
    torchs = internals.torchs_backends
    try:
        return torchs.lookup_backend(name)
    except internals.InvalidBackend:
        known = sorted({*list_backends(), *torchs.list_backends(())})
    close = difflib.get_close_matches(name, known, n=3)
    advice = f"did you mean {' or '.join(map(repr, close))}?" if close else f"known: {', '.join(known)}"
    raise UnknownBackendError(f"unknown backend {name!r}; {advice}", backend=name)


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=_ENTRY_POINTS)}


def resolve(backend: str | Backend, *, mode: str | None = None, options: dict[str, object] | None = None) -> Backend:
    """The callable for `compile(backend=…, mode=…, options=…)`."""
    if isinstance(backend, str):
        found = lookup_backend(backend)
        if backend == "inductor":
            return Inductor(mode, options or {})
    elif callable(backend):
        found = backend
    else:
        raise TypeError(f"a backend is a name or a callable, not {type(backend).__name__}")
    # What a backend wants done before it is first called; torch.compile calls it each time too, since 2.15.
    prepare = getattr(found, "_dynamo_backend_init", None)
    if prepare is not None:
        prepare()
    keywords: dict[str, object] = {}
    if mode is not None:
        keywords["mode"] = mode
    if options:
        keywords["options"] = options
    return _WithKeywords(found, keywords) if keywords else found


class _WithKeywords:
    """A backend that is handed `mode` and `options`, as torch.compile hands them over."""

    def __init__(self, backend: Backend, keywords: dict[str, object]) -> None:
        self.backend = backend
        self.keywords = keywords

    def __eq__(self, other: object) -> bool:
        """Whether they do the same: then compile() calls share what they have compiled."""
        return isinstance(other, _WithKeywords) and self.backend is other.backend and self.keywords == other.keywords

    def __hash__(self) -> int:
        return hash(id(self.backend))

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: Inputs) -> Function:
        return self.backend(gm, example_inputs, **self.keywords)


def _eager(gm: torch.fx.GraphModule, example_inputs: Inputs) -> Function:
    """Run the graph with eager kernels."""
    return gm.forward


def _aot_eager(gm: torch.fx.GraphModule, example_inputs: Inputs) -> Function:
    """Run the graphs that AOTAutograd makes with eager kernels."""
    return internals.aot_eager(gm, example_inputs)


def _inductor(gm: torch.fx.GraphModule, example_inputs: Inputs) -> Function:
    """Compile with Inductor."""
    return Inductor(None, {})(gm, example_inputs)


#: runs the operations one after the other as they were recorded: aliases among inputs behave as in eager execution
_eager.keeps_order = True  # type: ignore[attr-defined]
#: the graph is a function: inputs are written when everything has been computed. (Inductor writes as it goes.)
_aot_eager.writes_last = True  # type: ignore[attr-defined]
#: the backward pass of the graph is traced with it, by AOTAutograd. (Of backends of others that is not known.)
_aot_eager.traces_backward = True  # type: ignore[attr-defined]
register_backend(_eager, name="eager")
register_backend(_aot_eager, name="aot_eager")
register_backend(_inductor, name="inductor")
