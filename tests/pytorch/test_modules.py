"""Modules: calls, members, hooks, state."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.programs import agree, assert_same


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return self.linear(x) * self.calls


def x(*shape: int) -> Any:
    return torch.randn(*(shape or (2, 4)))


def layers(n: int) -> nn.Sequential:
    return nn.Sequential(*[nn.Linear(4, 4) for _ in range(n)])


def check(module_class: Any, *args: Any, **expected: Any) -> Any:
    """A module class and the shapes of its inputs."""
    return agree(lambda: (module_class(), tuple(x(*shape) for shape in (args or ((2, 4),)))), **expected)


# -- the compiled module --------------------------------------------------------------------------------------------


def test_compiled_module_is_the_module() -> None:
    module = Counting()
    compiled = stator.compile(module, backend="eager")
    assert isinstance(compiled, Counting)
    assert compiled.__class__ is Counting
    assert list(compiled.state_dict()) == list(module.state_dict())
    assert "_orig_mod" not in compiled.__dict__
    assert compiled._orig_mod is module
    compiled.calls = 5
    assert module.calls == 5
    assert compiled.eval() is compiled
    assert not module.training
    compiled.load_state_dict({k: torch.zeros_like(v) for k, v in module.state_dict().items()})
    assert module.linear.weight.abs().sum() == 0
    assert compiled.to(torch.float64).linear.weight.dtype is torch.float64
    assert repr(compiled) == repr(module)
    assert dir(compiled) == dir(module) or set(dir(module)) <= set(dir(compiled))


def test_compiled_module_runs_no_hook_of_class_creation() -> None:
    made = []

    class Registered(nn.Module):
        def __init_subclass__(cls, **kwargs: Any) -> None:
            made.append(cls)

    stator.compile(Registered(), backend="eager")
    assert made == []


def test_copies_of_a_compiled_module() -> None:
    compiled = stator.compile(Counting(), backend="eager")
    copied = copy.deepcopy(compiled)
    assert copied._orig_mod is not compiled._orig_mod
    assert copied.linear.weight is not compiled.linear.weight
    copied(x())
    assert (copied.calls, compiled.calls) == (1, 0)
    restored = pickle.loads(pickle.dumps(compiled))
    assert type(restored) is type(compiled)
    given = x()
    assert torch.equal(restored(given), compiled(given))


def test_compiled_module_keeps_nothing_alive() -> None:
    module = Counting()
    compiled = stator.compile(module, backend="eager")
    watch = weakref.ref(module)
    gc.disable()
    try:
        del module, compiled
        assert watch() is None
    finally:
        gc.enable()


def test_compiled_module_as_part_of_another_module() -> None:
    def make() -> Any:
        outer = layers(2)
        outer[1] = stator.compile(outer[1], backend="eager")
        return outer, (x(),)

    agree(make, breaks=None)


# -- calls ----------------------------------------------------------------------------------------------------------


def test_state_changes_on_each_call() -> None:
    check(Counting, calls=3)


def test_identical_layers_share_one_entry() -> None:
    stack = layers(3)
    compiled = [stator.compile(layer, backend="eager") for layer in stack]
    stator.reset()

    def each(layer: Any, y: Any) -> Any:
        return layer(y)

    run = stator.compile(each, backend="eager")
    for layer in stack:
        run(layer, x())
    assert stator.stats().frames == 1
    assert len(compiled) == 3


class Containers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.items = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.named = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ReLU()})
        self.scales = nn.ParameterList(nn.Parameter(torch.randn(4)) for _ in range(2))
        self.named_scales = nn.ParameterDict({"p": nn.Parameter(torch.randn(4))})
        self.sequence = nn.Sequential(OrderedDict(first=nn.Linear(4, 4), second=nn.Tanh()))

    def forward(self, y: Any) -> Any:
        for i, item in enumerate(self.items):
            y = item(y) + i
        for layer in self.items[1:]:
            y = layer(y)
        for name, layer in self.named.items():
            y = layer(y) if name != "c" else y
        for scale in self.scales:
            y = y * scale
        y = y + self.named_scales["p"] * len(self.items)
        if "a" in self.named and hasattr(self, "sequence"):
            y = self.sequence(y)
        return self.sequence[0](y), self.items[-1](y)


def test_containers() -> None:
    check(Containers, grad=True)


class Members(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = layers(2)
        self.register_buffer("scale", torch.ones(4))
        self.nothing = None
        self.register_parameter("absent", None)

    def forward(self, y: Any) -> Any:
        names = [n for n, _ in self.named_parameters()] + [n for n, _ in self.named_buffers()]
        names += [n for n, _ in self.named_modules()] + [type(m).__name__ for m in self.children()]
        total = sum(p.sum() for p in self.parameters())
        if self.absent is None and self.nothing is None:
            y = y * self.scale
        return y + total, names, list(self.state_dict()), self.get_submodule("layers.1").in_features


def test_members() -> None:
    check(Members)


class Hooked(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.linear.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
        self.linear.register_forward_hook(lambda m, args, out: out + args[0])
        self.linear.register_forward_hook(lambda m, args, kwargs, out: None, with_kwargs=True)
        self.register_forward_hook(lambda m, args, out: (out, args))


def test_forward_hooks() -> None:
    check(Hooked, grad=True)


def test_hook_added_and_removed_later() -> None:
    module = Counting()
    compiled = stator.compile(module, backend="eager")
    y = x()
    plain = compiled(y) / module.calls
    handle = module.linear.register_forward_hook(lambda m, args, out: out * 3)
    assert torch.allclose(compiled(y) / module.calls, plain * 3)
    handle.remove()
    assert torch.allclose(compiled(y) / module.calls, plain)


class BackwardHooked(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.linear.register_full_backward_hook(lambda m, gi, go: self.seen.append(len(gi)))


def test_backward_hooks() -> None:
    check(BackwardHooked, grad=True, breaks=None)


class Assigning(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("state", torch.zeros(2, 4))
        self.history: list[Any] = []
        self.cache = None

    def forward(self, y: Any) -> Any:
        self.state = self.state + y
        self.state.mul_(0.5)
        self.history.append(y.shape[0])
        if self.cache is None:
            self.cache = self.linear(y).detach()
        self.last = y
        if not hasattr(self, "lazily"):
            self.register_buffer("lazily", torch.ones(4))
        return self.state * self.lazily + self.cache


def test_assignments() -> None:
    check(Assigning, breaks=None, calls=3)


class NewParameter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self, y: Any) -> Any:
        if y.shape[0] == 2 and not hasattr(self, "extra"):
            self.extra = nn.Parameter(torch.ones(4))
            self.layer = nn.Linear(4, 4)
        return self.layer(y * self.weight * self.extra)


def test_parameters_made_inside() -> None:
    check(NewParameter, breaks=None, grad=True)


class Deleting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.temporary = 1

    def forward(self, y: Any) -> Any:
        if hasattr(self, "temporary"):
            del self.temporary
        return self.linear(y)


def test_deleted_attribute() -> None:
    check(Deleting)


def test_error_of_missing_attribute() -> None:
    class Wrong(nn.Module):
        def forward(self, y: Any) -> Any:
            return y + self.not_there

    check(Wrong)


# -- layers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.BatchNorm1d(4), (3, 4)),
        (lambda: nn.BatchNorm1d(4, track_running_stats=False), (3, 4)),
        (lambda: nn.BatchNorm1d(4).eval(), (3, 4)),
        (lambda: nn.InstanceNorm1d(4, track_running_stats=True), (3, 4, 5)),
        (lambda: nn.Dropout(0.5), (3, 4)),
        (lambda: nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 4), nn.Dropout1d(0.2)), (3, 4)),
        (lambda: nn.LayerNorm(4), (3, 4)),
        (lambda: nn.GroupNorm(2, 4), (3, 4, 5)),
        (lambda: nn.RMSNorm(4), (3, 4)),
        (lambda: nn.Conv1d(4, 8, 3, padding=1), (3, 4, 5)),
        (lambda: nn.Conv1d(4, 8, 3, padding="same", padding_mode="circular"), (3, 4, 5)),
        (lambda: nn.ConvTranspose1d(4, 8, 3), (3, 4, 5)),
        (
            lambda: nn.Sequential(nn.Conv2d(4, 8, 3), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
            (3, 4, 9, 9),
        ),
        (lambda: nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True), (3, 5, 4)),
        (lambda: nn.GRU(4, 6, 2, dropout=0.3), (3, 5, 4)),
        (lambda: nn.RNN(4, 6), (3, 5, 4)),
        (lambda: nn.LSTMCell(4, 6), (3, 4)),
        (lambda: nn.GRUCell(4, 6), (3, 4)),
        (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), (3, 5, 4)),
        (lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(), (3, 5, 4)),
        (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2), (3, 5, 4)),
        (lambda: nn.PReLU(), (3, 4)),
        (lambda: nn.Upsample(scale_factor=2), (3, 4, 5)),
        (lambda: nn.Bilinear(4, 4, 2), None),
    ],
)
def test_layers(make: Any, shape: Any) -> None:
    inputs = (lambda: (x(3, 4), x(3, 4))) if shape is None else (lambda: (x(*shape).requires_grad_(),))
    agree(lambda: (make(), inputs()), grad=True)


def test_a_layer_that_warns_is_left_to_eager() -> None:
    agree(lambda: (nn.LSTM(4, 6, proj_size=3), (x(3, 5, 4).requires_grad_(),)), grad=True, breaks=1)


def test_batch_norm_with_a_moving_average() -> None:
    agree(lambda: (nn.BatchNorm1d(4, momentum=None), (x(3, 4),)), grad=True, breaks=None)


def test_embedding() -> None:
    class Embedding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 4, padding_idx=0, max_norm=1.0)
            self.bag = nn.EmbeddingBag(10, 4)

        def forward(self, ids: Any) -> Any:
            return self.table(ids), self.bag(ids)

    agree(lambda: (Embedding(), (torch.tensor([[1, 2], [0, 3]]),)), breaks=None)


def test_attention() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, y: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(y.shape[1])
            return self.attention(y, y, y, attn_mask=mask, need_weights=True)

    check(Attention, (2, 3, 4))


def test_lazy_linear() -> None:
    agree(lambda: (nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyBatchNorm1d()), (x(3, 4),)), breaks=None, calls=3)


def test_packed_sequences() -> None:
    class Packed(nn.Module):
        def __init__(self, kind: Any) -> None:
            super().__init__()
            self.layer = kind(4, 6, batch_first=True)

        def forward(self, y: Any, lengths: Any) -> Any:
            packed = nn.utils.rnn.pack_padded_sequence(y, lengths, batch_first=True, enforce_sorted=False)
            out, state = self.layer(packed)
            return nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0], state

    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        compiled = stator.compile(module := Packed(kind), backend="eager")
        for n in (3, 5, 7):
            y, lengths = x(n, 6, 4), torch.randint(1, 6, (n,))
            assert_same(compiled(y, lengths), module(y, lengths), f"{kind.__name__} of {n}")


def test_sizes_in_a_tensor() -> None:
    def run(y: Any, where: Any) -> Any:
        return torch.tensor_split(y * 2, where), (y + 1).tensor_split(where)

    agree(lambda: (run, (x(6, 4), torch.tensor([2, 3]))), breaks=2)


SPLITS: dict[str, Any] = {
    "places": lambda y: torch.tensor_split(y * 2, torch.tensor([1, -1])),
    "a count": lambda y: (y + 1).tensor_split(torch.tensor(3), dim=1),
    "by name": lambda y: torch.tensor_split(y, tensor_indices_or_sections=torch.tensor([2]), dim=1),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", SPLITS)
def test_known_sizes_in_a_tensor(name: str, backend: str) -> None:
    compiled = stator.compile(SPLITS[name], backend=backend, fullgraph=True)
    for n in (4, 6, 7):
        outcomes = []
        for function in (compiled, SPLITS[name]):
            torch.manual_seed(n)
            y = torch.randn(n, 4, requires_grad=True)
            parts = function(y)
            (parts[0].sum() * 3 + parts[-1].sum()).backward()
            outcomes.append([*parts, y.grad])
        assert_same(*outcomes, name)


@pytest.mark.parametrize("sections", [torch.tensor([1.0]), torch.tensor(0), torch.tensor([[1]])])
def test_sizes_in_a_tensor_that_are_refused(sections: Any) -> None:
    def run(y: Any) -> Any:
        try:
            return torch.tensor_split(y, torch.tensor(sections.tolist()))
        except RuntimeError as e:
            return str(e)

    agree(lambda: (run, (x(6, 4),)), breaks=None)


def test_the_source_of_a_graph_is_forgotten_with_it() -> None:
    import gc
    import linecache

    from torch.fx import graph_module as fx

    def one_round() -> None:
        stator.compile(lambda x: x.relu() + 1, backend="eager")(torch.ones(2))
        stator.reset()

    one_round()
    gc.collect()
    before = set(fx._loader.eval_cache), set(linecache.cache)
    for _ in range(5):
        one_round()
    gc.collect()
    assert not set(fx._loader.eval_cache) - before[0]
    assert not set(linecache.cache) - before[1]  # graphs of before may have gone meanwhile


class Called(torch.nn.Module):
    def forward(self, x):
        return x + 1


class CalledOtherwise(torch.nn.Module):
    def forward(self, x):
        return x - 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_calls_a_compiled_module_may_be_replaced(backend):
    model = Called()
    compiled = stator.compile(model, backend=backend)
    x = torch.ones(2)
    for replace in (
        lambda: None,
        lambda: setattr(Called, "__call__", lambda self, x: x + 100),
        lambda: delattr(Called, "__call__"),
        lambda: setattr(model, "__class__", CalledOtherwise),
    ):
        replace()
        for _ in range(3):
            assert compiled(x).tolist() == model(x).tolist()
