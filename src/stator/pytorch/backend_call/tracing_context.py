"""What AOTAutograd and Inductor may ask of their front end about a graph, made when a backend asks for it.

A fake tensor mode with symbols needs a ShapeEnv, for which torch imports sympy, `torch._dynamo` and `torch._inductor`:
more than a second in every process. So do torch's names of inputs. Most backends that programs bring along ask for none
of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
import torch.fx

from stator.pytorch import internals
from stator.pytorch.fake.fakes import let_go

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from stator.pytorch.types import FakeTensorMode, Host

__all__ = ["Context", "name_later"]


class Context(internals.TracingContext):
    """A TracingContext whose fake tensor mode and symbolic contexts of tensors are missing until somebody asks."""

    #: where a backend leaves the assumptions that it has made (torch._guards.GuardsContext)
    guards_context: Host
    #: makes the ShapeEnv
    _env: Callable[[], object]
    #: what will be `tensor_to_context`: by tensor, what makes its symbolic context
    _makers: MutableMapping[torch.Tensor, Callable[[], object]]

    def __init__(self, env: Callable[[], object]) -> None:
        super().__init__(None)
        del self.fake_mode
        self._env = env
        self._makers = self.__dict__.pop("tensor_to_context")

    def about(self, tensor: torch.Tensor, make: Callable[[], object]) -> None:
        """The symbolic context of a tensor is what `make` returns."""
        self._makers[tensor] = make

    def make_mode(self) -> FakeTensorMode:
        """The fake tensor mode is made now."""
        self.fake_mode = internals.FakeTensorMode(shape_env=self._env())
        return self.fake_mode

    def __getattr__(self, name: str) -> object:
        if name == "fake_mode":
            return self.make_mode()
        if name == "tensor_to_context":
            contexts = self.__dict__.pop("_makers")
            for tensor, make in list(contexts.items()):
                contexts[tensor] = make()
            self.tensor_to_context = contexts
            return contexts
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Meanwhile it is the TracingContext."""
        asked = True
        try:
            with internals.tracing(self):
                try:
                    yield
                finally:
                    asked = "fake_mode" in vars(self)
                    if not asked:
                        self.fake_mode = None  # torch looks whether there is a ShapeEnv to tidy up
        finally:
            if not asked:
                del self.fake_mode

    def outlive(self, env: Callable[[], object]) -> None:
        """The trace has ended; who has kept this may ask yet, and gets a mode with the ShapeEnv that `env` makes.

        The inputs, which were watched weakly, are let go of: they are not described any more.
        """
        self._env = env
        (self._makers if "_makers" in vars(self) else self.tensor_to_context).clear()
        if "fake_mode" in vars(self):
            let_go(self.fake_mode)


class _Input(torch.fx.Node):
    """An input of a graph without the origin that AOTAutograd looks for on it, until it does."""

    def __getattr__(self, name: str) -> object:
        if name != internals.ORIGIN:
            raise AttributeError(f"'Node' object has no attribute {name!r}", name=name, obj=self)
        make = self.__dict__.pop(_MAKER)
        self.__class__ = torch.fx.Node
        internals.note_origin(self, make())
        return getattr(self, name)


_MAKER = "_make_origin"


def name_later(node: torch.fx.Node, make: Callable[[], object]) -> None:
    """An input comes from where the result of `make` says."""
    node.__class__ = _Input
    vars(node)[_MAKER] = make
