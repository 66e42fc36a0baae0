"""Generators: send, throw, close, delegation, and what is left of one that is dropped."""

import sys
import warnings

from apptests.marks import expected_break


def count(n):
    for i in range(n):
        yield i
    return "done"


def app_iteration():
    assert list(count(3)) == [0, 1, 2]
    generator = count(1)
    assert iter(generator) is generator
    assert next(generator) == 0
    try:
        next(generator)
    except StopIteration as stop:
        assert stop.value == "done"
    assert next(generator, "default") == "default"


def app_send():
    def average():
        total, n, mean = 0, 0, None
        while True:
            value = yield mean
            total += value
            n += 1
            mean = total / n

    generator = average()
    assert next(generator) is None
    assert [generator.send(v) for v in (10, 20, 60)] == [10, 15, 30]


def app_send_to_a_fresh_generator():
    try:
        count(1).send(1)
    except TypeError as error:
        assert "just-started generator" in str(error)
    else:
        raise AssertionError("no TypeError")


def app_throw():
    log = []

    def listener():
        while True:
            try:
                yield len(log)
            except ValueError as error:
                log.append(str(error))

    generator = listener()
    next(generator)
    assert generator.throw(ValueError("a")) == 1
    assert generator.throw(ValueError("b")) == 2
    try:
        generator.throw(KeyError("c"))
    except KeyError:
        log.append("left")
    assert log == ["a", "b", "left"]
    assert list(generator) == []


def app_close_runs_finally():
    log = []

    def f():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    generator = f()
    next(generator)
    generator.close()
    generator.close()
    assert log == ["closed"]
    assert list(generator) == []
    f().close()
    assert log == ["closed"]


def app_generator_exit_may_not_be_ignored():
    def stubborn():
        while True:
            try:
                yield 1
            except GeneratorExit:
                pass

    generator = stubborn()
    next(generator)
    try:
        generator.close()
    except RuntimeError as error:
        assert "ignored GeneratorExit" in str(error)
    else:
        raise AssertionError("no RuntimeError")

    # Leave the frame of the stubborn one by an exception it does not catch.
    try:
        generator.throw(KeyError)
    except KeyError:
        pass


def app_yield_from_returns_and_forwards():
    def inner():
        received = yield "ready"
        yield received * 2
        return "result"

    def outer():
        value = yield from inner()
        yield value

    generator = outer()
    assert next(generator) == "ready"
    assert generator.send(21) == 42
    assert next(generator) == "result"


def app_yield_from_forwards_throw_and_close():
    log = []

    def inner():
        try:
            yield 1
        except ValueError:
            log.append("inner caught")
            yield 2
        finally:
            log.append("inner left")

    def outer():
        try:
            yield from inner()
        finally:
            log.append("outer left")

    generator = outer()
    next(generator)
    assert generator.throw(ValueError()) == 2
    generator.close()
    assert log == ["inner caught", "inner left", "outer left"]


def app_yield_from_any_iterable():
    def chain(*parts):
        for part in parts:
            yield from part

    assert list(chain([1], "ab", range(2), {"k": 0})) == [1, "a", "b", 0, 1, "k"]


def app_stop_iteration_inside_becomes_runtime_error():
    def f():
        yield 1
        raise StopIteration("oops")

    generator = f()
    next(generator)
    try:
        next(generator)
    except RuntimeError as error:
        assert isinstance(error.__cause__, StopIteration)
    else:
        raise AssertionError("no RuntimeError")


def app_generator_over_changing_state():
    values = [1, 2, 3]

    def walk():
        for v in values:
            yield v

    generator = walk()
    assert next(generator) == 1
    values.append(4)
    assert list(generator) == [2, 3, 4]


def app_recursive_generator():
    def walk(tree):
        if isinstance(tree, list):
            for branch in tree:
                yield from walk(branch)
        else:
            yield tree

    assert list(walk([1, [2, [3, 4]], [[5]]])) == [1, 2, 3, 4, 5]


def app_pipeline():
    def squares(source):
        for x in source:
            yield x * x

    def pairs(source):
        source = iter(source)
        for a in source:
            yield a, next(source, None)

    assert list(pairs(squares(range(5)))) == [(0, 1), (4, 9), (16, None)]


