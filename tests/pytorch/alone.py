"""Programs in processes of their own that begin where `import torch, stator` is done.

Importing torch takes longer than most of them run, so one process does it, and each program runs in a fork of it.
"""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: seconds, after which a program is ended
LIMIT = 240
WAITING = f"""
import torch, stator

def wait():
    import json, os, signal, sys
    for line in sys.stdin:
        program, *files = json.loads(line)
        process = os.fork()
        if not process:
            signal.alarm({LIMIT})
            for number, file in enumerate([os.devnull, *files]):
                os.dup2(os.open(file, os.O_RDWR), number)
            return program
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)

program = wait()
if program is not None:
    exec(compile(program, "<string>", "exec"), {{"__name__": "__main__"}})
"""


@functools.cache
def _waiting() -> subprocess.Popen[str]:
    """The process that waits for programs; it ends with this one, which closes its standard input."""
    command = [sys.executable, "-c", WAITING]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run_alone(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program as `python -c` does, in the folder of the project."""
    waiting = _waiting()
    assert waiting.stdin is not None and waiting.stdout is not None
    with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as err:
        waiting.stdin.write(json.dumps([program, out.name, err.name]) + "\n")
        waiting.stdin.flush()
        status = int(waiting.stdout.readline())
        errors = err.read() + (f"ended after {LIMIT} seconds" if status == -signal.SIGALRM else "")
        return subprocess.CompletedProcess(program, status, out.read(), errors)
