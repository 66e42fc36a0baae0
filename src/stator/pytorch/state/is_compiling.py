"""What `torch.compiler.is_compiling()` answers: True to the program, False to torch itself.

A program that asks wants to know. torch asks to take a shortcut, and many of those show: hooks that are not called
when a module fails, results of padded positions that differ, warnings left out. Its own code is therefore told what it
is told in eager execution, but for the places below. docs/guide/is_compiling.md goes through all places that ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.space.protocol import FALSE, TRUE

if TYPE_CHECKING:
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["is_compiling"]

#: modules and packages of torch that are told True, or one function of theirs, with the reason
_TOLD: dict[str, str] = {
    "torch.optim": "step counts and rates that are tensors stay in the graph; computing with them rounds to float32",
    "torch.export.unflatten": "the module's own code is run, and not an interpreter of its graph",
    "torch._higher_order_ops": "else the operator compiles its operands with torch.compile",
    "torch.nn.attention.flex_attention:flex_attention": "else the operator compiles itself with torch.compile",
    "torch.distributed._functional_collectives:_are_we_tracing": "results are tensors that have been waited for",
    "torch.autograd.graph:region_activation_memory_budget": "it is an error outside of compiled code",
}


def is_compiling(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.compiler.is_compiling()`, and the functions that are alike."""
    frame = space.trace.frame
    module = str(frame.globals.get("__name__"))
    if module.startswith("stator."):
        return FALSE  # which asks for other tracers
    if module != "torch" and not module.startswith("torch."):
        return TRUE
    if f"{module}:{frame.code.co_qualname}" in _TOLD:
        return TRUE
    return TRUE if any(module == told or module.startswith(f"{told}.") for told in _TOLD) else FALSE
