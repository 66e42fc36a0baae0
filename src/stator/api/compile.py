"""`stator.compile()` and what goes with it: thin."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType
from typing import Any, TypeVar

from stator import errors
from stator._core import Compiled
from stator.api.layers import TorchLayer, layers, torch_layer
from stator.compiler.copies import Compiling
from stator.compiler.region import REGIONS, Asked, CompileRegion, forget_all
from stator.config import Config, current
from stator.controls.dynamo_config import disabled_by_environment, warn_once
from stator.report.stats import STATS, Stats

F = TypeVar("F", bound=Callable[..., Any])


def compile(
    model: Any = None,
    *,
    backend: str | Callable[..., Any] = "inductor",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    dynamic_shapes: Any = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    disable: bool = False,
    name: str | None = None,
) -> Any:
    """Compile a function, method or `nn.Module`: its tensor operations become graphs that `backend` compiles.

    Args:
        model: what to compile; omitted when used as a decorator with arguments.
        backend: a name from `stator.list_backends()`, or a callable `(gm, example_inputs) -> callable`.
        fullgraph: raise `GraphBreakError` rather than break the graph.
        dynamic: None makes a size or integer symbolic once it has varied, True from the start (integers that are
            arguments, or in containers that are), False never.
        dynamic_shapes: what is symbolic, said of all inputs at once, by the names of parameters:
            `{"x": ["batch", None, 3], "n": "steps"}`. A name varies, and is one number wherever it stands; None is as
            it is found; a number is always that. Lists, dicts and objects have what is in them. torch's `ShapesSpec`
            and `ParamsSpec` are taken too, with ranges and expressions (`torch.fx.experimental.dynamic_spec`). What
            nothing is said of is None.
        mode: for Inductor: "default", "reduce-overhead", "max-autotune" …
        options: settings of Stator (`stator.config`) and, for Inductor, its own.
        recompile_limit: how many entries a function may have here before it runs eagerly (default 8).
        isolate_recompiles: keep to itself. Otherwise calls of one function that were compiled with equal settings share
            what fits: equal layers that are compiled one by one are traced once.
        disable: return `model` as it is.
        name: shown in reports.

    Returns:
        A callable that behaves like `model`; for an `nn.Module`, an object that shares its attributes and parameters.

    Raises:
        ConfigError: an unknown option. BackendError: an unknown backend. TypeError: `model` is not callable, or
            `dynamic_shapes` is of another kind. ValueError: both `dynamic` and `dynamic_shapes`.
        ConstraintViolationError: by the compiled function, where its inputs are not what `dynamic_shapes` says, or its
            code does not let them be.

    Example:
        >>> compiled = stator.compile(model, backend="eager")
        >>> compiled(x)
    """
    if model is None:
        keywords: dict[str, Any] = {
            "backend": backend, "fullgraph": fullgraph, "dynamic": dynamic, "dynamic_shapes": dynamic_shapes,
            "mode": mode, "options": options, "recompile_limit": recompile_limit,
            "isolate_recompiles": isolate_recompiles, "disable": disable, "name": name,
        }  # fmt: skip
        return functools.partial(compile, **keywords)
    if not callable(model):
        raise TypeError(f"stator.compile() needs a function, a method or a module, not {type(model).__name__}")
    config, rest = _settings(options, recompile_limit)
    if disable or disabled_by_environment():
        _resolve_backend(backend, mode, rest)
        return model
    given = frozenset([*(options or {}), *(["recompile_limit"] if recompile_limit is not None else [])])
    said = _input_sizes(model, dynamic_shapes)
    if said is not None and dynamic is not None:
        raise ValueError("stator.compile: `dynamic` and `dynamic_shapes` can't be specified at the same time.")
    policy: dict[str, Any] = {"fullgraph": fullgraph, "dynamic": dynamic if said is None else said, "given": given}
    settings = {**policy, "name": name, "isolated": isolate_recompiles}
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


def _compiled(model: Any, config: Config, asked: Asked, settings: dict[str, Any]) -> Any:
    """What `compile()` gives; pickles refer to it. `asked` is what the backend is found by."""
    made_by: dict[str, Any] = {"remake": _compiled, "resolve": _resolve_backend}
    return _wrap(model, CompileRegion(config, backend=_resolve_backend(*asked), asked=asked, **made_by, **settings))


def _settings(options: dict[str, Any] | None, recompile_limit: int | None) -> tuple[Config, dict[str, Any]]:
    """Stator's own options apart from those meant for the backend, which sees none of the tracer's."""
    config, rest = current(), dict(options or {})
    if rest.pop("guard_filter_fn", None) is not None:
        warn_once("torch.compile(options={'guard_filter_fn': …}) is not honoured by Stator: all guards are kept")
    own = {f.name for f in dataclasses.fields(config)}
    changes = {name: rest.pop(name) for name in own & rest.keys()}
    if recompile_limit is not None:
        changes["recompile_limit"] = recompile_limit
    return config.replace(**changes), rest


def _input_sizes(model: Any, dynamic_shapes: Any) -> Any:
    torch = torch_layer()
    return None if torch is None else torch.input_sizes(model, dynamic_shapes)


def _resolve_backend(backend: Any, mode: str | None, rest: dict[str, Any]) -> Any:
    torch = torch_layer()
    if torch is None:
        return backend if callable(backend) else None
    return torch.resolve(backend, mode=mode, options=rest)


def _wrap(model: Any, compile_region: CompileRegion) -> Any:
    torch = torch_layer()
    if torch is not None:
        model = torch.innermost(model)
        compiled = torch.compiled_module(model, compile_region)
        if compiled is not None:
            return compiled
    return Compiling(compile_region)(_with_a_frame(model) if isinstance(model, _IN_C) else model)


def substitute_in_graph(original: Any) -> Callable[[F], F]:
    """Decorator: trace this Python function wherever the program calls `original` (a C function, usually)."""

    def decorate(replacement: F) -> F:
        layers().substitute(original, replacement)  # the tracer's own model of `original` is loaded before
        return replacement

    return decorate


def reset() -> None:
    """Forget everything compiled, and set the counters to zero."""
    forget_all()
    STATS.reset()


def stats() -> Stats:
    """What Stator has done since the process began or the last `reset()`."""
    entries = {entry for compile_region in list(REGIONS) for entry in compile_region.entries()}
    return STATS.snapshot(sum(entry.hits for entry in entries))


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
    _needed_torch_layer().route(compile)


def uninstall() -> None:
    """Undo `install()`."""
    _needed_torch_layer().unroute()


def _needed_torch_layer() -> TorchLayer:
    torch = torch_layer()
    if torch is None:
        text = "stator.install() routes torch.compile through Stator, and torch is not installed"
        raise errors.ConfigError(f"{text}: pip install 'stator[torch]'")
    return torch


def list_backends() -> list[str]:
    """The names that `compile(backend=…)` takes."""
    torch = torch_layer()
    return [] if torch is None else torch.list_backends()


__all__ = [
    "compile",
    "errors",
    "generated_source",
    "install",
    "list_backends",
    "reset",
    "stats",
    "uninstall",
]
