"""Running operations on fake tensors: what they return, what they mutate, and how they fail."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.fakes import FakeMode
from stator.pytorch.fake.kernels import examine
from stator.pytorch.fake.python_kernels import agree, as_numbers
from stator.pytorch.fake.storage import overlaps, storage_of
from stator.space.value import Unsupported
from stator.space.warning_trap import collected

__all__ = [
    "Failure",
    "FakeExecutor",
    "OpObservation",
    "Watcher",
    "casts_not_kept",
    "describe_callable",
    "warnings_of_torch",
]

#: operators that update a running statistic though their schemas do not say so
_SILENT_MUTATORS = frozenset(
    {"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm", "aten::batch_norm"}
)

#: operators that return nothing, and do nothing but raise
_CHECKS = frozenset({"aten::_linalg_check_errors"})

#: operators that may write an element twice
_IDEMPOTENT = frozenset({"aten::fill_", "aten::zero_"})


class Failure(Exception):
    """The operation raised `error` on fake tensors: the program's own fault, as far as can be seen."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
        #: the categories of what it warned about before
        self.warned: set[type] = set()


class OpObservation:
    """One run of an operation: its result, the storages it wrote to, whether it drew random numbers."""

    __slots__ = ("effectful", "fallible", "overlap", "random", "refused", "result", "rigid", "warned", "written")

    def __init__(self) -> None:
        self.result: Any = None
        self.written: set[int] = set()
        self.random = False
        self.effectful = False
        #: whether it wrote to memory that lies, in part, beneath something else
        self.overlap = False
        #: the categories of what it warned about
        self.warned: set[type] = set()
        #: whether torch cannot functionalise it: it was given an empty list to write to, which torch takes for tensors
        #: that are not its own, or has no kernel that runs without data
        self.rigid = False
        #: whether it may fail when it runs for real, on operands of the same metadata
        self.fallible = False
        #: the error that it is sure to fail with then
        self.refused: Exception | None = None


class Watcher(internals.TorchDispatchMode):
    """Notes writes and random draws of the operators that run beneath one call."""

    supports_higher_order_operators = True
    #: whether the operators run on tensors that hold something
    real = False

    def __init__(self, observed: OpObservation) -> None:
        super().__init__()
        self.observed = observed

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # what is put around `__torch_dispatch__` otherwise imports it

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, internals.HigherOrderOperator):  # says nothing of itself; what it calls does
            self.observed.fallible = True
            return func(*args, **kwargs)
        schema = internals.schema(func)
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.observed.random = True
        if schema.is_mutable:
            self.observed.rigid |= not _runs_without_data(func)
            self._note_writes(schema, args, kwargs)
        elif schema.name in _SILENT_MUTATORS:
            for arg in args[3:5]:
                self._note(arg)
        if (not schema.returns and schema.name not in _CHECKS) or "_assert" in schema.name:
            self.observed.effectful = True
        result = func(*args, **kwargs)
        fallible, refused = examine(func, args, kwargs, result, ran=self.real)
        self.observed.fallible |= fallible
        self.observed.refused = self.observed.refused or refused
        return result

    def _note_writes(self, schema: Any, args: Any, kwargs: Any) -> None:
        for i, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                if argument.name in kwargs:
                    self._note(kwargs[argument.name])
                elif i < len(args):
                    self._note(args[i])
                    self._look_beneath(schema, args[i], (*args, *kwargs.values()))

    def _look_beneath(self, schema: Any, written: Any, operands: Any) -> None:
        if isinstance(written, torch.Tensor) and schema.name not in _IDEMPOTENT:
            self.observed.overlap |= overlaps(written, operands)

    def _note(self, arg: Any) -> None:
        if isinstance(arg, torch.Tensor):
            self.observed.written.add(storage_of(arg))
        elif isinstance(arg, list | tuple):
            self.observed.rigid |= not arg
            for item in arg:
                self._note(item)


@functools.cache
def _runs_without_data(operator: Any) -> bool:
    """Whether an operator of ATen has a kernel for tensors without data, and fake tensors need none of their own."""
    name = operator.name()
    return not name.startswith("aten::") or any(internals.has_kernel(name, key) for key in _WITHOUT_DATA)


#: where kernels are registered that run on tensors without data
_WITHOUT_DATA = (
    *("Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd"),
    "CompositeExplicitAutogradNonFunctional",
)


