"""The IR check: do the graph, the guards and the residual program of a finished trace agree?

Each rule is a generator of complaints over a `Traced`, and a row of `RULES`; the order is that of the parts. The check
runs after each trace where the option `check_ir` is on, as it is in Stator's own tests, and looks at nothing but what
the trace has left: no value, no space. A complaint is a defect of Stator's, and raised as `InternalError`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from stator.bytecode import argument_count
from stator.errors import InternalError
from stator.guards.intern import sources_of
from stator.guards.source import CellSource, ConstSource, LocalSource, Source

if TYPE_CHECKING:
    from stator.codegen.residual import Residual
    from stator.guards.intern import Output
    from stator.guards.program import GuardProgram

__all__ = ["RULES", "Traced", "check_ir", "complaints"]


class Traced(NamedTuple):
    """What a trace of the code object has left."""

    code: CodeType
    program: GuardProgram
    residual: Residual

    @property
    def guarded(self) -> set[Source]:
        """The sources that the guards look at."""
        return {source for guard in self.program.guards for source in guard.sources}

    @property
    def handed_over(self) -> list[Source]:
        """The sources that the guard program hands over, to the graph or to the lines around it."""
        return _one_by_one(self.program.outputs)

    @property
    def given(self) -> list[Source]:
        """The sources of the graph's inputs, in order."""
        graph = self.residual.graph
        return [] if graph is None else _one_by_one(graph.inputs)

    @property
    def nodes(self) -> list[Any]:
        """The nodes of the graph, in order."""
        graph = self.residual.graph
        return [] if graph is None else list(graph.gm.graph.nodes)


def _one_by_one(outputs: Iterable[Output]) -> list[Source]:
    """Sources of which some are handed over together, as a tuple."""
    return [source for output in outputs for source in sources_of(output)]


Rule = Callable[[Traced], Iterator[str]]


def sources_begin_in_the_frame(traced: Traced) -> Iterator[str]:
    """An argument or a free variable that a source begins with is one that the code has."""
    code = traced.code
    for source in traced.guarded.union(traced.handed_over):
        for step in source.chain():
            if isinstance(step, LocalSource) and step.index >= argument_count(code):
                yield f"{source.expr()} begins with argument {step.index} of {argument_count(code)}"
            if isinstance(step, CellSource) and step.index >= len(code.co_freevars):
                yield f"{source.expr()} begins with free variable {step.index} of {len(code.co_freevars)}"


def guards_are_kept_once(traced: Traced) -> Iterator[str]:
    """No assumption is checked twice."""
    seen = set()
    for guard in traced.program.guards:
        if guard.key in seen:
            yield f"{guard} is there twice"
        seen.add(guard.key)


def registers_are_filled(traced: Traced) -> Iterator[str]:
    """An instruction of the guard program reads what a load before it has left."""
    checks = {guard.op for guard in traced.program.guards}
    filled = 0
    for at, (op, registers, *_) in enumerate(traced.program.instructions):
        if any(register >= filled for register in registers):
            yield f"instruction {at}, {op}, reads register {max(registers)} of {filled}"
        filled += op not in checks


def parameters_are_handed_over(traced: Traced) -> Iterator[str]:
    """The residual program has a parameter for each output of the guard program."""
    wanted, handed = traced.residual.function.__code__.co_argcount, len(traced.program.outputs)
    if wanted != handed:
        yield f"the residual program takes {wanted} arguments, and is given {handed}"


def names_are_bound(traced: Traced) -> Iterator[str]:
    """Each name in the residual program is a local variable, a builtin, or in its namespace."""
    function = traced.residual.function
    known = function.__globals__.keys() | vars(builtins).keys()
    for name in _names_read(traced.residual.text) - known:
        if not _is_local(function.__code__, name):
            yield f"the residual program reads {name}, which nothing binds"


def _names_read(text: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _is_local(code: CodeType, name: str) -> bool:
    """Whether the name is a variable of the code, or of code within."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return name in code.co_varnames or name in code.co_cellvars or any(_is_local(const, name) for const in inner)


def the_graph_is_called_once(traced: Traced) -> Iterator[str]:
    """The residual program calls the graph, if there is one, in one place."""
    nodes = ast.walk(ast.parse(traced.residual.text))
    calls = sum(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == "graph" for n in nodes)
    if calls != (traced.residual.graph is not None):
        yield f"the residual program calls the graph {calls} times"


def inputs_are_handed_over(traced: Traced) -> Iterator[str]:
    """The graph has a placeholder for each source it is given, and the guard program hands these over.

    But for an object that the residual program names itself, such as a tensor held by a class.
    """
    inputs = sum(node.op == "placeholder" for node in traced.nodes)
    if inputs != len(traced.given):
        yield f"the graph has {inputs} inputs, and is given {len(traced.given)}"
    handed_over = set(traced.handed_over)
    for source in traced.given:
        if source not in handed_over and source.op != "CONST":
            yield f"the graph is given {source.expr()}, which the guard program does not hand over"


def inputs_are_guarded(traced: Traced) -> Iterator[str]:
    """What an input of the graph is like has been asked under a guard, or what the input is made from, unless that is
    the program's own."""
    for source in traced.given:
        base = source
        while base not in traced.guarded and base.op == "CALL" and base.base is not None:  # `x` of `torch.tensor(x)`
            base = base.base
        if base not in traced.guarded and type(base) is not ConstSource:
            yield f"the graph is given {source.expr()}, of which no guard says anything"


def the_graph_is_whole(traced: Traced) -> Iterator[str]:
    """Inputs come first and the output last, and each operation uses results of operations before it."""
    if traced.residual.graph is None:
        return
    nodes = traced.nodes
    seen = set()
    for node in nodes:
        for used in node.all_input_nodes:
            if used not in seen:
                yield f"{node} uses {used}, which is not computed before it"
        seen.add(node)
    if [node.op for node in nodes].count("output") != 1 or nodes[-1].op != "output":
        yield "the graph does not end with its one output"
    elif not isinstance(nodes[-1].args[0], tuple):
        yield "the output of the graph is no tuple"


#: all that is checked: what is complained of, and by which rule
RULES: tuple[Rule, ...] = (
    sources_begin_in_the_frame,
    guards_are_kept_once,
    registers_are_filled,
    parameters_are_handed_over,
    names_are_bound,
    the_graph_is_called_once,
    inputs_are_handed_over,
    inputs_are_guarded,
    the_graph_is_whole,
)


def complaints(traced: Traced) -> list[str]:
    """What breaks a rule, each with the rule's name."""
    return [f"{rule.__name__}: {text}" for rule in RULES for text in rule(traced)]


def check_ir(traced: Traced) -> None:
    """Raise `InternalError` unless the parts of the trace agree."""
    found = complaints(traced)
    if found:
        code = traced.code
        where = f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
        raise InternalError(f"the parts of the trace of {where} do not agree: {'; '.join(found)}")
