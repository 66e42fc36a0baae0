"""What a backend finds when it asks for the context that it is called in, and for where inputs come from."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch._dynamo.source import AttrSource, LocalSource
from torch._functorch.aot_autograd import aot_module_simplified, make_boxed_func
from torch._guards import CompileContext, TracingContext, detect_fake_mode, tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, StatefulSymbolicContext

import stator
from stator.errors import BackendError
from tests.pytorch.programs import assert_same


def program(x: Any, w: Any) -> Any:
    return torch.relu(x @ w).sum() * x.shape[0]


def operands(rows: int = 2) -> list[Any]:
    return [torch.ones(rows, 3), torch.arange(9.0, requires_grad=True).view(3, 3)]


def compiled_with(look: Any, dynamic: bool | None = None, args: Any = None) -> Any:
    """Compile with a backend that calls `look` with the module and its examples, returns what that returns."""
    found: list[Any] = []

    def backend(gm: Any, examples: Any) -> Any:
        found.append(look(gm, examples))
        return gm.forward

    args = operands() if args is None else args
    compiled = stator.compile(program, backend=backend, dynamic=dynamic)
    assert_same(compiled(*args), program(*args), "result")
    (only,) = found
    return only


def placeholders(gm: Any) -> list[Any]:
    return gm.graph.find_nodes(op="placeholder")  # type: ignore[no-any-return]


@pytest.mark.parametrize("dynamic", [False, True])
def test_there_is_one_mode_and_it_has_symbols(dynamic: bool) -> None:
    def look(gm: Any, examples: Any) -> Any:
        context = TracingContext.get()
        mode = detect_fake_mode(examples)
        assert mode is context.fake_mode is TracingContext.get().fake_mode
        assert isinstance(mode, FakeTensorMode) and mode.shape_env is not None
        settings = mode.shape_env.settings
        assert settings.allow_scalar_outputs and settings.allow_dynamic_output_shape_ops
        return mode.shape_env

    with stator.config.patch(capture_scalar_outputs=False):
        env = compiled_with(look, dynamic)
    assert not env.settings.allow_scalar_outputs  # that is for backends


def test_inputs_have_origins_and_symbolic_contexts() -> None:
    def look(gm: Any, examples: Any) -> Any:
        contexts = TracingContext.get().tensor_to_context
        for node, tensor in zip(placeholders(gm), examples, strict=True):
            origin = node._dynamo_source
            assert type(origin) is LocalSource and origin is node._dynamo_source
            assert type(contexts[tensor]) is StatefulSymbolicContext
            assert contexts[tensor].tensor_source == origin
            assert set(contexts[tensor].dynamic_sizes) == {DimDynamic.STATIC}
        (view,) = [tensor for tensor in examples if tensor._is_view()]
        assert contexts[view].view_base_context.tensor_source == AttrSource(contexts[view].tensor_source, "_base")
        assert len(contexts[view].view_base_context.dynamic_sizes) == 1
        return [node._dynamo_source.name for node in placeholders(gm)]

    names = compiled_with(look)
    assert len(set(names)) == 2


def test_dynamic_inputs_have_the_contexts_that_their_symbols_were_made_with() -> None:
    def look(gm: Any, examples: Any) -> Any:
        contexts = TracingContext.get().tensor_to_context
        return [contexts[tensor].dynamic_sizes for tensor in examples if isinstance(tensor, torch.Tensor)]

    args = operands(4)
    stator.mark_dynamic(args[0], 0)
    assert [DimDynamic.DYNAMIC, DimDynamic.STATIC] in compiled_with(look, args=args)


def test_origins_are_found_by_hasattr_and_nodes_are_nodes() -> None:
    def look(gm: Any, examples: Any) -> None:
        assert gm._param_name_to_source == {} and gm.meta["dynamo_compile_id"] == CompileContext.current_compile_id()
        for node in gm.graph.nodes:
            assert not hasattr(node, "no_such_thing")
            assert hasattr(node, "_dynamo_source") == (node.op == "placeholder")
            assert type(node) is torch.fx.Node

    compiled_with(look)


def test_a_graph_may_be_copied_before_anybody_asks() -> None:
    def look(gm: Any, examples: Any) -> None:
        import copy

        for made in (copy.deepcopy(gm), torch.fx.GraphModule(gm, gm.graph)):
            assert_same(made(*examples), gm(*examples), "copy")

    compiled_with(look)


def test_a_backend_may_patch_the_context() -> None:
    def look(gm: Any, examples: Any) -> None:
        before = TracingContext.get().fake_mode
        with TracingContext.patch(fake_mode=None):
            assert detect_fake_mode() is None
        assert TracingContext.get().fake_mode is before
        TracingContext.get().fake_mode = FakeTensorMode()
        assert detect_fake_mode() is TracingContext.get().fake_mode

    compiled_with(look)


def test_a_mode_that_nobody_asks_for_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    from stator.pytorch import internals

    monkeypatch.setattr(internals, "FakeTensorMode", lambda shape_env: pytest.fail("a mode is made"))
    compiled_with(lambda gm, examples: None)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_backend_may_compile_when_the_graph_is_first_called(dynamic: bool) -> None:
    def backend(gm: Any, examples: Any) -> Any:
        context, made = TracingContext.get(), []

        def run(*args: Any) -> Any:
            if not made:
                with tracing(context):
                    made.append(aot_module_simplified(gm, examples, lambda graph, _: make_boxed_func(graph.forward)))
            return made[0](*args)

        return run

    compiled = stator.compile(program, backend=backend, dynamic=dynamic, fullgraph=True)
    for _ in range(2):
        ours, theirs = operands(), operands()
        assert_same(compiled(*ours), program(*theirs), "result")
        assert_same(
            torch.autograd.grad(compiled(*ours), ours[1]), torch.autograd.grad(program(*theirs), theirs[1]), "gradient"
        )


@pytest.mark.parametrize("asks", [False, True])
def test_a_context_that_is_kept_does_not_keep_the_trace(asks: bool) -> None:
    kept: list[Any] = []

    def function(x: Any) -> Any:
        return x + 1

    def backend(gm: Any, examples: Any) -> Any:
        kept.append(TracingContext.get())
        if asks:
            assert kept[0].fake_mode is not None and kept[0].tensor_to_context is not None
        return lambda *args: gm(*args)

    x = torch.ones(3)
    stator.compile(function, backend=backend)(x)
    dies = weakref.ref(x)
    del x
    stator.reset()
    gc.collect()
    assert dies() is None
    assert kept[0].fake_mode.shape_env is not None
    assert len(kept[0].tensor_to_context) == 0


def test_a_backend_that_fails_leaves_no_context() -> None:
    kept: list[Any] = []

    def backend(gm: Any, examples: Any) -> Any:
        kept.append(TracingContext.get())
        raise ValueError("no")

    with pytest.raises(BackendError, match="ValueError: no"):
        stator.compile(program, backend=backend)(*operands())
    assert TracingContext.try_get() is None and CompileContext.try_get() is None
    assert isinstance(kept[0].fake_mode, FakeTensorMode)
