"""The tracers, transforms and modes of the nesting table: each as a function of a program and its input.

`run` applies it and gives what it computes, with a trace of what it has seen where that matters; `make` gives what it
makes of the program, where there is something to call.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

Program = Callable[..., Any]


@dataclass(frozen=True)
class Tracer:
    """One of the table's tracers: `make(program, x)` gives a callable, `run(program, x)` a result."""

    make: Callable[[Program, Any], Program] | None = None
    run: Callable[[Program, Any], Any] | None = None

    def apply(self, program: Program, x: Any) -> Any:
        if self.run is not None:
            return self.run(program, x)
        assert self.make is not None
        return self.make(program, x)(x)


class AsModule(torch.nn.Module):
    """A module that calls the program; holds it as a submodule if it is one."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program

    def forward(self, x: Any) -> Any:
        return self.program(x)


def exported(strict: bool) -> Callable[[Program, Any], Program]:
    return lambda p, x: torch.export.export(AsModule(p), (x,), strict=strict).module()


def as_graph(mode: str) -> Callable[[Program, Any], Program]:
    from torch.fx.experimental.proxy_tensor import make_fx

    return lambda p, x: make_fx(lambda x: p(x), tracing_mode=mode, _allow_non_fake_inputs=True)(x)


class Dispatching(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


def watched(mode: Callable[[], Any]) -> Callable[[Program, Any], Any]:
    """Under a mode: the result, and the operations that the mode has seen."""

    def run(program: Program, x: Any) -> Any:
        with mode() as watching:
            result = program(x)
        return result, watching.seen

    return run


def faked(program: Program, x: Any) -> Any:
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        result = program(mode.from_tensor(x))
    return type(result).__name__, tuple(result.shape), result.dtype


def counted_flops(program: Program, x: Any) -> Any:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        result = program(x)
    return result, counter.get_total_flops()


def profiled(program: Program, x: Any) -> Any:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        return program(x)


def watched_by(setter: Callable[[Any], None], getter: Callable[[], Any]) -> Callable[[Program, Any], Any]:
    """With a trace or profile function on the thread, as coverage and profilers set one."""

    def run(program: Program, x: Any) -> Any:
        calls: list[Any] = []

        def function(frame: Any, event: str, arg: Any) -> Any:
            calls.append(event)
            return function

        before = getter()
        setter(function)
        try:
            return program(x)
        finally:
            setter(before)
            assert calls

    return run


def in_threads(program: Program, x: Any) -> Any:
    """Several threads at once, one of which runs what torch has compiled."""
    results: dict[int, Any] = {}
    start = threading.Barrier(4)
    theirs = torch.compile(lambda x: x.cos() + 1, backend="eager")

    def work(i: int) -> None:
        start.wait()
        for _ in range(3):
            results[i] = theirs(x) if i == 0 else program(x)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[i] for i in range(4)]


class Data(torch.utils.data.Dataset):
    def __init__(self, program: Program, x: Any) -> None:
        self.program, self.x = program, x.detach()

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> Any:
        return self.program(self.x + i).detach()


def loaded(program: Program, x: Any) -> Any:
    program(x)  # compiled before the workers are forked
    loader = torch.utils.data.DataLoader(Data(program, x), 2, num_workers=2, multiprocessing_context="fork")
    return list(loader)


def in_device(program: Program, x: Any) -> Any:
    with torch.device("cpu"):
        return program(x)


TRACERS: dict[str, Tracer] = {
    "torch.compile": Tracer(make=lambda p, x: torch.compile(p, backend="eager")),
    "torch.compile, one graph": Tracer(make=lambda p, x: torch.compile(p, backend="aot_eager", fullgraph=True)),
    "torch.compiler.disable": Tracer(make=lambda p, x: torch.compiler.disable(lambda x: p(x))),
    "torch.export strict": Tracer(make=exported(True)),
    "torch.export": Tracer(make=exported(False)),
    "make_fx real": Tracer(make=as_graph("real")),
    "make_fx fake": Tracer(make=as_graph("fake")),
    "make_fx symbolic": Tracer(make=as_graph("symbolic")),
    "symbolic_trace": Tracer(make=lambda p, x: torch.fx.symbolic_trace(AsModule(p))),
    "symbolic_trace of itself": Tracer(make=lambda p, x: torch.fx.symbolic_trace(p)),
    "jit.trace": Tracer(make=lambda p, x: torch.jit.trace(p, x, check_trace=False)),
    "jit.script": Tracer(make=lambda p, x: torch.jit.script(p)),
    "vmap": Tracer(run=lambda p, x: torch.func.vmap(p)(x)),
    "grad": Tracer(run=lambda p, x: torch.func.grad(lambda x: p(x).sum())(x)),
    "jvp": Tracer(run=lambda p, x: torch.func.jvp(p, (x,), (torch.ones_like(x),))),
    "jacrev": Tracer(run=lambda p, x: torch.func.jacrev(p)(x)),
    "FakeTensorMode": Tracer(run=faked),
    "TorchDispatchMode": Tracer(run=watched(Dispatching)),
    "TorchFunctionMode": Tracer(run=watched(Functions)),
    "FlopCounterMode": Tracer(run=counted_flops),
    "torch.device": Tracer(run=in_device),
    "checkpoint": Tracer(run=lambda p, x: checkpoint(p, x, use_reentrant=False)),
    "checkpoint reentrant": Tracer(run=lambda p, x: checkpoint(p, x, use_reentrant=True)),
    "torch.profiler": Tracer(run=profiled),
    "sys.settrace": Tracer(run=watched_by(sys.settrace, sys.gettrace)),
    "sys.setprofile": Tracer(run=watched_by(sys.setprofile, sys.getprofile)),
    "threads": Tracer(run=in_threads),
    "DataLoader": Tracer(run=loaded),
}
