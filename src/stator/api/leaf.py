"""The mark `leaf_function`: a function that runs as it is, as one operation of the graph."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

from stator.marks.functions import Leaf

__all__ = ["leaf_function"]


def leaf_function(fn: Callable[..., Any] | None = None, *, mutates_args: Iterable[str] | None = None) -> Any:
    """The function is one opaque operation of the graph: it is not traced, breaks nothing, and runs at each call.

    It takes and gives tensors, numbers, strings and lists, tuples and dicts of them, and takes modules. Gradients flow
    through what it computes to its arguments. Numbers and strings that it gives are those of the fake implementation.

    Args:
        fn: the function; omitted when used as a decorator with arguments.
        mutates_args: expressions over the parameters, such as `"buffers[0]"`: what the function changes in place. Any
            other change of an argument is an error.

    The decorated function has two decorators of its own:

    - `register_fake(fake)`, which is needed: `fake` gives results of the same structure and metadata, of tensors
      without contents.
    - `register_multi_grad_hook(hook)`: `hook` is called with the gradients of the arguments that require one, in
      their order, when a backward pass has computed them all.

    In a graph the function is called with copies of its arguments. If it registers hooks on them itself, the graph
    breaks, as far as names in its code tell, and else it is an error. `inductor` takes no leaf functions: the graph
    breaks.

    Raises:
        ValueError: an expression of `mutates_args` names no parameter; when called, there is no fake implementation.

    Example:
        >>> @stator.leaf_function
        ... def logged(x):
        ...     print(x.mean().item())
        ...     return x * 2
        >>> @logged.register_fake
        ... def _(x):
        ...     return torch.empty_like(x)
    """
    if fn is None:
        return functools.partial(leaf_function, mutates_args=mutates_args)
    leaf = Leaf(fn, frozenset(mutates_args or ()))
    _check_names(leaf)

    @functools.wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        if leaf.fake is None:
            raise ValueError(leaf.missing_fake())
        if leaf.hook is not None:
            from stator.pytorch.higher_order.leaf import watch  # which imports torch: not with `import stator`

            watch(leaf.hook, args, kwargs)
        return leaf.function(*args, **kwargs)

    def register_fake(fake: Callable[..., Any]) -> Any:
        leaf.fake = fake
        return called

    def register_multi_grad_hook(hook: Callable[..., Any]) -> Any:
        leaf.hook = hook
        return called

    marked: Any = called
    marked._stator_leaf = leaf
    marked.register_fake, marked.register_multi_grad_hook = register_fake, register_multi_grad_hook
    return marked


def _check_names(leaf: Leaf) -> None:
    parameters = inspect.signature(leaf.function).parameters
    for expression in leaf.mutates:
        root = re.split(r"[.\[]", expression, maxsplit=1)[0]
        if root not in parameters:
            raise ValueError(
                f"mutates_args expression '{expression}' refers to parameter '{root}', which is not a parameter of "
                f"'{leaf.function.__name__}'. Available parameters: {', '.join(parameters)}"
            )
