"""`flex_attention`: what modifies and masks scores becomes graphs. torch has no backward pass for it on the CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops.scan import scan
from torch.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

import stator
from tests.pytorch.gradients import BACKENDS, alike

backends = pytest.mark.parametrize("backend", BACKENDS)
BIAS = torch.tensor([0.5, -0.5])
TABLE = torch.linspace(0, 1, 128).view(2, 64)
DOCUMENTS = torch.arange(64) // 20


def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
    return i >= j


def qkv(n: int) -> Any:
    torch.manual_seed(n)
    return tuple(torch.randn(1, 2, 8 * n, 8) for _ in range(3))


def scored(score_mod: Any) -> Any:
    return lambda q, k, v: flex_attention(q, k, v, score_mod=score_mod)


def masked(mask_mod: Any) -> Any:
    def program(q: Any, k: Any, v: Any) -> Any:
        mask = create_block_mask(mask_mod, None, None, q.shape[2], k.shape[2], device="cpu")
        return flex_attention(q, k, v, block_mask=mask)

    return program


def with_aux(q: Any, k: Any, v: Any) -> Any:
    out, aux = flex_attention(q, k, v, return_aux=AuxRequest(lse=True, max_scores=True))
    return out, aux.lse, aux.max_scores


def with_length(q: Any, k: Any, v: Any) -> Any:
    n = q.shape[2]
    return flex_attention(q * 2, k, v, score_mod=lambda s, b, h, i, j: torch.where(i > j + n // 2, s, s * 2)).sum(-1)


def in_cond(q: Any, k: Any, v: Any) -> Any:
    return torch.cond(q.sum() > 0, lambda q, k, v: flex_attention(q, k, v) * 2, flex_attention, (q, k, v))


def in_scan(q: Any, k: Any, v: Any) -> Any:
    def step(carry: Any, k: Any) -> Any:
        carry = flex_attention(carry, k[None], k[None])
        return carry, carry * 2

    return scan(step, q * 1, torch.cat([k, v]))


CAPTURED: dict[str, Any] = {
    "in cond": in_cond,
    "in scan": in_scan,
    "as it is": flex_attention,
    "a position": scored(lambda s, b, h, i, j: s + (i - j)),
    "an element for each head": scored(lambda s, b, h, i, j: s + BIAS[h]),
    "elements by two indices": scored(lambda s, b, h, i, j: s * TABLE[h, i] + TABLE[h][j] + BIAS[0]),
    "a captured length": with_length,
    "a mask made inside": masked(causal),
    "a mask of what is captured": masked(lambda b, h, i, j: DOCUMENTS[i] == DOCUMENTS[j]),
    "grouped heads": lambda q, k, v: flex_attention(torch.cat([q, q + 1], 1), k, v, enable_gqa=True),
    "its options": lambda q, k, v: flex_attention(q, k, v, scale=0.3, kernel_options={"BLOCK_M": 16}),
    "sums": lambda q, k, v: flex_attention(q, k, v, return_lse=True),
    "sums and more": with_aux,
    "an error": lambda q, k, v: flex_attention(torch.cat([q, q + 1], 1), k, v),
}


@backends
@pytest.mark.parametrize("name", CAPTURED)
def test_scores_and_masks_are_graphs(name: str, backend: str) -> None:
    alike(lambda: (CAPTURED[name], []), qkv, backend=backend, calls=1, breaks=0, tolerance=1e-5)


@backends
def test_a_mask_made_outside(backend: str) -> None:
    def inputs(n: int) -> Any:
        return (*qkv(n), create_block_mask(causal, None, None, 8 * n, 8 * n, device="cpu"))

    alike(lambda: (lambda q, k, v, m: flex_attention(q, k, v, block_mask=m), []), inputs, backend=backend, breaks=0)


def test_tensors_are_not_marked() -> None:
    args = qkv(3)
    stator.compile(flex_attention, backend="eager", fullgraph=True)(*args)
    assert not any(vars(arg) for arg in args)


def test_gradients_are_an_error_as_in_eager() -> None:
    def inputs(n: int) -> Any:
        return tuple(t.requires_grad_() for t in qkv(n))

    alike(lambda: (flex_attention, []), inputs, sizes=(3,), calls=1)


def test_an_index_is_an_element_inside_only() -> None:
    seen: list[Any] = []
    function = CAPTURED["an element for each head"]
    stator.compile(function, backend=lambda gm, _: seen.append(gm) or gm.forward, fullgraph=True)(*qkv(3))
    (node,) = [node for node in seen[0].graph.nodes if node.target is torch.ops.higher_order.flex_attention]
    assert node.args[3].op == "get_attr" and len(node.args[7]) == 1 and node.args[8] == ()


def test_compiled_by_inductor() -> None:
    alike(lambda: (CAPTURED["a position"], []), qkv, backend="inductor", sizes=(3,), calls=1, breaks=0, tolerance=1e-4)


def test_what_was_left_to_python_is_captured_when_it_is_compiled_by_itself() -> None:
    def by_value(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return s if s.item() > 0 else s

    q = torch.randn(1, 1, 16, 8)
    with pytest.raises(Exception, match="item"):
        stator.compile(lambda q: flex_attention(q, q, q, score_mod=by_value), backend="eager")(q)
    stator.reset()
    stator.compile(flex_attention, backend="eager", fullgraph=True)(q, q, q)
    assert stator.stats().graphs == 1
