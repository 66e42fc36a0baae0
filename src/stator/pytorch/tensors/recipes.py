"""How a value is computed from tensors: calls of operations in their order, to be made again before each run."""

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from stator.guards.base import shortened
from stator.pytorch import internals
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.fake.metadata import hint_of, is_describable
from stator.pytorch.nesting import Bare, leaves_of
from stator.pytorch.shapes import symbols
from stator.pytorch.shapes.computed import existing_symbols
from stator.pytorch.shapes.symbols import SymValue
from stator.pytorch.state.global_state import computes_alike
from stator.pytorch.tensors.lowering import Operand, fill
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import COMPARISONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation
    from stator.pytorch.types import Args, Function, Kwargs
    from stator.space.value import Value

    #: a call: the function, its arguments with operands in them, and where each operand is found
    Step: TypeAlias = tuple[Function, Args, Kwargs, list["Place"]]

__all__ = ["Place", "Recipe", "Search", "known_elements"]

#: characters of the text that a value is shown as
_MOST_TEXT = 500
#: what stands between the operands of a method
_COMPARING = frozenset(COMPARISONS.values())
_SIGNS = {**COMPARISONS, "__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/", "__mod__": "%"}
#: packages whose functions are called
_PURE = ("torch", "stator", "_operator")
#: what is in the names of functions that show more of memory than a tensor has in it
_MEMORY = ("empty", "as_strided")
#: functions of numbers that give the same for symbols
_ARITHMETIC = {getattr(operator, name) for name in (*symbols.ARITHMETIC, *symbols.COMPARISONS)}
_ARITHMETIC |= {torch.sym_not, torch.sym_int, torch.sym_float}
#: functions that read no more of their first operand than what it is like
_LIKE = (torch.ones_like, torch.zeros_like, torch.full_like)
_NEW = tuple(getattr(internals.TensorBase, name) for name in ("new_ones", "new_zeros", "new_full", "new_tensor"))


class Place:
    """Where a value is found: among the values a recipe begins with, or in a result; and the text it is shown as."""

    def __init__(self, index: int, text: str, path: tuple[Any, ...] = (), *, given: bool = False) -> None:
        self.index = index
        self.text = text
        self.path = path
        self.given = given

    def code(self) -> str:
        """The value, in the code of the recipe."""
        return f"{'given' if self.given else 'made'}{self.index}{''.join(f'[{step!r}]' for step in self.path)}"


class Recipe:
    """How a value is computed from existing tensors and numbers."""

    def __init__(self, steps: list[Step], outcome: Place, given: list[bool]) -> None:
        self.outcome = outcome
        self.compute = _compiled(steps, outcome, given)

    def run(self, given: Sequence[Any]) -> Any:
        """The value, whatever modes are on."""
        if internals.len_dispatch_stack():
            with internals.disable_current_modes():
                return self.run(given)
        with internals.DisableTorchFunction():
            return self.compute(*given)


def _compiled(steps: list[Step], outcome: Place, given: list[bool]) -> Function:
    """The steps as a function, which does them twice as fast as a loop over them: a guard does so at each call.

    Args:
        given: for each tensor or number that it begins with, whether the steps write to it: they write to a copy.
    """
    names: dict[str, Any] = {}

    def written(template: Any, places: list[Place]) -> str:
        kind = type(template)
        if kind is Operand:
            return places[template.index].code()
        if kind is slice:
            parts = [written(part, places) for part in (template.start, template.stop, template.step)]
            return f"slice({', '.join(parts)})"
        if kind is dict:
            return f"{{{', '.join(f'{key!r}: {written(part, places)}' for key, part in template.items())}}}"
        if kind in (tuple, list):
            items = "".join(f"{written(part, places)}, " for part in template)
            return f"({items})" if kind is tuple else f"[{items}]"
        name = f"constant{len(names)}"
        names[name] = template
        return name

    lines = [f"def compute({', '.join(f'given{place}' for place in range(len(given)))}):"]
    lines += [f"    given{place} = given{place}.clone()" for place, written in enumerate(given) if written]
    for number, (function, args, kwargs, places) in enumerate(steps):
        given_by_name = f", **{written(kwargs, places)}" if kwargs else ""
        lines.append(f"    made{number} = {written(function, places)}(*{written(args, places)}{given_by_name})")
    exec("\n".join([*lines, f"    return {outcome.code()}"]), names)
    return names["compute"]


