"""Models that are imported when a program meets what they are about: none is missed, none is loaded without need."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stator
from stator.models.rare import INDEX

ROOM = Path(stator.__file__).parent / "models" / "rare"
PREFIX = "stator.models.rare."
PATHS = [path.relative_to(ROOM) for path in ROOM.rglob("*.py") if path.stem != "__init__"]
FILES = sorted(".".join(path.with_suffix("").parts) for path in PATHS)

#: prints which rare models a program has loaded
LOADED = "import sys; print([n for n in sys.modules if n.startswith('stator.models.rare.')])"


def run_python(*args):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_each_file_is_in_the_index():
    assert sorted(INDEX) == FILES


@pytest.fixture(scope="module")
def changes():
    """What importing each file changes in the tables: see `registered.py`."""
    return json.loads(run_python("-m", "tests.models.registered", *(PREFIX + file for file in FILES)))


@pytest.mark.parametrize("file", FILES)
def test_all_that_a_file_registers_leads_to_it(changes, file):
    change = changes[PREFIX + file]
    of_others = {name for other in change["needed"] for name, _ in changes[other]["new"]}
    own = [(name, files) for name, files in change["new"] if name not in of_others]
    assert [name for name, files in own if PREFIX + file not in files] == []


@pytest.mark.parametrize("file", FILES)
def test_what_is_known_without_a_file_stays_as_it_is(changes, file):
    """An entry that is there already is found, and no file is looked for."""
    assert [changes[PREFIX + file][what] for what in ("replaced", "hidden", "elsewhere")] == [[], [], []]


FUNCTION = f"""
import stator

@stator.compile
def step(items, scale=2.0, *, name="x"):
    table = {{name: [scale * item for item in items]}}
    try:
        return f"{{len(table[name])}} of {{sum(table[name])}}", table["y"]
    except KeyError:
        return sorted(table), [*map(str, zip(items, range(3)))]

assert step((1, 2, 3)) == (["x"], ["(1, 0)", "(2, 1)", "(3, 2)"])
{LOADED}
"""


def test_a_small_function_loads_none():
    assert run_python("-c", FUNCTION) == "[]"


MODULE = f"""
import stator, torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        self.scales = {{"out": 2.0}}

    def forward(self, x, *, mask=None):
        out = self.layers(x) * self.scales["out"]
        return out if mask is None else out.masked_fill(mask, 0.0)

net = Net()
compiled = stator.compile(net, backend="eager")
for size in (3, 5):
    torch.nn.functional.mse_loss(compiled(torch.ones(size, 4)), torch.zeros(size, 2)).backward()
assert net.layers[0].weight.grad is not None
{LOADED}
"""


@pytest.mark.needs_torch
def test_a_small_module_loads_none():
    assert run_python("-c", MODULE) == "[]"
