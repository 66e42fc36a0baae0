"""Calls of NumPy's functions on arrays: NumPy is asked what it gives, and torch's function of the name recorded."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stator.pytorch.fake.failure import Failure
from stator.pytorch.nesting import is_sequence, items_of, rebuilt
from stator.pytorch.numpy.array_calls import (
    Answer,
    Kind,
    array_call,
    ask,
    assume_sizes,
    computed,
    numpy_dtype,
    refusal,
    refuse_drawn,
    told_as_numpys,
)
from stator.pytorch.numpy.array_value import SCALARS, ArrayValue, stored
from stator.pytorch.numpy.error_modes import plan, refuses_for_real
from stator.pytorch.numpy.error_terms import ErrorTerms
from stator.pytorch.numpy.float_flags import QUIET
from stator.pytorch.numpy.loops import refused, types_of, ufunc_of
from stator.pytorch.numpy.results import OtherType, Result
from stator.pytorch.tensors.lowering import Call, lower_call
from stator.space.protocol import NOT_IMPLEMENTED
from stator.space.value import Constant, Raised, Value
from stator.space.warning_trap import left_to_run_time

if TYPE_CHECKING:
    from stator.pytorch.types import Args, Host
    from stator.space.space import Space

__all__ = ["astype", "call", "mind_errors"]

_OTHER_TYPE = "the data type of torch's result differs"


def call(space: Space, host: Host, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Record a call of NumPy's function `host`, which `array_call` knows by `name`."""
    if name == "ndarray.__setitem__" and len(args) == 3:
        args = [*args[:2], stored(space, name, args[0].force(), args[2].force())]
    refuse_drawn(name, args)
    args = [_array_of_floats(space, arg) for arg in args]
    asked = _Asked(space, host, name, args, kwargs)
    if asked.settled is not None:
        return asked.settled
    cast = _cast(space, host, name, args) if not kwargs else args
    found = ufunc_of(host)
    if cast is not args and found is not None and found[1] == "":
        asked.name = found[0].__name__  # methods of torch._numpy's arrays hide errors
    try:
        return asked.recorded(cast, kwargs)
    except OtherType:
        if found is not None:
            raise refusal(name, _OTHER_TYPE) from None
    try:  # torch computes in its default type where NumPy computes in double precision
        return asked.recorded(
            [_widened(space, arg) for arg in args], {k: _widened(space, v) for k, v in kwargs.items()}
        )
    except OtherType:
        raise refusal(name, _OTHER_TYPE) from None


