"""`stator slots`: what is traced of the builtin types."""

from __future__ import annotations

import argparse
import sys

from stator.commands.common import BAD_USAGE, FINE, Commands, command, print_json


def add(commands: Commands) -> None:
    """Declare the command."""
    parser = command(commands, "slots", run, "show what is traced of the builtin types")
    parser.add_argument("types", metavar="TYPE", nargs="*", help="for example list or itertools.chain; default: all")


def run(options: argparse.Namespace) -> int:
    """Print the tables."""
    from stator.report import slots  # reads the tables of the tracer, which the other commands do without

    classes = [cls for name in options.types for cls in slots.find(name)] if options.types else slots.builtin_types()
    unknown = [name for name in options.types if not slots.find(name)]
    if unknown:
        print(f"stator: unknown type {unknown[0]!r}; `stator slots` lists all", file=sys.stderr)
        return BAD_USAGE
    if options.json:
        print_json({slots.full_name(cls): slots.groups(cls) for cls in classes})
    else:
        print(slots.tables(classes) if options.types else slots.page(), end="")
    return FINE
