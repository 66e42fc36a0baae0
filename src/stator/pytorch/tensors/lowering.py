"""From traced arguments to a call that can be recorded: templates with the traced tensors left in place.

A template is a host structure (tuples, lists, dicts, slices, immutable objects) in which `Operand(i)` stands for the
i-th tensor or symbolic number. It is filled with nodes for the graph and with fake tensors to learn the result.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.nesting import is_sequence
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import MODELS
from stator.space.value import NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stator.pytorch.types import Args, Function, Host, Kwargs, Nested, Number, OperandMeta
    from stator.space.space import Space

__all__ = ["INDICES", "NUMBER_TYPES", "OPAQUE", "STAND_INS", "Call", "Lowering", "Operand", "fill", "lower_call"]

#: other libraries' types of numbers, with what makes Python's own of them where torch takes them for that
NUMBER_TYPES: dict[type, Callable[[Host], Number]] = {}
#: models of what is no tensor, with the number that torch takes one for
STAND_INS: dict[type, Callable[[Space, Any], Value | None]] = {}
#: the same, with the tensor that torch takes one for in an index
INDICES: dict[type, Callable[[Space, Any], TensorValue | None]] = {}
#: functions that make a difference between these and Python's own: of all of them, or of those that are no integers
_MIND_ALL = (torch.tensor, torch.as_tensor)
_MIND_FLOATS = (internals.TensorBase.__setitem__,)

_NUMBERS = (int, float, complex, bool)
_PLAIN = frozenset({int, float, complex, bool, str, type(None), type(...)})
_ATOMS = (torch.dtype, torch.device, torch.layout, torch.memory_format)
#: what `torch.LongTensor` is; `x.type()` takes it by its name as well
_OLD_TYPE = type(torch.FloatTensor)
#: classes of objects that only torch's own Functions are given, as they are (device meshes)
OPAQUE: set[type] = set()


class Operand:
    """The place of the `index`-th tensor or symbolic number in a template."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Call:
    """A call ready to be recorded.

    `kind` and `target` are those of the FX node, `function` is what is run on fake tensors; `swap` exchanges the two
    arguments of the node (reflected operators). `key` identifies the call together with its operands' metadata, and is
    None where these do not tell everything. One that `acts` is performed even if nothing of its result is used; the
    arguments of one that is `exact` are of the very types that the program has given.
    """

    __slots__ = (
        *("acts", "args", "composed", "exact", "function", "generator", "key", "kind", "kwargs"),
        *("metas", "only_raises", "only_shows", "operands", "reads_history", "swap", "target"),
    )

    def __init__(self, function: Function, kind: str, target: Function | str, swap: bool = False) -> None:
        self.function = function
        self.kind = kind
        self.target = target
        self.swap = swap
        self.acts = False
        #: all that it does besides computing is to raise
        self.only_raises = False
        #: all that it does besides computing is to show what there is, as `print` does: it may happen twice
        self.only_shows = False
        #: it goes through what autograd has recorded of its operands, and uses it up
        self.reads_history = False
        self.exact = True
        #: an operand that no graph has (see `stator.pytorch.composed`): it says what the operation is
        self.composed: Any = None
        #: the random generator that it is given to draw from
        self.generator: Value | None = None
        self.args: Args = ()
        self.kwargs: Kwargs = {}
        self.operands: list[Value] = []
        self.metas: list[OperandMeta] = []
        self.key: tuple[object, object, object] | None = None

    def node_args(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of the FX node."""
        nodes = [operand.node for operand in self.operands]  # type: ignore[attr-defined]
        args = fill(self.args, nodes)
        return (args[1], args[0]) if self.swap else args, fill(self.kwargs, nodes)


def fill(template: Nested, items: Sequence[object]) -> Nested:
    """The template with the operands replaced by the items."""
    kind = type(template)
    if kind is Operand:
        return items[template.index]
    if kind is tuple:
        return tuple([fill(part, items) for part in template])
    if kind is list:
        return [fill(part, items) for part in template]
    if kind is dict:
        return {key: fill(part, items) for key, part in template.items()}
    if kind is slice:
        return slice(fill(template.start, items), fill(template.stop, items), fill(template.step, items))
    return template


#: Python's types of numbers, where torch takes a type of elements
_DTYPES: dict[type, torch.dtype] = {bool: torch.bool, int: torch.int64, float: torch.float64}


class Lowering:
    """Makes the templates of one call, and its key."""

    def __init__(self, space: Space, call: Call) -> None:
        self.space = space
        self.call = call
        self.memorable = True
        self.seen: dict[int, int] = {}

    def value(self, value: Value) -> tuple[Nested, object]:
        """(template, key) of one argument."""
        if value.lazy:
            value = value.force()
        kind = type(value)
        if value.constant:
            return self.host(value.host)
        if isinstance(value, TensorValue) or value.symbolic:
            return self.operand(value)
        if is_sequence(value):
            return self.sequence(value)
        if kind is MODELS[slice]:
            parts = [self.value(p) for p in value.members]  # type: ignore[attr-defined]
            return slice(*[t for t, _ in parts]), ("slice", *[k for _, k in parts])
        if isinstance(value, MODELS[dict]):
            return self.mapping(value)
        stand_in = STAND_INS.get(kind)
        number = None if stand_in is None or self.minds(value.cls) else stand_in(self.space, value)
        if number is not None:
            return self.value(number)
        try:
            return self.host(value.as_host(self.space))
        except NotKnown:
            raise self.refuse(value.describe()) from None

    def named(self, name: str, value: Value) -> tuple[Nested, object]:
        """(template, key) of one argument by keyword: `dtype=int` is a name for torch's type of such elements."""
        found = next((d for cls, d in _DTYPES.items() if name == "dtype" and self.space.known(value) is cls), None)
        return self.value(value) if found is None else self.host(found)

    def operand(self, value: Host) -> tuple[Nested, object]:
        index = self.seen.get(id(value))
        if index is None:
            index = self.seen[id(value)] = len(self.call.operands)
            self.call.operands.append(value)
            meta = getattr(value, "meta", None)
            self.call.metas.append(meta)
            if meta is None:
                self.memorable = False
                self.call.composed = getattr(value, "composition", None) or self.call.composed
        return Operand(index), (Operand, index)

    def sequence(self, value: Host) -> tuple[Nested, object]:
        parts = [self.value(item) for item in self.space.unpack(value)]
        kind = list if value.isa(list) else tuple
        self.call.exact &= value.cls is kind
        return kind([t for t, _ in parts]), (kind, *[k for _, k in parts])

    def mapping(self, value: Host) -> tuple[Nested, object]:
        self.call.exact &= value.cls is dict
        try:
            items = value.str_items(self.space)
        except Raised:
            raise self.refuse("a dict whose keys are no strings") from None
        parts = {key: self.value(item) for key, item in items.items()}
        return {key: t for key, (t, _) in parts.items()}, (dict, *[(key, k) for key, (_, k) in parts.items()])

    def host(self, host: Host) -> tuple[Nested, object]:
        kind = type(host)
        if kind in _PLAIN:
            # 1, 1.0 and True are equal, and 0.0 equals -0.0
            return host, (kind, repr(host)) if kind is float or kind is complex else (kind, host)
        if isinstance(host, _ATOMS):
            return host, host
        if kind is _OLD_TYPE:
            return self.host(f"{host.__module__}.{host.__name__}")
        if isinstance(host, enum.Enum) and isinstance(host, (int, float, str)):
            return self.host(host.value)
        if kind is slice:
            parts = [self.host(p) for p in (host.start, host.stop, host.step)]
            return slice(*[t for t, _ in parts]), ("slice", *[k for _, k in parts])
        if kind is torch.Size or kind is tuple or kind is list:
            parts = [self.host(p) for p in host]
            base = list if kind is list else tuple
            return base([t for t, _ in parts]), (base, *[k for _, k in parts])
        if isinstance(host, range):
            return self.host(list(host))
        if isinstance(host, _NUMBERS):  # subclasses of numbers
            number: Number = next(n for n in (bool, int, float, complex) if isinstance(host, n))
            return self.host(number(host))
        if isinstance(host, str):
            return self.host(str.__str__(host))
        if kind in NUMBER_TYPES and not self.minds(kind):
            return self.host(NUMBER_TYPES[kind](host))
        raise self.refuse(f"an object of type {kind.__qualname__}")

    def minds(self, kind: type) -> bool:
        """Whether the function makes a difference between a number of this type and one of Python's."""
        function = self.call.function
        alike = issubclass(kind, _NUMBERS) or hasattr(kind, "__index__")
        return function in _MIND_ALL or (function in _MIND_FLOATS and not alike)

    def refuse(self, what: str) -> Unsupported:
        name = describe_callable(self.call.function)
        return Unsupported(errors.UnsupportedTensorOperation(name, f"{what} cannot be an argument in a graph"))


def _is_torchs(function: Function) -> bool:
    """Not an operator of another library, whose fake implementation may depend on more than metadata."""
    if isinstance(function, internals.OpOverload | internals.OpOverloadPacket):
        name = function.name() if isinstance(function, internals.OpOverload) else internals.qualified_name(function)
        return name.partition("::")[0] in ("aten", "prims")
    return True


def lower_call(space: Space, call: Call, args: list[Value], kwargs: dict[str, Value]) -> Call:
    """Fill in the arguments of a call."""
    lowering = Lowering(space, call)
    parts = [lowering.value(arg) for arg in args]
    generator = kwargs.get("generator")
    if generator is not None and issubclass(generator.force().cls, torch.Generator):
        call.generator = generator.force()
        kwargs = {name: arg for name, arg in kwargs.items() if name != "generator"}
    named = [(name, *lowering.named(name, arg)) for name, arg in kwargs.items()]
    call.args = tuple([template for template, _ in parts])
    call.kwargs = {name: template for name, template, _ in named}
    if lowering.memorable and _is_torchs(call.function):
        call.key = (
            tuple([key for _, key in parts]),
            tuple([(name, key) for name, _, key in named]),
            tuple(call.metas),
        )
    return call
