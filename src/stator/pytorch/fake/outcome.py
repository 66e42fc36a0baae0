"""What an operation returned and did, described without its tensors, so that it can be remembered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.metadata import TensorMeta, is_symbol, meta_of
from stator.pytorch.fake.storage import storages_of
from stator.pytorch.fake.watcher import OpObservation
from stator.pytorch.tensors.classes import is_wrapper
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.traced import Operation, TracedTensor
    from stator.pytorch.types import Descriptions, FakeOperand, Function, Host, Nested, Number, Path
    from stator.space.space import Space

#: the traced tensors of a result
Made: TypeAlias = Mapping["Path", "TracedTensor"]

__all__ = ["Outcome", "Result", "TensorResult", "outcome_of", "versions_of"]

_HOSTS = (int, float, bool, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)


class Result:
    """One part of a result; the subclasses are the kinds."""

    __slots__ = ()
    #: whether the part is all there is to know, so that the outcome may be remembered
    lasting = True
    #: whether the graph computes it, or a part of it
    computed = True

    def build(self, space: Space, operation: Operation, path: Path) -> Value:
        """The traced value of the part of the operation's result that is found at `path`."""
        raise NotImplementedError

    def example(self, operation: Operation, values: Made, path: Path) -> Nested:
        """The part as a fake result; `values` are the traced tensors by their paths."""
        raise NotImplementedError

    def mapped(self, meta: Function, number: Function) -> Result:
        """The part with other descriptions and numbers in it."""
        return self


class TensorResult(Result):
    """A new tensor; `meta` is None for a kind that has no short description."""

    __slots__ = ("alias", "cls", "lasting", "meta")

    def __init__(self, meta: TensorMeta | None, lasting: bool, alias: int | None, cls: type = torch.Tensor) -> None:
        self.meta = meta
        #: its class, if it is a wrapper
        self.cls = cls
        #: the position of the operand whose memory it shares
        self.alias = alias
        self.lasting = lasting and meta is not None

    def build(self, space: Space, operation: Operation, path: Path) -> Value:
        return operation.made(self.meta, path, self.alias, self.cls)

    def example(self, operation: Operation, values: Made, path: Path) -> Nested:
        return operation.recorder.fakes.example(values[path])

    def mapped(self, meta: Function, number: Function) -> Result:
        return TensorResult(meta(self.meta), self.lasting, self.alias, self.cls)


