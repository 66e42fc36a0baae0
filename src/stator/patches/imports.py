"""An import inside of a function, at the top of the file."""

from __future__ import annotations

import ast

from stator.patches.source import Edit, Source

__all__ = ["CODES", "TITLE", "edits"]

CODES = ("SB0403",)
TITLE = "the import at the top of the file"


def edits(source: Source, line: int, reason: str) -> list[Edit] | None:
    """The import on the line, if it is made whatever happens."""
    for node in source.nodes(line, ast.Import, ast.ImportFrom):
        conditional = (ast.If, ast.Try, ast.For, ast.While, ast.With, ast.ClassDef, ast.Match)
        if any(source.around(node, *conditional)) or source.function(node) is None:
            return None
        if any(map(source.has_global, (alias.asname or alias.name for alias in node.names))):  # type: ignore[attr-defined]
            return None
        before = [each for each in source.tree.body if isinstance(each, ast.Import | ast.ImportFrom)]
        at = source.at_line(1 + (before[-1].end_lineno or 0) if before else source.tree.body[0].lineno)
        return [Edit(at, at, f"{source.text(node)}\n"), source.without_lines(node)]
    return None
