"""Templates (PEP 750): t-strings, and the objects of `string.templatelib` that they make."""

import copy
import sys

import pytest

import stator

pytestmark = pytest.mark.skipif(sys.version_info < (3, 14), reason="t-strings are new in 3.14")

# As text, which earlier versions need not compile.
PROGRAMS = {
    "parts": """
def program(x):
    t = t"a{x!r:>{x}}b{x + 1}{x=}"
    return t.strings, t.values, [(i.value, i.expression, i.conversion, i.format_spec) for i in t.interpolations]
""",
    "iteration": """
def program(x):
    it = iter(t"{x}a{x}")
    first = next(it)
    return first.value, list(it), [type(part).__name__ for part in t"-{x}"], list(t"")
""",
    "addition": """
def program(x):
    return repr(t"a{x}b" + t"c{x}"), (t"{x}" + t"{x}").strings
""",
    "made": """
from string.templatelib import Interpolation, Template
def program(x):
    t = Template("a", "b", Interpolation(x, "x"), Interpolation(x, "y", "r", ">3"), "c")
    return repr(t), t.strings, t.values
""",
    "errors": """
from string.templatelib import Interpolation, Template
def said(function, *args):
    try:
        function(*args)
    except Exception as error:
        return type(error).__name__, str(error)
def program(x):
    t = t"{x}"
    return [
        said(lambda: t + "a"), said(lambda: "a" + t), said(Template, 3), said(Interpolation, x, "x", "z"),
        said(Interpolation, x, 3), said(lambda: setattr(t, "strings", ())), said(lambda: t.missing),
        t == t, t == t"{x}",
    ]
""",
    "matching": """
from string.templatelib import Interpolation
def program(x):
    match t"{x:s}".interpolations[0]:
        case Interpolation(value, expression, None, spec):
            return value, expression, spec
""",
    "what raises in the braces": """
def program(x):
    try:
        return t"{x}{x[5]}"
    except TypeError as error:
        return str(error)
""",
}


def of(name):
    scope = {}
    exec(PROGRAMS[name], scope)
    return scope["program"]


def shown(value):
    return repr(value)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name):
    program = of(name)
    expected = shown(program(3))
    assert shown(stator.compile(program, backend="eager", fullgraph=True)(3)) == expected
    compiled = stator.compile(program, backend="eager")
    assert [shown(compiled(3)), shown(compiled(3))] == [expected, expected]
    stator.testing.break_everywhere(lambda: shown(program(3)), ())


def test_templates_come_and_go():
    scope = {}
    exec("def make(x): return t'a{x}b'\ndef use(t): return t.values, t.interpolations[0].expression, [*t], t", scope)
    made = stator.compile(scope["make"], backend="eager", fullgraph=True)([1])
    assert repr(made) == repr(scope["make"]([1]))
    used = stator.compile(scope["use"], backend="eager", fullgraph=True)
    for template in (made, scope["make"](2), made):
        values, expression, parts, same = used(template)
        assert (values, expression, same is template) == (template.values, "x", True)
        assert parts == list(template) and parts[1] is template.interpolations[0]


def test_copies():
    scope = {"copy": copy}
    exec("def program(x): return repr(copy.copy(t'a{x}')), repr(copy.deepcopy(t'a{x}'))", scope)
    assert stator.compile(scope["program"], backend="eager")([1]) == scope["program"]([1])
