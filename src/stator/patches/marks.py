"""What asks for the break, taken out: a call of `graph_break()`, a mark that disables a function for another tracer.

`stator.disable` stays, as does a mark with a reason: whoever wrote it meant it, perhaps on Stator's own advice.
"""

from __future__ import annotations

import ast

from stator.patches.source import Edit, Source

__all__ = ["CODES", "TITLE", "edits"]

CODES = ("SB0301", "SB0302")
TITLE = "what asks for the break taken out"
#: modules, by the last part of their names, or what programs call them
_OF_TORCH = ("compiler", "_dynamo", "dynamo")


def edits(source: Source, line: int, reason: str) -> list[Edit] | None:
    """The statement on the line, or the mark of the function that the reason names."""
    for node in source.nodes(line, ast.Expr):
        call = node.value  # type: ignore[attr-defined]
        if isinstance(call, ast.Call) and _last(call.func) == "graph_break":
            return [source.without_lines(node)]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef) and node.name in reason.replace(",", " ").replace(".", " ").split():
            for mark in node.decorator_list:
                made = mark if isinstance(mark, ast.Call) else None
                if _is_torchs_disable(mark if made is None else made.func) and not (made and made.keywords):
                    return [source.without_lines(mark)]
    return None


def _is_torchs_disable(mark: ast.expr) -> bool:
    """Whether the name is that of `torch.compiler.disable`, or of Dynamo's."""
    return isinstance(mark, ast.Attribute) and mark.attr == "disable" and _last(mark.value) in _OF_TORCH


def _last(name: ast.expr) -> str:
    """The last part of a name with points."""
    return name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
