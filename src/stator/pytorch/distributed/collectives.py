"""The methods of process groups that communicate: traced as their recipes, or left to Python."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from stator import errors
from stator.guards.callable_names import function_of
from stator.guards.raw import class_dict
from stator.pytorch import internals
from stator.pytorch.distributed import recipes
from stator.pytorch.distributed.calls import is_left_whole, left_to_python
from stator.pytorch.distributed.functional import without_contents
from stator.pytorch.distributed.operators import operator
from stator.pytorch.distributed.options import OptionsValue
from stator.pytorch.distributed.work import WorkValue
from stator.pytorch.whole_calls import left_whole, public_name
from stator.space.protocol import Handler, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.space import Space

__all__ = ["begun_by", "install"]


def _collective(name: str, recipe: Function) -> Handler:
    """The model of a method of ProcessGroup."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = [*args, *kwargs.values()] if kwargs.keys() <= {"opts"} else []
        options = given[-1].force() if given else None
        if not isinstance(options, OptionsValue) or len(given) != recipe.__code__.co_argcount:
            raise Unsupported(errors.CollectiveCall(own_name, "it is called without options"))
        if not options.default("timeout"):
            raise Unsupported(errors.CollectiveCall(own_name, "it has a timeout of its own"))
        called, step = begun_by(space, own_name)
        with left_whole(None, partial(left_to_python, called)):
            writes = space.call(space.existing(recipe), given, {})
        work = WorkValue(called, writes, step)
        space.trace.recorder.checks.append(work)
        return work

    own_name = f"torch.distributed.ProcessGroup.{name}"
    return handler


def begun_by(space: Space, name: str) -> tuple[str, int]:
    """What the program has called to begin the collective, and at which instruction."""
    frame, step = space.trace.frame, space.trace.steps
    while frame.parent is not None and is_left_whole(frame.code):
        name, step = public_name(frame.function.host), frame.begun
        frame = frame.parent
    return name, step


def _operate(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    name, *rest = args
    given = [without_contents(space, arg.force()) for arg in rest]
    return space.call(space.existing(operator(space.known(name))), given, {})


def _leave(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise Unsupported(errors.CollectiveCall("torch.distributed", space.known(args[0])))


def install() -> None:
    """Register the models."""
    group = class_dict(internals.c10d.ProcessGroup)
    for name, recipe in recipes.METHODS.items():
        if name in group:
            register(function_of(group[name]), _collective(name, recipe))
    register(recipes.operate, _operate)
    register(recipes.leave, _leave)
