"""The project itself: what is importable without what, the house's measures, and files that must agree."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from stator import __version__
from tests.house import House

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_imports_where_torch_is_missing():
    done = run_python(
        "import sys; sys.modules['torch'] = None; import stator, stator.cli, stator.config, stator.errors"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.needs_torch
def test_import_does_not_load_the_reference_or_its_backends():
    done = run_python(
        "import sys, stator\n"
        "print([name for name in ('torch._dynamo', 'torch._inductor', 'numpy.testing') if name in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_import_does_not_load_the_tracer():
    done = run_python(
        "import sys, stator\nprint([n for n in sys.modules if n.startswith(('stator.interp.', 'stator.models'))])"
    )
    assert done.stdout.strip() == "['stator.interp.policy']", done.stdout + done.stderr


def test_every_model_and_opcode_is_loaded_with_the_tracer():
    """Or when a program needs it, if it is rare: see tests/models/test_rare.py."""
    package = ROOT / "src" / "stator"
    paths = [path for room in ("models", "interp") for path in (package / room).rglob("*.py")]
    paths = [path for path in paths if path.stem != "__init__" and package / "models" / "rare" not in path.parents]
    files = [".".join(path.relative_to(package.parent).with_suffix("").parts) for path in paths]
    assert len(files) > 90
    done = run_python(f"import stator.compiler.miss, sys\nprint([n for n in {files} if n not in sys.modules])")
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_console_script_and_module_are_the_same_command():
    done = subprocess.run([sys.executable, "-m", "stator", "--version"], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == f"stator {__version__}"
    assert PROJECT["project"]["scripts"]["stator"] == "stator.cli:main"


def test_torch_is_no_hard_dependency():
    names = [re.match(r"[\w-]+", text)[0] for text in PROJECT["project"]["dependencies"]]
    assert names == ["bytecode"]


HOUSE = House(ROOT / "src" / "stator")


def test_a_class_is_one_idea():
    """Of more than twenty attributes, some belong to a part that has not got a name yet."""
    assert {name: len(attributes) for name, attributes in HOUSE.classes().items() if len(attributes) > 20} == {}


def test_a_file_is_one_idea():
    """What imports more than fifteen of the package's modules does more than one thing with them."""
    assert {module: len(imported) for module, imported in HOUSE.imports.items() if len(imported) > 15} == {}


def test_files_that_need_each_other_are_few():
    """Annotations and imports in functions count: who wants to understand one file must read them all."""
    assert [circle for circle in HOUSE.circles() if len(circle) > 5] == []


def test_folders_can_be_looked_over():
    assert {folder: count for folder, count in HOUSE.folders().items() if count > 25} == {}


def test_few_imports_stand_in_functions():
    """They are for the time that it takes to start, each with its reason; a circle is not one."""
    local = HOUSE.local_imports()
    assert local.total() <= 30, local.most_common()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_models_of_special_methods_are_named_by_their_slot(path: Path):
    """Under its own name, `__len__`, Python would call the model on the Value."""
    methods = [
        function
        for cls in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(cls, ast.ClassDef)
        for function in cls.body
        if isinstance(function, ast.FunctionDef) and re.fullmatch("__.+__", function.name)
    ]
    wrong = [m.name for m in methods if m.name != "__init__" and "space" in [a.arg for a in m.args.args[:2]]]
    assert wrong == [], "the model of `__x__` is named `tp_x`"


def pinned() -> set[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {line.split("==")[0].lower() for line in lines if "==" in line}


def test_everything_the_makefile_installs_is_pinned():
    makefile = (ROOT / "Makefile").read_text()
    installed = {name for names in re.findall(r"^\w+_DEPS := (.*)$", makefile, re.M) for name in names.split()}
    assert {"torch", "pytest", "bytecode", "transformers"} <= installed
    assert installed <= pinned()


def test_extras_name_what_the_makefile_installs():
    makefile = (ROOT / "Makefile").read_text()
    variables = dict(re.findall(r"^(\w+)_DEPS := (.*)$", makefile, re.M))
    for variable, extra in (("TEST", "test"), ("LINT", "lint")):
        declared = {re.match(r"[\w-]+", text)[0] for text in PROJECT["project"]["optional-dependencies"][extra]}
        assert declared == set(variables[variable].split())


def test_workflows_name_their_owners():
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert workflows
    for path in workflows:
        assert path.read_text().startswith("# Owner(s): "), path.name
