"""Functions, classes and enumerations that pybind11 has made of C++."""

import pytest
import torch
import torch.distributed
from torch.nn.attention import SDPBackend

import stator

E = SDPBackend


def breaks():
    return [b.reason for b in stator.stats().breaks]


@pytest.mark.parametrize(
    "ask",
    [
        lambda b: (b.name, b.value, str(b), repr(b), int(b), hash(b), f"{b}"),
        lambda b: (b == E.MATH, b != E.MATH, b is E.MATH, b in [E.MATH], b == 0, b == "MATH", b is None),
        lambda b: ({E.MATH: 1, E.FLASH_ATTENTION: 2}[b], len({b, E.MATH})),
        lambda b: (isinstance(b, E), type(b) is E, callable(E.__int__), E.__int__(b), E.__eq__(b, E.MATH)),
        lambda b: ([*E.__members__], E.__members__["MATH"] is E.MATH, getattr(E, b.name) is b),
        lambda b: (E(2), E(b.value), E(0).name, [10, 20][b]),
        lambda b: (b.__eq__(E.MATH), b.__hash__(), [*map(int, E.__members__.values())]),
    ],
)
def test_members_of_enumerations(ask):
    compiled = stator.compile(ask, fullgraph=True)
    for member in (E.MATH, E.FLASH_ATTENTION, E.MATH):
        assert compiled(member) == ask(member)


def test_methods_are_found_as_they_are():
    def ask():
        method = vars(E)["__int__"]
        return type(E.__int__) is type(method), E.__int__ is method, method == E.__int__, method.__name__, method(E(2))

    assert stator.compile(ask, fullgraph=True)() == ask()


def test_what_is_unhashable_says_so():
    def ask():
        try:
            return {E.__int__: 1}
        except TypeError as e:
            return str(e)

    assert stator.compile(ask, fullgraph=True)() == ask()


def test_errors_of_enumerations_are_those_of_pybind11():
    def ask():
        try:
            return E("x")
        except TypeError as e:
            return str(e)[:40]

    assert stator.compile(ask)() == ask()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (torch._C._get_accelerator, "torch._C._get_accelerator"),
        (
            lambda: torch._C._autograd._saved_tensors_hooks_is_enabled(),
            "torch._C._autograd._saved_tensors_hooks_is",
        ),
        (lambda: torch._C._autograd._supported_activities().__class__, "torch._C._autograd._supported_activities"),
        (lambda: torch.jit.CompilationUnit(), "torch.jit.CompilationUnit"),
    ],
)
def test_functions_have_their_names(call, name):
    def ask(x):
        return x + 1, call()

    got = stator.compile(ask, backend="eager")(torch.ones(2))
    assert type(got[1]) is type(call())
    assert any(f"call of the C function {name}" in reason for reason in breaks()), breaks()


def test_methods_and_properties_have_the_names_of_their_classes():
    graph = torch._C.Graph()

    def ask(x, graph):
        return x + 1, graph.createClone, str(graph), graph.inputs(), graph.param_node().kind()

    stator.compile(ask, backend="eager")(torch.ones(2), graph)
    assert any("torch.Graph.inputs" in reason for reason in breaks()), breaks()
    assert not any("pybind11" in reason or "instancemethod" in reason for reason in breaks())


def test_an_object_of_c_plus_plus_is_passed_on():
    options = torch._C._jit_set_profiling_mode, torch._C.Graph()

    def ask(x, given):
        return x * 2, given, given is None, type(given).__name__

    got = stator.compile(ask, backend="eager", fullgraph=True)(torch.ones(2), options[1])
    assert got[1] is options[1]
    assert got[2:] == (False, "Graph")
