"""torch's global state, compared in C++: what the functions of its libraries report, asked directly.

Asking the same from Python costs a microsecond in each call of a compiled function.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from weakref import WeakValueDictionary

import torch

from stator._core import Probe, ProbeKind, set_overrides, set_thread_local_symbol

__all__ = ["let_core_turn_overrides_off", "state_probe"]

_AUTOGRAD_STATE = "_ZN3c1013AutogradState13get_tls_stateEv"
_KEY_SETS = "_ZN3c104impl26raw_local_dispatch_key_setE"

_COUNT_MODES = "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv"
_GET_OVERRIDES = "_ZN2at4impl22PythonTorchFunctionTLS18get_disabled_stateEv"
_SET_OVERRIDES = "_ZN2at4impl22PythonTorchFunctionTLS18set_disabled_stateENS0_26TorchFunctionDisabledStateE"

# (kind, library, symbol)
_FUNCTIONS = (
    (ProbeKind.RESULT_OF_8, "c10", "_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv"),
    (ProbeKind.RESULT_OF_1, "c10", "_ZN3c1031get_default_dtype_as_scalartypeEv"),
    (ProbeKind.RESULT_OF_8, "torch_cpu", _COUNT_MODES),
    (ProbeKind.RESULT_OF_4, "torch_cpu", _GET_OVERRIDES),
    (ProbeKind.RESULT_OF_1, "torch_cpu", "_ZN2at8autocast25is_autocast_cache_enabledEv"),
    (ProbeKind.RESULT_OF_4, "torch_cpu", "_ZN2at15get_num_threadsEv"),
)
_CONTEXT = "_ZN2at13globalContextEv"
_OF_CONTEXT = ("_ZNK2at7Context23deterministicAlgorithmsEv", "_ZNK2at7Context31deterministicAlgorithmsWarnOnlyEv")
_OF_CUDA = (
    "_ZNK2at7Context15allowTF32CuBLASEv",
    "_ZNK2at7Context24allowFP16ReductionCuBLASEv",
    "_ZNK2at7Context24allowBF16ReductionCuBLASEv",
)
_AUTOCAST_DTYPE = "_ZN2at8autocast18get_autocast_dtypeEN3c1010DeviceTypeE"

# the numbers of the device types whose autocast is used: cpu, cuda, xpu, mps
_AUTOCAST_DEVICES = (0, 1, 12, 13)

Question = tuple[ProbeKind, int, int]


class _Unclear(Exception):
    """This torch does not have what is asked for: its state is then compared in Python."""


# Equal probes are one object, so that programs guarded by equal states share the check.
_probes: WeakValueDictionary[tuple[int, ...], Probe] = WeakValueDictionary()
_questions: list[tuple[Question, ...] | None] = []  # found out once


def state_probe() -> Callable[[], bool] | None:
    """True when called as long as torch's global state, on the calling thread, is what it is now.

    That is the state torch itself guards, and the stacks of modes and transforms by their length.  None if this
    torch cannot be asked.
    """
    if not _questions:
        try:
            _questions.append(tuple(_find_questions()))
        except (_Unclear, OSError, AttributeError):
            _questions.append(None)
    if _questions[0] is None:
        return None
    probe = Probe(_questions[0])
    return _probes.setdefault(probe.answers, probe)


def let_core_turn_overrides_off() -> None:
    """Modes of functions are not told of what guards read, if this torch can be asked about them."""
    try:
        library = ctypes.CDLL(_path("torch_cpu"))
        set_overrides(*(_address(library, name) for name in (_COUNT_MODES, _GET_OVERRIDES, _SET_OVERRIDES)))
    except (_Unclear, OSError, AttributeError):
        pass


def _find_questions() -> Iterator[Question]:
    libraries = {name: ctypes.CDLL(_path(name)) for name in ("c10", "torch_cpu")}
    if not set_thread_local_symbol(_path("c10"), _KEY_SETS):
        raise _Unclear("dispatch keys")
    yield ProbeKind.THREAD_LOCAL, 0, 0
    yield ProbeKind.THREAD_LOCAL, 0, 8
    yield ProbeKind.BYTE_AT_RESULT, _address(libraries["c10"], _AUTOGRAD_STATE), _autograd_offset(libraries["c10"])
    for kind, library, symbol in _FUNCTIONS:
        yield kind, _address(libraries[library], symbol), 0
    context = getattr(libraries["torch_cpu"], _CONTEXT)
    context.restype = ctypes.c_void_p
    for symbol in (*_OF_CONTEXT, *(_OF_CUDA if torch.backends.cuda.is_built() else ())):
        yield ProbeKind.RESULT_OF_1, _address(libraries["torch_cpu"], symbol), context()
    dtype = _address(libraries["torch_cpu"], _AUTOCAST_DTYPE)
    for device in _AUTOCAST_DEVICES:
        yield ProbeKind.RESULT_OF_1, dtype, device


def _path(library: str) -> str:
    return os.path.join(os.path.dirname(torch.__file__), "lib", f"lib{library}.so")


def _address(library: ctypes.CDLL, symbol: str) -> int:
    address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
    if address is None:
        raise _Unclear(symbol)
    return address


def _autograd_offset(library: ctypes.CDLL) -> int:
    """The byte of the thread's autograd state that says whether gradients and inference mode are on."""
    place = getattr(library, _AUTOGRAD_STATE)
    place.restype = ctypes.c_void_p
    size = 64

    def read() -> bytes:
        return ctypes.string_at(place(), size)

    with torch.enable_grad():
        on = read()
        with torch.no_grad():
            off = read()
    with torch.inference_mode():
        inference = read()
    changed = [i for i in range(size) if on[i] != off[i]]
    if len(changed) != 1 or off[changed[0]] == inference[changed[0]]:
        raise _Unclear("autograd state")
    return changed[0]
