"""Guards: what a trace assumed about the frame, each kind once.

A guard names the sources it looks at, tests the objects found there (``test``), prints itself, says what differs
(``explain``) and lowers to one operation of the guard program (``op``, ``lower``).  Guards compare by what they
assert (``key``), so equal ones are kept once.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Generic, TypeVar

from stator._core import runs_its_code

from .base import Change, Guard, Where, name_and_place, short_name, shortened, show, show_all, with_article
from .equality import plain_key, same_value
from .expression import Expression
from .naming import Names
from .raw import ABSENT, dict_get, dict_has, dict_keys, mro_of, present_dict, raw_length, type_lookup
from .source import InstanceDictSource, SizeSource, Source
from .tensor import TensorSpec

E = TypeVar("E")


class _OneSource(Guard, Generic[E]):
    """A guard on one source with one expectation."""

    __slots__ = ("expected",)
    expected: E

    @property
    def source(self) -> Source:
        """The source whose object is checked."""
        return self.sources[0]

    def lower(self) -> tuple[int, object]:
        return 0, self.expected

    def fields(self) -> tuple[object, ...]:
        return self.sources[0], self.expected

    def changed(self, names: Names, obj: object) -> Change:
        return _was_and_is(names.quoted(self.source), show(self.expected), show(obj))

    def told(self, names: Names) -> str:
        return self.shown(names.of(self.sources[0]))


class TypeIs(_OneSource[type]):
    """The object's type is exactly ``cls``."""

    __slots__ = ()
    op = "TYPE_IS"

    def __init__(self, source: Source, cls: type, where: Where = None) -> None:
        self.expected = cls
        self._set((source,), (id(cls),), where)

    def test(self, obj: object) -> bool:
        return type(obj) is self.expected

    def changed(self, names: Names, obj: object) -> Change:
        was, now = (short_name(cls.__qualname__) for cls in (self.expected, type(obj)))
        if was == now:
            return _other_than_before(names.quoted(self.source), f"the class {now}")
        return _was_and_is(
            names.quoted(self.source), with_article(was), show(obj) if obj is None else with_article(now)
        )

    def shown(self, path: str) -> str:
        return f"type({path}) is {self.expected.__qualname__}"


class IdIs(_OneSource[object]):
    """The object is exactly ``obj``."""

    __slots__ = ()
    op = "ID_IS"
    helps = "give the same object in each call, if it is made anew for each"

    def __init__(self, source: Source, obj: object, where: Where = None) -> None:
        self.expected = obj
        self._set((source,), (id(obj),), where)

    def test(self, obj: object) -> bool:
        return obj is self.expected

    def shown(self, path: str) -> str:
        return f"{path} is {show(self.expected)}"


class WeakIdIs(_OneSource["weakref.ref[object]"]):
    """The object is exactly the one that a weak reference knows: the entry does not keep it alive."""

    __slots__ = ()
    op = "WEAK_ID_IS"
    helps = IdIs.helps

    def __init__(self, source: Source, obj: object, where: Where = None) -> None:
        self.expected = weakref.ref(obj)
        self._set((source,), (id(self.expected),), where)  # by now, the object's address may be another's

    def test(self, obj: object) -> bool:
        return obj is not None and obj is self.expected()

    def changed(self, names: Names, obj: object) -> Change:
        return _was_and_is(names.quoted(self.source), self._shown(), show(obj))

    def fields(self) -> tuple[object, ...]:
        return self.source, self.expected()

    def _shown(self) -> str:
        obj = self.expected()
        return "an object that has ended" if obj is None else show(obj)

    def shown(self, path: str) -> str:
        return f"{path} is {self._shown()}"


#: what programs know by names, and make no great number of
_LASTING = (type, ModuleType, FunctionType, BuiltinFunctionType)


def identity_guard(source: Source, obj: object) -> Guard:
    """A guard on which object it is. What the program may let go of is known weakly, so that its end comes as in
    ordinary Python, and its memory is given back.
    """
    cls = type(obj)
    is_weak = cls.__weakrefoffset__ and not issubclass(cls, _LASTING)
    return WeakIdIs(source, obj) if is_weak else IdIs(source, obj)


class Equals(_OneSource[object]):
    """The object has exactly the type of ``value`` and equals it, down to bits of floats and elements of tuples."""

    __slots__ = ()
    op = "EQUALS"

    def __init__(self, source: Source, value: object, where: Where = None) -> None:
        self.expected = value
        self._set((source,), plain_key(value), where)

    def test(self, obj: object) -> bool:
        return same_value(obj, self.expected)

    def shown(self, path: str) -> str:
        return f"{path} == {show(self.expected)}"


