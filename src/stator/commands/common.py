"""What the commands share: exit codes, and how they are declared and print JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TypeAlias

__all__ = ["BAD_USAGE", "FAILED", "FINE", "Commands", "command", "print_json"]

FINE, FAILED, BAD_USAGE = 0, 1, 2

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    """Declare a command: `run` gets its arguments and returns the exit code."""
    parser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def print_json(value: object) -> None:
    """Print a value as `--json` does."""
    print(json.dumps(value, indent=2))
