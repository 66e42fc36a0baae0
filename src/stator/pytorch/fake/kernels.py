"""What operators may refuse when they run, beyond what fake tensors tell: the types of operands, and what they hold.

Fake tensors compute sizes and dtypes, and check little else: `mm` of float32 and float64 has a fake result, and so has
`x[i]` whatever `i` holds. Two questions are answered here, for each operator that runs beneath a call of the program:

- Does the kernel take operands of these types? The real operator is asked, once, with tensors of one element.
- May it fail nevertheless, because of what the operands hold? Not if it is among those that are known to look at no
  element, or to have a result for each. Any other might: an operator that nobody has looked at, or another library's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import torch

from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.fake.quiet import warnings_of_torch

if TYPE_CHECKING:
    from stator.pytorch.types import Args, Argument, Kwargs, Nested, Number, Operator

__all__ = ["examine"]

#: operators of ATen that have a result for any contents of operands of types and sizes they take. Those tagged as
#: pointwise, reductions and views are known by that.
TOTAL = frozenset(
    (
        # made from numbers
        *("arange", "empty", "empty_like", "empty_permuted", "empty_strided", "eye", "full", "full_like", "lift_fresh"),
        *("lift_fresh_copy", "linspace", "logspace", "new_empty", "new_empty_strided", "new_full", "new_ones"),
        *("new_zeros", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like"),
        *("randperm", "scalar_tensor", "tril_indices", "triu_indices", "zeros", "zeros_like"),
        # copied, filled and moved about
        *("_reshape_copy", "_to_copy", "_unsafe_view", "cat", "channel_shuffle", "clone", "constant_pad_nd", "copy"),
        *("diag_embed", "exponential", "fill", "flip", "native_dropout", "pixel_shuffle"),
        *("pixel_unshuffle", "random", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "repeat"),
        *("replication_pad1d", "replication_pad2d", "replication_pad3d", "roll", "slice_scatter"),
        *("stack", "tril", "triu", "uniform", "zero"),
        # sums and orders along dimensions
        *("_log_softmax", "_safe_softmax", "_softmax", "cummax", "cummin", "cumprod", "cumsum", "kthvalue"),
        *("logcumsumexp", "median", "nanmedian", "sort", "topk"),
        # products, normalisation, pooling, attention
        *("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_batch_norm_no_update", "_batch_norm_with_update"),
        *("_cdist_forward", "_euclidean_dist", "_fft_c2c", "_fft_c2r", "_fft_r2c", "_fused_rms_norm"),
        *("_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "_pdist_forward", "_prelu_kernel"),
        *("_scaled_dot_product_attention_math", "_scaled_dot_product_cudnn_attention"),
        *("_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention"),
        *("_scaled_dot_product_flash_attention_for_cpu", "addbmm", "addmm", "addmv", "addr", "avg_pool1d"),
        *("avg_pool2d", "avg_pool3d", "baddbmm", "bmm", "col2im", "convolution", "cudnn_batch_norm", "dot", "glu"),
        *("grid_sampler_2d", "grid_sampler_3d", "hardswish", "huber_loss", "im2col", "linear", "log_sigmoid_forward"),
        *("max_pool2d_with_indices", "max_pool3d_with_indices", "mm", "mse_loss", "mv", "native_batch_norm"),
        *("native_group_norm", "native_layer_norm", "smooth_l1_loss", "upsample_bicubic2d"),
        *("upsample_bilinear2d", "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d"),
        *("upsample_nearest3d", "upsample_trilinear3d", "vdot"),
        # told by metadata, or a number out of a tensor
        *("_local_scalar_dense", "complex", "is_same_size", "isin", "polar"),
    )
)
#: total where the parameters are numbers, which the fakes have checked
_OF_NUMBERS = frozenset(("bernoulli_.float", "bernoulli.p", "normal_", "normal.float_float", "normal_functional"))
#: division of integers by zero is an error
_DIVISIONS = frozenset(("div", "divide", "floor_divide", "fmod", "remainder"))
_TAGS = (torch.Tag.pointwise, torch.Tag.reduction)
#: not total, but they check what they use: zeros, which may be indices, are safe for them
_CHECKING = frozenset(
    (
        *("binary_cross_entropy", "cholesky", "embedding", "gather", "index", "index_add"),
        *("index_copy", "index_fill", "index_put", "index_reduce", "index_select", "linalg_cholesky_ex"),
        *("linalg_inv_ex", "linalg_qr", "linalg_solve_triangular", "masked_scatter", "multi_margin_loss_forward"),
        *("nll_loss2d_forward", "nll_loss_forward", "put", "scatter", "scatter_add", "scatter_reduce", "take"),
        *("triangular_solve",),
    )
)
#: they have no kernels for one type or another
_NEVER_ASKED = ("_local_scalar_dense", "is_same_size")
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
#: no number that is handed to a kernel asked makes it work longer than this
_MOST = 1024

#: from a tensor to the type of what stands for it
_Types: TypeAlias = Callable[[torch.Tensor], torch.dtype]

_lock = threading.Lock()
#: by operator and the types of its arguments: None for those that it takes, else the error
_known: dict[object, Exception | None] = {}
_FACTS: dict[Operator, tuple[bool, bool]] = {}


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
    views, total = _facts(func)
    if views:
        return False, None
    may = not total or _divides(func, args) or not _is_checked(func, args, result)
    if ran:
        return may, None
    answer = _answer(func, args, kwargs)
    return may or answer is not None, None if answer is _UNKNOWN else answer


def _facts(func: Operator) -> tuple[bool, bool]:
    """Whether the operator only makes a view, and whether it has a result for any contents."""
    found = _FACTS.get(func)
    if found is None:
        schema = internals.schema(func)
        name = schema.name.partition("::")[2]
        base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        base = base.removesuffix("_backward")
        full = func.name().partition("::")[2]
        views = bool(schema.returns) and not schema.is_mutable
        views = views and all(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
        total = base in TOTAL or full in _OF_NUMBERS or any(tag in func.tags for tag in _TAGS)
        found = _FACTS[func] = views and name != "as_strided", total
    return found


def _divides(func: Operator, args: Args) -> bool:
    name = internals.schema(func).name.partition("::")[2].rstrip("_")
    if name not in _DIVISIONS or len(args) < 2:
        return False
    divisor = args[1]
    if isinstance(divisor, torch.Tensor):
        return not any(isinstance(a, torch.Tensor) and a.dtype.is_floating_point for a in args[:2])
    return not isinstance(divisor, float) and (isinstance(divisor, _SYMBOLIC) or not divisor)


def _is_open(item: Nested) -> bool:
    """Whether there is a number in it that is read from a tensor when the graph runs."""
    if isinstance(item, _SYMBOLIC):
        return hint_of(item) is None
    if isinstance(item, torch.Tensor):
        return internals.has_symbolic_sizes(item) and any(_is_open(n) for n in item.shape)
    if isinstance(item, tuple | list):
        return any(_is_open(part) for part in item)
    return isinstance(item, dict) and any(_is_open(part) for part in item.values())


def _is_checked(func: Operator, args: Args, result: Nested) -> bool:
    """Whether the operator has no demands besides those that its fake checks."""
    name = internals.schema(func).name.partition("::")[2].rstrip("_")
    if torch.Tag.nondeterministic_seeded in func.tags:
        made = result if isinstance(result, torch.Tensor) else result[0]
        return made.dtype.is_floating_point or name in _DRAWING_ANY
    if name == "convolution":
        return bool(result.dtype.is_floating_point)
    if name in _PRODUCTS:
        return _expands(args[0], [shape_of.shape[i] for shape_of, i in zip(args[1:3], _PRODUCTS[name], strict=False)])
    if name in _OF_SOME:
        return all(type(n) is int and n for n in args[0].shape)
    if name in _WITH_CHANNELS:
        return _has_channels(args)
    return True


def _expands(tensor: torch.Tensor, shape: list[Number]) -> bool:
    """Whether a tensor can be expanded to the shape; False too if that depends on symbols."""
    if tensor.dim() > len(shape) or any(type(n) is not int for n in (*tensor.shape, *shape)):
        return False
    pairs = zip(reversed(tensor.shape), reversed(shape), strict=False)
    return all(have in (1, wanted) for have, wanted in pairs)


def _has_channels(args: Args) -> bool:
    """Whether weights and statistics have one number for each channel."""
    shape = args[0].shape
    others = [arg for arg in args[1:] if isinstance(arg, torch.Tensor)]
    if any(type(n) is not int for t in (args[0], *others) for n in t.shape):
        return False
    return len(shape) > 1 and 0 not in shape and all(tuple(t.shape) == (shape[1],) for t in others)


#: fakes do not check the first operand of these, which is expanded to the product of the others: the dimensions of the
#: second and of the third that it has
_PRODUCTS: dict[str, tuple[int, ...]] = {"addmm": (0, 1), "addmv": (0,)}
#: nor that there is an element
_OF_SOME = frozenset(("_fft_c2c", "_fft_c2r", "_fft_r2c", "max", "median", "min", "nanmedian"))
#: nor the weights and statistics of these
_WITH_CHANNELS = frozenset(
    (
        *("_batch_norm_no_update", "_batch_norm_with_update", "_native_batch_norm_legit", "cudnn_batch_norm"),
        *("_native_batch_norm_legit_no_training", "native_batch_norm", "native_group_norm"),
    )
)
#: numbers of any type can be drawn so
_DRAWING_ANY = frozenset(("bernoulli", "randint", "random", "randperm"))
_UNKNOWN = Exception("it is not known")


def _answer(func: Operator, args: Args, kwargs: Kwargs) -> Exception | None:
    """The error of the kernel about these types; None if it takes them."""
    total = _facts(func)[1]
    name = internals.schema(func).name.partition("::")[2]
    if not total and name.rstrip("_") not in _CHECKING:
        return _UNKNOWN
    if torch.Tag.nondeterministic_seeded in func.tags:
        return None if total else _UNKNOWN  # drawing would show
    if name.startswith(_NEVER_ASKED):
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


def _tensors(item: Nested) -> Iterator[torch.Tensor]:
    if isinstance(item, torch.Tensor):
        yield item
    elif isinstance(item, tuple | list):
        for part in item:
            yield from _tensors(part)
    elif isinstance(item, dict):
        for part in item.values():
            yield from _tensors(part)


def _ask(func: Operator, args: Args, kwargs: Kwargs, total: bool) -> Exception | None:
    tensors = list(_tensors((args, kwargs)))
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
            small = [
                _sizes(argument, _small(arg, filling, dtype))
                for argument, arg in zip(schema.arguments, args, strict=False)
            ]
            named = {name: _small(arg, filling, dtype) for name, arg in kwargs.items()}
            func(*small, **named)
    except Exception as error:
        return error.with_traceback(None)
    return None


def _sizes(argument: Argument, given: object) -> object:
    """Sizes are all one."""
    return [1] * len(given) if argument.name in ("size", "repeats") and isinstance(given, list) else given


def _small(item: Nested, filling: int, dtype: _Types) -> Nested:
    """The argument with small real tensors in place of fake ones, and with small numbers."""
    if isinstance(item, torch.Tensor):
        return torch.full((1,) * item.dim(), filling, dtype=dtype(item), device=item.device)
    if isinstance(item, tuple | list):
        return [_small(part, filling, dtype) for part in item]
    if isinstance(item, torch.SymInt | torch.SymFloat):
        return 1
    if isinstance(item, torch.SymBool):
        return True
    if type(item) in (int, float) and abs(item) > _MOST:
        return type(item)(2 if item > 0 else -2)
    return item
