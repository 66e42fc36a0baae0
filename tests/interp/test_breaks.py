"""Graph breaks at any depth and in any block: one break, every frame resumed, the same outcome as eager."""

import sys
import types

import pytest

import stator


def compiled(fn, **options):
    return stator.compile(fn, backend="eager", **options)


def leaf(a):
    b = a + 1
    stator.graph_break("here")
    return b * 2


def middle(a):
    kept = [a]
    return leaf(a) + len(kept), kept


def root(a):
    result, kept = middle(a)
    kept.append(result)
    return kept


def test_one_break_at_depth_two_resumes_all_three_frames():
    assert compiled(root)(3) == root(3)
    stats = stator.stats()
    assert stats.graph_breaks == 1
    assert stats.frames == 2  # up to the break, and all that follows it
    (record,) = stats.breaks
    assert (record.code, record.count) == ("SB0301", 1)
    assert record.where == f"{__file__}:{leaf.__code__.co_firstlineno + 2}"


@pytest.mark.parametrize("depth", [1, 10, 50])
def test_depth_costs_nothing(depth):
    def dive(n):
        if n == 0:
            stator.graph_break()
            return 1
        return dive(n - 1) + 1

    assert compiled(dive)(depth) == depth + 1
    assert stator.stats().graph_breaks == 1
    assert stator.stats().frames == 2


class Recording:
    def __init__(self, log, swallow):
        self.log = log
        self.swallow = swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, traceback):
        self.log.append(kind.__name__ if kind else "leave")
        return self.swallow


def in_with(n):
    log = []
    with Recording(log, True) as outer, Recording(log, False):
        stator.graph_break()
        log.append(outer.swallow)
        if n:
            raise KeyError(n)
    return log


def in_try(n):
    log = []
    try:
        try:
            stator.graph_break()
            log.append("body")
            if n:
                raise ValueError(n)
        except ValueError as e:
            stator.graph_break()
            log.append(("handled", e.args, sys.exc_info()[0]))
        finally:
            stator.graph_break()
            log.append("finally")
    finally:
        log.append("outer")
    return log


def in_loops(n):
    out = []
    for i in range(n + 2):
        for j in "ab":
            if i == 1:
                stator.graph_break()
            out.append((i, j))
        while len(out) < 2:
            stator.graph_break()
            out.append(None)
    return out, [stator.graph_break() or k for k in range(n + 1)]


def in_generator(n):
    def squares():
        for i in range(n + 2):
            stator.graph_break()
            received = yield i * i
            if received:
                return received
        return -1

    def whole():
        result = yield from squares()
        yield result

    return list(whole()), sum(squares())


def in_closure(n):
    total = 0

    def add(k):
        nonlocal total
        stator.graph_break()
        total += k
        return lambda: total

    read = add(n)
    add(2)
    return total, read()


@pytest.mark.parametrize("fn", [in_with, in_try, in_loops, in_generator, in_closure])
@pytest.mark.parametrize("argument", [0, 3])
def test_blocks(fn, argument):
    wrapped = compiled(fn)
    assert wrapped(argument) == fn(argument)
    assert wrapped(argument) == fn(argument)
    assert stator.stats().graph_breaks >= 1


@pytest.mark.parametrize("fn", [in_with, in_try, in_loops, in_closure, root])
def test_break_at_every_instruction(fn):
    assert stator.testing.break_everywhere(fn, (3,)) > 3


def test_exception_of_the_native_operation_meets_the_outer_handlers():
    @stator.disable
    def fails():
        raise LookupError("from native code")

    def inner():
        return fails()

    def outer():
        try:
            return inner()
        except LookupError as e:
            return e.args, [entry.name for entry in _frames(e)]

    assert compiled(outer)() == outer()


def _frames(error):
    names = []
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == __file__:
            names.append(types.SimpleNamespace(name=code.co_name))
        traceback = traceback.tb_next
    return names


def test_resumed_closure_uses_the_globals_of_its_own_module(tmp_path, monkeypatch):
    (tmp_path / "elsewhere.py").write_text(
        "import stator\nNAME = 'elsewhere'\n"
        "def make(k):\n    def inner():\n        stator.graph_break()\n        return NAME, k\n    return inner\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import elsewhere  # type: ignore[import-not-found]

    inner = elsewhere.make(4)

    def outer():
        return inner(), __name__

    assert compiled(outer)() == (("elsewhere", 4), __name__)


def test_a_recursion_that_breaks_at_each_level_is_not_resumed_as_a_whole_each_time():
    def guards(depth):
        def down(n):
            stator.graph_break()
            return 0 if n == 0 else down(n - 1) + 1

        stator.reset()  # entries of the last call would do
        assert compiled(down)(depth) == depth
        return stator.stats().guards

    assert 0 < guards(300) < 2 * guards(100)


def test_effects_happen_once_and_in_order(capsys):
    seen = []

    def program(x):
        seen.append(x)
        print("before", x)
        stator.graph_break()
        print("after", len(seen))
        seen.append("end")
        return len(seen)

    assert compiled(program)(1) == 2
    assert seen == [1, "end"]
    assert capsys.readouterr().out == "before 1\nafter 1\n"


def test_fullgraph_names_code_place_and_stack():
    with pytest.raises(stator.GraphBreakError) as caught:
        compiled(root, fullgraph=True)(3)
    error = caught.value
    assert error.code == "SB0301"
    assert error.where == f"{__file__}:{leaf.__code__.co_firstlineno + 2}"
    assert [f.name for f in error.user_stack] == ["root", "middle", "leaf"]


def test_a_line_is_named_once_though_a_comprehension_on_it_has_a_frame_of_its_own():
    def leaf(x):
        stator.graph_break()
        return x

    def root(xs):
        return [leaf(x) for x in xs]

    with pytest.raises(stator.GraphBreakError) as info:
        stator.compile(root, fullgraph=True)([1, 2])
    assert [f.name for f in info.value.user_stack] == ["root", "leaf"]
