"""Models that are imported when a program meets what they are about: none is missed, none is loaded without need."""

import ast
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


#: where a table is asked directly, and why no rare model is missed
ASKED = {
    "models/classes/type_.py": "after `handler_of`",
    "models/hostcalls/proxies.py": "about a callable that is pure",
    "models/iterators/iterator.py": "about the class of a value",
    "models/rare/numbers/decimal_.py": "about what the file itself has registered",
    "pytorch/tensors/operators.py": "about operators of torch",
    "report/slots.py": "all models are loaded",
    "space/attributes.py": "about a slot of the class of a value",
    "space/operators.py": "about a callable that is pure, and operands that are known",
    "space/protocol.py": "where the others ask",
    "space/reloaded.py": "after `load`",
    "space/wrapping.py": "after `load`",
}
TABLES = {"MODELS", "HANDLERS", "PURE", "IMPURE", "RESTRICTED", "AMBIENT", "IMMUTABLE", "REALISERS"}


def asks_a_table(node):
    """`TABLE.get(…)` or `… in TABLE`."""
    asked = None
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        asked = node.comparators[0]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        asked = node.func.value
    return isinstance(asked, ast.Name) and asked.id in TABLES


def test_whoever_asks_for_a_model_asks_for_rare_ones_too():
    root = Path(stator.__file__).parent
    paths = sorted(root.rglob("*.py"))
    asking = [path for path in paths if any(map(asks_a_table, ast.walk(ast.parse(path.read_text(encoding="utf-8")))))]
    assert [path.relative_to(root).as_posix() for path in asking] == sorted(ASKED)


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


THREADS = """
import datetime, decimal, threading
import stator

def compute(n):
    number = decimal.Decimal(n) / 3
    view = memoryview(bytearray(range(n)))
    return str(number), view[1], str(datetime.date(2000, 1, n)), [type(number).sqrt(number), bytes(view)]

results, start = {}, threading.Barrier(4)

def run(n):
    compiled = stator.compile(lambda: compute(n), fullgraph=True, isolate_recompiles=True)
    start.wait()
    results[n] = compiled()

threads = [threading.Thread(target=run, args=(n,)) for n in range(2, 6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert results == {n: compute(n) for n in range(2, 6)}, results
"""


def test_threads_that_meet_the_same_wait_for_it():
    run_python("-c", THREADS)


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
