"""A line that only tells, and breaks the graph: it goes behind what the function computes, which is one graph then."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from stator.patches.branches import target_of_write
from stator.patches.source import Edit, Source, names

__all__ = ["CODES", "TITLE", "edits"]

CODES = ("SB0101", "SB0122", "SB0201", "SB0202")
TITLE = "what only tells behind what is computed"

_LEVELS = frozenset({"debug", "info", "warning", "error", "critical", "log"})
_STREAMS = frozenset({"sys.stdout", "sys.stderr"})
#: what may be called in such a line: it reads, and changes nothing
_READING = frozenset(
    (
        *("abs", "bool", "float", "format", "int", "len", "round", "str", "tuple"),
        *("all", "any", "cpu", "detach", "dim", "isfinite", "isinf", "isnan", "item", "max", "mean", "median", "min"),
        *("norm", "numel", "size", "std", "sum", "tolist", "var"),
    )
)
_RESULT = "returned"


def edits(source: Source, line: int, reason: str) -> list[Edit] | None:
    """The statement of a function on the line, and those behind it that only tell, moved to the function's end."""
    statement = next(
        (each for each in source.nodes(line, ast.stmt) if isinstance(each, ast.stmt) and _is_of_function(source, each)),
        None,
    )
    if statement is None or not _tells(source, statement):
        return None
    function = source.parents[statement]
    assert isinstance(function, ast.FunctionDef)
    behind = function.body[function.body.index(statement) :]
    last = behind[-1] if isinstance(behind[-1], ast.Return) else None
    behind = [each for each in behind if each is not last]
    moved = [each for each in behind if _tells(source, each)]
    passed = [each for each in behind if each not in moved]
    if (not passed and (last is None or not _computes(last))) or not source.data.endswith(b"\n"):
        return None
    if any(source.shares_a_line(each) for each in moved) or not _may_pass(behind, moved, last):
        return None
    return [*(source.without_lines(each) for each in moved), _at_the_end(source, function, moved, last)]


def _is_of_function(source: Source, node: ast.AST) -> bool:
    parent = source.parents.get(node)
    return isinstance(parent, ast.FunctionDef) and node in parent.body


def _at_the_end(source: Source, function: ast.FunctionDef, moved: list[ast.stmt], last: ast.Return | None) -> Edit:
    margin = source.margin(moved[0])
    lines = [source.text_with_comment(each) for each in moved]
    if last is None:
        at = source.at_line(1 + (function.end_lineno or 0))
        return Edit(at, at, "".join(f"{margin}{each}\n" for each in lines))
    if not _computes(last):
        return source.replace(last, f"\n{margin}".join([*lines, source.text(last)]))
    assert last.value is not None
    kept = f"{_RESULT} = {source.text(last.value)}"
    return source.replace(last, f"\n{margin}".join([kept, *lines, f"return {_RESULT}"]))


def _computes(last: ast.Return) -> bool:
    """Whether it returns more than what is there."""
    parts = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
    return not all(part is None or isinstance(part, ast.Name | ast.Constant) for part in parts)


def _may_pass(behind: list[ast.stmt], moved: list[ast.stmt], last: ast.Return | None) -> bool:
    """Whether what is read stays what it is until the end: only names are assigned on the way, and others."""
    told, given = set[str](), set[str]()
    for each in behind:
        if each in moved:
            told |= names(each)
            continue
        if not isinstance(each, ast.Assign) or not all(map(_is_of_names, each.targets)):
            return False
        given |= names(each)
        if told & names(*each.targets):
            return False
    others = [*(each for each in behind if each not in moved), *([] if last is None else [last])]
    return _RESULT not in told | given and not any(_changes(node) for each in others for node in ast.walk(each))


def _is_of_names(target: ast.expr) -> bool:
    return all(isinstance(each, ast.Name) for each in (target.elts if isinstance(target, ast.Tuple) else [target]))


def _changes(node: ast.AST) -> bool:
    return target_of_write(node) is not None or isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)


def _tells(source: Source, node: ast.stmt) -> bool:
    """Whether a statement prints or logs, perhaps under a condition, and does nothing else."""
    match node:
        case ast.Expr(value=ast.Call(func=function, args=args, keywords=keywords)):
            read = [*args, *(keyword.value for keyword in keywords)]
            return _is_told_by(source, function) and _only_read(read)
        case ast.If(test=test, body=body, orelse=others):
            return _only_read([test]) and all(_tells(source, each) for each in (*body, *others))
    return False


def _is_told_by(source: Source, function: ast.expr) -> bool:
    match function:
        case ast.Name(id="print"):
            return True
        case ast.Attribute(value=owner, attr="write" | "flush"):
            return source.text(owner) in _STREAMS
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return (owner, name) == ("warnings", "warn") or (name in _LEVELS and "log" in owner.lower())
    return False


def _only_read(values: Iterable[ast.expr]) -> bool:
    for node in (each for value in values for each in ast.walk(value)):
        if isinstance(node, ast.Call) and _name(node.func) not in _READING:
            return False
        if _changes(node):
            return False
    return True


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))
