"""Operators that call their function once, or have none: wrap, hints_wrapper, strict_mode, print, out_dtype …"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops import wrap as wraps
from torch._higher_order_ops._invoke_quant import InvokeQuant
from torch._higher_order_ops.foreach_map import foreach_map
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.out_dtype import out_dtype
from torch._higher_order_ops.strict_mode import strict_mode

import stator
from tests.pytorch.gradients import BACKENDS, alike
from tests.pytorch.higher_order.test_loops import plain_rows, program, rows

backends = pytest.mark.parametrize("backend", BACKENDS)


def twice(function: Any) -> Any:
    return lambda *args: function(*args) * 2


CAPTURED: dict[str, Any] = {
    "wrap": lambda x, w: wraps.wrap(lambda x: x * w, x),
    "without gradients": lambda x, w: wraps.wrap_with_set_grad_enabled(False, lambda x: x * w, x) + x,
    "autocast": lambda x, w: wraps.wrap_with_autocast("cpu", torch.bfloat16, True, None, lambda x: x @ x.t(), x),
    "what a wrapper makes": lambda x, w: wraps.dynamo_bypassing_wrapper(
        lambda f: lambda *a: f(*a) * 2, lambda x: x * w, x
    ),
    "quantised": lambda x, w: InvokeQuant()(lambda x: x.sin() * w, x, scheme="nf4"),
    "a type for the result": lambda x, w: out_dtype(
        torch.ops.aten.mm.default, torch.int32, (x * 10).to(torch.int8), (x * 7).to(torch.int8).t().contiguous()
    ),
}


@backends
@pytest.mark.parametrize("inputs", [plain_rows, rows])
@pytest.mark.parametrize("name", CAPTURED)
def test_functions_are_traced(name: str, inputs: Any, backend: str) -> None:
    alike(program(CAPTURED[name]), inputs, backend=backend, calls=1, breaks=0, tolerance=1e-6)


#: whose operators have no backward pass
KEPT: dict[str, Any] = {
    "hints": lambda x, w: hints_wrapper(lambda x: x.sin() * 2, (x,), {}, hints={"k": 1}),
    "strict": lambda x, w: strict_mode(lambda x: (x.sin(), 3), (x,)),
    "lists": lambda x, w: foreach_map(torch.add, [x, x * 2], [x + 1, x]),
}


@backends
@pytest.mark.parametrize("name", KEPT)
def test_functions_are_graphs(name: str, backend: str) -> None:
    alike(program(KEPT[name]), plain_rows, backend=backend, calls=1, breaks=0, tolerance=1e-6)


@pytest.mark.parametrize("name", ["hints", "strict"])
def test_an_operator_without_a_backward_pass(name: str) -> None:
    alike(program(KEPT[name]), rows, backend="eager", sizes=(3,), breaks=0)
    stats = alike(program(KEPT[name]), rows, backend="aot_eager", sizes=(3,))
    assert "backward pass" in stats.breaks[0].reason


@backends
def test_gradients_through_lists(backend: str) -> None:
    w, x = torch.ones(3, requires_grad=True), rows(3)[0]
    compiled = stator.compile(lambda x: foreach_map(torch.mul, [x, x * w], [w, x]), backend=backend, fullgraph=True)
    sum(t.sum() for t in compiled(x)).backward()
    assert torch.allclose(w.grad, (x + x * x).sum(0))


@backends
def test_print_stays_in_the_graph(backend: str, capsys: Any) -> None:
    def printing(x: Any) -> Any:
        torch._higher_order_ops.print("rows {} of {n}", x.shape[0], n=2)
        y = x + 1
        torch._higher_order_ops.print("{}", y.sum())
        return y

    x = torch.ones(3)
    printing(x)
    expected = capsys.readouterr().out
    compiled = stator.compile(printing, backend=backend, fullgraph=True)
    for _ in range(2):
        compiled(x)
        assert capsys.readouterr().out == expected


def test_print_in_the_programs_order(capsys: Any) -> None:
    def printing(x: Any) -> Any:
        print("first")
        torch._higher_order_ops.print("second {}", x)
        print("third")
        return x + 1

    stator.compile(printing, backend="eager")(torch.ones(1))
    assert capsys.readouterr().out.split("\n") == ["first", "second tensor([1.])", "third", ""]


def test_assembly_is_left_to_the_backend() -> None:
    asm = pytest.importorskip("torch._higher_order_ops.inline_asm_elementwise").inline_asm_elementwise
    seen: list[Any] = []

    def backend(gm: Any, inputs: Any) -> Any:
        seen.extend(node.target for node in gm.graph.nodes)
        return lambda *args: args

    program = lambda x: asm(x, asm_str="mov.b32 $0, $1;", constraints="=r,r", dtype=torch.float32)  # noqa: E731
    stator.compile(program, backend=backend, fullgraph=True)(torch.ones(3))
    assert torch.ops.higher_order.inline_asm_elementwise in seen


def test_annotations_are_on_the_nodes() -> None:
    seen: dict[str, Any] = {}

    def backend(gm: Any, inputs: Any) -> Any:
        seen.update({node.name: node.meta.get("custom") for node in gm.graph.nodes if node.op == "call_method"})
        return gm.forward

    def program(x: Any) -> Any:
        with torch.fx.traceback.annotate({"part": 1}):
            y = x.sin()
            with torch.fx.traceback.annotate({"inner": True}):
                y = y.cos()
        return y.exp()

    x = torch.ones(3)
    assert torch.equal(stator.compile(program, backend=backend, fullgraph=True)(x), program(x))
    assert seen == {"sin": {"part": 1}, "cos": {"part": 1, "inner": True}, "exp": None}
    assert "custom" not in torch.fx.traceback.current_meta
    alike(lambda: (lambda x: broken_inside(x), []), plain_rows, calls=1)


def broken_inside(x: Any) -> Any:
    with torch.fx.traceback.annotate({"part": 1}):
        y = x.sin() if x.sum() > 0 else x
        return y.cos()


def test_an_operator_without_a_model_is_one_break() -> None:
    from torch._higher_order_ops.flex_attention import flex_attention_backward

    def program(x: Any) -> Any:
        return flex_attention_backward(*[x] * 7, None, None, (), 1.0, {})

    stats = alike(lambda: (program, []), plain_rows, sizes=(3,), calls=1)
    assert "torch.ops.higher_order.flex_attention_backward" in stats.breaks[0].reason
