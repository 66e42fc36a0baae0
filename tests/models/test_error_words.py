"""The words of errors: every operation on operands that it does not take, against CPython's own message."""

import collections
import datetime
import decimal
import functools
import itertools
import re

import pytest

import stator

OPERANDS = [
    *(collections.deque(), collections.OrderedDict(), collections.defaultdict(int), collections.Counter(), [], {}),
    *(functools.partial(int), re.compile("a"), datetime.date(2020, 1, 1), decimal.Decimal(1), object(), type, int),
    *(3, "s", 1.5, len, b"b", (1,), {2}),
]


async def awaits(x):
    await x


def enters(x):
    with x:
        pass


def raises(x):
    raise x


def raises_from(x):
    raise ValueError from x


def catches(x):
    try:
        raise KeyError
    except x:
        pass


def derives(x):
    class Derived(x):
        pass


def made_by(x):
    class Made(metaclass=x):
        pass


def unpacks(x):
    a, b = x


def deletes(x):
    del x[0]


def deletes_name(x):
    del x["a"]


def assigns(x):
    x[None] = 1


def adds_in_place(x):
    x += None


def extends(x):
    new = [1]
    new.extend(x)


def matches(x):
    match x:
        case int(real, imag, more):
            return real


OPERATIONS = [
    *(awaits, enters, raises, raises_from, catches, derives, made_by, unpacks, deletes, deletes_name, assigns),
    *(adds_in_place, extends, matches, hash, iter, next, len, abs, round, bin, chr, ord, max, enumerate, reversed),
    *(bytes, bytearray, complex, float, functools.partial, super, dict.fromkeys, property.__get__),
    *(lambda x: x < None, lambda x: x + None, lambda x: -x, lambda x: x(), lambda x: x["q"], lambda x: x.nope),
    *(lambda x: 3 in x, lambda x: int(x), lambda x: str.upper(x), lambda x: collections.deque.append(x, 1)),
    *(lambda x: [1][x], lambda x: range(x), lambda x: isinstance(1, x), lambda x: "a".join([x]), lambda x: [*x, *None]),
    *(lambda x: format(x, "q"), lambda x: int.__new__(x), lambda x: f"{x:q}", lambda x: "abc"[x:], lambda x: {x: 1}),
    *(
        lambda x: dict(**x),
        lambda x: print(*x),
        lambda x: x @ x,
        lambda x: [1] * x,
        lambda x: "a" * x,
        lambda x: x * [1],
    ),
    *(lambda x: x % 5, lambda x: pow(x, 2, 3), lambda x: divmod(x, None), lambda x: sum([x]), lambda x: x + "a"),
    *(lambda x: sorted([x, None]), lambda x: max(x, None), lambda x: list(zip(x)), lambda x: list(filter(x, [1]))),
    *(
        lambda x: getattr(1, x),
        lambda x: issubclass(x, x),
        lambda x: {1} | x,
        lambda x: {1}.union(x),
        lambda x: x + [1],
    ),
    *(lambda x: {1: 2} | x, lambda x: {}.update(x), lambda x: "a" + x, lambda x: b"a" + x, lambda x: "a b".split(x)),
    *(lambda x: b"".join([x]), lambda x: "%d" % x, lambda x: (1,) + x, lambda x: [1] + x, lambda x: [1, 2].index(3, x)),
    *(
        lambda x: int(x, 5),
        lambda x: int.__add__(x, 1),
        lambda x: functools.reduce(x, [1, 2]),
        lambda x: type(x, (), {}),
    ),
    *(lambda x: list(itertools.islice([1], x)), lambda x: type("A", (x,), {}), lambda x: object.__getattribute__(1, x)),
    *(
        lambda x: setattr(3, x, x),
        lambda x: setattr(x, "zzz", 1),
        lambda x: delattr(x, "zzy"),
        lambda x: x + [1],
        lambda x: type(x, (), {}),
    ),
]


def outcome(operation, operand):
    """The class of the result, or the error with its chain."""
    try:
        return type(operation(operand))
    except Exception as e:
        return type(e), str(e), type(e.__cause__), type(e.__context__)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(OPERATIONS)))
def test_words(number):
    operation = OPERATIONS[number]
    for operand in OPERANDS:
        expected = outcome(operation, operand)
        stator.reset()
        assert stator.compile(outcome)(operation, operand) == expected, operand


def test_a_metaclass_is_named_by_its_name_alone():
    def program():
        class Meta(type):
            @classmethod
            def __prepare__(*args):
                return None

        class Made(metaclass=Meta):
            pass

    with pytest.raises(TypeError, match=r"^Meta\.__prepare__\(\) must return a mapping, not NoneType$"):
        stator.compile(program, backend="eager", fullgraph=True)()
