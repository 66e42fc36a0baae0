"""For everything that can be asked of an object: objects that answer differently, one after the other.

A *kind* is a type of objects, a factory, and the ways in which such objects differ: changes in place and variants made
otherwise.  The questions are generated from `dir()`.  A question to which no two of the kind's objects answer
differently must be in the kind's table of those that cannot, with the reason, so that no attribute is forgotten.

`STATOR_FACTS=all` asks about every difference in turn; otherwise, of those that tell in a question, a few, which two
Pythons that follow each other share.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import stator
from tests.completeness.same import same

ALL = os.environ.get("STATOR_FACTS") == "all"
#: how many differences a question is asked about where not all are
FEW = 4
Factory = Callable[[], Any]
#: what answers otherwise for no change of the program's
UNSTEADY = {"o.__flags__": "whether CPython has cached a lookup is one of the bits"}
#: the code of breaks at a host exception inside of the tracer
HOST_ERROR = "SB0405"
#: asked of every object, besides its attributes and methods
QUERIES = (
    "len(o)",
    "bool(o)",
    "repr(o)",
    "str(o)",
    "type(o)",
    "[*o]",
    "next(o)",
    "vars(o)",
    "list(reversed(o))",
    "o()",
    "isinstance(o, list)",
    "getattr(o, 'absent', None)",
    "hasattr(o, 'tag')",
    "o == FIRST_OBJECT",
    "o[0]",
    "1 in o",
    "sorted(o)",
    "dir(o)",
    "callable(o)",
    "o.tag",
    "{**o}",
    "o(1)",
    "o['k']",
)
USES_UP = ("[*o]", "sorted(o)", "1 in o", "list(reversed(o))")
#: cannot differ unless an object is made to: what a kind's table need not repeat
ALWAYS = {
    "__init_subclass__": "does nothing",
    "__subclasshook__": "answers NotImplemented",
    "__doc__": "the type's",
    "__class__": "the type itself",
    "__hash__": "by address, or None",
    "__new__": "the type's",
    "__sizeof__": "of fixed size",
    "__dir__": "the type's names",
    "__getstate__": "no state",
    "__reduce__": "the type's way of copying",
    "__repr__": "an address",
    "__str__": "an address",
    "__class_getitem__": "the type's",
    "__slots__": "the type's",
    "update": "nothing without arguments",
    "subtract": "nothing without arguments",
    "difference_update": "nothing without arguments",
    "intersection_update": "nothing without arguments",
    "gi_running": "only while it runs",
    "__vectorcalloffset__": "the type's",
    "__weakref__": "none",
    "__abstractmethods__": "the type's",
    "_abc_impl": "the type's",
    "__iter__": "the object itself",
    "_is_protocol": "the type's",
    "__setattr__": "the type's",
    "__dict__": "the object itself",
    "__init__": "does nothing again",
    "__module__": "the type's",
    "__firstlineno__": "the type's",
    "__static_attributes__": "the type's",
    "__annotate_func__": "the type's",
    "__annotations_cache__": "the type's",
}


@dataclass(frozen=True)
class Kind:
    """A type of objects and how they differ; `constant`: names -> why no two objects differ in them."""

    name: str
    make: Factory
    changes: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)
    variants: Mapping[str, Factory] = field(default_factory=dict)
    constant: Mapping[str, str] = field(default_factory=dict)
    queries: tuple[str, ...] = ()
    endless: bool = False
    names: bool = True
    #: a part of what a missed change says -> the guard that lacks
    known: Mapping[str, str] = field(default_factory=dict)

    def asked(self) -> tuple[str, ...]:
        """What is asked besides: of an endless iterator nothing that would use it up."""
        return (*self.queries, *(q for q in QUERIES if not self.endless or q not in USES_UP))

    def reason(self, question: str) -> str | None:
        """Why the answers to the question cannot differ, if a table says so."""
        name = question.removeprefix("o.").removesuffix("()")
        reasons = {name: reason for reason, names in self.constant.items() for name in names.split()}
        return reasons.get(name) or ALWAYS.get(name)

    def questions(self) -> list[str]:
        """What can be asked: every attribute, and every method that can be called without arguments."""
        if not self.names:
            return []
        example = self.make()
        names = sorted({*dir(example), *dir(type(example))})
        return [q for name in names for q in self._about(name)]

    def _about(self, name: str) -> Iterator[str]:
        obj = self.make()
        try:
            found = getattr(obj, name)
        except Exception:
            yield f"o.{name}"
            return
        if not callable(found) or isinstance(found, type):
            yield f"o.{name}"
            return
        if isinstance(found, types.FunctionType):  # an attribute like others, and one that can be called
            yield f"o.{name}"
        try:
            found()
        except TypeError:
            return  # it needs arguments
        except Exception:
            pass
        yield f"o.{name}()"

    def others(self) -> Iterator[tuple[str, Factory, Callable[[Any], object] | None]]:
        """Objects that differ from the first: how, the factory of one, and the change in place, if it is one."""
        for how, change in self.changes.items():
            yield how, functools.partial(changed, self.make, change), change
        for how, make in self.variants.items():
            yield how, make, None


def changed(make: Factory, change: Callable[[Any], object]) -> Any:
    obj = make()
    change(obj)
    return obj


# -- where the program finds the object --------------------------------------------------------------------------------


class Holder:
    """What holds the object, on an instance or on the class."""

    o: Any


#: place -> the program's source; `{body}` reads `o`
PLACES = {
    "argument": "def program(o):\n    {body}\n",
    "global": "def program():\n    o = HELD\n    {body}\n",
    "closure": "def enclosing(held):\n    def program():\n        o = held\n        {body}\n    return program\n"
    "program = enclosing(None)\n",
    "attribute": "def program(holder):\n    o = holder.o\n    {body}\n",
    "class attribute": "def program():\n    o = Holder.o\n    {body}\n",
    "default": "def program(o=None):\n    {body}\n",
    "list": "def program(held):\n    o = held[0]\n    {body}\n",
    "dict": "def program(held):\n    o = held['k']\n    {body}\n",
}


class World:
    """A program, and the place where it finds its object."""

    def __init__(self, place: str, body: types.CodeType, first: dict[str, Any], traced: bool) -> None:
        self.place = place
        self.space: dict[str, Any] = {"HELD": None, "Holder": type("Holder", (Holder,), {"o": None}), **first}
        exec(body, self.space)
        self.function = self.space["program"]
        self.instance, self.items, self.table = Holder(), [None], {"k": None}
        self.program = stator.compile(self.function, backend="eager") if traced else self.function

    def put(self, obj: Any) -> None:
        self.obj = obj
        match self.place:
            case "global":
                self.space["HELD"] = obj
            case "closure":
                self.function.__closure__[0].cell_contents = obj
            case "attribute":
                self.instance.o = obj
            case "class attribute":
                self.space["Holder"].o = obj
            case "default":
                self.function.__defaults__ = (obj,)
            case "list":
                self.items[0] = obj
            case "dict":
                self.table["k"] = obj

    def ask(self) -> tuple[Any, ...]:
        args = {
            "argument": (self.obj,),
            "attribute": (self.instance,),
            "list": (self.items,),
            "dict": (self.table,),
        }
        return outcome(self.program, *args.get(self.place, ()))


def outcome(call: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    try:
        return "returned", call(*args)
    except SystemError:
        return "raised", SystemError  # of an error that C code forgot: its words name who called it
    except Exception as e:
        return "raised", type(e), str(e)


# -- the check ---------------------------------------------------------------------------------------------------------

FORMS = {"read": "return {q}", "branch": "return 'first' if ({q}) == FIRST else 'another'"}


@functools.cache
def source(place: str, form: str, question: str) -> types.CodeType:
    text = PLACES[place].format(body=FORMS[form].format(q=question))
    return compile(text, f"<{question}, {place}, {form}>", "exec")


def check(kind: Kind) -> None:
    """Everything that can be asked of the kind's objects is answered anew, and no question is forgotten."""
    raising = [how for how, change in kind.changes.items() if outcome(change, kind.make())[0] == "raised"]
    assert not raising, f"changes that raise: {raising}"
    missed: list[str] = []
    unlisted: list[str] = []
    questions = kind.questions()
    for number, question in enumerate([*questions, *kind.asked()]):
        if question in UNSTEADY:
            continue
        stator.reset()
        telling, wrong = stale(kind, question, number)
        missed += wrong
        if question in questions and not telling and not kind.reason(question):
            unlisted.append(question)
    new = [miss for miss in missed if not any(known in miss for known in kind.known)]
    assert not new, "\n".join(new)
    mended = [known for known in kind.known if ALL and not any(known in miss for miss in missed)]
    assert not mended, f"no longer missed, to be taken out of `known`: {mended}"
    assert not unlisted, f"neither asked of objects that differ in it, nor listed: {unlisted}"


