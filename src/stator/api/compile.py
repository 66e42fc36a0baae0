"""`stator.compile()` and what goes with it: thin."""

from __future__ import annotations

import functools
import importlib.util
import sys
import threading
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType
from typing import Any, TypeVar

from stator import errors
from stator._core import Compiled, set_miss_handler
from stator.compiler.copies import Compiling
from stator.compiler.region import REGIONS, CompileRegion, forget_all
from stator.config import current
from stator.controls.dynamo_config import disabled_by_environment
from stator.host.collector import paused
from stator.report.stats import STATS, Stats

F = TypeVar("F", bound=Callable[..., Any])


def compile(
    model: Any = None,
    *,
    backend: str | Callable[..., Any] = "inductor",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    recompile_limit: int | None = None,
    disable: bool = False,
    name: str | None = None,
) -> Any:
    """Compile a function, method or `nn.Module`: its tensor operations become graphs that `backend` compiles.

    Args:
        model: what to compile; omitted when used as a decorator with arguments.
        backend: a name from `stator.list_backends()`, or a callable `(gm, example_inputs) -> callable`.
        fullgraph: raise `GraphBreakError` rather than break the graph.
        dynamic: None makes a size symbolic once it has varied, True from the start, False never.
        mode: for Inductor: "default", "reduce-overhead", "max-autotune" …
        options: settings of Stator (`stator.config`) and, for Inductor, its own.
        recompile_limit: how many entries a function may have here before it runs eagerly (default 8).
        disable: return `model` as it is.
        name: shown in reports.

    Returns:
        A callable that behaves like `model`; for an `nn.Module`, a stand-in that shares its attributes and parameters.

    Raises:
        ConfigError: an unknown option. BackendError: an unknown backend. TypeError: `model` is not callable.

    Example:
        >>> compiled = stator.compile(model, backend="eager")
        >>> compiled(x)
    """
    if model is None:
        keywords: dict[str, Any] = {
            "backend": backend, "fullgraph": fullgraph, "dynamic": dynamic, "mode": mode, "options": options,
            "recompile_limit": recompile_limit, "disable": disable, "name": name,
        }  # fmt: skip
        return functools.partial(compile, **keywords)
    if not callable(model):
        raise TypeError(f"stator.compile() needs a function, a method or a module, not {type(model).__name__}")
    config, rest = _settings(options, recompile_limit)
    if disable or disabled_by_environment():
        _resolve_backend(backend, mode, rest)
        return model
    given = frozenset([*(options or {}), *(["recompile_limit"] if recompile_limit is not None else [])])
    settings = {"fullgraph": fullgraph, "dynamic": dynamic, "name": name, "given": given}
    if isinstance(model, type):
        return _compiled_class(model, config, (backend, mode, rest), settings)
    return _compiled(model, config, (backend, mode, rest), settings)


def _compiled_class(cls: Any, *asked: Any) -> Any:
    """The class itself, whose instances are compiled when they are called."""
    if isinstance(cls.__call__, FunctionType | Compiled):
        cls.__call__ = _compiled(cls.__call__, *asked)
    return cls


_IN_C = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, MethodWrapperType)


def _with_a_frame(function: Any) -> Any:
    """A C function as a Python function that calls it: what is compiled is a frame."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def _compiled(model: Any, config: Any, asked: tuple[Any, str | None, dict[str, Any]], settings: dict[str, Any]) -> Any:
    """What `compile()` gives; pickles refer to it. `asked` is what the backend is found by."""
    made_by: dict[str, Any] = {"remake": _compiled, "resolve": _resolve_backend}
    return _wrap(model, CompileRegion(config, backend=_resolve_backend(*asked), asked=asked, **made_by, **settings))


def _settings(options: dict[str, Any] | None, recompile_limit: int | None) -> tuple[Any, dict[str, Any]]:
    """Stator's own options apart from those meant for the backend."""
    import dataclasses

    config = current()
    own = {f.name for f in dataclasses.fields(config)}
    changes = {k: v for k, v in (options or {}).items() if k in own}
    rest = {k: v for k, v in (options or {}).items() if k not in own}
    if recompile_limit is not None:
        changes["recompile_limit"] = recompile_limit
    return config.replace(**changes), rest


