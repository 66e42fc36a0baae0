"""The part of the reference interpreter that only moves values about: operators, containers, patterns."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Mapping
from typing import Any

from stator.bytecode import Instr


class Null:
    def __repr__(self) -> str:
        return "NULL"


NULL = Null()
UNARY: dict[str, Callable[[Any], Any]] = {
    "UNARY_NEGATIVE": operator.neg,
    "UNARY_NOT": operator.not_,
    "UNARY_INVERT": operator.invert,
    "UNARY_POSITIVE": operator.pos,
    "TO_BOOL": bool,
    "GET_ITER": iter,
    "LIST_TO_TUPLE": tuple,
    "GET_YIELD_FROM_ITER": lambda value: value if isinstance(value, types.GeneratorType) else iter(value),
    "GET_AITER": lambda value: type(value).__aiter__(value),
    "STOPITERATION_ERROR": lambda exc: stop_iteration_error(exc),
}
COMPARE = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt}
COMPARE[">="] = operator.ge
CONVERT: dict[str, Callable[[Any], Any]] = {"": lambda value: value, "s": str, "r": repr, "a": ascii}


def stop_iteration_error(exc: BaseException) -> BaseException:
    if not isinstance(exc, StopIteration):
        return exc
    error = RuntimeError("generator raised StopIteration")
    error.__cause__ = error.__context__ = exc
    return error


def binary(symbol: str) -> Callable[[Any, Any], Any]:
    names = {"+": "add", "-": "sub", "*": "mul", "@": "matmul", "/": "truediv", "//": "floordiv", "%": "mod"}
    names |= {"**": "pow", "<<": "lshift", ">>": "rshift", "&": "and_", "|": "or_", "^": "xor"}
    if symbol not in names:
        return getattr(operator, "i" + names[symbol[:-1]].rstrip("_"))
    return getattr(operator, names[symbol])


class Values:
    """Instructions that need nothing of a frame but its stack."""

    stack: list[Any]

    def pop(self, count: int) -> list[Any]:
        values = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return values

    # Operators

    def BINARY_OP(self, instr: Instr) -> None:
        left, right = self.pop(2)
        self.stack.append(binary(instr.arg)(left, right))

    def COMPARE_OP(self, instr: Instr) -> None:
        left, right = self.pop(2)
        self.stack.append(COMPARE[instr.arg](left, right))

    def IS_OP(self, instr: Instr) -> None:
        left, right = self.pop(2)
        self.stack.append((left is right) != instr.arg)

    def CONTAINS_OP(self, instr: Instr) -> None:
        item, container = self.pop(2)
        self.stack.append((item in container) != instr.arg)

    def BINARY_SUBSCR(self, instr: Instr) -> None:
        container, key = self.pop(2)
        self.stack.append(container[key])

    def STORE_SUBSCR(self, instr: Instr) -> None:
        value, container, key = self.pop(3)
        container[key] = value

    def DELETE_SUBSCR(self, instr: Instr) -> None:
        container, key = self.pop(2)
        del container[key]

    def BINARY_SLICE(self, instr: Instr) -> None:
        container, start, stop = self.pop(3)
        self.stack.append(container[start:stop])

    def STORE_SLICE(self, instr: Instr) -> None:
        value, container, start, stop = self.pop(4)
        container[start:stop] = value

    def GET_LEN(self, instr: Instr) -> None:
        self.stack.append(len(self.stack[-1]))

    # Stack and containers

    def PUSH_NULL(self, instr: Instr) -> None:
        self.stack.append(NULL)

    def POP_TOP(self, instr: Instr) -> None:
        self.stack.pop()

    def COPY(self, instr: Instr) -> None:
        self.stack.append(self.stack[-instr.arg])

    def SWAP(self, instr: Instr) -> None:
        stack = self.stack
        stack[-1], stack[-instr.arg] = stack[-instr.arg], stack[-1]

    def build(self, instr: Instr) -> None:
        if instr.op == "BUILD_MAP":
            values = self.pop(2 * instr.arg)
            self.stack.append(dict(zip(values[::2], values[1::2])))
        elif instr.op == "BUILD_CONST_KEY_MAP":
            *values, keys = self.pop(instr.arg + 1)
            self.stack.append(dict(zip(keys, values)))
        elif instr.op == "BUILD_SLICE":
            self.stack.append(slice(*self.pop(instr.arg)))
        else:
            make = {"TUPLE": tuple, "LIST": list, "SET": set, "STRING": "".join}[instr.op[6:]]
            self.stack.append(make(self.pop(instr.arg)))

    def LIST_APPEND(self, instr: Instr) -> None:
        self.stack[-instr.arg - 1].append(self.stack[-1])
        self.stack.pop()

    def SET_ADD(self, instr: Instr) -> None:
        self.stack[-instr.arg - 1].add(self.stack[-1])
        self.stack.pop()

    def MAP_ADD(self, instr: Instr) -> None:
        key, value = self.pop(2)
        self.stack[-instr.arg][key] = value

    def LIST_EXTEND(self, instr: Instr) -> None:
        value = self.stack.pop()
        self.stack[-instr.arg].extend(value)

    def DICT_UPDATE(self, instr: Instr) -> None:
        value = self.stack.pop()
        self.stack[-instr.arg].update(value)

    SET_UPDATE = DICT_MERGE = DICT_UPDATE

    def UNPACK_SEQUENCE(self, instr: Instr) -> None:
        values = list(self.stack.pop())
        if len(values) != instr.arg:
            more = len(values) > instr.arg
            raise ValueError("too many" if more else "not enough")
        self.stack += values[::-1]

    def UNPACK_EX(self, instr: Instr) -> None:
        before, after = instr.arg
        values = list(self.stack.pop())
        end = len(values) - after
        self.stack += [*values[:before], values[before:end], *values[end:]][::-1]

    def FORMAT_VALUE(self, instr: Instr) -> None:
        conversion, has_spec = instr.arg
        spec = self.stack.pop() if has_spec else ""
        self.stack.append(format(CONVERT[conversion](self.stack.pop()), spec))

    def CONVERT_VALUE(self, instr: Instr) -> None:
        self.stack.append(CONVERT[instr.arg](self.stack.pop()))

    # Patterns

    def MATCH_SEQUENCE(self, instr: Instr) -> None:
        self.stack.append(isinstance(self.stack[-1], (list, tuple)))

    def MATCH_MAPPING(self, instr: Instr) -> None:
        self.stack.append(isinstance(self.stack[-1], Mapping))

    def MATCH_KEYS(self, instr: Instr) -> None:
        subject, keys = self.stack[-2:]
        found = all(key in subject for key in keys)
        self.stack.append(tuple(subject[key] for key in keys) if found else None)

    def MATCH_CLASS(self, instr: Instr) -> None:
        subject, kind, names = self.pop(3)
        wanted = [*getattr(kind, "__match_args__", ())[: instr.arg], *names]
        matched = isinstance(subject, kind) and all(hasattr(subject, name) for name in wanted)
        self.stack.append(tuple(getattr(subject, name) for name in wanted) if matched else None)
