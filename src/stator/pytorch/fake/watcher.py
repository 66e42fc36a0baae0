"""What the operators beneath one call do besides computing their results, as a dispatch mode sees it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.fake.kernels import examine
from stator.pytorch.fake.metadata import is_symbol
from stator.pytorch.fake.modes import Mode
from stator.pytorch.fake.operator_facts import CHECKS, COMMUNICATING, IDEMPOTENT, SILENT_MUTATORS, name_of
from stator.pytorch.fake.storage import overlaps, storage_of
from stator.pytorch.nesting import tensors_in
from stator.pytorch.tensors.classes import is_wrapper

if TYPE_CHECKING:
    from stator.pytorch.types import Args, Kwargs, Nested, Operator

__all__ = ["OpObservation", "Watcher"]


class OpObservation:
    """One run of an operation: its result, the storages it wrote to, whether it drew random numbers."""

    __slots__ = (
        *("effectful", "fallible", "overlap", "random", "refused", "resized", "result", "rigid", "warned", "written"),
    )

    def __init__(self) -> None:
        self.result: Nested = None
        self.written: set[int] = set()
        self.random = False
        self.effectful = False
        #: whether it wrote to memory that lies, in part, beneath something else
        self.overlap = False
        #: the categories of what it warned about
        self.warned: set[type] = set()
        #: whether torch cannot functionalise it: it was given an empty list to write to, which torch takes for tensors
        #: that are not its own, or has no kernel that runs without data
        self.rigid = False
        #: whether a size was a symbol where it resized a tensor, which torch functionalises for numbers only
        self.resized = False
        #: whether it may fail when it runs for real, on operands of the same metadata
        self.fallible = False
        #: the error that it is sure to fail with then
        self.refused: Exception | None = None


class Watcher(Mode):
    """Notes writes and random draws of the operators that run beneath one call."""

    supports_higher_order_operators = True
    #: whether the operators run on tensors that hold something
    real = False

    def __init__(self, observed: OpObservation, on_wrapper: Callable[..., None] | None = None) -> None:
        super().__init__()
        self.observed = observed
        #: is told of each call of the `__torch_dispatch__` of a wrapper's class before it is made
        self.on_wrapper = on_wrapper

    def __torch_dispatch__(
        self, func: Operator, types: Sequence[type], args: Args = (), kwargs: Kwargs | None = None
    ) -> Nested:
        wrapper = next(filter(is_wrapper, types), None)
        if wrapper is not None:
            if self.on_wrapper is not None:
                self.on_wrapper(wrapper, func, types, args, kwargs or {})
            return NotImplemented  # what it does to the tensors inside is seen when it does it
        kwargs = kwargs or {}
        if isinstance(func, internals.HigherOrderOperator):  # says nothing of itself; what it calls does
            self.observed.fallible = True
            return func(*args, **kwargs)
        schema = internals.schema(func)
        self.observed.rigid |= not _is_functional(func)
        if schema.is_mutable:
            self._note_writes(func, args, kwargs)
            if name_of(func) == "resize":
                self.observed.resized |= any(map(is_symbol, (*args[0].shape, *args[1])))
        elif name_of(func) in SILENT_MUTATORS:
            for arg in args[3:5]:
                self._note(arg)
        acts = not schema.returns or internals.has_effects(func)
        if (acts and name_of(func) not in CHECKS) or "_assert" in schema.name or func.namespace in COMMUNICATING:
            self.observed.effectful = True
        result = func(*args, **kwargs)
        # In inference mode a dropout that drops nothing is met whole: it gives what it was given.
        draws = schema.is_mutable or result is not next(iter(args), None)
        self.observed.random |= draws and torch.Tag.nondeterministic_seeded in func.tags
        fallible, refused = examine(func, args, kwargs, result, ran=self.real)
        self.observed.fallible |= fallible
        self.observed.refused = self.observed.refused or refused
        return result

    def _note_writes(self, func: Operator, args: Args, kwargs: Kwargs) -> None:
        for i, argument in enumerate(internals.schema(func).arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                if argument.name in kwargs:
                    self._note(kwargs[argument.name])
                elif i < len(args):
                    self._note(args[i])
                    self._look_beneath(func, args[i], (*args, *kwargs.values()))

    def _look_beneath(self, func: Operator, written: object, operands: Sequence[object]) -> None:
        if isinstance(written, torch.Tensor) and name_of(func) not in IDEMPOTENT:
            self.observed.overlap |= overlaps(written, operands)

    def _note(self, arg: Nested) -> None:
        self.observed.rigid |= isinstance(arg, list | tuple) and not arg
        self.observed.written |= {storage_of(tensor) for tensor in tensors_in(arg)}


@functools.cache
def _is_functional(operator: Operator) -> bool:
    """Whether AOTAutograd can give the operator's results without its writes.

    One of ATen's that writes must have a kernel for tensors without data, as fake tensors need none of their own. One
    of another library must not say that it gives what it was given, or a view of it.
    """
    name, schema = operator.name(), internals.schema(operator)
    if name.startswith("aten::"):
        return not schema.is_mutable or any(internals.has_kernel(name, key) for key in _WITHOUT_DATA)
    if name.startswith("prim") or all(each.alias_info is None for each in schema.returns):
        return True
    return internals.has_kernel(name, "Functionalize")


#: where kernels are registered that run on tensors without data
_WITHOUT_DATA = (
    *("Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd"),
    "CompositeExplicitAutogradNonFunctional",
)
