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


def named(log, name):
    try:
        yield 1
        yield 2
    finally:
        log.append(name)


def left_in_objects():
    class Holder:
        pass

    log = []
    holder = Holder()
    holder.generator = named(log, "attribute")
    next(holder.generator)
    holder.generator = 1
    log.append("after the attribute")
    holder.generator = named(log, "instance")
    next(holder.generator)
    del holder
    log.append("after the instance")
    items = {"a": named(log, "item")}
    next(items["a"])
    items.clear()
    log.append("after the item")
    list(zip([1], named(log, "zip"), strict=False))
    log.append("after zip")

    def raising():
        generator = named(log, "raised through")
        next(generator)
        raise ValueError

    try:
        raising()
    except ValueError:
        log.append("handled")
    log.append("end")
    assert log == [
        "attribute",
        "after the attribute",
        "instance",
        "after the instance",
        "item",
        "after the item",
        "zip",
        "after zip",
        "handled",
        "raised through",
        "end",
    ]


def test_in_objects_that_the_trace_has_made():
    left_in_objects()
    compiled(left_in_objects, fullgraph=True)()