def stale(kind: Kind, question: str, number: int = 0) -> tuple[int, list[str]]:
    """How many ways of differing change the answer to the question; and those where the traced program missed it."""
    answer, after = asked(kind, question, kind.make)
    if not same(answer, asked(kind, question, kind.make)[0]):
        return 0, unlike(kind, question)
    acts = not same(after, kind.make())
    telling = [other for other in kind.others() if acts or tells(kind, question, answer, other[1])]
    wrong = [
        f"{question} {form}s, by {place}: {how}: {found}"
        for (how, make, change), place, form in occasions(telling, number)
        if (found := missed(kind, question, make, change, place, form))
    ]
    return len(telling), wrong


def tells(kind: Kind, question: str, answer: Any, make: Factory) -> bool:
    """Whether the object answers otherwise, or is changed by being asked."""
    other, after = asked(kind, question, make)
    return not same(answer, other) or not same(after, make())


def unlike(kind: Kind, question: str) -> list[str]:
    """No two objects have the answer, an address: those of three that live at the same time are asked for."""
    objects = [kind.make() for _ in range(3)]
    world = World("argument", source("argument", "read", question), {"FIRST_OBJECT": objects[0]}, traced=True)
    wrong = []
    for obj in objects:
        world.put(obj)
        have, want = world.ask(), outcome(query(question), obj, lambda: objects[0])
        wrong += [] if same(want, have) else [f"{question}, an address: {have!r} instead of {want!r}"]
    return wrong


