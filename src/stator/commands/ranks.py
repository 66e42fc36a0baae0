"""`stator ranks`: do all ranks of a script break and communicate alike?"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

from stator.commands.common import BAD_USAGE, FAILED, FINE, Commands, print_json
from stator.commands.run import add_script, take_options

__all__ = ["add", "run"]

#: seconds that the other ranks have to end by themselves when one has failed
_LEFT = 10.0


def add(commands: Commands) -> None:
    """Declare the command."""
    text = "run a script in several processes, and check that their collectives agree"
    parser = commands.add_parser("ranks", help=text, description=text)
    parser.add_argument("--json", action="store_true", help="print JSON; what the script prints goes to stderr")
    _add_number(parser)
    add_script(parser)
    parser.set_defaults(run=run)


def _add_number(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nproc", type=int, default=2, metavar="N", help="how many processes (2)")


def run(options: argparse.Namespace) -> int:
    """Run the script as `torchrun` does, under `check_ranks`, and say in which they differ."""
    take_options(options, _add_number)
    if not os.path.isfile(options.script[0]) or options.nproc < 1:
        wrong = f"--nproc {options.nproc}" if options.nproc < 1 else f"no such file: {options.script[0]}"
        print(f"stator ranks: {wrong}", file=sys.stderr)
        return BAD_USAGE
    with tempfile.TemporaryDirectory() as folder:
        ranks = [_start(options, rank, folder) for rank in range(options.nproc)]
        ended = _wait(ranks)
        reports = [_report(os.path.join(folder, str(rank))) for rank in range(options.nproc)]
    rows = [
        {"rank": rank, "exit": process.returncode, "ended": rank in ended, **report}
        for rank, (process, report) in enumerate(zip(ranks, reports, strict=True))
    ]
    difference = next((report["difference"] for report in reports if report["difference"]), None)
    agree = difference is None and not any(process.returncode for process in ranks)
    if options.json:
        print_json({"ok": agree, "nproc": options.nproc, "difference": difference, "ranks": rows})
    else:
        _print(rows, difference, agree)
    return FINE if agree else FAILED


def _start(options: argparse.Namespace, rank: int, folder: str) -> subprocess.Popen[bytes]:
    """One rank, with the environment that `torchrun` gives it."""
    port = os.path.join(folder, "port")
    if rank == 0:
        with socket.socket() as free, open(port, "w") as file:
            free.bind(("127.0.0.1", 0))
            file.write(str(free.getsockname()[1]))
    with open(port) as file:
        group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": file.read(), "STATOR_CHECK_RANKS": "1"}
    sizes = {"WORLD_SIZE": options.nproc, "LOCAL_WORLD_SIZE": options.nproc, "RANK": rank, "LOCAL_RANK": rank}
    env = {"OMP_NUM_THREADS": "1", **os.environ, **group, **{name: str(value) for name, value in sizes.items()}}
    command = [sys.executable, "-m", "stator.commands.one_rank", os.path.join(folder, str(rank)), *options.script]
    return subprocess.Popen(command, env=env, stdout=sys.stderr if options.json else None)


def _wait(ranks: list[subprocess.Popen[bytes]]) -> list[int]:
    """Until all have ended; which had to be ended, because others have failed before and they went on."""
    end: float | None = None
    try:
        while any(process.poll() is None for process in ranks):
            if end is None and any(process.poll() for process in ranks):
                end = time.monotonic() + _LEFT
            if end is not None and time.monotonic() > end:
                break
            time.sleep(0.05)
    finally:
        ended = [rank for rank, process in enumerate(ranks) if process.poll() is None]
        for rank in ended:
            ranks[rank].kill()
            ranks[rank].wait()
    return ended


def _report(path: str) -> dict[str, Any]:
    """What a rank has written at its end, if it came to it."""
    try:
        with open(path, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
    except OSError:
        return {"difference": None, "error": None}
    return found


def _print(rows: list[dict[str, Any]], difference: dict[str, Any] | None, agree: bool) -> None:
    if difference is not None:
        print(difference["text"])
    for row in rows:
        if row["exit"] and not row["difference"]:
            number = row["exit"]
            how = f"ended by {signal.Signals(-number).name}" if number < 0 else f"exit code {number}"
            how = "still waiting when others had failed" if row["ended"] else how
            print(f"rank {row['rank']}: {row['error'] or how}")
    if agree:
        print(f"{len(rows)} ranks agree")
