"""The project itself: what is importable without what, the house's measures, and files that must agree."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from stator import __version__

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAX_FILE, MAX_FUNCTION = 600, 60


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


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_files_and_functions_stay_small(path: Path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MAX_FILE, f"more than {MAX_FILE} lines are two ideas"
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    long = {node.name: node.end_lineno - node.lineno + 1 for node in functions}
    assert {name: length for name, length in long.items() if length > MAX_FUNCTION} == {}


#: which files may ask for the version of the interpreter; the others ask for a fact that has a name
_ASKING = ("host/version_facts.py", "host/support.py", "bytecode/versions/")


def test_the_version_of_python_is_asked_for_in_few_files():
    package = ROOT / "src" / "stator"
    asking = [
        str(path.relative_to(package))
        for path in SOURCES
        if re.search(r"version_info|hexversion", path.read_text(encoding="utf-8"))
    ]
    assert [name for name in asking if not name.startswith(_ASKING)] == []


def test_every_version_fact_has_a_sentence_and_is_used():
    path = ROOT / "src" / "stator" / "host" / "version_facts.py"
    body = ast.parse(path.read_text(encoding="utf-8")).body
    facts = {node.targets[0].id: after for node, after in zip(body, [*body[1:], None]) if isinstance(node, ast.Assign)}
    text = "\n".join(source.read_text(encoding="utf-8") for source in SOURCES if source != path)
    for name, after in facts.items():
        assert isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant), f"{name} needs a sentence"
        assert re.search(rf"\b{name}\b", text), f"{name} is asked for nowhere"


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
