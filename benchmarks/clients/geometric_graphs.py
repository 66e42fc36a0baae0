"""torch_geometric: compiled graph networks, over graphs of several sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.nn import GAT, GCN, GraphSAGE, global_mean_pool


def run(backend: str | None) -> list[Any]:
    found = []
    for kind in (GCN, GAT, GraphSAGE):
        model = kind(in_channels=4, hidden_channels=8, num_layers=2, out_channels=3)
        compiled: Any = model if backend is None else torch.compile(model, backend=backend)
        optimizer = torch.optim.Adam(compiled.parameters())
        for n in (6, 9, 12):
            edges = torch.randint(0, n, (2, 3 * n))
            out = global_mean_pool(compiled(torch.randn(n, 4), edges), torch.arange(n) // 3)
            out.square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            found.append(out)
        found += compiled.state_dict().values()
    return found
