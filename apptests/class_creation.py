"""Classes made while running: class statements, metaclasses, hooks, `type()`, abstract classes."""

import abc
import copy
import time
import types

from apptests.marks import expected_break
from apptests.raising import message


class Registry:
    known = []

    def __init_subclass__(cls, /, tag=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.tag = tag
        cls.order = len(Registry.known)


class Meta(type):
    def __new__(meta, name, bases, namespace, **kwargs):
        namespace = dict(namespace)
        namespace["made_by"] = meta.__name__
        return super().__new__(meta, name, bases, namespace)

    def __init__(cls, name, bases, namespace, **kwargs):
        super().__init__(name, bases, namespace)
        cls.options = kwargs

    def __call__(cls, *args):
        instance = super().__call__(*args)
        instance.called = True
        return instance

    @property
    def shout(cls):
        return cls.__name__.upper()

    def __len__(cls):
        return 42

    def __getitem__(cls, key):
        return (cls.__name__, key)

    def __contains__(cls, item):
        return item == "x"


class Existing(metaclass=Meta):
    def __init__(self, x=0):
        self.x = x


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self):
        raise NotImplementedError

    @property
    @abc.abstractmethod
    def name(self): ...

    def describe(self):
        return f"{self.name} of {self.area()}"


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side**2

    @property
    def name(self):
        return "square"


class Singleton:
    _instance = None

    def __new__(cls, *args):
        made = super().__new__(cls)
        made.args = args
        return made

    def __init__(self, *args):
        self.initialised = True


class Other:
    def __new__(cls, x):
        return [x]

    def __init__(self, x):
        raise AssertionError("not an instance")


def test_class_statement_with_closure():
    n = 10

    class Adder:
        base = n

        def __init__(self, x):
            self.x = x

        def __call__(self, y):
            return self.x + self.base + n + y

        def cls(self):
            return __class__

    a = Adder(1)
    assert a(2) == 23
    assert a.cls() is Adder
    assert type(a) is Adder
    assert Adder.__name__ == "Adder"
    assert Adder.__qualname__ == "test_class_statement_with_closure.<locals>.Adder"
    assert Adder.__module__ == __name__
    assert isinstance(a, Adder)


def test_inheritance_of_fresh_classes():
    class A:
        def who(self):
            return "A"

    class B(A):
        def who(self):
            return "B" + super().who()

    class C(A):
        def who(self):
            return "C" + super().who()

    class D(B, C):
        def who(self):
            return "D" + super().who()

    assert D().who() == "DBCA"
    assert D.__mro__ == (D, B, C, A, object)
    assert D.__bases__ == (B, C)
    assert D.mro() == [D, B, C, A, object]
    assert issubclass(D, A)
    assert message(type, "E", (A, D), {}) is not None


def test_fresh_subclass_of_an_existing_class():
    class Cube(Square):
        def area(self):
            return super().area() * 6

    c = Cube(2)
    assert c.area() == 24
    assert c.describe() == "square of 24"
    assert isinstance(c, Shape)
    assert issubclass(Cube, Square)


def test_fresh_subclasses_of_builtins():
    class Stack(list):
        def push(self, x):
            self.append(x)
            return self

    class Default(dict):
        def __missing__(self, key):
            return key * 2

    class Pair(tuple):
        def __new__(cls, a, b):
            return super().__new__(cls, (a, b))

        @property
        def first(self):
            return self[0]

    assert Stack().push(1).push(2) == [1, 2]
    assert len(Stack([1, 2, 3])) == 3
    assert Default(a=1)["b"] == "bb"
    p = Pair(3, 4)
    assert p.first + p[1] == 7
    assert isinstance(p, tuple)


def test_init_subclass():
    class Child(Registry, tag="t"):
        pass

    class GrandChild(Child):
        pass

    assert Child.tag == "t"
    assert GrandChild.tag is None
    assert Child.order == 0
    assert message(lambda: type("Bad", (), {}, tag=1)) is not None


