"""What annotations call things of torch's without a public name, and objects of which only the program knows the type.

Nothing of this is there at run time: it is imported for annotations alone. To mypy torch's names are `Any`; to the
reader they are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

#: an object of the process: what it is, the traced program decides
Host: TypeAlias = Any
#: a function or class of the process, that of the program or torch's
Function: TypeAlias = Callable[..., Any]
#: positional and named arguments; with places left open for tensors (see `tensors.lowering`), or without
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
#: arguments, results: tensors and other objects, nested in tuples, lists and dicts
Nested: TypeAlias = Any

#: a tensor without data (torch._subclasses.fake_tensor.FakeTensor), or a small real one that takes its place
Fake: TypeAlias = torch.Tensor
#: the mode that such tensors belong to (FakeTensorMode)
FakeTensorMode: TypeAlias = Any
#: an int, float or bool, or a symbol of torch's in its place (torch.SymInt …)
Number: TypeAlias = Any
#: where in a result a part is found, from the outside in: indices, and names of attributes
Path: TypeAlias = tuple[int | str, ...]
#: what an operation is tried on: a fake tensor or a symbolic number
FakeOperand: TypeAlias = torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool
#: torch._ops.OpOverload
Operator: TypeAlias = Any
#: torch._C.FunctionSchema, and one of its arguments (torch._C.Argument)
Schema: TypeAlias = Any
Argument: TypeAlias = Any
#: what the reference implementation calls the origin of an input (torch._guards.Source)
Origin: TypeAlias = Any
#: how the ShapeEnv is to make symbols of a tensor's sizes (torch.fx.experimental.symbolic_shapes.SymbolicContext)
SymbolicContext: TypeAlias = Any
#: a traced value that a graph has a node for: a TensorValue, or a SymValue
GraphValue: TypeAlias = Any
#: how an operand is described: TensorMeta, NumberMeta, or None for a tensor that has no short description
OperandMeta: TypeAlias = Any
#: a trace's table of the descriptions that hold symbols
Descriptions: TypeAlias = dict[object, Any]