class Search:
    """Finds recipes: the operations of the graph so far that a value depends on, those included that have written
    what others of them read (`mask = torch.zeros(n); mask[i] = 1`), in the order of the program.

    Args:
        state: the global state, by its key, in which they are to compute what they do in the graph.
        begins: whether a recipe may begin with an existing tensor or number.
        most: the operations, and the elements of a tensor, that are worth computing besides the graph.
    """

    def __init__(
        self, recorder: Recorder, state: object, begins: Callable[[TensorValue | SymValue], bool], most: tuple[int, int]
    ) -> None:
        self.recorder = recorder
        self.state = state
        self.begins = begins
        self.most_steps, self.most_elements = most
        self.needed: set[Operation] = set()
        self.given: dict[TensorValue | SymValue, Place] = {}
        self.steps: list[Step] = []
        #: where the results are found of operations, and of the nodes that compute with numbers
        self.results: dict[object, Place] = {}

    def recipe(self, value: Value) -> Recipe | None:
        """How a value is computed, or None."""
        waiting = [value]
        while waiting:
            more = self._operands(waiting.pop())
            if more is None or len(self.needed) > self.most_steps:
                return None
            waiting += more
        for operation in self.recorder.nodes.operations.values():
            if operation in self.needed:
                function, args, kwargs = operation.function, operation.args, operation.kwargs
                self.results[operation] = self._step(function, args, kwargs, _read(operation))
        written = [each in self.recorder.effects.rewritten for each in self.given]
        return Recipe(self.steps, self._place(value), written)

    def now(self, recipe: Recipe) -> Any:
        """What a recipe gives in this call; None where it fails."""
        given = [hint_of(each.number) if each.symbolic else each.host.detach().clone() for each in self.given]  # type: ignore[union-attr]
        try:
            return recipe.run(given)
        except Exception:
            return None  # the program shall find out itself

    def _operands(self, value: Value) -> Iterable[Value] | None:
        """What a value is computed of; None if it is not known how."""
        if isinstance(value, SymValue):
            return self._operands_of_number(value)
        nodes, effects, rebound = self.recorder.nodes, self.recorder.effects, self.recorder.tracked.rebound
        if not isinstance(value, TensorValue) or not _is_plain(value) or value in rebound or value.root in rebound:
            return None
        if known_elements(value) > self.most_elements:
            return None
        writers = [nodes.operations.get(node) for node, roots in effects.writes.items() if value.root in roots]
        if value.operation is not None:
            return self._of([value.operation, *writers])
        found = self._begin(value, value.source is not None)
        return found if found is None else self._of(writers)

    def _operands_of_number(self, value: SymValue) -> Iterable[Value] | None:
        if _as_int(value) is not None:
            return ()
        if value.source is not None:
            return self._begin(value, True)
        symbols = existing_symbols(self.recorder, value.number)
        if symbols is not None:
            return symbols.values()
        if value.operation is not None:
            return self._of([value.operation])
        function = value.node.target if value.node.op == "call_function" else None
        operands = list(map(self.recorder.nodes.values.get, value.node.all_input_nodes))
        return None if function not in _ARITHMETIC or None in operands else operands  # type: ignore[return-value]

    def _begin(self, value: TensorValue | SymValue, is_named: bool) -> Iterable[Value] | None:
        if value not in self.given:
            if not is_named or not self.begins(value):
                return None
            self.given[value] = Place(len(self.given), value.source.expr(), given=True)  # type: ignore[union-attr]
        return ()

    def _of(self, operations: list[Operation | None]) -> Iterable[Value] | None:
        """What operations read that have not been met before."""
        found: list[Value] = []
        for operation in operations:
            if operation in self.needed:
                continue
            if operation is None or not self._only_computes(operation):
                return None
            self.needed.add(operation)
            found += [operand for operand in _read(operation) if isinstance(operand, TensorValue | SymValue)]
        return found

    def _only_computes(self, operation: Operation) -> bool:
        """Whether all that an operation does is to compute what it does elsewhere too, and to write its operands."""
        effects, node = self.recorder.effects, getattr(operation, "node", None)
        if self.recorder.nodes.operations.get(node) is not operation or not computes_alike(operation.state, self.state):
            return False
        if operation.effectful and (node not in effects.writes or node in effects.acting or node in effects.drawing):
            return False
        name = getattr(operation.function, "__name__", "empty")
        return not any(word in name for word in _MEMORY) and _is_torchs(operation.function)

    def _place(self, value: Any) -> Place:
        """Where a value is found."""
        if value in self.given:
            return self.given[value]
        symbols = existing_symbols(self.recorder, value.number) if value.symbolic else None
        if symbols is not None:
            return self._of_symbols(str(value.number), symbols)
        if value.operation is None:
            return self._computed(value)
        made = self.results[value.operation]
        return Place(made.index, f"{made.text}{''.join(f'[{step}]' for step in value.path)}", value.path)

    def _of_symbols(self, expression: str, symbols: dict[str, Any]) -> Place:
        if expression not in self.results:
            places = [self.given[symbol] for symbol in symbols.values()]
            function = eval(f"lambda {', '.join(symbols)}: {expression}", {"__builtins__": {}})
            self.steps.append((function, tuple(map(Operand, range(len(places)))), {}, places))
            shown = re.sub(
                r"\w+", lambda name: self.given[symbols[name[0]]].text if name[0] in symbols else name[0], expression
            )
            self.results[expression] = Place(len(self.steps) - 1, shown)
        return self.results[expression]

    def _computed(self, value: SymValue) -> Place:
        node = value.node
        if node not in self.results:
            indices = {arg: Operand(i) for i, arg in enumerate(node.all_input_nodes)}
            args = tuple(indices.get(arg, arg) if isinstance(arg, torch.fx.Node) else arg for arg in node.args)
            operands = [self.recorder.nodes.values[arg] for arg in node.all_input_nodes]
            self.results[node] = self._step(node.target, args, {}, operands)
        return self.results[node]

    def _step(self, function: Any, args: Args, kwargs: Kwargs, operands: Sequence[Any]) -> Place:
        """Add a call; those of its operands that are known already become part of it."""
        places: list[Place] = []
        items: list[Any] = []
        shown: list[str] = []
        for operand in operands:
            known = _as_int(operand) if isinstance(operand, SymValue) else operand
            if known is None or isinstance(operand, TensorValue):
                items.append(Operand(len(places)))
                places.append(self._place(operand))
            else:
                items.append(known)
            shown.append(places[-1].text if isinstance(items[-1], Operand) else "…" if known is operand else str(known))
        text = _call_text(function, fill(args, list(map(Bare, shown))))
        self.steps.append((function, fill(args, items), fill(kwargs, items), places))
        return Place(len(self.steps) - 1, shortened(text, _MOST_TEXT))


