"""Continuations: what they are made of, one thing at a time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import dis
import gc
import inspect
import sys
import tarfile
import traceback
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from stator.bytecode import (
    JUMPS,
    ContinuationError,
    continuation,
    continuation_freevars,
    decode,
    in_prologue,
    make_function,
    original_of,
)
from stator.bytecode.continuation import _made, _origins
from stator.bytecode.counters import counters
from stator.bytecode.stack import depths, handled
from tests.bytecode import samples
from tests.bytecode.samples import LOG, Manager, note
from tests.bytecode.test_continuation_everywhere import (
    STOPPED_BEFORE_IT_BEGAN,
    native,
    outcome,
    resume,
    shown,
    stopped,
)
from tests.bytecode.test_decode import module_codes


async def ticker(n):
    for i in range(n):
        try:
            got = yield note(i)
            note(got)
        except ValueError as error:
            note(repr(error))


def test_asynchronous_generator() -> None:
    def send(step: Any) -> Any:
        try:
            step.send(None)
        except StopIteration as stop:
            return stop.value
        raise AssertionError("suspended")

    index = next(instr.index for instr in decode(ticker.__code__).instrs if instr.op == "YIELD_VALUE")
    iterator = iter(range(1, 4))
    code = continuation(ticker.__code__, index, stack=("value",), names=("n", "i"), generator=True)
    agen = make_function(code, globals())(iterator, 4, 0)
    assert inspect.isasyncgen(agen)
    LOG.clear()
    assert send(agen.asend(None)) is None
    assert send(agen.asend("x")) == 1
    assert send(agen.athrow(ValueError("y"))) == 2
    assert LOG == ["x", 1, "ValueError('y')", 2]
    with pytest.raises(StopIteration):
        agen.aclose().send(None)


# Details


def simple(a, b):
    c = note(a)
    return c, b


def calls_of(function: Callable[..., Any]) -> list[int]:
    return [instr.index for instr in decode(function.__code__).instrs if instr.op == "CALL"]


def test_signature() -> None:
    (call,) = calls_of(simple)
    code = continuation(simple.__code__, call, names=("b",))
    assert code.co_posonlyargcount == code.co_argcount == 2
    function = make_function(code, globals())
    assert function(5, 6) == (5, 6)
    assert (function.__name__, function.__qualname__) == ("simple", "simple")
    assert (code.co_filename, code.co_firstlineno) == (__file__, simple.__code__.co_firstlineno)
    with pytest.raises(TypeError):
        function(5, b=6)


def test_cached_by_place() -> None:
    (call,) = calls_of(simple)
    code = continuation(simple.__code__, call, names=("b",))
    assert continuation(simple.__code__, call, names=("b",)) is code
    assert continuation(simple.__code__, call, names=("a", "b")) is not code
    assert continuation(simple.__code__, call, names=("b",), mode="throw") is not code


def test_it_is_named_by_where_it_goes_on() -> None:
    def until(n: int) -> int:
        while n < 3:
            n += 1
        return n

    first, *others = [i for i in decode(until.__code__).instrs if "POP_JUMP" in i.op]
    again = others[0] if others else first  # since 3.14 there is one
    code = continuation(until.__code__, first.index, names=("n",), results=0)
    # Since 3.12 the second one falls through to a jump to the body.
    body, end = (again.arg, None) if again.op == "POP_JUMP_IF_TRUE" else (None, again.arg)
    assert continuation(until.__code__, again.index, names=("n",), results=0, target=body) is code
    assert make_function(code, globals())(1) == 3
    assert counters(code) == {"n"}
    assert (
        counters(until.__code__) == counters(continuation(until.__code__, again.index, results=0, target=end)) == set()
    )


def test_unused_code_is_left_out() -> None:
    (call,) = calls_of(simple)
    code = continuation(simple.__code__, call, names=("b",))
    assert not any(instr.op == "CALL" for instr in decode(code).instrs)


def test_everything_dies_with_the_original() -> None:
    scope: dict[str, Any] = {}
    exec("def f(a):\n    b = g(a)\n    return b", scope)
    function = scope.pop("f")
    call = calls_of(function)[0]
    code = continuation(function.__code__, call)
    original_of(code, 0)
    dead, key, made = weakref.ref(code), id(function.__code__), id(code)
    assert key in _made._known and made in _origins._known
    del function, code
    scope.clear()
    gc.collect()
    assert dead() is None
    assert key not in _made._known and made not in _origins._known


@pytest.mark.parametrize(("mode", "ends"), [("value", None), ("throw", OSError), ("call", None)])
def test_no_reference_is_lost_or_kept(mode: str, ends: type[BaseException] | None) -> None:
    def f(a, b):
        c = [b]
        try:
            raise KeyError(a)
        except KeyError:
            note(c)
        return lambda: c

    at = next(
        instr.index for instr in decode(f.__code__).instrs if instr.op == "CALL" and instr.line == first_line(f) + 5
    )
    code = continuation(f.__code__, at, mode=mode, stack=("handler",), names=("b",))
    function = make_function(code, globals(), (types.CellType([1]),))
    value, handled_error = object(), KeyError(1)
    thrown = OSError(1)
    payload = {"value": [value], "throw": [thrown], "call": [lambda x: x, (value,)]}[mode]

    def counts() -> list[int]:
        thrown.__traceback__ = handled_error.__traceback__ = thrown.__context__ = None
        return [sys.getrefcount(x) for x in (value, handled_error, thrown, None, *payload)]

    def run() -> None:
        for _ in range(100):
            with pytest.raises(ends) if ends else contextlib.nullcontext():
                function(*payload, handled_error, value)

    run()
    gc.collect()  # what other tests have left holds None
    before = counts()
    run()
    gc.collect()
    assert all(abs(now - then) < 50 for now, then in zip(counts(), before))


def test_continuation_outlives_the_original() -> None:
    scope: dict[str, Any] = {}
    exec("def f(a):\n    b = g(a)\n    return b", scope)
    function = scope.pop("f")
    code = continuation(function.__code__, calls_of(function)[0])
    del function
    scope.clear()
    gc.collect()
    assert original_of(code, 1) == (code, 1)
    last = decode(code).instrs[-1].index
    again = continuation(code, last, mode="enter", stack=("value",))
    assert make_function(again, {})(7) == 7


def deep(a):
    with Manager("m"):
        for i in a:
            try:
                note(
                    i,
                )
            except KeyError:
                return "caught"


def test_line_and_traceback_of_a_throw() -> None:
    call = next(index for index in calls_of(deep) if decode(deep.__code__).instrs[index].line == first_line(deep) + 4)
    machine = stopped(deep, ([1],), 0)
    while machine.index != call:
        machine.step()
    stack = machine.stack[: decode(deep.__code__).instrs[call].handler.depth]
    error = OSError("x")
    with pytest.raises(OSError) as caught:
        resume(machine, call, "throw", [error], stack)
    assert caught.value is error
    (entry,) = [row for row in traceback.extract_tb(error.__traceback__) if row.name == "deep"]
    assert entry.lineno == first_line(deep) + 4
    try:
        deep(None)
    except TypeError as natural:
        assert traceback.extract_tb(natural.__traceback__)[-1].lineno == first_line(deep) + 2
    assert entry.end_lineno == first_line(deep) + 6


def first_line(function: Callable[..., Any]) -> int:
    return function.__code__.co_firstlineno


def handling(a):
    try:
        raise KeyError(a)
    except KeyError:
        return note(a)


class Exits:
    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        note(traceback is not None and traceback.tb_frame.f_code.co_name)
        return True


#: how a with statement's exit lies on the stack
LEAVE = ("value", "null") if "LOAD_SPECIAL" in dis.opmap else ("value",)


def test_handled_exceptions_have_a_traceback() -> None:
    """One that never was raised (the tracer made it) gets one: an __exit__ may count on it, and 3.11 does."""

    def f(a):
        with a:
            try:
                note(1)
            except OSError:
                note(2)
                raise

    instrs = decode(f.__code__).instrs
    handler = next(instr for instr in instrs if instr.op == "CHECK_EXC_MATCH")
    at = next(instr.index for instr in instrs[handler.index :] if instr.op == "CALL")
    leave = Exits().__exit__
    for mode, payload in (("value", [None]), ("throw", [ValueError("v")])):
        LOG.clear()
        code = continuation(f.__code__, at, mode=mode, stack=(*LEAVE, "handler"), names=())
        assert make_function(code, globals())(*payload, leave, OSError("made")) is None
        assert LOG == ["f"]
    push = next(instr.index for instr in instrs if instr.op == "WITH_EXCEPT_START") - 1
    LOG.clear()
    code = continuation(f.__code__, push, mode="enter", stack=(*LEAVE, "lasti", "value"))
    assert make_function(code, globals())(leave, OSError("made")) is None
    assert LOG == ["f"]


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException:
        return error


def test_the_place_of_a_caught_exception() -> None:
    """When the handler has sent the exception on, the frame stands where it was raised."""

    def f(a):
        try:
            note(a)
            pass
        finally:
            note(2)

    kinds = ("handler", "lasti", "value")
    outer = continuation(f.__code__, index_of(f.__code__, "COPY"), mode="enter", stack=kinds, raised=(3,))
    (place,) = _origins[outer].raised
    assert original_of(outer, place) == (f.__code__, 3)
    inner = continuation(outer, index_of(outer, "COPY"), mode="enter", stack=kinds, raised=(place,))
    for code in (outer, inner):
        frames: list[types.FrameType] = []
        sys.setprofile(lambda frame, event, arg, frames=frames: frames.append(frame))  # type: ignore[misc]
        with pytest.raises(OSError, match="sent on"):
            make_function(code, globals())(raised(KeyError()), raised(OSError("sent on")))
        sys.setprofile(None)
        (frame,) = {frame for frame in frames if frame.f_code is code}
        assert frame.f_lineno == first_line(f) + 2


def index_of(code: types.CodeType, op: str) -> int:
    return next(instr.index for instr in decode(code).instrs if instr.op == op)


def test_frames_show_through_cells() -> None:
    def f(a):
        b = [a]
        note(b)
        return sys._getframe().f_locals["b"], lambda: b

    machine = stopped(f, (1,), 0)
    while machine.instr.op != "POP_TOP":
        machine.step()
    assert resume(machine, machine.index, "enter", [], machine.stack)[0] == [1]


def test_thrown_exception_keeps_its_context() -> None:
    (call,) = [index for index in calls_of(handling) if decode(handling.__code__).instrs[index].arg[0] == 1][-1:]
    inner = ValueError("inner")
    error = OSError("outer")
    error.__context__ = inner
    code = continuation(handling.__code__, call, mode="throw", stack=("handler",), names=())
    with pytest.raises(OSError):
        make_function(code, globals())(error, KeyError(1))
    assert error.__context__ is inner


def positions(code: types.CodeType) -> list[Any]:
    return list(code.co_positions())


def compare_bodies(made: types.CodeType, code: types.CodeType) -> int:
    """Instruction by instruction, what a continuation keeps is the original's."""
    found, there = decode(made).instrs, decode(code).instrs
    places, original_places = positions(made), positions(code)
    compared = 0
    for instr in found:
        original, index = original_of(made, instr.index)
        if original is made:
            assert in_prologue(made, instr.index)
            continue
        same = there[index]
        assert (instr.op, places[instr.offset >> 1]) == (same.op, original_places[same.offset >> 1])
        assert (instr.handler is None) == (same.handler is None)
        if instr.handler is not None:
            assert original_of(made, instr.handler.target)[1] == same.handler.target
            assert instr.handler[1:] == same.handler[1:]
        if instr.op in JUMPS:
            assert original_of(made, instr.arg) == (code, same.arg)
        else:
            assert instr.arg == same.arg
        compared += 1
    return compared


