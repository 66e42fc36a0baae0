"""An item of a container at a number that varies is guarded by what it is like, and not by the number."""

import copy
from collections import deque

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.programs import assert_same


class Step:
    """Something of which one attribute is read."""

    def __init__(self, factor, *, kind="scale"):
        self.factor = factor
        self.kind = kind
        self.met = 0

    def __call__(self, x):
        self.met += 1
        return x * self.factor if self.kind == "scale" else x + self.factor


STEPS = [Step(2.0), Step(3.0), Step(5.0), Step(7.0, kind="shift"), Step(11.0), Step(13.0, kind="shift")]


def results_of(program, calls, backend="eager"):
    """What the program gives eagerly and compiled for each of the arguments, and the graphs that this has taken."""
    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for args in calls:
        outcomes = []
        for run in (program, compiled):
            try:
                outcomes.append(run(*copy.deepcopy(args)))
            except (AttributeError, IndexError, KeyError) as e:
                outcomes.append(repr(e))
        assert_same(*reversed(outcomes), f"arguments {args[1:]}")
    return stator.stats().graphs


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", [list, tuple])
def test_items_that_differ_in_numbers_share_an_entry(kind, backend):
    factors = kind(float(n) for n in range(2, 40))
    x = torch.ones(3)
    calls = [(x, factors, i) for i in (0, 1, 2, 7, 30, -1, -30, 40, -41)]
    assert results_of(lambda x, factors, i: x * factors[i], calls, backend) <= 3


def test_objects_are_guarded_by_what_is_read_of_them():
    x = torch.ones(3)
    graphs = results_of(lambda x, steps, i: steps[i](x), [(x, STEPS, i) for i in (0, 1, 2, 3, 4, 5, 4, 1, 5, 2)])
    assert graphs <= 4  # at 0; at a number that varies, of each kind, with a factor that varies


def test_a_key_made_of_the_number():
    layers = nn.ModuleDict({f"layer_{i}": nn.Linear(3, 3) for i in range(12)})
    x = torch.ones(2, 3)
    assert results_of(lambda x, i: layers[f"layer_{i}"](x), [(x, i) for i in (0, 3, 4, 11, 12)]) <= 3


class Named(nn.Module):
    """Layers, a tensor, a number and a class attribute by names that end in numbers."""

    part3 = 2.0

    def __init__(self):
        super().__init__()
        for i in (0, 1, 2, 5, 6, 7, 8, 10):
            setattr(self, f"layer{i}", nn.Linear(3, 3))
            setattr(self, str(i), nn.Linear(3, 3))
            self.register_buffer(f"part{i}", torch.full((3,), float(i)), persistent=False)
        self.part4 = 3.0

    @property
    def part9(self):
        return 5.0


NAMED = Named()
NAMES = {
    "f-string": (lambda x, i: getattr(NAMED, f"layer{i}")(x), 3),
    "str": (lambda x, i: getattr(NAMED, str(i))(x), 3),
    "%": (lambda x, i: getattr(NAMED, "layer%d" % i)(x), 3),  # noqa: UP031
    "format": (lambda x, i: getattr(NAMED, "layer{}".format(i))(x), 3),  # noqa: UP032
    "in": (lambda x, i: x + 1 if f"layer{i}" in NAMED._modules else x, 3),
    "hasattr": (lambda x, i: NAMED.get_submodule("layer1")(x) if hasattr(NAMED, f"layer{i}") else x, 7),
    "default": (lambda x, i: x if (found := getattr(NAMED, f"layer{i}", None)) is None else found(x), 7),
    "of several kinds": (lambda x, i: x * getattr(NAMED, f"part{i}"), 9),
}


