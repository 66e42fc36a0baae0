"""What `stator.compile(module)` gives: an object that is the module in all respects but being called.

It shares the module's `__dict__`, so that its attributes, its parameters and what assignments do to them are the
module's own. Its class is a subclass of the module's, made once per class.
"""

from __future__ import annotations

import copy
import inspect
import types
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

import torch

from stator._core import Compiled, call_held
from stator.compiler.copies import Compiling, reduced_to
from stator.guards.raw import members
from stator.pytorch.modules.compiled_forward import CompiledForward, assign, own, put
from stator.pytorch.modules.wrapped_state import unwrap_keys, unwrapped

if TYPE_CHECKING:
    from typing import SupportsIndex

    from stator.compiler.region import CompileRegion
    from stator.pytorch.types import Args, Function, Host

__all__ = ["CompiledModule", "compiled_module", "is_compiled_module", "original_of"]

#: held by their instances: they derive from the classes that they are kept for
_classes: weakref.WeakKeyDictionary[type, weakref.ref[type]] = weakref.WeakKeyDictionary()


def compiled_module(model: torch.nn.Module, compile_region: CompileRegion) -> Host:
    """What `stator.compile` gives for an `nn.Module`; None for anything else.

    Args:
        model: what `stator.compile` was given.
        compile_region: the owner of the caches its calls go through.
    """
    if not isinstance(model, torch.nn.Module) or isinstance(model, torch.jit.ScriptModule):
        return None
    original = original_of(model)
    cls = _class_of(type(original))
    made: Host = object.__new__(cls)
    object.__setattr__(made, "__dict__", original.__dict__)
    put(made, "_stator_module", Compiled(original, compile_region.region, type(original).forward))
    assign(made, None)
    return made


def is_compiled_module(module: torch.nn.Module) -> bool:
    """Whether the object is a module that `stator.compile` gave."""
    return issubclass(type(module), CompiledModule)


def original_of(module: torch.nn.Module) -> Host:
    """The module that a compiled one was made of; any other object itself."""
    return module._orig_mod if is_compiled_module(module) else module


class _Signature:
    """`__signature__` of the instances: that of the module. Classes have none."""

    def __get__(self, instance: Host, owner: type) -> object:
        if instance is None:
            raise AttributeError("__signature__")
        return inspect.signature(instance._orig_mod)


class CompiledModule:
    """What all compiled modules have, before their module's class in the MRO."""

    __slots__ = ()
    __signature__ = _Signature()

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Making a compiled module's class is none of the business of the module's class."""

    @property
    def _orig_mod(self) -> torch.nn.Module:
        return own(self, "_stator_module").__wrapped__

    @property
    def _stator_region(self) -> CompileRegion:
        return own(self, "_stator_module").region.owner

    @property
    def dynamo_ctx(self) -> object:
        return Compiling(self._stator_region)

    def __setattr__(self, name: str, value: object) -> None:
        if name == "_orig_mod":
            _keep_original(self, value)
        else:
            super().__setattr__(name, value)

    def load_state_dict(self, state_dict: dict[str, object], *args: object, **kwargs: object) -> object:
        return super().load_state_dict(unwrapped(self, state_dict), *args, **kwargs)  # type: ignore[misc]

    def _load_from_state_dict(
        self, state_dict: dict[str, object], prefix: str, *args: object, **kwargs: object
    ) -> None:
        """The compiled module as part of a module whose state is loaded: `state_dict` is that call's own copy."""
        unwrap_keys(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)  # type: ignore[misc]

    @property
    def __class__(self) -> type:
        return type(self._orig_mod)

    @__class__.setter
    def __class__(self, cls: type) -> None:
        self._orig_mod.__class__ = cls
        with suppress(TypeError):  # of a class with slots of its own this one stays what it is
            vars(object)["__class__"].__set__(self, _class_of(cls))

    def __eq__(self, other: object) -> bool:
        """As its module compares: what torch keeps by modules, as the state of `fully_shard`, is found by both."""
        return self._orig_mod == (other._orig_mod if isinstance(other, CompiledModule) else other)

    def __hash__(self) -> int:
        return hash(self._orig_mod)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Function, Args]:
        return reduced_to(self._orig_mod, self._stator_region)

    def __copy__(self) -> Host:
        return _again(copy.copy(self._orig_mod), self._stator_region)

    def __deepcopy__(self, memo: dict[int, object]) -> Host:
        made = copy.deepcopy(self._orig_mod, memo)
        # A module may refer to what it was compiled to.
        return memo.get(id(self)) or _again(made, self._stator_region)


class _Held(CompiledModule):
    """Its variables, where the module's class has no slots: then `__class__` can be assigned, as modules' can."""

    __slots__ = ("_stator_assigned", "_stator_call", "_stator_module")


def _keep_original(compiled: Host, module: torch.nn.Module) -> None:
    """`compiled._orig_mod = module`: libraries put back what they have taken out."""
    if module is not compiled._orig_mod:
        text = "a compiled module stands for one module: its _orig_mod cannot be another; compile that one instead"
        raise AttributeError(text, name="_orig_mod", obj=compiled)


def _again(module: torch.nn.Module, compile_region: CompileRegion) -> Host:
    """A copy of the module, compiled as the first one was, with caches of its own."""
    return compiled_module(module, compile_region.copy())


_UNUSED = "__jit_unused_properties__"


def _class_of(cls: type) -> type:
    """The class of compiled modules for modules of a class."""
    known = _classes.get(cls)
    found = None if known is None else known()
    if found is None:
        slots = _forwarded_slots(cls)
        namespace: dict[str, object] = {
            "__slots__": _Held.__slots__ if slots else (),
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
        }
        namespace.update(slots)
        # jit.script() would compile the properties of the class.
        own_properties = [name for name, item in vars(CompiledModule).items() if isinstance(item, property)]
        namespace[_UNUSED] = [*getattr(cls, _UNUSED, ()), *own_properties]
        found = type.__new__(type(cls), cls.__name__, (CompiledModule if slots else _Held, cls), namespace)
        type.__setattr__(found, "forward", CompiledForward(cls))
        call_held(found, _plain_call(cls))
        _classes[cls] = weakref.ref(found)
    return found


def _plain_call(cls: type) -> Function:
    """What other tracers find as a compiled module's `__call__` and trace through: the module's own call.

    Calling a compiled module runs no such Python: its type calls what it holds.
    """

    def __call__(self: Host, /, *args: object, **kwargs: object) -> object:
        if torch.compiler.is_dynamo_compiling():
            return cls.__call__(self._orig_mod, *args, **kwargs)
        assigned = own(self, "_stator_assigned")
        return cls.__call__(self, *args, **kwargs) if assigned is None else assigned(*args, **kwargs)

    return __call__


def _forwarded_slots(cls: type) -> dict[str, object]:
    """Variables that the class keeps in `__slots__` and not in `__dict__`."""
    return {
        name: _Forwarded(descriptor)
        for base in reversed(cls.__mro__)
        for name, descriptor in members(base, types.MemberDescriptorType).items()
    }


class _Forwarded:
    """A variable in `__slots__`, read and set on the original."""

    def __init__(self, slot: Host) -> None:
        self.slot = slot

    def __get__(self, instance: Host, owner: type | None = None) -> object:
        return self if instance is None else self.slot.__get__(instance._orig_mod, owner)

    def __set__(self, instance: Host, value: object) -> None:
        self.slot.__set__(instance._orig_mod, value)

    def __delete__(self, instance: Host) -> None:
        self.slot.__delete__(instance._orig_mod)
