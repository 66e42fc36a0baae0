"""`stator explain --fix`: the patches that hold, by trial, are made; of the others it is said why they are not."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stator.commands.common import FAILED, FINE
from stator.errors.message import parted
from stator.guards.base import shortened
from stator.patches.offers import offers
from stator.patches.source import Patch, Site, apply, difference
from stator.report.offered import read

if TYPE_CHECKING:
    from stator.report.explanation import Explanation

__all__ = ["fix", "nothing_to_fix", "refusal"]

#: what a trial finds, as `stator.commands.one_trial` writes it
Found = dict[str, Any]

#: a patch may make the next break reachable: so often the program is looked at again
_ROUNDS = 8
#: how much longer a script may run with a patch, in seconds of the processor, and how many times as long
#: (what a patch imports, torch._dynamo say, takes a second or two)
_LONGER, _TIMES = 3, 1.5
_COMPARED = {
    "code": "the script ends otherwise",
    "results": "a compiled function gives something else",
    "said": "the script prints something else",
    "left": "the script leaves other values behind",
    "generators": "random generators are used otherwise",
}


#: how many kinds of breaks are named that are left
_MOST_LEFT = 4
_WIDTH = 80


class _Offer(NamedTuple):
    """A patch as it is known again when others have moved its line: by what it does, and to which line of a file."""

    title: str
    file: str
    line: str


class _Tried(NamedTuple):
    """The files' texts with some patches made, and what came of it."""

    texts: dict[str, str]
    made: list[_Offer]
    found: Found


def refusal(before: Found, after: Found) -> str | None:
    """Why a patch does not hold; None if it does: all is as before, and more is captured."""
    for what, words in _COMPARED.items():
        if before[what] != after[what]:
            return words + _more_of(what, before, after)
    if after["choices"]:
        return f"the sides are of two kinds at {after['choices'][0].rpartition('/')[2]}"
    fewer = len(before["breaks"]) - len(after["breaks"])
    gained = fewer + len(before["recompiles"]) - len(after["recompiles"])
    if min(fewer, gained) < 0 or (not gained and after["graphs"] >= before["graphs"]):
        return "no more is captured"
    slower = after["seconds"] - before["seconds"]
    if slower > _LONGER and after["seconds"] > _TIMES * before["seconds"]:
        return f"the script runs {after['seconds']:.1f} s where it ran {before['seconds']:.1f}, without compiling"
    return None


def _more_of(what: str, before: Found, after: Found) -> str:
    """What is printed otherwise, or the error that the script ends with."""
    if what == "code":
        last = after["said"].rstrip().rpartition("\n")[2]
        return f": {shortened(last, _WIDTH)}" if last and after["code"] else ""
    return _first_difference(before[what], after[what]) if what == "said" else ""


def _first_difference(before: str, after: str) -> str:
    lines = zip_longest(before.splitlines(), after.splitlines(), fillvalue="nothing")
    return next((f": {new!r} where it was {old!r}" for old, new in lines if old != new), "")


def fix(options: argparse.Namespace, files: Iterable[str]) -> int:
    """Try what there is to offer for a script, write what holds, and tell what became of each patch.

    Args:
        options: with the script and its arguments, and whether all has been told of it (`options.all`).
        files: the program's own, which may be changed.

    Returns:
        The exit code: `FAILED` where no patch can be tried, as the script does not do the same each time.
    """
    texts = {file: text for file in files if (text := read(file)) is not None}
    original = _trial(options, {}, {})
    if original is None:
        print("stator explain: the script could not be run again; nothing is changed", file=sys.stderr)
        return FAILED
    code = FINE
    held, refused = _Tried(texts, [], original), dict[_Offer, str]()
    for _ in range(_ROUNDS):
        offered = [
            patch for patch in offers(held.texts, _sites(held.found)) if _offer(held.texts, patch) not in refused
        ]
        if not offered:
            break
        held = _all_or_each(options, held, offered, refused)
    # A patch that holds has had the script do the same.
    if not held.made and any(why.startswith(tuple(_COMPARED.values())) for why in refused.values()):
        again = _trial(options, {}, {})
        if again is None or any(again[what] != original[what] for what in _COMPARED):
            print(
                "stator explain: the script does not do the same each time, so no patch can be tried", file=sys.stderr
            )
            code = FAILED
    _write(texts, held.texts)
    _tell_all(options, texts, original, held, refused)
    return code


def nothing_to_fix(options: argparse.Namespace, explanation: Explanation) -> int:
    """Tell what is left of a script for which its first run has offered no patch: it need not run again."""
    found: Found = {
        "breaks": [(site.code, site.where, site.reason) for site in explanation.breaks],
        "recompiles": explanation.recompiles,
        "graphs": explanation.graph_count,
    }
    _tell_all(options, {}, found, _Tried({}, [], found), {})
    return FINE


