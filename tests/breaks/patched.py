# needs: torch
"""Programs of the corpus with the patches made that there are for them."""

from __future__ import annotations

import dataclasses
import sys
from types import ModuleType
from typing import Any

import stator
from stator.patches.offers import offers
from stator.patches.source import Patch, Site, apply
from stator.report.events import Broke, Listener, listening
from stator.report.stats import RecompileRecord
from tests.breaks.registry import PROGRAMS, Make, Program, Run, alike, run

__all__ = ["Patched", "patched"]


class _Sites(Listener):
    """What is told of one file's lines."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.all: list[Site] = []

    def broke(self, event: Broke) -> None:
        frames = [frame for frame in event.stack if frame.filename == self.program.file]
        if event.brk.code != "SB0601" and frames:
            self.all.append(Site(event.brk.code, self.program.file, frames[-1].lineno or 0, event.brk.reason))

    def recompiled(self, record: RecompileRecord) -> None:
        self.all.append(Site("SB0601", "", 0, record.reason))


@dataclasses.dataclass
class Patched:
    """A program with the patches that hold.

    Attributes:
        make: the program as it is then.
        offered: how many patches there were.
        left: the sites that are left.
        why: what became of patches that do not hold.
    """

    make: Make
    offered: list[Patch]
    left: list[Site]
    why: str = ""


def _compiled(function: Any) -> Any:
    return stator.compile(function, backend="eager")


def _tried(make: Make, program: Program) -> tuple[Run, list[Site]]:
    stator.reset()
    with listening(_Sites(program)) as sites:
        return run(make, _compiled), sites.all  # type: ignore[attr-defined]


def patched(program: Program) -> Patched:
    """As `stator explain --fix` goes about it, in this process: patches are kept that keep all and capture more."""
    with open(program.file, encoding="utf-8") as file:
        text = file.read()
    expected, sites = _tried(program.make, program)
    found = Patched(program.make, [], sites)
    for _ in range(4):
        patches = offers({program.file: text}, found.left)
        if not patches:
            break
        found.offered += patches
        new, _, _ = apply(text, patches)
        try:
            make = _made(program, new)
            outcome, sites = _tried(make, program)
        except Exception as error:
            found.why = f"{type(error).__name__}: {error}"
            break
        same = all(alike(getattr(outcome, what), getattr(expected, what)) for what in ("results", "rest", "said"))
        if not same or len(sites) >= len(found.left):
            found.why = "no more is captured" if same else "something else comes out"
            break
        text, found.make, found.left = new, make, sites
    return found


def _made(program: Program, text: str) -> Make:
    """The program of another text of its file."""
    module = ModuleType(program.make.__module__)
    before, kept = len(PROGRAMS), sys.modules[program.make.__module__]
    sys.modules[module.__name__] = module  # where dataclasses look
    try:
        exec(compile(text, program.file, "exec"), vars(module))
        return next(each for each in PROGRAMS[before:] if each.name == program.name).make
    finally:
        del PROGRAMS[before:]
        sys.modules[module.__name__] = kept
