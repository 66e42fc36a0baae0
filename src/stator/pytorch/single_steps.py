"""Python functions of torch that are one step to the program, though many frames of torch's own are inside.

    torch.compiler.reset()
    model.double()

They are traced. Where that breaks, it breaks once, at the program's call (see `whole_calls`): a conversion of a module
would break at each of its parameters, a reset at each lock that it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator import errors
from stator.pytorch.whole_calls import traced_or_whole
from stator.space.protocol import INTERCEPTS, Handler

if TYPE_CHECKING:
    from types import CodeType

    from stator.errors import Break
    from stator.pytorch.types import Host

__all__ = ["install"]

_CONVERSIONS = ("to", "type", "float", "double", "half", "bfloat16", "cpu", "cuda", "to_empty", "_apply")
#: module and qualified name of each → the name by which programs call it
_STEPS = {
    **{("torch.nn.modules.module", f"Module.{name}"): f"torch.nn.Module.{name}" for name in _CONVERSIONS},
    **{("torch._utils", name): f"torch._utils.{name}" for name in ("_rebuild_tensor_v2", "_rebuild_parameter")},
    **{("torch._dynamo", name): f"torch._dynamo.{name}" for name in ("reset", "reset_code_caches")},
    ("torch._dynamo.decorators", "disable"): "torch._dynamo.disable",
    **{("torch.compiler", name): f"torch.compiler.{name}" for name in ("reset", "disable")},
}
_MEETS = "meets what is left to Python"


def _intercept(host: Host) -> Handler | None:
    """How such a function is handled (see protocol.INTERCEPTS)."""
    name = _STEPS.get((host.__module__, host.__qualname__))
    if name is None:
        return None

    def breaks(met: Break) -> Break:
        inner = isinstance(met, errors.UnsupportedUse) and met.case.startswith(_MEETS)
        return errors.UnsupportedUse(name, met.case if inner else f"{_MEETS} ({met.reason})")

    def within(code: CodeType) -> bool:
        """A call from the same file is a part of the step that the program has taken."""
        return code.co_filename == host.__code__.co_filename

    return traced_or_whole(host, breaks, within)


def install() -> None:
    """Register the model."""
    INTERCEPTS.append(_intercept)
