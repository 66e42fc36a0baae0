"""From host objects to values and back."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

from stator.guards.guard import Equals, IdIs, SameObject, TypeIs, identity_guard
from stator.guards.raw import may_change_class
from stator.guards.source import ConstSource
from stator.host.version_facts import TUPLES_KEEP_THEIR_HASH, UNHASHABLE_KEYS_ARE_NAMED
from stator.space.cached_results import CachedResults
from stator.space.host_types import Host, HostCallable
from stator.space.operands import refuse_use
from stator.space.protocol import (
    DECIDERS,
    FALSE,
    IMMUTABLE,
    LITERAL_HOOKS,
    MODELS,
    NONE,
    OUTCOME_HOOKS,
    REALISERS,
    TRUE,
    is_immutable,
    model_for,
)
from stator.space.rare import load
from stator.space.reloaded import adopt_type
from stator.space.samples import sample_of
from stator.space.space import Space
from stator.space.value import Constant, Known, Lazy, NotKnown, Raised, Value

if TYPE_CHECKING:
    from stator.guards.source import Source

#: types whose instances are equal when they print equal, so that a guard compares values rather than identities
LITERALS: frozenset[type] = frozenset(
    {int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented)}
)
_SINGLETONS = {None: NONE, True: TRUE, False: FALSE}
IMMUTABLE.update(LITERALS)
IMMUTABLE.update({range, types.CodeType})


class Wrapping(Space):
    """Part of the space: wrap, realise, fresh, exceptions, mutation bookkeeping."""

    # -- existing objects -------------------------------------------------------------------------------------------

    def wrap(self, host: Host, source: Source) -> Value:
        """The value of an object that existed before the trace; nothing is guarded until something uses it."""
        value = Lazy(self, host, source)
        self._unread.append(value)
        return value

    def existing(self, host: Host, expr: str | None = None) -> Value:
        """The value of an object that is what it is for as long as the process lives (a module, a C function …)."""
        known = self._by_id.get(id(host))
        if known is not None:
            return known  # type: ignore[no-any-return]
        return self.realise(host, ConstSource(host, expr or _name_of(host)))

    def realise(self, host: Host, source: Source) -> Value:
        """Look at an existing object: guard its type (or value), and model it."""
        cls = type(host)
        if cls in LITERALS:
            if not source.is_constant:
                symbol = self.symbol(host, source)
                if symbol is not None:
                    return symbol
                self.trace.guard(IdIs(source, host) if host is None else Equals(source, _equal(host)))
            return Constant(host, source)
        if is_immutable(cls):
            realiser = REALISERS.get(cls)
            if realiser is not None:  # equal objects of the type may still differ
                return realiser(self, host, source)
            if not source.is_constant:
                self.trace.guard(Equals(source, host))
            return Constant(host, source)
        known = self._by_id.get(id(host))
        if known is not None:
            if known.source is not source and known.source is not None:
                self.trace.guard(SameObject(source, known.source))
            return known  # type: ignore[no-any-return]
        value = self._realise_new(cls, host, source)
        self._by_id[id(host)] = value
        self._kept.append(host)
        return value

    def symbol(self, host: Host, source: Source) -> Value | None:
        """A symbol for a number that has varied from trace to trace; None where it is to be known."""
        return next((found for hook in LITERAL_HOOKS if (found := hook(self.trace, host, source)) is not None), None)

    def has_changed(self, host: Host) -> bool:
        """Whether the trace has changed an existing list, dict or set, as far as it has met it."""
        known = self._by_id.get(id(host))
        return bool(getattr(known, "changed", False))

    def _realise_new(self, cls: type, host: Host, source: Source) -> Value:
        for base in cls.__mro__:
            if base not in MODELS:
                load(base)
                adopt_type(base)
            realiser = REALISERS.get(base)
            if realiser is not None:
                return realiser(self, host, source)
            model = MODELS.get(base)
            if model is not None:
                return model.from_host(self, host, source)
        raise AssertionError("object has a model")

    def guard_type(self, host: Host, source: Source) -> type:
        """The class of an existing object, guarded: the program may give another one to what is embedded, too."""
        cls = type(host)
        if not source.is_constant or may_change_class(host):
            self.trace.guard(TypeIs(source, cls))
        return cls

    def guard_identity(self, value: Value) -> None:
        """The trace depended on which object this is, not only on what it is like."""
        if value.source is not None:
            self.guard_identity_of(value.source, value.identity(self))

    def guard_identity_of(self, source: Source | None, host: Host) -> None:
        """The trace depended on `host` being what is found at `source`."""
        if source is not None and not source.is_constant:
            self.trace.guard(identity_guard(source, host))

    # -- fresh objects ----------------------------------------------------------------------------------------------

    def fresh(self, host: Host) -> Value:
        """The value of an object the tracer has just computed for real."""
        cls = type(host)
        if is_immutable(cls):
            if host is None or host is True or host is False:
                return _SINGLETONS[host]
            return Constant(host)
        known = self._by_id.get(id(host))
        if known is not None:
            return known  # type: ignore[no-any-return]
        return model_for(cls).from_fresh(self, host)

    def new_list(self, items: list[Value]) -> Value:
        return MODELS[list](items)  # type: ignore[call-arg]

    def new_tuple(self, items: list[Value]) -> Value:
        return MODELS[tuple](items)  # type: ignore[call-arg]

    def new_dict(self, pairs: list[tuple[Value, Value]]) -> Value:
        return MODELS[dict].from_pairs(self, pairs)  # type: ignore[attr-defined, no-any-return]

    def new_set(self, items: list[Value]) -> Value:
        return MODELS[set].from_items(self, items)  # type: ignore[attr-defined, no-any-return]

    # -- known operands ---------------------------------------------------------------------------------------------

    def known(self, value: Value) -> Host:
        """The host object for a value, or the host class NotKnown itself where there is none."""
        try:
            return value.as_host(self)
        except NotKnown:
            return NotKnown

    def sample(self, value: Value) -> Host:
        """Some host object of the value's class, or of one of that name, for wording an error message only."""
        try:
            return value.as_host(self)
        except NotKnown:
            self.type_name(value.cls)  # the words may have it
            # Only C code runs: the constructor of the type that lays the object out.
            cls = value.cls
            made = sample_of(cls)
            if made is not None:
                return made
            native: Host = next(b for b in cls.__mro__ if getattr(b.__dict__.get("__new__"), "__self__", None) is b)
            try:
                if any("__del__" in base.__dict__ for base in cls.__mro__):
                    cls = type(cls.__name__, (native,), {})  # the sample is going to die
                return native.__new__(cls)
            except Exception:
                return type(value.type_name(self), (), {})()

    def identity(self, value: Value) -> Host:
        return value.force().identity(self)

    def key(self, value: Value) -> Host:
        key = value.force().key(self)
        before = self.trace.mutation_count
        hash(key)
        if TUPLES_KEEP_THEIR_HASH and type(key) is tuple and self.trace.mutation_count != before:
            raise refuse_use("hash", "of a tuple whose items have a __hash__ with side effects")
        return key

    def key_as(self, value: Value, role: str) -> Host:
        """The key of what a dict or a set is to have: they may word the error for one without a hash."""
        if not UNHASHABLE_KEYS_ARE_NAMED:
            return self.key(value)
        try:
            return self.key(value)
        except Raised as e:
            if e.value.cls is not TypeError:
                raise
            text = f"cannot use '{self.full_name(value.force().cls)}' as a {role} ({self.str_(self.str(e.value))})"
            raise self.error(TypeError, text) from None

    def int_(self, value: Value) -> int:
        """The host int of an index-like value; a symbol is assumed to be the number that it is."""
        number = self.known(value.force())
        if isinstance(number, int):
            return number
        result = self.index(value)
        return int(self.decide(result))

    def decide(self, value: Value) -> Host:
        """The host value on which control flow depends: known, or assumed of a symbol under a guard."""
        value = value.force()
        if value.symbolic:
            for decider in DECIDERS:
                decided = decider(self.trace, value)
                if decided is not None:
                    return decided
        return value.as_host(self)

    def outcome(self, function: HostCallable, value: Value, *more: Host) -> Host:
        """What a pure function will give for a value that is not known, where a guard can tell; or None."""
        for hook in OUTCOME_HOOKS:
            found = hook(self.trace, function, value.force(), more)
            if found is not None:
                return found
        return None

    def str_(self, value: Value) -> str:
        """The host str of a value that must be one."""
        return value.force().as_host(self)  # type: ignore[no-any-return]

    # -- exceptions -------------------------------------------------------------------------------------------------

    def exception(self, host: BaseException) -> Value:
        """The traced exception for one that a host operation has raised."""
        return MODELS[BaseException].raised_by(self, host)  # type: ignore[attr-defined, no-any-return]

    def error(self, cls: type[BaseException], *args: Host) -> Raised:
        """`raise space.error(TypeError, "…")`: an exception in the traced program; its arguments may be values."""
        args = tuple(arg.host if isinstance(arg, Value) and arg.constant else arg for arg in args)
        if not any(isinstance(arg, Value) for arg in args):
            return Raised(self.exception(cls(*args)))
        raised = self.error(cls)
        values = [arg if isinstance(arg, Value) else self.fresh(arg) for arg in args]
        raised.value.set_args(self, values)  # type: ignore[attr-defined]
        return raised

    # -- mutation ---------------------------------------------------------------------------------------------------

    def mark_mutated(self, value: Value) -> None:
        """`value` is about to be mutated: note it, in order, if it existed before the trace."""
        trace = self.trace
        trace.mutation_count += 1
        if self.has_cached_results:
            trace.extension(CachedResults).keep(value)
        if trace.effects.witness is not None:
            trace.effects.witness.append(value)
        if value.source is not None and trace.effects.mutated(value, trace.finalizers.calls_back):
            trace.stops.soon()


