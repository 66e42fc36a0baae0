"""Continuations: the original code object entered at some instruction, with its stack and locals restored.

A continuation is a prologue followed by what is reachable of the original's instructions. The prologue takes the
parameters (payload, stack values, locals), rebuilds the stack, makes each handled exception the thread's current one
again, and goes on. All variables that live in cells come in as the function's closure: `continuation_freevars` names
them in order. A cell variable of the original remains one, so that its errors and its f_locals do not change; the
prologue puts the given cell in its slot.
"""

from __future__ import annotations

import opcode
import sys
import weakref
from collections.abc import Iterator, Sequence
from types import CellType, CodeType, FunctionType, TracebackType
from typing import Any, Literal, NamedTuple, get_args

from stator._core import mark_resumed, raise_unchanged

from .assemble import Handler, Item, Position, Template, assemble
from .by_code import ByCode
from .decode import Decoded, decode, is_suspendable
from .flow import Flow, flow
from .stack import StackError, depths, handled
from .versions import current
from .versions.common import local_slots

_OPTIMIZED = 0x01 | 0x02  # CO_OPTIMIZED, CO_NEWLOCALS
_SLOT_OPS = frozenset(opcode.opname[number] for number in (*opcode.haslocal, *opcode.hasfree))
_PREFIX = frozenset({"COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR"})

ResumeMode = Literal["value", "throw", "call", "enter"]
"""How a frame goes on; see `continuation`."""

StackKind = Literal["value", "null", "handler", "lasti", "previous"]
"""What an entry of its stack is."""

_MODES = frozenset(get_args(ResumeMode))
_KINDS = frozenset(get_args(StackKind))


class ContinuationError(Exception):
    """There is no continuation at this place, or what was asked for does not fit it."""


def caught(exc: BaseException) -> BaseException:
    """The exception as a handler finds it: one that has never been raised gets a traceback.

    Without one, __exit__ would see None for it (3.11: crash). The group that `except*` makes of an exception has none.
    """
    if exc.__traceback__ is None and not isinstance(exc, BaseExceptionGroup):
        frame = sys._getframe(1)
        exc.__traceback__ = TracebackType(None, frame, frame.f_lasti, frame.f_lineno or -1)
    return exc


class _Place(NamedTuple):
    """What identifies a continuation of one code object."""

    at: int
    mode: ResumeMode
    stack: tuple[StackKind, ...]
    names: tuple[str, ...]
    results: int
    target: int | None
    generator: bool
    cleared: frozenset[str]
    raised: tuple[int, ...]


class _Origin(NamedTuple):
    """Where a continuation's instructions come from."""

    original: weakref.ref[CodeType]
    place: _Place
    call: int  # the prologue's instruction that stands for place.at, or -1
    kept: tuple[int, ...]  # the original's indexes of the instructions after the prologue
    raised: dict[int, int]  # the prologue's instructions that stand for those of place.raised


def _none_yet(code: CodeType) -> dict[_Place, CodeType]:
    return {}


_made = ByCode[dict[_Place, CodeType]]()
_origins = ByCode[_Origin]()


