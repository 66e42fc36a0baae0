"""Training of a small Llama on two ranks, in the ways that programs combine compilation with data parallelism."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.distributed.tensor.parallel.ddp import _pre_dp_module_transform
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

#: gives what stands for a module: compiled, or itself
Compile = Callable[[Any], Any]
WORDS, WIDTH, HEADS = 32, 16, 2


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotated(x: Any) -> Any:
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] / 100.0 ** (torch.arange(half) / half)
    one, other = x[..., :half], x[..., half:]
    return torch.cat((one * angles.cos() - other * angles.sin(), other * angles.cos() + one * angles.sin()), -1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: Any) -> Any:
        q, k, v = (w(x).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(rotated(q).to(v.dtype), rotated(k).to(v.dtype), v, is_causal=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w3 = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.w2 = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Any) -> Any:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.attention = Norm(), Attention()
        self.ffn_norm, self.feed_forward = Norm(), FeedForward()

    def forward(self, x: Any) -> Any:
        h = x + self.attention(self.attention_norm(x))
        return h + self.feed_forward(self.ffn_norm(h))


class Llama(nn.Module):
    """Args: checkpointed: whether blocks are computed again for the backward pass."""

    def __init__(self, layers: int = 2, checkpointed: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.output = Norm(), nn.Linear(WIDTH, WORDS, bias=False)
        self.checkpointed = checkpointed

    def forward(self, tokens: Any) -> Any:
        h = self.embedding(tokens)
        for layer in self.layers:
            h = checkpoint(layer, h, use_reentrant=False) if self.checkpointed else layer(h)
        return self.output(self.norm(h))


def of_blocks(model: Any, change: Callable[[Any], Any]) -> Any:
    for i, layer in enumerate(model.layers):
        model.layers[i] = change(layer)
    return model


def sharded(model: Any, **kwargs: Any) -> Any:
    """FSDP2, as programs use it: the blocks, then the whole."""
    kwargs = {"mesh": init_device_mesh("cpu", (dist.get_world_size(),)), **kwargs}
    for layer in model.layers:
        fully_shard(layer, **kwargs)
    return fully_shard(model, **kwargs)


def ddp(model: Any, **kwargs: Any) -> Any:
    return DistributedDataParallel(model, bucket_cap_mb=0.005, **kwargs)


def in_parts(model: Any, mesh: Any) -> Any:
    """Tensor-parallel, as DDP takes it: parameters are local, and hooks make distributed ones of them."""
    halves = dict.fromkeys(("wq", "wk", "wv", "w1", "w3"), ColwiseParallel())
    plan = {**halves, **dict.fromkeys(("wo", "w2"), RowwiseParallel())}
    for layer in model.layers:
        names = [name for name, _ in layer.named_modules()]
        parallelize_module(layer, mesh, {name: plan[name[-2:]] for name in names if name[-2:] in plan})
    _pre_dp_module_transform(model)
    return model


def ddp_in_parts() -> Any:
    mesh = init_device_mesh("cpu", (1, dist.get_world_size()), mesh_dim_names=("dp", "tp"))
    return ddp(in_parts(Llama(), mesh["tp"]), process_group=mesh.get_group("dp"))


#: how a model is made parallel, and what of it is compiled
WAYS: dict[str, Callable[[Compile], Any]] = {
    "ddp_compiled": lambda compiled: compiled(ddp(Llama())),
    "ddp_of_compiled": lambda compiled: ddp(compiled(Llama())),
    "ddp_of_blocks": lambda compiled: ddp(of_blocks(Llama(), compiled)),
    "ddp_unused": lambda compiled: compiled(ddp(Llama(), find_unused_parameters=True)),
    "ddp_static": lambda compiled: compiled(ddp(Llama(), static_graph=True)),
    "ddp_views": lambda compiled: compiled(ddp(Llama(), gradient_as_bucket_view=True)),
    "ddp_checkpointed": lambda compiled: compiled(ddp(Llama(checkpointed=True))),
    "ddp_accumulating": lambda compiled: compiled(ddp(Llama())),
    "ddp_autocast": lambda compiled: compiled(ddp(Llama())),
    "ddp_in_parts": lambda compiled: compiled(ddp_in_parts()),
    "fsdp_compiled": lambda compiled: compiled(sharded(Llama())),
    "fsdp_of_blocks": lambda compiled: sharded(of_blocks(Llama(), compiled)),
    "fsdp_of_wrapped_blocks": lambda compiled: sharded(
        of_blocks(Llama(), lambda block: compiled(checkpoint_wrapper(block)))
    ),
    "fsdp_blocks_compiled": lambda compiled: of_blocks(sharded(Llama()), compiled),
    "fsdp_kept": lambda compiled: compiled(sharded(Llama(), reshard_after_forward=False)),
    "fsdp_checkpointed": lambda compiled: compiled(sharded(Llama(checkpointed=True))),
    "fsdp_accumulating": lambda compiled: compiled(sharded(Llama())),
    "fsdp_autocast": lambda compiled: compiled(sharded(Llama())),
    "fsdp_mixed": lambda compiled: compiled(
        sharded(Llama(), mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32))
    ),
}


#: how many graphs and breaks a way may have, with two lengths, and with and without communication: what DDP and
#: `fully_shard` do around a compiled module breaks nothing
LIMITS = {way: (2, 0) if way.startswith("ddp") or "blocks" in way else (6, 3) for way in WAYS}
LIMITS["ddp_in_parts"] = (3, 0)  # the first step makes the distributed parameters, and keeps them


def whole(tensor: Any) -> Any:
    return (tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor).detach().clone()


def train(way: str, compiled: Compile, steps: int = 6) -> tuple[list[float], dict[str, Any]]:
    """The losses of all steps, and the gradients of the last."""
    torch.manual_seed(0)
    model: Any = WAYS[way](compiled)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    parts = 2 if way.endswith("accumulating") else 1
    autocast = torch.autocast("cpu", torch.bfloat16) if way.endswith("autocast") else nullcontext()
    torch.manual_seed(100 if way.endswith("in_parts") else 100 + dist.get_rank())
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(parts):
            # Another length half-way
            tokens = torch.randint(WORDS, (2, 9 if step < steps // 2 else 7))
            last = part == parts - 1
            quiet: Any = nullcontext()
            if hasattr(model, "set_requires_gradient_sync"):
                model.set_requires_gradient_sync(last)
            elif not last:
                quiet = model.no_sync()
            with quiet:
                with autocast:
                    made = model(tokens[:, :-1])
                    loss = F.cross_entropy(made.float().flatten(0, 1), tokens[:, 1:].flatten()) / parts
                loss.backward()
            losses.append(loss.item())
        if step < steps - 1:
            optimizer.step()
    return losses, {name.replace("_orig_mod.", ""): whole(p.grad) for name, p in model.named_parameters()}
