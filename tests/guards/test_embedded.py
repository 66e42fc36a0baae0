"""Objects that a class, a metaclass or a module holds are known as objects; what may change of them is guarded."""

import builtins
import functools
import operator
import sys
import types

import pytest

import stator
from stator import _core
from stator.guards.guard import MroIs
from stator.guards.program import compile_guards
from stator.guards.source import ConstSource


class One:
    name = "one"

    def __get__(self, instance, owner):
        return 1


class Two:
    name = "two"

    def __get__(self, instance, owner):
        return 2


class NoDescriptor:
    name = "no descriptor"


class Meta(type):
    def who(cls):
        return "Meta"

    def __instancecheck__(cls, instance):
        return True

    def __call__(cls):
        return "made by Meta"


class OtherMeta(type):
    def who(cls):
        return "OtherMeta"

    def __instancecheck__(cls, instance):
        return False

    def __call__(cls):
        return "made by OtherMeta"


PROGRAMS = {}


def program(make):
    """`make()` gives a program without arguments, and the changes to be made one after the other."""
    PROGRAMS[make.__name__] = make
    return make


@program
def class_of_an_attribute():
    class Net:
        impl = One()

    net = Net()
    return lambda: (type(Net.impl), vars(type(net))["impl"].name), lambda: setattr(vars(Net)["impl"], "__class__", Two)


@program
def class_of_a_descriptor():
    class Net:
        impl = One()

    return (
        lambda: Net().impl,
        lambda: setattr(vars(Net)["impl"], "__class__", Two),
        lambda: setattr(vars(Net)["impl"], "__class__", NoDescriptor),
    )


@program
def class_of_an_object_in_a_tuple():
    class Net:
        parts = (One(), 1)

    return lambda: Net.parts[0].name, lambda: setattr(Net.parts[0], "__class__", Two)


def _subclass(base, content):
    first = type("First", (base,), {"name": "first", "__repr__": lambda self: "one"})
    second = type("Second", (base,), {"name": "second", "__repr__": lambda self: "two"})

    class Net:
        held = first(content)

    return lambda: (Net.held.name, repr(Net.held), len(Net.held)), lambda: setattr(Net.held, "__class__", second)


for _base, _content in ((list, [1]), (dict, {1: 2}), (set, {1}), (frozenset, {1}), (str, "x")):
    PROGRAMS[f"class_of_a_{_base.__name__}"] = lambda base=_base, content=_content: _subclass(base, content)


def _wrapper(base):
    first, second = type("First", (base,), {"name": 1}), type("Second", (base,), {"name": 2})

    class Net:
        held = first(lambda self=None: 0)

    return lambda: vars(Net)["held"].name, lambda: setattr(vars(Net)["held"], "__class__", second)


for _base in (property, staticmethod, classmethod):
    PROGRAMS[f"class_of_a_{_base.__name__}"] = lambda base=_base: _wrapper(base)


def _reinitialised(base):
    class Net:
        held = base(lambda *args: 1)

    net = Net()
    read = (lambda: net.held) if base is property else lambda: net.held()
    return read, lambda: vars(Net)["held"].__init__(lambda *args: 2)


for _base in (property, staticmethod, classmethod):
    PROGRAMS[f"function_of_a_{_base.__name__}"] = lambda base=_base: _reinitialised(base)


@program
def metaclass():
    class Net(metaclass=Meta):
        pass

    return lambda: (Net.who(), type(Net)), lambda: setattr(Net, "__class__", OtherMeta)


@program
def metaclass_that_checks_instances():
    class Net(metaclass=Meta):
        pass

    return lambda: isinstance(1, Net), lambda: setattr(Net, "__class__", OtherMeta)


@program
def metaclass_that_calls():
    class Net(metaclass=Meta):
        pass

    return lambda: Net(), lambda: setattr(Net, "__class__", OtherMeta)


@program
def slot_of_an_attribute():
    class Slotted:
        __slots__ = ("x",)

    class Net:
        held = Slotted()

    Net.held.x = 1
    return lambda: getattr(Net.held, "x", "unset"), lambda: delattr(Net.held, "x"), lambda: setattr(Net.held, "x", 3)


class Left:
    side = "left"

    def who(self):
        return "left"


class Right:
    side = "right"

    def who(self):
        return "right"