def continuation(
    code: CodeType,
    index: int,
    *,
    mode: ResumeMode = "value",
    stack: tuple[StackKind, ...] = (),
    names: tuple[str, ...] = (),
    results: int = 1,
    target: int | None = None,
    generator: bool = False,
    cleared: frozenset[str] = frozenset(),
    raised: tuple[int, ...] = (),
) -> CodeType:
    """The code object that goes on with `code` at instruction `index` of `decode(code).instrs`.

    Its parameters are positional: the payload, one per "value" and "handler" of `stack` (bottom first), one per local
    in `names`. The other kinds of `stack` take none: "null", "lasti", and "previous", a COPY of the topmost "handler".
    A "handler" is the entry PUSH_EXC_INFO left for an exception that is still being handled, given as that exception;
    when a POP_EXCEPT of its COPY has ended that, the entry itself is a "value" nobody reads.

    * mode "value": the payload is `results` values, pushed above the stack; goes on after `index`, or at `target`.
    * mode "throw": the payload is an exception, raised as if by `index` itself.
    * mode "call": the payload is a callable and a tuple; called at `index`, the result pushed, and on as "value".
    * mode "enter": no payload; goes on at `index` itself, whose operands are on the stack.

    `raised` are the instructions that the "lasti" entries name, bottom first.

    In an inlined comprehension (3.12+) a variable that has a cell may hold a plain value instead: then it is one of
    `names`; or nothing: then it is one of `cleared`. Its cell in the function's closure is not used.

    The code of a generator or coroutine gives one again: what is said above then happens at its first `next()`.
    With `generator=True` (mode "value", at a YIELD_VALUE, no payload) the first `next()` brings it to where it was
    suspended: the creator does that (for an asynchronous generator, `asend(None).send(None)`), later ones act as at
    that yield.
    """
    original, first, target = _resolve(code, index, mode, target)
    if mode == "value" and not generator:
        # Where it goes on is what matters: `while` has its condition twice in the bytecode, and one body, to which
        # one of them jumps.
        target = first + 1 if target is None else target
        instrs = decode(original).instrs
        if target < len(instrs) and instrs[target].op == "JUMP":
            target = instrs[target].arg
        first = target
    pushed = results if mode == "value" and not generator else 0
    raised = tuple(original_of(code, at)[1] for at in raised)
    place = _Place(first, mode, tuple(stack), tuple(names), pushed, target, generator, frozenset(cleared), raised)
    made = _made.of(original, _none_yet)
    found = made.get(place)
    if found is None:
        found = made[place] = _build(original, place)
    return found


_variants = ByCode[ByCode[weakref.ref[CodeType]]]()
_unvaried = ByCode[CodeType]()


def variant(code: CodeType, inner: CodeType) -> CodeType:
    """The continuation `code` as it calls the continuation `inner`: a copy of its own, hence with a cache of its own.

    A frame is resumed at one call as often as its callee breaks, each time with another inner continuation.
    """
    copies = _variants.of(code, lambda code: ByCode())
    known = copies.find(inner)
    found = None if known is None else known()
    if found is None:
        # Who calls it holds it: it holds what its own cache refers to, and `inner` is part of that.
        found = code.replace()
        _keep(found, _origins[code])
        _unvaried.keep(found, code)
        copies.keep(inner, weakref.ref(found))
    return found


def unvaried(code: CodeType) -> CodeType:
    """The continuation that the code is a copy of (see `variant`); any other code itself.

    What is remembered of one copy (sizes that vary, a limit that is reached) is remembered of all.
    """
    return _unvaried.find(code) or code


def original_of(code: CodeType, index: int) -> tuple[CodeType, int]:
    """The original instruction that an instruction of a continuation is; for any other code, what was given.

    A call in a continuation's prologue stands for the instruction it was made at, one that pushes a place for the
    instruction there; what else is in a prologue is itself.
    """
    found = _original(code)
    if found is None:
        return code, index
    origin, original = found
    if index == origin.call:
        return original, origin.place.at
    if index in origin.raised:
        return original, origin.raised[index]
    place = index - _prologue_length(code, origin)
    return (code, index) if place < 0 else (original, origin.kept[place])


def _original(code: CodeType) -> tuple[_Origin, CodeType] | None:
    """How a continuation was made, and of which code; None for any other code."""
    origin = _origins.find(code)
    original = None if origin is None else origin.original()
    return None if origin is None or original is None else (origin, original)


def is_continuation(code: CodeType) -> bool:
    """Whether the code was made here."""
    return _origins.find(code) is not None


def entered_at(code: CodeType) -> tuple[CodeType, int] | None:
    """The original of a continuation, and the instruction that it begins with; None for any other code."""
    found = _original(code)
    return None if found is None else (found[1], found[0].place.at)


def resumed_after(code: CodeType) -> tuple[CodeType, int] | None:
    """The original of a continuation that is given a value, and the instruction before the one it goes on at."""
    found = _original(code)
    if found is None or found[0].place.mode != "value" or found[0].place.results != 1:
        return None
    return found[1], found[0].place.at - 1


def resume_line(code: CodeType) -> int:
    """The line of the original at which a continuation goes on; 0 for any other code."""
    found = _original(code)
    if found is None:
        return 0
    origin, original = found
    at, target = origin.place.at, origin.place.target
    first = at + (origin.place.mode == "value") if target is None else target
    return next((instr.line for instr in decode(original).instrs[first:] if instr.line), code.co_firstlineno)


