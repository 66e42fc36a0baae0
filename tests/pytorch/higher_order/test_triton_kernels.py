"""Launches of Triton kernels: one operation each, with the arguments that torch's operator wants.

No GPU is needed: where a graph runs, the operator is performed by a stand-in, which does with the tensors and numbers
that it is given what the kernel would do.
"""

import pytest
import torch

import stator

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")
wrap = pytest.importorskip("torch._higher_order_ops.triton_kernel_wrap")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside) + tl.load(y_ptr + at, mask=inside), mask=inside)


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) + tl.load(y_ptr + at, mask=at < n), mask=at < n)


@triton.heuristics({"BLOCK": lambda args: 64})
@triton.jit
def guessed_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):  # noqa: N803
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) + tl.load(y_ptr + at, mask=at < n), mask=at < n)


class StandIn:
    """Performs the node: as many elements are added as the grid and the block reach."""

    def __init__(self):
        self.launches = []

    def __call__(self, *, kernel_idx, constant_args_idx, grid, tma_descriptor_metadata, kwargs):
        kernel = wrap.kernel_side_table.get_kernel(kernel_idx)
        constants = wrap.kernel_side_table.get_constant_args(constant_args_idx)
        self.launches.append((kernel, grid))
        given = {**kwargs, **constants}
        block = given.get("BLOCK") or kernel.configs[0].kwargs["BLOCK"]
        count = min(given["n"], grid[0][0] * block)
        x, y, out = (given[name].view(-1)[:count] for name in ("x_ptr", "y_ptr", "out_ptr"))
        out.copy_(x + y)

    def backend(self, graph, examples):
        stand_in = self

        class Runner(torch.fx.Interpreter):
            def call_function(self, target, args, kwargs):
                performed = stand_in if target is wrap.triton_kernel_wrapper_mutation else target
                return super().call_function(performed, args, kwargs)

        return Runner(graph).run


def add(x, y):
    out = torch.empty_like(x)
    n = out.numel()
    add_kernel[(triton.cdiv(n, 64),)](x, y, out, n, BLOCK=64)
    return out * 2


def by_function(x, y):
    out = torch.empty_like(x)
    add_kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]), 1)](x, y, out, out.numel(), BLOCK=128)
    return out * 2


def tuned(x, y):
    out = torch.empty_like(x)
    tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, out.numel())
    return out * 2


def by_run(x, y):
    out = torch.empty_like(x)
    add_kernel.run(x, y, out, out.numel(), grid=(triton.cdiv(out.numel(), 64),), warmup=False, BLOCK=64)
    return out * 2


def with_settings(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(out.numel(), 64),)](x, y, out, out.numel(), BLOCK=64, num_warps=8)
    return out * 2


def into_argument(x, y):
    add_kernel[(1,)](y, y, x, 8, 64)
    return x + y


def guessed(x, y):
    out = torch.empty_like(x)
    guessed_kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, out, out.numel())
    return out * 2


PROGRAMS = [add, by_function, tuned, by_run, with_settings, guessed]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_launch_is_one_operation(program):
    stand_in = StandIn()
    compiled = stator.compile(program, backend=stand_in.backend, fullgraph=True)
    for rows in (4, 4, 7, 33):
        x, y = torch.randn(rows, 8), torch.randn(rows, 8)
        torch.testing.assert_close(compiled(x, y), (x + y) * 2)
    assert stator.stats().graphs == 2  # of any number of rows
    assert len(stand_in.launches) == 4


def test_each_configuration_has_a_grid():
    stand_in = StandIn()
    stator.compile(tuned, backend=stand_in.backend, fullgraph=True)(torch.randn(33, 8), torch.randn(33, 8))
    assert stand_in.launches == [(tuned_kernel, [(5, 1, 1), (3, 1, 1)])]


def test_settings_of_the_compiler_are_a_configuration():
    stand_in = StandIn()
    compiled = stator.compile(with_settings, backend=stand_in.backend, fullgraph=True)
    compiled(torch.randn(4, 8), torch.randn(4, 8))
    ((kernel, _),) = stand_in.launches
    assert kernel.fn is add_kernel
    assert kernel.configs[0].num_warps == 8


def test_what_a_kernel_writes_is_no_longer_known():
    def program(x, y):
        out = torch.zeros(8)
        add_kernel[(1,)](x, y, out, 8, BLOCK=64)
        return out + 1, out.sum().item()

    x, y = torch.ones(8), torch.ones(8)
    stand_in = StandIn()
    assert stator.compile(program, backend=stand_in.backend)(x, y)[1] == 16.0
    stand_in = StandIn()
    compiled = stator.compile(into_argument, backend=stand_in.backend, fullgraph=True)
    torch.testing.assert_close(compiled(x, y), torch.full((8,), 3.0))
    torch.testing.assert_close(x, torch.full((8,), 2.0))


def test_another_configuration_is_another_graph(monkeypatch):
    stand_in = StandIn()
    compiled = stator.compile(tuned, backend=stand_in.backend, fullgraph=True)
    x = torch.randn(4, 8)
    compiled(x, x + 0)
    monkeypatch.setattr(tuned_kernel, "configs", [triton.Config({"BLOCK": 32})])
    compiled(x, x + 0)
    assert [grid for _, grid in stand_in.launches] == [[(1, 1, 1), (1, 1, 1)], [(1, 1, 1)]]


def pruned():
    def keep_first(configs, named, **kwargs):
        return configs[:1]

    configs = [triton.Config({"BLOCK": 64})]
    return triton.autotune(configs=configs, key=["n"], prune_configs_by={"early_config_prune": keep_first})(add_kernel)


def hooked():
    configs = [triton.Config({"BLOCK": 64})]
    return triton.autotune(configs=configs, key=["n"], pre_hook=lambda kwargs, reset_only=False: None)(add_kernel)


def tuned_and_guessed():
    return triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=["n"])(guessed_kernel)


def launch(kernel, x, *shared):
    out = torch.empty_like(x)
    kernel[(1,)](x, *(shared or (x + 1,)), out, 8)
    return out


REFUSED = {
    "its autotuner prunes configurations": lambda x: launch(PRUNED, x),
    "it is wrapped more than once": lambda x: launch(GUESSED, x),
    "its autotuner has a hook": lambda x: launch(HOOKED, x),
    "two of its arguments share memory": lambda x: launch(tuned_kernel, x, x.view(2, 4)),
    "its grid is no tuple of one to three numbers": lambda x: add_kernel[(1, 2, 3, 4)](x, x, x, 8, BLOCK=64),
}
PRUNED, HOOKED, GUESSED = pruned(), hooked(), tuned_and_guessed()


@pytest.mark.parametrize("why", REFUSED)
def test_what_the_operator_does_not_do_breaks_at_the_launch(why):
    compiled = stator.compile(REFUSED[why], backend="eager", fullgraph=True)
    with pytest.raises(stator.errors.GraphBreakError, match=r"SB0208: the Triton kernel \w+_kernel") as met:
        compiled(torch.ones(8))
    told = " ".join(str(met.value).split())
    assert why in told and "higher-order" not in told
