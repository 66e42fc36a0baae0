"""The kinds of graph breaks. Written by tools/breaks from their pages, `pages/SBxxxx.md`: change these."""

from __future__ import annotations

from stator.errors.catalogue import Break

__all__ = [
    "AutogradCall",
    "BackendFailed",
    "CachedFunction",
    "CollectiveCall",
    "DataDependentBranch",
    "DataDependentValue",
    "DebuggerCall",
    "DisabledFunction",
    "DrawnBranch",
    "DynamicOutputShape",
    "ExplicitBreak",
    "FailingCall",
    "ForcedBreak",
    "ForwardModeCall",
    "FrameGivenUp",
    "HigherOrderOperatorCall",
    "HostErrorWhileTracing",
    "ImportWithSideEffects",
    "InlineTooDeep",
    "LibraryCall",
    "LifetimeObserved",
    "MemoryObserved",
    "NewFinalizer",
    "NewLeaf",
    "NotReconstructible",
    "OpaqueIterator",
    "OpaqueResult",
    "OutsideCaller",
    "OutsideGenerator",
    "PendingSideEffects",
    "PrintOfTensor",
    "RandomStateAccess",
    "RecompileLimit",
    "Recompiled",
    "SequenceTooLong",
    "SuspendedCoroutine",
    "TraceTooLong",
    "UnknownArgument",
    "UnsupportedAttribute",
    "UnsupportedCCall",
    "UnsupportedClassCreation",
    "UnsupportedMethod",
    "UnsupportedMutation",
    "UnsupportedObject",
    "UnsupportedOpcode",
    "UnsupportedSlot",
    "UnsupportedTensorOperation",
    "UnsupportedTensorSubclass",
    "UnsupportedUse",
]


class UnsupportedCCall(Break):
    """A function written in C was called, and nothing is known about what it does."""

    code = "SB0101"
    title = "call of a C function that is not modelled"
    template = "call of the C function {function}"
    hint = (
        "call it outside, and pass in what it gives; if it works on tensors, stator.allow_in_graph or "
        "stator.substitute_in_graph"
    )
    function: str


class UnsupportedSlot(Break):
    """A built-in type has a slot that Stator does not model."""

    code = "SB0102"
    title = "operation of a built-in type that is not modelled"
    template = "{operation} of type '{type_name}'"
    hint = "`stator slots` lists what is modelled; the operation itself runs as ordinary Python"
    type_name: str
    operation: str


class UnsupportedAttribute(Break):
    """An attribute of a built-in object was read or set whose meaning is not modelled."""

    code = "SB0103"
    title = "attribute of a built-in type that is not modelled"
    template = "attribute '{attribute}' of type '{type_name}'"
    hint = "read it before the compiled function, and pass the result in"
    type_name: str
    attribute: str


class UnsupportedMethod(Break):
    """A method of a built-in type was called that is not modelled."""

    code = "SB0104"
    title = "method of a built-in type that is not modelled"
    template = "method '{method}' of type '{type_name}'"
    hint = "use an equivalent method or operator, or leave the break: the method runs as ordinary Python"
    type_name: str
    method: str


class OpaqueIterator(Break):
    """An iterator made outside the trace is advanced, and what it will yield cannot be seen."""

    code = "SB0105"
    title = "iterator made outside the compiled function"
    template = "iteration over {description}, which was made outside the compiled function"
    hint = (
        "pass the list or tuple behind it, or make the iterator inside; if it is made there before an earlier break, "
        "mend that"
    )
    description: str


class OutsideGenerator(Break):
    """A generator started outside the trace is advanced."""

    code = "SB0106"
    title = "generator made outside the compiled function"
    template = "use of the generator {name}, which was made outside the compiled function"
    hint = "make it in what is compiled; if its maker was left to Python by an earlier break, mend that"
    name: str


class UnsupportedClassCreation(Break):
    """A class is created in a way that cannot be followed, for example by a metaclass written in C."""

    code = "SB0108"
    title = "creation of a class that cannot be traced"
    template = "creation of class '{name}': {why}"
    hint = "define the class at module level"
    name: str
    why: str


class UnsupportedMutation(Break):
    """Something outside the trace is changed in a way that cannot be recorded and replayed."""

    code = "SB0109"
    title = "side effect that cannot be recorded"
    template = "{operation} on {target}"
    hint = "make the change before or after the compiled function"
    operation: str
    target: str


