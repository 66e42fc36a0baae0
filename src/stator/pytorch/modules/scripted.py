"""TorchScript: what `torch.jit.script` and `torch.jit.trace` have made is one operation of the graph.

A function is called as it is, by the backend too, which sees the operators in it. A module keeps its parameters in C++,
where nobody could tell them from constants; so its `forward` is rewritten into a function that takes as arguments what
it reads of the module: tensors are inputs of the graph, and numbers are constants, guarded to be what they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.guards.guard import Equals
from stator.guards.source import CallSource
from stator.pytorch import internals
from stator.pytorch.fake.failure import Failure, first_line
from stator.pytorch.graph.subgraph import record_module
from stator.pytorch.tensors.lowering import Call, Lowering, fill
from stator.space.protocol import MODELS, register
from stator.space.signals import DoFirst
from stator.space.value import Constant, Known, Unsupported, Value
from stator.space.wrapping import LITERALS

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.pytorch.types import Args, Host, Kwargs
    from stator.space.space import Space

#: attributes from a module on, as in "layers.0.weight"
Path = tuple[str, ...]

__all__ = ["install"]

#: what a script does besides computing: it would be done while tracing
_EFFECTS = ("prim::Print", "aten::warn", "prim::PythonOp", "prim::CallMethod", "prim::SetAttr", "aten::wait")
#: what writes into the memory of the tensor that it has made, past torch's dispatcher: a fake tensor has none
_WRITERS = ("aten::tensor", "aten::as_tensor")


class Scripted(Known):
    """A scripted function, known by identity."""

    __slots__ = ()

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        self = cls(host, source)
        space.guard_identity(self)
        return self

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        return call_function(space, self.host, args, kwargs)


class ScriptedMethod(Scripted):
    """A method of a scripted or traced module."""

    __slots__ = ()

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        rewritten = Rewritten(self.host)
        given = _positional(space, rewritten, args, kwargs)
        given += [space.existing(value, "a constant of the script") for value in rewritten.values]
        given += [space.wrap(tensor, self._source(path)) for path, tensor in rewritten.tensors.items()]
        for path, value in rewritten.constants.items():
            space.trace.guard(Equals(self._source(path), value))
        return perform(space, rewritten.name, rewritten.function(), given, {})

    def _source(self, path: Path) -> Source:
        assert self.source is not None
        return CallSource(reader(path), self.source, ".".join(path))


def call_function(space: Space, function: Host, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A scripted function is what it was made as."""
    refuse_effects(function.inlined_graph, function.name)
    return perform(space, function.name, function, args, kwargs)


class Rewritten:
    """The graph of a scripted method as one of a function, whose last arguments are the `tensors` of the module.

    `constants` are the other attributes that it reads: they are part of the graph. `values` are the tensors of the
    graph itself, which come before those of the module.
    """

    def __init__(self, method: Host) -> None:
        self.name = str(method.name)
        self.arguments = method.schema.arguments[1:]
        self.graph = method.inlined_graph.copy()
        self.tensors: dict[Path, torch.Tensor] = {}
        self.constants: dict[Path, Host] = {}
        refuse_effects(self.graph, self.name)
        self.values = [self._lifted(node) for node in self.graph.findAllNodes("prim::Constant") if _is_tensor(node)]
        owner = method.owner
        inputs: dict[Path, Any] = {}
        nodes = self.graph.findAllNodes("prim::GetAttr")
        for node in nodes:
            path = _path_of(node)
            value = read(owner, path)
            if isinstance(value, torch.ScriptObject):
                continue
            if isinstance(value, torch.Tensor):
                if path not in inputs:
                    self.tensors[path] = value
                    inputs[path] = self.graph.addInput()
                    inputs[path].setType(node.output().type())
                node.output().replaceAllUsesWith(inputs[path])
            else:
                self.constants[path] = value
                self.graph.setInsertPoint(node)
                node.output().replaceAllUsesWith(self._constant(value))
        for node in reversed(nodes):
            if node.hasUses():
                raise refusal(self.name, "it passes a module on")
            node.destroy()

    def _lifted(self, node: Any) -> torch.Tensor:
        value: torch.Tensor = node.t("value")
        node.output().replaceAllUsesWith(self.graph.addInput())
        node.destroy()
        return value

    def _constant(self, value: Host) -> Any:
        if type(value) not in LITERALS:
            raise refusal(self.name, f"it reads an object of type {type(value).__qualname__}")
        return self.graph.insertConstant(value)

    def function(self) -> Host:
        """The function, which takes no module."""
        if next(iter(self.graph.inputs())).uses():
            raise refusal(self.name, "it passes its module on")
        self.graph.eraseInput(0)
        return internals.function_of_graph(self.name, self.graph)