def _tell_all(
    options: argparse.Namespace, texts: dict[str, str], original: Found, held: _Tried, refused: dict[_Offer, str]
) -> None:
    _tell(texts, held, refused)
    _tell_of_the_change(original, held)
    if not options.all and (held.found["breaks"] or held.found["recompiles"]):
        print("stator explain SCRIPT tells of each")


def _all_or_each(options: argparse.Namespace, held: _Tried, offered: list[Patch], refused: dict[_Offer, str]) -> _Tried:
    tried, why = _try(options, held, offered)
    if why is None:
        return tried
    if len(offered) > 1:
        # The texts change with the first one that holds, and places with them: it is looked at again then.
        for patch in offered:
            tried, why = _try(options, held, [patch])
            if why is None:
                return tried
            refused[_offer(held.texts, patch)] = why
        return held
    refused[_offer(held.texts, offered[0])] = why
    return held


def _try(options: argparse.Namespace, held: _Tried, patches: list[Patch]) -> tuple[_Tried, str | None]:
    texts, lines, made = dict(held.texts), dict[str, list[int]](), list[_Offer]()
    for file in {patch.site.file for patch in patches}:
        texts[file], these, changed = apply(texts[file], [patch for patch in patches if patch.site.file == file])
        made += [_offer(held.texts, patch) for patch in these]
        lines[file] = sorted(changed)
    found = _trial(options, texts, lines)
    if found is None:
        return held, "the script could not be run"
    return _Tried(texts, [*held.made, *made], found), refusal(held.found, found)


def _trial(options: argparse.Namespace, texts: dict[str, str], lines: dict[str, list[int]]) -> Found | None:
    """What a fresh process finds, with random generators and hashes as in the others."""
    with tempfile.TemporaryDirectory() as folder:
        request, report = Path(folder, "request"), Path(folder, "report")
        request.write_text(json.dumps({"texts": texts, "lines": lines}), encoding="utf-8")
        command = [sys.executable, "-m", "stator.commands.one_trial", str(request), str(report), *options.script]
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "0"}, stdin=subprocess.DEVNULL)
        if not report.exists():
            return None
        found: Found = json.loads(report.read_text(encoding="utf-8"))
        return found


def _sites(found: Found) -> list[Site]:
    told = (*found["breaks"], *found["recompiles"])
    return list(dict.fromkeys(Site(code, *parted(where), why) for code, where, why in told))


def _offer(texts: dict[str, str], patch: Patch) -> _Offer:
    file, number = patch.site.file, patch.site.line
    return _Offer(patch.title, file, texts[file].splitlines()[number - 1].strip())


def _write(before: dict[str, str], after: dict[str, str]) -> None:
    for file, text in after.items():
        if before[file] != text:
            with open(file, "w", encoding="utf-8", newline="") as opened:
                opened.write(text)


def _tell(before: dict[str, str], held: _Tried, refused: dict[_Offer, str]) -> None:
    """What became of each patch that was offered, and the lines that have changed."""
    if not held.made and not refused:
        print("\nPatches: none is offered; nothing here is mended by a mechanical change")
        return
    print(f"\nPatches: {len(held.made) + len(refused)} offered, {len(held.made)} made")
    for offer in held.made:
        _tell_of("made, and it holds", offer)
    for offer, why in refused.items():
        _tell_of("not made", offer)
        print(textwrap.fill(why, _WIDTH, initial_indent="      ", subsequent_indent="      "))
    for file, text in before.items():
        if held.texts[file] != text:
            print(f"\n{difference(file, text, held.texts[file])}", end="")


def _tell_of(what: str, offer: _Offer) -> None:
    print(f"  {what}: {offer.title}")
    print(shortened(f"    {os.path.basename(offer.file)}: {offer.line}", _WIDTH))


def _tell_of_the_change(original: Found, held: _Tried) -> None:
    """What there was to compile and to run before and after, and what is left."""
    print("\nThe script ends, prints and computes as before, with:" if held.made else "\nNothing is changed:")
    for what, count in (("breaks", len), ("recompiles", len), ("graphs", int)):
        before, after = count(original[what]), count(held.found[what])
        counts = f"{before} before, {after} after" if held.made else f"{after}"
        left = _named(held.found[what]) if what == "breaks" and after else ""
        print(f"  {'graph breaks' if what == 'breaks' else what}: {counts}{left}")


def _named(breaks: list[list[str]]) -> str:
    """Which breaks those are, each kind and place once."""
    kinds = list(dict.fromkeys(f"{code} at {os.path.basename(where)}" for code, where, _ in breaks))
    return f" ({', '.join(kinds[:_MOST_LEFT])}{', …' if len(kinds) > _MOST_LEFT else ''})"
