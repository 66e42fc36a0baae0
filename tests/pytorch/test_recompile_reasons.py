"""Why a function is compiled again: one sentence with the names, values and line of the program."""

from __future__ import annotations

import logging
import math
import random
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn

import stator
from stator.guards.guard import FOR_LOOPS


def scale(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def pick(x: Any, option: Any = None) -> Any:
    return x + 1 if option == "add" or option is None else x * 2


def keys(d: dict[str, torch.Tensor]) -> torch.Tensor:
    return sum(d.values())  # type: ignore[return-value]


def star(*xs: torch.Tensor) -> torch.Tensor:
    return xs[0] * len(xs)


class Block(nn.Module):
    factor: Any = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(x) * self.factor


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(3)])
        self.mode = "add"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Breaking(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        return x if self.mode == "add" else x * 2


ONES = torch.ones(3)
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...], str]] = {
    "size": (scale, (ONES,), (torch.ones(4),), "size 0 of `x` was 3, is 4"),
    "rank": (scale, (ONES,), (torch.ones(4, 2),), "the number of dimensions of `x` was 1, is 2"),
    "stride": (scale, (torch.ones(2, 3),), (torch.ones(3, 2).t(),), "the strides of `x` were (3, 1), are (1, 2)"),
    "dtype": (scale, (ONES,), (ONES.double(),), "the dtype of `x` was torch.float32, is torch.float64"),
    "device": (scale, (ONES,), (ONES.to("meta"),), "the device of `x` was cpu, is meta"),
    "gradients": (scale, (ONES,), (torch.ones(3, requires_grad=True),), "`x` requires gradients"),
    "string": (pick, (ONES, "add"), (ONES, "mul"), "`option` was 'add', is 'mul'"),
    "None": (pick, (ONES,), (ONES, "mul"), "`option` was None, is 'mul'"),
    "number of arguments": (star, (ONES,), (ONES, ONES), "`xs` had 1 element, has 2 elements"),
    "keys": (keys, ({"a": ONES},), ({"b": ONES},), "the keys of `d` have changed: it lost 'a' and got 'b'"),
}


def reason(*, of: int = 0) -> Any:
    return stator.stats().recompile_log[of]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    stator.reset()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("case", CALLS)
def test_arguments(case: str, backend: str) -> None:
    function, first, second, text = CALLS[case]
    compiled = stator.compile(function, backend=backend)
    compiled(*first)
    compiled(*second)
    assert reason().reason == text
    first_line = function.__code__.co_firstlineno
    assert reason().where == f"{function.__name__} ({__file__}:{first_line})"
    assert reason().line == f"{__file__}:{first_line + 1}"


def train_off(net: Net) -> None:
    net.eval()


def new_factor(net: Net) -> None:
    net.layers[1].factor = 3.0


def new_layer(net: Net) -> None:
    net.layers[2].drop = nn.Identity()


CHANGES: list[tuple[Callable[[Net], None], str]] = [
    (train_off, "`self.layers[0].drop.training` was True, is False"),
    (new_factor, "`self.layers[1]` has got an attribute `factor` of its own"),
    (new_layer, "`self.layers[2].drop` was a Dropout, is an Identity"),
]


@pytest.mark.parametrize(("change", "text"), CHANGES)
def test_modules_by_their_paths(change: Callable[[Net], None], text: str) -> None:
    net = Net()
    compiled = stator.compile(net, backend="eager")
    compiled(ONES)
    change(net)
    compiled(ONES)
    assert reason().reason == text
    assert reason().where.startswith(f"Net.forward ({__file__}:")
    assert reason().line.startswith(f"{__file__}:"), "not torch's own line"


def test_resumed_method() -> None:
    net = Breaking()
    compiled = stator.compile(net, backend="eager")
    compiled(ONES)
    net.mode = "mul"
    compiled(ONES)
    assert reason().reason == "`self.mode` was 'add', is 'mul'"
    assert reason().where.startswith(f"Breaking.forward ({__file__}:")


