"""Async generators and coroutines that the program lets go of, and those of an event loop."""

import asyncio
import sys
import warnings

import pytest

import stator


async def add(a, b):
    return a + b


async def numbers(count):
    for n in range(count):
        yield n


def forget():
    add(1, 2)
    numbers(3).aclose()
    numbers(3).asend(None)


def test_what_nobody_awaits_is_warned_about():
    def warned(function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function()
        first = forget.__code__.co_firstlineno
        return [(str(warning.message), warning.category, warning.lineno - first) for warning in caught]

    expected = warned(forget)
    assert len(expected) == (3 if sys.version_info >= (3, 13) else 1)
    assert warned(stator.compile(forget, backend="eager")) == expected


def test_generators_of_an_event_loop():
    async def total():
        return sum([n async for n in numbers(4)])

    async def main():
        return await stator.compile(total, backend="eager")()

    assert asyncio.run(main()) == 6


def test_a_generator_that_existed_before_is_run_outside():
    def take(generator):
        try:
            generator.asend(None).send(None)
        except StopIteration as stop:
            return stop.value

    generator = numbers(2)
    with pytest.raises(stator.GraphBreakError):
        stator.compile(take, backend="eager", fullgraph=True)(generator)
    assert [stator.compile(take, backend="eager")(generator), take(generator)] == [0, 1]


def test_generators_are_left_where_they_were():
    def begin():
        generator = numbers(3)
        try:
            generator.asend(None).send(None)
        except StopIteration as stop:
            return generator, generator.asend(None), stop.value

    generator, sending, first = stator.compile(begin, backend="eager", fullgraph=True)()
    assert first == 0
    for n in (1, 2):
        with pytest.raises(StopIteration) as stop:
            (sending if n == 1 else generator.asend(None)).send(None)
        assert stop.value.value == n
    with pytest.raises(StopAsyncIteration):
        generator.asend(None).send(None)


def test_a_generator_in_a_try_is_closed_in_time():
    log = []

    async def guarded():
        try:
            yield 1
        finally:
            log.append("closed")

    def leave():
        generator = guarded()
        try:
            generator.asend(None).send(None)
        except StopIteration as stop:
            log.append(stop.value)
        del generator
        log.append("after")
        return len(log)

    for function in (leave, stator.compile(leave, backend="eager")):
        log.clear()
        assert function() == 3
        assert log == [1, "closed", "after"]


def test_what_stops_an_awaitable_that_yields_nothing():
    async def nothing():
        yield
        yield ()

    def stops():
        generator = nothing()
        found = []
        for _ in range(2):
            try:
                generator.asend(None).send(None)
            except StopIteration as stop:
                found.append((stop.args, stop.value))
        return found

    assert stator.compile(stops, backend="eager", fullgraph=True)() == stops()
