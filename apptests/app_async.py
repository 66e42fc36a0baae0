"""async def and await where no event loop is needed: coroutines driven by hand, async for and with."""


def run(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("the coroutine waits for an event loop")


async def add(a, b):
    return a + b


def app_await():
    async def twice(x):
        return await add(x, x)

    assert run(twice(4)) == 8


def app_async_with_and_try():
    log = []

    class Manager:
        async def __aenter__(self):
            log.append("enter")
            return self

        async def __aexit__(self, kind, value, traceback):
            log.append(kind.__name__ if kind else "exit")
            return True

    async def body():
        async with Manager():
            log.append("body")
        async with Manager():
            raise ValueError
        return "end"

    assert run(body()) == "end"
    assert log == ["enter", "body", "exit", "enter", "ValueError"]


def app_async_iteration():
    async def numbers(n):
        for i in range(n):
            yield i

    async def collect():
        return [x async for x in numbers(3)], {x: await add(x, 1) async for x in numbers(2) if x}

    assert run(collect()) == ([0, 1, 2], {1: 2})


def app_awaitable_object():
    class Ready:
        def __await__(self):
            return "ready"
            yield

    async def body():
        return await Ready()

    assert run(body()) == "ready"


def app_exception_through_await():
    async def fail():
        raise KeyError("k")

    async def body():
        try:
            await fail()
        except KeyError as error:
            return error.args

    assert run(body()) == ("k",)


def app_coroutine_closed_unstarted():
    coroutine = add(1, 2)
    coroutine.close()
    try:
        coroutine.send(None)
    except RuntimeError as error:
        assert "cannot reuse already awaited coroutine" in str(error)
    else:
        raise AssertionError("no RuntimeError")


def outcome(function, *args):
    """What is returned or raised, comparable."""
    try:
        return "returned", function(*args)
    except BaseException as error:
        return type(error).__name__, str(error), repr(error.__cause__)


def app_async_generator_methods():
    log = []

    async def talk():
        try:
            while True:
                log.append((yield len(log)))
        except ValueError as error:
            log.append(str(error))
            yield "caught"
        finally:
            await add(1, 2)
            log.append("finally")

    async def body():
        talking = talk()
        assert talking.__aiter__() is talking
        assert aiter(talking) is talking
        said = [await talking.__anext__(), await talking.asend("x"), await talking.athrow(ValueError("boo"))]
        log.append((talking.ag_running, talking.ag_await, talking.__name__))
        await talking.aclose()
        log.append((talking.ag_frame, talking.ag_running))
        try:
            await talking.__anext__()
        except StopAsyncIteration:
            log.append("stop")
        await talking.aclose()
        return said

    assert run(body()) == [0, 1, "caught"]
    assert log == ["x", "boo", (False, None, "talk"), "finally", (None, False), "stop"]


def app_async_generator_that_goes_on_when_closed():
    async def stubborn():
        try:
            yield 1
        finally:
            yield 2

    async def body():
        generator = stubborn()
        await generator.__anext__()
        try:
            await generator.aclose()
        except RuntimeError as error:
            shown = str(error)
        try:
            await generator.__anext__()
        except GeneratorExit:
            return shown

    assert run(body()) == "async generator ignored GeneratorExit"


def app_async_generator_that_raises_stops():
    def raising(stop):
        async def numbers():
            yield 1
            raise stop

        async def body():
            return [x async for x in numbers()]

        return outcome(run, body())

    for stop in (StopIteration, StopAsyncIteration):
        text = f"async generator raised {stop.__name__}"
        assert raising(stop(1)) == ("RuntimeError", text, f"{stop.__name__}(1)")


def app_awaitables_of_an_async_generator():
    async def numbers():
        yield 1
        yield 2

    generator = numbers()
    first = generator.asend(None)
    assert type(first).__name__ == "async_generator_asend"
    assert first.__await__() is first
    seen = [outcome(first.send, None)]
    closing = generator.aclose()
    seen += [outcome(first.send, None), outcome(closing.send, 3), outcome(closing.send, None)]
    seen += [outcome(closing.send, None)]
    late = generator.asend(None)
    seen += [outcome(late.send, None), outcome(late.close), outcome(late.throw, ValueError("late"))]
    assert [entry[:2] for entry in seen] == [
        ("StopIteration", "1"),
        ("RuntimeError", "cannot reuse already awaited __anext__()/asend()"),
        ("RuntimeError", "can't send non-None value to a just-started coroutine"),
        ("StopIteration", ""),
        ("RuntimeError", "cannot reuse already awaited aclose()/athrow()"),
        ("StopAsyncIteration", ""),
        ("returned", None),
        ("RuntimeError", "cannot reuse already awaited __anext__()/asend()"),
    ]


def app_async_generator_that_runs_already():
    class Pause:
        def __await__(self):
            yield "paused"

    async def numbers():
        await Pause()
        yield 1

    generator = numbers()
    first, second = generator.asend(None), generator.asend(None)
    assert first.send(None) == "paused"
    assert generator.ag_running
    text = "anext(): asynchronous generator is already running"
    assert outcome(second.send, None) == ("RuntimeError", text, "None")
    assert outcome(first.send, None)[:2] == ("StopIteration", "1")
    assert outcome(generator.aclose().send, None)[0] == "StopIteration"


def app_anext_with_a_default():
    class Ends:
        def __aiter__(self):
            return self

        async def __anext__(self):
            raise StopAsyncIteration

    async def body():
        return await anext(Ends(), "default"), await anext(aiter(Ends()), None)

    assert run(body()) == ("default", None)
    assert outcome(anext, 5) == ("TypeError", "'int' object is not an async iterator", "None")
    assert outcome(aiter, 5) == ("TypeError", "'int' object is not an async iterable", "None")


def app_iterator_of_a_coroutine():
    coroutine = add(1, 2)
    awaited = coroutine.__await__()
    assert type(awaited).__name__ == "coroutine_wrapper"
    assert iter(awaited) is awaited
    assert outcome(next, awaited) == ("StopIteration", "3", "None")
    assert outcome(awaited.send, None)[:2] == ("RuntimeError", "cannot reuse already awaited coroutine")
    assert awaited.close() is None


def app_async_generator_across_calls():
    async def numbers(n):
        for i in range(n):
            yield i

    def take(generator):
        return outcome(generator.asend(None).send, None)[1]

    generator = numbers(3)
    assert [take(generator), take(generator)] == ["0", "1"]
    assert take(generator) == "2"
    assert outcome(generator.asend(None).send, None)[0] == "StopAsyncIteration"
