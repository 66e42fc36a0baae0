"""Marks: how a program tells the tracer what to do with a function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeVar, overload

from stator._core import CodePolicy, current_region, set_code_policy

F = TypeVar("F", bound=Callable[..., Any])


def _make_disabled(function: Callable[..., Any], recursive: bool) -> Any:
    if recursive:

        @functools.wraps(function)
        def disabled(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        set_code_policy(_code_of(disabled), CodePolicy.RUN_RECURSIVELY)
        return disabled

    @functools.wraps(function)
    def disabled_here(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    set_code_policy(_code_of(disabled_here), CodePolicy.SKIP)
    code = getattr(function, "__code__", None)
    if code is not None:
        set_code_policy(code, CodePolicy.SKIP)
    return disabled_here


def _code_of(function: Any) -> Any:
    return function.__code__


@overload
def disable(fn: F, *, recursive: bool = True, reason: str | None = None) -> F: ...
@overload
def disable(fn: None = None, *, recursive: bool = True, reason: str | None = None) -> Callable[[F], F]: ...
def disable(fn: Any = None, *, recursive: bool = True, reason: str | None = None) -> Any:
    """Mark a function as one that is never traced: calling it in a compiled function breaks the graph.

    Args:
        fn: the function; omitted when used as a decorator with arguments.
        recursive: also leave alone whatever it calls.
        reason: why, for the report of the break.

    Example:
        >>> @stator.disable
        ... def helper(x): ...
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    wrapper = _make_disabled(fn, recursive)
    wrapper._stator_disabled = reason or "no reason given"
    return wrapper


def graph_break(msg: str = "") -> None:
    """Break the graph here, when compiled; does nothing otherwise. `msg` is shown in the report."""


def is_compiling() -> bool:
    """True while being traced, False as ordinary Python."""
    return False


def allow_in_graph(fn: F) -> F:
    """The function becomes one node of the graph, called with tensors at run time; it is not traced into.

    It must take and give tensors, numbers, strings and containers of them, and have no side effects.

    A class (of `torch.autograd.Function`, a dataclass), or an object that is called, has no such node: it is traced all
    the same, and need not take attributes.
    """
    if isinstance(fn, FunctionType):
        fn._stator_allow_in_graph = True  # type: ignore[attr-defined]
    return fn


def assume_constant_result(fn: F) -> F:
    """The function's result never changes for the same arguments: it is called once, while tracing."""
    fn._stator_constant_result = True  # type: ignore[attr-defined]
    return fn


@dataclass
class Leaf:
    """What a leaf function is made of."""

    function: Callable[..., Any]
    #: expressions over its parameters: the arguments that it changes in place
    mutates: frozenset[str]
    fake: Callable[..., Any] | None = None
    hook: Callable[..., Any] | None = None
    #: whether it is called with copies of its arguments in eager, too: hooks that it puts on them are never called
    isolated: bool = False

    def missing_fake(self) -> str:
        """What to say where there is no fake implementation."""
        name = getattr(self.function, "__name__", self.function)
        return (
            f"leaf_function '{name}' requires a fake implementation. Please provide one using the "
            "@<func>.register_fake decorator. See the leaf_function docstring for details."
        )


def leaf_of(function: Any) -> Leaf | None:
    """What a function marked as a leaf, by Stator or by torch._dynamo, is made of."""
    marks = function.__dict__
    leaf: Leaf | None = marks.get("_stator_leaf")
    if leaf is None and "_torchdynamo_leaf_real_fn" in marks:
        names = ("real_fn", "mutates_args", "fake_fn", "hook_fn")
        real, mutates, fake, hook = (marks[f"_torchdynamo_leaf_{name}"] for name in names)
        leaf = Leaf(real, mutates, fake, hook, isolated=True)
    return leaf


__all__ = [
    "Leaf",
    "allow_in_graph",
    "assume_constant_result",
    "current_region",
    "disable",
    "graph_break",
    "is_compiling",
    "leaf_of",
]
