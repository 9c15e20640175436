"""lstsq, qr, svd, pca, leverage and plan: what LAPACK finds, for arrays of NumPy and SciPy in host memory.

Other frameworks are in test_solvers_arrays.py, Preconditioner in test_preconditioner.py.
"""

import numpy as np
import pytest

import flashsketch as fs

try:
    fs.lstsq(np.ones((3, 1)), np.ones(3))
except fs.BackendError as error:
    pytest.skip(f"solvers cannot run here: {error}", allow_module_level=True)

D, N = 2000, 15
UNIT = {"float64": 2.0**-53, "float32": 2.0**-24}


def matrix(d=D, n=N, condition=1e3, seed=1, dtype="float64"):
    """Singular values from 1 to 1 / condition, with singular vectors in no special direction."""
    rng = np.random.default_rng(seed)
    r = min(d, n)
    U, V = np.linalg.qr(rng.standard_normal((d, r)))[0], np.linalg.qr(rng.standard_normal((n, r)))[0]
    return (U * np.logspace(0, -np.log10(condition), r) @ V.T).astype(dtype)


def problem(d=D, n=N, rhs=None, condition=1e3, dtype="float64"):
    A, rng = matrix(d, n, condition, dtype=dtype), np.random.default_rng(2)
    shape = (d,) if rhs is None else (d, rhs)
    return A, (A @ rng.standard_normal((n, *shape[1:])) + 0.1 * rng.standard_normal(shape)).astype(dtype)


# least squares --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype,error", [("float64", 1e-11), ("float32", 2e-3)])
@pytest.mark.parametrize("rhs", [None, 1, 4])
@pytest.mark.parametrize("method", ["auto", "iterate", "normal", "direct"])
def test_lstsq_is_numpys(dtype, error, rhs, method):
    A, b = problem(rhs=rhs, dtype=dtype)
    found = fs.lstsq(A, b, method=method, measure_error=True)
    exact = np.linalg.lstsq(A.astype("float64"), b.astype("float64"), rcond=None)[0]
    assert found.x.shape == exact.shape and found.x.dtype == dtype
    np.testing.assert_allclose(found.x, exact, rtol=error, atol=error * abs(exact).max())
    gap = A.astype("float64") @ exact - b
    np.testing.assert_allclose(found.residual, np.linalg.norm(gap), rtol=1e-6)
    np.testing.assert_allclose(found.norm, np.linalg.norm(exact), rtol=error)
    assert found.rank == N and 300 < found.condition < 3000 and found.converged and found.note == ""
    assert found.true_backward_error < 20 * UNIT[dtype] and found.backward_error < 20 * UNIT[dtype]
    assert found.reads >= 2 and found.iterations <= 100 and found.seconds > 0
    assert found.method == method or method == "auto"


@pytest.mark.parametrize("d,n", [(1, 1), (5, 1), (3000, 1), (20, 20), (200, 199), (10, 25), (1, 8), (2000, 100)])
def test_lstsq_of_every_shape(d, n):
    A, b = problem(d, n, condition=100)
    found = fs.lstsq(A, b)
    np.testing.assert_allclose(found.x, np.linalg.lstsq(A, b, rcond=None)[0], rtol=1e-9, atol=1e-11)
    assert found.rank == min(d, n)


def layouts(A):
    d, n = A.shape
    wide, tall = np.full((d, 2 * n), np.nan, A.dtype), np.full((3 * d, n), np.nan, A.dtype)
    wide[:, ::2], tall[::3] = A, A
    return {"C": A, "F": np.asfortranarray(A), "columns": wide[:, ::2], "rows": tall[::3],
            "upwards": np.ascontiguousarray(A[::-1])[::-1], "backwards": np.ascontiguousarray(A[:, ::-1])[:, ::-1],
            "swapped": A.astype(A.dtype.newbyteorder())}


