"""`stator slots`: what it says is so, and the page says the same."""

import gc
import itertools
import json
import re
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest

import stator
from stator import cli
from stator.errors import GraphBreakError
from stator.report import slots
from stator.space.protocol import EXTERNAL_ONLY, IMMUTABLE
from tests.report.samples import MAKERS

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "slots.md"
TYPES = slots.builtin_types()
#: the arguments that each method is tried with; None stands for another such object
ARGUMENTS = [(), (1,), ("a",), None, (0, 1)]
FIELDS = (types.GetSetDescriptorType, types.MemberDescriptorType)

#: calls that break although the table does not say so, or are worded otherwise: the reason
EXCEPTIONS = {
    "object.__hash__": "each object has another",
    "builtin_function_or_method.__hash__": "of a bound one it is a matter of addresses",
    "method-wrapper.__hash__": "as that of a builtin function",
    "super.__new__": "an empty super object cannot be made by generated code",
    "super.__init__": "`super()` words its error otherwise than `super.__init__()`",
    "enumerate.T()": "`enumerate()` words its error otherwise than `enumerate.__new__()`",
    "collections.deque.__getitem__": "`deque[…]` words its error otherwise than `deque.__getitem__`",
    "collections.deque.__delitem__": "as `__getitem__`",
    "memoryview.release": "what is released cannot be made by generated code",
    "memoryview.__exit__": "as `release`",
    "_random.Random.setstate": "a generator is no known operand",
    "re.Pattern.scanner": "what it gives has no model: the example of SB0112",
    "_contextvars.ContextVar.reset": "the error shows the address of the variable",
}
#: what existing objects refuse: they are not made anew, and some iterators cannot be looked into
EXISTING = {
    "__init__": "an existing object is not made anew",
    "__setstate__": "as `__init__`",
    "property.__set_name__": "as `__init__`",
    "memoryview": "an existing one is opaque",
    "_random.Random.seed": "the operating system has a part in it",
    "set.pop": "which item comes first is not guarded",
    "functools._lru_cache_wrapper": "its cache is in use by others",
    "functools.KeyWrapper": "what it compares with is hidden",
    **dict.fromkeys(
        ("ImportError", "SyntaxError", "UnicodeDecodeError", "UnicodeEncodeError", "UnicodeTranslateError"),
        "the message of an existing one may depend on fields that were not looked at",
    ),
    **dict.fromkeys(("NameError", "AttributeError", "BaseExceptionGroup"), "as ImportError"),
}
#: an iterator or generator made outside the compiled function
OPAQUE = ("SB0105", "SB0106")


@pytest.fixture(scope="module", autouse=True)
def coroutines_end_here():
    """Those that nobody has awaited warn of it when they go: not in the midst of another test."""
    yield
    stator.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


def made_fresh(make, call, arguments):
    """What comes of the calls on new objects, which the function makes itself."""
    found = []
    for args in arguments:
        try:
            obj = make()
            found.append((call(obj, *((make(),) if args is None else args)), obj))
        except Exception as e:
            found.append((type(e), str(e)))
    return found


def given(objects, others, call, arguments):
    """What comes of the calls on objects made before."""
    found = []
    for i, args in enumerate(arguments):
        try:
            found.append((call(objects[i], *((others[i],) if args is None else args)), objects[i]))
        except Exception as e:
            found.append((type(e), str(e)))
    return found


def shown(value, depth=0):
    """A form that can be compared: types visible, addresses not, iterators read."""
    if type(value) in (list, tuple):
        return type(value).__name__, [shown(item, depth) for item in value]
    if isinstance(value, types.FunctionType):
        return value.__qualname__
    if hasattr(type(value), "__next__") and depth < 6:
        try:
            return type(value).__name__, [shown(item, depth + 1) for item in itertools.islice(value, 12)]
        except Exception as e:
            return type(value).__name__, type(e), str(e)
    return type(value).__name__, re.sub("0x[0-9a-f]+", "0x", repr(value))


