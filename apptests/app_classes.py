"""Classes: super, properties, descriptors, slots, attribute hooks, metaclasses, operators."""


class Base:
    kind = "base"

    def __init__(self, value):
        self.value = value

    def describe(self):
        return f"{self.kind} {self.value}"

    @classmethod
    def make(cls, value):
        return cls(value)

    @staticmethod
    def helper(x):
        return x + 1


class Child(Base):
    kind = "child"

    def __init__(self, value, extra):
        super().__init__(value)
        self.extra = extra

    def describe(self):
        return super().describe() + f" {self.extra}"

    @classmethod
    def make(cls, value):
        return cls(value, "made")


def app_inheritance_and_super():
    child = Child(1, "x")
    assert child.describe() == "child 1 x"
    assert Base.describe(child) == "child 1"
    assert super(Child, child).describe() == "child 1"
    assert isinstance(child, Base) and issubclass(Child, Base) and not isinstance(child, int)


def app_class_and_static_methods():
    assert Child.make(3).describe() == "child 3 made"
    assert Base(0).make(4).value == 4
    assert Child.helper(1) == Child(1, 2).helper(1) == 2


def app_instance_shadows_class_attribute():
    a, b = Base(1), Base(2)
    a.kind = "own"
    assert (a.kind, b.kind, Base.kind) == ("own", "base", "base")
    del a.kind
    assert a.kind == "base"
    assert a.__dict__ == {"value": 1}


def app_diamond():
    class A:
        def who(self):
            return ["A"]

    class B(A):
        def who(self):
            return ["B", *super().who()]

    class C(A):
        def who(self):
            return ["C", *super().who()]

    class D(B, C):
        def who(self):
            return ["D", *super().who()]

    assert D().who() == ["D", "B", "C", "A"]
    assert [c.__name__ for c in D.__mro__] == ["D", "B", "C", "A", "object"]


def app_property():
    class Celsius:
        def __init__(self):
            self._degrees = 0

        @property
        def degrees(self):
            return self._degrees

        @degrees.setter
        def degrees(self, value):
            if value < -273:
                raise ValueError("too cold")
            self._degrees = value

        @degrees.deleter
        def degrees(self):
            self._degrees = None

        @property
        def fixed(self):
            return 1

    t = Celsius()
    t.degrees = 20
    t.degrees += 1
    assert t.degrees == 21
    try:
        t.degrees = -300
    except ValueError as error:
        assert str(error) == "too cold"
    del t.degrees
    assert t.degrees is None
    try:
        t.fixed = 2
    except AttributeError as error:
        assert "has no setter" in str(error)
    else:
        raise AssertionError("no AttributeError")


def app_descriptor_precedence():
    class Data:
        def __get__(self, instance, owner):
            return "data" if instance is not None else self

        def __set__(self, instance, value):
            instance.__dict__["data"] = ("set", value)

    class NonData:
        def __get__(self, instance, owner):
            return "non-data"

    class Host:
        data = Data()
        other = NonData()

    host = Host()
    host.__dict__["data"] = "shadow"
    assert host.data == "data"
    host.data = 1
    assert host.__dict__["data"] == ("set", 1)
    assert host.other == "non-data"
    host.other = "instance"
    assert host.other == "instance"
    assert isinstance(Host.data, Data)


def app_set_name():
    class Field:
        def __set_name__(self, owner, name):
            self.name = name
            owner.fields = [*getattr(owner, "fields", ()), name]

        def __get__(self, instance, owner):
            return self if instance is None else instance.__dict__.get(self.name, "unset")

        def __set__(self, instance, value):
            instance.__dict__[self.name] = value

    class Record:
        a = Field()
        b = Field()

    record = Record()
    record.a = 1
    assert (record.a, record.b, Record.fields) == (1, "unset", ["a", "b"])


