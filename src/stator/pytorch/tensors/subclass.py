"""`__torch_function__`: operations on tensors (and other objects) of classes that override what torch does.

Which function torch hands to an override, and with which arguments, is found out from torch itself: the operation is
called on probes, whose `__torch_function__` only notes what it is given. The override is then traced as the call it is.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
import torch.overrides

from stator import errors
from stator.pytorch import internals
from stator.pytorch.nesting import items_of, rebuilt
from stator.pytorch.subclasses.probing import ModeProbe, Probing, probe_classes
from stator.pytorch.tensors.classes import has_dispatch
from stator.pytorch.tensors.recording import record_function
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.attributes import MISSING
from stator.space.protocol import FALSE, MODELS, NONE, NOT_IMPLEMENTED, TRUE, amend, builtin, pure, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.state.function_modes import FunctionModes
    from stator.pytorch.types import Function
    from stator.space.interfaces import Trace
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["dispatched", "has_overrides", "install", "let_modes_override", "overrides_off"]

_DISABLED = internals.disabled_torch_function
_DEFAULT = torch.Tensor.__dict__["__torch_function__"]


class FunctionState:
    """Whether overrides are in force, at the point that the trace has reached."""

    __slots__ = ("_probes", "enabled")

    def __init__(self, trace: Trace) -> None:
        self.enabled: bool = trace.recorder.state.hooks.overrides == internals.TorchFunctionState.ENABLED
        self._probes: dict[frozenset[type], dict[type, Any]] = {}

    def probes_of(self, classes: set[type]) -> dict[type, Any]:
        """Classes of probes for these classes."""
        key = frozenset(classes)
        if key not in self._probes:
            self._probes[key] = probe_classes(classes)
        return self._probes[key]


@contextmanager
def overrides_off(space: Space) -> Iterator[None]:
    """Overrides are not in force meanwhile."""
    state = space.trace.extension(FunctionState)
    before, state.enabled = state.enabled, False
    try:
        yield
    finally:
        state.enabled = before


def _overrides(space: Space, value: Value) -> bool:
    """Whether torch asks the class of this argument."""
    cls = value.cls
    if cls is torch.Tensor or cls is torch.nn.Parameter or value.constant:
        return False
    if isinstance(value, TensorValue):
        return space.host_lookup(cls, "__torch_function__") is not _DISABLED
    if isinstance(value, (MODELS[list], MODELS[tuple], MODELS[dict])) and not hasattr(cls, "__torch_function__"):
        return False
    return space.host_lookup(cls, "__torch_function__") not in (MISSING, _DISABLED)


def _candidates(space: Space, args: list[Value], kwargs: dict[str, Value]) -> list[Value]:
    """The arguments, and the items of lists and tuples among them, whose classes override torch's functions."""
    found: list[Value] = []
    for arg in [*args, *kwargs.values()]:
        arg = arg.force()
        if arg.constant or (type(arg) is TensorValue and arg.cls is torch.Tensor):
            continue
        if _overrides(space, arg):
            found.append(arg)
        else:
            found += [item for item in items_of(space, arg) or () if _overrides(space, item)]
    return found


def has_overrides(space: Space, args: list[Value], kwargs: dict[str, Value]) -> bool:
    """Whether an operation with these arguments is up to one of them, or to a mode."""
    if space.trace.recorder.state.modes.asked:
        return True
    found = _candidates(space, args, kwargs)
    return bool(found) and space.trace.extension(FunctionState).enabled


