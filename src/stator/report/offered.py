"""The patches that a report has: what may be changed in the program's own files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stator.errors.message import parted
from stator.interp.policy import is_installed
from stator.patches.offers import offers
from stator.patches.source import Site, apply, difference
from stator.report.explanation import BreakSite, Offer

if TYPE_CHECKING:
    from stator.report.stats import RecompileRecord

__all__ = ["offered", "own_files", "read"]


def own_files(files: Iterable[str]) -> list[str]:
    """Those of them that are the program's, and no installed library's."""
    return [file for file in files if os.path.isfile(file) and not is_installed(file)]


def read(file: str) -> str | None:
    """The text of a file; None where it cannot be patched."""
    try:
        with open(file, encoding="utf-8", newline="") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError):
        return None


def offered(
    breaks: Iterable[BreakSite], recompiles: Iterable[RecompileRecord], files: Iterable[str]
) -> Iterator[Offer]:
    """The patches for what has happened."""
    texts = {file: text for file in own_files(files) if (text := read(file)) is not None}
    sites = [Site(site.code, *parted(site.where), site.reason) for site in breaks]
    sites += [Site("SB0601", *parted(record.definition), record.reason) for record in recompiles]
    for patch in offers(texts, dict.fromkeys(sites)):
        file = patch.site.file
        new, _, _ = apply(texts[file], [patch])
        diff = difference(file, texts[file], new)
        yield Offer(patch.site.code, f"{file}:{patch.site.line}", patch.title, diff)
