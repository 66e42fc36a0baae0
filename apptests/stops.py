"""StopIteration with a value, through iterators written in C: some pass it on, some end with one of their own."""

import itertools
import operator


def returns(value, *items):
    yield from items
    return value


def end(iterator):
    try:
        while True:
            next(iterator)
    except StopIteration as stop:
        return type(stop).__name__, stop.value, stop.args


def delegated(iterator):
    result = yield from iterator
    yield "result", result


def test_passed_on():
    value = (1, [2])
    found = [
        end(zip(returns(value), range(1))),
        end(zip([1, 2], returns(value, 5))),
        end(map(str, returns(value, 1))),
        end(filter(None, returns(value, 0, 1))),
        end(enumerate(returns(value))),
        end(itertools.islice(returns(value, 1), 5)),
        end(itertools.compress(returns(value, 1), [1, 1])),
        end(itertools.compress([1, 2], returns(value, 1))),
        end(itertools.starmap(max, returns(value, (1, 2)))),
        end(itertools.filterfalse(None, returns(value, 1, 0))),
        end(itertools.takewhile(bool, returns(value, 1))),
        end(itertools.dropwhile(bool, returns(value, 1))),
        end(itertools.accumulate(returns(value, 1, 2), operator.add)),
        end(itertools.pairwise(returns(value, 1, 2))),
        end(map(str, zip(returns(value)))),
    ]
    assert found == [("StopIteration", value, (value,))] * len(found)


def test_not_passed_on():
    found = [
        end(itertools.chain(returns(3, 1))),
        end(itertools.chain.from_iterable(returns(3, [1]))),
        end(map(str, itertools.chain(returns(3, 1)))),
        end(itertools.zip_longest(returns(3, 1))),
        end(zip(returns(3), strict=True)),
        end(iter(returns(3, 1, 2).__next__, 2)),
        end(itertools.islice(returns(3, 1, 2), 1)),
        end(itertools.takewhile(bool, returns(3, 0))),
        end(filter(lambda item: list(returns(4, item)), [1, 2])),
    ]
    assert found == [("StopIteration", None, ())] * len(found)


def raising(value):
    raise StopIteration(value)


def test_raised_by_functions():
    assert end(map(raising, [7])) == ("StopIteration", 7, (7,))
    assert end(filter(raising, [7])) == ("StopIteration", 7, (7,))
    assert end(zip(map(raising, [7]))) == ("StopIteration", 7, (7,))


def test_results_of_yield_from():
    assert list(delegated(map(str, returns("end", 1)))) == ["1", ("result", "end")]
    assert list(delegated(itertools.chain(returns("end", 1)))) == [1, ("result", None)]


def test_existing_iterators(made=[]):  # noqa: B006
    made[:] = [map(str, returns(5, 1)), zip(returns(6))]
    assert [end(iterator) for iterator in made] == [("StopIteration", 5, (5,)), ("StopIteration", 6, (6,))]