def test_set_name():
    class Field:
        def __set_name__(self, owner, name):
            self.owner, self.name = owner, name

        def __get__(self, instance, owner):
            return self if instance is None else (self.name, instance.x)

    class Model:
        first = Field()
        second = Field()

        def __init__(self):
            self.x = 5

    assert Model.first.owner is Model
    assert Model().second == ("second", 5)


def test_metaclass():
    class Made(metaclass=Meta, flag=True):
        def __init__(self, x):
            self.x = x

    m = Made(4)
    assert (m.x, m.called) == (4, True)
    assert Made.made_by == "Meta"
    assert Made.options == {"flag": True}
    assert Made.shout == "MADE"
    assert len(Made) == 42
    assert Made["k"] == ("Made", "k")
    assert type(Made) is Meta
    assert isinstance(Made, Meta)


def test_existing_metaclass():
    e = Existing(3)
    assert e.called
    assert e.x == 3
    assert Existing.shout == "EXISTING"
    assert "x" in Existing
    assert "y" not in Existing
    assert Existing.made_by == "Meta"


def test_type_with_three_arguments():
    T = type("T", (Square,), {"extra": 5, "double": lambda self: self.side * 2})
    t = T(3)
    assert t.double() == 6
    assert t.extra == 5
    assert t.area() == 9
    assert type(3) is int
    assert type(t) is T


def test_abstract_classes():
    assert message(Shape)[0] == "TypeError"
    assert Square(3).describe() == "square of 9"
    assert Shape.__abstractmethods__ == frozenset({"area", "name"})

    class Half(Shape):
        name = "half"

    assert message(Half)[0] == "TypeError"
    assert "area" in message(Half)[1]
    assert Half.__abstractmethods__ == {"area"}

    class Whole(Half):
        def area(self):
            return 1

    assert Whole().describe() == "half of 1"
    assert isinstance(Whole(), Shape)


def test_new_and_init():
    s = Singleton(1, 2)
    assert s.args == (1, 2)
    assert s.initialised
    assert Other(3) == [3]
    assert message(object, 1) == ("TypeError", "object() takes no arguments")

    class Empty:
        pass

    assert message(Empty, 1) == ("TypeError", "Empty() takes no arguments")

    class BadInit:
        def __init__(self):
            return 1

    assert message(BadInit) == ("TypeError", "__init__() should return None, not 'int'")


def test_wrong_arguments():
    assert message(Square) is not None
    text = message(Square)[1]
    assert text == "Square.__init__() missing 1 required positional argument: 'side'"
    assert message(Square, 1, side=2)[1] == "Square.__init__() got multiple values for argument 'side'"


def test_slots_in_fresh_classes():
    class S:
        __slots__ = ("a", "b")

        def __init__(self, a):
            self.a = a

    s = S(1)
    s.b = s.a + 1
    assert s.b == 2
    assert message(setattr, s, "c", 1)[0] == "AttributeError"
    assert S.__slots__ == ("a", "b")


def test_special_methods_of_fresh_classes():
    class Vec:
        def __init__(self, *items):
            self.items = items

        def __add__(self, other):
            return Vec(*(a + b for a, b in zip(self.items, other.items)))

        def __eq__(self, other):
            return isinstance(other, Vec) and self.items == other.items

        def __len__(self):
            return len(self.items)

        def __getitem__(self, i):
            return self.items[i]

        def __iter__(self):
            return iter(self.items)

        def __contains__(self, x):
            return x in self.items

        def __bool__(self):
            return any(self.items)

        def __repr__(self):
            return f"Vec{self.items}"

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            return True

    v = Vec(1, 2) + Vec(3, 4)
    assert v == Vec(4, 6)
    assert len(v) == 2
    assert list(v) == [4, 6]
    assert 4 in v
    assert not Vec(0, 0)
    assert repr(v) == "Vec(4, 6)"
    assert Vec.__hash__ is None
    with v as w:
        raise ValueError
    assert w is v


