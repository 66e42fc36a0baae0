# needs: torch
"""The IR check: what a trace leaves passes it, and each rule finds what breaks it."""

import copy

import pytest
import torch

import stator
from stator.codegen import ir_check
from stator.codegen.ir_check import Traced, complaints
from stator.guards.guard import TypeIs
from stator.guards.program import compile_guards
from stator.guards.source import CellSource, LocalSource


def scaled(x, k):
    return torch.sin(x) * k + x


def traced() -> Traced:
    """What is left of a trace of `scaled`."""
    compiled = stator.compile(scaled, backend="eager")
    compiled(torch.ones(3), 2)
    (entry,) = compiled.region.entries(scaled.__code__)
    return Traced(scaled.__code__, entry.program, entry.owner)


def with_text(found, text):
    residual = copy.copy(found.residual)
    residual.text = text
    return found._replace(residual=residual)


def with_guards(found, guards, outputs=None):
    return found._replace(program=compile_guards(guards, found.program.outputs if outputs is None else outputs))


def of_an_argument_too_many(found):
    return with_guards(found, [*found.program.guards, TypeIs(LocalSource(7, "z"), int)])


def of_a_free_variable_too_many(found):
    return with_guards(found, [*found.program.guards, TypeIs(CellSource(0, "z"), int)])


def twice(found):
    found.program.guards += found.program.guards[:1]
    return found


def reading_ahead(found):
    found.program.instructions[0] = (found.program.instructions[0][0], (99,), 0, None)
    return found


def without_outputs(found):
    return with_guards(found, found.program.guards, ())


def with_an_unbound_name(found):
    return with_text(found, found.residual.text + "    nobody_knows\n")


def calling_twice(found):
    return with_text(found, found.residual.text + "    graph()\n")


def with_an_input_too_many(found):
    found.residual.graph.inputs.append(LocalSource(1, "k"))
    return found


def without_guards(found):
    return with_guards(found, [])


def out_of_order(found):
    graph = found.residual.graph.gm.graph
    placeholder = next(iter(graph.nodes))
    list(graph.nodes)[-2].append(placeholder)
    return found


BROKEN = {
    of_an_argument_too_many: ir_check.sources_begin_in_the_frame,
    of_a_free_variable_too_many: ir_check.sources_begin_in_the_frame,
    twice: ir_check.guards_are_kept_once,
    reading_ahead: ir_check.registers_are_filled,
    without_outputs: ir_check.parameters_are_handed_over,
    with_an_unbound_name: ir_check.names_are_bound,
    calling_twice: ir_check.the_graph_is_called_once,
    with_an_input_too_many: ir_check.inputs_are_handed_over,
    without_guards: ir_check.inputs_are_guarded,
    out_of_order: ir_check.the_graph_is_whole,
}


def test_a_trace_passes():
    assert complaints(traced()) == []


def test_each_rule_is_broken_by_a_test():
    assert set(BROKEN.values()) == set(ir_check.RULES)


@pytest.mark.parametrize("breaks", BROKEN, ids=lambda breaks: breaks.__name__)
def test_what_breaks_a_rule_is_found(breaks):
    found = complaints(breaks(traced()))
    assert any(text.startswith(f"{BROKEN[breaks].__name__}: ") for text in found), found


def test_it_runs_where_the_option_is_on(monkeypatch):
    def never(traced):
        yield "no trace is good enough"

    monkeypatch.setattr(ir_check, "RULES", (never,))
    with pytest.raises(stator.errors.InternalError, match=r"scaled.*never: no trace is good enough"):
        stator.compile(scaled, backend="eager", options={"check_ir": True})(torch.ones(3), 2)
    compiled = stator.compile(scaled, backend="eager", options={"check_ir": False})
    assert torch.equal(compiled(torch.ones(3), 2), scaled(torch.ones(3), 2))
