"""Outcomes on symbolic sizes, remembered over traces: they are the same but for the names of symbols.

What an operation returns on symbols, and what it has to assume of them, follows from the expressions that its
operands' sizes are, and from what is known of the symbols already. So all of this is kept over symbols that stand for
any. In another trace the same is assumed of its own symbols, in the same order: while the conditions hold there, the
operation would go the same way.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch

from stator.pytorch.fake.metadata import NumberMeta, TensorMeta, expression_of, is_symbol, meta_from, number_of

if TYPE_CHECKING:
    import sympy  # type: ignore[import-untyped]
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.pytorch.fake.outcome import Outcome
    from stator.pytorch.types import Descriptions, Function, Number, OperandMeta

    #: a description with expressions over stand-ins in it, and the symbols that these stand for
    Form: TypeAlias = tuple[Any, tuple[sympy.Symbol, ...]]

__all__ = ["Renaming"]

#: assumptions of a trace in which others can still be found again: each new one makes all that is known another key
_MOST_GUARDS = 50


class Learnt(NamedTuple):
    """An outcome over stand-ins, and the conditions that were assumed for it."""

    outcome: Outcome
    conditions: list[sympy.Basic]


class Renaming:
    """The symbols of one trace, as those that any trace may have.

    Args:
        recall: gives what has been learnt of a function under a key, or None.
        learn: keeps it.
    """

    def __init__(self, recall: Callable[..., Any], learn: Callable[..., None]) -> None:
        self._recall = recall
        self._learn = learn
        self._stage: object = None
        #: for what has been assumed by then
        self._forms: dict[OperandMeta, Form | None] = {}
        self._known: dict[tuple[sympy.Symbol, ...], Any] = {}
        self._numbers: dict[object, Number] = {}

    def outcome(
        self,
        env: ShapeEnv,
        function: Function,
        key: Any,
        metas: list[OperandMeta],
        symbolic: Descriptions,
        ask: Callable[[], Outcome],
    ) -> Outcome:
        """The outcome of an operation: as learnt in another trace, or else what `ask` gives."""
        if self._stage != (stage := (len(env.guards), len(env.replacements))):
            self._stage = stage
            self._forms.clear()
            self._known.clear()
        forms = [self._form(env, meta) for meta in metas]
        symbols = tuple(dict.fromkeys(symbol for form in forms if form for symbol in form[1]))
        if symbols not in self._known:
            self._known[symbols] = _known_of(env, symbols)
        if None in forms or self._known[symbols] is None:
            return ask()
        (args, kwargs, _), state = key
        places = tuple((form[0], *map(symbols.index, form[1])) for form in forms if form)
        structure = args, kwargs, state, places, self._known[symbols]
        learnt: Learnt | None = self._recall(function, structure)
        found = None if learnt is None else self._applied(env, learnt, symbols, symbolic)
        if found is not None:
            return found
        count, before = len(env.guards), _others(env)
        outcome = ask()
        if learnt is None and outcome.lasting and _others(env) == before:
            general = _general(outcome, env.guards[count:], symbols)
            if general is not None:
                self._learn(function, structure, general)
        return outcome

    def _form(self, env: ShapeEnv, meta: OperandMeta) -> Form | None:
        """A description as it is with any symbols; None where more is in it than sizes known in this call."""
        if not meta.symbolic:
            return meta, ()
        if meta not in self._forms:
            numbers = [meta.number] if isinstance(meta, NumberMeta) else [*meta.shape, *meta.stride, meta.offset]
            numbers = list(filter(is_symbol, numbers))
            ordinary = all(_is_ordinary(env, number) for number in numbers)
            self._forms[meta] = None
            if ordinary:
                symbols = tuple(sorted({s for n in numbers for s in expression_of(n).free_symbols}, key=str))
                to_any = _pairs(symbols)
                self._forms[meta] = _over(meta, lambda n: expression_of(n).xreplace(to_any)), symbols
        return self._forms[meta]

    def _applied(
        self, env: ShapeEnv, learnt: Learnt, symbols: tuple[sympy.Symbol, ...], symbolic: Descriptions
    ) -> Outcome | None:
        """The outcome over the symbols of this trace; None where something else is to be assumed."""
        from_any = {stand_in: symbol for symbol, stand_in in _pairs(symbols).items()}
        for condition in learnt.conditions:
            own = env.replace(condition.xreplace(from_any))
            if not own.xreplace(env.backed_var_to_val):
                return None
            env.evaluate_expr(own, True)

        def number(expression: sympy.Expr) -> Number:
            own = expression.xreplace(from_any)
            if own not in self._numbers:
                self._numbers[own] = number_of(env, own)
            return self._numbers[own]

        def meta(found: Any) -> TensorMeta:
            return found if isinstance(found, TensorMeta) else meta_from(_changed(found, number), symbolic)

        found = copy.copy(learnt.outcome)
        found.result = found.result.mapped(meta, number)
        return found


@functools.cache
def _stand_in(index: int) -> sympy.Symbol:
    import sympy

    return sympy.Symbol(f"any{index}", integer=True, positive=True)


def _pairs(symbols: tuple[sympy.Symbol, ...]) -> dict[sympy.Symbol, sympy.Symbol]:
    """The symbols with what stands for each."""
    return {symbol: _stand_in(index) for index, symbol in enumerate(symbols)}


def _is_ordinary(env: ShapeEnv, number: Number) -> bool:
    """Whether a number is an integer made of sizes that are known in this call."""
    expression = expression_of(number)
    return (
        type(number) is torch.SymInt
        and expression is not None
        and all(
            symbol in env.backed_var_to_val and symbol.is_integer and symbol.is_positive
            for symbol in expression.free_symbols
        )
    )


def _known_of(env: ShapeEnv, symbols: tuple[sympy.Symbol, ...]) -> object:
    """What has been assumed of the symbols, over stand-ins; None where that involves others, or is too much to compare.

    Of symbols that are equal one stands for the other, wherever that would be.
    """
    if len(env.guards) > _MOST_GUARDS:
        return None
    to_any = _pairs(symbols)
    found = []
    for condition in [guard.expr for guard in env.guards]:
        involved = condition.free_symbols
        others = involved - to_any.keys()
        if len(others) < len(involved):
            if not others:
                found.append(condition.xreplace(to_any))
            elif not (condition.is_Equality and all(side.is_symbol for side in condition.args)):
                return None
    return tuple(found), tuple((env.var_to_range[s].lower, env.var_to_range[s].upper) for s in symbols)


def _others(env: ShapeEnv) -> object:
    """What changes in a ShapeEnv where more is assumed than guards say."""
    return len(env.backed_var_to_val), env.num_deferred_runtime_asserts


def _general(outcome: Outcome, guards: list[Any], symbols: tuple[sympy.Symbol, ...]) -> Learnt | None:
    """An outcome and its guards over stand-ins; None where there are other symbols in them."""
    to_any = _pairs(symbols)
    strange = any(guard.size_oblivious or guard.expr.free_symbols - to_any.keys() for guard in guards)

    def form(number: Number) -> Any:
        nonlocal strange
        expression = expression_of(number)
        if type(number) is not torch.SymInt or expression is None or expression.free_symbols - to_any.keys():
            strange = True
            return None
        return expression.xreplace(to_any)

    found = copy.copy(outcome)
    found.result = outcome.result.mapped(lambda meta: _over(meta, form), form)
    return None if strange else Learnt(found, [guard.expr.xreplace(to_any) for guard in guards])


def _over(meta: OperandMeta, form: Callable[[Number], Any]) -> Any:
    """The parts of a description with forms in the place of symbols; one without symbols is itself."""
    if isinstance(meta, NumberMeta):
        return form(meta.number)
    return _changed(meta.parts(), form) if meta.symbolic else meta


def _changed(parts: tuple[Any, ...], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The parts of a description with others in the place of what are no plain numbers in it."""
    size, stride, offset = (
        tuple([n if type(n) is int else change(n) for n in numbers]) for numbers in (*parts[:2], parts[2:3])
    )
    return size, stride, *offset, *parts[3:]
