"""solve, ridge, gram and ose: what NumPy finds for the same S A, for arrays of every framework in host memory."""

import numpy as np
import pytest

import flashsketch as fs

try:
    fs.gram(fs.Sketch(k=2, d=3), np.ones((3, 1)))
except fs.BackendError as error:
    pytest.skip(f"tasks cannot run here: {error}", allow_module_level=True)

D, N, K = 3000, 20, 200
S = fs.Sketch(k=K, d=D, seed=3)


def problem(dtype="float64", rhs=None):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((D, N)) * np.logspace(0, -2, N)
    b = A @ np.ones((N, rhs or 1)) + 0.1 * rng.standard_normal((D, rhs or 1))
    return A.astype(dtype), (b if rhs else b[:, 0]).astype(dtype)


@pytest.mark.parametrize("dtype,error", [("float64", 1e-12), ("float32", 1e-4)])
@pytest.mark.parametrize("rhs", [None, 1, 3])
def test_solve_and_ridge_are_numpys(dtype, error, rhs):
    A, b = problem(dtype, rhs)
    Y, C = (S @ A).astype("float64"), (S @ b).astype("float64")
    fit = fs.solve(S, A, b, exact=True)
    assert fit.x.shape == ((N,) if rhs is None else (N, rhs)) and fit.x.dtype == dtype
    np.testing.assert_allclose(fit.x, np.linalg.lstsq(Y, C, rcond=None)[0], rtol=error, atol=error)
    true = np.atleast_1d(np.linalg.norm(A.astype("float64") @ fit.x - b, axis=0))
    np.testing.assert_allclose(fit.exact, true, rtol=1e-5)
    assert fit.low < np.linalg.norm(true) < fit.high and fit.low < fit.residual < fit.high
    assert fit.rank == N and fit.method == "cholesky" and fit.smallest < fit.residual
    assert fit.total_seconds == fit.sketch_seconds + fit.solve_seconds > 0
    fit = fs.ridge(S, A, b, 0.5)
    want = np.linalg.solve(Y.T @ Y + 0.5 * np.eye(N), Y.T @ C)
    np.testing.assert_allclose(fit.x, want, rtol=error, atol=error)
    assert np.isnan(fit.smallest) and fit.exact is None


def test_shortest_solution():
    A, b = problem()
    A[:, 3] = A[:, 5]
    fit = fs.solve(S, A, b)
    assert fit.rank == N - 1 and fit.method == "svd" and abs(fit.x[3] - fit.x[5]) < 1e-10
    np.testing.assert_allclose(fit.x, np.linalg.lstsq(S @ A, S @ b, rcond=1e-10)[0], atol=1e-9)
    few = fs.Sketch(k=10, d=D)
    fit = fs.solve(few, A, b)
    assert fit.rank == 10 and np.isnan(fit.residual) and fit.low == 0 and fit.high == np.inf
    np.testing.assert_allclose(fit.x, np.linalg.lstsq(few @ A, few @ b, rcond=None)[0], atol=1e-9)


def test_gram():
    A, _ = problem()
    made = fs.gram(S, A, exact=True)
    Y, H = S @ A, A.T @ A
    np.testing.assert_allclose(made.G, Y.T @ Y, rtol=1e-12, atol=1e-9)
    assert np.isclose(made.frobenius, np.linalg.norm(made.G - H) / np.linalg.norm(H))
    assert np.isclose(made.spectral, np.linalg.norm(made.G - H, 2) / np.linalg.norm(H, 2))
    assert made.low < made.frobenius < made.high and made.effective_k <= K
    out = np.empty((N, N), np.float32, order="F")
    assert fs.gram(S, A, out=out).G is out and np.allclose(out, made.G, rtol=1e-6)
    assert np.isnan(fs.gram(S, A).frobenius)


def test_ose():
    A, _ = problem()
    for r in (None, 7):
        made = fs.ose(S, A, r=r)
        s = np.linalg.svd(S @ np.linalg.qr(A[:, : r or N])[0], compute_uv=False)
        assert np.isclose(made.sigma_max, s[0]) and np.isclose(made.sigma_min, s[-1])
        assert np.isclose(made.error, max(s[0] ** 2 - 1, 1 - s[-1] ** 2))
    one, other = fs.ose(S, r=5, seed=1), fs.ose(S, r=5, seed=2)
    assert one.error == fs.ose(S, r=5, seed=1).error != other.error
    with pytest.raises(ValueError, match="with r"):
        fs.ose(S)


