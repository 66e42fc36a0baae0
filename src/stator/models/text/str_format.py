"""Text from values: `format`, f-strings, `str.format`, `%` and `str.join`, where operands may be traced."""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import operator
import re
import sys
from collections.abc import Callable, Iterator

from stator.models.text.repr_ import ascii_of, repr_of, str_of
from stator.space.deferred import DeferredNumber, DeferredStr, joined
from stator.space.host_types import Host, HostCallable
from stator.space.operands import hooked, known_host, literal
from stator.space.protocol import NOT_IMPLEMENTED, builtin
from stator.space.space import Space
from stator.space.value import Constant, Known, NotKnown, Raised, Value

__all__ = ["format_of", "format_value", "text_of"]

#: by letter, and by the number that the bytecode has
CONVERSIONS: dict[Host, Callable[[Space, Value], Value]] = {
    "s": str_of,
    "r": repr_of,
    "a": ascii_of,
    1: str_of,
    2: repr_of,
    3: ascii_of,
}
_EMPTY = Constant("")


def format_value(space: Space, value: Value, conversion: str | int | None, spec: Value | None) -> Value:
    """`f"{value!conversion:spec}"`; the conversion as a letter or as the number that the bytecode has."""
    if conversion:
        value = CONVERSIONS[conversion](space, value)
    return format_of(space, value, _EMPTY if spec is None else spec)


def format_of(space: Space, value: Value, spec: Value) -> Value:
    """`format(value, spec)`."""
    value, spec = value.force(), spec.force()
    if value.cls is str and literal(spec) and spec.as_host(space) == "":
        return value
    if literal(value) and literal(spec):
        return space.run_known(format, [value, spec])
    slot = space.special(value, "__format__")
    if slot is None:
        raise space.error(TypeError, f"Type {value.type_name(space)} doesn't define __format__")
    result = space.call(slot, [value, spec], {}).force()
    if not result.isa(str):
        raise space.error(TypeError, f"__format__ must return a str, not {result.type_name(space)}")
    return result


def _formats_empty_as_str(host: Host) -> None:
    """`number.__format__("")` is `str(number)`, which a subclass may override."""

    def model(space: Space, value: Value, spec: Value, /) -> Value:
        value, spec = value.force(), spec.force()
        derived = value.cls is not host.__objclass__ and value.isa(host.__objclass__)
        if derived and spec.isa(str) and text_of(space, spec, "format") == "":
            return str_of(space, value)
        return hooked(space, host, [value, spec])

    builtin(host)(model)


for _host in (int.__format__, float.__format__, complex.__format__, str.__format__):
    _formats_empty_as_str(_host)


def text_of(space: Space, value: Value, what: str) -> str:
    """The characters of a traced str."""
    return str.__str__(known_host(space, value, what))


@builtin(str.join)
def str_join(space: Space, separator: Value, iterable: Value, /) -> Value:
    iterable = iterable.force()
    if not space.is_iterable(iterable):
        raise space.error(TypeError, "can only join an iterable")
    pieces = [item.force() for item in space.unpack(iterable)]
    for index, piece in enumerate(pieces):
        if not piece.isa(str):
            words = f"sequence item {index}: expected str instance, {piece.type_name(space)} found"
            raise space.error(TypeError, words)
    if len(pieces) == 1 and pieces[0].cls is str:
        return pieces[0]
    between = Constant(text_of(space, separator, "str.join"))
    parts = [part for piece in pieces for part in (between, piece)][1:]
    return joined(parts, lambda part: text_of(space, part, "str.join"))


# -- str.format -----------------------------------------------------------------------------------------------------


@builtin(str.format)
def str_format(space: Space, template: Value, /, *args: Value, **kwargs: Value) -> Value:
    template = template.force()
    operands = [a.force() for a in (*args, *kwargs.values())]
    if template.constant and all(map(literal, operands)):
        return space.run_known(str.format, [template, *args], kwargs)
    return _Template(space, list(args), kwargs, None).render(text_of(space, template, "str.format"), 2)


@builtin(str.format_map)
def str_format_map(space: Space, template: Value, mapping: Value, /) -> Value:
    return _Template(space, None, {}, mapping).render(text_of(space, template, "str.format_map"), 2)