class RandomStateAccess(Break):
    """The state of a random number generator is read or set."""

    code = "SB0110"
    title = "access to the state of a random number generator"
    template = "{operation} reads or sets the state of a random number generator"
    hint = "draw outside and pass the numbers in; seed, save and restore generators outside"
    operation: str


class NotReconstructible(Break):
    """An object made while tracing is needed at run time, and no code can make it there."""

    code = "SB0111"
    title = "object that generated code cannot make"
    template = "{description} is needed after the graph, and generated code cannot make it"
    hint = "make the object outside the compiled function, or do not let it leave"
    description: str


class OpaqueResult(Break):
    """A C function returned an object of a type Stator has no model of."""

    code = "SB0112"
    title = "result of a type that is not modelled"
    template = "result of type {type_name}"
    hint = "make the object outside the compiled function"
    type_name: str


class LifetimeObserved(Break):
    """The program looks at when objects die; a trace, and what is resumed after a break, may keep them longer."""

    code = "SB0113"
    title = "observation of when objects die"
    template = "{operation} shows when objects die"
    hint = "count references, use finalisers and ask for the death of objects outside"
    whole = True
    operation: str


class MemoryObserved(Break):
    """The program looks at how an object lies in memory; one made again after a break lies differently."""

    code = "SB0114"
    title = "observation of an object's memory"
    template = "{operation} shows how {description} lies in memory"
    hint = "measure objects outside the compiled function"
    whole = True
    operation: str
    description: str


class UnsupportedUse(Break):
    """A function that is modelled was called in a way that is not."""

    code = "SB0115"
    title = "use of a function that is not modelled"
    template = "call of {function} {case}: that use of it is not modelled"
    hint = "make the call before the compiled function, or in another form; else it runs as ordinary Python"
    function: str
    case: str


class UnknownArgument(Break):
    """A function that must be run while tracing was given something that is only known when the program runs."""

    code = "SB0116"
    title = "argument that is not known while tracing"
    template = "call of {function} with {argument}, of which no value is known while tracing"
    hint = "give it a constant, or an object that was made outside; else the call runs as ordinary Python"
    function: str
    argument: str


class PendingSideEffects(Break):
    """A function may see what the program has done before and Stator has still to perform."""

    code = "SB0117"
    title = "call that may depend on side effects not yet performed"
    template = "call of {function}, which may depend on side effects that are not yet performed"
    hint = "call it before the compiled function changes anything; the break itself performs what is due"
    function: str


class CachedFunction(Break):
    """A function with a cache (`functools.lru_cache`) was called, and what the cache does cannot be followed."""

    code = "SB0118"
    title = "cached function that cannot be followed"
    template = "the function {function}, which has a cache, {case}"
    hint = "call it before the compiled function, or the function behind the cache (`.__wrapped__`)"
    function: str
    case: str


class FailingCall(Break):
    """A function that is run while tracing raises or warns, which is the program's to see."""

    code = "SB0119"
    title = "call that raises or warns while tracing"
    template = "call of {function}, which {what}"
    hint = "it runs as ordinary Python, so that the program sees it; avoid what it complains of"
    function: str
    what: str


class UnsupportedObject(Break):
    """An object was met that no trace can follow."""

    code = "SB0120"
    title = "object that cannot be traced"
    template = "{what} cannot be traced"
    hint = "use it outside the compiled function, or make it inside"
    what: str


class OutsideCaller(Break):
    """A function looks at who has called the compiled function."""

    code = "SB0121"
    title = "look at a caller outside the compiled function"
    template = "call of {function}, which looks at a caller outside the compiled function"
    hint = "pass what it looks for as an argument, or lower the stacklevel"
    function: str


class LibraryCall(Break):
    """A library's function that has nothing to do with tensors was called, and would break inside."""

    code = "SB0122"
    title = "call of a library's function that breaks inside"
    template = "a library's code cannot be traced: {function}{why}"
    hint = "nothing need be done; to have one graph, move the call out of the compiled function"
    function: str
    why: str = ""


class NewFinalizer(Break):
    """An instance was made of a class with a `__del__`, which runs where the program lets go of the instance."""

    code = "SB0123"
    title = "new object with a finalizer"
    template = "new instance of {class_name}, whose `__del__` runs when it ends"
    hint = "make it outside, and pass it in; what is done with it can be traced"
    class_name: str


