"""What handles operations on distributed tensors: a table of torch's and a switch, which contexts change for a while.

    with loss_parallel():                  # puts functions into the table
    with implicit_replication():           # lets plain tensors be operands

They are a part of the global state: an operation on a distributed tensor does what they say when it is traced, and a
backend that takes the tensors apart writes that down. torch's own contexts change the state in the graph. Where the
traced program itself has changed the table, which is put off until the graph has run, such an operation breaks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.state.switches import HANDLERS
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.tensors.lowering import Call

__all__ = ["rely_on_handlers"]


def rely_on_handlers(recorder: Recorder, call: Call) -> None:
    """Guard them where there is a distributed tensor among the operands."""
    cls = internals.distributed_tensor()
    if cls is None or not any(issubclass(tensor.cls, cls) for tensor in tensors_among(call.operands)):
        return
    recorder.state.rely((HANDLERS,))
    recorder.state.handles_otherwise |= recorder.state.differs(HANDLERS)
    dispatcher = internals.tensor_dispatcher
    own = dispatcher, internals.tensor_handlers(dispatcher)
    if any(host is part for host in recorder.trace.effects.changed_hosts() for part in own):
        why = "what handles operations on distributed tensors has been changed by the program"
        raise Unsupported(errors.UnsupportedTensorOperation(describe_callable(call.function), why))
