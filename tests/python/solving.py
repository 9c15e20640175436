"""What the solvers find on a device, compared with NumPy: for test_gpu.py, which also runs without pytest."""

import numpy as np

import flashsketch as fs


def close(made, expected, error=2e-5):
    made, expected = np.asarray(made, "float64"), np.asarray(expected, "float64")
    assert made.shape == expected.shape, f"{made.shape} is not {expected.shape}"
    worst = np.abs(made - expected).max() / max(1.0, np.abs(expected).max())
    assert worst <= error, f"the largest error is {worst:.1e}, at most {error:.1e} was expected"


def check_solvers(to_gpu, to_host, sparse=None):
    """lstsq, qr, svd, pca, leverage and Preconditioner of arrays on the GPU, compared with NumPy.  sparse: what makes a
    sparse matrix of an array."""
    rng = np.random.default_rng(3)
    A = (rng.standard_normal((20000, 30)) * np.logspace(0, -3, 30)).astype("float32")
    b = (A @ np.ones((30, 2), "float32") + 0.01 * rng.standard_normal((20000, 2))).astype("float32")
    X, right, wide = to_gpu(A), to_gpu(b), A.astype("float64")
    exact = np.linalg.lstsq(wide, b.astype("float64"), rcond=None)[0]
    for given in [X] + ([] if sparse is None else [sparse(A)]):
        for method in ("auto", "iterate"):
            found = fs.lstsq(given, right, method=method)
            assert type(found.x) is type(X) and found.rank == 30 and found.converged
            close(to_host(found.x), exact, 1e-4)
        close(to_host(fs.lstsq(given, right[:, 0], lam=0.1).x), ridge_of(wide, b[:, 0], 0.1), 1e-4)
        Q, R = (to_host(part) for part in fs.qr(given))
        close(Q @ R, A, 1e-5)
        close(Q.T @ Q, np.eye(30), 1e-5)
        found = fs.svd(given)
        assert all(type(part) is type(X) for part in found)
        close(to_host(found.s), np.linalg.svd(wide, compute_uv=False), 1e-5)
        close((to_host(found.U) * to_host(found.s)) @ to_host(found.Vt), A, 1e-5)
        close(to_host(fs.pca(given, 3).s), np.linalg.svd(wide - wide.mean(0), compute_uv=False)[:3], 1e-4)
        scores = np.square(np.linalg.qr(wide)[0]).sum(1)
        close(to_host(fs.leverage(given, exact=True).scores), scores, 1e-4)
        M = fs.Preconditioner(given)
        assert type(M.matrix) is type(X)
        sigma = np.linalg.svd(wide @ to_host(M.matrix), compute_uv=False)
        assert 0.5 < sigma[-1] and sigma[0] < 2
    first = to_host(fs.lstsq(X, right).x)
    assert all((to_host(fs.lstsq(X, right).x) == first).all() for _ in range(5))
    bad = A.copy()
    bad[7, 7] = np.nan
    try:
        fs.lstsq(to_gpu(bad), right)
    except fs.InvalidArgument as error:
        assert "not finite" in str(error)
    else:
        raise AssertionError("a NaN was taken")


def ridge_of(A, b, lam):
    return np.linalg.solve(A.T @ A + lam * np.eye(A.shape[1]), A.T @ b)
