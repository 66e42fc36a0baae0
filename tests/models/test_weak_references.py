"""Weak references to what existed before the trace, after the program has let go of something."""

import weakref
from collections import deque

import pytest

import stator


class Node:
    pass


class Slotted:
    __slots__ = ("held", "n", "other")


def count(holder, ref):
    holder.n += 1
    return ref() is not None


def append(holder, ref):
    holder.items.append(1)
    return ref() is not None


def set_other(holder, ref):
    holder.table["n"] = 1
    return ref() is not None


def move(holder, ref):
    holder.other = holder.held
    holder.held = None
    return ref() is not None


def keep(holder, ref):
    kept = holder.held
    holder.held = None
    return ref() is not None, kept is None


def forget(holder, ref):
    holder.held = None
    return ref() is not None


def forget_what_leads_there(holder, ref):
    holder.outer = None
    return ref() is not None


def clear(holder, ref):
    holder.items.clear()
    return ref() is not None


def push_out(holder, ref):
    holder.limited.append(1)
    return ref() is not None


def empty_set(holder, ref):
    holder.members.clear()
    return ref() is not None


def pop(holder, ref):
    holder.table.pop("held")
    return ref() is not None


WHERE = {
    forget_what_leads_there: "outer",
    append: "items",
    clear: "items",
    push_out: "limited",
    empty_set: "members",
    set_other: "table",
    pop: "table",
}


def run(function, program):
    holder, node = Node(), Node()
    holder.n, holder.items, holder.table, holder.members, holder.held = 1, [], {}, set(), None
    holder.limited = deque(maxlen=1)
    where = WHERE.get(program, "held")
    if where == "outer":
        holder.outer = Node()
        holder.outer.inner = [node]
    elif where in ("items", "limited"):
        getattr(holder, where).append(node)
    elif where == "members":
        holder.members.add(node)
    elif where == "table":
        holder.table["held"] = node
    else:
        holder.held = node
    ref = weakref.ref(node)
    del node
    return function(holder, ref)


KEEPING = [count, append, set_other, move, keep]
DROPPING = [forget, forget_what_leads_there, clear, push_out, pop, empty_set]


@pytest.mark.parametrize("program", KEEPING)
def test_what_is_held_is_alive(program):
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    for _ in range(2):
        assert run(compiled, program) == run(program, program)


@pytest.mark.parametrize("program", DROPPING)
def test_what_is_let_go_of_dies(program):
    compiled = stator.compile(program, backend="eager")
    for _ in range(2):
        assert run(compiled, program) == run(program, program)


def test_slots():
    def program(holder, ref):
        holder.n += 1
        return ref() is not None

    def drop(holder, ref):
        holder.held = None
        return ref() is not None

    for function, alive in ((program, True), (drop, False)):
        for call in (function, stator.compile(function, backend="eager")):
            holder = Slotted()
            holder.n, holder.held, holder.other = 1, Node(), None
            ref = weakref.ref(holder.held)
            found = call(holder, ref)
            assert found is alive


def test_globals():
    global counted
    counted = 0
    node = Node()

    def program(ref):
        global counted
        counted += 1
        return ref() is node

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    assert compiled(weakref.ref(node))
    assert compiled(weakref.ref(node))
    assert counted == 2