class Length(_OneSource[int]):
    """The container has ``n`` elements, measured as ``raw_length`` does."""

    __slots__ = ()
    op = "LENGTH"
    helps = "give as many elements in each call, or one tensor of them: its size may vary"
    counts = True

    def __init__(self, source: Source, n: int, where: Where = None) -> None:
        self.expected = n
        self._set((source,), (n,), where)

    def test(self, obj: object) -> bool:
        return bool(raw_length(obj) == self.expected)

    def changed(self, names: Names, obj: object) -> Change:
        count = raw_length(obj)
        was, now = _elements(self.expected), _elements(count)
        contents = names.contents(self.source)
        if contents is not None:
            owner, what = contents
            verb = "has got" if count > self.expected else "has lost"
            return Change(f"{owner} {verb} a {what}", f"register {what}s before the first call", was, now)
        return Change(f"{names.quoted(self.source)} had {was}, has {now}", "", was, now)

    def lower(self) -> tuple[int, object]:
        return self.expected, None

    def shown(self, path: str) -> str:
        return f"len({path}) == {self.expected}"


class KeysAre(_OneSource[tuple[object, ...]]):
    """The dict has exactly these keys, in this order; a key is the same object or an equal plain value."""

    __slots__ = ()
    op = "KEYS_ARE"

    def __init__(self, source: Source, keys: tuple[object, ...], where: Where = None) -> None:
        self.expected = tuple(keys)
        self._set((source,), plain_key(self.expected), where)

    def test(self, obj: object) -> bool:
        if not isinstance(obj, dict) or dict.__len__(obj) != len(self.expected):
            return False
        return all(k is e or same_value(k, e) for k, e in zip(dict_keys(obj), self.expected, strict=True))

    def changed(self, names: Names, obj: object) -> Change:
        name = names.quoted(self.source)
        if not isinstance(obj, dict):
            return Change(f"{name} was a dict, is {show(obj)}")
        gone, new = _lacking(dict_keys(obj), self.expected), _lacking(self.expected, dict_keys(obj))
        contents = names.contents(self.source)
        if contents is not None:
            return Change(f"{contents[0]} has another {contents[1]}")
        parts = [f"{word} {show_all(keys)}" for word, keys in (("lost", gone), ("got", new)) if keys]
        return Change(
            f"the keys of {name} have changed: it {' and '.join(parts)}"
            if parts
            else f"the keys of {name} are in another order"
        )

    def shown(self, path: str) -> str:
        return f"list({path}) == [{', '.join(show(k) for k in self.expected)}]"


def _lacking(among: Iterable[object], keys: Iterable[object]) -> list[object]:
    """The keys that are not among others: neither the same objects, nor equal to them."""
    try:
        known: object = dict.fromkeys(among)
    except Exception:  # the keys' own __hash__ or __eq__
        known = None
    return [key for key in keys if not dict_has(known, key)]


class HasKey(_OneSource[object]):
    """The dict has the key."""

    __slots__ = ()
    op = "HAS_KEY"

    def __init__(self, source: Source, key: object, where: Where = None) -> None:
        self.expected = key
        self._set((source,), plain_key(key), where)

    def test(self, obj: object) -> bool:
        return dict_has(obj, self.expected) is True

    def changed(self, names: Names, obj: object) -> Change:
        return _key_changed(names, self.source, self.expected, "has lost")

    def shown(self, path: str) -> str:
        return f"{show(self.expected)} in {path}"


class NoKey(_OneSource[object]):
    """The object is a dict and has not the key."""

    __slots__ = ()
    op = "NO_KEY"

    def __init__(self, source: Source, key: object, where: Where = None) -> None:
        self.expected = key
        self._set((source,), plain_key(key), where)

    def test(self, obj: object) -> bool:
        return dict_has(obj, self.expected) is False

    def changed(self, names: Names, obj: object) -> Change:
        return _key_changed(names, self.source, self.expected, "has got")

    def shown(self, path: str) -> str:
        return f"{show(self.expected)} not in {path}"


class NoAttr(_OneSource[str]):
    """The object's instance dict lacks the name (or it has no instance dict): the type's attribute is not shadowed."""

    __slots__ = ()
    op = "NO_ATTR"

    def __init__(self, source: Source, name: str, where: Where = None) -> None:
        self.expected = name
        self._set((source,), (name,), where)

    def test(self, obj: object) -> bool:
        own = present_dict(obj)
        try:
            return own is None or dict_get(own, self.expected) is ABSENT
        except Exception:  # the keys' own __eq__
            return False

    def changed(self, names: Names, obj: object) -> Change:
        return Change(f"{names.quoted(self.source)} has got an attribute `{self.expected}` of its own")

    def shown(self, path: str) -> str:
        return f"{self.expected!r} not in {path}.__dict__"