@pytest.mark.parametrize("module", [asyncio.tasks, dataclasses, inspect, tarfile], ids=lambda module: module.__name__)
def test_bodies_of_the_standard_library(module: types.ModuleType) -> None:
    compared = 0
    for code in module_codes(module):
        if code.co_flags & 3 != 3:
            continue
        decoded = decode(code)
        for index in range(0, len(decoded.instrs), 97):
            if (
                depths(decoded)[index] < 0
                or handled(decoded)[index]
                or decoded.instrs[index].op in STOPPED_BEFORE_IT_BEGAN
            ):
                continue
            try:
                made = continuation(code, index, mode="enter", stack=("value",) * depths(decoded)[index])
            except ContinuationError as error:
                assert "super()" in str(error)
                continue
            compared += compare_bodies(made, code)
            assert depths(decode(made))
    assert compared > 500


def test_long_functions_need_extended_arguments() -> None:
    lines = [f"    x{n} = note({n}) + c{n % 3}" for n in range(400)]
    body = "\n".join(lines)
    source = f"def f(c0, c1, c2):\n  for k in range(2):\n{body}\n    if k: break\n  return x0, x399"
    scope: dict[str, Any] = {"note": note}
    exec(source, scope)
    function = scope["f"]
    expected = native(function, (0, 1, 2))
    for step in (5, 100, 2000, 3000, 4000, 5000):
        machine = stopped(function, (0, 1, 2), step)
        end = outcome(lambda: resume(machine, machine.index, "enter", [], machine.stack))
        assert (shown(end), shown(LOG)) == expected


