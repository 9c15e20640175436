"""SciPy's sparse matrices give the products of the dense ones; S written out is S."""

import numpy as np
import pytest
from laws import FAMILIES, dense, sketch

sparse = pytest.importorskip("scipy.sparse")


def scipy_linear_operator(A):
    from scipy.sparse.linalg import aslinearoperator

    return aslinearoperator(A)


def matrix(kind, dtype="float32", rows=1000, cols=40):
    """A sparse matrix of whole numbers, where some lines are empty."""
    rng = np.random.default_rng(3)
    full = rng.integers(-4, 5, (rows, cols)) * (rng.random((rows, cols)) < 0.05)
    return kind(full.astype(dtype))


KINDS = "csr_matrix csc_matrix csr_array csc_array coo_matrix bsr_matrix lil_matrix".split()


@pytest.mark.parametrize("kind", [getattr(sparse, name) for name in KINDS], ids=KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_products_equal_dense_ones(kind, dtype):
    S, A = sketch(), matrix(kind, dtype)
    expected = dense(S) @ A.toarray().astype("float64")
    Y = S @ A
    assert isinstance(Y, np.ndarray) and Y.dtype == dtype and (Y == expected).all()
    X = kind(A.T)
    assert (S.project(X) == expected.T).all() and S.project(X).shape == (40, 200)


def test_indices_of_64_bits_and_repeated_ones():
    S = sketch()
    A = sparse.coo_matrix((np.array([1.0, 2.0, 4.0]), ([5, 5, 999], [0, 0, 1])), shape=(1000, 2)).tocsr(copy=False)
    A.indices, A.indptr = A.indices.astype("int64"), A.indptr.astype("int64")
    assert (S @ A == dense(S) @ A.toarray()).all()


def test_arrays_with_room_to_spare_and_with_strides():
    S, A = sketch(), matrix(sparse.csr_matrix)
    expected = S @ A
    roomy = A.copy()
    roomy.data, roomy.indices = np.append(A.data, 99), np.append(A.indices, 0).astype(A.indices.dtype)
    assert (S @ roomy == expected).all()
    strided = A.copy()
    strided.data, strided.indices = np.repeat(A.data, 2)[::2], np.repeat(A.indices, 2)[::2]
    assert (S @ strided == expected).all()


def test_sparse_pieces_and_out():
    S, A = sketch(), matrix(sparse.csr_matrix)
    Y = S.apply(A[:300], out=np.empty((200, 40), "float32"), row0=0)
    assert (S.update(Y, A[300:], 300) == S @ A).all()


@pytest.mark.parametrize("options", FAMILIES[:6], ids=str)
def test_s_written_out_is_sorted_and_has_unit_columns(options):
    S = sketch(**options)
    M = S.to_scipy("float32")
    assert M.shape == S.shape and M.dtype == "float32" and M.has_sorted_indices and M.has_canonical_format
    if options.get("family") != "blockrow":  # which is unbiased, but samples rows
        np.testing.assert_allclose(np.square(S.to_scipy().toarray()).sum(0), 1, rtol=1e-12)


def test_what_is_wrong_gets_a_sentence():
    S, A = sketch(), matrix(sparse.csr_matrix)
    with pytest.raises(ValueError, match="A has 999 rows, and S is 200 x 1000"):
        S @ A[:999]
    with pytest.raises(TypeError, match="S.T @ Y needs a dense Y"):
        S.T @ A
    with pytest.raises(TypeError, match="dtype is int64"):
        S @ matrix(sparse.csr_matrix, "int64")
    with pytest.raises(TypeError, match="is dense and does not go into"):
        S.apply(A, out=A)
    short = A.copy()
    short.data = short.data[:-1]
    with pytest.raises(ValueError, match=f"a sparse matrix of 1000 lines and {A.nnz} nonzeros has arrays of 1001"):
        S @ short
    with pytest.raises(TypeError, match="LinearOperator is no array that a sketch takes"):
        S @ scipy_linear_operator(A)
    bad = A.copy()
    bad.indices[0] = 40
    with pytest.raises(ValueError, match=r"A.index\[0\] is 40, it must be from 0 to 39"):
        S @ bad