def _equal(host: Host) -> Host:
    """What a guard compares the object with: not bytes themselves, which `sys.getrefcount` would show that it holds."""
    return bytes(memoryview(host)) if type(host) is bytes else host


#: what bears names that C code keeps: reading those runs no code of the program's
_NAMED: tuple[type, ...] = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)
_NAMED += (
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
)
_type_qualname = type.__dict__["__qualname__"].__get__
_type_module = type.__dict__["__module__"].__get__


def plain_name(host: Host) -> str:
    """A name for any object, found without running code of the program's."""
    cls = type(host)
    if issubclass(cls, type):
        return str(_type_qualname(host))
    if cls in _NAMED:
        return str(host.__qualname__)
    if cls is types.ModuleType:
        return str(host.__dict__.get("__name__", "module"))
    return str(_type_qualname(cls))


def _name_of(host: Host) -> str:
    cls = type(host)
    name = plain_name(host)
    if cls is types.ModuleType:
        return name
    if issubclass(cls, type):
        try:
            module = _type_module(host)
        except AttributeError:  # made by `type(…)` in a namespace without `__name__`
            module = None
    else:
        module = getattr(host, "__module__", None) if cls in _NAMED else None
    return f"{module}.{name}" if module else f"<{_type_qualname(cls)}>"


__all__ = ["LITERALS", "Known", "Wrapping", "plain_name"]
