"""What there is to say of each line of a program, by place ("file.py:12")."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stator.report.explanation import Explanation

__all__ = ["LineMarks", "marks_of"]


@dataclasses.dataclass
class LineMarks:
    """The lines of a program.

    Attributes:
        traced: those that were executed symbolically.
        graphs: those with operations of graphs, with the numbers of these frames.
        broken: those that broke a graph, with the code.
        guards: those that needed guards, with their texts.
    """

    traced: set[str] = dataclasses.field(default_factory=set)
    graphs: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    broken: dict[str, str] = dataclasses.field(default_factory=dict)
    guards: dict[str, list[str]] = dataclasses.field(default_factory=dict)


def marks_of(explanation: Explanation) -> LineMarks:
    """What an explanation says of the program's lines."""
    marks = LineMarks()
    for number, frame in enumerate(explanation.frames, 1):
        marks.traced |= {f"{file}:{line}" for file, lines in frame.lines.items() for line in lines}
        for place in dict.fromkeys(op.where for op in frame.graph.ops) if frame.graph else ():
            marks.graphs.setdefault(place, []).append(number)
        for guard in frame.guards:
            texts = marks.guards.setdefault(guard.where, [])
            if guard.text not in texts:
                texts.append(guard.text)
    marks.broken = {site.where: site.code for site in explanation.breaks}
    return marks
