"""The canonical instruction set: one name per concept over all supported CPython versions, one row per name.

A row says all that is known of an instruction but how it is executed symbolically: that is the function of its name in
`interp/opcodes/`. Its picture of the stack reads bottom to top, `--` separates before from after:

    _row("BINARY_SUBSCR", "container, key -- item", native="getitem(container, key)")

takes `key` and under it `container` from the stack, and pushes `item`. An entry with an ellipsis stands for as many
entries as `many` computes from the instruction's argument. What a picture begins with on both sides stays on the stack.

The physical stack layout is that of the running version, NULLs included; where versions differ the row says so and
`NULL_FIRST` decides:

* `NULL_FIRST` (3.11, 3.12): a call is `NULL, callable, args…` or `method, self, args…`;
* otherwise (from 3.13 on): a call is `callable, NULL, args…` or `method, self, args…`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Argument = Any
"""What an instruction's `arg` is depends on the opcode: its row says it."""

IN_CODEGEN = "codegen/native_calls.py"
"""In the column `native`: a function there writes it."""


class Opcode(NamedTuple):
    """One canonical instruction."""

    name: str
    before: tuple[str, ...]
    """What it takes from the stack or looks at, bottom to top."""
    after: tuple[str, ...]
    """What is there instead when it falls through."""
    doc: str
    many: Callable[[Argument], int]
    """How many entries the one with the ellipsis stands for, by the instruction's `arg`."""
    jump: tuple[str, ...] | None
    """What is there instead when it jumps: then `arg` is the index of another instruction. None: it never does."""
    native: str
    """How generated code does it where the graph breaks: a call on the names of entries, `arg` and `globals`; or
    `IN_CODEGEN`; or "" where it does not, and the resume function begins at the instruction itself."""
    refused: str
    """Why it is not traced, if it is not."""
    last: bool
    """Whether the next instruction is not reached by falling through."""
    quiet: bool
    """Whether it never raises: exception tables cover some where an exception would find another state."""
    reads: bool
    """Whether it needs what the local `arg` holds."""
    binds: bool
    """Whether what the local `arg` held is gone afterwards."""

    @property
    def kept(self) -> int:
        """How many of the entries it looks at stay where they are."""
        same = (number for number, (old, new) in enumerate(zip(self.before, self.after)) if old != new)
        return next(same, min(len(self.before), len(self.after)))

    def pops(self, arg: Argument) -> int:
        """How many entries it takes from the stack or looks at."""
        return self._count(self.before, arg)

    def pushes(self, arg: Argument, *, jump: bool = False) -> int:
        """How many are there instead."""
        return self._count(self.jump if jump and self.jump is not None else self.after, arg)

    def _count(self, entries: tuple[str, ...], arg: Argument) -> int:
        return len(entries) if "…" not in "".join(entries) else len(entries) - 1 + self.many(arg)


