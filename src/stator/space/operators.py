"""Operators: `Objects/abstract.c` and `do_richcompare`, generically."""

from __future__ import annotations

import _warnings
import collections
import operator
import sys
import types
from collections.abc import Callable

from stator import errors
from stator._core import call_within
from stator.guards.callable_names import callable_name
from stator.guards.raw import is_heap_type
from stator.host.version_facts import INVERTED_BOOL_WARNS, NOT_IMPLEMENTED_HAS_NO_TRUTH
from stator.host.words import error_words
from stator.space.attributes import MISSING
from stator.space.facts import fixed
from stator.space.host_types import Host, HostCallable
from stator.space.identity.aliasing import ShownAddresses, separate
from stator.space.operands import strict_subclass
from stator.space.protocol import AMBIENT, FALSE, NONE, NOT_IMPLEMENTED, RESTRICTED, TRUE, is_pure
from stator.space.signals import DoFirst
from stator.space.space import Space
from stator.space.value import CACHED, UNLIKE, Constant, NotKnown, Raised, Unsupported, Value
from stator.space.warning_trap import TrappedWarning, call_trapping_warnings, left_to_run_time

#: symbol → (host function, method, reflected method)
BINARY: dict[str, tuple[Callable[[Host, Host], Host], str, str]] = {
    "+": (operator.add, "__add__", "__radd__"),
    "-": (operator.sub, "__sub__", "__rsub__"),
    "*": (operator.mul, "__mul__", "__rmul__"),
    "@": (operator.matmul, "__matmul__", "__rmatmul__"),
    "/": (operator.truediv, "__truediv__", "__rtruediv__"),
    "//": (operator.floordiv, "__floordiv__", "__rfloordiv__"),
    "%": (operator.mod, "__mod__", "__rmod__"),
    "**": (operator.pow, "__pow__", "__rpow__"),
    "<<": (operator.lshift, "__lshift__", "__rlshift__"),
    ">>": (operator.rshift, "__rshift__", "__rrshift__"),
    "&": (operator.and_, "__and__", "__rand__"),
    "|": (operator.or_, "__or__", "__ror__"),
    "^": (operator.xor, "__xor__", "__rxor__"),
}
INPLACE: dict[str, str] = {f"{symbol}=": f"__i{entry[1][2:]}" for symbol, entry in BINARY.items()}
_INPLACE_FUNCTIONS = {symbol: getattr(operator, method) for symbol, method in INPLACE.items()}
#: symbol → (host function, method, method of the swapped comparison)
COMPARE: dict[str, tuple[Callable[[Host, Host], Host], str, str]] = {
    "<": (operator.lt, "__lt__", "__gt__"),
    "<=": (operator.le, "__le__", "__ge__"),
    "==": (operator.eq, "__eq__", "__eq__"),
    "!=": (operator.ne, "__ne__", "__ne__"),
    ">": (operator.gt, "__gt__", "__lt__"),
    ">=": (operator.ge, "__ge__", "__le__"),
}
UNARY: dict[str, tuple[Callable[[Host], Host], str, str]] = {
    "-": (operator.neg, "__neg__", "-"),
    "+": (operator.pos, "__pos__", "+"),
    "~": (operator.invert, "__invert__", "~"),
    "abs": (abs, "__abs__", "abs()"),
}
#: builtin sequences fill `sq_concat`/`sq_repeat`, which CPython tries after the right operand's `nb_` slots
_SEQUENCES = (list, tuple, str, bytes, bytearray, collections.deque)

#: what is said of None where a container is wanted
_NO_CONTAINER = error_words(operator.contains, None, 1)
#: what is added to the error for `print >> file`, where that is so
_PRINT_HINT = error_words(operator.rshift, print, 3).removeprefix(error_words(operator.rshift, len, 3))
_INVERTED_BOOL = (
    "Bitwise inversion '~' on bool is deprecated. This returns the bitwise inversion of the underlying int object and "
    "is usually not what you expect from the negation of a bool. Use the 'not' operator for boolean negation or "
    "~int(x) for the bitwise inversion of the underlying int."
)
#: types of numbers, which have no operators that act in place
_NUMBERS = frozenset({int, float, complex, bool})
_SEQUENCE_SLOTS = {"__len__", "__getitem__", "__contains__"}


