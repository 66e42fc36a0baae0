"""Which patches there are for what a program was told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stator.patches import branches, conditions, extremes, imports, log_lines, marks, size_marks, sizes
from stator.patches.source import Patch, Site, Source

__all__ = ["KINDS", "offers"]

#: each has the codes that it is about, a title, and `edits(source, line, reason)`: None where it has none to offer
KINDS = (branches, conditions, extremes, marks, imports, log_lines, sizes, size_marks)


def offers(texts: Mapping[str, str], sites: Iterable[Site]) -> list[Patch]:
    """At most one for each place, and none twice.

    Args:
        texts: the program's files.
        sites: breaks and recompiles in them.
    """
    sources: dict[str, Source] = {}
    found: dict[tuple[str, int, str], Patch] = {}
    for site in sites:
        if site.file not in sources:
            try:
                sources[site.file] = Source(texts[site.file])
            except (KeyError, SyntaxError, ValueError):
                continue  # no file of the program's, or none that is Python
        for kind in KINDS:
            made = kind.edits(sources[site.file], site.line, site.reason) if site.code in kind.CODES else None
            if made:
                found.setdefault((site.file, site.line, kind.TITLE), Patch(site, kind.TITLE, tuple(made)))
                break
    return list({(patch.site.file, patch.edits): patch for patch in reversed(found.values())}.values())[::-1]