def _entries(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


def _itself(arg: Argument) -> int:
    return arg  # type: ignore[no-any-return]


def _row(
    name: str,
    picture: str,
    doc: str = "",
    *,
    many: Callable[[Argument], int] = _itself,
    jump: str | None = None,
    native: str = "",
    refused: str = "",
    last: bool = False,
    quiet: bool = False,
    reads: bool = False,
    binds: bool = False,
) -> Opcode:
    before, after = map(_entries, picture.split("--"))
    jumping = None if jump is None else _entries(jump)
    return Opcode(name, before, after, doc, many, jumping, native, refused, last, quiet, reads, binds)


def _depth(arg: int) -> int:
    """Of what lies over the entry at depth `arg`, without the operands."""
    return arg - 1


_INTERACTIVE = "interactive expressions run as ordinary Python"
_GENERIC = "type parameters run as ordinary Python"

# fmt: off
_ROWS = [
    # -- variables -----------------------------------------------------------------------------------------------------
    _row("LOAD_CONST", "-- constant", "`arg` itself.", quiet=True),
    _row("LOAD_FAST", "-- value", "Local `arg`; unbound raises UnboundLocalError.", reads=True),
    _row("LOAD_FAST_AND_CLEAR", "-- value|NULL",
         "Pushes local `arg` (NULL: unbound) and unbinds it (inlined comprehension).", reads=True, binds=True),
    _row("STORE_FAST", "value|NULL --",
         "Binds local `arg`; storing the NULL that LOAD_FAST_AND_CLEAR pushed unbinds it.", binds=True),
    _row("DELETE_FAST", "--", "Unbinds local `arg`; unbound raises UnboundLocalError.", reads=True, binds=True),
    _row("LOAD_CLOSURE", "-- content",
         "Of the slot of `arg`, a variable that has a cell: that cell; but an argument before its MAKE_CELL, and "
         "in an inlined comprehension (3.12+) whose variable of that name has none, the plain value."),
    _row("LOAD_CELL_AND_CLEAR", "-- content|NULL", "LOAD_FAST_AND_CLEAR of such a slot."),
    _row("STORE_CELL", "content|NULL --",
         "STORE_FAST of such a slot: puts the cell back, or binds a comprehension's name."),
    _row("MAKE_CELL", "--", "A new cell in the slot of `arg`, holding what the slot held: the argument, or nothing."),
    _row("COPY_FREE_VARS", "--",
         "The function's `arg` closure cells become the cells of `Decoded.freevars`, in order."),
    _row("LOAD_DEREF", "-- value",
         "Content of the cell of `arg`; empty: UnboundLocalError (cellvar) or NameError (freevar)."),
    _row("STORE_DEREF", "value --", "Sets the content of the cell of `arg`."),
    _row("DELETE_DEREF", "--", "Empties the cell of `arg`; already empty raises as LOAD_DEREF."),
    _row("LOAD_FROM_DICT_OR_DEREF", "mapping -- value",
         "mapping[arg], else as LOAD_DEREF. (3.11's LOAD_CLASSDEREF becomes LOAD_LOCALS + this.)"),
    _row("LOAD_FROM_DICT_OR_GLOBALS", "mapping -- value", "mapping[arg], else globals, else builtins."),
    _row("LOAD_LOCALS", "-- mapping", "The namespace of a class or module body."),
    _row("LOAD_GLOBAL", "-- value",
         "Global, else builtin `arg`. Its NULL bit is a PUSH_NULL, before it when NULL_FIRST.",
         native="load_global(globals, arg)"),
    _row("LOAD_NAME", "-- value", "Namespace, else global, else builtin `arg`."),
    _row("STORE_NAME", "value --"),
    _row("DELETE_NAME", "--"),
    _row("STORE_GLOBAL", "value --", native="setitem(globals, arg, value)"),
    _row("DELETE_GLOBAL", "--"),
    _row("LOAD_BUILD_CLASS", "-- function", "builtins.__build_class__.", native=IN_CODEGEN),
    _row("LOAD_COMMON_CONSTANT", "-- constant",
         "`arg`, a class or function of the interpreter's own, whatever its name means by now. (Before 3.14: "
         "AssertionError only.)"),
    _row("SETUP_ANNOTATIONS", "--"),
    # -- attributes ----------------------------------------------------------------------------------------------------
    _row("LOAD_ATTR", "owner -- value", "owner.arg", native="getattr(owner, arg)"),
    _row("LOAD_METHOD", "owner -- method, owner",
         "Or when it is no plain method: NULL, attr (NULL_FIRST) | attr, NULL.", native=IN_CODEGEN),
    _row("LOAD_SPECIAL", "owner -- method, owner",
         "As LOAD_METHOD, but looked up on the type alone; `arg` is '__enter__', '__exit__' … From 3.14 on."),
    _row("LOAD_SUPER_ATTR", "super, cls, self -- attr…",
         "arg = (name, is_method, two_arg). The attribute; or, is_method, as LOAD_METHOD. two_arg False means the "
         "source said `super()`: a shadowed `super` is then called without arguments.", many=lambda arg: 1 + arg[1]),
    _row("STORE_ATTR", "value, owner --", native="setattr(owner, arg, value)"),
    _row("DELETE_ATTR", "owner --", native="delattr(owner, arg)"),
    # -- operators -----------------------------------------------------------------------------------------------------
    _row("BINARY_OP", "left, right -- result", "arg is the operator as written: '+', '+=', …", native=IN_CODEGEN),
    _row("BINARY_SUBSCR", "container, key -- item", native="getitem(container, key)"),
    _row("STORE_SUBSCR", "value, container, key --", native="setitem(container, key, value)"),
    _row("DELETE_SUBSCR", "container, key --", native="delitem(container, key)"),
    _row("BINARY_SLICE", "container, start, stop -- item", native="getitem(container, slice(start, stop))"),
    _row("STORE_SLICE", "value, container, start, stop --", native="setitem(container, slice(start, stop), value)"),
    _row("UNARY_NEGATIVE", "value -- result", native="neg(value)"),
    _row("UNARY_NOT", "value -- bool",
         "From 3.13 on value is a bool already, TO_BOOL came before.", native="not_(value)"),
    _row("UNARY_INVERT", "value -- result", native="invert(value)"),
    _row("UNARY_POSITIVE", "value -- result", native="pos(value)"),
    _row("COMPARE_OP", "left, right -- result",
         "arg is the operator as written; the result is any object.", native=IN_CODEGEN),
    _row("TO_BOOL", "value -- bool", "From 3.13 on.", native="bool(value)"),
    _row("IS_OP", "left, right -- bool", "arg True means `is not`."),
    _row("CONTAINS_OP", "item, container -- bool", "arg True means `not in`.", native=IN_CODEGEN),
    _row("GET_LEN", "value -- value, length", native="len(value)"),
    # -- jumps ---------------------------------------------------------------------------------------------------------
    _row("JUMP", "--", "On to instruction `arg`.", jump="", last=True),
    _row("POP_JUMP_IF_FALSE", "value --",
         "Truth-tests value (from 3.13 on it is a bool already).", jump="", native=IN_CODEGEN),
    _row("POP_JUMP_IF_TRUE", "value --",
         "Truth-tests value (from 3.13 on it is a bool already).", jump="", native=IN_CODEGEN),
    _row("POP_JUMP_IF_NONE", "value --", jump=""),
    _row("POP_JUMP_IF_NOT_NONE", "value --", jump=""),
    _row("JUMP_IF_FALSE_OR_POP", "value --", "3.11 only.", jump="value", native=IN_CODEGEN),
    _row("JUMP_IF_TRUE_OR_POP", "value --", "3.11 only.", jump="value", native=IN_CODEGEN),
    _row("FOR_ITER", "iterator -- iterator, item",
         "Jumps when exhausted, to `arg` (after END_FOR where that exists).", jump="", native=IN_CODEGEN),
    _row("SEND", "receiver, value -- receiver, yielded",
         "Jumps on StopIteration, to `arg` (after END_SEND where that exists).", jump="result"),
    # -- iteration, generators, coroutines -----------------------------------------------------------------------------
    _row("GET_ITER", "value -- iterator", native="iter(value)"),
    _row("GET_YIELD_FROM_ITER", "value -- iterator", "A coroutine only inside a coroutine."),
    _row("END_SEND", "receiver, value -- value", "Reached only from CLEANUP_THROW."),
    _row("CLEANUP_THROW", "receiver, sent, exc -- None, value",
         "exc.value when exc is a StopIteration, else exc is raised again."),
    _row("RETURN_GENERATOR", "-- sent", "The call returns a generator; the first send(None) goes on here."),
    _row("YIELD_VALUE", "value -- sent", "Suspends; what is thrown in is raised at this instruction."),
    _row("RETURN_VALUE", "value --", last=True, quiet=True),
    _row("GET_AWAITABLE", "value -- awaitable", "arg: 0 await, 1 __aenter__, 2 __aexit__ (for the message)."),
    _row("GET_AITER", "value -- iterator", "An async iterator."),
    _row("GET_ANEXT", "iterator -- iterator, awaitable"),
    _row("END_ASYNC_FOR", "iterator, exc --", "exc is StopAsyncIteration, else it is raised again."),
    _row("ASYNC_GEN_WRAP", "value -- wrapped", "Before an async generator's YIELD_VALUE."),
    # -- exceptions, context managers ----------------------------------------------------------------------------------
    _row("PUSH_EXC_INFO", "exc -- previous, exc", "exc becomes the exception being handled.", quiet=True),
    _row("POP_EXCEPT", "previous --", "It is the exception being handled again.", quiet=True),
    _row("CHECK_EXC_MATCH", "exc, pattern -- exc, bool", native="matches(exc, pattern)"),
    _row("CHECK_EG_MATCH", "exc, pattern -- rest|None, match|None", "A match becomes the exception being handled."),
    _row("PREP_RERAISE_STAR", "original, raised -- exc|None"),
    _row("RERAISE", "exc --", "Raised again as it is; arg > 0: the lasti is at depth arg below exc.", last=True),
    _row("RAISE_VARARGS", "operands… --", "exc, cause. arg 0 raises the exception being handled.", last=True),
    _row("STOPITERATION_ERROR", "exc -- raised", "StopIteration in a generator becomes RuntimeError."),
    _row("BEFORE_WITH", "manager -- leave, entered",
         "Up to 3.13; later LOAD_SPECIAL and CALL.", native="before_with(manager)"),
    _row("BEFORE_ASYNC_WITH", "manager -- leave, awaitable", "The awaitable is that of __aenter__. Up to 3.13."),
    _row("WITH_EXCEPT_START", "leave…, lasti, previous, exc -- leave…, lasti, previous, exc, result",
         "leave(type, exc, tb). arg: leave is what LOAD_SPECIAL has pushed, two entries (from 3.14 on).",
         many=lambda arg: 1 + arg, native=IN_CODEGEN),
    # -- calls and functions -------------------------------------------------------------------------------------------
    _row("PUSH_NULL", "-- NULL", quiet=True),
    _row("CALL", "NULL|method, callable|self, args… -- result",
         "Not NULL_FIRST: callable|method, NULL|self, args…. arg = (argc, kwnames): of the argc arguments the last"
         " len(kwnames) are keywords.", many=lambda arg: arg[0], native=IN_CODEGEN),
    _row("CALL_KW", "callable|method, NULL|self, args…, kwnames -- result",
         "arg = argc. From 3.13 on.", native=IN_CODEGEN),
    _row("CALL_FUNCTION_EX", "NULL, callable, args, kwargs… -- result",
         "Not NULL_FIRST: callable, NULL, …. arg: there is an entry for kwargs (from 3.14 on always, perhaps a NULL).",
         native=IN_CODEGEN),
    _row("MAKE_FUNCTION", "parts…, code -- function",
         "arg: bits 1, 2, 4, 8 (from 3.13 on: 0), for defaults, kwdefaults, annotations and closure.",
         many=lambda arg: (arg & 15).bit_count()),
    _row("SET_FUNCTION_ATTRIBUTE", "value, function -- function",
         "arg as MAKE_FUNCTION's bits, or 16 for the function that gives the annotations. From 3.13 on."),
    # -- the stack -----------------------------------------------------------------------------------------------------
    _row("POP_TOP", "value --", quiet=True),
    _row("COPY", "entry, above… -- entry, above…, entry",
         "Of the entry `arg` from the top (1 is the top itself); it may be NULL.", many=_depth, quiet=True),
    _row("SWAP", "low, between…, top -- top, between…, low",
         "The top with the entry `arg` from the top.", many=lambda arg: arg - 2, quiet=True),
    # -- building and taking apart -------------------------------------------------------------------------------------
    _row("BUILD_TUPLE", "items… -- tuple"),
    _row("BUILD_LIST", "items… -- list"),
    _row("BUILD_SET", "items… -- set", native="set([items])"),
    _row("BUILD_MAP", "items… -- dict",
         "Key and value in turn, `arg` times.", many=lambda arg: 2 * arg, native=IN_CODEGEN),
    _row("BUILD_CONST_KEY_MAP", "values…, keys -- dict"),
    _row("BUILD_STRING", "strings… -- str", native="''.join([strings])"),
    _row("BUILD_SLICE", "bounds… -- slice", "start, stop[, step], for arg 2 or 3.", native="slice(bounds)"),
    _row("LIST_TO_TUPLE", "list -- tuple", native="tuple(list)"),
    _row("LIST_APPEND", "list, above…, item -- list, above…",
         "The list at depth arg.", many=_depth, native="list.append(list, item)"),
    _row("SET_ADD", "set, above…, item -- set, above…",
         "The set at depth arg.", many=_depth, native="set.add(set, item)"),
    _row("MAP_ADD", "dict, above…, key, value -- dict, above…",
         "The dict at depth arg.", many=_depth, native="setitem(dict, key, value)"),
    _row("LIST_EXTEND", "list, above…, iterable -- list, above…",
         "The list at depth arg.", many=_depth, native="list_extend(list, iterable)"),
    _row("SET_UPDATE", "set, above…, iterable -- set, above…",
         "The set at depth arg.", many=_depth, native="set.update(set, iterable)"),
    _row("DICT_UPDATE", "dict, above…, mapping -- dict, above…",
         "The dict at depth arg.", many=_depth, native="dict_update(dict, mapping)"),
    _row("DICT_MERGE", "dict, above…, mapping -- dict, above…",
         "DICT_UPDATE for `**kwargs`: a key twice raises TypeError.", many=_depth, native=IN_CODEGEN),
    _row("UNPACK_SEQUENCE", "iterable -- items…", "Exactly arg items, last one deepest.", native=IN_CODEGEN),
    _row("UNPACK_EX", "iterable -- items…",
         "The items and the list of the others, last one deepest. arg = (before, after).",
         many=lambda arg: arg[0] + 1 + arg[1], native=IN_CODEGEN),
    _row("FORMAT_VALUE", "value, spec… -- str",
         "arg = (conversion '', 's', 'r' or 'a', has_spec).", many=lambda arg: int(arg[1]), native=IN_CODEGEN),
    _row("CONVERT_VALUE", "value -- str", "arg is the conversion 's', 'r' or 'a'. From 3.13 on.", native=IN_CODEGEN),
    _row("BUILD_INTERPOLATION", "value, expression, spec… -- interpolation",
         "arg as FORMAT_VALUE's. From 3.14 on.", many=lambda arg: int(arg[1])),
    _row("BUILD_TEMPLATE", "strings, interpolations -- template", "Two tuples. From 3.14 on."),
    # -- match statements ----------------------------------------------------------------------------------------------
    _row("MATCH_CLASS", "subject, type, names -- attributes|None", "Keyword names. arg positional patterns; a tuple."),
    _row("MATCH_MAPPING", "subject -- subject, bool"),
    _row("MATCH_SEQUENCE", "subject -- subject, bool"),
    _row("MATCH_KEYS", "subject, keys -- subject, keys, values|None", "A tuple.", native="match_keys(subject, keys)"),
    # -- imports, type parameters, interactive expressions -------------------------------------------------------------
    _row("IMPORT_NAME", "level, fromlist -- module", native="__import__(arg, globals, None, fromlist, level)"),
    _row("IMPORT_FROM", "module -- module, value", "module.arg", native="import_from(module, arg)"),
    _row("IMPORT_STAR", "module -- None", refused="no function contains it"),
    _row("PRINT_EXPR", "value -- None", "sys.displayhook(value).", refused=_INTERACTIVE),
    _row("TYPEVAR", "name -- typevar", refused=_GENERIC),
    _row("PARAMSPEC", "name -- paramspec", refused=_GENERIC),
    _row("TYPEVARTUPLE", "name -- typevartuple", refused=_GENERIC),
    _row("SUBSCRIPT_GENERIC", "params -- generic", "Generic[params]", refused=_GENERIC),
    _row("TYPEALIAS", "parts -- alias", "(name, type params, value function)", refused=_GENERIC),
    _row("TYPEVAR_WITH_BOUND", "name, bound -- typevar", "A function gives the bound.", refused=_GENERIC),
    _row("TYPEVAR_WITH_CONSTRAINTS", "name, constraints -- typevar", "A function gives them.", refused=_GENERIC),
    _row("SET_TYPEPARAM_DEFAULT", "param, default -- param", "A function gives it. From 3.13 on.", refused=_GENERIC),
    _row("SET_FUNCTION_TYPE_PARAMS", "function, params -- function", refused=_GENERIC),
]
# fmt: on

CANONICAL: dict[str, Opcode] = {row.name: row for row in _ROWS}
"""Each canonical instruction's row."""

JUMPS: frozenset[str] = frozenset(op for op, row in CANONICAL.items() if row.jump is not None)
"""Instructions whose `arg` is the index of another instruction."""
