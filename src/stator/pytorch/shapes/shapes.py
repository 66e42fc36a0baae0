"""Symbolic sizes: which dimensions become symbols, where symbols come from, and what was assumed of them.

torch's ShapeEnv reasons about the symbols. An existing tensor gets a fake one whose dynamic dimensions are symbols; at
the end the assumptions are read from the ShapeEnv and become guards over the sizes, a relation each.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import torch

from stator.guards.expression import expression
from stator.guards.guard import Predicate, Relation
from stator.guards.source import CallSource, GetAttrSource, OffsetSource, SizeSource, Source, StrideSource
from stator.pytorch import internals
from stator.pytorch.fake.metadata import is_symbol
from stator.pytorch.shapes import dynamism, unbacked
from stator.pytorch.shapes.contexts import Form, constrain, context_of, form_of, opened, origin_of, static_context
from stator.pytorch.shapes.symbols import SymValue
from stator.pytorch.shapes.unbacked import sizes_of, symbols_of
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Value

if TYPE_CHECKING:
    import sympy  # type: ignore[import-untyped]
    import torch.fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.guards.base import Where
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

__all__ = ["Shapes", "new_env", "nowhere", "property_source"]

_STATIC = re.compile(r"(\w+) == -?\d+\Z")
_VARIABLE = re.compile(r"\bn\d+\b")


def _box(number: float) -> torch.Tensor:
    return torch.tensor(number, dtype=torch.float64)


def _item(tensor: torch.Tensor) -> int | float:
    return tensor.item()


_NUMBERS = {"size": SizeSource, "stride": StrideSource, "offset": OffsetSource}


def property_source(base: Source, kind: str, index: int) -> Source:
    """Where a tensor's size (stride, storage offset, number) is found."""
    return CallSource(_item, base, "item") if kind == "item" else _NUMBERS[kind](base, index)


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
        #: names of properties that were no symbols when the tensor was met
        self._plain: set[str] = set()
        self._names: dict[str, str] = {}
        self._named: dict[str, Source] = {}
        self._boxes: list[TensorValue] = []
        self.symbols: dict[sympy.Symbol, SymValue] = {}
        #: numbers read from the frame, by their sources; and elements of tensors, by what tells which
        self.numbers: dict[Source, SymValue] = {}
        self.elements: dict[object, Value] = {}
        #: symbols that operations have made for numbers they read for their own use
        self._unseen: set[sympy.Symbol] = set()
        self.frozen: list[Predicate] | None = None
        #: whether numbers read from the frame are not to be symbols for now, however they vary
        self.reads_constants = False

    @property
    def env(self) -> ShapeEnv:
        """torch's ShapeEnv: made, and sympy with it imported, when a symbol may be needed."""
        if self._env is None:
            self._env = new_env(self.may_be_new, self.recorder.trace.line)
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

    # -- existing tensors and numbers ---------------------------------------------------------------------------

    def origin(self, value: TracedValue) -> Origin:
        """The reference implementation's name for where an input comes from; unique per value."""
        known = self._origins.get(id(value))
        if known is None:
            known = self._origins[id(value)] = origin_of(self._input_name(value))
        return known

    def origin_maker(self, value: TracedValue) -> Callable[[], object]:
        """What returns the origin of an input when it is called, also after the trace."""
        known = self._origins.get(id(value))
        return functools.partial(origin_of, self._input_name(value)) if known is None else lambda: known

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

    def context(self, value: TracedTensor, dims: dict[int, object], strides: Collection[int]) -> SymbolicContext:
        """The symbolic context of an existing tensor of which some dimensions are dynamic."""
        known = self._contexts.get(id(value))
        if known is None:
            host = value.host
            known = context_of(form_of(host), self.origin(value), dims, strides)
            constrain(known, dynamism.ranges(value.host))
            self._contexts[id(value)] = known
        return known

    def made_like(self, value: TracedTensor) -> None:
        """An input that is made before the graph runs has the symbols in its sizes that other inputs bring in."""
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        origin, fake = self.origin(value), value.fake
        parts = [(internals.TensorProperty.SIZE, i, number) for i, number in enumerate(fake.shape) if is_symbol(number)]
        context = context_of(Form(fake.dim()), origin, {i: DimDynamic.DYNAMIC for _, i, _ in parts})
        known = context.shape_env_to_source_to_symbol_cache[id(self.env)] = {}
        for kind, i, number in parts:
            known[internals.TensorPropertySource(origin, kind, i).name] = number.node.expr
        self._contexts[id(value)] = context

    def context_maker(self, value: TracedTensor) -> Callable[[], object]:
        """What returns the symbolic context of an existing tensor when it is called, also after the trace.

        It is the same one each time: a backend that is tried twice must find the symbols it knows already.
        """
        known = self._contexts.get(id(value))
        if known is not None:
            return lambda: known
        make = self._makers.get(id(value))
        if make is None:
            host = value.host
            described = functools.partial(static_context, form_of(host), self._input_name(value))
            make = self._makers[id(value)] = functools.cache(described)
        return make

    def fakify(self, value: TracedTensor, open_dims: Dims | None = None) -> Fake:
        """The fake tensor of an existing one."""
        if open_dims is not None:
            assert self.env is not None  # the mode knows of it now
        mode = self.recorder.fakes.executor.mode
        if open_dims is None:
            return mode.of(value.host)
        dims, strides = open_dims
        if internals.is_view(value.host):
            # A view's symbols would be entangled with those of its base: a plain tensor of the same shape is none.
            from torch.fx.experimental.symbolic_shapes import DimDynamic

            dims = {i: kind for i, kind in dims.items() if kind is not DimDynamic.DUCK} or dims
        context = self.context(value, dims, strides)
        origin = self.origin(value)
        fake = mode.of(value.host, symbolic_context=context, source=origin)
        with torch.no_grad():
            asfound = fake.detach()  # the program may change the sizes of the tensor itself
        self._tracked.append((asfound, origin, context))
        for kind, numbers in (("size", fake.shape), ("stride", fake.stride()), ("offset", (fake.storage_offset(),))):
            for i, number in enumerate(numbers):
                if is_symbol(number):
                    self._note_symbol(number, property_source(value.source, kind, i))  # type: ignore[arg-type]
                else:
                    self._plain.add(self._name(f"{origin.name} {kind} {i}", property_source(value.source, kind, i)))  # type: ignore[arg-type]
        return fake

    def _note_symbol(self, number: Number, source: Source) -> None:
        symbol = number.node.expr
        if symbol.is_symbol and symbol not in self.symbols:
            self.symbols[symbol] = SymValue.existing(self.recorder, number, source)

    def number(self, host: int | float, source: Source) -> SymValue:
        """A symbol for a number read from the frame."""
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        value = SymValue.existing(self.recorder, None, source)
        value.cls = type(host)
        origin = self.origin(value)
        context = context_of(Form(0), internals.FloatTensorSource(origin), {})
        symbol = self.env.create_unspecified_symbol(host, origin, DimDynamic.DYNAMIC, symbolic_context=context)
        make = self.env.create_symintnode if type(host) is int else self.env.create_symfloatnode
        value.number = make(symbol, hint=host, source=origin)
        self._tracked.append((value.number, origin, None))
        self.symbols[symbol] = value
        self._contexts[id(value)] = context
        return value

    def boxed(self, value: SymValue) -> TensorValue:
        """A symbolic float as an input that is a tensor: of plain floats backends make constants."""
        assert value.source is not None
        made = TensorValue(self.recorder, torch.Tensor, None)
        made.source = CallSource(_box, value.source, "torch.tensor")
        made.host = _box(value.number.node.hint)
        self._contexts[id(made)] = self._contexts[id(value)]
        self._origins[id(made)] = self._contexts[id(value)].tensor_source
        self._boxes.append(made)
        return made

    def binders(self, inputs: list[GraphValue]) -> list[SymValue]:
        """The symbols on which the inputs' metadata depends: each must be an input of its own."""
        found: dict[sympy.Symbol, None] = {}
        for value in inputs:
            if value.symbolic or value.meta is None or value.meta.symbolic:
                for number in sizes_of(value.fake):
                    found.update(dict.fromkeys(sorted(symbols_of(number), key=str)))
        return [self.symbols[symbol] for symbol in found if symbol in self.symbols]

    def need_numbers(self, operands: list[GraphValue]) -> None:
        """An operation cannot take the symbols of its operands: trace again, with these sizes as numbers for ever."""
        symbols: set[sympy.Symbol] = set()
        for operand in operands:
            symbols.update(*map(symbols_of, sizes_of(operand.fake)))
        fixed = [
            (self.source_of(origin).expr(), dim)
            for fake, origin, context in self._tracked
            if context is not None  # which numbers have none of
            for dim in range(fake.dim())
            if opened(fake, context, dim) & symbols
        ]
        if fixed:
            raise dynamism.fixed(self.recorder.trace, fixed)

    def need_floats(self) -> None:
        """AOTAutograd has found floats that it cannot make tensors of: trace again, with these as numbers for ever."""
        unfit = [
            value for symbol, value in self.symbols.items() if internals.TensorifyState.should_specialize(str(symbol))
        ]
        if unfit:
            internals.TensorifyState.clear()
            raise dynamism.fixed_numbers(self.recorder.trace, [v.source.expr() for v in unfit if v.source])

    @staticmethod
    def forget_floats() -> None:
        """Forget what AOTAutograd has noted about floats: it knows them by names that other traces use as well."""
        internals.TensorifyState.clear()

    def bindings(self, result: Nested, function: Function) -> object:
        """Where in the result of an operation the symbols are found that are known only when it runs."""
        return None if self._env is None else unbacked.bindings(self._env, self._unseen, result, function)

    def note_unseen(self) -> None:
        """An operation has failed: the numbers that it has read by then have symbols, which nobody has seen."""
        if self._env is not None:
            unbacked.note_unseen(self._env, self._unseen)

    # -- guards -------------------------------------------------------------------------------------------------

    def _name(self, key: str, source: Source) -> str:
        """The variable that stands for a number in the text of a guard."""
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"n{len(self._names)}"
            self._named[name] = source
        return name

    def _reference(self, origin: Origin) -> str:
        """The variable for a number by its origin."""
        if not isinstance(origin, internals.TensorPropertySource):
            return self._name(origin.name, self._source_for(origin))
        kinds = {
            internals.TensorProperty.SIZE: "size",
            internals.TensorProperty.STRIDE: "stride",
            internals.TensorProperty.STORAGE_OFFSET: "offset",
        }
        kind, index = kinds[origin.prop], origin.idx or 0
        source = property_source(self._source_for(origin.base), kind, index)
        return self._name(f"{origin.base.name} {kind} {index}", source)

    def _source_for(self, origin: Origin) -> Source:
        """Our source for an origin, which may be a step from that of an input."""
        if isinstance(origin, internals.CallMethodItemSource):
            return property_source(self._source_for(origin.base), "item", 0)
        if isinstance(origin, internals.AttrSource):
            return GetAttrSource(self._source_for(origin.base), origin.member)
        if isinstance(origin, internals.FloatTensorSource):
            return CallSource(_box, self._source_for(origin.base), "torch.tensor")
        return self.source_of(origin)

    def guards(self) -> list[Predicate]:
        """What has been assumed of the symbols, as guards (read once, after the backend has had its say)."""
        if self.frozen is None:
            dynamism.note_assigned(self.recorder.trace)
            self.frozen = self._read_guards() if self._tracked else []
        return self.frozen

    def _line_of(self, names: list[str]) -> Where:
        """The first line of the program that needed something to be true of just these numbers."""
        for guard, line in zip(self.env.guards, self.env.lines, strict=True):
            origins = [origin for symbol in guard.expr.free_symbols for origin in self.env.var_to_sources[symbol]]
            if line is not None and {self._reference(origin) for origin in origins} >= set(names):
                return line
        return None

    def _read_guards(self) -> list[Predicate]:
        fakes, origins, contexts = map(list, zip(*self._tracked, strict=True))
        helpers = self.env.produce_guards_verbose(
            fakes, origins, self._reference, input_contexts=contexts, ignore_static=False, langs=("python",)
        )
        texts = [text for text in helpers[0].exprs if not self._is_known(text)]
        return [self._guard(text) for text in texts]

    def _guard(self, text: str) -> Predicate:
        """The guard that an assumption is, from its text."""
        text = ast.unparse(ast.parse(text, mode="eval"))  # without the parentheses that torch adds
        names = list(dict.fromkeys(_VARIABLE.findall(text)))
        form = _VARIABLE.sub(lambda found: f"{{{names.index(found[0])}}}", text)
        sources = tuple(self._named[name] for name in names)
        try:
            guard: Predicate = Relation(sources, expression(form, len(names)))
        except ValueError:
            guard = _computed(form, names, sources)
        guard.where = self._line_of(names)
        return guard

    def _is_known(self, text: str) -> bool:
        """Whether the guard on the tensor says so already."""
        match = _STATIC.match(text)
        return match is not None and match.group(1) in self._plain


def new_env(may_be_new: bool, line: Callable[[], Where]) -> ShapeEnv:
    """A ShapeEnv; whether symbols may stand in it for numbers in tensors, and what tells the line of the program."""
    return unbacked.env_class()(line, allow_scalar_outputs=may_be_new, allow_dynamic_output_shape_ops=may_be_new)


def nowhere() -> Where:
    """What is assumed now is assumed at no line of the program's."""
    return None


def _computed(form: str, names: list[str], sources: tuple[Source, ...]) -> Predicate:
    """The guard that a condition is true which needs more than integers."""
    from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP

    check = eval(f"lambda {', '.join(names)}: {form.format(*names)}", {**SYMPY_INTERP, "torch": torch})
    return Predicate(sources, check, form.format(*[source.expr() for source in sources]))
