"""Which sizes and numbers become symbolic: static first, dynamic once seen to vary, and as the user has marked."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from stator import errors
from stator.guards.guard import TypeIs
from stator.guards.source import DictItemSource, GetAttrSource, ItemSource, LocalSource, Source
from stator.pytorch import internals
from stator.pytorch.shapes import marks
from stator.pytorch.shapes.input_sizes import said_of, sizes_now, varies, varying_sizes
from stator.pytorch.shapes.named_sources import is_told_of, told_dynamic
from stator.pytorch.tensors.classes import inner_tensors, is_wrapper, may_have_symbols
from stator.pytorch.traced import Dims
from stator.space.facts import CHANGING, stays
from stator.space.signals import Restart

if TYPE_CHECKING:
    from types import CodeType

    import torch.fx

    from stator.pytorch.traced import TracedTensor
    from stator.pytorch.types import Host
    from stator.space.interfaces import Trace
    from stator.space.value import Value

__all__ = ["contents_stay", "dims", "literal", "note_first_call", "outcome_stays"]

_VARIES = "varies"
_SIZES = "sizes that vary"
_PAST_64_BITS = 1 << 63


_NONE = Dims({})


def dims(trace: Trace, value: TracedTensor) -> Dims:
    """What of an existing tensor is to be symbols."""
    if value.source is None or value.source.is_constant:
        return _NONE
    return _dims(trace, value.host, value.source)


def _dims(trace: Trace, tensor: torch.Tensor, source: Source, holder: torch.Tensor | None = None) -> Dims:
    if not is_wrapper(type(tensor)):
        if tensor.layout is not torch.strided or tensor.is_nested:
            return _NONE
        return _own_dims(trace, tensor, source, holder)
    if not may_have_symbols(tensor):
        return _NONE
    own = _own_dims(trace, tensor, source)
    if isinstance(tensor, torch.nn.Parameter) and not own:
        return _NONE  # the tensors in it are no Parameters
    parts = inner_tensors(tensor).items()
    found = [(name, _dims(trace, part, GetAttrSource(source, name), tensor)) for name, part in parts]
    base = _dims(trace, internals.base(tensor), GetAttrSource(source, "_base")) if internals.is_view(tensor) else None
    return Dims(own.sizes, own.strides, {name: dims for name, dims in found if dims}, base)


def _own_dims(trace: Trace, tensor: torch.Tensor, source: Source, holder: torch.Tensor | None = None) -> Dims:
    """The same, not of what is in it; marks on the wrapper that holds a tensor of as many dimensions are its own."""
    bearers = [tensor] if holder is None or holder.dim() != tensor.dim() else [tensor, holder]
    said = varying_sizes(trace, source if bearers[-1] is tensor else source.base, tensor)  # type: ignore[arg-type]
    told = said if said is not None else _told(trace, tensor, source) if is_told_of(trace) else {}
    kept = {dim for dim, dynamic in told.items() if not dynamic} | _numbers(trace, source)
    fixed = marks.dims(bearers, "_dynamo_static_indices") | kept
    unbacked = marks.dims(bearers, marks.UNBACKED)
    marked = marks.dims(bearers, *marks.ENFORCED) | unbacked
    marked |= (marks.dims(bearers, marks.HINT) | set(told)) - kept
    if isinstance(tensor, torch.nn.Parameter) and not marked:
        return _NONE
    varying, strides = _varying(trace, tensor, source)
    ragged = {dim for dim, size in enumerate(tensor.shape) if type(size) is not int}
    if not marked and not varying and not strides and not ragged and trace.dynamic is not True:
        return _NONE
    if trace.dynamic is False and not marked and not ragged:
        return _NONE
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    found: dict[int, object] = {}
    for dim in range(tensor.dim()):
        if dim in unbacked:
            found[dim] = DimDynamic.UNBACKED
        elif dim in ragged or dim in marked or (dim in varying and dim not in fixed):
            found[dim] = DimDynamic.DYNAMIC
        elif trace.dynamic is True and dim not in fixed:
            found[dim] = DimDynamic.DUCK
    return Dims(found, strides)


def _numbers(trace: Trace, source: Source) -> set[int]:
    """The dimensions whose sizes are to be numbers in all traces of the code (see `fixed_places`)."""
    return {dim for key, dim in fixed_places(trace) if key == source.expr()}


def _told(trace: Trace, tensor: torch.Tensor, source: Source) -> dict[int, bool]:
    """The dimensions of which the user has said by their source's name whether they are to be symbols."""
    by_value = not isinstance(tensor, torch.nn.Parameter)
    numbers = _numbers(trace, source)
    found = {
        dim: told_dynamic(trace, source, size, dim, by_value)
        for dim, size in enumerate(tensor.shape)
        if dim not in numbers
    }
    return {dim: dynamic for dim, dynamic in found.items() if dynamic is not None}


