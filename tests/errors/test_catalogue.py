"""The catalogue: codes are unique, reasons are formatted, incomplete kinds are refused, errors carry all."""

import dataclasses
import inspect
import pickle
import subprocess
import sys
import traceback
from pathlib import Path
from typing import ClassVar

import pytest

from stator import errors
from stator.errors.catalogue import Break

KINDS = errors.kinds()


def test_codes_are_unique_and_sorted():
    codes = [kind.code for kind in KINDS]
    assert codes == sorted(set(codes))
    assert not set(codes) & set(errors.RETIRED)


def test_the_classes_are_what_the_pages_say():
    tool = Path(__file__).parent.parent.parent / "tools" / "breaks"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"tools/breaks writes them anew:\n{done.stdout}{done.stderr}"


def test_every_kind_is_exported():
    assert {kind.__name__ for kind in KINDS} <= set(errors.__all__)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_every_field_appears_in_the_reason(kind):
    fields = list(inspect.get_annotations(kind))
    brk = kind(**{name: f"<{name}>" for name in fields})
    assert [field.name for field in dataclasses.fields(brk)] == fields
    reason = brk.reason
    assert all(f"<{name}>" in reason for name in fields)
    assert kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}(")


def test_kind_is_found_by_code_in_any_case():
    assert errors.kind("sb0201") is errors.DataDependentBranch
    assert errors.kind("SB9999") is None


def test_a_break_does_not_change():
    brk = errors.ForcedBreak(3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        brk.index = 4
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'index'"):
        errors.ForcedBreak()


def test_equal_breaks_are_equal():
    first, second = errors.UnsupportedCCall("os.getpid"), errors.UnsupportedCCall("os.getpid")
    assert first == second and hash(first) == hash(second)
    assert str(first) == "SB0101: call of the C function os.getpid"


COMPLETE = {"code": "SB9990", "title": "t", "template": "a {x}", "hint": "h", "__annotations__": {"x": str}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"code": "SB0101"}, "belongs to UnsupportedCCall"),
        ({"code": "X1"}, "not a code"),
        ({"title": ""}, "must define 'title'"),
        ({"hint": ""}, "must define 'hint'"),
        ({"template": "a {y}"}, "no fields"),
    ],
)
def test_a_wrong_kind_is_refused(change, message):
    with pytest.raises(TypeError, match=message):
        type("Wrong", (Break,), COMPLETE | change)
    assert errors.kind("SB9990") is None


def test_a_retired_code_is_refused(monkeypatch):
    monkeypatch.setitem(errors.RETIRED, "SB9990", "gone")
    with pytest.raises(TypeError, match="retired"):
        type("Wrong", (Break,), dict(COMPLETE))


def test_kinds_must_define_their_own_code():
    with pytest.raises(TypeError, match="must define 'code'"):

        class Wrong(errors.ForcedBreak):
            title: ClassVar[str] = "t"


def break_error():
    stack = traceback.extract_stack()[-2:]
    return errors.DataDependentBranch("an if").error(user_stack=stack), stack


def test_error_carries_the_break():
    error, stack = break_error()
    assert isinstance(error, errors.StatorError)
    assert (error.code, error.reason) == ("SB0201", "an if depends on the value of a tensor")
    assert error.hint == errors.DataDependentBranch.hint
    assert error.where == f"{stack[-1].filename}:{stack[-1].lineno}"
    first, *_ = str(error).splitlines()
    assert first == "SB0201: an if depends on the value of a tensor"
    assert f"{Path(__file__).name}:{stack[-1].lineno} in break_error" in str(error)
    assert "stator why SB0201" in str(error)


def test_error_survives_pickling():
    error, _ = break_error()
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.user_stack == error.user_stack


def test_a_config_error_is_a_value_error():
    assert issubclass(errors.ConfigError, ValueError) and issubclass(errors.ConfigError, errors.StatorError)


def test_a_break_may_know_more_of_what_helps_than_its_kind():
    brk = errors.DataDependentBranch()
    told = brk.advising("look before")
    assert (told.hint, brk.hint) == ("look before", errors.DataDependentBranch.hint)
    assert told.reason == brk.reason and told == brk and told.error().hint == "look before"
