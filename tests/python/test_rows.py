"""Gathered rows of an array, apply(rows=), project(columns=) and update(rows=): the product with a copy of these
rows."""

import numpy as np
import pytest
from properties import FAMILIES, sketch, whole

A = whole(3000, 6)
LISTS = {
    "ascending": np.sort(np.random.default_rng(1).choice(3000, 1000, replace=False)),
    "any order, some twice": np.random.default_rng(2).integers(0, 3000, 1000),
    "int32": np.arange(0, 3000, 3, dtype="int32"),
    "uint16, backwards": np.arange(1000, dtype="uint16")[::-1],
    "big-endian": np.arange(1000).astype(">i8"),
    "a list": list(range(2000, 3000)),
}


@pytest.mark.parametrize("options", FAMILIES, ids=str)
def test_a_product_of_listed_rows_is_that_of_a_copy(options):
    S = sketch(**options)
    for rows in LISTS.values():
        assert (S.apply(A, rows=rows) == S @ A[rows]).all()
        assert (S.apply(A[:, 0], rows=rows) == S @ A[rows, 0]).all()
        X = np.asfortranarray(A).T
        assert (S.project(X, columns=rows) == S.project(np.ascontiguousarray(X[:, rows]))).all()


def test_results_go_where_they_are_told_and_lists_come_in_pieces():
    S, rows = sketch(), LISTS["ascending"]
    out = np.empty((200, 6), "float32", order="F")
    assert S.apply(A, out=out, rows=rows) is out and (out == S @ A[rows]).all()
    Y = S.apply(A, row0=0, rows=rows[:300])
    for row0 in range(300, 1000, 350):
        assert S.update(Y, A, row0, rows=rows[row0 : row0 + 350]) is Y
    assert (Y == out).all()  # integers: sums are exact
    assert (S.apply(A, row0=500, rows=[]) == 0).all()
    assert (S.update(Y, A, alpha=-1, rows=rows) == 0).all()


def test_a_mask_stands_for_the_numbers_of_its_true_elements():
    rows = LISTS["ascending"]
    mask = np.isin(np.arange(3000), rows)
    for given in (mask, mask.tolist(), np.repeat(mask, 2)[::2]):
        assert (S.apply(A, rows=given) == S @ A[rows]).all()
        assert (S.project(A.T, columns=given) == (S @ A[rows]).T).all()
    Y = S.apply(A[:1500], row0=0, rows=mask[:1500])
    assert (S.update(Y, A[1500:], int(mask[:1500].sum()), rows=mask[1500:]) == S @ A[rows]).all()


def test_half_types():
    S, rows = sketch(), LISTS["ascending"]
    half = A.astype("float16")
    assert (S.apply(half, rows=rows) == S @ half[rows]).all()
    out = np.empty((200, 6), "float32")
    assert (S.apply(half, out=out, rows=rows) == S @ A[rows]).all()


S = sketch()
WRONG = [
    (lambda: S.apply(A, rows=range(999)), ValueError, "999 rows are given, and S is 200 x 1000: there must be d"),
    (lambda: S.project(A.T, columns=[1]), ValueError, "1 columns are given"),
    (lambda: S.apply(A, rows=range(2001, 3001)), ValueError, r"rows.index\[999\] is 3000, but A has 3000 rows"),
    (lambda: S.apply(A, rows=range(-1, 999)), ValueError, r"rows.index\[0\] is -1"),
    (lambda: S.apply(A, row0=600, rows=range(500)), ValueError, r"rows 600 to 600 \+ 500 of the list are not all in S"),
    (lambda: S.apply(A, rows=np.arange(1000.0)), TypeError, "dtype float64, it must be of integers"),
    (lambda: S.apply(A, rows=np.ones(2999, bool)), ValueError, "a mask of rows has 2999 elements, and there are 3000"),
    (lambda: S.apply(A, rows=np.ones(3000, bool)), ValueError, "3000 rows are given, and S is 200 x 1000"),
    (lambda: S.project(A.T, columns=[True] * 1000), ValueError, "a mask of rows has 1000 elements"),
    (lambda: S.apply(A, rows=[2**64 - 1] * 1000), ValueError, "number 0 of a list of rows is 18446744073709551615"),
    (lambda: S.apply(A, rows=[2**64 + 5] * 1000), TypeError, "dtype object"),
    (lambda: S.apply(A, rows=np.zeros((1000, 1), int)), ValueError, r"shape \(1000, 1\), it must be a vector"),
    (lambda: S.apply([1.0], rows=[0]), ValueError, "1 rows are given, and S is 200 x 1000"),
]


