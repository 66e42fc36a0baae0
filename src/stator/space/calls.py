"""Calling: every callable's `tp_call`, and the dispatch of builtin callables to their models."""

from __future__ import annotations

import types

from stator import errors
from stator._core import has_buffer
from stator.guards.callable_names import callable_name
from stator.space.attributes import is_generic
from stator.space.deferred import DeferredNumber
from stator.space.host_types import Host
from stator.space.operators import BINARY, COMPARE
from stator.space.protocol import NOT_IMPLEMENTED, ask_hooks, bad_call, handler_of, is_pure
from stator.space.recursion import nested
from stator.space.reloaded import adopt
from stator.space.space import Space
from stator.space.value import Constant, Known, NotKnown, Unsupported, Value


class Calls(Space):
    """Part of the space: call, call_builtin, call_method."""

    def call(
        self, function: Value, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool = False
    ) -> Value:
        """`function(*args, **kwargs)`.

        `in_tail_position`: the result goes unchanged onto the stack of the frame whose instruction asked for it, so
        that a graph break inside the callee can be resumed in every frame of the chain.
        """
        function = function.force()
        quick = getattr(function, "call", None)
        if quick is not None:
            return quick(self, args, kwargs, in_tail_position)  # type: ignore[no-any-return]
        slot = self.special(function, "__call__")
        if slot is None:
            name, hint = function.type_name(self), function.call_hint(self)
            raise self.error(TypeError, f"'{name}' object is not callable{hint}")
        with nested(self, " while calling a Python object"):
            return self.call(slot, [function, *args], kwargs, in_tail_position)

    def call_builtin(self, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a host callable: by its model, else a higher layer's, else for real on known operands, else break.

        Where none of them takes a symbol, the trace is for the number that it is: `decimal.Decimal(n)`.
        """
        before = self.trace.mutation_count
        try:
            return self._call_builtin(host, args, kwargs)
        except (NotKnown, Unsupported) as e:
            if isinstance(e, Unsupported) and not isinstance(e.brk, errors.UnsupportedCCall):
                raise
            values = [arg.force() for arg in (*args, *kwargs.values())]
            if self.trace.mutation_count != before or not any(value.symbolic for value in values):
                raise
            if any(isinstance(value, DeferredNumber) for value in values):
                raise  # nobody knows it
        known = [Constant(self.decide(value)) if value.symbolic else value for value in values]
        return self._call_builtin(host, known[: len(args)], dict(zip(kwargs, known[len(args) :], strict=True)))

    def _call_builtin(self, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value:
        handler = handler_of(host)
        if handler is not None:
            result = handler(self, args, kwargs)
            if result is not None:
                return result
        result = ask_hooks(self, host, args, kwargs)
        if result is not None:
            return result
        if is_pure(host):
            try:
                return self.run_known(host, args, kwargs)
            except NotKnown:
                pass
            result = self.immutable_fallback(host, args) or self.call_on_proxies(host, args, kwargs)
            if result is not None:
                return result
        if adopt(host):
            return self.call_builtin(host, args, kwargs)
        # Such a call is rejected before it does anything (the first argument of a class method is a class).
        owner = getattr(host, "__objclass__", None) if type(host) is not types.ClassMethodDescriptorType else None
        if owner is not None and args and not args[0].force().isa(owner):
            return bad_call(self, host, args, kwargs)
        if is_generic(host):
            return self._generic_slot(host, args, kwargs)
        raise Unsupported(errors.UnsupportedCCall(callable_name(host, args[0].force().cls if args else None)))

    def _generic_slot(self, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """The slot of attribute access under the name of another type: that of object."""
        own: Host = vars(object)[host.__name__]
        if kwargs or len(args) != (3 if host.__name__ == "__setattr__" else 2):
            return bad_call(self, host, args, kwargs)
        return self.call_builtin(own, args, {})

    def immutable_fallback(self, host: Host, args: list[Value]) -> Value | None:
        """A binary slot of an immutable builtin type, met with an operand of an unrelated class: NotImplemented."""
        owner: Host = getattr(host, "__objclass__", None)
        name = getattr(host, "__name__", "")
        if len(args) == 2 and name == "__add__" and issubclass(owner, (str, bytes)):
            # `sq_concat` has the last word, and raises, unless there are bytes to be had.
            if has_buffer(args[1].force().cls):
                return None
            return self.run_known(host, [Known(self.sample(arg)) for arg in args])
        if len(args) != 2 or name not in _BINARY_SLOTS or getattr(owner, "__module__", "") != "builtins":
            return None  # others may take what they can convert: a Decimal compares itself with any Rational
        other = args[1].force()
        formats = name == "__mod__" and issubclass(owner, (str, bytes, bytearray))
        if not formats and not other.isa(_OPERANDS.get(owner, (owner, int, float, complex))):
            return NOT_IMPLEMENTED
        return None

    def call_method(self, value: Value, name: str, *args: Value) -> Value:
        """`value.name(*args)`."""
        return self.call(self.getattr(value, name), list(args), {})

    def isinstance_of(self, value: Value, cls: type) -> bool:
        return value.force().isa(cls)


#: what the slots of numbers take: `1 - np.float64(2)` is one of `float`, which `int` leaves to the other operand
_OPERANDS: dict[type, tuple[type, ...]] = {int: (int,), bool: (int,), float: (int, float)}


def _binary_slots() -> frozenset[str]:
    names = {n for entry in BINARY.values() for n in entry[1:]} | {n for entry in COMPARE.values() for n in entry[1:]}
    return frozenset(names | {"__divmod__", "__rdivmod__"})


_BINARY_SLOTS = _binary_slots()
