"""range: a constant where its ends are known, else a range whose ends are values."""

from __future__ import annotations

from typing import ClassVar

from stator.guards.guard import Equals
from stator.guards.source import CallSource, Source
from stator.models.containers.sequence import too_long
from stator.models.iterators.iterator import IteratorValue, iterator_type, reduction
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import host_errors
from stator.space.protocol import FALSE, NOT_IMPLEMENTED, TRUE, builtin, models
from stator.space.space import Space
from stator.space.value import Constant, Value

__all__ = ["RangeIterator", "RangeValue"]

_ONE, _ZERO = Constant(1), Constant(0)
#: of ranges that go further CPython has iterators of another type
_LONG = 1 << 62


@models(range)
class RangeValue(Value):
    """A range one of whose ends is only known as a symbol; an operation that needs it makes it known."""

    __slots__ = ("parts",)

    def __init__(self, start: Value, stop: Value, step: Value) -> None:
        self.cls = range
        self.source = None
        self.parts = {"start": start, "stop": stop, "step": step}

    @classmethod
    def from_host(cls, space: Space, host: range, source: Source) -> Value:
        """An existing one is a constant."""
        if not source.is_constant:
            space.trace.guard(Equals(source, host))
        return Constant(host, source)

    @staticmethod
    def tp_new(space: Space, cls: Value, first: Value, second: Value | None = None, third: Value = _ONE, /) -> Value:
        ends = (_ZERO, first) if second is None else (first, second)
        start, stop, step = (space.index(part) for part in (*ends, third))
        if space.truth(space.compare("==", step, _ZERO)):
            raise space.error(ValueError, "range() arg 3 must not be zero")
        if start.symbolic or stop.symbolic or step.symbolic:
            return RangeValue(start, stop, step)
        return space.run_known(range, [start, stop, step])

    def get_field(self, space: Space, name: str) -> Value | None:
        return self.parts.get(name)

    def concrete(self, space: Space) -> range:
        """The host range, its symbols decided."""
        return range(*(int(space.decide(part)) for part in self.parts.values()))

    def is_at_hand(self) -> bool:
        """Whether its ends and its step are known in this call, and small."""
        nows = [part.host if part.constant else part.number_now() for part in self.parts.values()]
        return all(now is not None and -_LONG < now < _LONG for now in nows)

    def number(self, space: Space, index: int) -> Value | None:
        """The number at an index, which is asked for by itself; None past the end."""
        start, stop, step = self.parts.values()
        number = space.binary("+", start, space.binary("*", step, Constant(index))) if index else start
        up = space.truth(space.compare(">", step, _ZERO))
        return number if space.truth(space.compare("<" if up else ">", number, stop)) else None

    def reconstruct(self, writer: Writer) -> str:
        parts = ", ".join(writer.expr(part) for part in self.parts.values())
        return writer.assign("range", f"{writer.const(range)}({parts})")


def _concrete(space: Space, value: Value) -> Value:
    value = value.force()
    return Constant(value.concrete(space)) if isinstance(value, RangeValue) else value


def _model(host: Host) -> None:
    """The model of a method of range: CPython's own, on the range once its ends are decided."""

    @builtin(host)
    def method(space: Space, value: Value, /, *args: Value) -> Value:
        own = _concrete(space, value)
        others = [_concrete(space, arg) for arg in args]
        if host in _SEARCHES and len(others) == 1 and not others[0].constant:
            return _searched(space, host, own.as_host(space), others[0])
        if host in _COMPARISONS and len(others) == 1 and others[0].cls is not range:
            return NOT_IMPLEMENTED
        return space.unmodelled(host, [own, *others], {})


def _searched(space: Space, host: Host, numbers: range, wanted: Value) -> Value:
    """Look for something that is no known int: item by item, as CPython does."""
    if wanted.symbolic:
        return space.unmodelled(host, [Constant(numbers), Constant(space.int_(wanted))], {})
    too_long(len(numbers))
    count = 0
    for index, number in enumerate(numbers):
        if space.equal(Constant(number), wanted):
            if host is not range.count:
                return TRUE if host is range.__contains__ else Constant(index)
            count += 1
    if host is range.index:
        raise space.error(ValueError, "sequence.index(x): x not in sequence")
    return FALSE if host is range.__contains__ else Constant(count)


_SEARCHES = (range.__contains__, range.index, range.count)
_COMPARISONS = (range.__eq__, range.__ne__)
_OTHERS = ("__len__", "__bool__", "__hash__", "__getitem__", "__repr__")
for _host in (*_SEARCHES, *_COMPARISONS, *(range.__dict__[name] for name in _OTHERS)):
    _model(_host)


@builtin(range.__iter__)
def range_iter(space: Space, value: Value, /) -> Value:
    value = value.force()
    if isinstance(value, RangeValue) and value.is_at_hand():
        return OpenRangeIterator.of(_ITERATOR, whole=value, index=0, opened=False)
    return RangeIterator(_concrete(space, value).as_host(space))


