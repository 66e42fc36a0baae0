"""Marks of sizes: what mark_dynamic and its like have left on a tensor, and that the traced code keeps to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.guards.source import SizeSource, Source
from stator.pytorch.shapes.input_sizes import variables
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ValueRanges

    from stator.guards.base import Guard
    from stator.pytorch.types import SymbolicContext
    from stator.space.interfaces import Trace

__all__ = ["ENFORCED", "HINT", "UNBACKED", "constrain", "dims", "enforced_sizes", "refuse_to_fix", "violation"]

#: marks that make a size a symbol, which the code may not make a number again
ENFORCED = ("_dynamo_dynamic_indices", "_dynamo_strict_unbacked_indices")
#: what makes it a symbol if the code lets it be one
HINT = "_dynamo_weak_dynamic_indices"
#: what makes it a symbol of which nothing is known
UNBACKED = "_dynamo_unbacked_indices"

_ADVICE = "remove the mark, make it a hint (maybe_mark_dynamic), or have the line do without the number"


def dims(tensors: Sequence[torch.Tensor], *names: str) -> set[int]:
    """The dimensions that have one of these marks in one of the tensors, which have as many dimensions."""
    marks = {dim for tensor in tensors for name in names for dim in tensor.__dict__.get(name) or ()}
    rank = tensors[0].dim()
    return {dim % rank for dim in marks} if rank else set()


def constrain(trace: Trace, context: SymbolicContext, tensor: torch.Tensor, source: Source, *, enforced: bool) -> None:
    """Have the sizes of marked dimensions, and of those that the program has said to be variables, taken to be in the
    ranges said, and the code kept from fixing them."""
    from torch.fx.experimental.symbolic_shapes import (
        RelaxedUnspecConstraint,
        StrictMinMaxConstraint,
        ValueRanges,
        int_oo,
    )

    said = variables(trace, source)
    marked = dims([tensor], *ENFORCED) | said.keys()
    fixed = marked if enforced else set()
    for dim in fixed:
        context.constraint_sizes[dim] = RelaxedUnspecConstraint(warn_only=False)
    ranges = [(each.dim, each.min, each.max) for each in tensor.__dict__.get("_dynamo_dynamic_range") or ()]
    for dim, least, most in [*ranges, *((dim, each.min or None, each.max) for dim, each in said.items())]:
        if (least, most) == (None, None) or dim not in marked | dims([tensor], HINT):
            continue
        sizes = ValueRanges(least or 0, int_oo if most is None else most)
        size = tensor.size(dim)
        if size not in sizes:
            text = f"`{SizeSource(source, dim).expr()}` is marked to be {_shown(sizes)}, and is {size}"
            raise errors.ConstraintViolationError(text)
        context.constraint_sizes[dim] = StrictMinMaxConstraint(vr=sizes, warn_only=dim not in fixed)


def _shown(sizes: ValueRanges) -> str:
    most = "" if sizes.upper.is_infinite else f", and {sizes.upper} at most"
    return f"{sizes.lower} at least{most}"


def enforced_sizes(source: Source, context: SymbolicContext) -> Iterable[tuple[Source, str]]:
    """The sizes of an input that the code may not fix, each with what it has been marked to be."""
    for dim, constraint in enumerate(context.constraint_sizes):
        if constraint is not None and not constraint.warn_only:
            sizes = getattr(constraint, "vr", None)
            yield SizeSource(source, dim), "dynamic" if sizes is None else _shown(sizes)


def refuse_to_fix(sizes: Iterable[Source]) -> None:
    """An operation has to know these sizes, which are marked: if there are any, the graph breaks."""
    names = " and ".join(size.expr() for size in sizes)
    if names:
        why = f"{names} would have to be known, and is marked as dynamic"
        raise Unsupported(errors.UnsupportedTensorOperation("an operation on these sizes", why))


def violation(sizes: dict[Source, str], guards: Sequence[Guard]) -> Exception:
    """What is raised where guards fix sizes that have been marked, or narrow the ranges they were marked to have."""
    guards = [guard for guard in guards if sizes.keys() & set(guard.sources)]
    alone = [guard for guard in guards if len(guard.sources) == 1] or guards
    told = [
        f"`{source.expr()}` is marked to be {sizes[source]}, but the code needs {guard}{guard.at()}"
        for guard in alone
        for source in guard.sources
        if source in sizes
    ]
    return errors.ConstraintViolationError("\n".join([*dict.fromkeys(told), f"What helps: {_ADVICE}."]))
