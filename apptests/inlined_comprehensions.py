"""Comprehensions that run in the frame around them (PEP 709), and what `locals()` shows of their variables."""

import sys

from apptests.raising import message

INLINED = sys.version_info >= (3, 12)
#: which of two slots of one name is shown
FIRST_COUNTS = sys.version_info >= (3, 13)


def run(text, **names):
    exec(text, names)
    return names


def test_variables_of_a_comprehension_in_a_module():
    names = run("y = 0\nshown = [sorted(locals()) for x in [1]]\n[exec('y = x') for x in [2]]")
    expected = [".0", "x"] if not INLINED else ["x"] if FIRST_COUNTS else ["__builtins__", "x", "y"]
    assert names["shown"] == [expected]
    assert names["y"] == 0


def test_text_is_evaluated_among_them():
    assert run("found = [eval('x') for x in [1, 2]]")["found"] == [1, 2]
    assert run("found = ['x' in dir() for x in [1]] + ['x' in dir()]")["found"] == [True, False]


def test_nothing_is_left_of_them():
    text = "class C:\n    found = [x for x in [1, 2]]\n    after = sorted(locals())"
    after = run(text)["C"].after
    assert "found" in after and "x" not in after
    assert message(run, "[x for x in [1]]\nx") == ("NameError", "name 'x' is not defined")


def test_a_free_variable_of_the_same_name():
    def shown():
        [1 for shown in [1] for _ in []]
        return shown, sorted(locals())

    found, names = shown()
    assert found is shown and names == ["shown"]


def test_which_of_two_variables_counts():
    q = 5

    def shown():
        return [locals()["q"] for q in [1]], q

    assert shown() == ([5 if INLINED and not FIRST_COUNTS else 1], 5)
