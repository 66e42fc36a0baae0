"""What a program says of the sizes of all its inputs: `stator.compile(f, dynamic_shapes={"x": ["batch", None]})`.

Each parameter has what it holds: for a tensor its sizes, for an int a size, for a list, a dict or an object what is in
it. A size is a variable, a number that it always is, what is computed of variables, or None: found as it is. What
nothing is said of is None. Variables are names, or those of `torch.fx.experimental.dynamic_spec`; one that stands in
several places is one number.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from stator import errors
from stator.guards.raw import present_dict
from stator.guards.source import (
    AttrSource,
    DictItemSource,
    FieldSource,
    GetAttrSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    SizeSource,
    Source,
    field_names,
)
from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of, is_symbol, number_of
from stator.pytorch.shapes.named_sources import parameter_of

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.pytorch.types import Host, Number
    from stator.space.interfaces import Trace

__all__ = [
    "InputSizes",
    "Relations",
    "Variable",
    "input_sizes",
    "said_of",
    "sizes_now",
    "variables",
    "varies",
    "varying_sizes",
]


_TENSORS = (torch.Tensor, torch.nn.Parameter)
#: the flags of functions that have such parameters, and what stands for them
_STARS = {inspect.CO_VARARGS: "*args", inspect.CO_VARKEYWORDS: "**kwargs"}


class Variable(NamedTuple):
    """A size that varies.

    Attributes:
        key: what tells it from others: its name, or an object of torch's.
        name: what messages call it.
        min: the least that it is; None for an int, which may be anything.
        max: the most that it is.
    """

    key: object
    name: str
    min: int | None = None
    max: int | None = None

    def __str__(self) -> str:
        least = f", {self.min} at least" if self.min else ""
        return f"{self.name}{least}{'' if self.max is None else f', {self.max} at most'}"


class InputSizes:
    """What has been said of a function's parameters.

    Attributes:
        parameters: what they hold, by their names; `*args` and `**kwargs` by these.
        assumptions: conditions over torch's variables, which hold.
    """

    def __init__(self, parameters: Mapping[str, Any], assumptions: Sequence[torch.SymBool] = ()) -> None:
        self.parameters = {name: _entry(given, name) for name, given in parameters.items()}
        self.assumptions = list(assumptions)


def input_sizes(model: Any, given: object) -> InputSizes | None:
    """What has been said of the inputs of a function or module, by a keyword or by torch's decorator; None: nothing.

    Raises:
        ValueError: both ways, or of a parameter that the function does not have.
        TypeError: it is no dict, nor what torch has for it.
    """
    if isinstance(given, InputSizes):
        return given  # by another compile() call, which has read both
    function = getattr(model, "forward", model)
    attached = getattr(function, "_dynamic_spec", None)
    if attached is not None and given is not None:
        text = (
            "Both `@dynamic_spec(...)` is attached to the function/forward AND a `dynamic_shapes=` argument was passed."
        )
        raise ValueError(f"{text} Provide only one.")
    sizes = _read(attached if given is None else given)
    function = getattr(function, "__func__", function)
    if sizes is not None and isinstance(function, FunctionType):
        sizes.parameters = _as_passed(function, sizes.parameters)
    return sizes


def _as_passed(function: FunctionType, said: dict[str, Any]) -> dict[str, Any]:
    """What is said of parameters, where the function has them: those of one under `@torch.no_grad()` are what its
    decorator takes as `*args` and `**kwargs`."""
    unknown = [name for name in said if name not in (*_names(function.__code__), *_STARS.values())]
    if not unknown:
        return said
    wrapped, own = inspect.unwrap(function), function.__code__
    names = _names(wrapped.__code__) if isinstance(wrapped, FunctionType) else []
    by_place = dict(enumerate(names[: wrapped.__code__.co_argcount], -own.co_argcount)) if names else {}
    takes_rest, takes_more = bool(own.co_flags & inspect.CO_VARARGS), bool(own.co_flags & inspect.CO_VARKEYWORDS)
    if not takes_more or (names and not set(names).issuperset(unknown)):
        missing = next(name for name in unknown if name not in names)
        has = ", ".join(names or _names(own)) or "none"
        raise ValueError(f"dynamic_shapes: {wrapped.__qualname__} has no parameter {missing!r}; it has {has}")
    kept = {name: entry for name, entry in said.items() if name not in unknown}
    places = {place: said[name] for place, name in by_place.items() if name in unknown and place >= 0}
    if takes_rest and places:
        kept["*args"] = {**places, **kept.get("*args", {})}
    kept["**kwargs"] = {**{name: said[name] for name in unknown}, **kept.get("**kwargs", {})}
    return kept


def _names(code: CodeType) -> list[str]:
    """The names of a function's parameters, those first that are passed by position."""
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def _read(given: Any) -> InputSizes | None:
    if given is None:
        return None
    if isinstance(given, Mapping):
        return InputSizes(given)
    specs = internals.dynamic_spec
    if isinstance(given, specs.ShapesSpec):
        return InputSizes(_parameters(getattr(given, internals.SAID_OF_ALL)), getattr(given, "assumptions", ()))
    if isinstance(given, specs.ParamsSpec):
        return InputSizes(_parameters(given))
    raise TypeError(f"dynamic spec expects a dict, ShapesSpec, or ParamsSpec, got {type(given).__name__}")