class _Template:
    """One formatting: `Objects/stringlib/unicode_format.h`, whose parser CPython lends as module `_string`."""

    def __init__(self, space: Space, args: list[Value] | None, kwargs: dict[str, Value], mapping: Value | None) -> None:
        self.space = space
        self.args = args
        self.kwargs = kwargs
        self.mapping = mapping
        self.automatic: int | None = None

    def render(self, template: str, depth: int) -> Value:
        if depth <= 0:
            raise self.space.error(ValueError, "Max string recursion exceeded")
        pieces: list[Value] = []
        for text, field, spec, conversion in self._parse(template):
            pieces.append(Constant(text))
            if field is not None:
                pieces.append(self._field(field, spec, conversion, depth))
        return joined(pieces, lambda piece: text_of(self.space, piece, "str.format"))

    def _parse(self, template: str) -> Iterator[tuple[str, str | None, str, str | None]]:
        parser = _string.formatter_parser(template)
        while True:
            try:
                yield next(parser)
            except StopIteration:
                return
            except ValueError as e:
                raise self.space.error(ValueError, *e.args) from None

    def _field(self, field: str, spec: str, conversion: str | None, depth: int) -> Value:
        space = self.space
        value = self._lookup(field)
        if conversion is not None:
            convert = CONVERSIONS.get(conversion)
            if convert is None:
                shown = conversion if 32 < ord(conversion) < 127 else f"\\x{ord(conversion):x}"
                raise space.error(ValueError, f"Unknown conversion specifier {shown}")
            value = convert(space, value)
        expanded = self.render(spec, depth - 1) if "{" in spec or "}" in spec else Constant(spec)
        return format_of(space, value, expanded)

    def _lookup(self, field: str) -> Value:
        space = self.space
        try:
            first, rest = _string.formatter_field_name_split(field)
            steps = list(rest)
        except ValueError as e:
            raise space.error(ValueError, *e.args) from None
        value = self._argument(first, field)
        for is_attribute, name in steps:
            value = space.getattr(value, name) if is_attribute else space.getitem(value, Constant(name))
        return value

    def _argument(self, first: int | str, field: str) -> Value:
        space = self.space
        if first == "":
            first = self._number(True)
        elif isinstance(first, int):
            self._number(False)
        if isinstance(first, str):
            if self.mapping is not None:
                return space.getitem(self.mapping, Constant(first))
            if first not in self.kwargs:
                raise space.error(KeyError, first)
            return self.kwargs[first]
        if self.args is None:
            raise space.error(ValueError, "Format string contains positional fields")
        if first >= len(self.args):
            raise space.error(IndexError, f"Replacement index {first} out of range for positional args tuple")
        return self.args[first]

    def _number(self, automatic: bool) -> int:
        if self.automatic is None:
            self.automatic = 0 if automatic else -1
        if (self.automatic >= 0) != automatic:
            came, goes = ("manual field specification", "automatic field numbering")
            if not automatic:
                came, goes = "automatic field numbering", "manual field specification"
            raise self.space.error(ValueError, f"cannot switch from {came} to {goes}")
        number = self.automatic
        if automatic:
            self.automatic += 1
        return number


# -- % --------------------------------------------------------------------------------------------------------------

_SPEC = re.compile(r"([#0\- +]*)(\*|\d+)?(?:\.(\*|\d*))?[hlL]?(.)", re.DOTALL)


@builtin(str.__mod__)
def str_mod(space: Space, template: Value, operand: Value, /) -> Value:
    if not template.isa(str):
        return NOT_IMPLEMENTED
    text = text_of(space, template, "str.__mod__")
    return _Percent(space, text, operand.force()).render()


class _Percent:
    """One `template % operand`: each piece is formatted by CPython, on text or numbers made from traced operands."""

    def __init__(self, space: Space, template: str, operand: Value) -> None:
        self.space = space
        self.template = template
        self.operand = operand
        self.is_tuple = operand.isa(tuple)
        self.items = list(operand.items) if self.is_tuple else [operand]  # type: ignore[attr-defined]
        self.used = 0
        self.mapping = not operand.isa((tuple, str)) and space.special(operand, "__getitem__") is not None

    def render(self) -> Value:
        pieces: list[Value] = []
        template, at = self.template, 0
        while (start := template.find("%", at)) >= 0:
            pieces.append(Constant(template[at:start]))
            piece, at = self._conversion(start + 1)
            pieces.append(Constant(piece) if isinstance(piece, str) else piece)
        pieces.append(Constant(template[at:]))
        if self.used < len(self.items) and not self.mapping:
            raise self.space.error(TypeError, "not all arguments converted during string formatting")
        return joined(pieces, lambda piece: text_of(self.space, piece, "str.__mod__"))

    def _conversion(self, at: int) -> tuple[Value | str, int]:
        space, template = self.space, self.template
        source: Value | None = None
        if template[at : at + 1] == "(":
            key, at = self._key(at + 1)
            if not self.mapping:
                raise space.error(TypeError, "format requires a mapping")
            source = space.getitem(self.operand, Constant(key))
            self.used = len(self.items)
        match = _SPEC.match(template, at)
        if match is None:
            raise space.error(ValueError, "incomplete format")
        flags, width, precision, kind = match.groups()
        width = self._star(width, "ssize_t", sys.maxsize) if width == "*" else width
        precision = self._star(precision, "int", (1 << 31) - 1) if precision == "*" else precision
        if precision is not None and precision.startswith("-"):
            precision = "0"
        if kind == "%" and source is None and match.end() == at + 1:
            return "%", match.end()
        spec = flags + (width or "") + ("" if precision is None else f".{precision}") + kind
        if kind not in _OPERANDS:
            self._next(source)
            where = match.end() - 1
            shown = f"'{kind if ' ' <= kind < chr(127) else '?'}' (0x{ord(kind):x})"
            raise space.error(ValueError, f"unsupported format character {shown} at index {where}")
        operand = self._next(source).force()
        if spec in _TEXTS:
            return _TEXTS[spec](space, operand), match.end()
        if not _waits(operand, kind):
            operand = _OPERANDS[kind](space, operand).force()
        if _waits(operand, kind):
            return DeferredStr([(_formatted, [operand, Constant(f"%{spec}")])]), match.end()
        host = known_host(space, operand, "str.__mod__")
        return self._run(spec.replace("r", "s").replace("a", "s"), (host,)), match.end()

    def _run(self, spec: str, operands: tuple[Host, ...]) -> str:
        try:
            return f"%{spec}" % operands
        except Exception as e:
            raise self.space.error(type(e), *e.args) from None

    def _key(self, at: int) -> tuple[str, int]:
        depth, start = 1, at
        while depth:
            if at >= len(self.template):
                raise self.space.error(ValueError, "incomplete format key")
            depth += {"(": 1, ")": -1}.get(self.template[at], 0)
            at += 1
        return self.template[start : at - 1], at

    def _star(self, shown: str, c_type: str, most: int) -> str:
        value = self._next(None).force()
        if not value.isa(int):
            raise self.space.error(TypeError, "* wants int")
        number = self.space.int_(value)
        if not -most <= number <= most:
            raise self.space.error(OverflowError, f"Python int too large to convert to C {c_type}")
        return str(number)

    def _next(self, source: Value | None) -> Value:
        if source is not None:
            return source
        if self.used >= len(self.items):
            raise self.space.error(TypeError, "not enough arguments for format string")
        self.used += 1
        return self.items[self.used - 1]


