"""Exceptions in generated code: how a fresh one is made, how an existing one is changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stator.bytecode.runtime import with_frames
from stator.guards.raw import type_lookup
from stator.models.classes.instance import empty_slot, slot_text
from stator.models.exceptions.exception_parts import native_base, own_fields, value_of
from stator.models.exceptions.traceback_ import callers, places
from stator.space.interfaces import Frame, Writer
from stator.space.value import NULL, Value

if TYPE_CHECKING:
    from stator.models.exceptions.exception import ExceptionValue


_ABSENT = object()


def rebuilt(exc: ExceptionValue, writer: Writer) -> str:
    """Code that makes a fresh exception without running the program's own `__init__` again."""
    native = native_base(exc.cls)
    if exc.cls is native and not own_fields(native) and not exc.fields and exc._attrs is None:
        args = [writer.expr(v) for v in exc.arg_values(exc.space)]
        shell = writer.shell_of(exc)
        if shell is None:
            shell = writer.assign("error", f"{writer.const(native)}({', '.join(args)})")
        else:
            writer.line(f"{shell}.args = {_tuple_text(args)}")
        if exc.tb_entries:
            writer.name_value(exc, shell)
            writer.line(_traceback(exc, writer, shell, "None"))
        return shell
    if issubclass(native, BaseExceptionGroup):
        name = _group(exc, writer)
    else:
        name = writer.early(exc)
        args = [writer.expr(v) for v in exc.arg_values(exc.space)]
        if args:
            writer.line(f"{name}.args = {_tuple_text(args)}")
        for field, host in _filled_fields(exc.real, native):
            writer.line(f"{name}.{field} = {writer.expr(value_of(exc.space, host))}")
    _finish(exc, writer, name)
    return name


def _group(exc: ExceptionValue, writer: Writer) -> str:
    fields = [exc.get_field(exc.space, name) for name in ("message", "exceptions")]
    parts = ", ".join(writer.expr(v) for v in fields if v is not None)
    name = writer.assign("group", f"{writer.const(BaseExceptionGroup)}.__new__({writer.const(exc.cls)}, {parts})")
    writer.name_value(exc, name)
    args = [writer.expr(v) for v in exc.arg_values(exc.space)]
    writer.line(f"{name}.args = {_tuple_text(args)}")
    return name


def _filled_fields(real: BaseException, native: type[BaseException]) -> list[tuple[str, Any]]:
    """The C-level attributes that differ from those of an exception just allocated."""
    blank = native.__new__(native)
    found = []
    for name in own_fields(native):
        value = _read(real, native, name)
        if value is not _ABSENT and value is not _read(blank, native, name):
            found.append((name, value))
    return found


def _read(exc: BaseException, native: type, name: str) -> Any:
    try:
        return type_lookup(native, name).__get__(exc)
    except AttributeError:
        return _ABSENT


def _finish(exc: ExceptionValue, writer: Writer, name: str) -> None:
    if exc.tb_entries:
        writer.line(_traceback(exc, writer, name, "None"))
    if exc._attrs is not None:
        exc._attrs.write(writer, name)
    for descriptor, value in exc.slots.items():
        if value is not None:
            writer.line(f"{slot_text(writer, descriptor)}.__set__({name}, {writer.expr(value)})")
    for line in _links(exc, writer, name):
        writer.line(line)


def _traceback(exc: ExceptionValue, writer: Writer, name: str, inner: str) -> str:
    """The line by which the exception gets a traceback of the frames it has left."""
    chained = exc.takes_context and "__context__" not in exc.fields
    variables = ", ".join(f"{id(frame)}: {text}" for frame, text in _variables(exc, writer))
    passed, above = writer.const(places(exc.tb_entries)), writer.const(tuple(callers(exc.tb_entries)))
    return f"{writer.const(with_frames)}({name}, {passed}, {above}, {inner}, {chained}, {{{variables}}})"


def _variables(exc: ExceptionValue, writer: Writer) -> Iterator[tuple[Frame, str]]:
    """The variables of the frames that have ended, as far as they can be made."""
    for frame in dict.fromkeys(entry.frame for entry in exc.tb_entries):
        if not frame.afterlife.left and frame.result is None:
            continue
        if frame.namespace is not None:
            yield frame, writer.attempt(frame.namespace) or "None"
            continue
        held: list[tuple[str, Value]] = [(name, value) for name, value in frame.locals.items() if value is not NULL]
        texts = [(name, writer.attempt(value)) for name, value in [*held, *frame.cells.items()]]
        yield frame, "{" + ", ".join(f"{name!r}: {text}" for name, text in texts if text is not None) + "}"


def _links(exc: ExceptionValue, writer: Writer, name: str) -> list[str]:
    order = ("__context__", "__cause__", "__suppress_context__")
    return [f"{name}.{field} = {writer.expr(exc.fields[field])}" for field in order if field in exc.fields]


def effects(exc: ExceptionValue, writer: Writer) -> list[str]:
    """The lines that change an existing exception as the traced program did."""
    assert exc.source is not None
    fields = [(k, writer.expr(v)) for k, v in exc.fields.items() if not k.startswith("__")]
    args = None if exc.args is None else [writer.expr(v) for v in exc.args]
    slots = [(slot_text(writer, d), None if v is None else writer.expr(v)) for d, v in exc.slots.items()]
    name = writer.source(exc.source)
    lines = [f"{name}.{field} = {expr}" for field, expr in fields]
    if args is not None:
        lines.append(f"{name}.args = {_tuple_text(args)}")
    empty = writer.const(empty_slot)
    lines += [f"{empty}({d}, {name})" if v is None else f"{d}.__set__({name}, {v})" for d, v in slots]
    if "__traceback__" in exc.fields:
        lines.append(f"{name}.__traceback__ = {writer.expr(exc.fields['__traceback__'])}")
    if exc.tb_entries:
        lines.append(_traceback(exc, writer, name, f"{name}.__traceback__"))
    return lines + _links(exc, writer, name)


def _tuple_text(parts: list[str]) -> str:
    return f"({', '.join(parts)},)" if parts else "()"
