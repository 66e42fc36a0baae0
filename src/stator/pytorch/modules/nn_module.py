"""Modules: instances traced as Python says, with exact models of the few functions that every access goes through.

A module is an ordinary instance. `Module.__getattr__`, `__setattr__` and `__call__` are Python functions of tens of
instructions that run for each parameter and each layer: their models read the same dicts, with the same guards, and
leave to the real code whatever is out of the ordinary (return None; see `protocol.TailCall`).
"""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator._core import CodePolicy, set_code_policy
from stator.models.classes.attr_dict import AttrDict
from stator.models.classes.instance import InstanceValue
from stator.models.containers.dict_ import DictValue
from stator.pytorch import internals
from stator.pytorch.modules.compiled_forward import CompiledForward, compiled_forward, is_torchs, plain_forward
from stator.pytorch.modules.compiled_module import CompiledModule
from stator.pytorch.modules.module_hooks import are_left_to_python
from stator.pytorch.modules.outside import kept_out, runs_outside
from stator.space.attributes import is_generic
from stator.space.protocol import NONE, TailCall, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.space.space import Space

_Module: Any = torch.nn.Module
#: where a module keeps what is not in its `__dict__`, in the order in which `__getattr__` looks
_MEMBERS = internals.MODULE_MEMBERS
_HOOKS = internals.MODULE_HOOKS
_GLOBAL_HOOKS = internals.GLOBAL_HOOKS
_GLOBALS: dict[str, Any] = internals.module_call.__globals__


def _attributes(space: Space, module: Value) -> AttrDict | None:
    """The `__dict__` of a module whose attributes are found in the ordinary way, else None."""
    if not isinstance(module, InstanceValue) or not is_generic(space.host_lookup(module.cls, "__getattribute__")):
        return None
    return module.attr_dict(space)


def _plain_dict(value: Value | None) -> DictValue | None:
    """The value, if it is a dict whose methods nobody has overridden."""
    if value is not None:
        value = value.force()
        if isinstance(value, DictValue) and value.cls in _PLAIN_DICTS:
            return value
    return None


_PLAIN_DICTS = (dict, _GLOBALS["OrderedDict"])


def _find(space: Space, members: DictValue, name: Value) -> Value | None:
    """The item under a name; an empty dict is guarded as such, once for all names."""
    return None if _stays_empty(space, members) else members.find(space, name)


def _stays_empty(space: Space, existing: DictValue) -> bool:
    """Whether the dict is empty, and was so before the trace; guarded."""
    table = existing.table
    return not (table.complete or table.overlay or existing.host) and not table.size(space)


def _getattr(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`Module.__getattr__`: parameters, buffers, modules."""
    if len(args) != 2 or kwargs:
        return None
    module, name = args[0].force(), args[1].force()
    attrs = _attributes(space, module)
    if attrs is None or name.cls is not str:
        return None
    for kind in _MEMBERS:
        members = attrs.get_str(space, kind)
        if members is None:
            continue
        table = _plain_dict(members)
        if table is None:
            return None
        found = _find(space, table, name)
        if found is not None:
            return found
    raise space.error(AttributeError, f"'{module.cls.__name__}' object has no attribute '{name.as_host(space)}'")


def _setattr(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`Module.__setattr__` of what is no parameter, buffer or module: an ordinary attribute."""
    if len(args) != 3 or kwargs:
        return None
    module, name, item = (arg.force() for arg in args)
    if not name.constant or name.cls is not str or item.isa(_MEMBER_CLASSES):
        return None
    attrs = _attributes(space, module)
    if attrs is None or not _is_ordinary(space, attrs, name):
        return None
    space.generic_setattr(module, name.host, item)
    return NONE


_MEMBER_CLASSES = (torch.Tensor, _Module)


def _is_ordinary(space: Space, attrs: AttrDict, name: Value) -> bool:
    """Whether no parameter, module or buffer has the name."""
    for kind in ("_parameters", "_modules", "_buffers"):
        members = attrs.get_str(space, kind)
        if members is None:
            continue
        table = _plain_dict(members)
        if table is None or _find(space, table, name) is not None:
            return False
    return True


def _wrapped_call(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`Module._wrapped_call_impl`, which is `Module.__call__`."""
    if not args or space.known(space.getattr(args[0], "_compiled_call_impl").force()) is not None:
        return None
    if _wants_gradients(space, args[0].force()):
        return None  # the break comes in there, so that what is left to Python is `_call_impl` alone
    return TailCall(space.getattr(args[0], "_call_impl"), args[1:], kwargs)


def _wants_gradients(space: Space, module: Value) -> bool:
    """Whether the module, or all modules, have hooks that the autograd engine calls."""
    attrs = _attributes(space, module)
    if attrs is None:
        return False
    names = space.trace.namespaces.globals_of(_GLOBALS)
    hooks = [attrs.get_str(space, name) for name in _HOOKS if "backward" in name]
    hooks += [names.get_str(space, name) for name in _GLOBAL_HOOKS if "backward" in name]
    return not all(_is_empty(space, table) for table in hooks)


def _call(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`Module._call_impl` without hooks: `forward`."""
    if not args:
        return None
    module = args[0].force()
    attrs = _attributes(space, module)
    if attrs is None:
        return None
    if internals.tracing_state() is not None:
        raise Unsupported(errors.UnsupportedCCall("torch.jit.trace"))
    if _wants_gradients(space, module):
        if are_left_to_python(space, module):
            raise Unsupported(errors.AutogradCall(module.cls.__name__, "it has hooks on its gradients"))
        return None
    forward = _plain_forward(space, module)
    if not all(_is_empty(space, attrs.get_str(space, name)) for name in _HOOKS):
        before, after = (
            kept_out(space, _plain_dict(attrs.get_str(space, name)))
            for name in ("_forward_pre_hooks", "_forward_hooks")
        )
        if before or after:
            runs_outside(space, module)
        if before and after:
            before(space, [], {})  # one break in place of two, and `forward` is a graph of its own
        return None
    names = space.trace.namespaces.globals_of(_GLOBALS)
    if not all(_is_empty(space, names.get_str(space, name)) for name in _GLOBAL_HOOKS):
        return None
    return TailCall(forward, args[1:], kwargs)


def _plain_forward(space: Space, module: Value) -> Value:
    """The `forward` that `_call_impl` finds: of a compiled module, the plain one."""
    if module.isa(CompiledModule):
        return space.call(space.existing(plain_forward), [module], {})
    return space.getattr(module, "forward")


def _forward_of_compiled(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`compiled.forward`, as it is found by the code of the frame in which it stands."""
    instance = args[1].force()
    if not instance.isa(CompiledModule):
        return None
    find = plain_forward if is_torchs(space.trace.frame.globals) else compiled_forward
    return space.call(space.existing(find), [instance], {})


def _is_empty(space: Space, hooks: Value | None) -> bool:
    table = _plain_dict(hooks)
    return table is not None and (_stays_empty(space, table) or not space.truth(table))


def install() -> None:
    """Register the models."""
    register(_Module.__getattr__, _getattr)
    register(_Module.__setattr__, _setattr)
    register(internals.module_wrapped_call, _wrapped_call)
    register(internals.module_call, _call)
    register(CompiledForward.__get__, _forward_of_compiled)
    for code in (internals.module_call.__code__, *internals.module_call.__code__.co_consts):
        if isinstance(code, CodeType):
            # met by itself only where it is left to Python: the engine's hooks are in there
            set_code_policy(code, CodePolicy.SKIP)
