"""`stator why CODE`: a page of the catalogue."""

from __future__ import annotations

import argparse
import sys

from stator import errors
from stator.commands.common import BAD_USAGE, FINE, Commands, command, print_json


def add(commands: Commands) -> None:
    """Declare the command."""
    command(commands, "why", run, "explain one code").add_argument("code", metavar="CODE", help="for example SB0201")


def run(options: argparse.Namespace) -> int:
    """Print the page."""
    kind = errors.kind(options.code)
    if kind is None:
        return _unknown_code(options.code)
    text = errors.page(kind.code)
    if options.json:
        print_json({"code": kind.code, "name": kind.__name__, "title": kind.title, "hint": kind.hint, "page": text})
    else:
        print(text or f"# {kind.code}: {kind.title}\n\n{kind.__doc__}\n\nHint: {kind.hint}")
    return FINE


def _unknown_code(code: str) -> int:
    retired = errors.RETIRED.get(code.upper())
    if retired is not None:
        print(f"{code.upper()} is no longer in use: {retired}")
        return FINE
    print(f"stator: unknown code {code!r}; `stator codes` lists all", file=sys.stderr)
    return BAD_USAGE
