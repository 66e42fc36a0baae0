"""Helpers for tests: breaks everywhere, backends that count and keep graphs, comparisons, what was compiled.

    from stator.testing import CompileCounter, EagerAndRecordGraphs, normalize_gm, same

    counter = CompileCounter()
    compiled = stator.compile(f, backend=counter, fullgraph=True)
    assert same(f(x), compiled(x)) and counter.frame_count == 1

What needs torch (`stator.backends.recording`) is imported when it is first asked for.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator
from itertools import islice
from types import CodeType
from typing import TYPE_CHECKING, Any

from stator.api.compile import compile
from stator.report.stats import STATS

if TYPE_CHECKING:
    pass

__all__ = [
    *("AotEagerAndRecordGraphs", "CompileCounter", "CompileCounterWithBackend", "CountingBackend"),
    *("EagerAndRecordGraphs", "break_everywhere", "compiled_code_objects", "normalize_gm", "same"),
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'stator.testing' has no attribute {name!r}")
    from stator.backends import recording

    return getattr(recording, name)


def compiled_code_objects() -> set[CodeType]:
    """The code objects of user frames traced to the end since `reset()`."""
    return set(STATS.codes.codes())


class CountingBackend:
    """A backend that runs graphs as they are and counts them.

    Attributes:
        graphs: the number of operations in each graph compiled.
        calls: how often a compiled graph ran.
    """

    def __init__(self) -> None:
        self.graphs: list[int] = []
        self.calls = 0

    def __call__(self, gm: Any, example_inputs: Any, **unused: Any) -> Callable[..., Any]:
        self.graphs.append(sum(n.op in ("call_function", "call_method", "call_module") for n in gm.graph.nodes))

        def run(*args: Any) -> Any:
            self.calls += 1
            return gm.forward(*args)

        return run


def break_everywhere(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    *,
    backend: Any = "eager",
    limit: int = 2_000,
    step: int = 1,
    spread: int = 0,
    share: tuple[int, int] = (0, 1),
) -> int:
    """Run `fn(*args)` compiled again and again, each time with a graph break forced at another instruction.

    Args:
        fn: the function; its arguments are deep-copied for every run.
        args: its arguments.
        backend: as for `stator.compile`.
        limit: the last instruction to break at.
        step: break at every `step`-th instruction only.
        spread: from this position on, leave gaps that grow with the position (0: none): a long function in fewer runs.
        share: `(i, n)`: several share the positions, and this one has each n-th of them, from the i-th on.

    Returns:
        The number of instructions at which a break was forced.

    Raises:
        AssertionError: a run gave another result or exception than eager.
    """
    expected = _outcome(fn, copy.deepcopy(args))
    count = 0
    for position in islice(_positions(limit, step, spread), share[0], None, share[1]):
        compiled = compile(fn, backend=backend, isolate_recompiles=True)
        compile_region = _region_of(compiled)
        compile_region.forced[None] = position
        got = _outcome(compiled, copy.deepcopy(args))
        if not _same(expected, got):
            raise AssertionError(f"break at instruction {position} of {fn.__qualname__}: {got!r}, eager: {expected!r}")
        if not compile_region.forced_hit:
            break
        count += 1
    return count


def _positions(limit: int, step: int, spread: int) -> Iterator[int]:
    position = 1
    while position <= limit:
        yield position
        position += max(step, position // spread if spread else 0)


def _region_of(compiled: Any) -> Any:
    return compiled._stator_region


def _outcome(fn: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, Any, Any]:
    try:
        return "returned", fn(*args), args
    except Exception as e:
        return "raised", (type(e), str(e)), args


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(a[k], b[k]) for k in a)
    if hasattr(a, "shape") and hasattr(a, "dtype"):
        return bool(a.shape == b.shape and a.dtype == b.dtype and ((a == b) | ((a != a) & (b != b))).all())
    if isinstance(a, weakref.ref):
        return _same(a(), b())
    plain: Any = object.__eq__
    if type(a).__eq__ is plain and hasattr(a, "__dict__"):
        return _same(a.__dict__, b.__dict__)
    return bool(a == b) or (a != a and b != b)