def app_interleaving():
    a, b = count(3), count(3)
    assert [next(a), next(b), next(a), next(b), next(a)] == [0, 0, 1, 1, 2]


def app_generator_attributes():
    generator = count(2)
    assert generator.gi_frame is not None and not generator.gi_running
    assert generator.__name__ == "count"
    list(generator)
    assert generator.gi_frame is None


def test_throwing_a_class_that_makes_no_exception():
    class Strange(Exception):
        def __new__(cls, *args):
            return cls

    def plain():
        yield 1

    g = plain()
    try:
        g.throw(Strange)
    except TypeError as e:
        assert "should have returned an instance of BaseException" in str(e)
    assert next(g, "finished") == "finished"

    def catching():
        try:
            yield 1
        except TypeError:
            yield 2

    g = catching()
    next(g)
    assert g.throw(Strange) == 2


def app_the_value_of_a_delegate_of_ones_own():
    class Once:
        def __init__(self):
            self.left = 1

        def __iter__(self):
            return self

        def __next__(self):
            if not self.left:
                raise StopIteration(42)
            self.left -= 1
            return "item"

    def delegating():
        seen.append((yield from Once()))

    seen = []
    assert list(delegating()) == ["item"]
    assert seen == [42]


def closing(log, name):
    try:
        yield 1
        yield 2
    finally:
        log.append(name)


def app_generators_left_are_closed():
    log = []
    for _ in closing(log, "loop"):
        break
    log.append("after the loop")
    generator = closing(log, "deleted")
    next(generator)
    del generator
    log.append("after del")
    generator = closing(log, "replaced")
    next(generator)
    generator = closing(log, "never started")
    generator = None
    log.append("after replacing")

    def inner():
        held = closing(log, "returned from")
        return next(held)

    inner()
    assert log == [
        "loop",
        "after the loop",
        "deleted",
        "after del",
        "replaced",
        "after replacing",
        "returned from",
    ]


def leaving(log):
    generator = closing(log, "left")
    return next(generator), log


def app_generators_left_by_the_end():
    assert leaving([]) == (1, ["left"])


def app_generators_left_in_with():
    class Manager:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            return self

        def __exit__(self, *args):
            self.log.append(args[0].__name__)

    def lines(log):
        with Manager(log):
            yield from ("a", "b")

    def delegating(log):
        yield 0
        yield from lines(log)

    log = []
    assert next(lines(log)) == "a"
    assert log == ["GeneratorExit"]
    for item in delegating(log):
        if item == "a":
            break
    assert log == ["GeneratorExit", "GeneratorExit"]
    assert any(item == "a" for item in lines(log)) and len(log) == 3


def app_generators_that_leave_are_not_closed():
    log = []
    generator = closing(log, "kept")
    next(generator)
    kept = [generator]
    del generator
    assert log == [] and next(kept[0]) == 2
    kept.pop().close()
    assert log == ["kept"]


def app_variables_of_a_generator_that_has_not_begun():
    kept = [1]

    def numbers(first, second=2):
        yield lambda: (second, kept)

    assert dict(numbers(0).gi_frame.f_locals) == {"first": 0, "second": 2, "kept": [1]}


def app_throw_with_a_traceback():
    def raised(*parts):
        generator = count(2)
        next(generator)
        try:
            generator.throw(*parts)
        except BaseException as error:
            names, traceback = [], error.__traceback__
            while traceback is not None:
                names.append(traceback.tb_frame.f_code.co_name)
                traceback = traceback.tb_next
            return type(error).__name__, str(error), names[1:]

    def fail():
        raise ValueError

    try:
        fail()
    except ValueError as error:
        traceback = error.__traceback__.tb_next
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from 3.12 on, about the parts
        assert raised(KeyError, None, traceback) == ("KeyError", "", ["count", "fail"])
        assert raised(KeyError("k"), None, traceback) == ("KeyError", "'k'", ["count", "fail"])
        assert raised(KeyError, "k", None) == ("KeyError", "'k'", ["count"])
        text = "throw() third argument must be a traceback object"
        assert raised(KeyError, None, 3) == ("TypeError", text, [])


if sys.version_info >= (3, 13):  # a view of the frame
    expected_break("attribute 'f_locals' of type 'frame'")(app_variables_of_a_generator_that_has_not_begun)
