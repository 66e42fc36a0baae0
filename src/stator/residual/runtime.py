"""What generated programs call at run time, where Python has no ready function for an instruction."""

from __future__ import annotations

import builtins
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType, TracebackType
from typing import Any

from stator._core import set_code_policy

#: as `co_positions` gives them: the line (None: none), the last line, the columns
Position = tuple[int | None, int | None, int | None, int | None]
#: a place in a traced frame: its code, the position in it, its globals
Place = tuple[CodeType, Position, dict[str, Any]]
END: Any = type("END", (), {"__repr__": lambda self: "END"})()


def not_contains(container: Any, item: Any) -> bool:
    """`item not in container`"""
    return item not in container


def format_value(value: Any, conversion: str, spec: str) -> str:
    """`f"{value!conversion:spec}"`"""
    return format(_CONVERSIONS[conversion](value) if conversion else value, spec)


_CONVERSIONS: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}


def unpack(value: Any, count: int) -> list[Any]:
    """The items of `a, b = value`, last first; exactly `count`, or CPython's own error."""
    names = ", ".join(f"i{i}" for i in range(count))
    target = f"[{names}]" if count else "[]"
    return _function(f"def unpack(v):\n    {target} = v\n    return [{', '.join(reversed(names.split(', ')))}]")(value)  # type: ignore[no-any-return]


def unpack_ex(value: Any, before: int, after: int) -> list[Any]:
    """The items of `a, *b, c = value`, last first."""
    names = [f"i{i}" for i in range(before + after + 1)]
    target = ", ".join(f"*{n}" if i == before else n for i, n in enumerate(names))
    return _function(f"def unpack(v):\n    [{target}] = v\n    return [{', '.join(reversed(names))}]")(value)  # type: ignore[no-any-return]


_functions: dict[str, Callable[..., Any]] = {}


def _function(text: str) -> Callable[..., Any]:
    found = _functions.get(text)
    if found is None:
        scope: dict[str, Any] = {}
        # The file name keeps the frame hook from tracing it, which would end at the same instruction.
        exec(compile(text, "<stator unpack>", "exec"), scope)
        found = _functions[text] = scope["unpack"]
    return found


def list_extend(target: list[Any], iterable: Any) -> None:
    """`[*iterable]`, into a list that exists already."""
    target += [*iterable]


def dict_update(target: dict[Any, Any], mapping: Any) -> None:
    """`{**mapping}`, into a dict that exists already."""
    target.update({**mapping})


def dict_merge(target: dict[str, Any], mapping: Any, function: Any) -> None:
    """`function(**target, **mapping)`'s check for keywords given twice."""
    for key in mapping.keys():  # noqa: SIM118
        if key in target:
            name = getattr(function, "__qualname__", repr(function))
            raise TypeError(f"{name}() got multiple values for keyword argument '{key}'")
        target[key] = mapping[key]


def before_with(manager: Any) -> tuple[Any, Any]:
    """`with manager:`: the bound exit, and what entering gave."""
    cls = type(manager)
    try:
        enter = cls.__enter__
    except AttributeError:
        raise TypeError(f"'{cls.__name__}' object does not support the context manager protocol") from None
    try:
        leave = cls.__exit__
    except AttributeError:
        text = f"'{cls.__name__}' object does not support the context manager protocol (missed __exit__ method)"
        raise TypeError(text) from None
    bound = leave.__get__(manager, cls) if hasattr(type(leave), "__get__") else leave
    entered = enter.__get__(manager, cls)() if hasattr(type(enter), "__get__") else enter()
    return bound, entered


def with_except(leave: Any, exc: BaseException) -> Any:
    """The exit of a with statement whose body has raised."""
    return leave(type(exc), exc, exc.__traceback__)


def import_from(module: Any, name: str) -> Any:
    """`from module import name`"""
    scope: dict[str, Any] = {"__name__": "stator.import"}
    try:
        return getattr(module, name)
    except AttributeError:
        exec(f"from {module.__name__} import {name} as found", scope)
        return scope["found"]


def load_global(globals_: dict[str, Any], name: str) -> Any:
    """A global, else a builtin."""
    if name in globals_:
        return globals_[name]
    try:
        return getattr(builtins, name)
    except AttributeError:
        raise NameError(f"name '{name}' is not defined", name=name) from None


def matches(exc: BaseException, pattern: Any) -> bool:
    """`except pattern:`"""
    saved = exc.__traceback__
    try:
        raise exc
    except pattern:
        return True
    except BaseException as other:
        if other is not exc:
            raise
        return False
    finally:
        exc.__traceback__ = saved


