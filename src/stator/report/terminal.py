"""An explanation as lines of text, which `rich` colours on a terminal."""

from __future__ import annotations

import itertools
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from stator.guards.base import shortened
from stator.report.explanation import BreakSite, Explanation, FrameRecord
from stator.report.guard_records import GuardRecord
from stator.report.source_lines import line_at
from stator.report.stats import RecompileRecord
from stator.report.words import better_left, compiled_by_itself, counted, merged

__all__ = ["Line", "lines", "show", "text"]

_WIDTH = 80
#: how many guards are shown, the dearest, and of each how many characters
_MOST_GUARDS = 5
_LONGEST_GUARD = 200
#: how many frames are shown, if not all are asked for
_MOST_FRAMES = 12
#: how many lines are shown for which code was compiled again, if not all are asked for
_MOST_PLACES = 8
#: how many reasons are told of breaks at one line, and of changes that matter at one
_MOST_TOLD = 4


class Line(NamedTuple):
    """A line, and the style that it has in `rich`."""

    text: str
    style: str = ""


def text(explanation: Explanation, *, everything: bool = False) -> str:
    """The plain form."""
    return "\n".join(line.text for line in lines(explanation, everything=everything))


def show(explanation: Explanation, *, everything: bool = False) -> None:
    """Print it, coloured where that is seen and `rich` is installed."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.text import Text
        except ImportError:
            pass
        else:
            console = Console(highlight=False)
            for line in lines(explanation, everything=everything):
                console.print(Text(line.text, line.style))
            return
    print(text(explanation, everything=everything))


def lines(explanation: Explanation, *, everything: bool = False) -> Iterator[Line]:
    """All that is shown; of many frames only some, if not everything is asked for."""
    yield Line(explanation.headline, "bold")
    yield Line(f"  {explanation.compile_times}", "dim")
    if not explanation.frames:
        yield Line("  Nothing was compiled: nothing that was called had been given to a compile().")
    yield from _breaks(explanation)
    if explanation.frames:
        yield from _headed("Frames")
        yield from _frames(explanation.frames, len(explanation.frames) if everything else _MOST_FRAMES)
    if explanation.recompiles:
        yield from _headed("Compiled again")
        yield from _recompiles(explanation.recompiles, len(explanation.recompiles) if everything else _MOST_PLACES)
    if explanation.used_once:
        yield from _headed("Compiled for one call each")
        for frames in explanation.used_once:
            yield from _for_one_call(frames)
    if explanation.patches:
        yield from _headed("Patches, not tried yet: stator explain SCRIPT --fix makes those that hold")
        for offer in explanation.patches:
            yield Line(f"  {offer.code}  {_short(offer.where)}: {offer.title}")
            for line in offer.diff.splitlines()[2:]:
                yield Line(f"      {line}".rstrip(), {"+": "green", "-": "red"}.get(line[:1], "dim"))
    if explanation.out_guards:
        yield from _guards(explanation.out_guards)


def _headed(title: str) -> Iterator[Line]:
    yield Line("")
    yield Line(title, "bold")


def _breaks(explanation: Explanation) -> Iterator[Line]:
    """First those of what was compiled as it should be, and behind them what others may have led to."""
    if explanation.breaks:
        yield from _headed("Graph breaks")
    for function, (count, places) in explanation.much_broken.items():
        yield from _wrapped(better_left(function, count, places).replace("`", ""))
    for sites in _by_line(explanation.breaks_within(None)):
        yield from _break(sites)
    for caller in explanation.left_callers:
        yield from _headed(f"Graph breaks in what {caller.function} calls")
        yield from _wrapped(compiled_by_itself(caller.function, _short(caller.place)).replace("`", ""))
        for sites in _by_line(explanation.breaks_within(caller)):
            yield from _break_head(sites)


def _by_line(sites: Iterable[BreakSite]) -> Iterable[list[BreakSite]]:
    """Those of one kind at one line together."""
    places: dict[tuple[str, str], list[BreakSite]] = {}
    for site in sites:
        places.setdefault((site.code, site.where), []).append(site)
    return places.values()


def _break(sites: Sequence[BreakSite]) -> Iterator[Line]:
    """The breaks of one kind at one line, in whichever words their reasons are."""
    site = sites[0]
    yield from _break_head(sites)
    places = [line.place for line in site.user_stack]
    own = places.index(site.where) if site.where in places else -1
    for number, line in reversed(list(enumerate(site.user_stack))):
        if number != own:
            yield Line(f"      {'called' if number < own else 'met'} at {_short(line.place)}: {line.text}", "dim")
    for hint in merged(each.hint for each in sites):
        yield from _wrapped(hint, "what helps: ")
    yield Line(f"      more: stator why {site.code}", "dim")


def _break_head(sites: Sequence[BreakSite]) -> Iterator[Line]:
    """What broke, and why."""
    site = sites[0]
    yield Line(f"  {site.code}  {_short(site.where)}{_times(len(sites))}", "red")
    if site.text:
        yield Line(f"      {site.text}", "cyan")
    yield from _told_of([each.reason for each in sites], "reason")


def _told_of(sentences: Sequence[str], noun: str) -> Iterator[Line]:
    """Each sentence once, with how often it holds if there are several; of many the first."""
    often = Counter(sentences)
    for sentence, count in itertools.islice(often.items(), _MOST_TOLD):
        yield from _wrapped(f"{sentence}{_times(count) if len(often) > 1 else ''}")
    if len(often) > _MOST_TOLD:
        yield Line(f"      … and {counted(len(often) - _MOST_TOLD, f'other {noun}')}")


def _frames(frames: Sequence[FrameRecord], most: int) -> Iterator[Line]:
    """So many frames: of more those with breaks first, then those that took longest."""
    ranked = sorted(range(len(frames)), key=lambda at: (frames[at].brk is None, -frames[at].seconds))
    for at in sorted(ranked[:most]):
        yield from _frame(at + 1, frames[at])
    left = [frames[at] for at in ranked[most:]]
    if left:
        broken = sum(frame.brk is not None for frame in left)
        what = f"{broken} of them with breaks" if broken else "captured whole"
        yield _more(f"{len(left)} more, {what}")


def _for_one_call(frames: Sequence[FrameRecord]) -> Iterator[Line]:
    """A function that was compiled for each of its calls."""
    seconds = sum(frame.seconds for frame in frames)
    yield Line(f"  {_named(frames[0])}: compiled {len(frames)} times, each used once, {seconds:.3f} s", "yellow")
    changes = [frame.recompiled for frame in frames if frame.recompiled is not None]
    varied = list(dict.fromkeys(name for change in changes for name in _QUOTED.findall(change.reason)))
    if varied:
        more = ", …" if len(varied) > _MOST_TOLD else ""
        yield from _wrapped(f"what varies: {', '.join(varied[:_MOST_TOLD])}{more}")
    yield from _wrapped(_KEEP_APART if changes else _MAKE_ONCE, "what helps: ")


_QUOTED = re.compile(r"`[^`]+`")
_KEEP_APART = "put what varies in each call in a function with stator.disable, or make it a tensor"
_MAKE_ONCE = "compile one function, outside of the loop, and give it what differs as an argument"


def _named(frame: FrameRecord) -> str:
    return f"{frame.function} ({f'from line {frame.resumed} on' if frame.resumed else _short(frame.where)})"


def _frame(number: int, frame: FrameRecord) -> Iterator[Line]:
    graph = "no graph" if frame.graph is None else f"a graph of {counted(len(frame.graph.ops), 'operation')}"
    seconds = f"{frame.trace_seconds:.3f} s + {frame.backend_seconds:.3f} s"
    end = f", then {frame.brk.code} at {_short(frame.brk.where)}" if frame.brk else ""
    yield Line(f"  {number:2}  {_named(frame)}: {graph}, {counted(len(frame.guards), 'guard')}, {seconds}{end}")


def _recompiles(records: Sequence[RecompileRecord], most: int) -> Iterator[Line]:
    """What was compiled again: of each function the changes, by the line that depends on them; most often first."""
    groups: dict[tuple[str, str], list[RecompileRecord]] = {}
    for record in records:
        groups.setdefault((record.where, record.line), []).append(record)
    ranked = sorted(groups.items(), key=lambda item: -len(item[1]))
    for (_, line), group in ranked[:most]:
        yield Line(f"  {group[0].function} ({_short(group[0].definition)}){_times(len(group))}", "yellow")
        if line:
            yield Line(f"      needed at {_short(line)}: {line_at(line)}", "cyan")
        yield from _told_of([record.change for record in group], "change")
        for hint in merged(record.hint for record in group):
            yield from _wrapped(hint, "what helps: ")
    if len(ranked) > most:
        again = sum(len(group) for _, group in ranked[most:])
        yield _more(f"{counted(len(ranked) - most, 'other line')}, {counted(again, 'recompile')}")


def _more(what: str) -> Line:
    return Line(f"      … and {what}: stator explain --all, or print(everything=True)", "dim")


def _guards(guards: Sequence[GuardRecord]) -> Iterator[Line]:
    """What all guards cost together, and the dearest: what several graphs check is told once."""
    total = sum(guard.cost_ns for guard in guards)
    yield from _headed(f"Guards: {len(guards)}, {total / 1000:.1f} µs without shortcuts; the dearest are")
    often = Counter((guard.text, guard.where) for guard in guards)
    dearest: dict[tuple[str, str], int] = {}
    for guard in sorted(guards, key=lambda guard: -guard.cost_ns):
        dearest.setdefault((guard.text, guard.where), guard.cost_ns)
    for (text, where), cost in itertools.islice(dearest.items(), _MOST_GUARDS):
        end = f"{_times(often[text, where], 'graphs')}{f'  # {_short(where)}' if where else ''}".strip()
        told = textwrap.wrap(shortened(text, _LONGEST_GUARD), _WIDTH - 12, break_on_hyphens=False)
        fits = len(told[-1]) + len(end) + 2 <= _WIDTH - 12
        told = [*told[:-1], f"{told[-1]}  {end}".rstrip()] if fits else [*told, end]
        yield Line(f"  {cost:5} ns  {told[0]}")
        yield from (Line(f"{'':12}{line}") for line in told[1:])


def _times(count: int, noun: str = "times") -> str:
    return f"  ({count} {noun})" if count > 1 else ""


def _wrapped(sentence: str, before: str = "") -> Iterator[Line]:
    if sentence:
        for line in textwrap.wrap(f"{before}{sentence}", _WIDTH - 6, break_long_words=False, break_on_hyphens=False):
            yield Line(f"      {line}", "green" if before else "")


def _short(where: str) -> str:
    """A place without the folders."""
    return where.rpartition("/")[2]
