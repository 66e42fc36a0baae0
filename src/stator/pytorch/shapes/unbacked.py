"""Symbols for numbers that are in tensors, and so are known only when the graph runs: torch calls them unbacked."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.apart import apart_methods
from stator.pytorch.fake.failure import describe_callable, undecided_in
from stator.pytorch.fake.metadata import expression_of, is_symbol
from stator.pytorch.nesting import leaves_of
from stator.space.signals import Restart
from stator.space.value import Unsupported

if TYPE_CHECKING:
    import sympy  # type: ignore[import-untyped]
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedValue
    from stator.pytorch.types import FakeOperand, Function, GraphValue, Nested, Number
    from stator.space.interfaces import Trace

__all__ = [
    "are_decided",
    "bindings",
    "env_class",
    "is_decided",
    "new_env",
    "note_unseen",
    "sizes_of",
    "symbols_of",
    "trace_otherwise",
]


@functools.cache
def env_class() -> type[ShapeEnv]:
    """torch's ShapeEnv, but what it has answered for want of knowledge it does not repeat when more is known, and it
    notes the program's line with what it assumes.

    torch remembers that `guard_or_false(n >= 0)` was false before `n >= 0` was assumed.
    """
    from torch.fx.experimental import symbolic_shapes

    base: Any = type("ShapeEnv", (symbolic_shapes.ShapeEnv,), apart_methods(symbolic_shapes.ShapeEnv))

    class ShapeEnv(base):  # whoever asks for the type's name finds torch's
        def evaluate_expr(self, orig_expr: sympy.Basic, hint: Any = None, *args: Any, **options: Any) -> sympy.Basic:
            if hint is None:
                internals.evaluated.cache_clear()
            return super().evaluate_expr(orig_expr, hint, *args, **options)

        #: the trace that it belongs to, and may outlive
        trace: Callable[[], Trace | None] = staticmethod(lambda: None)

        def _get_sloc(self, framework_loc: str | None = None) -> str:
            trace = self.trace()
            found = None if trace is None else trace.line()
            return "" if found is None else f"{found[0].co_filename}:{found[1]}"

        def _get_stack_summary(self, is_debug: bool = False, framework_loc: str | None = None) -> tuple[Any, str]:
            # torch looks for the program's frame among its own tracer's, and imports torch.export for their names.
            return self._get_sloc(), ""

        def create_symbol(self, val: Any, source: Any, *args: Any, **options: Any) -> sympy.Expr:
            is_offset = getattr(getattr(source, "prop", None), "name", "") == "STORAGE_OFFSET"
            if not is_offset or val == 0 or options.get("dynamic_dim") is not symbolic_shapes.DimDynamic.DUCK:
                return super().create_symbol(val, source, *args, **options)
            # To torch an offset is a number like a size: at least 2, and the symbol of a size that happens to be equal.
            options |= {"dynamic_dim": symbolic_shapes.DimDynamic.DYNAMIC, "positive": None}
            made = super().create_symbol(val, source, *args, **options, do_not_specialize_zero_one=True)
            self.constrain_symbol_range(made, 0, symbolic_shapes.int_oo)
            return made

        def _make_data_dependent_error(self, expr: sympy.Basic, *args: Any, **options: Any) -> Exception:
            # torch's shows the stacks, for which it imports its tracer and `torch._inductor`.
            text = f"Could not guard on data-dependent expression {expr}"
            return symbolic_shapes.GuardOnDataDependentSymNode(expr, text)

    # With the first record torch finds out that nobody reads its structured log, as a rule. A record of a symbol shows
    # the stack, for which torch imports `torch._inductor`.
    told = {"name": "tracer", "encoding": "string"}
    internals.tell_log("artifact", lambda: told, payload_fn=lambda: "stator", expect_trace_id=False)
    return ShapeEnv


def new_env(may_be_new: bool, trace: Trace | None = None) -> ShapeEnv:
    """A ShapeEnv; whether symbols may stand in it for numbers that are in tensors."""
    env = env_class()(allow_scalar_outputs=may_be_new, allow_dynamic_output_shape_ops=may_be_new)
    if trace is not None:
        env.trace = weakref.ref(trace)
    return env


def sizes_of(operand: FakeOperand) -> tuple[Number, ...]:
    """The sizes, strides and offset of a fake tensor; a number itself; nothing of what is neither."""
    if not isinstance(operand, torch.Tensor):
        return (operand,) if is_symbol(operand) else ()
    if operand.layout is not torch.strided:
        return tuple(operand.shape)
    return (*operand.shape, *operand.stride(), operand.storage_offset())


def symbols_of(number: Number) -> frozenset[sympy.Symbol]:
    """The symbols that a number depends on."""
    expression = expression_of(number) if is_symbol(number) else None
    return frozenset() if expression is None else expression.free_symbols


def is_decided(number: Number) -> bool:
    """Whether it is a symbol of which the trace assumes already that it is one number."""
    expression = expression_of(number) if is_symbol(number) else None
    return expression is not None and not expression.free_symbols


def are_decided(operands: list[GraphValue]) -> bool:
    """Whether such a symbol is among the sizes of the operands of a call."""
    return any(is_decided(size) for operand in operands for size in sizes_of(operand.fake))


def bindings(env: ShapeEnv, unseen: set[sympy.Symbol], result: Nested, function: Function) -> object:
    """Where in the result of an operation the symbols are found that it has made; None if there are none.

    An operation may read a number for its own use: `x[i]` reads `i`, and where its result begins in the memory of `x`
    is a symbol of its own. What the result does not depend on stays `unseen`, until another shows it: a fake tensor
    knows the number in it by one symbol for ever.
    """
    pending = env.pending_fresh_unbacked_symbols
    if not pending and not unseen:
        return None
    from torch.fx.experimental.symbolic_shapes import compute_unbacked_bindings

    unseen.update(pending)
    pending[:] = shown = unseen & _shown(result)
    found = compute_unbacked_bindings(env, result, peek=True) or {}
    pending.clear()
    if shown - found.keys():
        # The result depends on a number that is not to be found in it: that must be a node of its own.
        raise Unsupported(errors.DataDependentValue(describe_callable(function)))
    unseen -= shown
    return found or None


def note_unseen(env: ShapeEnv, unseen: set[sympy.Symbol]) -> None:
    """An operation that has failed gives no result in which the symbols that it has made are found."""
    unseen.update(env.pending_fresh_unbacked_symbols)
    env.pending_fresh_unbacked_symbols.clear()


def _shown(result: Nested) -> set[sympy.Symbol]:
    """The symbols that sizes and numbers of a result depend on. Where in memory it begins, nobody sees."""
    found: set[sympy.Symbol] = set()
    for leaf in leaves_of(result):
        if is_symbol(leaf):
            found |= symbols_of(leaf)
        elif isinstance(leaf, torch.Tensor):
            found.update(*map(symbols_of, sizes_of(leaf)[: 2 * leaf.dim()]))
    return found


def trace_otherwise(recorder: Recorder, inputs: list[TracedValue], error: Exception) -> None:
    """A backend has failed: trace again if that may be for a symbol.

    An operator of the backward pass may take none. If there are numbers in tensors, the graph breaks where one of them
    is made: it is an ordinary number then. A backend may have to decide on it where the program does not (in the
    backward pass, or to choose a kernel), and it runs the graph again knowing what the graph asserts of it only later.
    Whatever else went wrong, it may not with numbers; sizes that the program has marked stay what they are.
    """
    if isinstance(error, internals.fake_tensor.UnsupportedOperatorException):
        recorder.shapes.need_numbers(inputs)
    operations = [value.operation for value in recorder.nodes.values.values()]
    makers = [operation for operation in operations if operation is not None and operation.bindings]
    undecided: Any = undecided_in(error)
    if makers and undecided is not None:
        renamed = recorder.shapes.env.unbacked_renamings
        symbols = {renamed.get(symbol, symbol) for symbol in undecided.cond.free_symbols}
        makers = [operation for operation in makers if symbols & operation.bindings.keys()] or makers
    if makers:
        first = min(makers, key=lambda operation: operation.step)
        raise Restart(first.step, errors.DataDependentValue(describe_callable(first.function)))
    with contextlib.suppress(Unsupported):
        recorder.shapes.need_numbers(inputs)
