"""Output: `print` and `warnings.warn`, whose text is made while tracing and goes out after the graph."""

from __future__ import annotations

import _warnings
import sys
import warnings
from typing import Any

from stator import errors
from stator.guards.guard import Predicate
from stator.guards.source import ConstSource
from stator.host.version_facts import WARNINGS_LOCK
from stator.models.stdlib.text_files import SINKS, can_take, known_parts, settled
from stator.models.text.repr_ import str_of
from stator.space.host_types import Host
from stator.space.operands import check_kind, known_host, refuse, refuse_use
from stator.space.protocol import FALSE, NONE, builtin
from stator.space.space import Space
from stator.space.value import Constant, Unsupported, Value
from stator.space.warning_trap import filters, is_redirected


@builtin(print)
def print_(
    space: Space, *args: Value, sep: Value = NONE, end: Value = NONE, file: Value = NONE, flush: Value = FALSE
) -> Value:
    target = file.force()
    if target.is_none():
        target = space.getattr(space.existing(sys), "stdout").force()
        if target.is_none():
            return NONE
    separator = _separator(space, sep, "sep", " ")
    ending = _separator(space, end, "end", "\n")
    if target.source is None or space.host_lookup(target.cls, "write") not in SINKS:
        _print_through(space, target, args, separator, ending, flush)
        return NONE
    texts = [settled(space, str_of(space, arg), "print") for arg in args]
    known = [part for text in (*texts, separator, ending) for part in known_parts(text)]
    if not can_take(space, target, known):
        raise refuse("print")
    options = {"file": target}
    if separator.host != " ":
        options["sep"] = separator
    if ending.host != "\n":
        options["end"] = ending
    if space.truth(flush):
        options["flush"] = Constant(True)
    space.trace.defer(print, texts, options)
    return NONE


def _separator(space: Space, value: Value, name: str, default: str) -> Constant:
    value = value.force()
    if value.is_none():
        return Constant(default)
    check_kind(space, value, str, f"{name} must be None or a string, not %T")
    return Constant(str.__str__(known_host(space, value, "print")))


def _print_through(
    space: Space, target: Value, args: tuple[Value, ...], separator: Value, ending: Value, flush: Value
) -> None:
    """A file whose `write` is the program's own: called as CPython calls it."""
    for index, arg in enumerate(args):
        if index:
            space.call_method(target, "write", separator)
        write = space.getattr(target, "write")
        space.call(write, [str_of(space, arg)], {})
    space.call_method(target, "write", ending)
    if space.truth(flush):
        space.call_method(target, "flush")


# -- warnings -------------------------------------------------------------------------------------------------------


@builtin(_warnings.warn)
def warn(
    space: Space,
    message: Value,
    category: Value = NONE,
    stacklevel: Value = Constant(1),  # noqa: B008 (immutable)
    source: Value = NONE,
    skip_file_prefixes: Value | None = None,
) -> Value:
    """Said after the graph, as coming from the user's line; filters act then, unless one turns warnings into errors."""
    if skip_file_prefixes is not None:
        raise refuse_use("warnings.warn", "with skip_file_prefixes")
    message = message.force()
    if message.cls is not str:
        raise refuse_use("warnings.warn", "of an object that is no str")
    kind = known_host(space, category, "warnings.warn")
    kind = UserWarning if kind is None else kind
    if not (isinstance(kind, type) and issubclass(kind, Warning)):
        name = kind.__name__ if isinstance(kind, type) else type(kind).__name__
        raise space.error(TypeError, f"category must be a Warning subclass, not '{name}'")
    module, filename, line = _place(space, max(space.int_(stacklevel), 1))
    where: list[Value] = [Constant(filename), Constant(line), Constant(module)]
    arguments = [message, space.class_value(kind), *where, source]
    ordinary = is_ordinary(warnings)
    if not ordinary or is_redirected(space):
        return space.call(space.existing(show_warning), arguments, {})
    origin = ConstSource(warnings, "warnings")
    space.trace.guard(Predicate((origin,), is_ordinary, "warnings are only written"))
    space.trace.defer(deliver, arguments)
    return NONE


def deliver(message: str, category: type[Warning], filename: str, lineno: int, module: str, source: Host) -> None:
    """What `warnings.warn` does once it knows where the warning comes from."""
    namespace = sys.modules[module].__dict__
    registry = namespace.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, filename, lineno, module, registry, source=source)


def show_warning(message: str, category: type[Warning], filename: str, lineno: int, module: str, source: Host) -> None:
    """The same as a program that is traced, where the filters are the traced program's own: `warn_explicit`."""
    text = category(message)
    action = warnings.defaultaction  # type: ignore[attr-defined]
    for wanted, words, kind, place, line in filters():
        said = (words is None or words.match(message)) and issubclass(category, kind)
        if said and (place is None or place.match(module)) and line in (0, lineno):
            action = wanted
            break
    if action == "ignore":
        return
    if action == "error":
        raise text
    if action != "always":
        # What has been shown before is in a registry that only the real function can keep.
        warnings.warn_explicit(message, category, filename, lineno, module, source=source)
        return
    shown = warnings.WarningMessage(text, category, filename, lineno, source=source)
    warnings._showwarnmsg(shown)  # type: ignore[attr-defined]


_mutated: Any = getattr(_warnings, "_filters_mutated_lock_held" if WARNINGS_LOCK else "_filters_mutated")


@builtin(_mutated)
def filters_mutated(space: Space) -> Value:
    if space.trace.effects.is_deferred(deliver):
        raise refuse_use("warnings.filterwarnings", "after a warning that is shown later")
    space.trace.defer(_mutated, [])
    return NONE


def _lock(host: Any) -> None:
    """What is done under the lock of the filters is done after the graph, and so is taking and releasing it."""

    def model(space: Space) -> Value:
        space.trace.defer(host, [])
        return NONE

    builtin(host)(model)


if WARNINGS_LOCK:
    _lock(_warnings._acquire_lock)  # type: ignore[attr-defined]
    _lock(_warnings._release_lock)  # type: ignore[attr-defined]


def _place(space: Space, level: int) -> tuple[str, str, int]:
    """Module, file and line of the frame that many calls up; a frame outside the trace is another each time."""
    frame: Any = space.trace.frame
    for _ in range(level - 1):
        frame = frame.parent if frame is not None else None
    if frame is None:
        raise Unsupported(errors.OutsideCaller("warnings.warn"))
    module = frame.globals.get("__name__")
    if getattr(sys.modules.get(module), "__dict__", None) is not frame.globals:
        raise refuse_use("warnings.warn", "in code that belongs to no module")
    filename = frame.code.co_filename
    if "importlib" in filename and "_bootstrap" in filename:
        raise refuse_use("warnings.warn", "from the import system")
    return module, filename, frame.line()


def is_ordinary(module: Host) -> bool:
    """Whether warnings are only written: none is an exception, and no code of the program's sees one."""
    shown = module.showwarning is module._showwarning_orig
    impl = getattr(module._showwarnmsg_impl, "__module__", None) in ("warnings", "_py_warnings")
    return shown and impl and all(entry[0] != "error" for entry in filters())
