"""Which files need torch, and whether it is there; shared by the collection and by the runners of programs."""

import importlib.util
from pathlib import Path

HAS_TORCH = importlib.util.find_spec("torch") is not None
MARK = "# needs: torch"
# Folders of tests about layers that import torch.
FOLDERS = ("pytorch", "backends")


def needs_torch(path: Path) -> bool:
    """Whether the file's first line says so, or it stands in a folder of the PyTorch layers."""
    if path.parent.name in FOLDERS:
        return True
    with path.open(encoding="utf-8") as file:
        return file.readline().strip() == MARK
