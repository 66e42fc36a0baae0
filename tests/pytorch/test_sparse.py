"""Sparse tensors as inputs, results and intermediates: one graph where backends take them, else breaks that say why."""

import pytest
import torch

import stator

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager"])


def inputs(size):
    torch.manual_seed(size)
    eye = torch.eye(size)
    return eye.to_sparse_csr(), eye.to_sparse(), torch.randn(size, 3), eye.to_sparse_csc()


def matmul(csr, coo, x, csc):
    return csr @ x + csc @ x + coo @ x


def parts(csr, coo, x, csc):
    return csr.values() * 2, csr.crow_indices(), csr.col_indices() + 1


def dense(csr, coo, x, csc):
    return csr.to_dense() + 1, csc.to_dense()


def scaled(csr, coo, x, csc):
    return (csr * 2).to_dense(), csr * 3


def made(csr, coo, x, csc):
    return x.to_sparse_csr().to_dense() + 1


def facts(csr, coo, x, csc):
    return x + csr.shape[0], csr.layout, csr.is_sparse, csr.is_sparse_csr, coo.is_sparse, csr.dtype, csr.dim()


def coalesced(csr, coo, x, csc):
    c = coo.coalesce()
    return c.values() * 2, c.indices()


def transposed(csr, coo, x, csc):
    return coo.t().coalesce().to_dense()


def summed(csr, coo, x, csc):
    return (coo + coo).to_dense(), torch.sparse.sum(coo, 0).to_dense()


def flat(result):
    result = result if isinstance(result, tuple) else (result,)
    return [r.to_dense() if isinstance(r, torch.Tensor) and r.layout is not torch.strided else r for r in result]


@BACKENDS
@pytest.mark.parametrize("function", [matmul, parts, dense, scaled, made, facts, coalesced, transposed, summed])
def test_programs(function, backend):
    compiled = stator.compile(function, backend=backend)
    for size in (4, 4, 7):
        got, expected = compiled(*inputs(size)), function(*inputs(size))
        for one, other in zip(flat(got), flat(expected), strict=True):
            if isinstance(other, torch.Tensor):
                torch.testing.assert_close(one, other)
            else:
                assert one == other
    breaks = stator.stats().breaks
    assert {b.code for b in breaks} <= {"SB0204", "SB0119"}, breaks  # in this process, what warns once has not warned
    if function in (transposed, summed, facts, coalesced, parts, matmul):
        assert not breaks


def vector(csr, coo, x, csc):
    return torch.mv(csr, x[:, 0]), torch.sparse.mm(csc, x) * 2, csr.to_dense() + csc.to_dense()


@BACKENDS
@pytest.mark.parametrize("function", [matmul, vector, parts, coalesced])
def test_existing_tensors_are_taken_apart_in_one_graph(function, backend):
    compiled = stator.compile(function, backend=backend, fullgraph=True)
    for size in (4, 4, 7, 5):
        csr, coo, x, csc = inputs(size)
        x.requires_grad_()
        got, expected = flat(compiled(csr, coo, x, csc)), flat(function(csr, coo, x, csc))
        for one, other in zip(got, expected, strict=True):
            torch.testing.assert_close(one, other)
        if expected[0].requires_grad:
            grads = [torch.autograd.grad(result.sum(), x)[0] for result in (got[0], expected[0])]
            torch.testing.assert_close(*grads)


def test_existing_tensors_are_taken_apart_with_inductor():
    args = inputs(4)
    torch.testing.assert_close(stator.compile(vector, backend="inductor", fullgraph=True)(*args), vector(*args))


@BACKENDS
def test_parts_share_their_memory_with_the_tensor(backend):
    def f(s):
        return s.indices(), s.values().mul_(2)

    s = torch.eye(3).to_sparse()
    indices, _ = stator.compile(f, backend=backend)(s)
    assert indices.data_ptr() == s.indices().data_ptr() and torch.equal(s.to_dense(), torch.eye(3) * 2)


def test_compressed_tensors_are_in_graphs_of_the_eager_backend():
    for function in (dense, scaled):
        compiled = stator.compile(function, backend="eager", fullgraph=True)
        for size in (4, 7):
            for one, other in zip(flat(compiled(*inputs(size))), flat(function(*inputs(size))), strict=True):
                torch.testing.assert_close(one, other)


@BACKENDS
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_the_number_of_elements_is_never_taken_for_known(layout, backend):
    def f(s):
        values = s.values()
        return values * 2 + values.shape[0] + values.numel(), values.reshape(-1, 1) * torch.ones(values.shape[0], 2)

    compiled = stator.compile(f, backend=backend)
    for matrix in (torch.eye(3), torch.ones(3, 3), torch.eye(3)):
        s = matrix.to_sparse(layout=layout)
        torch.testing.assert_close(compiled(s), f(s))


