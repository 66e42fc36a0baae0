"""The canonical instruction set: one name per concept over all supported CPython versions.

Stack pictures read bottom to top, `--` separates before from after. The physical stack layout is that of the
running version, NULLs included; where versions differ the entry says so and `NULL_FIRST` decides:

* `NULL_FIRST` (3.11, 3.12): a call is `NULL, callable, args…` or `method, self, args…`;
* otherwise (3.13): a call is `callable, NULL, args…` or `method, self, args…`.
"""

from __future__ import annotations

_LOADS = {
    "LOAD_CONST": "-- arg. The constant itself.",
    "LOAD_FAST": "-- value. Local `arg`; unbound raises UnboundLocalError.",
    "LOAD_FAST_AND_CLEAR": "-- value|NULL. Pushes local `arg` (NULL: unbound) and unbinds it (inlined comprehension).",
    "STORE_FAST": "value|NULL --. Binds local `arg`; storing the NULL that LOAD_FAST_AND_CLEAR pushed unbinds it.",
    "DELETE_FAST": "--. Unbinds local `arg`; unbound raises UnboundLocalError.",
    "LOAD_CLOSURE": "-- content of the slot of `arg`, a variable that has a cell: that cell; but an argument before "
    "its MAKE_CELL, and in an inlined comprehension (3.12+) whose variable of that name has none, the plain value.",
    "LOAD_CELL_AND_CLEAR": "-- content|NULL. LOAD_FAST_AND_CLEAR of such a slot.",
    "STORE_CELL": "content|NULL --. STORE_FAST of such a slot: puts the cell back, or binds a comprehension's name.",
    "MAKE_CELL": "--. A new cell in the slot of `arg`, holding what the slot held: the argument, or nothing.",
    "COPY_FREE_VARS": "--. The function's `arg` closure cells become the cells of `Decoded.freevars`, in order.",
    "LOAD_DEREF": "-- value. Content of the cell of `arg`; empty: UnboundLocalError (cellvar) or NameError (freevar).",
    "STORE_DEREF": "value --. Sets the content of the cell of `arg`.",
    "DELETE_DEREF": "--. Empties the cell of `arg`; already empty raises as LOAD_DEREF.",
    "LOAD_FROM_DICT_OR_DEREF": "mapping -- value. mapping[arg], else as LOAD_DEREF. "
    "(3.11's LOAD_CLASSDEREF becomes LOAD_LOCALS + this.)",
    "LOAD_FROM_DICT_OR_GLOBALS": "mapping -- value. mapping[arg], else globals, else builtins.",
    "LOAD_LOCALS": "-- mapping. The namespace of a class or module body.",
    "LOAD_GLOBAL": "-- value. Global, else builtin `arg`. Its NULL bit is a PUSH_NULL, before it when NULL_FIRST.",
    "LOAD_NAME": "-- value. Namespace, else global, else builtin `arg`.",
    "STORE_NAME": "value --.",
    "DELETE_NAME": "--.",
    "STORE_GLOBAL": "value --.",
    "DELETE_GLOBAL": "--.",
    "LOAD_ATTR": "owner -- owner.arg.",
    "LOAD_METHOD": "owner -- method, owner; or when it is no plain method: NULL, attr (NULL_FIRST) | attr, NULL.",
    "LOAD_SUPER_ATTR": "super, class, self -- attr; or, is_method, as LOAD_METHOD. arg = (name, is_method, two_arg); "
    "two_arg False means the source said `super()`: a shadowed `super` is then called without arguments.",
    "STORE_ATTR": "value, owner --.",
    "DELETE_ATTR": "owner --.",
    "LOAD_BUILD_CLASS": "-- builtins.__build_class__.",
    "LOAD_ASSERTION_ERROR": "-- AssertionError.",
}

