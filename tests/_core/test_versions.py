"""What differs between the versions of CPython stands in two places of the core."""

from pathlib import Path

CORE = Path(__file__).resolve().parents[2] / "src" / "stator" / "_core"


def test_the_version_is_asked_for_in_one_header():
    asking = sorted(path.name for path in CORE.iterdir() if "PY_VERSION_HEX" in path.read_text(encoding="utf-8"))
    assert asking == ["versions.h"]


def test_internals_of_frames_are_touched_in_a_file_a_version():
    texts = {path.name: path.read_text(encoding="utf-8") for path in CORE.iterdir()}
    touching = sorted(name for name, text in texts.items() if "frame.h>" in text and "internal/" in text)
    assert touching == [f"frames3{minor}.cpp" for minor in range(11, 11 + len(touching))]
