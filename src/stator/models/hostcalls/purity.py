"""What is pure: types whose methods, and functions which, may run for real on known operands.

Pure means: no side effect, and a result that depends on the operands alone. Where something else has a part in the
result, such as the time of day, the call is refused.
"""

from __future__ import annotations

import binascii
import fnmatch
import json
import posixpath
import re
import struct
import sys
import textwrap
import traceback
import types
import unicodedata
import zlib
from collections.abc import Callable
from typing import Any

from stator._core import has_buffer
from stator.guards.guard import Equals, IdIs
from stator.guards.source import CallSource, Source
from stator.models.classes.instance import InstanceValue
from stator.models.iterators.builtins_iter import CallableIterator
from stator.space.facts import fixed
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import host_errors, known_host, refuse_object, refuse_use
from stator.space.protocol import IMMUTABLE, NONE, REALISERS, builtin, folds_if, is_immutable, pure, register
from stator.space.space import Space
from stator.space.value import Constant, NotKnown, Value

__all__ = ["as_constant", "frozen", "pure_python"]


Realiser = Callable[[Space, Host, Source], Value]
#: what tells an object from those that are not alike
State = Callable[[Host], Host]


def _refuse_foreign(space: Space, host: Host, source: Source) -> Value:
    raise refuse_object(
        f"an object of class {space.guard_type(host, source).__qualname__}, derived from an immutable C type,"
    )


def frozen(cls: type, state: State | None = None, foreign: Realiser = _refuse_foreign) -> None:
    """Instances of the immutable C type are constants: known by identity, or by `state(instance)` where given.

    `foreign(space, host, source)` is the value of an instance of a subclass. A type whose equal instances are alike in
    all respects needs only `IMMUTABLE.add`.
    """
    REALISERS[cls] = as_constant(cls, state, foreign)
    IMMUTABLE.add(cls)


def as_constant(cls: type, state: State | None = None, foreign: Realiser = _refuse_foreign) -> Realiser:
    """How `frozen` looks at an instance for the first time."""

    def realise(space: Space, host: Host, source: Source) -> Value:
        if space.guard_type(host, source) is not cls:
            return foreign(space, host, source)
        if not source.is_constant:
            if state is None:
                space.trace.guard(IdIs(source, host))
            else:
                space.trace.guard(Equals(CallSource(state, source, state.__name__.strip("_")), state(host)))
        return Constant(host, source)

    return realise


IMMUTABLE.add(re.Pattern)
frozen(re.Match)
_realise_match = REALISERS[re.Match]
frozen(struct.Struct)
frozen(types.GenericAlias)
frozen(type(Callable[[], None]))  # a class in Python: what annotations of functions in functions are evaluated to
frozen(types.UnionType)

pure(str.maketrans, bytes.maketrans, bytearray.maketrans)
pure(binascii.crc32, binascii.hexlify, binascii.unhexlify, binascii.a2b_base64, binascii.b2a_base64)
pure(binascii.b2a_hex, binascii.a2b_hex, zlib.crc32, zlib.adler32)
pure(struct.pack, struct.unpack, struct.calcsize)
pure(sys.getdefaultencoding, sys.getfilesystemencoding, sys.is_finalizing)
pure(unicodedata.name, unicodedata.normalize, unicodedata.category, unicodedata.lookup)
pure(unicodedata.east_asian_width, unicodedata.bidirectional, unicodedata.combining, unicodedata.mirrored)
pure(unicodedata.decimal, unicodedata.digit, unicodedata.numeric, unicodedata.decomposition, unicodedata.is_normalized)


# -- Python functions that run for real -----------------------------------------------------------------------------


def pure_python(*functions: Host) -> None:
    """Python functions that run for real on operands that are known without any code of the program's in them."""
    for function in functions:
        _register_python(function)


def _register_python(function: Host) -> None:
    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        try:
            if all(_inert(space, value) for value in (*args, *kwargs.values())):
                return space.run_known(function, args, kwargs)
        except NotKnown:
            pass
        return space.existing(function).inline(space, args, kwargs, False)  # type: ignore[attr-defined, no-any-return]

    register(function, model)


def _inert(space: Space, value: Value) -> bool:
    """Whether computing with the value runs no code of the program's."""
    host = value.force().as_host(space)
    return _inert_host(host)


def _inert_host(host: Host) -> bool:
    if type(host) in (tuple, list, set, frozenset):
        return all(map(_inert_host, host))
    if type(host) is dict:
        return all(map(_inert_host, host)) and all(map(_inert_host, host.values()))
    # Flags of `re`, and its mark for a flag that is not given, are ints of classes of its own.
    return is_immutable(type(host)) or (isinstance(host, int) and type(host).__module__ == "re")