def _formatted(number: Host, template: str) -> str:
    return str.__mod__(template, number)


def _waits(operand: Value, kind: str) -> bool:
    """Whether the text is made when the number is known: it is one to which the conversion never fails."""
    waiting = operand.symbolic or isinstance(operand, DeferredNumber)
    return waiting and kind in _OF_NUMBERS.get(operand.cls, "")


#: conversions that never fail for a number of this type
_OF_NUMBERS: dict[type, str] = {int: "diuxXoeEfFgG", float: "eEfFgG"}
#: conversions that take the text as it is
_TEXTS: dict[str, Callable[[Space, Value], Value]] = {"s": str_of, "r": repr_of}


def _text(convert: Callable[[Space, Value], Value]) -> Callable[[Space, Value], Value]:
    return lambda space, value: Constant(text_of(space, convert(space, value), "str.__mod__"))


def _number(method: str, convert: HostCallable) -> Callable[[Space, Value], Value]:
    """The operand of a numeric conversion: what its `__int__`, `__index__` or `__float__` gives."""

    def operand(space: Space, value: Value) -> Value:
        if literal(value):
            return value
        if (space.special(value, method) or space.special(value, "__index__")) is None:
            return Known(space.sample(value))  # CPython words the TypeError
        return space.call(space.existing(convert), [value], {})

    return operand


def _integer(kind: str) -> Callable[[Space, Value], Value]:
    """The operand of a conversion to digits: it has words of its own for whatever TypeError there is."""
    real = kind in "diu"
    number = _number("__int__", int) if real else _number("__index__", operator.index)
    wanted = "a real number" if real else "an integer"

    def operand(space: Space, value: Value) -> Value:
        try:
            return number(space, value)
        except Raised as e:
            if not e.matches(TypeError):
                raise
            words = f"%{kind} format: {wanted} is required, not {value.type_name(space)}"
            raise space.error(TypeError, words) from None

    return operand


def _character(space: Space, value: Value) -> Value:
    if value.isa(str):
        return Constant(text_of(space, value, "str.__mod__"))
    return _number("__index__", operator.index)(space, value)


_OPERANDS: dict[str, Callable[[Space, Value], Value]] = {
    "s": _text(str_of),
    "r": _text(repr_of),
    "a": _text(ascii_of),
    "c": _character,
    **{kind: _integer(kind) for kind in "diuxXo"},
    **dict.fromkeys("eEfFgG", _number("__float__", float)),
}


# -- methods that take a str or a tuple of them, or a table -----------------------------------------------------------


@builtin(str.translate)
def str_translate(space: Space, text: Value, table: Value, /) -> Value:
    """The table is asked for each character, as any object with `__getitem__`."""
    table = table.force()
    try:
        if table.cls in (dict, str, list, tuple):
            return space.run_known(str.translate, [text.force(), table])
    except NotKnown:
        pass
    return hooked(space, str.translate, [text, table])


# -- repetition -------------------------------------------------------------------------------------------------------


def _repetition(host: Host) -> None:
    """`text * count`, where the count may be any object with `__index__`."""

    def model(space: Space, text: Value, count: Value, /) -> Value:
        count = count.force()
        if count.isa(int):
            return hooked(space, host, [text, count])
        times = space.int_(count)
        if not -sys.maxsize - 1 <= times <= sys.maxsize:
            raise space.error(OverflowError, f"cannot fit '{count.type_name(space)}' into an index-sized integer")
        return hooked(space, host, [text, Constant(times)])

    builtin(host)(model)


for _slot in (str.__mul__, str.__rmul__, bytes.__mul__, bytes.__rmul__):
    _repetition(_slot)
