"""compile() calls of one code with equal settings share the entries that fit; their limits stay their own."""

import functools
import gc
import weakref

import pytest
import torch
from torch import nn

import stator
from stator.backends.registry import register_backend
from stator.compiler import kept
from stator.host import collector
from stator.testing import CompileCounter

BACKENDS = ["eager", "aot_eager"]


@pytest.fixture(autouse=True)
def _begin():
    stator.reset()


class Block(nn.Module):
    def __init__(self, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx
        self.up = nn.Linear(4, 8)
        self.down = nn.Linear(8, 4)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class BreakingBlock(Block):
    def forward(self, x):
        x = self.up(x)
        stator.graph_break()
        return self.down(x)


def double(x):
    return x * 2


def in_place(block, **options):
    block.compile(**options)
    return block


def graphs():
    return stator.stats().graphs


def train(blocks, calls, size):
    """The input, the output and all gradients of the blocks called in turn."""
    x = torch.arange(4.0 * size).reshape(size, 4).requires_grad_()
    y = x
    for call in calls:
        y = call(y)
    y.sum().backward()
    gradients = [p.grad for block in blocks for p in block.parameters()]
    for block in blocks:
        block.zero_grad()
    return [y.detach(), x.grad, *gradients]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("kind", "most"), [(Block, 2), (BreakingBlock, 4)])
def test_equal_blocks_compiled_one_by_one_are_traced_once(backend, kind, most):
    torch.manual_seed(0)
    blocks = [kind(i) for i in range(12)]
    compiled = [stator.compile(block, backend=backend) for block in blocks]
    for size in (2, 3, 5):
        for mine, eager in zip(train(blocks, compiled, size), train(blocks, blocks, size), strict=True):
            torch.testing.assert_close(mine, eager)
    assert graphs() == most  # once for one size, once for any, each with a graph for each side of the break
    assert stator.stats().recompiles == most // 2


class Layer(Block):
    """What differs from layer to layer besides parameters is never looked at, or passed on."""

    def __init__(self, layer_idx):
        super().__init__(layer_idx)
        self.name = f"layer{layer_idx}"
        self.shift = [lambda x: x + 1]
        self.register_buffer("table", torch.full((1,), float(layer_idx)))

    def attend(self, x, layer_idx):
        return self.down(self.up(self.shift[0](x))) + self.table

    def forward(self, x):
        return self.attend(x, layer_idx=self.layer_idx)


class Scaled(Block):
    """A number that is computed with is a symbol once it differs."""

    def forward(self, x):
        return self.down(self.up(x)) * (self.layer_idx + 2.5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("kind", "most"), [(Layer, 1), (Scaled, 2)])
@pytest.mark.parametrize("way", [stator.compile, in_place])
def test_layers_that_differ_in_nothing_that_matters(backend, kind, most, way):
    blocks = [kind(i) for i in range(6)]
    stator.install()
    try:
        compiled = [way(kind(i), backend=backend) for i in range(6)]
        for mine, block in zip(compiled, blocks, strict=True):
            mine.load_state_dict(block.state_dict())
        ours = train(compiled, compiled, 2)
    finally:
        stator.uninstall()
    for mine, eager in zip(ours, train(blocks, blocks, 2), strict=True):
        torch.testing.assert_close(mine, eager)
    assert graphs() == most


def test_blocks_share_what_inductor_has_compiled():
    blocks = [Block(i) for i in range(3)]
    x = torch.ones(2, 4)
    for block in blocks:
        torch.testing.assert_close(stator.compile(block)(x), block(x))
    assert graphs() == 1


def test_an_isolated_call_keeps_to_itself():
    block, x = Block(0), torch.ones(2, 4)
    for _ in range(2):
        stator.compile(block, backend="eager", isolate_recompiles=True)(x)
    stator.compile(block, backend="eager")(x)
    assert graphs() == 3


@pytest.mark.parametrize(
    "other",
    [{"backend": "aot_eager"}, {"fullgraph": True}, {"dynamic": True}, {"options": {"strict": True}}],
    ids=lambda other: next(iter(other)),
)
def test_other_settings_share_nothing(other):
    block, x = Block(0), torch.ones(2, 4)
    stator.compile(block, backend="eager")(x)
    stator.compile(block, **{"backend": "eager", **other})(x)
    assert graphs() == 2


class Backend:
    """Equal to all of its class: what each has compiled is still its own."""

    def __init__(self):
        self.calls = 0

    def __eq__(self, other):
        return isinstance(other, Backend)

    def __hash__(self):
        return 0

    def __call__(self, gm, example_inputs):
        self.calls += 1
        return gm.forward


def test_backends_are_told_apart_by_identity():
    backends = [Backend(), Backend()]
    calls = [stator.compile(double, backend=backend) for backend in (*backends, *backends)]
    for call in calls:
        call(torch.ones(1))
    assert [backend.calls for backend in backends] == [1, 1]


def test_bound_methods_of_one_object_are_one_backend():
    counter = CompileCounter()
    calls = [stator.compile(double, backend=counter.__call__) for _ in range(2)]
    for call in calls:
        call(torch.ones(1))
    assert counter.frame_count == 1


def test_a_name_that_stands_for_another_backend_meanwhile():
    counters = [CompileCounter(), CompileCounter()]
    for counter in counters:
        register_backend(functools.partial(counter), name="of the day")
        stator.compile(double, backend="of the day")(torch.ones(1))
    assert [counter.frame_count for counter in counters] == [1, 1]


def test_options_that_cannot_be_compared_share_nothing():
    def backend(gm, example_inputs, options):
        assert options == {"passes": ["fuse"]}
        return gm.forward

    for _ in range(2):
        stator.compile(double, backend=backend, options={"passes": ["fuse"]})(torch.ones(1))
    assert graphs() == 2


