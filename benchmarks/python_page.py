"""Writes docs/guide/python.md: what of CPython's tests still breaks, by reason, from a run of the ruler `conformance`.

    make conformance
    make conformance CONFORMANCE_ARGS="--modes breaks --out build/results/breaks.jsonl"
    python benchmarks/python_page.py build/results/conformance.jsonl build/results/breaks.jsonl > docs/guide/python.md

Only tests that pass plainly are counted. The first file is of a run in the mode `fullgraph`; the others, one for each
Python, are of the mode `breaks`, in which each test must come out as it does plainly. With `--reference FILE` the page
says beside Stator's how many tests torch's own front end traces whole, by a run of the same ruler with its adapter.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

LISTS = {"upstream": "first list", "later": "second list"}


class Reason(NamedTuple):
    """Breaks that have one cause: how their texts are told, what to call them, and why they are there."""

    pattern: str
    title: str
    why: str


REASONS = (
    Reason(
        r"_testcapi|_testinternalcapi|Meth(Class|Instance|Static)\.|xxsubtype|spam(list|dict)",
        "functions of CPython's test extensions",
        "nothing is known of what a C function without a model does; there is no model of what exists for tests only",
    ),
    Reason(
        r"^the finaliser of",
        "classes with `__del__`",
        "a finaliser runs in the midst of whatever lets go of the object: only generators are followed that closely",
    ),
    Reason(
        r"weak reference|weak proxy|gc\.|getrefcount|shows when",
        "lifetimes",
        "where a trace cannot tell whether an object lives (cycles, callbacks, addresses used again), it breaks",
    ),
    Reason(
        r"^the trace reached",
        "long loops",
        "a loop is unrolled, up to `fullgraph_step_limit` instructions; a trace of more takes longer than it saves",
    ),
    Reason(
        r"lies in memory|getsizeof",
        "sizes in memory",
        "an object made again by generated code may lie differently",
    ),
    Reason(
        r"at depth \d+|recursion",
        "deep recursion",
        "calls nest up to `inline_depth_limit` in a trace; what the real limit does is for the interpreter to say",
    ),
    Reason(
        r"function (io|posix|time|_locale|_thread|_posixsubprocess|select|_signal|signal|_socket|os)\.|TextIOWrapper"
        r"|FileIO|Buffered|_io\.|lock\.|RLock|^breakpoint|function input",
        "files, processes, threads, clocks",
        "what they do shows outside of the program, or changes between calls: it is done by ordinary Python",
    ),
    Reason(
        r"sys\.(excepthook|settrace|setprofile|set|get|unraisable|_)|displayhook|write_unraisable|faulthandler|_imp\.",
        "the interpreter's own state",
        "hooks, limits and frames of the interpreter are no part of a trace",
    ),
    Reason(
        r"order",
        "order of sets",
        "an order that depends on addresses is another in each process; where hashes are known, the table is kept",
    ),
    Reason(
        r"^creation of class|metaclass|^import of|compile|exec |eval ",
        "classes, modules and code made while tracing",
        "made by hooks (`mro`, C metaclasses), from text with warnings, or after something the module's body could see",
    ),
    Reason(
        r"made outside|OutsideGenerator|outside the compiled",
        "iterators made outside",
        "an iterator that existed before has others who advance it; where it stands is not seen",
    ),
    Reason(
        r"^Stator failed",
        "defects of Stator",
        "an error of Stator's own code: to be mended",
    ),
    Reason(
        r"function (_pickle|pickle|array|ctypes|_ctypes|CFuncPtr|_struct|decimal|_decimal|unicodedata|re\.)",
        "C modules without a model",
        "array, ctypes, pickle in C: without a model a C function is not run",
    ),
    Reason(
        r"^attribute|^setting|^deleting|^method",
        "attributes without a model",
        "C-level attributes that nobody has modelled yet, most of frames, tracebacks and made classes",
    ),
    Reason(r"", "other slots and C functions", "not modelled yet: each stands in docs/guide/slots.md under *breaks*"),
)


#: tests that come out differently, or too late, when they are traced with breaks, and why
EXCEPTED = {
    "ClassPropertiesAndMethods.test_slots": "counts the objects that the process has",
    "SysModuleTest.test_refcount": "counts the references to None that the process has",
    "SysModuleTest.test_getallocatedblocks": "counts the blocks of memory that the process has",
    "DictTest.test_oob_indexing_dictiter_iternextitem": (
        "has a finaliser change a dict at the moment when a count of references comes to zero"
    ),
    "DictTest.test_splittable_popitem": "measures how a dict lies in memory, whose keys are shared or not",
    "SysModuleTest.test_getframemodulename": "asks which module calls the test: it is the ruler's, not unittest's",
}


def rows(path: str, mode: str) -> Iterator[dict[str, Any]]:
    """The outcomes of one run in the mode."""
    with open(path, encoding="utf-8") as file:
        version = json.loads(next(file))["python"]
        for line in file:
            row = json.loads(line)
            if row.get("mode") == mode:
                yield {**row, "python": version}


def reason_of(text: str) -> Reason:
    """The first reason whose pattern is found in what the tracer said."""
    return next(reason for reason in REASONS if re.search(reason.pattern, text))


def _share(found: collections.Counter[str]) -> str:
    total = sum(found.values())
    text = f"{found['pass']} of {total} traced whole ({found['pass'] / total:.1%}), {found['graph_break']} break"
    others = [f"{count} {result}" for result, count in sorted(found.items()) if result not in ("pass", "graph_break")]
    return ", ".join([text, *others])


def reference_lines(path: str) -> list[str]:
    """What torch's own front end traces whole."""
    with open(path, encoding="utf-8") as file:
        name = json.loads(next(file))["adapter"].split("+")[0]
    totals: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for row in rows(path, "fullgraph"):
        totals[row["list"]][row["result"]] += 1
    shares = [
        f"{found['pass']} of {found.total()} of the {label} ({found['pass'] / found.total():.1%})"
        for key, label in LISTS.items()
        if (found := totals.get(key))
    ]
    return [f"For comparison, what the front end of {name} traces whole of them: {', '.join(shares)}.", ""]