def _parameters(spec: Any) -> dict[str, Any]:
    if spec is None:
        return {}
    named, *others = (getattr(spec, name) for name in internals.SAID_OF_PARAMETERS)
    rest = zip(("*args", "**kwargs"), others, strict=True)
    return {**named, **{name: held for name, held in rest if held is not None}}


def _entry(given: Any, where: str) -> Any:
    """A variable, a number, a condition of torch's, None; or a dict of what is in something, by place, key or name."""
    if given is None or type(given) is int:
        return given
    if type(given) is str:
        return Variable(given, given)
    if isinstance(given, torch.SymInt):
        is_variable = isinstance(given, internals.dynamic_spec.IntVar)
        return Variable(given, given.name, given.min, given.max) if is_variable else given
    items = _items(given)
    if items is None:
        kinds = "a name, an int, None, or a list or dict of such"
        raise TypeError(f"dynamic_shapes: what is said of {where} is {given!r}; it should be {kinds}")
    return {key: _entry(item, f"{where}[{key!r}]") for key, item in items}


def _items(given: Any) -> Iterator[tuple[Any, Any]] | None:
    if isinstance(given, Mapping):
        return iter(given.items())
    if isinstance(given, list | tuple):
        return iter(enumerate(given))
    specs = internals.dynamic_spec
    if isinstance(given, specs.TensorSpec):
        return enumerate(given)
    if isinstance(given, specs.SeqSpec):
        return enumerate(given._entries)
    return given.items() if isinstance(given, specs.DictSpec | specs.ObjectSpec) else None


# -- what is said of a source ------------------------------------------------------------------------------------------


def said_of(trace: Trace, source: Source) -> tuple[Any] | None:
    """What is said of an input, in a tuple; None where nothing is said of any, as in code behind a break."""
    sizes = trace.dynamic
    if not isinstance(sizes, InputSizes) or trace.root.code is not trace.compile_region.root:
        return None
    return (_find(trace, sizes.parameters, source),)


def _find(trace: Trace, parameters: dict[str, Any], source: Source) -> Any:
    name = parameter_of(trace, source)
    if name is not None:
        return parameters.get(_starred(trace.root.code, source, name))
    base = source.base
    if isinstance(source, DictItemSource) and isinstance(base, InstanceDictSource):
        base = base.base  # an attribute
    held = None if base is None else _find(trace, parameters, base)
    if not isinstance(held, dict):
        return None
    if isinstance(source, FieldSource) and source.name in held:
        return held[source.name]
    if isinstance(source, ItemSource | SizeSource):
        return held.get(source.index)
    if isinstance(source, DictItemSource):
        return held.get(source.key)
    return held.get(source.name) if isinstance(source, GetAttrSource | AttrSource) else None


def _starred(code: CodeType, source: Source, name: str) -> str:
    """What stands for `*args` and `**kwargs` of the function; a name for any other parameter."""
    names = [*_names(code), *(stars for flag, stars in _STARS.items() if code.co_flags & flag)]
    return names[source.index] if isinstance(source, LocalSource) and source.index < len(names) else name


def varying_sizes(trace: Trace, source: Source, tensor: torch.Tensor) -> dict[int, bool] | None:
    """Whether each size of a tensor is said to vary; None where nothing is said of any input.

    Raises:
        ConstraintViolationError: it has no such sizes.
    """
    said = said_of(trace, source)
    if said is None:
        return None
    held, rank = _held(said), tensor.dim()
    unknown = next((dim for dim in held if dim not in range(rank)), None)
    if unknown is not None:
        text = f"dynamic_shapes says something of dimension {unknown} of `{source.expr()}`, which has {rank}"
        raise errors.ConstraintViolationError(text)
    return {dim: varies(held.get(dim), tensor.size(dim), SizeSource(source, dim)) for dim in range(rank)}


