"""The frame hook: which frames it takes over, and that taking them over cannot be told from running them."""

from __future__ import annotations

import cProfile
import gc
import subprocess
import sys
import threading
import traceback
import types
import weakref

import pytest

from stator import _core
from stator.guards.guard import Equals, TypeIs
from stator.guards.program import compile_guards
from stator.guards.source import LocalSource


def program_for(code, guards=()):
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return compile_guards(list(guards), [LocalSource(i, code.co_varnames[i]) for i in range(count)])


def take_over(on_miss, targets):
    """Frames of the named functions run the targets instead; returns the names asked for."""
    asked = []

    def handler(region, func, code, args):
        asked.append(code.co_name)
        if code.co_name not in targets:
            return None
        entry = _core.Entry(program_for(code), targets[code.co_name])
        region.add(code, entry)
        return entry

    on_miss(handler)
    return asked


def identity(x):
    return x


def constant(x):
    x.append(1)


def variadic(a, b=2, *args, c, d=4, **kwargs):
    return a


def outer(x):
    return identity(x) + 1


def free_and_cell(x):
    y = [x]

    def inner():
        return x, y

    return inner


def make_closure(z):
    def closed(x):
        cell = x

        def innermost():
            return cell, z

        return innermost()

    return closed


def raiser(x):
    raise ValueError(x)


def generator(n):
    for i in range(n):
        yield identity(i)


async def coroutine(x):
    return identity(x)


def count_down(n):
    return 0 if n == 0 else 1 + count_down(n - 1)


def test_every_frame_of_the_region_is_offered_once_per_call(misses):
    region = _core.Region()
    assert region.call(outer, 3) == 4
    assert misses == [("outer", [3]), ("identity", [3])]
    assert outer(3) == 4
    assert len(misses) == 2


def test_the_target_replaces_the_body_and_is_reused(on_miss):
    asked = take_over(on_miss, {"identity": lambda x: x * 10})
    region = _core.Region()
    assert region.call(outer, 3) == 31
    assert region.call(outer, 4) == 41
    assert asked == ["outer", "identity", "outer"]
    assert [entry.hits for entry in region.entries(identity.__code__)] == [2]


def test_a_body_that_returns_a_constant_may_return_anything(on_miss):
    """From 3.12 such a body has no RETURN_VALUE of its own."""
    take_over(on_miss, {"constant": lambda x: ["made", x]})
    assert _core.Region().call(constant, []) == ["made", []]


def test_raw_argument_slots(misses):
    _core.Region().call(variadic, 1, c=3)
    _core.Region().call(variadic, 1, 5, 6, 7, c=3, d=8, e=9)
    assert misses[0] == ("variadic", [1, 2, 3, 4, (), {}])
    assert misses[1] == ("variadic", [1, 5, 3, 8, (6, 7), {"e": 9}])


def test_arguments_that_become_cells_are_given_raw(on_miss):
    take_over(on_miss, {"free_and_cell": lambda x: ("raw", x)})
    assert _core.Region().call(free_and_cell, 7) == ("raw", 7)


def test_references_are_balanced(on_miss):
    take_over(on_miss, {"identity": lambda x: x, "raiser": identity})
    region = _core.Region()

    class Thing:
        pass

    thing = Thing()
    baseline = sys.getrefcount(thing)
    for _ in range(50):
        assert region.call(identity, thing) is thing
    assert sys.getrefcount(thing) == baseline
    alive = weakref.ref(thing)
    del thing
    assert alive() is None


def test_exceptions_come_out_as_if_the_frame_had_raised(on_miss):
    def fail(x):
        raise KeyError(x)

    take_over(on_miss, {"identity": fail})
    with pytest.raises(KeyError, match="7") as caught:
        _core.Region().call(outer, 7)
    names = [frame.name for frame in traceback.extract_tb(caught.tb)]
    assert names[-3:] == ["outer", "identity", "fail"]


def test_a_traceback_shows_the_variables_of_a_frame_that_did_not_start(on_miss):
    """Its free variables and cells were never set up by its own instructions."""

    def fail(x):
        raise KeyError(x)

    take_over(on_miss, {"closed": fail})
    with pytest.raises(KeyError) as caught:
        _core.Region().call(make_closure("z"), "x")
    frames = {f.f_code.co_name: f for f, _ in traceback.walk_tb(caught.tb)}
    assert frames["closed"].f_locals["z"] == "z"
    assert frames["closed"].f_locals["x"] == "x"


