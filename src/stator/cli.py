"""The command line. Exit codes: 0 fine, 1 the check failed, 2 bad usage. `--json` everywhere."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from stator import __version__
from stator.commands import census, codes, doctor, explain, ranks, run, slots, why

#: as shells call a command that SIGPIPE ends
_ENDED_BY_PIPE = 128 + 13

COMMANDS = (
    doctor,
    codes,
    why,
    slots,
    run,
    explain,
    census,
    ranks,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        status = run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        if hasattr(options, "script"):  # it may be the script's own
            raise
        # `stator why SB0201 | head`: nobody reads the rest, which Python would try to write once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _ENDED_BY_PIPE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stator", description="A just-in-time tracer for PyTorch programs.")
    parser.add_argument("--version", action="version", version=f"stator {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return parser
