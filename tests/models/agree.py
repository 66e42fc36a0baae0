"""Expressions evaluated twice, by CPython and as one traced graph: values, types and exceptions must agree."""

import types
from collections.abc import Callable

import stator

Expression = Callable[[], object]


def outcome(expression: Expression) -> tuple[str, object]:
    """What evaluating it comes to, in a form that can be compared."""
    try:
        return "value", shape(expression())
    except Exception as e:
        return type(e).__name__, str(e)


def shape(value: object) -> object:
    """The value with all types inside made visible."""
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [shape(item) for item in value])
    if isinstance(value, dict):
        return (type(value).__name__, [(shape(key), shape(item)) for key, item in value.items()])
    if isinstance(value, (set, frozenset)):
        return (type(value).__name__, sorted(repr(shape(item)) for item in value))
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return value
    return (type(value).__name__, repr(value))


def agree(expression: Expression) -> None:
    """The traced outcome is the eager one."""
    expected = outcome(expression)
    actual = outcome(stator.compile(expression, backend="eager", fullgraph=True))
    assert actual == expected


def expressions(namespace: dict[str, object], table: str) -> list[Expression]:
    """One function for each line of the table, with the namespace as its globals."""
    lines = [line.strip() for line in table.strip().splitlines() if line.strip() and not line.strip().startswith("#")]
    return [named(eval(f"lambda: ({line})", namespace), line) for line in lines]


def named(expression: Expression, line: str) -> Expression:
    expression.__name__ = line
    return expression
