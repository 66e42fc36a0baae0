"""The layers that the first `compile()` loads, and not `import stator`: the tracer, and what is made for torch."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from stator import errors
from stator._core import set_miss_handler
from stator.host.collector import paused


class TorchLayer(NamedTuple):
    """What the API calls of the layers that import torch."""

    resolve: Callable[..., Any]
    list_backends: Callable[[], list[str]]
    innermost: Callable[[Any], Any]
    compiled_module: Callable[[Any, Any], Any]
    input_sizes: Callable[[Any, Any], Any]
    route: Callable[[Callable[..., Any]], None]
    unroute: Callable[[], None]


class Layers(NamedTuple):
    """What the API calls of the layers that are loaded late; `torch` is None where torch is not installed."""

    substitute: Callable[[Any, Callable[..., Any]], None]
    torch: TorchLayer | None


_layers: Layers | None = None
_failure: BaseException | None = None
_loading = threading.RLock()


def layers() -> Layers:
    """The tracer and the torch layer: loaded now, if they have not been. Where that has failed, it fails again."""
    if _layers is None:
        with _loading, paused():
            return _loaded()
    return _layers


def torch_layer() -> TorchLayer | None:
    """What is made for torch, or None without torch."""
    return layers().torch


def _loaded() -> Layers:
    """The layers, whole or not at all."""
    global _layers, _failure
    if _layers is not None:
        return _layers  # another thread has done it
    if _failure is None:
        try:
            _layers = _load()
            return _layers
        except BaseException as e:
            _failure = e
            if not isinstance(e, Exception):
                raise
    if isinstance(_failure, errors.InternalError):
        raise errors.InternalError(*_failure.args)  # it says all that there is to say
    text = f"Stator could not be set up in this process: {type(_failure).__name__}: {_failure}"
    raise errors.InternalError(text) from _failure


def _load() -> Layers:
    # For the time that `import stator` takes: with the models, the tracer is two hundred files.
    from stator.compiler import mark_models
    from stator.compiler.miss import on_miss
    from stator.report import progress

    if "torch" in sys.modules:
        present = sys.modules["torch"] is not None
    else:
        present = importlib.util.find_spec("torch") is not None
    torch = _load_torch_layer() if present else None
    set_miss_handler(on_miss)
    progress.watch()
    return Layers(mark_models.substitute, torch)


def _load_torch_layer() -> TorchLayer:
    # For the same reason: importing torch takes seconds. A program without tensors never does.
    from stator import pytorch

    pytorch.install()  # before others are imported that touch a private name of torch
    from stator import backends
    from stator.pytorch.modules.compiled_module import compiled_module
    from stator.pytorch.shapes.input_sizes import input_sizes
    from stator.pytorch.state import other_tracers, torch_compile

    return TorchLayer(
        resolve=backends.resolve,
        list_backends=backends.list_backends,
        innermost=other_tracers.innermost,
        compiled_module=compiled_module,
        input_sizes=input_sizes,
        route=torch_compile.install,
        unroute=torch_compile.uninstall,
    )
