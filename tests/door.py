"""Finds where the tracer reads something off an existing object by other ways than through `space/facts.py`.

A *host* here is an object of the program's that exists outside the trace: what an expression `….host` gives, a local
name bound to one, and the parameter `host` of a function that also has a `source`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

#: functions of CPython that tell something of their first argument
_ASKING = frozenset(
    "type len getattr hasattr vars dir iter next list tuple dict set frozenset bool repr str isinstance sorted "
    "callable int float bytes sum any all enumerate zip map reversed min max format hash".split()
)
#: modules that are the door, or stand below it: they read what guards and sources compare
EXEMPT = ("guards/", "space/facts.py", "space/wrapping.py", "space/value.py")


class Read(NamedTuple):
    """One read: `where` is "file: function"."""

    where: str
    line: int
    text: str


def reads(root: Path) -> Iterator[Read]:
    """All reads in the package at `root`."""
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith(EXEMPT):
            yield from reads_in(name, path.read_text(encoding="utf-8"))


def reads_in(name: str, text: str) -> Iterator[Read]:
    """The reads in one file."""
    yield from _Scope(name, "", frozenset()).visit_all(ast.parse(text).body)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is below it, but for the bodies of functions and classes."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _own(child)


def _asks(function: ast.expr) -> bool:
    """Whether a function tells something of its first argument: one of CPython's, or of torch's internals."""
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id == "internals"
    return isinstance(function, ast.Name) and function.id in _ASKING


class _Scope:
    """One function: the local names in it that are bound to hosts."""

    def __init__(self, file: str, function: str, names: frozenset[str]) -> None:
        self.file = file
        self.function = function
        self.names = set(names)

    def visit_all(self, nodes: list[ast.stmt]) -> Iterator[Read]:
        for node in nodes:  # a name may be bound after the line that reads it, in a loop
            self._bind(node)
        for node in nodes:
            yield from self.visit(node)

    def visit(self, node: ast.AST) -> Iterator[Read]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
            hosts = frozenset({"host"} if {"host", "source"} <= names else ())
            inner = f"{self.function}.{node.name}" if self.function else node.name
            yield from _Scope(self.file, inner, (frozenset(self.names) - names) | hosts).visit_all(node.body)
            return
        if isinstance(node, ast.ClassDef):
            yield from _Scope(self.file, f"{self.function}.{node.name}".strip("."), frozenset()).visit_all(node.body)
            return
        asked = self._asked(node)
        if asked is not None:
            yield Read(f"{self.file}: {self.function}", asked.lineno, ast.unparse(asked))
        for child in ast.iter_child_nodes(node):
            yield from self.visit(child)

    def _bind(self, node: ast.AST) -> None:
        for each in _own(node):
            if isinstance(each, ast.Assign):
                for target in each.targets:
                    self._bind_one(target, each.value)
            elif isinstance(each, ast.AnnAssign | ast.NamedExpr) and each.value is not None:
                self._bind_one(each.target, each.value)

    def _bind_one(self, target: ast.AST | None, value: ast.AST) -> None:
        if isinstance(target, ast.Name) and self._is_host(value):
            self.names.add(target.id)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for each, part in zip(target.elts, value.elts, strict=False):
                self._bind_one(each, part)

    def _is_host(self, node: ast.AST) -> bool:
        if isinstance(node, ast.IfExp):
            return self._is_host(node.body) or self._is_host(node.orelse)
        if isinstance(node, ast.Attribute):
            return node.attr == "host"
        return isinstance(node, ast.Name) and node.id in self.names

    def _asked(self, node: ast.AST) -> ast.expr | None:
        """The part of the node that reads something off a host, if one does."""
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and self._is_host(node.value):
            return node
        if isinstance(node, ast.Subscript) and self._is_host(node.value):
            return node
        if isinstance(node, ast.Call) and _asks(node.func):
            return node if any(map(self._is_host, node.args)) else None
        if isinstance(node, ast.For | ast.comprehension) and self._is_host(node.iter):
            return node.iter
        if isinstance(node, ast.Starred) and self._is_host(node.value):
            return node
        if isinstance(node, ast.FormattedValue) and self._is_host(node.value):
            return node.value
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            return node if self._is_host(node.comparators[0]) else None
        return None
