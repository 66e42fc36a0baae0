"""Process groups: their rank, size and name are constants under a guard, their collectives operations of the graph.

The graph holds a group by its name, which torch resolves when the graph runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator import errors
from stator.guards.callable_names import callable_name, function_of
from stator.guards.raw import class_dict
from stator.guards.source import CallSource, ConstSource
from stator.pytorch import internals
from stator.pytorch.distributed import calls, recipes
from stator.pytorch.distributed.options import OptionsValue
from stator.pytorch.distributed.work import WorkValue
from stator.pytorch.whole_calls import left_whole, public_name
from stator.space.facts import answer
from stator.space.protocol import Handler, builtin, register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space

__all__ = ["install"]

_FACTS = ("rank", "size", "group_name")


def _facts(group: Host) -> tuple[int, int, str]:
    return group.rank(), group.size(), group.group_name


def _fact(index: int) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        group = args[0].force()
        if len(args) > 1 or kwargs or group.host is None:
            return None
        return Constant(answer(space, group, _facts, "rank, size and name")[index])

    return handler


def _collective(name: str, recipe: Function) -> Handler:
    """The model of a method of ProcessGroup."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = [*args, *kwargs.values()] if kwargs.keys() <= {"opts"} else []
        options = given[-1].force() if given else None
        if not isinstance(options, OptionsValue) or len(given) != recipe.__code__.co_argcount:
            raise Unsupported(errors.CollectiveCall(own_name, "it is called without options"))
        if not options.default("timeout"):
            raise Unsupported(errors.CollectiveCall(own_name, "it has a timeout of its own"))
        called, step = _begun(space, own_name)
        with left_whole(None, lambda met: errors.CollectiveCall(called, met.reason)):
            writes = space.call(space.existing(recipe), given, {})
        work = WorkValue(called, writes, step)
        space.trace.recorder.checks.append(work)
        return work

    own_name = f"torch.distributed.ProcessGroup.{name}"
    return handler


def _begun(space: Space, name: str) -> tuple[str, int]:
    """What the program has called to begin the collective, and at which instruction."""
    frame, step = space.trace.frame, space.trace.steps
    while frame.parent is not None and calls.is_left_whole(frame.code):
        name, step = public_name(frame.function.host), frame.begun
        frame = frame.parent
    return name, step


def _operate(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    name, *rest = args
    internals.functional_collectives  # noqa: B018 (it says what the operators return)
    operator: Any = getattr(internals.collective_operators, space.known(name))
    return space.call(space.existing(operator.default), rest, {})


def _leave(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise Unsupported(errors.CollectiveCall("torch.distributed", space.known(args[0])))


def install() -> None:
    """Register the models."""
    group = class_dict(internals.c10d.ProcessGroup)
    for index, name in enumerate(_FACTS):
        register(function_of(group[name]), _fact(index))
    for name, recipe in recipes.METHODS.items():
        if name in group:
            register(function_of(group[name]), _collective(name, recipe))
    register(recipes.operate, _operate)
    register(recipes.leave, _leave)

    resolve_name = internals.group_of_name

    @builtin(resolve_name)
    def resolve(space: Space, name: Value, /) -> Value:
        """The group of a name."""
        text = space.known(name.force())
        if type(text) is not str:
            raise Unsupported(errors.UnsupportedCCall(callable_name(resolve_name)))
        found = CallSource(resolve_name, ConstSource(text, repr(text)), "group of this name")
        return space.wrap(resolve_name(text), found)
