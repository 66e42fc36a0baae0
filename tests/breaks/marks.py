# needs: torch
"""What is left out on purpose or by its kind: disabled functions, imports, coroutines, caches, deep calls."""

from __future__ import annotations

import asyncio
import functools
import sys
from typing import Any

import torch
from torch import nn

import stator
from tests.breaks.registry import Calls, program


@program()
def a_metric_that_is_disabled() -> tuple[Any, Calls]:
    seen = []

    @torch.compiler.disable
    def note(h):
        seen.append(h.shape)
        return h.mean()

    model = nn.Linear(2, 2)

    def forward(x):
        h = model(x)
        return h / note(h)  # SB0302

    return forward, [(torch.ones(1, 2),)]


@a_metric_that_is_disabled.fix
def _() -> tuple[Any, Calls]:
    seen = []

    def note(h):
        seen.append(h.shape)
        return h.mean()

    model = nn.Linear(2, 2)

    def forward(x):
        h = model(x)
        return h / note(h)

    return forward, [(torch.ones(1, 2),)]


@program()
def a_layer_that_is_disabled() -> tuple[Any, Calls]:
    class Sparse(nn.Module):
        @stator.disable(reason="a kernel of our own")
        def forward(self, x):
            return x * 2

    model = nn.Sequential(nn.Linear(2, 2), Sparse(), nn.Linear(2, 2))

    def forward(x):
        return model(x).relu()  # SB0302

    return forward, [(torch.ones(1, 2),)]


@a_layer_that_is_disabled.fix
def _() -> tuple[Any, Calls]:
    class Sparse(nn.Module):
        def forward(self, x):
            return x * 2

    model = nn.Sequential(nn.Linear(2, 2), Sparse(), nn.Linear(2, 2))

    def forward(x):
        return model(x).relu()

    return forward, [(torch.ones(1, 2),)]


@program()
def a_break_between_encoder_and_decoder() -> tuple[Any, Calls]:
    encoder, decoder = nn.Linear(2, 3), nn.Linear(3, 2)

    def forward(x):
        h = encoder(x)
        torch._dynamo.graph_break()  # SB0301
        return decoder(h)

    return forward, [(torch.ones(1, 2),)]


@a_break_between_encoder_and_decoder.fix
def _() -> tuple[Any, Calls]:
    encoder, decoder = nn.Linear(2, 3), nn.Linear(3, 2)

    def forward(x):
        return decoder(encoder(x))

    return forward, [(torch.ones(1, 2),)]


@program()
def an_import_where_it_is_needed() -> tuple[Any, Calls]:
    sys.modules.pop("this_is_no_module", None)
    sys.modules.pop("colorsys", None)
    history = []

    def forward(x):
        history.append(x.shape[0])
        import colorsys  # SB0403

        h, _, _ = colorsys.rgb_to_hsv(0.2, 0.4, 0.4)
        return x * h

    return forward, [(torch.ones(1, 2),)]


@an_import_where_it_is_needed.fix
def _() -> tuple[Any, Calls]:
    import colorsys

    history = []

    def forward(x):
        history.append(x.shape[0])
        h, _, _ = colorsys.rgb_to_hsv(0.2, 0.4, 0.4)
        return x * h

    return forward, [(torch.ones(1, 2),)]


@program()
def a_service_that_waits() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    async def answer(x):
        h = model(x)
        await asyncio.sleep(0)
        return h.relu()

    def serve(x):
        return asyncio.run(answer(x))  # SB0122

    return serve, [(torch.ones(1, 2),)]


@a_service_that_waits.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)

    def answer(x):
        return model(x).relu()

    return answer, [(torch.ones(1, 2),)]


@program()
def a_cache_of_positions() -> tuple[Any, Calls]:
    @functools.lru_cache(maxsize=2)
    def positions(n):
        return torch.arange(n).float()

    positions(3)

    def forward(x):
        return x + positions(x.shape[0])

    return forward, [(torch.ones(3),), (torch.ones(3),)]


@a_cache_of_positions.fix
def _() -> tuple[Any, Calls]:
    def positions(n):
        return torch.arange(n).float()

    def forward(x):
        return x + positions(x.shape[0])

    return forward, [(torch.ones(3),), (torch.ones(3),)]


@program()
def a_very_deep_recursion() -> tuple[Any, Calls]:
    def power(x, n):
        return x if n == 0 else power(x, n - 1) * 0.99

    def forward(x):
        return power(x, 150)

    return forward, [(torch.ones(2),)]


@a_very_deep_recursion.fix
def _() -> tuple[Any, Calls]:
    def power(x, n):
        for _ in range(n):
            x = x * 0.99
        return x

    def forward(x):
        return power(x, 150)

    return forward, [(torch.ones(2),)]


@program()
def one_feature_at_a_time() -> tuple[Any, Calls]:
    def total(x, weights):
        out = x
        for weight in weights:
            out = out + weight % 7
        return out

    return total, [(torch.ones(2), list(range(30_000)))]


@one_feature_at_a_time.fix
def _() -> tuple[Any, Calls]:
    def total(x, weights):
        return x + (weights % 7).sum()

    return total, [(torch.ones(2), torch.arange(30_000))]


@program()
def a_hook_of_the_interpreter() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    lines = []

    def forward(x):
        sys.settrace(None)  # SB0101
        h = model(x)
        lines.append(sys.gettrace() is None)
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@a_hook_of_the_interpreter.fix
def _() -> tuple[Any, Calls]:
    model = nn.Linear(2, 2)
    lines = []

    def forward(x):
        h = model(x)
        lines.append(True)
        return h.relu()

    return forward, [(torch.ones(1, 2),)]


@program()
def who_has_called_me() -> tuple[Any, Calls]:
    names = []

    def forward(x):
        names.append(sys._getframe(1).f_code.co_name)  # SB0121
        return x.relu()

    return forward, [(torch.ones(2),)]


@who_has_called_me.fix
def _() -> tuple[Any, Calls]:
    names = []

    def forward(x, caller):
        names.append(caller)
        return x.relu()

    return forward, [(torch.ones(2), "run")]