def goes_on_with(code: CodeType) -> CodeType:
    """The code that a continuation goes on with; any other code itself."""
    found = _original(code)
    return code if found is None else found[1]


def waiting_codes(code: CodeType, args: Sequence[Any]) -> Iterator[CodeType]:
    """The code of a frame, and of those inside that it goes on with (mode "call"), given its arguments."""
    yield code
    while ".callable" in (names := parameters(code) or ()):
        at = names.index(".callable")
        function, args = args[at : at + 2]
        code = function.__code__
        yield code


def parameters(code: CodeType) -> tuple[str, ...] | None:
    """What the parameters of a continuation are; None for any other code.

    Their names say another where the frame uses `super()`, which wants the original's first one in the first slot.
    """
    origin = _origins.find(code)
    return None if origin is None else tuple(_parameters(origin.place))


def raises(code: CodeType) -> bool:
    """Whether the code is a continuation that begins by raising an exception."""
    origin = _origins.find(code)
    return origin is not None and origin.place.mode == "throw"


def in_prologue(code: CodeType, index: int) -> bool:
    """Whether the instruction belongs to a continuation's prologue, so that there is no continuation at it."""
    origin = _origins.find(code)
    return origin is not None and index != origin.call and index < _prologue_length(code, origin)


def enterable(code: CodeType, index: int) -> bool:
    """Whether execution can be entered AT the instruction (mode "enter")."""
    origin = _origins.find(code)
    return origin is None or not (index == origin.call or in_prologue(code, index))


def continuation_freevars(code: CodeType) -> tuple[str, ...]:
    """The variables whose cells a continuation's function needs, in order; names as in Decoded."""
    decoded = decode(goes_on_with(code))
    return decoded.cellvars + decoded.freevars


def make_function(code: CodeType, globals: dict[str, object], cells: tuple[CellType, ...] = ()) -> FunctionType:
    """The function of a continuation: `cells` are those of `continuation_freevars`."""
    return FunctionType(code, globals, code.co_name, None, cells)


def _prologue_length(code: CodeType, origin: _Origin) -> int:
    return len(decode(code).instrs) - len(origin.kept)


def _resolve(code: CodeType, index: int, mode: ResumeMode, target: int | None) -> tuple[CodeType, int, int | None]:
    """The same place in the original, so that prologues never pile up."""
    if in_prologue(code, index):
        raise ContinuationError("inside a continuation's prologue")
    original, first = original_of(code, index)
    if original is code:
        return code, index, target
    if target is not None:
        return original, first, original_of(code, target)[1]
    origin = _origins[code]
    if index == origin.call:
        if mode == "enter":
            raise ContinuationError("the operands of a prologue's call are not the original instruction's")
        target = origin.place.target
    return original, first, target


class _Layout:
    """The new code object's slots, and where each old slot goes."""

    def __init__(self, code: CodeType, place: _Place) -> None:
        decoded = decode(code)
        self.params = _parameters(place)
        """Each parameter: what it means."""
        varnames, self.cellvars = list(self.params), decoded.cellvars
        self.moves: list[tuple[int, str]] = []
        """Parameters to be moved to another local: slot and name."""
        if _reads_first_argument(code):
            self._keep_first_argument(code.co_varnames[0], varnames)
        varnames += [name for name in decoded.varnames if name not in varnames]
        self.varnames = tuple(varnames)
        self.cleared = place.cleared
        self.restored = [name for name in self.cellvars if name not in {*place.names, *place.cleared}]
        """Variables that get the cell that is given for them."""
        self.freevars = decoded.cellvars + decoded.freevars
        self._place_slots(code)

    def _keep_first_argument(self, first: str, varnames: list[str]) -> None:
        """`super()` takes the argument in slot 0 of a frame, whatever it is: the original's must be there."""
        if not varnames:
            raise ContinuationError("super() needs a first argument and there is no parameter")
        if varnames[0] == first:
            return
        if first in varnames:
            varnames[varnames.index(first)] = ".first"
            self.moves.append((varnames.index(".first"), first))
        if not varnames[0].startswith("."):
            self.moves.insert(0, (0, varnames[0]))
        varnames[0] = first

    def _place_slots(self, code: CodeType) -> None:
        plain = {name: slot for slot, name in enumerate(self.varnames)}
        cells: dict[str, int] = {}
        end = len(self.varnames)
        for name in self.cellvars:
            cells[name] = plain.get(name, end)
            end += name not in plain
        free = {name: end + number for number, name in enumerate(self.freevars)}
        self.given = {name: (free[name], cells[name]) for name in self.restored}
        """Where a cell comes in and where it belongs."""
        self.made = [slot for name, slot in cells.items() if name not in plain and name not in self.cleared]
        names, is_cell = local_slots(code)
        self.slots = [
            plain[name] if not cell else cells[name] if name in cells else free[name]
            for name, cell in zip(names, is_cell)
        ]
        self.local = plain


