"""Facts that the guard on a tensor leaves open: guarded when a program, or the making of a graph, depends on them."""

import copy

import pytest
import torch

import stator
from stator import _core
from stator.guards.guard import TensorMatch, Unrecorded
from stator.guards.program import compile_guards
from stator.guards.source import LocalSource
from stator.pytorch.tensors.latent import is_leaf_and_no_view
from stator.pytorch.tensors.reader import tensor_spec

pytestmark = pytest.mark.filterwarnings("ignore")


def leaf(*sizes):
    return torch.ones(*sizes, requires_grad=True)


def slices(*bounds):
    return [lambda b=b: (torch.arange(16.0)[b[0] : b[1]],) for b in bounds]


def view_without_grad():
    with torch.no_grad():
        return leaf(8)[:4]


def described(value):
    if isinstance(value, torch.Tensor):
        place = value.shape, value.stride(), value.storage_offset()
        return value.tolist(), place, value.requires_grad, value.is_leaf
    return [described(item) for item in value] if isinstance(value, tuple) else value


def outcome(function, make):
    args = make()
    try:
        answer = described(function(*args))
    except Exception as error:
        answer = type(error)
    return answer, [described(arg) for arg in args]


def check(program, *makes, backend="eager", **options):
    """Called with each of the arguments, in this order and the other, the program answers as in eager execution."""
    for order in (makes, makes[::-1]):
        compiled = stator.compile(program, backend=backend, **options)
        for make in order:
            assert outcome(compiled, make) == outcome(program, make)
        stator.reset()


def caught(x):
    try:
        x.add_(1)
    except RuntimeError as error:
        return str(error)
    return x.detach() + 1


def written_aside(x):
    x.detach().mul_(2)
    return x + 1


def written_without_grad(x):
    with torch.no_grad():
        x.mul_(2)
    return x + 1


PLACES = slices((0, 4), (4, 8), (4, 10), (2, 10))
OFFSETS = {
    "asked": lambda x: x.storage_offset(),
    "of a view": lambda x: x[1:].storage_offset(),
    "in a branch": lambda x: x + 1 if x.storage_offset() else x - 1,
    "as an argument": lambda x: torch.as_strided(x, (2,), (1,), x.storage_offset()),
    "left out": lambda x: torch.as_strided(x, (2,), (1,)) * 1,
    "fixed": lambda x: torch.as_strided(x, (2,), (1,), 0) * 1,
    "view as a result": lambda x: x[1:],
    "view beside a result": lambda x: (x[1:], x * 2),
    "sizes changed": lambda x: x.unsqueeze_(0),
    "contents and sizes changed": lambda x: x.add_(1).unsqueeze_(0),
    "of pairs": lambda x: torch.view_as_complex(x.view(-1, 2)).abs(),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("program", OFFSETS.values(), ids=OFFSETS)
def test_storage_offset(program, dynamic, backend):
    check(program, *PLACES, backend=backend, dynamic=dynamic)


def test_an_offset_that_may_not_be():
    check(lambda x: x.view(torch.complex64) * 1, *slices((0, 4), (1, 5), (2, 6)))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "program",
    [lambda x: x.is_leaf, lambda x: x.grad_fn is None, caught, written_aside, written_without_grad],
    ids=["is_leaf", "grad_fn", "caught", "written aside", "written without grad"],
)
def test_leaf(program, backend):
    check(program, lambda: (leaf(4),), lambda: (leaf(4) * 1,), lambda: (torch.ones(4),), backend=backend)


VIEWS = {
    "none": lambda: torch.ones(4),
    "of a plain tensor": lambda: torch.ones(8)[:4],
    "made without grad": view_without_grad,
    "of a leaf": lambda: leaf(8)[:4],
    "of a result": lambda: (leaf(8) * 1)[:4],
    "one of several": lambda: torch.ones(2, 4).unbind()[0],
    "one of several results": lambda: (leaf(8) * 1).split(4)[0],
}


