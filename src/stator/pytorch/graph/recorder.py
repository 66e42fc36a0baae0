"""Recording the graph of one trace: nodes, inputs, fake tensors, and the call of the backend at its end."""

from __future__ import annotations

import re
from operator import getitem as _getitem
from typing import TYPE_CHECKING, Any

import torch
import torch.fx

from stator import errors
from stator.guards.base import Guard
from stator.pytorch import internals
from stator.pytorch.autograd import saved_hooks
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.fake.fake_executor import FakeExecutor
from stator.pytorch.fake.memo import MEMO, Memo
from stator.pytorch.fake.metadata import TensorMeta, hint_of, meta_of
from stator.pytorch.fake.outcome import Outcome, outcome_of, versions_of
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.graph.contract import alone_guards
from stator.pytorch.graph.finish import CompiledGraph, finish
from stator.pytorch.graph.node_meta import NodeMeta, call_chain
from stator.pytorch.graph.undo import Recovery, recovery
from stator.pytorch.graph.unread import refuse_lost, unchecked
from stator.pytorch.shapes import dynamism
from stator.pytorch.state import global_state
from stator.pytorch.tensors.failures import real_warnings
from stator.pytorch.tensors.latent import rely_on_all, rely_on_autograd, rely_on_place_in_storage, told_by_guard
from stator.pytorch.tensors.lowering import fill
from stator.pytorch.tensors.slots import Slots
from stator.pytorch.tensors.tensor import TensorValue, guard_tensor
from stator.space.value import Unsupported, Value
from stator.space.warning_trap import left_to_run_time

if TYPE_CHECKING:
    from stator.pytorch.tensors.lowering import Call
    from stator.space.interfaces import Frame, Trace, Writer

__all__ = ["Operation", "Recorder"]


class Operation:
    """One recorded call: what to run again to get fake tensors for its results."""

    __slots__ = (
        *("args", "bindings", "effectful", "function", "key", "kwargs", "made_values", "node", "operands", "recorder"),
        *("result", "state", "step"),
    )

    def __init__(self, recorder: Recorder, call: Call) -> None:
        self.recorder = recorder
        self.function = call.function
        self.args = call.args
        self.kwargs = call.kwargs
        self.key = call.key
        #: the global state it ran in
        self.state = recorder.state.key
        #: the instruction that it was recorded for
        self.step = recorder.trace.steps
        self.effectful = False
        self.operands: list[Value] = call.operands
        self.made_values: list[Any] = []
        self.node: Any = None
        self.result: Any = None
        #: symbols that the node makes → where in its result they are found, for later passes
        self.bindings: Any = None

    def example(self) -> Any:
        """A fake result to show, in the structure of the real one."""
        values = {value.path: value for value in self.made_values}
        return self.result.example(self, values, ())

    def made(self, meta: Any, path: tuple[int, ...], alias: int | None = None) -> TensorValue:
        """The traced tensor found at `path` of the result; `alias` is the operand whose memory it shares."""
        value = TensorValue(self.recorder, torch.Tensor, meta)
        value.operation = self
        value.path = path
        if alias is not None:
            value.root = self.operands[alias].root  # type: ignore[attr-defined]
        self.made_values.append(value)
        return value

    def made_number(self, number: Any, path: tuple[int, ...]) -> Value:
        """The symbolic number found at `path` of the result."""
        from stator.pytorch.shapes.symbols import SymValue

        return SymValue(self.recorder, number, self, path)

    def adopt(self, result: Any) -> None:
        """Give the values of the result their fake tensors."""
        for value in self.made_values:
            if value._fake is None:
                value._fake = part(result, value.path)
                self.recorder.noted(value)

    def replay(self, fake_executor: FakeExecutor) -> None:
        """Run on fake tensors."""
        fakes = [operand.fake for operand in self.operands]  # type: ignore[attr-defined]
        self.adopt(fake_executor.run(self.function, self.args, self.kwargs, fakes, fill).result)


