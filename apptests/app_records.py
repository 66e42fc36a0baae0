"""dataclasses, enum, namedtuple, typing: standard-library classes written in Python."""

import collections
import dataclasses
import enum
import typing

from apptests.marks import expected_break


@dataclasses.dataclass
class Config:
    name: str
    sizes: list[int] = dataclasses.field(default_factory=list)
    scale: float = 1.0
    total: int = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        self.total = sum(self.sizes)


def app_dataclass():
    a, b = Config("a", [1, 2]), Config("a", [1, 2])
    assert a == b and a is not b and a.total == 3 and a.sizes is not Config("x").sizes
    assert repr(a) == "Config(name='a', sizes=[1, 2], scale=1.0, total=3)"
    a.scale = 2.0
    assert a != b


def app_dataclass_functions():
    c = dataclasses.replace(Config("a", [1]), name="b", sizes=[5])
    assert (c.name, c.total) == ("b", 5)
    assert dataclasses.asdict(c) == {"name": "b", "sizes": [5], "scale": 1.0, "total": 5}
    assert dataclasses.astuple(c) == ("b", [5], 1.0, 5)
    assert [f.name for f in dataclasses.fields(c)] == ["name", "sizes", "scale", "total"] and dataclasses.is_dataclass(
        c
    )


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class Size:
    height: int
    width: int = 1


def app_frozen_ordered_dataclass():
    assert Size(1, 2) < Size(2) and sorted([Size(2), Size(1, 5)])[0] == Size(1, 5)
    assert {Size(1): "x"}[Size(1, 1)] == "x" and hash(Size(1)) == hash(Size(1, 1))
    try:
        Size(1).width = 3
    except dataclasses.FrozenInstanceError as error:
        assert "cannot assign to field 'width'" == str(error)
    else:
        raise AssertionError("no FrozenInstanceError")


def app_dataclass_defined_inside():
    @dataclasses.dataclass
    class Base:
        x: int

        def doubled(self):
            return self.x * 2

    @dataclasses.dataclass(kw_only=True)
    class Derived(Base):
        y: int = 2

    d = Derived(1, y=5)
    assert d == Derived(1, y=5) and d.doubled() == 2 and dataclasses.asdict(d) == {"x": 1, "y": 5}


class Colour(enum.Enum):
    RED = 1
    GREEN = "g"
    CRIMSON = 1

    @property
    def label(self):
        return self.name.lower()

    @classmethod
    def parse(cls, text):
        return cls[text.upper()]


class Level(enum.IntEnum):
    LOW = enum.auto()
    HIGH = enum.auto()


class Flags(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()
    BOTH = READ | WRITE


class Mode(str, enum.Enum):
    FAST = "fast"
    SLOW = "slow"


def app_enum():
    assert (
        Colour(1) is Colour.RED is Colour.CRIMSON and Colour["GREEN"].value == "g" and Colour.parse("red") is Colour.RED
    )
    assert [c.name for c in Colour] == ["RED", "GREEN"] and Colour.RED.label == "red" and len(Colour) == 2
    assert Colour.RED != Colour.GREEN and Colour.RED in Colour and {Colour.RED: 1}[Colour.CRIMSON] == 1
    assert repr(Colour.RED) == "<Colour.RED: 1>" and str(Colour.GREEN) == "Colour.GREEN"
    try:
        Colour(7)
    except ValueError as error:
        assert str(error) == "7 is not a valid Colour"
    else:
        raise AssertionError("no ValueError")


def app_int_enum_and_flags():
    assert Level.LOW < Level.HIGH and Level.HIGH == 2 and Level.HIGH + 1 == 3 and ["a", "b", "c"][Level.LOW] == "b"
    assert Flags.READ | Flags.WRITE == Flags.BOTH and Flags.READ in Flags.BOTH and not Flags.READ & Flags.WRITE
    assert Flags.BOTH & ~Flags.READ == Flags.WRITE


def app_str_enum():
    assert Mode.FAST == "fast" and Mode("slow") is Mode.SLOW and Mode.FAST.upper() == "FAST"
    assert {"fast": 1}[Mode.FAST] == 1 and isinstance(Mode.FAST, str)


def app_enum_in_branches():
    def cost(mode):
        match mode:
            case Mode.FAST:
                return 1
            case Mode.SLOW:
                return 10

    assert [cost(m) for m in Mode] == [1, 10]


Pair = collections.namedtuple("Pair", "left right", defaults=[0])


class Box(typing.NamedTuple):
    width: int
    height: int = 2

    @property
    def area(self):
        return self.width * self.height


def app_namedtuple():
    p = Pair(1)
    assert (
        p == (1, 0)
        and p.left == p[0] == 1
        and p._replace(right=5) == Pair(1, 5)
        and p._asdict() == {"left": 1, "right": 0}
    )
    left, right = p
    assert (left, right) == (1, 0) and Pair._fields == ("left", "right") and repr(p) == "Pair(left=1, right=0)"
    assert Pair._make([3, 4]).right == 4 and isinstance(p, tuple) and p + (9,) == (1, 0, 9)


def app_typed_namedtuple():
    box = Box(3)
    assert box.area == 6 and Box(height=1, width=2).area == 2 and box < Box(4)
    match box:
        case Box(width=3, height=h):
            assert h == 2
        case _:
            raise AssertionError


@expected_break("TypeVar is made by a C function")
def app_typing_at_run_time():
    T = typing.TypeVar("T")

    class Stack(typing.Generic[T]):
        def __init__(self):
            self.items: list[T] = []

        def push(self, item: T) -> None:
            self.items.append(item)

    stack = Stack[int]()
    stack.push(1)
    assert stack.items == [1] and typing.cast(int, "x") == "x"
    assert typing.get_origin(list[int]) is list and typing.get_args(dict[str, int]) == (str, int)


def app_protocols_and_abstract_classes():
    import abc

    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

        def twice(self):
            return 2 * self.area()

    class Square(Shape):
        def area(self):
            return 4

    assert Square().twice() == 8 and isinstance(Square(), Shape)
    try:
        Shape()
    except TypeError as error:
        assert "abstract" in str(error)
    else:
        raise AssertionError("no TypeError")