class FakeExecutor:
    """A fake tensor mode, and the running of operations in it."""

    def __init__(self, shape_env: Any = None) -> None:
        self.shape_env = shape_env
        self.mode = FakeMode(shape_env)
        #: where the sizes of a call are numbers, if there are symbols here
        self._numbers: FakeExecutor | None = None

    def admit(self, shape_env: Any) -> None:
        """From now on there may be symbols."""
        self.shape_env = shape_env
        self.mode.admit(shape_env)

    def forget_new_symbols(self) -> bool:
        """Whether the last operation has made symbols of numbers it would read from data; they are dropped."""
        pending = None if self.shape_env is None else self.shape_env.pending_fresh_unbacked_symbols
        if not pending:
            return False
        pending.clear()
        return True

    def run(
        self, function: Callable[..., Any], args: Any, kwargs: Any, operands: list[Any], fill: Callable[..., Any]
    ) -> OpObservation:
        """Call a function on fake tensors. Raises Failure for its own errors, Unsupported for what cannot be faked.

        `fill(template, operands)` puts the operands into `args` and `kwargs`.
        """
        by_python = None if self.shape_env is None else self._by_python(function, args, kwargs, operands, fill)
        return by_python or self._observe(function, fill(args, operands), fill(kwargs, operands))

    def _by_python(
        self, function: Callable[..., Any], args: Any, kwargs: Any, operands: list[Any], fill: Callable[..., Any]
    ) -> OpObservation | None:
        """The run by torch's kernels in Python, if for the sizes of this call they do what those in C++ do."""
        if self._numbers is None:
            self._numbers = FakeExecutor()
        numbers = as_numbers(operands, self._numbers.mode)
        if numbers is None:
            return None
        try:
            expected = self._numbers.run(function, args, kwargs, numbers, fill)
            with internals.EnablePythonDispatcher():
                observed = self._observe(function, fill(args, operands), fill(kwargs, operands))
        except (Failure, Unsupported):
            return None
        if not agree(observed, operands, expected, numbers):
            if observed.written:
                raise Unsupported(errors.UnsupportedMutation(describe_callable(function), "a tensor of symbolic sizes"))
            return None
        observed.fallible |= expected.fallible
        observed.warned = expected.warned
        return observed

    def _observe(self, function: Callable[..., Any], args: Any, kwargs: Any) -> OpObservation:
        if any(isinstance(arg, torch.dtype) and arg in _QUANTIZED for arg in (*args, *kwargs.values())):
            name = getattr(function, "__name__", str(function))
            raise Unsupported(errors.UnsupportedTensorOperation(name, "fake tensors cannot be quantised"))
        observed = OpObservation()
        try:
            with self.mode, Watcher(observed), casts_not_kept(), warnings_of_torch(observed.warned):
                observed.result = function(*args, **kwargs)
        except Exception as e:
            meaning = translated(function, e)
            if isinstance(meaning, Failure):
                meaning.warned = observed.warned
            raise meaning from e
        if observed.refused is not None:
            failure = Failure(observed.refused)
            failure.warned = observed.warned
            raise failure
        if observed.overlap:
            name = describe_callable(function)
            raise Unsupported(errors.UnsupportedMutation(name, "memory that is shared in part"))
        return observed


#: types that fake tensors do not take: what ought to have them has the original's, and is the original
_QUANTIZED = frozenset({torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4})


@contextlib.contextmanager
def casts_not_kept() -> Iterator[None]:
    """Autocast keeps nothing meanwhile."""
    # The cache that autocast keeps is the business of the real run.
    caching = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(caching)


class _WarnAlways:
    """torch warns each time while somebody needs to hear of it, and does not note what it has warned about once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.before = False

    def __enter__(self) -> None:
        with self.lock:
            if not self.users:
                self.before = torch.is_warn_always_enabled()
                torch.set_warn_always(True)
            self.users += 1

    def __exit__(self, *exc_info: object) -> None:
        with self.lock:
            self.users -= 1
            if not self.users:
                torch.set_warn_always(self.before)


_ALWAYS = _WarnAlways()


@contextlib.contextmanager
def warnings_of_torch(categories: set[type]) -> Iterator[None]:
    """Warnings of operations are not shown, and their categories put into the set."""
    with _ALWAYS, collected(categories):
        yield


def translated(function: Any, error: Exception) -> Exception:
    """What a failure on fake tensors means: a break of a known kind, or the program's own error."""
    fake_tensor = internals.fake_tensor
    symbols = sys.modules.get("torch.fx.experimental.symbolic_shapes")
    undecided = () if symbols is None else (symbols.GuardOnDataDependentSymNode,)
    name = describe_callable(function)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, fake_tensor.DynamicOutputShapeException):
            return Unsupported(errors.DynamicOutputShape(name))
        if isinstance(cause, (fake_tensor.DataDependentOutputException, *undecided)):
            return Unsupported(errors.DataDependentValue(name))
        if isinstance(cause, fake_tensor.UnsupportedFakeTensorException | fake_tensor.UnsupportedOperatorException):
            return Unsupported(errors.UnsupportedTensorOperation(name, _first_line(cause)))
        cause = cause.__cause__ or cause.__context__
    if _is_about_fakes(error):
        return Unsupported(errors.UnsupportedTensorOperation(name, _first_line(error)))
    return Failure(error)


def _is_about_fakes(error: Exception) -> bool:
    text = str(error)
    return ("FakeTensor" in text and "invalid combination" not in text) or "meta tensor" in text or "Meta" in text


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__


def describe_callable(function: Any) -> str:
    """How messages name an operation."""
    owner = getattr(function, "__objclass__", None)
    name = getattr(function, "__name__", None) or str(function)
    if owner is not None or getattr(function, "__qualname__", "").startswith("Tensor."):
        return f"Tensor.{name}"
    module = getattr(function, "__module__", None) or "torch"
    return f"{module}.{name}".replace("torch._C.", "torch.")
