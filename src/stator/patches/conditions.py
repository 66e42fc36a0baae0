"""Conditions on tensors as tensors: `a and b`, `not a`, and what was made a Python number on the way."""

from __future__ import annotations

import ast

from stator.patches.source import Edit, Source, names

__all__ = ["CODES", "TITLE", "condition", "edits", "is_of_tensors", "numbers_kept_tensors"]

CODES = ("SB0201",)
TITLE = "the condition kept a tensor"

#: methods and functions of torch whose result is of truth values
_OF_MATH = frozenset({"math.isnan", "math.isfinite", "math.isinf"})
_TRUTHS = frozenset({"all", "any", "isnan", "isfinite", "isinf", "logical_and", "logical_or", "logical_not"})


def edits(source: Source, line: int, reason: str) -> list[Edit] | None:
    """`a and b`, `a or b` on the line, where the value is kept: the branch that asks for it is another matter."""
    if not source.imports("torch"):
        return None
    for node in source.nodes(line, ast.BoolOp):
        kept = source.parents[node]
        if isinstance(kept, ast.Assign | ast.Return):
            asked = condition(source, node) if is_of_tensors(source, node, reason) else None  # type: ignore[arg-type]
            return None if asked is None else [source.replace(node, asked)]
    return None


def is_of_tensors(source: Source, test: ast.expr, reason: str) -> bool:
    """Whether what is asked can be a tensor: no size, and no number of which is not seen how it is taken out."""
    if not reason.startswith("a condition on "):
        return True  # a tensor itself was asked
    return bool(numbers_kept_tensors(source, test)) or any(taken_out(node) is not None for node in ast.walk(test))


def condition(source: Source, test: ast.expr) -> str | None:
    """The same condition as a tensor of truth values; None if it is none on tensors."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return _joined(source, "logical_and", values)
        case ast.BoolOp(values=values):
            return _joined(source, "logical_or", values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            asked = condition(source, operand)
            return None if asked is None else f"torch.logical_not({asked})"
        case ast.Compare(ops=[ast.In() | ast.NotIn() | ast.Is() | ast.IsNot()]):
            return None
        case ast.Compare(ops=[_]):
            return _with_tensors(source, test)
        case ast.Call(func=function, args=[arg]) if source.text(function) in _OF_MATH:
            return f"torch.{_name(test)}({source.text(taken_out(arg) or arg)})"
        case ast.Call() if _name(test) not in _TRUTHS:
            return f"{_with_tensors(source, test)} != 0"
        case ast.Name() | ast.Attribute() | ast.Call():
            return source.text(test)
    return None


def _joined(source: Source, function: str, values: list[ast.expr]) -> str | None:
    """All or any of some conditions."""
    if any(_needs_what_is_asked_before(node) for value in values[1:] for node in ast.walk(value)):
        return None
    first, *rest = [condition(source, value) for value in values]
    for each in rest:
        first = None if first is None or each is None else f"torch.{function}({first}, {each})"
    return first


def _needs_what_is_asked_before(node: ast.AST) -> bool:
    """Whether it may fail where `and` would not come to it: `mask.any() and x[mask].max() > 1`."""
    return isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant | ast.UnaryOp)


def _with_tensors(source: Source, test: ast.expr) -> str:
    """A comparison, in which numbers taken out of tensors are tensors as exact as Python's numbers."""
    start, _ = source.span(test)
    data = source.text(test).encode()
    found = [(source.span(call), tensor) for call in ast.walk(test) if (tensor := taken_out(call)) is not None]
    for (begin, end), tensor in sorted(found, key=lambda each: each[0], reverse=True):
        data = data[: begin - start] + f"{_operand(source, tensor)}.double()".encode() + data[end - start :]
    return data.decode()


def taken_out(node: ast.AST | None) -> ast.expr | None:
    """The tensor of which a call takes the number."""
    match node:
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[], keywords=[]):
            return tensor
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant()], keywords=[]):
            return None
        case ast.Call(func=ast.Name(id="float"), args=[tensor], keywords=[]):
            return tensor
    return None


#: what may be done with a number as well if it is a tensor without dimensions
_ARITHMETIC = (ast.AugAssign, ast.BinOp, ast.BoolOp, ast.Compare, ast.FormattedValue, ast.UnaryOp)


def numbers_kept_tensors(source: Source, test: ast.expr) -> list[Edit] | None:
    """What makes tensors of the names in a condition that the function gives numbers taken out of tensors.

    None if more is done with them than arithmetic.
    """
    asked = names(test)
    function = source.function(test)
    nodes = list(ast.walk(function)) if function is not None else []
    found = [edit for node in nodes if (edit := _kept_tensor(source, node, asked)) is not None]
    for node in nodes if found else ():
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name in asked:
                if not isinstance(source.parents[node], _ARITHMETIC):
                    return None
    return found


def _kept_tensor(source: Source, node: ast.AST, asked: set[str]) -> Edit | None:
    """What makes a tensor of the number that an assignment gives one of these names."""
    match node:
        case ast.AugAssign(target=target, value=value):
            targets = [target]
        case ast.Assign(targets=targets, value=value):
            pass
        case _:
            return None
    tensor = taken_out(value)
    if tensor is None or not any(names(target) & asked for target in targets if _is_name(target)):
        return None
    return source.replace(value, f"{_operand(source, tensor)}.detach().double()")


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def _operand(source: Source, node: ast.expr) -> str:
    text = source.text(node)
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""
