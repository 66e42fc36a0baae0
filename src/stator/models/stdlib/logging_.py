"""Logging through loggers whose handlers only format and write: the record goes out after the graph.

Anything else (handlers, filters or formatters of the program's own, settings changed in the trace) is traced as the
Python it is, up to what breaks the graph.
"""

from __future__ import annotations

import functools
import logging
import sys
from typing import Any

from stator import errors
from stator.guards.guard import Predicate
from stator.guards.raw import instance_dict
from stator.guards.source import CallSource, ConstSource, DictItemSource
from stator.models.stdlib.text_files import SINKS, settled
from stator.models.text.repr_ import str_of
from stator.space.host_types import Host
from stator.space.operands import known_host, literal, refuse_use
from stator.space.protocol import FALSE, NONE, register
from stator.space.space import Space
from stator.space.value import Constant, Unsupported, Value

_OWN = frozenset({"logging", "logging.handlers"})
_METHODS = ("_log", "makeRecord", "handle", "callHandlers", "filter", "findCaller")
_SOURCE_FILE = logging.__file__


def _inline(function: Host, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    result: Value = space.existing(function).inline(space, args, kwargs, False)  # type: ignore[attr-defined]
    return result


# -- which loggers are plain ----------------------------------------------------------------------------------------


def is_plain(logger: Host) -> bool:
    """Whether a record given to the logger meets nothing but the library's own code, and is only written."""
    if logging.getLogRecordFactory() is not logging.LogRecord or logging.lastResort is None:
        return False
    first: Any = logger
    if any(getattr(type(first), name, None) is not getattr(logging.Logger, name) for name in _METHODS):
        return False
    if not _are_plain(first.filters):
        return False
    handlers: list[Host] = []
    while first is not None:
        if _has_own_methods(first):
            return False
        handlers += first.handlers
        first = first.parent if first.propagate else None
    return all(map(_is_plain_handler, handlers or [logging.lastResort]))


def _is_plain_handler(handler: Host) -> bool:
    formatter = handler.formatter
    if type(handler).__module__ not in _OWN or not _are_plain(handler.filters) or _has_own_methods(handler):
        return False
    if formatter is not None and (type(formatter) is not logging.Formatter or formatter.converter is not _CONVERTER):
        return False
    if formatter is not None and _has_own_methods(formatter):
        return False
    stream = getattr(handler, "stream", None)
    return stream is None or getattr(type(stream), "write", None) in SINKS


def _are_plain(filters: list[Host]) -> bool:
    """Whether they are the library's own, which go by the name of the logger."""
    return all(type(each) is logging.Filter and not _has_own_methods(each) for each in filters)


_CONVERTER = logging.Formatter.converter


def _has_own_methods(part: Host) -> bool:
    """Whether the program has put a function of its own in place of a method of this very object."""
    return any(callable(getattr(type(part), name, None)) for name in vars(part))


def _chain(logger: Host) -> list[Host]:
    """The objects whose settings decide what becomes of a record."""
    chain = [logger.manager, sys]
    while logger is not None:
        chain += [logger, *logger.handlers]
        logger = logger.parent
    return chain


def _existing(space: Space, logger: Value) -> Any:
    """The host logger, if it and all above it are as they were before the trace; else None."""
    logger = logger.force()
    host = space.identity(logger)
    if logger.source is None or not isinstance(host, logging.Logger):
        return None
    chain = _chain(host)
    lists = [getattr(part, name, None) for part in chain for name in ("filters", "handlers")]
    for known in map(space._by_id.get, map(id, [*map(instance_dict, chain), *lists])):
        if known is not None and space.trace.effects.is_mutated(known):
            return None
    return host


# -- asking whether to log ------------------------------------------------------------------------------------------


class EnabledFor:
    """`logger.isEnabledFor(level)`, as a function of the logger."""

    def __init__(self, level: int) -> None:
        self.level = level

    def __call__(self, logger: Host) -> bool:
        return bool(logging.Logger.isEnabledFor(logger, self.level))


@functools.cache
def _enabled_for(level: int) -> EnabledFor:
    return EnabledFor(level)


def is_enabled_for(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`Logger.isEnabledFor`: asks the real logger, now and in the guards."""
    host = _existing(space, args[0]) if len(args) == 2 and not kwargs else None
    if host is None or not literal(args[1].force()) or args[1].force().cls is not int:
        return _inline(logging.Logger.isEnabledFor, space, args, kwargs)
    ask = _enabled_for(space.int_(args[1]))
    source = args[0].force().source
    assert source is not None
    return space.wrap(ask(host), CallSource(ask, source, f"{{}}.isEnabledFor({ask.level})")).force()


def get_logger(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`logging.getLogger` of a logger that exists."""
    values = [*args, *kwargs.values()]
    name = known_host(space, values[0], "logging.getLogger") if values else None
    if len(values) > 1 or not (name is None or isinstance(name, str)):
        return _inline(logging.getLogger, space, args, kwargs)
    if not name or name == logging.root.name:
        return space.existing(logging.root)
    loggers = logging.Logger.manager.loggerDict
    if not isinstance(loggers.get(name), logging.Logger):
        raise refuse_use("logging.getLogger", "of a logger that does not exist yet")
    return space.wrap(loggers[name], DictItemSource(ConstSource(loggers, "logging.Logger.manager.loggerDict"), name))


# -- logging --------------------------------------------------------------------------------------------------------


def log(
    space: Space,
    logger: Value,
    level: Value,
    message: Value,
    args: Value,
    exc_info: Value = NONE,
    extra: Value = NONE,
    stack_info: Value = FALSE,
    stacklevel: Value = Constant(1),  # noqa: B008 (immutable)
) -> Value:
    """`Logger._log` of a plain logger."""
    host = _existing(space, logger)
    plain = host is not None and is_plain(host)
    if not plain or any(space.truth(option) for option in (exc_info, extra, stack_info)):
        options = {"exc_info": exc_info, "extra": extra, "stack_info": stack_info, "stacklevel": stacklevel}
        return _inline(logging.Logger._log, space, [logger, level, message, args], options)
    source = logger.force().source
    assert source is not None
    space.trace.guard(Predicate((source,), is_plain, f"{source.expr()} only writes"))
    where = _caller(space, space.int_(stacklevel))
    message, args = _snapshot(space, message.force(), args.force())
    space.trace.defer(emit, [logger, level, *map(Constant, where), message, args])
    return NONE


def emit(logger: Host, level: int, filename: str, line: int, function: str, message: Host, args: Any) -> None:
    """What `Logger._log` does once it knows where it was called."""
    record = logger.makeRecord(logger.name, level, filename, line, message, args, None, function, None, None)
    logger.handle(record)


def _snapshot(space: Space, message: Value, args: Value) -> tuple[Value, Value]:
    """Message and arguments as they are now: of what can change, the text."""
    items = [item.force() for item in space.unpack(args)]
    if literal(message) and all(map(literal, items)):
        return message, space.new_tuple(items)
    text = str_of(space, message)
    if items:
        operand: Value = space.new_tuple(items)
        mapping = items[0] if len(items) == 1 and items[0].isa(dict) else None
        text = space.binary("%", text, operand if mapping is None or not space.truth(mapping) else mapping)
    return settled(space, text, "logging"), space.new_tuple([])


def _caller(space: Space, stacklevel: int) -> tuple[str, int, str]:
    """`Logger.findCaller`: file, line and function of the call, library frames not counted."""
    frame: Any = space.trace.frame
    while frame is not None:
        internal = frame.code.co_filename == _SOURCE_FILE
        if not internal:
            stacklevel -= 1
            if stacklevel <= 0:
                return frame.code.co_filename, frame.line(), frame.code.co_name
        frame = frame.parent
    raise Unsupported(errors.OutsideCaller("logging"))


def _log_handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return log(space, *args, **kwargs)


register(logging.Logger.isEnabledFor, is_enabled_for)
register(logging.getLogger, get_logger)
register(logging.Logger._log, _log_handler)

__all__ = ["EnabledFor", "emit", "is_enabled_for", "is_plain", "log"]
