"""Opcodes: constants, variables, attributes, the stack."""

from __future__ import annotations

from stator.bytecode.decode import Instr
from stator.interp.frame import Frame, opcode
from stator.models.classes.class_annotations import ClassDict
from stator.models.functions.cell import CellValue
from stator.space.value import NULL, Constant, Raised, Value


@opcode
def LOAD_CONST(f: Frame, instr: Instr) -> None:
    """A constant."""
    f.stack.append(f.trace.namespaces.constant(instr.arg))


@opcode
def LOAD_FAST(f: Frame, instr: Instr) -> None:
    """name"""
    value = f.locals.get(instr.arg)
    if value is None:
        raise f.unbound(instr.arg)
    f.stack.append(value)


@opcode
def LOAD_FAST_AND_CLEAR(f: Frame, instr: Instr) -> None:
    """The shadowed variable of an inlined comprehension."""
    f.push(f.locals.pop(instr.arg, NULL))


@opcode
def STORE_FAST(f: Frame, instr: Instr) -> None:
    """name = value"""
    value = f.stack.pop()
    if value is NULL:
        f.locals.pop(instr.arg, None)
    else:
        f.locals[instr.arg] = value


@opcode
def DELETE_FAST(f: Frame, instr: Instr) -> None:
    """del name"""
    if f.locals.pop(instr.arg, None) is None:
        raise f.unbound(instr.arg)


@opcode
def MAKE_CELL(f: Frame, instr: Instr) -> None:
    """A new cell for a variable that inner functions share."""
    f.cells[instr.arg] = CellValue(f.locals.pop(instr.arg, None))


@opcode
def COPY_FREE_VARS(f: Frame, instr: Instr) -> None:
    """The closure's cells become the frame's."""
    f.cells.update(zip(f.decoded.freevars, f.function.cells(f.space), strict=True))


@opcode
def LOAD_CLOSURE(f: Frame, instr: Instr) -> None:
    """The cell itself; in an inlined comprehension, whatever is in the variable's slot."""
    slot = f.cells.get(instr.arg) or f.locals.get(instr.arg)
    if slot is None:
        raise f.unbound(instr.arg)
    f.push(slot)


@opcode
def LOAD_CELL_AND_CLEAR(f: Frame, instr: Instr) -> None:
    """The shadowed cell variable of an inlined comprehension."""
    cell: Value | None = f.cells.pop(instr.arg, None)
    f.push(cell or f.locals.pop(instr.arg, NULL))


@opcode
def STORE_CELL(f: Frame, instr: Instr) -> None:
    """What an inlined comprehension keeps in the slot of a variable with a cell outside: a cell, a value, nothing."""
    slot = f.pop()
    f.cells.pop(instr.arg, None)
    f.locals.pop(instr.arg, None)
    if isinstance(slot, CellValue):
        f.cells[instr.arg] = slot
    elif slot is not NULL:
        f.locals[instr.arg] = slot


@opcode
def LOAD_DEREF(f: Frame, instr: Instr) -> None:
    """name, of an enclosing scope or shared with an inner one"""
    contents = f.cells[instr.arg].contents
    if contents is None:
        raise f.unbound(instr.arg)
    f.push(contents)


@opcode
def STORE_DEREF(f: Frame, instr: Instr) -> None:
    """name = value"""
    f.cells[instr.arg].set(f.space, f.pop())


@opcode
def DELETE_DEREF(f: Frame, instr: Instr) -> None:
    """del name"""
    cell = f.cells[instr.arg]
    if cell.contents is None:
        raise f.unbound(instr.arg)
    cell.set(f.space, None)


@opcode
def LOAD_GLOBAL(f: Frame, instr: Instr) -> None:
    """name"""
    f.push(f.load_global(instr.arg))


@opcode
def STORE_GLOBAL(f: Frame, instr: Instr) -> None:
    """global name; name = value"""
    f.trace.namespaces.globals_of(f.globals).set_str(f.space, instr.arg, f.pop())


@opcode
def DELETE_GLOBAL(f: Frame, instr: Instr) -> None:
    """global name; del name"""
    if not f.trace.namespaces.globals_of(f.globals).del_str(f.space, instr.arg):
        raise f.name_error(f"name '{instr.arg}' is not defined", instr.arg)


