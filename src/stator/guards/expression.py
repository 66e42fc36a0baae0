"""Conditions over ints, as Python evaluates them and as steps that the core performs (`_core/relation.cpp`)."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

__all__ = ["Expression", "expression"]

#: a letter (`n`: a number given, `c`: a constant, or an operation on the last two), and the operand of `n` and `c`
_Step = tuple[str, int | None]

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%"}
_FUNCTIONS = {"min": "m", "max": "M"}
_JOINS = {ast.And: "m", ast.Or: "M"}
#: the operation; whether it takes the right side first; whether its contrary is meant
_COMPARISONS: dict[type[ast.cmpop], tuple[str, bool, bool]] = {
    ast.Eq: ("=", False, False),
    ast.NotEq: ("=", False, True),
    ast.Lt: ("<", False, False),
    ast.LtE: ("<", True, True),
    ast.Gt: ("<", True, False),
    ast.GtE: ("<", False, True),
}


class Expression:
    """A condition over so many numbers, which are written `{0}`, `{1}` …; use ``expression``.

    >>> expression("{0} % 8 == 0", 1)(16)
    True
    """

    __slots__ = ("_evaluate", "count", "operands", "steps", "text")

    def __init__(self, text: str, count: int) -> None:
        self.text = text
        self.count = count
        names = [f"n{i}" for i in range(count)]
        source = self.of(names)
        found = list(_condition(ast.parse(source, mode="eval").body))
        self.steps = "".join(letter for letter, _ in found)
        self.operands = tuple(operand for _, operand in found if operand is not None)
        self._evaluate: Callable[..., object] = eval(f"lambda {', '.join(names)}: {source}")

    def of(self, names: Sequence[str]) -> str:
        """Its text, with these names for the numbers."""
        return self.text.format(*names)

    def __call__(self, *numbers: object) -> bool:
        return bool(self._evaluate(*numbers))

    def __reduce__(self) -> tuple[object, ...]:
        return expression, (self.text, self.count)


@functools.lru_cache(4096)
def expression(text: str, count: int) -> Expression:
    """The expression of this text, one object as long as it is remembered: entries share the checks that are equal.

    Raises:
        ValueError: it is no condition over ints, or has an operation that the core does not know.
    """
    return Expression(text, count)


def _condition(node: ast.expr) -> Iterator[_Step]:
    match node:
        case ast.BoolOp(op=op, values=values):
            yield from _joined(_JOINS[type(op)], map(_condition, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _contrary(_condition(operand))
        case ast.Compare(left=left, ops=ops, comparators=right):
            sides = pairwise([left, *right])
            yield from _joined("m", [_compared(op, a, b) for op, (a, b) in zip(ops, sides, strict=True)])
        case _:
            raise ValueError(f"no condition: {ast.unparse(node)}")


def _compared(op: ast.cmpop, left: ast.expr, right: ast.expr) -> Iterator[_Step]:
    letter, swapped, contrary = _COMPARISONS[type(op)]
    sides = map(_number, (right, left) if swapped else (left, right))
    steps = _joined(letter, sides)
    return _contrary(steps) if contrary else steps


def _contrary(steps: Iterator[_Step]) -> Iterator[_Step]:
    yield from steps
    yield "c", 0
    yield "=", None


def _number(node: ast.expr) -> Iterator[_Step]:
    match node:
        case ast.Name(id=name):
            yield "n", int(name[1:])
        case ast.Constant(value=int(value)) if type(value) is int and value.bit_length() < 64:
            yield "c", value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield "c", 0
            yield from _number(operand)
            yield "-", None
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            yield from _joined(_OPERATORS[type(op)], map(_number, (left, right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS and len(args) > 1:
            yield from _joined(_FUNCTIONS[name], map(_number, args))
        case _:
            raise ValueError(f"no expression over ints: {ast.unparse(node)}")


def _joined(letter: str, parts: Any) -> Iterator[_Step]:
    for i, part in enumerate(parts):
        yield from part
        if i:
            yield letter, None
