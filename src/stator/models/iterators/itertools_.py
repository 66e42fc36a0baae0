"""itertools: iterators over iterators. Those with a function are in `itertools_functions`, those that hold a pool
of items in `combinatorics`."""

from __future__ import annotations

import itertools
import types
import warnings
from typing import TYPE_CHECKING, Any

from stator.host.version_facts import ITERTOOLS_ARE_COPIED, ITERTOOLS_COPIES_WARN
from stator.models.containers.sequence import MAXSIZE
from stator.models.iterators.builtins_iter import own_class
from stator.models.iterators.iterator import IteratorValue, advance, advanced, iterator_type, reduction, state_number
from stator.space.deferred import concatenated
from stator.space.operands import refuse
from stator.space.protocol import NONE, TRUE, builtin
from stator.space.recursion import repr_piece
from stator.space.value import Constant, Raised, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["ItertoolsIterator", "is_none"]

_ONE = Constant(1)
_ZERO = Constant(0)


def is_none(value: Value) -> bool:
    """Whether the value is None."""
    value = value.force()
    return type(value) is Constant and value.host is None


def quietly(function: Any, *args: Any) -> Any:
    """Call what 3.12 deprecates, for the program, which has heard of that already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return _called_elsewhere(function, *args)


#: a warning is noted in the globals of whoever calls: not in those of a module, which the program may look at
_called_elsewhere = types.FunctionType((lambda function, *args: function(*args)).__code__, {"__name__": "stator.quiet"})


class ItertoolsIterator(IteratorValue):
    """What the types of itertools have in common."""

    __slots__ = ()

    def warn_of_copies(self, space: Space) -> None:
        if ITERTOOLS_COPIES_WARN:
            words = "Pickle, copy, and deepcopy support will be removed from itertools in Python 3.14."
            space.warn(DeprecationWarning, words)


# -- without end ------------------------------------------------------------------------------------------------------


@iterator_type(itertools.count)
class Count(ItertoolsIterator):
    """`count(start, step)`."""

    __slots__ = ("number", "step")

    number: Value
    step: Value

    @staticmethod
    def tp_new(space: Space, cls: Value, start: Value = _ZERO, step: Value = _ONE) -> Value:
        for number in (start.force(), step.force()):
            if not any(space.special(number, name) for name in ("__index__", "__float__", "__int__", "__complex__")):
                raise space.error(TypeError, "a number is required")
        self = Count(own_class(space, cls))
        self.number, self.step = start, step
        return self

    def produce(self, space: Space) -> Value | None:
        number = self.number
        following = space.binary("+", number, self.step)
        space.mark_mutated(self)
        self.number = following
        return number

    def tp_repr(self, space: Space) -> Value:
        if self.source is not None:
            self.open(space)
        step = space.known(self.step)
        end = () if type(step) is int and step == 1 else (", ", repr_piece(space, self.step))
        return concatenated(f"{space.class_name(self.cls)}(", repr_piece(space, self.number), *end, ")")

    def reduced(self, space: Space) -> Value:
        step = space.known(self.step)
        quick = type(step) is int and step == 1 and isinstance(space.known(self.number), int)
        return reduction(space, self.cls, [self.number] if quick else [self.number, self.step])

    def made(self, writer: Writer) -> str:
        return f"{self.begin_call(writer)}{writer.expr(self.number)}, {writer.expr(self.step)})"


@iterator_type(itertools.repeat)
class Repeat(ItertoolsIterator):
    """`repeat(object, times)`; `left` is None without end."""

    __slots__ = ("left", "object")

    left: int | None
    object: Value

    @staticmethod
    def tp_new(space: Space, cls: Value, object: Value, times: Value | None = None) -> Value:
        self = Repeat(own_class(space, cls))
        self.object = object
        self.left = None if times is None else max(space.int_(times), 0)
        return self

    def produce(self, space: Space) -> Value | None:
        if self.left is not None:
            if self.left == 0:
                return None
            space.mark_mutated(self)
            self.left -= 1
        return self.object

    def tp_repr(self, space: Space) -> Value:
        if self.source is not None:
            self.open(space)
        end = "" if self.left is None else f", {self.left}"
        pieces = [Constant(f"{space.class_name(self.cls)}("), space.repr(self.object), Constant(f"{end})")]
        return space.join_strings(pieces)

    def tp_length_hint(self, space: Space) -> Value:
        if self.source is not None:
            self.open(space)
        if self.left is None:
            raise space.error(TypeError, "len() of unsized object")
        return Constant(self.left)

    def reduced(self, space: Space) -> Value:
        return reduction(space, self.cls, [self.object] if self.left is None else [self.object, Constant(self.left)])

    def made(self, writer: Writer) -> str:
        end = "" if self.left is None else f", {self.left}"
        return f"{self.begin_call(writer)}{writer.expr(self.object)}{end})"


def resumed_cycle(cls: Any, iterator: Any, saved: Any, index: int | None, repeated: bool) -> Any:
    """A `cycle` in the middle of its work, for generated code."""
    if not ITERTOOLS_ARE_COPIED:
        made = itertools.cycle.__new__(cls, saved if index is not None else itertools.chain(saved, iterator))
        advance(made, len(saved) + (index or 0))
        return made
    if index is not None:
        iterator, repeated = iter(saved), True
        advance(iterator, index)
    made = itertools.cycle.__new__(cls, iterator)
    quietly(vars(itertools.cycle)["__setstate__"], made, (saved, int(repeated)))
    return made


@iterator_type(itertools.cycle)
class Cycle(ItertoolsIterator):
    """`cycle(iterable)`; `iterator` is None once the first pass is over."""

    __slots__ = ("index", "iterator", "repeated", "saved")

    index: int
    iterator: Value | None
    #: whether the items of the iterator are saved already
    repeated: bool
    #: a list, which `__reduce__` shows to the program
    saved: Any

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, /) -> Value:
        self = Cycle(own_class(space, cls))
        self.iterator = space.iter(iterable)
        self.saved = space.new_list([])
        self.repeated = False
        self.index = 0
        return self

    def produce(self, space: Space) -> Value | None:
        if self.iterator is not None:
            item = space.next(self.iterator)
            space.mark_mutated(self)
            if item is not None:
                if not self.repeated:
                    space.call_builtin(list.append, [self.saved, item], {})
                return item
            self.iterator = None
        item = self.saved.item(self.index)
        if item is None:
            return None
        space.mark_mutated(self)
        self.index = (self.index + 1) % space.int_(space.len(self.saved))
        return item  # type: ignore[no-any-return]

    def reduced(self, space: Space) -> Value:
        if self.iterator is not None:
            state = [self.saved, Constant(self.repeated)]
            return reduction(space, self.cls, [self.iterator], space.new_tuple(state))
        iterator = space.iter(self.saved)
        if self.index:
            space.call_method(iterator, "__setstate__", Constant(self.index))
        return reduction(space, self.cls, [iterator], space.new_tuple([self.saved, TRUE]))

    def tp_setstate(self, space: Space, state: Value, /) -> Value:
        self.warn_of_copies(space)
        state = state.force()
        if not issubclass(state.cls, tuple):
            raise space.error(TypeError, "state is not a tuple")
        parts = [part.force() for part in space.unpack(state)]
        if self.source is not None or len(parts) != 2 or parts[0].cls is not list or not issubclass(parts[1].cls, int):
            raise refuse("itertools.cycle.__setstate__")
        space.mark_mutated(self)
        self.saved, self.repeated, self.index = parts[0], space.truth(parts[1]), 0
        return NONE

    def rebuilt(self, writer: Writer) -> str:
        if self.iterator is not None and not self.repeated and not self.saved.items:
            return writer.assign("iterator", f"{self.begin_call(writer)}{writer.expr(self.iterator)})")
        rest = "None" if self.iterator is None else writer.expr(self.iterator)
        index = self.index if self.iterator is None else None
        parts = f"{writer.const(self.cls)}, {rest}, {writer.expr(self.saved)}, {index}, {self.repeated}"
        return writer.assign("iterator", f"{writer.const(resumed_cycle)}({parts})")


# -- one after another ------------------------------------------------------------------------------------------------


def chained(cls: type, iterables: Any) -> Any:
    """`cls.from_iterable(iterables)`, past what a subclass makes of it."""
    return vars(itertools.chain)["from_iterable"].__get__(None, cls)(iterables)


@iterator_type(itertools.chain)
class Chain(ItertoolsIterator):
    """`chain(*iterables)`: `rest` iterates over the iterables, `active` over the present one."""

    __slots__ = ("active", "rest")

    def __init__(self, cls: type, rest: Value) -> None:
        super().__init__(cls)
        self.rest: Value | None = rest
        self.active: Value | None = None

    @staticmethod
    def tp_new(space: Space, cls: Value, *iterables: Value) -> Value:
        return Chain(own_class(space, cls), space.iter(space.new_tuple(list(iterables))))

    def produce(self, space: Space) -> Value | None:
        while self.rest is not None:
            if self.active is None:
                following = space.next(self.rest)
                space.mark_mutated(self)
                if following is None:
                    break
                try:
                    self.active = space.iter(following)
                except Raised:
                    self.rest = None
                    raise
            item = space.next(self.active)
            if item is not None:
                return item
            space.mark_mutated(self)
            self.active = None
        self.rest = None
        return None

    def reduced(self, space: Space) -> Value:
        if self.rest is None:
            return reduction(space, self.cls, [])
        parts = [self.rest] if self.active is None else [self.rest, self.active]
        return reduction(space, self.cls, [], space.new_tuple(parts))

    def tp_setstate(self, space: Space, state: Value, /) -> Value:
        self.warn_of_copies(space)
        state = state.force()
        parts = [part.force() for part in space.unpack(state)] if issubclass(state.cls, tuple) else []
        if self.source is not None or (issubclass(state.cls, tuple) and not 1 <= len(parts) <= 2):
            raise refuse("itertools.chain.__setstate__")
        if not parts:
            raise space.error(TypeError, "state is not a tuple")
        if any(space.special(part, "__next__") is None for part in parts):
            raise space.error(TypeError, "Arguments must be iterators.")
        space.mark_mutated(self)
        self.rest, self.active = parts[0], parts[1] if len(parts) == 2 else None
        return NONE

    def made(self, writer: Writer) -> str:
        if self.rest is None:
            return f"{self.begin_call(writer)})"
        begin, rest = f"{writer.const(chained)}({writer.const(self.cls)}, ", writer.expr(self.rest)
        if self.active is None:
            return f"{begin}{rest})"
        return f"{begin}{writer.const(itertools.chain)}([{writer.expr(self.active)}], {rest}))"


@builtin(itertools.chain.__dict__["from_iterable"])
def chain_from_iterable(space: Space, cls: Value, iterable: Value, /) -> Value:
    return Chain(own_class(space, cls), space.iter(iterable))


@iterator_type(itertools.islice)
class ISlice(ItertoolsIterator):
    """`islice(iterable, start, stop, step)`: `taken` items so far, the next wanted one is number `wanted`."""

    __slots__ = ("iterator", "step", "stop", "taken", "wanted")
    passes_stop = True

    iterator: Value | None
    step: int
    stop: int | None
    taken: int
    wanted: int

    @staticmethod
    def tp_new(
        space: Space, cls: Value, iterable: Value, first: Value, stop: Value | None = None, step: Value = NONE, /
    ) -> Value:
        start: Value = first
        if stop is None:
            start, stop = NONE, first
        last = _slice_part(space, stop, None, "Stop argument", "must be None or an integer: 0 <= x <= sys.maxsize.")
        begin = _slice_part(space, start, 0, "Indices", "must be None or an integer: 0 <= x <= sys.maxsize.")
        stride = _slice_part(space, step, 1, "Step", "must be a positive integer or None.", 1)
        self = ISlice(own_class(space, cls))
        self.iterator = space.iter(iterable)
        self.taken, self.wanted, self.stop, self.step = 0, begin or 0, last, stride or 1
        return self

    def produce(self, space: Space) -> Value | None:
        if self.iterator is None:
            return None
        while self.taken < self.wanted:
            if space.next(self.iterator) is None:
                return self._end(space)
            space.mark_mutated(self)
            self.taken += 1
        if self.stop is not None and self.taken >= self.stop:
            return self._end(space)
        item = space.next(self.iterator)
        if item is None:
            return self._end(space)
        space.mark_mutated(self)
        self.taken += 1
        self.wanted += self.step
        if self.stop is not None and self.wanted > self.stop:
            self.wanted = self.stop
        return item

    def _end(self, space: Space) -> Value | None:
        space.mark_mutated(self)
        self.iterator = None
        return None

    def reduced(self, space: Space) -> Value:
        if self.iterator is None:
            return reduction(space, self.cls, [space.iter(space.new_list([])), _ZERO], _ZERO)
        stop = NONE if self.stop is None else Constant(self.stop)
        args = [self.iterator, Constant(self.wanted), stop, Constant(self.step)]
        return reduction(space, self.cls, args, Constant(self.taken))

    def tp_setstate(self, space: Space, state: Value, /) -> Value:
        self.warn_of_copies(space)
        count = state_number(space, state)
        if self.source is not None or not 0 <= count <= self.wanted:
            raise refuse("itertools.islice.__setstate__")
        space.mark_mutated(self)
        self.taken = count
        return NONE

    def made(self, writer: Writer) -> str:
        begin = self.begin_call(writer)
        if self.iterator is None:
            return f"{begin}(), 0)"
        stop = None if self.stop is None else max(self.stop - self.taken, 0)
        return f"{begin}{writer.expr(self.iterator)}, {self.wanted - self.taken}, {stop}, {self.step})"


def _slice_part(space: Space, value: Value, default: int | None, what: str, words: str, least: int = 0) -> int | None:
    value = value.force()
    if is_none(value):
        return default
    try:
        number = space.int_(value)
    except Raised:
        number = -1
    if not least <= number <= MAXSIZE:
        what = "Indices" if what == "Stop argument" and number < -1 else what
        raise space.error(ValueError, f"{what} for islice() {words}")
    return number


@iterator_type(itertools.zip_longest)
class ZipLongest(ItertoolsIterator):
    """`zip_longest(*iterables, fillvalue=…)`; an exhausted iterator is None, `active` how many of them are not."""

    __slots__ = ("active", "fill", "iterators")

    active: int
    fill: Value
    iterators: list[Value | None]

    @staticmethod
    def tp_new(space: Space, cls: Value, *iterables: Value, fillvalue: Value = NONE) -> Value:
        self = ZipLongest(own_class(space, cls))
        self.iterators = [space.iter(each) for each in iterables]
        self.active = len(iterables)
        self.fill = fillvalue
        return self

    def produce(self, space: Space) -> Value | None:
        items = []
        if self.active == 0:
            return None
        for i, iterator in enumerate(self.iterators):
            item = None if iterator is None else self._next_of(space, iterator)
            if item is None and iterator is not None:
                space.mark_mutated(self)
                self.active -= 1
                if self.active == 0:
                    return None
                self.iterators[i] = None
            items.append(self.fill if item is None else item)
        return space.new_tuple(items)

    def _next_of(self, space: Space, iterator: Value) -> Value | None:
        try:
            return space.next(iterator)
        except Raised:
            space.mark_mutated(self)
            self.active = 0
            raise

    def reduced(self, space: Space) -> Value:
        parts = [space.new_tuple([]) if iterator is None else iterator for iterator in self.iterators]
        return reduction(space, self.cls, parts, self.fill)

    def tp_setstate(self, space: Space, state: Value, /) -> Value:
        self.warn_of_copies(space)
        if self.source is not None:
            raise refuse("itertools.zip_longest.__setstate__")
        space.mark_mutated(self)
        self.fill = state
        return NONE

    def made(self, writer: Writer) -> str:
        live = [iterator if self.active else None for iterator in self.iterators]
        parts = ["()" if iterator is None else writer.expr(iterator) for iterator in live]
        text = f"{self.begin_call(writer)}{', '.join(parts)}{', ' if parts else ''}fillvalue={writer.expr(self.fill)})"
        return text if self.active else advanced(writer, text, 1)  # a step makes it forget its iterators


# -- in step ----------------------------------------------------------------------------------------------------------


@iterator_type(itertools.compress)
class Compress(ItertoolsIterator):
    """`compress(data, selectors)`."""

    __slots__ = ("data", "selectors")
    passes_stop = True

    data: Value
    selectors: Value

    @staticmethod
    def tp_new(space: Space, cls: Value, data: Value, selectors: Value) -> Value:
        self = Compress(own_class(space, cls))
        self.data = space.iter(data)
        self.selectors = space.iter(selectors)
        return self

    def produce(self, space: Space) -> Value | None:
        while (item := space.next(self.data)) is not None:
            selector = space.next(self.selectors)
            if selector is None:
                return None
            if space.truth(selector):
                return item
        return None

    def reduced(self, space: Space) -> Value:
        return reduction(space, self.cls, [self.data, self.selectors])

    def made(self, writer: Writer) -> str:
        return f"{self.begin_call(writer)}{writer.expr(self.data)}, {writer.expr(self.selectors)})"


def _latter(_: Any, item: Any) -> Any:
    return item


@iterator_type(itertools.pairwise)
class Pairwise(IteratorValue):
    """`pairwise(iterable)`; `old` is None before the first pair."""

    __slots__ = ("iterator", "old")
    passes_stop = True

    iterator: Value | None
    old: Value | None

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, /) -> Value:
        self = Pairwise(own_class(space, cls))
        self.iterator = space.iter(iterable)
        self.old = None
        return self

    def produce(self, space: Space) -> Value | None:
        if self.iterator is None:
            return None
        space.mark_mutated(self)
        old = self.old
        if old is None:
            self.old = old = space.next(self.iterator)
        if old is None or self.iterator is None:  # what it goes over may have asked it for an item itself
            self.iterator = self.old = None
            return None
        self.old = new = space.next(self.iterator)
        if new is None:
            self.iterator = None
            return None
        return space.new_tuple([old, new])

    def made(self, writer: Writer) -> str:
        begin = self.begin_call(writer)
        if self.iterator is None:
            return f"{begin}())"
        if self.old is None:
            return f"{begin}{writer.expr(self.iterator)})"
        old = writer.expr(self.old)
        # accumulate passes on what the iterator ends with; chain would not
        parts = f"{writer.expr(self.iterator)}, {writer.const(_latter)}, initial={old}"
        return f"{begin}{writer.const(itertools.accumulate)}({parts}))"


if hasattr(itertools, "batched"):

    @iterator_type(itertools.batched)
    class Batched(IteratorValue):
        """`batched(iterable, n)`."""

        __slots__ = ("iterator", "size", "strict")

        iterator: Value | None
        size: int
        strict: bool

        @staticmethod
        def tp_new(space: Space, cls: Value, iterable: Value, n: Value, *, strict: Value = Constant(False)) -> Value:  # noqa: B008
            size = space.int_(n)
            if size < 1:
                raise space.error(ValueError, "n must be at least one")
            self = Batched(own_class(space, cls))
            self.iterator = space.iter(iterable)
            self.size = size
            self.strict = space.truth(strict)
            return self

        def produce(self, space: Space) -> Value | None:
            items: list[Value] = []
            if self.iterator is None:
                return None
            while len(items) < self.size and (item := space.next(self.iterator)) is not None:
                items.append(item)
            if len(items) < self.size:
                space.mark_mutated(self)
                self.iterator = None
                if items and self.strict:
                    raise space.error(ValueError, "batched(): incomplete batch")
            return space.new_tuple(items) if items else None

        def made(self, writer: Writer) -> str:
            rest = "()" if self.iterator is None else writer.expr(self.iterator)
            end = ", strict=True" if self.strict else ""
            return f"{self.begin_call(writer)}{rest}, {self.size}{end})"
