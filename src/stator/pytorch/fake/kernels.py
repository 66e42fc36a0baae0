"""What operators may refuse when they run, beyond what fake tensors tell: the types of operands, and what they hold.

Fake tensors compute sizes and dtypes, and check little else: `mm` of float32 and float64 has a fake result, and so has
`x[i]` whatever `i` holds. Two questions are answered here, for each operator that runs beneath a call of the program:

- Does the kernel take operands of these types? The real operator is asked, once, with tensors of one element.
- May it fail nevertheless, because of what the operands hold? Not if it is among those that are known to look at no
  element, or to have a result for each. Any other might: an operator that nobody has looked at, or another library's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import torch

from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of, is_symbol
from stator.pytorch.fake.operator_facts import (
    CHECKING,
    DIVISIONS,
    DRAWING_ANY,
    NEVER_ASKED,
    OF_SOME,
    PRODUCTS,
    WITH_CHANNELS,
    is_total,
    makes_view,
    name_of,
)
from stator.pytorch.fake.quiet import warnings_of_torch
from stator.pytorch.nesting import leaves_of, map_leaves, tensors_in

if TYPE_CHECKING:
    from stator.pytorch.types import Args, Argument, Kwargs, Nested, Number, Operator

__all__ = ["examine"]

#: no number that is handed to a kernel asked makes it work longer than this
_MOST = 1024

#: from a tensor to the type of what stands for it
_Types: TypeAlias = Callable[[torch.Tensor], torch.dtype]

_lock = threading.Lock()
#: by operator and the types of its arguments: None for those that it takes, else the error
_known: dict[object, Exception | None] = {}


def examine(func: Operator, args: Args, kwargs: Kwargs, result: Nested, *, ran: bool) -> tuple[bool, Exception | None]:
    """Whether an operator may fail when it runs on operands like these; and its error, if it is sure to.

    Args:
        result: what the operator gave for fake operands.
        ran: or for real ones, the types of which it takes.
    """
    if not isinstance(func, internals.OpOverload) or func.namespace != "aten":
        return getattr(func, "namespace", "") != "prim", None  # those of prim read metadata
    if _is_open((args, kwargs)):
        return True, None
    if makes_view(func):
        return False, None
    may = not is_total(func) or _divides(func, args) or not _is_checked(func, args, result)
    if ran:
        return may, None
    answer = _answer(func, args, kwargs)
    return may or answer is not None, None if answer is _UNKNOWN else answer


def _divides(func: Operator, args: Args) -> bool:
    if name_of(func) not in DIVISIONS or len(args) < 2:
        return False
    divisor = args[1]
    if isinstance(divisor, torch.Tensor):
        return not any(tensor.dtype.is_floating_point for tensor in tensors_in(args[:2]))
    return is_symbol(divisor) or (not divisor and not isinstance(divisor, float))


def _is_open(nested: Nested) -> bool:
    """Whether there is a number in it that is read from a tensor when the graph runs."""
    numbers = [*leaves_of(nested)]
    for tensor in tensors_in(nested):
        numbers += tensor.shape if internals.has_symbolic_sizes(tensor) else ()
    return any(is_symbol(number) and hint_of(number) is None for number in numbers)


def _is_checked(func: Operator, args: Args, result: Nested) -> bool:
    """Whether the operator has no demands besides those that its fake checks."""
    name = name_of(func)
    if torch.Tag.nondeterministic_seeded in func.tags:
        made = result if isinstance(result, torch.Tensor) else result[0]
        return made.dtype.is_floating_point or name in DRAWING_ANY
    if name == "convolution":
        return bool(result.dtype.is_floating_point)
    if name in PRODUCTS:
        return _expands(args[0], [shape_of.shape[i] for shape_of, i in zip(args[1:3], PRODUCTS[name], strict=False)])
    if name in OF_SOME:
        return not any(is_symbol(n) or n == 0 for n in args[0].shape)
    if name in WITH_CHANNELS:
        return _has_channels(args)
    return True


def _expands(tensor: torch.Tensor, shape: list[Number]) -> bool:
    """Whether a tensor can be expanded to the shape; False too if that depends on symbols."""
    if tensor.dim() > len(shape) or any(map(is_symbol, (*tensor.shape, *shape))):
        return False
    pairs = zip(reversed(tensor.shape), reversed(shape), strict=False)
    return all(have in (1, wanted) for have, wanted in pairs)


def _has_channels(args: Args) -> bool:
    """Whether weights and statistics have one number for each channel."""
    shape = args[0].shape
    others = list(tensors_in(args[1:]))
    if any(is_symbol(n) for t in (args[0], *others) for n in t.shape):
        return False
    return len(shape) > 1 and 0 not in shape and all(tuple(t.shape) == (shape[1],) for t in others)


_UNKNOWN = Exception("it is not known")


def _answer(func: Operator, args: Args, kwargs: Kwargs) -> Exception | None:
    """The error of the kernel about these types; None if it takes them."""
    total, name = is_total(func), name_of(func)
    if not total and name not in CHECKING:
        return _UNKNOWN
    if torch.Tag.nondeterministic_seeded in func.tags:
        return None if total else _UNKNOWN  # drawing would show
    if name in NEVER_ASKED:
        return None
    key = (func, _key(args), _key(kwargs))
    if key in _known:
        return _known[key]
    answer = _ask(func, args, kwargs, total)
    if answer is not _UNKNOWN:
        with _lock:
            _known[key] = answer
    return answer


def _key(item: Nested) -> object:
    """What tells the types of arguments."""
    kind = type(item)
    if isinstance(item, torch.Tensor):
        return item.dtype, item.device.type, item.dim(), item.layout
    if kind is tuple or kind is list:
        if len(item) > 3 and all(type(n) is int for n in item):
            return int
        return tuple([_key(part) for part in item])
    if kind is dict:
        return tuple([(name, _key(part)) for name, part in item.items()])
    if kind is str or kind is bool or isinstance(item, torch.dtype | torch.layout | torch.device | torch.memory_format):
        return item
    return kind


def _ask(func: Operator, args: Args, kwargs: Kwargs, total: bool) -> Exception | None:
    tensors = list(tensors_in((args, kwargs)))
    usual = total and all(t.dtype in (torch.float32, torch.float64) and t.dtype is tensors[0].dtype for t in tensors)
    if usual and tensors and torch.Tag.pointwise not in func.tags:
        return None  # kernels of these types come first
    if not all(_is_plain(t) for t in tensors):
        return _UNKNOWN
    if any(t.device.type == "meta" for t in tensors):
        return None  # what fakes tell is what they do
    with internals.disable_current_modes():
        fillings = (0, 1) if total else (0,)
        errors = [_failure(func, args, kwargs, filling, _own) for filling in fillings]
        if None in errors:
            return None
        error = errors[0]
        assert error is not None
        # It may be about sizes, which are not those of the program, or contents. Then other types meet it as well.
        if _is_about_types(error) or any(
            _failure(func, args, kwargs, filling, types) is None for types in _controls(tensors) for filling in fillings
        ):
            return error
    return _UNKNOWN


def _is_plain(tensor: torch.Tensor) -> bool:
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        return False
    if tensor.device.type == "cuda":
        return not torch.cuda.is_current_stream_capturing()
    return tensor.device.type in ("cpu", "meta")


def _is_about_types(error: Exception) -> bool:
    """Kernels that exist for some types only say so in these words."""
    return isinstance(error, NotImplementedError) and "not implemented for '" in str(error)


def _own(tensor: torch.Tensor) -> torch.dtype:
    return tensor.dtype


def _floats(tensor: torch.Tensor) -> torch.dtype:
    return torch.float32 if tensor.dtype.is_floating_point else tensor.dtype


def _plain(tensor: torch.Tensor) -> torch.dtype:
    return torch.float32 if tensor.dtype.is_floating_point else torch.int64


def _controls(tensors: list[torch.Tensor]) -> list[_Types]:
    """Other types for the operands, in the hope that the operator takes these."""

    def always(dtype: torch.dtype) -> _Types:
        return lambda tensor: dtype

    own = [t.dtype for t in tensors]
    found = [always(torch.float32)] if any(dtype is not torch.float32 for dtype in own) else []
    if len(set(own)) > 1:
        found += [*map(always, dict.fromkeys(own)), _floats]
    if any(not dtype.is_floating_point and dtype is not torch.int64 for dtype in own):
        found.append(_plain)
    return found


def _failure(func: Operator, args: Args, kwargs: Kwargs, filling: int, dtype: _Types) -> Exception | None:
    """The error of the operator on tensors of one element."""
    try:
        with warnings_of_torch(set()):
            schema = internals.schema(func)
            given, named = map_leaves(lambda leaf: _small(leaf, filling, dtype), (args, kwargs))
            func(*map(_sizes, schema.arguments, given), **named)
    except Exception as error:
        return error.with_traceback(None)
    return None


def _sizes(argument: Argument, given: object) -> object:
    """Sizes are all one."""
    return [1] * len(given) if argument.name in ("size", "repeats") and isinstance(given, list | tuple) else given


def _small(leaf: Nested, filling: int, dtype: _Types) -> Nested:
    """A small real tensor in place of a fake one, a small number in place of a symbol or a large one."""
    if isinstance(leaf, torch.Tensor):
        return torch.full((1,) * leaf.dim(), filling, dtype=dtype(leaf), device=leaf.device)
    if is_symbol(leaf):
        return True if isinstance(leaf, torch.SymBool) else 1
    if type(leaf) in (int, float) and abs(leaf) > _MOST:
        return type(leaf)(2 if leaf > 0 else -2)
    return leaf
