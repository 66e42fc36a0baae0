"""Symbolic contexts: how torch's ShapeEnv is told which sizes of an input, and of what is in it, are to be symbols."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch

from stator.guards.source import GetAttrSource
from stator.pytorch import internals
from stator.pytorch.fake import origins
from stator.pytorch.fake.metadata import is_symbol
from stator.pytorch.shapes.unbacked import symbols_of
from stator.pytorch.tensors.classes import inner_tensors, is_traceable, is_wrapper
from stator.pytorch.traced import Dims

if TYPE_CHECKING:
    import sympy  # type: ignore[import-untyped]
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.guards.source import Source
    from stator.pytorch.types import Fake, Origin, SymbolicContext

__all__ = [
    "Form",
    "as_found",
    "context_of",
    "context_of_float",
    "context_with",
    "form_of",
    "opened",
    "origin_of",
    "parts_of",
    "shown",
    "static_context",
]


_STATIC = Dims({})


class Form(NamedTuple):
    """What a symbolic context depends on: the numbers of dimensions of a tensor, of its base, and of those inside."""

    ndim: int
    base: Form | None = None
    #: the tensors in a wrapper; None for another tensor
    inner: dict[str, Form] | None = None
    #: whether its sizes are of the tensors in it
    ragged: bool = False


def form_of(tensor: torch.Tensor) -> Form:
    """The form of an existing tensor."""
    base = form_of(internals.base(tensor)) if internals.is_view(tensor) else None
    if not is_traceable(type(tensor)):
        return Form(tensor.dim(), base)
    inner = {name: form_of(part) for name, part in inner_tensors(tensor).items()}
    return Form(tensor.dim(), base, inner, tensor.is_nested)


def context_of(form: Form, origin: Origin, dims: Dims = _STATIC) -> SymbolicContext:
    """The symbolic context of a tensor."""
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatefulSymbolicContext, SubclassSymbolicContext

    base = form.base and context_of(form.base, origins.AttrSource(origin, "_base"), dims.base or _STATIC)
    given = {
        "dynamic_sizes": [dims.sizes.get(i, DimDynamic.STATIC) for i in range(form.ndim)],
        "dynamic_strides": [
            DimDynamic.DYNAMIC if i in dims.strides else DimDynamic.INFER_STRIDE for i in range(form.ndim)
        ],
        "tensor_source": origin,
        "view_base_context": base,
    }
    if form.inner is None:
        return StatefulSymbolicContext(**given)
    inner = {
        name: context_of(part, origins.AttrSource(origin, name), dims.inner.get(name, _STATIC))
        for name, part in form.inner.items()
    }
    return SubclassSymbolicContext(**given, inner_contexts=inner, track_outer_size_stride=not form.ragged)


def as_found(fake: Fake, mode: internals.FakeTensorMode) -> Fake:
    """A plain tensor of these sizes, strides and offset; the program may change those of the tensor itself."""
    with torch.no_grad():
        if not is_wrapper(type(fake)):
            return fake.detach()
        with mode:
            made = torch.empty((), dtype=fake.dtype, device=fake.device)
            return made.set_(made.untyped_storage(), fake.storage_offset(), fake.shape, fake.stride())


def parts_of(
    context: SymbolicContext, tensor: torch.Tensor, source: Source
) -> Iterator[tuple[SymbolicContext, torch.Tensor, Source]]:
    """A symbolic context with its tensor and where this comes from, and the same for all that is in a wrapper."""
    yield context, tensor, source
    for name, inner in getattr(context, "inner_contexts", {}).items():
        yield from parts_of(inner, getattr(tensor, name), GetAttrSource(source, name))


def context_of_float(origin: Origin) -> SymbolicContext:
    """The symbolic context of the tensor that a float, of this origin, is as an input."""
    return context_of(Form(0), origins.FloatTensorSource(origin))


def context_with(fake: Fake, origin: Origin, env: ShapeEnv) -> SymbolicContext:
    """The symbolic context of a tensor whose sizes are those of a fake one, with the symbols that are in them."""
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    sizes = {dim: size for dim, size in enumerate(fake.shape) if is_symbol(size)}
    context = context_of(Form(fake.dim()), origin, Dims(dict.fromkeys(sizes, DimDynamic.DYNAMIC)))
    known = context.shape_env_to_source_to_symbol_cache[id(env)] = {}
    for dim, size in sizes.items():
        place = origins.TensorPropertySource(origin, origins.TensorProperty.SIZE, dim)
        known[place.name] = size.node.expr
    return context


def opened(fake: Fake, context: SymbolicContext, dim: int) -> frozenset[sympy.Symbol]:
    """The symbols that are there because a dimension of a fake tensor, or its stride, is dynamic."""
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    found = symbols_of(fake.shape[dim])
    return found | symbols_of(fake.stride(dim)) if context.dynamic_strides[dim] is DimDynamic.DYNAMIC else found


def origin_of(name: str) -> Origin:
    """Where the input of this name comes from."""
    return origins.LocalSource(local_name=name)


def static_context(form: Form, name: str) -> SymbolicContext:
    """The symbolic context of the input of this name, all of whose sizes are numbers."""
    return context_of(form, origin_of(name))


def shown(context: SymbolicContext) -> SymbolicContext:
    """The symbolic context as a backend is given it: its origins are of torch's own classes, its symbols the same."""
    parts = {"tensor_source": context.tensor_source.as_torchs()}
    if context.view_base_context is not None:
        parts["view_base_context"] = shown(context.view_base_context)
    if hasattr(context, "inner_contexts"):
        parts["inner_contexts"] = {name: shown(inner) for name, inner in context.inner_contexts.items()}
    return dataclasses.replace(context, **parts)