def _parameters(place: _Place) -> list[str]:
    payload = [f".result{number}" for number in range(place.results)]
    if place.mode == "throw":
        payload = [".exception"]
    elif place.mode == "call":
        payload = [".callable", ".arguments"]
    values = [f".stack{depth}" for depth, kind in enumerate(place.stack) if kind in ("value", "handler")]
    return [*payload, *values, *place.names]


def _reads_first_argument(code: CodeType) -> bool:
    return code.co_argcount > 0 and "__class__" in code.co_freevars and "super" in code.co_names


class _Prologue:
    """Writes the instructions that restore a frame."""

    def __init__(
        self, code: CodeType, place: _Place, layout: _Layout, positions: dict[int, Position], entered: bool
    ) -> None:
        self.items: list[Item] = []
        self.positions = positions
        self.raised: list[tuple[Item, int]] = []
        """Instructions that raise in order to push their place, and the original ones they stand for."""
        self.consts: list[object] = list(code.co_consts)
        self.layout = layout
        self.position = positions[place.at]
        self.call: Item | None = None
        self._enter(code)
        self._push(place, entered)

    def add(self, raw: str, arg: int = 0) -> Item:
        """One more instruction."""
        item = Item(raw, arg, self.position)
        self.items.append(item)
        return item

    def constant(self, value: object) -> None:
        """Pushes a constant."""
        self.consts.append(value)
        self.add("LOAD_CONST", len(self.consts) - 1)

    def push_place(self, place: _Place, depth: int) -> None:
        """Pushes the place of the instruction that has raised, which RERAISE takes the frame back to.

        Only an exception's way to a handler pushes one: from 3.14 on it is no object. So one is raised and dropped, by
        an instruction with the earlier one's line and columns.
        """
        number = len(self.raised)
        at = place.raised[number] if number < len(place.raised) else place.at
        self.constant(AssertionError)
        raising = self.add("RAISE_VARARGS", 1)
        raising.position = self.positions[at]
        raising.handler = Handler(self.add("POP_TOP"), depth, True)
        self.raised.append((raising, at))

    def take(self, slot: int) -> None:
        """Moves a parameter to the stack: its slot is empty afterwards, so locals() does not show it."""
        for raw in current.TAKE:
            self.add(raw, slot)

    def _enter(self, code: CodeType) -> None:
        if self.layout.freevars:
            self.add("COPY_FREE_VARS", len(self.layout.freevars))
        for slot in self.layout.made:
            self.add("MAKE_CELL", slot)  # a frame's f_locals sees through a cell only after this
        if is_suspendable(code):
            self.add("RETURN_GENERATOR")
            self.add("POP_TOP")
        self.add("RESUME", 0)

    def _push(self, place: _Place, entered: bool) -> None:
        """Rebuilds the stack; `entered`: at a handler, so that its topmost value is an exception just caught."""
        slot = len(self.layout.params) - len(place.names) - sum(kind in ("value", "handler") for kind in place.stack)
        topmost = 0
        for depth, kind in enumerate(place.stack):
            if kind == "null":
                self.add("PUSH_NULL")
            elif kind == "lasti":
                self.push_place(place, depth)
            elif kind == "previous":
                self.add("COPY", depth - topmost)
            elif kind == "handler":
                topmost = depth
                self.catch(slot)
                self.add("PUSH_EXC_INFO")
                self.add("POP_TOP")
                slot += 1
            elif entered and depth == len(place.stack) - 1:
                self.catch(slot)
            else:
                self.take(slot)
                slot += 1
        for result in range(place.results):
            self.take(result)

    def begin_call(self, function: object, slot: int) -> None:
        """Pushes a function and the parameter with which `end_call` calls it."""
        if current.NULL_FIRST:
            self.add("PUSH_NULL")
        self.constant(function)
        if not current.NULL_FIRST:
            self.add("PUSH_NULL")
        self.take(slot)

    def end_call(self) -> Item:
        """The call of what `begin_call` pushed."""
        if "PRECALL" in opcode.opmap:
            self.add("PRECALL", 1)
        return self.add("CALL", 1)

    def catch(self, slot: int) -> None:
        """Pushes the exception in a parameter as one that has been raised."""
        self.begin_call(caught, slot)
        self.end_call()

    def restore_variables(self) -> None:
        """Puts locals whose parameter lies elsewhere, and the given cells, in their slots."""
        for slot, name in self.layout.moves:
            self.take(slot)
            self.add("STORE_FAST", self.layout.local[name])
        for given, slot in self.layout.given.values():
            self.add("LOAD_FAST", given)
            self.add("STORE_FAST", slot)

    def raise_payload(self) -> None:
        """Mode "throw"."""
        self.begin_call(raise_unchanged, 0)
        self.restore_variables()
        self.call = self.end_call()
        self.add("RETURN_VALUE")  # never reached

    def call_payload(self) -> None:
        """Mode "call"."""
        if current.NULL_FIRST:
            self.add("PUSH_NULL")
        self.take(0)
        if not current.NULL_FIRST:
            self.add("PUSH_NULL")
        self.take(1)
        self.restore_variables()
        if current.KEYWORDS_OR_NULL:
            self.add("PUSH_NULL")
        self.call = self.add("CALL_FUNCTION_EX", 0)


