"""Graphs of a DDP's forward pass go to the backend in pieces: which, and that nothing else changes."""

import copy

import pytest
import torch
import torch._dynamo.config
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import stator
from stator.backends import lookup_backend

KILO = 1 / 1024  # of a bucket_cap_mb
WIDTH = 16  # a Linear of this width has 1,088 bytes


@pytest.fixture(autouse=True, scope="module")
def group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Layers(nn.Module):
    def __init__(self, count=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(count))

    def forward(self, x):
        for layer in self.layers:
            x = self.step(layer, x)
        return x

    def step(self, layer, x):
        return torch.tanh(layer(x))


class Dropping(Layers):
    def step(self, layer, x):
        return F.dropout(layer(x), 0.5)


class Tied(Layers):
    def __init__(self):
        super().__init__()
        self.layers[3].weight = self.layers[0].weight


class Residual(Layers):
    """What crosses was written in place, and is read by the block after."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in range(4))

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms, strict=True):
            y = norm(layer(x))
            y += x
            x = F.relu(y, inplace=True)
        return x


class Viewing(Layers):
    """A tensor and a view of it cross."""

    def step(self, layer, x):
        y = layer(x)
        return y.view(-1, 2, WIDTH // 2).flip(1).reshape(-1, WIDTH) + y


class WritingFar(Layers):
    """Memory made by the first layer is written after the last."""

    def forward(self, x):
        first = self.layers[0](x)
        half = first[:, : WIDTH // 2]
        y = first * 1
        for layer in self.layers[1:]:
            y = torch.tanh(layer(y))
        half.add_(1)
        return y + first


class WithoutGrad(Layers):
    def step(self, layer, x):
        with torch.no_grad():
            scale = x.abs().mean()
        return torch.tanh(layer(x)) / (1 + scale)


class Autocast(Layers):
    def step(self, layer, x):
        with torch.autocast("cpu", torch.bfloat16):
            y = layer(x)
        return torch.tanh(y.float())


class Checkpointed(Layers):
    def step(self, layer, x):
        return torch.utils.checkpoint.checkpoint(lambda z: torch.tanh(layer(z)), x, use_reentrant=False)


class Branching(Layers):
    def step(self, layer, x):
        return torch.cond(x.sum() > 0, lambda z: layer(z), lambda z: layer(z) * 2, (x,))


class Several(Layers):
    """Several results of each layer are used much later."""

    def forward(self, x):
        parts = []
        for layer in self.layers:
            x, rest = layer(x).chunk(2, -1)
            x = torch.cat([x, x.sin()], -1)
            parts.append(rest)
        return {"x": x, "parts": parts, "rows": x.shape[0], "mean": sum(p.mean() for p in parts)}


class Counting(Layers):
    """A number that only the graph knows crosses."""

    def forward(self, x):
        chosen = torch.nonzero(x[:, 0] < 100).squeeze(-1)
        y = self.layers[0](x)
        for layer in self.layers[1:]:
            y = torch.tanh(layer(y))
        return y[chosen]


class Sizes(Layers):
    """A size that is computed early is used late."""

    def forward(self, x):
        rows = x.shape[0] * 2
        x = torch.cat([x, x])
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x.view(rows // 2, -1) * rows


class Constants(Layers):
    def forward(self, x):
        scale = torch.tensor([1.0, 2.0] * (WIDTH // 2))
        for layer in self.layers:
            x = torch.tanh(layer(x * scale))
        return x * scale


#: each with the number of pieces, with buckets of two layers
MODELS = {
    Layers: 2,
    Dropping: 2,
    Tied: 2,
    Residual: 2,
    Viewing: 2,
    WritingFar: 1,
    WithoutGrad: 2,
    Autocast: 2,
    Checkpointed: 2,
    Branching: 2,
    Several: 2,
    Counting: 1,
    Sizes: 2,
    Constants: 2,
}


class Pieces:
    """A backend that counts what it is handed."""

    def __init__(self, name="aot_eager"):
        self.backend = lookup_backend(name)
        self.count = 0

    def __call__(self, graph, examples):
        self.count += 1
        return self.backend(graph, examples)


def ddp(model, **kwargs):
    return DistributedDataParallel(model, **{"bucket_cap_mb": 2 * KILO, **kwargs})


def flat(made):
    return [t for t in torch.utils._pytree.tree_leaves(made) if isinstance(t, torch.Tensor)]


def step(model, x):
    torch.manual_seed(1)
    for parameter in model.parameters():
        parameter.grad = None
    made = model(x)
    sum(t.float().pow(2).sum() for t in flat(made) if t.requires_grad).backward()
    return flat(made), [p.grad for p in model.parameters()], list(model.buffers())


def compare(plain, compiled, rows):
    x = torch.randn(rows, WIDTH)
    torch.testing.assert_close(step(compiled, x.clone()), step(plain, x.clone()), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_results_and_gradients_are_those_of_eager(model):
    plain, backend = model(), Pieces()
    compiled = stator.compile(ddp(copy.deepcopy(plain)), backend=backend)
    compare(plain, compiled, 5)
    assert backend.count == MODELS[model]
    for rows in (5, 3, 8):
        compare(plain, compiled, rows)


@pytest.mark.parametrize("model", [Layers, Several, Residual], ids=lambda m: m.__name__)
def test_with_inductor(model):
    plain = model()
    compiled = stator.compile(ddp(copy.deepcopy(plain)), backend="inductor")
    for rows in (5, 3):
        compare(plain, compiled, rows)


def test_buckets_have_the_sizes_that_ddp_gives_them():
    for megabytes, count in ((1 * KILO, 4), (3 * KILO, 2), (5 * KILO, 1), (25, 1)):
        backend = Pieces()
        compiled = stator.compile(ddp(Layers(), bucket_cap_mb=megabytes), backend=backend)
        compiled(torch.randn(2, WIDTH))
        assert backend.count == count, megabytes


def test_parameters_that_ddp_ignores_do_not_count():
    model, backend = Layers(), Pieces()
    names = [name for name, _ in model.named_parameters() if not name.startswith("layers.0")]
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, names)
    stator.compile(ddp(model, bucket_cap_mb=1 * KILO), backend=backend)(torch.randn(2, WIDTH))
    assert backend.count == 1


def test_parameters_that_are_frozen_do_not_count():
    model, backend = Layers(), Pieces()
    model.layers[:3].requires_grad_(False)
    stator.compile(ddp(model, bucket_cap_mb=1 * KILO), backend=backend)(torch.randn(2, WIDTH))
    assert backend.count == 1


def test_outside_of_ddp_a_graph_is_whole():
    model, backend = Layers(), Pieces()
    compiled = stator.compile(model, backend=backend)
    compiled(torch.randn(2, WIDTH))
    assert backend.count == 1
    ddp(compiled)(torch.randn(2, WIDTH))
    assert backend.count == 3
    ddp(compiled, bucket_cap_mb=1 * KILO)(torch.randn(2, WIDTH))
    assert backend.count == 7
    assert "DDP" in stator.stats().recompile_log[0].reason


def test_without_gradients_a_graph_is_whole():
    backend = Pieces()
    with torch.no_grad():
        stator.compile(ddp(Layers()), backend=backend)(torch.randn(2, WIDTH))
    assert backend.count == 1


@pytest.mark.parametrize(("mode", "count"), [(True, 2), ("ddp_optimizer", 2), (False, 1), ("no_optimization", 1)])
def test_the_option_of_torchs(mode, count):
    backend = Pieces()
    with torch._dynamo.config.patch(optimize_ddp=mode):
        stator.compile(ddp(Layers()), backend=backend)(torch.randn(2, WIDTH))
    assert backend.count == count


def test_gradients_are_sent_while_others_are_computed():
    """Of what happens in a backward pass: P is the backward pass of a piece, B a bucket that is sent."""
    from functorch.compile import aot_module_simplified, make_boxed_func

    happened = []

    def backend(graph, examples):
        def backward(gm, examples):
            def run(*args):
                happened.append("P")
                return gm(*args)

            return make_boxed_func(run)

        forward = lambda gm, examples: make_boxed_func(gm.forward)  # noqa: E731
        return aot_module_simplified(graph, examples, fw_compiler=forward, bw_compiler=backward)

    def sent(state, bucket):
        happened.append("B")
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    orders = {}
    for split in (True, False):
        model = ddp(Layers(6), bucket_cap_mb=2 * KILO)
        model.register_comm_hook(None, sent)
        compiled = stator.compile(model, backend=backend, options={"optimize_ddp": split})
        for _ in range(3):  # DDP arranges its buckets after the first
            happened.clear()
            step(compiled, torch.randn(4, WIDTH))
        orders[split] = "".join(happened)
    assert orders[True].startswith("PBPBPB")
    assert orders[False].startswith("PBB")