def test_hidden_parameters_do_not_show() -> None:
    def f(a):
        return [note(a), sorted(locals())]

    call = calls_of(f)[0]
    machine = stopped(f, (1,), 0)
    while machine.index != call:
        machine.step()
    assert resume(machine, call, "value", [5], machine.stack[: -decode(f.__code__).instrs[call].arg[0] - 2]) == [
        5,
        ["a"],
    ]


def test_references_are_given_up() -> None:
    """What was on the stack dies when the original would have let it die."""

    class Thing:
        pass

    def f(a, dead):
        return [note(a), dead()]

    call = calls_of(f)[0]
    thing = Thing()
    code = continuation(f.__code__, call, names=("dead",), stack=())
    function = make_function(code, globals())
    dead = weakref.ref(thing)

    def passes() -> Any:
        nonlocal thing
        held = [thing]
        del thing
        return function(held.pop(), dead)

    result = passes()
    assert isinstance(result[0], Thing) and result[1] is result[0]  # kept: it is on the stack

    def g(a, dead):
        note(a)
        return dead()

    code = continuation(g.__code__, calls_of(g)[0], names=("dead",))
    function = make_function(code, globals())
    thing = Thing()
    dead = weakref.ref(thing)
    assert passes() is None  # popped, and no parameter holds it


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"mode": "other"}, "unknown mode"),
        ({"stack": ("thing",)}, "unknown mode"),
        ({"names": ("nothing",)}, "not locals"),
        ({"names": ("a", "a")}, "not locals"),
        ({"results": 2}, "needs 1 stack entries, not 2"),
        ({"stack": ("value",)}, "needs 1 stack entries, not 2"),
        ({"target": 10**6}, "nothing comes after"),
        ({"generator": True}, "stands at a YIELD_VALUE"),
    ],
)
def test_misuse(changes: dict[str, Any], text: str) -> None:
    (call,) = calls_of(simple)
    with pytest.raises(ContinuationError, match=text):
        continuation(simple.__code__, call, **changes)


