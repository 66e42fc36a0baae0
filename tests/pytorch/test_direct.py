"""What operators make on fake tensors, by their kernels alone, is what they make on real ones."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from stator.pytorch.fake import direct
from stator.pytorch.fake.fakes import FakeMode
from stator.pytorch.shapes.unbacked import new_env

F = torch.nn.functional

_PLAIN = torch.randn(2, 3, 4, 6)
_LAYOUTS = {
    "contiguous": _PLAIN,
    "channels last": _PLAIN.contiguous(memory_format=torch.channels_last),
    "turned": _PLAIN.permute(3, 1, 0, 2),
    "expanded": _PLAIN[:1].expand(5, 3, 4, 6),
    "every second": _PLAIN[..., ::2],
    "none": _PLAIN[:0],
}
_CALLS: dict[str, Callable[[torch.Tensor], Any]] = {
    "add": lambda x: x + x[:, :1],
    "add a number": lambda x: x + 1,
    "divide integers": lambda x: x.long() / 2,
    "compare": lambda x: x > x.mean(),
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "gelu": F.gelu,
    "in place": lambda x: x.clone().mul_(2).add_(x),
    "view": lambda x: x.transpose(1, 2)[..., 1:].unsqueeze(0),
    "split": lambda x: x.split(1, dim=1),
    "sum": lambda x: (x.sum(1), x.mean((0, 2), keepdim=True), x.amax(-1), x.any(0)),
    "max": lambda x: x.max(1),
    "softmax": lambda x: (x.softmax(-1), x.log_softmax(1)),
    "norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "cat": lambda x: (torch.cat([x, x], 1), torch.stack([x, x])),
    "other norms": lambda x: (
        F.group_norm(x, 1, torch.ones(x.shape[1]), torch.zeros(x.shape[1])),
        F.batch_norm(x, torch.zeros(x.shape[1]), torch.ones(x.shape[1]), torch.ones(x.shape[1])),
        F.batch_norm(x, torch.zeros(x.shape[1]), torch.ones(x.shape[1]), training=True),
        F.layer_norm(x, x.shape[-2:], torch.ones(x.shape[-2:])),
        F.batch_norm(x[..., 0, 0], None, None, training=True),
    ),
    "products": lambda x: (x @ x.transpose(-1, -2), F.linear(x, torch.ones(5, x.shape[-1]), torch.ones(5))),
    "addmm": lambda x: (
        torch.addmm(torch.ones(1), x[0, 0].t(), x[0, 0]),
        F.linear(x[0, 0], torch.ones(2, x.shape[-1]), torch.ones(2)),
        torch.addmm(torch.ones(x.shape[2], 1), x[0, 0], x[0, 0].t(), beta=2),
    ),
    "convolution": lambda x: F.conv2d(x, torch.ones(2, x.shape[1], 1, 1)),
    "other convolutions": lambda x: (
        F.conv1d(x[:, 0], torch.ones(2, x.shape[2], 2), torch.ones(2), stride=2, padding=1),
        F.conv2d(x, torch.ones(2 * x.shape[1], 1, 2, 2), groups=x.shape[1], dilation=(1, 2), padding=(1, 2)),
        F.conv3d(x[None], torch.ones(1, x.shape[0], 1, 1, 1)),
        F.conv_transpose2d(x, torch.ones(x.shape[1], 2, 2, 2), stride=2),
        F.conv2d(x, torch.ones(4, 1, 1, x.shape[1]).permute(0, 3, 1, 2)),
        F.conv2d(x[:, :1, :1, :1], torch.ones(2, 1, 1, 1)),
    ),
    "upsampled": lambda x: [
        *(F.interpolate(x, scale_factor=2.0, mode=mode) for mode in ("nearest", "bilinear", "bicubic")),
        *(F.interpolate(x[0], 5, mode=mode) for mode in ("nearest", "linear")),
        *(F.interpolate(x[None], (2, 3, 4), mode=mode) for mode in ("nearest", "trilinear")),
    ],
    "index": lambda x: (
        x[torch.tensor([0, 1, 0])],
        x[torch.tensor([[0, 1]]), torch.tensor([[1, 1]])],
        x[torch.tensor([0, 1]), torch.tensor([1])],
        x[:, torch.tensor([0, 0])],
        x[torch.tensor([0, 1]), :, torch.tensor([1, 1])],
        x[torch.tensor([[0, 1], [1, 1]]).t()],
        x[torch.tensor(1)],
        x[x > 0] if x.numel() else None,
        x.long()[torch.tensor([1, 0], dtype=torch.int32)],
    ),
    "empty": lambda x: (
        torch.empty_like(x),
        torch.empty_like(x, dtype=torch.int32),
        torch.empty_like(_PLAIN[..., 0, 0]),
    ),
    "gather": lambda x: (x.gather(1, torch.zeros(x.shape, dtype=torch.long)), x.index_select(1, torch.tensor([0]))),
    "sort": lambda x: (x.sort(1), x.topk(1, 1), x.cumsum(2)),
    "made": lambda x: (torch.zeros_like(x), x.new_ones(3), torch.arange(4.0), torch.full((2, 3), 1)),
}


class _Compared(TorchDispatchMode):
    """Runs each operator on fake tensors, too."""

    def __init__(self) -> None:
        super().__init__()
        self.mode = FakeMode()
        self.directly = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        fakes: dict[int, torch.Tensor] = {}

        def fake(tensor: torch.Tensor) -> torch.Tensor:
            return fakes.setdefault(id(tensor), self.mode.of(tensor))

        fake_args, fake_kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, fake, (args, kwargs))
        made = func(*args, **kwargs)
        found = direct.run_directly(self.mode, func, fake_args, fake_kwargs)
        if found is not NotImplemented:
            self.directly += 1
            assert _described(found, fakes.values()) == _described(made, _tensors((args, kwargs))), func
        return made


def _tensors(nested: Any) -> list[torch.Tensor]:
    unique = {id(leaf): leaf for leaf in torch.utils._pytree.tree_leaves(nested) if isinstance(leaf, torch.Tensor)}
    return list(unique.values())


def _described(made: Any, operands: Any) -> Any:
    """Metadata of results, and the operands that they are or share memory with."""
    memories = [operand.untyped_storage()._cdata for operand in operands]
    return [
        (
            *(leaf.shape, leaf.stride(), leaf.storage_offset(), leaf.dtype, leaf.device),
            *([leaf is operand for operand in operands], [leaf.untyped_storage()._cdata == each for each in memories]),
        )
        for leaf in torch.utils._pytree.tree_leaves(made)
        if isinstance(leaf, torch.Tensor)
    ]


@pytest.mark.parametrize("layout", _LAYOUTS)
@pytest.mark.parametrize("call", _CALLS)
def test_direct_is_real(call: str, layout: str) -> None:
    compared = _Compared()
    try:
        with torch.no_grad(), compared:
            _CALLS[call](_LAYOUTS[layout])
    except (IndexError, RuntimeError):
        assert layout == "none"  # there is no greatest of none
    assert compared.directly


def test_what_is_random_or_symbolic_or_known_is_left_to_the_mode() -> None:
    mode = FakeMode()
    x = mode.of(torch.ones(3))
    aten = torch.ops.aten
    assert direct.run_directly(mode, aten.bernoulli.default, (x,), {}) is NotImplemented
    assert direct.run_directly(mode, aten.nonzero.default, (x,), {}) is NotImplemented
    assert direct.run_directly(FakeMode(), aten.neg.default, (x,), {}) is NotImplemented
    assert direct.run_directly(mode, aten.neg.default, (torch.ones(3),), {}) is NotImplemented
    assert direct.run_directly(mode, aten.add.Tensor, (x, mode.of(torch.ones(2))), {}) is NotImplemented
    assert direct.run_directly(mode, aten.to.device, (x, torch.device("cpu"), torch.float64), {}) is NotImplemented
    size = _symbol()
    assert direct.run_directly(mode, aten.zeros.default, ([size],), {"device": torch.device("cpu")}) is NotImplemented
    with mode:
        known = torch.tensor(3.0)
    assert known.constant is not None  # type: ignore[attr-defined]
    assert direct.run_directly(mode, aten.neg.default, (known,), {}) is NotImplemented


def _symbol() -> Any:
    return new_env(may_be_new=True).create_unbacked_symint()
