"""async def and await where no event loop is needed: coroutines driven by hand, async for and with."""

from apptests.marks import expected_break


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


@expected_break("an async generator needs the hooks of an event loop")
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
