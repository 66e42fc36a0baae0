"""What patches make of a program's text, and what they leave alone; whether it holds is tried elsewhere."""

from __future__ import annotations

import pytest

from stator.patches.offers import offers
from stator.patches.source import Site, apply, difference


def patched(code: str, text: str, reason: str = "") -> str | None:
    """The text with the patches of the line that is marked `# here`; None if there is none."""
    line = next(number for number, each in enumerate(text.splitlines(), 1) if each.endswith("# here"))
    text = text.replace("  # here", "")
    found = offers({"f.py": text}, [Site(code, "f.py", line, reason)])
    return apply(text, found)[0] if found else None


def function(body: str) -> str:
    return "import torch\n\n\ndef f(x, y, n):\n" + "".join(f"    {line}\n" for line in body.splitlines())


BRANCHES = [
    ("if x.sum() > 0:  # here\n    y = x + 1\nelse:\n    y = -x\nreturn y",
     "y = torch.where(x.sum() > 0, x + 1, -x)\nreturn y"),
    ("if x.sum() > 0:  # here\n    return x / 2\nreturn y",
     "return torch.cond(x.sum() > 0, lambda: x / 2, lambda: y.clone())"),
    ("return x / x.sum() if x.sum() > 0 else y[n]  # here",
     "return torch.cond(x.sum() > 0, lambda: x / x.sum(), lambda: y[n].clone())"),
    ("if not (x > 0).any():  # here\n    y = x.relu()\nreturn y",
     "y = torch.where((x > 0).any(), y, x.relu())\nreturn y"),
    ("return x * 2 if x.mean() else y  # here", "return torch.where(x.mean() != 0, x * 2, y)"),
    ("return x if float(x.sum()) > n and (x + y).max().item() < 3 else y  # here",
     "return torch.where(torch.logical_and(x.sum().double() > n, (x + y).max().double() < 3), x, y)"),
    ("return x if math.isnan(x.sum().item()) else y  # here", "return torch.where(torch.isnan(x.sum()), x, y)"),
    # all of a chain, from any of its conditions
    ("if x.sum() > 0:\n    y = x\nelif y.sum() > 0:  # here\n    y = -x\nelse:\n    y = y + 1\nreturn y",
     "y = torch.where(x.sum() > 0, x, torch.where(y.sum() > 0, -x, y + 1))\nreturn y"),
    # a tuple is one value
    ("if x.sum() > 0:  # here\n    return x / 2, y + 1\nreturn y / 2, x + 1",
     "return torch.cond(x.sum() > 0, lambda: (x / 2, y + 1), lambda: (y / 2, x + 1))"),
    # comments stay
    ("if x.sum() > 0:  # here\n    # larger\n    y = (x *\n         2)  # why\nreturn y",
     "# larger\ny = torch.where(x.sum() > 0, x *\n         2, y)  # why\nreturn y"),
    # numbers that the function takes out of tensors
    ("s = x.sum().item()\nprint(f'{s:.3f}')\nreturn x / s if s > 1 else y  # here",
     "s = x.sum().detach().double()\nprint(f'{s:.3f}')\nreturn torch.cond(s > 1, lambda: x / s, lambda: y.clone())"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), BRANCHES)
def test_a_branch_is_one_value(body: str, expected: str) -> None:
    assert patched("SB0201", function(body)) == function(expected)


LEFT_ALONE = [
    # something is done on a side
    "if x.sum() > 0:  # here\n    print('large')\nreturn x",
    "if x.sum() > 0:  # here\n    x += 1\nreturn x",
    "if x.sum() > 0:  # here\n    y = x.add_(1)\nreturn y",
    "y = x.mul_(2) if x.sum() > 0 else x  # here\nreturn y",
    "if x.sum() > 0:  # here\n    n[0] = x\nreturn x",
    # a side is not there, or gives other names
    "if x.sum() > 0:  # here\n    return x\ny = x * 2\nreturn y",
    "if x.sum() > 0:  # here\n    y = x\nelse:\n    z = x\nreturn y",
    "if x.sum() > 0:  # here\n    y = x * 2\n    x = y + 1\nreturn x",
    # what it was a name of is written
    "if x.sum() > 0:  # here\n    y = x\ny.mul_(2)\nreturn y",
    "z = x if x.sum() > 0 else y  # here\nz[0] = 1\nreturn z",
    "for n in x:\n    y += n\n    if n > 0:  # here\n        y = n\nreturn y",
    # no condition on a tensor, or one that says whether the next may be asked
    "return x if x in n else y  # here",
    "return x if n is None else y  # here",
    "return x if y.any() and x[y].max() > 1 else y  # here",
    # the number is more than a number
    "s = x.sum().item()\nn.append(s)\nreturn x / s if s > 1 else y  # here",
    "while x.sum() > 0:  # here\n    x = x - 1\nreturn x",
    "return max(x.sum(), y.sum())  # here",
    "return max(x, y, key=abs)  # here",
]


