"""The pages of the catalogue: they name existing codes, keep their headings, and their examples do what they say."""

import re
from pathlib import Path

import pytest

import stator
from stator import errors
from tests.needs import HAS_TORCH

FOLDER = Path(errors.__file__).parent / "pages"
PAGES = sorted(FOLDER.glob("*.md"))
HEADINGS = ["What happened", "Failing example", "Fixed example", "Why"]


def sections(path):
    """{heading: text} of a page."""
    parts = re.split(r"^## (.*)$", path.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def example(path, heading):
    """The function `f` and the arguments `args` that an example defines."""
    (source,) = re.findall(r"^```python\n(.*?)^```$", sections(path)[heading], re.M | re.S)
    if "import torch" in source and not HAS_TORCH:
        pytest.skip("the example needs torch")
    namespace = {"__name__": "example"}
    exec(compile(source, f"<{path.name}: {heading}>", "exec"), namespace)
    return namespace["f"], namespace["args"]


def plain(value):
    return value.detach().tolist() if hasattr(value, "detach") else value


parametrize = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


def test_there_are_pages():
    assert len(PAGES) >= 8


@parametrize
def test_page_is_about_an_existing_code(path):
    kind = errors.kind(path.stem)
    assert kind is not None
    assert path.read_text().startswith(f"# {kind.code}: {kind.title}\n")
    assert list(sections(path)) == HEADINGS


@parametrize
def test_failing_example_breaks_with_this_code(path):
    f, args = example(path, "Failing example")
    with pytest.raises(errors.GraphBreakError) as caught:
        stator.compile(f, backend="eager", fullgraph=True)(*args())
    assert caught.value.code == path.stem


@parametrize
def test_failing_example_runs_with_a_break(path):
    f, args = example(path, "Failing example")
    assert plain(stator.compile(f, backend="eager")(*args())) == plain(f(*args()))


@parametrize
def test_fixed_example_is_one_graph(path):
    f, args = example(path, "Fixed example")
    assert plain(stator.compile(f, backend="eager", fullgraph=True)(*args())) == plain(f(*args()))