def dispatched(space: Space, host: Function, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The result of an operation that a mode or an argument overrides, or None where none does."""
    found = _candidates(space, args, kwargs)
    if not space.trace.extension(FunctionState).enabled:
        found = []
    modes: FunctionModes = space.trace.recorder.state.modes
    if not found and not modes.asked:
        return None
    probing = Probing(space, space.trace.extension(FunctionState).probes_of({value.cls for value in found}))
    if modes.asked:
        asked = probing.ask(host, args, kwargs, ModeProbe())
        if asked is not None:
            with modes.within_innermost() as mode:
                result = _answer(space, mode, asked[0])
                return _refused(mode) if result is None else result
    return _first_answer(space, probing, found, host, args, kwargs)


def _first_answer(
    space: Space, probing: Probing, found: list[Value], host: Function, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """What the first class gives that implements the operation, as torch asks them; None if it asks none."""
    for _ in probing.classes:
        asked = probing.ask(host, args, kwargs)
        if asked is None:
            return None
        seen, cls = asked
        first = next(value for value in found if value.cls is cls)
        result = _answer(space, first, seen)
        if result is not None:
            return result
        probing.refuse(cls)
    return _refused(found[0]) if found else None


def _answer(space: Space, asked: Value, seen: list[Value]) -> Value | None:
    """What the override of an argument's class, or of a mode, gives; None for NotImplemented."""
    result = space.call(space.getattr(asked, "__torch_function__"), seen, {})
    return None if space.is_not_implemented(result.force()) else result


def _refused(asked: Value) -> Value:
    """torch words the error, from the names and types of the arguments."""
    why = "its __torch_function__ gives NotImplemented"
    raise Unsupported(errors.UnsupportedTensorSubclass(asked.cls.__qualname__, why))


def heeding_modes(host: Function, handler: Handler) -> Handler:
    """The model of a function that modes override as they do all others."""

    def run(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Any:
        if space.trace.recorder.state.modes.asked:
            result = dispatched(space, host, args, kwargs)
            if result is not None:
                return result
        return handler(space, args, kwargs)

    return run


def overridden_attribute(space: Space, tensor: TensorValue, name: str) -> Value | None:
    """`tensor.name`, a C-level attribute, as the override of the tensor's class gives it; None without one."""
    return dispatched(space, _getter(name), [tensor], {})


@functools.cache
def _getter(name: str) -> Function:
    return lambda tensor: getattr(tensor, name)


# -- the default override ---------------------------------------------------------------------------------------------


def _default(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`Tensor.__torch_function__`: the operation as if there were no override, its results made of the class."""
    names = ("cls", "func", "types", "args", "kwargs")
    given = dict(zip(names, args, strict=False)) | kwargs
    cls_value, function, classes = (given[name].force() for name in names[:3])
    cls = cls_value.as_host(space)
    if not all(issubclass(cls, t.as_host(space)) for t in space.unpack(classes)):
        return NOT_IMPLEMENTED
    inner = space.unpack(given["args"]) if "args" in given else []
    named = given.get("kwargs", NONE).force()
    host = space.known(function)
    with overrides_off(space):
        result = space.call(function, inner, {} if named.cls is type(None) else named.str_items(space))  # type: ignore[attr-defined]
    if host in torch.overrides.get_default_nowrap_functions():
        return result
    return _converted(space, result.force(), cls)


def _converted(space: Space, value: Value, cls: type) -> Value:
    """`torch._tensor._convert`."""
    if cls is torch.Tensor:
        return value
    if isinstance(value, TensorValue) and not value.isa(cls):
        return as_subclass(space, value, cls)
    items = items_of(space, value)
    if items is None:
        return value
    made = rebuilt(space, value, [_converted(space, item, cls) for item in items])
    made.cls = value.cls
    return made


def as_subclass(space: Space, tensor: TensorValue, cls: type) -> TensorValue:
    """`tensor.as_subclass(cls)`, of a class without `__torch_dispatch__`."""
    if has_dispatch(cls):
        raise Unsupported(
            errors.UnsupportedTensorSubclass(cls.__qualname__, "as_subclass makes one with __torch_dispatch__")
        )
    if tensor.operation is None:
        tensor = record_function(space, torch.ops.aten.alias, tensor)
    made = as_plain(tensor)
    made.cls = cls
    return made


def as_plain(tensor: TensorValue) -> TensorValue:
    """Another object for what an operation has made, of class Tensor."""
    assert tensor.operation is not None
    made: TensorValue = tensor.operation.made(tensor.meta, tensor.path)
    made.root = tensor.root
    made._fake = tensor._fake
    return made


@builtin(torch.Tensor.as_subclass)
def tensor_as_subclass(space: Space, self: Value, cls: Value, /) -> Value:
    """`Tensor.as_subclass`."""
    tensor, wanted = self.force(), space.known(cls.force())
    if not isinstance(tensor, TensorValue) or not isinstance(wanted, type) or not issubclass(wanted, torch.Tensor):
        raise Unsupported(errors.UnsupportedTensorSubclass("Tensor", "an argument of as_subclass is not known"))
    return as_subclass(space, tensor, wanted)


# -- models ---------------------------------------------------------------------------------------------------------


def _has_torch_function(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`_has_torch_function*`: the arguments, or the items of a tuple of them."""
    return TRUE if has_overrides(space, args, kwargs) else FALSE


def _is_enabled(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    space.trace.recorder.state.used = True
    return TRUE if space.trace.extension(FunctionState).enabled else FALSE


def install() -> None:
    """Register the models."""
    asking = (internals.has_torch_function, internals.has_torch_function_unary, internals.has_torch_function_variadic)
    for host in asking:
        register(host, _has_torch_function)
    register(internals.is_torch_function_enabled, _is_enabled)
    register(_DEFAULT.__func__, _default)
    # An override tells the functions it knows by comparing them.
    pure(type(len).__hash__)


def let_modes_override() -> None:
    """All models that there are of torch's functions heed modes, as the functions do."""
    ignored = torch.overrides.get_ignored_functions()
    owners = (torch.Tensor, internals.VariableFunctions)
    # What they have from `object` is no function of torch's.
    general = set(map(id, (getattr(object, name) for name in dir(object))))
    hosts = [getattr(owner, name, None) for owner in owners for name in dir(owner)]
    for host in {id(host): host for host in (*hosts, *vars(torch).values())}.values():
        if callable(host) and host not in ignored and id(host) not in general:
            amend(host, functools.partial(heeding_modes, host))
    register(torch.device, heeding_modes(torch.device, _as_ever))


def _as_ever(space: Space, args: list[Value], kwargs: dict[str, Value]) -> None:
    """What there is besides a model answers."""
