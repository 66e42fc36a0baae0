"""What a program breaks, compiles and specialises on, counted so that two runs of it can be compared.

A break is told from others by its code, the file, the function and the text of the line: lines that have only moved,
and values that differ from run to run, are no difference.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from traceback import FrameSummary
from types import CodeType
from typing import Self

from stator.errors.exceptions import ConfigError
from stator.errors.message import parted
from stator.guards.base import short_name
from stator.guards.guard import Equals
from stator.interp.policy import is_library_file
from stator.report.events import Broke, Compiled, Listener
from stator.report.messages import definition
from stator.report.source_lines import line_at
from stator.report.stats import RecompileRecord
from stator.report.words import counted

__all__ = ["Census", "CensusTaker", "Difference"]

_VERSION = 1
#: what counts against a program if there is more of it
_JUDGED = ("breaks", "recompiles")
_KINDS = (*_JUDGED, "graphs", "specialisations")
#: how many items of a kind are told, if not all are asked for; of values that were taken as constant none
_MOST_TOLD = 10
_NEW_VALUES = "new specialisations"
_SITE = f"{os.sep}site-packages{os.sep}"


@dataclasses.dataclass(frozen=True)
class Item:
    """Something at a place of the program.

    Attributes:
        what: the code of a break, the name of a value that was taken as constant; "" for the others.
        file: from the folder that the census was taken in.
        function: its qualified name.
        source: the text of the line, which says where in the function it is.
        line: its number, and `reason` what was told: for the reader alone.
        count: how often; of graphs the operations.
    """

    what: str
    file: str
    function: str
    source: str
    line: int = 0
    reason: str = ""
    count: int = 1

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from others."""
        return self.what, self.file, self.function, self.source

    def __str__(self) -> str:
        told = ": ".join(filter(None, (self.what, self.reason)))
        where = f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")
        return "\n      ".join(filter(None, (f"{where}{f' {told}' if told else ''}", self.source)))


class Difference:
    """How a census differs from an earlier one.

    Attributes:
        worse: what there is more of than before, or no more, by its title: the check fails.
        changed: what else differs.
        totals: of the kinds that are judged, how many there were and are.
    """

    def __init__(
        self, worse: Mapping[str, list[Item]], changed: Mapping[str, list[Item]], totals: Mapping[str, tuple[int, int]]
    ) -> None:
        self.worse = {title: items for title, items in worse.items() if items}
        self.changed = {title: items for title, items in changed.items() if items}
        self.totals = dict(totals)

    def __str__(self) -> str:
        return self.told(everything=True)

    def told(self, *, everything: bool) -> str:
        """For the reader: all items, or the most frequent ones of each kind, and the number of the others."""
        if not self.worse and not self.changed:
            return "no difference"
        totals = ", ".join(f"{kind}: {before} -> {now}" for kind, (before, now) in self.totals.items())
        return "\n".join([totals, *_listed({**self.worse, **self.changed}, everything)])

    def to_json(self) -> dict[str, object]:
        """As plain data."""
        return {"totals": self.totals} | {
            name: {title: [dataclasses.asdict(item) for item in items] for title, items in part.items()}
            for name, part in (("worse", self.worse), ("changed", self.changed))
        }


