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
    if function in (transposed, summed, facts):
        assert not breaks


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


def test_nested_tensors_are_left_to_python():
    def f(x):
        return (x * 2).to_padded_tensor(0.0)

    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    compiled = stator.compile(f, backend="aot_eager")
    torch.testing.assert_close(compiled(nested), f(nested))
    assert {b.code for b in stator.stats().breaks} == {"SB0204"}
