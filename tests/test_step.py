"""tools/step: what is printed of a step, what is kept in its log, and that its exit status is the command's."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

STEP = Path(__file__).resolve().parent.parent / "tools" / "step"
NOISE = "WARNING: Location 'file:///opt/pypi/simple/torch/' is ignored: it is either a non-existing path or lacks one."

PYTEST_LOG = """\
..F.F                                                                    [100%]
=================================== FAILURES ===================================
___________________________________ test_one ___________________________________

    def test_one():
>       assert 1 == 2
E       assert 1 == 2

tests/test_one.py:2: AssertionError
___________________________________ test_two ___________________________________
E       assert 3 == 4
=========================== short test summary info ============================
SKIPPED [1] tests/test_three.py:9: no compiler
FAILED tests/test_one.py::test_one - assert 1 == 2
FAILED tests/test_two.py::test_two - assert 3 == 4
2 failed, 3 passed, 1 skipped in 0.12s
"""


def step(tmp_path: Path, code: str, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(STEP), *options, "a-step", "the title", sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=dict(os.environ, V="0") | env
    )
    done.stdout = without_times(done.stdout)
    return done


def without_times(text: str) -> str:
    return re.sub(r"(?<=: )\d+:\d\d\b", "TIME", text)


def log(tmp_path: Path) -> str:
    return (tmp_path / "build" / "a-step.log").read_text()


def test_a_step_is_two_lines_and_its_output_is_in_the_log(tmp_path):
    done = step(tmp_path, "import sys; print('chatter'); print('more', file=sys.stderr)")
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.splitlines() == ["[ .. ] the title", "[ ok ] the title: TIME"]
    assert sorted(log(tmp_path).split()) == ["chatter", "more"]


def test_pytests_closing_line_is_printed_as_it_is(tmp_path):
    closing = "1 failed, 4 passed, 2 deselected, 1 warning in 61.20s (0:01:01)"
    done = step(tmp_path, f"print('.... [ 90%]'); print('3 passed in 1.00s'); print({closing!r})")
    assert done.stdout.splitlines()[-1] == closing


def test_the_closing_line_of_a_run_of_pytest_is_found(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pytest\ndef test_it(): pass\n@pytest.mark.xfail\ndef test_x(): 1 / 0\n"
    )
    done = step(tmp_path, "import sys, pytest; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', 'test_it.py']))")
    assert "1 passed, 1 xfailed in " in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("code, status", [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137)])
def test_the_exit_status_is_the_commands(tmp_path, code, status):
    done = step(tmp_path, code)
    assert done.returncode == status
    assert f"[FAIL] the title: TIME, exit status {status}" in done.stdout


def test_a_command_that_does_not_exist_fails(tmp_path):
    command = [sys.executable, str(STEP), "a-step", "the title", "no-such-command"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 127 and "no-such-command" in done.stdout


def test_of_a_failure_the_last_lines_are_printed_without_pips_noise(tmp_path):
    code = f"for i in range(100): print('line', i); print({NOISE!r})\nraise SystemExit(1)"
    lines = step(tmp_path, code).stdout.splitlines()
    assert lines[2:-1] == [f"line {i}" for i in range(60, 100)]
    assert lines[-1] == "[FAIL] the title: all it printed is in build/a-step.log"
    assert NOISE in log(tmp_path)


def test_of_pytest_the_first_failure_the_list_and_the_closing_line_are_printed(tmp_path):
    text = step(tmp_path, f"print({PYTEST_LOG!r}); raise SystemExit(1)").stdout
    assert "assert 1 == 2" in text and "E       assert 3 == 4" not in text and "SKIPPED" not in text
    assert "FAILED tests/test_two.py::test_two" in text
    assert text.splitlines()[-2] == "2 failed, 3 passed, 1 skipped in 0.12s"


def test_of_a_crash_the_stack_is_printed(tmp_path):
    crash = "Fatal Python error: Segmentation fault\n\nCurrent thread (most recent call first):\n" + "  File\n" * 60
    text = step(tmp_path, f"print('...'); print({crash!r}); raise SystemExit(1)").stdout
    assert text.splitlines()[2] == "Fatal Python error: Segmentation fault"


def test_a_crash_that_a_test_looks_at_is_not_the_failure(tmp_path):
    """The closing line says that pytest itself lived."""
    text = step(tmp_path, f"print('Fatal Python error: Aborted'); print({PYTEST_LOG!r}); raise SystemExit(1)").stdout
    assert "Fatal" not in text and "assert 1 == 2" in text and "2 failed, 3 passed" in text


def test_a_long_step_shows_how_far_it_is(tmp_path):
    code = "import time; print('..... [ 42%]', flush=True); time.sleep(1.5)"
    lines = step(tmp_path, code, STEP_EVERY="0.4").stdout.splitlines()
    assert any(re.fullmatch(r"\[0:\d\d\] the title: 42 %", line) for line in lines)


def test_a_long_step_without_per_cents_shows_its_last_line(tmp_path):
    code = f"import time; print('Downloading torch'); print({NOISE!r}, flush=True); time.sleep(1.5)"
    assert "] the title: Downloading torch\n" in step(tmp_path, code, STEP_EVERY="0.4").stdout


def test_a_step_that_compiles_shows_the_file(tmp_path):
    code = "import time; print('  g++ -O3 -Ia -c src/a.cpp -o build/a.o -std=c++20', flush=True); time.sleep(1.5)"
    assert "] the title: compiling src/a.cpp\n" in step(tmp_path, code, STEP_EVERY="0.4").stdout


def test_what_a_shown_step_prints_is_the_result(tmp_path):
    done = step(tmp_path, "import sys; print('a table', flush=True); print('a warning', file=sys.stderr)", "--shown")
    assert done.stdout.splitlines() == ["[ .. ] the title", "a table", "[ ok ] the title: TIME"]
    assert log(tmp_path) == "a warning\n"


def test_verbose_shows_all_and_keeps_the_status(tmp_path):
    done = step(tmp_path, "print('chatter'); raise SystemExit(2)", V="1")
    assert (done.returncode, done.stdout) == (2, "chatter\n")


def test_on_a_terminal_a_running_step_is_one_line(tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, str(STEP), "a-step", "the title", sys.executable, "-c", "import time; time.sleep(1.2)"]
    env = dict(os.environ, TERM="xterm", COLUMNS="80", V="0")
    env.pop("STEP_LINES", None)
    subprocess.run(command, cwd=tmp_path, stdout=theirs, timeout=120, env=env, check=True)
    os.close(theirs)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    assert text.count("\n") == 1 and text.count("\r\033[K") >= 3
    assert "[ ok ] the title: TIME" in without_times(text)
