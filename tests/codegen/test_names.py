# needs: torch
"""Generated code reads like the program: its names, and its lines where it is resumed."""

from __future__ import annotations

import re

import torch

import stator


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.seen: list[int] = []

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        hidden = self.layer(batch)
        self.seen.append(1)
        if hidden.mean() > 100:
            hidden = hidden * 2
        shifted = hidden + 1
        return shifted


def generated(fn, *args):
    compiled = stator.compile(fn, backend="eager", isolate_recompiles=True)
    compiled(*args)
    return stator.generated_source(compiled)


def line(text):
    """Number and file of the line of this file with the text."""
    with open(__file__) as file:
        return next(number for number, found in enumerate(file, 1) if found.strip() == text)


def test_variables_and_attributes_of_the_program_name_what_is_read_and_made():
    text = generated(Model(), torch.ones(1, 2))
    head, *_ = text.splitlines()
    assert head.startswith("def forward(") and {"self", "batch"} <= set(re.findall(r"\w+", head))
    assert re.search(r"^    self_seen\.append\(1\)$", text, re.M)
    assert re.search(r"^        \w+, hidden = graph\(batch, \*P\)$", text, re.M)


def test_a_result_is_called_as_the_variable_that_holds_it():
    def program(x):
        shifted = x + 1
        return shifted, x * 2

    text = generated(program, torch.ones(2))
    assert "shifted, mul = graph(x)" in text and "return (shifted, mul)" in text.replace("a_tuple = ", "return ")


def test_a_resumed_function_is_called_by_its_line_and_quotes_it():
    text = generated(Model(), torch.ones(1, 2))
    broken, goes_on = line("if hidden.mean() > 100:"), line("shifted = hidden + 1")
    assert text.count(f"# test_names.py:{broken}: if hidden.mean() > 100:") == 1
    assert f"raise_in_forward_at_{broken}" in text
    assert f"\ndef resume_forward_at_{goes_on}(" in text


def test_heads_are_not_the_same():
    heads = re.findall(r"^def (\w+)\(", generated(Model(), torch.ones(1, 2)), re.M)
    assert len(heads) == 2 == len(set(heads))


def test_a_long_path_is_cut_between_words():
    class Holder:
        pass

    outer = Holder()
    outer.collected_activations_of_layers = Holder()
    outer.collected_activations_of_layers.interesting_tensor_one = torch.ones(2)

    def program(x):
        return x + outer.collected_activations_of_layers.interesting_tensor_one

    (head,) = re.findall(r"^def program\((.*)\):", generated(program, torch.ones(2)), re.M)
    assert {"x", "of_layers_interesting_tensor_one"} <= set(head.split(", "))


def test_a_line_of_the_program_stays_one_line(tmp_path):
    path = tmp_path / "odd.py"
    path.write_bytes(
        b"import stator\ndef odd(x):\n    y = x + 1\n    stator.graph_break()  # one\x0ctwo\n    return y\n"
    )
    namespace: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    text = generated(namespace["odd"], torch.ones(2))
    assert "    # odd.py:4: stator.graph_break() # one two\n" in text
