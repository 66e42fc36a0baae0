"""Private names of torch: all in `internals.py`, all checked before anything is registered, and in no other file."""

import importlib
import re
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402
from stator import errors  # noqa: E402
from stator.pytorch import internals  # noqa: E402
from tests.private_names import files, own_names, private_members, touches  # noqa: E402

PACKAGE = Path(stator.__file__).parent
HOME = "pytorch/internals.py"
TREES = files(PACKAGE)
OWN = own_names(TREES.values())
MEMBERS = private_members(
    (torch.Tensor, torch.UntypedStorage, torch.nn.Module, torch.fx.Graph, torch.fx.Node, torch.fx.GraphModule)
)


# --- one file ------------------------------


def test_no_other_file_touches_a_private_name_of_torch():
    found = [
        f"{name}, line {touch.line}: {touch.text}"
        for name, tree in TREES.items()
        if name != HOME
        for touch in touches(tree, OWN, MEMBERS)
        if name.startswith(("pytorch/", "backends/")) or touch.text.startswith(("torch", "from torch", "import torch"))
    ]
    assert not found, "put a row for it into pytorch/internals.py, and ask there:\n" + "\n".join(found)


PLANTED = {
    "a chain": "import torch\ntorch._C._dispatch_keys(x)",
    "a function of torch": "import torch\ntorch._neg_view(x)",
    "a module": "import torch.fx._symbolic_trace",
    "from a module": "from torch._guards import tracing",
    "out of a public module": "from torch.utils import _pytree as pytree",
    "of an alias": "from torch.autograd import forward_ad\nforward_ad._current_level",
    "of a name of its own": "import torch\n_Module = torch.nn.Module\n_Module._call_impl",
    "of a tensor": "def f(t):\n    return t._base",
    "a method of a tensor": "def f(t):\n    return t.host._is_view()",
    "of a storage": "def f(t):\n    return t.untyped_storage()._cdata",
    "of another object": "def f(operator):\n    return operator._schema",
    "by its text": "import torch\ngetattr(torch, '_neg_view')",
    "of a tensor by its text": "def f(t):\n    return getattr(t, '_version')",
    "out of a class": "import torch\nvars(torch.Tensor)['_base']",
    "a function-local import": "def f():\n    from torch._dynamo.source import LocalSource",
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_touch_is_found(name):
    assert list(touches(PLANTED[name], OWN, MEMBERS))


CLEAN = {
    "public": "import torch\ntorch.fx.symbolic_trace(torch.add)",
    "own": "class A:\n    def f(self, value):\n        self._fake = 1\n        return value._fake",
    "dunder": "import torch\ntorch.__version__",
    "here": "from stator.pytorch import internals\ninternals.version(t)",
}


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_else_is_found(name):
    assert not list(touches(CLEAN[name], OWN, MEMBERS))


def test_each_name_is_used():
    used = "\n".join(p.read_text() for p in PACKAGE.rglob("*.py"))
    unused = [name for name in internals.NAMES if not re.search(rf"\binternals\.{name}\b", used)]
    # one that a method overrides, and modules and a class of which functions read a variable
    assert unused == ["module_loading", "fx_tracer", "forward_ad", "checkpointing", "Function"]


# --- the check ------------------------------


def test_this_torch_fits():
    assert internals.differences() == []


def test_a_name_of_a_class_is_its_reader():
    x = torch.ones(3)
    x.add_(1)
    assert internals.version(x) == 1 and internals.base(x[0]) is x and not internals.is_view(x)


def _difference(name, **changes):
    return internals.differences([internals.NAMES[name]._replace(**changes)])


def test_what_is_missing_is_named():
    [line] = _difference("dispatch_keys", path="torch._C._no_such_function")
    assert line.startswith("torch._C._no_such_function is not there (")
    assert _difference("LocalSource", path="torch._no_such_module.LocalSource")
    assert _difference("FakeTensorMode", has=("no_such_method",))[0].startswith(
        "torch._subclasses.fake_tensor.FakeTensorMode has no no_such_method ("
    )


def test_another_kind_is_named():
    assert _difference("dispatch_keys", kind=internals.CLASS)[0].startswith("torch._C._dispatch_keys is not a class (")
    assert _difference("TensorBase", kind=internals.FUNCTION)
    assert _difference("pytree", kind=internals.FIELD)
    assert _difference("version", path="torch._C.TensorBase.size", kind=internals.MODULE)


def test_other_parameters_are_named():
    [line] = _difference("enter_inference_mode", takes=3)
    assert "is called otherwise: too many positional arguments" in line
    assert "missing a required argument: 'mode'" in _difference("enter_inference_mode", takes=0)[0]
    line = _difference("CompileId", words=("frame",))[0]
    assert "missing a required " in line and "argument: 'frame_id'" in line  # "keyword-only", some Pythons add


def test_a_module_that_keeps_its_parts_elsewhere_is_named(monkeypatch):
    monkeypatch.setattr(internals, "MODULE_FIELDS", ("_parameters", "_weights"))
    monkeypatch.setattr(internals, "GLOBAL_HOOKS", ("_no_hooks",))
    assert [line.partition(" (")[0] for line in internals.differences([])] == [
        "a torch.nn.Module has no _weights",
        "torch.nn.modules.module has no _no_hooks",
    ]


def test_a_name_that_is_needed_later_is_checked_then(monkeypatch):
    row = internals.NAMES["refs"]._replace(has=("no_such_function",))
    monkeypatch.setitem(internals.NAMES, "refs", row)
    monkeypatch.delitem(vars(internals), "refs", raising=False)
    with pytest.raises(errors.InternalError, match=r"torch\._refs has no no_such_function .*\n.*pip install"):
        internals.refs  # noqa: B018
    with pytest.raises(AttributeError):
        internals.no_such_name  # noqa: B018


# --- versions ------------------------------


def test_an_old_torch_is_refused(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.12.1+cpu")
    with pytest.raises(errors.InternalError) as caught:
        internals.check()
    assert str(caught.value) == (
        'torch 2.12.1+cpu is too old for Stator, which needs 2.13 to 2.15: pip install "torch>=2.13,<2.16"'
    )


@pytest.mark.parametrize("version", ["2.16.0.dev20261101+cpu", "3.0.1", "of my own"])
def test_a_new_torch_is_tried_with_a_warning(monkeypatch, version):
    monkeypatch.setattr(torch, "__version__", version)
    with pytest.warns(UserWarning, match=f"torch {version.replace('+', '.')} is newer than those"):
        internals.check()


# --- the whole of it: a process whose torch has other internals ------------------------------


def _process(text):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_torch_that_differs_is_refused_as_a_whole_and_in_the_same_words():
    out = _process("""
        import torch, stator
        from torch.autograd import grad_mode
        del torch._C._dispatch_keys
        grad_mode._enter_inference_mode = lambda: None
        torch.utils._python_dispatch._disable_current_modes = None
        told = []
        for attempt in (lambda: stator.compile(len), stator.install, stator.list_backends, lambda: stator.compile(len)):
            try:
                attempt()
            except stator.errors.InternalError as e:
                told.append(str(e))
        assert len(told) == 4 and len(set(told)) == 1, told
        from stator.space import protocol
        assert torch.Tensor not in protocol.MODELS
        print(told[0])
    """)
    first, *lines, last = out.splitlines()
    assert first == (
        f"Stator does not fit torch {torch.__version__}. What it needs of torch's internals is otherwise there:"
    )
    assert sorted(line.split()[0] for line in lines) == [
        "torch._C._dispatch_keys",
        "torch.autograd.grad_mode._enter_inference_mode",
        "torch.utils._python_dispatch._disable_current_modes",
    ]
    assert last == 'Install a torch that it fits: pip install "torch>=2.13,<2.16"'


def test_a_module_that_another_thread_is_importing_is_waited_for(tmp_path, monkeypatch):
    text = "import time\nbegun = True\ntime.sleep(0.3)\nThing = 1\n"
    (tmp_path / "imported_slowly.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    thread = threading.Thread(target=importlib.import_module, args=("imported_slowly",))
    thread.start()
    try:
        while not hasattr(sys.modules.get("imported_slowly"), "begun"):
            time.sleep(0.001)
        assert internals.resolve("imported_slowly.Thing") == 1
    finally:
        thread.join()
        sys.modules.pop("imported_slowly", None)