@builtin(range.__reversed__)
def range_reversed(space: Space, value: Value, /) -> Value:
    return RangeIterator(_concrete(space, value).as_host(space)[::-1])


# -- iterators --------------------------------------------------------------------------------------------------------


def rest_of(iterator: Host) -> range:
    """What a range iterator has still to give."""
    reduced = iterator.__reduce__()
    numbers: range = reduced[1][0]
    return numbers[reduced[2] :] if len(reduced) > 2 and reduced[2] else numbers


def first_of(iterator: Host) -> int:
    """The number that a range iterator gives next."""
    return rest_of(iterator)[0]


def is_at_end(iterator: Host) -> bool:
    """Whether a range iterator has nothing to give."""
    return not rest_of(iterator)


def _length(numbers: range) -> int:
    """`len(numbers)`, of however many."""
    span, step = numbers.stop - numbers.start, numbers.step
    return max(-(-span // step), 0)


_ITERATOR = type(iter(range(0)))


@iterator_type(_ITERATOR, type(iter(range(1 << 70))))
class RangeIterator(IteratorValue):
    """An iterator over a range."""

    __slots__ = ("index", "numbers")
    moves_alone: ClassVar[bool] = True

    def __init__(self, numbers: range, cls: type | None = None) -> None:
        super().__init__(cls or type(iter(numbers)))
        self.numbers = numbers
        self.index = 0

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> Value:
        """The result of a real computation."""
        return cls(rest_of(host), type(host))

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> RangeIterator:
        self = super().from_host(space, host, source)
        self.index = 0
        return self

    def peek(self, space: Space) -> Value | None:
        """The number may be one that varies."""
        if self.index or self.source is None or not rest_of(self.host):
            return None
        self.index = 1
        return self.give_first(space, rest_of, first_of)

    def ends(self, space: Space) -> bool:
        if self.index or not is_at_end(self.host) or not self.note_end(space, is_at_end):
            return False
        self.index, self.opened = 1, False  # who asks for more than its end is told where it stands
        return True

    def look_into(self, space: Space) -> None:
        assert self.source is not None
        self.numbers = rest_of(self.host)
        space.trace.guard(Equals(CallSource(rest_of, self.source, "rest_of"), self.numbers))

    def produce(self, space: Space) -> Value | None:
        try:
            number = self.numbers[self.index]  # len() would overflow on a long range
        except IndexError:
            return None
        space.mark_mutated(self)
        self.index += 1
        self.steps += 1
        return Constant(number)

    def left(self, space: Space) -> int:
        return _length(self.numbers) - self.index

    def restore(self, space: Space, state: Value) -> None:
        """Set the position: from the first number on in 3.11, from the present one on later."""
        self.open(space)
        if self.source is not None or type(iter(self.numbers)) is not self.cls:
            raise self.without_state()
        host, position = self._host(), space.sample(state)
        with host_errors(space, Exception):
            host.__setstate__(position)
        if type(position) not in (int, bool):
            raise self.without_state()
        made = host.__reduce__()
        self.numbers, self.index = made[1][0], made[2] or 0

    def _host(self) -> Host:
        host: Host = iter(self.numbers)
        host.__setstate__(self.index)
        return host

    def reduced(self, space: Space) -> Value:
        made = self._host().__reduce__()
        return reduction(space, iter, [space.fresh(made[1][0])], *map(space.fresh, made[2:]))

    def rebuilt(self, writer: Writer) -> str:
        name = writer.assign("numbers", f"{writer.const(iter)}({self.numbers!r})")
        if self.index:
            writer.line(f"{name}.__setstate__({self.index})")
        return name


class OpenRangeIterator(RangeIterator):
    """An iterator over a range whose ends are symbols: a loop that breaks in an early round needs not know the last.

    Nor does one in steps (`range(0, n, 64)`), of which only the number of rounds is to be what it was.
    """

    __slots__ = ("whole",)
    whole: RangeValue

    def _first(self, space: Space) -> tuple[Value | None, bool]:
        if self.opened or self.index == self._alone():
            self.open(space)
            return None, False
        number = self.whole.number(space, self.index)
        self.index += number is not None
        return number, True

    def _alone(self) -> int:
        """How many rounds are asked for one by one: by a step of one, the last tells as much as the end."""
        step = self.whole.parts["step"]
        return 3 if step.constant and step.host in (1, -1) else 64

    def look_into(self, space: Space) -> None:
        self.numbers = self.whole.concrete(space)

    def rebuilt(self, writer: Writer) -> str:
        if self.opened:
            return super().rebuilt(writer)
        name = writer.assign("numbers", f"{writer.const(iter)}({writer.expr(self.whole)})")
        writer.line(f"{name}.__setstate__({self.index})")
        return name