def test_an_uncoalesced_tensor():
    def f(s):
        return s.coalesce().values()

    compiled = stator.compile(f, backend="aot_eager")
    for indices in ([[0, 0], [1, 1]], [[0, 1], [1, 0]]):
        s = torch.sparse_coo_tensor(torch.tensor(indices), torch.ones(2), (2, 2))
        torch.testing.assert_close(compiled(s), f(s))
        torch.testing.assert_close(compiled(s.coalesce()), f(s))


@BACKENDS
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adagrad, torch.optim.SparseAdam])
def test_sparse_gradients_beside_parameters_that_are_written(optimizer, backend):
    def trained(compile):
        torch.manual_seed(0)
        embedding = torch.nn.Embedding(8, 4, sparse=True)
        steps = optimizer(embedding.parameters(), 0.1)

        def step(indices):
            steps.zero_grad()
            loss = embedding(indices).pow(2).sum()
            loss.backward()
            steps.step()
            return loss.detach()

        compiled = compile(step)
        losses = [compiled(torch.arange(size) % 8) for size in (3, 3, 5, 9)]
        return [*losses, embedding.weight.detach()]

    expected = trained(lambda step: step)
    actual = trained(lambda step: stator.compile(step, backend=backend))
    torch.testing.assert_close(actual, expected)


@BACKENDS
def test_a_written_tensor_beside_a_sparse_one(backend):
    def f(s, y, x):
        y.add_(1)
        return torch.sparse.mm(s, x) * y

    compiled = stator.compile(f, backend=backend, fullgraph=True)
    for size in (3, 3, 5, 6):
        found = []
        for function in (compiled, f):
            s, y, x = torch.eye(size).to_sparse(), torch.ones(size, 2), torch.ones(size, 2, requires_grad=True)
            result = function(s, y, x)
            result.sum().backward()
            found.append([result, y, x.grad])
        torch.testing.assert_close(*found)


INDICES = torch.tensor([[0, 1, 2], [2, 0, 1]])


def softened(x):
    return torch.sparse.softmax(torch.sparse_coo_tensor(INDICES, x[:3, 0], (3, 3)), 1).to_dense()


def doubled(x):
    s = torch.sparse_coo_tensor(INDICES, x[:3, 0], (3, 3))
    return (s + s).to_dense() * x[0]


def given(x):
    s = torch.sparse_coo_tensor(INDICES, x[:3, 0], (3, 3))
    return x * 2, (s * 3).to_dense(), s


def counted(x):
    s = torch.sparse_coo_tensor(INDICES, x[:3, 0], (3, 3))
    return s.to_dense() * s._nnz()


def compressed(x):
    s = torch.sparse_csr_tensor(torch.tensor([0, 1, 2, 3]), torch.tensor([2, 0, 1]), x[:3, 0], (3, 3))
    return s @ x.t()


@BACKENDS
@pytest.mark.parametrize("function", [softened, doubled, given, counted, compressed])
def test_gradients_through_sparse_tensors(function, backend):
    """AOTAutograd would ask for the gradient of a sparse tensor as if it were dense."""
    compiled = stator.compile(function, backend=backend)
    for size in (4, 5, 7):
        outcomes = []
        for program in (compiled, function):
            torch.manual_seed(size)
            x = torch.randn(size, 3, requires_grad=True)
            results = flat(program(x))
            sum(result.sum() for result in results).backward()
            outcomes.append([*results, x.grad])
        torch.testing.assert_close(*outcomes)
    if function in (softened, doubled, given):
        assert not stator.stats().breaks


def _spread(x, index, values):
    """The size of a sparse tensor is a number, and then `mm` takes no symbol."""
    return torch.sparse.mm(torch.sparse_coo_tensor(index, values, (x.size(0), x.size(0))), x)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_size_that_had_to_become_a_number(backend):
    compiled = stator.compile(_spread, backend=backend, fullgraph=True)
    for n in (4, 6, 9):
        x, index, values = torch.randn(n, 3), torch.arange(n).expand(2, n), torch.rand(n)
        torch.testing.assert_close(compiled(x, index, values), _spread(x, index, values))


def _matrix(index, n):
    return torch.sparse_coo_tensor(index, torch.ones(index.size(1)), (n, n), is_coalesced=True)


ORDERED = {
    "transposed": lambda index, n: _matrix(index, n).t().coalesce().indices(),
    "joined": lambda index, n: torch.cat([_matrix(index, n)] * 2).coalesce().indices(),
    "twice": lambda index, n: (_matrix(index, n) + _matrix(index, n).t()).coalesce().coalesce().values(),
    "returned": lambda index, n: _matrix(index, n).t().coalesce().is_coalesced(),
    "asked": lambda index, n: (_matrix(index, n).t().is_coalesced(), (_matrix(index, n) * 2).is_coalesced()),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ORDERED)
def test_which_results_are_coalesced(name, backend):
    """Fake tensors, which have no element, take all for it."""
    compiled = stator.compile(ORDERED[name], backend=backend)
    for n in (4, 6, 5):
        index = torch.stack([torch.arange(n), torch.arange(n).flip(0) // 2])
        torch.testing.assert_close(compiled(index, n), ORDERED[name](index, n))