@pytest.mark.parametrize("body", LEFT_ALONE)
def test_what_is_more_than_a_choice_is_left_alone(body: str) -> None:
    assert patched("SB0201", function(body)) is None


NUMBERS = [
    ("return x if n == 1 else y  # here", False),  # it may be handed a number, or a tensor
    ("return x if len(x) == 1 else y  # here", False),
    ("n = x.sum().item()\nreturn x if n == 1 else y  # here", True),
    ("return x if x.sum().item() == 1 else y  # here", True),
    ("low = x.numel() == 1 and n > 1  # here\nreturn low", False),
    ("low = x.sum().item() > 1 and n > 1  # here\nreturn low", True),
]


@pytest.mark.parametrize(("body", "offered"), NUMBERS)
def test_a_number_is_a_tensor_where_it_is_seen_to_be_taken_out_of_one(body: str, offered: bool) -> None:
    reason = "a condition on a number from Tensor.item depends on the value of a tensor"
    assert (patched("SB0201", function(body), reason) is not None) is offered


def test_no_patch_is_offered_twice() -> None:
    text = "import torch\n\ndef g(x):\n    return x\n\ndef f(x):\n    return g(x)\n\nc = torch.compile(f)\n"
    sites = [Site("SB0601", "f.py", line, "size 0 of `x` was 2, is 3") for line in (3, 6)]
    assert len(offers({"f.py": text}, sites)) == 1


def test_without_torch_by_its_name_there_is_nothing_to_write() -> None:
    text = function("return x if x.sum() > 0 else y  # here").replace("import torch", "import torch as t")
    assert patched("SB0201", text) is None


OTHERS = [
    ("SB0201", "", "return min(x, y)  # here", "return torch.where(y < x, y, x)"),
    ("SB0301", "", "y = x\ntorch._dynamo.graph_break()  # here\nreturn y", "y = x\nreturn y"),
    ("SB0301", "", "if n:\n    stator.graph_break()  # here\nreturn x", "if n:\n    pass\nreturn x"),
    ("SB0301", "", "y = x; stator.graph_break()  # here\nreturn y", "y = x; pass\nreturn y"),
    ("SB0302", "call of f.<locals>.g, which is disabled",
     "@torch.compiler.disable\ndef g(a):\n    return a\nreturn g(x)  # here", "def g(a):\n    return a\nreturn g(x)"),
    ("SB0302", "call of g, which is disabled: no reason given",
     "@stator.disable\ndef g(a):\n    return a\nreturn g(x)  # here", None),
    ("SB0302", "call of g, which is disabled: no reason given",
     "@torch._dynamo.disable()\ndef g(a):\n    return a\nreturn g(x)  # here", "def g(a):\n    return a\nreturn g(x)"),
    ("SB0302", "call of g, which is disabled: mine",
     "@torch.compiler.disable(reason='mine')\ndef g(a):\n    return a\nreturn g(x)  # here", None),
    ("SB0403", "", "try:\n    import a  # here\nexcept ImportError:\n    a = None\nreturn x", None),
    ("SB0403", "", "global a\nimport a  # here\nreturn x", None),
    ("SB0403", "", "from m import print  # here\nreturn x", None),
    ("SB0601", "size 0 of `x` was 2, is 3", "return x  # here", None),
]  # fmt: skip


@pytest.mark.parametrize(("code", "reason", "body", "expected"), OTHERS)
def test_others(code: str, reason: str, body: str, expected: str | None) -> None:
    assert patched(code, function(body), reason) == (None if expected is None else function(expected))


def test_an_import_goes_behind_the_others() -> None:
    text = '"""Mine."""\nimport torch\n\n\ndef f():\n    import a.b, c as d  # here\n    return d\n'
    assert patched("SB0403", text) == '"""Mine."""\nimport torch\nimport a.b, c as d\n\n\ndef f():\n    return d\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@torch.compile\n", "@torch.compile(dynamic=True)\n"),
        ("@stator.compile(backend='eager')\n", "@stator.compile(backend='eager', dynamic=True)\n"),
        ("@torch.compile(dynamic=False)\n", None),
    ],
)
def test_sizes_are_symbolic_where_the_function_is_compiled(before: str, after: str | None) -> None:
    text = "import torch\n\n{}def f(x):  # here\n    return x\n"
    expected = None if after is None else text.format(after).replace("  # here", "")
    assert patched("SB0601", text.format(before), "size 0 of `x` was 2, is 3") == expected


def test_bytes_and_line_ends_are_as_they_were() -> None:
    text = "import torch\r\ndef f(x):\r\n\té = 'ü'; y = x\r\n\tif x.sum() > 0:  # ö\r\n\t\ty = -x\r\n\treturn y\r\n"
    found = offers({"f.py": text}, [Site("SB0201", "f.py", 4, "")])
    new, made, lines = apply(text, found)
    assert new == text.replace("if x.sum() > 0:  # ö\r\n\t\ty = -x", "# ö\r\n\ty = torch.where(x.sum() > 0, -x, y)")
    assert made == found and lines == {4, 5} and "+++ b/f.py" in difference("f.py", text, new)


