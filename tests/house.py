"""Measures the house: which files import each other, how crowded folders and classes are."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterator
from functools import cached_property
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class File:
    """One Python file of a package.

    Args:
        path: where it lies.
        root: the folder of the package.
    """

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.is_package = path.stem == "__init__"
        parts = path.relative_to(root.parent).with_suffix("").parts
        self.module = ".".join(parts[:-1] if self.is_package else parts)
        self.tree = ast.parse(path.read_text(encoding="utf-8"))

    def imports(self, known: Container[str]) -> Iterator[tuple[set[str], bool]]:
        """The known modules that each import names, wherever it stands, and whether that is in a function."""
        inside = {id(node) for function in self._nodes(*FUNCTIONS) for node in ast.walk(function)}
        for node in self._nodes(ast.Import, ast.ImportFrom):
            named = {name for name in self._named(node, known) if name in known and name != self.module}
            if named:
                yield named, id(node) in inside

    def attributes(self) -> dict[str, set[str]]:
        """The attributes that each of its classes stores through `self`."""
        return {cls.name: {node.attr for node in ast.walk(cls) if _stores(node)} for cls in self._nodes(ast.ClassDef)}

    def _nodes(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        return (node for node in ast.walk(self.tree) if isinstance(node, kinds))

    def _named(self, node: ast.AST, known: Container[str]) -> list[str]:
        """`from a import b` means the module `a.b` where there is one, else `a`."""
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        base = node.module or ""
        if node.level:
            above = self.module.split(".")[: (1 if self.is_package else 0) - node.level or None]
            base = ".".join([*above, base] if base else above)
        submodules = [f"{base}.{alias.name}" for alias in node.names]
        return [name if name in known else base for name in submodules]


def _stores(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


class House:
    """The files of a package, and how they hang together.

    Args:
        root: the folder of the package.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        found = [File(path, root) for path in sorted(root.rglob("*.py"))]
        self.files = {file.module: file for file in found}

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """The modules of the package that each imports, be it in a function or for an annotation."""
        return {
            module: {name for named, _ in file.imports(self.files) for name in named}
            for module, file in self.files.items()
        }

    def local_imports(self) -> Counter[str]:
        """How many imports of the package's own modules stand in functions, by module."""
        found = ((module, inside) for module, file in self.files.items() for _, inside in file.imports(self.files))
        return Counter(module for module, inside in found if inside)

    def folders(self) -> Counter[str]:
        """How many files each folder holds."""
        return Counter(str(file.path.parent.relative_to(self.root)) for file in self.files.values())

    def classes(self) -> dict[str, set[str]]:
        """The attributes of all classes, by `module.Class`."""
        return {
            f"{module}.{name}": attributes
            for module, file in self.files.items()
            for name, attributes in file.attributes().items()
        }

    def circles(self) -> list[list[str]]:
        """The groups of modules that all lead to each other by imports, largest first."""
        reached = {module: self._reached(module) for module in self.files}
        groups = {
            tuple(sorted(other for other in reached[module] if module in reached[other])) for module in self.files
        }
        return sorted((list(group) for group in groups if len(group) > 1), key=len, reverse=True)

    def _reached(self, module: str) -> set[str]:
        waiting, met = [module], set[str]()
        while waiting:
            for other in self.imports[waiting.pop()] - met:
                met.add(other)
                waiting.append(other)
        return met
