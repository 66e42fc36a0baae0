"""What generated programs call at run time, where Python has no ready function for an instruction."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Container, Iterable, Mapping
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeVar

from stator._core import CodePolicy, finished_frame, raise_unchanged, set_code_policy
from stator.bytecode.by_code import ByCode

P = ParamSpec("P")
T = TypeVar("T")


class Place(NamedTuple):
    """Where an exception has passed through a traced frame; offsets are in bytes."""

    frame: int  # the same for every place in one frame
    code: CodeType
    globals: dict[str, object]
    at: int
    line: int | None
    last: int  # the instruction at which the frame ended


END: object = type("END", (), {"__repr__": lambda self: "END"})()


def not_contains(container: Container[object], item: object) -> bool:
    """`item not in container`"""
    return item not in container


def format_value(value: object, conversion: str, spec: str) -> str:
    """`f"{value!conversion:spec}"`"""
    return format(_CONVERSIONS[conversion](value) if conversion else value, spec)


_CONVERSIONS: dict[str, Callable[[object], str]] = {"s": str, "r": repr, "a": ascii}


def unpack(value: Iterable[object], count: int) -> list[object]:
    """The items of `a, b = value`, last first; exactly `count`, or CPython's own error."""
    names = ", ".join(f"i{i}" for i in range(count))
    target = f"[{names}]" if count else "[]"
    return _function(f"def unpack(v):\n    {target} = v\n    return [{', '.join(reversed(names.split(', ')))}]")(value)


def unpack_ex(value: Iterable[object], before: int, after: int) -> list[object]:
    """The items of `a, *b, c = value`, last first."""
    names = [f"i{i}" for i in range(before + after + 1)]
    target = ", ".join(f"*{n}" if i == before else n for i, n in enumerate(names))
    return _function(f"def unpack(v):\n    [{target}] = v\n    return [{', '.join(reversed(names))}]")(value)


_Unpacking = Callable[[Iterable[object]], list[object]]
_functions: dict[str, _Unpacking] = {}


def _function(text: str) -> _Unpacking:
    found = _functions.get(text)
    if found is None:
        scope: dict[str, _Unpacking] = {}
        # The file name keeps the frame hook from tracing it, which would end at the same instruction.
        exec(compile(text, "<stator unpack>", "exec"), scope)
        found = _functions[text] = scope["unpack"]
    return found


def list_extend(target: list[object], iterable: Iterable[object]) -> None:
    """`[*iterable]`, into a list that exists already."""
    target += [*iterable]


def dict_update(target: dict[object, object], mapping: Mapping[object, object]) -> None:
    """`{**mapping}`, into a dict that exists already."""
    target.update({**mapping})


def dict_merge(target: dict[str, object], mapping: Mapping[str, object], function: object) -> None:
    """`function(**target, **mapping)`'s check for keywords given twice."""
    for key in mapping.keys():  # noqa: SIM118
        if key in target:
            raise TypeError(f"{_shown(function)} got multiple values for keyword argument '{key}'")
        target[key] = mapping[key]


def _shown(function: object) -> str:
    """`_PyObject_FunctionStr`: how error messages name a callable."""
    name = getattr(function, "__qualname__", None)
    if name is None:
        return str(function)
    module = getattr(function, "__module__", None)
    return f"{module}.{name}()" if module and module != "builtins" else f"{name}()"


def before_with(manager: object) -> tuple[object, object]:
    """`with manager:`: the bound exit, and what entering gave."""
    cls: Any = type(manager)
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


def with_except(exc: BaseException, leave: Callable[..., object], *receiver: object) -> object:
    """The exit of a with statement whose body has raised."""
    return leave(*receiver, type(exc), exc, exc.__traceback__)


def import_from(module: ModuleType, name: str) -> object:
    """`from module import name`"""
    scope: dict[str, object] = {"__name__": "stator.import"}
    try:
        return getattr(module, name)
    except AttributeError:
        exec(f"from {module.__name__} import {name} as found", scope)
        return scope["found"]


def load_global(globals_: dict[str, object], name: str) -> object:
    """A global, else a builtin."""
    if name in globals_:
        return globals_[name]
    try:
        return getattr(builtins, name)
    except AttributeError:
        raise NameError(f"name '{name}' is not defined", name=name) from None


def matches(exc: BaseException, pattern: type[BaseException] | tuple[type[BaseException], ...]) -> bool:
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


def match_keys(subject: Mapping[object, object], keys: tuple[object, ...]) -> tuple[object, ...] | None:
    """The values of a mapping pattern's keys, or None."""
    missing = object()
    values = tuple(subject.get(key, missing) for key in keys)
    return None if any(v is missing for v in values) else values


def handling(exc: BaseException, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function while `exc` is the exception being handled."""
    saved, context = exc.__traceback__, exc.__context__
    try:
        raise exc
    except BaseException:
        exc.__traceback__ = saved
        exc.__context__ = context
        return function(*args, **kwargs)


def thrown(exc: BaseException) -> BaseException | tuple[BaseException]:
    """An exception caught in a generated program, without the traceback entries of that program and of this file.

    In a tuple, if it has come up in that very handler: then the program's own frame has no entry either.
    """
    traceback = exc.__traceback__
    if traceback is not None and not _is_generated(traceback.tb_frame.f_code):
        return (exc,)
    while traceback is not None and _is_generated(traceback.tb_frame.f_code):
        traceback = traceback.tb_next
    exc.__traceback__ = traceback
    return exc


def leave_with(raising: list[BaseException]) -> NoReturn:
    """Raise what the program has raised, the only item. Where nothing lies beneath this, it has no traceback yet."""
    raise_unchanged(raising.pop())


def _is_generated(code: CodeType) -> bool:
    return code.co_filename.startswith("<stator ") or code.co_filename == __file__


def with_frames(
    exc: BaseException,
    passed: list[Place],
    callers: tuple[Place, ...],
    inner: TracebackType | None,
    chained: bool,
    variables: dict[int, dict[str, object] | None],
) -> None:
    """Give an exception the traceback of the traced frames it has passed through.

    Args:
        exc: the exception.
        passed: where it has passed through, innermost first.
        callers: where the traced frames are that have called the outermost of them.
        inner: the traceback it has had before that.
        chained: it was raised while no other of the trace was being handled, so that what the traced frame's callers
            are handling is its context.
        variables: of the frames that have ended, by the number of the frame.
    """
    if chained and sys.exception() is not None:
        try:
            raise exc
        except BaseException:
            pass
    frames: dict[int, FrameType] = {}
    back: FrameType | None = sys._getframe(1)
    while back is not None and _is_generated(back.f_code):
        back = back.f_back
    for place in (*reversed(callers), *reversed(passed)):
        if place.frame not in frames:
            made = finished_frame(place.code, place.globals, place.last, back, variables.get(place.frame))
            back = frames[place.frame] = made
    traceback = inner
    for place in passed:
        line = -1 if place.line is None else place.line
        traceback = TracebackType(traceback, frames[place.frame], place.at, line)
    exc.__traceback__ = traceback


def _untraced_copy(code: CodeType) -> CodeType:
    copy = code.replace()
    set_code_policy(copy, CodePolicy.RUN_RECURSIVELY)
    return copy


_untraced = ByCode[CodeType]()


def untraced(function: FunctionType) -> FunctionType:
    """The function, as one that runs as ordinary Python, with all that it calls."""
    code = _untraced.of(function.__code__, _untraced_copy)
    return FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
