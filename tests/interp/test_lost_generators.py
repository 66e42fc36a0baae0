"""Generators that the traced program lets go of while they are suspended in a `try` or a `with`."""

import stator


def closing(log):
    try:
        yield 1
        yield 2
    finally:
        log.append("closed")


def compiled(fn, **options):
    return stator.compile(fn, backend="eager", **options)


def test_at_the_end_of_the_frame():
    def f(log):
        generator = closing(log)
        return next(generator)

    log = []
    assert compiled(f, fullgraph=True)(log) == 1
    assert log == ["closed"]


def test_one_that_is_returned_goes_on():
    def f(log):
        generator = closing(log)
        return next(generator), generator

    log = []
    one, generator = compiled(f, fullgraph=True)(log)
    assert (one, log, next(generator)) == (1, [], 2)
    del generator
    assert log == ["closed"]


def test_across_a_break():
    def f(log):
        generator = closing(log)
        first = next(generator)
        stator.graph_break()
        seen = list(log)
        del generator
        return first, seen, list(log)

    assert compiled(f)([]) == f([]) == (1, [], ["closed"])


def test_one_that_nothing_asks_for_after_a_break():
    def f(log):
        generator = closing(log)  # noqa: F841
        next(generator)
        stator.graph_break()
        return list(log)

    log = []
    assert compiled(f)(log) == []
    assert log == ["closed"]


def test_one_that_fails_when_it_is_closed():
    def failing():
        try:
            yield 1
        finally:
            raise ValueError("unraisable")

    def f():
        next(failing())
        return 5

    import sys

    seen = []
    kept, sys.unraisablehook = sys.unraisablehook, lambda args: seen.append(args.exc_value.args)
    try:
        assert compiled(f)() == 5
    finally:
        sys.unraisablehook = kept
    assert seen == [("unraisable",)]
