"""Makes a program smaller while it still fails: statements left out, expressions replaced by parts of themselves."""

from __future__ import annotations

import ast
import copy
import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial

PARTS = ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list", "names", "elts", "values", "keys")


def reduced(source: str, fails: Callable[[str], bool], seconds: float = 30.0) -> str:
    """The smallest program found, in the time given, for which `fails` holds."""
    until = time.perf_counter() + seconds
    tree = ast.parse(source)
    best = ast.unparse(tree)
    if not fails(best):
        return source  # it depends on the lines
    progress = True
    while progress:
        progress = False
        position = 0
        while time.perf_counter() < until:
            candidate = next(itertools.islice(variants(tree), position, None), None)
            if candidate is None:
                break
            position += 1
            text = unparsed(candidate())
            if text is not None and smaller(text, best) and fails(text):
                tree, best, progress = ast.parse(text), text, True
                position -= 1
    return best + "\n"


def smaller(text: str, than: str) -> bool:
    return (len(text), text) < (len(than), than)


def unparsed(tree: ast.Module) -> str | None:
    try:
        return ast.unparse(ast.fix_missing_locations(tree))
    except Exception:  # a variant that is no program
        return None


def variants(tree: ast.Module) -> Iterator[Callable[[], ast.Module]]:
    """Makers of every tree with one thing less, big things first."""
    nodes = list(ast.walk(tree))
    for i, node in enumerate(nodes):
        for name in (
            "body",
            "orelse",
            "finalbody",
            "handlers",
            "cases",
            "decorator_list",
            "names",
            "elts",
            "values",
            "keys",
        ):
            part = getattr(node, name, None)
            for j in range(len(part) - 1, -1, -1) if isinstance(part, list) else ():
                yield partial(changed, tree, i, lambda n, name=name, j=j: without(n, name, j))
    for i, node in enumerate(nodes):
        if isinstance(node, ast.stmt) and getattr(node, "body", None):
            yield partial(changed, tree, i, None, lambda n: n.body)
            for name in ("orelse", "finalbody"):
                if getattr(node, name, None):
                    yield partial(changed, tree, i, None, lambda n, name=name: getattr(n, name))
    for i, node in enumerate(nodes):
        if not isinstance(node, ast.expr) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            continue
        if not isinstance(node, ast.Constant | ast.Name):
            for j, child in enumerate(ast.iter_child_nodes(node)):
                if isinstance(child, ast.expr):
                    yield partial(changed, tree, i, None, lambda n, j=j: list(ast.iter_child_nodes(n))[j])
            yield partial(changed, tree, i, None, lambda n: ast.Constant(1))
        elif isinstance(node, ast.Constant) and node.value not in (0, 1, ""):
            yield partial(changed, tree, i, None, lambda n: ast.Constant(1))


def changed(
    tree: ast.Module, i: int, change: Callable[[ast.AST], None] | None, put: Callable[[ast.AST], object] | None = None
) -> ast.Module:
    """A copy whose i-th node is changed, or has something else put in its place."""
    result = copy.deepcopy(tree)
    node = list(ast.walk(result))[i]
    if change is not None:
        change(node)
    elif put is not None:
        replace(result, node, put(node))
    return result


def without(node: ast.AST, name: str, j: int) -> None:
    part = getattr(node, name)
    del part[j]
    if name == "keys":
        del getattr(node, "patterns" if isinstance(node, ast.MatchMapping) else "values")[j]
    if name == "body" and not part:
        part.append(ast.Pass())


def replace(tree: ast.AST, old: ast.AST, new: object) -> None:
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if value is old:
                setattr(node, name, new)
            elif isinstance(value, list) and any(item is old for item in value):
                at = next(k for k, item in enumerate(value) if item is old)
                value[at : at + 1] = new if isinstance(new, list) else [new]