@pytest.mark.parametrize("name", NAMES)
def test_an_attribute_whose_name_is_made_of_the_number(name):
    program, most = NAMES[name]
    everywhere = (0, 1, 2, 5, 6, 7, 8, 10) if most == 3 else (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
    assert results_of(program, [(torch.ones(2, 3), i) for i in everywhere]) <= most


def test_an_attribute_changes_its_place():
    class Holder:
        def __init__(self):
            self.a1, self.a2, self.a3, self.a4 = 1.5, 2.5, 3.5, 4.5

    def act(x, holder, i):
        return x * getattr(holder, f"a{i}", 0.5)

    compiled = stator.compile(act, backend="eager")
    holder, x = Holder(), torch.ones(3)

    def same(i):
        torch.testing.assert_close(compiled(x, holder, i), act(x, holder, i))

    for i in (1, 2, 3, 4):
        same(i)
    Holder.a3 = 7.5
    same(3)
    del holder.a3
    same(3)
    del Holder.a3
    same(3)
    Holder.a2 = property(lambda self: 9.5)
    same(2)
    Holder.__getattr__ = lambda self, name: len(name) + 0.5
    same(3)
    same(4)
    Holder.__getattribute__ = lambda self, name: 11.5
    same(4)


def test_expressions_of_several_numbers():
    layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(12)])
    x = torch.ones(2, 3)
    calls = [(x, i, j) for i, j in ((1, 3), (2, 4), (3, 5), (4, 7), (5, 6), (2, 3))]
    assert results_of(lambda x, i, j: layers[i * 2 - j // 2](x), calls) <= 3


def test_what_was_changed_before_is_seen():
    def act(x, items, i):
        items.append(x)
        items[0] = x * 2
        return items[i] + 1, items[-i] + 2

    x = torch.ones(3)
    results_of(act, [(x, [x * n for n in range(6)], i) for i in (1, 2, 3, 0, 4)])

    def by_key(x, items, i):
        items[f"{i}"] = x * 3
        items["a"] = x
        return items[f"{i}"] + 1

    results_of(by_key, [(x, {"0": x}, i) for i in (1, 2, 3, 0, 4)])


def test_what_is_changed_is_nothing_else():
    def act(lists, i, j):
        lists[i].append(1)
        return len(lists[j]), lists[i] is lists[j]

    for run in (act, stator.compile(act, backend="eager")):
        lists = [[], [], [], []]
        found = [run(lists, i, j) for i, j in ((0, 1), (1, 2), (2, 3), (3, 3), (1, 1), (0, 3), (3, 3))]
        if run is act:
            expected = found, lists
    assert (found, lists) == expected


def test_the_container_s_own_methods_are_asked():
    class Shifted(list):
        def __getitem__(self, i):
            return super().__getitem__(i + 1) * 2

    class Missing(dict):
        def __missing__(self, key):
            return len(key)

    x = torch.ones(3)
    results_of(lambda x, items, i: x * items[i], [(x, Shifted(range(2, 9)), i) for i in (0, 1, 2, 5, 6)])
    missing = Missing({"1": 4, "2": 5, "3": 6})
    results_of(lambda x, items, i: x * items[str(i)], [(x, missing, i) for i in (0, 1, 2, 3, 100)])


def test_a_number_that_is_another_object():
    class Index:
        def __init__(self, i):
            self.i = i

        def __index__(self):
            return self.i

        def __add__(self, other):
            raise AssertionError("guards run no code of the program's")

    factors = [float(n) for n in range(2, 9)]
    x = torch.ones(3)
    program = stator.compile(lambda x, i: x * factors[i + 1] if type(i) is int else x * factors[i], backend="eager")
    for i in (0, 1, 2, 3):
        torch.testing.assert_close(program(x, i), x * factors[i + 1])
    torch.testing.assert_close(program(x, Index(3)), x * factors[3])
    torch.testing.assert_close(program(x, True), x * factors[1])


def test_gradients_of_the_selected_parameters():
    layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(6)])
    compiled = stator.compile(lambda x, i: layers[i](x).sum(), backend="aot_eager")
    for i in range(6):
        compiled(torch.ones(2, 3), i).backward()
        assert all((layer.weight.grad is not None) is (n <= i) for n, layer in enumerate(layers))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_length_that_varies_is_a_symbol(backend):
    def act(x, items):
        before = len(items)
        items.append(before)
        return x * len(items) + before, not items, items[-1], items[-2] if before else None

    x = torch.ones(3)
    calls = [(x, [1.5 * k for k in range(n)]) for n in (3, 4, 5, 9, 30, 1, 0)]
    assert results_of(act, calls, backend) <= 4  # for 0, where another branch is taken, one more
    assert results_of(lambda x, items: x * len(items), [(x, dict.fromkeys(range(n))) for n in range(2, 9)]) == 2
    program = lambda x, items: x * len(items) * (items[-1] + items[-3])  # noqa: E731
    assert results_of(program, [(x, range(n)) for n in (3, 4, 5)]) == 3


