"""torch's immutable objects, and its functions that compute nothing with tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.guards.guard import GlobalState
from stator.pytorch import internals
from stator.pytorch.state import switches
from stator.pytorch.state.is_compiling import is_compiling
from stator.space.protocol import FALSE, IMMUTABLE, INTERCEPTS, NONE, Handler, pure, register
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = ["install", "intercept_constant"]


#: Python functions that answer alike throughout every trace: module and name → the answer
_ANSWERS: dict[tuple[str, str], Constant] = {
    ("torch.compiler", "is_exporting"): FALSE,
    ("torch._jit_internal", "is_scripting"): FALSE,
    ("torch.jit._trace", "is_tracing"): FALSE,
    ("torch.jit", "is_tracing"): FALSE,
    # No other tracer is at work, see `state.other_tracers`.
    ("torch.fx._symbolic_trace", "_get_is_fx_tracing"): FALSE,
    ("torch.fx.experimental.proxy_tensor", "get_proxy_mode"): NONE,
}

#: those whose answer depends on who asks
_COMPILING = frozenset(
    {
        ("torch.compiler", "is_compiling"),
        ("torch.compiler", "is_dynamo_compiling"),
        ("torch._dynamo.external_utils", "is_compiling"),
        ("torch._utils", "is_compiling"),
    }
)

_CUDA: tuple[str, ...] = ("is_available", "device_count", "is_bf16_supported", "_is_compiled", "get_arch_list")
_CUDA += ("get_device_capability", "get_device_name", "get_device_properties")
#: Python functions that are run for real: they look at the machine, which stays as it is
_OF_THE_MACHINE = frozenset(
    {
        *(("torch.cuda", name) for name in _CUDA),
        ("torch.xpu", "is_available"),
        ("torch.mps", "is_available"),
        ("torch.backends.mps", "is_available"),
        ("torch.distributed", "is_available"),
        ("torch.accelerator", "current_accelerator"),
        ("torch.accelerator", "device_count"),
        ("torch.accelerator", "is_available"),
        ("torch.profiler.profiler", "supported_activities"),
    }
)
#: those that look at the process or the thread, which the program changes: what they answer is guarded
_OF_THE_PROCESS = frozenset(
    {
        *(("torch.cuda", name) for name in ("current_device", "is_initialized")),
        ("torch.cuda.graphs", "is_current_stream_capturing"),
        ("torch.accelerator", "current_device_index"),
        ("torch.distributed.distributed_c10d", "is_initialized"),
    }
)

#: readers of the state that the guard on torch's global state is about
_GUARDED: tuple[str, ...] = ("is_grad_enabled", "is_inference_mode_enabled", "get_default_dtype", "is_autocast_enabled")
_GUARDED += ("get_autocast_dtype", "is_autocast_cpu_enabled", "get_autocast_gpu_dtype", "get_autocast_cpu_dtype")
_GUARDED += ("is_autocast_cache_enabled", "_get_deterministic_algorithms", "_is_any_autocast_enabled")
_GUARDED += ("_get_deterministic_algorithms_warn_only", "_is_torch_function_enabled")
_GUARDED += ("_len_torch_dispatch_stack", "_is_torch_function_all_disabled")
#: readers of other state: what they answer is guarded by itself
_READERS: tuple[str, ...] = ("_get_default_device", "_is_autocast_available", "_get_float32_matmul_precision")
_READERS += ("get_num_threads", "get_num_interop_threads")


def _reader(host: Host, guarded: bool) -> Handler:
    """A reader of the global state, which the trace then depends on."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        result = space.run_known(host, args, kwargs)
        if guarded:
            space.trace.recorder.state.used = True
        else:
            operands = tuple([space.known(arg) for arg in args])
            same = switches.answers(host, operands, space.known(result))
            space.trace.guard(GlobalState(same, f"{host.__name__}() is as it was"))
        return result

    return handler


def _answer(constant: Value) -> Handler:
    return lambda space, args, kwargs: constant


def _for_real(host: Host) -> Handler:
    return lambda space, args, kwargs: space.run_known(host, args, kwargs)


def intercept_constant(host: Host) -> Handler | None:
    """The model of a Python function that answers without tensors; None for others (see protocol.INTERCEPTS)."""
    key = (getattr(host, "__module__", ""), getattr(host, "__qualname__", ""))
    if key in _COMPILING:
        return is_compiling
    answer = _ANSWERS.get(key)
    if answer is not None:
        return _answer(answer)
    if key in _OF_THE_PROCESS:
        return _reader(host, guarded=False)
    return _for_real(host) if key in _OF_THE_MACHINE else None


def install() -> None:
    """Register types and functions."""
    IMMUTABLE.update({torch.dtype, torch.device, torch.layout, torch.memory_format, torch.qscheme})
    IMMUTABLE.update({torch.finfo, torch.iinfo})
    for host in internals.c_functions(_GUARDED):
        register(host, _reader(host, guarded=True))
    for host in internals.c_functions(_READERS):
        register(host, _reader(host, guarded=False))
    pure(torch.promote_types, torch.can_cast, torch.is_vulkan_available, internals.privateuse1_name)
    register(internals.log_api_usage_once, _answer(NONE))
    register(internals.tracing_state, _answer(NONE))
    register(internals.is_tracing, _answer(FALSE))
    for host in (internals.dispatch_mode, internals.unset_dispatch_mode):
        register(host, _answer(NONE))  # such a mode is another tracer
    INTERCEPTS.append(intercept_constant)
    switches.install()
