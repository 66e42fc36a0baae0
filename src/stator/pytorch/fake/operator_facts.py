"""What operators of ATen do that nothing but their names tells; and what their schemas and tags do tell.

A name stands for all overloads, in place or not, unless it is that of an overload. An operator that is in no table has
the harmless property: it may fail, it writes what its schema says, and all of its effects are kept.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Operator

__all__ = ["is_total", "looks_at_numbers", "makes_like", "makes_view", "name_of", "of_library"]


def name_of(operator: Operator) -> str:
    """The name of an operator without that of its overload, and without the `_` of one that works in place.

    That of another library's begins with its namespace.
    """
    name = internals.schema(operator).name.removeprefix("aten::")
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def of_library(function: Function) -> bool:
    """Whether a function is an operator of another library than torch's own: what its kernels do is not known."""
    if isinstance(function, internals.OpOverloadPacket):
        return internals.qualified_name(function).partition("::")[0] not in _OWN
    return isinstance(function, internals.OpOverload) and function.namespace not in _OWN


@functools.cache
def makes_view(operator: Operator) -> bool:
    """Whether all that an operator does is to make another tensor in the memory of an operand."""
    schema = internals.schema(operator)
    if not schema.returns or schema.is_mutable or name_of(operator) == "as_strided":
        return False  # as_strided looks at where in which memory its operand lies
    return all(made.alias_info is not None and not made.alias_info.is_write for made in schema.returns)


def looks_at_numbers(operator: Operator) -> bool:
    """Whether what an operator makes depends on what its operands hold, or on chance."""
    looks = (torch.Tag.nondeterministic_seeded, torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
    return any(tag in operator.tags for tag in looks)


@functools.cache
def is_total(operator: Operator) -> bool:
    """Whether an operator has a result for any contents of operands of types and sizes that it takes."""
    if any(tag in operator.tags for tag in (torch.Tag.pointwise, torch.Tag.reduction)) or _is_factory(operator):
        return True
    full = operator.name().partition("::")[2]
    return name_of(operator).removesuffix("_backward") in TOTAL or full in TOTAL_OVERLOADS


def _is_factory(operator: Operator) -> bool:
    """Whether it makes a tensor of numbers, or like the one tensor it is given: these alone may be asked to pin it."""
    arguments = internals.schema(operator).arguments
    tensors = [argument for argument in arguments if "Tensor" in str(argument.type)]
    return any(argument.name == "pin_memory" for argument in arguments) and len(tensors) < 2


@functools.cache
def makes_like(name: str) -> bool:
    """Whether the function or method of this name makes a tensor like its first operand, and looks at no element."""
    packet = getattr(torch.ops.aten, name, None)
    if not isinstance(packet, internals.OpOverloadPacket):
        return False
    schemas = [internals.schema(getattr(packet, overload)) for overload in packet.overloads()]
    names = [{argument.name for argument in schema.arguments} for schema in schemas]
    # Those that copy what they are given may be asked not to wait for it.
    return any({"self", "pin_memory"} <= found and "non_blocking" not in found for found in names)


#: they have a result for any contents, which is known from what their kernels compute
TOTAL = frozenset(
    (
        # copied, filled and moved about
        *("_reshape_copy", "_unsafe_view", "cat", "channel_shuffle", "clone", "constant_pad_nd", "copy", "lift_fresh"),
        *("diag_embed", "exponential", "fill", "flip", "lift_fresh_copy", "native_dropout", "pixel_shuffle"),
        *("pixel_unshuffle", "random", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "repeat"),
        *("replication_pad1d", "replication_pad2d", "replication_pad3d", "roll", "slice_scatter"),
        *("stack", "tril", "triu", "uniform", "zero", "linspace", "logspace"),
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
#: the same of overloads whose parameters are numbers, which fakes check
TOTAL_OVERLOADS = frozenset(("bernoulli_.float", "bernoulli.p", "normal_", "normal.float_float", "normal_functional"))
#: not total, but they check what they use: zeros, which may be indices, are safe for them
CHECKING = frozenset(
    (
        *("binary_cross_entropy", "cholesky", "embedding", "gather", "index", "index_add"),
        *("index_copy", "index_fill", "index_put", "index_reduce", "index_select", "linalg_cholesky_ex"),
        *("linalg_inv_ex", "linalg_qr", "linalg_solve_triangular", "masked_scatter", "multi_margin_loss_forward"),
        *("nll_loss2d_forward", "nll_loss_forward", "put", "scatter", "scatter_add", "scatter_reduce", "take"),
        *("triangular_solve",),
    )
)
#: they read metadata, or a number of any type
NEVER_ASKED = frozenset(("_local_scalar_dense", "is_same_size"))
#: division of integers by zero is an error
DIVISIONS = frozenset(("div", "divide", "floor_divide", "fmod", "remainder"))
#: fakes do not check the first operand of these, which is expanded to the product of the others: the dimensions of the
#: second and of the third that it has
PRODUCTS: dict[str, tuple[int, ...]] = {"addmm": (0, 1), "addmv": (0,)}
#: fakes do not check that there is an element
OF_SOME = frozenset(("_fft_c2c", "_fft_c2r", "_fft_r2c", "max", "median", "min", "nanmedian"))
#: fakes do not check the weights and statistics of these
WITH_CHANNELS = frozenset(
    (
        *("_batch_norm_no_update", "_batch_norm_with_update", "_native_batch_norm_legit", "cudnn_batch_norm"),
        *("_native_batch_norm_legit_no_training", "native_batch_norm", "native_group_norm"),
    )
)
#: numbers of any type can be drawn so
DRAWING_ANY = frozenset(("bernoulli", "randint", "random", "randperm"))
#: they update running statistics, their fourth and fifth operands, though their schemas do not say so
SILENT_MUTATORS = frozenset(("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "batch_norm"))
#: they return nothing, and do nothing but raise
CHECKS = frozenset(("_linalg_check_errors",))
#: namespaces of torch's own operators
_OWN = frozenset(("aten", "prim", "prims"))
#: namespaces of operators that other processes take part in: each process must perform what the others do
COMMUNICATING = frozenset(
    (
        *("_c10d_functional", "_c10d_functional_autograd", "_dtensor", "c10d", "c10d_functional", "stator_c10d"),
        "symm_mem",
    )
)
#: they may write an element twice
IDEMPOTENT = frozenset(("fill", "zero"))
#: a tensor that the program has written down goes through them: what it holds may be known
LIFTS = frozenset(("lift_fresh", "lift_fresh_copy"))

# -- functions and methods of torch, by the names that programs call them by ------------------------------------------

#: they look at the second operand's metadata only
AS_OTHER = frozenset(("type_as", "view_as", "expand_as", "reshape_as", "sum_to_size", "to", "resize_as_"))
#: what the first operand held before is gone afterwards
OVERWRITES = frozenset(
    (
        *("zero_", "fill_", "copy_", "set_", "random_", "normal_", "uniform_", "bernoulli_", "exponential_"),
        *("geometric_", "cauchy_", "log_normal_", "constant_", "ones_", "zeros_", "eye_", "fill_diagonal_"),
    )
)
#: they check their operands' contents on real tensors only, before they run any operator
UNCHECKED = frozenset(("one_hot", "quantile", "nanquantile"))
#: they return nothing, and a backend leaves them where they are
KEPT = frozenset(("_assert_async", "_assert_scalar"))
#: a backend takes them apart: what they check of a number they read from a tensor is lost, that of a symbol asserted
BY_NUMBER = frozenset(("narrow",))