class TypeAttrIs(Guard):
    """The MRO of ``cls`` gives exactly ``obj`` for ``name`` (or nothing, if ABSENT)."""

    __slots__ = ("cls", "name", "obj")
    op = "TYPE_ATTR_IS"

    def __init__(self, cls: type, name: str, obj: object, where: Where = None) -> None:
        self.cls, self.name, self.obj = cls, name, obj
        self._set((), (id(cls), name, id(obj)), where)

    def test(self) -> bool:
        return type_lookup(self.cls, self.name) is self.obj

    def changed(self, names: Names) -> Change:
        name, now = f"`{short_name(self.cls.__qualname__)}.{self.name}`", type_lookup(self.cls, self.name)
        if ABSENT in (self.obj, now):
            return Change(f"there is {'no' if now is ABSENT else 'a'} {name} now")
        return _was_and_is(name, show(self.obj), show(now))

    def lower(self) -> tuple[int, object]:
        return int(self.obj is ABSENT), (self.cls, self.name, None if self.obj is ABSENT else self.obj)

    def fields(self) -> tuple[object, ...]:
        return self.cls, self.name, self.obj

    def shown(self) -> str:
        if self.obj is ABSENT:
            return f"{self.cls.__qualname__} has no {self.name!r}"
        return f"{self.cls.__qualname__}.{self.name} is {show(self.obj)}"


class MroIs(_OneSource[tuple[type, ...]]):
    """The object is a class whose MRO is this very tuple: neither its bases nor theirs have been assigned."""

    __slots__ = ()
    op = "MRO_IS"

    def __init__(self, source: Source, mro: tuple[type, ...], where: Where = None) -> None:
        self.expected = mro
        self._set((source,), (id(mro),), where)

    def test(self, obj: object) -> bool:
        return isinstance(obj, type) and mro_of(obj) is self.expected

    def changed(self, names: Names, obj: object) -> Change:
        return Change(f"the base classes of {names.quoted(self.source)} have changed")

    def shown(self, path: str) -> str:
        return f"{path}.__mro__ is ({', '.join(cls.__qualname__ for cls in self.expected)})"


class CodeIs(_OneSource[CodeType]):
    """The object is a function whose calls run ``code``, with ``globals_`` where they are given.

    One code object may belong to functions of several modules: `types.FunctionType(f.__code__, other_globals)`, or a
    source compiled once and executed twice.  A function never gets other globals than it was made with.
    """

    __slots__ = ("globals_",)
    op = "CODE_IS"

    def __init__(
        self, source: Source, code: CodeType, globals_: dict[str, object] | None = None, where: Where = None
    ) -> None:
        self.expected = code
        self.globals_ = globals_
        self._set((source,), (id(code), id(globals_)), where)

    def test(self, obj: object) -> bool:
        return type(obj) is FunctionType and self._has_code(obj) and runs_its_code(obj)

    def _has_code(self, function: FunctionType) -> bool:
        if function.__code__ is not self.expected:
            return False
        return self.globals_ is None or function.__globals__ is self.globals_

    def changed(self, names: Names, obj: object) -> Change:
        name = names.quoted(self.source)
        if type(obj) is not FunctionType or not runs_its_code(obj):
            return _was_and_is(name, name_and_place(self.expected), show(obj))
        if obj.__code__ is self.expected:
            return Change(f"{name} is a function of another module")
        return _was_and_is(name, name_and_place(self.expected), name_and_place(obj.__code__))

    def lower(self) -> tuple[int, object]:
        return 0, (self.expected, self.globals_)

    def fields(self) -> tuple[object, ...]:
        return self.sources[0], self.expected, self.globals_

    def shown(self, path: str) -> str:
        return f"{path}.__code__ is {self.expected.co_qualname}'s"


class SameObject(Guard):
    """Both sources give one object."""

    __slots__ = ()
    op = "SAME"
    helps = "if it varies which of them are one object, give copies, or make one tensor of them before the call"

    def __init__(self, a: Source, b: Source, where: Where = None) -> None:
        self._set((a, b), (), where)

    def test(self, a: object, b: object) -> bool:
        return a is b

    def changed(self, names: Names, a: object, b: object) -> Change:
        first, second = map(names.quoted, self.sources)
        if any(source.is_constant for source in self.sources):
            return _was_and_is(first, show(b), show(a))
        return Change(f"{first} and {second} were one object, are two")

    def fields(self) -> tuple[object, ...]:
        return self.sources

    def shown(self, a: str, b: str) -> str:
        return f"{a} is {b}"


