"""How a program would write a number that is computed of existing ones: `math.exp(-self.frame / 5)`."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals

if TYPE_CHECKING:
    from stator.pytorch.types import Function

__all__ = ["written"]

#: characters of an expression that is written out, and of a text that is read for it
_LONGEST, _MOST_READ = 80, 1000
#: how many of the numbers are named that a long expression is computed of
_MOST_NAMED = 3

#: operators by the functions that the graph has for them
_BINARY: dict[Function, type[ast.operator]] = {
    operator.add: ast.Add,
    operator.sub: ast.Sub,
    operator.mul: ast.Mult,
    operator.truediv: ast.Div,
    operator.floordiv: ast.FloorDiv,
    operator.mod: ast.Mod,
    operator.pow: ast.Pow,
    operator.and_: ast.BitAnd,
    operator.or_: ast.BitOr,
    operator.xor: ast.BitXor,
    operator.lshift: ast.LShift,
    operator.rshift: ast.RShift,
}
_COMPARED: dict[Function, type[ast.cmpop]] = {
    operator.lt: ast.Lt,
    operator.le: ast.LtE,
    operator.eq: ast.Eq,
    operator.ne: ast.NotEq,
    operator.gt: ast.Gt,
    operator.ge: ast.GtE,
}
_UNARY: dict[Function, type[ast.unaryop]] = {
    operator.neg: ast.USub,
    operator.pos: ast.UAdd,
    operator.invert: ast.Invert,
    operator.not_: ast.Not,
    torch.sym_not: ast.Not,
}
#: functions that Python has under another name
_NAMED: dict[Function, str] = {
    operator.abs: "abs",
    torch.sym_float: "float",
    torch.sym_int: "int",
    torch.sym_max: "max",
    torch.sym_min: "min",
    internals.sym_sqrt: "math.sqrt",
}
_NUMBERS = {"inf": "math.inf", "nan": "math.nan"}


@functools.lru_cache(4096)
def written(text: str, count: int, functions: tuple[Function, ...], *, alone: bool = False) -> str:
    """The text of a `CallSource` that computes something, in which `{}` and `{1}` stand for the first two numbers.

    What is too long, or has a part that nobody would write, is told in words.

    Args:
        text: what is computed, of so many numbers n0, n1 … and of functions f0, f1 …
        count: of the numbers.
        functions: these functions.
        alone: whether it stands alone, and needs no parentheses.
    """
    places = ["{}", *(f"{{{place}}}" for place in range(1, count))]
    tree = _expression(text, places, functions) if len(text) <= _MOST_READ else None
    whole = "" if tree is None else ast.unparse(tree)
    if whole and len(whole) <= _LONGEST:
        return whole if alone or isinstance(tree, _CLOSED) else f"({whole})"
    named = places if count <= _MOST_NAMED else [*places[:_MOST_NAMED], "others"]
    return f"the number computed of {' and '.join(filter(None, (', '.join(named[:-1]), named[-1])))}"


def _expression(text: str, places: list[str], functions: tuple[Function, ...]) -> ast.expr | None:
    """The expression; None where a function has no name."""
    try:
        tree: ast.expr = _Writing(places, functions).visit(ast.parse(text, mode="eval").body)
    except LookupError:
        return None
    return tree


#: what needs no parentheses, wherever it stands
_CLOSED = (ast.Call, ast.Name, ast.Constant, ast.Subscript, ast.Tuple)


class _Writing(ast.NodeTransformer):
    def __init__(self, places: list[str], functions: tuple[Function, ...]) -> None:
        self._names = {**_NUMBERS, **{f"n{number}": place for number, place in enumerate(places)}}
        self._functions = {f"f{number}": function for number, function in enumerate(functions)}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(self._names[node.id])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)
        function = self._functions[node.func.id]
        return _called(function, [self.visit(arg) for arg in node.args])


def _called(function: Function, args: list[ast.expr]) -> ast.expr:
    if function in _BINARY and len(args) == 2:
        return ast.BinOp(args[0], _BINARY[function](), args[1])
    if function in _COMPARED and len(args) == 2:
        return ast.Compare(args[0], [_COMPARED[function]()], [args[1]])
    if function in _UNARY and len(args) == 1:
        return ast.UnaryOp(_UNARY[function](), args[0])
    if function is torch.sym_ite and len(args) == 3:
        return ast.IfExp(*args)
    if function is operator.getitem and len(args) == 2:
        return ast.Subscript(args[0], args[1])
    return ast.Call(ast.Name(_name_of(function)), args, [])


def _name_of(function: Callable[..., object]) -> str:
    """What a program calls a function; raises LookupError for what has no name there."""
    if function in _NAMED:
        return _NAMED[function]
    module = getattr(function, "__module__", None)
    name = function.__name__ if module else function.__qualname__
    if module == "builtins":
        return name
    if not name.replace(".", "").isidentifier():
        raise LookupError(name)
    return f"{module}.{name}" if module else name
