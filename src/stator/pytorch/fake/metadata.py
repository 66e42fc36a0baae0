"""What the trace knows of an operand without its data: an interned description, cheap to compare and to hash."""

from __future__ import annotations

import contextlib
import weakref
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.tensors.classes import is_wrapper

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.pytorch.types import Descriptions, Number

__all__ = [
    "DIVISIONS",
    "NumberMeta",
    "TensorMeta",
    "bits_of",
    "expression_of",
    "hint_of",
    "is_describable",
    "is_ragged",
    "is_symbol",
    "meta_from",
    "meta_of",
    "number_meta",
    "number_of",
    "same_numbers",
    "symbolic_dims",
]

#: torch's functions of whole numbers that are written as `//`
DIVISIONS = ("FloorDiv", "CleanDiv")

_Base: Any = internals.TensorBase
_BITS = (torch.Tensor.is_conj, torch.Tensor.is_neg, torch.Tensor.is_inference)
_interned: weakref.WeakValueDictionary[tuple[object, ...], TensorMeta] = weakref.WeakValueDictionary()


class TensorMeta:
    """Metadata of a dense tensor. One object per description (and, if symbolic, per trace): compare with `is`."""

    __slots__ = (
        *("bits", "device", "dtype", "is_leaf", "is_view", "offset", "requires_grad", "shape", "stride"),
        *("__weakref__", "symbolic"),
    )

    shape: tuple[Number, ...]
    stride: tuple[Number, ...]
    offset: Number
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    is_leaf: bool
    is_view: bool
    #: conjugate, negative, inference
    bits: tuple[bool, ...]
    #: whether some size is only known as a symbol
    symbolic: bool

    @property
    def is_simple(self) -> bool:
        """Whether a tensor of this description is new memory, and nothing of autograd's."""
        plain = type(self.offset) is int and not self.offset and not any(self.bits)
        return plain and (self.is_leaf or not self.requires_grad)

    def parts(self, *, views: bool = True) -> tuple[Any, ...]:
        """Everything that makes up the description; without `views`, except for being a view."""
        return tuple(getattr(self, name) for name in _ORDER if views or name != "is_view")

    def is_like(self, other: object) -> bool:
        """Whether the other description is the same, but for being a view."""
        if not isinstance(other, TensorMeta):
            return False
        return other is self or _plain_parts(self.parts(views=False)) == _plain_parts(other.parts(views=False))

    def make(self) -> torch.Tensor:
        """A new tensor of this description (except for being a view), of the current fake mode."""
        with torch.inference_mode(self.bits[2]), torch.set_grad_enabled(self.requires_grad):
            return self._grafted(self._memory())

    def _memory(self) -> torch.Tensor:
        with torch.no_grad():
            if type(self.offset) is int and not self.offset:
                tensor = torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device=self.device)
            else:
                tensor = self._at_offset()
            if self.bits[0]:
                tensor = internals.conj(tensor).detach()
            if self.bits[1]:
                tensor = internals.neg_view(tensor).detach()
        return tensor

    def _at_offset(self) -> torch.Tensor:
        ends = [torch.sym_max(n - 1, 0) * s for n, s in zip(self.shape, self.stride, strict=True)]
        span = sum(ends, self.offset + 1)
        # A tensor like this exists: that it fits its memory is no assumption to guard.
        with span.node.shape_env.suppress_guards() if is_symbol(span) else contextlib.nullcontext():
            memory = torch.empty(span, dtype=self.dtype, device=self.device)
            return memory.as_strided(self.shape, self.stride, self.offset).detach()

    def _grafted(self, tensor: torch.Tensor) -> torch.Tensor:
        if not self.requires_grad:
            return tensor
        if self.is_leaf:
            return tensor.requires_grad_()
        leaf = torch.empty((), dtype=self.dtype, device=self.device, requires_grad=True)
        return _Graft.apply(tensor, leaf)

    def __repr__(self) -> str:
        grad = ", requires_grad" if self.requires_grad else ""
        return f"<{self.dtype} {self.shape} {self.device}{grad}>"


_ORDER = ("shape", "stride", "offset", "dtype", "device", "requires_grad", "is_leaf", "is_view", "bits")


class NumberMeta:
    """A number that is only known as a symbol. One object per expression and trace."""

    __slots__ = ("number",)
    symbolic = True

    def __init__(self, number: Number) -> None:
        self.number = number

    def make(self) -> Number:
        """The number itself."""
        return self.number


