"""Where Stator can be imported, and the one sentence where it cannot."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from stator import cli
from stator.host import support

PACKAGE = Path(support.__file__).parent.parent


def import_stator(setting: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`import stator` in a process of its own, on the interpreter that `setting` makes of this one."""
    code = f"import sys, types\n{setting}\nimport stator"
    env = os.environ if path is None else dict(os.environ, PYTHONPATH=str(path))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=env)


def begin_package(folder: Path) -> None:
    """What `import stator` reads before the core."""
    (folder / "stator" / "host").mkdir(parents=True)
    for name in ("__init__.py", "host/__init__.py", "host/support.py"):
        (folder / "stator" / name).write_text((PACKAGE / name).read_text())
    shutil.copytree(PACKAGE / "bytecode" / "versions", folder / "stator" / "bytecode" / "versions")


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


NEWER = (3, support.LAST[1] + 1)


@pytest.mark.parametrize(
    "version, advice", [((3, 10), "use a newer one"), (NEWER, "a newer Stator"), ((3, 99), "a newer Stator")]
)
def test_import_on_an_unsupported_python_is_refused_with_one_sentence(version, advice):
    line = last_line(import_stator(f"sys.version_info = {version!r} + (0, 'final', 0)"))
    assert line.startswith(f"ImportError: Stator runs on {support.SUPPORTED}, and this is CPython %d.%d" % version)
    assert advice in line


def test_import_on_a_free_threaded_build_is_refused_with_one_sentence():
    line = last_line(import_stator("sys.abiflags = 't'"))
    assert line.startswith(f"ImportError: Stator runs on {support.SUPPORTED} with the global interpreter lock")
    assert "free-threaded" in line


def test_import_on_another_implementation_is_refused_with_one_sentence():
    line = last_line(import_stator("sys.implementation = types.SimpleNamespace(name='pypy', cache_tag=None)"))
    assert line.startswith(f"ImportError: Stator runs on {support.SUPPORTED}, and this is pypy")


def test_import_without_a_core_for_this_python_says_what_to_do(tmp_path):
    """As in a source tree that is not built, where the folder of the C++ sources imports as a package."""
    begin_package(tmp_path)
    (tmp_path / "stator" / "_core").mkdir()
    line = last_line(import_stator("", tmp_path))
    assert line.startswith("ImportError: Stator's C++ core is not there for CPython")
    assert "pip install -e ." in line


def test_import_with_a_core_that_does_not_load_says_why(tmp_path):
    begin_package(tmp_path)
    (tmp_path / "stator" / "_core.py").write_text("raise ImportError('undefined symbol: _Py_Gone')")
    assert "undefined symbol: _Py_Gone" in last_line(import_stator("", tmp_path))


def test_this_interpreter_is_supported():
    assert support.refusal_here() is None


def test_doctor_names_an_unsupported_python(capsys, monkeypatch):
    monkeypatch.setattr(support, "refusal_here", lambda: "Stator runs elsewhere")
    assert cli.main(["doctor"]) == 1
    assert "FAIL python: Stator runs elsewhere" in capsys.readouterr().out


NO_TORCH = "sys.modules['torch'] = None"


def test_import_and_tracing_work_without_torch():
    code = (
        "import stator\ndef f(n): return [i * i for i in range(n)]\nassert stator.compile(f, fullgraph=True)(3) == f(3)"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{NO_TORCH}\n{code}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_install_without_torch_says_what_is_missing():
    code = f"import sys\n{NO_TORCH}\nimport stator\nstator.install()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert last_line(done).endswith("torch is not installed: pip install 'stator[torch]'")


def test_running_a_script_without_torch_is_one_sentence(tmp_path):
    (tmp_path / "script.py").write_text("raise SystemExit(7)")
    code = (
        f"import sys\n{NO_TORCH}\nfrom stator.cli import main\nsys.exit(main(['run', {str(tmp_path / 'script.py')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("stator run: ") and "torch is not installed" in line


ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSIONS = [f"{major}.{minor}" for major, minor in support.VERSIONS]


def test_the_supported_versions_are_the_same_everywhere():
    project = PROJECT["project"]
    assert VERSIONS == [f"3.{minor}" for minor in range(support.FIRST[1], support.LAST[1] + 1)]
    assert project["requires-python"] == f">={VERSIONS[0]},<3.{support.LAST[1] + 1}"
    assert [c.split()[-1] for c in project["classifiers"] if ":: Python :: 3." in c] == VERSIONS
    named = subprocess.run([ROOT / "tools" / "pythons", "names"], capture_output=True, text=True, timeout=120)
    assert named.stdout.split() == VERSIONS
    internals = sorted(path.stem for path in (ROOT / "src/stator/_core").glob("frames*.cpp"))
    assert internals == [f"frames{version.replace('.', '')}" for version in VERSIONS]


def test_the_page_on_installing_quotes_what_is_said():
    page = (ROOT / "docs" / "guide" / "installing.md").read_text()
    described = [((3, 10), "cpython", False), (support.LAST, "cpython", True), ((3, 11), "pypy", False)]
    assert [support.refusal(*one) in page for one in described] == [True, True, True]
