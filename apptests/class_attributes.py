"""Attribute access: descriptors, `__getattr__`, `__slots__`, class attributes, `__dict__`."""

import copy
import functools

from apptests.raising import message


class Point:
    """A point."""

    dimension = 2
    count = 0

    def __init__(self, x, y=0):
        self.x = x
        self.y = y

    @property
    def norm1(self):
        return abs(self.x) + abs(self.y)

    @norm1.setter
    def norm1(self, value):
        self.x = value
        self.y = 0

    @norm1.deleter
    def norm1(self):
        del self.x

    @property
    def fixed(self):
        return "fixed"

    @staticmethod
    def origin():
        return Point(0, 0)

    @classmethod
    def diagonal(cls, n):
        return cls(n, n)

    def scaled(self, k):
        return type(self)(self.x * k, self.y * k)


class Named(Point):
    def __init__(self, name, *args):
        super().__init__(*args)
        self.name = name

    @classmethod
    def diagonal(cls, n):
        point = super().diagonal(n)
        return point

    def scaled(self, k):
        made = Point.scaled(Point(self.x, self.y), k)
        return Named(self.name, made.x, made.y)


class Lazy:
    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"no {name}")
        self.asked.append(name)
        return name.upper()


class Everything:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __getattribute__(self, name):
        log = object.__getattribute__(self, "log")
        log.append(("get", name))
        return object.__getattribute__(self, name)

    def __setattr__(self, name, value):
        self.log.append(("set", name))
        super().__setattr__(name, value)

    def __delattr__(self, name):
        object.__delattr__(self, name)


class Typed:
    """A data descriptor."""

    def __set_name__(self, owner, name):
        self.key = "_" + name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return instance.__dict__.get(self.key, owner.__name__)

    def __set__(self, instance, value):
        if not isinstance(value, int):
            raise TypeError(f"{self.key} needs an int")
        instance.__dict__[self.key] = value


class Once:
    """A non-data descriptor."""

    def __init__(self, function):
        self.function = function

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner=None):
        value = instance.__dict__[self.name] = self.function(instance)
        return value


class Holder:
    size = Typed()

    @Once
    def area(self):
        return self.size * 2


class Slotted:
    __slots__ = ("_Slotted__hidden", "a", "b")

    def __init__(self, a):
        self.a = a


class SlottedChild(Slotted):
    __slots__ = ("c",)


class WithDict(Slotted):
    pass


def test_instance_and_class_attributes():
    p = Point(3, -4)
    assert (p.x, p.y, p.dimension, Point.dimension) == (3, -4, 2, 2)
    p.dimension = 5
    assert p.dimension == 5
    assert Point.dimension == 2
    del p.dimension
    assert p.dimension == 2
    assert p.scaled(2).x == 6
    assert Point.origin().x == 0
    assert p.origin().y == 0
    assert Point.diagonal(4).y == 4
    assert p.diagonal(1).x == 1
    assert vars(p) == {"x": 3, "y": -4}
    assert p.__class__ is Point
    assert Point.__name__ == "Point"
    assert Point.__doc__ == "A point."


def test_properties():
    p = Point(3, -4)
    assert p.norm1 == 7
    p.norm1 = 9
    assert (p.x, p.y) == (9, 0)
    del p.norm1
    assert not hasattr(p, "x")
    assert message(setattr, p, "fixed", 1) == ("AttributeError", "property 'fixed' of 'Point' object has no setter")
    assert message(delattr, p, "fixed") == ("AttributeError", "property 'fixed' of 'Point' object has no deleter")
    assert isinstance(Point.norm1, property)
    assert Point.fixed.fget(p) == "fixed"
    assert Point.fixed.fset is None


def test_inheritance_and_super():
    n = Named("n", 2)
    assert (n.name, n.x, n.y) == ("n", 2, 0)
    d = Named.__mro__
    assert d == (Named, Point, object)
    assert isinstance(n, Point)
    assert issubclass(Named, Point)
    assert not issubclass(Point, Named)
    assert n.scaled(3).x == 6
    assert super(Named, n).dimension == 2
    assert super(Named, Named).diagonal.__func__ is Point.diagonal.__func__
    assert message(getattr, super(Named, n), "nothing") == (
        "AttributeError",
        "'super' object has no attribute 'nothing'",
    )


def test_missing_attributes():
    p = Point(1)
    assert message(getattr, p, "z") == ("AttributeError", "'Point' object has no attribute 'z'")
    assert message(delattr, p, "z") == ("AttributeError", "'Point' object has no attribute 'z'")
    assert message(getattr, Point, "z") == ("AttributeError", "type object 'Point' has no attribute 'z'")
    assert getattr(p, "z", 7) == 7
    try:
        p.nope
    except AttributeError as e:
        assert e.name == "nope"
        assert e.obj is p
    assert message(setattr, object(), "z", 1)[0] == "AttributeError"


def test_getattr_hook():
    lazy = Lazy()
    assert lazy.abc == "ABC"
    assert lazy.asked == ["abc"]
    assert hasattr(lazy, "x")
    assert not hasattr(lazy, "_x")
    assert lazy.asked == ["abc", "x"]


def test_getattribute_and_setattr_overridden():
    e = Everything()
    e.value = 3
    assert e.value == 3
    assert e.log == [("get", "log"), ("set", "value"), ("get", "value"), ("get", "log")]
    del e.value
    assert "value" not in object.__getattribute__(e, "__dict__")


def test_descriptors():
    h = Holder()
    assert h.size == "Holder"
    h.size = 4
    assert h.size == 4
    assert h.__dict__ == {"_size": 4}
    assert message(setattr, h, "size", "x") == ("TypeError", "_size needs an int")
    assert h.area == 8
    h.size = 5
    assert h.area == 8
    assert isinstance(Holder.size, Typed)


