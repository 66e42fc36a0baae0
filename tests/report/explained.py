"""A program with a break in a call, a recompile and side effects, for the tests of what is told of it."""

import torch


def block(h, history):
    history.append(h.shape[0])
    if h.sum() > 0:  # the break
        h = h / h.sum()
    return h.relu()


def scaled(x, history, k=2):
    h = torch.relu(x) * k
    h = block(h, history)
    print("rows", x.shape[0])
    return {"out": h, "calls": len(history)}


def twice(x, history):
    return scaled(x, history), scaled(x[:1], history, 3)


def total(values):
    found = 0
    for value in values:  # a generator from outside
        found = found + value
    return found


def weighted(kind, values):
    return total(value * 2 for value in values) * {"a": 1, "b": 2}.get(kind, 3)


def assigned(costs):
    """Rows to columns, one by one, as ordinary Python does it."""
    chosen = []
    if costs.min() < 0:
        costs = costs + 1
    for row in costs:
        best = 0
        while best + 1 < len(row) and row[best + 1] < row[best]:
            best += 1
        if row[best] > 5:
            continue
        if row.sum() > 100:
            break
        chosen.append(best)
    return chosen


def tracked(costs):
    scaled = costs * 2
    return assigned(scaled), scaled.sum()
