"""Existing objects whose end runs code: they end where the program lets go of them, not when the region does."""

import gc
import weakref

import pytest

import stator


class Noticed:
    pass


class Noticing:
    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append("gone")


class Holder:
    pass


def delete_attribute(holder, log):
    del holder.held
    log.append("after")
    return list(log)


def replace_attribute(holder, log):
    holder.held = 1
    log.append("after")
    return list(log)


def empty_list(holder, log):
    holder.items.clear()
    log.append("after")
    return list(log)


def set_item(holder, log):
    holder.items[0] = None
    log.append("after")
    return list(log)


def discard(holder, log):
    holder.members.clear()
    log.append("after")
    return list(log)


def pop_key(holder, log):
    holder.table.pop("key", None)
    log.append("after")
    return list(log)


def in_a_call(holder, log):
    def let_go():
        delete_attribute(holder, [])

    let_go()
    log.append("after")
    return list(log)


PROGRAMS = (delete_attribute, replace_attribute, empty_list, set_item, discard, pop_key, in_a_call)


def run(function, program, make):
    log = []
    holder = Holder()
    holder.held, holder.items, holder.members, holder.table = None, [None], set(), {}
    made = make(log)
    where = {"empty_list": "items", "set_item": "items", "discard": "members", "pop_key": "table"}
    kind = where.get(program.__name__)
    if kind is None:
        holder.held = made
    elif kind == "items":
        holder.items[0] = made
    elif kind == "members":
        holder.members.add(made)
    else:
        holder.table["key"] = made
    del made
    return function(holder, log)


def with_callback(log):
    made = Noticed()
    log.append(weakref.ref(made, lambda reference: log.append("gone")))
    return made


@pytest.mark.parametrize("make", [Noticing, with_callback])
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_ends_at_once(program, make):
    compiled = stator.compile(program, backend="eager")
    for _ in range(2):
        expected = [entry for entry in run(program, program, make) if type(entry) is str]
        assert expected == ["gone", "after"]
        assert [entry for entry in run(compiled, program, make) if type(entry) is str] == expected


def weak_set(holder, members):
    before = len(members)
    del holder.held
    gc.collect()
    return before, len(members)


def test_weak_sets():
    def counted(function):
        holder = Holder()
        holder.held = Noticed()
        return function(holder, weakref.WeakSet([holder.held]))

    assert counted(weak_set) == (1, 0)
    assert counted(stator.compile(weak_set, backend="eager")) == (1, 0)


def test_what_is_kept_breaks_nothing():
    def add(holder):
        holder.other = holder.held
        return holder.items.append(1)

    holder = Holder()
    holder.held, holder.items = Noticing([]), [Noticing([])]
    stator.compile(add, backend="eager", fullgraph=True)(holder)
    assert holder.other is holder.held
    assert holder.items[1] == 1