def _check(code: CodeType, place: _Place, decoded: Decoded, goal: int) -> None:
    if code.co_flags & _OPTIMIZED != _OPTIMIZED:
        raise ContinuationError("a class or module body has no continuation")
    if place.mode not in _MODES or not _KINDS.issuperset(place.stack):
        raise ContinuationError(f"unknown mode or kind: {place.mode}, {place.stack}")
    known = {*decoded.varnames, *decoded.cellvars}
    if not known.issuperset({*place.names, *place.cleared}) or len(set(place.names)) < len(place.names):
        raise ContinuationError(f"not locals of {code.co_name}: {place.names}")
    instrs = decoded.instrs
    if not (0 <= place.at < len(instrs) and 0 <= goal < len(instrs)):
        raise ContinuationError("nothing comes after the last instruction")
    started = next(number for number, instr in enumerate(instrs) if instr.op not in _PREFIX)
    if min(place.at, goal) < started:
        raise ContinuationError("the frame has not begun here: call the function itself")
    try:
        _check_stack(place, decoded, goal)
    except StackError as error:
        raise ContinuationError(f"bytecode no compiler emits: {error}") from None


def _check_stack(place: _Place, decoded: Decoded, goal: int) -> None:
    at, entries = decoded.instrs[place.at], len(place.stack)
    active = handled(decoded)[place.at if place.mode in ("throw", "call") else goal]
    if place.stack.count("handler") != active or ("previous" in place.stack and not active):
        raise ContinuationError(f"{at!r}: {active} exceptions are being handled, not {place.stack.count('handler')}")
    if place.mode == "throw":
        if at.handler is not None and entries < at.handler.depth:
            raise ContinuationError(f"{at!r}: its handler needs {at.handler.depth} stack entries, not {entries}")
        return
    pushed = 1 if place.mode == "call" or place.generator else place.results
    if depths(decoded)[goal] != entries + pushed:
        raise ContinuationError(
            f"{decoded.instrs[goal]!r} needs {depths(decoded)[goal]} stack entries, not {entries + pushed}"
        )


