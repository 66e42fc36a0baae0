"""What random number generators will draw, told while guards are checked: a copy makes the draws.

A source for each draw leads to a `Place`, from the place that the draw before it has left the generator at:

    generator -> begin() -> Drawing(random.Random.randint, 0, 16) -> Drawing(random.Random.random) -> …

The generator itself draws as an effect, when the graph has run: `Place.reach`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, TypeAlias

from stator.bytecode.counters import note_varying
from stator.guards.interned import Interned
from stator.guards.source import CallSource, Source
from stator.space.host_types import Host
from stator.space.value import Value

__all__ = [
    *("Draw", "Drawing", "Given", "Place", "drawn_number", "given_number", "is_drawn", "next_place", "note_drawn"),
    *("number_source", "shown"),
]

#: a method of a generator, and what it is given
Draw: TypeAlias = tuple[Callable[..., Any], tuple[Host, ...]]
#: what a draw is given, as it is now, and where it is found if it varies
Given: TypeAlias = tuple[Host, Source | None]


class _Stream:
    """What a generator draws from the state that it is in now; `copy` makes one in the same state."""

    def __init__(self, generator: Host, copy: Callable[[Host], Host]) -> None:
        self._generator = generator
        self._copy = copy
        #: the copy, and where it is: it goes back by being made anew
        self._drawing: Host = None
        self._at: Place | None = None

    def brought_to(self, place: Place) -> Host:
        """The copy, when it has made all draws up to a place."""
        if self._at is not place:
            self._drawing = self._copy(self._generator)
            for method, args in place.draws():
                method(self._drawing, *args)
            self._at = place
        return self._drawing

    def draw(self, before: Place, draw: Draw) -> Place:
        """The place that a draw leads to."""
        drawing = self.brought_to(before)
        self._at = None  # should the draw fail
        method, args = draw
        number = method(drawing, *args)
        self._at = found = Place(self, before, draw, number, getattr(drawing, "gauss_next", None))
        return found


class Place:
    """Where a generator is after some draws; `number` is what the last of them gives, `gauss_next` the attribute."""

    __slots__ = ("_after", "_before", "_draw", "_stream", "gauss_next", "number")

    def __init__(
        self,
        stream: _Stream,
        before: Place | None = None,
        draw: Draw | None = None,
        number: Any = None,
        gauss_next: Any = None,
    ) -> None:
        self._stream = stream
        self._before = before
        self._draw = draw
        self._after: dict[object, Place] = {}
        self.number = number
        self.gauss_next = gauss_next

    @classmethod
    def of(cls, generator: Host, copy: Callable[[Host], Host]) -> Place:
        """Where the generator is now."""
        return cls(_Stream(generator, copy))

    def after(self, draw: Draw) -> Place:
        """Where it is after one more draw."""
        key = (*draw, *map(type, draw[1]))
        found = self._after.get(key)
        if found is None:
            found = self._after[key] = self._stream.draw(self, draw)
        return found

    def draws(self) -> list[Draw]:
        """All draws up to here, in order."""
        return [place._draw for place in self._way() if place._draw is not None][::-1]

    def _way(self) -> Iterator[Place]:
        place: Place | None = self
        while place is not None:
            yield place
            place = place._before

    def copy(self) -> Host:
        """A generator that is here; it must not be changed."""
        return self._stream.brought_to(self)


class Drawing(Interned):
    """A step from a place to the next one: what a method draws that is given these arguments, others for each `...`."""

    def __init__(self, method: Callable[..., Any], *args: Host) -> None:
        self.method = method
        self.args = args

    def __call__(self, place: Place, *others: Host) -> Place:
        if not others:
            return place.after((self.method, self.args))
        varying = iter(others)
        return place.after((self.method, tuple([next(varying) if arg is ... else arg for arg in self.args])))


def drawn_number(place: Place, *others: Host) -> Any:
    """The number that the last draw has given."""
    return place.number


def given_number(arg: Value) -> Given | None:
    """An argument that is a number that varies; None for any other."""
    now = arg.number_now()
    source = None if now is None else arg.number_source()
    return None if source is None else (now, source)


def next_place(
    before: Source, method: Callable[..., Any], given: list[Given]
) -> tuple[Source, list[Host], list[Source]]:
    """Where the place is found that a draw leads to; what it is given, with `...` for what varies; where that is."""
    others = [source for _, source in given if source is not None]
    known = [... if source is not None else now for now, source in given]
    return CallSource(Drawing(method, *known), before, "{}", *others), known, others


def shown(args: list[Host]) -> list[str]:
    """The arguments as the program might write them, for the text of a `number_source`."""
    places = iter(range(1, len(args) + 1))
    return [f"{{{next(places)}}}" if arg is ... else repr(arg) for arg in args]


def number_source(place: Source, text: str, *others: Source) -> Source:
    """Where the number is found that is drawn at a place."""
    return CallSource(drawn_number, place, text, *others)


def is_drawn(source: Source) -> bool:
    """Whether what is found there depends on what a generator draws."""
    steps: list[Source] = [source]
    while steps:
        for step in steps.pop().chain():
            if isinstance(step, CallSource):
                if step.fn is drawn_number:
                    return True
                steps += step.others
    return False


def note_drawn(code: CodeType, variables: dict[str, Value]) -> None:
    """Remember of a continuation which of its variables hold numbers that are drawn."""
    sources = {name: value.number_source() for name, value in variables.items() if value.symbolic}
    note_varying(code, frozenset(name for name, source in sources.items() if source is not None and is_drawn(source)))
