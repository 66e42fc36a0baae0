# needs: torch
"""Programs that are compiled again and again."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

import torch
from torch import nn

from tests.breaks.registry import BETWEEN, Calls, program

SCALE = 1.0
STEPS = 0


@program()
def batch_of_another_size() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        return model(x).relu()  # SB0601

    return forward, [(torch.ones(3, 2),), (torch.ones(4, 2),), (torch.ones(5, 2),)]


@batch_of_another_size.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        return model(x).relu()

    batches = [torch.ones(n, 2) for n in (3, 4, 5)]
    for batch in batches:
        torch._dynamo.mark_dynamic(batch, 0)
    return forward, [(batch,) for batch in batches]


@program()
def transposed_input() -> tuple[Any, Calls]:
    model = nn.Linear(3, 3)

    def forward(x):
        return model(x).relu()  # SB0601

    return forward, [(torch.ones(3, 3),), (torch.ones(3, 3).T,)]


@transposed_input.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(3, 3)

    def forward(x):
        return model(x).relu()

    return forward, [(torch.ones(3, 3),), (torch.ones(3, 3).T.contiguous(),)]


@program()
def another_dtype() -> tuple[Any, Calls]:
    def normalise(x):
        return (x - x.min()) / 255  # SB0601

    return normalise, [(torch.ones(3),), (torch.ones(3, dtype=torch.double),)]


@another_dtype.fix
def _() -> tuple[Any, Calls]:
    def normalise(x):
        return (x - x.min()) / 255

    return normalise, [(torch.ones(3),), (torch.ones(3),)]


another_dtype.same = False


@program()
def evaluation_without_gradients() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):  # SB0601
        return model(x).relu()

    def evaluate(x):
        return forward(x)

    x = torch.ones(1, 2)
    return forward, [
        (x,),
        (BETWEEN, lambda: torch.set_grad_enabled(False)),
        (x,),
        (BETWEEN, lambda: torch.set_grad_enabled(True)),
    ]


@evaluation_without_gradients.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        return model(x).relu()

    x = torch.ones(1, 2)
    return forward, [(x,), (x,)]


evaluation_without_gradients.same = False


@program()
def input_that_requires_gradients() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        return model(x).relu()  # SB0601

    return forward, [(torch.ones(1, 2),), (torch.ones(1, 2, requires_grad=True),)]


@input_that_requires_gradients.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        return model(x).relu()

    return forward, [(torch.ones(1, 2),), (torch.ones(1, 2, requires_grad=True).detach(),)]


@program()
def switch_between_training_and_evaluation() -> tuple[Any, Calls]:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            return self.norm(self.linear(x))  # SB0601

    model = Net()
    x = torch.randn(3, 2)
    return model, [(x,), (BETWEEN, model.eval), (x,)]


@switch_between_training_and_evaluation.fix
def _() -> tuple[Any, Calls]:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            return self.norm(self.linear(x))

    model = Net()
    x = torch.randn(3, 2)
    return model, [(x,), (x,)]


switch_between_training_and_evaluation.same = False


@program()
def counter_on_the_module() -> tuple[Any, Calls]:
    class Scheduled(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = 0

        def forward(self, x):
            self.step += 1
            if self.step % 2:  # SB0601
                return x * 2
            return x - 1

    model = Scheduled()
    x = torch.ones(2)
    return model, [(x,), (x,), (x,), (x,)]


@counter_on_the_module.fix
def _() -> tuple[Any, Calls]:
    class Scheduled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("step", torch.zeros((), dtype=torch.long))

        def forward(self, x):
            self.step += 1
            return torch.where(self.step % 2 == 1, x * 2, x - 1)

    model = Scheduled()
    x = torch.ones(2)
    return model, [(x,), (x,), (x,), (x,)]


def _scale(value: float) -> None:
    global SCALE
    SCALE = value


@program()
def global_that_is_changed() -> tuple[Any, Calls]:
    _scale("fast")

    def forward(x):
        return x * (2 if SCALE == "fast" else 3)  # SB0601

    x = torch.ones(2)
    return forward, [(x,), (BETWEEN, lambda: _scale("exact")), (x,)]


@global_that_is_changed.fix
def _() -> tuple[Any, Calls]:
    def forward(x, factor):
        return x * factor

    x = torch.ones(2)
    return forward, [(x, torch.tensor(2)), (x, torch.tensor(3))]


@program()
def module_that_is_swapped() -> tuple[Any, Calls]:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def forward(x):
        return model(x) + 1  # SB0601

    x = torch.ones(1, 2)
    return forward, [(x,), (BETWEEN, lambda: model.__setitem__(1, nn.GELU())), (x,)]


@module_that_is_swapped.fix
def _() -> tuple[Any, Calls]:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def forward(x):
        return model(x) + 1

    x = torch.ones(1, 2)
    return forward, [(x,), (x,)]


module_that_is_swapped.same = False


@program()
def number_of_arguments() -> tuple[Any, Calls]:
    def total(*parts):
        return sum(parts)  # SB0601

    a = torch.ones(2)
    return total, [(a, a), (a, a, a), (a, a, a, a)]


@number_of_arguments.fix
def _() -> tuple[Any, Calls]:
    def total(parts):
        return parts.sum(0)

    batches = [torch.ones(n, 2) for n in (2, 3, 4)]
    for batch in batches:
        torch._dynamo.mark_dynamic(batch, 0)
    return total, [(batch,) for batch in batches]


@program()
def list_that_grows() -> tuple[Any, Calls]:
    cache = []

    def attend(x):
        cache.append(x)
        return torch.stack(cache).sum(0)  # SB0601

    x = torch.ones(2)
    return attend, [(x,), (x,), (x,), (x,)]


@list_that_grows.fix
def _() -> tuple[Any, Calls]:
    cache, filled = torch.zeros(8, 2), torch.zeros((), dtype=torch.long)

    def attend(x):
        cache.index_copy_(0, filled[None], x[None])
        filled.add_(1)
        return cache.sum(0)

    x = torch.ones(2)
    return attend, [(x,), (x,), (x,), (x,)]


@program()
def mode_as_text() -> tuple[Any, Calls]:
    def pool(x, mode):
        if mode == "mean":  # SB0601
            return x.mean(0)
        if mode == "max":
            return x.amax(0)
        return x.sum(0)

    x = torch.ones(3, 2)
    return pool, [(x, "mean"), (x, "max"), (x, "sum")]


@mode_as_text.fix
def _() -> tuple[Any, Calls]:
    def pool(x, weights):
        return torch.stack([x.mean(0), x.amax(0), x.sum(0)]).mul(weights[:, None]).sum(0)

    x = torch.ones(3, 2)
    return pool, [(x, row) for row in torch.eye(3)]


@program()
def learning_rate_as_a_number() -> tuple[Any, Calls]:
    def update(weight, grad, rate):
        return weight - rate * grad  # SB0601

    w = torch.ones(2)
    return update, [(w, w, 0.1), (w, w, 0.05), (w, w, 0.025)]


@learning_rate_as_a_number.fix
def _() -> tuple[Any, Calls]:
    def update(weight, grad, rate):
        return weight - rate * grad

    w = torch.ones(2)
    return update, [(w, w, torch.tensor(rate)) for rate in (0.1, 0.05, 0.025)]


@program()
def optional_mask() -> tuple[Any, Calls]:
    def masked(x, mask=None):
        if mask is not None:  # SB0601
            x = x * mask
        return x.sum()

    x = torch.ones(3)
    return masked, [(x,), (x, torch.ones(3))]


@optional_mask.fix
def _() -> tuple[Any, Calls]:
    def masked(x, mask):
        return (x * mask).sum()

    x = torch.ones(3)
    return masked, [(x, torch.ones(3)), (x, torch.ones(3))]


@program()
def options_in_a_dict() -> tuple[Any, Calls]:
    def forward(x, options):
        if options.get("bias"):  # SB0601
            x = x + 1
        return x * options.get("scale", 1)

    x = torch.ones(2)
    return forward, [(x, {"bias": True}), (x, {"bias": False, "scale": 2}), (x, {"scale": 3})]


@options_in_a_dict.fix
def _() -> tuple[Any, Calls]:
    def forward(x, bias, scale):
        return (x + bias) * scale

    x = torch.ones(2)
    return forward, [(x, torch.tensor(b), torch.tensor(s)) for b, s in ((1, 1), (0, 2), (0, 3))]


@program()
def phase_as_an_enum() -> tuple[Any, Calls]:
    class Phase(enum.Enum):
        WARMUP = 1
        TRAIN = 2

    def loss(x, phase):
        weight = 0.1 if phase is Phase.WARMUP else 1.0  # SB0601
        return (x * weight).sum()

    x = torch.ones(2)
    return loss, [(x, Phase.WARMUP), (x, Phase.TRAIN)]


@phase_as_an_enum.fix
def _() -> tuple[Any, Calls]:
    def loss(x, weight):
        return (x * weight).sum()

    x = torch.ones(2)
    return loss, [(x, torch.tensor(0.1)), (x, torch.tensor(1.0))]


@program()
def settings_in_a_dataclass() -> tuple[Any, Calls]:
    @dataclasses.dataclass
    class Settings:
        temperature: float
        top_k: int

    def sample(logits, settings):
        best = logits.topk(settings.top_k).values  # SB0601
        return (best / settings.temperature).softmax(-1)  # SB0601

    logits = torch.arange(5.0)
    return sample, [(logits, Settings(1.0, 2)), (logits, Settings(1.0, 3)), (logits, Settings(0.5, 3))]


@settings_in_a_dataclass.fix
def _() -> tuple[Any, Calls]:
    def sample(logits, temperature):
        best = logits.topk(2).values
        return (best / temperature).softmax(-1)

    logits = torch.arange(5.0)
    return sample, [(logits, torch.tensor(1.0)), (logits, torch.tensor(0.5))]


settings_in_a_dataclass.same = False


@program()
def callback_that_is_made_anew() -> tuple[Any, Calls]:
    def apply(x, activation):
        return activation(x) + 1  # SB0601

    x = torch.ones(2)
    return apply, [(x, torch.relu), (x, torch.tanh), (x, torch.sigmoid)]


@callback_that_is_made_anew.fix
def _() -> tuple[Any, Calls]:
    def apply(x, weights):
        return (torch.stack([torch.relu(x), torch.tanh(x), torch.sigmoid(x)]) * weights[:, None]).sum(0) + 1

    x = torch.ones(2)
    return apply, [(x, row) for row in torch.eye(3)]


@program()
def other_rank() -> tuple[Any, Calls]:
    def centre(x):
        return x - x.mean()  # SB0601

    return centre, [(torch.ones(2),), (torch.ones(2, 2),), (torch.ones(2, 2, 2),)]


@other_rank.fix
def _() -> tuple[Any, Calls]:
    def centre(x):
        return x - x.mean()

    return centre, [(torch.ones(1, 1, 2),), (torch.ones(1, 2, 2),), (torch.ones(2, 2, 2),)][2:]


other_rank.same = False


@program()
def size_one_then_many() -> tuple[Any, Calls]:
    embed = nn.Embedding(7, 2)

    def lookup(tokens):
        return embed(tokens).mean(0)  # SB0601

    return lookup, [(torch.zeros(n, dtype=torch.long),) for n in (5, 6, 1)]


@size_one_then_many.fix
def _() -> tuple[Any, Calls]:
    embed = nn.Embedding(7, 2)

    def lookup(tokens):
        return embed(tokens).mean(0)

    batches = [torch.zeros(n, dtype=torch.long) for n in (5, 6, 2)]
    for batch in batches:
        torch._dynamo.mark_dynamic(batch, 0)
    return lookup, [(batch,) for batch in batches]


@program()
def hooks_that_come_later() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        return model(x).sum()  # SB0601

    x = torch.ones(1, 2)
    add = lambda: model.register_forward_hook(lambda module, args, out: out * 2)  # noqa: E731
    return forward, [(x,), (BETWEEN, add), (x,)]


@hooks_that_come_later.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    model.register_forward_hook(lambda module, args, out: out * 2)

    def forward(x):
        return model(x).sum()

    x = torch.ones(1, 2)
    return forward, [(x,), (x,)]


hooks_that_come_later.same = False


@program()
def autocast_in_one_call() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    cast = torch.autocast("cpu", dtype=torch.bfloat16)

    def forward(x):  # SB0601
        return model(x).float()

    x = torch.ones(1, 2)
    return forward, [(x,), (BETWEEN, cast.__enter__), (x,), (BETWEEN, lambda: cast.__exit__(None, None, None))]


@autocast_in_one_call.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def forward(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x).float()

    x = torch.ones(1, 2)
    return forward, [(x,), (x,)]


autocast_in_one_call.same = False


@program()
def one_tensor_given_twice() -> tuple[Any, Calls]:
    def blend(a, b):
        a.mul_(2)
        return a + b

    x, y = torch.ones(2), torch.ones(2)
    return blend, [(x, y), (x, x)]


@one_tensor_given_twice.fix
def _() -> tuple[Any, Calls]:
    def blend(a, b):
        return a * 2 + b

    x, y = torch.ones(2), torch.ones(2)
    return blend, [(x, y), (y, x)]


one_tensor_given_twice.same = False


@program()
def the_cache_is_filled_at_the_first_call() -> tuple[Any, Calls]:
    cache = {}

    def rotate(x):
        if "cos" not in cache:  # SB0601
            cache["cos"] = torch.arange(x.shape[-1]).float().cos()
        return x * cache["cos"]

    x = torch.ones(2)
    return rotate, [(x,), (x,)]


@the_cache_is_filled_at_the_first_call.fix
def _() -> tuple[Any, Calls]:
    cache = {"cos": torch.arange(2).float().cos()}

    def rotate(x):
        return x * cache["cos"]

    x = torch.ones(2)
    return rotate, [(x,), (x,)]


@program()
def transitions_that_share_a_state() -> tuple[Any, Calls]:
    value = nn.Linear(2, 1)

    def gain(batch):
        before = torch.stack([state for state, _ in batch])
        after = torch.stack([state for _, state in batch])  # SB0601
        return value(after) - value(before)

    states = [torch.full((2,), float(n)) for n in range(4)]
    return gain, [([(states[n], states[n + 1]) for n in steps],) for steps in ((0, 1), (0, 2))]


@transitions_that_share_a_state.fix
def _() -> tuple[Any, Calls]:
    value = nn.Linear(2, 1)

    def gain(batch):
        before = torch.stack([state for state, _ in batch])
        after = torch.stack([state for _, state in batch])
        return value(after) - value(before)

    states = [torch.full((2,), float(n)) for n in range(4)]
    return gain, [([(states[n], states[n + 1].clone()) for n in steps],) for steps in ((0, 1), (0, 2))]