def _call_text(function: Any, args: Any) -> str:
    """A call as the program might write it."""
    name, shown = getattr(function, "__name__", "").strip("_"), list(map(repr, args))
    if len(args) == 2:
        left, right = shown
        if name == "getitem":
            return f"{_enclosed(left)}[{_index_text(args[1])}]"
        sign = _SIGNS.get(f"__{name}__")
        if sign is None and name.startswith("r"):  # `1 - x` calls a method of x
            sign, left, right = _SIGNS.get(f"__{name[1:]}__"), right, left
        if sign in _COMPARING:
            return f"{left} {sign} {right}"
        if sign is not None:
            return f"{_enclosed(left)} {sign} {_enclosed(right)}"
    name = describe_callable(function)
    if name.startswith("Tensor.") and shown:
        name = f"{_enclosed(shown.pop(0))}.{name.removeprefix('Tensor.')}"
    return f"{name}({', '.join(shown)})"


def _index_text(index: Any) -> str:
    """What stands between the brackets: `1:, 0`."""
    if type(index) is slice:
        parts = [index.start, index.stop, *([] if index.step is None else [index.step])]
        return ":".join("" if part is None else repr(part) for part in parts)
    return ", ".join(map(_index_text, index)) if type(index) is tuple and len(index) > 1 else repr(index)


def _enclosed(text: str) -> str:
    """The text of an operand, in parentheses if an operator stands in it that binds less than what follows."""
    depth = 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == " " and not depth:
            return f"({text})"
    return text


def known_elements(value: TensorValue) -> int:
    """The number of elements of a tensor in this call, as far as its sizes are known."""
    return math.prod(size for size in map(hint_of, value.shape) if size is not None)


def _is_plain(value: TensorValue) -> bool:
    """Whether a tensor is one that ordinary code can make again."""
    if value.device.type != "cpu" or value.requires_grad:
        return False
    return value.meta is not None or is_describable(value.fake if value.host is None else value.host)


def _read(operation: Operation) -> list[object]:
    """The operands of an operation, with a tensor like it for one that is not read."""
    operands: list[object] = list(operation.operands)
    is_new = operation.function in _NEW
    first: Any = operands[0] if operands and (is_new or operation.function in _LIKE) else None
    if not isinstance(first, TensorValue) or first.meta is None or (first.meta.symbolic and not is_new):
        return operands
    others = leaves_of((operation.args[1:], operation.kwargs))
    if all(getattr(other, "index", None) != 0 for other in others if type(other) is Operand):
        shape, stride = ((0,), (1,)) if is_new else (first.meta.shape, first.meta.stride)
        operands[0] = torch.empty_strided(shape, stride, dtype=first.dtype, device=first.device)
    return operands


def _as_int(value: SymValue) -> int | None:
    """The number that a symbol is known to be in every call."""
    return value.number.node.maybe_as_int() if value.cls is int else None


def _is_torchs(function: Function) -> bool:
    """Whether a function is torch's own: one of a library, or of the program, might show how often it is called."""
    module = getattr(function, "__module__", None) or "torch"
    if function is getattr:  # `x.mT` of a tensor: other attributes are no operations
        return True
    return module == "torch._ops.aten" or (module.split(".")[0] in _PURE and not module.startswith("torch._ops"))