@pytest.mark.parametrize("layout", layouts(np.ones((1, 1))))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_layout_gives_the_same(layout, dtype):
    A, b = problem(rhs=3, dtype=dtype)
    B, error = layouts(b)[layout], 1e-10 if dtype == "float64" else 1e-4
    given = layouts(A)[layout]
    np.testing.assert_allclose(fs.lstsq(given, B).x, fs.lstsq(A, b).x, rtol=error, atol=error)
    Q, R = fs.qr(given)
    np.testing.assert_allclose(R, fs.qr(A).R, atol=error)
    np.testing.assert_allclose(Q @ R, A, atol=error)
    np.testing.assert_allclose(fs.svd(given, 3).s, fs.svd(A, 3).s, rtol=error)
    np.testing.assert_allclose(fs.pca(given, 2).mean, A.mean(axis=0, dtype="float64"), atol=1e-8)
    np.testing.assert_allclose(fs.leverage(given, exact=True).scores, fs.leverage(A, exact=True).scores, atol=error)


@pytest.mark.parametrize("lam", [1e-8, 0.5, 1e6])
def test_lstsq_with_lambda(lam):
    A, b = problem(rhs=2)
    found = fs.lstsq(A, b, lam=lam)
    stacked = np.vstack([A, np.sqrt(lam) * np.eye(N)]), np.vstack([b, np.zeros((N, 2))])
    np.testing.assert_allclose(found.x, np.linalg.lstsq(*stacked, rcond=None)[0], rtol=1e-8, atol=1e-12)


