"""A graph as plain data: its operations with shapes, and readable code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from stator.bytecode.decode import decode
from stator.interp.policy import is_library_file
from stator.report.explanation import GraphRecord, Operation
from stator.report.source_lines import line_at

if TYPE_CHECKING:
    from stator.report.events import Called
    from stator.space.host_types import Host

__all__ = ["differing_choices", "frames_of", "graph_record", "result_types"]

#: dtype and shape of a tensor
Type: TypeAlias = tuple[str, tuple[int | str, ...]]

#: a line of a graph's code that gives a result its name, without what it releases
_ASSIGNED = re.compile(r"^    (\w+)(?: : [^=]+)? = (.*?)(?:;  (?:\w+ = )+None)?$", re.MULTILINE)
_PLACE = re.compile(r'File "(.+)", line (\d+)')


def result_types(gm: Host) -> dict[str, Type]:
    """What the nodes of a graph give, by their names: known during `Listener.called` only."""
    return {node.name: _type(node.meta.get("example_value")) for node in gm.graph.nodes}


def graph_record(gm: Host, types: dict[str, Type], sources: Iterable[str], event: Called) -> GraphRecord:
    """All that is shown of a graph, given its `result_types`, and where the program has its inputs."""
    code = dict(_ASSIGNED.findall(gm.code))
    nodes = [
        Operation(node.name, node.op, _target(node), code.get(node.name, ""), *types[node.name], _place(node))
        for node in gm.graph.nodes
        if node.name in types
    ]
    inputs = [node for node in nodes if node.kind == "placeholder"]
    inputs = [replace(node, target=source) for node, source in zip(inputs, sources)] or inputs
    ops = tuple(node for node in nodes if node.kind.startswith("call"))
    text = _code(gm, {node.name: node for node in nodes})
    return GraphRecord(tuple(inputs), ops, text, event.backend, event.seconds)


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
    return str(dtype).removeprefix("torch."), tuple(size if type(size) is int else str(size) for size in shape)


def _place(node: Host) -> str:
    """The innermost line of the program's own, or of a library where all is one's."""
    frames = [f"{file}:{line}" for file, line in reversed(frames_of(node))]
    own = (place for place in frames if not is_library_file(place))
    return next(own, frames[0] if frames else "")


def frames_of(node: Host) -> list[tuple[str, int]]:
    """File and line of each of the program's frames, outermost first."""
    chain = getattr(node.meta, "chain", ())
    if chain:  # the text has not been made yet
        return [(code.co_filename, decode(code).instrs[at].line or code.co_firstlineno) for code, at, _ in chain]
    return [(file, int(line)) for file, line in _PLACE.findall(node.meta.get("stack_trace") or "")]


def _code(gm: Host, nodes: dict[str, Operation]) -> str:
    """The code of a graph and of the graphs in it, with lines and shapes. (torch's `print_readable` takes half as long
    as to trace them.)"""
    parts = []
    for name, module in gm.named_modules():
        if hasattr(module, "graph"):
            parts.append("\n".join(_annotated(module.code.strip(), {} if name else nodes)))
            if name:
                parts[-1] = f"# {name}\n{parts[-1]}"
    return "\n\n".join(parts)


def _annotated(code: str, nodes: dict[str, Operation]) -> Iterator[str]:
    place = ""
    for line in code.splitlines():
        found = _ASSIGNED.match(line)
        op = nodes.get(found[1]) if found else None
        if op is None:
            yield line
            continue
        if op.where != place:
            place = op.where
            yield f"    # {place.rpartition('/')[2]}: {line_at(place)}"
        yield f"{line}  # {op.result}" if op.result else line
