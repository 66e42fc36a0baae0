"""The operation that broke the graph, as ordinary Python: as its opcode's row says, or a small function here."""

from __future__ import annotations

import builtins
import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from stator._core import apply
from stator.bytecode import NULL_FIRST, runtime
from stator.bytecode.canonical import CANONICAL, IN_CODEGEN, Opcode
from stator.space.operators import BINARY, COMPARE
from stator.space.value import NULL, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Writer
    from stator.space.signals import FrameState

_WORD = re.compile(r"\w+")


class Native:
    """How to execute one instruction: a call, what of its result goes where, and what is left on the stack."""

    def __init__(self, state: FrameState, writer: Writer) -> None:
        self.writer = writer
        self.op = state.instr.op
        self.arg = state.instr.arg
        self.index = state.instr.index
        self.stack = list(state.stack)
        self.globals = state.frame.globals
        #: the function that is called, and its arguments
        self.call: list[str] = []
        #: names of the results to push; None in the list stands for a NULL
        self.results: list[str | None] = ["result"]
        #: unpack the call's result into `results` (else it is the only one)
        self.unpacks = False
        #: for jumps: condition text → (target when true, stack results when true); `results` are for falling through
        self.jump: tuple[str, int, list[str]] | None = None

    def pop(self) -> str:
        return self.writer.expr(self.stack.pop())

    def pop_raw(self) -> Value:
        return self.stack.pop()

    def do(self, function: Callable[..., object], *args: str) -> None:
        """Call an embedded function on expressions."""
        self.call = [self.writer.const(function), *args]

    def callable(self) -> tuple[str, list[str]]:
        """The callable under the arguments of a call, and its `self`."""
        found = self.callable_at(2)
        del self.stack[-2:]
        return found

    def callable_at(self, depth: int) -> tuple[str, list[str]]:
        """The same, with the callable or its NULL `depth` from the top, the other one above it."""
        below, above = self.stack[-depth], self.stack[-depth + 1]
        if below is NULL:
            return self.writer.expr(above), []
        return self.writer.expr(below), [] if above is NULL else [self.writer.expr(above)]


#: what the rows of opcodes call, by its name there
_FUNCTIONS: dict[str, object] = {**vars(builtins), **vars(operator), **vars(runtime)}


def _by_row(row: Opcode) -> Callable[[Native], None]:
    """The call that an opcode's row describes, on the operands that it names."""
    called, _, rest = row.native.partition("(")
    function = eval(called, _FUNCTIONS)
    args = rest.removesuffix(")")
    named = frozenset(_WORD.findall(args))
    pushed = row.after[row.kept :]

    def native(n: Native) -> None:
        operands = {"arg": repr(n.arg)}
        top = len(n.stack)
        for number in range(len(row.before) - 1, -1, -1):
            name = row.before[number].removesuffix("…")
            below = top - (1 if name == row.before[number] else row.many(n.arg))
            if name in named:
                texts = [n.writer.expr(value) for value in reversed(n.stack[below:top])]
                operands[name] = ", ".join(reversed(texts))
            if number >= row.kept:
                del n.stack[below:]
            top = below
        if "globals" in named:
            operands["globals"] = n.writer.globals(n.globals)
        n.do(function, _WORD.sub(lambda word: operands.get(word[0], word[0]), args))
        n.unpacks = len(pushed) > 1
        n.results = [*pushed] if n.unpacks else ["result"] * len(pushed)

    return native


NATIVE: dict[str, Callable[[Native], None]] = {
    op: _by_row(row) for op, row in CANONICAL.items() if row.native not in ("", IN_CODEGEN)
}
"""How to do each instruction that generated code can do; those below are too much for a row."""


def _native(*names: str) -> Callable[[Callable[[Native], None]], Callable[[Native], None]]:
    def decorate(function: Callable[[Native], None]) -> Callable[[Native], None]:
        for name in names:
            assert CANONICAL[name].native == IN_CODEGEN, name
            NATIVE[name] = function
        return function

    return decorate


@_native("CALL")
def _call(n: Native) -> None:
    count, names = n.arg
    _emit_call(n, count, names)


@_native("CALL_KW")
def _call_kw(n: Native) -> None:
    names = n.pop_raw().as_host(n.writer.trace.space)
    _emit_call(n, n.arg, names)


def _emit_call(n: Native, count: int, names: tuple[str, ...]) -> None:
    args = [n.pop() for _ in range(count)][::-1]
    function, receiver = n.callable()
    split = count - len(names)
    parts = [function, *receiver, *args[:split]] + [f"{k}={v}" for k, v in zip(names, args[split:], strict=True)]
    n.call = parts


