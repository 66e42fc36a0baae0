"""An explanation as one page of HTML. Its static parts, in `static/`, are put into it: it asks for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from html import escape
from pathlib import Path

from stator.errors.message import parted
from stator.report.explanation import BreakSite, Explanation, FrameRecord, GraphRecord, StackLine
from stator.report.guard_records import GuardRecords
from stator.report.marks_of_lines import LineMarks, marks_of
from stator.report.stats import RecompileRecord
from stator.report.words import better_left, compiled_by_itself

__all__ = ["page"]

_STATIC = Path(__file__).parent / "static"
#: how many guards of a line are told where the pointer is; the table has all
_MOST_HINTED = 8
#: where a link is to stand in a sentence
_PLACE = "PLACE"
_TIMELINE, _STACK = ' class="timeline"', ' class="stack"'


def page(explanation: Explanation) -> str:
    """The page."""
    links = _Links(explanation)
    sections = [
        ("time", "Timeline", _timeline(explanation)),
        ("breaks", "Graph breaks", _breaks(explanation, links)),
        ("recompiles", "Recompiles", _recompiles(explanation, links)),
        ("patches", "Patches", _patches(explanation, links)),
        ("source", "Source", _sources(explanation, links)),
        ("frames", "Frames", _frames(explanation, links)),
    ]
    parts = {
        "title": escape(explanation.name),
        "header": _header(explanation),
        "nav": _list((f'<a href="#{name}">{title}</a>' for name, title, _ in sections)),
        "main": "\n".join(
            f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>\n{text}</section>'
            for name, title, text in sections
        ),
        **{kind: (_STATIC / f"page.{kind}").read_text(encoding="utf-8").strip() for kind in ("css", "js")},
    }
    before, *rest = (_STATIC / "page.html").read_text(encoding="utf-8").split("{{")
    pieces = (piece.partition("}}") for piece in rest)
    return before + "".join(f"{parts[name]}{text}" for name, _, text in pieces)


class _Links:
    """Links to the lines that the page shows."""

    def __init__(self, explanation: Explanation) -> None:
        self._shown = explanation.sources
        self._files = {file: number for number, file in enumerate(explanation.sources)}

    def anchor(self, file: str, line: int) -> str:
        return f"line-{self._files[file]}-{line}"

    def to(self, where: str) -> str:
        """A place, as a link if the page has it."""
        return self._to(where, f"<code>{escape(_short(where))}</code>")

    def cell(self, where: str) -> str:
        """The same in a table, where all is set as code is."""
        return self._to(where, escape(_short(where)))

    def _to(self, where: str, text: str) -> str:
        file, line = parted(where)
        if not file or line not in self._shown.get(file, ()):
            return f'<span title="{escape(where)}">{text}</span>' if where else ""
        return f'<a href="#{self.anchor(file, line)}">{text}</a>'


# -- the head ---------------------------------------------------------------------------------------------------------


def _header(explanation: Explanation) -> str:
    breaks = explanation.graph_break_count
    totals = [
        ("frames", len(explanation.frames), ""),
        ("graphs", explanation.graph_count, ""),
        ("operations", explanation.op_count, ""),
        ("graph breaks", breaks, ' class="bad"' if breaks else ""),
        ("recompiles", len(explanation.recompiles), ' class="bad"' if explanation.recompiles else ""),
        ("guards", len(explanation.out_guards), ""),
    ]
    cells = "".join(f"<div{bad}><dt>{name}</dt><dd>{number:,}</dd></div>" for name, number, bad in totals)
    return f'<h1>{escape(explanation.name)}</h1>\n<dl class="totals">{cells}</dl>'


# -- time -------------------------------------------------------------------------------------------------------------


def _timeline(explanation: Explanation) -> str:
    if not explanation.frames:
        return "<p>Nothing was compiled: nothing that was called had been given to a <code>compile()</code>.</p>"
    trace, backend, total = explanation.trace_seconds, explanation.backend_seconds, explanation.seconds
    rest = max(0.0, total - trace - backend)
    shares = [("trace", "tracing", trace), ("backend", "the backend", backend), ("run", "the program itself", rest)]
    key = _list((f'<i class="{cls}"></i>{name} {_seconds(time)}' for cls, name, time in shares), ' class="key"')
    longest = max(frame.trace_seconds + frame.backend_seconds for frame in explanation.frames) or 1.0
    frames = (_on_timeline(number, frame, longest) for number, frame in enumerate(explanation.frames, 1))
    bar = _bar([(cls, time / (total or 1.0)) for cls, _, time in shares])
    return f"{bar}{key}\n{_list(frames, _TIMELINE, tag='ol')}"


def _on_timeline(number: int, frame: FrameRecord, longest: float) -> str:
    chips = ' <span class="chip again">compiled again</span>' if frame.recompiled else ""
    then = "" if frame.graph is None else _count(len(frame.graph.ops), "operation")
    if frame.brk is not None:
        broken = f'<a href="#breaks" class="chip break">{frame.brk.code}</a>'
        then = f"{then + ', then ' if then else ''}{broken} at <code>{escape(_short(frame.brk.where))}</code>"
    bar = _bar([("trace", frame.trace_seconds / longest), ("backend", frame.backend_seconds / longest)])
    times = f"at {_seconds(frame.started)}, took {_seconds(frame.trace_seconds + frame.backend_seconds)}"
    return (
        f'<span class="what"><a href="#frame-{number}">{number}. {_name(frame)}</a>{chips}</span>{bar}'
        f'<span class="then">{times}: {then or "no operations"}</span>'
    )


def _bar(shares: list[tuple[str, float]]) -> str:
    parts = "".join(f'<i class="{name}" style="width:{100 * share:.2f}%"></i>' for name, share in shares)
    return f'<div class="bar" aria-hidden="true">{parts}</div>'


# -- breaks and recompiles --------------------------------------------------------------------------------------------


def _breaks(explanation: Explanation, links: _Links) -> str:
    if not explanation.breaks:
        return '<p class="none">None: each frame is one graph.</p>'
    head = "".join(
        f"<p>{_quoted(better_left(function, count, places))}.</p>"
        for function, (count, places) in explanation.much_broken.items()
    )
    return head + "\n".join(_breaks_within(caller, explanation, links) for caller in (None, *explanation.left_callers))


def _breaks_within(caller: StackLine | None, explanation: Explanation, links: _Links) -> str:
    """The breaks of what a function calls that runs as ordinary Python; with None all others."""
    head = ""
    if caller is not None:
        told = _quoted(compiled_by_itself(caller.function, _PLACE)).replace(_PLACE, links.to(caller.place))
        head = f"<h3>In what <code>{escape(caller.function)}</code> calls</h3><p>{told}.</p>"
    counts = Counter(explanation.breaks_within(caller))
    return head + "\n".join(_break(site, count, links) for site, count in counts.items())


def _break(site: BreakSite, count: int, links: _Links) -> str:
    stack = (
        f"{links.to(f'{line.file}:{line.line}')} in <code>{escape(line.function)}</code>: "
        f"<code>{escape(line.text)}</code>"
        for line in reversed(site.user_stack)
    )
    often = f' <span class="quiet">{count} times</span>' if count > 1 else ""
    return (
        f'<article class="card"><h3><span class="chip break">{site.code}</span> {escape(site.reason)}{often}</h3>'
        f"<p>at {links.to(site.where)}</p>{_list(stack, _STACK, tag='ol') if site.user_stack else ''}"
        f"<p><strong>What helps:</strong> {escape(site.hint)} "
        f'<span class="quiet">(<code>stator why {site.code}</code>)</span></p></article>'
    )


def _recompiles(explanation: Explanation, links: _Links) -> str:
    if not explanation.recompiles:
        return '<p class="none">None: nothing was compiled again.</p>'
    return "\n".join(_recompile(record, links) for record in explanation.recompiles)


def _recompile(record: RecompileRecord, links: _Links) -> str:
    rows = [("was", f"<del>{escape(record.was)}</del>"), ("is", f"<ins>{escape(record.now)}</ins>")]
    rows = rows if record.was else []
    if record.line:
        rows.append(("needed at", links.to(record.line)))
    if record.hint:
        rows.append(("what helps", escape(record.hint)))
    cells = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows)
    return (
        f'<article class="card again"><h3>{_quoted(record.change)}</h3>'
        f'<p class="quiet">{escape(record.where)}</p><dl class="change">{cells}</dl></article>'
    )


def _patches(explanation: Explanation, links: _Links) -> str:
    if not explanation.patches:
        return '<p class="none">None: nothing here is mended by a mechanical change.</p>'
    head = "<p>Not tried yet: <code>stator explain SCRIPT --fix</code> makes those that hold.</p>"
    return head + "\n".join(
        f'<article class="card"><h3><span class="chip">{offer.code}</span> {escape(offer.title)}</h3>'
        f"<p>at {links.to(offer.where)}</p>{_code(offer.diff, f'Patch at {_short(offer.where)}')}</article>"
        for offer in explanation.patches
    )


# -- source -----------------------------------------------------------------------------------------------------------


def _sources(explanation: Explanation, links: _Links) -> str:
    if not explanation.sources:
        return "<p>The program's source is not to be had.</p>"
    marks = marks_of(explanation)
    key = _list(
        (
            "<code>▐ 1</code> operations in the graph of frame 1",
            "<code>│</code> traced, without operations on tensors",
            "<code>✕ SB…</code> broke the graph",
            "<code>⚷3</code> needed 3 guards",
            "no mark: ordinary Python, or not executed",
        ),
        ' class="key"',
    )
    files = (_file(file, lines, marks, links) for file, lines in explanation.sources.items())
    return key + "\n".join(files)


def _file(file: str, lines: dict[int, str], marks: LineMarks, links: _Links) -> str:
    rows, last = [], 0
    for number, text in lines.items():
        if last and number > last + 1:
            rows.append('<li class="gap">⋯</li>')
        last = number
        rows.append(_line(f"{file}:{number}", text, marks, links.anchor(file, number)))
    listing = f'<ol class="source" role="list">{"".join(rows)}</ol>'
    return (
        f'<details class="file" open><summary>{escape(file)}</summary>{_scroll(f"Source of {file}", listing)}</details>'
    )


def _line(place: str, text: str, marks: LineMarks, anchor: str) -> str:
    mark, kind = "", ""
    if place in marks.broken:
        mark, kind = f"✕ {marks.broken[place]}", ' class="broken"'
    elif place in marks.graphs:
        frames = marks.graphs[place]
        mark, kind = f"▐ {','.join(map(str, frames[:3]))}{'…' if len(frames) > 3 else ''}", ' class="graph"'
    elif place in marks.traced:
        mark = "│"
    guards = marks.guards.get(place, [])
    link = ""
    if guards:
        told = escape("; ".join(guards[:_MOST_HINTED]) + ("; …" if len(guards) > _MOST_HINTED else ""))
        link = f'<a href="#guards-{marks.guarded_by[place]}" title="{told}">⚷{len(guards)}</a>'
    number = place.rpartition(":")[2]
    return (
        f'<li id="{anchor}"{kind}><span class="number">{number}</span><span class="marks">{mark}</span>'
        f'<span class="guards">{link}</span><code>{escape(text)}</code></li>'
    )


# -- frames -----------------------------------------------------------------------------------------------------------


def _frames(explanation: Explanation, links: _Links) -> str:
    buttons = (
        '<p><button type="button" data-open="yes">Unfold all</button> '
        '<button type="button" data-open="no">Fold all</button></p>'
    )
    frames = (_frame(number, frame, links) for number, frame in enumerate(explanation.frames, 1))
    return buttons + "\n".join(frames)


def _frame(number: int, frame: FrameRecord, links: _Links) -> str:
    facts = [f"defined at {links.to(frame.where)}", f"traced in {_seconds(frame.trace_seconds)}"]
    if frame.graph is not None:
        facts.append(f"{escape(frame.graph.backend)} took {_seconds(frame.backend_seconds)}")
    if frame.recompiled is not None:
        facts.append(f"compiled again: {_quoted(frame.recompiled.reason)}")
    if frame.brk is not None:
        facts.append(f"ended by {frame.brk.code} at {links.to(frame.brk.where)}: {escape(frame.brk.reason)}")
    ops = 0 if frame.graph is None else len(frame.graph.ops)
    parts = [_list(facts)]
    if frame.graph is not None:
        parts += _graph(number, frame.graph, links)
    if frame.guards:
        parts.append(_guards(number, frame.guards, links))
    if frame.generated:
        parts.append(_folded("Generated Python", _code(frame.generated, f"Generated Python of frame {number}")))
    return (
        f'<details class="frame" id="frame-{number}"><summary>{number}. {_name(frame)} '
        f'<span class="quiet">{_count(ops, "operation")}, {_count(len(frame.guards), "guard")}</span></summary>'
        f"{''.join(parts)}</details>"
    )


def _graph(number: int, graph: GraphRecord, links: _Links) -> list[str]:
    rows = [
        *(
            (op.name, f'<span class="quiet">input</span> {escape(op.target)}', escape(op.result), "")
            for op in graph.inputs
        ),
        *((op.name, escape(op.code or op.target), escape(op.result), links.cell(op.where)) for op in graph.ops),
    ]
    table = _table(f"Operations of frame {number}", ("name", "operation", "result", "line"), rows)
    code = _code(graph.code, f"Graph code of frame {number}")
    return [_folded(f"Graph: {_count(len(graph.ops), 'operation')}", table), _folded("Graph as Python", code)]


def _guards(number: int, guards: GuardRecords, links: _Links) -> str:
    """The dearest first."""
    ordered = sorted(guards, key=lambda guard: -guard.cost_ns)
    rows = [(f"{guard.cost_ns}", escape(guard.text), links.cell(guard.where)) for guard in ordered]
    table = _table(f"Guards of frame {number}", ("ns", "assumption", "line"), rows, ' class="measured"')
    total = sum(guard.cost_ns for guard in guards)
    return _folded(f"Guards: {len(guards)}, {total / 1000:.1f} µs without shortcuts", table, f' id="guards-{number}"')


# -- parts ------------------------------------------------------------------------------------------------------------


def _table(caption: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]], attributes: str = "") -> str:
    """A table, in which all is set as code is: an element less for each of its cells, which may be 100,000."""
    heads = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>\n" for row in rows)
    return _scroll(caption, f"<table{attributes}><thead><tr>{heads}</tr></thead><tbody>\n{body}</tbody></table>")


def _scroll(label: str, inside: str) -> str:
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">{inside}</div>'


def _code(text: str, label: str) -> str:
    return f'<pre tabindex="0" role="region" aria-label="{escape(label)}">{escape(text.strip())}</pre>'


def _folded(title: str, inside: str, attributes: str = "") -> str:
    return f"<details{attributes}><summary>{title}</summary>{inside}</details>\n"


def _list(items: Iterable[str], attributes: str = "", tag: str = "ul") -> str:
    inside = "".join(f"<li>{item}</li>" for item in items)
    return f"<{tag}{attributes}>{inside}</{tag}>"


def _name(frame: FrameRecord) -> str:
    goes_on = f", from line {frame.resumed} on" if frame.resumed else ""
    return f"<code>{escape(frame.function)}</code>{goes_on}"


def _quoted(sentence: str) -> str:
    """A sentence in which expressions stand in backticks."""
    parts = escape(sentence).split("`")
    if len(parts) % 2 == 0:
        return escape(sentence)
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def _short(where: str) -> str:
    return where.rpartition("/")[2]
