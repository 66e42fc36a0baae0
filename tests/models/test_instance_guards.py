"""Objects and classes that exist before the trace: every change the program can see is seen by the next call."""

import abc
import contextvars
import gc
import types
import weakref

import pytest

import stator


class Shown:
    def __repr__(self):
        return f"{type(self).__name__}({vars(self)})"


class Base(Shown):
    shared = 1

    def __init__(self, x=1):
        self.x = x

    def method(self):
        return self.x * 2

    @property
    def prop(self):
        return self.x

    @prop.setter
    def prop(self, value):
        self.x = value + 1


class Child(Base):
    def method(self):
        return self.x * 3


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a = 1

    def __repr__(self):
        return f"Slotted({getattr(self, 'a', None)}, {getattr(self, 'b', None)})"


class Abstract(abc.ABC):
    pass


def assign(name, value):
    return lambda obj: setattr(obj, name, value)


def remove(name):
    return lambda obj: delattr(obj, name)


def become(cls):
    return lambda obj: setattr(obj, "__class__", cls)


def outcome(function, obj):
    try:
        return "returned", repr(function(obj))
    except Exception as e:
        return "raised", repr(e)


def agrees(function, make, *changes):
    """Plain and compiled, on objects of their own, give the same and leave the same, after each change."""
    fast = stator.compile(function, backend="eager", fullgraph=True)
    mine, theirs = make(), make()
    for change in (None, None, *changes):
        if change is not None:
            change(mine)
            change(theirs)
        assert outcome(fast, mine) == outcome(function, theirs)
        assert repr(mine) == repr(theirs)


def test_method():
    agrees(
        lambda o: o.method(),
        Base,
        assign("x", 5),
        become(Child),
        become(Base),
        assign("method", lambda: 9),
        remove("method"),
        assign("x", "s"),
    )


def test_presence_of_an_attribute():
    agrees(lambda o: hasattr(o, "q"), Base, assign("q", 5), remove("q"))
    agrees(lambda o: getattr(o, "q", 3), Base, assign("q", 5), remove("q"))


def test_presence_of_a_slot():
    agrees(lambda o: hasattr(o, "b"), Slotted, assign("b", 5), remove("b"))
    agrees(lambda o: o.b, Slotted, assign("b", 5), remove("b"), assign("b", 7))


def test_class_attribute_shadowed():
    agrees(lambda o: o.shared, Base, assign("shared", 5), remove("shared"))


def test_property():
    def both(o):
        o.prop = o.prop + 1
        return o.prop

    agrees(both, Base, assign("x", 5), remove("x"))


def test_attributes_written_back():
    def change(o):
        o.x += 1
        o.y = o.x
        del o.x
        o.z = vars(o).copy()
        return o

    agrees(change, Base, assign("x", 5), assign("w", 1))


def test_slots_written_back():
    def change(o):
        o.b = o.a + 1
        del o.a
        o.a = 4
        del o.b
        return o

    agrees(change, Slotted, assign("a", 5), assign("b", 6))


def test_dict_written_back():
    def change(o):
        o.__dict__["z"] = len(o.__dict__)
        o.__dict__.pop("x", None)
        return sorted(o.__dict__)

    agrees(change, Base, assign("x", 5), assign("w", 3))


def test_class_assigned():
    def change(o):
        o.__class__ = Child
        return o.method()

    agrees(change, Base, become(Base), assign("x", 4))


@pytest.fixture
def patched(monkeypatch):
    """Compile, call, patch a class, call, undo, call."""

    def run(function, make, cls, name, value):
        fast = stator.compile(function, backend="eager", fullgraph=True)
        mine, theirs = make(), make()
        assert outcome(fast, mine) == outcome(function, theirs)
        with monkeypatch.context() as patch:
            patch.setattr(cls, name, value, raising=False)
            assert outcome(fast, mine) == outcome(function, theirs)
        assert outcome(fast, mine) == outcome(function, theirs)

    return run


def test_class_patched(patched):
    patched(lambda o: o.method(), Base, Base, "method", lambda self: "patched")
    patched(lambda o: o.method(), Child, Child, "method", lambda self: "patched")
    patched(lambda o: o.prop, Base, Base, "prop", 5)
    patched(lambda o: o.x, Base, Base, "x", property(lambda self: 7))
    patched(lambda o: o.x, Base, Base, "__getattribute__", lambda self, name: 8)


def test_base_patched_under_super(patched):
    patched(lambda o: super(Child, o).method(), Child, Base, "method", lambda self: "patched")


def test_name_of_a_class():
    class Named:
        pass

    fast = stator.compile(lambda o: type(o).__name__, backend="eager", fullgraph=True)
    assert fast(Named()) == "Named"
    Named.__name__ = "Other"
    assert fast(Named()) == "Other"


