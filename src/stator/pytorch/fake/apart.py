"""Functions of torch's that do without the tracer which torch's own code loads beside them.

Some functions of fake tensors and of symbols read a setting of `torch._dynamo`, or name where a tensor comes from by
its classes, and for that import all of it and of `torch._inductor`: half a second and more in every process. So they
are used with other globals: the same code, to which a module that nobody has loaded is what they would find in it by
default. Nothing is put in the place of a module that others could meet.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.fake import origins

if TYPE_CHECKING:
    from stator.pytorch.types import Function

__all__ = ["apart", "apart_methods"]


class _Later:
    """A function of a module that is imported when the function is called."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self, *args: object, **kwargs: object) -> object:
        return getattr(importlib.import_module(self.module), self.name)(*args, **kwargs)


class _Unloaded:
    """A module as it is to the functions while nobody has loaded it: what they need of it, else the module."""

    def __init__(self, name: str, **contents: object) -> None:
        self._name: str
        self.__dict__ = {"_name": name, **contents}

    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module(self._name), name)


def _is_validated() -> bool:
    """Whether each step of torch's reasoning about symbols is to be checked by another solver."""
    asked = internals.symbol_settings.translation_validation
    return bool(asked) and bool(_Later(_VALIDATOR, "translation_validation_enabled")())


_SETTINGS = "torch._dynamo.config"
_SOURCES = "torch._dynamo.source"
_SYMBOLS = "torch.fx.experimental.symbolic_shapes"
_VALIDATOR = "torch.fx.experimental.validator"

#: modules that are not imported for these
_CONTENTS: dict[str, _Unloaded] = {
    # no profiles of custom operators; fake results are remembered by Stator's own memory, not by torch's
    _SETTINGS: _Unloaded(
        _SETTINGS,
        _custom_ops_profile=None,
        automatic_dynamic_exclusion_guard=False,
        fake_tensor_cache_enabled=False,
        fake_tensor_cache_crosscheck_enabled=False,
    ),
    _SOURCES: _Unloaded(_SOURCES, **{name: getattr(origins, name) for name in origins.NAMES}),
    _VALIDATOR: _Unloaded(_VALIDATOR, translation_validation_enabled=_is_validated),
    "sympy": _Unloaded("sympy"),
    _SYMBOLS: _Unloaded(
        _SYMBOLS,
        **{
            name: _Later(_SYMBOLS, name)
            for name in ("compute_unbacked_bindings", "free_unbacked_symbols", "is_symbolic")
        },
    ),
}
#: of these the functions see never more: what one of them has named, another finds again
_OWN = (_SOURCES,)


def _module(name: str) -> types.ModuleType | _Unloaded:
    return importlib.import_module(name) if name in sys.modules and name not in _OWN else _CONTENTS[name]


class _Dynamo:
    """`torch._dynamo`."""

    config = property(lambda self: _module(_SETTINGS))
    source = property(lambda self: _module(_SOURCES))

    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module("torch._dynamo"), name)


class _Torch:
    """`torch`."""

    _dynamo = _Dynamo()

    def __getattr__(self, name: str) -> object:
        return getattr(torch, name)


_TORCH = _Torch()


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    """The `import` statement."""
    if name not in _CONTENTS:
        imported = __import__(name, globals, locals, fromlist, level)
        return _TORCH if imported is torch else imported
    return _module(name) if fromlist or "." not in name else _TORCH


_OTHERS = {"torch": _TORCH, "__builtins__": {**vars(builtins), "__import__": _import}}


def apart(function: Function, **others: object) -> Function:
    """The function, for which torch is what it is here.

    Args:
        function: one written in Python, maybe in wrappers that call it.
        others: further globals that it is to find, of those it has.
    """
    assert isinstance(function, types.FunctionType)
    inner = getattr(function, "__wrapped__", None)
    if inner is None:
        replaced = {name: value for name, value in {**_OTHERS, **others}.items() if name in function.__globals__}
        namespace, closure = {**function.__globals__, **replaced}, function.__closure__
    else:
        namespace, called = function.__globals__, types.CellType(apart(inner, **others))
        closure = tuple(called if cell.cell_contents is inner else cell for cell in function.__closure__ or ())
    made = types.FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def apart_methods(cls: type) -> dict[str, Function]:
    """The methods of a class that import one of the modules, apart."""
    return {
        name: apart(method)
        for name, method in vars(cls).items()
        if isinstance(method, types.FunctionType) and not _names_in(method).isdisjoint(_CONTENTS)
    }


def _names_in(function: Function) -> set[str]:
    """The names that a function uses, those of modules that it imports among them."""
    inner = getattr(function, "__wrapped__", function)
    return set(inner.__code__.co_names) if isinstance(inner, types.FunctionType) else set()
