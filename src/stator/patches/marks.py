"""What asks for the break, taken out: a call of `graph_break()`, a mark that disables a function without a reason."""

from __future__ import annotations

import ast

from stator.patches.source import Edit, Source

__all__ = ["CODES", "TITLE", "edits"]

CODES = ("SB0301", "SB0302")
TITLE = "what asks for the break taken out"


def edits(source: Source, line: int, reason: str) -> list[Edit] | None:
    """The statement on the line, or the mark of the function that the reason names."""
    for node in source.nodes(line, ast.Expr):
        call = node.value  # type: ignore[attr-defined]
        if isinstance(call, ast.Call) and _last(call.func) == "graph_break":
            return [source.without_lines(node)]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef) and node.name in reason.replace(",", " ").replace(".", " ").split():
            for mark in node.decorator_list:
                # Whoever gave a reason meant it.
                if _last(mark.func if isinstance(mark, ast.Call) else mark) == "disable" and not (
                    isinstance(mark, ast.Call) and mark.keywords
                ):
                    return [source.without_lines(mark)]
    return None


def _last(name: ast.expr) -> str:
    """The last part of a name with points."""
    return name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
