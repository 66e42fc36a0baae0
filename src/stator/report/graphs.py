"""A graph as plain data: its operations with shapes, and readable code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from stator.bytecode.decode import decode
from stator.interp.policy import is_library_file
from stator.report.explanation import GraphRecord, Operation
from stator.report.source_lines import line_at

if TYPE_CHECKING:
    from stator.report.events import Called
    from stator.space.host_types import Host

__all__ = ["differing_choices", "graph_record", "line_of", "result_types"]

#: dtype and shape of a tensor
Type: TypeAlias = tuple[str, tuple[int | str, ...]]

#: a line of a graph's code that gives a result its name, without what it releases
_ASSIGNED = re.compile(r"    (\w+)(?: : [^=]+)? = (.*?)(?:;  (?:\w+ = )+None)?$")
_PLACE = re.compile(r'File "(.+)", line (\d+)')


def result_types(gm: Host) -> dict[str, Type]:
    """What the nodes of a graph give, by their names: known during `Listener.called` only."""
    return {node.name: _type(node.meta.get("example_value")) for node in gm.graph.nodes}


def graph_record(gm: Host, types: dict[str, Type], sources: Iterable[str], event: Called) -> GraphRecord:
    """All that is shown of a graph, given its `result_types`, and where the program has its inputs."""
    lines = gm.code.strip().splitlines()
    results = [_ASSIGNED.match(line) for line in lines]
    code = {found[1]: found[2] for found in results if found}
    places = iter(sources)
    nodes = [
        Operation(node.name, node.op, _called(node, places), code.get(node.name, ""), *types[node.name], _place(node))
        for node in gm.graph.nodes
        if node.name in types
    ]
    inputs = tuple(node for node in nodes if node.kind == "placeholder")
    ops = tuple(node for node in nodes if node.kind.startswith("call"))
    text = "\n".join(_annotated(zip(lines, results), {node.name: node for node in nodes}))
    return GraphRecord(inputs, ops, "\n\n".join([text, *_inner(gm)]), event.backend, event.seconds)


def _called(node: Host, places: Iterator[str]) -> str:
    """What a node calls; of an input, where the program has it."""
    return next(places, "") or _target(node) if node.op == "placeholder" else _target(node)


def differing_choices(gm: Host, lines: set[tuple[str, int]]) -> Iterator[str]:
    """Where a `torch.where` or `torch.cond` of these lines has sides of two kinds, or gives a third.

    A branch would give either: which one it was in a run says nothing of the other.
    """
    for part in gm.modules():
        for node in part.graph.nodes if hasattr(part, "graph") else ():
            sides = _sides(part, node) if lines.intersection(frames_of(node)) else []
            if len({tuple(map(_kind, side)) for side in sides}) > 1:
                yield _place(node)


def _sides(part: Host, node: Host) -> list[list[Host]]:
    """What a node chooses from, and what it gives where that is one thing."""
    if node.op == "call_function" and _target(node) == "torch.where":
        return [[arg] for arg in (*node.args[1:], node)]
    if node.op == "call_function" and _target(node).endswith("cond") and len(node.args) > 2:
        bodies = [getattr(part, str(arg.target)) for arg in node.args[1:3]]
        return [list(next(n for n in body.graph.nodes if n.op == "output").all_input_nodes) for body in bodies]
    return []


def _kind(node: Host) -> tuple[Host, ...]:
    example = getattr(node, "meta", {}).get("example_value")
    return (*_type(example), getattr(example, "requires_grad", None))


def _target(node: Host) -> str:
    """What a node calls, as the program writes it."""
    target = node.target
    if isinstance(target, str):
        return target
    name = getattr(target, "__name__", None) or str(target)
    module = (getattr(target, "__module__", None) or "").lstrip("_")
    return name if module in ("", "builtins", "operator") else f"{module.removeprefix('torch._C.')}.{name}"


def _type(example: Host) -> Type:
    """The dtype and shape of a tensor."""
    dtype, shape = getattr(example, "dtype", None), getattr(example, "shape", None)
    if dtype is None or shape is None:
        return "", ()
    return str(dtype).removeprefix("torch."), tuple([size if type(size) is int else str(size) for size in shape])


def _place(node: Host) -> str:
    line = line_of(node, lambda file: not is_library_file(file))
    return "" if line is None else f"{line[0]}:{line[1]}"


def line_of(node: Host, is_own: Callable[[str], bool]) -> tuple[str, int] | None:
    """File and line of the innermost frame whose file is the program's own, or of the innermost of all.

    Args:
        is_own: asked about a file.
    """
    frames = frames_of(node)
    first = next(frames, None)
    return first if first is None or is_own(first[0]) else next((at for at in frames if is_own(at[0])), first)


def frames_of(node: Host) -> Iterator[tuple[str, int]]:
    """File and line of each of the program's frames, innermost first."""
    chain = getattr(node.meta, "chain", ())
    for code, at, _ in reversed(chain):  # the text has not been made yet
        yield code.co_filename, decode(code).instrs[at].line or code.co_firstlineno
    if not chain:
        yield from ((file, int(line)) for file, line in reversed(_PLACE.findall(node.meta.get("stack_trace") or "")))


def _annotated(lines: Iterable[tuple[str, re.Match[str] | None]], nodes: dict[str, Operation]) -> Iterator[str]:
    """The lines of a graph's code, with the program's lines and the shapes of results. (torch's `print_readable` takes
    half as long as to trace them.)"""
    place = ""
    for line, found in lines:
        op = nodes.get(found[1]) if found else None
        if op is None:
            yield line
            continue
        if op.where != place:
            place = op.where
            yield f"    # {place.rpartition('/')[2]}: {line_at(place)}"
        yield f"{line}  # {op.result}" if op.result else line


def _inner(gm: Host) -> Iterator[str]:
    """The code of the graphs in a graph."""
    for name, module in gm.named_modules():
        if name and hasattr(module, "graph"):
            yield f"# {name}\n{module.code.strip()}"
