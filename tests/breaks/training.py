# needs: torch
"""Training steps: backward in the middle, gradients of gradients, optimizers, leaves, forward mode, hooks."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional as F

from tests.breaks.registry import Calls, program


@program(same=False)
def a_whole_step_with_retained_graph() -> tuple[Any, Calls]:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()  # SB0601
        loss = F.mse_loss(model(x), y)
        loss.backward(retain_graph=True)  # SB0205
        optimizer.step()
        return loss

    return step, [(torch.ones(3, 2), torch.ones(3, 1)), (torch.ones(3, 2), torch.ones(3, 1))]


@a_whole_step_with_retained_graph.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, [(torch.ones(3, 2), torch.ones(3, 1))]


@program()
def penalty_on_the_gradient() -> tuple[Any, Calls]:
    critic = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))

    def penalty(real):
        x = real.clone().requires_grad_()
        (grad,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        return ((grad.norm(dim=1) - 1) ** 2).mean()

    return penalty, [(torch.randn(3, 2),)]


@penalty_on_the_gradient.fix
def _() -> tuple[Any, Calls]:
    critic = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))

    def penalty(real):
        grad = torch.func.grad(lambda x: critic(x).sum())(real)
        return ((grad.norm(dim=1) - 1) ** 2).mean()

    return penalty, [(torch.randn(3, 2),)]


@program()
def backward_of_what_came_in() -> tuple[Any, Calls]:
    model = nn.Linear(2, 1)

    def finish(loss, x):
        loss.backward()  # SB0205
        return model(x).sum()

    x = torch.ones(3, 2)
    return finish, [(model(x).sum(), x)]


@backward_of_what_came_in.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 1)

    def finish(x):
        model(x).sum().backward()
        return model(x).sum()

    return finish, [(torch.ones(3, 2),)]


@program()
def adversarial_noise() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def attack(x, y):
        noise = torch.zeros_like(x)
        noise.requires_grad = True
        F.cross_entropy(model(x + noise), y).backward()
        return model(x + 0.1 * noise.grad.sign())

    return attack, [(torch.randn(3, 2), torch.tensor([0, 1, 0]))]


@adversarial_noise.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def attack(x, y):
        noise = torch.zeros_like(x)
        grad = torch.func.grad(lambda n: F.cross_entropy(model(x + n), y))(noise)
        return model(x + 0.1 * grad.sign())

    return attack, [(torch.randn(3, 2), torch.tensor([0, 1, 0]))]


@program()
def freeze_in_the_middle() -> tuple[Any, Calls]:
    body, head = nn.Linear(2, 2), nn.Linear(2, 1)

    def step(x):
        h = body(x)
        for p in body.parameters():
            p.requires_grad_(False)
        return head(h).sum()

    return step, [(torch.ones(1, 2),)]


@freeze_in_the_middle.fix
def _() -> tuple[Any, Calls]:
    body, head = nn.Linear(2, 2), nn.Linear(2, 1)

    def step(x):
        return head(body(x)).sum()

    return step, [(torch.ones(1, 2),)]


@program()
def directional_derivative() -> tuple[Any, Calls]:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())

    def derivative(x, v):
        with forward_ad.dual_level():
            out = model(forward_ad.make_dual(x, v))
            return forward_ad.unpack_dual(out).tangent

    return derivative, [(torch.ones(1, 2), torch.ones(1, 2))]


@directional_derivative.fix
def _() -> tuple[Any, Calls]:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())

    def derivative(x, v):
        return torch.func.jvp(model, (x,), (v,))[1]

    return derivative, [(torch.ones(1, 2), torch.ones(1, 2))]


@program()
def hook_that_stops_on_nan() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    bad = []

    def forward(x):
        h = model(x)
        h.register_hook(lambda grad: bad.append(1) if grad.isnan().any() else None)
        return h.sum()

    return forward, [(torch.ones(1, 2),)]


@hook_that_stops_on_nan.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        h = model(x)
        h.register_hook(lambda grad: grad.nan_to_num())
        return h.sum()

    return forward, [(torch.ones(1, 2),)]


@program()
def forward_hook_with_statistics() -> tuple[Any, Calls]:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    norms = {}

    def note(module, args, out):
        if out.norm() > 1:  # SB0201
            norms["relu"] = out.shape

    model[1].register_forward_hook(note)

    def forward(x):
        return model(x).sum()

    return forward, [(torch.ones(1, 2),)]


@forward_hook_with_statistics.fix
def _() -> tuple[Any, Calls]:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    norms = {}

    def note(module, args, out):
        norms["relu"] = out.norm() > 1

    model[1].register_forward_hook(note)

    def forward(x):
        return model(x).sum()

    return forward, [(torch.ones(1, 2),)]


@program()
def hook_that_prints() -> tuple[Any, Calls]:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model[0].register_forward_hook(lambda module, args, out: print("out", out))

    def forward(x):
        return model(x).sum()

    return forward, [(torch.ones(1, 2),)]


@hook_that_prints.fix
def _() -> tuple[Any, Calls]:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model[0].register_forward_hook(lambda module, args, out: print("out", out.detach()))

    def forward(x):
        return model(x).sum()

    return forward, [(torch.ones(1, 2),)]


@program()
def accumulate_until_large() -> tuple[Any, Calls]:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        loss = model(x).sum()
        loss.backward()
        if model.weight.grad.norm() > 2:  # SB0201
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach()

    return step, [(torch.ones(3, 2),)]


@accumulate_until_large.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step, [(torch.ones(3, 2),)]


@program()
def scaler_of_mixed_precision() -> tuple[Any, Calls]:
    model = nn.Linear(2, 1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        loss = model(x).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # SB0201
        scaler.update()
        return loss.detach()

    return step, [(torch.ones(3, 2),)]


@scaler_of_mixed_precision.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, [(torch.ones(3, 2),)]


@program()
def line_search_with_lbfgs() -> tuple[Any, Calls]:
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.LBFGS([weight], max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        return loss

    def step():
        return optimizer.step(closure).detach()  # SB0201

    return step, [()]


@line_search_with_lbfgs.fix
def _() -> tuple[Any, Calls]:
    weight = nn.Parameter(torch.ones(2))

    def closure():
        return (weight**2).sum().detach()

    return closure, [()]


@program()
def new_parameter_in_forward() -> tuple[Any, Calls]:
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = None

        def forward(self, x):
            if self.scale is None:  # SB0601
                self.scale = nn.Parameter(torch.ones(x.shape[-1]))
            return x * self.scale

    model = Lazy()
    x = torch.ones(1, 2)
    return model, [(x,), (x,)]


@new_parameter_in_forward.fix
def _() -> tuple[Any, Calls]:
    class Ready(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x * self.scale

    model = Ready()
    x = torch.ones(1, 2)
    return model, [(x,), (x,)]


@program(same=False)
def jacobian_by_rows() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def jacobian(x):
        return torch.autograd.functional.jacobian(model, x)

    return jacobian, [(torch.ones(2),)]


@jacobian_by_rows.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def jacobian(x):
        return torch.func.jacrev(model)(x)

    return jacobian, [(torch.ones(2),)]


@program()
def anomaly_mode_around_the_step() -> tuple[Any, Calls]:
    model = nn.Linear(2, 1)

    def step(x):
        with torch.autograd.detect_anomaly(check_nan=False):
            loss = model(x).sum()
            loss.backward()  # SB0205
        return loss.detach()

    return step, [(torch.ones(1, 2),)]


@anomaly_mode_around_the_step.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 1)

    def step(x):
        loss = model(x).sum()
        loss.backward()
        return loss.detach()

    return step, [(torch.ones(1, 2),)]
