"""The compiled callable binds arguments as CPython does, mostly without a frame, and looks like its function."""

from __future__ import annotations

import functools
import gc
import inspect
import sys
import threading
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stator
from stator import _core
from stator.compiler import miss
from stator.guards.guard import Equals, Predicate, TypeIs
from stator.guards.program import compile_guards
from stator.guards.source import LocalSource


def slots_of(code):
    flags = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return [LocalSource(i, code.co_varnames[i]) for i in range(code.co_argcount + code.co_kwonlyargcount + flags)]


def compiled_returning_its_slots(function):
    """A compiled function whose target gives back its raw argument slots; misses are errors."""
    region = _core.Region()
    code = function.__code__
    region.add(code, _core.Entry(compile_guards([], slots_of(code)), lambda *slots: slots))
    return _core.Compiled(function, region)


def no_miss(region, func, code, args):
    raise AssertionError(f"missed {code.co_name}")


@pytest.fixture(autouse=True)
def never_missing(on_miss):
    on_miss(no_miss)


def f0():
    return ()


def f1(a, b):
    return (a, b)


def f2(a, b=2, c=3):
    return (a, b, c)


def f3(a, *args):
    return (a, args)


def f4(a, /, b, *, c, d=4):
    return (a, b, c, d)


def f5(a=1, *args, b=2, **kwargs):
    return (a, b, args, kwargs)


def f6(a, /, **kwargs):
    return (a, kwargs)


def f7(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13=13, a14=14):
    return (a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14)


def f8(*, b, **kwargs):
    return (b, kwargs)


FUNCTIONS = [f0, f1, f2, f3, f4, f5, f6, f7, f8]


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(FUNCTIONS),
    st.lists(st.integers(0, 9), max_size=15),
    st.dictionaries(st.sampled_from(["a", "b", "c", "d", "a14", "other"]), st.integers(0, 9), max_size=3),
)
def test_arguments_are_bound_as_by_cpython(function, args, kwargs):
    compiled = compiled_returning_its_slots(function)
    try:
        expected = function(*args, **kwargs)
    except TypeError as error:
        with pytest.raises(TypeError) as caught:
            compiled(*args, **kwargs)
        assert str(caught.value) == str(error)
    else:
        assert compiled(*args, **kwargs) == expected


def test_keyword_names_need_not_be_interned():
    name = "".join(["other", "_", "b"]).replace("other_", "")
    assert compiled_returning_its_slots(f1)(1, **{name: 5}) == (1, 5)


def test_changed_defaults_and_code_are_seen():
    def function(a, b=1, *, c=2):
        return (a, b, c)

    compiled = compiled_returning_its_slots(function)
    assert compiled(0) == (0, 1, 2)
    function.__defaults__ = (5,)
    function.__kwdefaults__ = {"c": 6}
    assert compiled(0) == (0, 5, 6)
    function.__defaults__ = None
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        compiled(0)
    function.__code__ = (lambda a, b=3, *, c=3: (a, b)).__code__
    with pytest.raises(AssertionError, match="missed"):
        compiled(0, 1)


def test_a_direct_call_makes_no_frame_and_installs_no_hook():
    seen = []

    def function(x):
        return x

    region = _core.Region()
    guard = Predicate((LocalSource(0, "x"),), lambda x: seen.append(_core.hook_installed()) or True, "note")
    program = compile_guards([guard], slots_of(function.__code__))
    region.add(function.__code__, _core.Entry(program, lambda x: _core.hook_installed()))
    assert _core.Compiled(function, region)(1) is False
    assert seen == [False]


def test_what_does_not_fit_goes_through_the_hook(on_miss):
    offered = []
    on_miss(lambda region, func, code, args: offered.append(args))

    def function(x):
        return x + 1

    region = _core.Region()
    program = compile_guards([TypeIs(LocalSource(0, "x"), int)], slots_of(function.__code__))
    region.add(function.__code__, _core.Entry(program, lambda x: "target"))
    compiled = _core.Compiled(function, region)
    assert compiled(1) == "target"
    assert compiled(1.5) == 2.5
    assert offered == [[1.5]]


def test_native_entries():
    def function(x):
        return x + 1

    region = _core.Region()
    region.add(function.__code__, _core.Entry(compile_guards([Equals(LocalSource(0, "x"), 1)]), None))
    assert _core.Compiled(function, region)(1) == 2


def test_methods():
    class Model:
        def forward(self, x, *, scale=1):
            return (self, x, scale)

    model = Model()
    region = _core.Region()
    code = Model.forward.__code__
    region.add(code, _core.Entry(compile_guards([], slots_of(code)), lambda *slots: ("target", *slots)))
    bound = _core.Compiled(model.forward, region)
    assert bound(1) == ("target", model, 1, 1)
    assert bound(x=2, scale=3) == ("target", model, 2, 3)
    Model.forward = _core.Compiled(Model.forward, region)
    assert model.forward(4) == ("target", model, 4, 1)
    assert Model.forward(model, 4) == ("target", model, 4, 1)
    assert isinstance(vars(Model)["forward"], _core.Compiled)


