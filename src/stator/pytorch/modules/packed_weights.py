"""Operators that are given weights packed into objects of C++, as those of torch's quantised modules are.

    torch.ops.quantized.linear_dynamic(x, self._packed_params._packed_params)

A graph has no such objects, and no fake tensor comes out of such an operator. In the graph an operator of Stator's own
stands for it, which is given the tensors, and the name of the call that it is to make; its result is described by a
call on zeros. What is packed does not change: which object it is, is guarded.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

import torch
import torch.library

from stator.pytorch import internals
from stator.pytorch.tensors.lowering import Call, Lowering, fill
from stator.pytorch.tensors.recording import record
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Nested, Operator
    from stator.space.space import Space

__all__ = ["with_objects"]

#: the library whose objects are made once, and whose operators do nothing but compute
_LIBRARY = "quantized"
#: what is to be called, by the names that graphs have for it; it goes when an object that it is given does
_calls: dict[str, PackedCall] = {}


class PackedCall:
    """The call of an operator; its objects are kept by the program, which a guard sees to."""

    def __init__(self, operator: Operator, args: list[Nested], kwargs: dict[str, Nested]) -> None:
        self.operator = operator
        self.args = args
        self.kwargs = kwargs

    def run(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        given = [arg() if isinstance(arg, weakref.ref) else fill(arg, tensors) for arg in self.args]
        result: torch.Tensor = self.operator(*given, **fill(self.kwargs, tensors))
        return result

    def remember(self, name: str) -> None:
        """Be found by this name as long as the objects live."""
        if name not in _calls:
            _calls[name] = self
            for arg in self.args:
                if isinstance(arg, weakref.ref):
                    weakref.finalize(arg(), _calls.pop, name, None).atexit = False


def _run(tensors: list[torch.Tensor], name: str) -> torch.Tensor:
    return _calls[name].run(tensors)


def _fake(tensors: list[torch.Tensor], name: str) -> torch.Tensor:
    if any(map(internals.has_symbolic_sizes, tensors)):
        raise NotImplementedError(f"{name} on tensor with symbolic sizes")
    with internals.disable_current_modes():
        made = _run([torch.zeros(tensor.shape, dtype=tensor.dtype) for tensor in tensors], name)
    if made.is_quantized:
        raise NotImplementedError(f"FakeTensor: the result of {name} is quantised")
    return tensors[0].new_empty_strided(made.shape, made.stride(), dtype=made.dtype)


@functools.cache
def _library() -> Any:
    library = torch.library.Library("stator", "FRAGMENT")
    library.define("packed_call(Tensor[] tensors, str name) -> Tensor")
    library.impl("packed_call", _run, "CompositeExplicitAutograd")
    torch.library.register_fake("stator::packed_call", _fake, lib=library)
    return library


def with_objects(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The call of an operator with such objects among its arguments; None for any other."""
    values = [arg.force() for arg in args]
    objects = {place: value for place, value in enumerate(values) if value.cls is torch.ScriptObject}
    tensors = tensors_among(values)
    if not objects or not tensors or not _is_taken(operator, [*objects.values()]):
        return None
    wanted = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    if wanted or any(tensor.composed or tensor.device.type != "cpu" for tensor in tensors):
        return None  # autograd has no gradient of it, and says so only when it is asked for one
    lowering = Lowering(space, Call(operator, "call_function", operator))
    for value in objects.values():
        space.guard_identity(value)
    parts = [
        (weakref.ref(value.host), id(value.host)) if place in objects else lowering.value(value)  # type: ignore[attr-defined]
        for place, value in enumerate(values)
    ]
    named = {name: lowering.value(arg) for name, arg in kwargs.items()}
    name = str((str(operator), *[key for _, key in parts], *[(name, key) for name, (_, key) in named.items()]))
    call = PackedCall(operator, [part for part, _ in parts], {name: part for name, (part, _) in named.items()})
    call.remember(name)
    _library()
    target = torch.ops.stator.packed_call.default
    given = [space.new_list(lowering.call.operands), Constant(name)]
    return record(space, Call(target, "call_function", target), given, {})


def _is_taken(operator: Operator, objects: list[Any]) -> bool:
    name = operator.name() if isinstance(operator, internals.OpOverload) else internals.qualified_name(operator)
    made_once = f"__torch__.torch.classes.{_LIBRARY}."
    hosts = [value.host for value in objects]
    return name.startswith(f"{_LIBRARY}::") and all(
        host is not None and internals.script_type(host).qualified_name().startswith(made_once) for host in hosts
    )
