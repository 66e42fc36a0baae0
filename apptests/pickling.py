"""`__reduce__` of iterators and containers, copies by it, pickling, and views of bytes."""

import _random
import copy
import io
import itertools
import pickle
import struct
import sys
import warnings
from collections import OrderedDict, deque, namedtuple

from apptests.marks import expected_break
from apptests.raising import message

Point = namedtuple("Point", "x y")


class Plain:
    def __init__(self, x):
        self.x = x


class Stack(list):
    label = None


class Slow:
    """A sequence by `__getitem__` alone."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        if index > 2:
            raise IndexError(index)
        return index * 10


#: the iterators of itertools can be copied
COPIED = sys.version_info < (3, 14)


def of_itertools():
    return [
        itertools.count(3),
        itertools.count(1.5, 2),
        itertools.repeat("x", 3),
        itertools.repeat("y"),
        itertools.chain([1], [2]),
        itertools.starmap(pow, [(2, 3), (3, 2)]),
        itertools.filterfalse(None, [0, 1, ""]),
        itertools.takewhile(bool, [1, 2, 0, 3]),
        itertools.dropwhile(bool, [1, 0, 3]),
        itertools.compress("abc", [1, 0, 1]),
    ]


def iterators():
    pairs = {1: "a", 2: "b", 3: "c"}
    return [
        iter([1, 2, 3]),
        iter((1, 2, 3)),
        reversed([1, 2, 3]),
        reversed((1, 2, 3)),
        reversed(Slow()),
        iter("abc"),
        iter("äbc"),
        iter(b"abc"),
        iter(range(2, 9, 3)),
        iter(pairs),
        iter(pairs.values()),
        reversed(pairs.items()),
        iter({7}),
        enumerate("abc", 5),
        zip([1, 2], "ab"),
        map(abs, [-1, 2]),
        filter(None, [0, 1, 2]),
        *(of_itertools() if COPIED else ()),
    ]


def shown(value):
    """What of `__reduce__` can be compared: iterators within by their types."""
    if isinstance(value, tuple | list):
        return type(value), [shown(part) for part in value]
    return type(value) if hasattr(value, "__next__") or isinstance(value, Slow) else value


def test_what_iterators_are_made_of():
    out = []
    for iterator in iterators():
        out.append(shown(iterator.__reduce__()))
        next(iterator)
        out.append(shown(iterator.__reduce__()))
    return out


def test_copies_go_on_alone():
    out = []
    for iterator in iterators():
        if type(iterator) in (itertools.chain, itertools.cycle):
            continue
        rest = copy.copy(iterator)
        taken = [next(rest, None), next(rest, None)]
        out.append((type(rest) is type(iterator), taken, [*itertools.islice(iterator, 3)]))
    return out


def test_used_up_iterators():
    out = []
    for iterator in (iter([1]), iter((1,)), iter("a"), iter(b"a"), iter({1: 2}), reversed([1]), iter({3})):
        list(iterator)
        out.append((shown(iterator.__reduce__()), list(copy.copy(iterator))))
    return out


def test_positions_are_set():
    out = []
    for make in (lambda: iter([1, 2, 3]), lambda: reversed([1, 2, 3]), lambda: iter("abc")):
        for state in (-5, -1, 0, 1, 9):
            iterator = make()
            iterator.__setstate__(state)
            out.append((shown(iterator.__reduce__()), list(iterator)))
    return out


def test_hints():
    out = []
    for iterator in iterators()[:9]:
        next(iterator)
        out.append(iterator.__length_hint__() if hasattr(iterator, "__length_hint__") else None)
    return out


def test_deques():
    short = deque([1, 2], 3)
    made = short.__reduce__()
    assert made[:3] == (deque, ((), 3), None) and list(made[3]) == [1, 2]
    return [list(copy.deepcopy(short)), copy.deepcopy(short).maxlen, deque("ab").__reduce__()[:3]]


def pickled(protocol, *things):
    out = []
    for thing in things:
        data = pickle.dumps(thing, protocol)
        out.append(data)
        assert pickle.loads(data) == thing
    return out


def test_pickles_are_cpythons():
    return pickled(0, None, True, [1, 1.5], {"k": (b"raw",)}, int)


def test_pickles_of_later_protocols():
    return pickled(2, -(2**80), {5}, Point(1, 2)), pickled(4, OrderedDict(a=1), deque([1], 4))


def test_pickles_with_frames():
    return pickled(pickle.HIGHEST_PROTOCOL, "long" * 30, bytearray(b"xy"), 2j)


def test_pickled_objects():
    stack, plain = Stack([1, 2]), Plain([3])
    stack.label = plain
    first, second = pickle.loads(pickle.dumps([stack, plain], 2))
    assert type(first) is Stack and first == [1, 2] and first.label is second and second.x == [3]


@expected_break("the error is for the C function to word")
def test_what_cannot_be_pickled():
    def local():
        pass

    return [message(pickle.dumps, local)[0], message(pickle.loads, b"?")[0], message(pickle.loads, b"")]


def test_pickled_iterators():
    out = []
    for iterator in iterators()[::9]:
        next(iterator)
        made = pickle.loads(pickle.dumps(iterator))
        out.append((type(made) is type(iterator), [*itertools.islice(made, 3)]))
    return out


def test_views_of_bytes():
    view = memoryview(b"abcdef")
    part = view[1:4]
    assert (len(part), part[0], part.tobytes(), part.tolist(), part.hex()) == (3, 98, b"bcd", [98, 99, 100], "626364")
    assert part == b"bcd" and part != b"bc" and view.readonly and (part.nbytes, part.format) == (3, "B")
    assert bytes(part[::-1]) == b"dcb" and view.obj == b"abcdef"
    with part as same:
        assert same is part
    return [message(len, part), message(view.__getitem__, 9), part is not view]


def test_buffers_of_files():
    file = io.BytesIO(b"abc")
    with file.getbuffer() as view:
        assert bytes(view) == b"abc" and not view.readonly
    file.seek(3)
    file.write(b"d")
    return file.getvalue()


def test_warnings_of_what_will_go():
    if not COPIED:
        return []
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        itertools.count(3).__reduce__()
        copy.copy(itertools.takewhile(bool, [1]))
    return [str(w.message) for w in given]


def test_chains_take_iterators():
    if not COPIED:
        return []
    out = [message(itertools.chain().__setstate__, state) for state in ([], 0, ([],), (iter([]), []))]
    chain = itertools.chain()
    chain.__setstate__((iter(["ab", "c"]), iter("z")))
    return out, list(chain)


def test_types_that_are_not_pickled():
    return message(copy.copy, _random.Random(3)), message(copy.copy, struct.Struct("i"))
