"""Functions that run for real, objects that are constants, and code made from text, against CPython."""

# ruff: noqa: E501 (tables)

import datetime
import decimal
import functools
import operator
import re
import struct

import pytest

import stator
from stator.errors import GraphBreakError
from tests.models.agree import agree, expressions


class Number:
    def __init__(self, n=2.25):
        self.n = n

    def __float__(self):
        return self.n

    def __index__(self):
        return int(self.n)

    def __floor__(self):
        return "floor"


class Place:
    def __fspath__(self):
        return "some/where.txt"


class NoPlace:
    def __fspath__(self):
        return 3


moment = datetime.datetime(2024, 2, 29, 12, 30)
price = decimal.Decimal("1.50")
pattern = re.compile(r"(?P<key>\w+)=(\d+)")
number = Number()
UTC, EAST = datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=1))
SCALE = 3

EXPRESSIONS = r"""
math.sqrt(2), math.floor(2.5), math.ceil(number), math.trunc(-2.5), math.floor(number), math.log(8, 2), math.isclose(1, 1 + 1e-12), math.gcd(12, number), math.factorial(Number(5)), math.hypot(3, 4), math.prod([2, 3], start=4), math.fsum([0.1] * 10), math.dist([1, 2], (4, 6)), math.copysign(1, -0.0), math.comb(5, 2), math.isnan(math.nan), math.pi
math.sqrt(-1)
math.sqrt("a")
math.sqrt(None)
math.factorial(2.5)
math.floor("a")
math.gcd(1.5)
math.sqrt(number), math.pow(number, 2), math.atan2(1, number)
statistics.mean([1, 2, 4]), statistics.median([3, 1, 2]), statistics.stdev([1.0, 2.0, 4.0])
moment.year, moment + datetime.timedelta(days=1), moment.isoformat(), f"{moment:%Y/%m}", moment < moment + datetime.timedelta(1), (moment - datetime.datetime(2024, 1, 1)).days, moment.date(), moment.replace(year=2023, day=1), datetime.date(2020, 1, 1).weekday()
datetime.date(2020, 13, 1)
price + 1, price * 2, str(price), price.quantize(decimal.Decimal("0.1")), decimal.Decimal(1) / 3, price == 1.5, hash(price), decimal.Decimal("x") if False else 0, round(price, 1), int(price)
decimal.Decimal("x")
price + "a"
fractions.Fraction(1, 3) + fractions.Fraction("1/6"), fractions.Fraction(0.5)
pattern.match("ab=12").groups(), pattern.search("  c=3")["key"], pattern.sub(r"\2", "a=1 b=2"), pattern.findall("a=1 b=2"), pattern.fullmatch("x"), [m.span() for m in pattern.finditer("a=1 b=2")], pattern.pattern, re.escape("a.b"), re.split(r"\s+", "a  b"), re.match("a", "abc").end()
re.compile("(")
re.sub("a", 3, "aa")
re.sub("(a)", lambda m: m.group(1).upper(), "banana", count=2), re.subn("a", "b", "aa")
re.sub("a", lambda m: None, "cat"), re.sub("a", lambda m: 3 if m is None else "", "cat")
struct.pack("<ih", 3, -1), struct.unpack("<i", b"\1\0\0\0"), struct.calcsize("ii")
struct.pack("i", "a")
json.dumps({"a": [1, None, True, 2.5]}), json.loads('{"a": [1, {"b": null}]}'), json.dumps([1, "x"], indent=1, sort_keys=True)
json.loads("{")
textwrap.dedent("  a\n  b"), string.Template("$a-$b").substitute(a=1, b=2), string.Formatter().format("{} {a!r:>5} {0[0]}", [1], a="x"), string.capwords("a b")
os.path.join("a", "b"), os.path.splitext("a.b"), os.path.basename("a/b"), os.fspath("x"), os.fspath(Place()), os.path.join("q", Place())
os.fspath(3)
os.fspath(NoPlace())
os.environ.get("STATOR_NO_SUCH_VARIABLE", "none"), "STATOR_NO_SUCH_VARIABLE" in os.environ, os.getenv("STATOR_NO_SUCH_VARIABLE")
importlib.import_module("json").dumps([1]), importlib.util.find_spec("json") is not None, importlib.util.find_spec("stator_no_such_module")
typing.get_type_hints(Number.__init__), typing.get_origin(list[int]), typing.get_args(dict[str, int]), int | None, list[int], dict[str, list[int]], collections.deque[int], set[int] == set[int], typing.Optional[int], isinstance(3, typing.Union[int, str]) if sys.version_info >= (3, 10) else 0
eval("1 + SCALE"), eval("a * 2", globals(), {"a": 4}), eval(compile("SCALE + 1", "<text>", "eval"), globals()), eval("[i for i in range(SCALE)]", globals())
(lambda space: (exec("made = SCALE * 2\ndef twice(x): return 2 * x", globals(), space), space["made"], space["twice"](5)))({})[1:]
eval("1 +")
eval("nowhere")
eval("1/0")
(lambda a: eval("a + 1"))(3)
exec("raise KeyError('x')", globals(), {})
"""