class _Asked:
    """One call of NumPy's, with what NumPy answers; `settled` is the result where nothing need be recorded for it."""

    def __init__(self, space: Space, host: Host, name: str, args: list[Value], kwargs: dict[str, Value]) -> None:
        self.space = space
        self.name = name
        self.given = args
        self.host = host
        #: what tells of floating-point errors (see float_flags)
        self.errors = QUIET
        self.settled: Value | None = None
        answer, known = None if kwargs else self.of_numbers(host, args), True
        if answer is None:
            call, arguments = self.lowered(args, kwargs)
            known = not call.operands
            answer = self.known(host, call.args, call.kwargs) if known else self.asked(host, call, arguments)
        if answer is None:
            raise refusal(name, "what NumPy gives depends on the contents")
        if answer.error is not None:
            raise Raised(space.exception(answer.error))
        self.answer = answer
        if answer.result is NotImplemented:
            self.settled = NOT_IMPLEMENTED
        elif known and not isinstance(answer.result, np.ndarray | tuple | list):
            self.settled = space.fresh(answer.result)

    def of_numbers(self, host: Host, args: list[Value]) -> Answer | None:
        """What NumPy gives for known scalars of its own, and numbers, where that is a scalar too: it runs for real."""
        values = [arg.force() for arg in args]
        hosts = [value.host for value in values if value.constant]
        if len(hosts) < len(values) or not any(type(number) in SCALARS for number in hosts):
            return None
        answer = self.known(host, tuple(hosts), {})
        return None if isinstance(answer.result, np.ndarray | tuple | list) else answer

    def known(self, host: Host, args: Args, kwargs: dict[str, Host]) -> Answer:
        """What NumPy gives for operands that are known."""
        mind_errors(self.space, self.name)
        warned: set[type] = set()
        answer = computed(host, tuple(args), kwargs, warned)
        left_to_run_time(self.space, warned, f"numpy.{self.name}")
        return answer

    def asked(self, host: Host, call: Call, arguments: _Arguments) -> Answer | None:
        """What NumPy gives for operands like those of the call."""
        kinds = [arguments.kind(operand) for operand in call.operands]
        fakes = [operand.fake for operand in call.operands]  # type: ignore[attr-defined]
        warned: set[type] = set()
        answer = ask(host, call.args, call.kwargs, fakes, kinds, warned)
        left_to_run_time(self.space, warned, f"numpy.{self.name}")
        if answer is not None and (answer.error is not None or answer.result is NotImplemented):
            assume_sizes(self.name, fakes)
        elif answer is not None and answer.computes():
            self.errors, why = plan(self.space, host, self.name, call, answer.result)
            if why is not None:
                raise refusal(self.name, why)
        return answer

    def lowered(self, args: list[Value], kwargs: dict[str, Value]) -> tuple[Call, _Arguments]:
        """The call as the graph takes it."""
        arguments = _Arguments(self.space, self.name)
        call = Call(told_as_numpys(self.name), "call_function", array_call)
        given, named = [arguments.of(a) for a in args], {k: arguments.of(a) for k, a in kwargs.items()}
        lower_call(self.space, call, given, named)
        return call, arguments

    def recorded(self, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Record the call with these arguments, which stand for those that NumPy was asked with."""
        call, arguments = self.lowered(args, kwargs)
        call.args = (self.name, *call.args)
        if call.key is not None:
            args_key, kwargs_key, metas = call.key
            call.key = (self.name, args_key), kwargs_key, metas
        call.only_raises = True
        if self.errors == QUIET:
            return self._made(call, arguments, args)
        terms = self.space.trace.extension(ErrorTerms)
        found = terms.before(self.host, self.errors, args, call, self.answer.result)
        if found is None:
            raise refusal(self.name, "its operands do not tell whether it meets floating-point errors")
        result = self._made(call, arguments, args)
        terms.after(self.host, self.errors, call, found, result)
        return result

    def _made(self, call: Call, arguments: _Arguments, args: list[Value]) -> Value:
        try:
            result = self.space.trace.recorder.record(call)
        except Failure as failure:
            raise refusal(self.name, str(failure.error).partition("\n")[0][:200]) from None
        for array in arguments.arrays.values():
            array.refuse_written(self.name)
        same = all(a is b for a, b in zip(args, self.given, strict=True))
        view = (self.host, self.given) if same and not call.kwargs else None
        parts = Result(self.space, self.name, self.answer, call.operands, arguments.arrays, same, view)
        return parts.of(result.force(), self.answer.result)


def _cast(space: Space, host: Host, name: str, args: list[Value]) -> list[Value]:
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
        raise refusal(name, why or _OTHER_TYPE)
    return [_of_type(space, value, dtype) for value, dtype in zip(values, types, strict=True)]


def _array_of_floats(space: Space, value: Value) -> Value:
    """The array that NumPy makes of a list of floats some of which are symbols: torch would make constants of these."""
    value = value.force()
    sequence = space.new_list(space.unpack(value)) if value.cls is deque else value
    items = items_of(space, sequence)
    if not items or not all(item.force().cls is float for item in items):
        return value
    if not any(item.force().symbolic for item in items):
        return value
    made: Any = space.call_builtin(torch.tensor, [sequence], {"dtype": space.fresh(torch.float64)})
    return ArrayValue(made.force(), np.ndarray)


def _as_array(space: Space, value: Value) -> Value:
    if is_sequence(value):
        return call(space, np.asarray, "asarray", [value], {}).force()
    host = space.known(value)
    return embedded(space, host) if type(host) in SCALARS else value


def _kind(space: Space, value: Value) -> Any:
    """The data type of an operand, Python's type of a number; None for anything else."""
    if isinstance(value, ArrayValue):
        return numpy_dtype(value.tensor.dtype)
    if value.cls is bool:
        return np.dtype(bool)
    return value.cls if value.cls in (int, float, complex) else None


def _of_type(space: Space, value: Value, dtype: torch.dtype) -> Value:
    if not isinstance(value, ArrayValue):
        # torch computes with a number of Python's in single precision, and rounds the result only.
        if dtype == np.float16 and value.constant:
            return embedded(space, np.float16(value.host))
        return value
    if numpy_dtype(value.tensor.dtype) == dtype:
        return value
    return astype(space, value, Constant(dtype.name))


def _widened(space: Space, value: Value) -> Value:
    """A float of Python's in double precision."""
    value = value.force()
    if value.constant and value.cls is float:
        return embedded(space, np.float64(value.host))
    return value


def astype(space: Space, array: ArrayValue, dtype: Value) -> Value:
    """`array.astype(dtype)`."""
    cls: Host = array.cls
    return call(space, cls.astype, "ndarray.astype", [array, dtype], {})


def embedded(space: Space, host: Host) -> ArrayValue:
    """A known scalar as a tensor of the graph."""
    options: dict[str, Value] = {"dtype": Constant(host.dtype.name)}
    array: Any = call(space, np.asarray, "asarray", [Constant(host.item())], options)
    return ArrayValue(array.tensor, type(host))


class _Arguments:
    """The arguments of one call, as the graph takes them."""

    def __init__(self, space: Space, name: str) -> None:
        self.space = space
        self.name = name
        #: id of a tensor among the arguments → the array that it stands for, and its class
        self.arrays: dict[int, ArrayValue] = {}
        self.classes: dict[int, type] = {}

    def kind(self, operand: Value) -> Kind:
        """What NumPy is shown of an operand."""
        array = self.arrays.get(id(operand))
        return (int, None) if array is None else (array.cls, array.strides)

    def of(self, value: Value) -> Value:
        """One argument."""
        value = value.force()
        if isinstance(value, ArrayValue):
            if self.classes.setdefault(id(value.tensor), value.cls) is not value.cls:
                raise refusal(self.name, "an array and a scalar are one tensor")
            self.arrays.setdefault(id(value.tensor), value)
            return value.tensor
        if value.isa(torch.Tensor):
            raise refusal(self.name, "a tensor is among the arrays")
        if value.cls is deque:  # NumPy takes its items, as a list's
            value = self.space.new_list(self.space.unpack(value))
        items = items_of(self.space, value)
        if items is not None:
            return rebuilt(self.space, value, [self.of(item) for item in items])
        host = self.space.known(value)
        if type(host) in SCALARS:
            return self.of(embedded(self.space, host))
        if host in (bool, int, float, complex) or (isinstance(host, type) and host in SCALARS):
            return Constant(np.dtype(host).name)
        if isinstance(host, np.dtype) and host.isnative:
            return Constant(host.name)
        return value


def mind_errors(space: Space, name: str = "scalar") -> None:
    """Known operands are computed with for real: see protocol.AMBIENT."""
    why = refuses_for_real(space)
    if why is not None:
        raise refusal(name, why)