def test_a_truth_that_is_a_length():
    def act(x, queue):
        total = x
        while queue:
            total = total + queue.pop()
            stator.graph_break()
        return total if not queue else None

    x = torch.ones(3)
    assert results_of(act, [(x, [1.5] * n) for n in (0, 1, 2, 3, 4, 5)]) <= 20
    assert results_of(lambda x, items: x + 1 if items else x, [(x, [1] * n) for n in (2, 3, 4, 9, 0, 7)]) == 2


EMPTY_OR_NOT = {
    "bool": (lambda items: bool(items), list),
    "set": (lambda items: not items, set),
    "frozenset": (lambda items: len(items) > 0, frozenset),
    "keys": (lambda items: not items.keys(), dict.fromkeys),
    "dict": (lambda items: len(items) == 0, dict.fromkeys),
    "in": (lambda items: 0 in items, dict.fromkeys),
    "set and its items": (lambda items: len(items) > 0 and sum(items) > 2, set),
}


@pytest.mark.parametrize("name", EMPTY_OR_NOT)
def test_whether_there_is_any_says_nothing_of_how_many(name):
    test, kind = EMPTY_OR_NOT[name]
    calls = [(torch.ones(3), kind(range(n))) for n in (1, 2, 3, 4, 7, 0, 5)]
    most = 7 if name == "set and its items" else 3  # for one, for any, for none
    assert results_of(lambda x, items: x + 1 if test(items) else x * 2, calls) <= most


def test_a_length_and_then_the_items():
    def act(x, items):
        return x * len(items) + sum(items) + len(items), items[-1], items[len(items) - 1]

    x = torch.ones(3)
    results_of(act, [(x, [1.5 * k for k in range(n)]) for n in (3, 4, 5, 3, 4)])


WRITES = {
    "cache": lambda x, items, i: items.__setitem__(i, torch.cat([items[i], x])),
    "read again": lambda x, items, i: (items.__setitem__(i, x + 1), items[i] * 2)[1],
    "read elsewhere": lambda x, items, i: (items.__setitem__(i, x + 1), items[0] * 2, items[-1], items[i - 1])[1:],
    "written twice": lambda x, items, i: (items.__setitem__(i, x + 1), items.__setitem__(i - 1, x), items[i])[2],
    "appended after": lambda x, items, i: (items.__setitem__(i, x + 1), items.append(x), len(items), items[-1])[2:],
    "appended before": lambda x, items, i: (items.append(x), items.__setitem__(-i - 1, x + 1), items[-1])[2],
    "listed": lambda x, items, i: (items.__setitem__(i, x + 1), [item.sum() for item in items])[1],
    "copied": lambda x, items, i: (items.__setitem__(i, x + 1), list(items), items == items)[1:],
    "deleted": lambda x, items, i: (items.__setitem__(i, x + 1), items.pop(), items.insert(0, x))[1],
    "itself": lambda x, items, i: (items.__setitem__(i, items[i]), items[i] is items[i])[1],
}
FEW = {"cache": 4, "read again": 3, "appended after": 3, "itself": 2}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", WRITES)
def test_an_item_is_assigned_at_a_number_that_varies(name, backend):
    program = WRITES[name]
    compiled = stator.compile(program, backend=backend)
    stator.reset()
    mine, eager = ([torch.ones(1, 2) * n for n in range(1, 7)] for _ in range(2))
    for i in (1, 2, 3, 4, 0, 2, -1, -2, 5, 3):
        x = torch.ones(1, 2) * i
        torch.testing.assert_close(compiled(x, mine, i), program(x, eager, i))
        torch.testing.assert_close(mine, eager)
    assert stator.stats().graphs <= FEW.get(name, 20)


def test_a_break_behind_an_assigned_item():
    def act(x, items, i):
        items[i] = x * 2
        stator.graph_break()
        return items[i] + len(items)

    compiled = stator.compile(act, backend="eager")
    mine, eager = ([torch.ones(2)] * 5 for _ in range(2))
    for i in (0, 1, 2, 3, 4, -1):
        torch.testing.assert_close(compiled(torch.ones(2) * i, mine, i), act(torch.ones(2) * i, eager, i))
        torch.testing.assert_close(mine, eager)
    assert stator.stats().graphs <= 6


