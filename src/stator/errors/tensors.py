"""SB02xx: tensors, and Python that depends on what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stator.errors.catalogue import Break


@dataclass(frozen=True)
class DataDependentBranch(Break):
    """Control flow depends on the value of a tensor, which no trace knows."""

    code: ClassVar[str] = "SB0201"
    title: ClassVar[str] = "branch on the value of a tensor"
    template: ClassVar[str] = "{what} depends on the value of a tensor"
    hint: ClassVar[str] = "use torch.where or a mask, or decide before the compiled function"
    what: str = "a branch"


@dataclass(frozen=True)
class DataDependentValue(Break):
    """A Python value is made from the contents of a tensor."""

    code: ClassVar[str] = "SB0202"
    title: ClassVar[str] = "Python value made from a tensor's contents"
    template: ClassVar[str] = "{operation} makes a Python value from a tensor's contents"
    hint: ClassVar[str] = "keep it a tensor; single numbers (item, int) are captured with capture_scalar_outputs=True"
    operation: str


@dataclass(frozen=True)
class DynamicOutputShape(Break):
    """The shape of a result depends on the contents of an input."""

    code: ClassVar[str] = "SB0203"
    title: ClassVar[str] = "operation whose result's shape depends on data"
    template: ClassVar[str] = "the shape of the result of {operation} depends on the data"
    hint: ClassVar[str] = "use a form with a fixed shape: torch.where with three arguments, a mask, a padded result"
    operation: str


@dataclass(frozen=True)
class UnsupportedTensorOperation(Break):
    """An operation cannot be run on fake tensors, so its result is unknown."""

    code: ClassVar[str] = "SB0204"
    title: ClassVar[str] = "tensor operation that cannot be captured"
    template: ClassVar[str] = "{operation} cannot be run on tensors without data: {why}"
    hint: ClassVar[str] = "register a fake implementation (torch.library.register_fake) if the operator is yours"
    operation: str
    why: str


@dataclass(frozen=True)
class AutogradCall(Break):
    """The autograd engine is run inside the compiled function."""

    code: ClassVar[str] = "SB0205"
    title: ClassVar[str] = "run of the autograd engine"
    template: ClassVar[str] = "{operation} runs the autograd engine"
    hint: ClassVar[str] = "compile the forward pass and the loss; call backward outside"
    operation: str


@dataclass(frozen=True)
class PrintOfTensor(Break):
    """A tensor's value is turned into text."""

    code: ClassVar[str] = "SB0206"
    title: ClassVar[str] = "text of a tensor's value"
    template: ClassVar[str] = "{operation} needs the value of a tensor as text"
    hint: ClassVar[str] = "print its shape or dtype, or return it and print it outside of the compiled function"
    operation: str


@dataclass(frozen=True)
class UnsupportedTensorSubclass(Break):
    """A tensor subclass overrides operations below autograd (`__torch_dispatch__`)."""

    code: ClassVar[str] = "SB0207"
    title: ClassVar[str] = "tensor subclass with __torch_dispatch__"
    template: ClassVar[str] = "tensor subclass '{type_name}' defines __torch_dispatch__"
    hint: ClassVar[str] = "unwrap it before the compiled function, or define __torch_function__ instead"
    type_name: str


@dataclass(frozen=True)
class HigherOrderOperatorCall(Break):
    """An operator that takes functions, such as `torch.cond`, is called: what these do is not in its arguments."""

    code: ClassVar[str] = "SB0208"
    title: ClassVar[str] = "call of a higher-order operator"
    template: ClassVar[str] = "{operator} is a higher-order operator: it and the functions it is given run as in eager"
    hint: ClassVar[str] = "use operations on whole tensors (torch.where, a mask), or an ordinary loop of known length"
    operator: str


@dataclass(frozen=True)
class NewLeaf(Break):
    """A new tensor is to require gradients, and the backend would make another of it."""

    code: ClassVar[str] = "SB0209"
    title: ClassVar[str] = "new tensor that requires gradients"
    template: ClassVar[str] = "{operation} changes whether a tensor is a leaf of autograd's graph, or makes such a leaf"
    hint: ClassVar[str] = "make the tensor before the compiled function, and hand it in"
    operation: str


@dataclass(frozen=True)
class ForwardModeCall(Break):
    """Forward-mode differentiation begins, ends, or is asked for tangents."""

    code: ClassVar[str] = "SB0210"
    title: ClassVar[str] = "forward-mode differentiation"
    template: ClassVar[str] = "{function} is forward-mode differentiation, whose tangents no graph carries"
    hint: ClassVar[str] = "compile functions that are differentiated by backward(); keep dual levels outside of them"
    function: str