def _is_tensor(node: Any) -> bool:
    return node.output().type().kind() == "TensorType"


def _path_of(node: Any) -> Path:
    """The attributes that lead from the module to what a `prim::GetAttr` gives."""
    base = node.input().node()
    return (*(_path_of(base) if base.kind() == "prim::GetAttr" else ()), node.s("name"))


def read(owner: Host, path: Path) -> Host:
    """The attribute of a module of TorchScript."""
    return functools.reduce(lambda module, name: module.getattr(name), path, owner)


@functools.cache
def reader(path: Path) -> Callable[[Host], Host]:
    """What reads that attribute of a method's module: one function for each path, by which sources are told apart."""
    return lambda method: read(method.owner, path)


def refuse_effects(graph: Any, name: str) -> None:
    """A script that prints, or does anything else but compute, is not for the tracer to run; nor is one that would
    crash the interpreter there (`x + torch.tensor([1.0, 2.0])`).
    """
    for kinds, why in ((_EFFECTS, "does more than compute"), (_WRITERS, "writes a list into memory")):
        for kind in kinds:
            if graph.findNode(kind) is not None:
                raise refusal(name, f"it has an operation {kind}, which {why}")


def refusal(name: str, why: str) -> Unsupported:
    """The script is left to ordinary Python."""
    return Unsupported(errors.UnsupportedTensorOperation(f"the script {name}", why))


def _positional(space: Space, rewritten: Rewritten, args: list[Value], kwargs: dict[str, Value]) -> list[Value]:
    """The arguments in their order, with defaults."""
    rest = rewritten.arguments[len(args) :]
    if len(args) > len(rewritten.arguments) or not kwargs.keys() <= {argument.name for argument in rest}:
        raise Unsupported(errors.UnsupportedCCall(rewritten.name))  # its TypeError shows types
    filled = [*args]
    for argument in rest:
        if argument.name not in kwargs and not argument.has_default_value():
            raise Unsupported(errors.UnsupportedCCall(rewritten.name))
        filled.append(kwargs.get(argument.name) or Constant(argument.default_value))
    return filled


class Script(torch.nn.Module):
    """Calls a scripted function with tensors in their places among its arguments."""

    def __init__(self, function: Host, args: Args, kwargs: Kwargs) -> None:
        super().__init__()
        self.function, self.args, self.kwargs = function, args, kwargs

    def forward(self, *tensors: torch.Tensor) -> Any:
        args, kwargs = fill(self.args, tensors), fill(self.kwargs, tensors)
        # What is only traced is not to be optimised for: the passes compute with constants, which a tracer would see.
        with torch.jit.optimized_execution(not internals.len_dispatch_stack()):
            return self.function(*args, **kwargs)


def perform(space: Space, name: str, function: Host, args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
    """Record the call of a scripted function."""
    call = Call(function, "call_module", name)
    lowering = Lowering(space, call)
    call.args = tuple([lowering.value(arg)[0] for arg in args])
    call.kwargs = {key: lowering.value(arg)[0] for key, arg in kwargs.items()}
    module = Script(function, call.args, call.kwargs)
    try:
        return record_module(space.trace.recorder, "script", module, call.operands)
    except Failure as failure:
        raise refusal(name, first_line(failure.error)) from None


def _forward(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The `forward` of a scripted module, which it keeps in its dict once it has been asked for."""
    module = getattr(args[0 if len(args) == 1 else 1].force(), "host", None)
    what = f"the forward of the module at {id(module)}"
    if not isinstance(module, torch.jit.ScriptModule) or what in space.trace.done_first:
        return None
    raise DoFirst(what, lambda: module.forward)


def install() -> None:
    """Register the models."""
    MODELS[torch.jit.ScriptFunction] = Scripted
    MODELS[internals.ScriptMethod] = ScriptedMethod
    register(internals.CachedForward.__get__, _forward)