def meta_of(tensor: torch.Tensor, symbolic: Descriptions | None = None) -> TensorMeta | None:
    """The description of a real or fake tensor, or None for a kind that has no short one.

    Sparse, nested and quantised tensors, wrappers, those inside a functorch transform and dual tensors have none; those
    with symbolic sizes have one in the table `symbolic` of their trace, if it is given.
    """
    if not is_describable(tensor):
        return None
    try:
        leaf = tensor.is_leaf
    except RuntimeError:  # a view that autograd has lost track of says so only when it is asked
        return None
    size, stride, offset = tuple(_Base.size(tensor)), _Base.stride(tensor), _Base.storage_offset(tensor)
    table = None
    if internals.has_symbolic_sizes(tensor):
        at_start = type(offset) is int and not offset
        if symbolic is None or (not at_start and None in map(hint_of, (*size, *stride, offset))):
            return None  # nobody can tell yet whether memory made for it would do
        table = symbolic
    rest = tensor.dtype, tensor.device, tensor.requires_grad, leaf, internals.is_view(tensor), bits_of(tensor)
    return meta_from((size, stride, offset, *rest), table)


def meta_from(parts: tuple[Any, ...], symbolic: Descriptions | None) -> TensorMeta:
    """The description with these parts (see `TensorMeta.parts`), of which some are symbols if there is a table."""
    table: Any = _interned
    key = parts
    if symbolic is not None:
        table = symbolic
        key = _plain_parts(parts)
    found: TensorMeta | None = table.get(key)
    if found is None:
        found = TensorMeta()
        for name, part in zip(_ORDER, parts, strict=True):
            setattr(found, name, part)
        found.symbolic = symbolic is not None
        found = table.setdefault(key, found)
    return found


def number_meta(number: Number, symbolic: Descriptions) -> NumberMeta:
    """The description of a symbolic number in its trace's table."""
    key = (type(number), _plain(number))
    found: NumberMeta | None = symbolic.get(key)
    if found is None:
        found = symbolic[key] = NumberMeta(number)
    return found


def hint_of(number: Number) -> Number:
    """A number, or what a symbol stands for in this call; None for one that is known when the graph runs."""
    if not is_symbol(number):
        return number
    hint = getattr(number.node, "hint", None)
    return number.node.maybe_as_int() if hint is None and type(number) is torch.SymInt else hint


def is_symbol(number: object) -> bool:
    """Whether it is a symbolic number."""
    return isinstance(number, torch.SymInt | torch.SymFloat | torch.SymBool)


def is_ragged(number: object) -> bool:
    """Whether it is a symbol for the sizes of the rows of a jagged tensor, which no number is."""
    return isinstance(number, torch.SymInt) and isinstance(hint_of(number), torch.SymInt)


def symbolic_dims(tensor: torch.Tensor) -> tuple[list[int], list[int]]:
    """The dimensions whose sizes are symbols, and those whose strides are."""
    if not internals.has_symbolic_sizes(tensor):
        return [], []
    sizes, strides = ([i for i, n in enumerate(ns) if is_symbol(n)] for ns in (tensor.shape, tensor.stride()))
    return sizes, strides


def same_numbers(one: Number, other: Number) -> bool:
    """Whether two sizes or strides are equal in each call."""
    return bool(_plain(one) == _plain(other))


def expression_of(number: Number) -> Any:
    """The expression over symbols that a symbolic number is; None for a ragged size, which is just itself."""
    return getattr(number.node, "expr", None)


def number_of(env: ShapeEnv, expression: Any) -> Number:
    """The number that an expression is over symbols known in this call: `expression_of` the other way round."""
    made: Number = env.create_symintnode(expression, hint=int(expression.xreplace(env.backed_var_to_val)))
    return made


def _plain(number: Number) -> object:
    """What tells a size: the number, or the expression over symbols; a ragged one is written as no expression is."""
    if type(number) is int:
        return number
    expression = expression_of(number)
    return str(number) if expression is None else expression


def _plain_parts(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """What tells the parts of a description."""
    sizes, strides, offset, *rest = parts
    return tuple([_plain(n) for n in sizes]), tuple([_plain(n) for n in strides]), _plain(offset), *rest


def bits_of(tensor: torch.Tensor) -> tuple[bool, ...]:
    """Whether a tensor is a conjugate view, a negative one, and one made in inference mode."""
    return tuple([bit(tensor) for bit in _BITS])


def is_describable(tensor: torch.Tensor) -> bool:
    """Whether a tensor is dense, and belongs to no transform."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized or tensor.is_mkldnn:
        return False
    if is_wrapper(type(tensor)):
        return False
    return internals.functorch_level(tensor) < 0


class _Graft(torch.autograd.Function):
    """Makes a tensor part of an autograd graph without changing anything else about it."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, tensor: torch.Tensor, leaf: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(tensor)
        return tensor

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> tuple[None, None]:
        return None, None
