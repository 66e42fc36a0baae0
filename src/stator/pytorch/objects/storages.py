"""What the program asks of the memory of tensors: how much it is, and whether two tensors have the same.

    x.untyped_storage().nbytes()
    x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()

The size of an existing tensor's memory is guarded. Where memory lies is not known; that a view lies in its base's is.
`resizing` tells what becomes of `x.untyped_storage().resize_(n)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.models.identity.id_ import IdValue
from stator.pytorch import internals
from stator.pytorch.fake.metadata import is_symbol, same_numbers
from stator.pytorch.objects.copies import fills_storage
from stator.pytorch.objects.resizing import Resizes, bytes_needed, is_short
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.recording import record_function, record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space import facts
from stator.space.protocol import register
from stator.space.value import Constant, ObjectValue, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.interfaces import Trace, Writer
    from stator.space.space import Space

__all__ = ["install"]


_WHERE = "it depends on where the data lies"
#: functions whose results may lie in the memory of something else than a tensor
_OF_OTHERS = frozenset({"from_numpy", "as_tensor", "asarray", "frombuffer", "from_dlpack", "from_file"})


class StorageValue(ObjectValue):
    """The storage of `tensor`, which is no view of another traced tensor."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: TensorValue) -> None:
        super().__init__(torch.UntypedStorage)
        self.tensor = tensor

    def rebuilt(self, writer: Writer) -> str:
        return writer.assign("storage", f"{writer.const(torch.Tensor.untyped_storage)}({writer.expr(self.tensor)})")


class Pointer(IdValue):
    """Where a storage, or the first element of a tensor, lies: it is only compared."""

    __slots__ = ()

    def same(self, space: Space, other: IdValue) -> bool:
        one, another = _place(space, self.target), _place(space, other.target)
        if one[0] is not another[0]:
            raise _refusal("data_ptr", _WHERE)
        return one == another

    def as_host(self, space: Space) -> Host:
        raise _refusal("data_ptr", _WHERE)

    def key(self, space: Space) -> Host:
        raise _refusal("data_ptr", _WHERE)

    def describe(self) -> str:
        return f"the address of {self.target.describe()}"

    def reconstruct(self, writer: Writer) -> str:
        return writer.assign("pointer", f"{writer.expr(self.target)}.data_ptr()")


def _place(space: Space, value: Value) -> tuple[StorageValue, Host]:
    """The storage that it is about, and how many bytes from its beginning."""
    if isinstance(value, StorageValue):
        return value, 0
    assert isinstance(value, TensorValue)
    offset = space.known(record_method(space, "storage_offset", value).force())
    if type(offset) is not int:
        raise _refusal("data_ptr", "its place in the storage varies")
    return _storage_of(space, value), offset * value.dtype.itemsize


class _Storages:
    """The storages that the program has asked for: there is one object for each."""

    def __init__(self, trace: Trace) -> None:
        self.of: dict[TensorValue, StorageValue] = {}


def _refusal(name: str, why: str) -> Unsupported:
    return Unsupported(errors.UnsupportedTensorOperation(name, why))