def _below(*bases, **names):
    cls = type("Below", bases or (Left,), names)
    return cls, cls(), lambda: setattr(cls, "__bases__", (Right,))


@program
def bases_and_attributes():
    _, obj, change = _below()
    return lambda: (obj.side, obj.who()), change


@program
def bases_and_isinstance():
    cls, obj, change = _below()
    return lambda: (isinstance(obj, Left), issubclass(cls, Left), isinstance(obj, (int, Right))), change


@program
def bases_of_a_base():
    cls, _, change = _below()

    class Lowest(cls):
        pass

    return lambda: (isinstance(Lowest(), Left), Lowest.__mro__), change


@program
def bases_shown():
    cls, _, change = _below()
    return lambda: cls.__base__, change


@program
def bases_listed():
    cls, _, change = _below()
    return lambda: (cls.mro(), cls.__bases__), change


@program
def bases_and_super():
    cls, obj, change = _below()
    return lambda: super(cls, obj).who(), change


@program
def bases_and_patterns():
    _, obj, change = _below()

    def match():
        match obj:
            case Left():
                return "left"
            case Right():
                return "right"

    return match, change


@program
def bases_of_a_class_that_the_program_derives_from():
    cls, _, change = _below()

    def derive():
        class Made(cls):
            pass

        return isinstance(Made(), Left)

    return derive, change


@program
def class_of_a_module():
    module = types.ModuleType("holding")

    class Answering(types.ModuleType):
        def __getattr__(self, name):
            return f"no {name}"

    return lambda: getattr(module, "x", "none"), lambda: setattr(module, "__class__", Answering)


@program
def defaults():
    def called(a, b):
        return a, b

    return (
        lambda: called(1),
        lambda: setattr(called, "__defaults__", (2,)),
        lambda: setattr(called, "__defaults__", None),
        lambda: setattr(called, "__defaults__", (3, 4)),
    )


@program
def keyword_defaults():
    def called(a, *, b):
        return a, b

    return (
        lambda: called(1),
        lambda: setattr(called, "__kwdefaults__", {"b": 2}),
        lambda: called.__kwdefaults__.clear(),
        lambda: called.__kwdefaults__.update(b=3),
        lambda: setattr(called, "__kwdefaults__", None),
        lambda: setattr(called, "__kwdefaults__", {"b": 4}),
    )


@program
def keyword_default_that_is_not_used():
    def called(*, b=1):
        return 0

    return lambda: called(), lambda: called.__kwdefaults__.clear()


@program
def defaults_of_a_method():
    class Net:
        def called(self, a, b=1):
            return a, b

    net = Net()
    return (
        lambda: net.called(0),
        lambda: setattr(Net.called, "__defaults__", None),
        lambda: setattr(Net.called, "__defaults__", (5,)),
    )


@program
def name_in_the_words_of_an_error():
    def called(a):
        return a

    return lambda: called(), lambda: setattr(called, "__qualname__", "renamed")


@program
def method_caller_that_gets_keywords():
    class Called:
        def a(self, *args, **kwargs):
            return "a", args, kwargs

        b = a

    callers = [operator.methodcaller("a", "b")]
    change = lambda: callers.__setitem__(0, operator.methodcaller("b", "a", "b", k=1))  # noqa: E731
    return lambda: callers[0](Called()), change


@program
def documentation_of_a_property():
    def getter(self):
        """One."""

    def other(self):
        """Two."""

    held = property(getter)
    return lambda: held.getter(other).__doc__, lambda: setattr(getter, "__doc__", "Another.")


@program
def name_of_a_generator():
    def generate():
        yield 1

    return lambda: (generate().__name__, generate().__qualname__), lambda: setattr(generate, "__name__", "renamed")


@program
def hash_of_a_metaclass():
    class Hashing(type):
        pass

    class Net(metaclass=Hashing):
        pass

    def change():
        Hashing.__hash__ = lambda cls: 7

    return lambda: ({Net: 1}[Net], hash(Net) == 7), change


@program
def words_for_what_is_no_exception():
    class Shown(type):
        def __repr__(cls):
            return "shown"

    class Net(Exception, metaclass=Shown):
        def __new__(cls):
            return 1

    def raising():
        raise Net

    return raising, lambda: setattr(Shown, "__repr__", lambda cls: "shown otherwise")


