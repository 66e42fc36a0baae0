"""Switches of torch's kernels and of autograd, which a program reads and sets: attention's (`sdpa_kernel`), cuDNN's,
oneDNN's, anomaly detection, whether tensors that are saved for backward may meet hooks.

They are parts of the global state, as `no_grad` is (see `global_state`), but no part of what every entry is guarded by:
few programs depend on them. A trace that reads one, sets one, or computes attention is guarded by those it is about, as
they were at its beginning.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch.nn.functional

from stator.guards.guard import GlobalState
from stator.pytorch import internals
from stator.space.protocol import Handler, register

if TYPE_CHECKING:
    from stator.pytorch.types import Args, Function, Host
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["ATTENTION", "HANDLERS", "SWITCHES", "Calls", "Switch", "answers", "install", "rely_on_attention"]

#: what is read of each, and what sets it
_NAMES = {
    **{f"_get_{kind}_sdp_enabled": f"_set_sdp_use_{kind}" for kind in ("math", "flash", "mem_efficient", "cudnn")},
    **{f"_get_{kind}_sdp_enabled": f"_set_sdp_use_{kind}" for kind in ("overrideable", "fa3", "fa4")},
    "_get_math_sdp_allow_fp16_bf16_reduction": "_set_math_sdp_allow_fp16_bf16_reduction",
    "_get_sdp_priority_order": "_set_sdp_priority_order",
    **{f"_get_cudnn_{what}": f"_set_cudnn_{what}" for what in ("enabled", "benchmark", "deterministic", "allow_tf32")},
    "_get_cudnn_depthwise_kernel": "_set_cudnn_depthwise_kernel",
    "_cuda_get_cudnn_benchmark_limit": "_cuda_set_cudnn_benchmark_limit",
    **{f"_get_mkldnn_{what}": f"_set_mkldnn_{what}" for what in ("enabled", "deterministic")},
    "_get_dtensor_allow_implicit_replication": "_set_dtensor_allow_implicit_replication",
    # of the engine's threads, which give the same results
    "_is_multithreading_enabled": "_set_multithreading_enabled",
}


#: functions and what to call them with
Calls: TypeAlias = list[tuple[Callable[..., object], tuple[object, ...]]]


class Switch:
    """One switch.

    Args:
        readers, setters: the C functions by which programs read and set it.
        read: what tells how it stands.
        calls: the calls that bring about what `read` has told.
    """

    def __init__(self, readers: Args, setters: Args, read: Function, calls: Callable[[Any], Calls]) -> None:
        self.readers = readers
        self.setters = setters
        self.read = read
        self.calls = calls


def _of_one_answer(reader: Function, setter: Function) -> Switch:
    """A switch that is set to what the reader answers."""

    def read() -> object:
        answer = reader()
        return tuple(answer) if type(answer) is list else answer

    return Switch((reader,), (setter,), read, lambda to: [(setter, ([*to] if type(to) is tuple else to,))])


def _pairs() -> dict[str, Switch]:
    """The switches of kernels that this torch has, by the names of their readers."""
    found = {name: internals.c_functions((name, setter)) for name, setter in _NAMES.items()}
    return {name: _of_one_answer(*pair) for name, pair in found.items() if len(pair) == 2}


#: what the precision of products in single precision is asked and set for, in the order in which one overrides another
_PRECISIONS = (("generic", "all"), *((b, op) for b in ("cuda", "mkldnn") for op in ("all", "conv", "rnn", "matmul")))


def _precision() -> dict[str, Switch]:
    """The precision of products in single precision, where this torch tells it by backend and operation."""
    found = internals.c_functions(("_get_fp32_precision_getter", "_set_fp32_precision_setter"))
    if len(found) < 2:
        return {}
    getter, setter = found

    def read() -> tuple[object, ...]:
        return tuple(getter(*of) for of in _PRECISIONS)

    def calls(to: Any) -> Calls:
        return [(setter, (*of, value)) for of, value in zip(_PRECISIONS, to, strict=True)]

    return {"float32 precision": Switch((getter,), (setter,), read, calls)}


def _anomaly() -> tuple[bool, bool]:
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


def _of_autograd() -> dict[str, Switch]:
    """The switches of autograd: anomaly detection, and the error where saved tensors are to meet no hooks."""
    detect = torch.set_anomaly_enabled
    why, disable, enable = internals.why_no_saved_hooks, internals.disable_saved_hooks, internals.enable_saved_hooks
    detecting = (torch.is_anomaly_enabled, torch.is_anomaly_check_nan_enabled)
    return {
        "anomaly": Switch(detecting, (detect,), _anomaly, lambda to: [(detect, to)]),
        "saved hooks": Switch(
            (why,), (disable, enable), why, lambda to: [(enable, ()) if to is None else (disable, (to,))]
        ),
    }


def _handling() -> object:
    """How operations on distributed tensors are handled; None as long as there are none."""
    if internals.distributed_tensor() is None:
        return None
    dispatcher = internals.tensor_dispatcher
    handlers, of_losses = internals.tensor_handlers(dispatcher), internals.loss_handlers()
    return internals.replicates_implicitly(dispatcher), frozenset(handlers.items()), frozenset(of_losses.items())


def _are_losses_parallel() -> bool:
    """Whether torch's own handlers of losses are in use."""
    of_losses = internals.loss_handlers()
    return bool(of_losses) and of_losses.keys() <= internals.tensor_handlers(internals.tensor_dispatcher).keys()


def _switch_losses(to: bool) -> Calls:
    return [(internals.enable_parallel_losses if to else internals.disable_parallel_losses, ())]


#: how operations on distributed tensors are handled (see `tensor_handlers`)
HANDLERS = "handlers of distributed tensors"
SWITCHES = {**_pairs(), **_precision(), **_of_autograd()}
SWITCHES[HANDLERS] = Switch((), (), _handling, lambda to: [])
SWITCHES["parallel losses"] = Switch((), (), _are_losses_parallel, _switch_losses)
#: those that say which kernels attention may take
ATTENTION = tuple(name for name in SWITCHES if "sdp" in name)


class _Answers:
    """Whether a reader still gives the same answer."""

    def __init__(self, host: Host, args: Args, answer: object) -> None:
        self.host, self.args, self.answer = host, args, answer

    def __call__(self) -> bool:
        answer = self.host(*self.args)
        return bool((tuple(answer) if type(answer) is list else answer) == self.answer)


@functools.cache
def answers(host: Host, args: Args, answer: object) -> Callable[[], bool]:
    """What tells whether `host(*args)` is still this answer: one object each, so that equal guards are kept once."""
    return _Answers(host, args, answer)


def guard_on(name: str, answer: object) -> GlobalState:
    """The switch is as it was."""
    return GlobalState(answers(SWITCHES[name].read, (), answer), f"the switch {name!r} is as it was")


def _reading(name: str, reader: Host) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        space.trace.recorder.state.rely((name,))
        return space.run_known(reader, args, kwargs)

    return handler


def rely_on_attention(space: Space, args: list[Value], kwargs: dict[str, Value]) -> None:
    """Attention is computed: a backend may choose the kernel while it compiles. The call itself is for others."""
    space.trace.recorder.state.rely(ATTENTION)


def install() -> None:
    """Register the models."""
    for name, switch in SWITCHES.items():
        for reader in switch.readers:
            register(reader, _reading(name, reader))
    register(torch.nn.functional.scaled_dot_product_attention, rely_on_attention)
    register(torch.nn.functional.multi_head_attention_forward, rely_on_attention)
