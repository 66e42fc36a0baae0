"""Compiling guards to a flat program: every source loaded once, right before its first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, MappingProxyType
from typing import Any

from stator._core import CodePolicy, set_code_policy
from stator._core import GuardProgram as CoreProgram
from stator.guards.reference import ReferenceProgram

from .base import Guard
from .intern import Output, Source, _forget

# A source's end may come while traced code runs; the note it leaves in the table is no part of the program.
set_code_policy(_forget.__code__, CodePolicy.RUN_RECURSIVELY)

__all__ = ["GuardProgram", "compile_guards"]

Instruction = tuple[str, tuple[int, ...], int, object]


class GuardProgram(CoreProgram):
    """Guards and outputs with the C++ program made from them.

    ``run(func, args)`` gives the outputs, or the index of the instruction that failed.
    """

    guards: tuple[Guard, ...]
    outputs: tuple[Output, ...]
    reference: ReferenceProgram
    #: the code that the program calls: it counts as compiled, and not what only goes on with the call
    called: CodeType | None = None
    #: the loops that the trace has unrolled, by "file.py:line": rounds, and operations of all of them
    loops: Mapping[str, tuple[int, int]] = MappingProxyType({})

    def __len__(self) -> int:
        return len(self.instructions)

    def check(self, func: object, args: Sequence[object]) -> bool:
        """Do all guards pass for a call of ``func`` whose argument slots hold ``args``?"""
        return isinstance(self.run(func, tuple(args)), tuple)

    def hands_over(self, func: object, args: tuple[object, ...], earlier: tuple[object, ...]) -> bool:
        """Do all guards pass, and are the outputs those of an ``earlier`` run?"""
        outputs = self.run(func, args)
        return isinstance(outputs, tuple) and next(self.reference.others(outputs, earlier), None) is None

    def failure(self, func: object, args: Sequence[object]) -> str | None:
        """The first guard that fails, what it expected and what is there; None if all hold."""
        return self.reference.failure(func, tuple(args)) or self._core_failure(func, tuple(args))

    def _core_failure(self, func: object, args: tuple[object, ...]) -> str | None:
        """The first guard that only the C++ program finds to fail: one of the two is wrong."""
        at = self.run(func, args)
        if isinstance(at, tuple):
            return None
        checks = {guard.op for guard in self.guards}
        passed = sum(op in checks for op, *_ in self.instructions[:at])
        if passed == len(self.guards):
            return f"what is handed over: only the core fails, at {self.instructions[at][0]}"
        guard = self.guards[passed]
        return f"{guard}: only the core fails, at {self.instructions[at][0]}{guard.at()}"

    def reference_outcome(
        self, func: object, args: tuple[object, ...], outputs: tuple[object, ...] | None
    ) -> str | None:
        """For the strict mode: how the reference's verdict differs from the one given (None: failed), if it does."""
        return self.reference.disagreement(func, args, outputs)

    def __str__(self) -> str:
        lines = [f"{guard}{guard.at()}" for guard in self.guards]
        lines += [f"-> {_output_text(output)}" for output in self.outputs]
        return "\n".join(lines)


def compile_guards(guards: Sequence[Guard], outputs: Sequence[Output | list[Source]] = ()) -> GuardProgram:
    """The program that checks the guards in their order and hands over the outputs."""
    own = tuple(dict.fromkeys(guards))
    handed = tuple(tuple(output) if isinstance(output, (tuple, list)) else output for output in outputs)
    lowering = _Lowering()
    for guard in own:
        lowering.add_guard(guard)
    places = [lowering.output(output) for output in handed]
    program: GuardProgram = GuardProgram(lowering.instructions, places)
    program.guards, program.outputs, program.reference = own, handed, ReferenceProgram(own, handed)
    return program


class _Lowering:
    """Registers are numbered in the order of the loads."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.registers: dict[Source, int] = {}

    def add_guard(self, guard: Guard) -> None:
        registers = tuple(self.register(source) for source in guard.sources)
        index, operand = guard.lower()
        self.instructions.append((guard.op, registers, index, operand))

    def register(self, source: Source) -> int:
        known = self.registers.get(source)
        if known is not None:
            return known
        for step in self._missing(source):
            bases = () if step.base is None else (self.registers[step.base], *map(self.register, step.others))
            index, operand = step.lower()
            self.instructions.append((step.op, bases, index, operand))
            self.registers[step] = len(self.registers)
        return self.registers[source]

    def _missing(self, source: Source) -> Iterator[Source]:
        missing = []
        for step in source.chain():
            if step in self.registers:
                break
            missing.append(step)
        return reversed(missing)

    def output(self, output: Output) -> Any:
        if isinstance(output, tuple):
            return tuple(self.register(source) for source in output)
        return self.register(output)


def _output_text(output: Output) -> str:
    if isinstance(output, tuple):
        return f"({', '.join(source.expr() for source in output)})"
    return output.expr()
