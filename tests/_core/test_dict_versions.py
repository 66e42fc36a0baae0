"""Dicts whose contents a version tells: from CPython 3.14 it takes one of the interpreter's few watchers of dicts."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(ctypes.pythonapi, "PyDict_AddWatcher"), reason="watchers are new in 3.12")

#: takes a watcher of dicts, of which `told` is told; then a shortcut is made, and everything it rests on is changed
BEGIN = """
import ctypes
from stator import _core
from stator.guards.guard import Equals
from stator.guards.program import compile_guards
from stator.guards.source import AttrSource, DictItemSource, LocalSource

told = []
watcher = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)
note = watcher(lambda event, changed, key, value: told.append(event) or 0)
api = ctypes.pythonapi
api.PyDict_Watch.argtypes = [ctypes.c_int, ctypes.py_object]

class Thing:
    pass

_core.set_revalidation_minimum(0)
holder = Thing()
holder.table = {"k": 1}
program = compile_guards([Equals(DictItemSource(AttrSource(LocalSource(0, "x"), "table"), "k"), 1)])
"""

ALL_TAKEN = """
try:
    while True:
        api.PyDict_AddWatcher(note)
except RuntimeError:
    pass
"""

WATCHED = """
number = api.PyDict_AddWatcher(note)
api.PyDict_Watch(number, holder.table)
"""

END = """
for changes in range(1, 20):
    assert [program.check(None, (holder,)) for _ in range(4)] == [True] * 4
    assert program.revalidation[0]
    holder.table["k"] = 2
    assert not program.check(None, (holder,))
    holder.table["k"] = 1
print(len(told))
"""


def run(*parts: str) -> str:
    done = subprocess.run([sys.executable, "-c", "".join(parts)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_where_others_have_taken_all_watchers():
    assert run(BEGIN, ALL_TAKEN, END) == "0\n"


def test_where_others_watch_the_same_dict():
    assert run(BEGIN, WATCHED, END, "api.PyDict_ClearWatcher(number)") == "38\n"
