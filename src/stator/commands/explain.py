"""`stator explain`: what Stator makes of a script."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import TYPE_CHECKING

from stator.commands.common import Commands, command
from stator.commands.run import add_script, outcome, prepared, take_options

if TYPE_CHECKING:
    from stator.report.explanation import Explanation


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "explain", run, "run a script and tell what was compiled, what was not, and why")
    _add_options(parser)
    add_script(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="list all frames, where there are many, with --fix too")
    parser.add_argument("--html", metavar="FILE", help="write a page of HTML that needs nothing else")
    parser.add_argument(
        "--fix",
        action="store_true",
        help="try the patches by running the script anew, and make those that capture more and change no result",
    )


def run(options: argparse.Namespace) -> int:
    """Run the script, which may fail: what has happened until then is told."""
    take_options(options, _add_options)
    refused = prepared("explain", options)
    if refused is not None:
        return refused
    from stator.report.collector import explaining  # not for the other commands
    from stator.report.offered import own_files

    here = os.getcwd()
    # What the script prints must not get into what `--json` prints.
    printing = contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext()
    with explaining(os.path.basename(options.script[0])) as collector, printing:
        ended = outcome(options)
    explanation = collector.explanation()
    _tell(explanation, options)
    if options.fix:
        from stator.commands.fix import fix, nothing_to_fix  # likewise

        os.chdir(here)  # the script may have gone elsewhere
        with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
            if explanation.patches or ended:  # a script that fails may get further in a trial, where no error is raised
                return fix(options, own_files(explanation.sources)) or ended
            return nothing_to_fix(options, explanation)
    return ended


def _tell(explanation: Explanation, options: argparse.Namespace) -> None:
    if options.json:
        print(explanation.to_json())
    elif options.fix and not options.all:
        print(explanation.headline)  # what becomes of the patches is what was asked for
    else:
        explanation.print(everything=options.all)
    if options.html:
        explanation.to_html(options.html)
        print(f"stator explain: {options.html} has it all", file=sys.stderr)