class DataDependentBranch(Break):
    """Control flow depends on the value of a tensor, which no trace knows."""

    code = "SB0201"
    title = "branch on the value of a tensor"
    template = "{what} depends on {known_later}{why}"
    hint = "use torch.where or a mask, or return the value and decide outside of the compiled function"
    what: str = "a branch"
    known_later: str = "the value of a tensor"
    why: str = ""


class DataDependentValue(Break):
    """A Python value is made from the contents of a tensor."""

    code = "SB0202"
    title = "Python value made from a tensor's contents"
    template = "{operation} {does}"
    hint = "keep it a tensor, or make the value outside of the compiled function"
    operation: str
    does: str = "makes a Python value from a tensor's contents"


class DynamicOutputShape(Break):
    """The shape of a result depends on the contents of an input."""

    code = "SB0203"
    title = "operation whose result's shape depends on data"
    template = "the shape of the result of {operation} depends on the data"
    hint = "use a form with a fixed shape: torch.where with three arguments, a mask, a padded result"
    operation: str


class UnsupportedTensorOperation(Break):
    """An operation cannot be run on fake tensors, so its result is unknown."""

    code = "SB0204"
    title = "tensor operation that cannot be captured"
    template = "{operation} cannot be captured: {why}"
    hint = "move it out of the compiled function, or leave the break: it runs as ordinary Python there"
    operation: str
    why: str


class AutogradCall(Break):
    """The autograd engine is run inside the compiled function, and does more than the graph can."""

    code = "SB0205"
    title = "run of the autograd engine"
    template = "{operation} runs the autograd engine: {why}"
    hint = "compile the forward pass and the loss; call backward outside"
    operation: str
    why: str = "no graph does that"


class PrintOfTensor(Break):
    """A tensor's value is turned into text."""

    code = "SB0206"
    title = "text of a tensor's value"
    template = "{operation} needs the value of a tensor as text"
    hint = "stator.print shows it without its place in autograd's graph; or print its shape, or a detached tensor"
    operation: str


class UnsupportedTensorSubclass(Break):
    """An operation on tensors of a subclass does what no graph can do in its place."""

    code = "SB0207"
    title = "tensor subclass that is not traced"
    template = "an operation on '{type_name}' is not traced: {why}"
    hint = "let its __torch_dispatch__ only compute, or unwrap the tensors before the compiled function"
    type_name: str
    why: str


class HigherOrderOperatorCall(Break):
    """An operator that takes functions (`torch.cond`), or a Triton kernel, is called in a way that no graph has."""

    code = "SB0208"
    title = "call of a higher-order operator"
    template = "{operator} is left to PyTorch, and runs as in eager: {why}"
    hint = "let functions that it is given only compute, of what they are given and what they capture"
    operator: str
    why: str


class NewLeaf(Break):
    """A tensor is to require gradients that the trace cannot account for."""

    code = "SB0209"
    title = "tensor that is to require gradients"
    template = "{operation} changes whether a tensor is a leaf of autograd's graph, or makes such a leaf"
    hint = "have the tensor require gradients before the compiled function, and hand it in"
    operation: str


class ForwardModeCall(Break):
    """Forward-mode differentiation begins, ends, or is asked for tangents."""

    code = "SB0210"
    title = "forward-mode differentiation"
    template = "{function} is forward-mode differentiation, whose tangents no result of a graph carries"
    hint = "have nothing break the graph between entering the level and leaving it"
    function: str


class CollectiveCall(Break):
    """A function of torch.distributed is called that is no operation of the graph."""

    code = "SB0211"
    title = "call of torch.distributed"
    template = "{function} runs as ordinary Python, between two graphs: {why}"
    hint = "call it outside of the compiled function, or compile what is between such calls"
    function: str
    why: str


class DrawnBranch(Break):
    """Control flow depends on a number that a generator of Python's draws in each call."""

    code = "SB0212"
    title = "branch on a random number"
    template = "control flow depends on {what}, which is drawn anew in each call"
    hint = "draw outside and pass what is decided in, or decide with tensors: torch.where(torch.rand(()) < 0.5, a, b)"
    what: str


class ExplicitBreak(Break):
    """The program called `stator.graph_break`."""

    code = "SB0301"
    title = "graph_break() was called"
    template = "graph_break() was called: {message}"
    hint = "remove the call to capture one graph"
    message: str = "no message"