def test_decorated_methods_of_fresh_classes():
    class Temperature:
        def __init__(self, c):
            self._c = c

        @property
        def f(self):
            return self._c * 9 / 5 + 32

        @f.setter
        def f(self, value):
            self._c = (value - 32) * 5 / 9

        @classmethod
        def boiling(cls):
            return cls(100)

        @staticmethod
        def unit():
            return "C"

    t = Temperature.boiling()
    assert t.f == 212
    t.f = 32
    assert t._c == 0
    assert t.unit() == Temperature.unit() == "C"


def test_classes_that_leave():
    def make(n):
        class Local:
            value = n

            def get(self):
                return self.value + n

        return Local

    A, B = make(1), make(2)
    assert A is not B
    assert A().get() == 2
    assert B().get() == 4
    return [A().get(), B().get()]


def test_prepare():
    class Ordered(type):
        @classmethod
        def __prepare__(meta, name, bases):
            return {"prepared": name}

    class P(metaclass=Ordered):
        here = prepared  # noqa: F821

    assert P.here == "P"
    assert P.prepared == "P"


def test_mro_entries():
    class Alias:
        def __mro_entries__(self, bases):
            return (Square,)

    class Q(Alias()):
        pass

    assert Q.__bases__ == (Square,)
    assert len(Q.__orig_bases__) == 1


def test_copies():
    s = Square([1])
    a, b = copy.copy(s), copy.deepcopy(s)
    assert a.side is s.side
    assert b.side == s.side
    assert b.side is not s.side
    assert type(b) is Square


def test_simple_namespace():
    n = types.SimpleNamespace(a=1, b=[2])
    n.c = n.a + 1
    assert n == types.SimpleNamespace(a=1, b=[2], c=2)
    assert repr(n) == "namespace(a=1, b=[2], c=2)"
    assert vars(n)["c"] == 2
    del n.a
    assert not hasattr(n, "a")


@expected_break("the metaclass has a method mro")
def test_a_metaclass_that_works_out_the_order():
    order = []

    class Meta(type):
        def mro(self):
            order.append(isinstance(self, Meta))
            return super().mro()

    class Base:
        pass

    class Made(Base, metaclass=Meta):
        pass

    assert Made.__mro__ == (Made, Base, object)
    assert order == [True]


def test_attributes_that_the_metaclass_describes():
    class Posing:
        @property
        def __bases__(self):
            return (int,)

        @property
        def __class__(self):
            return dict

        @property
        def __name__(self):
            return "posing"

        def __dict__(self):
            return 5

    posing = Posing()
    assert posing.__bases__ == (int,) and posing.__name__ == "posing"
    assert posing.__class__ is dict and isinstance(posing, dict) and isinstance(posing, Posing)
    assert Posing.__bases__ == (object,) and Posing.__name__ == "Posing" and Posing.__class__ is type
    made.append(Posing)
    assert made[-1].__base__ is object
    assert type(made.pop()().__class__) is type


made = []


def test_a_metaclass_with_a_property():
    class Meta(type):
        @property
        def size(cls):
            return 10

    class A(metaclass=Meta):
        size = 3

        def get(self):
            return self.size + __class__.size

    assert A.size == 10 and A().size == 3 and A().get() == 13
    made.append(A)
    assert made.pop()().get() == 13


def test_slots_given_as_a_set():
    class Slotted:
        __slots__ = {"b", "a"}

    made = Slotted()
    made.a, made.b = 1, 2
    assert (made.a, made.b, Slotted.__slots__ == {"a", "b"}) == (1, 2, True)
    assert not hasattr(made, "__dict__")
    return made.a


def test_a_base_with_hooks_beside_one_of_another_layout():
    class Hooked:
        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.hooked = True

    class Slotted:
        __slots__ = ("x",)

    class Number(Hooked, float):
        pass

    class Words(Hooked, list):
        pass

    class Both(Hooked, Slotted):
        pass

    made = Number(2.5), Words("ab"), Both()
    made[0].a, made[1].a, made[2].a, made[2].x = 1, 2, 3, 4
    assert (made[0] + 1, made[1] + ["c"], made[2].x) == (3.5, ["a", "b", "c"], 4)
    assert [type(item).__base__ for item in made] == [float, list, Slotted]
    assert all(type(item).hooked for item in made)
    return [vars(item) for item in made]


