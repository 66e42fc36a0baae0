"""Reading tensors' metadata for guards, in Python for every kind of tensor and in C++ for the common ones."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import torch

from stator._core import configure_tensors, read_tensor
from stator.guards.tensor import KEY_WORDS, Dim, TensorFacts, TensorSpec, marked_dims
from stator.pytorch import internals

__all__ = ["COMPRESSED", "configure", "read_facts", "tensor_spec"]

#: layouts of sparse tensors whose indices are compressed along one dimension
COMPRESSED = frozenset({torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc})

_Base: Any = internals.TensorBase
_shape, _dtype, _device, _layout, _requires_grad = (
    vars(_Base)[name].__get__ for name in ("shape", "dtype", "device", "layout", "requires_grad")
)
_stride, _is_coalesced, _sparse_dim, _dense_dim, _qscheme = (
    getattr(_Base, name) for name in ("stride", "is_coalesced", "sparse_dim", "dense_dim", "qscheme")
)
_keys: Callable[[Any], Any] = internals.dispatch_keys
_level: Callable[[Any], int] = internals.functorch_level


def read_facts(tensor: torch.Tensor) -> TensorFacts:
    """All that a guard may ask of a tensor, without its ``__torch_function__``."""
    with internals.DisableTorchFunctionSubclass():
        layout = _layout(tensor)
        strides = tuple(_stride(tensor)) if layout is torch.strided and not tensor.is_nested else None
        return TensorFacts(
            _dtype(tensor),
            _device(tensor),
            layout,
            _requires_grad(tensor),
            _keys(tensor).raw_repr(),
            tuple(_shape(tensor)) if not tensor.is_nested else (),
            strides,
            _extra(tensor, layout),
        )


def _extra(tensor: torch.Tensor, layout: Any) -> tuple[object, ...]:
    extra: tuple[object, ...] = ()
    if layout is torch.sparse_coo:
        extra += ("sparse", _sparse_dim(tensor), _dense_dim(tensor), _is_coalesced(tensor))
    elif layout in COMPRESSED:
        extra += ("compressed", _dense_dim(tensor))
    if tensor.is_nested and layout is torch.strided:
        extra += ("nested", *map(tuple, internals.nested_sizes(tensor).tolist()))
    if tensor.is_quantized:
        extra += ("qscheme", _qscheme(tensor))
    level = _level(tensor)
    return extra if level < 0 else (*extra, "functorch level", level)


def tensor_spec(
    tensor: torch.Tensor, open_sizes: Collection[int] = (), open_strides: Collection[int] = ()
) -> TensorSpec:
    """What a guard expects of a tensor like this one; the sizes and strides of some dimensions are left open."""
    facts = read_facts(tensor)
    sizes = _but(facts.sizes, open_sizes)
    strides = None if facts.strides is None else _but(facts.strides, open_strides)
    dtype, device, layout, requires_grad, keys, _, _, extra = facts
    fixed = frozenset(dim for dim in marked_dims(tensor) if sizes and sizes[dim] is not None)
    fields = (type(tensor), dtype, device, layout, requires_grad, keys, sizes, strides, extra, fixed)
    spec = _specs.get(fields)
    return spec if spec is not None else _specs.setdefault(fields, TensorSpec(*fields, read_facts))


def learn_kinds() -> None:
    """Which bits of dispatch keys tell what, by example."""
    plain = torch.zeros(1, dtype=torch.complex64)
    with torch.inference_mode():
        inference = torch.zeros(1, dtype=torch.complex64)
    kinds = (
        (plain.conj(), "conjugated lazily"),
        (internals.neg_view(plain), "negated lazily"),
        (inference, "of inference"),
    )
    for tensor, told in kinds:
        differing = _raw_keys(plain) ^ _raw_keys(tensor)
        words = f"a tensor {told}", "an ordinary tensor"
        KEY_WORDS[differing] = words if _raw_keys(tensor) & differing == differing else words[::-1]


# Equal specs are one object, so that what the core learns of one serves all tensors alike.
_specs: WeakValueDictionary[tuple[Any, ...], TensorSpec] = WeakValueDictionary()


def _but(numbers: tuple[int, ...], left_open: Collection[int]) -> tuple[Dim, ...]:
    return tuple(None if dim in left_open else number for dim, number in enumerate(numbers))


# --- where a TensorImpl keeps its metadata: found by experiment, so that no header of torch is needed ---------------

_WORD = 8
_SIZES, _STRIDES = (3, 5, 7, 11, 13), (40009, 7001, 797, 59, 2)


class _Unclear(Exception):
    """An experiment did not give the one answer expected: tensors are then read in Python."""


def configure() -> bool:
    """Tell the core how to read tensors; False if it could not be found out, and Python reads them.

    What lies unused in a tensor's memory may happen to look like a field: the next attempt is made in other memory.
    """
    held: list[Any] = []
    for _ in range(_ATTEMPTS):
        if _configured():
            return True
        held.append(_samples())
    return False


_ATTEMPTS = 5


def _configured() -> bool:
    try:
        layout = _find_layout()
    except (_Unclear, OSError, AttributeError):
        return False
    configure_tensors(**layout)
    if all(_core_agrees(tensor) for tensor in _samples()):
        return True
    configure_tensors(**dict.fromkeys(layout, 0))
    return False


def _find_layout() -> dict[str, Any]:
    plain = torch.empty_strided(_SIZES, _STRIDES, device="meta")
    layout: dict[str, Any] = {"tensor": torch.Tensor, "impl": _find_impl_offset(), "vtable": _impl(plain)[0]}
    dims = _only(i for i in range(len(_impl(plain)) - 10) if _impl(plain)[i : i + 11] == [5, *_SIZES, *_STRIDES])
    first_after = dims + 11
    tensors = _samples()
    raw_keys = tuple(map(_raw_keys, tensors))
    keys = _only(i for i, words in enumerate(_side_by_side(tensors)) if i >= first_after and words == raw_keys)
    layout |= {"dims": dims * _WORD, "keys": keys * _WORD}
    return layout | _find_kind(first_after, keys) | _find_autograd(dims) | _find_memory()


def _find_impl_offset() -> int:
    """Where a tensor object points to its impl."""
    samples = _samples()
    words = range(2, object.__sizeof__(samples[0]) // _WORD)
    return _WORD * _only(i for i in words if all(_words(id(t), i + 1)[i] == internals.impl_address(t) for t in samples))


def _find_kind(first: int, keys: int) -> dict[str, int]:
    """The word with data type and device: which of its bits say these, and which must be as in a plain tensor.

    The bits that no field uses are what lay in the memory before. Taken for a part of the data type, they would make
    guards fail for tensors like the expected one. So what varies with the memory is left out, and what says the data
    type, or the kind of device, must be one byte: each is a small number.
    """
    by_dtype = [_impl(torch.empty(2, dtype=dtype)) for dtype in _DTYPES]
    kind = _only(i for i in range(first, keys + 1) if i != keys and len({words[i] for words in by_dtype}) > 1)
    if len({words[kind] for words in by_dtype}) != len(_DTYPES):
        raise _Unclear("data types")
    base = by_dtype[0][kind]
    padding = _varying(base, (_impl(t)[kind] for t in _in_dirty_memory()))
    dtype = _one_byte(_varying(base, (words[kind] for words in by_dtype)) & ~padding)
    device = _one_byte((base ^ _impl(torch.empty(2, device="meta"))[kind]) & ~padding)
    mask = dtype | device | device << 8  # its index follows
    for kinds in (by_dtype, [_impl(torch.empty(2, device=device)) for device in _devices()]):
        if len({words[kind] & mask for words in kinds}) != len(kinds):
            raise _Unclear("data types or devices")
    alike = [t for t in _samples() if t.dtype is _DTYPES[0] and t.device.type == "cpu"]
    harmless = padding | _varying(base, (_impl(t)[kind] for t in alike))
    if mask & harmless or mask >> 8 * _WORD:
        raise _Unclear("what tensors of one data type and device differ in")
    flags_mask = ~(mask | harmless) & (2**64 - 1)
    return {"kind": kind * _WORD, "kind_mask": mask, "flags_mask": flags_mask, "flags": base & flags_mask}


def _in_dirty_memory() -> Iterator[Any]:
    """Plain tensors whose impl got memory of known contents: what shows through is padding.

    An allocator that keeps freed memory back for a while never gives the known memory; one that does so to find errors
    mostly fills it too, and then nothing varies.
    """
    kept = []
    for pattern in (0x00, 0xFF):
        for _ in range(_ATTEMPTS):
            blocks = _soil(pattern)
            kept.append(torch.zeros(3))
            yield kept[-1]
            if internals.impl_address(kept[-1]) in blocks:
                break


def _soil(pattern: int) -> set[int]:
    """Fill with the byte what the next tensor's impl will get, which is one of these blocks.

    Of a freed block that is a little too large the allocator gives the whole, for the rest would be too small to be of
    use. So an impl may have more memory than one of its size asks for, by one step of sizes; in a process that has
    freed many such blocks each impl has, and so has each block that is asked for here. Those are held until there are
    some of the very size, which the allocator prefers.
    """
    libc = ctypes.CDLL(None)
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    model = torch.zeros(3)
    largest = _usable(internals.impl_address(model))
    del model
    blocks: dict[int, int] = {}
    for size in (largest, largest - _STEP):
        exact = tried = 0
        while exact < _BLOCKS and tried < _MOST_TRIED:
            block = int(libc.malloc(size))
            blocks[block] = size
            exact += _usable(block) == size
            tried += 1
    for block, size in blocks.items():
        ctypes.memset(block, pattern, size)
        libc.free(block)
    return set(blocks)


_STEP = 16  # what allocations are aligned to
_BLOCKS = 6  # one is for the impl, the others for what else a tensor has
_MOST_TRIED = 1000


def _find_autograd(dims: int) -> dict[str, int]:
    """Where the impl points to its AutogradMeta and its ExtraMeta, and the function that reads the former."""
    bare, leaf = _impl(torch.empty(2)), _impl(torch.empty(2, requires_grad=True))
    empty = [i for i in range(1, dims) if bare[i] == 0]  # in a plain tensor only these two pointers are null
    autograd = _only(i for i in empty if leaf[i] != 0)
    extra = _only(i for i in empty if i != autograd)
    function = ctypes.CDLL(_library()).__getattr__("_ZNK3c1010TensorImpl13requires_gradEv")
    address = ctypes.cast(function, ctypes.c_void_p).value
    if address is None:
        raise _Unclear("requires_grad")
    return {"autograd": autograd * _WORD, "extra": extra * _WORD, "requires_grad": address}


def _find_memory() -> dict[str, int]:
    """Where the impl points to its storage and says where in it the tensor begins; where the storage has its memory."""
    memory = torch.frombuffer(bytearray(400), dtype=torch.float32)  # torch's own allocations begin where they are freed
    samples = [memory[offset : offset + 2] for offset in (83, 37, 61, 53)]
    storage, data = memory.untyped_storage(), memory.data_ptr()
    address = internals.storage_address(storage)
    in_impl = list(enumerate(_side_by_side(samples)))[1:]
    offsets = tuple(t.storage_offset() for t in samples)
    in_storage = _words(address, _usable(address) // _WORD)
    return {
        "storage": _WORD * _only(i for i, words in in_impl if set(words) == {address}),
        "storage_offset": _WORD * _only(i for i, words in in_impl if words == offsets),
        "data": _WORD * _only(i for i, word in enumerate(in_storage) if word == data),
    }


def _library() -> str:
    return os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so")


def _only(found: Iterable[int]) -> int:
    """The one thing found."""
    places = list(found)
    if len(places) != 1:
        raise _Unclear(f"{len(places)} places")
    return places[0]


def _varying(base: int, others: Iterable[int]) -> int:
    """The bits in which any of the others differs."""
    mask = 0
    for other in others:
        mask |= base ^ other
    return mask


def _one_byte(mask: int) -> int:
    """All bits of the one byte in which the mask has some."""
    return 0xFF << 8 * _only(i for i in range(_WORD) if mask >> 8 * i & 0xFF)


def _words(address: int, count: int) -> list[int]:
    memory = ctypes.string_at(address, count * _WORD)
    return [int.from_bytes(memory[i : i + _WORD], "little") for i in range(0, len(memory), _WORD)]


def _impl(tensor: torch.Tensor) -> list[int]:
    """The words of the tensor's impl; what the allocator adds at the end may be anything."""
    address = internals.impl_address(tensor)
    return _words(address, _usable(address) // _WORD)


def _side_by_side(tensors: list[Any]) -> Iterator[tuple[int, ...]]:
    """The first words of all the impls, the second …, as far as all have any: their allocations may differ in size."""
    return zip(*map(_impl, tensors), strict=False)


def _usable(address: int) -> int:
    """How many bytes the allocation at the address has, which bounds what is read."""
    measure = ctypes.CDLL(None).malloc_usable_size
    measure.argtypes, measure.restype = [ctypes.c_void_p], ctypes.c_size_t
    size = int(measure(address))
    if not 64 <= size <= 1024:
        raise _Unclear("size of a TensorImpl")
    return size


def _raw_keys(tensor: torch.Tensor) -> int:
    return int(_keys(tensor).raw_repr())


_DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint8, torch.bool, torch.complex64, torch.complex128,
)  # fmt: skip


