"""Conditions on tensors as tensors: `a and b`, `not a`, and what was made a Python number on the way."""

from __future__ import annotations

import ast

from stator.patches.source import Edit, Source

__all__ = ["CODES", "TITLE", "condition", "edits", "numbers_kept_tensors"]

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
            asked = condition(source, node)  # type: ignore[arg-type]
            return None if asked is None else [source.replace(node, asked)]
    return None


def condition(source: Source, test: ast.expr) -> str | None:
    """The same condition as a tensor of truth values; None if it is none on tensors."""
    if isinstance(test, ast.BoolOp):
        if any(_needs_what_is_asked_before(node) for value in test.values[1:] for node in ast.walk(value)):
            return None
        name = "logical_and" if isinstance(test.op, ast.And) else "logical_or"
        first, *rest = [condition(source, value) for value in test.values]
        for each in rest:
            first = None if first is None or each is None else f"torch.{name}({first}, {each})"
        return first
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        asked = condition(source, test.operand)
        return None if asked is None else f"torch.logical_not({asked})"
    if isinstance(test, ast.Compare):
        if any(isinstance(op, ast.In | ast.NotIn | ast.Is | ast.IsNot) for op in test.ops) or len(test.ops) > 1:
            return None
        return _with_tensors(source, test)
    if isinstance(test, ast.Call) and source.text(test.func) in _OF_MATH and len(test.args) == 1:
        tensor = taken_out(test.args[0]) or test.args[0]
        return f"torch.{_name(test)}({source.text(tensor)})"
    if isinstance(test, ast.Call) and _name(test) not in _TRUTHS:
        return f"{_with_tensors(source, test)} != 0"
    return source.text(test) if isinstance(test, ast.Name | ast.Attribute | ast.Call) else None


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
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        return node.func.value
    if isinstance(node.func, ast.Name) and node.func.id == "float" and len(node.args) == 1:
        return None if isinstance(node.args[0], ast.Constant) else node.args[0]
    return None


#: what may be done with a number as well if it is a tensor without dimensions
_ARITHMETIC = (ast.AugAssign, ast.BinOp, ast.BoolOp, ast.Compare, ast.FormattedValue, ast.UnaryOp)


def numbers_kept_tensors(source: Source, test: ast.expr) -> list[Edit] | None:
    """What makes tensors of the names in a condition that the function gives numbers taken out of tensors.

    None if more is done with them than arithmetic.
    """
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    function = source.function(test)
    found = []
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Assign):
            targets = node.targets  # type: ignore[assignment]
        else:
            continue
        tensor = taken_out(node.value)
        if tensor is not None and any(isinstance(target, ast.Name) and target.id in names for target in targets):
            found.append(source.replace(node.value, f"{_operand(source, tensor)}.detach().double()"))
    for node in ast.walk(function) if found and function is not None else ():
        used = isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load)
        if used and not isinstance(source.parents[node], _ARITHMETIC):
            return None
    return found


def _operand(source: Source, node: ast.expr) -> str:
    text = source.text(node)
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""