def _varying(trace: Trace, tensor: torch.Tensor, source: Source) -> tuple[set[int], frozenset[int]]:
    """The dimensions whose size, and those whose stride, was another in an earlier trace; remembers this one's."""
    if not trace.config.automatic_dynamic or trace.dynamic is False:
        return set(), frozenset()
    now, seen = Seen(tuple(tensor.shape), tensor.stride()), _seen_at(trace.region_state, source)
    before = seen.get(tensor.dim())
    seen[tensor.dim()] = now = now.first_met(trace) if before is None else now.after(before)
    kept = _numbers(trace, source)
    return set(now.other_sizes - kept), now.other_strides - kept


def note_sizes(trace: Trace, sizes: set[int]) -> None:
    """Remember what the sizes that vary are in this call, for the code that meets them next."""
    sizes = sizes | sizes_now(trace)
    if sizes:
        _last_sizes(trace).append(sizes)


def _last_sizes(trace: Trace) -> deque[set[int]]:
    """Those of the last traces: what is older is no longer of the same call, as a rule."""
    found: deque[set[int]] = trace.compile_region.pool.shared_state.setdefault(_SIZES, deque(maxlen=16))
    return found


def _seen_at(state: dict[object, Any], source: Source) -> dict[int, Seen]:
    """What tensors earlier traces have met there, by the number of their dimensions.

    Code that is resumed in several places finds several variables where it is given its arguments.
    """
    found: dict[int, Seen] = state.setdefault("tensors", {}).setdefault(source.expr(), {})
    return found


class Seen(NamedTuple):
    """The sizes and strides of a tensor in an earlier trace, and the dimensions in which any have been others."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    other_sizes: frozenset[int] = frozenset()
    other_strides: frozenset[int] = frozenset()

    def first_met(self, trace: Trace) -> Seen:
        """What is known of a tensor that the code meets for the first time: which dimensions are likely to vary.

        They have the number that a size which varies had in one of the last traces. Behind a graph break it is that
        size, as a rule (torch takes equal sizes for one symbol likewise); if not, there is a symbol for nothing.
        """
        varying = set().union(*_last_sizes(trace)) - {0, 1}
        return self._replace(other_sizes=frozenset(d for d, size in enumerate(self.sizes) if size in varying))

    def after(self, before: Seen) -> Seen:
        """What is known now that these are met, and what was known before."""
        every = range(len(self.sizes))
        sizes = before.other_sizes.union(d for d in every if self.sizes[d] != before.sizes[d])
        strides = before.other_strides.union(
            d
            for d in every
            if self.strides[d] != before.strides[d] and not self._inner(d).intersection(before._inner(d))
        )
        return self._replace(other_sizes=sizes, other_strides=strides)

    def _inner(self, dim: int) -> set[int]:
        """The dimensions that fill a step of this one, as each does in a contiguous tensor."""
        steps = [size * stride for size, stride in zip(self.sizes, self.strides, strict=True)]
        return {d for d, step in enumerate(steps) if d != dim and step == self.strides[dim]}


def note_first_call(state: dict[object, Any], code: CodeType, args: list[Host]) -> None:
    """Remember the sizes and numbers of a call that ran as ordinary Python, as those of a trace are."""
    for i, arg in enumerate(args):
        source = LocalSource(i, code.co_varnames[i])
        _note(state, source, arg)
        if type(arg) is tuple:
            for j, item in enumerate(arg):
                _note(state, ItemSource(source, j), item)


def _note(state: dict[object, Any], source: Source, host: Host) -> None:
    if issubclass(type(host), torch.Tensor) and host.layout is torch.strided and not host.is_nested:
        _seen_at(state, source)[host.dim()] = Seen(tuple(host.shape), host.stride())
    elif type(host) in (int, float):
        state.setdefault("numbers", {})[source.expr()] = host


def fixed_places(trace: Trace) -> set[tuple[str, int]]:
    """The dimensions, by their tensors' sources, that are to be numbers in all traces of the code."""
    found: set[tuple[str, int]] = trace.region_state.setdefault("fixed", set())
    return found


