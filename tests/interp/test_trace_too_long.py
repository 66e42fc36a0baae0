"""A trace of more instructions than `trace_step_limit`."""

import stator


def small(x):
    return x + 1


def loops(n):
    total = 0
    for i in range(n):
        total = small(i)
    return total


def between(n):
    return loops(n)


def program(n):
    return between(n), small(n)


def test_the_calls_that_made_it_too_long_are_not_traced_by_themselves():
    """Each would be traced up to the limit again, for nothing; what they call, and what returned before, is traced."""
    with stator.config.patch(trace_step_limit=1000):
        compiled = stator.compile(program, backend="eager")
    before = stator.stats()
    assert compiled(300) == (300, 301)
    records = stator.stats().diff(before).breaks
    given_up = [record.reason.split()[0] for record in records if record.code == "SB0404"]
    assert given_up == ["loops", "between", "program"]  # one trace has been too long, and not three
    assert compiled(300) == (300, 301)
