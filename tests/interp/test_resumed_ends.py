# needs: torch
"""Objects whose end runs code, held by nothing but a frame that goes on after a graph break: they end as in eager."""

import weakref

import pytest
import torch

import stator


class Plain:
    def __init__(self, scale):
        self.scale = scale


class Deleting(Plain):
    def __init__(self, scale, log):
        super().__init__(scale)
        self.log = log

    def __del__(self):
        self.log.append("gone")


@stator.disable
def deleting(log):
    return Deleting(torch.full((3,), 2.0), log)


@stator.disable
def finalized(log):
    made = Plain(torch.full((3,), 2.0))
    weakref.finalize(made, log.append, "gone").atexit = False
    return made


@stator.disable
def same(value):
    return value


@stator.disable
def fill(items, made):
    items.append(made)


class Holder:
    def __init__(self, held):
        self.held = held

    def __enter__(self):
        return self.held

    def __exit__(self, *error):
        self.held = None


# -- the programs: (x, log, make) -> a tensor -------------------------------------------------------------------------


def rebound(x, log, make):
    held = make(log)
    y = x * held.scale
    held = None
    log.append("after")
    return y


def deleted(x, log, make):
    held = make(log)
    y = (x * held.scale).sin()
    del held
    log.append("after")
    y = y * same(3)
    return y + x


def moved(x, log, make):
    first, second = make(log), make(log)
    y = x * first.scale
    first, second = second, None
    log.append("between")
    y = y * first.scale
    del first
    log.append("after")
    return y


def on_the_stack(x, log, make):
    y = x * make(log).scale
    log.append("after")
    return y


def beneath_a_call(x, log, make):
    y = scaled(make(log), x * same(3), log)
    log.append("after")
    return y


def scaled(held, x, log):
    y = x * held.scale
    held = None
    log.append("scaled")
    return y


def in_a_frame_that_ends(x, log, make):
    y = inner(x, log, make)
    log.append("after")
    return y


def inner(x, log, make):
    held = make(log)
    return x * held.scale


def in_a_caller(x, log, make):
    held = make(log)
    y = x * same(3)
    log.append("inside")
    y = waits(y, log) * held.scale
    held = None
    log.append("after")
    return y


def waits(x, log):
    y = x + same(1)
    log.append("waited")
    return y


def handed_on(x, log, make):
    y = eats(x, log, make(log))
    log.append("after")
    return y


def eats(x, log, held):
    y = x * same(3) * held.scale
    held = None
    log.append("eaten")
    return y


def held_by_the_caller(x, log, make):
    held = make(log)
    y = uses(x * same(1), log, held)
    log.append("back")
    held = None
    log.append("after")
    return y


def held_in_a_cell_of_the_callers(x, log, make):
    held = make(log)

    def let_go():
        nonlocal held
        held = None

    y = uses(x * same(1), log, held, let_go)
    log.append("after")
    return y


def uses(x, log, held, done=None):
    y = x * held.scale
    for i in range(3):
        if done is not None:
            done()
        log.append("used")
        y = y * same(i + 1)
    log.append("ended")
    return y


def in_a_traceback(x, log, make):
    try:
        fails(x, log, make)
    except ValueError as error:
        kept = error
    log.append("kept")
    y = x * same(3)
    kept = None
    log.append("after")
    return y


def fails(x, log, make):
    held = make(log)
    raise ValueError(held.scale + x)


def in_a_generator(x, log, make):
    steps = two_steps(x, log, make)
    y = next(steps) * same(3)
    log.append("between")
    steps = None
    log.append("after")
    return y


def two_steps(x, log, make):
    held = make(log)
    yield x * held.scale
    yield x


def in_a_cell(x, log, make):
    held = make(log)

    def scale():
        return held.scale

    y = x * scale()
    held = None
    log.append("after")
    return y


def in_a_list(x, log, make):
    items = [make(log)]
    y = x * items[0].scale
    items.clear()
    log.append("after")
    return y


def in_a_dead_list(x, log, make):
    items = []
    fill(items, make(log))
    log.append("after")
    return x * 2


def in_a_context(x, log, make):
    with Holder(make(log)):
        y = x * same(3)
        log.append("inside")
    log.append("after")
    return y


PROGRAMS = (
    rebound,
    deleted,
    moved,
    on_the_stack,
    beneath_a_call,
    in_a_frame_that_ends,
    in_a_caller,
    handed_on,
    held_by_the_caller,
    held_in_a_cell_of_the_callers,
    in_a_traceback,
    in_a_generator,
    in_a_cell,
    in_a_list,
    in_a_dead_list,
    in_a_context,
)


def seen(function, make, size):
    """What the program has written into its log, its result and the gradient."""
    log, x = [], torch.linspace(0.1, 1, 3).expand(size, 3).clone().requires_grad_()
    result = function(x, log, make)
    log.append("returned")
    result.sum().backward()
    return log, result.flatten().tolist(), x.grad.flatten().tolist()


@pytest.mark.parametrize("make", [deleting, finalized])
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_ends_where_it_does_in_eager(program, make):
    for backend in ("eager", "aot_eager"):
        compiled = stator.compile(program, backend=backend)
        for size in (1, 2, 3, 3):
            assert seen(compiled, make, size) == seen(program, make, size)


def test_with_inductor():
    compiled = stator.compile(deleted, backend="inductor")
    for size in (1, 2):
        log, result, gradient = seen(deleted, deleting, size)
        assert seen(compiled, deleting, size) == (log, pytest.approx(result), pytest.approx(gradient))


# -- and what is not let go of is no hindrance ------------------------------------------------------------------------


class Batches:
    """As the iterator of a DataLoader with workers."""

    def __init__(self, x):
        self.x, self.left = x, 4

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.x + self.left

    def __del__(self):
        self.x = None


def loop(x, log, make):
    total = torch.zeros(3)
    for batch in make(x):
        total = total + batch * 2
        log.append(same("step"))
    return total


def shared(x, log, held):
    y = x * held.scale
    log.append(same("between"))
    del held
    return y * 2


def test_a_loop_over_what_has_a_finalizer_is_compiled():
    backend = stator.testing.CountingBackend()
    stator.compile(loop, backend=backend)(torch.ones(3), [], stator.disable(Batches))
    assert backend.calls >= 4  # one a batch; what comes behind the loop is not


def test_what_others_hold_as_well_is_compiled():
    before = stator.stats()
    stator.compile(shared, backend="eager")(torch.ones(3), [], Deleting(torch.ones(3), []))
    assert [record.code for record in stator.stats().diff(before).breaks] == ["SB0302"]


def test_the_user_is_told():
    before = stator.stats()
    compiled = stator.compile(rebound, backend="eager")
    for _ in range(2):
        compiled(torch.ones(3), [], deleting)
    told = {(record.code, record.where.rpartition(":")[2]): record for record in stator.stats().diff(before).breaks}
    line = rebound.__code__.co_firstlineno + 1
    assert set(told) == {("SB0302", str(line)), ("SB0404", str(line))}
    assert "letting go of a Deleting" in told["SB0404", str(line)].reason