def test_class_made_in_the_trace_follows_its_bases(patched):
    def make_one(o):
        class Fresh(Base):
            pass

        return Fresh(o.x).method()

    patched(make_one, Base, Base, "method", lambda self: "patched")


def test_class_registered_later():
    fast = stator.compile(lambda o: isinstance(o, Abstract), backend="eager", fullgraph=True)
    assert not fast(Base())
    Abstract.register(Child)
    assert fast(Child())
    assert not fast(Base())


def test_class_attribute_written_back():
    def count(o):
        Base.shared = Base.shared + 1
        return o.shared

    fast = stator.compile(count, backend="eager", fullgraph=True)
    try:
        assert fast(Child()) == 2
        assert Base.shared == 2
        assert fast(Child()) == 3
    finally:
        Base.shared = 1


def test_existing_exception():
    class Holder(Shown):
        def __init__(self):
            self.error = ValueError("x", 1)
            self.other = KeyError("k")

    def use(o):
        try:
            raise o.error
        except ValueError as e:
            e.note = 5
            e.__cause__ = o.other
            return e.args, str(e), e is o.error, e.__suppress_context__

    def change(o):
        o.error.args = (1,)

    def replace(o):
        o.error = KeyError(1)

    agrees(use, Holder, change, replace)


def test_module_attributes():
    module = types.ModuleType("probe")
    module.value = 1

    def read(o):
        return module.value, getattr(module, "missing", None)

    fast = stator.compile(read, backend="eager", fullgraph=True)
    for change in ("value = 2", "missing = 3", "__getattr__ = lambda name: 4", "del missing"):
        assert fast(0) == read(0)
        exec(change, module.__dict__)
        assert fast(0) == read(0)


def test_module_attribute_written_back():
    module = types.ModuleType("probe")
    module.count = 0

    def count():
        module.count += 1
        return module.count

    fast = stator.compile(count, backend="eager", fullgraph=True)
    assert [fast(), fast(), module.count] == [1, 2, 2]


def test_weak_reference():
    class Holder(Shown):
        def __init__(self):
            self.target = Base(3)
            self.ref = weakref.ref(self.target)

    fast = stator.compile(lambda o: None if o.ref() is None else o.ref().x, backend="eager", fullgraph=True)
    holder = Holder()
    assert fast(holder) == 3
    holder.target.x = 4
    assert fast(holder) == 4
    del holder.target
    gc.collect()
    assert fast(holder) is None


def test_following_a_reference_to_a_fresh_object():
    def dead():
        return weakref.ref(Base(1))()

    def unseen():
        cyclic = Base(1)
        cyclic.x = cyclic
        reference = weakref.ref(cyclic)
        del cyclic
        return reference() is None

    assert stator.compile(dead, backend="eager", fullgraph=True)() is None
    with pytest.raises(stator.errors.GraphBreakError):
        stator.compile(unseen, backend="eager", fullgraph=True)()


def test_context_variable():
    variable = contextvars.ContextVar("variable")

    def read():
        return variable.get(None)

    def swap(value):
        token = variable.set(value)
        seen = variable.get()
        variable.reset(token)
        return seen, variable.get(0)

    def leave(value):
        variable.set(value)
        variable.set(value + 1)

    fast_read, fast_swap = (stator.compile(f, backend="eager", fullgraph=True) for f in (read, swap))
    assert fast_read() is None
    assert fast_swap(5) == (5, 0)
    assert fast_read() is None
    stator.compile(leave, backend="eager", fullgraph=True)(1)
    assert variable.get() == 2
    assert fast_read() == 2
    assert fast_swap(7) == (7, 2)


def test_token_across_a_break():
    variable = contextvars.ContextVar("variable", default=0)

    def use():
        token = variable.set(1)
        stator.graph_break()
        inside = variable.get()
        variable.reset(token)
        return inside, variable.get()

    assert stator.compile(use, backend="eager")() == (1, 0)


def test_context_variable_made_inside():
    def leave(value):
        variable = contextvars.ContextVar("made", default=[value])
        token = variable.set([value, variable.get()])
        return variable, token

    variable, token = stator.compile(leave, backend="eager", fullgraph=True)(1)
    assert variable.name == "made" and variable.get() == [1, [1]]
    variable.reset(token)
    assert variable.get() == [1]


def test_context_variable_made_before_a_break():
    def use(value):
        variable = contextvars.ContextVar("made", default=value)
        outer, inner = variable.set(2), variable.set(3)
        stator.graph_break()
        seen = [variable.get()]
        for token in (inner, outer):
            variable.reset(token)
            seen.append(variable.get())
        return seen

    assert stator.compile(use, backend="eager")(1) == [3, 2, 1]


def test_object_with_a_finaliser_breaks():
    class Final:
        def __del__(self):
            gone.append(1)

    gone = []

    def use():
        Final()
        return len(gone)

    with pytest.raises(stator.errors.GraphBreakError):
        stator.compile(use, backend="eager", fullgraph=True)()