_REGULAR: list[Any] = [re.compile, re.match, re.fullmatch, re.search, re.split, re.findall, re.sub, re.subn]
_REGULAR.append(re._compile)  # type: ignore[attr-defined]
pure_python(re.escape, *_REGULAR)
pure_python(json.dumps, json.loads)
pure_python(traceback._extract_caret_anchors_from_line_segment)  # type: ignore[attr-defined]
pure_python(textwrap.dedent, fnmatch.fnmatch, fnmatch.fnmatchcase, fnmatch.translate)
pure_python(posixpath.join, posixpath.basename, posixpath.dirname, posixpath.split, posixpath.splitext)
pure_python(posixpath.normpath, posixpath.isabs, posixpath.commonprefix)


# -- regular expressions --------------------------------------------------------------------------------------------


@folds_if(*_REGULAR)
def no_debugging(space: Space, args: list[Host], kwargs: dict[str, Host]) -> None:
    """With the flag DEBUG, what is compiled is also printed."""
    if any(isinstance(arg, int) and arg & re.DEBUG for arg in (*args, *kwargs.values())):
        raise refuse_use("re.compile", "with re.DEBUG")


@folds_if(re.Pattern.match, re.Pattern.search, re.Pattern.fullmatch, re.Pattern.finditer)
def fixed_texts(space: Space, args: list[Host], kwargs: dict[str, Host]) -> None:
    """A match refers to the text, whose contents may change before it is asked."""
    if any(map(_can_change, (*args, *kwargs.values()))):
        raise refuse_use("re.Pattern.match", "of what can be changed")


def _can_change(text: Host) -> bool:
    return type(text) is not bytes and has_buffer(type(text))


def _match(space: Space, host: re.Match[Any], source: Source) -> Value:
    return (InstanceValue.from_host if _can_change(fixed(host, "string")) else _realise_match)(space, host, source)


REALISERS[re.Match] = _match


def _matches(pattern: re.Pattern[Any], text: Host) -> tuple[re.Match[Any], ...]:
    return tuple(pattern.finditer(text))


def _substitute(host: Host, counted: bool) -> None:
    """`Pattern.sub` and `subn`: a function as replacement is the program's, and is called for each match."""

    def model(
        space: Space,
        pattern: Value,
        repl: Value,
        string: Value,
        count: Value = Constant(0),  # noqa: B008 (immutable)
    ) -> Value:
        repl = repl.force()
        if repl.isa((str, bytes)) or space.special(repl, "__call__") is None:
            return space.run_known(host, [pattern.force(), repl, string.force(), count.force()])
        text = known_host(space, string, "re.sub")
        pieces: list[Host] = []
        at, made = 0, 0
        most = space.int_(count)
        for match in known_host(space, space.run_known(_matches, [pattern.force(), string.force()]), "re.sub"):
            pieces.append(text[at : match.start()])
            piece = space.call(repl, [Constant(match)], {}).force()
            if not piece.is_none():
                pieces.append(known_host(space, piece, "re.sub"))
            at = match.end()
            made += 1
            if made == most:
                break
        result: Value = space.run_known(lambda: text[:0].join([*pieces, text[at:]]), [])
        return space.new_tuple([result, Constant(made)]) if counted else result

    builtin(host)(model)


_substitute(re.Pattern.sub, False)
_substitute(re.Pattern.subn, True)


class Matches(CallableIterator):
    """`pattern.finditer(string)`: all matches are known."""

    __slots__ = ("args", "found", "index")

    def __init__(self, args: list[Value], found: list[Host]) -> None:
        super().__init__(NONE, NONE)
        self.args = args
        self.found = found
        self.index = 0

    def produce(self, space: Space) -> Value | None:
        if self.index >= len(self.found):
            return None
        space.mark_mutated(self)
        self.index += 1
        return Constant(self.found[self.index - 1])

    def reconstruct(self, writer: Writer) -> str:
        pattern, *rest = map(writer.expr, self.args)
        name = str(writer.assign("matches", f"{pattern}.finditer({', '.join(rest)})"))
        for _ in range(self.index):
            writer.line(f"next({name})")
        return name


@builtin(re.Pattern.finditer)
def finditer(space: Space, pattern: Value, string: Value, *bounds: Value) -> Value:
    args = [pattern.force(), string.force(), *(bound.force() for bound in bounds)]
    hosts = [known_host(space, arg, "re.Pattern.finditer") for arg in args]
    fixed_texts(space, hosts, {})
    with host_errors(space, Exception):
        return Matches(args, list(re.Pattern.finditer(*hosts)))