def test_half_types_and_strides():
    A, b = problem("float32")
    wide = np.zeros((2 * D, 2 * N), "float32")
    wide[::2, ::2] = A
    np.testing.assert_array_equal(fs.solve(S, wide[::2, ::2], b).x, fs.solve(S, A, b).x)
    turned = fs.solve(S, np.asfortranarray(A), b).x
    assert turned.shape == (N,) and turned.dtype == np.float32
    np.testing.assert_allclose(turned, fs.solve(S, A, b).x, rtol=1e-5, atol=1e-6)
    half = fs.solve(S, A.astype("float16"), b)
    assert half.x.dtype == np.float32 and np.allclose(half.x, fs.solve(S, A, b).x, atol=0.1)


TYPES = {  # of A and b: that of x, and of the sums
    ("float32", "float64"): ("float32", "float32"),
    ("float64", "float32"): ("float64", "float64"),
    ("float64", "float16"): ("float64", "float64"),
    ("float16", "float64"): ("float32", "float32"),
    ("float32", "float16"): ("float16", "float32"),
    ("int8", "float64"): ("float32", "float32"),
    ("int64", "float32"): ("float64", "float64"),
    ("float64", "int8"): ("float64", "float64"),
    ("float32", "int64"): ("float32", "float32"),
    (">f8", ">f4"): ("float64", "float64"),
}


@pytest.mark.parametrize("types", TYPES, ids=str)
def test_a_and_b_of_different_types(types):
    A, b = problem()
    A, b = (100 * A / abs(A).max()).round().astype(types[0]), (100 * b / abs(b).max()).round().astype(types[1])
    found, sums = TYPES[types]
    for call in (fs.solve, lambda *given: fs.ridge(*given, 0.5)):
        x, wanted = call(S, A, b).x, call(S, A.astype(sums), b.astype(sums)).x
        assert x.dtype == found
        np.testing.assert_allclose(x.astype("float64"), wanted, rtol=1e-2 if found == "float16" else 1e-6, atol=1e-6)


def test_lists_and_whole_numbers():
    A = np.random.default_rng(0).integers(-9, 10, (D, N)).astype("int8")
    b, wide = A.astype("int64") @ np.arange(N), A.astype("float32")
    want = fs.solve(S, wide, b.astype("float32"))
    for given in (A, A.tolist(), list(A)):
        fit = fs.solve(S, given, b.tolist(), exact=True)
        np.testing.assert_allclose(fit.x, want.x, rtol=1e-4, atol=1e-4)
        assert fit.exact < 1
    assert fs.gram(S, A).G.dtype == "float32" and (fs.gram(S, A).G == fs.gram(S, wide).G).all()
    assert (fs.gram(S, A.astype("int64").tolist()).G == fs.gram(S, A.astype("float64")).G).all()
    assert fs.ose(S, A).error == fs.ose(S, wide).error
    pandas = pytest.importorskip("pandas")
    fit = fs.solve(S, pandas.DataFrame(wide), pandas.Series(b))
    assert type(fit.x) is np.ndarray and (fit.x == want.x).all()