def _storage(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`tensor.untyped_storage()`."""
    return _storage_of(space, _plain(args, kwargs, "untyped_storage"))


def _pointer(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`tensor.data_ptr()`."""
    tensor = _plain(args, kwargs, "data_ptr")
    _place(space, tensor)
    return Pointer(tensor)


def _plain(args: list[Value], kwargs: dict[str, Value], name: str) -> TensorValue:
    """The one argument, if it is a tensor of torch's own class."""
    tensor = args[0].force() if len(args) == 1 and not kwargs else None
    if not isinstance(tensor, TensorValue) or tensor.cls not in PLAIN_CLASSES:
        raise _refusal(f"Tensor.{name}", _WHERE)
    return tensor


def _storage_of(space: Space, tensor: TensorValue) -> StorageValue:
    recorder, root = tensor.recorder, tensor.root
    replaced = any(value in recorder.tracked.rebound for value in (tensor, root))
    if replaced or root.fake.layout is not torch.strided or (root.source is None and root.host is not None):
        raise _refusal("Tensor.untyped_storage", _WHERE)
    return space.trace.extension(_Storages).of.setdefault(root, StorageValue(root))


def _bytes(space: Space, storage: StorageValue) -> Value:
    """The size of a storage, which no operation of the graph has changed unseen."""
    root = storage.tensor
    resized = space.trace.extension(Resizes).sizes.get(root)
    if resized is not None:
        return resized
    if any(root in counts for counts in root.recorder.effects.writes.values()):
        raise _refusal("UntypedStorage.nbytes", "its tensor has been written, and may have another size by now")
    if root.meta is not None and root.meta.symbolic:
        return _bytes_of_elements(space, root)
    if root.meta is None:
        raise _refusal("UntypedStorage.nbytes", "its size varies")
    if root.source is not None:
        return Constant(int(facts.answer(space, root, _bytes_of, "size of the storage")))
    found = root.fake.untyped_storage().nbytes()
    if is_symbol(found):
        raise _refusal("UntypedStorage.nbytes", "its size varies")
    return Constant(int(found))


def _bytes_of_elements(space: Space, root: TensorValue) -> Value:
    """The size of the storage of a tensor whose sizes are symbols, if all that lies in it are the elements."""
    if root.source is not None:
        fills = facts.holds(space, root, fills_storage, "fills its storage")
    else:
        fills = same_numbers(root.fake.untyped_storage().nbytes(), _elements(root))
    if not fills:
        raise _refusal("UntypedStorage.nbytes", "its size varies")
    return _elements_of(space, root)


def _elements_of(space: Space, root: TensorValue) -> Value:
    """How many bytes the elements of a tensor are, as the program computes it."""
    return space.binary("*", record_method(space, "numel", root), Constant(root.dtype.itemsize))


def _elements(root: TensorValue) -> Any:
    """The same as a number of torch's."""
    return root.fake.numel() * root.dtype.itemsize


def _bytes_of(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().nbytes()


def _sized(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A method that tells the size."""
    storage = args[0].force() if len(args) == 1 and not kwargs else None
    return _bytes(space, storage) if isinstance(storage, StorageValue) else None


def _resize(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`storage.resize_(size)`."""
    storage = args[0].force() if len(args) == 2 and not kwargs else None
    if not isinstance(storage, StorageValue):
        return None
    root, size = storage.tensor, args[1].force()
    short, resizes = _is_short_at(space, root, size), space.trace.extension(Resizes)
    if short is None or not _may_be_resized(space, root):
        raise _refusal("UntypedStorage.resize_", "its size varies, or other tensors rely on it")
    if root.source is not None and root not in resizes.nodes:
        root.recorder.tracked.restructure(root)
        if facts.answer(space, root, is_short, "is larger than its storage"):
            resizes.short_before.add(root)
    record_function(space, internals.resize_storage, root, size)
    resizes.note(root, size, short)
    return storage


def _is_short_at(space: Space, root: TensorValue, size: Any) -> bool | None:
    """Whether a storage of this size is too small for its tensor; None where that is not known."""
    if size.cls is not int or not (size.constant or size.symbolic) or (size.constant and size.host < 0):
        return None
    needed = bytes_needed(root.fake)
    if not is_symbol(needed) and size.constant:
        return bool(needed > size.host)
    if not same_numbers(needed, _elements(root)):
        return None
    elements = _elements_of(space, root)
    if size.constant:
        return space.truth(space.compare("<", size, elements))
    return False if space.truth(space.compare("==", size, elements)) else None


def _may_be_resized(space: Space, root: TensorValue) -> bool:
    """Whether nothing but the tensor relies on the storage, and torch would resize it."""
    recorder = root.recorder
    if (
        recorder.nodes.graph is not recorder.nodes.whole
        or internals.forward_level() >= 0
        or root in recorder.tracked.hooked
    ):
        return False
    if root.source is not None:
        return facts.holds(space, root, _is_resizable, "has a storage that can be resized")
    return getattr(root.operation.function, "__name__", "") not in _OF_OTHERS  # type: ignore[union-attr]


def _is_resizable(tensor: torch.Tensor) -> bool:
    return bool(tensor.untyped_storage().resizable())


def _begin(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`storage.data_ptr()`."""
    storage = args[0].force() if len(args) == 1 and not kwargs else None
    return Pointer(storage) if isinstance(storage, StorageValue) else None


def install() -> None:
    """Register the models."""
    base = torch.UntypedStorage
    register(internals.TensorBase.untyped_storage, _storage)
    register(internals.TensorBase.data_ptr, _pointer)
    for method in (base.nbytes, base.__len__):
        register(method, _sized)
    register(base.data_ptr, _begin)
    register(base.resize_, _resize)
