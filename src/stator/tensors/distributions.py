"""torch.distributions: the checks of argument values are off in traced code, as they are under torch.compile.

They branch on the contents of tensors at every construction. `validate_args=True` asks for them all the same.
"""

from __future__ import annotations

import sys
from typing import Any

from stator import trace
from stator.objects.protocol import FALSE


def install() -> None:
    """From now on traces see `Distribution._validate_args` as False."""
    trace.TRACE_HOOKS.append(_switch_checks_off)


def _switch_checks_off(new: Any) -> None:
    module = sys.modules.get("torch.distributions.distribution")
    if module is not None:
        new.class_overlays[module.Distribution] = {"_validate_args": FALSE}
