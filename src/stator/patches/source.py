"""A file of the program, edited where its syntax tree says, so that all else stays as it is written."""

from __future__ import annotations

import ast
import builtins
import difflib
import io
import os
import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

__all__ = ["Edit", "Patch", "Site", "Source", "apply", "difference", "names"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Site(NamedTuple):
    """What is to be patched: the code of a break or recompile, the line (from 1) and the reason that was told."""

    code: str
    file: str
    line: int
    reason: str


class Edit(NamedTuple):
    """What takes the place of the bytes from `start` to `end`."""

    start: int
    end: int
    text: str


class Patch(NamedTuple):
    """The edits that belong together, and what they do in a few words."""

    site: Site
    title: str
    edits: tuple[Edit, ...]


class Source:
    """The text of a file with its syntax tree.

    Raises:
        SyntaxError: it is no Python.
    """

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        self.tree = ast.parse(self.data)
        self._starts = [0]
        for line in self.data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def nodes(self, line: int, *kinds: type[ast.AST]) -> list[ast.AST]:
        """The nodes of these kinds that stand on the line, the innermost first."""
        found = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, kinds) and node.lineno <= line <= (node.end_lineno or node.lineno)  # type: ignore[attr-defined]
        ]
        return sorted(found, key=lambda node: self.span(node)[1] - self.span(node)[0])

    def span(self, first: ast.AST, last: ast.AST | None = None) -> tuple[int, int]:
        """Where a node begins and ends, or those from one to another."""
        end = last or first
        start = self._starts[first.lineno - 1] + first.col_offset  # type: ignore[attr-defined]
        return start, self._starts[end.end_lineno - 1] + end.end_col_offset  # type: ignore[attr-defined]

    def text(self, node: ast.AST) -> str:
        """How the program writes it."""
        start, end = self.span(node)
        return self.data[start:end].decode()

    def replace(self, node: ast.AST, text: str, last: ast.AST | None = None) -> Edit:
        """Another text for a node, or for those from one to another; comments among them are put before it."""
        start, end = self.span(node, last)
        line = self._starts[node.lineno - 1]  # type: ignore[attr-defined]
        margin = self.data[line:start].decode() if self.data[line:start].isspace() else ""
        kept = [comment for at, comment in self._comments if start <= at < end]
        return Edit(start, end, f"\n{margin}".join([*kept, text]))

    def without_lines(self, node: ast.AST) -> Edit:
        """The lines of a statement or decorator, gone; `pass` where nothing else is left of its block or line."""
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        start, end = self.span(node)
        beside = self.data[self._starts[first - 1] : start].strip(b" \t@"), self.data[end : self._starts[last]].strip()
        block = next(
            (each for _, each in ast.iter_fields(self.parents[node]) if isinstance(each, list) and node in each), []
        )
        if isinstance(node, ast.stmt) and (len(block) == 1 or beside[0] or beside[1].partition(b"#")[0]):
            return self.replace(node, "pass")
        return Edit(self._starts[first - 1], self._starts[last], "")

    def text_with_comment(self, node: ast.AST) -> str:
        """How the program writes a statement, to the end of its last line."""
        start, _ = self.span(node)
        return self.data[start : self._starts[node.end_lineno]].decode().rstrip()  # type: ignore[attr-defined]

    def margin(self, node: ast.stmt) -> str:
        """What stands before a statement in its line."""
        return self.data[self._starts[node.lineno - 1] : self.span(node)[0]].decode()

    def shares_a_line(self, node: ast.stmt) -> bool:
        """Whether another statement stands on a line of this one."""
        start, end = self.span(node)
        before = self.data[self._starts[node.lineno - 1] : start]
        after = self.data[end : self._starts[node.end_lineno or node.lineno]].strip()
        return bool(before.strip()) or bool(after.partition(b"#")[0])

    def around(self, node: ast.AST, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """The nodes of these kinds that it stands in, the innermost first."""
        above = self.parents.get(node)
        while above is not None:
            if isinstance(above, kinds):
                yield above
            above = self.parents.get(above)

    def function(self, node: ast.AST) -> ast.AST | None:
        """The function that it stands in."""
        return next(self.around(node, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda), None)

    def at_line(self, line: int) -> int:
        """Where a line begins."""
        return self._starts[line - 1]

    def has_global(self, name: str) -> bool:
        """Whether a name may mean something else in the file already."""
        names = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name) and self.function(node) is None}
        names |= {node.name for node in self.tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        names |= {each for node in ast.walk(self.tree) if isinstance(node, ast.Global) for each in node.names}
        return name.partition(".")[0] in names or hasattr(builtins, name)

    def is_elif(self, node: ast.If) -> bool:
        """Whether it goes on where another `if` ends."""
        return self.data[self.span(node)[0] :].startswith(b"elif")

    def imports(self, module: str) -> bool:
        """Whether the file has the module by its name."""
        return any(
            alias.name == module and alias.asname is None
            for node in self.tree.body
            if isinstance(node, ast.Import)
            for alias in node.names
        )

    @cached_property
    def _comments(self) -> list[tuple[int, str]]:
        tokens = tokenize.generate_tokens(io.StringIO(self.data.decode()).readline)
        lines = [line.decode() for line in self.data.splitlines(keepends=True)]
        return [
            (self._starts[line - 1] + len(lines[line - 1][:column].encode()), token.string)
            for token in tokens
            if token.type == tokenize.COMMENT
            for line, column in [token.start]
        ]


def names(*nodes: ast.AST | None) -> set[str]:
    """The names in some nodes."""
    found: set[str] = set()
    for node in (each for root in nodes if root is not None for each in ast.walk(root)):
        match node:
            case ast.Name(id=name):
                found.add(name)
    return found


def apply(text: str, patches: Sequence[Patch]) -> tuple[str, list[Patch], set[int]]:
    """The text with the edits made, the patches in it (of those that overlap the first), and the lines changed."""
    made: list[Patch] = []
    for patch in patches:
        if not any(_overlap(edit, other) for edit in patch.edits for each in made for other in each.edits):
            made.append(patch)
    parts, lines, at, data = [], set[int](), 0, text.encode()
    for edit in sorted({edit for patch in made for edit in patch.edits}):
        new = re.sub(r"(?<!\r)\n", "\r\n", edit.text) if "\r\n" in text else edit.text
        parts += [data[at : edit.start], new.encode()]
        end = b"".join(parts).count(b"\n") + 1
        lines.update(range(end - edit.text.count("\n"), end + 1))
        at = edit.end
    return b"".join([*parts, data[at:]]).decode(), made, lines


def _overlap(one: Edit, other: Edit) -> bool:
    return one != other and one.start < other.end and other.start < one.end


def difference(file: str, old: str, new: str) -> str:
    """The change of a file as a unified diff, for `patch -p1` in the working directory."""
    near = os.path.relpath(file)
    file = file if near.startswith("..") else near
    before, after = (text.splitlines(keepends=True) for text in (old, new))
    return "".join(difflib.unified_diff(before, after, f"a/{file}", f"b/{file}", n=2))
