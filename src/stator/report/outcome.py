"""What a program has computed, as text that can be compared: two runs with the same text have computed the same."""

from __future__ import annotations

import ctypes
import hashlib
import random
import re
import sys
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType

from stator._core import Compiled
from stator.space.host_types import Host

__all__ = ["digest", "generators", "seed", "without_addresses"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def digest(thing: Host) -> str:
    """Of an object with all that it leads to: numbers, tensors to the last bit, gradients, containers, objects."""
    found = hashlib.sha256()
    for part in _parts(thing, {}):
        found.update(part)
    return found.hexdigest()


def without_addresses(text: str) -> str:
    """A text in which addresses of objects are all the same."""
    return re.sub(r"0x[0-9a-f]+", "0x…", text)


def seed() -> None:
    """The random generators of the process, always alike."""
    random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)


def generators() -> str:
    """Where they stand."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    return digest(
        [random.getstate(), torch and torch.get_rng_state(), numpy and str(numpy.random.get_state()[1:3])],
    )


def _parts(thing: Host, seen: dict[int, tuple[int, Host]]) -> Iterator[bytes]:
    if isinstance(thing, _PLAIN):
        yield f"{type(thing).__name__} {thing!r}".encode()
        return
    if isinstance(thing, FunctionType | Compiled) and hasattr(thing, "__wrapped__"):
        yield from _parts(thing.__wrapped__, seen)  # marked, or compiled: the same function
        return
    if id(thing) in seen:
        yield f"<{seen[id(thing)][0]}>".encode()
        return
    seen[id(thing)] = len(seen), thing  # as long as it lives nothing else has its address
    yield f"{type(thing).__module__}.{type(thing).__qualname__}".encode()
    if isinstance(thing, ModuleType | type):
        yield thing.__name__.encode()
    elif isinstance(thing, FunctionType):
        yield thing.__qualname__.encode()
        for cell in thing.__closure__ or ():
            try:
                yield from _parts(cell.cell_contents, seen)
            except ValueError:  # an empty cell
                yield b"-"
    elif isinstance(thing, MethodType):
        yield thing.__name__.encode()
        yield from _parts(thing.__self__, seen)
    elif _is_tensor(thing):
        yield from _of_tensor(thing, seen)
    elif isinstance(thing, dict):
        for key, value in list(thing.items()):
            yield from _parts(key, seen)
            yield from _parts(value, seen)
    elif isinstance(thing, list | tuple):
        for each in list(thing):
            yield from _parts(each, seen)
    elif isinstance(thing, set | frozenset):
        yield from sorted(digest(each).encode() for each in thing)
    elif hasattr(thing, "tobytes") and hasattr(thing, "dtype"):  # of NumPy
        yield f"{thing.dtype} {getattr(thing, 'shape', ())}".encode()
        yield thing.tobytes()
    else:
        for name, value in sorted(getattr(thing, "__dict__", {}).items()):
            if not name.startswith("_stator"):
                yield name.encode()
                yield from _parts(value, seen)


def _is_tensor(thing: Host) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.Tensor)


def _of_tensor(tensor: Host, seen: dict[int, tuple[int, Host]]) -> Iterator[bytes]:
    torch = sys.modules["torch"]
    yield f"{tensor.dtype} {tuple(tensor.shape)} {tensor.device} {tensor.requires_grad}".encode()
    plain = tensor.detach()
    if type(plain) not in (torch.Tensor, torch.nn.Parameter):
        yield from _parts(getattr(tensor, "__dict__", {}), seen)
        return
    if plain.layout is not torch.strided or plain.is_quantized:
        plain = plain.dequantize() if plain.is_quantized else plain.to_dense()
    if plain.device.type != "meta":
        flat = plain.cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
        yield ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()) if flat.numel() else b""
    if tensor.is_leaf and tensor.grad is not None:
        yield b"grad"
        yield from _parts(tensor.grad, seen)