def test_the_last_items_of_what_has_room_for_few():
    def act(x, items):
        items.append(x)
        return [items[-k] for k in range(1, 5)], len(items)

    def outcome(run, items):
        try:
            return run(7, items), list(items)
        except IndexError as e:
            return str(e), list(items)

    compiled = stator.compile(act, backend="eager")
    for size in (3, 4, 2, 5, 1):
        assert outcome(compiled, deque(range(size), 4)) == outcome(act, deque(range(size), 4))


class Named(nn.Module):
    """Layers found by a path in which their number stands."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(6)])

    def by_path(self, x: torch.Tensor, i: int) -> torch.Tensor:
        return self.get_submodule(f"layers.{i}")(x)

    def by_parameter(self, x: torch.Tensor, i: int) -> torch.Tensor:
        return x @ self.get_parameter(f"layers.{i}.weight")

    def by_parts(self, x: torch.Tensor, i: int) -> torch.Tensor:
        first, _, last = f"layers.{i}".rpartition(".")
        return getattr(getattr(self, first), last)(x)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("how", ["by_path", "by_parameter", "by_parts"])
def test_a_module_that_is_found_by_a_path_with_a_number(how: str, backend: str) -> None:
    plain = getattr(Named(), how)
    compiled = stator.compile(plain, backend=backend)
    for i in range(6):
        results = []
        for run in (plain, compiled):
            x = torch.ones(2, 4, requires_grad=True)
            y = run(x, i)
            y.sum().backward()
            results.append((y, x.grad))
        torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)
    assert stator.stats().graphs == 2
    for run in (plain, compiled):
        with pytest.raises(AttributeError, match="has no attribute `?'?6"):
            run(torch.ones(2, 4), 6)


def test_parts_of_a_text_with_a_number() -> None:
    def parts(x: torch.Tensor, i: int) -> list[object]:
        text, twice = f"a.{i}.b{i}-c.", f"{i}.{i}"
        found: list[object] = [
            x + i,
            text.split("."),
            text.split("-"),
            text.split("1"),
            text.split(". "),
            text.split("-c"),
        ]
        found += [
            twice.split("."),
            f"{i:3}".split(" "),
            f"{i}".split(","),
            f"{i!r}, {i}".split(", "),
            text.split(".", 1),
        ]
        found += [text.rpartition(p) for p in (".", "-", "1", "x", "-c.", "b")] + [
            twice.rpartition("."),
            f"{i}".rpartition("."),
        ]
        return [*found, text == "", twice == "3", text == "a.", f"{i}" == "", f"{i}x" == "x", f"{i / 2}".split(".")]

    compiled = stator.compile(parts, backend="eager", recompile_limit=20)
    for i in (3, 14, -1, 1, 0, -12, 7, 111):
        assert str(compiled(torch.ones(1), i)) == str(parts(torch.ones(1), i))


class Heads(nn.Module):
    """Parts by names: alike, and one that is not."""

    b = 2.0

    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({name: nn.Linear(3, 3) for name in "acdefgh"})
        self.heads["odd"] = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.factors = {name: float(i) for i, name in enumerate("acdefgh")}
        for name in "acdefgh":
            setattr(self, f"layer_{name}", nn.Linear(3, 3))


HEADS = Heads()
BY_TEXT = {
    "ModuleDict": (lambda x, name: HEADS.heads[name](x), 2),
    "dict": (lambda x, name: x * HEADS.factors[name], 3),
    "get": (lambda x, name: x * HEADS.factors.get(name, 0.5), 4),
    "getattr": (lambda x, name: getattr(HEADS, f"layer_{name}")(x), 2),
    "format": (lambda x, name: getattr(HEADS, "{}_{}".format("layer", name))(x), 8),  # noqa: UP032
    "%": (lambda x, name: getattr(HEADS, "layer_%s" % name)(x), 8),  # noqa: UP031
    "join": (lambda x, name: getattr(HEADS, "_".join(["layer", name]))(x), 2),
    "added": (lambda x, name: getattr(HEADS, "layer_" + name)(x), 8),
    "added before": (lambda x, name: HEADS.heads[(name + "x")[:1]](x), 9),
    "whole name": (lambda x, name: getattr(HEADS.heads, name)(x) if hasattr(HEADS.heads, name) else x, 9),
    "compared": (lambda x, name: x * 2 if name == "a" else x * 3 if name in ("c", "d") else x, 8),
    "its length": (lambda x, name: x * len(name), 8),
    "passed on": (lambda x, name: (HEADS.heads[name](x), name), 2),
    "shown": (lambda x, name: (x + 1, f"<{name}>"), 2),
    "passed on with more": (lambda x, name: (HEADS.heads[name](x), f"<{name}>"), 2),
    "shown twice": (lambda x, name: (x + 1, f"<{name}, {name!r}>"), 8),
    "of spaces": (lambda x, name: getattr(HEADS, f"{'layer_':s}{name:1}")(x), 8),
    "twice": (lambda x, name: HEADS.heads[name](x) + HEADS.heads["a"](x), 3),
    "an attribute": (lambda x, name: HEADS.heads[name].in_features * x, 2),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", BY_TEXT)
def test_what_is_selected_by_text_that_varies(name, backend):
    program, most = BY_TEXT[name]
    calls = [(torch.ones(2, 3), "".join(["", text])) for text in "acdefgha"]
    assert results_of(program, calls, backend) <= most


@pytest.mark.parametrize("name", BY_TEXT)
def test_text_that_selects_what_is_unlike_or_missing(name):
    program, _ = BY_TEXT[name]
    results_of(program, [(torch.ones(2, 3), text) for text in ("a", "c", "odd", "no such", "d", "odd", "e", "a")])


def test_gradients_of_what_is_selected_by_text_at_several_sizes():
    compiled = stator.compile(BY_TEXT["ModuleDict"][0], backend="aot_eager")
    for size, name in ((2, "a"), (2, "c"), (3, "d"), (4, "e"), (5, "odd"), (6, "f")):
        slopes = []
        for run in (BY_TEXT["ModuleDict"][0], compiled):
            HEADS.zero_grad()
            run(torch.ones(size, 3), name).sum().backward()
            slopes.append({key: p.grad for key, p in HEADS.named_parameters() if p.grad is not None})
        assert slopes[0].keys() == slopes[1].keys()
        torch.testing.assert_close(slopes[1], slopes[0])
    assert stator.stats().graphs <= 4


def test_text_selects_with_inductor():
    x = torch.ones(2, 3)
    assert results_of(BY_TEXT["ModuleDict"][0], [(x, name) for name in "acde"], "inductor") == 2


def test_text_selects_from_what_changes():
    def act(x, table, name):
        table["new"] = 7.0
        return x * table[name]

    calls = [(torch.ones(3), {"a": 1.5, "b": 2.5, "c": 3.5}, name) for name in ("a", "b", "c", "new", "none")]
    results_of(act, calls)
    compiled = stator.compile(lambda x, table, name: x * table[name], backend="eager")
    table, x = {"a": 1.5, "b": 2.5, "c": 3.5}, torch.ones(3)
    for name in "abcab":
        assert compiled(x, table, name)[0] == table[name]
    table["a"] = 9.0
    del table["b"]
    assert compiled(x, table, "a")[0] == 9
    with pytest.raises(KeyError, match="'b'"):
        compiled(x, table, "b")
    table["b"] = -1.0
    assert compiled(x, table, "b")[0] == -1


def test_text_that_varies_is_the_same_object_outside():
    compiled = stator.compile(lambda x, name: (x + 1, [name]), backend="eager")
    for name in ("first name", "second name", "third name"):
        assert compiled(torch.ones(2), name)[1][0] is name
    assert stator.stats().graphs == 1


def test_reasons_have_the_text_as_the_program_does():
    compiled = stator.compile(lambda x, model, name: getattr(model, f"layer_{name}")(x), backend="eager")
    model = Heads()
    model.layer_odd = nn.ReLU()
    for name in ("a", "c", "odd"):
        compiled(torch.ones(2, 3), model, name)
    reasons = [record.reason for record in stator.stats().recompile_log]
    assert reasons[0] == "`name` was 'a', is 'c'"
    assert reasons[1] == "`model[f'layer_{name}']` was a Linear, is a ReLU"
