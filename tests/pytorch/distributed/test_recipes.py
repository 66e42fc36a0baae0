"""What collectives come down to, where that cannot be run on this machine."""

from typing import Any

import pytest
import torch
from torch import distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode

import stator
from stator.pytorch.distributed import groups, recipes


@pytest.fixture
def group(tmp_path: Any) -> Any:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_gloo_gathers_in_a_graph_on_the_cpu_only(group: Any, device: str, monkeypatch: Any) -> None:
    """On other devices the process crashes, in torch: https://github.com/pytorch/pytorch/issues/152645."""
    monkeypatch.setattr(recipes, "backend", lambda group, kind: dict(groups.backends(group)).get(kind))
    monkeypatch.setattr(recipes, "operate", lambda name, *args: [name])
    with FakeTensorMode():
        tensor = torch.empty(2, device=device)
    whole = torch.empty_like(tensor)
    calls: dict[Any, Any] = {
        recipes.allgather: ([[whole]], [tensor]),
        recipes.all_gather_single: (whole, tensor),
        recipes.all_gather_single_coalesced: ([whole], [tensor]),
    }
    for recipe, args in calls.items():
        if device == "cpu":
            assert "all_gather_into_tensor" in str(recipe(group, *args, None))
        else:
            with pytest.raises(NotImplementedError, match="gloo gathers tensors on the CPU only"):
                recipe(group, *args, None)


def test_the_backends_of_a_group_are_guarded(group: Any) -> None:
    def f(x: Any) -> Any:
        return x + (recipes.backend(dist.group.WORLD, "cpu") == "gloo") + (recipes.backend(group, "meta") is None)

    assert stator.compile(f, backend="eager", fullgraph=True)(torch.zeros(2)).tolist() == [2.0, 2.0]
