"""What `await` takes, and what it says of the rest: `_PyCoro_GetAwaitableIter`."""

import sys
import types


def unawaitable(name):
    """What is said of an object of such a type."""
    if sys.version_info >= (3, 14):
        return f"'{name}' object can't be awaited"
    return f"object {name} can't be used in 'await' expression"


def outcome(function, *args):
    """What is returned or raised, comparable."""
    try:
        return "returned", function(*args)
    except BaseException as error:
        return type(error).__name__, str(error), repr(error.__cause__), repr(error.__context__)


async def wait(awaitable):
    return await awaitable


def awaiting(value):
    return outcome(wait(value).send, None)


def plain(*args):
    return (yield args)


@types.coroutine
def marked_before(*args):
    return (yield args)


class Gives:
    def __init__(self, given):
        self.given = given

    def __await__(self):
        return self.given


def app_generators_marked_as_coroutines():
    @types.coroutine
    def marked(*args):
        return (yield args)

    def both(function):
        waiting = wait(function(1, 2))
        return [outcome(waiting.send, None), waiting.cr_await.__name__, outcome(waiting.send, "sent")[:2]]

    expected = [("returned", (1, 2)), "marked", ("StopIteration", "sent")]
    assert both(marked) == expected
    assert both(marked_before) == [expected[0], "marked_before", expected[2]]
    assert awaiting(plain(1))[:2] == ("TypeError", unawaitable("generator"))
    unmarked = type(plain)(plain.__code__, globals(), "unmarked")
    assert awaiting(types.coroutine(unmarked)(3)) == ("returned", (3,))


def app_marked_generator_that_has_ended():
    generator = marked_before()
    assert outcome(generator.send, None) == ("returned", ())
    assert outcome(generator.send, 1)[:2] == ("StopIteration", "1")
    assert awaiting(generator)[:2] == ("StopIteration", "")
    assert generator.gi_code.co_flags & 0x100
    assert (generator.__name__, generator.gi_frame) == ("marked_before", None)
    return generator.__qualname__


def app_marked_generator_awaited_twice():
    generator = marked_before("item")
    first, second = wait(generator), wait(generator)
    assert outcome(first.send, None) == ("returned", ("item",))
    assert outcome(second.send, 1)[:2] == ("TypeError", "can't send non-None value to a just-started coroutine")
    assert outcome(second.send, None)[:2] == ("StopIteration", "")


def app_await_that_gives_no_iterator():
    given = wait(None)
    assert awaiting(Gives(given))[:2] == ("TypeError", "__await__() returned a coroutine")
    given.close()
    assert awaiting(Gives(marked_before()))[:2] == ("TypeError", "__await__() returned a coroutine")
    assert awaiting(Gives(plain(1))) == ("returned", (1,))
    for wrong in (None, 3, Gives(None), [1]):
        text = f"__await__() returned non-iterator of type '{type(wrong).__name__}'"
        assert awaiting(Gives(wrong)) == ("TypeError", text, "None", "None")


def app_async_for_over_what_cannot_be_awaited():
    class Numbers:
        def __init__(self, give):
            self.give = give

        def __aiter__(self):
            return self

        def __anext__(self):
            return self.give

    class Fails:
        def __await__(self):
            raise ZeroDivisionError("await")

    async def loop(iterable):
        async for _ in iterable:
            pass

    def looping(iterable):
        return outcome(loop(iterable).send, None)

    text = "'async for' received an invalid object from __anext__: "
    zero = repr(ZeroDivisionError("await"))
    assert looping(Numbers(Fails())) == ("TypeError", f"{text}Fails", zero, zero)
    inner = repr(TypeError(unawaitable("int")))
    assert looping(Numbers(3)) == ("TypeError", f"{text}int", inner, inner)
    inner = repr(TypeError("__await__() returned non-iterator of type 'NoneType'"))
    assert looping(Numbers(Gives(None))) == ("TypeError", f"{text}Gives", inner, inner)


def app_aiter_that_gives_no_async_iterator():
    class Iterable:
        def __aiter__(self):
            return 3

    async def loop():
        async for _ in Iterable():
            pass

    text = "'async for' received an object from __aiter__ that does not implement __anext__: int"
    assert outcome(loop().send, None) == ("TypeError", text, "None", "None")
    text = "aiter() returned not an async iterator of type 'int'"
    assert outcome(aiter, Iterable()) == ("TypeError", text, "None", "None")


def app_async_with_methods_that_give_no_awaitable():
    class Manager:
        def __init__(self, enter, leave):
            self.enter, self.leave = enter, leave

        def __aenter__(self):
            return self.enter

        def __aexit__(self, *parts):
            return self.leave

    async def body(manager):
        async with manager:
            pass

    def entering(enter, leave):
        return outcome(body(Manager(enter, leave)).send, None)[:2]

    text = "'async with' received an object from {} that does not implement __await__: int"
    ready = Gives(iter(()))
    assert entering(3, ready) == ("TypeError", text.format("__aenter__"))
    assert entering(ready, 3) == ("TypeError", text.format("__aexit__"))
    assert entering(Gives(3), ready) == ("TypeError", "__await__() returned non-iterator of type 'int'")
    assert entering(ready, ready) == ("StopIteration", "")


def app_anext_whose_await_stops():
    class Stops:
        def __anext__(self):
            return self

        def __await__(self):
            raise StopAsyncIteration("await")

    assert awaiting(anext(Stops(), "default"))[:2] == ("StopAsyncIteration", "await")


def app_coroutine_awaited_twice():
    inner = wait(marked_before())
    first, second = wait(inner), wait(inner)
    assert outcome(first.send, None) == ("returned", ())
    assert outcome(second.send, None)[:2] == ("RuntimeError", "coroutine is being awaited already")
    first.close()
    assert awaiting(inner)[:2] == ("RuntimeError", "cannot reuse already awaited coroutine")


def app_exception_thrown_into_a_finished_coroutine():
    async def nothing():
        pass

    coroutine, text = nothing(), "cannot reuse already awaited coroutine"
    assert outcome(coroutine.send, None)[0] == "StopIteration"
    assert outcome(coroutine.throw, KeyError("late")) == ("RuntimeError", text, "None", "None")
    assert outcome(coroutine.__await__().throw, KeyError("late")) == ("RuntimeError", text, "None", "None")
    assert coroutine.close() is None
    generator = plain()
    generator.close()
    assert outcome(generator.throw, KeyError("late"))[:2] == ("KeyError", "'late'")
    return coroutine.__name__, coroutine.__qualname__, coroutine.cr_code.co_name


def app_finished_ones_leave_the_trace():
    async def coroutine(a, *, b, **c):
        return a, b, c

    async def asynchronous():
        yield

    def generator(a=1):
        yield a
        generator

    ending = asynchronous()
    made = [coroutine(1, b=2, d=3), ending.aclose(), generator(), plain()]
    steps = [outcome(one.send, None)[:1] for one in made]
    steps += [outcome(one.send, None)[:1] for one in made[2:]]
    assert steps == [("StopIteration",)] * 2 + [("returned",)] * 2 + [("StopIteration",)] * 2
    finished = made[0]
    assert outcome(finished.send, None)[:2] == ("RuntimeError", "cannot reuse already awaited coroutine")
    assert [outcome(one.send, None)[0] for one in made[2:]] == ["StopIteration", "StopIteration"]
    assert outcome(ending.__anext__().send, None)[0] == "StopAsyncIteration"
    names = [finished.__qualname__, finished.cr_code.co_name, ending.__name__, ending.ag_code.co_name]
    return names + [one.__name__ for one in made[2:]]
