"""C-level attributes of tensors: metadata as constants, tensors as nodes, the rest read or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch.autograd.node_hooks import node_of
from stator.pytorch.fake.metadata import is_symbol
from stator.pytorch.graph.effects import has_own_version
from stator.pytorch.objects.reassigned import assign_data, set_requires_grad
from stator.pytorch.tensors.latent import is_known_leaf
from stator.pytorch.tensors.recording import record_function, record_method
from stator.space.facts import attribute
from stator.space.protocol import FALSE, NONE, TRUE
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.tensors.tensor import TensorValue
    from stator.space.space import Space

__all__ = ["assign", "read"]

#: attributes that are views of the tensor: recorded as reads
_VIEWS = frozenset({"T", "H", "mT", "mH", "real", "imag"})
#: attributes that follow from metadata and can be read off a fake tensor
_METADATA = frozenset(
    {
        *("dtype", "device", "layout", "ndim", "nbytes", "itemsize", "requires_grad", "is_leaf", "is_cuda", "is_cpu"),
        *("is_meta", "is_nested", "is_sparse", "is_sparse_csr", "is_quantized", "is_mkldnn", "is_xla", "is_xpu"),
        *("is_ipu", "is_mps", "is_maia", "is_mtia", "is_vulkan", "volatile"),
    }
)


#: attributes in which hooks show
_HOOKED = frozenset({"_backward_hooks", "_post_accumulate_grad_hooks", "retains_grad", "grad", "_grad"})


def read(space: Space, tensor: TensorValue, name: str) -> Value | None:
    """`tensor.name`, or None to read the attribute of the existing tensor."""
    if name in tensor.fields:
        return tensor.fields[name]
    if name == "shape":
        return shape(space, tensor)
    if name in _METADATA:
        return metadata(space, tensor, name)
    if name in _VIEWS:
        return viewed(space, tensor, name)
    if name == "data":
        return data(space, tensor)
    if name in ("grad", "_grad"):
        return gradient(space, tensor)
    if name == "retains_grad" and tensor.operation is not None:
        return truth(tensor in tensor.recorder.tracked.engine.retaining)
    if name == "grad_fn":
        return node(space, tensor)
    if tensor.root in tensor.recorder.tracked.hooked and name in _HOOKED:
        return refuse(tensor, name)
    if name in ("_backward_hooks", "_post_accumulate_grad_hooks") and tensor.source is None:
        return NONE
    if name == "_version":
        return version(space, tensor)
    if name == "output_nr" and tensor.source is None:
        tensor.recorder.fakes.replay()  # written to, it is made by another node
        return Constant(tensor.fake.output_nr)
    if name in ("_base", "_cdata", "output_nr", "_grad_fn", "_python_dispatch") or tensor.source is None:
        return refuse(tensor, name)
    return None


def node(space: Space, tensor: TensorValue) -> Value:
    """`tensor.grad_fn`."""
    if is_known_leaf(tensor):
        return NONE
    return node_of(space, tensor) or refuse(tensor, "grad_fn")


def version(space: Space, tensor: TensorValue) -> Value:
    """`tensor._version`: how often it had been written before the trace, and how often the trace has written it."""
    effects, tracked, root = tensor.recorder.effects, tensor.recorder.tracked, tensor.root
    if tensor in tracked.rebound or root in tracked.rebound or (root.host is not None and root.source is None):
        return refuse(tensor, "_version")
    if tensor.root.host is not None and tensor.root.host.is_inference():
        return refuse(tensor, "_version")
    own = has_own_version(tensor)
    if own or effects.rewritten:
        tracked.in_order = True  # a backend counts other writes, and makes views of `x` for those of `x.data`
    if own:
        return refuse(tensor, "_version")  # the trace keeps no such counts
    count = sum(counts.get(root, 0) for counts in effects.writes.values())
    if root.host is None:
        return Constant(count)
    before: Any = attribute(space, root, "_version")
    return space.binary("+", before, Constant(count)) if count else before


def refuse(tensor: TensorValue, name: str) -> Value:
    raise Unsupported(errors.UnsupportedAttribute(tensor.cls.__name__, name))


def shape(space: Space, tensor: TensorValue) -> Value:
    """`tensor.shape`."""
    meta = tensor.meta
    if meta is None or meta.symbolic:
        return record_method(space, "size", tensor)
    made: Any = space.new_tuple([Constant(n) for n in meta.shape])
    made.cls = torch.Size
    return made


def metadata(space: Space, tensor: TensorValue, name: str) -> Value:
    """An attribute that follows from the metadata."""
    meta = tensor.meta
    if name == "is_leaf":
        return truth(is_known_leaf(tensor))
    if meta is not None and name in ("dtype", "device", "requires_grad"):
        return space.fresh(getattr(meta, name))
    if meta is not None and name == "ndim":
        return Constant(len(meta.shape))
    found = getattr(tensor.recorder.fakes.example(tensor), name)
    if is_symbol(found):
        return refuse(tensor, name)
    return space.fresh(found)


def viewed(space: Space, tensor: TensorValue, name: str) -> Value:
    """An attribute that is another view of the data."""
    return record_function(space, getattr, tensor, name)


def data(space: Space, tensor: TensorValue) -> Value:
    """`tensor.data`: the same data outside autograd."""
    return record_function(space, getattr, tensor, "data")


def gradient(space: Space, tensor: TensorValue) -> Value:
    """`tensor.grad`: what it was before the trace, unless that has changed it."""
    if "grad" in tensor.fields:
        return tensor.fields["grad"]
    if tensor in tensor.recorder.tracked.engine.retaining:
        return NONE
    if tensor.source is not None:
        return attribute(space, tensor, "grad")
    return NONE if is_known_leaf(tensor) else refuse(tensor, "grad")


def assign(space: Space, tensor: TensorValue, name: str, value: Value | None) -> bool:
    """`tensor.name = value`, or its deletion; False where that has no model."""
    if name == "grad" and (tensor.source is not None or is_known_leaf(tensor)):
        return _assign_grad(space, tensor, value)
    if name == "data" and value is not None:
        return assign_data(space, tensor, value.force())
    if name == "requires_grad" and value is not None:
        return set_requires_grad(space, tensor, space.known(value.force()))
    return False


def _assign_grad(space: Space, tensor: TensorValue, value: Value | None) -> bool:
    value = NONE if value is None else value.force()
    if value is not NONE and not _fits(space, tensor, value):
        return False
    if tensor.source is not None:
        space.mark_mutated(tensor)
    tensor.fields["grad"] = value
    return True


def _fits(space: Space, tensor: TensorValue, value: Any) -> bool:
    """Whether `tensor.grad = value` is certain to be accepted."""
    if value.constant:
        return value.host is None
    ours, theirs = tensor.meta, getattr(value, "meta", None)
    if ours is None or theirs is None:
        return False
    return bool(ours.shape == theirs.shape and ours.dtype is theirs.dtype and ours.device == theirs.device)


def truth(value: bool) -> Value:
    """The traced bool."""
    return TRUE if value else FALSE
