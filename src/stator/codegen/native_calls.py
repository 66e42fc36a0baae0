"""The operation that broke the graph, as ordinary Python: one small description per canonical opcode."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stator._core import apply
from stator.bytecode import NULL_FIRST, runtime
from stator.space.operators import BINARY, COMPARE
from stator.space.value import NULL, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Writer
    from stator.space.signals import FrameState


class Native:
    """How to execute one instruction: a call, what of its result goes where, and what is left on the stack."""

    def __init__(self, state: FrameState, writer: Writer) -> None:
        self.writer = writer
        self.op = state.instr.op
        self.arg = state.instr.arg
        self.index = state.instr.index
        self.stack = list(state.stack)
        self.globals = state.frame.globals
        self.call = ""
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

    def do(self, function: Any, *args: str, keywords: str = "") -> None:
        """Call an embedded function on expressions."""
        parts = [self.writer.const(function), *args] + ([keywords] if keywords else [])
        self.call = f"{{run}}({', '.join(parts)})"

    def callable(self) -> tuple[str, list[str]]:
        """The callable under the arguments of a call, and its `self`."""
        above, below = self.stack.pop(), self.stack.pop()
        if below is NULL:
            return self.writer.expr(above), []
        if above is NULL:
            return self.writer.expr(below), []
        return self.writer.expr(below), [self.writer.expr(above)]


NATIVE: dict[str, Callable[[Native], None]] = {}


def _native(*names: str) -> Callable[[Callable[[Native], None]], Callable[[Native], None]]:
    def decorate(function: Callable[[Native], None]) -> Callable[[Native], None]:
        for name in names:
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
    n.call = f"{{run}}({', '.join(parts)})"


@_native("CALL_FUNCTION_EX")
def _call_ex(n: Native) -> None:
    keywords = [n.pop()] if n.arg else []
    is_tuple, args = n.stack[-1].cls is tuple, n.pop()
    function, receiver = n.callable()
    if is_tuple and not receiver:
        n.do(apply, function, args, *keywords)
        return
    first = "".join(f", {r}" for r in receiver)
    n.call = f"{{run}}({', '.join([f'{function}{first}', f'*{args}', *(f'**{k}' for k in keywords)])})"


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


@_native("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT", "UNARY_NOT", "TO_BOOL", "GET_ITER")
def _unary(n: Native) -> None:
    op = _UNARY[n.op]
    n.do(op, n.pop())


_UNARY: dict[str, Any] = {
    "UNARY_NEGATIVE": operator.neg,
    "UNARY_POSITIVE": operator.pos,
    "UNARY_INVERT": operator.invert,
    "UNARY_NOT": operator.not_,
    "TO_BOOL": bool,
    "GET_ITER": iter,
}


@_native("LOAD_ATTR")
def _load_attr(n: Native) -> None:
    n.do(getattr, n.pop(), repr(n.arg))


@_native("LOAD_METHOD")
def _load_method(n: Native) -> None:
    n.do(getattr, n.pop(), repr(n.arg))
    n.results = [None, "result"] if NULL_FIRST else ["result", None]


@_native("STORE_ATTR")
def _store_attr(n: Native) -> None:
    owner, value = n.pop(), n.pop()
    n.do(setattr, owner, repr(n.arg), value)
    n.results = []


@_native("DELETE_ATTR")
def _delete_attr(n: Native) -> None:
    n.do(delattr, n.pop(), repr(n.arg))
    n.results = []


@_native("BINARY_SUBSCR")
def _subscr(n: Native) -> None:
    key, container = n.pop(), n.pop()
    n.do(operator.getitem, container, key)


@_native("BINARY_SLICE")
def _slice(n: Native) -> None:
    stop, start, container = n.pop(), n.pop(), n.pop()
    n.do(operator.getitem, container, f"slice({start}, {stop})")


@_native("STORE_SUBSCR")
def _store_subscr(n: Native) -> None:
    key, container, value = n.pop(), n.pop(), n.pop()
    n.do(operator.setitem, container, key, value)
    n.results = []


@_native("STORE_SLICE")
def _store_slice(n: Native) -> None:
    stop, start, container, value = n.pop(), n.pop(), n.pop(), n.pop()
    n.do(operator.setitem, container, f"slice({start}, {stop})", value)
    n.results = []


@_native("DELETE_SUBSCR")
def _delete_subscr(n: Native) -> None:
    key, container = n.pop(), n.pop()
    n.do(operator.delitem, container, key)
    n.results = []


@_native("BUILD_SLICE")
def _build_slice(n: Native) -> None:
    parts = [n.pop() for _ in range(n.arg)][::-1]
    n.do(slice, *parts)


@_native("FORMAT_VALUE")
def _format(n: Native) -> None:
    conversion, has_spec = n.arg
    spec = n.pop() if has_spec else "''"
    n.do(runtime.format_value, n.pop(), repr(conversion), spec)


@_native("CONVERT_VALUE")
def _convert(n: Native) -> None:
    n.do({"s": str, "r": repr, "a": ascii}[n.arg], n.pop())


@_native("BUILD_STRING")
def _build_string(n: Native) -> None:
    parts = [n.pop() for _ in range(n.arg)][::-1]
    n.do("".join, f"[{', '.join(parts)}]")


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


@_native("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE")
def _extend(n: Native) -> None:
    iterable = n.pop()
    target = n.writer.expr(n.stack[-n.arg])
    op = {"LIST_EXTEND": runtime.list_extend, "SET_UPDATE": set.update, "DICT_UPDATE": runtime.dict_update}
    n.do(op[n.op], target, iterable)
    n.results = []


@_native("DICT_MERGE")
def _merge(n: Native) -> None:
    mapping = n.pop()
    target = n.writer.expr(n.stack[-n.arg])
    below = n.stack[-n.arg - 2]
    function = n.writer.expr(n.stack[-n.arg - 3] if below is NULL else below)  # 3.13 has the NULL above the callable
    n.do(runtime.dict_merge, target, mapping, function)
    n.results = []


@_native("LIST_TO_TUPLE")
def _to_tuple(n: Native) -> None:
    n.do(tuple, n.pop())


@_native("BEFORE_WITH")
def _before_with(n: Native) -> None:
    n.do(runtime.before_with, n.pop())
    n.results = ["leave", "entered"]
    n.unpacks = True


@_native("WITH_EXCEPT_START")
def _with_except(n: Native) -> None:
    n.do(runtime.with_except, n.writer.expr(n.stack[-4]), n.writer.expr(n.stack[-1]))


@_native("IMPORT_NAME")
def _import_name(n: Native) -> None:
    fromlist, level = n.pop(), n.pop()
    n.do(builtins.__import__, repr(n.arg), n.writer.globals(n.globals), "None", fromlist, level)


@_native("IMPORT_FROM")
def _import_from(n: Native) -> None:
    n.do(runtime.import_from, n.writer.expr(n.stack[-1]), repr(n.arg))


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


@_native("CHECK_EXC_MATCH")
def _check_match(n: Native) -> None:
    pattern = n.pop()
    n.do(runtime.matches, n.writer.expr(n.stack[-1]), pattern)


@_native("GET_LEN")
def _get_len(n: Native) -> None:
    n.do(len, n.writer.expr(n.stack[-1]))


@_native("MATCH_KEYS")
def _match_keys(n: Native) -> None:
    n.do(runtime.match_keys, n.writer.expr(n.stack[-2]), n.writer.expr(n.stack[-1]))


@_native("STORE_GLOBAL")
def _store_global(n: Native) -> None:
    n.do(operator.setitem, n.writer.globals(n.globals), repr(n.arg), n.pop())
    n.results = []


@_native("LOAD_GLOBAL")
def _load_global(n: Native) -> None:
    n.do(runtime.load_global, n.writer.globals(n.globals), repr(n.arg))


@_native("LIST_APPEND")
def _list_append(n: Native) -> None:
    item = n.pop()
    n.do(list.append, n.writer.expr(n.stack[-n.arg]), item)
    n.results = []


@_native("SET_ADD")
def _set_add(n: Native) -> None:
    item = n.pop()
    n.do(set.add, n.writer.expr(n.stack[-n.arg]), item)
    n.results = []


@_native("MAP_ADD")
def _map_add(n: Native) -> None:
    value, key = n.pop(), n.pop()
    n.do(operator.setitem, n.writer.expr(n.stack[-n.arg]), key, value)
    n.results = []


@_native("BUILD_SET")
def _build_set(n: Native) -> None:
    items = [n.pop() for _ in range(n.arg)][::-1]
    n.do(set, f"[{', '.join(items)}]")


@_native("BUILD_MAP")
def _build_map(n: Native) -> None:
    flat = [n.pop() for _ in range(2 * n.arg)][::-1]
    pairs = ", ".join(f"({k}, {v})" for k, v in zip(flat[::2], flat[1::2], strict=True))
    n.do(dict, f"[{pairs}]")
