"""Imports: of modules that have been imported already; others break, or are imported before the trace begins anew."""

from __future__ import annotations

import builtins
import importlib.util
import sys
import types
from collections.abc import Iterable
from typing import NoReturn

from stator import errors
from stator.space.globals_ import Globals, made_names
from stator.space.protocol import MODELS, NONE
from stator.space.signals import DoFirst
from stator.space.space import Space
from stator.space.value import Constant, Unsupported, Value

#: the `__import__` of C code, for which IMPORT_NAME looks
_IMPORT = builtins.__import__ if type(builtins.__import__) is types.BuiltinFunctionType else None


def import_name(space: Space, globals_: Globals, name: str, fromlist: Value, level: Value) -> Value:
    """`import name`: known when the module has been imported already, else a break (its body runs for real)."""
    namespaces = space.trace.namespaces
    hook = namespaces.builtins_of(globals_).get_str(space, "__import__")
    if hook is None:
        raise space.error(ImportError, "__import__ not found")
    if space.identity(hook) is not _IMPORT:
        args = [Constant(name), namespaces.globals_of(globals_).value(space), NONE, fromlist, level]
        return space.call(hook, args, {})
    depth = space.known(level)
    full = _resolved(space, globals_, "." * depth + name) if depth else name
    module = loaded(space, full)
    if module is None or _is_initializing(space, module):
        first_import(space, full)
    names = space.known(fromlist)
    if not names:
        top = full if depth else name.partition(".")[0]
        return loaded(space, top) or first_import(space, top)
    import_parts(space, full, module, names)
    return module


def import_parts(space: Space, full: str, module: Value, names: Iterable[object]) -> None:
    """`_handle_fromlist`: of a package, submodules that are no attributes yet are imported."""
    if space.getattr_or_none(module, "__path__") is None:
        return
    for item in names:
        if isinstance(item, str) and space.getattr_or_none(module, item) is None:
            first_import(space, f"{full}.{item}")


def import_from(space: Space, module: Value, name: str) -> Value:
    """`from module import name`."""
    value = space.getattr_or_none(module, name)
    if value is not None:
        return value
    own = space.getattr_or_none(module, "__name__")
    full = f"{'<unknown module name>' if own is None else space.known(own)}.{name}"
    found = loaded(space, full)
    if found is not None:
        return found
    # CPython words the ImportError (circular imports, unknown locations); raised by the real statement.
    raise Unsupported(errors.ImportWithSideEffects(full))


def loaded(space: Space, name: str) -> Value | None:
    """`sys.modules[name]` as the program has left it, or None."""
    found = MODELS[dict].find(space.existing(sys.modules, "sys.modules"), space, Constant(name))  # type: ignore[attr-defined]
    return None if found is None or found.force().cls is type(None) else found.force()


def first_import(space: Space, full: str) -> NoReturn:
    """Have a module imported; a break where that was no use, or where its body could see what is not done yet.

    The program reaches the statement in this very call, with nothing done that the module's body could see.
    """
    trace = space.trace
    recorder = trace.recorder
    if trace.effects or full in trace.done_first or not (recorder is None or recorder.effects.inert):
        raise Unsupported(errors.ImportWithSideEffects(full))
    raise DoFirst(full, lambda: importlib.import_module(full))


def _resolved(space: Space, globals_: Globals, name: str) -> str:
    """The full name of a relative one: `resolve_name` of `import.c`."""
    if made_names(globals_) is not None:
        raise Unsupported(errors.UnsupportedUse("__import__", "of a relative name without a module's globals"))
    names = space.trace.namespaces.globals_of(globals_)
    said = (names.get_str(space, each) for each in ("__package__", "__name__"))
    package, own = ("" if value is None else space.known(value) or "" for value in said)
    return importlib.util.resolve_name(name, package or own.rpartition(".")[0])


def _is_initializing(space: Space, module: Value) -> bool:
    """Whether another thread is importing it: one that has been imported stays so."""
    return bool(getattr(getattr(space.identity(module), "__spec__", None), "_initializing", False))
