"""`stator explain`: what Stator makes of a script."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from typing import TYPE_CHECKING

from stator.commands.common import FAILED, FINE, Commands, command
from stator.commands.run import add_script, prepared, run_script, take_options

if TYPE_CHECKING:
    from stator.report.explanation import Explanation


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "explain", run, "run a script and tell what was compiled, what was not, and why")
    _add_options(parser)
    add_script(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--html", metavar="FILE", help="write a page of HTML that needs nothing else")


def run(options: argparse.Namespace) -> int:
    """Run the script, which may fail: what has happened until then is told."""
    take_options(options, _add_options)
    refused = prepared("explain", options)
    if refused is not None:
        return refused
    from stator.report.collector import explaining  # not for the other commands

    # What the script prints must not get into what `--json` prints.
    printing = contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext()
    with explaining(os.path.basename(options.script[0])) as collector, printing:
        outcome = _outcome(options)
    _tell(collector.explanation(), options)
    return outcome


def _outcome(options: argparse.Namespace) -> int:
    """Run the script; with which code has it ended?"""
    try:
        run_script(options)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else FINE if end.code is None else FAILED
    except Exception:
        traceback.print_exc()
        return FAILED
    return FINE


def _tell(explanation: Explanation, options: argparse.Namespace) -> None:
    if options.json:
        print(explanation.to_json())
    else:
        explanation.print()
    if options.html:
        explanation.to_html(options.html)
        print(f"stator explain: {options.html} has it all", file=sys.stderr)