def page(outcomes: Iterable[dict[str, Any]], reference: list[str]) -> str:
    """The page as Markdown."""
    totals: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in LISTS}
    modules: dict[str, set[str]] = {name: set() for name in LISTS}
    counts: dict[Reason, collections.Counter[str]] = {reason: collections.Counter() for reason in REASONS}
    said: dict[Reason, collections.Counter[str]] = {reason: collections.Counter() for reason in REASONS}
    for row in outcomes:
        totals[row["list"]][row["result"]] += 1
        modules[row["list"]].add(row["module"])
        if row["result"] == "graph_break":
            text = row.get("reason") or ""
            reason = reason_of(text)
            counts[reason][row["list"]] += 1
            said[reason][re.sub(r"'[A-Za-z_]\w*'|\b\d{3,}\b", "…", text)] += 1
    lines = [
        "# What of Python still breaks",
        "",
        "CPython 3.11's own tests, each test method compiled with `fullgraph=True` (`make conformance`); written by",
        "`benchmarks/python_page.py`. A break is no error: without `fullgraph` the frame goes on as ordinary Python.",
        "Each test counts as it came out when it was last run.",
        "",
        *(
            f"- {label}, {len(modules[name])} modules: {_share(totals[name])}"
            for name, label in LISTS.items()
            if totals[name]
        ),
        "",
        *reference,
        f"| reason | {' | '.join(LISTS.values())} | why | for example |",
        "|---|---|---|---|---|",
    ]
    for reason in sorted(REASONS, key=lambda reason: -sum(counts[reason].values())):
        if counts[reason]:
            example = said[reason].most_common(1)[0][0].replace("|", "\\|")
            numbers = " | ".join(str(counts[reason][name]) for name in LISTS)
            lines.append(f"| {reason.title} | {numbers} | {reason.why} | {example} |")
    return "\n".join(lines) + "\n"


def differences(outcomes: Iterable[dict[str, Any]]) -> str:
    """What comes out differently with breaks allowed, as Markdown."""
    totals: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    modules: dict[str, set[str]] = collections.defaultdict(set)
    other: dict[str, set[str]] = collections.defaultdict(set)
    for row in outcomes:
        modules[row["python"]].add(row["module"])
        totals[row["python"]]["pass" if row["result"] == "pass" else "other"] += 1
        if row["result"] != "pass":
            other[f"{row['module']}: {row['test']}"].add(row["python"])
    lines = [
        "",
        "## With breaks allowed",
        "",
        "The same tests without `fullgraph`, on each Python with its own: each must come out as it does plainly.",
        "",
        *(
            f"- {version}, {len(modules[version])} modules: {found['pass']} of {found.total()} come out the same"
            for version, found in sorted(totals.items())
        ),
        "",
        "| otherwise | on | why |",
        "|---|---|---|",
    ]
    for test, versions in sorted(other.items()):
        why = EXCEPTED.get(test.rsplit(" ")[-1], "a defect of Stator: to be mended")
        lines.append(f"| {test} | {', '.join(sorted(versions))} | {why} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("fullgraph", help="the ruler's results in the mode fullgraph")
    parser.add_argument("breaks", nargs="*", help="its results in the mode breaks, a file for each Python")
    parser.add_argument("--reference", help="its results for torch's own front end, in the mode fullgraph")
    options = parser.parse_args()
    reference = reference_lines(options.reference) if options.reference else []
    print(page(rows(options.fullgraph, "fullgraph"), reference), end="")
    if options.breaks:
        print(differences(row for path in options.breaks for row in rows(path, "breaks")), end="")


if __name__ == "__main__":
    main()
