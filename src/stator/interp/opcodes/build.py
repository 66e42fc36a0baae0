"""Opcodes: building and unpacking containers, strings, functions and classes; imports."""

from __future__ import annotations

from stator.bytecode.decode import Instr
from stator.interp import matching
from stator.interp.frame import Frame, opcode
from stator.models.containers.slice_ import SliceValue
from stator.models.functions.arguments import merge_keywords, star_items
from stator.models.functions.function import FunctionValue
from stator.models.functions.imports import import_from, import_name
from stator.models.text.template_ import InterpolationValue, TemplateValue
from stator.space.protocol import FALSE, NONE, TRUE
from stator.space.value import NULL, Constant, Value


@opcode
def BUILD_TUPLE(f: Frame, instr: Instr) -> None:
    """(a, b)"""
    f.push(f.space.new_tuple(f.popn(instr.arg)))


@opcode
def BUILD_LIST(f: Frame, instr: Instr) -> None:
    """[a, b]"""
    f.push(f.space.new_list(f.popn(instr.arg)))


@opcode
def BUILD_SET(f: Frame, instr: Instr) -> None:
    """{a, b}"""
    f.push(f.space.new_set(f.popn(instr.arg)))


@opcode
def BUILD_MAP(f: Frame, instr: Instr) -> None:
    """{k: v}"""
    flat = f.popn(2 * instr.arg)
    f.push(f.space.new_dict(list(zip(flat[::2], flat[1::2], strict=True))))


@opcode
def BUILD_CONST_KEY_MAP(f: Frame, instr: Instr) -> None:
    """{"k": v}, all keys constant"""
    keys = f.space.unpack(f.pop())
    f.push(f.space.new_dict(list(zip(keys, f.popn(instr.arg), strict=True))))


@opcode
def BUILD_STRING(f: Frame, instr: Instr) -> None:
    """f"{a}{b}", from its parts"""
    f.push(f.space.join_strings(f.popn(instr.arg)))


@opcode
def BUILD_SLICE(f: Frame, instr: Instr) -> None:
    """start:stop:step"""
    parts = f.popn(instr.arg)
    f.push(SliceValue(parts[0], parts[1], parts[2] if instr.arg == 3 else NONE))


@opcode
def LIST_TO_TUPLE(f: Frame, instr: Instr) -> None:
    """(*a, b)"""
    f.push(f.space.new_tuple(f.space.unpack(f.pop())))


@opcode
def LIST_APPEND(f: Frame, instr: Instr) -> None:
    """[item for …]"""
    item = f.pop()
    f.peek(instr.arg).force().append(f.space, item)  # type: ignore[attr-defined]


@opcode
def SET_ADD(f: Frame, instr: Instr) -> None:
    """{item for …}"""
    item = f.pop()
    f.peek(instr.arg).force().add(f.space, item)  # type: ignore[attr-defined]


@opcode
def MAP_ADD(f: Frame, instr: Instr) -> None:
    """{key: value for …}"""
    value, key = f.pop(), f.pop()
    f.peek(instr.arg).force().tp_setitem(f.space, key, value)  # type: ignore[attr-defined]


@opcode
def LIST_EXTEND(f: Frame, instr: Instr) -> None:
    """[*iterable]"""
    iterable = f.pop()
    items = star_items(f.space, iterable)
    f.peek(instr.arg).force().extend(f.space, f.space.new_tuple(items))  # type: ignore[attr-defined]


@opcode
def SET_UPDATE(f: Frame, instr: Instr) -> None:
    """{*iterable}"""
    iterable = f.pop()
    f.peek(instr.arg).force().update(f.space, iterable)  # type: ignore[attr-defined]


@opcode
def DICT_UPDATE(f: Frame, instr: Instr) -> None:
    """{**mapping}"""
    mapping = f.pop().force()
    if f.space.getattr_or_none(mapping, "keys") is None:
        raise f.space.error(TypeError, f"'{mapping.type_name(f.space)}' object is not a mapping")
    f.peek(instr.arg).force().update(f.space, mapping)  # type: ignore[attr-defined]


@opcode
def DICT_MERGE(f: Frame, instr: Instr) -> None:
    """f(**mapping)"""
    mapping = f.pop().force()
    below = instr.arg + 2
    function = f.peek(below if f.peek(below) is not NULL else below + 1)  # 3.13 has the NULL above the callable
    merge_keywords(f.space, f.peek(instr.arg).force(), mapping, function)