def test_places_without_a_continuation() -> None:
    last = decode(simple.__code__).instrs[-1].index
    with pytest.raises(ContinuationError, match="nothing comes after"):
        continuation(simple.__code__, last, results=0)
    with pytest.raises(ContinuationError, match="has not begun"):
        continuation(samples.closures.__code__, 0, mode="enter")
    with pytest.raises(ContinuationError, match="class or module body"):
        continuation(compile("x = f()", "?", "exec"), 0, mode="enter")
    (call,) = calls_of(simple)
    made = continuation(simple.__code__, call, names=("b",))
    with pytest.raises(ContinuationError, match="prologue"):
        continuation(made, 0, mode="enter")


def test_break_at_the_call_of_a_prologue() -> None:
    """A call made by a continuation that breaks once more stands for the original's instruction and target."""
    call = calls_of(simple)[0]
    made = continuation(simple.__code__, call, mode="call", names=("b",))
    (at,) = [instr.index for instr in decode(made).instrs if instr.op == "CALL_FUNCTION_EX"]
    assert original_of(made, at) == (simple.__code__, call)
    again = continuation(made, at, names=("b",))
    assert again is continuation(simple.__code__, call, names=("b",))
    loop = next(instr for instr in decode(samples.loops.__code__).instrs if instr.op == "FOR_ITER")
    with pytest.raises(ContinuationError, match="operands"):
        continuation(made, at, mode="enter", stack=("value", "value", "value"))


def jumping(a):
    for i in a:
        note(i)
    return a


def test_target_survives_a_break_at_the_call_of_a_prologue() -> None:
    instrs = decode(jumping.__code__).instrs
    loop = next(instr for instr in instrs if instr.op == "FOR_ITER")
    made = continuation(jumping.__code__, loop.index, mode="call", target=loop.index + 1, stack=("value",))
    (at,) = [instr.index for instr in decode(made).instrs if instr.op == "CALL_FUNCTION_EX"]
    again = continuation(made, at, stack=("value",))
    assert again is continuation(jumping.__code__, loop.index, target=loop.index + 1, stack=("value",))


def handles(a, i):
    try:
        return a[i]
    except IndexError:
        return "handled"


class Raises:
    def __getitem__(self, index):
        raise IndexError(index)


def refuse():
    raise IndexError


@pytest.mark.parametrize("mode", ["call", "enter"])
def test_a_handler_whose_range_begins_with_a_call(mode: str) -> None:
    """Python functions that the interpreter runs without a call of its own are looked up in their own way (3.13)."""
    at = next(instr.index for instr in decode(handles.__code__).instrs if instr.op == "BINARY_SUBSCR")
    stack = ("value", "value") if mode == "enter" else ()
    made = make_function(continuation(handles.__code__, at, mode=mode, stack=stack, names=("i",)), globals())
    given = (Raises(), 1, 1) if mode == "enter" else (refuse, (), 1)
    # Often enough for the interpreter to specialise the subscript.
    assert [made(*given) for _ in range(100)] == ["handled"] * 100


def test_freevars_in_order() -> None:
    code = samples.closures.__code__
    assert continuation_freevars(code) == (*code.co_cellvars, *code.co_freevars)
    call = calls_of(samples.closures)[0]
    machine = stopped(samples.closures, ("a", 1), 0)
    while machine.index != call:
        machine.step()
    kinds, _, names, _ = machine.state(machine.stack[: -decode(code).instrs[call].arg[0] - 2])
    made = continuation(code, call, stack=kinds, names=names)
    assert made.co_freevars == continuation_freevars(code) == continuation_freevars(made)
    assert made.co_cellvars == code.co_cellvars
