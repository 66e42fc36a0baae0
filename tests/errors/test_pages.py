"""The pages of the catalogue: they name existing codes, keep their headings, and their examples do what they say."""

import re
import sys
from pathlib import Path

import pytest

import stator
from stator import errors
from tests.needs import HAS_TORCH

FOLDER = Path(errors.__file__).parent / "pages"
PAGES = sorted(FOLDER.glob("*.md"))
HEADINGS = ["What happened", "Failing example", "Fixed example", "Why"]
#: codes that no example of a few lines can cause: asked for by tests, about what surrounds the call, defects of Stator
WITHOUT_EXAMPLES = {"SB0303", "SB0404", "SB0405", "SB0602"}
WITH_EXAMPLES = [path for path in PAGES if path.stem not in WITHOUT_EXAMPLES]


@pytest.fixture(autouse=True)
def _no_debugger(monkeypatch):
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")


@pytest.fixture(autouse=True)
def _hooks_as_before():
    hooks = sys.get_asyncgen_hooks()
    yield
    sys.set_asyncgen_hooks(*hooks)


@pytest.fixture(autouse=True)
def _no_process_group_left():
    yield
    if "torch.distributed" in sys.modules:
        import torch.distributed as dist

        if dist.is_available() and dist.is_initialized():
            dist.destroy_process_group()


def sections(path):
    """{heading: text} of a page."""
    parts = re.split(r"^## (.*)$", path.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


class Example:
    """The function `f` that an example defines, with the arguments of its calls and the settings it needs."""

    def __init__(self, path, heading):
        (source,) = re.findall(r"^```python\n(.*?)^```$", sections(path)[heading], re.M | re.S)
        if "import torch" in source and not HAS_TORCH:
            pytest.skip("the example needs torch")
        self.names = {"__name__": "example"}
        exec(compile(source, f"<{path.name}: {heading}>", "exec"), self.names)

    def calls(self):
        return self.names["calls"]() if "calls" in self.names else [self.names["args"]()]

    def eager(self):
        return [plain(self.names["f"](*args)) for args in self.calls()]

    def compiled(self, **options):
        with stator.config.patch(self.names.get("settings", {})):
            function = stator.compile(self.names["f"], backend="eager", **options)
            return [plain(function(*args)) for args in self.calls()]


def plain(value):
    return value.detach().tolist() if hasattr(value, "detach") else value


parametrize = pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)


def test_every_code_has_a_page():
    assert {path.stem for path in PAGES} == {kind.code for kind in errors.kinds()}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_is_about_an_existing_code(path):
    kind = errors.kind(path.stem)
    assert kind is not None
    assert errors.page(path.stem).startswith(f"# {kind.code}: {kind.title}\n")
    assert list(sections(path)) == (HEADINGS if path in WITH_EXAMPLES else [HEADINGS[0], HEADINGS[-1]])


@parametrize
def test_failing_example_breaks_with_this_code(path):
    with pytest.raises((errors.GraphBreakError, errors.RecompileLimitError, errors.RecompileError)) as caught:
        Example(path, "Failing example").compiled(fullgraph=True)
    assert caught.value.code == path.stem


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@parametrize
def test_failing_example_runs_with_this_break(path):
    example = Example(path, "Failing example")
    example.names.get("settings", {}).pop("error_on_recompile", None)
    before = stator.stats()
    assert example.compiled() == example.eager()
    done = stator.stats().diff(before)
    found = {record.code for record in done.breaks} | ({errors.Recompiled.code} if done.recompiles else set())
    # Where the break cannot be resumed the frame is given up, for this reason.
    assert found & {path.stem, errors.FrameGivenUp.code}


@parametrize
def test_fixed_example_is_one_graph(path):
    example = Example(path, "Fixed example")
    assert example.compiled(fullgraph=True) == example.eager()
