"""The enumerations of the core against what its stub file says of them."""

from __future__ import annotations

import ast
import enum
from pathlib import Path

import stator
from stator import _core


def test_the_stub_has_the_members_of_the_core() -> None:
    stub = ast.parse((Path(stator.__file__).parent / "_core.pyi").read_text())
    declared = {
        node.name: {
            item.targets[0].id: ast.literal_eval(item.value)  # type: ignore[attr-defined]
            for item in node.body
            if isinstance(item, ast.Assign)
        }
        for node in stub.body
        if isinstance(node, ast.ClassDef) and [ast.unparse(base) for base in node.bases] == ["enum.IntEnum"]
    }
    made = {
        name: {member.name: member.value for member in found}
        for name, found in vars(_core).items()
        if isinstance(found, type) and issubclass(found, enum.IntEnum)
    }
    assert declared == made
    assert made
