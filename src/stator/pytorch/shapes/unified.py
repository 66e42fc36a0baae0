"""Numbers in tensors that a trace has found to be what is computed of sizes.

    n = count.item()
    torch._check(n == x.shape[0])      # or: torch.zeros(n) + x
    return torch.zeros(n)

From then on the ShapeEnv knows them by the sizes' symbols. So does AOTAutograd, which would compare a size with itself,
and use it in the number's place. So in a graph that a backend compiles an assertion compares the tensor that the number
is in, with what is computed of the sizes in tensors too.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import torch
import torch.fx

from stator.pytorch import internals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import sympy  # type: ignore[import-untyped]
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

__all__ = ["assert_contents"]

#: functions of expressions, by the names of their classes
_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Mul": operator.mul,
    "Pow": operator.pow,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "Max": torch.maximum,
    "Min": torch.minimum,
}


def assert_contents(gm: torch.fx.GraphModule, env: ShapeEnv) -> bool:
    """Add the assertions; whether there are any."""
    unified = {symbol for symbol, now in env.replacements.items() if now.free_symbols}
    makers = [(node, symbol) for node in gm.graph.nodes for symbol in unified & _made_by(node)]
    sizes = _Sizes(gm.graph) if makers else None
    made = [_assert_is(node, symbol, env.replacements[symbol], sizes) for node, symbol in makers if sizes is not None]
    return any(made)


def _made_by(node: torch.fx.Node) -> set[sympy.Symbol]:
    return set(node.meta.get("unbacked_bindings") or ())


def _assert_is(maker: torch.fx.Node, symbol: sympy.Symbol, expression: sympy.Expr, sizes: _Sizes) -> bool:
    """That a number which is read from a tensor, or a size that its contents give, is what the expression gives."""
    graph = maker.graph
    is_size = [getattr(step, "name", "") for step in maker.meta["unbacked_bindings"][symbol]] == ["size", ""]
    if maker.target != "item" and not is_size:
        return False
    with graph.inserting_before(maker.next if is_size else maker):
        wanted = sizes.tensor(expression)
        if is_size and wanted is not None:
            dim = maker.meta["unbacked_bindings"][symbol][1].idx
            wanted = sizes.times(wanted, maker.meta.get("example_value").shape, dim)
        if wanted is not None:
            condition = graph.call_function(operator.eq, (_counted(maker) if is_size else _read(maker), wanted))
            graph.call_function(internals.assert_async_msg, (condition, f"{symbol} in a tensor is {expression}"))
    return wanted is not None


def _read(item: torch.fx.Node) -> torch.fx.Node:
    """The tensor that the number is read from: on the CPU, as wide as Python's numbers."""
    local = item.graph.call_method("to", (item.args[0], "cpu", torch.int64))
    return item.graph.call_method("reshape", (local, ()))


def _counted(maker: torch.fx.Node) -> torch.fx.Node:
    """How many elements a tensor has, which its sizes would not tell."""
    ones = maker.graph.call_function(torch.ones_like, (maker,), {"dtype": torch.int64, "device": "cpu"})
    return maker.graph.call_method("sum", (ones,))


class _Sizes:
    """What sizes the inputs of a graph have, and what is computed of them."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self.graph = graph
        self.found: dict[sympy.Expr, tuple[torch.fx.Node, int | None]] = {}
        for node in graph.nodes:
            if node.op == "placeholder":
                self._look_at(node, node.meta.get("example_value"))

    def _look_at(self, node: torch.fx.Node, example: Any) -> None:
        if isinstance(example, torch.SymInt):
            self.found.setdefault(example.node.expr, (node, None))
        elif isinstance(example, torch.Tensor) and example.layout is torch.strided:
            for dim, size in enumerate(example.shape):
                if isinstance(size, torch.SymInt):
                    self.found.setdefault(size.node.expr, (node, dim))

    def tensor(self, expression: sympy.Expr) -> torch.fx.Node | None:
        """A tensor that holds what it gives; None where a part of it is no size of an input.

        Numbers it would be computed of are known by what they are equal to, as the whole is.
        """
        if expression.is_Integer:
            return self._held(int(expression))
        if expression in self.found:
            node, dim = self.found[expression]
            return self._held(
                node if dim is None else self.graph.call_function(torch.ops.aten.sym_size.int, (node, dim))
            )
        function = _FUNCTIONS.get(type(expression).__name__)
        parts = [] if function is None else [self.tensor(part) for part in expression.args]
        if function is None or None in parts:
            return None
        return functools.reduce(lambda a, b: self.graph.call_function(function, (a, b)), parts)

    def times(self, tensor: torch.fx.Node, shape: Sequence[Any], dim: int) -> torch.fx.Node | None:
        """Times all sizes of a shape but the one of the dimension; None where one is not known."""
        others = [size for other, size in enumerate(shape) if other != dim]
        factors = [self._held(n) if isinstance(n, int) else self.tensor(n.node.expr) for n in others]
        if None in factors:
            return None
        return functools.reduce(lambda a, b: self.graph.call_function(operator.mul, (a, b)), factors, tensor)

    def _held(self, number: int | torch.fx.Node) -> torch.fx.Node:
        return self.graph.call_function(torch.scalar_tensor, (number,), {"dtype": torch.int64})
