# needs: torch
"""Tensors among Python: in-place changes, views, modules, modes, gradients, random numbers.

What a tensor holds is not known while tracing, so programs here return their tensors, for the runner to compare
with eager's, and assert only what a trace knows: shapes, types, identities, order.
"""

import torch
from torch import nn
from torch.nn import functional as F

from apptests.marks import expected_break

SCALE = torch.tensor(2.0)


def app_arithmetic():
    x = torch.arange(6.0).reshape(2, 3)
    return (x * SCALE + 1).sum(dim=1) / 3, 1 - x[0], x @ x.T, -x % 2, x**2 // 3


def app_shapes_are_python():
    x = torch.zeros(2, 3, 4)
    b, *rest = x.shape
    assert b == 2 and rest == [3, 4] and x.shape[-1] * 2 == 8 and x.shape == (2, 3, 4) and x.ndim == 3
    assert x.size(1) == len(x[0]) == 3 and x.numel() == 24 and isinstance(x.shape, torch.Size)
    assert x.view(b, -1).shape == torch.Size([2, 12]) and x.flatten(1).shape[1] == 12


def app_indexing():
    x = torch.arange(12).reshape(3, 4)
    assert x[..., None].shape == (3, 4, 1) and x[None, 1:, ::2].shape == (1, 2, 2)
    return x[1], x[:, -1], x[[0, 2], 1], x[torch.tensor([2, 0])][:, 0], x[x.shape[0] - 1, 1]


def app_inplace_and_aliasing():
    x = torch.zeros(3)
    y = x
    row = x[1:]
    x += 1
    row.mul_(5)
    x[0] = 7
    assert y is x
    return x, row, y


def app_iteration_and_stacking():
    x = torch.arange(6).reshape(3, 2)
    rows = [row * i for i, row in enumerate(x)]
    a, b, c = x.unbind(0)
    assert [t.shape[0] for t in x.split(2)] == [2, 1]
    return torch.stack(rows), torch.cat([c, a])


def app_dtypes_and_devices():
    x = torch.ones(2, dtype=torch.float16)
    assert x.dtype is torch.float16 and x.device.type == "cpu" and x.dtype.is_floating_point
    assert (x.to(torch.int64) + 1.5).dtype == torch.float32 and (x > 0).dtype is torch.bool
    assert torch.result_type(x, 1.0) == torch.float16 and str(x.dtype) == "torch.float16"


class Block(nn.Module):
    def __init__(self, width, depth=2):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.calls = 0

    def forward(self, x, *, skip=True):
        self.calls += 1
        self.steps += 1
        for layer in self.layers:
            x = F.relu(layer(x)) + (x if skip else 0)
        return self.norm(x)


torch.manual_seed(0)
BLOCK = Block(4)


def app_module():
    BLOCK.calls = 0
    BLOCK.steps.zero_()
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    with torch.no_grad():
        first, second = BLOCK(x), BLOCK(x, skip=False)
    assert first.shape == second.shape == (2, 4) and not first.requires_grad and BLOCK.calls == 2
    assert [name for name, _ in BLOCK.named_parameters()][:2] == ["layers.0.weight", "layers.0.bias"]
    return first, second, BLOCK.steps.clone()


def app_module_hooks():
    seen = []
    handles = [
        BLOCK.norm.register_forward_pre_hook(lambda module, args: seen.append(args[0].shape)),
        BLOCK.norm.register_forward_hook(lambda module, args, result: result * 0),
    ]
    try:
        out = BLOCK(torch.ones(1, 4))
    finally:
        for handle in handles:
            handle.remove()
    assert seen == [torch.Size([1, 4])]
    return out.detach()


def app_grad_modes():
    w = torch.ones(2, requires_grad=True)
    assert (w * 2).requires_grad and torch.is_grad_enabled()
    with torch.no_grad():
        assert not (w * 2).requires_grad
        with torch.enable_grad():
            assert (w * 2).requires_grad
    assert torch.is_grad_enabled() and not w.detach().requires_grad

    @torch.no_grad()
    def frozen(x):
        return x * 2

    assert not frozen(w).requires_grad


def app_autocast():
    x = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert (x @ x).dtype == torch.float32
    assert (x @ x).dtype == torch.float32


def app_gradients():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (grad,) = torch.autograd.grad((x**3).sum(), x)
    return grad


def app_random_numbers():
    torch.manual_seed(3)
    return torch.rand(2), torch.randn(2), torch.randint(0, 10, (3,))


def app_branches_on_shapes_and_flags():
    def f(x, scale=None):
        if x.ndim == 1:
            x = x.unsqueeze(0)
        if scale is not None and x.shape[-1] > 2:
            x = x * scale
        return x

    assert f(torch.ones(2), 2.0).shape == (1, 2)
    return f(torch.ones(3), 2.0), f(torch.ones(1, 3))


def app_branch_on_data():
    x = torch.arange(3.0)
    log = []
    if x.sum() > 2:
        log.append("large")
    while x[0] < 2:
        x = x + 1
    assert log == ["large"] and x.tolist() == [2.0, 3.0, 4.0] and int(x.max()) == 4


def app_tensors_in_containers():
    state = {"a": [torch.ones(1)], "b": (torch.zeros(1), {"c": torch.full((1,), 3.0)})}
    state["a"].append(state["b"][1]["c"] + 1)
    assert state["b"][1]["c"] is not state["a"][1] and len(state["a"]) == 2
    return state, sum(state["a"])


@expected_break("a tensor subclass made in the trace")
def app_torch_function():
    log = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            log.append(getattr(function, "__name__", str(function)))
            return super().__torch_function__(function, types, args, kwargs or {})

    y = torch.add(torch.ones(2).as_subclass(Logged), 1)
    assert type(y) is Logged and "add" in log
    return y.as_subclass(torch.Tensor)
