"""Continuations everywhere: a function stopped before any of its instructions does the same when resumed."""

from __future__ import annotations

import copy
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stator.bytecode import (
    ContinuationError,
    continuation,
    decode,
    in_prologue,
    make_function,
    original_of,
)
from stator.bytecode.stack import depths
from tests.bytecode import samples
from tests.bytecode.reference import NULL, Machine, drive
from tests.bytecode.samples import GENERATORS, LOG, PLAIN

STOPPED_BEFORE_IT_BEGAN = ("COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR")


def shown(value: Any) -> Any:
    """Something to compare: functions by their name, containers through."""
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    if isinstance(value, BaseException):
        return [type(value).__name__, shown(value.args), shown(value.__cause__), shown(value.__context__)]
    if callable(value):
        return getattr(value, "__qualname__", repr(value))
    return repr(value)


def outcome(action: Callable[[], Any]) -> Any:
    try:
        end = ("return", action())
    except Exception as error:
        end = ("raise", error)
    assert sys.exc_info() == (None, None, None)
    return end


def native(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any]:
    LOG.clear()
    end = outcome(lambda: fresh(function)(*copy.deepcopy(args)))
    return shown(end), shown(LOG)


def fresh(function: Callable[..., Any]) -> types.FunctionType:
    """The function with closure cells of its own."""
    assert isinstance(function, types.FunctionType)
    cells = tuple(types.CellType(copy.deepcopy(cell.cell_contents)) for cell in function.__closure__ or ())
    if "__class__" in function.__code__.co_freevars:
        cells = function.__closure__ or ()
    return types.FunctionType(function.__code__, function.__globals__, None, function.__defaults__, cells)


def stopped(function: Callable[..., Any], args: tuple[Any, ...], step: int) -> Machine:
    LOG.clear()
    machine = Machine(fresh(function), *copy.deepcopy(args))
    while step and machine.ended is None:
        machine.step()
        step -= 1
    return machine


def steps(function: Callable[..., Any], args: tuple[Any, ...]) -> Iterator[Machine]:
    """The function stopped before every instruction it runs, once its frame has begun."""
    step = 0
    while True:
        machine = stopped(function, args, step)
        if machine.ended is not None:
            return
        if machine.instr.op not in STOPPED_BEFORE_IT_BEGAN:
            yield machine
        step += 1


def resume(machine: Machine, index: int, mode: str, payload: list[Any], stack: list[Any], **more: Any) -> Any:
    """Calls the continuation of the machine's frame."""
    kinds, values, names, bound = machine.state(stack)
    more["cleared"] = machine.cleared()
    code = continuation(machine.code, index, mode=mode, stack=kinds, names=names, **more)
    function = make_function(code, machine.globals, machine.closure_cells())
    assert depths(decode(code))  # a path that does not fit is an error
    return function(*payload, *values, *bound)


def identify(sample: tuple[Any, ...]) -> str:
    return f"{sample[0].__name__}-{len(sample[1])}-{PLAIN.index(sample) if sample in PLAIN else ''}"


each_sample = pytest.mark.parametrize(("function", "args"), PLAIN, ids=map(identify, PLAIN))


