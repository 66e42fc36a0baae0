"""A size that varies: symbolic from the first call on."""

from __future__ import annotations

import ast
import re

from stator.patches.source import Edit, Source

__all__ = ["CODES", "TITLE", "compiles", "defined_at", "edits"]

CODES = ("SB0601",)
TITLE = "sizes symbolic from the first call on"
_SIZE = re.compile(r"size \d+ of `|`len\(")


def edits(source: Source, line: int, reason: str) -> list[Edit] | None:
    """`dynamic=True` where the function is compiled: at its definition, or the one call of `compile` in the file."""
    if not _SIZE.search(reason):
        return None
    function = defined_at(source, line)
    marks = [] if function is None else [mark for mark in function.decorator_list if compiles(mark)]
    found = marks or [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and compiles(node)]
    if len(found) != 1:
        return None
    (made,) = found
    if not isinstance(made, ast.Call):
        return [source.replace(made, f"{source.text(made)}(dynamic=True)")]
    if any(keyword.arg in ("dynamic", None) for keyword in made.keywords):
        return None
    _, end = source.span(made)
    return [Edit(end - 1, end - 1, ", dynamic=True" if made.args or made.keywords else "dynamic=True")]


def defined_at(source: Source, line: int) -> ast.FunctionDef | None:
    """The function that begins on the line: with its first decorator, as code objects have it, or with `def`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef) and line in (node.lineno, *(each.lineno for each in node.decorator_list)):
            return node
    return None


def compiles(node: ast.expr) -> bool:
    """Whether it is `torch.compile` or `stator.compile`, or a call of one."""
    name = node.func if isinstance(node, ast.Call) else node
    return (
        isinstance(name, ast.Attribute)
        and name.attr == "compile"
        and isinstance(name.value, ast.Name)
        and name.value.id in ("torch", "stator")
    )
