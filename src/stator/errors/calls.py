"""SB01xx: calls and objects whose behaviour is not modelled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stator.errors.catalogue import Break


@dataclass(frozen=True)
class UnsupportedCCall(Break):
    """A function written in C was called, and nothing is known about what it does."""

    code: ClassVar[str] = "SB0101"
    title: ClassVar[str] = "call of a C function that is not modelled"
    template: ClassVar[str] = "call of the C function {function}"
    hint: ClassVar[str] = (
        "write it in Python (stator.substitute_in_graph), or use stator.allow_in_graph if it works on tensors"
    )
    function: str


@dataclass(frozen=True)
class UnsupportedSlot(Break):
    """A built-in type has a slot that Stator does not model."""

    code: ClassVar[str] = "SB0102"
    title: ClassVar[str] = "operation of a built-in type that is not modelled"
    template: ClassVar[str] = "{operation} of type '{type_name}'"
    hint: ClassVar[str] = "`stator slots` lists what is modelled; the operation itself runs as ordinary Python"
    type_name: str
    operation: str


@dataclass(frozen=True)
class UnsupportedAttribute(Break):
    """An attribute of a built-in object was read or set whose meaning is not modelled."""

    code: ClassVar[str] = "SB0103"
    title: ClassVar[str] = "attribute of a built-in type that is not modelled"
    template: ClassVar[str] = "attribute '{attribute}' of type '{type_name}'"
    hint: ClassVar[str] = "read it before the compiled function, and pass the result in"
    type_name: str
    attribute: str


@dataclass(frozen=True)
class UnsupportedMethod(Break):
    """A method of a built-in type was called that is not modelled."""

    code: ClassVar[str] = "SB0104"
    title: ClassVar[str] = "method of a built-in type that is not modelled"
    template: ClassVar[str] = "method '{method}' of type '{type_name}'"
    hint: ClassVar[str] = "use an equivalent method or operator, or leave the break: the method runs as ordinary Python"
    type_name: str
    method: str


@dataclass(frozen=True)
class OpaqueIterator(Break):
    """An iterator made outside the trace is advanced, and what it will yield cannot be seen."""

    code: ClassVar[str] = "SB0105"
    title: ClassVar[str] = "iterator made outside the compiled function"
    template: ClassVar[str] = "iteration over {description}, which was made outside the compiled function"
    hint: ClassVar[str] = "pass the list or tuple behind it, or make the iterator inside"
    description: str


@dataclass(frozen=True)
class OutsideGenerator(Break):
    """A generator started outside the trace is advanced."""

    code: ClassVar[str] = "SB0106"
    title: ClassVar[str] = "generator made outside the compiled function"
    template: ClassVar[str] = "use of the generator {name}, which was made outside the compiled function"
    hint: ClassVar[str] = "call the generator function inside the compiled function"
    name: str


@dataclass(frozen=True)
class UnsupportedClassCreation(Break):
    """A class is created in a way that cannot be followed, for example by a metaclass written in C."""

    code: ClassVar[str] = "SB0108"
    title: ClassVar[str] = "creation of a class that cannot be traced"
    template: ClassVar[str] = "creation of class '{name}': {why}"
    hint: ClassVar[str] = "define the class at module level"
    name: str
    why: str


@dataclass(frozen=True)
class UnsupportedMutation(Break):
    """Something outside the trace is changed in a way that cannot be recorded and replayed."""

    code: ClassVar[str] = "SB0109"
    title: ClassVar[str] = "side effect that cannot be recorded"
    template: ClassVar[str] = "{operation} on {target}"
    hint: ClassVar[str] = "make the change before or after the compiled function"
    operation: str
    target: str


@dataclass(frozen=True)
class RandomStateAccess(Break):
    """The state of a random number generator is read or set."""

    code: ClassVar[str] = "SB0110"
    title: ClassVar[str] = "access to the state of a random number generator"
    template: ClassVar[str] = "{operation} reads or sets the state of a random number generator"
    hint: ClassVar[str] = "seed, save and restore generators outside the compiled function"
    operation: str


@dataclass(frozen=True)
class NotReconstructible(Break):
    """An object made while tracing is needed at run time, and no code can make it there."""

    code: ClassVar[str] = "SB0111"
    title: ClassVar[str] = "object that generated code cannot make"
    template: ClassVar[str] = "{description} is needed after the graph, and generated code cannot make it"
    hint: ClassVar[str] = "make the object outside the compiled function, or do not let it leave"
    description: str


@dataclass(frozen=True)
class LifetimeObserved(Break):
    """The program looks at when objects die; a trace, and what is resumed after a break, may keep them longer."""

    code: ClassVar[str] = "SB0113"
    title: ClassVar[str] = "observation of when objects die"
    template: ClassVar[str] = "{operation} shows when objects die"
    hint: ClassVar[str] = "count references, use finalisers and ask for the death of objects outside"
    whole: ClassVar[bool] = True
    operation: str


@dataclass(frozen=True)
class MemoryObserved(Break):
    """The program looks at how an object lies in memory; one made again after a break lies differently."""

    code: ClassVar[str] = "SB0114"
    title: ClassVar[str] = "observation of an object's memory"
    template: ClassVar[str] = "{operation} shows how {description} lies in memory"
    hint: ClassVar[str] = "measure objects outside the compiled function"
    whole: ClassVar[bool] = True
    operation: str
    description: str


@dataclass(frozen=True)
class OpaqueResult(Break):
    """A C function returned an object of a type Stator has no model of."""

    code: ClassVar[str] = "SB0112"
    title: ClassVar[str] = "result of a type that is not modelled"
    template: ClassVar[str] = "result of type {type_name}"
    hint: ClassVar[str] = "make the object outside the compiled function"
    type_name: str


@dataclass(frozen=True)
class UnsupportedUse(Break):
    """A function that is modelled was called in a way that is not."""

    code: ClassVar[str] = "SB0115"
    title: ClassVar[str] = "use of a function that is not modelled"
    template: ClassVar[str] = "call of {function} {case}: that use of it is not modelled"
    hint: ClassVar[str] = (
        "make the call before the compiled function, or in another form; else it runs as ordinary Python"
    )
    function: str
    case: str


@dataclass(frozen=True)
class UnknownArgument(Break):
    """A function that must be run while tracing was given something that is only known when the program runs."""

    code: ClassVar[str] = "SB0116"
    title: ClassVar[str] = "argument that is not known while tracing"
    template: ClassVar[str] = "call of {function} with {argument}, of which no value is known while tracing"
    hint: ClassVar[str] = (
        "give it a constant, or an object that was made outside; else the call runs as ordinary Python"
    )
    function: str
    argument: str


@dataclass(frozen=True)
class PendingSideEffects(Break):
    """A function may see what the program has done before and Stator has still to perform."""

    code: ClassVar[str] = "SB0117"
    title: ClassVar[str] = "call that may depend on side effects not yet performed"
    template: ClassVar[str] = "call of {function}, which may depend on side effects that are not yet performed"
    hint: ClassVar[str] = "call it before the compiled function changes anything; the break itself performs what is due"
    function: str


@dataclass(frozen=True)
class CachedFunction(Break):
    """A function with a cache (`functools.lru_cache`) was called, and what the cache does cannot be followed."""

    code: ClassVar[str] = "SB0118"
    title: ClassVar[str] = "cached function that cannot be followed"
    template: ClassVar[str] = "the function {function}, which has a cache, {case}"
    hint: ClassVar[str] = "call it before the compiled function, or the function behind the cache (`.__wrapped__`)"
    function: str
    case: str


@dataclass(frozen=True)
class FailingCall(Break):
    """A function that is run while tracing raises or warns, which is the program's to see."""

    code: ClassVar[str] = "SB0119"
    title: ClassVar[str] = "call that raises or warns while tracing"
    template: ClassVar[str] = "call of {function}, which {what}"
    hint: ClassVar[str] = "it runs as ordinary Python, so that the program sees it; avoid what it complains of"
    function: str
    what: str


@dataclass(frozen=True)
class UnsupportedObject(Break):
    """An object was met that no trace can follow."""

    code: ClassVar[str] = "SB0120"
    title: ClassVar[str] = "object that cannot be traced"
    template: ClassVar[str] = "{what} cannot be traced"
    hint: ClassVar[str] = "use it outside the compiled function, or make it inside"
    what: str


@dataclass(frozen=True)
class OutsideCaller(Break):
    """A function looks at who has called the compiled function."""

    code: ClassVar[str] = "SB0121"
    title: ClassVar[str] = "look at a caller outside the compiled function"
    template: ClassVar[str] = "call of {function}, which looks at a caller outside the compiled function"
    hint: ClassVar[str] = "pass what it looks for as an argument, or lower the stacklevel"
    function: str