class Distinct(Guard):
    """The object at ``source`` is none of those at ``others``."""

    __slots__ = ()
    op = "DISTINCT"

    def __init__(self, source: Source, others: tuple[Source, ...], where: Where = None) -> None:
        self._set((source, *others), (), where)

    def test(self, obj: object, *others: object) -> bool:
        return all(obj is not other for other in others)

    def changed(self, names: Names, obj: object, *others: object) -> Change:
        same = next(s for s, other in zip(self.sources[1:], others, strict=True) if other is obj)
        return Change(f"{names.quoted(self.sources[0])} and {names.quoted(same)} were two objects, are one")

    def fields(self) -> tuple[object, ...]:
        return self.sources[0], self.sources[1:]

    def shown(self, path: str, *others: str) -> str:
        return f"{path} is none of {', '.join(others)}" if others else f"{path} is there"


class TensorMatch(_OneSource[TensorSpec]):
    """The tensor's type and metadata are those of the spec (a ``TensorSpec``)."""

    __slots__ = ()
    op = "TENSOR"

    def __init__(self, source: Source, spec: TensorSpec, where: Where = None) -> None:
        self.expected = spec
        self._set((source,), (spec,), where)

    @property
    def spec(self) -> TensorSpec:
        """The expected metadata."""
        return self.expected

    def test(self, obj: object) -> bool:
        try:
            return self.expected.matches(obj)
        except Exception:  # a subclass's own code
            return False

    def changed(self, names: Names, obj: object) -> Change:
        name, given = names.of(self.source), self.source.is_given
        return Change(*(self.expected.difference(obj, name, within=names.resumed, given=given) or ("",)))

    def shown(self, path: str) -> str:
        return f"{path} is {self.expected}"


#: characters of a condition that a reason quotes
_LONGEST = 160


class Predicate(Guard):
    """``fn`` of the objects at the sources is true; an exception means no."""

    __slots__ = ("_remedy", "fn", "text")
    op = "PREDICATE"

    def __init__(
        self, sources: tuple[Source, ...], fn: Callable[..., object], text: str, remedy: str = "", where: Where = None
    ) -> None:
        self.fn, self.text, self._remedy = fn, text, remedy
        self._set(tuple(sources), (fn if isinstance(fn, FunctionType) else id(fn), text), where)

    @property
    def remedy(self) -> str:
        return self._remedy

    def test(self, *objects: object) -> bool:
        try:
            return bool(self.fn(*objects))
        except Exception:
            return False

    def changed(self, names: Names, *objects: object) -> Change:
        told = [
            f"{names.quoted(s)} is {show(obj)}" for s, obj in zip(self.sources, objects, strict=True) if _is_plain(obj)
        ]
        # A condition on tensors' contents is written with all operations that lead to it.
        what = f"no longer: {shortened(self.told(names), _LONGEST)}"
        return Change(f"{what} ({', '.join(told)})" if told else what)

    def lower(self) -> tuple[int, object]:
        return 0, self.fn

    def fields(self) -> tuple[object, ...]:
        return self.sources, self.fn, self.text, self._remedy

    def shown(self, *paths: str) -> str:
        text = self.text
        own = {source.expr(): path for source, path in zip(self.sources, paths, strict=True)}
        for path in sorted(own, key=len, reverse=True):
            text = text.replace(path, own[path])
        return text

    def __str__(self) -> str:
        return self.text


#: that a number is this one: it was not compared, but its value needed; whether one divides another is asked
_IS_ONE = re.compile(r"(?!.* (?:and|or|%) )[^<>=!&|]+ == -?[\d.e+-]+\Z")
FOR_BRANCHES = (
    "decide this in a function with stator.disable, or with torch.where on a tensor: each outcome has a graph"
)
FOR_NUMBERS = "put what needs the number itself in a function with stator.disable, or keep the number in a tensor"
FOR_LOOPS = (
    "each number of rounds is compiled anew: compute on one tensor of all items, or put the loop in a function with "
    "stator.disable"
)
FOR_CUT_LOOPS = (
    "a loop with a graph break inside goes on in a frame for each place: mend that break, or put the loop in a "
    "function with stator.disable"
)
FOR_SIZES = "the code needs this size as a number: pad to a few sizes, or leave the call out with stator.disable"


