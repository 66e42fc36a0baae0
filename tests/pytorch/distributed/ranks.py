"""Two processes of one gloo group, which run the same check at the same time: `python -m …ranks RANK STORE`.

A check is a function of `checks`, `agreement` or `tensors`; it raises where something is wrong. Those of `agreement`
make a group of their own, and the next check begins with another. What hangs is ended by gloo's timeout in the ranks,
and by `LIMIT` from outside.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any

SIZE = 2
#: seconds that a collective may take, and a check
TIMEOUT, LIMIT = 15, 60


class Ranks:
    """The processes: started when the first check is made, and again after one that failed."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []
        self.folder: Any = None

    def check(self, name: str, *args: object) -> None:
        """Run a check on all ranks."""
        if not self.processes:
            self._start()
        order = json.dumps([name, *args])
        answers = [json.dumps("no answer")] * SIZE
        readers = [threading.Thread(target=self._ask, args=(rank, order, answers)) for rank in range(SIZE)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(LIMIT)
        failures = [json.loads(text) for text in answers]
        if any(failures):
            self.stop()
            raise AssertionError("\n".join(f"rank {rank}: {failure}" for rank, failure in enumerate(failures)))

    def _start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        root = Path(__file__).resolve().parents[3]
        # Inductor's workers are processes that import torch anew, and so are its trials of vector instructions;
        # kernels without these compile in half the time.
        inductor = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_VEC_ISA_OK": "0"}
        env = {**os.environ, "OMP_NUM_THREADS": "1", **inductor}
        for rank in range(SIZE):
            command = [sys.executable, "-m", __spec__.name, str(rank), os.path.join(self.folder.name, "store")]
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root, env=env)
            self.processes.append(process)

    def _ask(self, rank: int, order: str, answers: list[str]) -> None:
        process = self.processes[rank]
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(order + "\n")
        process.stdin.flush()
        answers[rank] = process.stdout.readline() or answers[rank]

    def stop(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.kill()
            process.communicate()
        self.processes = []
        if self.folder is not None:
            self.folder.cleanup()


def main() -> None:
    """Answer the checks that are asked for on standard input."""
    import torch.distributed as dist

    from tests.pytorch.distributed import agreement, checks, programs, recomputed, tensors

    answers, sys.stdout = sys.stdout, sys.stderr
    rank, path = int(sys.argv[1]), sys.argv[2]
    limit = datetime.timedelta(seconds=TIMEOUT)
    group: object = None
    for number, line in enumerate(sys.stdin):
        name, *args = json.loads(line)
        try:
            home = next(home for home in (agreement, tensors, recomputed, checks) if hasattr(home, name))
            if home is not agreement and (group is None or dist.group.WORLD is not group):
                if dist.is_initialized():
                    dist.destroy_process_group()
                method = f"file://{path}{number}"
                dist.init_process_group("gloo", init_method=method, rank=rank, world_size=SIZE, timeout=limit)
                programs.prepare()
                group = dist.group.WORLD
            getattr(home, name)(*args)
            answer = ""
        except BaseException:
            answer = traceback.format_exc()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
