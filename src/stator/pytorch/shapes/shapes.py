"""Symbolic sizes: which dimensions become symbols, where symbols come from, and what was assumed of them.

torch's ShapeEnv reasons about the symbols. An existing tensor gets a fake one whose dynamic dimensions are symbols; at
the end the assumptions are read from the ShapeEnv and become guards over the sizes, a relation each.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from stator.guards.source import CallSource, SizeSource, Source
from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of, is_symbol
from stator.pytorch.shapes import dynamism, marks, unbacked
from stator.pytorch.shapes.assumed import Assumed, Guards, boxed, property_source
from stator.pytorch.shapes.contexts import (
    as_found,
    context_of,
    context_of_float,
    context_with,
    form_of,
    opened,
    origin_of,
    parts_of,
    shown,
    static_context,
)
from stator.pytorch.shapes.symbols import SymValue
from stator.pytorch.shapes.unbacked import is_decided, sizes_of, symbols_of
from stator.pytorch.shapes.words import counts_elements, number_in_words, number_needed
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    import sympy  # type: ignore[import-untyped]
    import torch.fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Dims, TracedTensor, TracedValue
    from stator.pytorch.types import (
        Fake,
        FakeOperand,
        Function,
        GraphValue,
        Nested,
        Number,
        Origin,
        SymbolicContext,
    )

__all__ = ["Shapes"]


class Shapes:
    """The symbols of one trace."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._env: ShapeEnv | None = None
        #: by the id of an input's value
        self._inputs: dict[int, str] = {}
        self._origins: dict[int, Origin] = {}
        self._contexts: dict[int, SymbolicContext] = {}
        self._makers: dict[int, Callable[[], SymbolicContext]] = {}
        self._sources: dict[str, Source] = {}
        #: what produce_guards is to look at: (fake tensor or symbolic number, origin, context)
        self._tracked: list[tuple[FakeOperand, Origin, SymbolicContext | None]] = []
        self._assumed = Assumed(self.source_of, recorder.trace)
        self._boxes: dict[SymValue, TensorValue] = {}
        self.symbols: dict[sympy.Symbol, SymValue] = {}
        #: numbers read from the frame, by their sources; and elements of tensors, by what tells which
        self.numbers: dict[Source, SymValue] = {}
        self.elements: dict[object, Value] = {}
        #: symbols that operations have made for numbers they read for their own use
        self._unseen: set[sympy.Symbol] = set()
        self.frozen: Guards | None = None
        #: whether numbers read from the frame are not to be symbols for now, however they vary
        self.reads_constants = False

    @property
    def env(self) -> ShapeEnv:
        """torch's ShapeEnv: made, and sympy with it imported, when a symbol may be needed."""
        if self._env is None:
            self._env = unbacked.new_env(self.may_be_new, self.recorder.trace)
            self.recorder.fakes.admit_symbols(self._env)
        return self._env

    @property
    def begun(self) -> bool:
        """Whether there is a ShapeEnv already."""
        return self._env is not None

    @property
    def may_be_new(self) -> bool:
        """Whether symbols may stand for numbers that are in tensors."""
        return bool(self.recorder.trace.config.capture_scalar_outputs)

    @property
    def used_env(self) -> ShapeEnv | None:
        """The ShapeEnv; None as long as the trace has no symbols and makes none."""
        return self.env if self.may_be_new else self._env

    def in_words(self, number: Number, condition: bool) -> str:
        """What messages say of a symbolic number, or of a condition on one."""
        return number_in_words(self.recorder, number, condition)

    def counts_elements(self, number: Number) -> bool:
        """Whether a symbolic number, or a condition on one, is about how many elements a call gives."""
        return counts_elements(self.recorder, number)

    # -- existing tensors and numbers ---------------------------------------------------------------------------

    def origin(self, value: TracedValue) -> Origin:
        """The reference implementation's name for where an input comes from; unique per value."""
        known = self._origins.get(id(value))
        if known is None:
            known = self._origins[id(value)] = origin_of(self._input_name(value))
        return known

    def origin_maker(self, value: TracedValue) -> Callable[[], object]:
        """What returns, to a backend, the origin of an input; it may be called after the trace."""
        known = self._origins.get(id(value))
        name = self._input_name(value)
        return lambda: (known or origin_of(name)).as_torchs()

    def _input_name(self, value: TracedValue) -> str:
        name = self._inputs.get(id(value))
        if name is None:
            name = self._inputs[id(value)] = f"input{len(self._inputs)}"
            self._sources[name] = value.source  # type: ignore[assignment]
        return name

    def hand_over(self, value: TracedValue, before: TracedValue) -> None:
        """What is known of an input belongs to another value from now on, as the object has become another tensor."""
        tables: tuple[dict[int, Any], ...] = (self._inputs, self._origins, self._contexts, self._makers)
        for table in tables:
            if id(value) in table:
                table[id(before)] = table.pop(id(value))
        self.elements.clear()  # numbers read from the tensor that it was

    def source_of(self, origin: Origin) -> Source:
        """Our source of an input, from its origin."""
        return self._sources[origin.local_name]

    def context(self, value: TracedTensor, dims: Dims) -> SymbolicContext:
        """The symbolic context of an existing tensor of which some dimensions are dynamic."""
        known = self._contexts.get(id(value))
        if known is None:
            known = self._contexts[id(value)] = context_of(form_of(value.host), self.origin(value), dims)
            assert value.source is not None
            ignored = self.recorder.trace.config.allow_ignore_mark_dynamic
            for context, tensor, source in parts_of(known, value.host, value.source):
                marks.constrain(self.recorder.trace, context, tensor, source, enforced=not ignored)
        return known

    def made_like(self, value: TracedTensor) -> None:
        """An input that is made before the graph runs has the symbols in its sizes that other inputs bring in."""
        self._contexts[id(value)] = context_with(value.fake, self.origin(value), self.env)

    def context_maker(self, value: TracedTensor) -> Callable[[], object]:
        """What returns, to a backend, the symbolic context of an existing tensor; it may be called after the trace.

        It is the same one each time: a backend that is tried twice must find the symbols it knows already.
        """
        known = self._contexts.get(id(value))
        if known is not None:
            return lambda: shown(known)
        make = self._makers.get(id(value))
        if make is None:
            host = value.host
            form, name = form_of(host), self._input_name(value)
            make = self._makers[id(value)] = functools.cache(lambda: shown(static_context(form, name)))
        return make

    def fakify(self, value: TracedTensor, dims: Dims | None = None) -> Fake:
        """The fake tensor of an existing one."""
        if dims is None:
            return self.recorder.fakes.executor.mode.of(value.host)
        assert self.env is not None  # the mode knows of it now
        mode = self.recorder.fakes.executor.mode
        if internals.is_view(value.host) and not value.host.is_nested:
            # A view's symbols would be entangled with those of its base: a plain tensor of the same shape is none.
            from torch.fx.experimental.symbolic_shapes import DimDynamic

            sizes = {i: kind for i, kind in dims.sizes.items() if kind is not DimDynamic.DUCK}
            dims = type(dims)(sizes or dims.sizes, dims.strides, dims.inner)
        context = self.context(value, dims)
        fake = mode.of(value.host, symbolic_context=context, source=self.origin(value))
        assert value.source is not None
        for part, tensor, source in parts_of(context, fake, value.source):
            if not tensor.is_nested:
                self._track(tensor, part, source)
        return fake

    def _track(self, fake: Fake, context: SymbolicContext, source: Source) -> None:
        """Assumptions are to be read of the sizes of an existing tensor, or of one in a wrapper."""
        origin = context.tensor_source
        self._tracked.append((as_found(fake, self.recorder.fakes.executor.mode), origin, context))
        for kind, numbers in (("size", fake.shape), ("stride", fake.stride()), ("offset", (fake.storage_offset(),))):
            for i, number in enumerate(numbers):
                if is_symbol(number):
                    self._note_symbol(number, property_source(source, kind, i))
                else:
                    self._assumed.is_plain(origin, kind, i, source)

    def _note_symbol(self, number: Number, source: Source) -> None:
        self._assumed.is_symbol(number, source)
        symbol = number.node.expr
        if symbol.is_symbol and symbol not in self.symbols:
            self.symbols[symbol] = SymValue.existing(self.recorder, number, source)

    def number(self, host: int | float, source: Source) -> SymValue:
        """A symbol for a number read from the frame."""
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        value = SymValue.existing(self.recorder, None, source)
        value.cls = type(host)
        origin = self.origin(value)
        context = context_of_float(origin)
        symbol = self.env.create_unspecified_symbol(host, origin, DimDynamic.DYNAMIC, symbolic_context=context)
        make = self.env.create_symintnode if type(host) is int else self.env.create_symfloatnode
        value.number = make(symbol, hint=host, source=origin)
        self._tracked.append((value.number, origin, None))
        self.symbols[symbol] = value
        self._contexts[id(value)] = context
        self._assumed.is_symbol(value.number, source)
        return value

    def note_sizes(self, values: Sequence[Value]) -> None:
        """What the sizes of these tensors, and of those looked at, are in this call that are symbols: other code may
        meet them first in it."""
        metas = [tensor.meta for tensor in tensors_among(values)] if self.begun else []
        shapes = [meta.shape for meta in metas if meta is not None]
        shapes += [fake.shape for fake, _, context in self._tracked if context is not None]
        sizes = [size for shape in shapes for size in shape if is_symbol(size)]
        dynamism.note_sizes(self.recorder.trace, {hint for hint in map(hint_of, sizes) if type(hint) is int})

    def box(self, source: Source, number: float) -> TensorValue:
        """A float as an input that is a tensor: of plain floats backends make constants."""
        made = TensorValue(self.recorder, torch.Tensor, None)
        made.source = CallSource(boxed, source, "torch.tensor")
        with self.recorder.state.at_entry():
            made.host = boxed(number)
        made.meta = self.recorder.fakes.describe(made.host)
        return made

    def boxed(self, value: SymValue) -> TensorValue:
        """An existing symbolic float in a tensor."""
        assert value.source is not None
        known = self._boxes.get(value)
        if known is not None:
            return known
        made = self.box(value.source, value.number.node.hint)
        self._contexts[id(made)] = self._contexts[id(value)]
        self._origins[id(made)] = self._contexts[id(value)].tensor_source
        self._boxes[value] = made
        return made

    def boxed_in(self, box: TracedTensor) -> SymValue | None:
        """The symbolic float that an input is, if it is the tensor of one."""
        return next((value for value, made in self._boxes.items() if made is box), None)

    def binders(self, inputs: list[GraphValue]) -> list[SymValue]:
        """The symbols on which the inputs' metadata depends: each must be an input of its own."""
        found: dict[sympy.Symbol, None] = {}
        for value in inputs:
            if value.symbolic or value.meta is None or value.meta.symbolic:
                for number in sizes_of(value.fake):
                    found.update(dict.fromkeys(sorted(symbols_of(number), key=str)))
        return [self.symbols[symbol] for symbol in found if symbol in self.symbols]

    def need_numbers(self, operands: list[GraphValue]) -> None:
        """An operation cannot take the symbols of its operands: trace again, with these sizes as numbers for ever.

        So are those that the trace needs to be numbers anyway. Sizes that are marked as dynamic are none: there the
        graph breaks.
        """
        symbols: set[sympy.Symbol] = set()
        for operand in operands:
            symbols.update(*map(symbols_of, sizes_of(operand.fake)))
        fixed = [
            SizeSource(self._assumed.source_for(origin), dim)
            for fake, origin, context in self._tracked
            if context is not None  # which numbers have none of
            for dim in range(fake.dim())
            if opened(fake, context, dim) & symbols or is_decided(fake.shape[dim])
        ]
        marks.refuse_to_fix(size for size in fixed if size in self._enforced())
        places = {(size.base.expr(), size.index) for size in fixed}
        if not places <= dynamism.fixed_places(self.recorder.trace):  # else it has been tried
            raise dynamism.fixed(self.recorder.trace, places)

    def offer_floats(self) -> None:
        """AOTAutograd is to make tensors of the floats that are inputs; of those that only generated code needs it
        would find that it cannot, and give up."""
        if "torch._dynamo" in sys.modules:
            for symbol, value in self.symbols.items():
                if value.cls is float and not self._is_input(value):
                    internals.TensorifyState.specialize(str(symbol))

    def is_offered(self, box: TracedTensor) -> bool:
        """Whether it is the tensor of a float, of which AOTAutograd is to make one."""
        value = self.boxed_in(box)
        return value is not None and self._is_input(value)

    def need_floats(self) -> None:
        """AOTAutograd has found floats that it cannot make tensors of: trace again, with these as numbers for ever."""
        unfit = [
            value.source.expr()
            for symbol, value in self.symbols.items()
            if internals.TensorifyState.should_specialize(str(symbol)) and value.source and self._is_input(value)
        ]
        if unfit:
            raise dynamism.fixed_numbers(self.recorder.trace, unfit)

    def _is_input(self, value: SymValue) -> bool:
        """Whether the graph is given a float, which it takes from a tensor."""
        box = self._boxes.get(value)
        return box is not None and box._node is not None and value._node in box._node.users

    @staticmethod
    def forget_floats() -> None:
        """Forget what AOTAutograd was told or has noted: it knows floats by names that other traces use as well."""
        if "torch._dynamo" in sys.modules:
            internals.TensorifyState.clear()

    def bindings(self, result: Nested, function: Function) -> object:
        """Where in the result of an operation the symbols are found that are known only when it runs."""
        return None if self._env is None else unbacked.bindings(self._env, self._unseen, result, function)

    def note_failure(self, failed: Exception, undecided: object) -> None:
        """An operation has failed: the numbers that it has read by then have symbols, which nobody has seen. A break
        says where the number is from that it must know, if torch has told (`undecided`).
        """
        if self._env is not None:
            unbacked.note_unseen(self._env, self._unseen)
        if isinstance(failed, Unsupported) and undecided is not None:
            failed.brk = number_needed(self.recorder, failed.brk, undecided)

    # -- guards -------------------------------------------------------------------------------------------------

    def guards(self) -> Guards:
        """What has been assumed of the symbols, as guards (read once, after the backend has had its say)."""
        if self.frozen is None:
            dynamism.note_assigned(self.recorder.trace)
            assumed = self._tracked or (self._env is not None and self._env.guards)
            self.frozen = self._read_guards() if assumed else []
        return self.frozen

    def _read_guards(self) -> Guards:
        from torch.fx.experimental.symbolic_shapes import ConstraintViolationError

        try:
            return self._assumed.guards(self.env, self._tracked, in_contexts=True)
        except ConstraintViolationError:
            guards = self._assumed.guards(self.env, self._tracked, in_contexts=False)
        raise marks.violation(self._enforced(), guards)

    def _enforced(self) -> dict[Source, str]:
        """The sizes that the code may not fix, with what they have been marked to be."""
        tracked = [
            (self._assumed.source_for(origin), context) for _, origin, context in self._tracked if context is not None
        ]
        return dict(itertools.chain.from_iterable(itertools.starmap(marks.enforced_sizes, tracked)))
