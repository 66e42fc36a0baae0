"""`stator codes`: the catalogue of graph breaks."""

from __future__ import annotations

import argparse

from stator import errors
from stator.commands.common import FINE, Commands, command, print_json


def add(commands: Commands) -> None:
    """Declare the command."""
    command(commands, "codes", run, "list the codes of all graph breaks")


def run(options: argparse.Namespace) -> int:
    """List them."""
    rows = [{"code": kind.code, "name": kind.__name__, "title": kind.title} for kind in errors.kinds()]
    if options.json:
        print_json(rows)
    else:
        for row in rows:
            print(f"{row['code']}  {row['title']}")
    return FINE
