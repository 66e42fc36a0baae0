"""What executes the canonical opcodes: one function each, which the files here register under its name."""

import importlib
import pkgutil

from stator.interp.frame import check_complete


def load() -> None:
    """Import every file of this package, and check that no opcode is missing."""
    for file in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(file.name)
    check_complete()
