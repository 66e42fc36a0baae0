"""How arrays lie in memory, as NumPy says it of its own results: `strides`, `flags`, `nbytes`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import stator
from tests.pytorch.programs import assert_same

NAMES = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY", "FORC", "FNC", "CARRAY")


def layout(array: Any) -> Any:
    flags = array.flags
    named = [flags[name] for name in NAMES]
    return array.strides, array.nbytes, flags.c_contiguous, flags.f_contiguous, flags.owndata, flags.num, named


PROGRAMS: dict[str, Any] = {
    "existing": lambda a: [layout(a), layout(a.T)],
    "results": lambda a: [
        layout(a * 2),
        layout(a.T * 2),
        layout(a.T.copy()),
        layout(a.sum(0)),
        layout(np.exp(a)),
    ],
    "views": lambda a: [layout(a[1:]), layout(a[:, ::2]), layout(a[1]), layout(a.reshape(-1)), layout(a[1:].T)],
    "one element": lambda a: [layout(a[None]), layout(a[:1]), layout(a[:, :1]), layout(a.sum(0, keepdims=True))],
    "no elements": lambda a: [layout(a[:0]), layout(a[:0] + 1), layout(np.zeros((0, 3)))],
    "of tensors": lambda a: [layout(torch.from_numpy(a).t().numpy()), layout((torch.from_numpy(a) + 1).numpy())],
    "joined": lambda a: [
        (layout(made), torch.from_numpy(made))
        for made in (np.stack([a, a + 1]), np.stack([a.T, a.T], axis=-1), np.concatenate([a, a]), np.vstack([a.T, a.T]))
    ],
    "in columns": lambda a: [
        (layout(made), torch.from_numpy(made + 1))
        for made in (
            *(np.asfortranarray(a), np.asfortranarray(a[0]), np.array(a, order="F"), np.asarray(a.T, order="F")),
            *(a.copy(order="F"), np.copy(a, order="C"), a.astype(np.float32, order="F"), np.zeros((2, 3), order="F")),
            *(np.full((3, 2), 2.0, order="F"), np.ones_like(a, order="C"), np.zeros_like(a), np.array(a, order="A")),
        )
    ],
    "new ones": lambda a: [
        layout(np.zeros((2, 3))),
        layout(np.ones(4, dtype=np.float32)),
        layout(a.astype(np.float16)),
    ],
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_layouts(name: str, backend: str) -> None:
    program = PROGRAMS[name]
    compiled = stator.compile(program, backend=backend, fullgraph=True, dynamic=False)
    for rows in (3, 3, 5):
        a = np.arange(4.0 * rows).reshape(rows, 4)
        for given in (a, a[:, ::-1].copy(order="F"), np.arange(8.0 * rows).reshape(rows, 8)[:, ::2]):
            assert_same(compiled(given), program(given), f"{rows} rows")


@pytest.mark.parametrize("name", ["existing", "results", "views", "joined", "in columns"])
def test_sizes_that_vary(name: str) -> None:
    program = PROGRAMS[name]
    compiled = stator.compile(program, backend="eager", dynamic=True)
    for rows in (3, 3, 4, 6):
        a = np.arange(4.0 * rows).reshape(rows, 4)
        for given in (a, a.copy(order="F"), np.arange(8.0 * rows).reshape(rows, 8)[:, ::2]):
            assert_same(compiled(given), program(given), f"{rows} rows")


def test_an_unknown_flag() -> None:
    def program(a: Any) -> str:
        try:
            return str((a + 1).flags["NONE"])
        except KeyError as e:
            return str(e)

    assert stator.compile(program, backend="eager", fullgraph=True)(np.ones(3)) == program(np.ones(3)) != ""


def test_a_flag_that_is_set_is_seen() -> None:
    def program(a: Any) -> Any:
        a.flags.writeable = False
        return a + 1, a.flags.writeable

    made, writeable = stator.compile(program, backend="eager")(np.ones(3))
    assert not writeable and made.tolist() == [2, 2, 2]


def test_flags_as_a_result() -> None:
    compiled = stator.compile(lambda a: (a.flags, (a + 1).flags, a * 2), backend="eager")
    given, made, _ = compiled(np.ones(3))
    assert given.owndata and made.owndata and given.num == np.ones(3).flags.num


def test_what_is_written_to_a_copy_in_columns_is_not_written_to_the_array() -> None:
    def program(a: Any) -> Any:
        copies = [np.asfortranarray(a), np.array(a, order="F"), a.copy(order="F")]
        for copy in copies:
            copy[0] = 7
        return torch.from_numpy(np.stack(copies)), torch.from_numpy(a) + 1

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    for rows in (3, 5, 7):
        a, b = (np.arange(4.0 * rows).reshape(rows, 4) for _ in range(2))
        assert_same(compiled(a), program(b), f"{rows} rows")
        assert (a == b).all()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_gradients_of_what_is_multiplied_with_arrays_in_columns(backend: str) -> None:
    def program(a: Any, x: Any) -> Any:
        return (torch.from_numpy(np.stack([a.T, a.T + 1])) * x).sum(0)

    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for rows in (3, 5, 7):
        a, outcomes = np.arange(4.0 * rows).reshape(rows, 4), []
        for run in (program, compiled):
            x = torch.ones(4, 1, dtype=torch.float64, requires_grad=True)
            result = run(a, x)
            result.sum().backward()
            outcomes.append((result, x.grad))
        torch.testing.assert_close(*outcomes)
