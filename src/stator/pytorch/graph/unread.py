"""Operations that may fail when they run, and whose results nobody reads: the failure is their effect.

    def f(x, i):
        x[i]               # raises IndexError in eager, whether anyone looks at the result or not
        return x

Such an operation stays in the graph (`eliminate`). A backend that compiles drops what leads to none of the
graph's results, so a copy of what the operation made becomes one more result for it, which nobody uses. That is done
for as few as possible: what certainly goes into a result, or into a tensor of the program, needs none.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.fake.operator_facts import AS_OTHER, KEPT, OVERWRITES, makes_like
from stator.pytorch.graph.node_meta import NodeMeta
from stator.pytorch.shapes.floats.errors import must_run
from stator.pytorch.tensors.tables import METADATA
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.signals import Restart
from stator.space.value import Unsupported

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation, TracedTensor

__all__ = ["eliminate", "refuse_inside", "unread_results"]


def eliminate(recorder: Recorder) -> None:
    """Remove operations nobody uses, except for those that act on something besides their result, or may fail."""
    graph = recorder.nodes.graph
    kept = recorder.effects.keep | recorder.effects.fallible.keys()
    for node in reversed(list(graph.nodes)):
        is_unused = node.op.startswith(("call", "get_attr")) and not node.users
        if is_unused and node not in kept and not must_run(recorder, node):
            graph.erase_node(node)


def unread_results(recorder: Recorder) -> list[torch.fx.Node]:
    """Nodes to make results of the graph, for a backend that drops what leads to none."""
    if not recorder.effects.fallible:
        return []
    nodes = [node for node in recorder.nodes.whole.nodes if node.op != "placeholder"]
    read = _Reading(recorder)
    for node in reversed(nodes):
        read.before(node)
    return [_copied(recorder, node, recorder.effects.fallible[node]) for node in nodes if node in read.unread]


def refuse_inside(recorder: Recorder, graph: torch.fx.Graph) -> None:
    """The body of an operation has no results but those of the program: what nobody reads there cannot be kept."""
    if recorder.keeps_order:
        return
    read = _Reading(recorder)
    for node in reversed(list(graph.nodes)):
        read.before(node)
    for node in graph.nodes:
        if node in read.unread:
            name = describe_callable(recorder.effects.fallible[node].function)
            raise Unsupported(errors.UnsupportedTensorOperation(name, _WHY))


_WHY = "it may fail, and a backend drops it, as nothing reads its result"


class _Reading:
    """Which memory is read before it is written over, found from the end of the graph to its beginning.

    Memory is named by the traced tensor that it was made for (`root`), and what is no tensor by its node.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.effects = recorder.effects
        self.values = recorder.nodes.values
        self.live: set[object] = set()
        #: memory of tensors of the program that is written over later
        self.gone: set[object] = set()
        self.unread: set[object] = set()

    def before(self, node: torch.fx.Node) -> None:
        """Note what is read when the graph has come to this node."""
        written = self.effects.writes.get(node, ())
        made = self._memory(node)
        # What acts on something else is there for that, and a backend leaves it there.
        used = node.op == "output" or node in self.effects.acting or _name(node) in KEPT or made in self.live
        used = used or any(self._survives(root) for root in written)
        if not used and node in self.effects.fallible:
            self.unread.add(node)
            used = True
        if _overwrites(node) and written:
            target = self.values.get(node.args[0])
            if target is next(iter(written)):  # and not a part of it
                self.live.discard(target)
                self.gone.add(target)
        if used:
            for other in node.all_input_nodes:
                if _reads(node, other):
                    memory = self._memory(other)
                    self.live.add(memory)
                    self.gone.discard(memory)

    def _survives(self, root: TracedTensor) -> bool:
        return root in self.live or (root.host is not None and root not in self.gone)

    def _memory(self, node: torch.fx.Node) -> object:
        value = self.values.get(node)
        return value.root if isinstance(value, TensorValue) else node


def _name(node: torch.fx.Node) -> str:
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return name.partition(".")[0]  # without that of an overload


def _reads(node: torch.fx.Node, other: torch.fx.Node) -> bool:
    """Whether the result of a node, or what it writes, is computed from the contents of the other."""
    name = _name(node)
    # `x.type()` would be metadata too, but is in no graph: there it is `x.type(dtype)`.
    if makes_like(name) or name == "new_tensor" or (name in METADATA and name != "type"):
        return False
    if _overwrites(node):
        return any(arg is other for arg in node.args[1:])
    return name not in AS_OTHER or other not in node.args[1:] or node.args[0] is other


def _overwrites(node: torch.fx.Node) -> bool:
    if node.target is operator.setitem:
        where = node.args[1]
        return all(part is ... or part == slice(None) for part in (where if isinstance(where, tuple) else (where,)))
    return bool(node.args) and _name(node) in OVERWRITES


def _copied(recorder: Recorder, node: torch.fx.Node, operation: Operation) -> torch.fx.Node:
    """A node that copies what another has made, or has written to, right after it."""
    made = next(iter(operation.made_values), None)
    written = recorder.effects.writes.get(node)
    graph, last = node.graph, node
    if made is None and written:
        made, last = next(
            (o, o.node) for o in operation.operands if isinstance(o, TensorValue) and o.root is next(iter(written))
        )
    elif made is None:
        raise Restart(operation.step, errors.UnsupportedTensorOperation(describe_callable(operation.function), _WHY))
    value, path = made, made.path if made.operation is operation else ()
    at = node
    for index in path:
        with graph.inserting_after(at):
            at = last = graph.call_function(operator.getitem, (last, index))
        at.meta = NodeMeta(lambda: recorder.fakes.example(value))
    for method in ("detach", "clone"):
        with graph.inserting_after(at):
            at = last = graph.call_method(method, (last,))
        at.meta = NodeMeta(lambda: recorder.fakes.example(value))
    return last
