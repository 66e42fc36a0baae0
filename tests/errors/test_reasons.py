"""A graph break says what happened: the kind for C functions without a model is given a name, and nothing else."""

import ast
import re
from pathlib import Path

import stator

SOURCES = sorted(Path(stator.__file__).parent.rglob("*.py"))
NAME = re.compile(r"[\w.]*\Z")


def literal_parts(node):
    """The literal text of a string or an f-string; none of what is computed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return [part.value for part in node.values if isinstance(part, ast.Constant)]
    return []


def phrases(text):
    """What the calls of `refuse` and `UnsupportedCCall` are given that is no dotted name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            plain = isinstance(node.func, ast.Name) or called == "UnsupportedCCall"  # other classes have a refuse() too
            if plain and called in ("refuse", "UnsupportedCCall") and len(node.args) == 1:
                yield from (part for part in literal_parts(node.args[0]) if not NAME.match(part))


def test_a_phrase_is_found():
    assert list(phrases('refuse("a function with a cache")\nrefuse(f"os.{name}")')) == ["a function with a cache"]


def test_c_functions_without_a_model_are_named():
    found = {str(path): list(phrases(path.read_text())) for path in SOURCES}
    assert {path: texts for path, texts in found.items() if texts} == {}