class _StateChange:
    """A change of the global state among the operations that await replay."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def replay(self, fake_executor: FakeExecutor) -> None:
        """Perform it again."""
        self.function(*self.args, **self.kwargs)


def part(result: Any, path: tuple[int, ...]) -> Any:
    """The part of a result that a path leads to."""
    for index in path:
        result = result[index]
    return result


class Recorder:
    """The graph of one trace."""

    #: what the slots of its tensors do
    slots = Slots()

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        #: what is recorded into, and the graph of the trace, which is that ordinarily
        self.graph = self.whole = torch.fx.Graph()
        #: the traced values that the nodes compute
        self.values: dict[Any, Any] = {}
        self.inputs: list[Any] = []
        self.numbers: dict[Any, Any] = {}
        #: numbers that are elements of tensors, by what tells which
        self.elements: dict[Any, Any] = {}
        self.extra_guards: list[Guard] = []
        self.tensors: list[TensorValue] = []
        self.state = global_state.State()
        self.keep: set[Any] = set()
        self.state_nodes: set[Any] = set()
        self.ops = 0
        self.attributes: dict[str, Any] = {}
        self._pending: list[Any] = []
        self._made: list[Any] = []
        #: existing tensors whose contents the graph changes
        self.written: dict[TensorValue, None] = {}
        #: whether the graph draws random numbers, and the nodes that do anything else than that, computing and writing
        self.random = False
        self.acting: set[Any] = set()
        #: the nodes that write existing tensors: one that fails may have written part of it
        self.writing: set[Any] = set()
        #: the nodes that may fail when they run; and those that write tensors, by how much the versions of these grow
        self.fallible: dict[Any, Operation] = {}
        self.writes: dict[Any, dict[TensorValue, int]] = {}
        #: whether more than tensors may show that an operation has failed when something had been written or drawn
        self.exposed = False
        #: all tensors, by their roots, whose contents the graph changes
        self.rewritten: dict[TensorValue, Operation] = {}
        #: the roots of tensors that get hooks when the graph has run
        self.hooked: set[TensorValue] = set()
        #: existing tensors whose metadata the graph changes, by their storages
        self.restructured: dict[int, TensorValue] = {}
        #: whether the graph must be run in the order of the program, by no backend that works otherwise
        self.in_order = False
        #: results of autograd Functions that share memory with an argument
        self.own_gradients: dict[TensorValue, Operation] = {}
        #: the frames that go on after the graph break that ended the trace
        self.resumed: list[Frame] = []
        self._input_names: dict[str, int] = {}
        self._parts: dict[tuple[Any, int], Any] = {}
        self._fake_executor: FakeExecutor | None = None
        self._memo: Memo | None = None
        self._last_input: Any = None
        self._shapes: Any = None
        #: hooks on tensors saved for backward (checkpoints) are not shown what the tracer computes
        self.hooks_wait = saved_hooks.suspend(True)
        #: the overrides of the program's tensor classes are traced; none is called while tracing
        self.overrides = internals.torch_function_state()
        if self.overrides == internals.TorchFunctionState.ENABLED:
            internals.set_torch_function_state(internals.TorchFunctionState.SUBCLASSES_DISABLED)

    # -- values -----------------------------------------------------------------------------------------------------

    def adopt(self, value: TensorValue) -> None:
        """An existing tensor has been met: guard and describe it."""
        if self.restructured and storage_of(value.host) in self.restructured:
            raise Unsupported(errors.UnsupportedMutation("an in-place operation", "a tensor that shares memory"))
        dims = dynamism.dims(self.trace, value)
        self.tensors.append(value)
        if not dims:
            guard_tensor(self.trace.space, value)
            value.meta = self.describe(value.host)
            return
        fake = value._fake = self.shapes.fakify(value, dims)
        guard_tensor(self.trace.space, value, [i for i, n in enumerate(fake.shape) if isinstance(n, torch.SymInt)])
        value.meta = self.describe(fake)

    @property
    def shapes(self) -> Any:
        """The symbols of this trace."""
        if self._shapes is None:
            from stator.pytorch.shapes.shapes import Shapes

            self._shapes = Shapes(self)
        return self._shapes

    def node_of(self, value: Any) -> Any:
        """The node of a value used for the first time: a graph input, or a part of an operation's result."""
        if value.operation is None:
            node = self.boxed_number(value) if value.symbolic and value.cls is float else self.placeholder(value)
        else:
            node = value.operation.node
            for index in value.path:
                node = self._part_node(node, index)
        self.values.setdefault(node, value)
        return node

    def _part_node(self, node: Any, index: int) -> Any:
        made = self._parts.get((node, index))
        if made is None:
            made = self._parts[node, index] = node.graph.call_function(_getitem, (node, index))
            parent = node.meta
            made.meta = NodeMeta(lambda: _item(parent.get("example_value"), index))
        return made

    @property
    def acts(self) -> bool:
        """Whether the graph does anything else than compute, write tensors and draw random numbers."""
        return bool(self.acting)

    @property
    def inert(self) -> bool:
        """Whether running the graph so far would show nowhere but in its results."""
        return not (self.random or self.acts or self.written or self.state_nodes)

    @property
    def keeps_order(self) -> bool:
        """Whether the backend runs the operations as they were recorded, on the program's own tensors."""
        return bool(getattr(self.trace.compile_region.backend, "keeps_order", False))

    @property
    def writes_last(self) -> bool:
        """Whether what the backend makes writes to existing tensors only when all else has been computed."""
        return not self.in_order and bool(getattr(self.trace.compile_region.backend, "writes_last", False))

    def boxed_number(self, value: Any) -> Any:
        """A symbolic float that existed before the trace: read from a tensor, where the backend needs that."""
        if self.keeps_order:
            return self.placeholder(value)
        tensor = self.shapes.boxed(value).node
        with self.whole.inserting_after(tensor):
            node = self.whole.call_method("item", (tensor,))
        node.meta = NodeMeta(lambda: value.number)
        return node

    def placeholder(self, value: Any) -> Any:
        """Make a value that existed before the trace an input of the graph."""
        name = self._unique(_input_name(value.source.expr()))
        root = internals.root(self.whole)
        with self.whole.inserting_after(root if self._last_input is None else self._last_input):
            node = self.whole.placeholder(name)
        node.meta = NodeMeta(lambda: self.example(value))
        self._last_input = node
        self.inputs.append(value)
        return node

    def _unique(self, name: str) -> str:
        # The text of a source may be long; its end, which is kept, need not be unique.
        count = self._input_names[name] = self._input_names.get(name, 0) + 1
        return name if count == 1 else self._unique(f"{name}_{count}")

    def example(self, value: Any) -> Any:
        """A fake tensor to show for a value."""
        meta = getattr(value, "meta", None)
        if value._fake is not None or meta is None:
            return value.fake
        return self.memo(meta.symbolic).stand_in(meta)

    def memo(self, symbolic: bool) -> Memo:
        """The memory of outcomes for operands of which some, or none, are symbolic."""
        if not symbolic:
            return MEMO
        if self._memo is None:
            self._memo = Memo(self.fake_executor)
        return self._memo

    @property
    def symbolic(self) -> dict[Any, Any]:
        """The descriptions that hold symbols of this trace."""
        return self.memo(True).symbolic

    def describe(self, tensor: Any) -> TensorMeta | None:
        """The description of a real or fake tensor of this trace."""
        with internals.DisableTorchFunctionSubclass():
            symbolic = self.symbolic if internals.has_symbolic_sizes(tensor) else None
            return meta_of(tensor, symbolic)

    # -- fake tensors -----------------------------------------------------------------------------------------------

    @property
    def fake_executor(self) -> FakeExecutor:
        """This trace's own fake tensors, which keep aliases and symbols."""
        if self._fake_executor is None:
            self._fake_executor = FakeExecutor(self.shapes.used_env)
        return self._fake_executor

    def admit_symbols(self, env: Any) -> None:
        """The trace has symbols from now on."""
        if self._fake_executor is not None:
            self._fake_executor.admit(env)

    def materialise(self, value: Any) -> None:
        """Make the fake tensor of a value."""
        if value.operation is None:
            value._fake = self.shapes.fakify(value)
            return
        self.replay()

    def replay(self) -> None:
        """Run everything recorded so far that has no fake tensors yet, in order and in the state it ran in."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        with self.state.replaying():
            for operation in pending:
                operation.replay(self.fake_executor)

    # -- recording --------------------------------------------------------------------------------------------------

    def record(self, call: Call) -> Value:
        """Record a call, and return the traced value of its result."""
        refuse_lost(self, call)
        operation = Operation(self, call)
        outcome = self._outcome(call, operation)
        if outcome.makes_leaf and not self.keeps_order:
            raise Unsupported(errors.NewLeaf(describe_callable(call.function)))
        if outcome.warned:
            outcome.warned = real_warnings(call, outcome.warned)
            left_to_run_time(self.trace.space, outcome.warned, describe_callable(call.function))
        if outcome.rigid and not self.keeps_order:
            raise Unsupported(errors.UnsupportedMutation(describe_callable(call.function), "tensors of the program"))
        outcome.effectful |= call.acts
        if outcome.traced:
            self._spare_hooked(call, outcome)
            self._emit(call, operation, outcome)
        elif not told_by_guard(call.function):
            rely_on_all(call.operands)
        return outcome.result.build(self.trace.space, operation, ())

    def _outcome(self, call: Call, operation: Operation) -> Outcome:
        if call.key is not None and self.trace.config.memo_metadata:
            key = (call.key, self.state.key)
            from stator.pytorch.tensors.lowering import fill

            memo = self.memo(any(meta.symbolic for meta in call.metas))
            found = memo.outcome(call.function, call.args, call.kwargs, key, call.metas, fill)
            if found is not None and not (found.written and _share_memory(call.operands)):
                if found.traced:
                    self._pending.append(operation)
                return found
        return self._run(call, operation)

    def _run(self, call: Call, operation: Operation) -> Outcome:
        if call.operands:  # what is made of constants does not see what was written before
            self.replay()
        fakes = [operand.fake for operand in call.operands]  # type: ignore[attr-defined]
        before = versions_of(fakes)
        observed = self.fake_executor.run(call.function, call.args, call.kwargs, fakes, fill)
        operation.bindings = self.shapes.bindings(observed.result, call.function)
        outcome = outcome_of(observed, fakes, before, describe_callable(call.function), self.symbolic)
        operation.made_values = _Adopting(operation, observed.result)
        if outcome.written:
            self._refresh(observed.written)
        return outcome

    def noted(self, value: TensorValue) -> None:
        """A new tensor has got its fake tensor: writes to the storage it shares must be seen in it."""
        self._made.append(value)

    def _refresh(self, written: set[int]) -> None:
        """Tensors that share a written storage may have other metadata now."""
        for value in [*self.tensors, *self._made]:
            if value._fake is None or storage_of(value._fake) not in written:
                continue
            if value.host is not None and _geometry(value._fake) != _geometry(value.host):
                self.in_order = True  # AOTAutograd gives it the strides and the storage offset of a tensor of its own
            if value.meta is None:
                continue
            meta = self.describe(value._fake)
            if meta is not value.meta and value.host is not None:
                self._restructure(value)
            value.meta = meta

    def _restructure(self, value: TensorValue) -> None:
        """The metadata of an existing tensor has changed: that of others in its memory may have, unseen."""
        storage = storage_of(value.host)
        self.restructured.setdefault(storage, value)
        if any(t is not value and storage_of(t.host) == storage for t in self.tensors):
            raise Unsupported(errors.UnsupportedMutation("an in-place operation", "a tensor that shares memory"))

    def _spare_hooked(self, call: Call, outcome: Outcome) -> None:
        """A tensor that is written gets another place in autograd's graph: its hooks belong to the one before."""
        if self.hooked and any(call.operands[i].root in self.hooked for i in outcome.written):  # type: ignore[attr-defined]
            raise Unsupported(errors.UnsupportedMutation("an in-place operation", "a tensor with a hook"))

    def _emit(self, call: Call, operation: Operation, outcome: Outcome) -> None:
        args, kwargs = call.node_args()
        node = operation.node = self.graph.create_node(call.kind, call.target, args, kwargs)
        operation.result = outcome.result
        node.meta = NodeMeta(operation.example, call_chain(self.trace.frame))
        if operation.bindings:
            node.meta["unbacked_bindings"] = operation.bindings
        self.ops += 1
        operation.effectful = outcome.effectful
        before = self.random or self.acts
        if not self.keeps_order:
            rely_on_place_in_storage(call)
        grad_mode = torch.is_grad_enabled()
        with_grad = grad_mode and any(isinstance(o, TensorValue) and o.requires_grad for o in call.operands)
        for index in outcome.written:
            root = call.operands[index].root  # type: ignore[attr-defined]
            if with_grad or (grad_mode and root.requires_grad):
                rely_on_autograd(root)
            self.rewritten[root] = operation
            if root.host is not None:
                self.written[root] = None
                self.writing.add(node)
        if (before or self.written) and not self.exposed:
            self.exposed = self._is_exposed()
        if outcome.written:
            counts = self.writes[node] = {}
            for index, count in zip(outcome.written, outcome.counts, strict=True):
                root = call.operands[index].root  # type: ignore[attr-defined]
                counts[root] = max(counts.get(root, 0), count)  # two operands in one memory have one version
        if outcome.fallible or unchecked(call):
            self.fallible[node] = operation
        self.random |= outcome.random
        if outcome.effectful and not outcome.random and not outcome.written and not _only_checks(call):
            self.acting.add(node)
        if outcome.effectful:
            self.keep.add(node)
            self.trace.mutation_count += 1

    def _is_exposed(self) -> bool:
        """Whether an exception here finds handlers of the program, or effects that are still to be performed."""
        frame = self.trace.frame
        while frame is not None:
            if frame.last().handler is not None:
                return True
            frame = frame.parent
        return bool(self.trace.effects.count or self.state.changed or self.hooked)

    def change_state(self, function: Any, args: list[Any], kwargs: dict[str, Any] | None = None) -> Any:
        """Perform a change of the global state, and record it."""
        kwargs = kwargs or {}
        result = self.state.perform(function, args, kwargs)
        self.add_state_node(function, tuple(args), kwargs)
        if function not in global_state.NESTING:
            self._pending.append(_StateChange(function, args, kwargs))
        self.trace.mutation_count += 1
        return result

    def switch(self, function: Any, args: list[Any]) -> None:
        """Change the global state as C code does around a call: nothing of it appears in the graph."""
        self.state.perform(function, args, {})
        self._pending.append(_StateChange(function, args, {}))

    def leave_state(self) -> None:
        """End the graph with the nodes that put the global state back as it was at its beginning."""
        for function, args in self.state.undoing():
            self.add_state_node(function, args)

    def add_state_node(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Add a call that changes the global state to the graph."""
        node = self.graph.call_function(function, args, kwargs or {})
        self.keep.add(node)
        self.state_nodes.add(node)
        return node

    def enter_inference(self, mode: bool) -> tuple[Any, Any]:
        """Enter inference mode for real and in the graph; the object to leave it by, and its node."""
        real = internals.InferenceMode(mode)
        real.__enter__()
        return real, self.add_state_node(internals.enter_inference_mode, (mode,))

    def example_input(self, value: Any) -> Any:
        """What the backend is shown for an input."""
        return value.host if value.host is not None else value.number

    # -- the end ----------------------------------------------------------------------------------------------------

    def finish(self, outputs: list[Value]) -> CompiledGraph | None:
        """Compile the graph; None where there is nothing to run."""
        return finish(self, outputs)

    def state_lines(self, writer: Writer) -> list[str]:
        """Generated lines that leave the global state as the traced program left it."""
        return self.state.lines(writer)

    def checked(self, writer: Writer) -> list[str]:
        """What was assumed of results of the graph, as expressions."""
        from stator.pytorch.numpy.float_errors import FloatErrors
        from stator.pytorch.tensors.checks import Checks

        checks = self.trace.extension(Checks)
        checks.confirm()
        float_errors = self.trace.extension(FloatErrors)
        float_errors.confirm()
        wanted = [expr if truth else f"not {expr}" for expr, truth in checks.expressions(writer)]
        return wanted + float_errors.expressions(writer)

    def recovery(self, graph: CompiledGraph, writer: Writer, *, checked: bool) -> Recovery | None:
        """What generated code does about a failure of the graph, or of checks of its results."""
        return recovery(self, graph, writer, checked=checked)

    #: whether a hook sees each tensor that the graph saves: it may have raised, and is not to see a second execution
    is_watched = staticmethod(saved_hooks.active)

    def guards_first(self) -> list[Guard]:
        """Guards to check before all others."""
        return self.state.guards() if self.tensors or self.ops or self.state.used else []

    def guards_last(self) -> list[Guard]:
        """Guards that rest on all others."""
        alone = [guard for value in self.restructured.values() for guard in alone_guards(value, self.tensors)]
        return self.extra_guards + alone + ([] if self._shapes is None else self._shapes.guards())

    def close(self) -> None:
        """The trace has ended: put the process's state back."""
        self.state.restore()
        internals.set_torch_function_state(self.overrides)
        saved_hooks.suspend(self.hooks_wait)


class _Adopting(list[Any]):
    """The values made of a result that is there already: each gets its fake tensor at once."""

    def __init__(self, operation: Operation, result: Any) -> None:
        super().__init__()
        self.operation = operation
        self.result = result

    def append(self, value: Any) -> None:
        value._fake = part(self.result, value.path)
        value.recorder.noted(value)
        super().append(value)


def _geometry(tensor: Any) -> tuple[Any, ...] | None:
    """Which elements of its storage a tensor consists of, in this call."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        return None
    numbers = (tensor.dim(), *tensor.shape, *tensor.stride(), tensor.storage_offset())
    return tuple([hint_of(number) for number in numbers])


def _only_checks(call: Call) -> bool:
    """Whether all that the operation does besides computing is to raise."""
    from stator.pytorch.numpy.array_calls import array_call

    return call.function is array_call or "_assert" in getattr(call.function, "__name__", "")


def _share_memory(operands: list[Any]) -> bool:
    """Whether two of the operands are tensors in the same memory."""
    roots = [value.root for value in operands if isinstance(value, TensorValue)]
    memories = {root if root.host is None else storage_of(root.host) for root in roots}
    return len(memories) < len(roots)


def _item(value: Any, index: int) -> Any:
    return None if value is None else value[index]


_WORD = re.compile(r"\W+")


def _input_name(text: str) -> str:
    """A readable name of a graph input, from the text of its source."""
    words = _WORD.sub("_", text).strip("_")[-60:].strip("_").lower()
    return words if words and not words[0].isdigit() and words != "self" else f"arg_{words}"
