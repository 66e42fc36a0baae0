"""`nested_compile_region`: what a marked function computes is one graph, shared by all calls that are alike."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.invoke_subgraph import NestedCompileRegionOptions, mark_compile_region
from torch.compiler import nested_compile_region

import stator
from stator.backends.registry import lookup_backend
from tests.pytorch.gradients import BACKENDS, alike, each_once
from tests.pytorch.higher_order.test_loops import plain_rows, program, rows

backends = pytest.mark.parametrize("backend", BACKENDS)


@nested_compile_region
def scaled(x: Any, w: Any) -> Any:
    return (x * w).sin()


@nested_compile_region
def several(x: Any, w: Any) -> Any:
    top, _ = x.max(1)
    return {"sum": (x * w).sum(0), "top": [top, x.argmax()], "size": x.shape[0]}


@nested_compile_region
def sized(x: Any, w: Any) -> Any:
    return x * x.shape[0] * 2 + w


@nested_compile_region
def outer(x: Any, w: Any) -> Any:
    return scaled(scaled(x, w), w) + 1


def mixed(x: Any, w: Any) -> Any:
    return outer(x, w) + scaled(x, w)


@nested_compile_region
def in_place(x: Any, w: Any) -> Any:
    return (x * w).add_(1).relu_()


@nested_compile_region
def chosen(x: Any, w: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x * w, lambda x: x - w, (x,))


def repeated(block: Any) -> Any:
    def run(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = block(x, w)
        return x * 2

    return run


class Layers(nn.Module):
    """Equal layers with parameters of their own."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = self.block(layer, x)
        return x

    @nested_compile_region
    def block(self, layer: Any, x: Any) -> Any:
        return torch.relu(layer(x)) + x


def layers() -> Any:
    model = Layers()
    return model, list(model.parameters())


#: the program, and how many graphs there are, and calls of them
CAPTURED: dict[str, tuple[Any, int, int]] = {
    "once": (program(scaled), 1, 1),
    "three times": (program(repeated(scaled)), 1, 3),
    "structures": (program(lambda x, w: several(x * 2, w)), 1, 1),
    "captured": (program(lambda x, w: nested_compile_region(lambda x: x * w)(x)), 1, 1),
    "sizes inside": (program(repeated(sized)), 1, 3),
    "parameters": (layers, 1, 4),
    "regions in regions": (program(repeated(outer)), 2, 5),
    "inside and outside": (program(mixed), 2, 4),
    "writes to what it makes": (program(repeated(in_place)), 1, 3),
    "cond in a region": (program(chosen), 1, 1),
}


@pytest.mark.parametrize(("inputs", "backend"), each_once(plain_rows, rows))
@pytest.mark.parametrize("name", CAPTURED)
def test_calls_are_graphs(name: str, inputs: Any, backend: str) -> None:
    alike(CAPTURED[name][0], inputs, backend=backend, calls=1, breaks=0, tolerance=1e-5)


class Seen:
    """A backend that compiles as aot_eager does, and remembers the graphs."""

    traces_backward = True
    name = "seen"

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, inputs: Any) -> Any:
        self.graphs.append(gm)
        return lookup_backend("aot_eager")(gm, inputs)

    def calls(self) -> list[tuple[str, str]]:
        """The graph and the name of each call in the outermost graph, and in the graphs of these."""
        modules = [module for gm in self.graphs for module in gm.modules() if isinstance(module, torch.fx.GraphModule)]
        nodes = [node for module in modules for node in module.graph.nodes]
        return [
            (node.args[0].target, node.args[1])
            for node in nodes
            if node.target is torch.ops.higher_order.invoke_subgraph
        ]


@pytest.mark.parametrize("name", CAPTURED)
def test_equal_calls_share_a_graph(name: str) -> None:
    make, graphs, calls = CAPTURED[name]
    seen = Seen()
    stats = alike(make, rows, backend=seen, sizes=(3,), calls=1, tolerance=1e-5)
    assert stats.graphs == 1
    found = seen.calls()
    assert len(found) == calls and len(set(found)) == graphs
    assert all(target == name for target, name in found)


seen: list[Any] = []


def marked(make: Any) -> Any:
    """A program that calls a function as a region twice."""

    def built() -> Any:
        seen.clear()
        w = torch.tensor([1.0, 2.0, 0.5], requires_grad=True)
        region = nested_compile_region(lambda x: make(x, w))
        return lambda x: region(region(x * 2)), [w]

    return built


def without_gradients(x: Any, w: Any) -> Any:
    with torch.no_grad():
        y = x * 2
    return y * x * w


def cast(x: Any, w: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (x @ x.t()).float() @ x * w


def checkpointed(x: Any, w: Any) -> Any:
    return torch.utils.checkpoint.checkpoint(lambda x: (x * w).sin(), x, use_reentrant=False)


def in_cond(x: Any, w: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: scaled(x, w), lambda x: x - w, (x,))


class Doubling(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 3


#: there is more to them than computing
INLINED: dict[str, Any] = {
    "random numbers": lambda x, w: torch.dropout(x * w, 0.5, True),
    "an object around is changed": lambda x, w: (seen.append(len(seen)), x * w * len(seen))[1],
    "a write to what it is given": lambda x, w: x.mul_(w).sin(),
    "a view of what it is given": lambda x, w: x.t(),
    "what it is given": lambda x, w: x,
    "two views of one": lambda x, w: sum((x * w).chunk(3)) + (x * w)[0],
    "a number": lambda x, w: x * int((x * 0).sum().item()) + w,
    "without gradients": without_gradients,
    "autocast": cast,
    "a checkpoint": checkpointed,
    "a Function": lambda x, w: Doubling.apply(x * w),
    "a hook": lambda x, w: ((y := x * w).register_hook(lambda g: g * 2), y + 1)[1],
    "a break": lambda x, w: x * w if x.sum() > 0 else x,
    "in cond": in_cond,
}


@backends
@pytest.mark.parametrize("name", INLINED)
def test_calls_that_do_more_than_compute(name: str, backend: str) -> None:
    alike(marked(INLINED[name]), rows, backend=backend, calls=1, sizes=(3,), tolerance=1e-5)


def test_options_of_the_mark_are_on_the_call() -> None:
    options = NestedCompileRegionOptions()
    region = mark_compile_region(lambda x: x.sin(), options=options)
    backend = Seen()
    stator.compile(region, backend=backend, fullgraph=True)(torch.ones(3))
    (call,) = [n for n in backend.graphs[0].graph.nodes if n.target is torch.ops.higher_order.invoke_subgraph]
    assert call.meta["custom"]["nested_region_config"] is options
    assert getattr(backend.graphs[0], call.args[1]).meta["nested_region_config"] is options


def test_compiled_by_inductor() -> None:
    alike(CAPTURED["parameters"][0], plain_rows, backend="inductor", sizes=(3,), calls=1, breaks=0, tolerance=1e-5)


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_parts_of_a_size_that_varies(backend: str) -> None:
    @nested_compile_region
    def waved(x: Any) -> Any:
        return x.sin()

    def run(x: Any) -> Any:
        return waved(waved(x).narrow(0, 0, x.shape[0] // 2))

    compiled = stator.compile(run, backend=backend, fullgraph=True)
    for size in (8, 6, 9):
        gradients = []
        for function in (run, compiled):
            x = torch.arange(2.0 * size).reshape(size, 2).requires_grad_()
            stator.mark_dynamic(x, 0)
            y = function(x)
            y.sum().backward()
            gradients += [y, x.grad]
        torch.testing.assert_close(gradients[:2], gradients[2:])