def app_slots():
    class Point:
        __slots__ = ("x", "y")

        def __init__(self, x):
            self.x = x

    p = Point(1)
    assert p.x == 1
    for wrong in (lambda: p.y, lambda: setattr(p, "z", 1), lambda: p.__dict__):
        try:
            wrong()
        except AttributeError:
            continue
        raise AssertionError("no AttributeError")
    p.y = 2
    del p.x
    assert not hasattr(p, "x") and p.y == 2


def app_getattr_hook():
    class Proxy:
        def __init__(self, target):
            self.target = target

        def __getattr__(self, name):
            if name.startswith("no_"):
                raise AttributeError(name)
            return f"{self.target}.{name}"

    proxy = Proxy("t")
    assert proxy.target == "t"
    assert proxy.anything == "t.anything"
    assert not hasattr(proxy, "no_such") and getattr(proxy, "no_such", 5) == 5


def app_getattribute_setattr_delattr_hooks():
    log = []

    class Traced:
        def __getattribute__(self, name):
            log.append(f"get {name}")
            return super().__getattribute__(name)

        def __setattr__(self, name, value):
            log.append(f"set {name}")
            super().__setattr__(name, value)

        def __delattr__(self, name):
            log.append(f"del {name}")
            super().__delattr__(name)

    t = Traced()
    t.x = 1
    assert t.x == 1
    del t.x
    assert log == ["set x", "get x", "del x"]


def app_metaclass():
    class Registry(type):
        members = []

        def __new__(mcls, name, bases, namespace, **options):
            cls = super().__new__(mcls, name, bases, namespace)
            cls.options = options
            mcls.members.append(name)
            return cls

        def __init__(cls, name, bases, namespace, **options):
            super().__init__(name, bases, namespace)

        def __call__(cls, *args):
            instance = super().__call__(*args)
            instance.tagged = True
            return instance

    class Plugin(metaclass=Registry, fast=True):
        def __init__(self, x):
            self.x = x

    assert Plugin.options == {"fast": True}
    assert Registry.members == ["Plugin"]
    assert Plugin(3).tagged and Plugin(3).x == 3
    assert type(Plugin) is Registry


def app_init_subclass_and_class_getitem():
    class Base:
        names = []

        def __init_subclass__(cls, /, tag="none", **rest):
            super().__init_subclass__(**rest)
            cls.names.append((cls.__name__, tag))

        def __class_getitem__(cls, item):
            return cls, item

    class One(Base, tag="t"):
        pass

    class Two(Base):
        pass

    assert Base.names == [("One", "t"), ("Two", "none")]
    assert Base[int] == (Base, int)


def app_new_and_init():
    class Single:
        instance = None
        inits = 0

        def __new__(cls):
            if cls.instance is None:
                cls.instance = super().__new__(cls)
            return cls.instance

        def __init__(self):
            type(self).inits += 1

    assert Single() is Single()
    assert Single.inits == 2


class Vector:
    def __init__(self, *parts):
        self.parts = parts

    def __add__(self, other):
        if not isinstance(other, Vector):
            return NotImplemented
        return Vector(*(a + b for a, b in zip(self.parts, other.parts)))

    def __mul__(self, factor):
        return Vector(*(a * factor for a in self.parts))

    __rmul__ = __mul__

    def __neg__(self):
        return self * -1

    def __iadd__(self, other):
        self.parts = (self + other).parts
        return self

    def __matmul__(self, other):
        return sum(a * b for a, b in zip(self.parts, other.parts))

    def __eq__(self, other):
        return isinstance(other, Vector) and self.parts == other.parts

    def __hash__(self):
        return hash(self.parts)

    def __lt__(self, other):
        return self.parts < other.parts

    def __bool__(self):
        return any(self.parts)

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, index):
        return self.parts[index]

    def __contains__(self, part):
        return part in self.parts

    def __call__(self, index):
        return self.parts[index]

    def __repr__(self):
        return f"Vector{self.parts}"