WAYS = [("argument", "branch"), *((place, "read") for place in PLACES), ("global", "branch")]
Difference = tuple[str, Factory, Callable[[Any], object] | None]


def occasions(telling: list[Difference], number: int) -> Iterator[tuple[Difference, str, str]]:
    """The first difference is asked for in every way, each of the others in one, by turns; or only a few of them."""
    if ALL:
        ways = [(0, way) for way in range(len(WAYS))] + [(other, other % len(WAYS)) for other in range(1, len(telling))]
    else:
        step = max(1, len(telling) // FEW)
        ways = [(other, number + other) for other in range(number % step, len(telling), step)]
        ways = ways[sys.version_info.minor % 2 :: 2] or ways
    for other, way in ways if telling else ():
        yield telling[other], *WAYS[way % len(WAYS)]


def asked(kind: Kind, question: str, make: Factory) -> tuple[tuple[Any, ...], Any]:
    """What the question is answered without Stator, and the object after it."""
    obj = make()
    return outcome(query(question), obj, kind.make), obj


@functools.cache
def query(question: str) -> Callable[[Any, Factory], Any]:
    if "FIRST_OBJECT" in question:
        return eval(f"lambda o, make: {question.replace('FIRST_OBJECT', 'make()')}")  # type: ignore[no-any-return]
    return eval(f"lambda o, make: {question}")  # type: ignore[no-any-return]


def missed(
    kind: Kind, question: str, make: Factory, change: Callable[[Any], object] | None, place: str, form: str
) -> str:
    """Ask of one object, of another, of the first, and of the first changed in place: where the answers go apart."""
    answer, _kept = asked(kind, question, kind.make)  # where it lies no other object lies as long as it lives
    first = {"FIRST": answer[1] if answer[0] == "returned" else None}
    body = source(place, form, question)
    plain = World(place, body, {**first, "FIRST_OBJECT": kind.make()}, traced=False)
    traced = World(place, body, {**first, "FIRST_OBJECT": kind.make()}, traced=True)
    steps = [("the first", kind.make, None), ("the other", make, None), ("back", kind.make, None)]
    if change is not None:
        steps.append(("changed", None, change))  # type: ignore[arg-type]
    for step, factory, alter in steps:
        answers = []
        for world in (plain, traced):
            if alter is None:
                world.put(factory())
            else:
                outcome(alter, world.obj)  # an object that has been asked may be past changing
            answers.append((world.ask(), world.obj))
        (want, object_), (have, twin) = answers
        if not same(want, have):
            return f"{step}: {have!r} instead of {want!r}"
        if not same(object_, twin):
            return f"{step}: left {twin!r} instead of {object_!r}"
    return next((f"a defect of the tracer: {b.reason}" for b in stator.stats().breaks if b.code == HOST_ERROR), "")