def test_lstsq_of_dependent_columns_is_the_shortest_solution():
    A, b = problem()
    A[:, 3] = A[:, 5] + A[:, 6]
    found = fs.lstsq(A, b)
    exact = np.linalg.lstsq(A, b, rcond=1e-12)[0]
    assert found.rank == N - 1 and "rank 14 of 15" in found.note
    np.testing.assert_allclose(found.x, exact, rtol=1e-8, atol=1e-9)
    assert not fs.lstsq(0 * A, b).x.any() and fs.lstsq(0 * A, b).rank == 0
    for method in ("auto", "iterate", "direct"):
        cut = fs.lstsq(matrix(condition=1e6), b, rcond=2e-3, method=method)
        assert cut.rank == (np.logspace(0, -6, N) > 2e-3).sum()
        exact = np.linalg.lstsq(matrix(condition=1e6), b, rcond=2e-3)[0]
        np.testing.assert_allclose(cut.x, exact, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("condition", [1e6, 1e10, 1e13])
def test_lstsq_of_an_ill_conditioned_matrix_is_as_good_as_lapacks(condition):
    A, b = problem(condition=condition)
    found, theirs = fs.lstsq(A, b, measure_error=True), np.linalg.lstsq(A, b, rcond=None)[0]
    ours, smallest = (np.linalg.norm(A.T @ (A @ x - b)) for x in (found.x, theirs))
    rounding = UNIT["float64"] * np.linalg.norm(A) ** 2 * np.linalg.norm(found.x)  # of A x, times A'
    assert found.rank == N and ours < 10 * (smallest + rounding)
    assert found.true_backward_error < 100 * UNIT["float64"]


def test_half_types_have_float32_answers():
    A, b = problem(condition=10)
    for dtype in ("float16", "bfloat16"):
        if dtype == "bfloat16":
            dtype = pytest.importorskip("ml_dtypes").bfloat16
        half, right = (100 * A).astype(dtype), (100 * b).astype(dtype)
        exact = np.linalg.lstsq(half.astype("float64"), right.astype("float64"), rcond=None)[0]
        found = fs.lstsq(half, right)
        assert found.x.dtype == "float32"
        np.testing.assert_allclose(found.x, exact, rtol=1e-5, atol=1e-6)
        Q, R = fs.qr(half)
        assert Q.dtype == R.dtype == "float32"
        np.testing.assert_allclose(Q @ R, half.astype("float32"), atol=1e-5)
        np.testing.assert_allclose(fs.svd(half).s, np.linalg.svd(half.astype("float64"))[1], rtol=1e-5)


def test_a_and_b_of_different_types():
    A, b = problem()
    assert fs.lstsq(A.astype("float32"), b).x.dtype == "float64"
    assert fs.lstsq(A, b.astype("float32")).x.dtype == "float64"
    assert fs.lstsq(A.astype("float16"), b.astype("float32")).x.dtype == "float32"
    counts = (1000 * A).astype("int64")
    exact = np.linalg.lstsq(counts.astype("float64"), b, rcond=None)[0]
    for given in (counts, counts.tolist(), counts.astype("float64").tolist()):
        np.testing.assert_allclose(fs.lstsq(given, b.tolist()).x, exact, rtol=1e-9)
    assert fs.qr(counts.astype("int16")).Q.dtype == "float32"
    pandas = pytest.importorskip("pandas")
    found = fs.lstsq(pandas.DataFrame(A), pandas.Series(b))
    assert type(found.x) is np.ndarray
    np.testing.assert_allclose(found.x, fs.lstsq(A, b).x, rtol=1e-10)


def test_a_sketch_of_the_callers_and_seeds():
    A, b = problem()
    exact = np.linalg.lstsq(A, b, rcond=None)[0]
    S = fs.Sketch(k=60, d=D, family="sjlt")
    found = fs.lstsq(A, b, sketch=S, method="iterate")
    assert found.k == 60
    np.testing.assert_allclose(found.x, exact, rtol=1e-9)
    assert fs.qr(A, mode="r", sketch=S).k == fs.qr(A, sketch=S).k == 60
    np.testing.assert_allclose(fs.leverage(A, exact=True, sketch=S).sum, N)
    first, second = (fs.leverage(A, seed=seed).scores for seed in (1, 2))
    assert (first != second).any() and (first == fs.leverage(A, seed=1).scores).all()
    assert (fs.svd(A, 3, power_steps=0, seed=1).s != fs.svd(A, 3, power_steps=0, seed=2).s).any()


def test_a_tolerance_that_is_large_or_cannot_be_reached():
    A, b = problem(20000, N)
    rough = fs.lstsq(A, b, tolerance=1e-3, method="iterate")
    exact = fs.lstsq(A, b, method="iterate")
    assert rough.converged and rough.iterations < exact.iterations
    never = fs.lstsq(A, b, tolerance=1e-30, method="iterate")
    assert not never.converged and "above the tolerance of 1e-30" in never.note
    np.testing.assert_allclose(never.x, exact.x, rtol=1e-9)
    few = fs.lstsq(A, b, max_iterations=1, method="iterate")
    assert few.iterations == 1 and not few.converged and "max_iterations" in few.note


def test_progress_is_reported_and_its_exception_comes_through():
    A, b = problem(50000)
    seen = []
    fs.lstsq(A, b, method="iterate", progress=lambda share, doing: seen.append((share, doing)))
    assert seen and all(0 <= share <= 1 and isinstance(doing, str) for share, doing in seen)
    assert "sketch" in [doing for _, doing in seen]
    for call in (lambda f: fs.lstsq(A, b, method="iterate", progress=f), lambda f: fs.qr(A, progress=f),
                 lambda f: fs.leverage(A, progress=f)):
        with pytest.raises(ZeroDivisionError):
            call(lambda share, doing: 1 / 0)
        with pytest.raises(TypeError, match="progress is a int, it must be a function"):
            call(7)


# QR -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype,condition", [("float64", 1), ("float64", 1e14), ("float32", 1), ("float32", 1e6)])
@pytest.mark.parametrize("pivoting", [False, True])
def test_qr_is_orthogonal_whatever_the_condition(dtype, condition, pivoting):
    A = matrix(condition=condition, dtype=dtype)
    found = fs.qr(A, pivoting=pivoting, rcond=1e-15 if pivoting else None)
    Q, R = found.Q, found.R
    assert Q.shape == (D, N) and R.shape == (N, N) and Q.dtype == R.dtype == dtype
    of = A[:, found.pivots] if pivoting else A
    unit = UNIT[dtype]
    assert np.linalg.norm(Q.astype("float64").T @ Q - np.eye(N)) < 10 * N * unit
    assert np.linalg.norm(Q.astype("float64") @ R - of) < 10 * N * unit * np.linalg.norm(A)
    assert not np.tril(R, -1).any() and (np.diag(R) > 0).all() and found.rank == N
    assert found.orthogonality < 10 * N * 2.0**-53 and condition / 3 < found.condition < 30 * condition + 30
    if pivoting:
        assert sorted(found.pivots) == list(range(N)) and (np.diff(np.diag(R)) <= np.diag(R)[:-1]).all()
    else:
        theirs = np.linalg.qr(A.astype("float64"))[1]
        np.testing.assert_allclose(abs(R), abs(theirs), atol=1e3 * unit)


def test_qr_comes_apart_as_numpys_and_scipys():
    A = matrix()
    Q, R = fs.qr(A)
    assert (Q == fs.qr(A).Q).all() and (R == fs.qr(A).R).all()
    Q, R, pivots = fs.qr(A, pivoting=True)
    assert pivots.dtype == "int64"
    np.testing.assert_allclose(Q @ R, A[:, pivots], atol=1e-13)
    (alone,) = fs.qr(A, mode="r")
    np.testing.assert_allclose(alone, fs.qr(A).R, atol=1e-14)
    found = fs.qr(A, mode="r", pivoting=True)
    assert found.Q is None and np.isnan(found.orthogonality) and (found.pivots == pivots).all()


@pytest.mark.parametrize("d,n", [(1, 1), (7, 1), (30, 30), (1000, 1), (130, 64)])
def test_qr_of_every_shape(d, n):
    A = matrix(d, n, 100)
    for pivoting in (False, True):
        found = fs.qr(A, pivoting=pivoting)
        of = A[:, found.pivots] if pivoting else A
        np.testing.assert_allclose(found.Q @ found.R, of, atol=1e-13)
        np.testing.assert_allclose(found.Q.T @ found.Q, np.eye(n), atol=1e-13)


def test_dependent_columns_need_pivots():
    A = matrix(condition=10)
    A[:, 4], A[:, 9] = A[:, 2], A[:, 1] - A[:, 7]
    with pytest.raises(fs.InvalidArgument, match="13 of 15 are independent; pivot"):
        fs.qr(A)
    found = fs.qr(A, pivoting=True)
    assert found.rank == 13 and not found.Q[:, 13:].any() and not found.R[13:].any()
    np.testing.assert_allclose(found.Q @ found.R, A[:, found.pivots], atol=1e-13)
    np.testing.assert_allclose(found.Q[:, :13].T @ found.Q[:, :13], np.eye(13), atol=1e-13)


def test_q_in_place_of_a():
    for order in "CF":
        A = np.array(matrix(), order=order)
        whole = A.copy()
        Q, R = fs.qr(A, overwrite_a=True)
        assert Q is A
        np.testing.assert_allclose(Q @ R, whole, atol=1e-13)
    frozen = matrix()
    frozen.flags.writeable = False
    for A, kind, message in [
        (frozen, ValueError, "not writeable"),
        (matrix().astype("float16"), TypeError, "needs a float32 or float64 A, and A is float16"),
        (matrix().tolist(), TypeError, "overwrite_a needs a dense"),
        ((100 * matrix()).astype(int), TypeError, "overwrite_a needs a dense"),
    ]:
        with pytest.raises(kind, match=message):
            fs.qr(A, overwrite_a=True)
    with pytest.raises(ValueError, match="overwrite_a is for Q, which mode 'r' does not compute"):
        fs.qr(matrix(), mode="r", overwrite_a=True)


# singular values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d,n", [(D, N), (N, D), (20, 20), (1, 6), (6, 1), (1, 1)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_all_singular_values_are_numpys(d, n, dtype):
    A, r, error = matrix(d, n, dtype=dtype), min(d, n), 1e-12 if dtype == "float64" else 1e-5
    found = fs.svd(A)
    U, s, Vt = found
    theirs = np.linalg.svd(A.astype("float64"), full_matrices=False)
    assert U.shape == (d, r) and s.shape == (r,) and Vt.shape == (r, n) and found.rank == r and found.sketch == 0
    assert U.dtype == s.dtype == Vt.dtype == dtype
    np.testing.assert_allclose(s, theirs[1], atol=error)
    np.testing.assert_allclose(U * s @ Vt, A, atol=10 * error)
    for basis in (U.astype("float64"), Vt.T.astype("float64")):
        np.testing.assert_allclose(basis.T @ basis, np.eye(r), atol=30 * r * UNIT[dtype])
    assert (Vt[np.arange(r), abs(Vt).argmax(1)] > 0).all()
    np.testing.assert_allclose(found.norm, np.linalg.norm(A), rtol=1e-5)
    alone = fs.svd(A, compute_uv=False)
    assert alone.U is None and alone.Vt is None and len(list(alone)) == 1
    np.testing.assert_allclose(alone.s, s, atol=error)


@pytest.mark.parametrize("d,n", [(3000, 120), (120, 3000), (400, 400)])
@pytest.mark.parametrize("options", [{}, {"power_steps": 0}, {"one_read": True}, {"oversampling": 25}], ids=str)
def test_a_low_rank_svd_is_near_the_best_and_knows_its_error(d, n, options):
    A = matrix(d, n, 1e6)
    best = np.linalg.norm(np.logspace(0, -6, min(d, n))[12:])
    found = fs.svd(A, 12, **options)
    error = np.linalg.norm(A - found.U * found.s @ found.Vt)
    assert best * (1 - 1e-9) <= error < 1.5 * best
    assert found.low <= error * (1 + 1e-7) and error <= found.high * (1 + 1e-7) and found.confidence == 0.99
    assert found.sketch >= 22 and (found.reads == 1 or "one_read" not in options)
    np.testing.assert_allclose(found.U.T @ found.U, np.eye(12), atol=1e-12)
    np.testing.assert_allclose(found.Vt @ found.Vt.T, np.eye(12), atol=1e-12)


def test_singular_values_that_are_0():
    A = matrix(condition=10)
    A[:, 3] = 0
    found = fs.svd(A)
    assert found.s[-1] == 0 and not found.U[:, -1].any() and found.s[-2] > 0.01
    np.testing.assert_allclose(found.Vt @ found.Vt.T, np.eye(N), atol=1e-12)
    assert not fs.svd(0 * A).s.any()


@pytest.mark.parametrize("count", [None, 4])
@pytest.mark.parametrize("d,n", [(D, N), (12, 80)])
def test_pca_is_the_svd_of_the_centred_matrix(count, d, n):
    A = 3 + matrix(d, n, 1e3)
    found, centred = fs.pca(A, count), A - A.mean(0)
    theirs, r = np.linalg.svd(centred, full_matrices=False), count or min(d, n)
    np.testing.assert_allclose(found.mean, A.mean(0), rtol=1e-13)
    np.testing.assert_allclose(found.s, theirs[1][:r], atol=1e-11)
    np.testing.assert_allclose(found.explained_variance, theirs[1][:r] ** 2 / (d - 1), atol=1e-13)
    share = theirs[1] ** 2 / (theirs[1] ** 2).sum()
    np.testing.assert_allclose(found.explained_variance_ratio, share[:r], atol=1e-11)
    keep = found.s > 1e-3
    np.testing.assert_allclose((found.U * found.s)[:, keep], (centred @ found.components.T)[:, keep], atol=1e-9)
    assert found.components.shape == (r, n) and fs.pca(A, count, compute_u=False).U is None
    assert found.rank == r and (found.sketch == 0) == (r == min(d, n) or r + 10 >= min(d, n))


# leverage scores ------------------------------------------------------------------------------------------------------


def test_leverage_scores():
    A = matrix(20000, 10, 1e4)
    A[77] += 30
    Q = np.linalg.qr(A)[0]
    scores = (Q * Q).sum(1)
    found = fs.leverage(A, exact=True)
    np.testing.assert_allclose(found.scores, scores, rtol=1e-8)
    assert found.rank == 10 and found.row == 77 and found.error == 0 and np.isclose(found.sum, 10)
    assert found.largest == found.scores[77] == found.scores.max()
    for wanted in (None, 0.3):
        estimated = fs.leverage(A, error=wanted)
        spread = np.std(estimated.scores / scores - 1)
        assert estimated.row == 77 and estimated.reads == 2 and estimated.error <= (wanted or 0.1) * 1.01
        assert 0.5 * estimated.error < spread < 1.5 * estimated.error
    A[:, 3] = A[:, 5]
    assert fs.leverage(A, exact=True).rank == 9 and np.isclose(fs.leverage(A, exact=True).sum, 9)


# a plan ---------------------------------------------------------------------------------------------------------------


def test_a_plan_has_the_error_that_was_asked_for():
    A = matrix(20000, 20, 1e3)
    for error, options in [(0.5, {}), (0.3, {"probability": 0.01}), (0.5, {"coherent": True})]:
        plan = fs.plan(20, error, d=20000, **options)
        S = plan.sketch(seed=5)
        assert S.shape == (plan.k, 20000) and S.spec["kappa"] == plan.kappa and S.spec["s"] == plan.s
        assert S.spec["seed"] == 5 and S.spec["shuffle"] == "rows"
        assert fs.ose(S, A).error < error and plan.typical < plan.exceeded <= error
        assert f"{plan.k / 20:.3g}" in plan.reason and plan.d == 20000 and plan.error == error
        assert plan.probability == options.get("probability", 0.05)
    assert fs.plan(20, 0.3, d=20000).k > fs.plan(20, 0.5, d=20000).k
    with pytest.raises(fs.InvalidArgument, match="no k up to d = 300 gives an error of at most 0.1 for n = 50"):
        fs.plan(50, 0.1, d=300)
    with pytest.raises(ValueError, match="d is not given, and the plan has none"):
        fs.plan(20, 0.5).sketch()
    with pytest.raises(TypeError, match="plan: n is 2.5"):
        fs.plan(2.5, 0.5)
    with pytest.raises(fs.InvalidArgument, match="error is 1.5"):
        fs.plan(20, 1.5)


def test_tasks_take_a_plan_in_place_of_a_sketch():
    A, b = problem(5000)
    plan = fs.plan(N, 0.6)
    S = plan.sketch(5000)
    assert (fs.solve(plan, A, b).x == fs.solve(S, A, b).x).all()
    assert (fs.ridge(plan, A, b, 0.5).x == fs.ridge(S, A, b, 0.5).x).all()
    assert (fs.gram(plan, A).G == fs.gram(S, A).G).all()
    assert fs.ose(plan, A).error == fs.ose(S, A).error
    assert fs.ose(fs.plan(N, 0.6, d=5000), r=5).error > 0
    with pytest.raises(ValueError, match="the plan has none"):
        fs.ose(plan, r=5)
    with pytest.raises(TypeError, match="it must be a Sketch, or a Plan"):
        fs.solve(7, A, b)


# sparse matrices ------------------------------------------------------------------------------------------------------


def sparse_problem(scipy_sparse, dtype="float64", d=D, n=N):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((d, n)) * (rng.random((d, n)) < 0.3) * np.logspace(0, -3, n)
    return A.astype(dtype), (A @ np.ones(n) + rng.standard_normal(d)).astype(dtype)


KINDS = "csr_matrix csc_matrix csr_array csc_array coo_matrix bsr_matrix lil_matrix".split()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_matrices_give_the_answers_of_dense_ones(name, dtype):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    A, b = sparse_problem(scipy_sparse, dtype)
    X, error = getattr(scipy_sparse, name)(A), 1e-9 if dtype == "float64" else 1e-3
    found = fs.lstsq(X, b)
    assert type(found.x) is np.ndarray and found.x.dtype == dtype and found.rank == N
    np.testing.assert_allclose(found.x, fs.lstsq(A, b).x, rtol=error)
    Q, R = fs.qr(X)
    assert type(Q) is np.ndarray and Q.dtype == dtype
    np.testing.assert_allclose(Q @ R, A, atol=error)
    U, s, Vt = fs.svd(X, 3)
    np.testing.assert_allclose(s, fs.svd(A, 3).s, rtol=error)
    np.testing.assert_allclose(fs.pca(X, 3).s, fs.pca(A, 3).s, rtol=error)
    np.testing.assert_allclose(fs.leverage(X, exact=True).scores, fs.leverage(A, exact=True).scores, atol=error)


def test_sparse_whole_numbers_long_indices_and_refusals():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    A, b = sparse_problem(scipy_sparse)
    counts = scipy_sparse.csr_matrix((100 * A).astype("int64"))
    np.testing.assert_allclose(fs.lstsq(counts, b).x, fs.lstsq(counts.toarray(), b).x, rtol=1e-8)
    X = scipy_sparse.csr_matrix(A)
    X.indices, X.indptr = X.indices.astype("int64"), X.indptr.astype("int64")
    np.testing.assert_allclose(fs.lstsq(X, b).x, fs.lstsq(A, b).x, rtol=1e-8)
    empty = fs.lstsq(scipy_sparse.csr_matrix((D, N)), b)
    assert empty.rank == 0 and not empty.x.any()
    with pytest.raises(TypeError, match=r"b is sparse: give b.toarray\(\)"):
        fs.lstsq(A, scipy_sparse.csr_matrix(b[:, None]))
    with pytest.raises(TypeError, match="overwrite_a needs a dense"):
        fs.qr(X, overwrite_a=True)


# refusals, threads ----------------------------------------------------------------------------------------------------

SOLVERS = {
    "lstsq": lambda A: fs.lstsq(A, np.ones(len(A))),
    "qr": fs.qr,
    "r": lambda A: fs.qr(A, mode="r", pivoting=True),
    "svd": fs.svd,
    "low rank": lambda A: fs.svd(A, 2),
    "one read": lambda A: fs.svd(A, 2, one_read=True),
    "pca": lambda A: fs.pca(A, 2),
    "leverage": fs.leverage,
    "exact leverage": lambda A: fs.leverage(A, exact=True),
}


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(name, bad):
    for d, n in ((D, N), (40, N)):
        A = matrix(d, n)
        A[d // 2, 3] = bad
        with pytest.raises(fs.InvalidArgument, match="not finite"):
            SOLVERS[name](A)
    if name == "lstsq":
        for shape in (D, (D, 2)):
            b = np.ones(shape)
            b.flat[-1] = bad
            with pytest.raises(fs.InvalidArgument, match="of B has an element that is not finite"):
                fs.lstsq(matrix(), b)


def test_what_is_wrong_is_explained():
    A, b = problem()
    for call, kind, message in [
        (lambda: fs.lstsq(A, b[:-1]), ValueError, "b has 1999 rows, and A is 2000 x 15: b must have 2000"),
        (lambda: fs.lstsq(A, None), TypeError, "b is None"),
        (lambda: fs.lstsq(A[None], b), ValueError, r"A has shape \(1, 2000, 15\); lstsq takes vectors and matrices"),
        (lambda: fs.lstsq(A, b[None, None]), ValueError, r"b has shape \(1, 1, 2000\)"),
        (lambda: fs.lstsq(A, b, method="svd"), ValueError, "method is 'svd', it must be one of auto, iterate, normal"),
        (lambda: fs.lstsq(A, b, lam=-1), fs.InvalidArgument, "lambda = -1, it must be at least 0"),
        (lambda: fs.lstsq(A, b, lam=np.nan), fs.InvalidArgument, "lambda = "),
        (lambda: fs.lstsq(A, b, lam="x"), TypeError, "lstsq: lam is 'x', it must be a number"),
        (lambda: fs.lstsq(A, b, rcond=1), fs.InvalidArgument, "rcond = 1, it must be at least 0 and below 1"),
        (lambda: fs.lstsq(A, b, tolerance=-1), fs.InvalidArgument, "tolerance = -1"),
        (lambda: fs.lstsq(A, b, max_iterations=0), ValueError, "max_iterations is 0, it must be from 1"),
        (lambda: fs.lstsq(A, b, seed=-1), ValueError, "lstsq: seed is -1"),
        (lambda: fs.lstsq(A, b, sketch=7), TypeError, "lstsq: sketch is a int, it must be a Sketch"),
        (lambda: fs.lstsq(A, b, sketch=fs.Sketch(9, D)), fs.InvalidArgument, "has k = 9 rows.*at least its 15 columns"),
        (lambda: fs.lstsq(A, b, sketch=fs.Sketch(90, 7)), fs.InvalidArgument, "for d = 7.*A has 2000 rows"),
        (lambda: fs.lstsq(A + 0j, b), TypeError, "dtype is complex128"),
        (lambda: fs.lstsq(A[:0], b[:0]), fs.InvalidArgument, "A is 0 x 15; it must have at least one row"),
        (lambda: fs.lstsq(A, np.empty((D, 0))), fs.InvalidArgument, "B has no columns"),
        (lambda: fs.qr(A, mode="full"), ValueError, "mode is 'full', it must be 'reduced' or 'r'"),
        (lambda: fs.qr(A[:10]), fs.InvalidArgument, "A is 10 x 15; it must have at least as many rows as columns"),
        (lambda: fs.leverage(A[:10]), fs.InvalidArgument, "A is 10 x 15"),
        (lambda: fs.leverage(A, error=-1), fs.InvalidArgument, "error is -1"),
        (lambda: fs.svd(A, 16), ValueError, "svd: rank is 16, it must be from 1 to 15"),
        (lambda: fs.svd(A, 0), ValueError, "svd: rank is 0"),
        (lambda: fs.svd(A, 2.5), TypeError, "svd: rank is 2.5"),
        (lambda: fs.svd(A, 2, oversampling=0), ValueError, "oversampling is 0"),
        (lambda: fs.svd(A, 2, power_steps=-1), ValueError, "power_steps is -1"),
        (lambda: fs.svd(A, 2, power_steps=1, one_read=True), fs.InvalidArgument, "power_steps"),
        (lambda: fs.pca(A, 16), ValueError, "pca: n_components is 16, it must be from 1 to 15"),
        (lambda: fs.qr(np.ma.masked_array(A)), TypeError, "no masked arrays"),
    ]:
        with pytest.raises(kind, match=message):
            call()


def test_vectors_are_columns():
    v, b = np.arange(1.0, 40), np.ones(39)
    np.testing.assert_allclose(fs.lstsq(v, b).x, [v @ b / (v @ v)])
    Q, R = fs.qr(v)
    assert Q.shape == (39, 1) and np.isclose(R[0, 0], np.linalg.norm(v))
    assert np.isclose(fs.svd(v).s[0], np.linalg.norm(v))


@pytest.mark.parametrize("name", SOLVERS)
def test_the_same_call_has_the_same_bits(name):
    A = matrix(6000, 30, 1e4)

    def answer():
        found = SOLVERS[name](A)
        return [part for part in vars(found).values() if isinstance(part, np.ndarray)]

    first = answer()
    for _ in range(5):
        for ours, theirs in zip(answer(), first):
            assert (ours == theirs).all()


def test_calls_of_several_threads():
    import concurrent.futures

    A, b = problem(20000)
    want, R = fs.lstsq(A, b).x, fs.qr(A).R
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: fs.lstsq(A, b).x if i % 2 else fs.qr(A).R, range(24)))
    for number, array in enumerate(found):
        assert (array == (want if number % 2 else R)).all()


def test_the_interpreter_is_released_during_a_call():
    import threading

    A, _ = problem(100000, 40)
    ticks, running = [0], True

    def tick():
        while running:
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks[0]
    fs.svd(A, compute_uv=False)
    during = ticks[0] - before
    running = False
    thread.join()
    assert during > 100, f"another thread ran {during} times during a call"