class ArgumentResult(Result):
    """The very tensor that was the `index`-th of the tensor arguments."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def build(self, space: Space, operation: Operation, path: Path) -> Value:
        return operation.operands[self.index]

    def example(self, operation: Operation, values: Made, path: Path) -> Nested:
        return operation.recorder.fakes.example(operation.operands[self.index])


class HostResult(Result):
    """A known immutable object."""

    __slots__ = ("host",)
    computed = False

    def __init__(self, host: Host) -> None:
        self.host = host

    def build(self, space: Space, operation: Operation, path: Path) -> Value:
        return space.fresh(self.host)

    def example(self, operation: Operation, values: Made, path: Path) -> Nested:
        return self.host


class SymbolicResult(Result):
    """A number that depends on sizes only known as symbols."""

    __slots__ = ("number",)

    def __init__(self, number: Number) -> None:
        self.number = number

    def build(self, space: Space, operation: Operation, path: Path) -> Value:
        return operation.made_number(self.number, path)

    def example(self, operation: Operation, values: Made, path: Path) -> Nested:
        return self.number

    def mapped(self, meta: Function, number: Function) -> Result:
        return SymbolicResult(number(self.number))


class SequenceResult(Result):
    """A list or tuple (or structure sequence) of parts."""

    __slots__ = ("cls", "computed", "items", "lasting")

    def __init__(self, cls: type, items: list[Result]) -> None:
        self.cls = cls
        self.items = items
        self.lasting = all(item.lasting for item in items)
        self.computed = any(item.computed for item in items)

    def build(self, space: Space, operation: Operation, path: Path) -> Value:
        parts = [item.build(space, operation, (*path, i)) for i, item in enumerate(self.items)]
        if self.cls is list:
            return space.new_list(parts)
        made: Any = space.new_tuple(parts)
        made.cls = self.cls
        return made

    def example(self, operation: Operation, values: Made, path: Path) -> Nested:
        parts = [item.example(operation, values, (*path, i)) for i, item in enumerate(self.items)]
        return parts if self.cls is list else tuple(parts)

    def mapped(self, meta: Function, number: Function) -> Result:
        return SequenceResult(self.cls, [item.mapped(meta, number) for item in self.items])


class Outcome:
    """The result of an operation, and its effects on its tensor arguments."""

    __slots__ = (
        "counts",
        "effectful",
        "fallible",
        "lasting",
        "makes_leaf",
        "random",
        "result",
        "rigid",
        "warned",
        "written",
    )

    def __init__(
        self, result: Result, written: tuple[int, ...], effectful: bool, lasting: bool, random: bool = False
    ) -> None:
        self.result = result
        #: whether a new tensor in the result is a leaf of autograd's graph that gradients are accumulated in
        self.makes_leaf = False
        #: whether it draws random numbers
        self.random = random
        #: positions of the tensor arguments whose contents changed
        self.written = written
        #: by how much the version of each of these has grown: not at all for the statistics of a BatchNorm
        self.counts: tuple[int, ...] = (0,) * len(written)
        #: whether the operation must be performed even if its result is unused
        self.effectful = effectful
        #: whether the same operation on operands of the same metadata has the same outcome again
        self.lasting = lasting
        #: the categories of what it warns about
        self.warned: tuple[type, ...] = ()
        #: whether a backend cannot make it one that writes nothing
        self.rigid = False
        #: whether it may fail when it runs
        self.fallible = False

    @property
    def traced(self) -> bool:
        """Whether the operation belongs in the graph: one that only read metadata does not."""
        return self.effectful or self.result.computed


def versions_of(operands: list[FakeOperand]) -> list[int]:
    """How often each operand counts as written; a tensor made in inference mode counts no writes."""
    return [internals.version(t) if isinstance(t, torch.Tensor) and not t.is_inference() else 0 for t in operands]


def outcome_of(
    observed: OpObservation, operands: list[FakeOperand], before: list[int], name: str, symbolic: Descriptions
) -> Outcome:
    """Describe a run on the given fake operands, whose versions were `before`.

    `symbolic` is the trace's table of descriptions with symbols.
    """
    tensors = {i: t for i, t in enumerate(operands) if isinstance(t, torch.Tensor)}
    description = _Description(tensors, name, symbolic)
    result = description.of(observed.result)
    written = tuple(i for i, t in tensors.items() if observed.written and storages_of(t) & observed.written)
    effectful = bool(written) or observed.random or observed.effectful or observed.result is None
    outcome = Outcome(result, written, effectful, result.lasting, observed.random)
    after = versions_of(operands) if written else before
    outcome.counts = tuple(after[i] - before[i] for i in written)
    outcome.makes_leaf = description.leaf
    outcome.warned = tuple(observed.warned)
    outcome.rigid = observed.rigid
    # What gives its argument back, as `coalesce` does where there is nothing to do, has looked at metadata only.
    outcome.fallible = observed.fallible and (effectful or not isinstance(result, ArgumentResult))
    return outcome


class _Description:
    """Describes the result of a call on the given tensors."""

    def __init__(self, operands: dict[int, torch.Tensor], name: str, symbolic: Descriptions) -> None:
        self.by_id = {id(t): i for i, t in operands.items()}
        self.by_storage = {storage: i for i, t in operands.items() for storage in storages_of(t)}
        self.name = name
        self.symbolic = symbolic
        #: whether a new leaf of autograd's graph has been met
        self.leaf = False

    def of(self, result: Nested) -> Result:
        """The description of a host result."""
        if isinstance(result, torch.Tensor):
            index = self.by_id.get(id(result))
            if index is not None:
                return ArgumentResult(index)
            shared = storages_of(result) & self.by_storage.keys()
            alias = min(map(self.by_storage.__getitem__, shared), default=None)
            self.leaf |= alias is None and result.requires_grad and result.is_leaf
            cls = type(result) if is_wrapper(type(result)) else torch.Tensor
            return TensorResult(meta_of(result, self.symbolic), getattr(result, "constant", None) is None, alias, cls)
        if is_symbol(result):
            return SymbolicResult(result)
        if isinstance(result, torch.Size | list | tuple):
            return SequenceResult(type(result), [self.of(item) for item in result])
        if result is NotImplemented or isinstance(result, _HOSTS):
            return HostResult(result)
        kind = f"{type(result).__module__}.{type(result).__qualname__}"
        raise Unsupported(errors.OpaqueResult(f"{kind} ({self.name})"))


__all__ += ["ArgumentResult", "HostResult", "SequenceResult", "SymbolicResult"]
