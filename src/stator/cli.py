"""The command line. Exit codes: 0 fine, 1 the check failed, 2 bad usage. `--json` everywhere."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from stator import __version__
from stator.commands import census, codes, doctor, explain, ranks, run, slots, why

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
    return run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stator", description="A just-in-time tracer for PyTorch programs.")
    parser.add_argument("--version", action="version", version=f"stator {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return parser
