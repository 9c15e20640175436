"""SciPy's sparse matrices give the products of the dense ones; S written out is S."""

import numpy as np
import pytest
from properties import FAMILIES, dense, sketch

sparse = pytest.importorskip("scipy.sparse")


def scipy_linear_operator(A):
    from scipy.sparse.linalg import aslinearoperator

    return aslinearoperator(A)


def matrix(kind, dtype="float32", rows=1000, cols=40):
    """A sparse matrix of integers, where some lines are empty."""
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


def test_pointers_and_indices_of_different_types():
    S = sketch()
    for kind in (sparse.csr_matrix, sparse.csc_matrix):
        A = matrix(kind)
        for pointers, indices in [("int64", "int32"), ("int32", "int64")]:
            mixed = A.copy()
            mixed.indptr, mixed.indices = A.indptr.astype(pointers), A.indices.astype(indices)
            assert (S @ mixed == S @ A).all() and (S.project(mixed.T) == (S @ A).T).all()


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_whole_numbers_are_converted(dtype):
    S = sketch()
    for kind in (sparse.csr_array, sparse.coo_matrix, sparse.lil_matrix):
        A = matrix(kind, "int64").astype(dtype)
        Y = S @ A
        assert Y.dtype == ("float32" if np.dtype(dtype).itemsize < 4 else "float64")
        assert (Y == S @ A.toarray().astype(Y.dtype)).all()


def test_sparse_vectors_give_vectors():
    S, x = sketch(), np.arange(1000) % 5 * (np.arange(1000) % 7 == 0) * 1.0
    try:
        vectors = [sparse.coo_array(x)]
    except (TypeError, ValueError):
        pytest.skip("this SciPy has no sparse arrays of one dimension")
    if vectors[0].ndim != 1:
        pytest.skip("this SciPy makes matrices of vectors")
    vectors += [sparse.csr_array(x)] if hasattr(vectors[0], "tocsr") and sparse.csr_array(x).ndim == 1 else []
    for vector in vectors:
        assert (S @ vector).shape == (200,) and (S @ vector == S @ x).all() and (S.project(vector) == S @ x).all()
        assert (S.update(S.apply(vector[:300], row0=0), vector[300:], 300) == S @ x).all()
    with pytest.raises(ValueError, match="A has 999 rows"):
        S @ vectors[0][:999]


def test_s_is_a_linear_operator_of_scipy():
    from scipy.sparse.linalg import LinearOperator, aslinearoperator, lsqr, svds

    S, A = sketch(k=60, d=300), matrix(sparse.csr_array, "float64", 300, 20)
    D, rng = dense(S), np.random.default_rng(0)
    operator = aslinearoperator(S)
    assert isinstance(operator, LinearOperator) and operator.shape == (60, 300) and operator.dtype == "float64"
    x, y = rng.standard_normal(300), rng.standard_normal(60)
    for of, matrix_of in [(S, D), (S.T, D.T), (operator, D), (operator.T, D.T), (aslinearoperator(S.T), D.T)]:
        inner, outer = (x, y) if of.shape == (60, 300) else (y, x)
        np.testing.assert_allclose(of.matvec(inner), matrix_of @ inner, atol=1e-12)
        np.testing.assert_allclose(of.rmatvec(outer), matrix_of.T @ outer, atol=1e-12)
        np.testing.assert_allclose(of.matmat(np.c_[inner, -inner]), matrix_of @ np.c_[inner, -inner], atol=1e-12)
        np.testing.assert_allclose(of.rmatmat(np.c_[outer, -outer]), matrix_of.T @ np.c_[outer, -outer], atol=1e-12)
    composed = operator @ aslinearoperator(A)
    np.testing.assert_allclose(np.sort(svds(composed, k=3)[1])[::-1], np.linalg.svd(D @ A)[1][:3])
    np.testing.assert_allclose(np.sort(svds(S, k=3)[1])[::-1], np.linalg.svd(D)[1][:3])
    np.testing.assert_allclose(lsqr(S, y, atol=1e-12, btol=1e-12)[0], np.linalg.lstsq(D, y, rcond=None)[0], atol=1e-6)


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


def test_what_is_wrong_gets_a_message():
    S, A = sketch(), matrix(sparse.csr_matrix)
    with pytest.raises(ValueError, match="A has 999 rows, and S is 200 x 1000"):
        S @ A[:999]
    with pytest.raises(TypeError, match="S.T @ Y needs a dense Y"):
        S.T @ A
    with pytest.raises(TypeError, match="dtype is complex128"):
        S @ matrix(sparse.csr_matrix, "complex128")
    frozen = np.zeros((200, 40), "float32")
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="not writeable"):
        S.apply(A, out=frozen)
    with pytest.raises(TypeError, match="is dense and does not go into"):
        S.apply(A, out=A)
    short = A.copy()
    short.data = short.data[:-1]
    with pytest.raises(ValueError, match=f"a sparse matrix of 1000 lines and {A.nnz} nonzeros has arrays of 1001"):
        S @ short
    with pytest.raises(TypeError, match="LinearOperator is not an array that a sketch takes"):
        S @ scipy_linear_operator(A)
    bad = A.copy()
    bad.indices[0] = 40
    with pytest.raises(ValueError, match=r"A.index\[0\] is 40, it must be from 0 to 39"):
        S @ bad
