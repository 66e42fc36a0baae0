"""`exec` and `eval` with globals of their own: a dict that belongs to no module."""

from apptests.marks import expected_break
from apptests.raising import message

SHARED = {"base": 40}


def app_exec_in_a_new_dict():
    names = {}
    exec("x = 1\ny = x + 1", names)
    assert (names["x"], names["y"]) == (1, 2)
    assert set(names) == {"x", "y", "__builtins__"}
    assert names["__builtins__"] is __builtins__ or names["__builtins__"]["len"] is len


def app_functions_see_their_own_globals():
    names = {"base": 10}
    exec("def f(a):\n    global calls\n    calls = a\n    return base + a\n", names)
    assert names["f"](5) == 15
    assert names["calls"] == 5
    names["base"] = 20
    assert names["f"](5) == 25
    assert names["f"].__globals__ is names
    assert names["f"].__module__ is None


def app_functions_of_their_own_globals_leave():
    names = {"__name__": "made", "base": 1}
    exec("def f():\n    return base, g()\ndef g():\n    return base", names)
    f = names["f"]
    return f(), f.__module__, [f, names["g"], names["base"]][2]


def app_functions_made_by_exec_are_returned():
    names = {"base": 1}
    exec("def f():\n    return base", names)
    kept.append(names["f"])
    assert kept[-1]() == 1
    names["base"] = 2
    assert kept.pop()() == 2


kept = []


def app_classes_and_names():
    names = {}
    exec("class A:\n    pass", names)
    assert names["A"].__module__ == "builtins"
    named = {"__name__": "made"}
    exec("class A:\n    def f(self): return 1", named)
    assert named["A"].__module__ == "made" and named["A"].f.__module__ == "made"


def app_eval_with_dicts():
    assert eval("a + b", {"a": 1, "b": 2}) == 3
    assert eval("a + b", {"a": 1, "b": 2}, {"b": 5}) == 6
    assert eval("len([1])", {}) == 1
    assert message(lambda: eval("missing", {})) == ("NameError", "name 'missing' is not defined")


def app_builtins_of_their_own():
    assert message(lambda: eval("len([1])", {"__builtins__": {}})) == ("NameError", "name 'len' is not defined")
    assert eval("double(4)", {"__builtins__": {"double": lambda a: a * 2}}) == 8


def app_mappings_as_locals():
    class Upper:
        def __getitem__(self, key):
            if key.isupper():
                return key
            raise KeyError(key)

    assert eval("A + B", {}, Upper()) == "AB"
    assert message(lambda: eval("a", {}, Upper())) == ("NameError", "name 'a' is not defined")


def app_an_existing_dict():
    exec("total = base + 2", SHARED)
    assert SHARED.pop("total") == 42
    SHARED.pop("__builtins__")
    assert SHARED == {"base": 40}


def app_refused():
    assert message(lambda: exec("1", [])) == ("TypeError", "exec() globals must be a dict, not list")
    assert message(lambda: exec("1", {}, 5)) == ("TypeError", "locals must be a mapping or None, not int")
    assert message(lambda: eval("1", 5)) == ("TypeError", "globals must be a dict")
    assert message(lambda: eval("1", [])) == ("TypeError", "globals must be a real dict; try eval(expr, {}, mapping)")
    assert message(lambda: eval("1", 5, 5)) == ("TypeError", "locals must be a mapping")


def app_what_is_no_code():
    assert message(lambda: eval(1.5)) == ("TypeError", "eval() arg 1 must be a string, bytes or code object")
    assert message(lambda: exec(None, {})) == ("TypeError", "exec() arg 1 must be a string, bytes or code object")


def app_errors_of_own_globals():
    names = {}
    exec("def f(a):\n    return 1 / a", names)
    try:
        names["f"](0)
    except ZeroDivisionError as e:
        assert e.__traceback__.tb_next.tb_frame.f_code.co_name == "f"
        assert e.__traceback__.tb_next.tb_lineno == 2
    else:
        raise AssertionError


class Counted(dict):
    def __missing__(self, key):
        return len(key)


COUNTED = eval("lambda: one + three", Counted())


@expected_break("derived from dict")
def test_globals_that_answer_for_what_is_missing():
    return COUNTED(), COUNTED() + 1
