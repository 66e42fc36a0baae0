"""Floats that a graph reads out of tensors, kept in double precision by Inductor.

    rate = losses.mean().item()                       # a Python float: 53 bits
    return torch.full((2,), rate, dtype=torch.float64)

Inductor hands such a float to its kernels as a C `float` of 24 bits (`KernelArgs.cpp_argdefs`), whatever they make of
it. So an operation that more bits would show in is left to ATen, which Inductor's wrapper calls with the float itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals

if TYPE_CHECKING:
    import sympy  # type: ignore[import-untyped]
    import torch.fx

__all__ = ["exact_floats", "reads_floats"]

#: the types whose numbers have more than the 24 bits of a C float
_WIDE = frozenset((torch.float64, torch.complex128, torch.int64, torch.int32, torch.uint64, torch.uint32))


def reads_floats(gm: torch.fx.GraphModule) -> bool:
    """Whether the graph, or one that it calls, makes floats of what is in tensors."""
    return any(
        _is_read_float(symbol)
        for part in gm.modules()
        if isinstance(part, torch.fx.GraphModule)
        for node in part.graph.nodes
        for symbol in node.meta.get("unbacked_bindings") or ()
    )


@functools.cache
def exact_floats() -> Callable[[torch.fx.Graph], None]:
    """The pass over Inductor's graphs; made when first asked for, as it is of a class of Inductor's."""

    class ExactFloats(internals.CustomGraphPass):
        def __call__(self, graph: torch.fx.Graph) -> None:
            for node in graph.nodes:
                if isinstance(node.target, internals.OpOverload):
                    _keep_exact(node)

        def uuid(self) -> object:
            """What tells this version of the pass from others in Inductor's caches."""
            return internals.hash_of_files((__file__,))

    return ExactFloats()


def _keep_exact(node: torch.fx.Node) -> None:
    """Leave an operation to ATen that is given a float of a tensor, or what is computed of one, and would show it."""
    result = node.meta.get("val")
    if any(map(_is_inexact, _sizes(result))):
        raise NotImplementedError(f"Inductor would compute the size of {node.name} in single precision")
    operands = [operand.meta.get("val") for operand in node.all_input_nodes]
    if not any(map(_is_inexact, operands)):
        return
    if any(isinstance(value, torch.Tensor) and value.dtype in _WIDE for value in (result, *operands)):
        node.meta["should_fallback"] = True


def _sizes(result: object) -> tuple[object, ...]:
    return tuple(result.shape) if isinstance(result, torch.Tensor) else ()


def _is_inexact(value: Any) -> bool:
    """Whether a number is, or is computed of, a float that the graph reads out of a tensor."""
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool) and any(
        map(_is_read_float, value.node.expr.free_symbols)
    )


def _is_read_float(symbol: sympy.Symbol) -> bool:
    kinds = internals.symbol_kinds
    return bool(kinds.symbol_is_type(symbol, kinds.SymT.UNBACKED_FLOAT))