def test_other_callables(on_miss):
    names = []
    on_miss(lambda region, func, code, args: names.append(code.co_name))

    class Callable:
        def __call__(self, x):
            return x * 2

    region = _core.Region()
    assert _core.Compiled(Callable(), region)(3) == 6
    assert _core.Compiled(functools.partial(f1, 1), region)(2) == (1, 2)
    assert _core.Compiled(len, region)([1]) == 1
    assert names == ["__call__", "f1"]
    with pytest.raises(TypeError, match="not callable"):
        _core.Compiled(5, region)


def test_generator_functions(on_miss):
    def generate(n):
        yield from range(n)

    compiled = _core.Compiled(generate, _core.Region())
    assert list(compiled(3)) == [0, 1, 2]


def test_it_looks_like_its_function():
    def function(x):
        """Documented."""

    compiled = _core.Compiled(function, _core.Region())
    assert compiled.__wrapped__ is function
    assert compiled.__name__ == "function"
    assert compiled.__qualname__ == function.__qualname__
    assert compiled.__doc__ == "Documented."
    assert compiled.__module__ == __name__
    assert str(inspect.signature(compiled)) == "(x)"
    compiled.note = 1
    assert compiled.__dict__["note"] == 1
    assert callable(compiled) and "function" in repr(compiled)
    assert weakref.ref(compiled)() is compiled


def test_it_can_be_subclassed():
    class Special(_core.Compiled):
        def __call__(self, *args):
            return ("special", super().__call__(*args))

    special = Special(f1, _core.Region())
    region = special.region
    region.add(f1.__code__, _core.Entry(compile_guards([], slots_of(f1.__code__)), lambda *slots: slots))
    assert special(1, 2) == ("special", (1, 2))


def test_it_is_collected_with_its_region():
    def build():
        def function(x):
            return compiled

        region = _core.Region()
        compiled = _core.Compiled(function, region)
        region.add(function.__code__, _core.Entry(compile_guards([], []), lambda: compiled))
        assert compiled(1) is compiled
        return weakref.ref(compiled), weakref.ref(region), weakref.ref(function)

    references = build()
    gc.collect()
    assert [reference() for reference in references] == [None, None, None]


def test_the_function_may_go_while_it_runs():
    holder = {}

    def function(x):
        return x

    def target(x):
        holder.clear()
        gc.collect()
        return x

    region = _core.Region()
    region.add(function.__code__, _core.Entry(compile_guards([], slots_of(function.__code__)), target))
    holder["compiled"] = _core.Compiled(function, region)
    del function, region
    assert holder["compiled"](5) == 5


def test_arguments_are_released():
    class Thing:
        pass

    compiled = compiled_returning_its_slots(f5)
    thing = Thing()
    before = sys.getrefcount(thing)
    for _ in range(20):
        compiled(thing, thing, b=thing, other=thing)
    assert sys.getrefcount(thing) == before


def test_exceptions_of_targets_and_interrupts_of_guards():
    def function(x):
        return x

    def fail(x):
        raise KeyError(x)

    def interrupt(x):
        raise KeyboardInterrupt

    region = _core.Region()
    region.add(function.__code__, _core.Entry(compile_guards([], slots_of(function.__code__)), fail))
    with pytest.raises(KeyError, match="7"):
        _core.Compiled(function, region)(7)
    program = compile_guards([Predicate((LocalSource(0, "x"),), interrupt, "interrupt")])
    region.add(function.__code__, _core.Entry(program, fail))
    with pytest.raises(KeyboardInterrupt):
        _core.Compiled(function, region)(7)


def test_in_a_region_and_in_threads():
    compiled = compiled_returning_its_slots(f1)
    outer = _core.Region()
    _core.set_miss_handler(None)
    assert outer.call(lambda: (compiled(1, 2), _core.current_region())) == ((1, 2), outer)
    wrong = []

    def work():
        for i in range(500):
            if compiled(i, b=i + 1) != (i, i + 1):
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_call_of_an_object_is_looked_up_in_each_call(on_miss):
    on_miss(miss.on_miss)

    class First:
        def __call__(self, x):
            return "first", x

    class Second:
        def __call__(self, x):
            return "second", x

    obj = First()
    compiled = stator.compile(obj)
    assert [compiled(1) for _ in range(5)] == [("first", 1)] * 5
    First.__call__ = lambda self, x: ("replaced", x)
    assert [compiled(1) for _ in range(5)] == [("replaced", 1)] * 5
    obj.__class__ = Second
    assert [compiled(x=1) for _ in range(5)] == [("second", 1)] * 5
    del Second.__call__
    with pytest.raises(TypeError, match="not callable"):
        compiled(1)