def _goal(place: _Place, decoded: Decoded) -> int:
    """The canonical instruction to go on at."""
    if place.generator:
        if place.mode != "value" or decoded.instrs[place.at].op != "YIELD_VALUE" or place.target is not None:
            raise ContinuationError("a suspended generator stands at a YIELD_VALUE")
        return place.at
    if place.mode in ("enter", "throw"):
        return place.at
    return place.at + 1 if place.target is None else place.target


def _body(shape: Flow, kept: list[int], layout: _Layout) -> dict[int, Item]:
    """The original's instructions, with slots renumbered and linked to each other."""
    items: dict[int, Item] = {}
    for number in kept:
        piece = shape.pieces[number]
        arg = layout.slots[piece.arg] if piece.raw in _SLOT_OPS else piece.arg
        items[number] = Item(piece.raw, arg, shape.positions[number], shape.indexes[number])
    for number, item in items.items():
        target = shape.targets[number]
        if target is not None:
            item.target = items[target]
        item.handler = _handler(shape, number, items)
    return items


def _handler(shape: Flow, number: int, items: dict[int, Item]) -> Handler | None:
    handler = shape.handlers[number]
    return None if handler is None else Handler(items[handler[0]], handler[1], handler[2])


def _build(code: CodeType, place: _Place) -> CodeType:
    decoded, shape = decode(code), flow(code)
    goal = _goal(place, decoded)
    _check(code, place, decoded, goal)
    layout = _Layout(code, place)
    here = shape.indexes.index(place.at)
    entered = place.mode == "enter" and decoded.instrs[goal].op == "PUSH_EXC_INFO"
    prologue = _Prologue(code, place, layout, dict(zip(shape.indexes, shape.positions)), entered)
    if place.mode == "throw":
        prologue.raise_payload()
    elif place.mode == "call":
        prologue.call_payload()
    else:
        prologue.restore_variables()
    if place.generator:
        prologue.constant(None)
        before = shape.pieces[here - 1]
        if decoded.instrs[place.at - 1].op == "ASYNC_GEN_WRAP":
            prologue.add(before.raw, before.arg)
    roots = [] if place.mode == "throw" else [shape.entries[goal]]
    raised = shape.handlers[here] if prologue.call is not None else None
    kept = sorted(shape.reachable(roots if raised is None else [*roots, raised[0]]))
    items = _body(shape, kept, layout)
    if prologue.call is not None:
        prologue.call.handler = _handler(shape, here, items) if raised else None
    if roots and kept[0] != roots[0]:
        prologue.add("JUMP_FORWARD").target = items[roots[0]]
    everything = [*prologue.items, *items.values()]
    template = Template(
        params=len(layout.params),
        varnames=layout.varnames,
        cellvars=layout.cellvars,
        freevars=layout.freevars,
        consts=tuple(prologue.consts),
        extra_stack=place.results + 4,
    )
    made = assemble(code, everything, template)
    _register(made, code, place, prologue, [item.index for item in items.values() if item.index >= 0])
    return made


def _register(made: CodeType, code: CodeType, place: _Place, prologue: _Prologue, kept: list[int]) -> None:
    decoded = decode(made)
    call = -1 if prologue.call is None else decoded.index_of_offset(2 * prologue.call.start)
    raised = {}
    for item, at in prologue.raised:
        raised[decoded.index_of_offset(2 * item.start)] = at
    _keep(made, _Origin(weakref.ref(code), place, call, tuple(kept), raised))


def _keep(made: CodeType, origin: _Origin) -> None:
    """Remember where a continuation comes from; the core is told which of its arguments are operands."""
    _origins.keep(made, origin)
    place = origin.place
    count = len(_parameters(place))
    first = 0
    if place.mode == "call":
        first = 2  # the frame inside and its arguments
    elif place.mode == "throw" or _is_stored(made, origin):
        first = place.results
    mark_resumed(made, first, count - len(place.names), place.mode == "call")


def _is_stored(made: CodeType, origin: _Origin) -> bool:
    """Whether what a continuation is given goes to a variable at once."""
    instrs = decode(made).instrs
    first = instrs[len(instrs) - len(origin.kept)].op if origin.kept else ""
    return origin.place.results == 1 and first in ("STORE_FAST", "STORE_DEREF")
