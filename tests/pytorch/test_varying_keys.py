"""Numbers that vary from call to call as keys of dicts, and as attributes of classes: no entry for each of them."""

from __future__ import annotations

import collections
import copy
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import stator

Program = Callable[..., Any]


def made(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    d = {i: x, "a": x, (1, 2): x}
    d[i + 1] = x * 2
    return d, d[i] + d[i + 1], i + 2 in d, d.get(j), len(d), list(d), d.pop(i)


def held_outside(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    held[i] = x * 2
    held[i] += 1
    held.setdefault(j, x)
    found = held.pop(i) + 1
    return found, j in held, i in held, list(held.items())


def taken_away(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    if i in held:
        del held[i]
    return x + len(held), held.get(3)


def by_default(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    found = defaultdict(list)
    found[i].append(x)
    found[j].append(x + 1)
    return dict(found)


def in_order(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    d = OrderedDict([(i, x), (j, x + 1), (3, x + 2)])
    if i in d:
        d.move_to_end(i)
    return list(d.items()), d.popitem(last=False), OrderedDict(d)


def merged(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    one, other = {i: x, 4: x}, {j: x + 1, 5: x}
    both = {**one, **other}
    one.update(other)
    return both, one, one == both, {**held, i: x}, one.keys() & {4, 7, 9}, set(other), dict.fromkeys(one)


def with_a_hash(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    d: Any = {Odd(): x}
    d[i] = x + 1
    return [d[k] for k in d if k == i], len(d)


def floats(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    d: Any = {7.0: x, True: x}
    d[i] = x + i
    return d


def collected(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    """Sets of numbers that nothing looks at, but for how many there are."""
    found, other = {i, 100}, set()
    for number in (i + 1, j, 3, -1):
        found.add(number)
        other.add(number)
    return found, len(found), other, {j}, x + len(other)


def collected_and_looked_at(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    found = {1, 2}
    found.discard(1)
    found.add(i)
    other = {i, j, 7}
    copied = other.copy()
    copied.discard(j)
    third = {j}
    third.add(i)
    return found, [x + n for n in other], copied, i + 1 in third, other | found, frozenset(third), third.pop()


def texts(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    d: Any = {f"n{i}": x, "a": x}
    d[f"m{i}"] = x * 2
    d[f"n{i}"] = d[f"n{i}"] + 1
    d["b"] = d.get("a")
    return d, f"n{i}" in d, len(d), list(d), d.pop(f"m{i}")


def texts_that_may_be_equal(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    d: Any = {f"n{i}": x, f"n{j}": x * 2}
    d["n7"] = x + 1
    other = {**d, f"{i}{j}": x}
    return d, other, d.keys() & {"n7", "n9"}, f"n{i + 1}" in d, {f"n{j}": x} == d, set(d), sorted(other)


def texts_beside_hashes(x: torch.Tensor, i: int, j: int, held: Any) -> Any:
    d: Any = {Called("n7"): x}
    d[f"n{i}"] = x + 1
    other: Any = {f"n{i}": x}
    other[Called("n3")] = x + 2
    return [*d.values()], len(d), [*other.values()], len(other)


class Called:
    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return self.name == (other.name if isinstance(other, Called) else other)


class Odd:
    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return other == 7


PROGRAMS = [
    *(made, held_outside, taken_away, by_default, in_order, merged, with_a_hash, floats),
    *(collected, collected_and_looked_at, texts, texts_that_may_be_equal, texts_beside_hashes),
]
#: pairs of keys; equal to each other, to those in the dict held outside, and to none
NUMBERS = [(20, 30), (21, 31), (22, 40), (23, 23), (24, 23), (7, 8), (3, 25), (9, 3), (4, 5), (0, 1), (1, -1), (26, 50)]


def _outcome(program: Program, i: int, j: int) -> str:
    held = {3: torch.ones(2), 9: torch.zeros(2)}
    try:
        result = program(torch.arange(2.0), i, j, held)
    except Exception as e:
        result = repr(e)
    return f"{result} {held}"


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_keys(program: Program, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for i, j in NUMBERS:
        assert _outcome(compiled, i, j) == _outcome(program, i, j), (i, j)


@pytest.mark.parametrize(
    "program", [made, held_outside, by_default, in_order, floats, collected, texts], ids=lambda p: p.__name__
)
def test_new_keys_are_no_new_entries(program: Program) -> None:
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    for n in range(20, 30):
        _outcome(compiled, n, 3 * n)
    assert stator.stats().frames <= 3


class Counter:
    count = 2
    rate = 0.5


def counting(x: torch.Tensor) -> torch.Tensor:
    Counter.count += 1
    Counter.rate *= 2
    return x * Counter.count + Counter.rate


class Inherits(Counter):
    pass


def test_numbers_that_classes_have() -> None:
    compiled = stator.compile(counting, backend="eager", fullgraph=True)
    for expected in range(3, 9):
        assert compiled(torch.ones(2)).tolist() == [expected + Counter.rate] * 2
        assert Counter.count == expected
    assert stator.stats().frames == 2
    Counter.count = 2.5  # type: ignore[assignment]
    assert compiled(torch.ones(2)).tolist() == [3.5 + Counter.rate] * 2


def test_an_attribute_of_a_class_is_found_along_its_bases() -> None:
    compiled = stator.compile(lambda x: x * Inherits.count, backend="eager", fullgraph=True)
    for number in (3, 5, 7):
        Counter.count = number
        assert compiled(torch.ones(1)).item() == number
    Inherits.count = 11
    assert compiled(torch.ones(1)).item() == 11
    del Inherits.count
    assert compiled(torch.ones(1)).item() == 7


LINEAR = nn.Linear(4, 4)


def hooked_for_a_call(x: torch.Tensor) -> torch.Tensor:
    handle = LINEAR.register_forward_hook(lambda module, args, output: output * 2)
    try:
        return LINEAR(x).sin()
    finally:
        handle.remove()


def several_hooks(x: torch.Tensor) -> torch.Tensor:
    handles = [
        LINEAR.register_forward_pre_hook(lambda module, args: (args[0] * 2,)),
        LINEAR.register_forward_hook(lambda module, args, kwargs, output: output + 1, with_kwargs=True),
        LINEAR.register_forward_hook(lambda module, args, output: output * 3, prepend=True),
    ]
    result = LINEAR(x)
    for handle in handles:
        handle.remove()
    return result


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [hooked_for_a_call, several_hooks], ids=lambda p: p.__name__)
def test_hooks_registered_inside(program: Program, backend: str, lasting: bool) -> None:
    other = LINEAR.register_forward_hook(lambda module, args, output: output - 1) if lasting else None
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for n in (2, 2, 3, 3, 5, 7):
        x, y = (torch.ones(n, 4, requires_grad=True) for _ in range(2))
        before = copy.copy(LINEAR._forward_hooks)
        result, expected = compiled(x), program(y)
        assert torch.equal(result, expected)
        result.sum().backward()
        expected.sum().backward()
        assert x.grad is not None
        assert torch.equal(x.grad, y.grad)  # type: ignore[arg-type]
        assert LINEAR._forward_hooks == before
    assert stator.stats().frames <= 4
    if other is not None:
        other.remove()


def summed(x: torch.Tensor, held: Any) -> Any:
    total = x
    for key, item in held.items():
        total = total + key * item
    return total, 5 in held, held.get(7, 0), max(held)


def changed(x: torch.Tensor, held: Any) -> Any:
    held[6] = x
    first = next(iter(held))
    held[first] = held.pop(first) + 1
    if 8 in held:
        del held[8]
    return len(held), sorted(held)


def compared(x: torch.Tensor, held: Any) -> Any:
    return (
        held.keys() == {5, 6},
        held.keys() & {5, 6, 7},
        {**held, 7: x},
        held.keys() == {5, 7},
        {**held}.keys() == held.keys(),
    )


HELD: list[tuple[int, ...]] = [
    (5, 6),
    (7, 8),
    (9, 10),
    (6, 5),
    (8, 5),
    (5, 7),
    (0, 1),
    (11, 12, 13),
    (14, 15, 6),
    (20, 21),
    (2, 8),
]


@pytest.mark.parametrize("kind", [dict, OrderedDict])
@pytest.mark.parametrize("program", [summed, changed, compared], ids=lambda p: p.__name__)
def test_keys_of_existing_dicts(program: Program, kind: type) -> None:
    compiled = stator.compile(program, backend="eager")
    for keys in HELD:
        results = []
        for run in (compiled, program):
            held = kind((key, torch.full((2,), float(index))) for index, key in enumerate(keys))
            results.append(str((run(torch.ones(2), held), held)))
        assert results[0] == results[1], keys


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).tanh()


def _breaking(module: nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
    stator.graph_break()
    return output * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_hooks_that_are_always_called_are_entries_of_one(backend: str) -> None:
    """torch collects their numbers in a set."""
    layers = [nn.Linear(4, 4) for _ in range(5)]
    for layer in layers:
        layer.register_forward_hook(lambda module, args, output: output + 1, always_call=True)
    compiled = [stator.compile(layer, backend=backend, fullgraph=True) for layer in layers]
    for n in (2, 3, 5):
        x, y = (torch.ones(n, 4, requires_grad=True) for _ in range(2))
        made, expected = x, y
        for layer, own in zip(compiled, layers, strict=True):
            made, expected = layer(made), own(expected)
        torch.testing.assert_close(made, expected)
        made.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
    assert stator.stats().graphs <= 3


def test_hooks_of_equal_code_are_entries_of_one() -> None:
    layers = nn.ModuleList([Layer() for _ in range(12)])
    for layer in layers:
        layer.register_forward_hook(_breaking)
        layer.linear.register_forward_pre_hook(lambda module, args: (args[0] + 1,))

    def over(x: torch.Tensor) -> torch.Tensor:
        for layer in layers:
            x = layer(x)
        return x

    compiled = stator.compile(over, backend="eager")
    for n in (2, 2, 3):
        x = torch.ones(n, 4, requires_grad=True)
        result, expected = compiled(x), over(x)
        assert torch.equal(result, expected)
        assert torch.equal(*(torch.autograd.grad(y.sum(), x)[0] for y in (result, expected)))
        assert stator.stats().graphs <= (5 if n == 2 else 9)


def stored(d, i, x):
    if i not in d:
        d[i] = x
    else:
        d[i] = d[i] + x
    return d[i] * 2


def stored_twice(d, i, x):
    d[i] = x
    d[i] = d[i] + 1
    return d.get(i), i in d


def stored_beside_another(d, i, x):
    before = d.get(0)
    d[i] = x
    return before, d.get(0), d[i + 1] if i + 1 in d else None


def stored_and_counted(d, i, x):
    d[i] = x
    return len(d), list(d)


def stored_and_removed(d, i, x):
    d[i] = x
    found = d.pop(i)
    d.setdefault(i + 2, found)
    return found


def stored_by_name(d, i, x):
    d["last"] = i
    d[i] = x
    d["last"] = d[i] + i
    return d["last"]


def stored_by_text(d, i, x):
    d["last"] = i
    d[f"n{i}"] = d[f"n{i}"] + x if f"n{i}" in d else x
    d["steps"] = d.get("steps", 0) + 1
    return d[f"n{i}"] * 2, d["last"]


def stored_by_texts(d, i, x):
    d[f"n{i}:{i + 1}"] = x
    d[f"m{i}"] = d.pop(f"m{i}", x) + 1
    d[i] = x
    d["n"] = d["m"] = None
    return d[f"n{i}:{i + 1}"], d[i]


def stored_by_texts_that_may_be_equal(d, i, x):
    d["n3"] = x
    d[f"n{i}"] = x + 1
    d[f"n{i}0"] = x + 2
    d[f"n{i + 1}"] = x + 3
    return d["n3"], d.get("n50"), d.get(f"n{i - 1}"), list(d)


def stored_by_text_and_removed(d, i, x):
    d[f"n{i}"] = x
    d.setdefault(f"n{i}", x + 1)
    del d[f"n{i}"]
    d[f"{i:03}"] = x
    return x + len(d)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("program", "graphs"),
    [
        (stored_by_text, 5),
        (stored_by_texts, None),
        (stored_by_texts_that_may_be_equal, None),
        (stored_by_text_and_removed, None),
        (stored, 5),
        (stored_twice, 3),
        (stored_beside_another, None),
        (stored_and_counted, None),
        (stored_and_removed, None),
        (stored_by_name, None),
    ],
)
@pytest.mark.parametrize("kind", [dict, OrderedDict, lambda: defaultdict(list)])
def test_what_is_stored_under_a_number_that_varies(kind, program, graphs, backend):
    stator.reset()
    before = stator.stats().graphs
    compiled = stator.compile(program, backend=backend, recompile_limit=100)
    plain, traced = kind(), kind()
    for step, i in enumerate([1, 2, 3, 0, 1, 2, 3, 0, 7, 5, 5, 4]):
        x = torch.full((3,), 1.0 + step)
        want, got = program(plain, i, x), compiled(traced, i, x)
        assert str(want) == str(got), i
        assert str(list(plain.items())) == str(list(traced.items())), i
    assert graphs is None or stator.stats().graphs - before <= graphs


def test_a_text_of_a_size_counts_in_one_graph_whatever_else_the_dict_is_given():
    """`stats[f"pages{n}"]`: of the other keys there are more in each call."""

    def counting(x, name):
        stats["steps"] += 1
        stats[f"pages{x.shape[0] // 4}"] += 1
        stats[f"by {name}"] = stats.get(f"by {name}", 0) + x.shape[0]
        return x * 2

    stats: collections.Counter[str] = collections.Counter()
    compiled = stator.compile(counting, backend="eager", fullgraph=True, recompile_limit=100)
    expected: collections.Counter[str] = collections.Counter()
    for step, rows in enumerate([12, 16, 16, 20, 20, 12, 24, 28, 24, 32, 32, 36, 36, 40, 44]):
        name = "abcde"[step % 5]
        assert torch.equal(compiled(torch.ones(rows), name), torch.full((rows,), 2.0))
        expected.update({"steps": 1, f"pages{rows // 4}": 1, f"by {name}": rows})
        stats[f"other{step}"] = expected[f"other{step}"] = step
        assert list(stats.items()) == list(expected.items())
        if step == 9:
            before = stator.stats().graphs
    assert stator.stats().graphs == before
    reasons = "; ".join(record.reason for record in stator.stats().recompile_log)
    assert "`stats` had no key `f'pages{x.size(0) // 4}'`, has one now" in reasons


def test_what_is_added_to_a_set_may_vary_with_what_is_in_there() -> None:
    def seen(x: torch.Tensor, elements: set[Any], n: int) -> torch.Tensor:
        elements.add(n)
        elements.add("any")
        return x + 1

    compiled = stator.compile(seen, backend="eager", fullgraph=True)
    for n in (7, 3, 5, 0, 2, 9):
        mine, theirs = set(range(n)), set(range(n))
        compiled(torch.ones(1), mine, n * n + 2)
        seen(torch.ones(1), theirs, n * n + 2)
        assert mine == theirs
    assert stator.stats().frames <= 2
