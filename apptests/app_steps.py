# needs: torch
"""Tensor programs of several steps, with things done between them: logs, handlers, contexts, generators, caches.

Any of their operations may fail: tests/pytorch/test_failure_everywhere.py makes each of them fail in turn. Those that
are called `drawing_*` give something else each time, so that only that test runs them.
"""

import contextlib

import torch
from torch import nn
from torch.nn import functional as F

LOG = []
STATE = {"steps": 0, "best": None}


def note(*words):
    LOG.append(words)
    print(*words)


class Cache:
    def __init__(self):
        self.keys = torch.zeros(4, 3)
        self.length = 0

    def write(self, key):
        self.keys[self.length] = key
        self.length += 1
        return self.keys[: self.length]


torch.manual_seed(1)
NET = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(4, 2))
WEIGHT = torch.linspace(-1, 1, 6).reshape(2, 3)
RUNNING = torch.zeros(3)
CACHE = Cache()
LEARNT = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()


def begin():
    LOG.clear()
    STATE.update(steps=0, best=None)
    RUNNING.zero_()


def drawing_training_step():
    STATE["steps"] += 1
    NET.train()
    x = torch.linspace(0, 1, 12).reshape(4, 3)
    out = NET(x)
    note("forward", tuple(out.shape))
    loss = F.cross_entropy(out, torch.tensor([0, 1, 1, 0]))
    grads = torch.autograd.grad(loss, list(NET.parameters()))
    with torch.no_grad():
        for parameter, grad in zip(NET.parameters(), grads, strict=True):
            parameter.sub_(0.1 * grad)
            LOG.append("updated")
    STATE["best"] = "found"
    return loss.detach()


def app_generation_with_a_cache():
    begin()
    CACHE.length = 0
    CACHE.keys.zero_()
    token = torch.ones(3)
    for step in range(3):
        keys = CACHE.write(token)
        scores = torch.softmax(keys @ token, dim=0)
        token = F.layer_norm(scores @ keys + step, (3,))
        note("token", step, CACHE.length)
    return token, CACHE.keys.clone()


def app_lookup_that_may_fail():
    begin()
    found = []
    for index in ([0, 1], [1, 2]):
        try:
            RUNNING.add_(1)
            rows = WEIGHT[:, index]
            found.append(rows.sum())
        except (IndexError, RuntimeError) as error:
            note("failed", type(error).__name__)
            found.append(RUNNING.clone())
        else:
            note("found", tuple(rows.shape))
        finally:
            RUNNING.mul_(0.5)
            LOG.append("finally")
    return found


def app_rollback():
    begin()
    before = RUNNING.clone()
    try:
        RUNNING.add_(WEIGHT[0])
        STATE["steps"] += 1
        RUNNING.div_(WEIGHT[1].abs() + 1)
        STATE["best"] = "new"
        return RUNNING.sum()
    except RuntimeError:
        RUNNING.copy_(before)
        STATE["best"] = "old"
        raise


def app_running_statistics():
    begin()
    for batch in WEIGHT:
        delta = batch - RUNNING
        RUNNING.add_(delta, alpha=0.1)
        STATE["steps"] += 1
        note("mean", STATE["steps"])
    return RUNNING.clone()


@contextlib.contextmanager
def timed(name):
    note("enter", name)
    try:
        yield LOG
    except RuntimeError as error:
        note("error in", name, type(error).__name__)
        raise
    finally:
        note("leave", name)


def drawing_nested_contexts():
    with timed("outer") as log, torch.no_grad():
        RUNNING.zero_()
        with timed("inner"):
            y = F.dropout(WEIGHT, 0.5) @ RUNNING
            log.append(torch.is_grad_enabled())
            RUNNING.add_(y.sum())
        with contextlib.suppress(RuntimeError), torch.autocast("cpu", dtype=torch.bfloat16):
            z = WEIGHT @ WEIGHT.T
            log.append(z.dtype)
            RUNNING.add_(z.sum())
    return RUNNING.clone()


def batches():
    try:
        for i in range(3):
            RUNNING.add_(i)
            LOG.append(("batch", i))
            yield RUNNING * 2
    finally:
        LOG.append("no more batches")


def app_generator_of_batches():
    begin()
    total = torch.zeros(3)
    try:
        for number, batch in enumerate(batches()):
            total.add_(batch)
            STATE["steps"] = number
    except RuntimeError:
        total.neg_()
        note("cut short", STATE["steps"])
    return total


class Clamped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        LOG.append("forward")
        y = x.clamp(-0.5, 0.5)
        ctx.save_for_backward(y)
        return y * 2

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (y.abs() < 0.5)


def app_own_function():
    begin()
    RUNNING.add_(1)
    LOG.append("applying")
    y = Clamped.apply(LEARNT)
    (grad,) = torch.autograd.grad(y.sum(), LEARNT)
    RUNNING.sub_(grad[0])
    LOG.append("applied")
    return grad, RUNNING.clone()


def drawing_sampling():
    tokens = []
    for step in range(3):
        noise = torch.rand(3)
        RUNNING.copy_(noise)
        tokens.append((RUNNING + step).argmax())
        note("sampled", step)
    return torch.stack(tokens)


def tried(function, *args, otherwise):
    try:
        return function(*args)
    except RuntimeError:
        STATE["steps"] += 100
        return otherwise


def halve(x):
    LOG.append("halve")
    x.mul_(0.5)
    return x.sum()


def app_fallbacks_in_calls():
    begin()
    RUNNING.fill_(1)
    values = [tried(halve, RUNNING, otherwise=torch.zeros(())) for _ in range(2)]
    values += map(halve, [RUNNING, WEIGHT.clone()])
    LOG.sort(key=str)
    return values


def app_views_of_state():
    begin()
    row = WEIGHT.clone()
    part = row[0, 1:]
    STATE["best"] = part
    part.mul_(2)
    RUNNING[:2] = part
    RUNNING.view(3, 1).add_(1)
    row.unsqueeze_(0)
    LOG.append(tuple(row.shape))
    return row.sum(), part