def test_of_patches_that_overlap_the_first_is_made() -> None:
    text = function("return (x if x.sum() > 0 else y) if y.sum() > 0 else x").replace("else y)", "else\n        y)")
    found = offers({"f.py": text}, [Site("SB0201", "f.py", line, "") for line in (5, 6)])
    _, made, _ = apply(text, found)
    assert len(found) >= 1 and len(made) == 1


def test_no_python_is_no_patch() -> None:
    assert offers({"f.py": "if"}, [Site("SB0201", "f.py", 1, ""), Site("SB0201", "other.py", 1, "")]) == []


TELLING = [
    ("x = x * 2\nprint(n)  # here\ny = x + 1\nreturn y", "x = x * 2\ny = x + 1\nprint(n)\nreturn y"),
    ("if x.norm() > 1:  # here\n    log.warning('large %s', x.norm().item())\nreturn x / n, y",
     "returned = x / n, y\nif x.norm() > 1:\n    log.warning('large %s', x.norm().item())\nreturn returned"),
    # what is said later is said later
    ("print(n)  # here\ny = x + 1\nprint(y)\nreturn y * 2",
     "y = x + 1\nreturned = y * 2\nprint(n)\nprint(y)\nreturn returned"),
    ("sys.stdout.flush()  # here\nn.last = x", None),
    ("sys.stdout.flush()  # here\ny = n(x)", "y = n(x)\nsys.stdout.flush()"),
    # what it says would be something else
    ("print(x.mean())  # here\nx = x + 1\nreturn x", None),
    ("print(x.mean())  # here\nx += 1\nreturn x", None),
    ("print(x.mean())  # here\ny = x.add_(1)\nreturn y", None),
    ("print(x.mean())  # here\nx[0] = 1\nreturn x", None),
    ("print(x.mean())  # here\nreturn x.mul_(2)", None),
    # it does more than tell, or is there already
    ("print(next(n))  # here\ny = x + 1\nreturn y", None),
    ("n.append(x)  # here\ny = x + 1\nreturn y", None),
    ("y = x + 1\nprint(n)  # here\nreturn y", None),
    ("y = x + 1\nprint(n)  # here", None),
    ("print(n); y = x  # here\nreturn y * 2", None),
    ("if n:\n    print(n)  # here\n    y = x\nreturn y * 2", None),
    ("returned = x\nprint(returned)  # here\nreturn y * 2", None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), TELLING)
def test_what_only_tells_goes_behind_what_is_computed(body: str, expected: str | None) -> None:
    found = patched("SB0201" if body.startswith("if x") else "SB0122", function(body))
    assert found == (None if expected is None else function(expected))


MARKED = """import torch


def f(x, rows):
    return x * rows


first = torch.compile(f, dynamic=False)
second = torch.compile(print)
for rows in (1, 2):
    x = torch.ones(rows)
    total = first({0}rows)
"""
CALLED = [
    ("x, ", "    torch._dynamo.mark_dynamic(x, 0)\n"),
    ("rows=rows, x=x) + first(x, ", "    torch._dynamo.mark_dynamic(x, 0)\n"),
    ("torch.ones(rows), ", None),  # it has no name
    ("*x, ", None),
    ("x, rows) + sum(first(x, n) for x in (x,) for n in ", None),
    ("(x := x + 1), ", None),
]


@pytest.mark.parametrize(("given", "mark"), CALLED)
def test_a_size_is_marked_where_the_function_is_called(given: str, mark: str | None) -> None:
    text = MARKED.format(given)
    found = offers({"f.py": text}, [Site("SB0601", "f.py", 4, "size 0 of `x` was 2, is 3")])
    if mark is None:
        assert not found
    else:
        assert apply(text, found)[0] == text.replace("    total", f"{mark}    total")


def test_methods_are_called_without_self() -> None:
    text = MARKED.format("x, ").replace(
        "def f(x, rows):\n    return", "class f:\n    def forward(self, x, rows):\n     return"
    )
    found = offers({"f.py": text}, [Site("SB0601", "f.py", 5, "size 0 of `rows` was 2, is 3")])
    assert "torch._dynamo.mark_dynamic(rows, 0)\n    total" in apply(text, found)[0]


def test_a_bare_decorator_is_where_a_function_begins() -> None:
    text = "import torch\n\n@torch.compile\ndef f(x):\n    return x\n"
    found = offers({"f.py": text}, [Site("SB0601", "f.py", 3, "size 0 of `x` was 2, is 3")])
    assert "@torch.compile(dynamic=True)\n" in apply(text, found)[0]
