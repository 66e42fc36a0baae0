"""How a set made by the trace came to be: a set made anew is ordered like it only if the same is done to it again.

The order of a set depends on the size of its table and on the places that were taken when an element came, so on what
was inserted and deleted in which order, and on the operations between sets it results from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator import errors
from stator.objects.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.residual.writer import Writer

Element = tuple[Any, Value]
_DEEPEST = 40


class Past:
    """One step, after the steps in `before`: a method and its operands, each another past or a list of elements."""

    __slots__ = ("before", "depth", "host", "marked", "method", "operands", "sealed", "value")

    def __init__(self, method: str = "", before: Past | None = None, *operands: Operand) -> None:
        self.method = method
        self.before = before
        self.operands = operands
        #: an existing set, or the result of a real computation, that the history begins with
        self.host: Any = None
        self.value: Value | None = None
        self.sealed = False
        #: whether deleted elements may have left marks, which count as elements when the table grows
        self.marked: bool = method in _MARKING or (method in ("add", "update") and before is not None and before.marked)
        pasts = [past for past in (before, *operands) if isinstance(past, Past)]
        self.depth: int = 1 + max((past.depth for past in pasts), default=0)

    @classmethod
    def of(cls, host: Any, value: Value | None = None) -> Past:
        """The past of a set that is there: an existing one (`value`), or one that code can embed."""
        self = cls("there")
        self.host = host
        self.value = value
        return self

    def then(self, method: str, element: Element) -> Past:
        """The past after one more element was added or discarded."""
        last = self.operands[0] if self.operands else None
        if isinstance(last, Elements) and not self.sealed and (self.method == method or self._is_list(method)):
            last.elements.append(element)
            return self
        if method == "add" and self.before is None and not self.operands and self.method == "":
            return Past("", None, Elements("list", [element]))
        return Past(method, self, Elements("list", [element]))

    def _is_list(self, method: str) -> bool:
        """Whether adding an element only makes the list longer that the set was made from."""
        last = self.operands[0]
        return method == "add" and self.method == "" and isinstance(last, Elements) and last.kind == "list"

    def seal(self) -> Past:
        """Another past refers to this one, which must not go on."""
        self.sealed = True
        return self

    def replay(self, kind: type) -> Any:
        """Do the same to a new host set of keys."""
        if self.method == "there":
            return self.host
        operands = [operand.replay(set) for operand in self.operands]
        if self.before is None:
            return kind(*operands)
        if self.method in _CHANGING:
            result = self.before.replay(set)
            getattr(result, _CHANGING[self.method])(*operands)
            return result if kind is set else kind(result)
        start = self.before.replay(kind)
        return getattr(set if isinstance(start, set) else frozenset, self.method)(start, *operands)

    def emit(self, writer: Writer, kind: type) -> str:
        """Code that does the same at run time; returns the name of the set."""
        if self.depth > _DEEPEST:
            raise Unsupported(errors.NotReconstructible("a set with a long history"))
        if self.method == "there":
            return writer.const(self.host) if self.value is None else writer.expr(self.value)
        operands = ", ".join([operand.emit(writer, set) for operand in self.operands])
        hint = kind.__name__
        if self.before is None:
            return writer.assign(hint, f"{writer.const(kind)}({operands})")
        if self.method in _CHANGING:
            name = self.before.emit(writer, set)
            writer.line(f"{name}.{_CHANGING[self.method]}({operands})")
            return name if kind is set else writer.assign(hint, f"{writer.const(kind)}({name})")
        start = self.before.emit(writer, kind)
        return writer.assign(hint, f"{writer.const(kind)}.{self.method}({', '.join(filter(None, (start, operands)))})")


class Elements:
    """An operand that is not a set: a dict, whose size counts, or any other iterable."""

    __slots__ = ("elements", "kind")

    def __init__(self, kind: str, elements: list[Element]) -> None:
        self.kind = kind
        self.elements = elements

    def replay(self, kind: type) -> Any:
        keys = [key for key, _ in self.elements]
        return dict.fromkeys(keys) if self.kind == "dict" else keys

    def emit(self, writer: Writer, kind: type) -> str:
        items = f"[{', '.join([writer.expr(value) for _, value in self.elements])}]"
        return f"{writer.const(dict)}.fromkeys({items})" if self.kind == "dict" else items


Operand = Past | Elements
_MARKING = frozenset({"discard", "difference", "symmetric_difference"})
#: steps that change the set they begin with, and the method that does it to several elements at once
_CHANGING = {"add": "update", "discard": "difference_update", "update": "update"}


def same_layout(a: Any, b: Any) -> bool:
    """Whether two host sets of the same keys are ordered alike, and will be after more are inserted."""
    return list(map(id, a)) == list(map(id, b)) and a.__sizeof__() == b.__sizeof__()
