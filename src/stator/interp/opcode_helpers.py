"""What opcodes need besides the space: arguments of calls, imports, functions and slices."""

from __future__ import annotations

import builtins
import importlib.util
import sys
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from stator import errors
from stator.host.version_facts import HANDLED_EXCEPTION_CHANGES_MERGE_ERROR
from stator.models.functions.function import FunctionValue
from stator.space.globals_ import MadeGlobals, name_in
from stator.space.protocol import FALSE, MODELS, NONE, TRUE
from stator.space.signals import DoFirst
from stator.space.value import Constant, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Frame, SideEffects
    from stator.space.space import Space


#: the `__import__` of C code, for which IMPORT_NAME looks
_IMPORT = builtins.__import__ if type(builtins.__import__) is types.BuiltinFunctionType else None


class OpcodeHelpers:
    """Part of the trace: the helpers of opcodes."""

    space: Space
    effects: SideEffects
    recorder: Any
    patterns: dict[type, int]
    #: what was done for real before this trace began
    done_first: set[Any]
    globals_of: Callable[[dict[str, Any]], Any]
    builtins_of: Callable[[dict[str, Any]], Any]

    def is_none(self, value: Value) -> bool:
        """`value is None`."""
        value = value.force()
        return type(value) is Constant and value.host is None

    def is_builtin(self, value: Value, host: Any) -> bool:
        """Whether the value is this builtin object."""
        return self.space.identity(value) is host

    def new_slice(self, start: Value, stop: Value, step: Value) -> Value:
        return MODELS[slice](start, stop, step)  # type: ignore[call-arg]

    def matches_flag(self, value: Value, flag: int) -> Value:
        """Whether the class counts as a sequence or mapping in patterns (`Py_TPFLAGS_SEQUENCE`, `_MAPPING`)."""
        cls = value.force().cls
        registered = next((self.patterns[base] for base in cls.__mro__ if base in self.patterns), cls.__flags__)
        return TRUE if registered & flag else FALSE

    # -- arguments --------------------------------------------------------------------------------------------------

    def star_items(self, iterable: Value) -> list[Value]:
        """`[*iterable]`, with CPython's message for what is not iterable."""
        try:
            return self.space.unpack(iterable)
        except Raised as e:
            if issubclass(e.value.cls, TypeError) and not _iterable(self.space, iterable):
                name = iterable.force().type_name(self.space)
                raise self.space.error(TypeError, f"Value after * must be an iterable, not {name}") from None
            raise

    def star_args(self, positional: Value, function: Value) -> list[Value]:
        """`f(*positional)`."""
        try:
            return self.space.unpack(positional)
        except Raised as e:
            if issubclass(e.value.cls, TypeError) and not _iterable(self.space, positional):
                name = positional.force().type_name(self.space)
                text = f"{_shown(self.space, function)} argument after * must be an iterable, not {name}"
                raise self.space.error(TypeError, text) from None
            raise

    def keyword_args(self, keywords: Value, function: Value) -> dict[str, Value]:
        """`f(**keywords)`."""
        keywords = keywords.force()
        items = getattr(keywords, "str_items", None)
        if items is not None:
            return items(self.space)  # type: ignore[no-any-return]
        merged = self.space.new_dict([])
        self.merge_keywords(merged, keywords, function)
        return merged.str_items(self.space)  # type: ignore[attr-defined, no-any-return]

    def merge_keywords(self, target: Value, mapping: Value, function: Value) -> None:
        """`f(**mapping)` into the dict of keywords: no key twice, all of them strings."""
        space = self.space
        keys = space.getattr_or_none(mapping, "keys")
        if keys is None:
            name = mapping.force().type_name(space)
            text = f"{_shown(space, function)} argument after ** must be a mapping, not {name}"
            raise space.error(TypeError, text)
        for key in space.iterate(space.call(keys, [], {})):
            if space.truth(space.contains(target, key)):
                if HANDLED_EXCEPTION_CHANGES_MERGE_ERROR and space.trace.frame.being_handled():
                    raise space.error(KeyError, space.known(key))
                text = f"{_shown(space, function)} got multiple values for keyword argument '{space.known(key)}'"
                raise space.error(TypeError, text)
            target.tp_setitem(space, key, space.getitem(mapping, key))  # type: ignore[attr-defined]

    # -- functions --------------------------------------------------------------------------------------------------

    def new_function(self, frame: Frame, code: Value) -> Any:
        """`MAKE_FUNCTION`: a function of the frame's globals."""
        host: types.CodeType = code.as_host(self.space)
        made = FunctionValue(host, frame.globals, host.co_name)
        if type(frame.globals) is MadeGlobals:
            made.fields["__module__"] = name_in(self.space, frame.globals, "__name__") or NONE
        return made

    # -- imports ----------------------------------------------------------------------------------------------------

    def import_name(self, frame: Frame, name: str, fromlist: Value, level: Value) -> Value:
        """`import name`: known when the module has been imported already, else a break (its body runs for real)."""
        hook = self.builtins_of(frame.globals).get_str(self.space, "__import__")
        if not self.is_builtin(hook, _IMPORT):
            args = [Constant(name), self.globals_of(frame.globals).value(self.space), NONE, fromlist, level]
            return self.space.call(hook, args, {})
        depth = self.space.known(level)
        full = self._resolved(frame, "." * depth + name) if depth else name
        module = self.loaded(full)
        if module is None or self._is_initializing(module):
            self.first_import(full)
        names = self.space.known(fromlist)
        if not names:
            top = full if depth else name.partition(".")[0]
            return self.loaded(top) or self.first_import(top)
        self.import_parts(full, module, names)
        return module

    def import_parts(self, full: str, module: Value, names: Iterable[Any]) -> None:
        """`_handle_fromlist`: of a package, submodules that are no attributes yet are imported."""
        if self.space.getattr_or_none(module, "__path__") is None:
            return
        for item in names:
            if isinstance(item, str) and self.space.getattr_or_none(module, item) is None:
                self.first_import(f"{full}.{item}")

    def _resolved(self, frame: Frame, name: str) -> str:
        """The full name of a relative one: `resolve_name` of `import.c`."""
        if type(frame.globals) is MadeGlobals:
            raise Unsupported(errors.UnsupportedUse("__import__", "of a relative name without a module's globals"))
        said = (self.globals_of(frame.globals).get_str(self.space, each) for each in ("__package__", "__name__"))
        package, own = ("" if value is None else self.space.known(value) or "" for value in said)
        return importlib.util.resolve_name(name, package or own.rpartition(".")[0])

    def _is_initializing(self, module: Value) -> bool:
        """Whether another thread is importing it: one that has been imported stays so."""
        return bool(getattr(getattr(self.space.identity(module), "__spec__", None), "_initializing", False))

    def loaded(self, name: str) -> Value | None:
        """`sys.modules[name]` as the program has left it, or None."""
        modules: Any = self.space.existing(sys.modules, "sys.modules")
        found = modules.find(self.space, Constant(name))
        return None if found is None or found.force().cls is type(None) else found.force()

    def first_import(self, full: str) -> NoReturn:
        """Have a module imported; a break where that was no use, or where its body could see what is not done yet.

        The program reaches the statement in this very call, with nothing done that the module's body could see.
        """
        recorded = self.recorder
        if self.effects or full in self.done_first or not (recorded is None or recorded.inert):
            raise Unsupported(errors.ImportWithSideEffects(full))
        raise DoFirst(full, lambda: importlib.import_module(full))

    def import_from(self, module: Value, name: str) -> Value:
        """`from module import name`."""
        space = self.space
        value = space.getattr_or_none(module, name)
        if value is not None:
            return value
        own = space.getattr_or_none(module, "__name__")
        full = f"{'<unknown module name>' if own is None else space.known(own)}.{name}"
        found = self.loaded(full)
        if found is not None:
            return found
        # CPython words the ImportError (circular imports, unknown locations); raised by the real statement.
        raise Unsupported(errors.ImportWithSideEffects(full))


def _iterable(space: Space, value: Value) -> bool:
    value = value.force()
    return space.special(value, "__iter__") is not None or space.special(value, "__getitem__") is not None


def _shown(space: Space, function: Value) -> str:
    """How `_PyObject_FunctionStr` names a callable in error messages."""
    function = function.force()
    name = space.getattr_or_none(function, "__qualname__")
    if name is None:
        return function.describe()
    module = space.getattr_or_none(function, "__module__")
    prefix = space.known(module) if module is not None else None
    text = str(space.known(name))
    return f"{prefix}.{text}()" if prefix and prefix != "builtins" else f"{text}()"
