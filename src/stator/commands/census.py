"""`stator census`: what a script breaks, compiles and specialises on, saved or compared with what was saved."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stator.commands.common import BAD_USAGE, FAILED, FINE, Commands, command, print_json
from stator.commands.run import add_script, outcome, prepared, take_options
from stator.errors import ConfigError
from stator.report.events import listening

if TYPE_CHECKING:
    from stator.report.census import Census

__all__ = ["add", "run"]


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "census", run, "run a script and count its breaks, graphs, recompiles, specialisations")
    _add_options(parser)
    add_script(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="list all items of each kind, specialisations too")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--save", metavar="FILE", help="write the census")
    what.add_argument(
        "--check", metavar="FILE", help="compare it with a saved one; more breaks or recompiles: exit code 1"
    )


def run(options: argparse.Namespace) -> int:
    """Run the script, which must not fail."""
    take_options(options, _add_options)
    if options.save and options.check:
        print("stator census: --save or --check, not both", file=sys.stderr)
        return BAD_USAGE
    from stator.report.census import Census, CensusTaker  # not for the other commands

    try:
        earlier = Census.load(Path(options.check)) if options.check else None
    except ConfigError as e:
        print(f"stator census: {e}", file=sys.stderr)
        return BAD_USAGE
    refused = prepared("census", options)
    if refused is not None:
        return refused
    taker = CensusTaker(os.getcwd())
    printing = contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext()
    with listening(taker), printing:
        ended = outcome(options)
    if ended != FINE:
        print(f"stator census: the script ended with exit code {ended}; nothing is counted", file=sys.stderr)
        return FAILED
    return _told(taker.census(), earlier, options)


def _told(census: Census, earlier: Census | None, options: argparse.Namespace) -> int:
    if options.save:
        Path(options.save).write_text(census.to_json(), encoding="utf-8")
    if earlier is None:
        print(census.to_json() if options.json else f"{census.told(everything=options.all)}\n", end="")
        return FINE
    difference = census.against(earlier)
    if options.json:
        print_json(difference.to_json())
    else:
        print(difference.told(everything=options.all))
    return FAILED if difference.worse else FINE
