"""Preconditioner: A N is well-conditioned whatever A is, and SciPy's iterations with it find the exact answers."""

import numpy as np
import pytest

import flashsketch as fs

sparse = pytest.importorskip("scipy.sparse")
from scipy.sparse.linalg import LinearOperator, cg, lsmr, lsqr  # noqa: E402

D, N = 3000, 25


def problem(condition=1e8, d=D, n=N, dtype="float64"):
    """Columns of very different length, with singular vectors in no special direction."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((d, n)) * np.logspace(0, -np.log10(condition), n) @ rng.standard_normal((n, n))
    return A.astype(dtype), (A @ np.ones(n) + rng.standard_normal(d)).astype(dtype)


@pytest.mark.parametrize("condition", [1, 1e8, 1e13])
def test_singular_values_of_a_n_are_near_1(condition):
    A, _ = problem(condition)
    M = fs.Preconditioner(A)
    assert M.shape == M.matrix.shape == (N, N) and M.rank == N and M.k == 4 * N + 16
    sigma = np.linalg.svd(M.operator() @ np.eye(N))[1]
    assert 0.5 < sigma[-1] and sigma[0] < 2
    assert condition <= M.condition < 1e4 * condition and f"k={M.k}" in repr(M)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csc_matrix, sparse.coo_matrix])
def test_lsqr_and_lsmr_converge_where_they_do_not_without(kind):
    A, b = problem(n=80)
    A[np.random.default_rng(1).random(A.shape) < 0.6] = 0
    A *= np.logspace(0, 6, 80)
    X, exact = kind(A), fs.lstsq(A, b).x
    assert lsqr(X, b, atol=1e-13, btol=1e-13, conlim=0, iter_lim=500)[2] == 500
    M = fs.Preconditioner(X)
    operator = M.operator()
    assert isinstance(operator, LinearOperator) and operator.shape == (D, 80)
    z, _, iterations, *_ = lsqr(operator, b, atol=1e-13, btol=1e-13)
    assert iterations < 60
    np.testing.assert_allclose(M.solve(z), exact, rtol=1e-6)
    z, _, iterations, *_ = lsmr(operator, b, atol=1e-13, btol=1e-13)
    assert iterations < 60
    np.testing.assert_allclose(M.solve(z), exact, rtol=1e-6)


def test_the_operator_and_its_transpose_agree():
    A, b = problem(1e3)
    M = fs.Preconditioner(A)
    operator, dense = M.operator(), A @ M.matrix
    np.testing.assert_allclose(operator @ np.eye(N), dense, atol=1e-12)
    np.testing.assert_allclose(operator.matvec(np.ones((N, 1))), dense.sum(1)[:, None], atol=1e-12)
    np.testing.assert_allclose(operator.rmatvec(b), dense.T @ b, atol=1e-9)
    np.testing.assert_allclose(operator.rmatmat(np.c_[b, -b]), dense.T @ np.c_[b, -b], atol=1e-9)
    np.testing.assert_allclose(M.rsolve(A.T @ b), dense.T @ b, atol=1e-9)
    np.testing.assert_allclose(M.normal() @ (A.T @ b), M.solve(M.rsolve(A.T @ b)), rtol=1e-9)
    np.testing.assert_allclose(M.normal().rmatvec(A.T @ b), M.normal() @ (A.T @ b), rtol=1e-12)


def test_cg_of_the_normal_equations():
    A, b = problem(1e3)
    H, g, steps = A.T @ A, A.T @ b, []
    x, failed = cg(H, g, M=fs.Preconditioner(A).normal(), callback=steps.append)
    assert failed == 0 and len(steps) < 40
    exact = np.linalg.solve(H, g)
    assert np.linalg.norm(x - exact) < 1e-2 * np.linalg.norm(exact)


def test_dependent_columns_are_left_out():
    A, b = problem(10)
    A[:, 3] = A[:, 4] - A[:, 5]
    M = fs.Preconditioner(A)
    assert M.rank == N - 1 and M.shape == (N, N - 1)
    z = lsqr(M.operator(), b, atol=1e-13, btol=1e-13)[0]
    np.testing.assert_allclose(A @ M.solve(z), A @ fs.lstsq(A, b).x, rtol=1e-7, atol=1e-7)
    cut = fs.Preconditioner(np.diag(np.logspace(0, -9, 10)), rcond=1e-5)
    assert cut.rank == 5 or cut.rank == 6
    assert fs.Preconditioner(0 * A).shape == (N, 0)


def test_a_sketch_of_the_callers_a_small_a_and_float32():
    A, _ = problem(1e3)
    M = fs.Preconditioner(A, sketch=fs.Sketch(50, D, 3))
    assert M.k == 50
    assert (fs.Preconditioner(A, seed=1).matrix != fs.Preconditioner(A, seed=2).matrix).any()
    assert (fs.Preconditioner(A, seed=1).matrix == fs.Preconditioner(A, seed=1).matrix).all()
    few = fs.Preconditioner(A[:60])  # factored itself
    assert few.k == 0
    np.testing.assert_allclose(np.linalg.svd(A[:60] @ few.matrix)[1], 1, rtol=1e-9)
    for dtype in ("float32", "float16"):
        M = fs.Preconditioner((A / abs(A).max()).astype(dtype))
        assert M.matrix.dtype == "float32" and M.rank == N


def test_frameworks():
    A, b = problem(1e6)
    wanted = fs.Preconditioner(A).matrix
    da, torch, jax = None, None, None
    try:
        import dask.array as da
    except ImportError:
        pass
    else:
        M = fs.Preconditioner(da.from_array(A, chunks=(700, 10)))
        np.testing.assert_allclose(abs(M.matrix), abs(wanted), rtol=1e-4)
        z, _, iterations, *_ = lsqr(M.operator(), b, atol=1e-13, btol=1e-13)
        assert iterations < 60
        np.testing.assert_allclose(M.solve(z), fs.lstsq(A, b).x, rtol=1e-6)
    try:
        import torch
    except ImportError:
        pass
    else:
        M = fs.Preconditioner(torch.from_numpy(A))
        assert isinstance(M.matrix, torch.Tensor) and isinstance(M.solve(torch.ones(N).double()), torch.Tensor)
        np.testing.assert_allclose(M.matrix.numpy(), wanted, rtol=1e-9)
        with pytest.raises(TypeError, match="operators are for NumPy's arrays, and A is an array of torch"):
            M.operator()
        half = fs.Preconditioner((torch.from_numpy(A) / abs(A).max()).bfloat16())
        assert half.matrix.dtype is torch.float32
    try:
        import jax
    except ImportError:
        pass
    else:
        M = fs.Preconditioner(jax.numpy.asarray(A, "float32"))
        assert isinstance(M.matrix, jax.Array) and M.rsolve(jax.numpy.ones(N)).shape == (M.rank,)


def test_what_is_wrong_is_explained():
    A, _ = problem()
    bad = A.copy()
    bad[7, 7] = np.nan
    for call, kind, message in [
        (lambda: fs.Preconditioner(A.T), ValueError, "A is 25 x 3000; it must have at least as many rows"),
        (lambda: fs.Preconditioner(bad), ValueError, "not finite"),
        (lambda: fs.Preconditioner(A[:, 0]), ValueError, r"A has shape \(3000,\), it must be a matrix"),
        (lambda: fs.Preconditioner(A, sketch=fs.Sketch(9, D)), ValueError, "S is 9 x 3000; .* at least n = 25 rows"),
        (lambda: fs.Preconditioner(A, sketch=A), TypeError, "sketch is a ndarray"),
        (lambda: fs.Preconditioner(A, rcond=1), ValueError, "rcond is 1.0"),
        (lambda: fs.Preconditioner(A, seed=-1), ValueError, "seed is -1"),
    ]:
        with pytest.raises(kind, match=message):
            call()
