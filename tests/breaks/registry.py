# needs: torch
"""What a program of the corpus is: how it stands in its file, what is expected of it, and what it does when it is run.

A program is a function that makes what is compiled and the calls of it: `return step, [(x,), (y,)]`. The comment
`# SB0201` marks the line of which that code is expected; a line that several are expected of names them all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import logging
import random
import re
import sys
import warnings
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = ["PROGRAMS", "Program", "Run", "alike", "program", "run"]

Calls = list[tuple[Any, ...]]
Make = Callable[[], tuple[Callable[..., Any], Calls]]


@dataclasses.dataclass
class Program:
    """A program, and what it becomes by what its message or the page says.

    Attributes:
        make: the program.
        fixed: the same program without the break.
        same: whether both return the same.
    """

    make: Make
    fixed: Make | None = None
    same: bool = True

    @property
    def name(self) -> str:
        """Its name in the tests."""
        return f"{self.make.__module__.rpartition('.')[2]}-{self.make.__name__}"

    @property
    def file(self) -> str:
        """Where it stands."""
        return inspect.getfile(self.make)

    @property
    def lines(self) -> range:
        """The lines of the program in its file."""
        lines, first = inspect.getsourcelines(self.make)
        return range(first, first + len(lines))

    @property
    def expected(self) -> set[tuple[str, int]]:
        """The codes and lines that are marked."""
        lines, first = inspect.getsourcelines(self.make)
        return {(code, number) for number, line in enumerate(lines, first) for code in marked(line)}

    @property
    def source(self) -> str:
        """The program, with what it uses of its file."""
        parts: dict[str, str] = {}
        _collect(inspect.unwrap(self.make), parts)
        return "\n".join(parts.values())

    def fix(self, make: Make) -> Make:
        """The fixed form; a decorator."""
        self.fixed = make
        return make


PROGRAMS: list[Program] = []


def program(same: bool = True) -> Callable[[Make], Program]:
    """The function is a program of the corpus."""

    def add(make: Make) -> Program:
        PROGRAMS.append(Program(make, same=same))
        return PROGRAMS[-1]

    return add


def marked(line: str) -> list[str]:
    """The codes that are expected of a line."""
    return re.findall(r"SB\d{4}", line.partition("  # ")[2])


def _collect(thing: FunctionType | type, parts: dict[str, str]) -> None:
    """The source of a function or class, and of what it names of its file."""
    parts[thing.__qualname__] = source = inspect.getsource(thing)
    names = vars(sys.modules[thing.__module__])
    for word in sorted(set(re.findall(r"\w+", source))):
        other = names.get(word)
        if isinstance(other, FunctionType | type) and other.__module__ == thing.__module__:
            if other.__qualname__ not in parts:
                _collect(other, parts)
        elif word in names and not isinstance(other, ModuleType | Program):
            parts.setdefault(word, word)


@dataclasses.dataclass
class Run:
    """What came of running a program: the results, what is left of arguments and what it refers to, what it said."""

    results: list[Any]
    rest: Any
    said: str


def run(
    make: Make, compiled: Callable[[Any], Any] = lambda function: function, *, backward: bool = False, seed: int = 0
) -> Run:
    """Makes the program anew, and runs it: compiled, or as it is."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    function, calls = make()
    called, results = compiled(function), []
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
    handler.addFilter(logging.Filter("training"))
    root = logging.getLogger()
    others, root.handlers = root.handlers, [handler]
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
            warnings.catch_warnings(record=True) as seen,
        ):
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", message=".*torch.jit.script")  # where torch first needs it
            warnings.simplefilter("ignore", ResourceWarning)  # of what is no program's, and is collected meanwhile
            for args in calls:
                if args and args[0] is BETWEEN:  # something that the program does between two calls
                    args[1]()
                    continue
                result = called(*args)
                if backward:
                    _backward(result)
                results.append(described(result))
    finally:
        root.handlers = others
    said = out.getvalue() + "".join(f"{each.category.__name__}: {each.message}\n" for each in seen)
    return Run(results, described([calls, function]), said)


#: in place of the first argument of a call: the second is called instead, between the program's calls
BETWEEN = object()


def _backward(result: Any) -> None:
    """The gradients of a result, if it has any."""
    tensors = [each for each in torch.utils._pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]
    wanted = [each for each in tensors if each.requires_grad and each.is_floating_point()]
    if wanted:
        torch.autograd.backward([each.sum() for each in wanted], retain_graph=True)


def described(thing: Any, seen: dict[int, int] | None = None) -> Any:
    """An object as plain data, with all that it leads to: what can be compared."""
    seen = {} if seen is None else seen
    if thing is None or isinstance(
        thing, bool | int | float | complex | str | bytes | torch.dtype | torch.device | torch.Size
    ):
        return thing
    if id(thing) in seen:
        return f"<{seen[id(thing)]}>"
    seen[id(thing)] = len(seen)
    if isinstance(thing, torch.Tensor):
        plain = thing.detach().clone()
        if type(plain) is not torch.Tensor:
            return type(thing).__name__, described(vars(thing), seen)
        if plain.is_sparse or plain.is_quantized:
            plain = plain.to_dense() if plain.is_sparse else plain.dequantize()
        return "tensor", thing.dtype, thing.requires_grad, plain, described(thing.grad, seen) if thing.is_leaf else None
    if isinstance(thing, np.ndarray | np.generic):
        return "array", str(thing.dtype), thing.tolist()
    if isinstance(thing, dict):
        return {_key(key): described(value, seen) for key, value in list(thing.items())}
    if isinstance(thing, list | tuple):
        return [type(thing).__name__, *(described(each, seen) for each in thing)]
    if isinstance(thing, set | frozenset):
        return [type(thing).__name__, *sorted(map(str, thing))]
    if isinstance(thing, FunctionType):
        thing = inspect.unwrap(thing)  # one that is disabled is the same function
        cells = [_content(cell) for cell in thing.__closure__ or ()]
        return [thing.__qualname__, *(described(each, seen) for each in cells)]
    if inspect.ismethod(thing):
        return [thing.__name__, described(thing.__self__, seen)]
    if isinstance(thing, nn.Module) or type(thing).__module__.startswith(("tests.", "torch.optim")):
        return {key: described(value, seen) for key, value in vars(thing).items() if "hook" not in key}
    if isinstance(thing, random.Random):
        return thing.getstate()[1][:3]
    return type(thing).__name__


def _key(key: Any) -> str:
    """A key as text; an address is none, which each run has others of."""
    return "address" if isinstance(key, int) and key > 1 << 32 else str(key)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def alike(one: Any, other: Any) -> bool:
    """Whether two descriptions are the same: tensors as nearly as a backend has them."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.shape == other.shape and torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float):
        return one == other or abs(one - other) <= 1e-4 * max(1.0, abs(one)) or (one != one and other != other)
    return bool(one == other)