@program
def wrapped_of_a_cache():
    @functools.lru_cache
    def cached(x):
        return x

    return lambda: cached(1), lambda: setattr(cached, "__wrapped__", len)


def _module(name, **attributes):
    module = sys.modules[name] = types.ModuleType(name)
    vars(module).update(attributes)
    return module


def _import_plain():
    import embedded_test

    return embedded_test.x


def _import_from():
    from embedded_test import x

    return x


def _import_builtin():
    return __import__("embedded_test").x


for _read in (_import_plain, _import_from, _import_builtin):
    PROGRAMS[_read.__name__] = lambda read=_read: (
        read,
        lambda: _module("embedded_test", x=2),
        lambda: sys.modules.update(embedded_test=None),
        lambda: _module("embedded_test", x=3),
        lambda: sys.modules.pop("embedded_test"),
        lambda: _module("embedded_test", x=4),
    )


def _import_dotted():
    import embedded_test.sub

    return embedded_test.sub.x


def _import_dotted_as():
    import embedded_test.sub as sub

    return sub.x


def _import_submodule():
    from embedded_test import sub

    return sub.x


for _read in (_import_dotted, _import_dotted_as, _import_submodule):
    PROGRAMS[_read.__name__] = lambda read=_read: (
        read,
        lambda: _module("embedded_test.sub", x=2),
        lambda: setattr(sys.modules["embedded_test"], "sub", sys.modules["embedded_test.sub"]),
        lambda: delattr(sys.modules["embedded_test"], "sub"),
        lambda: _module("embedded_test", __path__=[], sub=types.SimpleNamespace(x=9)),
    )


@program
def hook_of_imports():
    def hook(name, globals=None, locals=None, fromlist=(), level=0):
        if name != "embedded_test":
            return REAL(name, globals, locals, fromlist, level)
        return types.SimpleNamespace(x=(name, globals["__name__"], fromlist, level))

    return _import_plain, lambda: setattr(builtins, "__import__", hook), lambda: setattr(builtins, "__import__", REAL)


REAL = builtins.__import__


@pytest.fixture(autouse=True)
def modules():
    sub = _module("embedded_test.sub", x=1)
    _module("embedded_test", __path__=[], sub=sub, x=1)
    yield
    builtins.__import__ = REAL
    for name in ("embedded_test", "embedded_test.sub"):
        sys.modules.pop(name, None)


def outcome(function):
    try:
        return "returned", function()
    except Exception as e:
        return type(e), str(e)


def follow(read, changes, **options):
    """After each change the traced program does what the program does, however often it has passed its guards."""
    traced = stator.compile(read, **options)
    for change in (lambda: None, *changes):
        change()
        expected = outcome(read)
        for _ in range(10):
            assert outcome(traced) == expected


@pytest.fixture(params=["walked", "short cut"])
def checked(request):
    """How guards are checked; the strict mode asks the reference too."""
    least = _core.set_revalidation_minimum(0 if request.param == "short cut" else 10**6)
    strict = _core.set_strict(True)
    yield
    _core.set_strict(strict)
    _core.set_revalidation_minimum(least)


@pytest.mark.parametrize("name", PROGRAMS)
def test_change_is_noticed(name, checked):
    read, *changes = PROGRAMS[name]()
    follow(read, changes)


def test_the_program_is_traced():
    """The table above would prove nothing if its programs broke."""
    broken = {name for name, make in PROGRAMS.items() if not _traces(make()[0])}
    assert broken == set()


def _traces(read):
    try:
        stator.compile(read, fullgraph=True)()
    except stator.StatorError:
        return False
    except Exception:
        return True
    return True


@pytest.mark.parametrize("reference", [False, True])
def test_the_guard_on_bases(reference):
    cls, _, change = _below()
    program = compile_guards([MroIs(ConstSource(cls, "cls"), cls.__mro__)])
    passes = program.reference.run if reference else lambda func, args: program.check(func, args) or None
    for _ in range(10):
        assert passes(None, ()) is not None
    change()
    assert passes(None, ()) is None
    assert "base classes" in program.failure(None, ())


def test_unused_defaults_are_not_guarded():
    def called(a, b=1):
        return a, b

    traced = stator.compile(lambda: called(1, 2), fullgraph=True)
    assert traced() == (1, 2)
    called.__defaults__ = None
    assert traced() == (1, 2)
    assert stator.stats().frames == 1