@_native("CALL_FUNCTION_EX")
def _call_ex(n: Native) -> None:
    last = n.pop_raw() if n.arg else NULL
    keywords = [] if last is NULL else [n.writer.expr(last)]
    is_tuple, args = n.stack[-1].cls is tuple, n.pop()
    function, receiver = n.callable()
    if is_tuple and not receiver:
        n.do(apply, function, args, *keywords)
        return
    n.call = [function, *receiver, f"*{args}", *(f"**{k}" for k in keywords)]


@_native("BINARY_OP")
def _binary(n: Native) -> None:
    right, left = n.pop(), n.pop()
    symbol = n.arg
    if symbol in BINARY:
        n.do(BINARY[symbol][0], left, right)
    else:
        n.do(getattr(operator, f"i{BINARY[symbol[:-1]][0].__name__.rstrip('_')}"), left, right)


@_native("COMPARE_OP")
def _compare(n: Native) -> None:
    right, left = n.pop(), n.pop()
    n.do(COMPARE[n.arg][0], left, right)


@_native("CONTAINS_OP")
def _contains(n: Native) -> None:
    container, item = n.pop(), n.pop()
    n.do(runtime.not_contains if n.arg else operator.contains, container, item)


@_native("LOAD_METHOD")
def _load_method(n: Native) -> None:
    n.do(getattr, n.pop(), repr(n.arg))
    n.results = [None, "result"] if NULL_FIRST else ["result", None]


@_native("WITH_EXCEPT_START")
def _with_except(n: Native) -> None:
    leave, receiver = n.callable_at(5) if n.arg else (n.writer.expr(n.stack[-4]), [])
    n.do(runtime.with_except, n.writer.expr(n.stack[-1]), leave, *receiver)


@_native("FORMAT_VALUE")
def _format(n: Native) -> None:
    conversion, has_spec = n.arg
    spec = n.pop() if has_spec else "''"
    n.do(runtime.format_value, n.pop(), repr(conversion), spec)


@_native("CONVERT_VALUE")
def _convert(n: Native) -> None:
    conversions: dict[str, Callable[[object], str]] = {"s": str, "r": repr, "a": ascii}
    n.do(conversions[n.arg], n.pop())


@_native("UNPACK_SEQUENCE")
def _unpack(n: Native) -> None:
    n.do(runtime.unpack, n.pop(), str(n.arg))
    n.results = [f"item{i}" for i in reversed(range(n.arg))]
    n.unpacks = True


@_native("UNPACK_EX")
def _unpack_ex(n: Native) -> None:
    before, after = n.arg
    n.do(runtime.unpack_ex, n.pop(), str(before), str(after))
    n.results = [f"item{i}" for i in reversed(range(before + after + 1))]
    n.unpacks = True


@_native("DICT_MERGE")
def _merge(n: Native) -> None:
    mapping = n.pop()
    target = n.writer.expr(n.stack[-n.arg])
    below = n.stack[-n.arg - 2]
    function = n.writer.expr(n.stack[-n.arg - 3] if below is NULL else below)  # or the NULL lies above the callable
    n.do(runtime.dict_merge, target, mapping, function)
    n.results = []


@_native("LOAD_BUILD_CLASS")
def _build_class(n: Native) -> None:
    n.do(getattr, n.writer.const(builtins), "'__build_class__'")


@_native("FOR_ITER")
def _for_iter(n: Native) -> None:
    n.do(next, n.writer.expr(n.stack[-1]), n.writer.const(runtime.END))
    n.jump = (f"result is {n.writer.const(runtime.END)}", n.arg, ["drop"])


@_native("POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE")
def _pop_jump(n: Native) -> None:
    n.do(bool, n.pop())
    n.results = []
    n.jump = ("not result" if n.op == "POP_JUMP_IF_FALSE" else "result", n.arg, [])


@_native("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP")
def _jump_or_pop(n: Native) -> None:
    value = n.pop()
    n.do(bool, value)
    n.results = []
    condition = "not result" if n.op == "JUMP_IF_FALSE_OR_POP" else "result"
    n.jump = (condition, n.arg, [value])


@_native("BUILD_MAP")
def _build_map(n: Native) -> None:
    flat = [n.pop() for _ in range(2 * n.arg)][::-1]
    pairs = ", ".join(f"({k}, {v})" for k, v in zip(flat[::2], flat[1::2], strict=True))
    n.do(dict, f"[{pairs}]")