def test_exception_of_the_handler(on_miss):
    def handler(region, func, code, args):
        raise ZeroDivisionError("in the handler")

    on_miss(handler)
    with pytest.raises(ZeroDivisionError, match="in the handler"):
        _core.Region().call(identity, 1)


def test_an_exception_that_the_handler_returns_is_raised_by_the_frame(on_miss):
    on_miss(lambda *args: ZeroDivisionError("returned"))
    with pytest.raises(ZeroDivisionError, match="returned") as caught:
        _core.Region().call(identity, 1)
    assert [entry.name for entry in caught.traceback[1:]] == ["identity"]


def test_the_handler_must_return_an_entry(on_miss):
    on_miss(lambda *args: 5)
    with pytest.raises(TypeError, match="neither an Entry nor None"):
        _core.Region().call(identity, 1)


def test_a_new_entry_must_fit_the_frame_it_was_made_for(on_miss):
    def handler(region, func, code, args):
        return _core.Entry(program_for(code, [TypeIs(LocalSource(0, "x"), str, where="user.py:3")]), identity)

    on_miss(handler)
    with pytest.raises(RuntimeError, match=r"type\(x\) is str: `x` was a str, is an int  # user.py:3"):
        _core.Region().call(identity, 1)


def test_a_frame_is_traced_again_if_its_guards_fail_at_once(on_miss):
    seen = []

    def handler(region, func, code, args):
        seen.append(code.co_name)
        cls = str if len(seen) < 3 else int
        return _core.Entry(program_for(code, [TypeIs(LocalSource(0, "x"), cls)]), lambda x: x + 1)

    on_miss(handler)
    assert _core.Region().call(identity, 1) == 2
    assert seen == ["identity"] * 3


def test_a_frame_runs_as_it_is_if_its_guards_go_on_failing(on_miss):
    entries = []

    def handler(region, func, code, args):
        entries.append(_core.Entry(program_for(code, [TypeIs(LocalSource(0, "x"), str)]), None))
        return entries[-1] if len(entries) < 4 else None

    on_miss(handler)
    assert _core.Region().call(identity, 1) == 1
    assert len(entries) == 4


def test_hook_is_off_in_targets_and_handlers_and_on_again_after(on_miss):
    states = []

    def note(x):
        states.append((_core.hook_installed(), _core.current_region()))
        return x

    def handler(region, func, code, args):
        states.append((_core.hook_installed(), _core.current_region()))
        return _core.Entry(program_for(code), note) if code.co_name == "identity" else None

    on_miss(handler)
    region = _core.Region()

    def program():
        before = _core.current_region()
        identity(1)
        return before, _core.hook_installed(), _core.current_region()

    assert region.call(program) == (region, True, region)
    assert states == [(False, None)] * 3
    assert not _core.hook_installed()


def test_a_native_entry_runs_the_frame_itself(on_miss):
    asked = []

    def handler(region, func, code, args):
        asked.append(code.co_name)
        entry = _core.Entry(compile_guards([Equals(LocalSource(0, "x"), 1)], []), None)
        region.add(code, entry)
        return entry

    on_miss(handler)
    region = _core.Region()
    assert region.call(outer, 1) == 2
    assert region.call(outer, 1) == 2
    assert asked == ["outer", "identity"]


def test_nested_regions(on_miss):
    first, second = _core.Region("first"), _core.Region("second")
    seen = []

    def handler(region, func, code, args):
        seen.append((code.co_name, region.owner))

    on_miss(handler)

    def program():
        identity(1)
        second.call(identity, 2)
        identity(3)
        return _core.current_region()

    assert first.call(program) is first
    assert seen == [
        ("program", "first"),
        ("identity", "first"),
        ("identity", "second"),
        ("identity", "first"),
    ]


def test_region_inside_a_target(on_miss):
    inner = _core.Region("inner")

    def target(x):
        return inner.call(outer, x)

    asked = take_over(on_miss, {"raiser": target})
    assert _core.Region().call(raiser, 1) == 2
    assert asked == ["raiser", "outer", "identity"]


def test_regions_do_not_share_entries(on_miss):
    take_over(on_miss, {"identity": lambda x: "taken"})
    first, second = _core.Region(), _core.Region()
    first.call(identity, 1)
    assert first.entries(identity.__code__) and second.entries(identity.__code__) == []
    first.clear()
    assert first.entries(identity.__code__) == []