def multiplied(x, w):
    try:
        x.mul_(w)
    except RuntimeError as error:
        return str(error)
    return x * 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("first", VIEWS)
def test_views_written_with_grad(first, backend):
    makes = [VIEWS[first], *VIEWS.values()]
    check(multiplied, *[lambda m=m: (m(), leaf(4)) for m in makes], backend=backend)


def two():
    return torch.ones(3), torch.ones(3)


def one():
    tensor = torch.ones(3)
    return tensor, tensor


def base_and_view():
    base = torch.ones(3)
    return base, base[:]


def sizes_changed(x, y):
    x.unsqueeze_(0)
    return y.shape


WEIGHT = torch.ones(3, requires_grad=True)


def grad_gained(x, y):
    x.mul_(WEIGHT)
    return y.requires_grad


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [sizes_changed, grad_gained])
def test_metadata_changed_through_another_name(program, backend):
    check(program, two, one, base_and_view, backend=backend)


def counted(x):
    before = x._version
    x.add_(1)
    x[1:].mul_(2)
    return x._version - before


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_version(backend):
    check(counted, lambda: (torch.ones(3),), lambda: (torch.zeros(3).add_(1),), backend=backend)
    check(lambda x: x._version, lambda: (torch.ones(3),), lambda: (torch.zeros(3).add_(1),), backend=backend)


@pytest.mark.parametrize("dynamic", [False, True])
def test_new_tells_sizes_from_data(dynamic):
    makes = [lambda: (torch.ones(2, 3),), lambda: (torch.ones(()),), lambda: (torch.ones(4, 3),)]
    for program in (
        lambda x: x.new(x.size()).shape,
        lambda x: x.new(x.shape).zero_(),
        lambda x: torch.Tensor.new(x, torch.Size([2])).shape,
        lambda x: x.new([2, 3]),
        lambda x: x.new(2, 3).shape,
        lambda x: x.new().shape,
    ):
        check(program, *makes, dynamic=dynamic)


def test_inductor_counts_from_its_example():
    check(lambda x: torch.as_strided(x, (2,), (1,), 5) * 2, *PLACES, backend="inductor")


@pytest.mark.parametrize("minimum", [0, 1000], ids=["revalidated", "walked"])
def test_what_autograd_keeps_nothing_about_is_seen_without_python(minimum):
    stator.compile(lambda x: x + 1, backend="eager")(torch.ones(1))  # so that the core can read tensors
    asked = []

    def ask(tensor):
        asked.append(tensor)
        return is_leaf_and_no_view(tensor)

    x = LocalSource(0, "x")
    before = _core.set_revalidation_minimum(minimum)
    try:
        guards = [TensorMatch(x, tensor_spec(torch.ones(4))), Unrecorded((x,), ask, "is a leaf and no view")]
        program = compile_guards(guards, [x])
        plain, view = torch.ones(4), torch.ones(8)[:4]
        for _ in range(20):
            assert program.check(None, (plain,))
        assert not asked
        for _ in range(20):
            assert not program.check(None, (view,))
            assert program.check(None, (plain,))
        assert len(asked) == 20
        plain.requires_grad_().requires_grad_(False)  # autograd has something to keep now
        for _ in range(20):
            assert program.check(None, (plain,))
    finally:
        _core.set_revalidation_minimum(before)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_statistic_that_becomes_a_view(backend):
    norms = torch.nn.Sequential(*[torch.nn.BatchNorm1d(3) for _ in range(6)])
    compiled = stator.compile(norms, backend=backend)
    x = torch.randn(5, 3)
    for _ in range(10):
        compiled(x)
    whole = torch.zeros(6)
    norms[4].running_mean = whole[:3]
    twin = copy.deepcopy(norms)
    for _ in range(3):
        expected = twin(x)
        assert torch.equal(compiled(x), expected)
        assert torch.equal(norms[4].running_mean, twin[4].running_mean)
    assert torch.equal(whole[:3], norms[4].running_mean) and whole[3:].eq(0).all()
