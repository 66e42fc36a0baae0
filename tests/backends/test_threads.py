"""Several threads compile at once: torch's backends keep what they are at in globals of the process."""

import threading
from typing import Any

import pytest
import torch
from torch import nn

import stator


class Model(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(4, 4) for _ in range(depth)])

    def forward(self, x: Any) -> Any:
        return self.layers(x).sin().mean()


@pytest.mark.parametrize(("backend", "count"), [("aot_eager", 5), ("inductor", 3)])
def test_threads_compile_different_models(backend: str, count: int) -> None:
    models = [Model(depth) for depth in range(1, count + 1)]
    start = threading.Barrier(count)
    failures: list[Any] = []

    def work(model: Any) -> None:
        try:
            compiled = stator.compile(model, backend=backend)
            start.wait()
            for size in (2, 3, 5):
                x = torch.randn(size, 4)
                got = torch.autograd.grad(compiled(x), list(model.parameters()))
                torch.testing.assert_close(got, torch.autograd.grad(model(x), list(model.parameters())))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


def test_a_backend_may_wait_for_threads_that_compile() -> None:
    ended: list[Any] = []

    def waiting(gm: Any, inputs: Any) -> Any:
        thread = threading.Thread(
            target=lambda: ended.append(stator.compile(torch.sin, backend="aot_eager")(inputs[0]))
        )
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        return gm.forward

    assert stator.compile(lambda x: x + 1, backend=waiting)(torch.ones(2)).tolist() == [2.0, 2.0]
    assert len(ended) == 1
