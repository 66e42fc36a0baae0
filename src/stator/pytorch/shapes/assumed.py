"""What was assumed of sizes, as guards: made of the text in which torch's ShapeEnv gives it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import torch

from stator.guards.expression import expression
from stator.guards.guard import Predicate, Relation, remedy_of_condition
from stator.guards.source import CallSource, GetAttrSource, OffsetSource, SizeSource, Source, StrideSource
from stator.pytorch.fake.origins import (
    AttrSource,
    CallMethodItemSource,
    FloatTensorSource,
    TensorProperty,
    TensorPropertySource,
)
from stator.pytorch.shapes.input_sizes import Relations

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.pytorch.types import FakeOperand, Number, Origin, SymbolicContext
    from stator.space.interfaces import Trace

    #: what a symbol stands for: a fake tensor or symbolic number, its origin, and of a tensor the context
    Tracked: TypeAlias = tuple[FakeOperand, Origin, SymbolicContext | None]

__all__ = ["Assumed", "Guards", "boxed", "property_source"]

Guards: TypeAlias = list[Predicate]

_STATIC = re.compile(r"(\w+) == -?\d+\Z")
_PLACE = re.compile(r".+:\d+\Z")
_VARIABLE = re.compile(r"\bn\d+\b")


def boxed(number: float) -> torch.Tensor:
    """A tensor that holds the number."""
    return torch.tensor(number, dtype=torch.float64)


def _item(tensor: torch.Tensor) -> int | float:
    return tensor.item()


_NUMBERS = {"size": SizeSource, "stride": StrideSource, "offset": OffsetSource}


def property_source(base: Source, kind: str, index: int) -> Source:
    """Where a tensor's size (stride, storage offset, number) is found."""
    return CallSource(_item, base, "item") if kind == "item" else _NUMBERS[kind](base, index)


_KINDS = {TensorProperty.SIZE: "size", TensorProperty.STRIDE: "stride", TensorProperty.STORAGE_OFFSET: "offset"}
#: what an origin is a step from its base to, by the origin's class
_STEPS: dict[str, Callable[[Source, Origin], Source]] = {
    CallMethodItemSource.__name__: lambda base, origin: property_source(base, "item", 0),
    AttrSource.__name__: lambda base, origin: GetAttrSource(base, origin.member),
    FloatTensorSource.__name__: lambda base, origin: CallSource(boxed, base, "torch.tensor"),
}


class Assumed:
    """Reads the assumptions of one trace.

    Args:
        source_of: gives the source of an input by its origin.
        trace: the trace.
    """

    def __init__(self, source_of: Callable[[Origin], Source], trace: Trace) -> None:
        self._source_of = source_of
        self._relations = Relations(trace)
        #: names of properties that were no symbols when the tensor was met
        self._plain: set[str] = set()
        self._names: dict[str, str] = {}
        self._named: dict[str, Source] = {}

    def is_symbol(self, number: Number, source: Source) -> None:
        """A property of a tensor, or a number, is a symbol: it is what the program has said of it."""
        self._relations.note(number, source)

    def is_plain(self, origin: Origin, kind: str, index: int, source: Source) -> None:
        """A property of a tensor is no symbol: the guard on the tensor says what it is."""
        self._plain.add(self._name(f"{origin.name} {kind} {index}", property_source(source, kind, index)))

    def _name(self, key: str, source: Source) -> str:
        """The variable that stands for a number in the text of a guard."""
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"n{len(self._names)}"
            self._named[name] = source
        return name

    def reference(self, origin: Origin) -> str:
        """The variable for a number by its origin."""
        if not isinstance(origin, TensorPropertySource):
            return self._name(origin.name, self.source_for(origin))
        kind, index = _KINDS[origin.prop], origin.idx or 0
        source = property_source(self.source_for(origin.base), kind, index)
        return self._name(f"{origin.base.name} {kind} {index}", source)

    def source_for(self, origin: Origin) -> Source:
        """Our source for an origin, which may be a step from that of an input."""
        step = _STEPS.get(type(origin).__name__)  # a backend makes torch's own, of the same names
        return self._source_of(origin) if step is None else step(self.source_for(origin.base), origin)

    def guards(self, env: ShapeEnv, tracked: list[Tracked], *, in_contexts: bool) -> Guards:
        """What has been assumed, each with the program's line.

        Args:
            tracked: what the symbols of the environment stand for.
            in_contexts: whether torch is to raise where a context does not allow what was assumed.
        """
        self._relations.confirm(env)
        fakes, origins, contexts = ([each[part] for each in tracked] for part in range(3))
        helpers = env.produce_guards_verbose(
            fakes,
            origins,
            self.reference,
            input_contexts=contexts if in_contexts else None,
            ignore_static=False,
            langs=("verbose_python",),
        )
        told = [text.partition("  # ") for text in helpers[0].exprs]
        return [self._guard(text, where) for text, _, where in told if not self._is_known(text)]

    def _guard(self, text: str, where: str) -> Predicate:
        """The guard that an assumption is, from its text."""
        place = _PLACE.match(where.rpartition(" and ")[2])  # of a range the upper bound's
        text = ast.unparse(ast.parse(text, mode="eval"))  # without the parentheses that torch adds
        names = list(dict.fromkeys(_VARIABLE.findall(text)))
        form = _VARIABLE.sub(lambda found: f"{{{names.index(found[0])}}}", text)
        sources = tuple(self._named[name] for name in names)
        try:
            return Relation(sources, expression(form, len(names)), place and place[0])
        except ValueError:
            return _computed(form, names, sources, place and place[0])

    def _is_known(self, text: str) -> bool:
        """Whether the guard on the tensor says so already."""
        match = _STATIC.match(text)
        return match is not None and match.group(1) in self._plain


def _computed(form: str, names: list[str], sources: tuple[Source, ...], where: str | None) -> Predicate:
    """The guard that a condition is true which needs more than integers."""
    from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP

    check = eval(f"lambda {', '.join(names)}: {form.format(*names)}", {**SYMPY_INTERP, "torch": torch})
    shown = ast.unparse(_Shown().visit(ast.parse(form.format(*names), mode="eval")))
    told = _VARIABLE.sub(lambda found: sources[names.index(found[0])].expr(), shown)
    return Predicate(sources, check, told, remedy_of_condition(form), where)


class _Shown(ast.NodeTransformer):
    """A condition without the conversions that torch adds: `torch.sym_float(step) <= 3.0`."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return node.args[0] if ast.unparse(node.func) == "torch.sym_float" else node