_OPERATORS = {
    "BINARY_OP": "left, right -- result. arg is the operator as written: '+', '+=', …",
    "BINARY_SUBSCR": "container, key -- item.",
    "STORE_SUBSCR": "value, container, key --.",
    "DELETE_SUBSCR": "container, key --.",
    "BINARY_SLICE": "container, start, stop -- item.",
    "STORE_SLICE": "value, container, start, stop --.",
    "UNARY_NEGATIVE": "value -- result.",
    "UNARY_NOT": "value -- bool. (3.13: value is a bool already, TO_BOOL came before.)",
    "UNARY_INVERT": "value -- result.",
    "UNARY_POSITIVE": "value -- result.",
    "COMPARE_OP": "left, right -- result. arg is the operator as written; the result is any object.",
    "TO_BOOL": "value -- bool. 3.13 only.",
    "IS_OP": "left, right -- bool. arg True means `is not`.",
    "CONTAINS_OP": "item, container -- bool. arg True means `not in`.",
    "GET_LEN": "value -- value, len(value).",
}

_JUMPS = {
    "JUMP": "--. On to instruction `arg`.",
    "POP_JUMP_IF_FALSE": "value --. Truth-tests value (3.13: it is a bool already).",
    "POP_JUMP_IF_TRUE": "value --. Truth-tests value (3.13: it is a bool already).",
    "POP_JUMP_IF_NONE": "value --.",
    "POP_JUMP_IF_NOT_NONE": "value --.",
    "JUMP_IF_FALSE_OR_POP": "value -- value when jumping, else --. 3.11 only.",
    "JUMP_IF_TRUE_OR_POP": "value -- value when jumping, else --. 3.11 only.",
    "FOR_ITER": "iterator -- iterator, item; exhausted: iterator --, on to `arg` (after END_FOR where that exists).",
    "SEND": "receiver, value -- receiver, yielded; on StopIteration: receiver, value -- result, on to `arg` "
    "(after END_SEND where that exists).",
}

_ITERATION = {
    "GET_ITER": "value -- iterator.",
    "GET_YIELD_FROM_ITER": "value -- iterator (a coroutine only inside a coroutine).",
    "END_SEND": "receiver, value -- value. Reached only from CLEANUP_THROW.",
    "CLEANUP_THROW": "receiver, sent, exc -- None, exc.value when exc is a StopIteration, else exc is raised again.",
    "RETURN_GENERATOR": "-- sent. The call returns a generator; the first send(None) goes on here.",
    "YIELD_VALUE": "value -- sent. Suspends; what is thrown in is raised at this instruction.",
    "RETURN_VALUE": "value --.",
    "GET_AWAITABLE": "value -- awaitable. arg: 0 await, 1 __aenter__, 2 __aexit__ (for the message).",
    "GET_AITER": "value -- async iterator.",
    "GET_ANEXT": "aiter -- aiter, awaitable.",
    "END_ASYNC_FOR": "aiter, exc --. exc is StopAsyncIteration, else it is raised again.",
    "ASYNC_GEN_WRAP": "value -- wrapped value, before an async generator's YIELD_VALUE.",
}

_EXCEPTIONS = {
    "PUSH_EXC_INFO": "exc -- previous, exc. exc becomes the exception being handled.",
    "POP_EXCEPT": "previous --. It is the exception being handled again.",
    "CHECK_EXC_MATCH": "exc, type -- exc, bool.",
    "CHECK_EG_MATCH": "exc, type -- rest|None, match|None. A match becomes the exception being handled.",
    "PREP_RERAISE_STAR": "original, raised -- exc|None.",
    "RERAISE": "…, exc --. Raised again as it is; arg > 0: the lasti is at depth arg below exc.",
    "RAISE_VARARGS": "[exc [, cause]] --. arg 0 raises the exception being handled.",
    "STOPITERATION_ERROR": "exc -- exc. StopIteration in a generator becomes RuntimeError.",
    "BEFORE_WITH": "manager -- exit, entered.",
    "BEFORE_ASYNC_WITH": "manager -- exit, awaitable of __aenter__.",
    "WITH_EXCEPT_START": "exit, lasti, previous, exc -- exit, lasti, previous, exc, exit(type, exc, tb).",
}

_CALLS = {
    "PUSH_NULL": "-- NULL.",
    "CALL": "NULL|method, callable|self, args… -- result (not NULL_FIRST: callable|method, NULL|self, args…). "
    "arg = (argc, kwnames): of the argc arguments the last len(kwnames) are keywords.",
    "CALL_KW": "callable|method, NULL|self, args…, kwnames -- result. arg = argc. 3.13 only.",
    "CALL_FUNCTION_EX": "NULL, callable, args[, kwargs] -- result (not NULL_FIRST: callable, NULL…). arg: has kwargs.",
    "MAKE_FUNCTION": "[defaults][kwdefaults][annotations][closure] code -- function; arg: bits 1, 2, 4, 8 (3.13: 0).",
    "SET_FUNCTION_ATTRIBUTE": "value, function -- function. arg as MAKE_FUNCTION's bits. 3.13 only.",
    "SET_FUNCTION_TYPE_PARAMS": "function, type params -- function.",
}

