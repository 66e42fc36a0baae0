"""When objects die, and how they lie in memory: what a graph break must not change."""

import gc
import io
import sys
import time
import weakref
import zlib

from apptests.marks import expected_break


class Node:
    pass


def interrupt(items):
    """A C function that nothing is known about breaks the graph here."""
    return gc.is_tracked(items)


@expected_break("collects garbage")
def test_dropped_after_a_break():
    node = Node()
    interrupt(node)
    reference = weakref.ref(node)
    assert reference() is node
    del node
    assert reference() is None


@expected_break("collects garbage")
def test_dropped_in_a_cycle():
    node = Node()
    node.self = node
    interrupt(node)
    reference = weakref.ref(node)
    node = None
    gc.collect()
    assert reference() is None


@expected_break("a C function")
def test_proxy():
    node = Node()
    node.x = 1
    proxy = weakref.proxy(node)
    assert proxy.x == 1
    interrupt(node)
    assert proxy.x == 1
    del node
    try:
        proxy.x  # noqa: B018
    except ReferenceError:
        return
    raise AssertionError


@expected_break("a C function")
def test_unused_variable_keeps_its_object():
    node = Node()
    interrupt(node)
    proxy = weakref.proxy(node)
    proxy.x = 1
    interrupt(proxy)
    assert proxy.x == 1


def keeps(node):
    interrupt(node)
    reference = weakref.ref(node)
    interrupt(reference)
    return reference() is not None


@expected_break("a C function")
def test_argument_of_a_call_is_kept():
    assert keeps(Node())


def test_emptied_list():
    nodes = [Node()]
    interrupt(nodes)
    reference = weakref.ref(nodes[0])
    nodes.clear()
    assert reference() is None


def test_nothing_is_handled_after_a_break():
    try:
        interrupt(1)
        {}["missing"]  # noqa: B018
    except KeyError:
        pass
    interrupt(2)
    assert sys.exc_info() == (None, None, None)


class Failure(Exception):
    pass


def raises(node):
    raise Failure(node)


def test_exception_lets_go_of_its_object():
    node = Node()
    reference = weakref.ref(node)
    gc.collect()
    try:
        raises(node)
    except Failure:
        pass
    del node
    assert reference() is None


@expected_break("sizes of dicts")
def test_sizes():
    first, second = Node(), Node()
    first.x = second.x = 1
    assert sys.getsizeof(vars(first)) == sys.getsizeof(vars(second))
    items = []
    for i in range(5):
        items.append(i)
    assert sys.getsizeof(items) > sys.getsizeof([])


@expected_break("the bases of a class")
def test_class_that_nobody_uses_again():
    class A:
        pass

    class B:
        pass

    class C(A, B):
        pass

    class D(A, B):
        pass

    class E(C, D):
        pass

    try:
        C.__bases__ = (B, A)
    except TypeError as e:
        assert "MRO" in str(e)
    else:
        raise AssertionError


@expected_break("subclasses of a new class")
def test_subclasses():
    class Parent:
        pass

    class Child(Parent):
        pass

    assert Parent.__subclasses__() == [Child]


class Number:
    def __init__(self, value):
        self.value = value

    def __call__(self, x):
        return self.value + x

    def __add__(self, other):
        return ("add", self.value, other)

    def __radd__(self, other):
        return ("radd", self.value, other)

    def __len__(self):
        return self.value

    def __getitem__(self, index):
        return index * 2

    def __eq__(self, other):
        return other == self.value


def test_proxies_of_what_a_variable_keeps():
    number = Number(3)
    proxy = weakref.proxy(number)
    proxy.extra = 5
    out = [proxy.value, number.extra, proxy(4), proxy + 1, 1 + proxy, len(proxy), proxy[4], proxy == 3, bool(proxy)]
    out += [type(proxy).__name__, weakref.proxy(number) is proxy, weakref.ref(number)() is number]
    del proxy.extra
    try:
        proxy.extra  # noqa: B018
    except AttributeError as e:
        out.append(str(e))
    try:
        hash(proxy)
    except TypeError as e:
        out.append(str(e))
    return out


class Linked:
    """A ring whose links back are weak."""

    def __init__(self, names):
        self.root = self.root_kept = Node()
        self.root.before = self.root.after = weakref.proxy(self.root)
        self.kept = {}
        for name in names:
            link = self.kept[name] = Node()
            link.name, link.before, link.after = name, self.root.before, weakref.proxy(self.root)
            link.before.after = link
            self.root.before = weakref.proxy(link)

    def names(self):
        link = self.root.before
        while hasattr(link, "name"):
            yield link.name
            link = link.before


def test_ring_of_proxies():
    ring = Linked("abc")
    return list(ring.names())


def test_reference_to_what_a_container_keeps():
    nodes = {"key": [Node()]}
    reference = weakref.ref(nodes["key"][0])
    same = reference() is nodes["key"][0]
    return same, {reference} == {weakref.ref(nodes["key"][0])}


def sum_of(data):
    return len(data) + data[0]


@expected_break("zlib.compress")
def test_guards_do_not_hold_the_bytes_they_compare():
    data = zlib.compress(b"abc")
    held = sys.getrefcount(data)
    return sum_of(data), sys.getrefcount(data) - held


@expected_break("a collection that is watched")
def test_callbacks_of_the_collector():
    seen = []

    def note(phase, info):
        if info["generation"] == 2:  # younger ones are collected by themselves, whenever enough has been allocated
            seen.append((phase, info["generation"]))

    gc.callbacks.append(note)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(note)
    return seen


def test_callbacks_after_the_collection():
    seen = []
    gc.collect()
    gc.callbacks.append(seen.append)
    gc.callbacks.pop()
    gc.callbacks.append(lambda phase, info: seen.append(phase))
    del gc.callbacks[:]
    return seen


@expected_break("time.sleep")
def test_callback_for_what_a_variable_holds():
    node, done = Node(), []
    time.sleep(0)
    reference = weakref.ref(node, done.append)
    del node
    assert done == [reference]


@expected_break("time.sleep")
def test_unused_reference_calls_back():
    node, done = Node(), []
    time.sleep(0)
    reference = weakref.ref(node, lambda _: done.append(1))  # noqa: F841
    del node
    time.sleep(0)
    assert done == [1]


@expected_break("time.sleep")
def test_unused_reference_to_what_others_hold_calls_back():
    nodes, done = [Node()], []
    time.sleep(0)
    reference = weakref.ref(nodes[0], lambda _: done.append(1))  # noqa: F841
    time.sleep(0)
    nodes.clear()
    time.sleep(0)
    assert done == [1]


class Flushes(io.RawIOBase):
    def __init__(self):
        self.written = []

    def writable(self):
        return True

    def write(self, data):
        self.written.append(len(data))
        return len(data)


@expected_break("write|C function|Flushes")
def test_file_is_flushed_when_it_is_collected():
    raw = Flushes()
    file = io.BufferedWriter(raw, 8)
    file.write(b"abc")
    del file
    gc.collect()
    assert raw.written == [3]
