"""Dask arrays: products are those of the array they stand for, whatever the chunks, and are computed later."""

import numpy as np
import pytest
from properties import dense, sketch, whole

da = pytest.importorskip("dask.array")

CHUNKS = [(1000, 6), (1, 6), (137, 4), (400, 1), ((1, 998, 1), (5, 1)), (1000, 1)]


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_whole_numbers_have_the_same_bits_for_all_chunks(chunks):
    S, A = sketch(), whole(1000, 6)
    lazy = da.from_array(A, chunks=chunks)
    Y = S @ lazy
    assert isinstance(Y, da.Array) and Y.shape == (200, 6) and Y.dtype == A.dtype
    assert Y.chunks[1] == lazy.chunks[1]
    assert np.array_equal(Y.compute(scheduler="synchronous"), S @ A)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("options", [{}, {"kappa": 2, "s": 2}, {"family": "sjlt"}, {"batch_major": True}], ids=str)
def test_every_type_is_summed_in_its_sum_type(dtype, options):
    S, A = sketch(**options), whole(1000, 6, dtype=dtype)
    Y = (S @ da.from_array(A, chunks=(77, 6))).compute()
    assert Y.dtype == dtype and np.array_equal(Y, (dense(S) @ A.astype("float64")).astype(dtype))


def test_half_types_are_rounded_once():
    """Three hundred chunks whose float16 parts would lose the ones against 2048."""
    S = sketch(k=1, d=300, M=1, s=1)
    signs = dense(S)[0]
    A = np.ones((300, 1), "float16") * signs[:, None].astype("float16")
    A[0] *= 2048
    Y = (S @ da.from_array(A, chunks=(1, 1))).compute(scheduler="synchronous")
    assert Y[0, 0] == np.float16(2048 + 299)


def test_the_order_of_the_sum_is_fixed():
    S, A = sketch(), np.random.default_rng(0).standard_normal((1000, 6), dtype="float32")
    lazy = da.from_array(A, chunks=(61, 6))
    first = (S @ lazy).compute(scheduler="synchronous")
    for _ in range(3):
        assert np.array_equal((S @ lazy).compute(scheduler="threads"), first)
    np.testing.assert_allclose(first, S @ A, atol=1e-4)


def test_vectors_batches_pieces_and_the_adjoint():
    S, A = sketch(), whole(1000, 6)
    lazy = da.from_array(A, chunks=(300, 4))
    assert np.array_equal((S @ lazy[:, 0]).compute(), S @ A[:, 0])
    assert np.array_equal(S.project(lazy.T).compute(), S.project(np.ascontiguousarray(A.T)))
    assert np.array_equal(S.apply(lazy[600:], row0=600).compute(), S.apply(A[600:], row0=600))
    Y = whole(200, 6, seed=1)
    X = S.T @ da.from_array(Y, chunks=(50, 4))
    assert X.shape == (1000, 6) and np.array_equal(X.compute(), S.T @ Y)


def test_nothing_is_computed_before_it_is_asked_for():
    touched = []

    def make(block_info=None):
        touched.append(1)
        return np.ones((100, 3), "float32")

    lazy = da.map_blocks(make, chunks=((100,) * 10, (3,)), dtype="float32", meta=np.empty((0, 0), "float32"))
    Y = sketch() @ lazy
    assert not touched
    assert np.array_equal(Y.compute(scheduler="synchronous"), sketch() @ np.ones((1000, 3), "float32"))
    assert len(touched) == 10


def test_sparse_chunks():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    S, A = sketch(), whole(1000, 6) * (whole(1000, 6, seed=2) > 2)
    lazy = da.from_array(A, chunks=(250, 6)).map_blocks(scipy_sparse.csr_matrix)
    assert np.array_equal((S @ lazy).compute(scheduler="synchronous"), S @ A)


def test_what_is_wrong_gets_a_message():
    S, lazy = sketch(), da.from_array(whole(1000, 6), chunks=(300, 6))
    for call, kind, message in [
        (lambda: S @ lazy[:5], ValueError, "A has 5 rows, and S is 200 x 1000"),
        (lambda: S @ lazy.astype(complex), TypeError, "dtype is complex128"),
        (lambda: S @ lazy.astype("longdouble"), TypeError, "dtype is float128"),
        (lambda: S.apply(lazy, row0=1), ValueError, r"rows 1 to 1 \+ 1000 of A are not all in S"),
        (lambda: S @ lazy[lazy[:, 0] > 0], ValueError, "chunks of unknown size|A has nan rows"),
        (lambda: S.update(np.zeros((200, 6), "float32"), lazy), TypeError, "computed later"),
        (lambda: S @ lazy[None], ValueError, "vectors and matrices"),
    ]:
        with pytest.raises(kind, match=message):
            call()
