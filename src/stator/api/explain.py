"""`stator.explain()` and `stator.trace()`: what is made of a program, told instead of kept."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stator import errors
from stator._core import Compiled
from stator.api.compile import compile

if TYPE_CHECKING:
    from stator.report.explanation import Explanation

__all__ = ["explain", "trace"]


def explain(fn: Callable[..., Any], *, backend: Any = None, **settings: Any) -> Callable[..., Explanation]:
    """What Stator makes of a call of `fn`: graphs, breaks, guards, times, and the Python that it generates.

    The function is compiled afresh: nothing that was compiled before is used, and nothing is left behind but what
    `stats()` has counted. The program runs once, side effects and all, and what it returns is the `result`.

    Args:
        fn: a function, a method or an `nn.Module`. Of one that is compiled already, the settings are taken too.
        backend: as for `compile()`; "eager" if it isn't given, as what is explained is most often the tracer's part.
        settings: others of `compile()`: `dynamic`, `mode`, `options` …

    Returns:
        A callable that takes the arguments of the call and gives an `Explanation`.

    Raises:
        TypeError: `fn` is a class, or cannot be called.

    Example:
        >>> explanation = stator.explain(model)(x)
        >>> explanation.print()
        >>> explanation.to_html("model.html")
    """
    plain = _plain(fn)
    own = getattr(fn, "_stator_region", None)
    if own is not None:
        asked, mode, options = own.asked
        backend = backend or asked
        dynamic = "dynamic" if own.dynamic in (None, True, False) else "dynamic_shapes"
        settings = {"mode": mode, "options": options or None, dynamic: own.dynamic, **settings}
    compiled = compile(plain, backend=backend or "eager", **{**settings, "isolate_recompiles": True})

    @functools.wraps(plain, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def explained(*args: Any, **kwargs: Any) -> Explanation:
        from stator.report.collector import explaining  # not with `import stator`, as few programs ask

        name = getattr(plain, "__qualname__", type(plain).__qualname__)
        try:
            with explaining(name, threading.get_ident()) as collector:
                result = compiled(*args, **kwargs)
            return collector.explanation(result)
        finally:
            compiled._stator_region.clear()

    return explained


def trace(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The graph of one call, which is not made: no backend is called, and the program's side effects don't happen.

    (What a trace needs done for real, it does: the import of a module that the program imports, for example.)

    Args:
        fn: a function, a method or an `nn.Module`.
        args: the positional arguments of the call.
        kwargs: its arguments by name.

    Returns:
        A `torch.fx.GraphModule`, whose nodes know the program's lines (`node.meta["stack_trace"]`) and what they give
        (`node.meta["example_value"]`). It has two attributes of Stator's: `guards`, what was assumed, with the
        program's lines; and `sources`, where the program has what the graph takes, in the order of its inputs.

    Raises:
        GraphBreakError: the call is not one graph. StatorError: nothing of it is done with tensors, or its code is not
            traced. TypeError: `fn` is a class, or cannot be called.

    Example:
        >>> gm = stator.trace(torch.nn.Linear(2, 3), torch.ones(1, 2))
        >>> gm.sources
        ('input', 'self.weight', 'self.bias')
    """
    from stator.report.traced import Traced, stopping_after_trace  # not with `import stator`, as few programs ask

    compiled = compile(_plain(fn), backend="eager", fullgraph=True, isolate_recompiles=True)
    try:
        with stopping_after_trace():
            compiled(*args, **kwargs)
    except Traced as traced:
        return traced.graph_module()
    finally:
        compiled._stator_region.clear()
    raise errors.StatorError("the call was left to Python: there was no frame to trace (see stator.explain)")


def _plain(fn: Callable[..., Any]) -> Callable[..., Any]:
    """What is to be compiled, if it is compiled already."""
    if isinstance(fn, type):
        raise TypeError(f"what can be called and compiled is needed, not the class {fn.__qualname__}")
    return fn.__wrapped__ if isinstance(fn, Compiled) else fn