class DisabledFunction(Break):
    """The function called is marked as one that must not be traced."""

    code = "SB0302"
    title = "call of a disabled function"
    template = "call of {function}, which is disabled: {why}"
    hint = "nothing, if it is disabled on purpose; to trace it, remove stator.disable or torch.compiler.disable from it"
    function: str
    why: str = "no reason given"


class ForcedBreak(Break):
    """A test asked for a break at this instruction (`stator.testing.break_everywhere`)."""

    code = "SB0303"
    title = "break forced by a test"
    template = "break forced at instruction {index}"
    hint = "only stator.testing makes such breaks"
    index: int


class DebuggerCall(Break):
    """`breakpoint()` or another debugger is called: it needs the real frame."""

    code = "SB0304"
    title = "call of a debugger"
    template = "{function} starts a debugger"
    hint = "it works across the break; remove it to capture one graph"
    function: str


class UnsupportedOpcode(Break):
    """An instruction the interpreter does not handle."""

    code = "SB0401"
    title = "instruction that is not handled"
    template = "instruction {opcode}"
    hint = "the statement runs as ordinary Python"
    opcode: str


class SuspendedCoroutine(Break):
    """A coroutine waits for something only an event loop can bring."""

    code = "SB0402"
    title = "coroutine that needs an event loop"
    template = "{name} suspends, and only an event loop can resume it"
    hint = "await outside; compile the functions the coroutine calls"
    name: str


class ImportWithSideEffects(Break):
    """A module is imported for the first time, and could see that what the function did before is not done yet."""

    code = "SB0403"
    title = "first import of a module"
    template = "import of '{module}', which has not been imported yet"
    hint = "import it at the top of the file"
    module: str


class FrameGivenUp(Break):
    """A frame cannot be traced or resumed and runs as ordinary Python; its callees may still be traced."""

    code = "SB0404"
    title = "frame given up"
    template = "{function} runs as ordinary Python: {why}"
    hint = "the reason names what cannot be traced, or resumed after a break"
    function: str
    why: str


class HostErrorWhileTracing(Break):
    """Stator itself failed on this frame; `suppress_errors` let the program go on."""

    code = "SB0405"
    title = "Stator failed while tracing"
    template = "Stator failed while tracing {function}: {failure}"
    hint = "a defect of Stator: please report it, with the traceback that STATOR_VERBOSE=1 shows"
    function: str
    failure: str


class RecompileLimit(Break):
    """A code object has been compiled as often as allowed."""

    code = "SB0501"
    title = "recompile limit reached"
    template = "{function} was compiled {limit} times and now runs as ordinary Python; last change: {guard}"
    hint = "raise recompile_limit above the number of such cases, or put stator.disable on what depends on it"
    function: str
    limit: int
    guard: str


class TraceTooLong(Break):
    """A trace executed more instructions than allowed."""

    code = "SB0502"
    title = "trace too long"
    template = "the trace reached {limit} instructions"
    hint = "a long loop is unrolled: move it out of the compiled function, or raise trace_step_limit"
    whole = True
    limit: int


class InlineTooDeep(Break):
    """Inlined calls are nested deeper than allowed."""

    code = "SB0503"
    title = "calls nested too deeply"
    template = "call of {function} at depth {depth}"
    hint = "unbounded recursion ends here as it would in Python; else raise inline_depth_limit"
    function: str
    depth: int


class SequenceTooLong(Break):
    """A sequence has more items than a trace can hold one by one."""

    code = "SB0504"
    title = "sequence too long"
    template = "a sequence of {count} items is used item by item"
    hint = "use a tensor, or make the sequence outside the compiled function and pass it on unread"
    count: int


class Recompiled(Break):
    """A function is compiled again, since something that it used has changed."""

    code = "SB0601"
    title = "compiled again"
    template = "{function} is compiled again: {change}"
    hint = "if it varies from call to call, keep it out of the compiled function, or make it a tensor"
    function: str
    change: str


class BackendFailed(Break):
    """The backend raised, or did not return a callable."""

    code = "SB0602"
    title = "the backend failed"
    template = "backend '{backend}' {why}"
    hint = "compile with backend='eager', then 'aot_eager': the first one that fails has the defect"
    backend: str
    why: str
