"""Tracers, transforms and modes of torch that see, or change, every operation of the program.

A compiled callable that is called while one is at work calls what it wraps: the other sees the program's own
operations, as if it had not been compiled. Entries made before do not fit then: their guards on torch's global state
fail (the stacks of modes and transforms, dispatch keys), or those on the arguments (proxies of `torch.fx`).
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING

from stator import errors
from stator._core import Compiled, are_overrides_off, set_other_tracer, set_symbolic_flag, show_as
from stator.interp import policy
from stator.pytorch import internals
from stator.pytorch.state import compiled_inside
from stator.pytorch.state.function_modes import active
from stator.space.protocol import INTERCEPTS, NONE, Handler, TailCall
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space

__all__ = ["at_work", "innermost", "install"]


def install() -> None:
    """Tell the policy of the frame hook; have the core ask whether torch._dynamo takes this thread's frames."""
    policy.OTHERS_AT_WORK.append(at_work)
    set_other_tracer(internals.eval_frame_callback)
    # torch.fx looks for the module that is called among the submodules, where the compiled module is
    set_symbolic_flag(*internals.symbolic_flag())
    show_as(Compiled, "__call__", _plain_call)
    show_as(Compiled, "__get__", _plain_get)
    Compiled.__prepare_scriptable__ = lambda compiled: compiled.__wrapped__  # type: ignore[attr-defined]
    for name, read in _READ_BY_DYNAMO.items():
        setattr(Compiled, name, property(read))
    INTERCEPTS.insert(0, _intercept)


def innermost(function: Host) -> Host:
    """What torch.compile() has wrapped in the function, as often as it has; any other callable itself."""
    while _is_compiled_by_torch(function):
        function = function._torchdynamo_orig_callable
    return function


def _is_compiled_by_torch(function: Function) -> bool:
    """Whether this very function is the wrapper: functools.wraps copies its attributes to others."""
    if type(function) is not FunctionType or "_torchdynamo_disable" in function.__dict__:
        return False
    return function.__dict__.get("_torchdynamo_wrapper_id") == id(function)


def _intercept(host: Host) -> Handler | None:
    """A function that torch has compiled is traced through; a call of a tracer breaks the graph, once."""
    if _is_compiled_by_torch(host):
        return lambda space, args, kwargs: TailCall(space.existing(innermost(host)), args, kwargs)
    if (host.__module__, host.__qualname__) in _COMPILERS:
        return compiled_inside.handler(host)
    if (host.__module__, host.__qualname__) in _TRACERS:
        return _refuse_tracer(host)
    if host.__module__ == "torch._dynamo.mutation_guard" and host.__qualname__ in _TAGS_OF_MODULES:
        # Once used, torch._dynamo notes when each module was made, for guards that it no longer makes by default.
        return lambda space, args, kwargs: NONE
    return None


def _refuse_tracer(host: Host) -> Handler:
    def refuse(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Unsupported(errors.DisabledFunction(host.__qualname__, "it traces or compiles by itself"))

    return refuse


#: what notes it: a class method, since 2.15 the method of a class with one instance
_TAGS_OF_MODULES = ("GenerationTracker.tag", "_GenerationTracker.tag")
_COMPILERS = {("torch", "compile"), ("stator.api.compile", "compile")}
#: what begins a trace, or makes a compiled callable, of another tracer
_TRACERS = {
    *((module, "export") for module in ("torch.export", "torch.export._trace", "torch._dynamo.eval_frame")),
    *(("torch.fx._symbolic_trace", name) for name in ("symbolic_trace", "Tracer.trace")),
    *(("torch.fx.experimental.proxy_tensor", f"_MakefxTracer.{name}") for name in ("trace", "trace_subgraph")),
    *(("torch.jit._trace", name) for name in ("trace", "trace_module")),
    *(("torch.jit._script", name) for name in ("script", "script_method")),
    ("torch._dynamo.eval_frame", "_optimize"),
    ("torch._dynamo.eval_frame", "explain"),
    ("torch._functorch.aot_autograd", "aot_function"),
    ("torch._functorch.aot_autograd", "aot_module"),
}


def _plain_call(self: Host, /, *args: object, **kwargs: object) -> object:
    """What torch._dynamo finds as the `__call__` of a compiled callable, and traces through."""
    return self.__wrapped__(*args, **kwargs)


def _plain_get(self: Host, instance: Host, owner: type | None = None) -> object:
    """What it finds as `__get__`."""
    return self if instance is None else self.__wrapped__.__get__(instance, owner)


#: attributes that torch.compile() and its like look for: they take what a compiler has wrapped, not the wrapper
_READ_BY_DYNAMO = {"_torchdynamo_orig_callable": lambda compiled: compiled.__wrapped__, "_torchdynamo_wrapper_id": id}


def at_work() -> str | None:
    """What is at work on this thread; None where nothing is."""
    if internals.innermost_transform() is not None:
        return "inside a transform of torch.func"
    if internals.forward_level() >= 0:
        return "inside a level of forward-mode differentiation"
    mode = _dispatch_mode()
    if mode is not None:
        return f"inside the TorchDispatchMode {type(mode).__qualname__}"
    if internals.tracing_state() is not None:
        return "inside torch.jit.trace"
    if internals.is_fx_tracing():
        return "inside torch.fx.symbolic_trace"
    for mode in active():
        own = type(mode).__module__.partition(".")[0] == "torch" or not are_overrides_off()
        if own and not isinstance(mode, internals.DeviceContext):
            return f"inside the TorchFunctionMode {type(mode).__qualname__}"
    return None


def _dispatch_mode() -> Host:
    """The innermost TorchDispatchMode of the program, or else one of torch's own."""
    count = internals.len_dispatch_stack()
    if count > 0:
        return internals.dispatch_mode_at(count - 1)
    return next((mode for mode in map(internals.dispatch_mode, _infra_keys()) if mode is not None), None)


def _infra_keys() -> tuple[object, ...]:
    keys = internals.DispatchModeKey
    return keys.FAKE, keys.PROXY, keys.FUNCTIONAL