class Census:
    """The items of each kind: breaks, recompiles, graphs, specialisations."""

    def __init__(self, items: Mapping[str, Iterable[Item]]) -> None:
        self.items = {kind: sorted(items.get(kind, ()), key=lambda item: item.key) for kind in _KINDS}

    def told(self, *, everything: bool) -> str:
        """For the reader: the totals, then all items, or the most frequent ones of what is judged."""
        graphs, values = self.items["graphs"], self.items["specialisations"]
        operations = counted(sum(item.count for item in graphs), "operation")
        totals = [counted(self._total(kind), kind.removesuffix("s")) for kind in _JUDGED]
        totals.append(f"{operations} in the graphs of {counted(len(graphs), 'function')}")
        totals.append(counted(len(values), "specialisation"))
        groups = {kind: self.items[kind] for kind in (_KINDS if everything else _JUDGED) if self.items[kind]}
        return "\n".join([", ".join(totals), *_listed(groups, everything)])

    def to_json(self) -> str:
        """As it is saved; in an order that does not depend on the run."""
        listed = {kind: [dataclasses.asdict(item) for item in items] for kind, items in self.items.items()}
        return json.dumps({"version": _VERSION, **listed}, indent=2) + "\n"

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a saved one; what is no census raises ConfigError."""
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            if read["version"] != _VERSION:
                raise ValueError(f"version {read['version']} is not {_VERSION}")
            return cls({kind: [Item(**item) for item in read[kind]] for kind in _KINDS})
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise ConfigError(f"{path} is no census: {type(e).__name__}: {e}") from None

    def against(self, earlier: Census) -> Difference:
        """How this one differs from an earlier one.

        What is new at one place is no worse where there is less in all: code that was mended has other places.
        """
        totals = {kind: (earlier._total(kind), self._total(kind)) for kind in _JUDGED}
        more = {kind: list(_more(self.items[kind], earlier.items[kind])) for kind in _JUDGED}
        less = [kind for kind, (before, now) in totals.items() if now < before]
        worse = {f"more {kind} than before": more[kind] for kind in _JUDGED if kind not in less}
        if not self.items["graphs"]:
            worse["no graph any more"] = earlier.items["graphs"]
        changed = {f"{kind} at other places": more[kind] for kind in less}
        changed |= {f"fewer {kind}": list(_more(earlier.items[kind], self.items[kind])) for kind in _JUDGED}
        now, before = self.items["specialisations"], earlier.items["specialisations"]
        changed[_NEW_VALUES] = list(_more(now, before))
        return Difference(worse, changed, totals)

    def _total(self, kind: str) -> int:
        return sum(item.count for item in self.items[kind])


def _more(items: Iterable[Item], earlier: Iterable[Item]) -> Iterator[Item]:
    before = {item.key: item.count for item in earlier}
    for item in items:
        count = item.count - before.get(item.key, 0)
        if count > 0:
            yield dataclasses.replace(item, count=count)


def _listed(groups: Mapping[str, list[Item]], everything: bool) -> Iterator[str]:
    for title, items in groups.items():
        most = None if everything else 0 if title == _NEW_VALUES else _MOST_TOLD
        told = sorted(items, key=lambda item: -item.count)[:most]
        yield f"{title}:"
        for item in told:
            yield f"  {item.count} x {item}"
        if len(items) > len(told):
            yield f"  {len(items) - len(told)}{' more' if told else ''}: --all lists them"


class CensusTaker(Listener):
    """Counts what happens.

    Args:
        folder: what files are named from.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._items: dict[str, dict[tuple[str, str, str, str], Item]] = {kind: {} for kind in _KINDS}

    def census(self) -> Census:
        """What has been counted."""
        return Census({kind: items.values() for kind, items in self._items.items()})

    def broke(self, event: Broke) -> None:
        at = event.stack[-1]
        self._add("breaks", self._at(at, event.brk.code, event.brk.reason))

    def recompiled(self, record: RecompileRecord) -> None:
        file, line = parted(record.line or record.definition)
        self._add("recompiles", self._at(FrameSummary(file, line, record.function), "", record.reason))

    def compiled(self, event: Compiled) -> None:
        owner = None if event.entry is None else event.entry.owner
        if event.entry is None or owner is None:
            return
        if owner.graph is not None:
            self._add("graphs", dataclasses.replace(self._of(event.code), count=owner.graph.ops))
        names = event.names
        for guard in event.entry.program.guards:  # type: ignore[attr-defined]
            file, line = parted(guard.place())
            if guard.op == Equals.op and file and not is_library_file(file):
                at = FrameSummary(file, line, short_name(event.code.co_qualname))
                self._add("specialisations", self._at(at, names.of(guard.source), guard.told(names)))

    def _of(self, code: CodeType) -> Item:
        return self._at(definition(code))

    def _at(self, at: FrameSummary, what: str = "", reason: str = "") -> Item:
        line = at.lineno or 0
        return Item(what, self._named(at.filename), at.name, line_at(f"{at.filename}:{line}"), line, reason)

    def _named(self, file: str) -> str:
        """A file as another machine has it too."""
        _, site, rest = file.rpartition(_SITE)
        named = rest if site else os.path.relpath(file, self._folder) if os.path.isabs(file) else file
        return Path(named).as_posix()

    def _add(self, kind: str, item: Item) -> None:
        items = self._items[kind]
        known = items.get(item.key)
        items[item.key] = item if known is None else dataclasses.replace(known, count=known.count + item.count)