def caller(cls, name, entry):
    """How an entry of the table is called: (object, *arguments) → result."""
    if entry is cls:
        return lambda obj, *args: cls(*args)
    if type(entry) in FIELDS:
        return lambda obj: getattr(obj, name)
    if name == "__new__":
        return lambda obj, *args: cls.__new__(cls, *args)
    if isinstance(entry, types.ClassMethodDescriptorType | classmethod | staticmethod):
        return lambda obj, *args: getattr(cls, name)(*args)
    return entry


def traced(function, *args):
    """The result of the function as one graph, or the break."""
    stator.reset()
    try:
        return shown(stator.compile(function, backend="eager", fullgraph=True)(*args))
    except GraphBreakError as e:
        return e


def can_be_made(make):
    return not isinstance(traced(lambda: make() and None), GraphBreakError)


def excepted(table, cls, name):
    full = slots.full_name(cls)
    return f"{full}.{name}" in table or full in table or name in table


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the table of exceptions is that of the page's version")
@pytest.mark.parametrize("line", MAKERS)
def test_what_is_said_to_be_traced_is_traced(line):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make = MAKERS[line]
        cls = next(base for base in type(make()).__mro__ if base in TYPES)
        fresh = can_be_made(make)
        wrong = []
        for name, entry in slots.entries(cls).items():
            status = slots.status(cls, name, entry)
            if status == slots.BREAKS or excepted(EXCEPTIONS, cls, name):
                continue
            field = type(entry) in FIELDS
            call, arguments = caller(cls, name, entry), [()] if field else ARGUMENTS
            if status == slots.KNOWN and cls not in IMMUTABLE and not field:
                arguments = [args for args in ARGUMENTS if args is not None]  # such an object is no known operand
            expected = shown(made_fresh(make, call, arguments))
            if fresh and (status == slots.MODELLED or not field) and id(entry) not in EXTERNAL_ONLY:
                found = traced(lambda: made_fresh(make, call, arguments))
                if found != expected:
                    wrong.append((name, found, expected))
            objects, others = [make() for _ in arguments], [make() for _ in arguments]
            found = traced(lambda objects, others: given(objects, others, call, arguments), objects, others)
            allowed = isinstance(found, GraphBreakError) and (
                excepted(EXISTING, cls, name) or found.code in OPAQUE or "made outside" in found.reason
            )
            if found != expected and not allowed:
                wrong.append((name, found, expected))
    assert not wrong


def test_exceptions_are_of_entries_that_exist():
    for key in EXCEPTIONS:
        name, _, method = key.rpartition(".")
        assert method in slots.entries(slots.find(name)[0])


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the page is that of 3.11")
def test_the_page_is_fresh():
    done = subprocess.run([sys.executable, "-m", "stator", "slots"], capture_output=True, text=True, timeout=120)
    assert done.stdout == PAGE.read_text(), "run `stator slots > docs/guide/slots.md`"


def test_the_command_does_not_import_torch():
    code = (
        "import sys; from stator import cli; cli.main(['slots', 'list', '--json']); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["list"]["methods"]["append"] == "modelled"


def test_types_are_chosen_by_name(capsys):
    assert cli.main(["slots", "chain", "itertools.count"]) == 0
    out = capsys.readouterr().out
    assert re.findall("^### (.*)", out, re.M) == ["`itertools.chain`", "`itertools.count`"]
    assert cli.main(["slots", "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


def test_types_that_no_module_names_are_found():
    found = set(slots.builtin_types())
    for obj in (iter([]), iter({}), {}.keys(), [].__len__, (i for i in ""), re.match("", ""), slots):
        assert type(obj) in found
    assert stator.config.Config not in found
    assert Path not in found


def test_a_refusing_model_is_not_called_one():
    import datetime

    now = vars(datetime.datetime)["now"]
    assert slots.status(datetime.datetime, "now", now) == slots.BREAKS
