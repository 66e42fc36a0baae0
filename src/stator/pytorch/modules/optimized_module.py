"""`isinstance(compiled, torch._dynamo.OptimizedModule)`: how libraries ask whether a module is compiled.

A compiled module is an instance of its module's class, and says so by `__class__`; it cannot be one of torch's wrapper
too. So the wrapper's class is given a metaclass that answers for compiled modules as well, like `abc` for registered
classes. That happens when the program loads `torch._dynamo`, which Stator itself has no use for.

>>> accelerate.utils.is_compiled_module(torch.compile(model))
True
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stator._core import set_metaclass
from stator.host.waiting import when_loaded
from stator.pytorch.modules.compiled_forward import is_torchs
from stator.pytorch.modules.compiled_module import is_compiled_module

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["install"]


class _AnswersForCompiledModules(type):
    __slots__ = ()

    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        # Not for subclasses of the wrapper, which have the metaclass as well.
        if not is_compiled_module(instance) or isinstance(cls.__base__, _AnswersForCompiledModules):
            return False
        # What torch's own code does then is to take its wrapper apart, of which a compiled module has nothing: Inductor
        # looks for the wrapper's context, torch.distributed.checkpoint for its `_orig_mod.` in the names of parameters.
        return not is_torchs(sys._getframe(1).f_globals)


def install() -> None:
    """Have torch's wrapper answer for compiled modules, from when it exists."""
    when_loaded("torch._dynamo.eval_frame", _answer)


def _answer(eval_frame: ModuleType) -> None:
    wrapper = getattr(eval_frame, "OptimizedModule", None)
    if type(wrapper) is type:
        set_metaclass(wrapper, _AnswersForCompiledModules)
