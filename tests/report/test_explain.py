# needs: torch
"""`stator.explain()`: what it tells, that the program runs once, and that nothing else is touched."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import threading

import pytest
import torch

import stator
from stator import errors
from stator.report import explanation as records
from stator.report import terminal
from stator.report.collector import explaining
from stator.report.explanation import BreakSite, Explanation, StackLine
from stator.report.page import page
from stator.report.stats import RecompileRecord
from stator.report.words import merged
from tests.report import explained

LONG = list(range(40))


def line(text):
    """The place in the program of the line with this text."""
    with open(explained.__file__) as file:
        number = next(number for number, found in enumerate(file, 1) if text in found)
    return f"{explained.__file__}:{number}"


@pytest.fixture(scope="module")
def told():
    history = []
    explanation = stator.explain(explained.scaled)(torch.ones(2, 3), history)
    assert history == [2]
    return explanation


def test_the_program_runs_once_with_its_side_effects(capsys):
    history = []
    explanation = stator.explain(explained.scaled)(torch.ones(2, 3), history)
    assert history == [2] and capsys.readouterr().out == "rows 2\n"
    assert explanation.result["calls"] == 1
    assert torch.equal(explanation.result["out"], torch.full((2, 3), 1 / 6))


def test_frames_come_in_order_with_their_lines(told):
    first, second = told.frames
    assert (first.function, first.resumed) == ("scaled", 0) and second.resumed
    assert first.where == line("def scaled")
    traced = {f"{file}:{number}" for file, lines in first.lines.items() for number in lines}
    assert {line("torch.relu(x)"), line("history.append"), line("# the break")} <= traced
    assert line("print(") not in traced
    assert line("print(") in {f"{file}:{number}" for file, lines in second.lines.items() for number in lines}
    assert first.generated.startswith("def scaled(") and 0 < first.trace_seconds < told.seconds


def test_frames_of_modules_are_told_by_what_the_program_defines():
    class Model(torch.nn.Module):
        def forward(self, x):
            x = torch.relu(x)
            stator.graph_break()
            return x + 1

    first, second = stator.explain(Model())(torch.ones(3)).frames
    assert [frame.function.rpartition(".<locals>.")[2] for frame in (first, second)] == ["Model.forward"] * 2
    assert first.file == second.file == __file__
    assert (first.resumed, second.resumed) == (0, first.line + 2)


def test_a_break_has_code_reason_hint_and_the_stack_of_the_program(told):
    (site,) = told.breaks
    assert told.frames[0].brk is site and told.frames[1].brk is None
    assert (site.code, site.where) == ("SB0201", line("# the break"))
    kind = errors.kind("SB0201")
    assert (site.title, site.hint) == (kind.title, kind.hint)
    assert [entry.function for entry in site.user_stack] == ["scaled", "block"]
    assert site.text == "if h.sum() > 0:  # the break"


def test_graphs_have_operations_with_shapes_and_lines(told):
    graph = told.graphs[0]
    relu, *_ = graph.ops
    assert (relu.target, relu.dtype, relu.shape, relu.where) == ("torch.relu", "float32", (2, 3), line("torch.relu(x)"))
    assert [op.target for op in graph.inputs] == ["x"]
    assert "relu = torch.relu(x)" in graph.code and "float32[2, 3]" in graph.code
    assert "explained.py:" in graph.code and "h = torch.relu(x) * k" in graph.code
    assert told.ops_per_graph[0] == ["torch.relu", "mul", "sum", "gt"]


def test_guards_have_the_names_of_the_program_their_line_and_a_cost(told):
    guard = next(guard for guard in told.frames[0].guards if guard.text.startswith("x is Tensor"))
    assert guard.where == line("torch.relu(x)") and guard.cost_ns > 0
    assert any("`" not in g.text and g.text == "k == 2" for g in told.frames[0].guards)


def test_a_recompile_has_both_values_its_line_and_a_hint():
    compiled = stator.compile(explained.scaled, backend="eager")
    with explaining("calls") as collector:
        compiled(torch.ones(2, 3), [])
        compiled(torch.ones(3, 3), [])
    explanation = collector.explanation()
    record = explanation.recompiles[0]
    assert (record.was, record.now, record.line) == ("(2, 3)", "(3, 3)", line("torch.relu(x)"))
    assert "mark_dynamic(x, 0)" in record.hint
    assert [frame.recompiled for frame in explanation.frames if frame.recompiled][0] == record


def test_the_names_of_what_torch_explains_are_understood(told):
    assert (told.graph_count, told.graph_break_count, told.op_count) == (2, 1, 7)
    assert [reason.user_stack[-1].line for reason in told.break_reasons] == [int(line("# the break").split(":")[1])]
    assert len(told.out_guards) == sum(len(frame.guards) for frame in told.frames)
    assert "s of tracing" in told.compile_times and "SB0201" in str(told)


def test_nothing_compiled_before_is_used_and_nothing_is_left():
    compiled = stator.compile(explained.scaled, backend="eager")
    compiled(torch.ones(2, 3), [])
    before = stator.stats()
    explanation = stator.explain(compiled)(torch.ones(2, 3), [])
    assert len(explanation.frames) == 2
    compiled(torch.ones(2, 3), [])
    assert stator.stats().diff(before).frames == 2, "those of the explanation"
    again = stator.explain(compiled)(torch.ones(2, 3), [])
    assert [frame.function for frame in again.frames] == [frame.function for frame in explanation.frames]


def test_settings_of_a_compiled_function_hold():
    calls = []

    def backend(gm, inputs):
        calls.append(gm)
        return gm.forward

    compiled = stator.compile(lambda x: x + 1, backend=backend)
    explanation = stator.explain(compiled)(torch.ones(2))
    assert len(calls) == 1 and explanation.graphs[0].backend == "backend"


def test_what_breaks_as_a_caller_was_compiled_too_often_is_told_behind_it():
    compiled = stator.compile(explained.weighted, backend="eager", recompile_limit=2)
    with explaining("weighted") as collector:
        for kind in "abc":
            compiled(kind, [torch.ones(2)])
    explanation = collector.explanation()
    limit, *others = explanation.breaks
    assert limit.code == "SB0501" and limit.within is None
    assert {site.code for site in others} == {"SB0106"}
    [caller] = explanation.left_callers
    assert caller.place == line("def weighted") and explanation.breaks_within(caller) == tuple(others)
    text = str(explanation)
    assert text.index("SB0501") < text.index("Graph breaks in what weighted calls") < text.index("SB0106")
    assert page(explanation).count("In what <code>weighted</code> calls") == 1


def test_a_function_that_breaks_at_many_lines_is_told_first():
    explanation = stator.explain(explained.tracked)(torch.tensor([[1.0, 0.5, 2.0], [4.0, 3.0, 2.0]]))
    breaks = [site for site in explanation.breaks if site.user_stack[-1].function == "assigned"]
    assert explanation.much_broken == {"assigned": (len(breaks), 4)}
    said = f"assigned has {len(breaks)} breaks, at 4 of its lines: under stator.disable it runs as"
    assert said in " ".join(str(explanation).split()) and "<code>assigned</code> has" in page(explanation)
    own = stator.explain(explained.assigned)(torch.ones(2, 3))
    assert len(own.breaks) > 4 and not own.much_broken, "who calls it is not to leave it out"


def test_modules_and_methods_are_explained():
    linear = torch.nn.Linear(3, 2)
    explanation = stator.explain(linear)(torch.ones(1, 3))
    assert torch.equal(explanation.result, linear(torch.ones(1, 3)))
    assert [op.target for op in explanation.graphs[0].inputs] == ["input", "self.weight", "self.bias"]
    assert stator.explain(linear.forward)(torch.ones(1, 3)).op_count == 1
    compiled = stator.compile(linear, backend="eager")
    assert stator.explain(compiled)(torch.ones(1, 3)).op_count == 1


def test_what_the_program_raises_comes_out():
    def fails(x):
        raise KeyError(x.shape[0])

    with pytest.raises(KeyError, match="2"):
        stator.explain(fails)(torch.ones(2))


def test_a_class_is_refused():
    with pytest.raises(TypeError, match="not the class Linear"):
        stator.explain(torch.nn.Linear)


def test_other_threads_do_not_get_into_it():
    def other():
        stator.compile(lambda x: x * 2, backend="eager")(torch.ones(2))

    def program(x):
        return x + 1

    started = []

    def backend(gm, inputs):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        started.append(thread)
        return gm.forward

    explanation = stator.explain(program, backend=backend)(torch.ones(2))
    assert started and [frame.function.rpartition(".")[2] for frame in explanation.frames] == ["program"]


def test_json_has_all_but_the_result(told):
    found = json.loads(told.to_json())
    assert set(found) == {f.name for f in dataclasses.fields(told)} - {"result"} | {
        *("graph_count", "graph_break_count", "op_count")
    }
    assert found["frames"][0]["graph"]["ops"][0]["target"] == "torch.relu"
    assert found["breaks"][0]["code"] == "SB0201"


def test_nothing_alive_is_referred_to(told):
    plain = (str, int, float, bool, type(None))

    def check(value):
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                if field.name != "result":
                    check(getattr(value, field.name))
        elif isinstance(value, (tuple, list)):
            for item in value:
                check(item)
        elif isinstance(value, dict):
            for key, item in value.items():
                check(key)
                check(item)
        else:
            assert type(value) in plain, type(value)

    check(told)
    assert isinstance(told, records.Explanation)


def test_the_plain_form_says_what_broke_and_what_to_do(told, capsys):
    told.print()
    text = capsys.readouterr().out
    for expected in ("scaled: 2 frames, 2 graphs", "SB0201  explained.py", "called at explained.py", "what helps:"):
        assert expected in text
    assert "\x1b" not in text


def test_a_terminal_gets_colours(told, monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    told.print()
    text = capsys.readouterr().out
    assert "\x1b[" in text and "SB0201" in text


def test_rich_is_not_loaded_with_stator():
    code = "import sys, stator\nprint([n for n in sys.modules if n == 'rich' or n.startswith('stator.report.c')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_line_shown_is_the_one_that_is_named():
    stack = StackLine("own.py", 1, "step", "bar.update()"), StackLine("bars.py", 9, "update", "lock.acquire()")
    site = BreakSite("SB0101", "title", "reason", "hint", "own.py:1", stack)
    shown = [line.text.strip() for line in terminal._break([site])]
    assert shown[1] == site.text == "bar.update()"
    assert "met at bars.py:9: lock.acquire()" in shown


def test_changes_at_one_line_are_told_together():
    def program(x, words):
        return x * len(words[0])

    compiled = stator.compile(program, backend="eager")
    with explaining("words") as collector:
        for number in range(7):
            compiled(torch.ones(2), [chr(97 + number) * (number + 1)])
    lines = terminal.text(collector.explanation()).splitlines()
    told = lines[lines.index("Compiled again") + 1 :]
    name = f"program (test_explain.py:{program.__code__.co_firstlineno})"
    assert told[0] == f"  {name}  (6 times)"
    assert told[1].endswith("return x * len(words[0])") and told[1].startswith("      needed at test_explain.py:")
    assert told[2] == "      `words[0]` was 'a', is 'bb'"
    assert sum("`words[0]` was" in line for line in told) == 4 and "      … and 2 other changes" in told


def test_of_many_lines_those_come_first_for_which_code_was_compiled_most_often():
    records = [
        RecompileRecord(f"f{place} (own.py:{place})", f"`n` was {n}, is {n + 1}", f"own.py:{place}")
        for place in range(12)
        for n in range(3 if place == 7 else 1)
    ]
    told = Explanation("program", (), (), tuple(records), {}, 0.0)
    lines = terminal.text(told).splitlines()
    lines = lines[lines.index("Compiled again") + 1 :]
    assert lines[0] == "  f7 (own.py:7)  (3 times)"
    assert lines[-1] == "      … and 4 other lines, 4 recompiles: stator explain --all, or print(everything=True)"
    assert sum(line.startswith("  f") for line in lines) == 8
    whole = terminal.text(told, everything=True)
    assert sum(line.startswith("  f") for line in whole.splitlines()) == 12 and "other lines" not in whole


def test_guards_that_several_graphs_check_are_told_once_and_within_the_width():
    def program(x, n):
        return x * n if LONG == list(range(40)) else x

    compiled = stator.compile(program, backend="eager")
    with explaining("guards") as collector:
        for number in ("a", "b"):
            compiled(torch.ones(2), len(number) if number == "a" else 2.5)
    explanation = collector.explanation()
    text = terminal.text(explanation)
    shown = [line for line in text[text.index("Guards: ") :].splitlines()[1:]]
    assert all(len(line) <= 80 for line in shown), shown
    assert any("(2 graphs)" in line for line in shown)
    told = re.sub(r"\s+", " ", " ".join(shown))
    dearest = sorted(explanation.out_guards, key=lambda guard: -guard.cost_ns)[:3]
    assert dearest and all(re.sub(r"\s+", " ", guard.text) in told for guard in dearest)


def test_what_helps_several_tensors_is_told_in_one_sentence():
    def program(x, y):
        return x.sum() * y.sum()

    compiled = stator.compile(program, backend="eager")
    with explaining("sizes") as collector:
        for rows in ((2, 3), (5, 3), (5, 7)):
            compiled(*map(torch.ones, rows))
    text = " ".join(terminal.text(collector.explanation()).split())
    marks = "stator.maybe_mark_dynamic(x, 0), stator.maybe_mark_dynamic(y, 0) before the first call makes one graph"
    assert text.count("what helps: ") == 1 and f"what helps: {marks}" in text
    assert merged(["a b", "", "a c", "a b", "x y z", "d c"]) == ["a b, c", "x y z", "d c"]


def test_breaks_of_one_kind_at_one_line_are_told_together():
    def program(x, best):
        if x.sum().item() < best[0]:
            best[0] = x.sum().item()
        return x * 2

    compiled = stator.compile(program, backend="eager")
    best = [100.0]
    with explaining("best") as collector:
        for size in (5, 4, 3, 2):
            compiled(torch.ones(size), best)
    text = terminal.text(collector.explanation())
    told = text[text.index("Graph breaks") : text.index("Frames")]
    assert told.count("SB0201  test_explain.py") == 1
    assert (
        "a condition on a number from Tensor.item depends" in told
        and "a condition on best[0] and a number from Tensor.item depends" in " ".join(told.split())
    )


def told_of(program):
    with explaining("program") as collector:
        program()
    return collector.explanation()


def section(explanation, title):
    """The lines below a title, of all that is shown."""
    shown = [line.text for line in terminal.lines(explanation)]
    return shown[shown.index(title) + 1 :] if title in shown else []


def test_of_many_frames_those_with_breaks_and_the_dearest_are_shown():
    def unrolled(x):
        for i in range(16):
            x = torch.relu(x)
            if i % 7 == 3:
                stator.graph_break()
        return x

    def program():
        compiled = [stator.compile(eval(f"lambda x: x * {i}"), backend="eager") for i in range(20)]
        for one in [*compiled, stator.compile(unrolled, backend="eager")]:
            one(torch.ones(2))

    explanation = told_of(program)
    frames = section(explanation, "Frames")
    assert len(explanation.frames) == 23
    assert [" 21  ", " 22  "] == [text[1:6] for text in frames if "then SB0301" in text]
    assert frames[12] == "      … and 11 more, captured whole: stator explain --all, or print(everything=True)"
    every = terminal.text(explanation, everything=True)
    assert "… and" not in every and all(f"\n  {number:2}  " in every for number in range(1, 24))


def test_what_is_compiled_for_one_call_each_is_told_once():
    def label(x, name):
        return x * 2, {name: len(name)}

    def program():
        compiled = stator.compile(label, backend="eager")
        for number in range(6):
            compiled(torch.ones(3), f"n{number}")

    told, *more = section(told_of(program), "Compiled for one call each")
    assert told.startswith("  test_what_is_compiled_for_one_call_each_is_told_once.<locals>.label (test_explain.py:")
    assert ": compiled 6 times, each used once, " in told
    assert more[0] == "      what varies: `name`"
    assert more[1:3] == [
        "      what helps: put what varies in each call in a function with",
        "      stator.disable, or make it a tensor",
    ]


def test_functions_made_anew_are_for_one_call_each():
    def program():
        for number in range(5):
            scale = stator.compile(lambda x, by=str(number): (x, by), backend="eager", isolate_recompiles=True)
            scale(torch.ones(3) * 2)

    told, *more = section(told_of(program), "Compiled for one call each")
    assert ": compiled 5 times, each used once, " in told
    assert more[0].startswith("      what helps: compile one function, outside of the loop,")


def test_what_comes_again_and_what_goes_on_in_one_call_is_no_waste():
    def pick(x, name):
        return x * 2, name.upper()

    def unrolled(x):
        for i in range(40):
            x = torch.relu(x)
            if i % 7 == 3:
                stator.graph_break()
        return x

    def program():
        compiled = stator.compile(pick, backend="eager")
        for name in "abcdeabcde":
            compiled(torch.ones(3), name)
        stator.compile(unrolled, backend="eager")(torch.ones(3))

    explanation = told_of(program)
    assert len(explanation.frames) > 10 and not explanation.used_once
    assert {frame.calls for frame in explanation.frames if frame.function.endswith("pick")} == {2}
