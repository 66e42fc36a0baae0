"""Operators on fake tensors, by torch's kernels for tensors without data alone.

torch's fake tensor mode takes an operator apart by its reference implementation in Python where there is one, and looks
in twenty tables before it asks a kernel: 1 to 4 ms for an `addmm`. Where the kernel alone gives the same answer, it is
asked at once; and where even that is slow, a rule of ours (`results.py`).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.fake.metadata import is_symbol
from stator.pytorch.fake.operator_facts import CHECKING, WITH_CHANNELS, is_total, looks_at_numbers, makes_view, name_of
from stator.pytorch.fake.results import RULES
from stator.pytorch.nesting import leaves_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stator.pytorch.types import Args, Fake, Kwargs, Nested, Operator

__all__ = ["empty", "run_directly"]


def empty(
    mode: internals.FakeTensorMode,
    sizes: Sequence[int],
    dtype: torch.dtype,
    device: torch.device,
    stride: Sequence[int] | None = None,
) -> Fake:
    """A new fake tensor, made without being dispatched to its mode; call it while no mode is active."""
    if stride is None:
        memory = torch.empty(sizes, dtype=dtype, device="meta")
    else:
        memory = torch.empty_strided(sizes, stride, dtype=dtype, device="meta")
    return internals.fake_tensor.FakeTensor(mode, memory, device)


def run_directly(mode: internals.FakeTensorMode, func: Operator, args: Args, kwargs: Kwargs) -> Nested:
    """The results of an operator on fake tensors of this mode; NotImplemented where the mode has to tell."""
    rule = RULES.get(func)
    if (rule is None and not _is_plain(func)) or kwargs.get("pin_memory"):
        return NotImplemented
    asked = kwargs.get("device")
    if asked is not None:
        kwargs = {**kwargs, "device": "meta"}
    leaves = list(leaves_of((args, kwargs)))
    operands: list[Fake] = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if any(map(is_symbol, leaves)) or not all(_is_plain_operand(operand, mode) for operand in operands):
        return NotImplemented
    devices = {operand.fake_device for operand in operands}
    if asked is not None:
        devices.add(asked)
    if len(devices) != 1:
        return NotImplemented
    device = devices.pop()
    results = None if rule is None else rule(*args, **kwargs)
    if results is not None:
        made = [empty(mode, sizes, dtype, device) for sizes, dtype in results]
        return made[0] if len(made) == 1 else tuple(made)
    return _run(mode, func, args, kwargs, device) if _is_plain(func) else NotImplemented


def _run(mode: internals.FakeTensorMode, func: Operator, args: Args, kwargs: Kwargs, device: torch.device) -> Nested:
    try:
        with internals.fake_tensor.in_kernel_invocation_manager(mode):
            made = func(*args, **kwargs)
    except Exception:
        return NotImplemented  # the mode says what is wrong
    if isinstance(made, tuple | list):
        return type(made)([_as_fake(mode, each, device) for each in made])
    return _as_fake(mode, made, device)


def _is_plain_operand(operand: Fake, mode: internals.FakeTensorMode) -> bool:
    """Whether it is a dense fake tensor whose sizes are numbers, and whose contents nobody knows."""
    return (
        isinstance(operand, internals.fake_tensor.FakeTensor)
        and operand.fake_mode is mode
        and operand.constant is None
        and operand.layout is torch.strided
        and not internals.has_symbolic_sizes(operand)
    )


def _as_fake(mode: internals.FakeTensorMode, made: object, device: torch.device) -> object:
    if not isinstance(made, torch.Tensor) or isinstance(made, internals.fake_tensor.FakeTensor):
        return made
    return internals.fake_tensor.FakeTensor(mode, made, device)


@functools.cache
def _is_plain(func: Operator) -> bool:
    """Whether the kernel of an operator tells as much as the mode (tests/pytorch/test_direct.py compares them)."""
    if not isinstance(func, internals.OpOverload) or func.namespace != "aten" or torch.Tag.inplace_view in func.tags:
        return False
    if looks_at_numbers(func) or internals.has_kernel(func.name(), "CompositeImplicitAutograd"):
        return False
    if any(argument.is_out for argument in internals.schema(func).arguments):
        return False
    name = name_of(func)
    known = makes_view(func) or is_total(func) or name in CHECKING
    # What these make is laid out as the device's library has it, which only the mode knows.
    return known and name not in WITH_CHANNELS and name != "convolution"
