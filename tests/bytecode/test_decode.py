"""The decoder against dis, the standard library and hand-written expectations, on the running CPython version."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import copy
import dataclasses
import dis
import enum
import functools
import gc
import inspect
import json.decoder
import json.encoder
import logging
import opcode
import pathlib
import random
import statistics
import string
import sys
import tarfile
import textwrap
import threading
import traceback
import types
import typing
import unittest.case
import weakref
from collections.abc import Iterator

import pytest

from stator.bytecode import CANONICAL, JUMPS, NULL_FIRST, decode
from stator.bytecode import decode as decode_function
from stator.bytecode.decode import _decode, _decoded, pieces
from stator.bytecode.stack import depths
from stator.bytecode.versions import current

PY312 = sys.version_info >= (3, 12)
PY313 = sys.version_info >= (3, 13)
PY314 = sys.version_info >= (3, 14)

MODULES = [
    asyncio.base_events,
    asyncio.queues,
    asyncio.streams,
    asyncio.tasks,
    collections,
    contextlib,
    copy,
    dataclasses,
    dis,
    enum,
    functools,
    inspect,
    json.decoder,
    json.encoder,
    logging,
    pathlib,
    random,
    statistics,
    string,
    tarfile,
    textwrap,
    threading,
    traceback,
    typing,
    unittest.case,
    weakref,
]


def nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from nested(value)


def module_codes(module: types.ModuleType) -> Iterator[types.CodeType]:
    source = inspect.getsource(module)
    yield from nested(compile(source, module.__file__ or "?", "exec", dont_inherit=True))


def compiled(source: str, name: str = "f") -> types.CodeType:
    """The code object of the function `name` anywhere in the source."""
    code = compile(textwrap.dedent(source), "<test>", "exec", dont_inherit=True)
    return next(found for found in nested(code) if found.co_name == name)


def listing(source: str, name: str = "f") -> list[tuple[str, object]]:
    return [(instr.op, instr.arg) for instr in decode(compiled(source, name)).instrs]


def ops(source: str, name: str = "f") -> list[str]:
    return [op for op, _ in listing(source, name)]


def test_every_opcode_is_decoded_or_excused() -> None:
    for name in dis.opmap:
        converted = name in current.CONVERT or name in current.SPLIT
        assert [converted, name in current.JUMPS, name in current.NOT_DECODED].count(True) == 1, name
    assert all(current.NOT_DECODED.values())
    known = set(dis.opmap)
    made_by_split = {"LOAD_LOCALS"} if not PY312 else set()
    assert set(current.CONVERT) - known <= made_by_split
    assert set(current.JUMPS) <= known
    assert set(current.SPLIT) <= known
    for name, split in current.SPLIT.items():
        assert {simple for simple, _ in split(31)} <= set(current.CONVERT), name


def test_no_excused_opcode_occurs_in_real_code() -> None:
    excused = set(current.NOT_DECODED) - {"CACHE", "EXTENDED_ARG"}
    for code in module_codes(typing):
        assert not excused & {opcode.opname[op] for op in code.co_code[::2]}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_standard_library(module: types.ModuleType) -> None:
    for code in module_codes(module):
        decoded = decode(code)
        assert len(depths(decoded)) == len(decoded.instrs)
        for position, instr in enumerate(decoded.instrs):
            assert instr.op in CANONICAL
            assert instr.index == position
            if instr.op in JUMPS:
                assert 0 <= instr.arg < len(decoded.instrs)
            if instr.handler is not None:
                assert decoded.instrs[instr.handler.target].op in {
                    "PUSH_EXC_INFO",
                    "COPY",
                    "SWAP",
                    "CLEANUP_THROW",
                    "END_ASYNC_FOR",
                    "STOPITERATION_ERROR",
                    "POP_TOP",
                    "STORE_FAST",
                    "LOAD_CONST",
                }


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_agrees_with_dis(module: types.ModuleType) -> None:
    """Jump targets, lines and variable names are those dis shows for the same offset."""
    for code in module_codes(module):
        decoded = decode(code)
        shown = {found.offset: found for found in dis.get_instructions(code)}
        for instr in decoded.instrs:
            there = shown[instr.offset]
            assert there.opname == instr.raw
            assert there.positions is not None
            assert instr.line == there.positions.lineno
            if instr.op in JUMPS:
                target = decoded.instrs[instr.arg]
                assert decoded.index_of_offset(there.argval) <= target.index
                if instr.op not in ("SEND", "FOR_ITER"):
                    assert decoded.index_of_offset(there.argval) == target.index
            if instr.op in ("LOAD_CONST", "LOAD_ATTR", "STORE_ATTR", "LOAD_GLOBAL", "IMPORT_NAME"):
                wanted = there.argval
                if there.opname == "LOAD_GLOBAL" or there.opname == "LOAD_ATTR":
                    wanted = code.co_names[there.arg >> 1 if PY312 or there.opname == "LOAD_GLOBAL" else there.arg]
                assert instr.arg is wanted or instr.arg == wanted


def test_pieces_and_instructions_are_one_to_one() -> None:
    for code in module_codes(asyncio.tasks):
        decoded = decode(code)
        skipped = {"NOP", "NOT_TAKEN", "RESUME", "PRECALL", "KW_NAMES"}
        kept = [piece for piece in pieces(code) if piece.raw not in skipped and not piece.detached]
        assert [piece.offset for piece in kept] == [instr.offset for instr in decoded.instrs]


def test_arithmetic() -> None:
    assert listing("def f(a, b):\n    a += b\n    return -a @ b") == [
        ("LOAD_FAST", "a"),
        ("LOAD_FAST", "b"),
        ("BINARY_OP", "+="),
        ("STORE_FAST", "a"),
        ("LOAD_FAST", "a"),
        ("UNARY_NEGATIVE", None),
        ("LOAD_FAST", "b"),
        ("BINARY_OP", "@"),
        ("RETURN_VALUE", None),
    ]


def test_return_const_is_split() -> None:
    assert listing("def f(): return 7") == [("LOAD_CONST", 7), ("RETURN_VALUE", None)]


@pytest.mark.parametrize("symbol", ["<", "<=", "==", "!=", ">", ">="])
def test_compare(symbol: str) -> None:
    found = listing(f"def f(a, b):\n    if a {symbol} b: return 1\n    return a {symbol} b")
    assert found.count(("COMPARE_OP", symbol)) == 2
    assert found.count(("TO_BOOL", None)) == (1 if PY313 else 0)


def test_identity_and_membership() -> None:
    found = listing("def f(a, b): return a is b, a is not b, a in b, a not in b")
    assert [pair for pair in found if pair[0] in ("IS_OP", "CONTAINS_OP")] == [
        ("IS_OP", False),
        ("IS_OP", True),
        ("CONTAINS_OP", False),
        ("CONTAINS_OP", True),
    ]


def test_global_call_has_its_null_on_the_right_side() -> None:
    found = listing("def f(x): return g(x, key=x)")
    callee = [("PUSH_NULL", None), ("LOAD_GLOBAL", "g")]
    assert found[:2] == (callee if NULL_FIRST else callee[::-1])
    if PY313:
        assert ("LOAD_CONST", ("key",)) in found and ("CALL_KW", 2) in found
    else:
        assert ("CALL", (2, ("key",))) in found


def test_keyword_names_belong_to_one_call_only() -> None:
    found = listing("def f(x): return g(h(x), key=k(x)), g(x)")
    calls = [arg for op, arg in found if op == "CALL"]
    if not PY313:
        assert calls == [(1, ()), (1, ()), (2, ("key",)), (1, ())]


def test_method_call() -> None:
    found = listing("def f(x): return x.a.b(1)")
    assert ("LOAD_ATTR", "a") in found
    assert ("LOAD_METHOD", "b") in found
    assert ("CALL", (1, ())) in found


def test_extended_arguments() -> None:
    source = "def f():\n" + "".join(f"    x{n} = 'c{n}'\n" for n in range(300)) + "    return x299"
    found = listing(source)
    assert found[-4:] == [
        ("LOAD_CONST", "c299"),
        ("STORE_FAST", "x299"),
        ("LOAD_FAST", "x299"),
        ("RETURN_VALUE", None),
    ]


def test_long_jumps() -> None:
    source = "def f(xs):\n    for x in xs:\n" + "".join(f"        x = x + y{n}\n" for n in range(300)) + "    return x"
    decoded = decode(compiled(source))
    loop = next(instr for instr in decoded.instrs if instr.op == "FOR_ITER")
    assert [instr.op for instr in decoded.instrs[loop.arg :]] == ["LOAD_FAST", "RETURN_VALUE"]
    back = decoded.instrs[loop.arg - 1]
    assert (back.op, back.arg) == ("JUMP", loop.index)


def test_for_loop_hides_what_ends_it() -> None:
    decoded = decode(compiled("def f(xs):\n    for x in xs:\n        g(x)\n    return 1"))
    names = [instr.op for instr in decoded.instrs]
    loop = decoded.instrs[names.index("FOR_ITER")]
    assert names[loop.arg :] == ["LOAD_CONST", "RETURN_VALUE"]
    before = depths(decoded)
    assert (before[loop.index], before[loop.index + 1], before[loop.arg]) == (1, 2, 0)


def test_closures() -> None:
    source = """
    def outer(a):
        b = a
        def f():
            nonlocal b
            b = a
            return b
        return f
    """
    assert listing(source, "f")[0] == ("COPY_FREE_VARS", 2)
    assert ("STORE_DEREF", "b") in listing(source, "f")
    found = listing(source, "outer")
    assert ("MAKE_CELL", "a") in found and ("MAKE_CELL", "b") in found
    assert ("LOAD_CLOSURE", "a") in found and ("LOAD_CLOSURE", "b") in found
    assert ("SET_FUNCTION_ATTRIBUTE", 8) in found if PY313 else ("MAKE_FUNCTION", 8) in found
    decoded = decode(compiled(source, "outer"))
    assert decoded.varnames == ("f",)
    assert decoded.cellvars == ("a", "b")
    assert decode(compiled(source, "f")).freevars == ("a", "b")


@pytest.mark.skipif(not PY312, reason="inlined comprehensions")
def test_inlined_comprehension_over_a_cell() -> None:
    found = listing("def f():\n    x = 1\n    a = [lambda: x for x in range(3)]\n    return lambda: x")
    assert ("LOAD_CELL_AND_CLEAR", "x") in found
    assert found.count(("STORE_CELL", "x")) == 2
    assert ("STORE_FAST", "x") not in found
    source = "def f(y):\n    a = [y for y in range(3)]\n    return y"
    assert ("LOAD_FAST_AND_CLEAR", "y") in listing(source)


@pytest.mark.skipif(not PY312, reason="inlined comprehensions")
def test_one_name_in_two_slots() -> None:
    source = """
    def outer():
        x = 1
        def f():
            a = [lambda: x for x in range(2)]
            return x, a
    """
    code = compiled(source)
    if set(code.co_cellvars) & set(code.co_freevars):
        decoded = decode(code)
        assert decoded.cellvars == ("x",)
        assert decoded.freevars == ("x'",)


def test_class_body_with_free_variable() -> None:
    source = """
    def outer(y):
        class f:
            z = y
    """
    found = listing(source)
    place = found.index(("LOAD_FROM_DICT_OR_DEREF", "y"))
    assert found[place - 1] == ("LOAD_LOCALS", None)


@pytest.mark.skipif(not PY312, reason="from 3.12 on")
def test_super_attributes() -> None:
    source = """
    class A:
        def f(self):
            super().m(1)
            return super(A, self).a
    """
    found = [arg for op, arg in listing(source) if op == "LOAD_SUPER_ATTR"]
    assert found == [("m", True, False), ("a", False, True)]


@pytest.mark.skipif(not PY312, reason="from 3.12 on")
def test_type_parameters() -> None:
    source = "def f[T: int, *Ts, **P](x: T) -> T: ...\ntype A[T] = list[T]\nclass C[T]: ..."
    code = compile(source, "<test>", "exec")
    names = {instr.op for found in nested(code) for instr in decode(found).instrs}
    assert {
        "TYPEVAR",
        "TYPEVAR_WITH_BOUND",
        "TYPEVARTUPLE",
        "PARAMSPEC",
        "TYPEALIAS",
        "SUBSCRIPT_GENERIC",
        "SET_FUNCTION_TYPE_PARAMS",
    } <= names


def test_formatting() -> None:
    found = listing("def f(a, b): return f'{a!r:>{b}} {a} {a!s}'")
    formats = [pair for pair in found if pair[0] in ("FORMAT_VALUE", "CONVERT_VALUE")]
    if PY313:
        assert formats == [
            ("CONVERT_VALUE", "r"),
            ("FORMAT_VALUE", ("", False)),
            ("FORMAT_VALUE", ("", True)),
            ("FORMAT_VALUE", ("", False)),
            ("CONVERT_VALUE", "s"),
            ("FORMAT_VALUE", ("", False)),
        ]
    else:
        assert formats == [
            ("FORMAT_VALUE", ("", False)),
            ("FORMAT_VALUE", ("r", True)),
            ("FORMAT_VALUE", ("", False)),
            ("FORMAT_VALUE", ("s", False)),
        ]


def test_unpacking_and_positive() -> None:
    found = listing("def f(a):\n    x, *y, z, w = a\n    return +x")
    assert ("UNPACK_EX", (1, 2)) in found
    assert ("UNARY_POSITIVE", None) in found


def test_star_import_and_interactive_expression_leave_a_value_to_pop() -> None:
    code = compile("from os import *", "<test>", "exec")
    names = [instr.op for instr in decode(code).instrs]
    assert names[names.index("IMPORT_STAR") + 1] == "POP_TOP"
    names = [instr.op for instr in decode(compile("x", "<test>", "single")).instrs]
    assert names[names.index("PRINT_EXPR") + 1] == "POP_TOP"


def test_with_and_its_handler() -> None:
    decoded = decode(compiled("def f(m):\n    with m as x:\n        g()\n    return 1"))
    load = next(instr for instr in decoded.instrs if instr.op == "LOAD_GLOBAL")
    assert load.handler is not None
    assert decoded.instrs[load.handler.target].op == "PUSH_EXC_INFO"
    assert (load.handler.depth, load.handler.push_lasti) == (2 if PY314 else 1, True)
    assert decoded.instrs[0].handler is None


def test_generators_and_coroutines() -> None:
    names = ops("def f(xs):\n    y = yield 1\n    return (yield from xs)")
    assert names[:2] == ["RETURN_GENERATOR", "POP_TOP"]
    assert "GET_YIELD_FROM_ITER" in names and "SEND" in names
    decoded = decode(compiled("async def f(a):\n    async with a as b:\n        async for i in b: await i"))
    before = depths(decoded)
    for send in (instr for instr in decoded.instrs if instr.op == "SEND"):
        assert before[send.arg] == before[send.index] - 1
    names = ops("async def f(a):\n    yield 1")
    assert names[names.index("YIELD_VALUE") - 1] == "ASYNC_GEN_WRAP"


def test_match_and_exception_groups() -> None:
    names = ops(
        """
        def f(x):
            match x:
                case {"a": 1, **rest}: return rest
                case [1, 2, *_]: return 1
                case Point(a, b=2): return a
        """
    )
    assert {"MATCH_MAPPING", "MATCH_KEYS", "MATCH_SEQUENCE", "MATCH_CLASS", "GET_LEN"} <= set(names)
    names = ops("def f():\n    try: g()\n    except* ValueError: pass")
    assert {"CHECK_EG_MATCH", "PREP_RERAISE_STAR"} <= set(names)


def test_offsets_map_back() -> None:
    decoded = decode(compiled("def f(x):\n    return g(x, 1) + 1"))
    for instr in decoded.instrs:
        assert decoded.instrs[decoded.index_of_offset(instr.offset)].offset == instr.offset
    assert decoded.index_of_offset(0) == 0
    call = next(instr for instr in decoded.instrs if instr.op == "CALL")
    assert decoded.index_of_offset(call.offset + 2) == call.index  # its first cache


def test_specialised_code_decodes_the_same() -> None:
    namespace: dict[str, object] = {}
    exec("def f(x):\n    total = 0\n    for i in range(x): total += i\n    return total", namespace)
    function = namespace["f"]
    assert isinstance(function, types.FunctionType)
    before = [(instr.op, instr.arg) for instr in decode_function(function.__code__).instrs]
    for _ in range(200):
        function(50)
    fresh = function.__code__.replace(co_name="f2")  # another code object, made after specialisation
    assert [(instr.op, instr.arg) for instr in decode_function(fresh).instrs] == before


def test_traced_code_decodes_the_same() -> None:
    namespace: dict[str, object] = {}
    exec("def f(x):\n    for i in range(x):\n        yield i", namespace)
    function = namespace["f"]
    assert isinstance(function, types.FunctionType)
    before = [(instr.op, instr.arg) for instr in decode_function(function.__code__).instrs]
    old = sys.gettrace()
    sys.settrace(lambda *args: None)
    try:
        list(function(3))
        assert [(instr.op, instr.arg) for instr in _decode(function.__code__).instrs] == before
    finally:
        sys.settrace(old)


def test_decoded_is_kept_as_long_as_the_code_lives() -> None:
    code = compiled("def f(x): return x")
    assert decode(code) is decode(code)
    assert decode(code).code is code
    key = id(code)
    dead = weakref.ref(code)
    kept = decode(code)
    del code
    gc.collect()
    assert dead() is None
    assert key not in _decoded._known
    with pytest.raises(ReferenceError):
        kept.code  # noqa: B018


def test_equal_code_objects_are_told_apart() -> None:
    first, second = compiled("def f(x): return x"), compiled("def f(x): return x")
    assert first == second
    assert decode(first) is not decode(second)
