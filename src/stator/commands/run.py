"""`stator run`: a script with torch.compile routed through Stator."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from stator.api.compile import install
from stator.commands.common import BAD_USAGE, FAILED, FINE, Commands
from stator.errors import StatorError

__all__ = ["add", "add_script", "outcome", "prepared", "run", "run_script", "take_options"]


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = commands.add_parser("run", help="run a script with torch.compile routed through Stator")
    add_script(parser)
    parser.set_defaults(run=run)


def add_script(parser: argparse.ArgumentParser) -> None:
    """Declare the script and its arguments."""
    # One list of both: argparse takes a `--` between them away.
    parser.add_argument("script", nargs=argparse.PARSER, help="a Python file, and its arguments")


def take_options(options: argparse.Namespace, add: Callable[[argparse.ArgumentParser], None]) -> None:
    """The options that `add` declares, and `--json`, may stand behind the script too, but not behind a `--` there."""
    parser = argparse.ArgumentParser(prog="stator", add_help=False, allow_abbrev=False)
    parser.add_argument("--json", action="store_true")
    add(parser)
    script: str = options.script[0]
    arguments = [*options.script[1:], "--"]
    end = arguments.index("--")
    _, rest = parser.parse_known_args(arguments[:end], options)
    options.script = [script, *rest, *arguments[end + 1 : -1]]


def run(options: argparse.Namespace) -> int:
    """Run it."""
    refused = prepared("run", options)
    if refused is None:
        run_script(options)
    return FINE if refused is None else refused


def prepared(command: str, options: argparse.Namespace) -> int | None:
    """Route torch.compile through Stator; the exit code if there is no such script, or torch does not fit."""
    if not os.path.isfile(options.script[0]):
        print(f"stator {command}: no such file: {options.script[0]}", file=sys.stderr)
        return BAD_USAGE
    try:
        install()
    except StatorError as error:  # no torch, or one that does not fit
        print(f"stator {command}: {error}", file=sys.stderr)
        return FAILED
    return None


def run_script(options: argparse.Namespace) -> dict[str, Any]:
    """Run the script as `python script.py arguments` does; returns its globals."""
    script = options.script[0]
    sys.argv = options.script
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    return runpy.run_path(script, run_name="__main__")


def outcome(options: argparse.Namespace, left: dict[str, Any] | None = None) -> int:
    """Run the script; with which code has it ended? Its globals are put into `left`, if it ends by itself."""
    try:
        (left if left is not None else {}).update(run_script(options))
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else FINE if end.code is None else FAILED
    except Exception as error:
        traceback.print_exception(error.with_traceback(_within(options.script[0], error.__traceback__)))
        print("stator: the script has failed; what is told is of what ran until then", file=sys.stderr)
        return FAILED
    return FINE


def _within(script: str, stack: TracebackType | None) -> TracebackType | None:
    """A traceback from the script on, without what has run it; nothing of a script that cannot be compiled."""
    while stack is not None and stack.tb_frame.f_code.co_filename != script:
        stack = stack.tb_next
    return stack