def variables(trace: Trace, source: Source) -> dict[int, Variable]:
    """The sizes of a tensor that are said to be variables."""
    held = _held(said_of(trace, source))
    return {dim: entry for dim, entry in held.items() if isinstance(entry, Variable)}


def _held(said: tuple[Any] | None) -> dict[Any, Any]:
    """What is said of the sizes of a tensor, or of what else is in something."""
    return said[0] if said is not None and isinstance(said[0], dict) else {}


def varies(entry: Any, number: int, source: Source) -> bool:
    """Whether a size, or an int, is said to vary.

    Raises:
        ConstraintViolationError: it is said to be another.
    """
    least, most = (entry.min, entry.max) if isinstance(entry, Variable) else (entry, entry)
    if (type(least) is int and number < least) or (type(most) is int and number > most):
        raise _violation(source, number, entry)
    return isinstance(entry, Variable | torch.SymInt)


def sizes_now(trace: Trace) -> set[int]:
    """What the sizes are in this call that are said to vary, read or not: they are met again behind a graph break,
    where nothing is said of any. All that it decides is what is a symbol there."""
    sizes, root = trace.dynamic, trace.root
    if not isinstance(sizes, InputSizes) or root.code is not trace.compile_region.root:
        return set()
    found: set[int] = set()
    for index, (name, host) in enumerate(zip(root.code.co_varnames, root.args, strict=False)):
        found |= _varying_in(sizes.parameters.get(_starred(root.code, LocalSource(index, name), name)), host)
    return found


def _varying_in(said: Any, host: Host) -> set[int]:
    if not isinstance(said, dict):
        return set()
    if type(host) in _TENSORS:
        varying = [dim for dim, entry in said.items() if isinstance(entry, Variable | torch.SymInt)]
        return {host.size(dim) for dim in varying if dim in range(host.dim())}
    parts = _parts(host)
    return set[int]().union(*(_varying_in(entry, parts[key]) for key, entry in said.items() if key in parts))


def _parts(host: Host) -> Mapping[Any, Host]:
    """What is in an object, by place, key or name; nothing of the program's is called."""
    if type(host) is dict:
        return host
    if isinstance(host, tuple | list):
        items = list(tuple.__iter__(host) if isinstance(host, tuple) else list.__iter__(host))
        return {**dict(enumerate(items)), **dict(zip(field_names(type(host)), items, strict=False))}
    return present_dict(host) or {}


def _violation(source: Source, number: Number, said: object) -> Exception:
    now = hint_of(number) if is_symbol(number) else number
    return errors.ConstraintViolationError(f"`{source.expr()}` is said to be {said}, and is {now}")


# -- what holds between them -------------------------------------------------------------------------------------------


class Relations:
    """The variables that one trace has met, and what is said to hold between them: it becomes guards."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._found: dict[object, tuple[Number, Source]] = {}
        self._computed: list[tuple[torch.SymInt, Number, Source]] = []

    def note(self, number: Number, source: Source) -> None:
        """A symbol is what has been said of its source.

        Raises:
            ConstraintViolationError: it is not.
        """
        entry = (said_of(self._trace, source) or (None,))[0]
        if isinstance(entry, Variable):
            first, where = self._found.setdefault(entry.key, (number, source))
            if not number == first:
                raise _violation(source, number, f"{entry.name}, as `{where.expr()}`, which is {hint_of(first)}")
        elif isinstance(entry, torch.SymInt):
            self._computed.append((entry, number, source))

    def confirm(self, env: ShapeEnv) -> None:
        """All inputs have been met: what is said of several holds."""
        if not self._found:
            return
        for entry, number, source in self._computed:
            computed = self._over_found(entry.node.expr)
            if computed is not None and not number == number_of(env, computed):
                raise _violation(source, number, entry)
        for assumption in self._trace.dynamic.assumptions:
            condition = self._over_found(assumption.node.expr)
            if condition is not None and not env.evaluate_expr(condition):
                raise errors.ConstraintViolationError(f"dynamic_shapes assumes {assumption}, which does not hold")

    def _over_found(self, expression: Any) -> Any:
        """An expression of torch's variables, of the sizes that they are; None where one has not been met."""
        torchs = {key: found for key, (found, _) in self._found.items() if isinstance(key, torch.SymInt)}
        numbers = {key.sympy_sym: found.node.expr for key, found in torchs.items()}
        return expression.xreplace(numbers) if expression.free_symbols <= numbers.keys() else None
