"""`stator run`: a script with torch.compile routed through Stator."""

from __future__ import annotations

import argparse
import os
import runpy
import sys

from stator.api.compile import install
from stator.commands.common import BAD_USAGE, FAILED, FINE, Commands
from stator.errors import StatorError

__all__ = ["add", "add_script", "prepared", "run", "run_script"]


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser("run", help="run a script with torch.compile routed through Stator")
    add_script(parser)
    parser.set_defaults(run=run)


def add_script(parser: argparse.ArgumentParser) -> None:
    """Declare the script and its arguments."""
    parser.add_argument("script", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(options: argparse.Namespace) -> int:
    """Run it."""
    refused = prepared("run", options)
    if refused is None:
        run_script(options)
    return FINE if refused is None else refused


def prepared(command: str, options: argparse.Namespace) -> int | None:
    """Route torch.compile through Stator; the exit code if there is no such script, or torch does not fit."""
    if not os.path.isfile(options.script):
        print(f"stator {command}: no such file: {options.script}", file=sys.stderr)
        return BAD_USAGE
    try:
        install()
    except StatorError as error:  # no torch, or one that does not fit
        print(f"stator {command}: {error}", file=sys.stderr)
        return FAILED
    return None


def run_script(options: argparse.Namespace) -> None:
    """Run the script as `python script.py arguments` does."""
    sys.argv = [options.script, *options.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(options.script))
    runpy.run_path(options.script, run_name="__main__")
