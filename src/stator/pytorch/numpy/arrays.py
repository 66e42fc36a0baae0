"""NumPy's arrays and scalars: traced as tensors in the same memory, their functions as operations of the graph."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stator import errors
from stator.guards.raw import owner_of
from stator.guards.source import CallSource, ConstSource
from stator.models.classes.instance import InstanceValue
from stator.pytorch import internals
from stator.pytorch.fake.failure import Failure
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.numpy import array_calls
from stator.pytorch.numpy.array_calls import (
    Answer,
    array_call,
    ask,
    computed,
    name_of,
    numpy_dtype,
    same_sizes,
    strides_of,
    tensor_of,
)
from stator.pytorch.numpy.float_errors import FloatErrors, refuses_for_real
from stator.pytorch.numpy.float_flags import QUIET
from stator.pytorch.numpy.loops import refused, types_of, ufunc_of
from stator.pytorch.shapes.symbols import SymValue
from stator.pytorch.state.global_state import function_modes
from stator.pytorch.tensors import attributes
from stator.pytorch.tensors.calls import function_handler
from stator.pytorch.tensors.lowering import Call, lower_call
from stator.pytorch.tensors.recording import record
from stator.pytorch.tensors.scalars import scalar
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import (
    AMBIENT,
    CALL_HOOKS,
    IMMUTABLE,
    INTERCEPTS,
    MODELS,
    NOT_IMPLEMENTED,
    REALISERS,
    register,
)
from stator.space.value import Constant, ObjectValue, Raised, Unsupported, Value
from stator.space.warning_trap import left_to_run_time

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.space.interfaces import Writer
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["ArrayValue", "install"]

_Base: Any = internals.TensorBase
_SCALARS: tuple[type, ...] = tuple(np.dtype(code).type for code in "?bBhHiIlLqQefdFD")


class ArrayValue(ObjectValue):
    """An array, or a scalar of NumPy's: `tensor` lies in the same memory."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: TensorValue, cls: type = np.ndarray) -> None:
        self.cls = cls
        self.source: Source | None = None
        self.host: Any = None
        self.tensor = tensor

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> Value:
        """An existing array: as a tensor, where torch has one like it."""
        own = space.guard_type(host, source)
        tensor = _existing(space, host, source)
        if tensor is None:
            return InstanceValue.from_host(space, host, source)
        self = cls(tensor, own)
        self.host, self.source = host, source
        return self

    def get_field(self, space: Space, name: str) -> Value | None:
        reader = _FIELDS.get(name)
        if reader is None:
            raise Unsupported(errors.UnsupportedAttribute(self.cls.__name__, name))
        return reader(space, self)

    def unpack(self, space: Space) -> list[Value]:
        count = len(self.tensor.shape) and hint_of(self.tensor.shape[0])
        space.int_(space.len(self))  # is assumed not to change
        getitem = np.ndarray.__getitem__
        return [space.call_builtin(getitem, [self, Constant(i)], {}) for i in range(count)]

    def describe(self) -> str:
        return f"an array of shape {tuple(self.tensor.shape)}"

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        text = f"{writer.const(_Base.numpy)}({writer.expr(self.tensor)})"
        return writer.assign("array", text if self.cls is np.ndarray else f"{text}[()]")


def _existing(space: Space, host: Any, source: Source) -> TensorValue | None:
    """The tensor in the memory of an existing array."""
    if type(source) is ConstSource or type(host) not in (np.ndarray, *_SCALARS):
        return None
    try:
        tensor = tensor_of(host)
    except (TypeError, ValueError):
        return None
    recorder = space.trace.recorder
    value = TensorValue(recorder, torch.Tensor, None)
    value.source = CallSource(tensor_of, source, "torch.from_numpy")
    value.host = tensor
    recorder.adopt(value)
    return value


# -- attributes -------------------------------------------------------------------------------------------------------