@pytest.mark.parametrize("expression", expressions(globals(), EXPRESSIONS), ids=lambda e: e.__name__)
def test_agrees(expression):
    agree(expression)


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lambda m: (m.hour, m.tzinfo), [moment.replace(tzinfo=UTC), moment.replace(tzinfo=UTC).astimezone(EAST)]),
        (lambda m: m.year, [moment, datetime.datetime(2020, 1, 1), moment]),
        (lambda t: t.total_seconds(), [datetime.timedelta(1), datetime.timedelta(seconds=5)]),
        (lambda d: str(d), [decimal.Decimal("1.0"), decimal.Decimal("1.00"), decimal.Decimal("NaN")]),
        (lambda p: p.match("ab").group(), [re.compile("a"), re.compile("ab"), re.compile("AB", re.I)]),
        (lambda s: s.size, [struct.Struct("i"), struct.Struct("q")]),
        (lambda g: g.__args__, [list[int], list[str], dict[int, str]]),
        (lambda x: x + 1, [1, 1.0, True, 2, -0.0]),
        (lambda b: list(b), [bytearray(b"a"), bytearray(b"b"), bytearray(b"ab")]),
        (lambda n: hash(n), [float("nan"), float("nan"), decimal.Decimal("NaN"), decimal.Decimal("NaN"), 1.5]),
    ],
    ids=[
        "zone",
        "datetime",
        "timedelta",
        "Decimal",
        "Pattern",
        "Struct",
        "GenericAlias",
        "numbers",
        "bytearray",
        "nan",
    ],
)
def test_constants_are_guarded(function, values):
    compiled = stator.compile(function, backend="eager", fullgraph=True)
    for value in values:
        expected, actual = function(value), compiled(value)
        assert repr(actual) == repr(expected)


def test_the_decimal_context_is_guarded():
    compiled = stator.compile(lambda x: x / 3, backend="eager", fullgraph=True)
    one = decimal.Decimal(1)
    assert compiled(one) == one / 3
    with decimal.localcontext() as context:
        context.prec = 5
        assert str(compiled(one)) == "0.33333"


@pytest.mark.parametrize(
    "expression",
    [
        lambda: datetime.datetime.now(),
        lambda: datetime.date.today(),
        lambda: functools.partial(eval, "1")() if False else operator.call(input),
    ],
    ids=["now", "today", "input"],
)
def test_what_depends_on_the_world_breaks(expression):
    with pytest.raises(GraphBreakError):
        stator.compile(expression, backend="eager", fullgraph=True)()


def test_bytearrays_are_written_back():
    def change(data):
        data += b"x"
        data[0] = 0
        return len(data)

    ours, real = bytearray(b"ab"), bytearray(b"ab")
    assert stator.compile(change, backend="eager", fullgraph=True)(ours) == change(real)
    assert ours == real


def test_random_numbers_are_drawn_in_turn():
    import random

    def draw():
        return [random.random(), random.randint(0, 9), random.choice("abc"), random.uniform(1, 2)]

    compiled = stator.compile(draw, backend="eager")
    random.seed(3)
    expected = [draw(), draw()]
    random.seed(3)
    assert [compiled(), compiled()] == expected
