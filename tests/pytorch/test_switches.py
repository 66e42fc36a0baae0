"""Switches of torch's kernels (`sdpa_kernel`, cuDNN's flags): read, set and put back in a trace, under guards."""

import contextlib

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch.nn.attention import SDPBackend, sdpa_kernel

import stator

MATH, FLASH, EFFICIENT = SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION


def flags():
    names = ("math", "flash", "mem_efficient", "cudnn", "overrideable")
    return [getattr(torch._C, f"_get_{name}_sdp_enabled")() for name in names], torch._C._get_sdp_priority_order()


@pytest.fixture(autouse=True)
def as_before():
    before = flags()
    yield
    assert flags() == before


def attention(q):
    return F.scaled_dot_product_attention(q, q, q, is_causal=True)


def one(q):
    with sdpa_kernel(MATH):
        return attention(q) * 2


def several(q):
    with sdpa_kernel([MATH, FLASH], set_priority=True):
        return attention(q).sin()


def nested(q):
    with sdpa_kernel([MATH, EFFICIENT]):
        a = attention(q)
        with sdpa_kernel(FLASH):
            b = attention(a)
        return attention(b) + torch.backends.cuda.flash_sdp_enabled()


def raising(q):
    try:
        with sdpa_kernel(MATH):
            q = attention(q)
            raise KeyError
    except KeyError:
        return attention(q) + torch.backends.cuda.flash_sdp_enabled()


def in_one_thread(q):
    with torch.autograd.set_multithreading_enabled(False):
        inside = torch._C._is_multithreading_enabled()
        return attention(q) + inside + torch.get_num_threads() * 2 + torch.get_num_interop_threads()


def check(function, backend, tolerance=1e-6):
    compiled = stator.compile(function, backend=backend, fullgraph=True)
    for size in (4, 4, 7):
        outcomes = []
        for run in (function, compiled):
            torch.manual_seed(size)
            q = torch.randn(1, 2, size, 8, requires_grad=True)
            out = run(q)
            out.sum().backward()
            outcomes.append((out.detach(), q.grad))
        torch.testing.assert_close(outcomes[1], outcomes[0], rtol=tolerance, atol=tolerance)
    return compiled


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", [one, several, nested, raising, in_one_thread])
def test_attention_under_chosen_kernels(function, backend):
    check(function, backend)


def test_attention_under_chosen_kernels_with_inductor():
    check(nested, "inductor", 1e-4)


def test_the_number_of_threads_is_guarded():
    before = torch.get_num_threads()
    compiled = stator.compile(lambda x: x * torch.get_num_threads(), backend="eager", fullgraph=True)
    try:
        for count in (1, 2, 1):
            torch.set_num_threads(count)
            assert compiled(torch.ones(1)).item() == count
    finally:
        torch.set_num_threads(before)


def test_the_backend_sees_which_kernel_is_chosen():
    from torch._dynamo.backends.common import aot_autograd

    operators = []

    def noting(gm, inputs):
        operators.extend(str(node.target) for node in gm.graph.nodes)
        return gm

    def chosen(q):
        with sdpa_kernel(FLASH):
            a = attention(q)
        with sdpa_kernel(MATH):
            return a + attention(q)

    q = torch.randn(1, 2, 4, 8)
    compiled = stator.compile(chosen, backend=aot_autograd(fw_compiler=noting), fullgraph=True)
    torch.testing.assert_close(compiled(q), chosen(q))
    assert sum("flash_attention" in name for name in operators) == 1
    assert any("softmax" in name for name in operators)


def test_switches_outside_are_guarded_where_attention_is_computed():
    q = torch.randn(1, 2, 4, 8)
    compiled = stator.compile(attention, backend="eager", fullgraph=True)
    other = stator.compile(lambda x: x * 2, backend="eager", fullgraph=True)
    for context in (contextlib.nullcontext(), sdpa_kernel(MATH), contextlib.nullcontext()):
        with context:
            torch.testing.assert_close(compiled(q), attention(q))
            other(q)
    assert stator.stats().graphs == 3  # two of `attention`: of what does not compute it, the switches are no matter


def test_reading_a_switch_is_guarded():
    def read(x):
        return x + torch.backends.cuda.math_sdp_enabled(), torch.backends.cudnn.enabled

    compiled = stator.compile(read, backend="eager", fullgraph=True)
    for context in (contextlib.nullcontext(), sdpa_kernel(FLASH), torch.backends.cudnn.flags(enabled=False)):
        with context:
            got, expected = compiled(torch.ones(2)), read(torch.ones(2))
            torch.testing.assert_close(got[0], expected[0])
            assert got[1] is expected[1]


def test_a_switch_that_is_left_set():
    def set_it(x):
        torch.backends.cuda.enable_flash_sdp(False)
        return x + torch.backends.cuda.flash_sdp_enabled()

    compiled = stator.compile(set_it, backend="aot_eager", fullgraph=True)
    for before in (True, True, False):
        torch.backends.cuda.enable_flash_sdp(before)
        assert compiled(torch.ones(1)).item() == 1
        assert not torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(True)


def test_a_break_inside():
    seen = []

    def broken(q):
        with sdpa_kernel(MATH):
            q = attention(q)
            stator.graph_break()
            seen.append(torch.backends.cuda.flash_sdp_enabled())
            q = attention(q)
        return attention(q)

    compiled = stator.compile(broken, backend="eager")
    for size in (4, 4, 7):
        q = torch.randn(1, 2, size, 8)
        torch.testing.assert_close(compiled(q), broken(q))
    assert seen == [False] * 6


def test_flags_of_other_libraries():
    def convolve(x, w):
        with torch.backends.mkldnn.flags(enabled=False):
            a = F.conv1d(x, w)
        with torch.backends.cudnn.flags(enabled=True, benchmark=True):
            return a + F.conv1d(x, w), torch.backends.cudnn.benchmark

    compiled = stator.compile(convolve, backend="aot_eager")
    for size in (5, 5, 8):
        args = torch.randn(1, 2, size), torch.randn(3, 2, 3)
        got, expected = compiled(*args), convolve(*args)
        torch.testing.assert_close(got[0], expected[0])
        assert got[1] is expected[1] is True
    assert not torch.backends.cudnn.benchmark


def test_all_flags_of_cudnn():
    def flagged(x):
        with torch.backends.cudnn.flags(enabled=False, allow_tf32=False, fp32_precision="ieee"):
            inside = torch.backends.cudnn.enabled, torch._C._get_fp32_precision_getter("cuda", "all")
            return x * 2, inside

    def state():
        read = torch._C._get_fp32_precision_getter
        return torch.backends.cudnn.allow_tf32, [read("cuda", of) for of in ("all", "conv", "rnn", "matmul")]

    before = state()
    for backend in ("eager", "aot_eager"):
        compiled = stator.compile(flagged, backend=backend, fullgraph=True)
        for _ in range(2):
            assert compiled(torch.ones(2))[1] == flagged(torch.ones(2))[1]
            assert state() == before
