"""A branch on what a tensor holds: both sides in the graph, by `torch.where` or `torch.cond`."""

from __future__ import annotations

import ast
from typing import NamedTuple

from stator.patches.conditions import condition, is_of_tensors, numbers_kept_tensors
from stator.patches.source import Edit, Source, names

__all__ = ["CODES", "TITLE", "edits", "target_of_write"]

CODES = ("SB0201",)
TITLE = "both sides of the branch in the graph"

#: methods whose gradient is finite wherever they are computed; what else a side does runs only where it is chosen
_SMOOTH = frozenset({"abs", "clamp", "clip", "clone", "detach", "relu", "sigmoid", "tanh"})


class _Branch(NamedTuple):
    """Values for one condition or the other; `first` to `last` is what they take the place of."""

    first: ast.AST
    last: ast.AST
    before: str
    value: str
    targets: frozenset[str]


def edits(source: Source, line: int, reason: str) -> list[Edit] | None:
    """The branch whose condition stands on the line."""
    if not source.imports("torch"):
        return None
    for node in source.nodes(line, ast.If, ast.IfExp):
        test = node.test  # type: ignore[attr-defined]
        if not test.lineno <= line <= test.end_lineno:
            continue
        while isinstance(node, ast.If) and source.is_elif(node):
            node = source.parents[node]
        branch = _of_values(source, node) if isinstance(node, ast.IfExp) else _of_statements(source, node)
        if branch is None or _written(source, branch) or not is_of_tensors(source, test, reason):
            return None
        numbers = numbers_kept_tensors(source, test)
        edit = source.replace(branch.first, branch.before + branch.value, branch.last)
        return None if numbers is None else [edit, *numbers]
    return None


def _of_values(source: Source, node: ast.IfExp) -> _Branch | None:
    value = _chosen(source, node.test, [node.body], [node.orelse])
    kept = _assigned(source.parents[node])
    return None if value is None else _Branch(node, node, "", value, frozenset() if kept is None else frozenset({kept}))


def _of_statements(source: Source, node: ast.AST) -> _Branch | None:
    if not isinstance(node, ast.If):
        return None
    last: ast.AST = node
    others = node.orelse
    if isinstance(node.body[-1], ast.Return) and not others:
        following = _next(source, node)
        if following is None:
            return None
        others, last = [following], following
    targets = _targets(node.body)
    if targets is None:
        return None
    value = _value(source, node.test, node.body, others, targets)
    if value is None:
        return None
    before = f"{', '.join(targets)} = " if targets else "return "
    return _Branch(node, last, before, value, frozenset(targets))


def _next(source: Source, node: ast.stmt) -> ast.stmt | None:
    """The statement behind it in its block, if it returns."""
    block = next(each for _, each in ast.iter_fields(source.parents[node]) if isinstance(each, list) and node in each)
    rest = block[block.index(node) + 1 :]
    return rest[0] if rest and isinstance(rest[0], ast.Return) else None


def _value(
    source: Source, test: ast.expr, body: list[ast.stmt], others: list[ast.stmt], targets: tuple[str, ...]
) -> str | None:
    one, other = _values(body, targets), _values(others, targets)
    if one is None:
        return None
    if other is None and len(others) == 1 and isinstance(others[0], ast.If) and len(targets) < 2:  # elif
        inner = others[0]
        nested = _value(source, inner.test, inner.body, inner.orelse, targets)
        return None if nested is None else _chosen(source, test, one, [nested])
    return None if other is None else _chosen(source, test, one, other)


def _targets(body: list[ast.stmt]) -> tuple[str, ...] | None:
    """The names that a side assigns; () if it returns, None if it does anything else."""
    if len(body) == 1 and isinstance(body[0], ast.Return):
        return () if body[0].value is not None else None
    assigned = [_assigned(each) for each in body]
    return None if None in assigned or len(set(assigned)) != len(assigned) else tuple(filter(None, assigned))


def _assigned(node: ast.AST) -> str | None:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return None


def _values(body: list[ast.stmt], targets: tuple[str, ...]) -> list[ast.expr | str] | None:
    """What a side gives each of the names, or returns; the names themselves where there is no side."""
    if not body:
        return list(targets) or None
    if _targets(body) != targets:
        return None
    values = [each.value for each in body if isinstance(each, ast.Assign | ast.Return)]
    return None if names(*values[1:]) & set(targets[:-1]) else [value for value in values if value is not None]


def _chosen(source: Source, test: ast.expr, one: list[ast.expr | str], other: list[ast.expr | str]) -> str | None:
    """The values under a condition."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, one, other = test.operand, other, one
    asked = condition(source, test)
    if asked is None or any(not _is_pure(value) for value in [*one, *other]):
        return None
    if len(one) == 1 and _is_smooth(one[0]) and _is_smooth(other[0]):
        return f"torch.where({asked}, {_text(source, one[0])}, {_text(source, other[0])})"
    sides = (_text(source, *values) for values in ([_fresh(each) for each in one], [_fresh(each) for each in other]))
    return f"torch.cond({asked}, {', '.join(f'lambda: {side}' for side in sides)})"


def _fresh(value: ast.expr | str) -> ast.expr | str:
    """A side of `torch.cond` may give no tensor that is there already."""
    existing = ast.Name | ast.Attribute | ast.Subscript
    bare = value.isidentifier() if isinstance(value, str) else isinstance(value, existing)
    return f"{value if isinstance(value, str) else ast.unparse(value)}.clone()" if bare else value


def _text(source: Source, *values: ast.expr | str) -> str:
    texts = [value if isinstance(value, str) else source.text(value) for value in values]
    bare = len(values) == 1 and not isinstance(values[0], ast.Tuple)
    return texts[0] if bare else f"({', '.join(texts)})"


def _is_smooth(value: ast.expr | str) -> bool:
    """Whether it may be computed and derived also where it is not chosen: nothing is divided, looked up or called."""
    match value:
        case str():
            return value.isidentifier() or value.startswith("torch.where(")
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute(value=owner):
            return _is_smooth(owner)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return _is_smooth(left) and _is_smooth(right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_smooth(operand)
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args, keywords=keywords) if name in _SMOOTH:
            return all(map(_is_smooth, [owner, *args, *(keyword.value for keyword in keywords)]))
    return False


def _is_pure(value: ast.expr | str) -> bool:
    """Whether it is computed without an effect that is seen: `torch.cond` refuses those of what is called."""
    if isinstance(value, str):
        return True
    effects = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return not any(isinstance(node, effects) or _writes(node) for node in ast.walk(value))


def _writes(node: ast.AST) -> bool:
    """Whether it is a call of a method that writes its tensor."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name.endswith("_") and not name.startswith("_")
    return False


def _written(source: Source, branch: _Branch) -> bool:
    """Whether the function goes on to write in place to what the branch has given another name: that was one tensor."""
    shared = branch.targets | names(branch.first, branch.last)
    loop = next(source.around(branch.first, ast.For, ast.AsyncFor, ast.While), None)
    behind = source.span(branch.last)[1] if loop is None else source.span(loop)[0]
    function = source.function(branch.first)
    for each in ast.walk(function) if function is not None else ():
        written = target_of_write(each)
        if written is not None and source.span(each)[0] >= behind and shared & names(written):
            return True
    return False


def target_of_write(node: ast.AST) -> ast.AST | None:
    """What a statement or a call writes in place."""
    match node:
        case ast.AugAssign(target=target):
            return target
        case ast.Call(func=ast.Attribute(value=target)) if _writes(node):
            return target
        case ast.Subscript(value=target, ctx=ast.Store() | ast.Del()):
            return target
    return None
