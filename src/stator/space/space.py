"""The object space: CPython's generic algorithms over traced values, as opcodes and models call them.

`Space` only declares: the parts of the space, each in the module named here, implement it and call each other by it.
A trace makes a `StandardSpace` of its own.
"""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.space.interfaces import Names, Trace
    from stator.space.value import ObjectValue, Raised, Value


class Space(ABC):
    """What can be done with traced values."""

    trace: Trace
    #: id(host object) → its value, and the objects that keep those ids theirs
    _by_id: dict[int, Any]
    _kept: list[Any]
    #: every value made by `wrap`
    _unread: list[Any]
    #: (class, name) → what was looked up
    _lookups: dict[tuple[type, str], Any]
    _unmet_modules: dict[int, Any]
    _mros: dict[type, tuple[type, ...]]
    _class_values: dict[tuple[type, str], Any]
    #: the StopIteration by which the iterator asked last has ended, where another iterator wants to pass it on
    ended_by: Value | None = None
    #: whether objects that a cached function has given are about (`CachedResults`): few programs have any
    has_cached_results: bool = False
    #: how host functions are called, `compute(function, *args, **kwargs)`, where it depends on the traced program
    compute: Callable[..., Any] | None = None
    #: whether host operands are being collected for CPython: what only stands for something must not be among them
    computing: bool = False

    @abstractmethod
    def release(self) -> None: ...

    # -- host objects and values: wrapping.py -------------------------------------------------------------------------

    @abstractmethod
    def wrap(self, host: Any, source: Source) -> Value: ...

    @abstractmethod
    def existing(self, host: Any, expr: str | None = None) -> Value: ...

    @abstractmethod
    def realise(self, host: Any, source: Source) -> Value: ...

    @abstractmethod
    def has_changed(self, host: Any) -> bool: ...

    @abstractmethod
    def symbol(self, host: Any, source: Source) -> Value | None: ...

    @abstractmethod
    def guard_type(self, host: Any, source: Source) -> type: ...

    @abstractmethod
    def guard_identity(self, value: Value) -> None: ...

    @abstractmethod
    def guard_identity_of(self, source: Source | None, host: Any) -> None: ...

    @abstractmethod
    def existing_cell(self, host: types.CellType, source: Source, contents: Source | None = None) -> Any: ...

    @abstractmethod
    def fresh(self, host: Any) -> Value: ...

    @abstractmethod
    def new_list(self, items: list[Value]) -> Value: ...

    @abstractmethod
    def new_tuple(self, items: list[Value]) -> Value: ...

    @abstractmethod
    def new_dict(self, pairs: list[tuple[Value, Value]]) -> Value: ...

    @abstractmethod
    def new_set(self, items: list[Value]) -> Value: ...

    @abstractmethod
    def known(self, value: Value) -> Any: ...

    @abstractmethod
    def decide(self, value: Value) -> Any: ...

    @abstractmethod
    def outcome(self, function: Callable[..., Any], value: Value, *more: Any) -> Any: ...

    @abstractmethod
    def module_names(self, module: types.ModuleType) -> Names: ...

    @abstractmethod
    def sample(self, value: Value) -> Any: ...

    @abstractmethod
    def identity(self, value: Value) -> Any: ...

    @abstractmethod
    def key(self, value: Value) -> Any: ...

    @abstractmethod
    def key_as(self, value: Value, role: str) -> Any: ...

    @abstractmethod
    def traced_key(self, value: Value) -> Any: ...

    @abstractmethod
    def note_unlike(self, cls: type) -> None: ...

    @abstractmethod
    def sequence_iterator(self, value: Value) -> Value: ...

    @abstractmethod
    def own_attr_dict(self, value: ObjectValue) -> Any: ...

    @abstractmethod
    def int_(self, value: Value) -> int: ...

    @abstractmethod
    def str_(self, value: Value) -> str: ...

    @abstractmethod
    def exception(self, host: BaseException) -> Value: ...

    @abstractmethod
    def error(self, cls: type[BaseException], *args: Any) -> Raised: ...

    @abstractmethod
    def mark_mutated(self, value: Value) -> None: ...

    # -- attributes: attributes.py ------------------------------------------------------------------------------------

    @abstractmethod
    def host_lookup(self, cls: type, name: str) -> Any: ...

    @abstractmethod
    def class_name(self, cls: type) -> str: ...

    @abstractmethod
    def type_name(self, cls: type) -> str: ...

    @abstractmethod
    def full_name(self, cls: type) -> str: ...

    @abstractmethod
    def mro(self, cls: type) -> tuple[type, ...]: ...

    @abstractmethod
    def derives(self, cls: type, base: type) -> bool: ...

    @abstractmethod
    def lookup(self, cls: type, name: str) -> Value | None: ...

    @abstractmethod
    def forget_class_attribute(self, name: str) -> None: ...

    @abstractmethod
    def getattr(self, value: Value, name: str, in_tail_position: bool = False) -> Value: ...

    @abstractmethod
    def generic_getattr(self, value: Value, name: str, in_tail_position: bool = False) -> Value: ...

    @abstractmethod
    def find_attribute(self, value: Value, name: str, in_tail_position: bool) -> Value | None: ...

    @abstractmethod
    def instance_attribute(self, value: Value, name: str) -> Value | None: ...

    @abstractmethod
    def attribute_error(self, value: Value, name: str, shown: str | None = None, why: str = "") -> Raised: ...

    @abstractmethod
    def no_attribute(self, value: Value, name: str, text: str, named: type | None = None) -> Raised: ...

    @abstractmethod
    def is_data_descriptor(self, meta: Value) -> bool: ...

    @abstractmethod
    def descr_get(self, meta: Value, instance: Value | None, owner: type, in_tail_position: bool = False) -> Value: ...

    @abstractmethod
    def class_value(self, cls: type) -> Value: ...

    @abstractmethod
    def bind(self, function: Value, instance: Value) -> Value: ...

    @abstractmethod
    def attribute_under(self, value: Value, name: Value) -> Value | None: ...

    @abstractmethod
    def getattr_or_none(self, value: Value, name: str) -> Value | None: ...

    @abstractmethod
    def setattr(self, value: Value, name: str, item: Value) -> None: ...

    @abstractmethod
    def delattr(self, value: Value, name: str) -> None: ...

    @abstractmethod
    def generic_setattr(self, value: Value, name: str, item: Value | None) -> None: ...

    @abstractmethod
    def _descr_set(self, meta: Value, value: Value, item: Value | None) -> bool: ...

    # -- operators: operators.py --------------------------------------------------------------------------------------

    @abstractmethod
    def run_known(
        self, function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value] | None = None
    ) -> Value: ...

    @abstractmethod
    def run_for_real(self, function: Callable[..., Any], hosts: list[Any], named: dict[str, Any]) -> Any: ...

    @abstractmethod
    def binary(self, symbol: str, left: Value, right: Value, in_tail_position: bool = False) -> Value: ...

    @abstractmethod
    def _binary_slots(self, method: str, reflected: str, left: Value, right: Value) -> Value: ...

    @abstractmethod
    def is_not_implemented(self, value: Value) -> bool: ...

    @abstractmethod
    def special(self, value: Value, name: str) -> Value | None: ...

    @abstractmethod
    def unary(self, symbol: str, value: Value) -> Value: ...

    @abstractmethod
    def compare(self, symbol: str, left: Value, right: Value) -> Value: ...

    @abstractmethod
    def equal(self, left: Value, right: Value) -> bool: ...

    @abstractmethod
    def is_(self, left: Value, right: Value) -> bool: ...

    @abstractmethod
    def truth(self, value: Value) -> bool: ...

    @abstractmethod
    def len(self, value: Value) -> Value: ...

    @abstractmethod
    def index(self, value: Value) -> Value: ...

    @abstractmethod
    def hash(self, value: Value) -> Value: ...

    @abstractmethod
    def check_nan(self, value: Value, host: Any) -> None: ...

    @abstractmethod
    def warn(self, category: type[Warning], text: str) -> None: ...

    @abstractmethod
    def stopped_by(self, stop: Value) -> None: ...

    @abstractmethod
    def passed_on(self, produce: Callable[[], Value | None]) -> Value: ...

    @abstractmethod
    def getitem(self, container: Value, key: Value, in_tail_position: bool = False) -> Value: ...

    @abstractmethod
    def setitem(self, container: Value, key: Value, item: Value) -> None: ...

    @abstractmethod
    def delitem(self, container: Value, key: Value) -> None: ...

    @abstractmethod
    def contains(self, container: Value, item: Value) -> Value: ...

    @abstractmethod
    def unmodelled(self, host: Any, args: list[Value], kwargs: dict[str, Value]) -> Value: ...

    # -- iteration: iteration.py --------------------------------------------------------------------------------------

    @abstractmethod
    def iter(self, value: Value) -> Value: ...

    @abstractmethod
    def next(self, iterator: Value) -> Value | None: ...

    @abstractmethod
    def advance(self, iterator: Value) -> Value: ...

    @abstractmethod
    def iterate(self, value: Value) -> Iterator[Value]: ...

    @abstractmethod
    def is_iterable(self, value: Value) -> bool: ...

    @abstractmethod
    def unpack(self, value: Value) -> list[Value]: ...

    @abstractmethod
    def unpack_exactly(self, value: Value, count: int) -> list[Value]: ...

    @abstractmethod
    def unpack_up_to(self, value: Value, most: int) -> list[Value]: ...

    @abstractmethod
    def unpack_ex(self, value: Value, before: int, after: int) -> list[Value]: ...

    # -- calls: calls.py ----------------------------------------------------------------------------------------------

    @abstractmethod
    def call(
        self, function: Value, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool = False
    ) -> Value: ...

    @abstractmethod
    def call_builtin(self, host: Any, args: list[Value], kwargs: dict[str, Value]) -> Value: ...

    @abstractmethod
    def immutable_fallback(self, host: Any, args: list[Value]) -> Value | None: ...

    @abstractmethod
    def call_on_proxies(self, host: Any, args: list[Value], kwargs: dict[str, Value] | None = None) -> Value | None: ...

    @abstractmethod
    def call_method(self, value: Value, name: str, *args: Value) -> Value: ...

    @abstractmethod
    def isinstance_of(self, value: Value, cls: type) -> bool: ...

    # -- text: standard_space.py ---------------------------------------------------------------------------------------

    @abstractmethod
    def repr(self, value: Value) -> Value: ...

    @abstractmethod
    def format_value(self, value: Value, conversion: Any, spec: Value | None) -> Value: ...

    @abstractmethod
    def convert_value(self, value: Value, conversion: Any) -> Value: ...

    @abstractmethod
    def join_strings(self, parts: list[Value]) -> Value: ...

    # Last: what follows could not name the type.
    @abstractmethod
    def str(self, value: Value) -> Value: ...