def test_names_and_layouts_that_are_refused():
    class A:
        pass

    found = []
    for name in ("__name__", "__qualname__"):
        for value in (b"B", 1, "B", "with\0null"):
            try:
                setattr(A, name, value)
                found.append(getattr(A, name))
            except (TypeError, ValueError) as e:
                found.append(str(e))
    for kind, of in ((int, bool), (float, int), (str, bytes), (bytes, str), (complex, float)):
        try:
            kind.__new__(of)
        except TypeError as e:
            found.append(str(e))
    assert found[8:] == [
        "int.__new__(bool) is not safe, use bool.__new__()",
        *(f"{a}.__new__({b}): {b} is not a subtype of {a}" for a, b in REFUSED),
    ], found
    return found


REFUSED = (("float", "int"), ("str", "bytes"), ("bytes", "str"), ("complex", "float"))


def test_objects_that_are_called_for_ever():
    class Caller:
        pass

    Caller.__call__ = Caller()
    try:
        Caller()()
    except RecursionError as e:
        return type(e)


def test_a_metaclass_that_looks_at_the_class_when_its_names_are_set():
    class Meta(type):
        def __setattr__(cls, name, value):
            assert "kept" in cls.__dict__["members"], name
            super().__setattr__(name, value)

    class A(metaclass=Meta):
        members = {"kept": 1}

    A.__qualname__ = "Other.A"
    A.__name__ = "B"
    return A.__name__, A.__qualname__, A.members


def test_slot_names_of_a_class_that_names_them_itself():
    class A:
        __slotnames__ = ["given"]

        def __getattr__(self, name):
            if name == "given":
                return 42
            raise AttributeError(name)

    class B:
        __slots__ = ("x", "__y", "unset")

    b = B()
    b.x, b._B__y = 1, 2
    return A().__reduce_ex__(2)[2], b.__reduce_ex__(2)[2], B.__slotnames__


@expected_break("time.sleep")
def test_descriptors_of_the_layout_after_a_break():
    class Base:
        __slots__ = ("__hidden", "x", "__dict__", "__weakref__")

        def kept(self):
            return self.__hidden, self.x

    class Own(Base):
        pass

    own, own_dict = Own(), vars(Base)["__dict__"]
    fields = [vars(Base)[name] for name in ("_Base__hidden", "x")]
    read, references = fields[1].__get__, vars(Base)["__weakref__"]
    classes = [each.__objclass__ for each in (*fields, own_dict, references)]
    ways = [each.__reduce__() for each in fields]
    time.sleep(0)
    assert all(each is Base for each in classes)
    assert ways == [(getattr, (Base, "_Base__hidden")), (getattr, (Base, "x"))]
    for number, field in enumerate(fields):
        field.__set__(own, number)
    own_dict.__set__(own, {"y": 3})
    assert own.kept() == (0, 1) and own.y == 3 and read(own) == 1 and references.__get__(own) is None
    assert all(each.__objclass__ is Base for each in (*fields, own_dict, references))
    return [message(each.__get__, 3) for each in fields]


@expected_break("time.sleep")
def test_descriptors_of_the_layout_that_are_no_longer_in_the_class():
    class Base:
        __slots__ = ("x", "y")

    base, x, y = Base(), Base.x, Base.y
    del Base.x
    Base.y = 3
    time.sleep(0)
    x.__set__(base, 1)
    y.__set__(base, 2)
    return x.__get__(base), y.__get__(base), base.y, hasattr(base, "x"), x.__objclass__ is Base


@expected_break("time.sleep")
def test_a_class_that_has_the_descriptor_of_another():
    class Base:
        __slots__ = ("x",)

    class Own(Base):
        __slots__ = ()
        y = Base.x

    own = Own()
    time.sleep(0)
    own.y = 3
    return own.x, own.y, Own.y is Base.x