def match_keys(subject: Any, keys: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The values of a mapping pattern's keys, or None."""
    missing = object()
    values = tuple(subject.get(key, missing) for key in keys)
    return None if any(v is missing for v in values) else values


def handling(exc: BaseException, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function while `exc` is the exception being handled."""
    saved, context = exc.__traceback__, exc.__context__
    try:
        raise exc
    except BaseException:
        exc.__traceback__ = saved
        exc.__context__ = context
        return function(*args, **kwargs)


def thrown(exc: BaseException) -> BaseException:
    """An exception caught in a generated program, without the traceback entries of that program and of this file."""
    traceback = exc.__traceback__
    while traceback is not None and _is_generated(traceback.tb_frame.f_code):
        traceback = traceback.tb_next
    exc.__traceback__ = traceback
    return exc


def _is_generated(code: CodeType) -> bool:
    return code.co_filename.startswith("<stator ") or code.co_filename == __file__


def raise_through(frames: list[Place], exc: list[BaseException]) -> Any:
    """Raise the exception as the traced frames would have: its traceback names their files and lines, outermost first.

    It is taken out of the list, so that none of the frames to which the traceback leads has it in a variable.
    """
    if not frames:
        raise exc.pop()  # it is sent on as it is
    call: Callable[[], Any] = _raiser(frames[-1], exc)
    for place in reversed(frames[:-1]):
        call = _caller(place, call)
    return call()


def with_frames(exc: BaseException, frames: list[Place], inner: TracebackType | None = None) -> None:
    """Give an exception that is not raised now the traceback of the traced frames it has left, outermost first.

    `inner` is the traceback it has had before that.
    """
    context = exc.__context__
    exc.__traceback__ = inner
    try:
        raise_through(frames, [exc])
    except BaseException:
        own = exc.__traceback__
        exc.__traceback__ = own and own.tb_next and own.tb_next.tb_next
        exc.__context__ = context
    finally:
        own = None
        del exc  # the traceback leads to this frame too


def _stub(template: CodeType, place: Place, operand: Any) -> Callable[[], Any]:
    """A function that looks like the traced one at that line, and does to its operand what the template does."""
    code, position, names = place
    stub = template.replace(
        co_filename=code.co_filename,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
        co_firstlineno=code.co_firstlineno,
        co_linetable=_line_table(len(template.co_code) // 2, position, code.co_firstlineno),
    )
    return FunctionType(stub, names, code.co_name, (operand,))


def _line_table(units: int, position: Position, first: int) -> bytes:
    """`co_linetable` of code that lies at one position, or at none (`Objects/locations.md`)."""
    line, end, column, end_column = position
    kind, step, columns = _NO_LINE, b"", b""
    if line is not None:
        kind, step = _LINE_ONLY, _signed(line - first)
        if end is not None and column is not None and end_column is not None:
            kind, columns = _LONG, _unsigned(end - line) + _unsigned(column + 1) + _unsigned(end_column + 1)
    table = bytearray()
    while units > 0:
        count = min(units, 8)
        table.append(0x80 | kind << 3 | (count - 1))
        table += step + columns
        step = _signed(0) if step else step
        units -= count
    return bytes(table)


_LINE_ONLY, _LONG, _NO_LINE = 13, 14, 15


def _signed(number: int) -> bytes:
    return _unsigned(-number << 1 | 1 if number < 0 else number << 1)


def _unsigned(number: int) -> bytes:
    """A number in pieces of six bits, the lowest first."""
    pieces = bytearray()
    while number >= 64:
        pieces.append(0x40 | number & 63)
        number >>= 6
    pieces.append(number)
    return bytes(pieces)


def _raise(exc: list[BaseException]) -> Any:
    raise exc.pop()


def _call(call: Callable[[], Any]) -> Any:
    return call()


def _raiser(place: Place, exc: list[BaseException]) -> Callable[[], Any]:
    return _stub(_raise.__code__, place, exc)


def _caller(place: Place, call: Callable[[], Any]) -> Callable[[], Any]:
    return _stub(_call.__code__, place, call)


_untraced: weakref.WeakKeyDictionary[CodeType, CodeType] = weakref.WeakKeyDictionary()


def untraced(function: FunctionType) -> FunctionType:
    """The function, as one that runs as ordinary Python, with all that it calls."""
    code = function.__code__
    twin = _untraced.get(code)
    if twin is None:
        twin = _untraced[code] = code.replace()
        set_code_policy(twin, 2)
    return FunctionType(twin, function.__globals__, function.__name__, None, function.__closure__)