def test_dask():
    da = pytest.importorskip("dask.array")
    A, b = problem()
    lazy, right = da.from_array(A, chunks=(700, 8)), da.from_array(b, chunks=(500,))
    want = fs.solve(S, A, b, exact=True)
    for given in (right, b, b.tolist()):
        fit = fs.solve(S, lazy, given, exact=True)
        assert type(fit.x) is np.ndarray and fit.x.shape == (N,) and fit.sketch_seconds == 0
        np.testing.assert_allclose(fit.x, want.x, rtol=1e-9)
        np.testing.assert_allclose(fit.exact, want.exact, rtol=1e-9)
        assert np.isclose(fit.residual, want.residual) and fit.low < fit.exact[0] < fit.high
    np.testing.assert_allclose(fs.ridge(S, lazy, right[:, None], 0.5).x[:, 0], fs.ridge(S, A, b, 0.5).x, rtol=1e-9)
    np.testing.assert_allclose(fs.gram(S, lazy).G, fs.gram(S, A).G, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fs.solve(S, lazy[:, 0], right).x, fs.solve(S, A[:, :1], b).x, rtol=1e-9)
    half = fs.solve(S, lazy.astype("float16"), right)  # sketched in float32, and not rounded to float16
    np.testing.assert_allclose(half.x, fs.solve(S, A.astype("float16"), b).x, rtol=1e-4, atol=1e-5)
    assert half.x.dtype == "float32"
    fit = fs.solve(S, (100 * lazy).astype(int), right)
    np.testing.assert_allclose(fit.x, fs.solve(S, (100 * A).astype(int), b).x, rtol=1e-9)
    for call, kind, message in [
        (lambda: fs.ose(S, lazy), TypeError, r"A is an array of dask: give A.compute\(\)"),
        (lambda: fs.solve(S, A, right), TypeError, r"b is an array of dask: give b.compute\(\)"),
        (lambda: fs.gram(S, lazy, exact=True), TypeError, r"exact needs A in memory as a whole.*A.compute\(\)"),
        (lambda: fs.solve(S, lazy[:-1], right), ValueError, "A has 2999 rows"),
        (lambda: fs.solve(S, lazy, right[:-1]), ValueError, "b has 2999 rows"),
        (lambda: fs.gram(S, lazy[None]), ValueError, "vectors and matrices"),
    ]:
        with pytest.raises(kind, match=message):
            call()


def test_dask_reads_every_chunk_once():
    da = pytest.importorskip("dask.array")
    A, b = problem()
    touched = []

    def read(block):
        touched.append(block.shape)
        return block

    both = da.from_array(np.c_[A, b], chunks=(1000, N + 1)).map_blocks(read, meta=np.empty((0, 0)))
    fit = fs.solve(S, both[:, :N], both[:, N])
    assert touched == 3 * [(1000, N + 1)]
    np.testing.assert_allclose(fit.x, fs.solve(S, A, b).x, rtol=1e-9)


def test_sparse():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    A, b = problem()
    A[np.random.default_rng(0).random(A.shape) < 0.8] = 0
    for kind in (scipy_sparse.csr_array, scipy_sparse.csc_array):
        fit = fs.solve(S, kind(A), b, exact=True)
        np.testing.assert_allclose(fit.x, fs.solve(S, A, b).x, rtol=1e-9)
        np.testing.assert_allclose(fit.exact, np.linalg.norm(A @ fit.x - b))
        np.testing.assert_allclose(fs.gram(S, kind(A)).G, fs.gram(S, A).G, rtol=1e-9, atol=1e-9)
        assert fit.sketch_seconds == 0  # the time of the dense A before is not reported again
        mixed = fs.solve(S, kind(A.astype("float32")), b)
        assert mixed.x.dtype == "float32"
        np.testing.assert_allclose(mixed.x, fit.x, rtol=1e-3, atol=1e-3)
    counts = (100 * A).astype("int64")
    fit = fs.solve(S, scipy_sparse.csr_matrix(counts), b)
    np.testing.assert_allclose(fit.x, fs.solve(S, counts, b).x, rtol=1e-9)
    for call, message in [
        (lambda: fs.ose(S, scipy_sparse.csr_array(A)), r"A is an array of scipy.sparse: give A.toarray\(\)"),
        (lambda: fs.solve(S, A, scipy_sparse.csr_array(b[:, None])), r"give b.toarray\(\)"),
        (lambda: fs.gram(S, scipy_sparse.csr_array(A), exact=True), "exact needs A in memory as a whole"),
    ]:
        with pytest.raises(TypeError, match=message):
            call()


def test_torch():
    torch = pytest.importorskip("torch")
    A, b = (torch.from_numpy(array) for array in problem("float32"))
    fit = fs.solve(S, A, b)
    assert isinstance(fit.x, torch.Tensor)
    np.testing.assert_array_equal(fit.x.numpy(), fs.solve(S, *problem("float32")).x)
    assert isinstance(fs.gram(S, A).G, torch.Tensor) and fs.ose(S, A).error > 0
    with pytest.raises(RuntimeError, match="gradient"):
        fs.solve(S, A.requires_grad_(), b)
    with torch.no_grad():
        fs.solve(S, A, b)