@pytest.mark.parametrize("call, kind, message", WRONG, ids=[case[2] for case in WRONG])
def test_what_is_wrong_gets_a_message(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_sparse_and_dask_arrays_have_ways_of_their_own():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="rows are gathered from dense arrays"):
        S.apply(sparse.csr_array(A), rows=range(1000))
    dask = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="rows cannot be gathered from a Dask array"):
        S.apply(dask.from_array(A), rows=range(1000))


def test_torch():
    torch = pytest.importorskip("torch", "2.7")
    X = torch.from_numpy(A)
    for rows in [*LISTS.values(), torch.arange(0, 2000, 2), torch.arange(100, dtype=torch.uint8).repeat(10)]:
        Y = S.apply(X, rows=rows)
        assert torch.equal(Y, S @ X[np.asarray(rows, "int64")])
        assert torch.equal(S.project(X.T, columns=rows), Y.T)
    with pytest.raises(ValueError, match="index.0. is 5000, but A has 3000 rows"):
        S.apply(X, rows=torch.arange(5000, 6000))
    mask = torch.zeros(3000, dtype=torch.bool)
    mask[LISTS["ascending"]] = True
    assert torch.equal(S.apply(X, rows=mask), S.apply(X, rows=LISTS["ascending"]))
    assert torch.equal(S.apply(X, rows=mask.tolist()), S.apply(X, rows=LISTS["ascending"]))
    with pytest.raises(ValueError, match="a mask of rows has 5 elements, and there are 3000 rows"):
        S.apply(X, rows=torch.ones(5, dtype=torch.bool))
    with pytest.raises(TypeError, match="dtype torch.float32, it must be of integers"):
        S.apply(X, rows=torch.ones(1000))
    # The gradient goes to the gathered rows, and adds up where a row is repeated.
    rows = torch.from_numpy(LISTS["any order, some twice"])
    given, copied, G = X.clone().requires_grad_(), X.clone().requires_grad_(), torch.from_numpy(whole(200, 6, seed=3))
    S.apply(given, rows=rows).backward(G)
    (S @ copied[rows]).backward(G)
    assert torch.equal(given.grad, copied.grad) and given.grad.any()
    given = X.T.clone().requires_grad_()
    S.project(given, columns=rows).backward(G.T)
    assert torch.equal(given.grad, copied.grad.T)


def test_jax():
    jax = pytest.importorskip("jax")
    X = jax.device_put(A, jax.devices("cpu")[0])
    mask = jax.numpy.arange(3000) % 3 == 0
    assert (np.asarray(S.apply(X, rows=mask)) == S @ A[::3]).all()
    for rows in [LISTS["ascending"], LISTS["a list"], jax.numpy.arange(1000)]:
        Y = S.apply(X, rows=rows)
        assert isinstance(Y, jax.Array) and (np.asarray(Y) == S @ A[np.asarray(rows)]).all()
    with pytest.raises(ValueError, match="index.0. is 4294967296"):
        S.apply(X, rows=np.arange(1000) + 2**32)


def test_array_api():
    xp = pytest.importorskip("array_api_strict")
    Y = S.apply(xp.asarray(A), rows=xp.asarray(LISTS["ascending"]))
    assert (np.asarray(Y) == S @ A[LISTS["ascending"]]).all()
