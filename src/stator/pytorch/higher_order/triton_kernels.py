"""Launches of Triton kernels: `kernel[grid](x, out, n, BLOCK=64)` is one node, of torch's operator for them.

The node names the kernel, and its constant arguments, by their places in a table of torch's; tensors, and numbers that
vary, are its operands. So Inductor compiles the kernel into its own code, and AOTAutograd learns from the kernel's IR
which tensors it writes. The grid, if it is a function, is traced: once for each configuration of an `@triton.autotune`.

`@triton.heuristics` around a kernel is traced, and comes to a launch. What torch's operator does not do (hooks and
pruning of an autotuner, heuristics beneath one), and a grid or an argument that a graph cannot have, is one break at
the launch.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.higher_order.body import breaks_of, refusal, tried
from stator.pytorch.nesting import is_sequence
from stator.pytorch.shapes.symbols import decide
from stator.pytorch.tensors.lowering import Call, Operand
from stator.pytorch.tensors.tensor import TensorValue
from stator.pytorch.whole_calls import left_whole
from stator.space import facts
from stator.space.protocol import INTERCEPTS, NONE, Handler
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stator.pytorch.types import Host, Nested
    from stator.space.space import Space

__all__ = ["install"]

#: what a launch comes to, in torch's words for the classes of Triton's kernels
_LAUNCHES = {("triton.runtime.jit", "JITFunction.run"), ("triton.runtime.autotuner", "Autotuner.run")}
#: arguments of a launch that are no arguments of the kernel but settings of its compiler: those of a `triton.Config`
_SETTINGS = ("num_warps", "num_stages", "maxnreg")
_NO_GRID = "its grid is no tuple of one to three numbers"


def intercept(host: Host) -> Handler | None:
    """How the launch of a kernel is handled (see protocol.INTERCEPTS)."""
    key = (getattr(host, "__module__", ""), getattr(host, "__qualname__", ""))
    return functools.partial(_launched, host) if key in _LAUNCHES else None


def _launched(host: Host, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    name = f"the Triton kernel {_function_name(args[0].force().host) if args else ''}".rstrip()
    with left_whole(host, breaks_of(name)):
        return _Launch(space, name, args, kwargs).record()


def _function_name(kernel: Any) -> str:
    """The name of the function that is launched, for messages."""
    while not hasattr(kernel, "__name__") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return str(getattr(kernel, "__name__", ""))


class _Launch:
    """One launch: `kernel.run(*args, grid=grid, warmup=False, **kwargs)`."""

    def __init__(self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]) -> None:
        self.space = space
        self.name = name
        given = dict(kwargs)
        self.grid = given.pop("grid", None)
        warmup = given.pop("warmup", None)
        if warmup is not None and space.known(warmup) is not False:
            raise self.refuse("it is only to be compiled (warmup)")
        self.kernel = self._kernel(args[0].force(), {name: given.pop(name) for name in _SETTINGS if name in given})
        names = _function(self.kernel).arg_names
        if len(args) - 1 > len(names) or any(name in given for name in names[: len(args) - 1]):
            raise self.refuse("it is given arguments that it does not take")
        #: the arguments by name, as the grid sees them
        self.named = {**dict(zip(names, args[1:], strict=False)), **given}
        self.operands: list[Value] = []

    def refuse(self, why: str) -> Exception:
        return refusal(self.name, why)

    def _kernel(self, value: Value, settings: dict[str, Value]) -> Any:
        """The kernel as the graph knows it, which is guarded by identity, and an autotuner by its configurations."""
        kernel: Any = value.host
        if value.source is None or kernel is None:
            raise self.refuse("it is made in the compiled function")
        self.space.guard_identity(value)
        if _is_autotuner(kernel):
            why = _unsupported(kernel)
            if why:
                raise self.refuse(why)
            facts.answer(self.space, value, _configurations, "its configurations")
        if not settings:
            return kernel
        if _is_autotuner(kernel):
            raise self.refuse(f"its autotuner and the launch both set {', '.join(settings)}")
        return _with_settings(kernel, tuple((name, self.space.known(to)) for name, to in settings.items()))

    def record(self) -> Value:
        """Record the node; a launch gives the program nothing to use."""
        space = self.space
        grids = [self._grid(config) for config in _constants(self.kernel)]
        tensors, constants = self._arguments()
        table = internals.triton_kernels.kernel_side_table
        operator = internals.triton_kernels.triton_kernel_wrapper_mutation
        call = Call(functools.partial(_observed, operator), "call_function", operator)
        call.acts = True
        call.operands = self.operands
        call.metas = [None for _ in self.operands]
        call.kwargs = {
            "kernel_idx": table.add_kernel(self.kernel),
            "constant_args_idx": table.add_constant_args(constants),
            "grid": grids,
            "tma_descriptor_metadata": {},
            "kwargs": tensors,
        }
        tried(self.name, lambda: space.trace.recorder.record(call))
        return NONE

    def _grid(self, config: dict[str, Any]) -> Nested:
        """How many programs are started along the three axes."""
        if self.grid is None:
            raise self.refuse("it is launched without a grid")
        grid = self.grid.force()
        if not is_sequence(grid):
            seen = {**self.named, **{name: self.space.existing(value) for name, value in config.items()}}
            meta = self.space.new_dict([(Constant(name), value) for name, value in seen.items()])
            grid = self.space.call(grid, [meta], {}).force()
        if not grid.isa(tuple):
            raise self.refuse(_NO_GRID)
        sizes = [self._number(size.force()) for size in self.space.unpack(grid)]
        if not 1 <= len(sizes) <= 3:
            raise self.refuse(_NO_GRID)
        return (*sizes, *[1] * (3 - len(sizes)))

    def _number(self, size: Value) -> Nested:
        if size.symbolic:
            return self._operand(size)
        if not size.isa(int):
            raise self.refuse(_NO_GRID)
        return int(self.space.known(size))

    def _arguments(self) -> tuple[dict[str, Nested], dict[str, object]]:
        """The operands by name, and the constants."""
        operands: dict[str, Nested] = {}
        constants: dict[str, object] = {}
        numbers = {p.name for p in _function(self.kernel).params if not p.is_constexpr}
        for name, lazy in self.named.items():
            value = lazy.force()
            if value.symbolic and name not in numbers:
                value = decide(self.space.trace, value)  # the kernel is compiled anew for each
            if isinstance(value, TensorValue) or value.symbolic:
                operands[name] = self._operand(value)
            else:
                constants[name] = self._constant(name, value)
        self._refuse_shared_memory()
        return operands, constants

    def _refuse_shared_memory(self) -> None:
        """AOTAutograd keeps a copy of each tensor that is written: two that share memory would be two from then on."""
        roots = [id(value.root) for value in self.operands if isinstance(value, TensorValue)]
        if len(set(roots)) < len(roots):
            raise self.refuse("two of its arguments share memory")

    def _constant(self, name: str, value: Value) -> object:
        if value.source is not None and not value.constant:
            self.space.guard_identity(value)
            return value.host
        host = self.space.known(value)
        if host is not None and not isinstance(host, int | float | str | torch.dtype):
            raise self.refuse(f"its argument {name!r} is {value.describe()}")
        return host

    def _operand(self, value: Value) -> Operand:
        place = next((i for i, known in enumerate(self.operands) if known is value), len(self.operands))
        if place == len(self.operands):
            self.operands.append(value)
        return Operand(place)


def _observed(operator: Any, **kwargs: Any) -> None:
    """The operator on fake tensors: those that the kernel writes are written."""
    operator(**kwargs)
    written = internals.triton_kernels.get_mutated_tensors(
        kwargs["kernel_idx"], kwargs["constant_args_idx"], kwargs["kwargs"], {}
    )
    with torch.no_grad():
        for name in written:
            kwargs["kwargs"][name].detach().zero_()


def _is_autotuner(kernel: Any) -> bool:
    return type(kernel).__name__ == "Autotuner"


def _function(kernel: Any) -> Any:
    """The kernel itself, without an autotuner."""
    return kernel.fn if _is_autotuner(kernel) else kernel


def _constants(kernel: Any) -> Iterable[dict[str, Any]]:
    """What each configuration gives the kernel."""
    return [config.kwargs for config in kernel.configs] if _is_autotuner(kernel) else [{}]


def _configurations(kernel: Any) -> tuple[object, ...]:
    return tuple([(tuple(config.kwargs.items()), config.num_warps, config.num_stages) for config in kernel.configs])


def _unsupported(kernel: Any) -> str:
    """Why torch's operator would not do what this autotuner does; empty if it would."""
    if type(kernel.fn).__name__ != "JITFunction":
        return "it is wrapped more than once (@triton.heuristics, or a second @triton.autotune)"
    if kernel.perf_model is not None or kernel.early_config_prune is not None:
        return "its autotuner prunes configurations"
    if kernel.user_defined_pre_hook or kernel.user_defined_post_hook:
        return "its autotuner has a hook"
    return "a configuration has a hook" if any(config.pre_hook is not None for config in kernel.configs) else ""


@functools.cache
def _with_settings(kernel: Any, settings: tuple[tuple[str, Any], ...]) -> Any:
    """The kernel with these settings of its compiler: one object for each, as the graph knows it by its place."""
    triton: Any = importlib.import_module("triton")
    return triton.autotune(configs=[triton.Config({}, **dict(settings))], key=[])(kernel)


def install() -> None:
    """Register the model."""
    INTERCEPTS.append(intercept)
