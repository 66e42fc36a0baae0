"""A small interpreter of the canonical instruction set on real objects: what the tests hold the decoder and the
continuations against. It can be stopped before any instruction, and then shows the frame's whole state."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from stator.bytecode import NULL_FIRST, Instr, continuation_freevars, decode
from tests.bytecode.reference_values import NULL, UNARY, Null, Values, stop_iteration_error


class Lasti:
    """The entry an exception table row pushes under the exception."""


class Handled:
    """The entry PUSH_EXC_INFO leaves, with the exception handled from then on."""

    def __init__(self, exc: BaseException) -> None:
        self.exc = exc


def under(handled: BaseException | None, action: Callable[[], Any]) -> Any:
    """Runs the action while `handled` is the exception being handled."""
    if handled is None:
        return action()
    context, traceback = handled.__context__, handled.__traceback__
    try:
        raise handled
    except BaseException:
        handled.__context__, handled.__traceback__ = context, traceback
        return action()


def awaitable(value: Any) -> Any:
    return value if isinstance(value, types.CoroutineType) else value.__await__()


class Machine(Values):
    """One frame. `step()` runs one instruction; `ended` says how the frame ended, `yielded` what it yielded."""

    def __init__(self, function: types.FunctionType, *args: Any) -> None:
        self.code = function.__code__
        self.globals = function.__globals__
        self.decoded = decode(self.code)
        self.args = args
        slots = dict(zip(self.code.co_varnames, args))
        in_cells = self.decoded.cellvars
        self.locals: dict[str, Any] = {name: slots[name] for name in slots if name not in in_cells}
        self.cells: dict[str, Any] = {name: slots[name] for name in slots if name in in_cells}
        self.closure = function.__closure__ or ()
        self.stack: list[Any] = []
        self.handlers: list[Handled] = []
        self.index = 0
        self.ended: tuple[str, Any] | None = None
        self.yielded: list[Any] | None = None
        self.raised: BaseException | None = None

    @property
    def handled(self) -> BaseException | None:
        """The exception being handled."""
        return self.handlers[-1].exc if self.handlers else None

    @property
    def instr(self) -> Instr:
        return self.decoded.instrs[self.index]

    def state(self, stack: list[Any] | None = None) -> tuple[tuple[str, ...], list[Any], tuple[str, ...], list[Any]]:
        """Kinds and values of the stack, names and values of the locals."""
        entries = self.stack if stack is None else stack
        kinds, values, open_handlers = [], [], list(self.handlers)
        for entry in entries:
            if entry in open_handlers:
                open_handlers.remove(entry)
                kinds.append("handler")
                values.append(entry.exc)
            elif isinstance(entry, (Null, Lasti)):
                kinds.append("null" if entry is NULL else "lasti")
            elif entry in self.handlers:
                assert entry is self.handlers[-1]
                kinds.append("previous")
            else:  # of a handler that is over any value will do
                kinds.append("value")
                values.append(entry)
        bound = {**self.locals, **{name: value for name, value in self.cells.items() if self.plain(value)}}
        return tuple(kinds), values, tuple(bound), list(bound.values())

    def plain(self, value: Any) -> bool:
        """Whether the slot of a cell variable holds a plain value."""
        return not isinstance(value, types.CellType)

    def cleared(self) -> frozenset[str]:
        """The cell variables whose slot is empty."""
        return frozenset(name for name in self.decoded.cellvars if name not in self.cells)

    def closure_cells(self) -> tuple[Any, ...]:
        held = (self.cells.get(name) for name in continuation_freevars(self.code))
        return tuple(types.CellType() if self.plain(value) else value for value in held)

    def step(self) -> None:
        instr = self.instr
        self.raised = None
        self.index += 1
        try:
            under(self.handled, lambda: getattr(self, instr.op, self.simple)(instr))
        except BaseException as error:
            if type(error) is NotImplementedError:
                raise
            error.__traceback__ = None
            self.throw(instr, error)

    def throw(self, instr: Instr, error: BaseException) -> None:
        """Unwinds to the handler of the instruction."""
        self.raised = error
        if instr.handler is None:
            self.ended = ("raise", error)
            return
        del self.stack[instr.handler.depth :]
        if instr.handler.push_lasti:
            self.stack.append(Lasti())
        self.stack.append(error)
        self.index = instr.handler.target

    def simple(self, instr: Instr) -> None:
        if instr.op in UNARY:
            self.stack.append(UNARY[instr.op](self.pop(1)[0]))
        elif instr.op.startswith("BUILD_"):
            self.build(instr)
        else:
            raise NotImplementedError(instr.op)

    def run(self) -> tuple[str, Any]:
        while self.ended is None:
            self.step()
        return self.ended

    # Variables

    def LOAD_CONST(self, instr: Instr) -> None:
        self.stack.append(instr.arg)

    def LOAD_FAST(self, instr: Instr) -> None:
        if instr.arg not in self.locals:
            text = f"cannot access local variable '{instr.arg}' where it is not associated with a value"
            raise UnboundLocalError(text)
        self.stack.append(self.locals[instr.arg])

    def LOAD_FAST_AND_CLEAR(self, instr: Instr) -> None:
        self.stack.append(self.locals.pop(instr.arg, NULL))

    def STORE_FAST(self, instr: Instr) -> None:
        value = self.stack.pop()
        if value is NULL:
            self.locals.pop(instr.arg, None)
        else:
            self.locals[instr.arg] = value

    def DELETE_FAST(self, instr: Instr) -> None:
        if instr.arg in self.cells:  # only a continuation's prologue, before the slot's cell is there
            del self.cells[instr.arg]
            return
        self.LOAD_FAST(instr)
        self.stack.pop()
        del self.locals[instr.arg]

    def LOAD_CLOSURE(self, instr: Instr) -> None:
        if instr.arg not in self.cells:
            text = f"cannot access local variable '{instr.arg}' where it is not associated with a value"
            raise UnboundLocalError(text)
        self.stack.append(self.cells[instr.arg])

    def LOAD_CELL_AND_CLEAR(self, instr: Instr) -> None:
        self.stack.append(self.cells.pop(instr.arg, NULL))

    def STORE_CELL(self, instr: Instr) -> None:
        cell = self.stack.pop()
        if cell is NULL:
            self.cells.pop(instr.arg, None)
        else:
            self.cells[instr.arg] = cell

    def MAKE_CELL(self, instr: Instr) -> None:
        held = [self.cells[instr.arg]] if instr.arg in self.cells else []
        self.cells[instr.arg] = types.CellType(*held)

    def COPY_FREE_VARS(self, instr: Instr) -> None:
        self.cells.update(zip(self.decoded.freevars, self.closure, strict=True))

    def LOAD_DEREF(self, instr: Instr) -> None:
        try:
            self.stack.append(self.cells[instr.arg].cell_contents)
        except ValueError:
            if instr.arg in self.decoded.cellvars:
                text = f"cannot access local variable '{instr.arg}' where it is not associated with a value"
                raise UnboundLocalError(text) from None
            name = f"'{instr.arg}' where it is not associated with a value in enclosing scope"
            raise NameError("cannot access free variable " + name) from None

    def STORE_DEREF(self, instr: Instr) -> None:
        self.cells[instr.arg].cell_contents = self.stack.pop()

    def DELETE_DEREF(self, instr: Instr) -> None:
        self.LOAD_DEREF(instr)
        self.stack.pop()
        del self.cells[instr.arg].cell_contents

    def LOAD_GLOBAL(self, instr: Instr) -> None:
        if instr.arg in self.globals:
            self.stack.append(self.globals[instr.arg])
        elif hasattr(builtins, instr.arg):
            self.stack.append(getattr(builtins, instr.arg))
        else:
            raise NameError(f"name '{instr.arg}' is not defined")

    def LOAD_ATTR(self, instr: Instr) -> None:
        self.stack.append(getattr(self.pop(1)[0], instr.arg))

    def LOAD_METHOD(self, instr: Instr) -> None:
        attr = getattr(self.pop(1)[0], instr.arg)
        if isinstance(attr, types.MethodType):
            self.stack += [attr.__func__, attr.__self__]
        else:
            self.stack += [NULL, attr] if NULL_FIRST else [attr, NULL]

    def LOAD_SUPER_ATTR(self, instr: Instr) -> None:
        callee, cls, this = self.pop(3)
        self.stack.append(callee(cls, this))
        name, is_method, _ = instr.arg
        (self.LOAD_METHOD if is_method else self.LOAD_ATTR)(Instr("", name, 0, 0, None, None, ""))

    def STORE_ATTR(self, instr: Instr) -> None:
        value, owner = self.pop(2)
        setattr(owner, instr.arg, value)

    def STORE_GLOBAL(self, instr: Instr) -> None:
        self.globals[instr.arg] = self.stack.pop()

    def LOAD_BUILD_CLASS(self, instr: Instr) -> None:
        self.stack.append(builtins.__build_class__)

    def LOAD_COMMON_CONSTANT(self, instr: Instr) -> None:
        self.stack.append(instr.arg)

    def IMPORT_NAME(self, instr: Instr) -> None:
        level, names = self.pop(2)
        self.stack.append(__import__(instr.arg, self.globals, None, names, level))

    def IMPORT_FROM(self, instr: Instr) -> None:
        self.stack.append(getattr(self.stack[-1], instr.arg))

    # Jumps and iteration

    def JUMP(self, instr: Instr) -> None:
        self.index = instr.arg

    def jump_if(self, instr: Instr, taken: bool) -> None:
        if taken:
            self.index = instr.arg

    def POP_JUMP_IF_FALSE(self, instr: Instr) -> None:
        self.jump_if(instr, not self.stack.pop())

    def POP_JUMP_IF_TRUE(self, instr: Instr) -> None:
        self.jump_if(instr, bool(self.stack.pop()))

    def POP_JUMP_IF_NONE(self, instr: Instr) -> None:
        self.jump_if(instr, self.stack.pop() is None)

    def POP_JUMP_IF_NOT_NONE(self, instr: Instr) -> None:
        self.jump_if(instr, self.stack.pop() is not None)

    def JUMP_IF_FALSE_OR_POP(self, instr: Instr) -> None:
        if self.stack[-1]:
            self.stack.pop()
        else:
            self.index = instr.arg

    def JUMP_IF_TRUE_OR_POP(self, instr: Instr) -> None:
        if not self.stack[-1]:
            self.stack.pop()
        else:
            self.index = instr.arg

    def FOR_ITER(self, instr: Instr) -> None:
        try:
            self.stack.append(next(self.stack[-1]))
        except StopIteration:
            self.stack.pop()
            self.index = instr.arg

    def RETURN_VALUE(self, instr: Instr) -> None:
        self.ended = ("return", self.stack.pop())

    # Generators and coroutines

    def RETURN_GENERATOR(self, instr: Instr) -> None:
        self.stack.append(None)

    def YIELD_VALUE(self, instr: Instr) -> None:
        self.yielded = [self.stack.pop()]

    def SEND(self, instr: Instr) -> None:
        receiver, value = self.stack[-2:]
        try:
            native = isinstance(receiver, (types.GeneratorType, types.CoroutineType))
            self.stack[-1] = next(receiver) if value is None and not native else receiver.send(value)
        except StopIteration as stop:
            self.pop(2)
            self.stack.append(stop.value)
            self.index = instr.arg

    def resume(self, action: str, value: Any) -> None:
        """What the generator's send() or throw() does to a frame suspended at a YIELD_VALUE."""
        at = self.decoded.instrs[self.index - 1]
        before = self.decoded.instrs[self.index - 2]
        self.yielded = None
        if action == "send":
            self.stack.append(value)
        elif before.op == "SEND" and hasattr(self.stack[-1], "throw"):
            try:
                self.yielded = [self.stack[-1].throw(value)]
            except StopIteration as stop:
                self.stack[-1] = stop.value
                self.index = before.arg
            except BaseException as error:
                self.throw(at, error)
        else:
            self.stack.append(value)
            self.throw(at, value)

    def END_SEND(self, instr: Instr) -> None:
        del self.stack[-2]

    def CLEANUP_THROW(self, instr: Instr) -> None:
        _, _, error = self.pop(3)
        if not isinstance(error, StopIteration):
            raise error
        self.stack += [None, error.value]

    def GET_AWAITABLE(self, instr: Instr) -> None:
        self.stack.append(awaitable(self.stack.pop()))

    def GET_ANEXT(self, instr: Instr) -> None:
        self.stack.append(awaitable(self.stack[-1].__anext__()))

    def END_ASYNC_FOR(self, instr: Instr) -> None:
        _, error = self.pop(2)
        if not isinstance(error, StopAsyncIteration):
            raise error

    # Exceptions and context managers

    def PUSH_EXC_INFO(self, instr: Instr) -> None:
        error = self.stack.pop()
        entry = Handled(error)
        self.handlers.append(entry)
        self.stack += [entry, error]

    def POP_EXCEPT(self, instr: Instr) -> None:
        assert self.stack.pop() is self.handlers.pop()

    def CHECK_EXC_MATCH(self, instr: Instr) -> None:
        self.stack.append(isinstance(self.stack[-2], self.stack.pop()))

    def CHECK_EG_MATCH(self, instr: Instr) -> None:
        error, kind = self.pop(2)
        if not isinstance(error, BaseExceptionGroup):
            error = BaseExceptionGroup("", [error]) if isinstance(error, kind) else error
        match, rest = error.split(kind) if isinstance(error, BaseExceptionGroup) else (None, error)
        if match is not None:
            self.handlers[-1].exc = match
        self.stack += [rest, match]

    def PREP_RERAISE_STAR(self, instr: Instr) -> None:
        _, found = self.pop(2)
        rest = [error for error in found if error is not None]
        if len(rest) > 1:
            raise NotImplementedError("several exceptions out of except*")
        self.stack.append(rest[0] if rest else None)

    def RERAISE(self, instr: Instr) -> None:
        error = self.stack.pop()
        context = error.__context__
        try:
            raise error
        finally:
            error.__context__ = context

    def RAISE_VARARGS(self, instr: Instr) -> None:
        values = self.pop(instr.arg)
        if len(values) == 2:
            raise values[0] from values[1]
        if values:
            raise values[0]
        if self.handled is None:
            raise RuntimeError("No active exception to reraise")
        self.stack.append(self.handled)
        self.RERAISE(instr)

    def LOAD_SPECIAL(self, instr: Instr) -> None:
        self.LOAD_METHOD(instr)

    def BEFORE_WITH(self, instr: Instr) -> None:
        manager = self.stack.pop()
        leave = manager.__exit__
        self.stack += [leave, manager.__enter__()]

    def BEFORE_ASYNC_WITH(self, instr: Instr) -> None:
        manager = self.stack.pop()
        leave = manager.__aexit__
        self.stack += [leave, manager.__aenter__()]

    def WITH_EXCEPT_START(self, instr: Instr) -> None:
        error = self.stack[-1]
        leave, receiver = self.stack[-5:-3] if instr.arg else (self.stack[-4], NULL)
        given = () if receiver is NULL else (receiver,)
        self.stack.append(leave(*given, type(error), error, error.__traceback__))

    # Calls and functions

    def invoke(self, callee: Any, args: list[Any], kwargs: Mapping[str, Any]) -> Any:
        if callee is super and not args:
            first = self.code.co_varnames[0]
            this = self.cells[first].cell_contents if first in self.cells else self.locals[first]
            return super(self.cells["__class__"].cell_contents, this)
        if callee in (locals, vars) and not args:
            full = {name.rstrip("'"): cell for name, cell in self.cells.items() if cell != types.CellType()}
            return {**self.locals, **{name: cell.cell_contents for name, cell in full.items()}}
        return callee(*args, **kwargs)

    def call(self, args: list[Any], names: tuple[str, ...]) -> None:
        low, high = self.pop(2)
        self.stack.append(NULL)  # the operands stay until the call is over; their number does not matter here
        if (low if NULL_FIRST else high) is NULL:
            callee = high if NULL_FIRST else low
        else:
            callee, args = low, [high, *args]
        split = len(args) - len(names)
        result = self.invoke(callee, args[:split], dict(zip(names, args[split:])))
        self.stack[-1] = result

    def CALL(self, instr: Instr) -> None:
        count, names = instr.arg
        self.call(self.pop(count), names)

    def CALL_KW(self, instr: Instr) -> None:
        *args, names = self.pop(instr.arg + 1)
        self.call(args, names)

    def CALL_FUNCTION_EX(self, instr: Instr) -> None:
        kwargs = self.stack.pop() if instr.arg else NULL
        low, high, args = self.pop(3)
        self.stack.append(NULL)
        self.stack[-1] = self.invoke(high if NULL_FIRST else low, list(args), {} if kwargs is NULL else kwargs)

    def MAKE_FUNCTION(self, instr: Instr) -> None:
        code = self.stack.pop()
        parts = {bit: self.stack.pop() for bit in (8, 4, 2, 1) if instr.arg & bit}
        unset = tuple(types.CellType() for _ in code.co_freevars)  # until SET_FUNCTION_ATTRIBUTE
        function = types.FunctionType(code, self.globals, code.co_name, parts.get(1), parts.get(8, unset))
        function.__kwdefaults__ = parts.get(2)
        self.stack.append(function)

    def SET_FUNCTION_ATTRIBUTE(self, instr: Instr) -> None:
        value, function = self.pop(2)
        if instr.arg == 8:
            function = types.FunctionType(
                function.__code__, self.globals, function.__name__, function.__defaults__, value
            )
        else:
            parts = {1: "__defaults__", 2: "__kwdefaults__", 4: "__annotations__", 16: "__annotate__"}
            setattr(function, parts[instr.arg], value)
        self.stack.append(function)


def drive(machine: Machine, script: Iterator[tuple[str, Any]]) -> list[Any]:
    """Runs a generator's frame by a script of sends and throws; what it yielded and how it ended."""
    seen: list[Any] = []
    while machine.ended is None:
        machine.step()
        while machine.yielded is not None:
            seen += machine.yielded
            machine.resume(*next(script))
    how, value = machine.ended
    if how == "raise":  # 3.11: the generator object does what STOPITERATION_ERROR does later
        value = stop_iteration_error(value)
    return [*seen, (how, value)]