@opcode
def LOAD_LOCALS(f: Frame, instr: Instr) -> None:
    """The namespace of a class body."""
    f.push(f.namespace)


def _from_mapping(f: Frame, mapping: Value, name: str) -> Value | None:
    if isinstance(mapping, ClassDict):
        return mapping.find(name)
    try:
        return f.space.getitem(mapping, Constant(name))
    except Raised as e:
        if e.matches(KeyError):
            return None
        raise


@opcode
def LOAD_NAME(f: Frame, instr: Instr) -> None:
    """name, in a class body"""
    value = _from_mapping(f, f.namespace, instr.arg)
    f.push(f.load_global(instr.arg) if value is None else value)


@opcode
def STORE_NAME(f: Frame, instr: Instr) -> None:
    """name = value, in a class body"""
    f.space.setitem(f.namespace, Constant(instr.arg), f.pop())


@opcode
def DELETE_NAME(f: Frame, instr: Instr) -> None:
    """del name, in a class body"""
    try:
        f.space.delitem(f.namespace, Constant(instr.arg))
    except Raised as e:
        if not e.matches(KeyError):
            raise
        raise f.name_error(f"name '{instr.arg}' is not defined", instr.arg) from None


@opcode
def LOAD_FROM_DICT_OR_DEREF(f: Frame, instr: Instr) -> None:
    """name, in a class body inside a function"""
    value = _from_mapping(f, f.pop(), instr.arg)
    if value is None:
        LOAD_DEREF(f, instr)
    else:
        f.push(value)


@opcode
def LOAD_FROM_DICT_OR_GLOBALS(f: Frame, instr: Instr) -> None:
    """name, in an annotation scope inside a class"""
    value = _from_mapping(f, f.pop(), instr.arg)
    f.push(f.load_global(instr.arg) if value is None else value)


@opcode
def SETUP_ANNOTATIONS(f: Frame, instr: Instr) -> None:
    """name: annotation, in a class body"""
    if _from_mapping(f, f.namespace, "__annotations__") is None:
        f.space.setitem(f.namespace, Constant("__annotations__"), f.space.new_dict([]))


@opcode
def LOAD_ATTR(f: Frame, instr: Instr) -> None:
    """owner.name"""
    f.push(f.space.getattr(f.pop(), instr.arg, True))


@opcode
def LOAD_METHOD(f: Frame, instr: Instr) -> None:
    """owner.name, about to be called"""
    # The bound form is pushed, which CALL takes as well; a break inside would find another stack: no tail position.
    f.push_callable(f.space.getattr(f.pop(), instr.arg))


@opcode
def LOAD_SUPER_ATTR(f: Frame, instr: Instr) -> None:
    """super().name"""
    name, is_method, two_arg = instr.arg
    super_, cls, self_ = f.popn(3)
    bound = f.space.call(super_, [cls, self_] if two_arg or f.space.identity(super_) is super else [], {})
    value = f.space.getattr(bound, name, not is_method)
    if is_method:
        f.push_callable(value)
    else:
        f.push(value)


@opcode
def STORE_ATTR(f: Frame, instr: Instr) -> None:
    """owner.name = value"""
    owner, value = f.pop(), f.pop()
    f.space.setattr(owner, instr.arg, value)


@opcode
def DELETE_ATTR(f: Frame, instr: Instr) -> None:
    """del owner.name"""
    f.space.delattr(f.pop(), instr.arg)


@opcode
def POP_TOP(f: Frame, instr: Instr) -> None:
    """value;"""
    f.pop()


@opcode
def COPY(f: Frame, instr: Instr) -> None:
    """Duplicate an entry of the stack."""
    f.push(f.stack[-instr.arg])


@opcode
def SWAP(f: Frame, instr: Instr) -> None:
    """Swap the top with another entry of the stack."""
    stack = f.stack
    stack[-1], stack[-instr.arg] = stack[-instr.arg], stack[-1]


@opcode
def PUSH_NULL(f: Frame, instr: Instr) -> None:
    """The NULL beside a callable."""
    f.push(NULL)