def _resolve_backend(backend: Any, mode: str | None, rest: dict[str, Any]) -> Any:
    if not torch_present():
        return backend if callable(backend) else None
    from stator import backends

    return backends.resolve(backend, mode=mode, options=rest)


def torch_present() -> bool:
    """Whether the torch layer can be (and now is) loaded, as the tracer is: not before it is needed."""
    if _torch is None:
        with _setting_up, paused():
            _set_up()
    return bool(_torch)


def _set_up() -> None:
    """Load the tracer and the torch layer, whole or not at all: where that has failed, it fails again."""
    global _torch, _failure
    if _torch is not None:
        return  # another thread has done it
    if _failure is None:
        try:
            from stator.compiler.miss import on_miss

            if "torch" in sys.modules:
                present = sys.modules["torch"] is not None
            else:
                present = importlib.util.find_spec("torch") is not None
            if present:
                from stator import pytorch

                pytorch.install()
            set_miss_handler(on_miss)
            _torch = present
            return
        except BaseException as e:
            _failure = e
            if not isinstance(e, Exception):
                raise
    if isinstance(_failure, errors.InternalError):
        raise errors.InternalError(*_failure.args)  # it says all that there is to say
    text = f"Stator could not be set up in this process: {type(_failure).__name__}: {_failure}"
    raise errors.InternalError(text) from _failure


_torch: bool | None = None
_failure: BaseException | None = None
_setting_up = threading.RLock()


def _wrap(model: Any, compile_region: CompileRegion) -> Any:
    if torch_present():
        from stator.pytorch.modules.compiled_module import module_stand_in
        from stator.pytorch.state.other_tracers import innermost

        model = innermost(model)
        stand_in = module_stand_in(model, compile_region)
        if stand_in is not None:
            return stand_in
    return Compiling(compile_region)(_with_a_frame(model) if isinstance(model, _IN_C) else model)


def substitute_in_graph(original: Any) -> Callable[[F], F]:
    """Decorator: trace this Python function wherever the program calls `original` (a C function, usually)."""

    def decorate(replacement: F) -> F:
        # It loads the tracer, and its own model of `original` before this one.
        from stator.compiler import mark_models

        mark_models.substitute(original, replacement)
        return replacement

    return decorate


def reset() -> None:
    """Forget everything compiled, and set the counters to zero."""
    forget_all()
    STATS.reset()


def stats() -> Stats:
    """What Stator has done since the process began or the last `reset()`."""
    return STATS.snapshot(sum(compile_region.hits() for compile_region in list(REGIONS)))


def generated_source(compiled: Any) -> str:
    """The Python that was generated for what `compile()` returned, newest entry last; "" before the first call."""
    compile_region: CompileRegion = compiled._stator_region
    return "\n".join(
        entry.owner.text
        for code in compile_region.codes()
        for entry in compile_region.region.entries(code)
        if entry.owner
    )


def install() -> None:
    """Route `torch.compile` through Stator for the whole process, so that unmodified programs use it."""
    _torch_compile().install(compile)


def uninstall() -> None:
    """Undo `install()`."""
    _torch_compile().uninstall()


def _torch_compile() -> Any:
    if not torch_present():
        text = "stator.install() routes torch.compile through Stator, and torch is not installed"
        raise errors.ConfigError(f"{text}: pip install 'stator[torch]'")
    from stator.pytorch.state import torch_compile

    return torch_compile


def list_backends() -> list[str]:
    """The names that `compile(backend=…)` takes."""
    if not torch_present():
        return []
    from stator import backends

    return backends.list_backends()


__all__ = [
    "compile",
    "errors",
    "generated_source",
    "install",
    "list_backends",
    "reset",
    "stats",
    "torch_present",
    "uninstall",
]