@opcode
def UNPACK_SEQUENCE(f: Frame, instr: Instr) -> None:
    """a, b = iterable"""
    f.stack += reversed(f.space.unpack_exactly(f.pop(), instr.arg))


@opcode
def UNPACK_EX(f: Frame, instr: Instr) -> None:
    """a, *b, c = iterable"""
    before, after = instr.arg
    f.stack += reversed(f.space.unpack_ex(f.pop(), before, after))


@opcode
def FORMAT_VALUE(f: Frame, instr: Instr) -> None:
    """f"{value!r:spec}" """
    conversion, has_spec = instr.arg
    spec = f.pop() if has_spec else None
    f.push(f.space.format_value(f.pop(), conversion, spec))


@opcode
def CONVERT_VALUE(f: Frame, instr: Instr) -> None:
    """f"{value!r}", the conversion alone"""
    f.push(f.space.convert_value(f.pop(), instr.arg))


@opcode
def BUILD_INTERPOLATION(f: Frame, instr: Instr) -> None:
    """t"{value!r:spec}", what is in the braces"""
    conversion, has_spec = instr.arg
    spec = f.pop() if has_spec else Constant("")
    value, expression = f.popn(2)
    f.push(InterpolationValue(value, expression, Constant(conversion or None), spec))


@opcode
def BUILD_TEMPLATE(f: Frame, instr: Instr) -> None:
    """t"…" """
    strings, interpolations = f.popn(2)
    f.push(TemplateValue(strings, interpolations))


@opcode
def MAKE_FUNCTION(f: Frame, instr: Instr) -> None:
    """def name(): …"""
    code = f.pop()
    parts: dict[int, Value] = {}
    for flag in (8, 4, 2, 1):
        if instr.arg & flag:
            parts[flag] = f.pop()
    function = FunctionValue.made(f.space, code.as_host(f.space), f.globals)
    for flag, value in parts.items():
        function.set_part(f.space, flag, value)
    f.push(function)


@opcode
def SET_FUNCTION_ATTRIBUTE(f: Frame, instr: Instr) -> None:
    """def name(): …, one part of it"""
    function, value = f.pop(), f.pop()
    function.set_part(f.space, instr.arg, value)  # type: ignore[attr-defined]
    f.push(function)


@opcode
def LOAD_BUILD_CLASS(f: Frame, instr: Instr) -> None:
    """class name: …"""
    value = f.trace.namespaces.builtins_of(f.globals).get_str(f.space, "__build_class__")
    if value is None:
        raise f.name_error("__build_class__ not found", "__build_class__")
    f.push(value)


@opcode
def LOAD_COMMON_CONSTANT(f: Frame, instr: Instr) -> None:
    """AssertionError, for `assert …`, and others that no name leads to"""
    f.push(f.space.existing(instr.arg))


@opcode
def IMPORT_NAME(f: Frame, instr: Instr) -> None:
    """import name"""
    fromlist, level = f.pop(), f.pop()
    f.push(import_name(f.space, f.globals, instr.arg, fromlist, level))


@opcode
def IMPORT_FROM(f: Frame, instr: Instr) -> None:
    """from module import name"""
    f.push(import_from(f.space, f.peek(), instr.arg))


#: `Py_TPFLAGS_SEQUENCE` and `Py_TPFLAGS_MAPPING`
_SEQUENCE, _MAPPING = 1 << 5, 1 << 6


def _matches(f: Frame, flag: int) -> Value:
    return TRUE if f.trace.classes.matches(f.peek().force().cls, flag) else FALSE


@opcode
def MATCH_SEQUENCE(f: Frame, instr: Instr) -> None:
    """case [a, b]:"""
    f.push(_matches(f, _SEQUENCE))


@opcode
def MATCH_MAPPING(f: Frame, instr: Instr) -> None:
    """case {"a": b}:"""
    f.push(_matches(f, _MAPPING))


@opcode
def MATCH_KEYS(f: Frame, instr: Instr) -> None:
    """The values of a mapping pattern's keys, or None."""
    f.push(matching.match_keys(f.space, f.peek(2), f.peek()))


@opcode
def MATCH_CLASS(f: Frame, instr: Instr) -> None:
    """case C(a, b=c):"""
    subject, cls, names = f.popn(3)
    f.push(matching.match_class(f.space, subject, cls, instr.arg, names))
