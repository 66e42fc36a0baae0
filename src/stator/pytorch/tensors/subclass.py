"""`__torch_function__`: operations on tensors (and other objects) of classes that override what torch does.

Which function torch hands to an override, and with which arguments, is found out from torch itself: the operation is
called on probes, whose `__torch_function__` only notes what it is given. The override is then traced as the call it is.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
import torch.overrides

from stator import errors
from stator.pytorch import internals
from stator.pytorch.nesting import items_of, rebuilt, value_of
from stator.pytorch.tensors.classes import has_dispatch
from stator.pytorch.tensors.lowering import Call
from stator.pytorch.tensors.recording import record
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.attributes import MISSING
from stator.space.protocol import FALSE, MODELS, NONE, NOT_IMPLEMENTED, TRUE, builtin, pure, register
from stator.space.value import NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.interfaces import Trace
    from stator.space.space import Space

__all__ = ["dispatched", "has_overrides", "install"]

_DISABLED = internals.disabled_torch_function
_DEFAULT = torch.Tensor.__dict__["__torch_function__"]


class FunctionState:
    """Whether overrides are in force, at the point that the trace has reached."""

    __slots__ = ("enabled",)

    def __init__(self, trace: Trace) -> None:
        self.enabled: bool = trace.recorder.state.hooks.overrides == internals.TorchFunctionState.ENABLED


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
    """Whether an operation with these arguments is up to one of them."""
    found = _candidates(space, args, kwargs)
    return bool(found) and space.trace.extension(FunctionState).enabled


def dispatched(space: Space, host: Function, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The result of an operation that an argument overrides, or None where none does."""
    found = _candidates(space, args, kwargs)
    if not found or not space.trace.extension(FunctionState).enabled:
        return None
    classes = {value.cls for value in found}
    if len(classes) > 1:
        raise Unsupported(errors.UnsupportedTensorSubclass(" and ".join(sorted(c.__qualname__ for c in classes))))
    seen = _Probing(space, found[0].cls).ask(host, args, kwargs)
    if seen is None:
        return None
    override = space.getattr(found[0], "__torch_function__")
    result = space.call(override, seen, {})
    if space.is_not_implemented(result.force()):
        # torch words the error, from the names and types of the arguments.
        raise Unsupported(errors.UnsupportedTensorSubclass(found[0].cls.__qualname__))
    return result


def overridden_attribute(space: Space, tensor: TensorValue, name: str) -> Value | None:
    """`tensor.name`, a C-level attribute, as the override of the tensor's class gives it; None without one."""
    return dispatched(space, _getter(name), [tensor], {})


@functools.cache
def _getter(name: str) -> Function:
    return lambda tensor: getattr(tensor, name)


# -- asking torch -----------------------------------------------------------------------------------------------------


class _Asked(BaseException):
    """A probe's override was called, with these arguments."""

    def __init__(self, given: tuple[Any, ...]) -> None:
        super().__init__()
        self.given = given


class _TensorProbe(torch.Tensor):
    """Stands for the tensors whose class is asked."""

    @classmethod
    def __torch_function__(cls, *given: object) -> Any:
        raise _Asked(given)


class _Probe:
    """Stands for an object that is no tensor and overrides torch's functions."""

    @classmethod
    def __torch_function__(cls, *given: object) -> Any:
        raise _Asked(given)


class _Probing:
    """One question to torch: what would the override be called with?"""

    def __init__(self, space: Space, cls: type) -> None:
        self.space = space
        self.cls = cls
        #: id of a probe → the value it stands for
        self.values: dict[int, Value] = {}
        self.kept: list[Any] = []

    def ask(self, host: Function, args: list[Value], kwargs: dict[str, Value]) -> list[Value] | None:
        """The arguments for `__torch_function__`; None if torch does not call it."""
        probes = [self.probe(arg) for arg in args]
        named = {name: self.probe(arg) for name, arg in kwargs.items()}
        try:
            with internals.EnableTorchFunction(), torch.no_grad():
                host(*probes, **named)
        except _Asked as asked:
            return [self.value(part) for part in asked.given]
        except Exception as e:
            raise Raised(self.space.exception(e)) from None
        return None

    def probe(self, value: Value) -> Any:
        """A host object like the value, of which nobody else knows."""
        value = value.force()
        made = self._make(value)
        self.kept.append(made)
        self.values.setdefault(id(made), value)
        return made

    def _make(self, value: Value) -> Any:
        if value.cls is self.cls:
            if issubclass(self.cls, torch.Tensor):
                return torch.empty(0, device="meta").as_subclass(_TensorProbe)
            return _Probe()
        if isinstance(value, TensorValue):
            return torch.empty(0, device="meta")
        items = items_of(self.space, value)
        if items is not None:
            made = [self.probe(item) for item in items]
            return made if value.isa(list) else tuple(made)
        try:
            return value.as_host(self.space)
        except NotKnown:
            raise Unsupported(errors.UnsupportedTensorSubclass(self.cls.__qualname__)) from None

    def value(self, host: Host) -> Value:
        """The value that a part of the answer stands for."""
        return value_of(self.space, host, self.known)

    def known(self, host: Host) -> Value | None:
        """That of what is no structure, and is not made anew."""
        if host is _TensorProbe or host is _Probe:
            return self.space.class_value(self.cls)
        found = self.values.get(id(host))
        return self.space.existing(host) if found is None and callable(host) else found


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
    state = space.trace.extension(FunctionState)
    before, state.enabled = state.enabled, False
    try:
        result = space.call(function, inner, {} if named.cls is type(None) else named.str_items(space))  # type: ignore[attr-defined]
    finally:
        state.enabled = before
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
        raise Unsupported(errors.UnsupportedTensorSubclass(cls.__qualname__))
    if tensor.operation is None:
        alias = torch.ops.aten.alias
        tensor = record(space, Call(alias, "call_function", alias), [tensor], {})  # type: ignore[assignment]
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
        raise Unsupported(errors.UnsupportedTensorSubclass("an argument of as_subclass"))
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
