"""A break in a loop costs what the loop's body costs: graphs do not grow with the number of rounds."""

import sys
import traceback

import pytest
import torch
from torch import nn

import stator

BACKENDS = ["eager", "aot_eager"]


class Layer(nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.layer_idx = layer_idx

    def forward(self, x):
        x = self.linear(x)
        stator.graph_break()
        return torch.relu(x)


def over_modules(x, layers):
    for layer in layers:
        x = layer(x)
    return x


def over_a_list(x, layers):
    for layer in list(layers):
        x = layer(x)
    return x


def over_a_tuple(x, layers):
    for layer in tuple(layers):
        x = layer(x)
    return x


def backwards(x, layers):
    for layer in reversed(list(layers)):
        x = layer(x)
    return x


def over_items(x, layers):
    for _, layer in dict(layers.named_children()).items():
        x = layer(x)
    return x


def counted(x, layers):
    for _, layer in enumerate(layers):
        x = layer(x)
    return x


def with_the_count(x, layers):
    for i, layer in enumerate(layers):
        x = layer(x) + i
    return x


def in_pairs(x, layers):
    for layer, again in zip(layers, list(layers)):
        x = layer(x) + again.linear(x)
    return x


def nested(x, layers):
    for layer in layers:
        for _ in range(3):
            x = layer(x)
    return x


def over_a_range(x, layers):
    for _ in range(len(layers)):
        x = x + 1
        stator.graph_break()
        x = x * 0.5
    return x


def with_the_number(x, layers):
    for i in range(len(layers)):
        x = x + i
        stator.graph_break()
        x = x * 0.5
    return x


def while_it_is_less(x, layers):
    i = 0
    while i < len(layers):
        x = x + 1
        stator.graph_break()
        i += 1
    return x


def while_indexed(x, layers):
    i = 0
    while i < len(layers):
        x = layers[i](x)
        i += 1
    return x


def indexed_backwards(x, layers):
    i = len(layers)
    while i > 0:
        x = layers[-i](x) + layers[i // 2].linear(x)
        i -= 1
    return x


def by_name(x, layers):
    named = {f"layer{i}": layer for i, layer in enumerate(layers)}
    i = 0
    while i < len(layers):
        x = named[f"layer{i}"](x)
        i += 1
    return x


def comprehension_of_numbers(x, layers):
    return torch.stack([layers[i](x) for i in range(len(layers))])


def until_there_are_enough(x, layers):
    results = [x]
    while len(results) <= len(layers):
        results.append(torch.relu(results[-1] * 0.5 + 1))
        stator.graph_break()
    return torch.cat(results)


def recursion(x, layers, i=0):
    if i == len(layers):
        return x
    return recursion(layers[i](x), layers, i + 1)


def recursion_with_more_to_do(x, layers, i=0):
    if i == len(layers):
        return x
    return recursion_with_more_to_do(layers[i](x), layers, i + 1) * 0.5 + x


def recursion_in_a_function(x, layers):
    return recursion_with_more_to_do(x + 1, layers).sin() + 1


def back_and_forth(x, layers, i=0):
    return forth(layers[i](x), layers, i) if i < len(layers) else x


def forth(x, layers, i):
    return back_and_forth(x + 1, layers, i + 1) * 0.5


def over_a_tree(x, layers, depth=3):
    if depth == 0:
        return layers[0](x)
    for _ in range(2):
        x = over_a_tree(x, layers, depth - 1)
    return x


FORMS = {
    until_there_are_enough: 3,
    recursion: 4,
    recursion_with_more_to_do: 4,
    recursion_in_a_function: 6,
    back_and_forth: 6,
    over_a_tree: 6,
    while_indexed: 4,
    indexed_backwards: 5,
    by_name: 4,
    comprehension_of_numbers: 4,
    over_modules: 3,
    over_a_list: 3,
    over_a_tuple: 3,
    backwards: 3,
    over_items: 3,
    counted: 3,
    with_the_count: 3,
    in_pairs: 3,
    nested: 4,
    over_a_range: 3,
    with_the_number: 3,
    while_it_is_less: 2,
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_graphs_do_not_grow_with_the_rounds(form, backend):
    for count in (5, 17):
        stator.reset()
        torch.manual_seed(0)
        layers = nn.ModuleList([Layer(i) for i in range(count)])
        compiled = stator.compile(form, backend=backend)
        results = []
        for run in (form, compiled):
            x = torch.arange(8.0).reshape(2, 4).requires_grad_()
            run(x, layers).sum().backward()
            results.append([x.grad, *[p.grad for p in layers.parameters()]])
            layers.zero_grad()
        for mine, eager in zip(*results, strict=True):
            assert (mine is None) is (eager is None)
            if mine is not None:
                torch.testing.assert_close(mine, eager)
        assert stator.stats().graphs <= FORMS[form]


def test_more_rounds_than_before_need_no_trace():
    compiled = stator.compile(over_modules, backend="eager")
    stator.reset()
    for count in (4, 9, 30, 31):
        layers = nn.ModuleList([Layer(i) for i in range(count)])
        x = torch.ones(2, 4)
        torch.testing.assert_close(compiled(x, layers), over_modules(x, layers))
    assert stator.stats().graphs == 3 + 3  # the part before the first break is for its list of modules


def count_down(x, n):
    x = x + 1
    stator.graph_break()
    return count_down(x * 0.5, n - 1) if n else x / torch.zeros(3)[n - 5 :]


def outcome(function, *args):
    """The functions in the traceback of what it raises, and the text of that."""
    try:
        function(*args)
    except (RuntimeError, RecursionError) as e:
        names = [entry.name for entry in traceback.extract_tb(e.__traceback__)]
        return names.count("count_down"), names[-1], str(e)
    return None


def test_an_error_deep_in_a_recursion_leads_to_all_its_frames():
    compiled = stator.compile(count_down, backend="eager")
    for depth in (3, 9, 40):
        assert outcome(compiled, torch.ones(2), depth) == outcome(count_down, torch.ones(2), depth)


def test_a_recursion_is_as_deep_as_it_may_be():
    limit = sys.getrecursionlimit()
    compiled = stator.compile(count_down, backend="eager")
    outcome(compiled, torch.ones(2), 5)
    sys.setrecursionlimit(300)
    try:
        assert outcome(compiled, torch.ones(2), 150) == outcome(count_down, torch.ones(2), 150)
        assert "recursion" in outcome(compiled, torch.ones(2), 400)[2]
    finally:
        sys.setrecursionlimit(limit)


def by_its_name(x, name):
    x = x * 2
    stator.graph_break()
    return x + ord(name[-1])


class Named(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.name = name

    def forward(self, x):
        x = by_its_name(self.linear(x), self.name)
        stator.graph_break()
        return x + len(self.name)


def in_a_frame_between(x, layer):
    return layer(x) + 1


def over_named(x, layers):
    for layer in layers:
        x = in_a_frame_between(x, layer)
    return x


def test_frames_that_reach_the_limit_are_left_together(caplog):
    layers = [Named(f"layer {i}") for i in range(40)]
    x = torch.ones(2, 4)
    compiled = stator.compile(over_named, backend="eager", recompile_limit=4)
    torch.testing.assert_close(compiled(x, layers), over_named(x, layers))
    [warning] = [record.getMessage() for record in caplog.records if record.name == "stator"]
    assert "`name` was 'layer 2', is 'layer 3'" in warning
    assert "what to do: raise recompile_limit above the number of such cases" in warning
    graphs = stator.stats().graphs
    assert graphs <= 20  # a case more costs nothing
    more = [Named(f"other {i}") for i in range(40)]
    torch.testing.assert_close(compiled(x, more), over_named(x, more))
    assert stator.stats().graphs == graphs


def test_the_remedy_that_a_message_gives_works():
    layers = [Named(f"layer {i % 12}") for i in range(40)]
    x = torch.ones(2, 4)
    for limit, given_up in ((4, True), (13, False)):
        stator.reset()
        compiled = stator.compile(over_named, backend="eager", recompile_limit=limit)
        torch.testing.assert_close(compiled(x, layers), over_named(x, layers))
        assert any(brk.code == "SB0501" for brk in stator.stats().breaks) is given_up


def rest(iterator):
    return [next(iterator, None), *iterator]


@pytest.mark.parametrize(
    "make",
    [
        lambda: iter([1.5, 2.5, 3.5]),
        lambda: iter((1.5, 2.5, 3.5)),
        lambda: reversed([1.5, 2.5, 3.5]),
        lambda: iter(range(3, 9, 2)),
        lambda: iter(range(9, 3, -2)),
        lambda: enumerate(["a", "b", "c"], 4),
        lambda: enumerate(range(3)),
        lambda: zip([1, 2, 3], "abc"),
        lambda: iter({"a": 1, "b": 2, "c": 3}),
        lambda: iter({"a": 1, "b": 2, "c": 3}.items()),
        lambda: iter({"a": 1, "b": 2, "c": 3}.values()),
        lambda: iter({1, 2, 3}),
    ],
)
def test_an_iterator_gives_the_same_wherever_it_stands(make):
    compiled = stator.compile(rest, backend="eager", fullgraph=True)
    step = stator.compile(next, backend="eager", fullgraph=True)
    for run, one in ((rest, next), (compiled, step)):
        found = []
        for taken in (0, 1, 2, 3, 0):
            iterator = make()
            found.append([one(iterator, "end") for _ in range(taken)])
            found.append((run(iterator), list(iterator)))
        if run is rest:
            expected = found
    assert found == expected


def test_a_list_that_changes_between_two_steps():
    def act(iterator, numbers):
        first = next(iterator)
        numbers.insert(0, "new")
        return first, next(iterator, None), list(iterator)

    def over_dict(iterator, numbers):
        first = next(iterator)
        numbers[first] = "new"
        return first, next(iterator, None), numbers

    for program, make in ((act, lambda: [1, 2, 3]), (over_dict, lambda: {1: "a", 2: "b"})):
        compiled = stator.compile(program, backend="eager")
        for taken in (0, 1):
            results = []
            for run in (program, compiled):
                numbers = make()
                iterator = iter(numbers)
                for _ in range(taken):
                    next(iterator)
                results.append(run(iterator, numbers))
            assert results[0] == results[1]


def test_an_item_that_is_the_program_s_own_elsewhere():
    def act(iterator, held):
        item = next(iterator)
        item.append(1)
        return item is held, len(held)

    compiled = stator.compile(act, backend="eager", fullgraph=True)
    for same in (True, False, True):
        held = []
        items = [held if same else []]
        assert compiled(iter(items), held) == (same, int(same))


def breaks_at_once(x, n):
    for i in range(n):
        x = x * 2 + i
        stator.graph_break()
    return x


def breaks_in_the_second_round(x, n):
    for i, j in zip(range(n), range(1, n + 1)):
        if i:
            stator.graph_break()
        x = x * j + i
    return x


def breaks_over_rows(x, n):
    total = 0
    for i in range(x.size(0)):
        total = total + x[i] * n
        stator.graph_break()
    return total


def goes_on_later(x, n):
    rest = iter(range(n))
    first = next(rest, 0)
    stator.graph_break()
    return x + first, next(rest)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", [breaks_at_once, breaks_in_the_second_round, breaks_over_rows, goes_on_later])
def test_a_loop_over_a_range_that_varies_is_compiled_for_all_its_lengths(form, backend):
    stator.reset()
    before, counts = stator.stats().graphs, []
    compiled = stator.compile(form, backend=backend)
    for n in (5, 7, 3, 9, 12, 6):
        x = torch.ones(n, 4)
        torch.testing.assert_close(compiled(x, n), form(x, n), rtol=0, atol=0)
        counts.append(stator.stats().graphs - before)
    assert counts[1:] == [counts[1]] * 5, counts


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_first_rounds_of_a_range_that_varies_are_each_asked_for(backend):
    def rounds(x, n):
        rest = iter(range(1, n))
        return [x * i for i in rest], next(rest, None), list(range(n)), [*range(n, 7)], sum(range(n))

    def kept(x, n):
        rest = iter(range(n))
        next(rest, None)
        return x + n, rest, rest.__length_hint__()

    compiled, kept_compiled = stator.compile(rounds, backend=backend), stator.compile(kept, backend=backend)
    for n in (3, 5, 1, 0, 2, 4, 6, 9, -1):
        assert str(compiled(torch.ones(2), n)) == str(rounds(torch.ones(2), n))
        for (x, rest, hint), run in ((kept_compiled(torch.ones(2), n), True), (kept(torch.ones(2), n), False)):
            assert (x.tolist(), list(rest), hint) == ([1 + n] * 2, list(range(1, n)), max(n - 1, 0)), (n, run)