def fixed(trace: Trace, places: set[tuple[str, int]]) -> Restart:
    """The size and stride of these dimensions are to be numbers in all further traces: raised, it begins one."""
    fixed_places(trace).update(places)
    return Restart(0, errors.ForcedBreak(0))


def fixed_numbers(trace: Trace, places: list[str]) -> Restart:
    """Numbers, by their sources, are to be constants in all further traces of the code: raised, it begins one."""
    trace.region_state.setdefault("fixed numbers", set()).update(places)
    return Restart(0, errors.ForcedBreak(0))


def is_fixed(trace: Trace, source: Source) -> bool:
    """Whether a number is to be a constant in all traces of the code."""
    return source.expr() in trace.region_state.get("fixed numbers", ())


def contents_stay(trace: Trace, value: TracedTensor) -> bool:
    """Whether an existing tensor held the same numbers in all earlier traces of the same code."""
    assert value.source is not None
    return stays(trace, "contents", value.source.expr(), value.host.tolist())


def outcome_stays(trace: Trace, condition: str, outcome: Host) -> bool:
    """Whether what a condition gives is what it gave in all earlier traces of the same code."""
    return stays(trace, "outcomes", condition, outcome)


def number_varies(trace: Trace, host: int | float, source: Source) -> bool:
    """Whether a number read from the frame counts rounds, or was another in an earlier trace of the same code."""
    if source.is_constant:
        return False
    said = said_of(trace, source)
    if said is not None:
        return type(host) is int and varies(said[0], host, source) and not is_fixed(trace, source)
    told = told_dynamic(trace, source, host) if type(host) is int and is_told_of(trace) else None
    if told is not None:
        return told and not is_fixed(trace, source)
    if not trace.config.automatic_dynamic or trace.dynamic is False:
        return False
    if trace.config.specialize_float if type(host) is float else trace.config.specialize_int:
        return False
    seen = trace.region_state.setdefault("numbers", {})
    key = source.expr()
    given = trace.dynamic is True and type(host) is int and _is_given(source)
    if given or key in trace.region_state.get(CHANGING, ()):
        seen[key] = _VARIES
    before = seen.setdefault(key, host)
    if before is not _VARIES and (type(before) is not type(host) or before != host):
        seen[key] = before = _VARIES
    return before is _VARIES and not is_fixed(trace, source)


def _is_given(source: Source) -> bool:
    """Whether it is an argument, or an item of a container that is one."""
    while isinstance(source, ItemSource | DictItemSource):
        source = source.base
    return isinstance(source, LocalSource)


def note_number(state: dict[object, Any], source: Source, number: Host) -> bool:
    """Remember a number that will be found there; whether another has been, which was a constant."""
    seen = state.get("numbers", {})
    before = seen.get(source.expr(), _VARIES)
    if before is _VARIES or type(number) is not type(before) or number == before:
        return False
    seen[source.expr()] = _VARIES
    return True


def note_tensor(state: dict[object, Any], source: Source, sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Remember the sizes of a tensor that will be found there; whether some have been others, and were constants."""
    seen = _seen_at(state, source)
    before = seen.get(len(sizes))
    if before is None:
        return False
    now = Seen(sizes, strides).after(before)
    seen[len(sizes)] = Seen(before.sizes, before.strides, now.other_sizes, now.other_strides)
    return any(before.sizes[dim] not in (0, 1) for dim in now.other_sizes - before.other_sizes)


def note_assigned(trace: Trace) -> None:
    """Remember where the program assigns: a number that it reads there in a later trace varies, as a counter does."""
    seen = trace.region_state.setdefault("numbers", {})
    seen.update((source.expr(), _VARIES) for source in trace.effects.assigned)


def literal(trace: Trace, host: Host, source: Source) -> Value | None:
    """A number read from the frame that has varied (protocol.LITERAL_HOOKS)."""
    if type(host) not in (int, float) or trace.recorder is None or trace.recorder.shapes.reads_constants:
        return None
    if not number_varies(trace, host, source) or not math.isfinite(host):
        return None
    if type(host) is int and not -_PAST_64_BITS <= host < _PAST_64_BITS:
        return None  # operations refuse it
    trace.guard(TypeIs(source, type(host)))
    known = trace.recorder.shapes.numbers.get(source)
    if known is None:
        known = trace.recorder.shapes.numbers[source] = trace.recorder.shapes.number(host, source)
    return known