def test_many_keys_of_one_class_are_counted() -> None:
    layers = nn.Sequential(*(nn.Linear(3, 3) for _ in range(5)))
    optimizer = torch.optim.SGD(layers.parameters(), 0.1, momentum=0.9)
    for parameter in layers.parameters():
        parameter.grad = torch.ones_like(parameter)
    compiled = stator.compile(lambda: optimizer.step(), backend="eager")
    compiled()
    compiled()
    assert reason().reason == "the keys of `optimizer.state` have changed: it got 10 Parameters"


def test_many_keys_are_cut_short() -> None:
    def total(d: dict[Any, torch.Tensor]) -> torch.Tensor:
        return sum(d[key] * key for key in d)  # type: ignore[return-value]

    compiled = stator.compile(total, backend="eager")
    compiled(dict.fromkeys(range(11), ONES))
    compiled(dict.fromkeys(range(10, 21), ONES))
    lost, got = "0, 1, 2, 3, 4, 5, 6, 7, 2 more", "11, 12, 13, 14, 15, 16, 17, 18, 2 more"
    assert reason().reason == f"the keys of `d` have changed: it lost {lost} and got {got}"


def test_closure() -> None:
    kind = "a"

    def inner(x: torch.Tensor) -> torch.Tensor:
        return x if kind == "a" else x * 2

    compiled = stator.compile(inner, backend="eager")
    compiled(ONES)
    kind = "b"
    compiled(ONES)
    assert reason().reason == "`kind` was 'a', is 'b'" and reason().where.startswith("inner (")


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (torch.no_grad, "grad mode was on, is off"),
        (lambda: torch.autocast("cpu"), "autocast for cpu was off, is on"),
    ],
)
def test_modes(mode: Callable[[], Any], text: str) -> None:
    compiled = stator.compile(scale, backend="eager")
    compiled(ONES)
    with mode():
        compiled(ONES)
    assert reason().reason == text


def test_default_dtype() -> None:
    compiled = stator.compile(scale, backend="eager")
    compiled(ONES)
    torch.set_default_dtype(torch.float64)
    try:
        compiled(ONES)
    finally:
        torch.set_default_dtype(torch.float32)
    assert reason().reason == "the default dtype was torch.float32, is torch.float64"


def test_one_reason_is_counted() -> None:
    for _ in range(2):
        compiled = stator.compile(scale, backend="eager", isolate_recompiles=True)
        compiled(ONES)
        compiled(ONES.double())
    [record] = stator.stats().recompile_log
    assert record.count == 2 and stator.stats().recompiles == 2


def test_limit_names_what_has_changed() -> None:
    compiled = stator.compile(pick, backend="eager", recompile_limit=2, fullgraph=True)
    compiled(ONES, "a")
    compiled(ONES, "b")
    with pytest.raises(stator.RecompileLimitError) as caught:
        compiled(ONES, "c")
    text = re.sub(r"\s+", " ", str(caught.value))
    assert "`option` was 'a', is 'b'" in text and "`option` was 'b', is 'c'" in text
    assert all(len(line) <= 80 or "/" in line for line in str(caught.value).splitlines())


