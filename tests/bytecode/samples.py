"""Functions the continuation tests stop at every instruction. What they do besides returning goes to LOG."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

LOG: list[Any] = []


def note(value: Any) -> Any:
    LOG.append(value)
    return value


def current() -> Any:
    """The exception being handled where this is called."""
    return repr(sys.exc_info()[1])


class Manager:
    def __init__(self, name: str, swallow: type[BaseException] | None = None) -> None:
        self.name, self.swallow = name, swallow

    def __enter__(self) -> str:
        return note(f"enter {self.name}")

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        note((f"exit {self.name}", repr(error), current()))
        return self.swallow is not None and isinstance(error, self.swallow)


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y


def straight(a, b):
    c = a + b
    d = [a, c, *[b, c]]
    e = {**{"k": a}, "l": d}
    f = {a, c}
    d[1:3] = [0]
    del d[0]
    x, *y, z = a, b, c, d
    g = f"{a!r:>{b}} {c}"
    return note(a < b <= c), d[0:2], -a, not b, ~c, +d[0], e, f, x, y, z, g, a is b, a in d


def calls(a, b):
    def inner(p, q=2, *r, s, t=5, **u):
        return [p, q, r, s, t, u]

    first = inner(a, s=b)
    second = inner(*[a, b, 3], s=4, **{"u": note(6)})
    return first, second, note(inner(note(1), note(2), s=note(3), z=note(4)))


def loops(n):
    total = 0
    for i in range(n):
        for j in (1, 2):
            if i == j:
                continue
            total += note(i * j)
            if total > 12:
                break
        else:
            total += 1
    while total > 3:
        total -= 3
        if total == 4:
            break
    else:
        note("else")
    return total, i, j


def tries(x):
    try:
        try:
            y = 10 // x
        except ZeroDivisionError as error:
            note((repr(error), current()))
            raise KeyError("inner") from error
        finally:
            note(("finally", current()))
    except LookupError as error:
        y = (repr(error), repr(error.__cause__), repr(error.__context__), current())
        try:
            note(error.nothing)
        except AttributeError:
            note(current())
        note(current())
    else:
        y += 1
    note(current())
    return y


def bare_raise(x):
    try:
        try:
            note([][x])
        except IndexError:
            note(current())
            try:
                raise
            except IndexError as again:
                note((repr(again), current()))
                raise
    except Exception as error:
        note(current())
        return repr(error), repr(error.__context__), current()


def escapes(x):
    with Manager("a"):
        try:
            note(x)
            return {}[x]
        finally:
            note(current())


def finally_returns(x):
    for i in range(3):
        try:
            if i == x:
                return note("returned")
            note(1 // (i - 1))
        except ZeroDivisionError:
            note(current())
            continue
        finally:
            note(("finally", i, current()))
    return "end"


def withs(x):
    with Manager("a") as a, Manager("b", ValueError) as b:
        note((a, b))
        if x == 1:
            raise ValueError(x)
        with Manager("c", KeyError):
            try:
                note({}[x])
            except ZeroDivisionError:
                note("never")
        note(current())
        for i in range(3):
            with Manager("d"):
                if i == x:
                    break
    try:
        with Manager("e"):
            raise TypeError(x)
    except TypeError as error:
        return repr(error)


def comprehensions(n):
    x = "outer"
    a = [note(x * 2) for x in range(n) if x % 2]
    b = {x: [y for y in range(x)] for x in range(n)}
    c = {x for x in note("abc")}
    d = list(x + y for x in range(2) for y in a)
    fs = [lambda: x for x in range(n)]
    return a, b, c, d, x, [f() for f in fs]


def unbound_in_comprehension(n):
    a = [z for z in range(n)]
    try:
        return z  # noqa: F821
    except NameError as error:
        return type(error).__name__, str(error), a


def closures(a, n):
    count = 0

    def add(by):
        nonlocal count, a
        count += by
        a = [a, count]
        return count

    b = note(add(n))
    count *= 2
    note(add(1))
    gs = []
    for i in range(2):
        gs.append(lambda: (i, count))
    return a, b, count, add, [g() for g in gs]


def outer_free():
    free = [1]

    def uses(x):
        nonlocal free
        free = [free, note(x)]
        own = x

        def inner():
            return own, free

        own += 1
        return inner(), inner

    return uses


def unbound_cell(x):
    if x:
        y = 1
    note(x)
    try:
        note(y)
    except NameError as error:
        note((type(error).__name__, str(error)))
    try:
        del y
    except NameError as error:
        note((type(error).__name__, str(error)))
    return lambda: y  # noqa: F821


def unbound_local(x):
    if x:
        y = 1
        z = 2
    note(x)
    del y
    return z


def matches(value):
    match value:
        case {"a": 1, **rest}:
            return note(("map", rest))
        case [1, x, *others] if x > 1:
            return "seq", x, others
        case Point(0, y=y):
            return "point", y
        case int() | str():
            return "scalar"
        case None:
            return "none"
    return "other"


def shown_locals(a, b):
    c = [a]
    note(sorted(locals()))

    def inner():
        return b

    return sorted(locals()), sorted(vars()), inner


def groups(x):
    try:
        note(x)
        if x:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as error:
        note(("value", repr(error), current()))
    except* TypeError as error:
        note(("type", repr(error)))
    note(current())
    return x


class Base:
    def method(self, x):
        return ["base", self.tag, x]


class Derived(Base):
    tag = "derived"

    def method(self, x):
        y = note(x + 1)
        first = super().method(y)
        second = super().method(note(3))
        this = super()
        return first, second, this.method(4)

    def captured(self, x):
        y = note(lambda: self.tag)()
        first = super().method(y)
        this = super()
        return first, this.method(x), y

    def nothing_else(self):
        return [super().method(1), note(2)]


def defines(x):
    class Local(Base):
        tag = x

        def method(self, y):
            return super().method(y + x)

    import os.path as path
    from collections import OrderedDict as Ordered
    from collections import deque

    return Local().method(note(1)), path.join("a", "b"), Ordered.__name__, deque([x])


def counter(n):
    got = []
    for i in range(n):
        try:
            sent = yield note(i)
            got.append(sent)
        except ValueError as error:
            got.append(repr(error))
            got.append((yield "caught", current()))
        finally:
            note(("finally", i, current()))
    return got


def delegating(n):
    with Manager("g"):
        first = yield from counter(n)
        second = yield from [7, 8]
    return first, second


def generator_in_handler(n):
    try:
        note(1 // n)
    except ZeroDivisionError:
        note(current())
        x = yield current()
        note((x, current()))
        try:
            raise
        except ZeroDivisionError as error:
            yield repr(error)
    yield current()
    raise StopIteration(n)


def captured_generator(n):
    total = n

    def add(x):
        nonlocal total
        total += x
        return total

    while True:
        x = yield [add(k) for k in (1, 2)]
        if x is None:
            return total
        add(x)


class Awaited:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __await__(self) -> Iterator[Any]:
        sent = yield self.value
        return [self.value, sent]


class AsyncManager:
    async def __aenter__(self) -> Any:
        return await Awaited("enter")

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        note((repr(error), await Awaited("exit")))
        return isinstance(error, KeyError)


class Ticks:
    def __init__(self, n: int) -> None:
        self.n = n

    def __aiter__(self) -> Ticks:
        return self

    async def __anext__(self) -> Any:
        self.n -= 1
        if self.n < 0:
            raise StopAsyncIteration
        return await Awaited(self.n)


async def helper(x):
    return [x, await Awaited(x)]


async def coroutine(n):
    got = [await Awaited("a"), await helper(n)]
    async with AsyncManager() as entered:
        got.append(entered)
        async for tick in Ticks(n):
            got.append(tick)
        raise KeyError(n)
    try:
        got.append(await helper("b"))
    except ValueError as error:
        got.append((repr(error), await Awaited("c"), current()))
    return got


PLAIN: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (straight, (1, 7)),
    (calls, (1, 2)),
    (loops, (5,)),
    (tries, (0,)),
    (tries, (3,)),
    (tries, ("x",)),
    (bare_raise, (3,)),
    (escapes, ("k",)),
    (finally_returns, (2,)),
    (finally_returns, (9,)),
    (withs, (0,)),
    (withs, (1,)),
    (comprehensions, (4,)),
    (unbound_in_comprehension, (2,)),
    (closures, ("a", 3)),
    (outer_free(), (4,)),
    (unbound_cell, (0,)),
    (unbound_cell, (1,)),
    (unbound_local, (0,)),
    (unbound_local, (1,)),
    (matches, ({"a": 1, "b": 2},)),
    (matches, ([1, 2, 3],)),
    (matches, (Point(0, 5),)),
    (matches, ("s",)),
    (matches, (None,)),
    (matches, (1.5,)),
    (shown_locals, (1, 2)),
    (groups, (0,)),
    (groups, (1,)),
    (Derived.method, (Derived(), 1)),
    (Derived.captured, (Derived(), 1)),
    (Derived.nothing_else, (Derived(),)),
    (defines, (5,)),
]

Script = list[tuple[str, Any]]
GENERATORS: list[tuple[Callable[..., Any], tuple[Any, ...], Script]] = [
    (counter, (2,), [("send", "s"), ("send", None)]),
    (counter, (2,), [("send", None), ("throw", ValueError("v")), ("send", 3)]),
    (counter, (2,), [("throw", KeyError("k"))]),
    (delegating, (2,), [("send", 1), ("send", 2), ("send", None), ("send", None)]),
    (delegating, (1,), [("throw", ValueError("v")), ("send", 2), ("send", None), ("throw", KeyError("k"))]),
    (generator_in_handler, (0,), [("send", 1), ("send", None), ("send", None)]),
    (captured_generator, (5,), [("send", 10), ("send", None)]),
    (coroutine, (2,), [("send", k) for k in range(9)]),
    (coroutine, (1,), [("send", k) for k in range(6)] + [("throw", ValueError("v")), ("send", 7)]),
]