_STACK = {
    "POP_TOP": "value --.",
    "COPY": "Pushes the entry `arg` from the top (1 is the top itself); it may be NULL.",
    "SWAP": "Swaps the top with the entry `arg` from the top.",
}

_BUILD = {
    "BUILD_TUPLE": "values × arg -- tuple.",
    "BUILD_LIST": "values × arg -- list.",
    "BUILD_SET": "values × arg -- set.",
    "BUILD_MAP": "(key, value) × arg -- dict.",
    "BUILD_CONST_KEY_MAP": "values × arg, keys -- dict.",
    "BUILD_STRING": "strings × arg -- str.",
    "BUILD_SLICE": "start, stop[, step] -- slice, for arg 2 or 3.",
    "LIST_TO_TUPLE": "list -- tuple.",
    "LIST_APPEND": "…, item -- …. Appends to the list at depth arg.",
    "SET_ADD": "…, item -- …. Adds to the set at depth arg.",
    "MAP_ADD": "…, key, value -- …. Sets in the dict at depth arg.",
    "LIST_EXTEND": "…, iterable -- …. Extends the list at depth arg.",
    "SET_UPDATE": "…, iterable -- …. Updates the set at depth arg.",
    "DICT_UPDATE": "…, mapping -- …. Updates the dict at depth arg.",
    "DICT_MERGE": "…, mapping -- …. The same for `**kwargs`: a key twice raises TypeError.",
    "UNPACK_SEQUENCE": "iterable -- the arg items, last one deepest.",
    "UNPACK_EX": "iterable -- the items and the list, last one deepest. arg = (before, after).",
    "FORMAT_VALUE": "value[, spec] -- str. arg = (conversion '', 's', 'r' or 'a', has_spec).",
    "CONVERT_VALUE": "value -- str. arg is the conversion 's', 'r' or 'a'. 3.13 only.",
}

_MATCH = {
    "MATCH_CLASS": "subject, type, keyword names -- attributes tuple|None. arg positional patterns.",
    "MATCH_MAPPING": "subject -- subject, bool.",
    "MATCH_SEQUENCE": "subject -- subject, bool.",
    "MATCH_KEYS": "subject, keys -- subject, keys, values tuple|None.",
}

_REST = {
    "IMPORT_NAME": "level, fromlist -- module.",
    "IMPORT_FROM": "module -- module, module.arg.",
    "IMPORT_STAR": "module -- None.",
    "SETUP_ANNOTATIONS": "--.",
    "PRINT_EXPR": "value -- None. sys.displayhook(value).",
    "TYPEVAR": "name -- TypeVar.",
    "PARAMSPEC": "name -- ParamSpec.",
    "TYPEVARTUPLE": "name -- TypeVarTuple.",
    "SUBSCRIPT_GENERIC": "type params -- Generic[type params].",
    "TYPEALIAS": "(name, type params, value function) -- TypeAliasType.",
    "TYPEVAR_WITH_BOUND": "name, bound function -- TypeVar.",
    "TYPEVAR_WITH_CONSTRAINTS": "name, constraints function -- TypeVar.",
    "SET_TYPEPARAM_DEFAULT": "type param, default function -- type param. 3.13 only.",
}

CANONICAL: dict[str, str] = {
    **_LOADS,
    **_OPERATORS,
    **_JUMPS,
    **_ITERATION,
    **_EXCEPTIONS,
    **_CALLS,
    **_STACK,
    **_BUILD,
    **_MATCH,
    **_REST,
}
"""What each canonical instruction does."""

JUMPS: frozenset[str] = frozenset(_JUMPS)
"""Instructions whose `arg` is the index of another instruction."""

TERMINATORS: frozenset[str] = frozenset({"JUMP", "RETURN_VALUE", "RERAISE", "RAISE_VARARGS"})
"""Instructions after which the next one is not reached by falling through."""