def test_code_policy(misses):
    def skipped():
        return identity(1)

    def recursive():
        return identity(1)

    assert _core.get_code_policy(skipped.__code__) == _core.CodePolicy.TRACE
    _core.set_code_policy(skipped.__code__, _core.CodePolicy.SKIP)
    _core.set_code_policy(recursive.__code__, _core.CodePolicy.RUN_RECURSIVELY)
    assert _core.get_code_policy(recursive.__code__) == _core.CodePolicy.RUN_RECURSIVELY
    region = _core.Region()
    region.call(skipped)
    assert [name for name, _ in misses] == ["identity"]
    region.call(recursive)
    assert [name for name, _ in misses] == ["identity"]
    with pytest.raises(ValueError, match="policy"):
        _core.set_code_policy(skipped.__code__, 3)


def test_generators_and_coroutines_run_natively_but_their_callees_are_seen(misses):
    region = _core.Region()
    assert region.call(lambda: list(generator(2))) == [0, 1]
    assert [name for name, _ in misses] == ["<lambda>", "identity", "identity"]
    misses.clear()
    coro = region.call(coroutine, 5)
    with pytest.raises(StopIteration) as caught:
        region.call(coro.send, None)
    assert caught.value.value == 5
    assert [name for name, _ in misses] == ["identity"]


def test_throwing_into_a_generator_under_the_hook(misses):
    def suspended():
        try:
            yield 1
        except KeyError:
            yield identity(2)

    def program():
        running = suspended()
        return next(running), running.throw(KeyError())

    assert _core.Region().call(program) == (1, 2)


def test_class_bodies_and_modules_run_natively(misses):
    def program():
        class Local:
            value = identity(1)

        scope = {}
        exec("x = 5", scope)
        return Local.value + scope["x"]

    assert _core.Region().call(program) == 6
    assert [name for name, _ in misses] == ["program", "identity"]


def test_recursion_error_instead_of_a_crash(misses):
    with pytest.raises(RecursionError):
        _core.Region().call(count_down, 10**6)
    assert _core.Region().call(count_down, 200) == 200


def test_deep_recursion_that_works_without_the_hook_works_with_it(misses):
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(60_000)
    try:
        assert count_down(30_000) == 30_000
        assert _core.Region().call(count_down, 30_000) == 30_000
    finally:
        sys.setrecursionlimit(limit)


def test_recursion_through_targets(on_miss):
    region = _core.Region()

    def target(n):
        return region.call(count_down, n + 1)

    take_over(on_miss, {"count_down": target})
    with pytest.raises(RecursionError):
        region.call(count_down, 0)


def test_recursion_through_compiled_functions(on_miss):
    take_over(on_miss, {"count_down": lambda n: compiled(n + 1)})
    compiled = _core.Compiled(count_down, _core.Region())
    with pytest.raises(RecursionError):
        compiled(0)


def test_threads_are_apart(on_miss):
    names = []
    lock = threading.Lock()

    def handler(region, func, code, args):
        with lock:
            names.append((threading.current_thread().name, code.co_name))

    on_miss(handler)
    region = _core.Region()
    inside, done = threading.Event(), threading.Event()

    def program():
        inside.set()
        done.wait(10)
        return identity(1)

    hooked = threading.Thread(target=region.call, args=(program,), name="hooked")
    hooked.start()
    assert inside.wait(10)
    assert _core.hook_installed()
    assert _core.current_region() is None
    assert identity(5) == 5
    done.set()
    hooked.join()
    assert {thread for thread, _ in names} == {"hooked"}
    assert "identity" in {name for _, name in names}
    assert not _core.hook_installed()


def test_many_threads_at_once(on_miss):
    take_over(on_miss, {"identity": lambda x: x + 100})
    regions = [_core.Region() for _ in range(4)]
    wrong = []

    def work(region):
        for i in range(300):
            if region.call(outer, i) != i + 101:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(region,)) for region in regions * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not _core.hook_installed()


def test_a_debugger_sees_the_frames_themselves(on_miss):
    take_over(on_miss, {"identity": lambda x: "taken"})
    region = _core.Region()
    lines = []

    def tracer(frame, event, arg):
        lines.append((frame.f_code.co_name, event))
        return tracer

    old = sys.gettrace()
    sys.settrace(tracer)
    try:
        result = region.call(identity, 1)
    finally:
        sys.settrace(old)
    assert result == 1
    assert ("identity", "line") in lines
    assert region.call(identity, 1) == "taken"