def first_rows(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    if x.shape[0] > 4:
        return y[:4]
    return y


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_relations_of_sizes_name_the_line_that_needs_them(backend: str) -> None:
    compiled = stator.compile(first_rows, backend=backend)
    for rows in (3, 2, 6):
        compiled(torch.ones(rows, 2, requires_grad=True))
    last = stator.stats().recompile_log[-1]
    assert "x.size(0) <= 4" in last.reason and "is 6" in last.reason
    assert str(last).splitlines()[1].strip() == "if x.shape[0] > 4:"


def add(module: nn.Module, register: str) -> Any:
    return getattr(module, register)(lambda *args: None)


HOOKS = [
    ("register_forward_hook", "forward hook"),
    ("register_forward_pre_hook", "forward pre-hook"),
    ("register_full_backward_hook", "backward hook"),
]


@pytest.mark.parametrize(("register", "what"), HOOKS)
def test_hooks(register: str, what: str) -> None:
    net = Net()
    compiled = stator.compile(net, backend="eager")
    compiled(ONES)
    handle = add(net.layers[1], register)
    compiled(ONES)
    assert reason().reason == f"`self.layers[1]` has got a {what}"
    assert reason().hint == f"register {what}s before the first call"
    stator.reset()
    compiled(ONES)
    handle.remove()
    compiled(ONES)
    assert reason().reason == f"`self.layers[1]` has lost a {what}"


def test_hooks_on_all_modules() -> None:
    compiled = stator.compile(Net(), backend="eager")
    compiled(ONES)
    handle = nn.modules.module.register_module_forward_hook(lambda *args: None)
    try:
        compiled(ONES)
    finally:
        handle.remove()
    assert reason().reason == "torch.nn.Module has got a global forward hook"


def stopped(x: torch.Tensor) -> torch.Tensor:
    stator.graph_break()
    return x * 2


def in_modules(x: torch.Tensor, layers: Any) -> Any:
    for layer in layers:
        x = stopped(layer(x))
    return x


def counted(x: torch.Tensor, layers: Any) -> Any:
    for i, _ in enumerate(layers):
        x = stopped(x) * i
    return x


def listed(x: torch.Tensor, layers: Any) -> Any:
    return [stopped(x) * i for i in range(len(layers))]


def indexed(x: torch.Tensor, layers: Any) -> Any:
    i = 0
    while i < len(layers):
        x = layers[i](stopped(x.detach()))
        i += 1
    return x


def grown(x: torch.Tensor, layers: Any) -> Any:
    results = [x]
    while len(results) < len(layers):
        results.append(stopped(results[-1]))
    return results


LOOPS: dict[Callable[..., Any], tuple[str, ...]] = {
    in_modules: ("the loop went on, is at its end now",),
    counted: ("the loop went on, is at its end now",),
    listed: ("the loop went on, is at its end now",),
    indexed: ("`layers[i + 1]` was there, and is no more",),
    grown: ("no longer: len(results) <= 3 (`len(results)` is 4)",),
}


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_loops(loop: Callable[..., Any]) -> None:
    compiled = stator.compile(loop, backend="eager")
    compiled(ONES, nn.ModuleList([nn.Linear(3, 3) for _ in range(5)]))
    found = stator.stats().recompile_log
    assert tuple(record.reason for record in found) == LOOPS[loop]
    assert all(record.line.startswith(f"{__file__}:") for record in found)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return self.inner(x, scale) + 1


class Scaled(nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x.sum() * scale


class Inner(Scaled):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return super().forward(x, scale) * 2


def test_variables_of_frames_that_call_super_are_called_by_their_names() -> None:
    compiled = stator.compile(Outer(), backend="eager")
    compiled(torch.ones(4), torch.ones(3))
    compiled(torch.ones(4), torch.ones(3, requires_grad=True))
    told = [record.reason for record in stator.stats().recompile_log]
    assert told == ["`scale` requires gradients"]


@stator.disable
def shifted(x: torch.Tensor) -> torch.Tensor:
    return x + 1


ALL_SIZES = "makes one graph for all sizes, unless a line needs the number, or more varies"


def of_one_line(x: torch.Tensor) -> torch.Tensor:
    return shifted(x) * 2


def of_more_lines(x: torch.Tensor) -> torch.Tensor:
    return (
        shifted(
            x,
        )
        * 2
    )


def of_one_or_the_other(x: torch.Tensor) -> torch.Tensor:
    return (shifted(x) if len(x) > 9 else shifted(x + 1)) * 2


def of_a_variable(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (of_one_line, "`shifted(x)`"),
        (of_more_lines, "`shifted(…)`"),
        (of_one_or_the_other, "the result of the call"),
        (of_a_variable, "`y`"),
    ],
)
def test_what_only_the_rest_of_a_frame_is_given_is_marked_where_it_is_made(
    function: Callable[..., Any], name: str
) -> None:
    compiled = stator.compile(function, backend="eager")
    compiled(torch.ones(4))
    compiled(torch.ones(5))
    *whole, record = stator.stats().recompile_log
    assert {first.hint for first in whole} <= {f"stator.maybe_mark_dynamic(x, 0) before the first call {ALL_SIZES}"}
    mark = f"stator.maybe_mark_dynamic({'y' if name == '`y`' else 't'}, 0) where it is made"
    assert record.reason == f"size 0 of {name} was 4, is 5"
    assert record.hint == f"{mark}, or compiling with dynamic=True, {ALL_SIZES}"
    stator.reset()
    compiled = stator.compile(function, backend="eager", dynamic=True)
    for rows in (4, 5, 6):
        assert torch.equal(compiled(torch.ones(rows)), function(torch.ones(rows)))
    assert not stator.stats().recompile_log


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_mark_in_front_of_a_break_holds_beside_dynamic_shapes(backend: str) -> None:
    """Which sizes there are behind the break nothing said of the arguments tells: `x[x > 0]`."""

    def kept(x: torch.Tensor) -> torch.Tensor:
        y = x[x > 0]
        stator.maybe_mark_dynamic(y, 0)
        torch._dynamo.graph_break()
        return y * y.shape[0]

    compiled = stator.compile(kept, backend=backend, dynamic_shapes={"x": ["rows"]})
    for rows in (4, 5, 7):
        x, same = (torch.arange(rows, dtype=torch.float32).requires_grad_() for _ in range(2))
        result, expected = compiled(x), kept(same)
        assert torch.equal(result, expected)
        result.sum().backward()
        expected.sum().backward()
        assert x.grad is not None and torch.equal(x.grad, same.grad)  # type: ignore[arg-type]
    assert not stator.stats().recompile_log and stator.stats().graphs == 2


def test_an_item_of_a_list_in_the_making() -> None:
    def all_shifted(items: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack([shifted(item) for item in items])

    reasons = told_of(all_shifted, ([ONES] * 3,), ([torch.ones(5)] * 3,))
    assert "size 0 of the 1st item of the list that the line makes was 3, is 5" in reasons, reasons


def test_a_list_in_the_making_is_called_one() -> None:
    def all_shifted(items: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack([shifted(item) for item in items])

    compiled = stator.compile(all_shifted, backend="eager")
    compiled([torch.ones(4)] * 2)
    compiled([torch.ones(4)] * 5)
    told = [record.reason for record in stator.stats().recompile_log]
    assert not any("a part of the line" in reason for reason in told), told


def test_a_long_condition_is_shortened_in_the_middle() -> None:
    def pick(x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        seen = ids.flatten()
        for _ in range(12):
            seen = (seen + 1).clamp(0, 90)
        return x + 1 if (seen > 60).any() else x - 1

    compiled = stator.compile(pick, backend="eager")
    compiled(torch.ones(2), torch.arange(3))
    compiled(torch.ones(2), torch.arange(3) + 60)
    text = reason().reason
    assert text.startswith("no longer: not ((((") and "ids + 1).clamp(0, 90)" in text and len(text) < 180
    assert text.endswith(".clamp(0, 90) + 1).clamp(0, 90) > 60).any())") and " … " in text
    assert reason().line.endswith(f":{pick.__code__.co_firstlineno + 4}")


def test_what_a_library_has_decorated_is_told_as_the_program_s() -> None:
    @torch.no_grad()
    def decode(net: Any, memory: Any, *, k: int = 3) -> Any:
        return net(memory) * k

    stator.reset()
    compiled = stator.compile(decode, backend="eager")
    net = nn.Linear(3, 3)
    compiled(net, torch.ones(2, 3))
    compiled(net, torch.ones(4, 3))
    compiled(net, torch.ones(4, 3), k=5)
    sizes, keywords = stator.stats().recompile_log
    assert sizes.where.startswith("decode (") and sizes.reason == "size 0 of `memory` was 2, is 4"
    assert "mark_dynamic(memory, 0)" in sizes.hint
    assert keywords.where.startswith("decode (")


def told_of(function: Callable[..., Any], *calls: tuple[Any, ...], **options: Any) -> list[str]:
    compiled = stator.compile(function, backend="eager", **options)
    for args in calls:
        compiled(*args)
    return [record.reason for record in stator.stats().recompile_log]


def test_a_key_that_was_missing() -> None:
    counts: Counter[int] = Counter()

    def count(x: torch.Tensor, i: int) -> torch.Tensor:
        counts[i] += 1
        return x + 1

    told = told_of(count, *((ONES, i) for i in (1, 2, 3, 1, 2, 3, 4, 5)))
    assert "`counts` had no key `i`, has one now (`i` is 1)" in told


def test_a_key_that_is_gone() -> None:
    table = {1: ONES, 2: ONES, 3: ONES}

    def look_up(x: torch.Tensor, i: int) -> torch.Tensor:
        return x + table[i + 1] if i + 1 in table else x

    told = told_of(look_up, *((ONES, i) for i in (0, 1, 2, 3)))
    assert told[-1] == "`table` had a key `i + 1`, has none now (`i` is 3)"


def test_the_state_of_a_generator() -> None:
    def draw(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if random.random() < 0.5 else x + 1

    random.seed(0)
    told = told_of(draw, *[(ONES,)] * 12)
    assert told[0].startswith("no longer: random.random() >= 0.5 (`random.random()` is 0.4")


class Sampler:
    def __init__(self) -> None:
        self.rng = random.Random(0)

    def draw(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if self.rng.random() < 0.5 else x + 1


class Annealed:
    frame = 0

    def act(self, x: torch.Tensor) -> torch.Tensor:
        self.frame += 1
        return x * 2 if random.random() < 0.05 + 0.95 * math.exp(-self.frame / 5) else x

    def switch(self, x: torch.Tensor) -> torch.Tensor:
        self.frame += 1
        return x * 2 if math.log(2 * self.frame + x.shape[0]) < 2 else x

    def root(self, x: torch.Tensor) -> torch.Tensor:
        self.frame += 1
        return x * 2 if math.isqrt(self.frame**2 + 1) % 8 < 5 else x

    def long(self, x: torch.Tensor) -> torch.Tensor:
        self.frame += 1
        angle = self.frame * 0.0123456789 + self.frame * 0.123456789 + self.frame * 0.0234567891
        return x * 2 if math.sin(angle + 1 / (self.frame + 0.123456789)) < 0.9 else x


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("act", "math.exp(-(self.frame + 1) / 5)"),
        ("switch", "math.log(2 * (self.frame + 1) + x.size(0))"),
        ("root", "math.isqrt((self.frame + 1) ** 2 + 1)"),
        ("long", "the number computed of self.frame"),
    ],
)
def test_a_number_that_is_computed_is_told_with_all_that_it_is_computed_of(name: str, text: str, backend: str) -> None:
    random.seed(0)
    act, program = (getattr(Annealed(), name) for _ in range(2))
    compiled, xs = stator.compile(act, backend=backend), [torch.ones(n) for n in (2, 3, 2, 4, 2, 5, 2, 2, 3, 2, 3)]
    state = random.getstate()
    results = [compiled(x) for x in xs]
    random.setstate(state)
    assert all(torch.equal(result, program(x)) for result, x in zip(results, xs, strict=True))
    told = [record.reason for record in stator.stats().recompile_log if "no longer" in record.reason]
    assert any(text in reason for reason in told), told
    for reason in told:
        assert not re.search(r"\{|_operator|sym_|the number of|\(self\.frame\)", reason), reason


def test_the_state_of_a_generator_that_an_object_has() -> None:
    told = told_of(Sampler().draw, *[(ONES,)] * 12)
    assert told[0].startswith("no longer: self.rng.random() >= 0.5 (`self.rng.random()` is 0.4")


def test_items_of_a_deque_and_of_an_iterator() -> None:
    recent: deque[str] = deque(maxlen=2)

    def keep(x: torch.Tensor, name: str) -> torch.Tensor:
        recent.append(name)
        return x * 2 if recent[0] == "a" else x

    def take(x: torch.Tensor, names: Any) -> torch.Tensor:
        return x * 2 if next(names) == "a" and next(names) == "b" else x

    assert told_of(keep, *((ONES, name) for name in "abab"))[-1] == "`recent[1]` was 'b', is 'a'"
    stator.reset()
    assert told_of(take, (ONES, iter(["a", "b"])), (ONES, iter(["a", "c"]))) == [
        "the 2nd of the items of `names` was 'b', is 'c'"
    ]


def advice(function: Callable[..., Any], *calls: tuple[Any, ...]) -> str:
    with caplog_of_stator() as lines:
        told_of(function, *calls, recompile_limit=2)
    [text] = lines
    return re.sub(r"\s+", " ", text.partition("what to do: ")[2].partition("more:")[0]).strip()


@contextmanager
def caplog_of_stator() -> Iterator[list[str]]:
    """What is told meanwhile."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("stator")
    log.addHandler(handler)
    try:
        yield lines
    finally:
        log.removeHandler(handler)


def test_the_advice_on_tensors_that_require_gradients_in_some_calls() -> None:
    net, grad = nn.Linear(3, 3), torch.ones(2, 3, requires_grad=True)

    def thaw(x: torch.Tensor, frozen: bool) -> torch.Tensor:
        return net(x)

    def frozen() -> Iterator[tuple[torch.Tensor, bool]]:
        yield torch.ones(2, 3), False
        net.requires_grad_(False)
        yield torch.ones(2, 3), True

    compiled = stator.compile(thaw, backend="eager")
    for args in frozen():
        assert torch.equal(compiled(*args), thaw(*args))
    (record,) = stator.stats().recompile_log
    assert record.reason == "`net.weight` no longer requires gradients"
    assert record.hint.startswith("freeze parameters before the first call: `net.weight` has a graph with")
    stator.reset()
    told_of(lambda x: x * 2, (torch.ones(2, 3),), (grad,))
    assert reason().hint == "detach `x` where no gradients are wanted"


def test_the_advice_on_sizes_names_what_has_changed_besides() -> None:
    def both(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.sum() + y.sum()

    told_of(both, (torch.ones(3), torch.ones(4)), (torch.ones(5), torch.ones(4)))
    assert reason().hint.endswith("or more varies")
    stator.reset()
    told_of(both, (torch.ones(3), torch.ones(4)), (torch.ones(5), torch.ones(7)))
    assert reason().hint.endswith("or more varies")
    assert reason().change == "size 0 of `x` was 3, is 5; also, size 0 of `y` was 4, is 7"


def test_the_advice_on_branches_and_on_numbers_that_are_needed_themselves() -> None:
    def bucket(x: torch.Tensor, level: float) -> torch.Tensor:
        for limit in (1.0, 2.0, 3.0, 4.0):
            if level < limit:
                return x * limit
        return x

    def labelled(x: torch.Tensor, level: float) -> Any:
        return x * 2, {str(level): 1}

    def rounds(x: torch.Tensor, level: float) -> torch.Tensor:
        for _ in range(min(x.shape)):
            x = x * 2
        return x

    calls = [(ONES, level) for level in (0.5, 1.5, 2.5, 3.5)]
    assert advice(bucket, *calls) == (
        "decide this in a function with stator.disable, or with torch.where on a tensor: each outcome has a graph"
    )
    stator.reset()
    for_numbers = "put what needs the number itself in a function with stator.disable, or keep the number in a tensor"
    assert advice(labelled, *calls) == for_numbers
    stator.reset()
    assert advice(rounds, *((torch.ones(9, n), 1.0) for n in (3, 4, 5, 6, 7))) == for_numbers


def test_what_goes_on_after_a_break_in_a_call_is_told_of_the_function_that_was_compiled() -> None:
    """Not of the innermost that goes on, perhaps a library's: the change is about a third."""
    compiled = stator.compile(rounds_after_draws, backend="eager", recompile_limit=3)
    with caplog_of_stator() as lines:
        for n in range(2, 8):
            compiled(torch.ones(9, n))
    assert lines[0].startswith("SB0501: rounds_after_draws was compiled 3 times (recompile_limit)\n")
    (brk,) = (brk for brk in stator.stats().breaks if brk.code == "SB0501")
    assert brk.reason.startswith("rounds_after_draws was compiled 3 times")
    wheres = {record.where.partition(" (")[0] for record in stator.stats().recompile_log}
    assert wheres == {"rounds_after_draws", "rounds_of"}, "which is compiled by itself from then on"


def drawn(x: torch.Tensor) -> torch.Tensor:
    return x * random.SystemRandom().randrange(9)


def rounds_of(x: torch.Tensor) -> torch.Tensor:
    for _ in range(min(x.shape)):
        x = x + 1
    return x


def rounds_after_draws(x: torch.Tensor) -> torch.Tensor:
    return drawn(x) + rounds_of(x)


def test_a_size_that_is_needed_as_a_number_is_told() -> None:
    rnn = torch.nn.GRU(4, 2, batch_first=True)
    stator.reset()
    compiled = stator.compile(lambda x: rnn(x)[0].sum(), backend="eager")
    for steps in (8, 12, 10):
        x = torch.ones(1, steps, 4)
        stator.maybe_mark_dynamic(x, 1)
        compiled(x)
    hint = "the code needs this size as a number: pad to a few sizes, or leave the call out with stator.disable"
    assert [record.hint for record in stator.stats().recompile_log] == [hint, hint]


# -- loops with another number of rounds -------------------------------------------------------------------------------


def over_items(boxes: list[torch.Tensor], w: torch.Tensor) -> torch.Tensor:
    loss = w.sum()
    for box in boxes:
        loss = loss + (box * w).sin().sum()
    return loss


def over_rows(boxes: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return w.sum() + sum((row * w).sin().sum() for row in boxes)


def over_positions(boxes: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    loss = w.sum()
    for i in range(len(boxes)):
        loss = loss + (boxes[i] * w).sin().sum()
    return loss


def only_counted(boxes: list[torch.Tensor], w: torch.Tensor) -> torch.Tensor:
    count = 0
    for box in boxes:
        count += box.dim()
    return w * count


def whole(boxes: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return w.sum() + (boxes * w).sin().sum()


@stator.disable
def left(boxes: list[torch.Tensor], w: torch.Tensor) -> torch.Tensor:
    return over_items(boxes, w)


def left_to_python(boxes: list[torch.Tensor], w: torch.Tensor) -> torch.Tensor:
    return left(boxes, w) * 2


def in_rounds(loop: Any, counts: tuple[int, ...], *, stack: bool, **settings: Any) -> list[Any]:
    compiled, w = stator.compile(loop, backend="eager", **settings), torch.ones(4)
    for count in counts:
        boxes: Any = [torch.full((4,), float(i)) for i in range(count)]
        boxes = torch.stack(boxes) if stack else boxes
        torch.testing.assert_close(compiled(boxes, w), loop(boxes, w))
    return list(stator.stats().recompile_log)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(
    ("loop", "stack", "operations"), [(over_items, False, 4), (over_rows, True, 4), (over_positions, True, 5)]
)
def test_a_loop_with_another_number_of_rounds_is_told_from_the_second_time_on(
    loop: Any, stack: bool, operations: int, dynamic: bool | None
) -> None:
    """Nor does it help to mark sizes: each number of rounds is a graph."""
    *_, first, last = in_rounds(loop, (4, 5, 7, 9), stack=stack, dynamic=dynamic)
    assert last.reason.endswith(f"a loop of 7 rounds, {operations} operations in each)"), last
    assert first.hint == last.hint == FOR_LOOPS or "rounds" not in first.reason
    assert last.hint == FOR_LOOPS


def test_a_loop_that_computes_nothing_is_not_blamed() -> None:
    assert not any("rounds" in record.reason for record in in_rounds(only_counted, (4, 5, 7, 9), stack=False))


def test_what_is_said_to_help_helps() -> None:
    assert len(in_rounds(whole, (4, 5, 7, 9), stack=True)) == 1
    stator.reset()
    assert not in_rounds(left_to_python, (4, 5, 7, 9), stack=False)


@pytest.mark.parametrize(("counts", "told"), [((12, 70, 75, 80), 1), ((12, 15, 18, 20), 0)])
def test_a_long_loop_is_told_without_being_asked_for(counts: Any, told: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "stator"):
        in_rounds(over_items, counts, stack=False)
    messages = [record.getMessage() for record in caplog.records if record.name == "stator"]
    assert len(messages) == told
    assert all("SB0601" in message and "for box in boxes" in message for message in messages)


# -- the next item of a loop that a break has cut ----------------------------------------------------------------------


def each(boxes: list[dict[str, Any]], w: torch.Tensor) -> torch.Tensor:
    for box in boxes:
        w = w + box["weight"].sum()
        w = stopped(w)
    return w


def numbered(boxes: list[dict[str, Any]], w: torch.Tensor) -> torch.Tensor:
    for i, box in enumerate(boxes):
        w = w + box["weight"].sum() * i
        w = stopped(w)
    return w


def in_pairs(boxes: list[dict[str, Any]], w: torch.Tensor) -> torch.Tensor:
    for weight, box in zip([1, 2, 3], boxes, strict=True):
        w = w + box["weight"].sum() * weight
        w = stopped(w)
    return w


@pytest.mark.parametrize("loop", [each, numbered, in_pairs], ids=lambda loop: loop.__name__)
def test_the_next_item_is_called_by_the_variable_that_gets_it(loop: Any) -> None:
    compiled = stator.compile(loop, backend="eager")
    compiled([{"weight": torch.ones(size)} for size in (2, 3, 4)], torch.ones(1))
    found = [record.reason for record in stator.stats().recompile_log]
    assert any(reason.startswith("size 0 of the `['weight']` of the next `box` was") for reason in found), found


def test_the_reason_is_what_distinguishes_a_call_from_the_entry_that_is_most_like_it() -> None:
    """Not from the last one, which is for another case of what is decided first."""

    def step(cache: dict[str, Any], p: float | None, x: torch.Tensor) -> torch.Tensor:
        cache["k"] = x if cache["k"] is None else torch.cat([cache["k"], x])
        return cache["k"] * 2 if p is None else cache["k"].softmax(-1)

    compiled = stator.compile(step, backend="eager")
    for p in (None, 0.9):
        cache: dict[str, Any] = {"k": None}
        for _ in range(2):
            compiled(cache, p, torch.ones(3, 4))
    told = [record.reason for record in stator.stats().recompile_log]
    assert told == ["`cache['k']` was None, is a Tensor", "`p` was None, is 0.9"]


def test_a_call_without_gradients_is_not_advised_to_detach() -> None:
    told_of(lambda x: x * 2, (torch.ones(2, requires_grad=True),), (torch.ones(2),))
    assert reason().reason == "`x` no longer requires gradients"
    assert reason().hint == "both have a graph: one with gradients, and one without"


def test_a_module_that_is_compiled_too_often_is_told_by_its_forward() -> None:
    class Scaling(nn.Module):
        def forward(self, x: torch.Tensor, name: str) -> torch.Tensor:
            return x * len({name: 1}) if name > "b" else x

    compiled = stator.compile(Scaling(), backend="eager", recompile_limit=1)
    for name in "abc":
        compiled(ONES, name)
    (told,) = [brk for brk in stator.stats().breaks if brk.code == "SB0501"]
    assert told.where.startswith(f"{__file__}:") and "forward was compiled" in told.reason


def test_parts_of_a_module_are_told_as_the_program_has_them() -> None:
    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleDict({"16": nn.Linear(1, 1), "a b": nn.Linear(1, 1), "last": nn.Linear(1, 1)})
            self.scales = nn.ParameterDict({"7": torch.ones(1)})
            self.layers = nn.ModuleList([nn.Linear(1, 1)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.heads["16"](x) + self.heads["a b"](x) + self.heads["last"](x)
            return self.layers[0](x) * self.scales["7"]

    net, told = Heads().requires_grad_(False), []
    for name, parameter in net.named_parameters():
        if "bias" not in name:
            stator.reset()
            compiled = stator.compile(net, backend="eager")
            compiled(ONES[:1])
            parameter.requires_grad_(True)
            compiled(ONES[:1])
            parameter.requires_grad_(False)
            told.append(reason().reason.partition(" requires")[0])
    heads = ["`self.heads['16'].weight`", "`self.heads['a b'].weight`", "`self.heads.last.weight`"]
    assert told == [*heads, "`self.scales['7']`", "`self.layers[0].weight`"]