def app_operators():
    a, b = Vector(1, 2), Vector(3, 4)
    assert a + b == Vector(4, 6)
    assert 2 * a == a * 2 == Vector(2, 4)
    assert -a == Vector(-1, -2)
    assert a @ b == 11
    assert a < b and b > a and a != b
    assert sorted([b, a])[0] is a
    same = a
    a += b
    assert same is a and a == Vector(4, 6)
    try:
        a + 1
    except TypeError as error:
        assert "unsupported operand type(s) for +: 'Vector' and 'int'" == str(error)
    else:
        raise AssertionError("no TypeError")


def app_container_protocol():
    v = Vector(1, 2, 3)
    assert len(v) == 3 and v[1] == 2 and v[1:] == (2, 3) and 3 in v and 9 not in v
    assert v(0) == 1 and repr(v) == "Vector(1, 2, 3)" and f"{v}" == "Vector(1, 2, 3)"
    assert [*v] == [1, 2, 3]  # by __getitem__, until IndexError
    assert not Vector(0, 0) and Vector(0, 1)
    assert {Vector(1): "x"}[Vector(1)] == "x"


def app_reflected_operators_and_subclass_priority():
    class A:
        def __add__(self, other):
            return "A.add"

        def __radd__(self, other):
            return "A.radd"

    class B(A):
        def __radd__(self, other):
            return "B.radd"

    assert A() + A() == "A.add"
    assert A() + B() == "B.radd"
    assert B() + A() == "A.add"
    assert 1 + A() == "A.radd"


def app_truth_and_length():
    class Sized:
        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

    assert not Sized(0) and Sized(2)
    assert bool(object())
    try:
        len(Sized(-1))
    except ValueError as error:
        assert "should return >= 0" in str(error)
    else:
        raise AssertionError("no ValueError")


def app_iterator_protocol():
    class Countdown:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return self

        def __next__(self):
            if self.n == 0:
                raise StopIteration
            self.n -= 1
            return self.n

    assert list(Countdown(3)) == [2, 1, 0]
    assert max(Countdown(3)) == 2
    a, b = Countdown(2)
    assert (a, b) == (1, 0)


def app_eq_without_hash_is_unhashable():
    class E:
        def __eq__(self, other):
            return True

    assert E.__hash__ is None
    try:
        hash(E())
    except TypeError as error:
        assert str(error) == "unhashable type: 'E'"
    else:
        raise AssertionError("no TypeError")


def app_subclass_of_builtin_types():
    class Names(list):
        def first(self):
            return self[0]

        def append(self, item):
            super().append(item.lower())

    class Missing(dict):
        def __missing__(self, key):
            return key * 2

    names = Names(["x"])
    names.append("ABC")
    assert names == ["x", "abc"] and names.first() == "x" and len(names) == 2
    assert Missing(a=1)["a"] == 1 and Missing()["b"] == "bb" and Missing().get("c") is None

    class Inch(float):
        def cm(self):
            return self * 2.5

    assert Inch(2).cm() == 5.0 and Inch(2) == 2.0


def app_methods_are_bound_and_comparable():
    base = Base(7)
    method = base.describe
    assert method() == "base 7" and method.__self__ is base and method.__func__ is Base.describe
    assert method == base.describe and Base.describe(base) == method()


def app_class_body_scope():
    x = "function"

    class C:
        y = x
        z = "class"

        def method(self):
            return x, "z" in globals()

    assert (C.y, C.z, C().method()) == ("function", "class", ("function", False))


def app_private_names():
    class A:
        __secret = 1

        def get(self):
            return self.__secret

    assert A().get() == 1 and A._A__secret == 1 and not hasattr(A(), "__secret")


def app_dynamic_class():
    Made = type("Made", (Base,), {"kind": "made", "twice": lambda self: self.value * 2})
    made = Made(4)
    assert made.describe() == "made 4" and made.twice() == 8 and Made.__name__ == "Made"
    made.__class__ = Base
    assert made.describe() == "base 4"
