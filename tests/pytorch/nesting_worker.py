"""Runs rows of the nesting table, one a line of standard input, and answers with a line of JSON each."""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import stator
from tests.pytorch.nesting_tracers import TRACERS

Program = Callable[..., Any]


# -- the programs -----------------------------------------------------------------------------------------------------


class Net(torch.nn.Module):
    """Holds a module and a parameter; `compile` is done to the inner one, or to its method."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(4, 4)
        self.scale = torch.nn.Parameter(torch.full((4,), 2.0))

    def forward(self, x: Any) -> Any:
        return torch.tanh(self.linear(x)) * self.scale


class Outer(torch.nn.Module):
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x) + x


def a_function(compile: Callable[[Any], Any]) -> Program:
    def program(x: Any) -> Any:
        return (x.sin() * 2 + x).cos()

    return compile(program)


def a_callee(compile: Callable[[Any], Any]) -> Program:
    inner = a_function(compile)

    def program(x: Any) -> Any:
        return inner(x * 2) + inner(x)

    return program


def breaking(compile: Callable[[Any], Any]) -> Program:
    def program(x: Any) -> Any:
        y = x.sin()
        stator.graph_break()
        return y * 2 + x

    return compile(program)


def a_module(compile: Callable[[Any], Any]) -> Program:
    return compile(Net())


def a_submodule(compile: Callable[[Any], Any]) -> Program:
    return Outer(compile(Net()))


def a_method(compile: Callable[[Any], Any]) -> Program:
    class Decorated(Net):
        forward = compile(Net.forward)

    return Decorated()


PROGRAMS: dict[str, Callable[[Callable[[Any], Any]], Program]] = {
    program.__name__: program for program in (a_function, a_callee, breaking, a_module, a_submodule, a_method)
}


# -- the arrangements -------------------------------------------------------------------------------------------------


def compiled(program: Any) -> Any:
    return stator.compile(program, backend="eager")


def same(program: Any) -> Any:
    return program


def inside(tracer: Any, program: Any, compile: Any) -> Program:
    """Stator inside: the tracer is given what Stator has compiled, or what calls that."""
    made = program(compile)
    return lambda x: tracer.apply(made, x)


def outside(tracer: Any, program: Any, compile: Any) -> Program:
    """Stator around the tracer's whole work."""
    made = program(same)
    return compile(lambda x: tracer.apply(made, x))


def product(tracer: Any, program: Any, compile: Any) -> Program:
    """Stator around a function that calls what the tracer has made before."""
    made = program(same)
    product: list[Any] = []

    @compile
    def calls(x: Any) -> Any:
        return product[0](x) + 1

    def run(x: Any) -> Any:
        if not product:
            product.append(tracer.make(made, x))
        return calls(x)

    return run


def itself(tracer: Any, program: Any, compile: Any) -> Program:
    """Stator given what the tracer has made."""
    made = program(same)
    product: list[Any] = []

    def run(x: Any) -> Any:
        if not product:
            product.append(compile(tracer.make(made, x)))
        return product[0](x)

    return run


ARRANGEMENTS = {arrangement.__name__: arrangement for arrangement in (inside, outside, product, itself)}


#: kinds and places of breaks in a row: one at the call of a tracer, one at what it leaves, those of the threads' locks
MOST_BREAKS = 25

# -- one row ----------------------------------------------------------------------------------------------------------


def leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, (list, tuple)):
        for item in result:
            yield from leaves(item)
    else:
        yield result


def outcome(run: Program) -> list[Any]:
    """What two calls compute, and the gradient of the first."""
    found: list[Any] = []
    for size in (4, 4):
        torch.manual_seed(1)
        x = torch.randn(size, 4, requires_grad=True)
        results = list(leaves(run(x)))
        found += [r.detach() if isinstance(r, torch.Tensor) else r for r in results]
        roots = [r.sum() for r in results if isinstance(r, torch.Tensor) and r.requires_grad]
        if roots:
            found += torch.autograd.grad(roots, [x], allow_unused=True)
    return found


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return torch.allclose(a, b)
    return type(a) is type(b) and bool(a == b)


def attempt(run: Program) -> tuple[list[Any] | None, BaseException | None]:
    try:
        return outcome(run), None
    except Exception as e:
        return None, e


def compiles_afterwards(program: str) -> str:
    """ "" if what is compiled anew is traced, and right, when the other tracer is gone."""
    stator.reset()
    got, error = attempt(PROGRAMS[program](compiled))
    expected, _ = attempt(PROGRAMS[program](same))
    if error is not None or got is None or expected is None or not all(map(equal, got, expected)):
        return f"afterwards: {error!r} {got}"
    return "" if stator.stats().graphs else "afterwards nothing is compiled"


def row(tracer: str, arrangement: str, program: str, installed: bool) -> str:
    """ "" if all is as without Stator, what differs otherwise."""
    arrange = ARRANGEMENTS[arrangement]
    expected, failure = attempt(arrange(TRACERS[tracer], PROGRAMS[program], same))
    torch._dynamo.reset()
    if installed:
        stator.install()
    try:
        got, error = attempt(arrange(TRACERS[tracer], PROGRAMS[program], compiled))
    finally:
        stator.uninstall()
        torch._dynamo.reset()
    if error is not None and type(error) is not type(failure):
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:300]} ({last.filename}:{last.lineno})"
    if failure is not None:
        return ""  # the tracer refuses the program itself
    if len(stator.stats().breaks) > MOST_BREAKS:
        return f"{len(stator.stats().breaks)} breaks"
    assert expected is not None
    if arrangement == "inside" and not installed and (wrong := compiles_afterwards(program)):
        return wrong
    if got is None or len(got) != len(expected) or not all(map(equal, got, expected)):
        return f"differs: {got} instead of {expected}"
    return ""


def main() -> None:
    warnings.simplefilter("ignore")
    answers = sys.stdout
    sys.stdout = sys.stderr
    print(json.dumps("ready"), file=answers, flush=True)
    for line in sys.stdin:
        try:
            found = row(*json.loads(line))
        except BaseException as e:
            found = f"the row itself failed: {type(e).__name__}: {e}"
        stator.reset()
        print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
