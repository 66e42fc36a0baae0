"""torch's fake tensor mode, without the tracer that torch's own code loads beside it.

`FakeTensorMode` reads two settings of `torch._dynamo`: the five functions that do it are used apart (`apart.py`).
"""

from __future__ import annotations

import contextlib
import functools
import logging
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.fake import views
from stator.pytorch.fake.apart import apart
from stator.pytorch.fake.direct import empty, run_directly
from stator.pytorch.fake.failure import made_fake
from stator.pytorch.fake.modes import Mode
from stator.pytorch.fake.results import corrected
from stator.pytorch.state.disabling import spare_references
from stator.pytorch.tensors.classes import is_wrapper

if TYPE_CHECKING:
    import torch.fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.pytorch.types import Args, Fake, FakeOperand, Function, Kwargs, Nested, OperandMeta, Operator

__all__ = ["FakeMode", "let_go"]


class _Unnamed(internals.Source):
    """Where a tensor with no symbols in it comes from: nobody asks."""

    @property
    def _name_template(self) -> str:
        return "a tensor"

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


_UNNAMED = _Unnamed()


class _Traceback:
    """`traceback`, for which there is no stack: a mode would remember it, and with it the frames' tensors."""

    @staticmethod
    def extract_stack() -> list[object]:
        return []


class _Log:
    """torch's log, which is not told of operations that fail: the error is the program's, and raised there."""

    def __getattr__(self, name: str) -> object:
        return getattr(logging.getLogger(internals.fake_tensor.__name__), "debug" if name == "exception" else name)


_OTHERS: dict[str, object] = {
    "log": _Log(),
    # In a transform torch fails to show a tensor, and leaves the thread's dispatch state behind.
    "render_call": lambda function, args, kwargs: str(function),
    "traceback": _Traceback,
}


def _apart(function: Function) -> Function:
    return apart(function, **_OTHERS)


class _Meta(internals.MetaConverter):
    _make = _apart(internals.MetaConverter.meta_tensor)

    def meta_tensor(self, t: Any, shape_env: Any, callback: Any, source: Any, symbolic_context: Any) -> Fake:
        made: Fake = self._make(t, shape_env, callback, source, symbolic_context)
        if shape_env is not None and source is not None and source.is_ephemeral():
            # What making a view is given besides its base: the program may find it elsewhere, with other symbols.
            self.tensor_memo.pop(t.id, None)
        return made


class _Converter(internals.FakeTensorConverter):
    from_real_tensor = _apart(internals.FakeTensorConverter.from_real_tensor)


_prepare = functools.cache(spare_references)
#: what C++ makes of an operator before it asks a mode, but for inference mode, where torch's rule in Python takes a
#: number out of the fake tensor
_TAKEN_APART: dict[Operator, Operator] = {torch.ops.aten.item.default: internals.number_of}


class FakeMode(Mode, internals.FakeTensorMode):
    """A fake tensor mode that remembers no results, and not where it was made."""

    #: their rules are found by the very class of the mode
    supports_higher_order_operators = True

    _initialise = _apart(internals.FakeTensorMode.__init__)
    _dispatch_impl = _apart(internals.FakeTensorMode._dispatch_impl)
    validate_and_convert_non_fake_tensors = _apart(internals.FakeTensorMode.validate_and_convert_non_fake_tensors)

    def __init__(self, shape_env: ShapeEnv | None = None) -> None:
        _prepare()
        self._initialise(shape_env=shape_env)
        self.cache_enabled = False
        self.fake_tensor_converter.__class__ = _Converter
        self.fake_tensor_converter.meta_converter.__class__ = _Meta

    def __torch_dispatch__(
        self, func: Operator, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> Nested:
        if isinstance(func, internals.HigherOrderOperator) and func not in internals.operators_with_fakes:
            rule = func.python_key_table.get(internals.FakeTensorMode)
            if rule is None:
                raise NotImplementedError(f"there is no rule for fake tensors in {func.name()}")
            return rule(self, *args, **(kwargs or {}))
        func = _TAKEN_APART.get(func, func)
        made = views.view(self, func, args)
        if made is None:
            made = run_directly(self, func, args, kwargs or {})
        if made is NotImplemented:
            made = self.dispatch(func, types, args, kwargs or {})
        return corrected(func, made, args)

    def of(self, tensor: torch.Tensor, **symbolic: object) -> Fake:
        """The fake tensor of an existing one, with its sizes as they are, unless `symbolic` says otherwise."""
        # Of a tensor that comes from somewhere torch takes no number as known.
        how: Any = symbolic or {"static_shapes": True, "source": _UNNAMED, "trace": False}
        # By it a wrapper's class knows that sizes may be symbols: a DTensor's would look up what it has found for them.
        traced = (
            internals.EnablePythonDispatcher() if symbolic and is_wrapper(type(tensor)) else contextlib.nullcontext()
        )
        with traced:
            return made_fake(lambda: self.from_tensor(_showable(tensor), **how))

    def like(self, meta: OperandMeta) -> FakeOperand:
        """A new operand of a description (except for being a view); call it while no mode is active."""
        if meta.symbolic or torch.is_inference_mode_enabled() or not meta.is_simple:
            with self:
                return meta.make()
        made = empty(self, meta.shape, meta.dtype, meta.device, meta.stride)
        return made.requires_grad_() if meta.requires_grad else made

    def admit(self, shape_env: ShapeEnv | None) -> None:
        """From now on there may be symbols."""
        self.shape_env = shape_env
        self.static_shapes = False


def _showable(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that torch can make a fake of, for one that is a view of a nested tensor of C++: no trace has that one.

    Attention on jagged tensors gives such views. What is written to it shows nowhere else in the trace.
    """
    base = internals.base(tensor)
    if base is None or not base.is_nested or type(base) is not torch.Tensor or type(tensor) is torch.Tensor:
        return tensor
    cls: Any = type(tensor)
    with internals.DisableTorchFunctionSubclass():
        names, context = tensor.__tensor_flatten__()
        inner = {name: getattr(tensor, name).detach() for name in names}
        alone: torch.Tensor = cls.__tensor_unflatten__(inner, context, tensor.size(), tensor.stride())
        alone.requires_grad_(tensor.requires_grad)
        return alone if tensor.is_leaf else alone.clone()


def let_go(mode: internals.FakeTensorMode) -> None:
    """The mode meets no more existing tensors: it watches none any more, as torch does not swap tensors that are."""
    mode.fake_tensor_converter.meta_converter.describer.lookup_tensor.clear()