class Operators(Space):
    """Part of the space: unary, binary and in-place operators, comparison, truth, length, items, hash."""

    def run_known(self, function: HostCallable, args: list[Value], kwargs: dict[str, Value] | None = None) -> Value:
        """Let CPython itself compute a pure function of known operands; raises NotKnown where one is not."""
        self.computing = True
        try:
            hosts = [a.as_host(self) for a in args]
            named = {k: v.as_host(self) for k, v in kwargs.items()} if kwargs else {}
        finally:
            self.computing = False
        for host in hosts:
            if type(host) in AMBIENT:
                AMBIENT[type(host)](self)
        if id(function) in RESTRICTED:
            RESTRICTED[id(function)](self, hosts, named)
        return self.fresh(self.run_for_real(function, hosts, named))

    def run_for_real(self, function: HostCallable, hosts: list[Host], named: dict[str, Host]) -> Host:
        """What CPython itself computes of host objects; what it raises is raised in the program."""
        modules = len(sys.modules)
        result = self._run(function, hosts, named)
        if len(sys.modules) != modules:
            self.imported_by(function)
        return result

    def _run(self, function: HostCallable, hosts: list[Host], named: dict[str, Host]) -> Host:
        calls = self.trace.calls
        depth = calls.recursion_limit - calls.depth
        call: HostCallable = call_trapping_warnings
        if self.compute is not None:
            hosts, function = [function, *hosts], self.compute
        while True:
            try:
                return call(depth, function, *hosts, **named)
            except TrappedWarning as e:
                left_to_run_time(self, [e.category], repr(function))
                call = call_within
            except Exception as e:
                raise Raised(self.exception(e)) from None

    def imported_by(self, function: HostCallable) -> None:
        """What CPython has computed has imported modules, a codec perhaps: the trace shall find them from the start."""
        what = f"imports of {function}"
        if what not in self.trace.done_first:
            raise DoFirst(what, lambda: None)

    def binary(self, symbol: str, left: Value, right: Value, in_tail_position: bool = False) -> Value:
        """`left symbol right`, or the augmented assignment when the symbol ends in `=`."""
        left, right = left.force(), right.force()
        if symbol in INPLACE:
            return self._inplace(symbol, left, right)
        function, method, reflected = BINARY[symbol]
        if left.constant and right.constant and not (left.selects or right.selects):
            return self._of_constants(function, left, right)
        result = self._binary_slots(method, reflected, left, right)
        if result is NOT_IMPLEMENTED:
            shown = "** or pow()" if symbol == "**" else symbol
            raise self._operand_error(shown, left, right)
        return result

    def _of_constants(self, function: Callable[[Host, Host], Host], left: Value, right: Value) -> Value:
        """As `run_known`; what numbers compute calls nothing that could meet the recursion limit or import a module."""
        if left.cls not in _NUMBERS or right.cls not in _NUMBERS:
            return self.run_known(function, [left, right])
        try:
            result = function(left.host, right.host)
        except Exception as e:
            raise Raised(self.exception(e)) from None
        return self.fresh(result)

    def _inplace(self, symbol: str, left: Value, right: Value) -> Value:
        if left.constant and right.constant and left.cls in _NUMBERS:
            return self._of_constants(_INPLACE_FUNCTIONS[symbol], left, right)
        _, method, reflected = BINARY[symbol[:-1]]
        slot = self.special(left, INPLACE[symbol])
        if slot is not None:
            if self._only_sequence(left.cls, method, reflected) and self._is_number_method(right.cls, reflected):
                result: Value = self._try(right, reflected, left)
                if result is not NOT_IMPLEMENTED:
                    return result
            self._check_repeat(INPLACE[symbol], slot, right)
            result = self.call(slot, [left, right], {}).force()
            if not self.is_not_implemented(result):
                return result
        if left.constant and right.constant and not (left.selects or right.selects):
            return self.run_known(_INPLACE_FUNCTIONS[symbol], [left, right])
        result = self._binary_slots(method, reflected, left, right)
        if result is NOT_IMPLEMENTED:
            raise self._operand_error("**=" if symbol == "**=" else symbol, left, right)
        return result

    def _binary_slots(self, method: str, reflected: str, left: Value, right: Value) -> Value:
        """`binary_op1` then the sequence slots: reflected first where the right class is a subclass that overrides."""
        lcls, rcls = left.cls, right.cls
        if self._only_sequence(lcls, method, reflected):
            result: Value = NOT_IMPLEMENTED
            if self._is_number_method(rcls, reflected):
                result = self._try(right, reflected, left)
            return self._try(left, method, right) if result is NOT_IMPLEMENTED else result
        if rcls is not lcls and self.derives(rcls, lcls):
            ours, theirs = self.lookup(lcls, reflected), self.lookup(rcls, reflected)
            if theirs is not None and theirs is not ours:
                result = self._try(right, reflected, left)
                return self._try(left, method, right) if result is NOT_IMPLEMENTED else result
        result = self._try(left, method, right)
        if result is NOT_IMPLEMENTED and (rcls is not lcls or not self._is_number_method(rcls, reflected)):
            result = self._try(right, reflected, left)
        return result

    def _only_sequence(self, cls: type, method: str, reflected: str) -> bool:
        """Whether it adds or multiplies by its sequence slot alone."""
        names = (method, reflected)
        return (
            method in ("__add__", "__mul__")
            and issubclass(cls, _SEQUENCES)
            and not any(self._is_number_method(cls, name) for name in names)
        )

    def _is_number_method(self, cls: type, name: str) -> bool:
        """Whether the method fills a number's slot: that of a sequence written in C fills the sequence slot."""
        found = self.host_lookup(cls, name)
        return found is not MISSING and getattr(found, "__objclass__", None) not in _REPEATED

    def _try(self, receiver: Value, method: str, other: Value) -> Value:
        slot = self.special(receiver, method)
        if slot is None:
            return NOT_IMPLEMENTED
        if type(slot) is _Unbinder and method in _COMPARISONS:
            try:
                slot = _Bound(self.bind(slot.slot, receiver))
            except Raised:
                return NOT_IMPLEMENTED  # as slot_tp_richcompare has it
        self._check_repeat(method, slot, other)
        result = self.call(slot, [receiver, other], {}).force()
        return NOT_IMPLEMENTED if self.is_not_implemented(result) else result

    def _check_repeat(self, method: str, slot: Value, count: Value) -> None:
        """`sequence_repeat`: the operator's own words for what is no count (the method called by name has others)."""
        if method not in _REPEATS or count.cls is int or slot.cls is not _WRAPPER:
            return
        if fixed(slot.host, "__objclass__") not in _REPEATED or count.isa(int):
            return
        if self.special(count, "__index__") is None:
            text = f"can't multiply sequence by non-int of type '{count.type_name(self)}'"
            raise self.error(TypeError, text)

    def is_not_implemented(self, value: Value) -> bool:
        return value.constant and value.cls is types.NotImplementedType

    def special(self, value: Value, name: str) -> Value | None:
        """A special method as found on the class, unbound; None where absent, or blocked by None."""
        host = self.host_lookup(value.cls, name)
        if host is MISSING or (host is None and name in _BLOCKED):
            return None
        slot: Value = self.lookup(value.cls, name)  # type: ignore[assignment]
        return slot if slot.cls in _TAKES_SELF else _Unbinder(slot)

    def _operand_error(self, symbol: str, left: Value, right: Value) -> Raised:
        names = f"'{left.type_name(self)}' and '{right.type_name(self)}'"
        printing = symbol == ">>" and left.cls is types.BuiltinFunctionType and self.known(left).__name__ == "print"
        hint = _PRINT_HINT if printing else ""
        return self.error(TypeError, f"unsupported operand type(s) for {symbol}: {names}{hint}")

    def unary(self, symbol: str, value: Value) -> Value:
        """`-v`, `+v`, `~v`, `abs(v)`."""
        value = value.force()
        function, method, shown = UNARY[symbol]
        if symbol == "~" and value.cls is bool and INVERTED_BOOL_WARNS:
            self.warn(DeprecationWarning, _INVERTED_BOOL)
            value = self.call(self.class_value(int), [value], {})
        if value.constant:
            return self.run_known(function, [value])
        slot = self.special(value, method)
        if slot is None:
            prefix = "unary " if symbol != "abs" else ""
            text = f"bad operand type for {prefix}{shown}: '{value.type_name(self)}'"
            raise self.error(TypeError, text)
        return self.call(slot, [value], {})

    def compare(self, symbol: str, left: Value, right: Value) -> Value:
        """`do_richcompare`."""
        left, right = left.force(), right.force()
        function, method, swapped = COMPARE[symbol]
        if left.constant and right.constant:
            return self.run_known(function, [left, right])
        reflected_first = right.cls is not left.cls and self.derives(right.cls, left.cls)
        if reflected_first:
            result = self._try(right, swapped, left)
            if result is not NOT_IMPLEMENTED:
                return result
        result = self._try(left, method, right)
        if result is NOT_IMPLEMENTED and not reflected_first:
            result = self._try(right, swapped, left)
        if result is not NOT_IMPLEMENTED:
            return result
        if symbol in ("==", "!="):
            return TRUE if self.is_(left, right) == (symbol == "==") else FALSE
        names = f"'{left.type_name(self)}' and '{right.type_name(self)}'"
        raise self.error(TypeError, f"'{symbol}' not supported between instances of {names}")

    def equal(self, left: Value, right: Value) -> bool:
        """`PyObject_RichCompareBool(left, right, Py_EQ)`: identity counts as equality."""
        left, right = left.force(), right.force()
        varies = left.symbolic or right.symbolic  # whose identity is not known
        return left is right or (not varies and self.is_(left, right)) or self.truth(self.compare("==", left, right))

    def is_(self, left: Value, right: Value) -> bool:
        """`left is right`."""
        left, right = left.force(), right.force()
        if left is right:
            return True
        if left.symbolic or right.symbolic:
            if left.cls is not right.cls:
                return False
            left, right = (Constant(self.decide(v)) if v.symbolic else v for v in (left, right))
        a, b = left.identity(self), right.identity(self)
        if a is b:
            if type(a) in CACHED and not CACHED[type(a)](a):
                for value in (left, right):  # an equal one would do for all other guards
                    self.guard_identity_of(value.source, a)
            return True
        if left.constant and right.constant and type(a) is type(b) and type(a) in CACHED:
            return bool(a == b and CACHED[type(a)](a))
        separate(self, left, right)
        return False

    def truth(self, value: Value) -> bool:
        """`bool(value)` as the host bool that a branch needs: `__bool__`, then `__len__`, then True."""
        value = value.force()
        if value.constant:
            if value.host is NotImplemented:
                words = "NotImplemented should not be used in a boolean context"
                if NOT_IMPLEMENTED_HAS_NO_TRUTH:
                    raise self.error(TypeError, words)
                self.warn(DeprecationWarning, words)
                return True
            return bool(value.host)
        slot = self.special(value, "__bool__")
        if slot is not None:
            result = self.call(slot, [value], {}).force()
            if result.cls is not bool:
                raise self.error(TypeError, f"__bool__ should return bool, returned {result.type_name(self)}")
            return bool(self.decide(result))
        if self.special(value, "__len__") is not None:
            return self.truth(self.len(value))
        return True

    def len(self, value: Value) -> Value:
        """`len(value)`."""
        value = value.force()
        if value.constant:
            return self.run_known(len, [value])
        slot = self.special(value, "__len__")
        if slot is None:
            raise self.error(TypeError, f"object of type '{value.type_name(self)}' has no len()")
        result: Value = self.call(slot, [value], {}).force()
        if result.symbolic:
            return result
        return self.run_known(_checked_length, [self.index(result)])

    def index(self, value: Value) -> Value:
        """`operator.index(value)`."""
        value = value.force()
        if value.isa(int):
            return value
        slot = self.special(value, "__index__")
        if slot is None:
            raise self.error(TypeError, f"'{value.type_name(self)}' object cannot be interpreted as an integer")
        result: Value = self.call(slot, [value], {}).force()
        if not result.isa(int):
            raise self.error(TypeError, f"__index__ returned non-int (type {result.type_name(self)})")
        if result.cls is not int:
            words = f"__index__ returned non-int (type {result.type_name(self)})"
            self.warn(DeprecationWarning, strict_subclass(words, int))
        return result

    def hash(self, value: Value) -> Value:
        """`hash(value)`."""
        value = value.force()
        if value.constant:
            if value.cls is complex or value.cls in UNLIKE:
                self.check_nan(value, value.host)
            return self.run_known(hash, [value])
        slot = self.special(value, "__hash__")
        if slot is None:
            raise self.error(TypeError, f"unhashable type: '{value.type_name(self)}'")
        result: Value = self.call(slot, [value], {}).force()
        if not result.isa(int):
            raise self.error(TypeError, "__hash__ method should return an integer")
        if slot.cls is _WRAPPER:
            return result  # C code's, of the right size already
        try:
            return self.fresh(_fold_hash(self.int_(result)))
        except NotKnown:
            raise Unsupported(errors.UnknownArgument("hash", result.describe())) from None

    def check_nan(self, value: Value, host: Host) -> None:
        """What is no number hashes by its address."""
        if "nan" in repr(host).lower():  # a signalling one of decimals cannot be compared
            if value.source is None and not value.constant:
                raise Unsupported(errors.UnsupportedSlot(value.cls.__name__, "hash that depends on addresses"))
            self.trace.extension(ShownAddresses).hosts[id(host)] = host
            self.guard_identity(value)

    def warn(self, category: type[Warning], text: str) -> None:
        """`PyErr_WarnEx(category, text, 1)`: a warning from the line that is being executed."""
        self.call(self.existing(_warnings.warn), [Constant(text), self.class_value(category)], {})

    # -- items ------------------------------------------------------------------------------------------------------

    def getitem(self, container: Value, key: Value, in_tail_position: bool = False) -> Value:
        """`container[key]`."""
        container = container.force()
        if container.constant and key.force().constant:
            return self.run_known(operator.getitem, [container, key.force()])
        slot = self.special(container, "__getitem__")
        if slot is not None:
            return self.call(slot, [container, key], {}, in_tail_position)
        if container.isa(type):
            if container.as_host(self) is type:
                return self.run_known(types.GenericAlias, [container, key])
            hook = self.getattr_or_none(container, "__class_getitem__")
            if hook is not None and hook.cls is not type(None):
                return self.call(hook, [key], {}, in_tail_position)
            raise self.error(TypeError, f"type '{self.type_name(container.as_host(self))}' is not subscriptable")
        raise self.error(TypeError, f"'{container.type_name(self)}' object is not subscriptable")

    def setitem(self, container: Value, key: Value, item: Value) -> None:
        """`container[key] = item`."""
        container = container.force()
        slot = self.special(container, "__setitem__")
        if slot is None:
            self._check_half(container, "__setitem__", "__delitem__")
            self._as_sequence(container, key)
            raise self.error(TypeError, f"'{container.type_name(self)}' object does not support item assignment")
        self.call(slot, [container, key, item], {})

    def delitem(self, container: Value, key: Value) -> None:
        """`del container[key]`."""
        container = container.force()
        slot = self.special(container, "__delitem__")
        if slot is not None:
            self.call(slot, [container, key], {})
        else:
            self._check_half(container, "__delitem__", "__setitem__")
            # PySequence_DelItem words it otherwise than PyObject_DelItem.
            words = "doesn't" if self._as_sequence(container, key) else "does not"
            raise self.error(TypeError, f"'{container.type_name(self)}' object {words} support item deletion")

    def _check_half(self, container: Value, wanted: str, other: str) -> None:
        """One C slot serves two methods: a class of the program's that has the other one is asked for the missing."""
        if self.host_lookup(container.cls, other) is not MISSING:
            raise self.error(AttributeError, wanted)

    def _as_sequence(self, container: Value, key: Value) -> bool:
        """Whether an object without the mapping slot is tried as a sequence: its key is made a Py_ssize_t first."""
        key = key.force()
        if not _has_sequence_slots(container.cls) or self.special(key, "__index__") is None:
            return False
        if not -sys.maxsize - 1 <= self.int_(key) <= sys.maxsize:
            raise self.error(IndexError, f"cannot fit '{key.type_name(self)}' into an index-sized integer")
        return True

    def contains(self, container: Value, item: Value) -> Value:
        """`item in container`: `__contains__`, else a search through `iter(container)`."""
        container = container.force()
        if container.constant and item.force().constant:
            return self.run_known(operator.contains, [container, item.force()])
        host = self.host_lookup(container.cls, "__contains__")
        if host is None:
            raise self.error(TypeError, f"'{container.type_name(self)}' object is not a container")
        if host is not MISSING:
            result = self.call(self.special(container, "__contains__"), [container, item], {})  # type: ignore[arg-type]
            return TRUE if self.truth(result) else FALSE
        if self.special(container, "__iter__") is None and self.special(container, "__getitem__") is None:
            raise self.error(TypeError, _NO_CONTAINER.replace("NoneType", container.type_name(self)))
        for element in self.iterate(container):
            if self.equal(element, item):
                return TRUE
        return FALSE

    def unmodelled(self, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """The real type has it and Stator has no model: run it for real on known operands where pure, else break."""
        if is_pure(host):
            try:
                return self.run_known(host, args, kwargs)
            except NotKnown:
                pass
            result: Value | None = self.immutable_fallback(host, args) or self.call_on_proxies(host, args, kwargs)
            if result is not None:
                return result
        raise Unsupported(errors.UnsupportedCCall(callable_name(host, args[0].force().cls if args else None)))


def _has_sequence_slots(cls: type) -> bool:
    """Whether `tp_as_sequence` is set: for every class written in Python, and where C fills one of its slots."""
    return any(is_heap_type(base) or not _SEQUENCE_SLOTS.isdisjoint(vars(base)) for base in cls.__mro__)


def _checked_length(length: int) -> int:
    if length < 0:
        raise ValueError("__len__() should return >= 0")
    if length > (1 << 63) - 1:
        raise OverflowError("cannot fit 'int' into an index-sized integer")
    return length


class _HashProbe:
    """Lets CPython fold an arbitrary int returned by `__hash__` into a hash."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return self.number


def _fold_hash(number: int) -> int:
    return hash(_HashProbe(number))


_WRAPPER = types.WrapperDescriptorType
_REPEATS = frozenset({"__mul__", "__rmul__", "__imul__"})
#: builtin types that fill `sq_repeat`
_REPEATED = frozenset(_SEQUENCES)
#: slots that CPython takes for absent where they are None; any other is called, which is a TypeError
_BLOCKED = frozenset({"__hash__", "__iter__", "__contains__", "__reversed__", "__class_getitem__"})
#: what takes the receiver as its first argument; anything else is bound by its `__get__`, or called without
_TAKES_SELF = (types.FunctionType, types.WrapperDescriptorType, types.MethodDescriptorType)


class _Unbinder(Value):
    """A special method that is no plain method (a static method, a property, any callable): it is bound first."""

    __slots__ = ("slot",)

    def __init__(self, slot: Value) -> None:
        self.slot = slot
        self.cls = slot.cls
        self.source = slot.source

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        return space.call(space.bind(self.slot, args[0]), args[1:], kwargs, in_tail_position)


class _Bound(_Unbinder):
    """A special method that has been bound."""

    __slots__ = ()

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        return space.call(self.slot, args[1:], kwargs, in_tail_position)


_COMPARISONS = frozenset(entry[1] for entry in COMPARE.values())

__all__ = ["BINARY", "COMPARE", "INPLACE", "NONE", "UNARY", "Operators"]