_CHANNELS_LAST = (((2, 3, 4, 5), torch.channels_last), ((2, 3, 4, 5, 6), torch.channels_last_3d))


def _devices() -> list[str]:
    devices = ["cpu", "meta"]
    if torch.cuda.is_initialized():  # not worth starting the device for: an unknown bit is asked of Python
        devices += [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    return devices


def _samples() -> list[Any]:
    """Plain tensors of many kinds, which the core must read as Python does."""
    base = torch.zeros(4, 6)
    leaf = torch.zeros(4, 6, requires_grad=True)
    samples = [base, leaf, leaf.exp(), leaf.t(), leaf.detach(), leaf.data, base[1:, ::2], base.t(), torch.zeros(())]
    samples += [torch.nn.Parameter(base), torch.nn.Parameter(base, requires_grad=False), base.expand(3, 4, 6)]
    samples += [torch.zeros(2, 1, 3, 1, 2, 2), torch.zeros(0, 3), internals.neg_view(base), base.to("meta")]
    samples += [torch.zeros(3, dtype=torch.complex64).conj(), torch.empty_strided(_SIZES, _STRIDES, device="meta")]
    samples += [torch.zeros(2, dtype=dtype) for dtype in _DTYPES]
    samples += [torch.zeros(sizes).contiguous(memory_format=order) for sizes, order in _CHANNELS_LAST]
    samples += [torch.zeros(2, 3, 1, 1), torch.zeros(2, 3, 1, 1, 1)]  # in either order at once
    with torch.inference_mode():
        samples.append(torch.zeros(4, 6))
    with torch.no_grad():
        changed = torch.zeros(4, 6)
        changed[0].add_(leaf[0])
        samples.append(leaf[1])
    return [*samples, changed]


def _core_agrees(tensor: torch.Tensor) -> bool:
    facts = read_facts(tensor)
    return read_tensor(tensor) == (facts.keys, facts.requires_grad, facts.sizes, facts.strides)
