"""Finds where Stator's sources touch names that torch keeps private."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

#: what Stator and torch write on the user's own objects, and private names of the standard library
_OTHERS = ("_stator_", "_dynamo_", "_torchdynamo_", "_getframe")
#: functions of CPython that look up an attribute under a name
_LOOKING = frozenset({"getattr", "hasattr", "setattr", "delattr"})


class Touch(NamedTuple):
    """One place."""

    line: int
    text: str


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith(("__", *_OTHERS))


def own_names(trees: Iterable[ast.AST]) -> frozenset[str]:
    """The private names that the sources define: slots, attributes of `self`, functions, classes, variables."""
    found: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
                found.add(node.attr)
            elif isinstance(node, ast.Assign) and any(_names_slots(target) for target in node.targets):
                found |= {part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)}
    return frozenset(name for name in found if isinstance(name, str) and is_private(name))


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _names_slots(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__slots__"


def touches(source: str | ast.AST, own: frozenset[str], members: frozenset[str]) -> Iterator[Touch]:
    """The private names of torch's in one file.

    Args:
        source: the file's text.
        own: private names of Stator's own (`own_names`).
        members: private members of torch's classes, which belong to torch even where Stator has one of the name.
    """
    tree = ast.parse(source) if isinstance(source, str) else source
    roots = _roots(tree)
    methods = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "super()" and node.attr in methods:
            continue  # what a method overrides: see "module_loading" in internals.py
        if any(map(is_private, _asked(node, roots, own, members))):
            yield Touch(node.lineno, ast.unparse(node))  # type: ignore[attr-defined]


def _roots(tree: ast.AST) -> frozenset[str]:
    """The names in a file that stand for torch, or for something of it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                module = node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
                if module.split(".")[0] == "torch":
                    found.add(alias.asname or alias.name.split(".")[0])
    changed = bool(found)
    while changed:
        names = {name for node in ast.walk(tree) for name in _bound(node, found)}
        changed = not names <= found
        found |= names
    return frozenset(found)


def _bound(node: ast.AST, roots: set[str]) -> Iterator[str]:
    """The names that a statement gives to something of torch's: `_Module = torch.nn.Module`."""
    if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Attribute):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if _chain(node.value)[0] in roots:
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def _chain(node: ast.expr) -> list[str]:
    """The parts of a dotted name; the first is "" where the chain begins with something else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return [node.id if isinstance(node, ast.Name) else "", *parts]


def _asked(node: ast.AST, roots: frozenset[str], own: frozenset[str], members: frozenset[str]) -> Iterator[str]:
    """The names that a node asks of torch or of an object of its."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
        yield from (node.module or "").split(".")
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.Import):
        yield from (part for a in node.names if a.name.split(".")[0] == "torch" for part in a.name.split("."))
    elif isinstance(node, ast.Attribute):
        first, *rest = _chain(node)
        if first in roots:
            yield from rest
        elif node.attr in members or (is_private(node.attr) and node.attr not in own and not _is_self(node.value)):
            yield node.attr
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _LOOKING:
        yield from (arg.value for arg in node.args[1:2] if isinstance(arg, ast.Constant) and arg.value in members)
        if isinstance(node.args[0], ast.Name | ast.Attribute) and _chain(node.args[0])[0] in roots:
            yield from (arg.value for arg in node.args[1:2] if isinstance(arg, ast.Constant))
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call) and isinstance(node.slice, ast.Constant):
        if ast.unparse(node.value.func) == "vars" and isinstance(node.slice.value, str):
            yield node.slice.value


def private_members(classes: Iterable[type]) -> frozenset[str]:
    return frozenset(name for cls in classes for name in dir(cls) if is_private(name))


def files(package: Path) -> dict[str, ast.Module]:
    return {p.relative_to(package).as_posix(): ast.parse(p.read_text(encoding="utf-8")) for p in package.rglob("*.py")}