def remedy_of_condition(form: str) -> str:
    """What helps where a condition on numbers, written `{0}`, `{1}` …, is false in call after call."""
    return FOR_NUMBERS if _IS_ONE.match(form) else FOR_BRANCHES


class Rounds(Predicate):
    """An iterator has another item, or has none: whether a loop that a break has cut goes on, or ends."""

    __slots__ = ()

    @classmethod
    def of(cls, source: Source, fn: Callable[..., object], *, goes_on: bool) -> Rounds:
        """As the function says of the iterator at the source."""
        return cls((source,), fn, f"{source.expr()} has {'another' if goes_on else 'no other'} item", FOR_CUT_LOOPS)

    def changed(self, names: Names, *objects: object) -> Change:
        name = names.quoted(self.sources[0])
        if self.text.endswith("no other item"):
            return Change(f"{name} was at its end, goes on now")
        return Change(f"{name} went on, is at its end now")


class Relation(Predicate):
    """A condition over the ints at the sources is true, an ``Expression``: the core finds out by itself."""

    __slots__ = ()
    op = "RELATION"
    fn: Expression

    def __init__(self, sources: tuple[Source, ...], fn: Expression, where: Where = None) -> None:
        super().__init__(sources, fn, fn.of([source.expr() for source in sources]), where=where)

    @property
    def counts(self) -> bool:  # type: ignore[override]
        return _IS_ONE.match(self.fn.text) is not None

    @property
    def remedy(self) -> str:
        return FOR_SIZES if self._is_one_size() else remedy_of_condition(self.fn.text)

    def _is_one_size(self) -> bool:
        """Whether it says which number a size is: `x.size(2) == 12`."""
        is_size = len(self.sources) == 1 and isinstance(self.sources[0], SizeSource)
        return is_size and _IS_ONE.match(self.fn.text) is not None

    def changed(self, names: Names, *objects: object) -> Change:
        change = super().changed(names, *objects)
        return change._replace(advice=FOR_SIZES) if self._is_one_size() else change

    def shown(self, *paths: str) -> str:
        return self.fn.of(paths)

    def fields(self) -> tuple[object, ...]:
        return self.sources, self.fn


class Apart(Predicate):
    """``fn`` of the tensors at the sources is true: what the core finds out by itself, if it can read the tensors."""

    __slots__ = ()
    op = "APART"


class Unrecorded(Predicate):
    """``fn`` of the tensor is true: so it is where autograd keeps nothing about it, which the core sees by itself.

    That the object is a tensor, a ``TensorMatch`` before it has to say: the core reads its memory.
    """

    __slots__ = ()
    op = "UNRECORDED"


class GlobalState(Guard):
    """``check()`` is true: a state that belongs to no object of the frame (grad mode, default dtype, …)."""

    __slots__ = ("fn", "tell", "text")
    op = "GLOBAL_STATE"

    def __init__(
        self, check: Callable[[], object], text: str, tell: Callable[[], str] | None = None, where: Where = None
    ) -> None:
        self.fn, self.text = check, text
        #: says what has changed
        self.tell = tell
        self._set((), (id(check), text), where)

    def test(self) -> bool:
        try:
            return bool(self.fn())
        except Exception:
            return False

    def changed(self, names: Names) -> Change:
        told = "" if self.tell is None else self.tell()
        return Change(
            told or f"no longer: {self.text}", "each state has a graph of its own: call the function under one"
        )

    def lower(self) -> tuple[int, object]:
        return 0, self.fn

    def fields(self) -> tuple[object, ...]:
        return self.fn, self.text, self.tell

    def shown(self) -> str:
        return self.text


def _was_and_is(name: str, was: str, now: str) -> Change:
    return _other_than_before(name, now) if was == now else Change(f"{name} was {was}, is {now}", "", was, now)


def _other_than_before(name: str, what: str) -> Change:
    return Change(f"{name} is another object than before, {what} too")


def _elements(count: int) -> str:
    return f"{count} element{'s' * (count != 1)}"


def _key_changed(names: Names, source: Source, key: object, verb: str) -> Change:
    owner = source.base if isinstance(source, InstanceDictSource) else None
    if owner is not None:
        return Change(f"{names.quoted(owner)} {verb} the attribute `{key}`")
    return Change(f"{names.quoted(source)} {verb} the key {show(key)}")


def _is_plain(obj: object) -> bool:
    return type(obj) in (int, float, bool, str)
