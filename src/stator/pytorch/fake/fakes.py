"""torch's fake tensor mode, without the tracer that torch's own code loads beside it.

`FakeTensorMode` reads two settings of `torch._dynamo`, and for that imports all of it and of `torch._inductor`, and
sympy: more than a second in every process. So the five functions that do it are used with other globals: the same
code, for which `torch._dynamo`, while nobody has loaded it, is what the settings are by default. Nothing is put in the
place of a module that others could meet.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import logging
import sys
import types
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.fake.direct import run_directly
from stator.pytorch.fake.failure import made_fake
from stator.pytorch.fake.modes import Mode
from stator.pytorch.state.disabling import spare_references

if TYPE_CHECKING:
    from types import ModuleType

    import torch.fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.pytorch.types import Args, Fake, Function, Kwargs, Nested, Operator

__all__ = ["FakeMode", "let_go"]


class _Unnamed(internals.Source):
    """Where a tensor with no symbols in it comes from: nobody asks."""

    @property
    def _name_template(self) -> str:
        return "a tensor"

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


_UNNAMED = _Unnamed()


class _NoSuchSource:
    """The class of a source that there are no instances of."""


class _Later:
    """A function of a module that is imported when the function is called."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self, *args: object, **kwargs: object) -> object:
        return getattr(importlib.import_module(self.module), self.name)(*args, **kwargs)


class _Unloaded:
    """A module as it is to the functions below while nobody has loaded it: what they need of it, else the module."""

    def __init__(self, name: str, **contents: object) -> None:
        self._name: str
        self.__dict__ = {"_name": name, **contents}

    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module(self._name), name)


_SETTINGS = "torch._dynamo.config"
_SOURCES = "torch._dynamo.source"
_SYMBOLS = "torch.fx.experimental.symbolic_shapes"

#: modules that are not imported for these
_CONTENTS: dict[str, _Unloaded] = {
    # no profiles of custom operators; fake results are remembered by Stator's own memory, not by torch's
    _SETTINGS: _Unloaded(
        _SETTINGS,
        _custom_ops_profile=None,
        fake_tensor_cache_enabled=False,
        fake_tensor_cache_crosscheck_enabled=False,
    ),
    _SOURCES: _Unloaded(
        _SOURCES,
        ConstantSource=lambda name: _UNNAMED,
        AttrSource=lambda base, member: _UNNAMED,
        RandomValueSource=_NoSuchSource,
    ),
    "sympy": _Unloaded("sympy"),
    _SYMBOLS: _Unloaded(
        _SYMBOLS,
        **{name: _Later(_SYMBOLS, name) for name in ("compute_unbacked_bindings", "free_unbacked_symbols")},
    ),
}


def _module(name: str) -> ModuleType | _Unloaded:
    return importlib.import_module(name) if name in sys.modules else _CONTENTS[name]


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


class _Traceback:
    """`traceback`, for which there is no stack: a mode would remember it, and with it the frames' tensors."""

    @staticmethod
    def extract_stack() -> list[object]:
        return []


class _Log:
    """torch's log, which is not told of operations that fail: the error is the program's, and raised there."""

    def __getattr__(self, name: str) -> object:
        return getattr(logging.getLogger(internals.fake_tensor.__name__), "debug" if name == "exception" else name)


_OTHERS = {
    "log": _Log(),
    # In a transform torch fails to show a tensor, and leaves the thread's dispatch state behind.
    "render_call": lambda function, args, kwargs: str(function),
    "torch": _TORCH,
    "traceback": _Traceback,
    "__builtins__": {**vars(builtins), "__import__": _import},
}


def _apart(function: Function) -> Function:
    """The function, for which torch is what it is here."""
    assert isinstance(function, types.FunctionType)
    others = {name: value for name, value in _OTHERS.items() if name in function.__globals__}
    made = types.FunctionType(
        function.__code__,
        {**function.__globals__, **others},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


class _Meta(internals.MetaConverter):
    meta_tensor = _apart(internals.MetaConverter.meta_tensor)


class _Converter(internals.FakeTensorConverter):
    from_real_tensor = _apart(internals.FakeTensorConverter.from_real_tensor)


_prepare = functools.cache(spare_references)


class FakeMode(Mode, internals.FakeTensorMode):
    """A fake tensor mode that remembers no results, and not where it was made."""

    #: their rules are found by the very class of the mode
    supports_higher_order_operators = True

    _initialise = _apart(internals.FakeTensorMode.__init__)
    _dispatch_impl = _apart(internals.FakeTensorMode._dispatch_impl)
    validate_and_convert_non_fake_tensors = _apart(internals.FakeTensorMode.validate_and_convert_non_fake_tensors)

    def __init__(self, shape_env: ShapeEnv | None = None) -> None:
        _prepare()
        self._initialise(shape_env=shape_env)
        self.cache_enabled = False
        self.fake_tensor_converter.__class__ = _Converter
        self.fake_tensor_converter.meta_converter.__class__ = _Meta

    def __torch_dispatch__(
        self, func: Operator, types: object, args: Args = (), kwargs: Kwargs | None = None
    ) -> Nested:
        if isinstance(func, internals.HigherOrderOperator) and func not in internals.operators_with_fakes:
            rule = func.python_key_table.get(internals.FakeTensorMode)
            if rule is None:
                raise NotImplementedError(f"there is no rule for fake tensors in {func.name()}")
            return rule(self, *args, **(kwargs or {}))
        made = run_directly(self, func, args, kwargs or {})
        return self.dispatch(func, types, args, kwargs or {}) if made is NotImplemented else made

    def of(self, tensor: torch.Tensor, **symbolic: object) -> Fake:
        """The fake tensor of an existing one, with its sizes as they are, unless `symbolic` says otherwise."""
        # Of a tensor that comes from somewhere torch takes no number as known.
        how: Any = symbolic or {"static_shapes": True, "source": _UNNAMED, "trace": False}
        return made_fake(lambda: self.from_tensor(tensor, **how))

    def admit(self, shape_env: ShapeEnv | None) -> None:
        """From now on there may be symbols."""
        self.shape_env = shape_env
        self.static_shapes = False


def let_go(mode: internals.FakeTensorMode) -> None:
    """The mode meets no more existing tensors: it watches none any more, as torch does not swap tensors that are."""
    mode.fake_tensor_converter.meta_converter.describer.lookup_tensor.clear()