def test_profilers_do_not_disable_the_hook(on_miss):
    take_over(on_miss, {"identity": lambda x: "taken"})
    region = _core.Region()
    depth = []

    def profiler(frame, event, arg):
        depth.append({"call": 1, "return": -1}.get(event, 0))

    sys.setprofile(profiler)
    try:
        result = region.call(identity, 1)
    finally:
        sys.setprofile(None)
    assert result == "taken"
    assert sum(depth) == 0


def test_cprofile_counts_balance(on_miss):
    def fail(x):
        raise KeyError(x)

    take_over(on_miss, {"identity": lambda x: "taken", "raiser": fail})
    region = _core.Region()

    def program():
        for _ in range(3):
            identity(1)
            try:
                raiser(1)
            except KeyError:
                pass
        return len([1])

    profile = cProfile.Profile()
    profile.enable()
    region.call(program)
    profile.disable()
    entries = [entry for entry in profile.getstats() if isinstance(entry.code, types.CodeType)]
    calls = {entry.code.co_name: entry.callcount for entry in entries}
    assert calls["program"] == 1
    assert calls["fail"] == 3
    assert calls["<lambda>"] == 3


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
def test_instrumented_code_can_be_left(on_miss):
    take_over(on_miss, {"identity": lambda x: "taken"})
    region = _core.Region()
    monitoring = sys.monitoring
    monitoring.use_tool_id(3, "test")
    seen = []
    monitoring.register_callback(3, monitoring.events.PY_RETURN, lambda code, offset, value: seen.append(code.co_name))
    monitoring.set_events(3, monitoring.events.PY_RETURN)
    try:
        assert identity(1) == 1
        assert region.call(identity, 1) == "taken"
    finally:
        monitoring.set_events(3, 0)
        monitoring.free_tool_id(3)
    assert seen.count("identity") == 1


def test_the_stack_of_a_target_shows_its_caller(on_miss):
    names = []

    def target(x):
        frame = sys._getframe()
        while frame is not None and len(names) < 2:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        return 0

    take_over(on_miss, {"identity": target})
    assert _core.Region().call(outer, 1) == 1
    assert names == ["target", "outer"]


def test_region_is_collected_with_its_entries(on_miss):
    def build():
        region = _core.Region()

        def target(x):
            return region, x

        region.add(identity.__code__, _core.Entry(program_for(identity.__code__), target))
        return weakref.ref(region), weakref.ref(target)

    alive, held = build()
    gc.collect()
    assert alive() is None
    assert held() is None


def test_cache_goes_with_the_code(on_miss):
    scope = {}
    exec("def temporary(x): return x", scope)
    region = _core.Region()

    def target(x):
        return x

    region.add(scope["temporary"].__code__, _core.Entry(program_for(scope["temporary"].__code__), target))
    held = weakref.ref(target)
    del target
    gc.collect()
    assert held() is not None
    scope.clear()
    gc.collect()
    assert held() is None
    region.clear()


def test_clearing_while_running(on_miss):
    region = _core.Region()

    def target(x):
        region.clear()
        gc.collect()
        return x

    take_over(on_miss, {"identity": target})
    for _ in range(3):
        assert region.call(identity, 5) == 5


def test_many_regions_of_one_code(on_miss):
    take_over(on_miss, {"identity": lambda x: "taken"})
    regions = [_core.Region() for _ in range(500)]
    assert {region.call(identity, 1) for region in regions} == {"taken"}
    assert all(len(region.entries(identity.__code__)) == 1 for region in regions)
    del regions
    gc.collect()
    assert identity(1) == 1


def test_newest_entry_is_tried_first_and_listed_last(on_miss):
    region = _core.Region()
    entries = [_core.Entry(program_for(identity.__code__), lambda x, n=n: n) for n in range(3)]
    for entry in entries:
        region.add(identity.__code__, entry)
    assert region.entries(identity.__code__) == entries
    assert region.call(identity, 0) == 2


AUDITED = """
import subprocess
import sys
import stator

heard = []

def listen(event, args):
    heard.append(event)

def f(x):
    sys.audit("program.event", x)
    return x + 1

sys.addaudithook(listen)
compiled = stator.compile(f, backend="eager")
before = stator.stats()
assert [compiled(1), compiled(1)] == [2, 2]
assert stator.stats().diff(before).cache_hits == 2
assert heard.count("program.event") == 2
assert stator.testing.compiled_code_objects() == {f.__code__}, stator.testing.compiled_code_objects()
"""


def test_audit_hooks_are_no_part_of_the_program():
    ran = subprocess.run([sys.executable, "-c", AUDITED], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
