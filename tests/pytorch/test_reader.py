"""Tensor guards: each property flipped in turn, read by the core and by Python, in strict mode."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from stator import _core  # noqa: E402
from stator.guards.guard import TensorMatch  # noqa: E402
from stator.guards.program import compile_guards  # noqa: E402
from stator.guards.source import LocalSource, OffsetSource, SizeSource, StrideSource  # noqa: E402
from stator.pytorch.tensors import reader  # noqa: E402
from stator.pytorch.tensors.reader import read_facts, tensor_spec  # noqa: E402
from tests.pytorch.padded_impls import found_layout  # noqa: E402

pytestmark = [pytest.mark.needs_torch, pytest.mark.filterwarnings("ignore")]
X = LocalSource(0, "x")


@pytest.fixture(params=["core", "python"], autouse=True)
def reading(request):
    """With the core configured, and with it knowing nothing of tensors."""
    before = _core.set_strict(True)
    assert reader.configure()
    if request.param == "python":
        _core.configure_tensors(**dict.fromkeys(found_layout(), 0))
    yield request.param
    _core.set_strict(before)
    reader.configure()


class Subclass(torch.Tensor):
    pass


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError(func)


def functorch_wrapped():
    kept = []

    def note(x):
        kept.append(x)
        return x

    torch.func.vmap(note)(torch.zeros(3, 4, 6))
    return kept[0]


def in_inference_mode():
    with torch.inference_mode():
        return torch.zeros(4, 6)


def view_that_came_to_require_grad():
    base = torch.zeros(4, 6)
    view = base[:]
    base.add_(torch.ones(4, 6, requires_grad=True))
    return view


MAKE = {
    "plain": lambda: torch.zeros(4, 6),
    "double": lambda: torch.zeros(4, 6, dtype=torch.float64),
    "int": lambda: torch.zeros(4, 6, dtype=torch.int32),
    "other int": lambda: torch.zeros(4, 6, dtype=torch.int64),
    "complex": lambda: torch.zeros(4, 6, dtype=torch.complex64),
    "conjugate": lambda: torch.zeros(4, 6, dtype=torch.complex64).conj(),
    "negative": lambda: torch._neg_view(torch.zeros(4, 6)),
    "meta": lambda: torch.zeros(4, 6, device="meta"),
    "requires grad": lambda: torch.zeros(4, 6, requires_grad=True),
    "parameter": lambda: torch.nn.Parameter(torch.zeros(4, 6)),
    "frozen parameter": lambda: torch.nn.Parameter(torch.zeros(4, 6), requires_grad=False),
    "subclass": lambda: torch.zeros(4, 6).as_subclass(Subclass),
    "wrapper": lambda: Wrapper(torch.zeros(4, 6)),
    "longer": lambda: torch.zeros(5, 6),
    "wider": lambda: torch.zeros(4, 7),
    "transposed": lambda: torch.zeros(6, 4).t(),
    "strided": lambda: torch.zeros(4, 12)[:, ::2],
    "expanded": lambda: torch.zeros(6).expand(4, 6),
    "3 dims": lambda: torch.zeros(4, 6, 1),
    "1 dim": lambda: torch.zeros(24),
    "scalar": lambda: torch.zeros(()),
    "6 dims": lambda: torch.zeros(1, 2, 2, 1, 3, 2),
    "other 6 dims": lambda: torch.zeros(1, 2, 2, 1, 2, 3),
    "6 dims permuted": lambda: torch.zeros(1, 2, 2, 1, 2, 3).transpose(-1, -2),
    "image": lambda: torch.zeros(2, 3, 4, 5),
    "channels last": lambda: torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "channels last 3d": lambda: torch.zeros(2, 3, 4, 5, 6).contiguous(memory_format=torch.channels_last_3d),
    "1x1 kernel": lambda: torch.zeros(4, 6, 1, 1),
    "1x1x1 kernel": lambda: torch.zeros(4, 6, 1, 1, 1),
    "empty": lambda: torch.zeros(0, 6),
    "inference": in_inference_mode,
    "sparse": lambda: torch.zeros(4, 6).to_sparse(),
    "uncoalesced": lambda: torch.sparse_coo_tensor(torch.zeros(2, 2, dtype=torch.int64), torch.zeros(2), (4, 6)),
    "sparse csr": lambda: torch.zeros(4, 6).to_sparse_csr(),
    "quantised": lambda: torch.quantize_per_tensor(torch.zeros(4, 6), 0.1, 0, torch.qint8),
    "nested": lambda: torch.nested.nested_tensor([torch.zeros(4, 6)]),
    "other nested": lambda: torch.nested.nested_tensor([torch.zeros(4, 7)]),
    "functorch": functorch_wrapped,
    "no tensor": lambda: [1, 2],
    "none": lambda: None,
}
#: different objects whose metadata is that of a plain one
ALIKE = {
    "plain": [lambda: torch.ones(4, 6), lambda: torch.zeros(9, 6)[2:6], lambda: MAKE["requires grad"]().detach(),
              lambda: MAKE["parameter"]().data],
    "requires grad": [lambda: MAKE["requires grad"]().exp(), view_that_came_to_require_grad],
}  # fmt: skip


@pytest.mark.parametrize("kind", [kind for kind in MAKE if kind not in ("no tensor", "none")])
def test_a_guard_passes_for_its_kind_alone(kind):
    program = compile_guards([TensorMatch(X, tensor_spec(MAKE[kind]()))])
    for _ in range(2):  # the second time with what the core has learnt
        assert program.check(None, (MAKE[kind](),)), program.failure(None, (MAKE[kind](),))
    for make in ALIKE.get(kind, ()):
        assert program.check(None, (make(),)), program.failure(None, (make(),))
    for other, make in MAKE.items():
        assert program.check(None, (make(),)) == (other == kind), (kind, other)


#: the kinds of tensor that the core leaves to Python
UNCOMMON = {
    "subclass", "wrapper", "sparse", "uncoalesced", "sparse csr", "quantised", "nested", "other nested", "functorch",
    "no tensor", "none",
}  # fmt: skip


@pytest.mark.parametrize("kind", [kind for kind in MAKE if kind not in UNCOMMON])
def test_the_core_reads_common_tensors_itself(reading, monkeypatch, kind):
    make = MAKE[kind]
    spec = tensor_spec(make())
    program = compile_guards([TensorMatch(X, spec)])
    assert program.check(None, (make(),))
    calls = []
    _core.set_strict(False)
    monkeypatch.setattr(type(spec), "matches", lambda self, t: calls.append(t) or True)
    assert program.check(None, (make(),))
    assert len(calls) == (reading == "python")
    assert program.check(None, (torch.ones(4, 9),)) == (reading == "python" and spec.cls is torch.Tensor)


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize(
    "source", [SizeSource(X, 0), SizeSource(X, 5), StrideSource(X, 1), OffsetSource(X, 0)], ids=str
)
def test_numbers_of_tensors(reading, kind, source):
    """Loaded as Python loads them, which the strict mode compares; no load where there is no such number."""
    tensor = MAKE[kind]()
    try:
        expected = source.ask(tensor)
    except Exception:
        expected = None
    outputs = compile_guards([], [source]).run(None, (tensor,))
    assert outputs == (1 if expected is None else (expected,))  # the load of the tensor is before it


def test_numbers_of_a_view():
    view = torch.zeros(9, 6)[2:7, 1:]
    sources = [SizeSource(X, 0), SizeSource(X, 1), StrideSource(X, 0), StrideSource(X, 1), OffsetSource(X, 0)]
    assert compile_guards([], sources).run(None, (view,)) == (5, 5, 6, 1, 13)


@pytest.mark.parametrize("wanted", [True, False])
def test_changes_in_place(wanted):
    tensor = torch.zeros(4, 6)
    program = compile_guards([TensorMatch(X, tensor_spec(tensor))])
    changes = [
        lambda: tensor.requires_grad_(True),
        lambda: tensor.requires_grad_(False),
        lambda: setattr(tensor, "data", torch.zeros(4, 7)),
        lambda: setattr(tensor, "data", torch.zeros(4, 6, dtype=torch.float64)),
        lambda: setattr(tensor, "data", torch.zeros(4, 6)),
        lambda: tensor.resize_(2, 2),
        lambda: tensor.resize_(4, 6),
        lambda: tensor.t_(),
        lambda: tensor.t_(),
        lambda: tensor.set_(torch.zeros(6)),
        lambda: setattr(tensor, "data", torch.zeros(4, 6)),
        lambda: torch.utils.swap_tensors(tensor, torch.zeros(3)),
        lambda: torch.utils.swap_tensors(tensor, torch.zeros(4, 6)),
    ]
    expected = [False, True, False, False, True, False, True, False, True, False, True, False, True]
    outcomes = []
    for change in changes:
        change()
        outcomes.append(program.check(None, (tensor,)))
    assert outcomes == expected


def test_sizes_and_strides_can_be_left_open():
    program = compile_guards([TensorMatch(X, tensor_spec(torch.zeros(4, 5, 6), {1}, {0}))])
    assert program.check(None, (torch.zeros(4, 9, 6),))
    assert program.check(None, (torch.zeros(4, 5, 6),))
    assert program.check(None, (torch.zeros(4, 10, 6)[:, :3],))
    assert not program.check(None, (torch.zeros(4, 9, 7),))
    assert not program.check(None, (torch.zeros(4, 6, 9).transpose(1, 2),))
    assert not program.check(None, (torch.zeros(5, 9, 6)[::2],))


def test_all_strides_can_be_left_open():
    program = compile_guards([TensorMatch(X, tensor_spec(torch.zeros(4, 6), open_strides=range(2)))])
    assert program.check(None, (torch.zeros(6, 4).t(),))
    assert not program.check(None, (torch.zeros(6, 4),))


#: what lies in the bytes of memory that a tensor gets, and shows in the bits that it does not use
PATTERNS = (0x00, 0xFF)


def in_memory_of(pattern, make, *args, **kwargs):
    reader._soil(pattern)
    return make(*args, **kwargs)


@pytest.fixture
def soiled(monkeypatch):
    """One experiment after the other gets memory with other contents."""
    empty, patterns = torch.empty, itertools.cycle(PATTERNS)
    monkeypatch.setattr(torch, "empty", lambda *args, **kwargs: in_memory_of(next(patterns), empty, *args, **kwargs))


def test_what_lay_in_the_memory_says_nothing_of_the_tensor(reading, soiled, monkeypatch):
    if reading == "core":
        assert reader.configure()
    kept = [in_memory_of(pattern, torch.zeros, 4, 6) for pattern in PATTERNS * 2]
    kind = found_layout()["kind"] // 8
    assert len({reader._impl(tensor)[kind] for tensor in kept}) > 1, "no padding to see"
    program = compile_guards([TensorMatch(X, tensor_spec(kept[0]))])
    assert program.check(None, (kept[0],))
    if reading == "core":
        _core.set_strict(False)
        monkeypatch.setattr(type(tensor_spec(kept[0])), "matches", lambda self, t: pytest.fail("Python is asked"))
    for tensor in kept:
        assert program.check(None, (tensor,))


def test_padding_is_found_where_every_impl_gets_a_little_more_than_it_asks_for():
    done = subprocess.run([sys.executable, "-m", "tests.pytorch.padded_impls"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_padding_that_was_not_found_is_not_taken_for_the_data_type(request, monkeypatch):
    mask = found_layout()["kind_mask"]
    request.getfixturevalue("soiled")
    monkeypatch.setattr(reader, "_in_dirty_memory", lambda: ())
    for _ in range(6):
        try:
            assert reader._find_layout()["kind_mask"] == mask
        except reader._Unclear:
            pass


def test_differences_are_told():
    spec = tensor_spec(torch.zeros(4, 6))
    assert str(spec) == "Tensor(torch.float32, (4, 6), cpu)"
    assert spec.difference(torch.zeros(4, 7))[0] == "size 1 of `it` was 6, is 7"
    assert spec.difference(torch.zeros(6, 4).t())[0] == "the strides of `it` were (6, 1), are (1, 4)"
    assert (
        spec.difference(torch.zeros(4, 6, dtype=torch.int8))[0] == "the dtype of `it` was torch.float32, is torch.int8"
    )
    assert spec.difference(torch.zeros(4, 6, requires_grad=True))[0] == "`it` requires gradients"
    assert spec.difference(3)[0] == "`it` was a Tensor, is 3"
    assert "negated lazily" in spec.difference(torch._neg_view(torch.zeros(4, 6)))[0]


def test_reading_runs_no_torch_function():
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError(func)

    loud = torch.zeros(2).as_subclass(Loud)
    assert read_facts(loud).sizes == (2,)
    assert tensor_spec(loud).matches(loud)


def test_equal_specs_are_one_object_and_go_when_unused():
    spec = tensor_spec(torch.zeros(4, 6, 3, 1))
    assert tensor_spec(torch.ones(4, 6, 3, 1)) is spec
    before = len(reader._specs)
    del spec
    assert len(reader._specs) == before - 1


def test_equal_specs_make_equal_guards():
    first, second = (TensorMatch(X, tensor_spec(torch.zeros(4, 6))) for _ in range(2))
    assert first == second
    assert first != TensorMatch(X, tensor_spec(torch.zeros(4, 6, requires_grad=True)))
