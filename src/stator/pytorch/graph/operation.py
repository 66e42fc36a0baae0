"""One recorded call: what it was called with, what it made, and how to run it again for fake tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch.nesting import part_of
from stator.pytorch.shapes.symbols import SymValue
from stator.pytorch.tensors.lowering import fill
from stator.pytorch.tensors.tensor import TensorValue

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.fake.fake_executor import FakeExecutor
    from stator.pytorch.fake.metadata import TensorMeta
    from stator.pytorch.fake.outcome import Result
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.tensors.lowering import Call
    from stator.pytorch.types import Args, Function, Kwargs, Nested, Number, Path
    from stator.space.value import Value

__all__ = ["Operation"]


class Operation:
    """One recorded call.

    `state` is the global state that it ran in, `step` the instruction that it was recorded for; `bindings` are the
    symbols that its node makes, with where in its result they are found, for later passes; `called` is what the
    program has called, if it is a part of another function.
    """

    __slots__ = (
        *(
            "args",
            "bindings",
            "called",
            "effectful",
            "function",
            "key",
            "kwargs",
            "made_values",
            "node",
            "operands",
            "recorder",
        ),
        *("result", "state", "step"),
    )

    node: torch.fx.Node
    result: Result

    def __init__(self, recorder: Recorder, call: Call) -> None:
        self.recorder = recorder
        self.function: Function = call.function
        self.args: Args = call.args
        self.kwargs: Kwargs = call.kwargs
        self.key: object = call.key
        self.state: object = recorder.state.key
        self.step: int = recorder.trace.steps
        self.effectful = False
        self.operands: list[Value] = call.operands
        self.made_values: list[TensorValue] = []
        self.bindings: Any = None
        self.called: Function = call.function

    def example(self) -> Nested:
        """A fake result to show, in the structure of the real one."""
        values = {value.path: value for value in self.made_values}
        return self.result.example(self, values, ())

    def made(
        self, meta: TensorMeta | None, path: Path, alias: int | None = None, cls: type = torch.Tensor
    ) -> TensorValue:
        """The traced tensor found at `path` of the result; `alias` is the operand whose memory it shares."""
        value = TensorValue(self.recorder, cls, meta)
        value.operation = self
        value.path = path
        if alias is not None:
            value.root = self.operands[alias].root  # type: ignore[attr-defined]
        self.made_values.append(value)
        return value

    def made_number(self, number: Number, path: Path) -> Value:
        """The symbolic number found at `path` of the result."""
        return SymValue(self.recorder, number, self, path)

    def made_already(self, result: Nested) -> None:
        """There is a fake result: each value made of it gets its fake tensor at once."""
        self.made_values = _Adopting(self, result)

    def adopt(self, value: TensorValue, result: Nested) -> None:
        """Give a value of the result its fake tensor."""
        for step in value.path:
            result = part_of(result, step)
        value._fake = result
        self.recorder.tracked.note(value)

    def replay(self, fake_executor: FakeExecutor) -> None:
        """Run it on fake tensors."""
        fakes = [operand.fake for operand in self.operands]  # type: ignore[attr-defined]
        result = fake_executor.run(self.function, self.args, self.kwargs, fakes, fill).result
        for value in self.made_values:
            if value._fake is None:
                self.adopt(value, result)


class _Adopting(list[TensorValue]):
    """The values made of a result that is there already."""

    def __init__(self, operation: Operation, result: Nested) -> None:
        super().__init__()
        self.operation = operation
        self.result = result

    def append(self, value: TensorValue) -> None:
        self.operation.adopt(value, self.result)
        super().append(value)
