"""torch's immutable objects, and its functions that compute nothing with tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.objects.protocol import IMMUTABLE, FALSE, Handler, NONE, TRUE, pure, register
from stator.objects.value import Constant, Value

if TYPE_CHECKING:
    from stator.objects.space import Space

__all__ = ["install", "intercept_constant"]

_C: Any = torch._C

#: Python functions that answer alike throughout every trace: module and name → the answer
_ANSWERS: dict[tuple[str, str], Constant] = {
    ("torch.compiler", "is_compiling"): TRUE,
    ("torch.compiler", "is_dynamo_compiling"): TRUE,
    ("torch.compiler", "is_exporting"): FALSE,
    ("torch._dynamo.external_utils", "is_compiling"): TRUE,
    ("torch._utils", "is_compiling"): TRUE,
    ("torch._jit_internal", "is_scripting"): FALSE,
    ("torch.jit._trace", "is_tracing"): FALSE,
    ("torch.jit", "is_tracing"): FALSE,
    ("torch._utils_internal", "log_compilation_event"): NONE,
    ("torch._logging._internal", "warning_once"): NONE,
}

#: Python functions that are run for real: they look at the machine or at the process
_FOR_REAL = frozenset(
    {
        *(("torch.cuda", name) for name in ("is_available", "device_count", "is_bf16_supported", "is_initialized", "current_device")),
        *(("torch.cuda", name) for name in ("get_device_capability", "get_device_name", "_is_compiled", "is_current_stream_capturing")),
        ("torch.xpu", "is_available"),
        ("torch.mps", "is_available"),
        ("torch.backends.mps", "is_available"),
        ("torch.distributed", "is_available"),
        ("torch.distributed.distributed_c10d", "is_initialized"),
        ("torch.accelerator", "current_accelerator"),
        ("torch.accelerator", "is_available"),
    }
)


def _state_readers() -> list[Any]:
    names = ("is_grad_enabled", "is_inference_mode_enabled", "get_default_dtype", "is_autocast_enabled", "get_autocast_dtype")
    names += ("is_autocast_cpu_enabled", "get_autocast_gpu_dtype", "get_autocast_cpu_dtype", "is_autocast_cache_enabled")
    names += ("is_anomaly_enabled", "is_anomaly_check_nan_enabled")
    found = [getattr(torch, name) for name in names if hasattr(torch, name)]
    inner = ("_get_deterministic_algorithms", "_get_deterministic_algorithms_warn_only", "_is_torch_function_enabled")
    inner += ("_len_torch_function_stack", "_len_torch_dispatch_stack", "_get_default_device", "_is_any_autocast_enabled")
    inner += ("_is_autocast_available", "_is_torch_function_all_disabled")
    inner += ("_is_torch_function_mode_enabled", "_get_math_sdp_enabled", "_get_flash_sdp_enabled")
    inner += ("_get_mem_efficient_sdp_enabled", "_get_cudnn_enabled", "_get_mkldnn_enabled", "_get_float32_matmul_precision")
    return found + [getattr(_C, name) for name in inner if hasattr(_C, name)]


def _reader(host: Any) -> Handler:
    """A reader of the global state, which the trace then depends on."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        space.trace.recorder.state.used = True
        return space.run_known(host, args, kwargs)

    return handler


def _answer(constant: Value) -> Handler:
    return lambda space, args, kwargs: constant


def _for_real(host: Any) -> Handler:
    return lambda space, args, kwargs: space.run_known(host, args, kwargs)


def intercept_constant(host: Any) -> Handler | None:
    """The model of a Python function that answers without tensors; None for others (see trace.INTERCEPTS)."""
    key = (getattr(host, "__module__", ""), getattr(host, "__qualname__", ""))
    answer = _ANSWERS.get(key)
    if answer is not None:
        return _answer(answer)
    return _for_real(host) if key in _FOR_REAL else None


def _has_torch_function(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`_has_torch_function*`: tensors with overrides of their own never get as far as this."""
    return FALSE


def install() -> None:
    """Register types and functions."""
    IMMUTABLE.update({torch.dtype, torch.device, torch.layout, torch.memory_format, torch.finfo, torch.iinfo, torch.qscheme})
    for host in _state_readers():
        register(host, _reader(host))
    pure(torch.promote_types, torch.can_cast, _C._get_tracing_state, torch.is_vulkan_available, _C._get_privateuse1_backend_name)
    for name in ("_has_torch_function", "_has_torch_function_unary", "_has_torch_function_variadic"):
        register(getattr(_C, name), _has_torch_function)
    register(_C._log_api_usage_once, _answer(NONE))
    register(_C._get_tracing_state, _answer(NONE))