def test_a_function_compiled_in_a_loop():
    kept = []
    for n in range(20):
        scale = torch.tensor(float(n))
        kept.append(stator.compile(lambda x, scale=scale: x * scale, backend="eager"))
        assert kept[-1](torch.ones(1)).item() == n
    assert graphs() == 1


AGAIN = {
    "function": lambda backend: stator.compile(double, backend=backend),
    "lambda": lambda backend: stator.compile(lambda x: x * 2, backend=backend),
    "module": lambda backend: stator.compile(Block(0), backend=backend),
    "in place": lambda backend: in_place(Block(0), backend=backend),
}


@pytest.mark.parametrize("what", AGAIN)
def test_what_is_compiled_anew_at_each_call_is_traced_once(what):
    backend = CompileCounter()
    stator.install()
    try:
        for _ in range(5):
            AGAIN[what](backend)(torch.ones(2, 4))
            gc.collect(1)
    finally:
        stator.uninstall()
    assert backend.frame_count == 1


def region_of_a_lambda(n):
    call = stator.compile(eval(f"lambda x: x * {n}"), backend="eager")
    assert call(torch.ones(1)).item() == n
    return weakref.ref(call._stator_region)


def test_so_many_regions_are_kept_past_their_end(monkeypatch):
    monkeypatch.setattr(kept, "_MOST", 3)
    regions = [region_of_a_lambda(n) for n in range(9)]
    gc.collect(1)
    assert [region() is not None for region in regions] == [False] * 6 + [True] * 3


def test_a_region_past_its_end_is_kept_till_the_next_full_collection():
    regions = [region_of_a_lambda(n) for n in range(3)]
    gc.collect(1)
    assert all(region() is not None for region in regions)
    gc.collect()
    assert all(region() is None for region in regions)


def test_a_reset_lets_go_of_regions_past_their_end(monkeypatch):
    monkeypatch.setattr(collector, "_FULL", 3)  # there is no such collection
    regions = [region_of_a_lambda(n) for n in range(3)]
    gc.collect()
    assert all(region() is not None for region in regions)
    stator.reset()
    gc.collect()
    assert all(region() is None for region in regions)


def trained_tensors():
    model, scale = Block(0), torch.ones(4)
    call = stator.compile(lambda x: model(x) * scale, backend="eager")
    call(torch.ones(2, 4)).sum().backward()
    return [weakref.ref(tensor) for tensor in (*model.parameters(), scale)]


def test_tensors_go_with_what_compile_gave():
    gc.collect()
    gc.disable()
    try:
        assert all(tensor() is None for tensor in trained_tensors())
    finally:
        gc.enable()


def test_what_differs_is_traced_again():
    def of(n):
        return stator.compile(lambda x: x * n if n % 2 else x + n, backend="eager")

    for n in (1, 2, 3, 1, 2):
        x = torch.ones(1)
        assert of(n)(x).item() == (n if n % 2 else 1 + n)


def test_no_call_uses_up_the_limit_of_another():
    def act(x, text):
        return x + len(text), text

    first = stator.compile(act, backend="eager", recompile_limit=2)
    second = stator.compile(act, backend="eager", recompile_limit=2)
    x = torch.ones(1)
    for text in ("a", "bb", "ccc", "dddd"):
        first(x, text)
    assert any(brk.code == "SB0501" for brk in stator.stats().breaks)
    before = graphs()
    assert before == 2
    second(x, "ccc")
    assert graphs() == before + 1
    second(x, "a")  # the first one's
    assert graphs() == before + 1


def test_the_rest_of_a_frame_is_compiled_for_the_call_that_it_belongs_to():
    blocks = [BreakingBlock(i) for i in range(2)]
    calls = [stator.compile(block, backend="eager") for block in blocks]
    for call in calls:
        call(torch.ones(2, 4))
    names = [{code.co_name for code in call._stator_region.codes()} for call in calls]
    assert names[0] == names[1]
    del calls[0], call
    torch.testing.assert_close(calls[0](torch.ones(3, 4)), blocks[1](torch.ones(3, 4)))


def test_sizes_that_vary_are_known_to_all():
    first, second = (stator.compile(double, backend="eager") for _ in range(2))
    first(torch.ones(2))
    second(torch.ones(3))
    first(torch.ones(4))
    second(torch.ones(5))
    assert graphs() == 2


def test_nothing_compiled_is_found_after_a_reset():
    calls = [stator.compile(double, backend="eager") for _ in range(2)]
    calls[0](torch.ones(1))
    stator.reset()
    calls[1](torch.ones(1))
    assert graphs() == 1


def test_what_is_compiled_serves_where_nothing_may_be():
    stator.compile(double, backend="eager")(torch.ones(1))
    other = stator.compile(double, backend="eager")
    with stator.set_stance("fail_on_recompile"):
        assert other(torch.ones(1)).item() == 2
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            other(torch.ones(2, 2))


def test_hits_of_a_shared_entry_count_once():
    before = stator.stats()
    for _ in range(3):
        call = stator.compile(double, backend="eager")
        call(torch.ones(1))
    kept = [call, stator.compile(double, backend="eager")]
    for call in kept:
        call(torch.ones(1))
    assert stator.stats().diff(before).cache_hits <= 5


def test_a_break_everywhere_is_still_one_everywhere():
    def act(x):
        y = x + 1
        return [y, y * 2]

    assert stator.testing.break_everywhere(act, (torch.ones(2),)) > 5
    stator.compile(act, backend="eager")(torch.ones(2))
    assert stator.testing.break_everywhere(act, (torch.ones(2),)) > 5
