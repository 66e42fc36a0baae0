"""A size that varies, marked where the program calls the compiled function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from stator.patches.sizes import compiles, defined_at
from stator.patches.source import Edit, Source, names

__all__ = ["CODES", "TITLE", "edits"]

CODES = ("SB0601",)
TITLE = "the size marked where the function is called"
_SIZE = re.compile(r"size (\d+) of `(\w+)` was \d+, is \d+$")
_OWN_NAMES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def edits(source: Source, line: int, reason: str) -> list[Edit] | None:
    """`mark_dynamic` before each call of the function in its file; None where one of them passes more than a name."""
    found, module = _SIZE.fullmatch(reason), _module(source)
    function = defined_at(source, line)
    if found is None or function is None or module is None:
        return None
    at = _position(source, function, found[2])
    if at is None:
        return None
    callees = set(_compiled_as(source, function))
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and _called(node) in callees]
    marks = [_marked(source, call, found[2], at, f"{module}.mark_dynamic({{}}, {found[1]})") for call in calls]
    return None if None in marks or not marks else list(dict.fromkeys(mark for mark in marks if mark is not None))


def _module(source: Source) -> str | None:
    return "stator" if source.imports("stator") else "torch._dynamo" if source.imports("torch") else None


def _position(source: Source, function: ast.FunctionDef, name: str) -> int | None:
    """Which of the arguments in a call it is."""
    parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(source.parents[function], ast.ClassDef):
        parameters = parameters[1:]
    return parameters.index(name) if name in parameters else None


def _compiled_as(source: Source, function: ast.FunctionDef) -> Iterator[str]:
    """The names by which the program calls what it has compiled."""
    owner = source.parents[function]
    defined = owner.name if isinstance(owner, ast.ClassDef) else function.name
    if any(map(compiles, function.decorator_list)):
        yield function.name
    for node in ast.walk(source.tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[compiled, *_]) as call):
                if compiles(call) and defined in names(compiled):
                    yield name


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _marked(source: Source, call: ast.Call, name: str, at: int, mark: str) -> Edit | None:
    given = next((each.value for each in call.keywords if each.arg == name), None)
    if given is None and at < len(call.args) and not any(isinstance(each, ast.Starred) for each in call.args):
        given = call.args[at]
    statement = next(source.around(call, ast.stmt), None)
    if not isinstance(given, ast.Name) or not isinstance(statement, ast.stmt) or source.shares_a_line(statement):
        return None
    for each in source.around(call, *_OWN_NAMES):
        if source.span(each)[0] >= source.span(statement)[0]:
            return None  # the name may be one of its own
    if isinstance(statement, ast.While | ast.For | ast.FunctionDef) or given.id in names(*_assigned_within(statement)):
        return None
    if isinstance(statement, ast.If) and source.is_elif(statement):
        return None
    start = source.at_line(statement.lineno)
    return Edit(start, start, f"{source.margin(statement)}{mark.format(given.id)}\n")


def _assigned_within(statement: ast.stmt) -> Iterator[ast.AST]:
    """What the statement gives names on its way, perhaps before the call."""
    return (node.target for node in ast.walk(statement) if isinstance(node, ast.NamedExpr))