def _frozen(array):
    array.flags.writeable = False
    return array


def test_refusals():
    A, b = problem()
    bad = A.copy()
    bad[5, 5] = np.nan
    for call in (fs.solve, lambda *a: fs.ridge(*a, 1.0), lambda S, A, b: fs.gram(S, A), lambda S, A, b: fs.ose(S, A)):
        with pytest.raises(fs.InvalidArgument, match="not finite"):
            call(S, bad, b)
    with pytest.raises(fs.InvalidArgument, match="lambda"):
        fs.ridge(S, A, b, 0.0)
    with pytest.raises(ValueError, match="b has 2999 rows"):
        fs.solve(S, A, b[:-1])
    with pytest.raises(ValueError, match="A has 10 rows"):
        fs.gram(S, A[:10])
    with pytest.raises(TypeError, match="must be a Sketch"):
        fs.gram(A, A)
    for call, message in [
        (lambda: fs.ose(S, A, seed=2**64), "ose: seed is 18446744073709551616, it must be from 0 to"),
        (lambda: fs.ose(S, A, seed=-1), "ose: seed is -1, it must be from 0 to 18446744073709551615"),
        (lambda: fs.ose(S, r=2**70), "ose: r is 1180591620717411303424, it must be from 1 to 3000"),
        (lambda: fs.ose(S, A, r=0), "ose: r is 0"),
        (lambda: fs.gram(S, A, out=_frozen(np.empty((N, N)))), "not writeable"),
        (lambda: fs.ridge(S, A, b, float("nan")), "lambda"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    for call, message in [
        (lambda: fs.ose(S, r=2.5), "ose: r is 2.5, it must be an integer"),
        (lambda: fs.ose(7, r=2), "must be a Sketch"),
        (lambda: fs.solve(S, A + 0j, b), "dtype is complex128"),
        (lambda: fs.solve(S, A, b.astype(object)), "dtype is object"),
        (lambda: fs.solve(S, A, None), "b is None"),
    ]:
        with pytest.raises(TypeError, match=message):
            call()
    assert fs.solve(S, 0 * A, b).rank == 0 and not fs.solve(S, 0 * A, b).x.any()


def test_threads_have_workspaces_of_their_own():
    import concurrent.futures

    A, b = problem()
    want = fs.solve(S, A, b).x
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for x in pool.map(lambda _: fs.solve(S, A, b).x, range(40)):
            np.testing.assert_array_equal(x, want)


def test_an_interval_is_given_where_it_is_known_to_hold():
    rng = np.random.default_rng(5)
    A, b = rng.standard_normal((2000, 10)), rng.standard_normal(2000)
    fit = fs.solve(fs.Sketch(k=200, d=2000), A, b)
    assert fit.confidence == 0.99 and 0 < fit.low < fit.high < np.inf and fit.note == ""
    fit = fs.solve(fs.Sketch(k=200, d=2000, family="blockrow"), A, b)
    assert fit.confidence == 0 and fit.low == 0 and fit.high == np.inf and "blockrow" in fit.note
    fit = fs.solve(fs.Sketch(k=12, d=2000), A[:, [0] + list(range(9))], b)
    assert fit.rank == 9 and "rank 9 < n = 10" in fit.note and "k >= 20" in fit.note
    made = fs.gram(fs.Sketch(k=200, d=2000), A)
    assert made.confidence == 0.99 and made.low == 0 and made.error < made.high < np.inf and made.note == ""
    made = fs.gram(fs.Sketch(k=200, d=2000, family="srht"), A)
    assert made.confidence == 0 and made.high == np.inf and "srht" in made.note


def test_an_interval_for_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    A = sparse.random(2000, 10, 0.2, "csr", random_state=1)
    fit = fs.solve(fs.Sketch(k=200, d=2000), A, np.random.default_rng(6).standard_normal(2000))
    assert fit.confidence == 0.99 and 0 < fit.low < fit.high < np.inf