def test_slots():
    s = Slotted(1)
    assert s.a == 1
    assert message(getattr, s, "b")[0] == "AttributeError"
    s.b = 2
    assert s.b == 2
    del s.b
    assert not hasattr(s, "b")
    assert message(setattr, s, "c", 1)[0] == "AttributeError"
    assert not hasattr(s, "__dict__")
    c = SlottedChild(5)
    c.c = c.a + 1
    assert c.c == 6
    d = WithDict(1)
    d.other = 2
    assert d.__dict__ == {"other": 2}
    assert Slotted.a.__get__(s, Slotted) == 1
    Slotted.a.__set__(s, 8)
    assert s.a == 8


def test_instance_dict_is_the_attributes():
    p = Point(1, 2)
    d = p.__dict__
    d["z"] = 3
    assert p.z == 3
    p.w = 4
    assert d["w"] == 4
    del d["x"]
    assert not hasattr(p, "x")
    assert sorted(d) == ["w", "y", "z"]
    p.__dict__.update(a=1, b=2)
    assert p.a + p.b == 3


def test_class_attribute_assignment():
    class Counter:
        n = 0

    a = Counter()
    Counter.n += 1
    Counter.n += 1
    assert a.n == 2
    a.n = 7
    assert Counter.n == 2
    Counter.m = 5
    assert a.m == 5
    del Counter.m
    assert not hasattr(a, "m")


def test_assignment_to_an_existing_class():
    before = Point.count
    Point.count = before + 1
    try:
        assert Point.count == before + 1
        assert Named.count == before + 1
        assert Point(0).count == before + 1
    finally:
        Point.count = before
    assert Point.count == before


def test_class_dict():
    assert "scaled" in Point.__dict__
    assert "name" not in Point.__dict__
    assert Point.__dict__["dimension"] == 2
    assert Named.__bases__ == (Point,)
    assert type(Point.__dict__["origin"]) is staticmethod
    assert type(Point.__dict__["diagonal"]) is classmethod


def test_bound_methods():
    p = Point(2, 3)
    f = p.scaled
    assert f(2).y == 6
    assert f.__self__ is p
    assert f.__func__ is Point.scaled
    assert f.__name__ == "scaled"
    assert p.scaled == f
    assert Point.scaled(p, 3).x == 6


def test_builtin_function_types_as_attributes():
    class Tool:
        size = len
        upper = str.upper
        make = int

    t = Tool()
    assert t.size([1, 2]) == 2
    assert t.make("3") == 3
    assert message(getattr, t, "upper")[0] == "TypeError"


class Listed(Point):
    kind = "listed"

    def method(self):
        return self


def test_names_of_instances_and_classes():
    class Inner(Listed):
        __slots__ = ("extra",)
        own = 1

    inner = Inner(1, 2)
    inner.z = 3
    Inner.later = 4
    del Inner.own
    assert {"kind", "method", "extra", "later", "z", "x", "__init__"} <= set(dir(inner)) and "own" not in dir(inner)
    assert dir(Inner) == sorted({*dir(Listed), "__slots__", "extra", "later"})
    return dir(Listed), dir(Point(1, 2)), dir(int), dir(3)


def test_names_go_by_the_class_that_is_claimed():
    class Unclaimed:
        __slots__ = ("__class__", "__dict__")

        def __init__(self):
            self.bar = "wow"

    return dir(Unclaimed())


class Bunch(dict):
    """A dict whose items are its attributes."""

    def __init__(self, **items):
        super().__init__(**items)
        self.__dict__ = self


class Shared:
    state = {"count": 0}

    def __init__(self, name):
        self.__dict__ = self.state
        self.name = name


class Empty:
    pass


def test_dict_that_is_its_own_attributes():
    bunch = Bunch(a=1, b=2)
    bunch.c = bunch.a + bunch["b"]
    del bunch.a
    bunch["d"] = 4
    return dict(bunch), bunch.d, hasattr(bunch, "a"), bunch.__dict__ is bunch, vars(bunch) == bunch, sorted(bunch)


def test_state_that_instances_share():
    Shared.state = {"count": 0}
    one, two = Shared("one"), Shared("two")
    one.count += 1
    two.count += 1
    return one.name, one.count, one.__dict__ is two.__dict__, Shared.state


def test_attributes_are_exchanged():
    empty = Empty()
    empty.before = 1
    attributes = {"after": 2}
    empty.__dict__ = attributes
    attributes["more"] = 3
    out = [empty.after, empty.more, hasattr(empty, "before")]
    out += [message(setattr, empty, "__dict__", None), message(setattr, empty, "__dict__", 5)]
    return out, empty.__dict__ is attributes, vars(empty)


def test_partials_take_attributes():
    made = functools.partial(int, base=2)
    made.note = 1
    copied = copy.copy(made)
    made.__setstate__((int, (), {"base": 3}, {"other": 2}))
    errors = [message(made.__setstate__, state) for state in ((), (int, ()), (int, {}, {}, {}), (5, (), {}, {}))]
    return made("11"), made.other, hasattr(made, "note"), copied("11"), copied.note, errors, made.__reduce__()[2]


def test_an_object_that_holds_its_dict():
    plain = Point(1)
    attributes = vars(plain)
    plain.own = attributes
    return attributes["own"] is attributes, plain.own is plain.__dict__, attributes.keys()


def test_a_dict_returned_that_its_object_holds():
    plain = Point(1)
    plain.own = vars(plain)
    found = [vars(plain), plain]
    return found[0] is found[1].own, found[1].own is vars(found[1])
