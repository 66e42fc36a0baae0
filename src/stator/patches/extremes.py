"""`min(a, b)` and `max(a, b)` of two tensors: Python's own choice, in the graph."""

from __future__ import annotations

import ast

from stator.patches.source import Edit, Source

__all__ = ["CODES", "TITLE", "edits"]

CODES = ("SB0201",)
TITLE = "the smaller or larger of two tensors chosen in the graph"


def edits(source: Source, line: int, reason: str) -> list[Edit] | None:
    """As Python asks: to `torch.minimum` what is not a number is the smaller, and to `torch.maximum` the larger."""
    if not source.imports("torch"):
        return None
    for node in source.nodes(line, ast.Call):
        assert isinstance(node, ast.Call)
        function, args = node.func, node.args
        if isinstance(function, ast.Name) and function.id in ("min", "max") and len(args) == 2 and not node.keywords:
            if any(not isinstance(arg, ast.Name | ast.Attribute) for arg in args):
                continue  # they are written twice
            one, other = map(source.text, args)
            sign = "<" if function.id == "min" else ">"
            return [source.replace(node, f"torch.where({other} {sign} {one}, {other}, {one})")]
    return None
