"""Functions of Python that are one step to the program, though many frames of libraries' own are inside.

    torch.compiler.reset()
    model.double()
    copy.deepcopy(cache)

They are traced. Where that breaks, it breaks once, at the program's call (see `whole_calls`): a conversion of a module
would break at each of its parameters, a reset at each lock that it takes, a copy inside of recursive calls with a memo
that has the ids of objects for its keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator import errors
from stator.pytorch.state import disabled_inside
from stator.pytorch.whole_calls import traced_or_whole
from stator.space.protocol import INTERCEPTS, Handler

if TYPE_CHECKING:
    from types import CodeType

    from stator.errors import Break
    from stator.pytorch.types import Host

__all__ = ["install"]

_CONVERSIONS = ("to", "type", "float", "double", "half", "bfloat16", "cpu", "cuda", "to_empty", "_apply")
_CONTEXT = ("__init__", "__enter__", "__exit__")
#: module and qualified name of each → the name by which programs call it
_STEPS = {
    **{("torch.nn.modules.module", f"Module.{name}"): f"torch.nn.Module.{name}" for name in _CONVERSIONS},
    **{("torch._utils", name): f"torch._utils.{name}" for name in ("_rebuild_tensor_v2", "_rebuild_parameter")},
    **{("torch._dynamo", name): f"torch._dynamo.{name}" for name in ("reset", "reset_code_caches")},
    ("torch._dynamo.decorators", "disable"): "torch._dynamo.disable",
    **{("torch.serialization", name): f"torch.{name}" for name in ("save", "load")},
    ("copy", "deepcopy"): "copy.deepcopy",
    ("torch.utils.dlpack", "from_dlpack"): "torch.from_dlpack",
    ("torch.autograd.gradcheck", "gradcheck"): "torch.autograd.gradcheck",
    ("torch.autograd.gradcheck", "gradgradcheck"): "torch.autograd.gradgradcheck",
    **{("torch.profiler.profiler", f"profile.{name}"): f"torch.profiler.profile.{name}" for name in _CONTEXT},
    **{("torch.autograd.profiler", f"profile.{name}"): f"torch.autograd.profiler.profile.{name}" for name in _CONTEXT},
    **{("torch.compiler", name): f"torch.compiler.{name}" for name in ("reset", "disable")},
}
#: attention on jagged tensors: its kernel for the CPU makes nested tensors that no graph has
_STEPS["torch.nested._internal.sdpa", "jagged_scaled_dot_product_attention"] = (
    "torch.nn.functional.scaled_dot_product_attention"
)
_MEETS = "meets what is left to Python"


def _intercept(host: Host) -> Handler | None:
    """How such a function is handled (see protocol.INTERCEPTS)."""
    name = _STEPS.get((host.__module__, host.__qualname__))
    if name is None:
        return None

    if host.__name__ == "disable":
        return disabled_inside.handler(host, name)

    def breaks(met: Break) -> Break:
        if isinstance(met, errors.UnsupportedUse) and met.case.startswith(_MEETS):
            return errors.UnsupportedUse(name, met.case)
        return errors.UnsupportedUse(name, f"{_MEETS} ({met.reason})")

    def within(code: CodeType) -> bool:
        """A call from the same file is a part of the step that the program has taken."""
        return code.co_filename == host.__code__.co_filename

    return traced_or_whole(host, breaks, within)


def install() -> None:
    """Register the model."""
    INTERCEPTS.append(_intercept)