def _shape(space: Space, array: ArrayValue) -> Value:
    return space.new_tuple(space.unpack(attributes.shape(space, array.tensor)))


def _total(space: Space, array: ArrayValue) -> Value:
    total: Value = Constant(1)
    for size in space.unpack(attributes.shape(space, array.tensor)):
        total = space.binary("*", total, size)
    return total


def _dtype(space: Space, array: ArrayValue) -> Value:
    return Constant(numpy_dtype(array.tensor.dtype))


def _through(name: str) -> Any:
    return lambda space, array: call(space, getattr(array.cls, name).__get__, f"ndarray.{name}", [array], {})


_FIELDS: dict[str, Any] = {
    "shape": _shape,
    "ndim": lambda space, array: Constant(len(array.tensor.shape)),
    "size": _total,
    "dtype": _dtype,
    "itemsize": lambda space, array: Constant(numpy_dtype(array.tensor.dtype).itemsize),
    **{name: _through(name) for name in ("T", "real", "imag")},
}


# -- calls ------------------------------------------------------------------------------------------------------------


def call(space: Space, host: Any, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Record a call of NumPy's function `host`, which `array_call` knows by `name`."""
    asked = _Asked(space, host, name, args, kwargs)
    if asked.settled is not None:
        return asked.settled
    cast = _cast(space, host, name, args) if not kwargs else args
    found = ufunc_of(host)
    if cast is not args and found is not None and found[1] == "":
        asked.name = found[0].__name__  # methods of torch._numpy's arrays hide errors
    try:
        return asked.recorded(cast, kwargs)
    except _OtherType:
        if found is not None:
            raise _refusal(name, _OTHER_TYPE) from None
    try:  # torch computes in its default type where NumPy computes in double precision
        return asked.recorded(
            [_widened(space, arg) for arg in args], {k: _widened(space, v) for k, v in kwargs.items()}
        )
    except _OtherType:
        raise _refusal(name, _OTHER_TYPE) from None


_OTHER_TYPE = "the data type of torch's result differs"


class _Asked:
    """One call of NumPy's, with what NumPy answers; `settled` is the result where nothing need be recorded for it."""

    def __init__(self, space: Space, host: Any, name: str, args: list[Value], kwargs: dict[str, Value]) -> None:
        self.space = space
        self.name = name
        self.given = args
        self.host = host
        #: what tells of floating-point errors (see float_flags)
        self.errors = QUIET
        call, arguments = self.lowered(args, kwargs)
        answer = self.known(host, call) if not call.operands else self.asked(host, call, arguments)
        if answer is None:
            raise _refusal(name, "what NumPy gives depends on the contents")
        if answer.error is not None:
            raise Raised(space.exception(answer.error))
        self.answer = answer
        self.settled: Value | None = None
        if answer.result is NotImplemented:
            self.settled = NOT_IMPLEMENTED
        elif not call.operands and not isinstance(answer.result, np.ndarray | tuple | list):
            self.settled = space.fresh(answer.result)

    def known(self, host: Any, call: Call) -> Answer:
        """What NumPy gives for operands that are known."""
        _mind_errors(self.space, self.name)
        warned: set[type] = set()
        answer = computed(host, call.args, call.kwargs, warned)
        left_to_run_time(self.space, warned, f"numpy.{self.name}")
        return answer

    def asked(self, host: Any, call: Call, arguments: _Arguments) -> Answer | None:
        """What NumPy gives for operands like those of the call."""
        classes = [arguments.classes.get(id(operand), int) for operand in call.operands]
        fakes = [operand.fake for operand in call.operands]  # type: ignore[attr-defined]
        warned: set[type] = set()
        answer = ask(host, call.args, call.kwargs, fakes, classes, warned)
        left_to_run_time(self.space, warned, f"numpy.{self.name}")
        if answer is not None and answer.error is None and answer.computes():
            float_errors = self.space.trace.extension(FloatErrors)
            self.errors, why = float_errors.plan(host, self.name, call, answer.result)
            if why is not None:
                raise _refusal(self.name, why)
        return answer

    def lowered(self, args: list[Value], kwargs: dict[str, Value]) -> tuple[Call, _Arguments]:
        """The call as the graph takes it."""
        arguments = _Arguments(self.space, self.name)
        call = Call(array_call, "call_function", array_call)
        lower_call(self.space, call, [arguments.of(a) for a in args], {k: arguments.of(a) for k, a in kwargs.items()})
        return call, arguments

    def recorded(self, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Record the call with these arguments, which stand for those that NumPy was asked with."""
        call, arguments = self.lowered(args, kwargs)
        call.args = (self.name, *call.args)
        call.key = None if call.key is None else (self.name, call.key)
        if self.errors == QUIET:
            return self._made(call, arguments, args)
        float_errors = self.space.trace.extension(FloatErrors)
        found = float_errors.before(self.host, self.errors, args, call, self.answer.result)
        if found is None:
            raise _refusal(self.name, "its operands do not tell whether it meets floating-point errors")
        result = self._made(call, arguments, args)
        float_errors.after(self.host, self.errors, call, found, result)
        return result

    def _made(self, call: Call, arguments: _Arguments, args: list[Value]) -> Value:
        try:
            result = self.space.trace.recorder.record(call)
        except Failure as failure:
            raise _refusal(self.name, str(failure.error).partition("\n")[0][:200]) from None
        same = all(a is b for a, b in zip(args, self.given, strict=True))
        parts = _Result(self.space, self.name, self.answer, call.operands, arguments.arrays, same)
        return parts.of(result.force(), self.answer.result)


def _cast(space: Space, host: Any, name: str, args: list[Value]) -> list[Value]:
    """The operands of a universal function in the data types that NumPy computes in."""
    found = ufunc_of(host)
    if found is None:
        return args
    values = [_as_array(space, arg.force()) for arg in args]
    kinds = [_kind(space, value) for value in values]
    types = None if None in kinds else types_of(*found, kinds)
    if types is None:
        return args
    why = refused(*found, types, [not isinstance(value, ArrayValue) for value in values])
    if why is not None or (found[1] == "inplace" and kinds[0] != types[0]):
        raise _refusal(name, why or _OTHER_TYPE)
    return [_of_type(space, value, dtype) for value, dtype in zip(values, types, strict=True)]


def _as_array(space: Space, value: Value) -> Value:
    if isinstance(value, (MODELS[list], MODELS[tuple])):
        return call(space, np.asarray, "asarray", [value], {}).force()
    host = space.known(value)
    return _embedded(space, host) if type(host) in _SCALARS else value


def _kind(space: Space, value: Value) -> Any:
    """The data type of an operand, Python's type of a number; None for anything else."""
    if isinstance(value, ArrayValue):
        return numpy_dtype(value.tensor.dtype)
    if value.cls is bool:
        return np.dtype(bool)
    return value.cls if value.cls in (int, float, complex) else None


def _of_type(space: Space, value: Value, dtype: Any) -> Value:
    if not isinstance(value, ArrayValue):
        # torch computes with a number of Python's in single precision, and rounds the result only.
        if dtype == np.float16 and type(value) is Constant:
            return _embedded(space, np.float16(value.host))
        return value
    if numpy_dtype(value.tensor.dtype) == dtype:
        return value
    return astype(space, value, Constant(dtype.name))


class _OtherType(Exception):
    """torch's result is not of NumPy's data type."""


def _widened(space: Space, value: Value) -> Value:
    """A float of Python's in double precision."""
    value = value.force()
    if type(value) is Constant and value.cls is float:
        return _embedded(space, np.float64(value.host))
    return value


def astype(space: Space, array: ArrayValue, dtype: Value) -> Value:
    """`array.astype(dtype)`."""
    cls: Any = array.cls
    return call(space, cls.astype, "ndarray.astype", [array, dtype], {})


def _embedded(space: Space, host: Any) -> ArrayValue:
    """A known scalar as a tensor of the graph."""
    options: dict[str, Value] = {"dtype": Constant(host.dtype.name)}
    array: Any = call(space, np.asarray, "asarray", [Constant(host.item())], options)
    return ArrayValue(array.tensor, type(host))


def _refusal(name: str, why: str) -> Unsupported:
    return Unsupported(errors.UnsupportedTensorOperation(f"numpy.{name}", why))


class _Arguments:
    """The arguments of one call, as the graph takes them."""

    def __init__(self, space: Space, name: str) -> None:
        self.space = space
        self.name = name
        #: id of a tensor among the arguments → the array that it stands for, and its class
        self.arrays: dict[int, ArrayValue] = {}
        self.classes: dict[int, type] = {}

    def of(self, value: Value) -> Value:
        """One argument."""
        value = value.force()
        if isinstance(value, ArrayValue):
            if self.classes.setdefault(id(value.tensor), value.cls) is not value.cls:
                raise _refusal(self.name, "an array and a scalar are one tensor")
            self.arrays.setdefault(id(value.tensor), value)
            return value.tensor
        if isinstance(value, TensorValue):
            raise _refusal(self.name, "a tensor is among the arrays")
        if isinstance(value, (MODELS[list], MODELS[tuple])):
            items = [self.of(item) for item in self.space.unpack(value)]
            return self.space.new_list(items) if issubclass(value.cls, list) else self.space.new_tuple(items)
        host = self.space.known(value)
        if type(host) in _SCALARS:
            return self.of(_embedded(self.space, host))
        if host in (bool, int, float, complex) or (isinstance(host, type) and host in _SCALARS):
            return Constant(np.dtype(host).name)
        if isinstance(host, np.dtype) and host.isnative:
            return Constant(host.name)
        return value


class _Result:
    """Makes arrays of the tensors in a result, where they are what NumPy gives."""

    def __init__(
        self,
        space: Space,
        name: str,
        answer: Answer,
        operands: list[Any],
        arrays: dict[int, ArrayValue],
        same: bool,
    ) -> None:
        self.space = space
        #: whether the operands are those that NumPy was asked with
        self.same = same
        self.name = name
        self.answer = answer
        self.operands = operands
        self.arrays = arrays

    def of(self, value: Value, real: Any) -> Value:
        """The traced result, or part of it, for that of NumPy on stand-ins."""
        if isinstance(real, np.ndarray | np.generic):
            if not isinstance(value, TensorValue):
                raise self.differs("kind")
            return self.array(value, real)
        if type(real) is tuple or type(real) is list:
            items = self.space.unpack(value) if isinstance(value, (MODELS[list], MODELS[tuple])) else None
            if items is None or len(items) != len(real):
                raise self.differs("kind")
            parts = [self.of(item.force(), part) for item, part in zip(items, real, strict=True)]
            return self.space.new_list(parts) if type(real) is list else self.space.new_tuple(parts)
        if isinstance(value, SymValue) and value.cls is type(real):
            return value
        if type(value) is not Constant or value.cls is not type(real) or value.host != real:
            raise self.differs("kind")
        return value

    def array(self, tensor: TensorValue, real: Any) -> ArrayValue:
        """One array, or scalar."""
        given = self.answer.given(real)
        if given is not None and not (self.same or given == 0):
            raise self.differs("memory")
        if given is not None:
            return self.arrays[id(self.operands[given])]
        if numpy_dtype(tensor.dtype) != real.dtype:
            raise _OtherType
        if not same_sizes(tensor.shape, real.shape):
            raise self.differs("shape")
        shared = {self.operands[i].root for i in self.answer.shares(real)} if type(real) is np.ndarray else set()
        if shared and not (self.same and tensor.root in shared):
            raise self.differs("memory")
        if (not shared and tensor.root is not tensor) or not self.lies_like(tensor, real):
            if shared or not real.flags.c_contiguous:
                raise self.differs("layout in memory")
            options: dict[str, Value] = {"memory_format": Constant(torch.contiguous_format)}
            tensor = record(self.space, Call(_Base.clone, "call_method", "clone"), [tensor], options)  # type: ignore[assignment]
        return ArrayValue(tensor, type(real))

    @staticmethod
    def lies_like(tensor: TensorValue, real: Any) -> bool:
        """Whether the elements of the traced tensor lie in memory like those of an array."""
        strides = tensor.meta.stride if tensor.meta is not None else tuple(tensor.fake.stride())
        return same_sizes(strides, strides_of(real), real.shape)

    def differs(self, what: str) -> Unsupported:
        """torch's result is not NumPy's."""
        return _refusal(self.name, f"the {what} of torch's result differs")


# -- numbers ----------------------------------------------------------------------------------------------------------

_NUMBERS: dict[str, type] = {"item": object, "__int__": int, "__index__": int, "__float__": float}


def _number(space: Space, array: ArrayValue, name: str) -> Value:
    """`array.item()` and its like, of an array without dimensions."""
    kind = _NUMBERS[name]
    if len(array.tensor.shape) or (name == "__index__" and array.tensor.dtype.is_floating_point):
        raise _refusal(f"ndarray.{name}", "it has dimensions, or is no integer")
    found = scalar(space, array.tensor, kind)
    if found is None:
        raise Unsupported(errors.DataDependentValue(f"numpy.ndarray.{name}"))
    return found


def _len(space: Space, array: ArrayValue) -> Value:
    if not len(array.tensor.shape):
        raise space.error(TypeError, "len() of unsized object")
    return space.getitem(attributes.shape(space, array.tensor), Constant(0))


def _truth(space: Space, array: ArrayValue) -> Value:
    raise Unsupported(errors.DataDependentBranch())


def _method(space: Space, host: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A method of arrays or scalars (see protocol.CALL_HOOKS)."""
    owner = owner_of(host)
    if owner is None or not issubclass(owner, np.ndarray | np.generic) or not args:
        return None
    self, name = args[0].force(), host.__name__
    if isinstance(self, ArrayValue) and len(args) == 1 and not kwargs:
        if name in _NUMBERS:
            return _number(space, self, name)
        if name == "__len__":
            return _len(space, self)
        if name == "__iter__" and len(self.tensor.shape):
            return space.iter(space.new_tuple(self.unpack(space)))
        if name == "__bool__":
            return _truth(space, self)
    known = name_of(host)
    if known is None or not any(isinstance(arg.force(), ArrayValue) for arg in args):
        return None
    return call(space, host, known, args, kwargs)


# -- functions --------------------------------------------------------------------------------------------------------


def _called(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A universal function, or one that arrays can override, is called."""
    return _function(space, args[0].force().identity(space), args[1:], kwargs)


def _function(space: Space, host: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    name = name_of(host)
    if name is None:
        return None
    return call(space, host, name, args, kwargs)


def _builtin_function(space: Space, host: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A function written in C (see protocol.CALL_HOOKS)."""
    if type(host) is not types.BuiltinFunctionType or not array_calls.is_function(host):
        return None
    return _function(space, host, args, kwargs)


def _handler(host: Any) -> Handler:
    return lambda space, args, kwargs: _function(space, host, args, kwargs)


def _intercept(host: Any) -> Handler | None:
    """Python functions of NumPy's (see protocol.INTERCEPTS)."""
    return _handler(host) if array_calls.is_function(host) else None


def _constructor(cls: Any) -> Handler:
    """`numpy.float32(value)`."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        value = args[0].force() if len(args) == 1 and not kwargs else None
        if not isinstance(value, ArrayValue) or len(value.tensor.shape):
            return None
        return astype(space, value, space.existing(cls))

    return handler


# -- between tensors and arrays ---------------------------------------------------------------------------------------


def _numpy(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`Tensor.numpy`."""
    tensor = args[0].force()
    options = [*args[1:], *kwargs.values()]
    forced = bool(options) and space.known(options[0].force()) is True
    bits = tensor.meta.bits if isinstance(tensor, TensorValue) and tensor.meta is not None else (False, False)
    plain = isinstance(tensor, TensorValue) and tensor.cls in (torch.Tensor, torch.nn.Parameter) and not any(bits[:2])
    if not plain or len(options) > 1 or tensor.device.type != "cpu" or _has_no_dtype(tensor.dtype):  # type: ignore[attr-defined]
        raise Unsupported(errors.DataDependentValue("Tensor.numpy"))
    assert isinstance(tensor, TensorValue)
    if tensor.requires_grad and not forced:
        try:
            torch.empty(0, requires_grad=True).numpy()
        except RuntimeError as e:
            raise Raised(space.exception(e)) from None
    return ArrayValue(_detached(space, tensor) if tensor.requires_grad else tensor)


def _has_no_dtype(dtype: torch.dtype) -> bool:
    try:
        numpy_dtype(dtype)
    except TypeError:
        return True
    return False


def _detached(space: Space, tensor: Value) -> TensorValue:
    return record(space, Call(_Base.detach, "call_method", "detach"), [tensor], {})  # type: ignore[return-value]


def _to_tensor(host: Any, copies: bool, otherwise: Handler | None) -> Handler:
    """`torch.from_numpy` and its like."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        array = args[0].force() if args else None
        if not isinstance(array, ArrayValue):
            return None if otherwise is None else otherwise(space, args, kwargs)
        if len(args) != 1 or not kwargs.keys() <= {"dtype", "device"} or function_modes():
            raise Unsupported(errors.UnsupportedTensorOperation(f"torch.{host.__name__}", "of an array, with options"))
        if array.cls is not np.ndarray and host is torch.from_numpy:
            raise space.error(TypeError, f"expected np.ndarray (got {array.cls.__qualname__})")
        tensor = _detached(space, array.tensor)
        if copies:
            options: dict[str, Value] = {"memory_format": Constant(torch.contiguous_format)}
            tensor = record(space, Call(_Base.clone, "call_method", "clone"), [tensor], options)  # type: ignore[assignment]
        given = {name: arg for name, arg in kwargs.items() if space.known(arg.force()) is not None}
        return record(space, Call(_Base.to, "call_method", "to"), [tensor], given) if given else tensor

    return handler


def install() -> None:
    """Register the models."""
    MODELS[np.ndarray] = ArrayValue
    IMMUTABLE.update(_SCALARS, {np.dtype}, {type(np.dtype(cls)) for cls in _SCALARS})
    for cls in _SCALARS:
        REALISERS[cls] = _scalar
        AMBIENT[cls] = _mind_errors
        register(cls, _constructor(cls))
    for kind in (np.ufunc, type(np.sum)):
        register(kind.__call__, _called)
    CALL_HOOKS[:0] = [_method, _builtin_function]
    INTERCEPTS.append(_intercept)
    register(_Base.numpy, _numpy)
    register(torch.from_numpy, _to_tensor(torch.from_numpy, False, None))
    for host, copies in ((torch.as_tensor, False), (torch.tensor, True)):
        register(host, _to_tensor(host, copies, function_handler(host)))


def _mind_errors(space: Space, name: str = "scalar") -> None:
    """Known operands are computed with for real: see protocol.AMBIENT."""
    why = refuses_for_real(space)
    if why is not None:
        raise _refusal(name, why)


def _scalar(space: Space, host: Any, source: Source) -> Value:
    """An existing scalar: a tensor that is read at every call."""
    return Constant(host, source) if type(source) is ConstSource else ArrayValue.from_host(space, host, source)
