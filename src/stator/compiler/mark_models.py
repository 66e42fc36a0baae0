"""How the tracer heeds the marks of `stator.marks`, and torch's own."""

from __future__ import annotations

from stator import errors
from stator.compiler.constant_result import constant_result
from stator.marks import functions, stance
from stator.space.host_types import Host, HostCallable
from stator.space.protocol import INTERCEPTS, Handler, Refusal, refuse, register
from stator.space.space import Space
from stator.space.value import Constant, Raised, Unsupported, Value

__all__ = ["substitute"]


def substitute(original: Host, replacement: HostCallable) -> None:
    """Trace `replacement` wherever the program calls `original`."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return space.call(space.existing(replacement), args, kwargs)

    register(original, handler)


def _intercept(host: Host) -> Handler | None:
    if host is stance.change:
        return _refuse_change
    if host.__dict__.get("_stator_sets_stance") or _has_torchs_stance(host):
        return Refusal(
            refuse, errors.DisabledFunction(host.__qualname__, "it runs with a stance of its own (set_stance)")
        )
    if host.__dict__.get("_dynamo_forbidden") and host.__name__ not in _MARKING:
        return _refuse_change if _is_torchs(host) else _forbidden(host)
    reason = host.__dict__.get("_stator_disabled") or _torch_mark(host)
    if reason is not None:
        return Refusal(refuse, errors.DisabledFunction(host.__qualname__, reason))
    if "_stator_constant_result" in host.__dict__ or "_dynamo_marked_constant" in host.__dict__:
        return constant_result(host)
    return None


#: functions that torch forbids as it could not heed them: they write attributes, which later calls find
_MARKING = frozenset({"mark_dynamic", "maybe_mark_dynamic", "mark_static_address", "mark_unbacked"})


#: the files of torch's functions that change the stance
_STANCES = ("_dynamo/decorators.py", "_dynamo/eval_frame.py", "compiler/__init__.py")


def _is_torchs(host: Host) -> bool:
    """Whether it is one of torch's functions that change the stance."""
    return bool(host.__code__.co_filename.endswith(_STANCES))


def _has_torchs_stance(host: Host) -> bool:
    """Whether a function is decorated with torch's `set_stance`."""
    return bool(host.__dict__.get("_dynamo_forbidden")) and host.__code__.co_filename.endswith("utils/_contextlib.py")


def _forbidden(host: Host) -> Handler:
    """Of a function that the program forbids: torch says so, in these words."""

    def refuse(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Raised(space.exception(AssertionError(f"Attempt to trace forbidden callable {host}")))

    return refuse


def _refuse_change(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise Raised(space.exception(RuntimeError("attempted to set_stance in a torch.compile region")))


def _torch_mark(host: Host) -> str | None:
    if host.__dict__.get("_torchdynamo_disable"):
        return str(host.__dict__.get("_torchdynamo_disable_msg") or "torch.compiler.disable")
    return None


def _graph_break(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    message = kwargs.get("msg", args[0] if args else Constant(""))
    raise Unsupported(errors.ExplicitBreak(str(space.known(message)) or "no message"))


def _true(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Constant(True)


def install() -> None:
    """Called once, before the first trace."""
    register(functions.graph_break, _graph_break)
    register(functions.is_compiling, _true)
    INTERCEPTS.append(_intercept)
