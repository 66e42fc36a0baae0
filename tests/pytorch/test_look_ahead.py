"""A trace that shows what its code will find the next time takes it for a symbol at once."""

import pytest
import torch
from torch import nn

import stator

BACKENDS = ["eager", "aot_eager"]


class Model(nn.Module):
    """Counts its calls, and keeps what it is given."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.calls = 5
        self.factor = 0.5
        self.kept = torch.zeros(3, 4)
        self.per_layer = [torch.zeros(3, 4)]
        self.layer = 0
        self.seen = [0, 1]
        self.flag = 0


def counts(model, x):
    model.calls += 1
    return model.linear(x) * model.calls


def decays(model, x):
    model.factor *= 0.9
    return model.linear(x) * model.factor


def keeps(model, x):
    model.kept = torch.cat([model.kept, model.linear(x).detach()])
    return model.kept.sum(0) * x


def keeps_in_a_list(model, x):
    model.per_layer[0] = torch.cat([model.per_layer[0], model.linear(x).detach()])
    return model.per_layer[0].sum(0) * x


def notes(model, x):
    model.seen.append(1)
    return model.linear(x) * len(model.seen)


def assigns_what_is_there(model, x):
    model.calls = 5
    return model.linear(x) * model.calls


def grows(model, x):
    y, tokens = x, [x]
    x = x.detach()
    while len(tokens) < 5:
        x = torch.cat([x, model.linear(x[-1:]).detach()])
        tokens.append(x)
        stator.graph_break()
    return x.sum() * y


def until_it_is_large(model, x):
    y, rounds, total = x, 2, 1
    x = x.detach()
    while total < 40:
        x = torch.cat([x, model.linear(x[-1:]).detach()])
        rounds, total = rounds + 1, total * rounds
        stator.graph_break()
    return x.sum() * y * total


#: programs against the graphs of four calls
PROGRAMS = {
    counts: 1,
    decays: 1,
    keeps: 1,
    keeps_in_a_list: 1,
    notes: 1,
    assigns_what_is_there: 1,
    grows: 5,  # the beginning, the rounds and the end; and the first two again, for other sizes of what was given
    until_it_is_large: 5,
}


def ran(program, run, calls=4):
    torch.manual_seed(0)
    model = Model()
    found = []
    for n in range(calls):
        x = torch.ones(2 if n < 2 else n + 1, 4, requires_grad=True)
        if program in (keeps, keeps_in_a_list, notes, counts, decays, assigns_what_is_there):
            x = torch.ones(2, 4, requires_grad=True)
        y = run(model, x)
        (slope,) = torch.autograd.grad(y.sum(), x)
        found += [y.detach(), slope]
    return [*found, torch.tensor([model.calls, model.factor, len(model.seen)]), model.kept.detach()]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_varies_is_no_constant_first(program, backend):
    stator.reset()
    found = ran(program, stator.compile(program, backend=backend))
    torch.testing.assert_close(found, ran(program, program))
    assert stator.stats().graphs == PROGRAMS[program]


def test_inductor():
    stator.reset()
    torch.testing.assert_close(ran(keeps, stator.compile(keeps, backend="inductor"), 3), ran(keeps, keeps, 3))
    assert stator.stats().graphs == 1


@pytest.mark.parametrize("settings", [{"dynamic": False}, {"options": {"automatic_dynamic": False}}], ids=str)
def test_nothing_varies_where_nothing_may(settings):
    stator.reset()
    found = ran(counts, stator.compile(counts, backend="eager", **settings))
    torch.testing.assert_close(found, ran(counts, counts))
    assert stator.stats().graphs == 4


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_number_that_cannot_be_had_loses_no_effect(backend):
    def act(model, x):
        model.seen.append(1)
        model.factor = 2.5 / model.divisor
        return x * 2

    stator.reset()
    found = []
    for run in (act, stator.compile(act, backend=backend)):
        model = Model()
        for model.divisor in (1.5, 2.5, 3.5, 0.0):
            try:
                run(model, torch.ones(3))
            except ZeroDivisionError as e:
                found.append((str(e), model.seen, model.factor))
    assert found[0] == found[1]