@each_sample
def test_reference_agrees(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    expected = native(function, args)
    LOG.clear()
    assert (shown(Machine(fresh(function), *copy.deepcopy(args)).run()), shown(LOG)) == expected


def reads_nothing_but_itself(machine: Machine) -> bool:
    """super() in a method that keeps `self` in a cell needs a parameter, and there is none."""
    kinds, _, names, _ = machine.state()
    code = machine.code
    takes = "super" in code.co_names and "__class__" in code.co_freevars
    return takes and not names and not {"value", "handler"} & set(kinds)


@each_sample
def test_enter_anywhere(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    expected = native(function, args)
    for machine in steps(function, args):
        if reads_nothing_but_itself(machine):
            with pytest.raises(ContinuationError):
                resume(machine, machine.index, "enter", [], machine.stack)
            continue
        at = machine.instr
        end = outcome(lambda: resume(machine, machine.index, "enter", [], machine.stack))
        assert (shown(end), shown(LOG)) == expected, at


@each_sample
def test_value_after_anything(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """What is on top of the stack after an instruction comes in as payload; where it jumped, by `target`."""
    expected = native(function, args)
    for number, machine in enumerate(steps(function, args)):
        at = machine.instr
        machine.step()
        if machine.ended is not None or machine.raised is not None or reads_nothing_but_itself(machine):
            continue
        results = number % 3
        rest = machine.stack[: len(machine.stack) - results]
        tops = machine.stack[len(rest) :]
        if len(tops) < results or machine.state(tops)[0] != ("value",) * results:
            results, rest, tops = 0, machine.stack, []
        target = None if machine.index == at.index + 1 else machine.index
        end = outcome(lambda: resume(machine, at.index, "value", tops, rest, results=results, target=target))
        assert (shown(end), shown(LOG)) == expected, at


@each_sample
def test_throw_anywhere(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Where the instruction raises, the continuation raises that exception there."""
    expected = native(function, args)
    for number, machine in enumerate(steps(function, args)):
        at, stack, kept = machine.instr, list(machine.stack), dict(machine.locals)
        machine.step()
        if machine.raised is None or reads_nothing_but_itself(machine):
            continue
        if number % 2:
            stack = stack[: at.handler.depth] if at.handler is not None else []
        machine.locals = kept
        error = machine.raised
        end = outcome(lambda: resume(machine, at.index, "throw", [error], stack))
        assert (shown(end), shown(LOG)) == expected, at


def called(operands: list[Any]) -> tuple[Any, list[Any]]:
    """Callable and arguments of a CALL without keywords."""
    low, high, *given = operands
    if low is NULL:
        return high, given
    return (low, given) if high is NULL else (low, [high, *given])


@each_sample
def test_call_anywhere(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """A call is made by the continuation, in the frame's place."""
    expected = native(function, args)
    for machine in steps(function, args):
        at = machine.instr
        if at.op != "CALL" or at.arg[1]:
            continue
        callee, given = called(machine.stack[-at.arg[0] - 2 :])
        rest = machine.stack[: -at.arg[0] - 2]
        end = outcome(lambda: resume(machine, at.index, "call", [callee, tuple(given)], rest))
        assert (shown(end), shown(LOG)) == expected, at


@each_sample
def test_continuation_of_a_continuation(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Stopped once more inside a continuation, it goes on with the original's continuation: the very same one."""
    expected = native(function, args)
    for number, machine in enumerate(steps(function, args)):
        if number % 7 or reads_nothing_but_itself(machine):
            continue
        kinds, values, names, bound = machine.state()
        cleared = machine.cleared()
        code = continuation(machine.code, machine.index, mode="enter", stack=kinds, names=names, cleared=cleared)
        again = Machine(make_function(code, machine.globals, machine.closure_cells()), *values, *bound)
        for _ in range(200):
            while in_prologue(code, again.index):
                again.step()
            if again.ended is not None:
                break
            again.step()
            if len(LOG) % 3 == 0:
                break
        if again.ended is None:
            original, index = original_of(code, again.index)
            assert original is machine.code
            assert decode(original).instrs[index].op == again.instr.op
            kinds, values, names, bound = again.state()
            assert not any(name.startswith(".r") or name.startswith(".s") for name in names)
            shape: dict[str, Any] = {"mode": "enter", "stack": kinds, "names": names, "cleared": again.cleared()}
            second = continuation(code, again.index, **shape)
            assert second is continuation(machine.code, index, **shape)
            function2 = make_function(second, again.globals, again.closure_cells())
            end = outcome(lambda: function2(*values, *bound))
        else:
            end = again.ended
        assert (shown(end), shown(LOG)) == expected, machine.instr


# Generators and coroutines


def play(generator: Any, script: Iterator[tuple[str, Any]], first: tuple[str, Any] | None = None) -> list[Any]:
    seen: list[Any] = []
    action, value = first or ("send", None)
    while True:
        try:
            seen.append(generator.send(value) if action == "send" else generator.throw(value))
        except StopIteration as stop:
            return [*seen, ("return", stop.value)]
        except Exception as error:
            return [*seen, ("raise", error)]
        action, value = next(script)


def native_generator(function: Callable[..., Any], args: Any, script: samples.Script) -> tuple[Any, Any]:
    LOG.clear()
    return shown(play(function(*args), iter(copy.deepcopy(script)))), shown(LOG)


each_generator = pytest.mark.parametrize(
    ("function", "args", "script"), GENERATORS, ids=[f"{row[0].__name__}{i}" for i, row in enumerate(GENERATORS)]
)


@each_generator
def test_reference_generator_agrees(function: Callable[..., Any], args: Any, script: samples.Script) -> None:
    expected = native_generator(function, args, script)
    LOG.clear()
    assert (shown(drive(Machine(fresh(function), *args), iter(copy.deepcopy(script)))), shown(LOG)) == expected


def run_to(function: Callable[..., Any], args: Any, script: Iterator[Any], step: int) -> tuple[Machine, list[Any]]:
    """A generator's frame after some steps: suspended, or about to run an instruction."""
    LOG.clear()
    machine, seen = Machine(fresh(function), *args), []
    for _ in range(step):
        if machine.yielded is not None:
            machine.resume(*next(script))
        elif machine.ended is None:
            machine.step()
        else:
            break
        seen += machine.yielded or []
    return machine, seen


def resumed_running(machine: Machine) -> Any:
    """Where the machine stands at a call, the generator makes it; elsewhere it goes on at the instruction."""
    at, stack = machine.instr, machine.stack
    if at.op != "CALL" or at.arg[1]:
        return resume(machine, machine.index, "enter", [], stack)
    callee, given = called(stack[-at.arg[0] - 2 :])
    return resume(machine, at.index, "call", [callee, tuple(given)], stack[: -at.arg[0] - 2])


@each_generator
def test_generator_resumed_anywhere(function: Callable[..., Any], args: Any, script: samples.Script) -> None:
    expected = native_generator(function, args, script)
    suspended = running = step = 0
    while True:
        actions = iter(copy.deepcopy(script))
        machine, seen = run_to(function, args, actions, step)
        step += 1
        if machine.ended is not None:
            break
        if machine.instr.op in STOPPED_BEFORE_IT_BEGAN:
            continue
        if machine.yielded is None:
            generator = resumed_running(machine)
            rest = play(generator, actions)
            running += 1
        else:
            generator = resume(machine, machine.index - 1, "value", [], machine.stack, generator=True)
            assert generator.send(None) is None
            rest = play(generator, actions, next(actions))
            suspended += 1
        assert (shown([*seen, *rest]), shown(LOG)) == expected, machine.instr
    assert suspended == len(expected[0]) - 1 and running > 10


def test_kind_of_object() -> None:
    machine = Machine(samples.coroutine, 1)
    while machine.instr.op != "SEND":
        machine.step()
    resumed = resume(machine, machine.index, "enter", [], machine.stack)
    assert inspect.iscoroutine(resumed)
    assert resumed.cr_code.co_name == "coroutine"
    resumed.close()


def test_suspended_generator_closes_as_the_original() -> None:
    machine = Machine(samples.delegating, 2)
    while machine.yielded is None:
        machine.step()
    generator = resume(machine, machine.index - 1, "value", [], machine.stack, generator=True)
    next(generator)
    assert generator.gi_yieldfrom is machine.stack[-1]
    LOG.clear()
    generator.close()
    assert LOG == [("finally", 0, "GeneratorExit()"), ("exit g", "GeneratorExit()", "GeneratorExit()")]
