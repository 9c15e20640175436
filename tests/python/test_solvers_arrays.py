"""The solvers take arrays of Dask, PyTorch, JAX and the array API, and return arrays of these, where they are."""

import gc
import weakref

import numpy as np
import pytest

import flashsketch as fs

try:
    fs.lstsq(np.ones((3, 1)), np.ones(3))
except fs.BackendError as error:
    pytest.skip(f"solvers cannot run here: {error}", allow_module_level=True)

D, N = 2000, 12


def problem(dtype="float64", rhs=None):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((D, N)) * np.logspace(0, -3, N)
    shape = (D,) if rhs is None else (D, rhs)
    return A.astype(dtype), (A @ np.ones((N, *shape[1:])) + 0.1 * rng.standard_normal(shape)).astype(dtype)


def check_all(A, b, kind, to_numpy, given, right, error, dtype):
    """Every solver of `given`, and a right-hand side, against those of NumPy's A and b."""

    def same(made, wanted, of=dtype):
        assert isinstance(made, kind) and str(made.dtype).endswith(of), (type(made), made.dtype)
        np.testing.assert_allclose(to_numpy(made).astype("float64"), wanted, rtol=error, atol=error)

    same(fs.lstsq(given, right).x, fs.lstsq(A, b).x)
    factors = fs.qr(given, pivoting=True)
    wanted = fs.qr(A, pivoting=True)
    for part in ("Q", "R"):
        same(getattr(factors, part), getattr(wanted, part))
    assert (to_numpy(factors.pivots) == wanted.pivots).all()
    found, wanted = fs.svd(given, 4), fs.svd(A, 4)
    for part in ("U", "s", "Vt"):
        same(getattr(found, part), getattr(wanted, part))
    found, wanted = fs.pca(given), fs.pca(A)
    for part in ("mean", "components", "s", "explained_variance", "explained_variance_ratio", "U"):
        same(getattr(found, part), getattr(wanted, part))
    exact = fs.leverage(A, exact=True).scores
    scores = fs.leverage(given, exact=True).scores
    assert isinstance(scores, kind)
    np.testing.assert_allclose(to_numpy(scores), exact, rtol=100 * error, atol=error)


# Dask -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [(700, 5), (40, N), ((1, 1998, 1), (N,)), (D, 1)], ids=str)
@pytest.mark.parametrize("rhs", [None, 2])
def test_dask(chunks, rhs):
    da = pytest.importorskip("dask.array")
    A, b = problem(rhs=rhs)
    lazy = da.from_array(A, chunks=chunks)
    for right in (da.from_array(b, chunks=(300,) * b.ndim), b):
        check_all(A, b, np.ndarray, np.asarray, lazy, right, 1e-9, "float64")


def test_dask_of_other_types_and_of_sparse_chunks():
    da, sparse = pytest.importorskip("dask.array"), pytest.importorskip("scipy.sparse")
    A, b = problem()
    A[np.random.default_rng(2).random(A.shape) < 0.7] = 0
    wanted = fs.lstsq(A, b).x
    for kind in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix):
        lazy = da.from_array(A, chunks=(400, N)).map_blocks(kind)
        np.testing.assert_allclose(fs.lstsq(lazy, b).x, wanted, rtol=1e-9)
        np.testing.assert_allclose(fs.svd(lazy, 3).s, fs.svd(A, 3).s, rtol=1e-9)
        np.testing.assert_allclose(fs.qr(lazy, mode="r").R, fs.qr(A).R, atol=1e-9)
    whole = da.from_array((1000 * A).astype("int64"), chunks=(400, N))
    np.testing.assert_allclose(fs.lstsq(whole, b).x, fs.lstsq((1000 * A).astype("int64"), b).x, rtol=1e-9)
    assert fs.lstsq(da.from_array(A.astype("float16")), b.astype("float32")).x.dtype == "float32"
    v = da.from_array(A[:, 0], chunks=300)
    np.testing.assert_allclose(fs.lstsq(v, b).x, fs.lstsq(A[:, :1], b).x, rtol=1e-10)


def slices(A, rows):
    """A Dask array whose chunks are made when they are computed; references to them; how many lived, at each."""
    import dask.array as da

    live, most = [], []

    def make(block_info=None):
        (first, end), _ = block_info[None]["array-location"]
        chunk = A[first:end].copy()
        live.append(weakref.ref(chunk))
        most.append(sum(ref() is not None for ref in live))
        return chunk

    return da.map_blocks(make, chunks=((rows,) * (len(A) // rows), (N,)), dtype=A.dtype, meta=A[:0]), live, most


@pytest.mark.parametrize("together", [1, 2])
def test_a_read_of_a_dask_array_computes_chunk_after_chunk(monkeypatch, together):
    pytest.importorskip("dask.array")
    import flashsketch._operands as operands

    A, b = problem()
    monkeypatch.setattr(operands, "_SLICE_BYTES", together * 250 * N * 8)
    lazy, live, most = slices(A, 250)
    found = fs.lstsq(lazy, b, method="iterate")
    np.testing.assert_allclose(found.x, fs.lstsq(A, b).x, rtol=1e-9)
    assert len(live) == 8 * found.reads and found.reads > 3
    assert max(most) <= together, f"{max(most)} of 8 chunks were in memory at one time"
    gc.collect()
    assert not any(ref() is not None for ref in live)


@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt])
def test_what_a_chunk_raises_comes_through(kind):
    da = pytest.importorskip("dask.array")
    A, b = problem()
    reads = []

    def fail(block, block_info=None):
        reads.append(1)
        if len(reads) > 11:  # in the second read
            raise kind("chunk 3")
        return block

    lazy = da.from_array(A, chunks=(250, N)).map_blocks(fail, meta=A[:0])
    for call in (lambda: fs.lstsq(lazy, b, method="iterate"), lambda: fs.qr(lazy), lambda: fs.svd(lazy, 2),
                 lambda: fs.leverage(lazy)):
        reads.clear()
        with pytest.raises(kind, match="chunk 3"):
            call()
    np.testing.assert_allclose(fs.lstsq(A, b).x, fs.lstsq(da.from_array(A), b).x, rtol=1e-9)  # contexts still work


def test_progress_over_dask_and_its_exception():
    da = pytest.importorskip("dask.array")
    A, b = problem()
    lazy, seen = da.from_array(A, chunks=(500, N)), []
    fs.lstsq(lazy, b, method="iterate", progress=lambda *at: seen.append(at))
    assert seen
    with pytest.raises(ZeroDivisionError):
        fs.lstsq(lazy, b, method="iterate", progress=lambda *at: 1 / 0)


def test_dask_refusals():
    da = pytest.importorskip("dask.array")
    A, b = problem()
    lazy = da.from_array(A, chunks=(500, N))
    for call, kind, message in [
        (lambda: fs.lstsq(lazy[lazy[:, 0] > 0], b), ValueError,
         r"chunks of unknown size: call A.compute_chunk_sizes\(\)"),
        (lambda: fs.lstsq(A, da.from_array(b)), TypeError, r"b is an array of dask, and A is not: give b.compute\(\)"),
        (lambda: fs.lstsq(lazy, b[:-1]), ValueError, "b has 1999 rows"),
        (lambda: fs.lstsq(lazy[None], b), ValueError, "lstsq takes vectors and matrices"),
        (lambda: fs.qr(lazy, overwrite_a=True), TypeError, "overwrite_a needs a dense"),
        (lambda: fs.lstsq(lazy * np.nan, b), fs.InvalidArgument, "not finite"),
        (lambda: fs.lstsq(lazy.map_blocks(lambda x: x[:-1], dtype=float, meta=A[:0]), b), ValueError,
         r"rows 0 to 2000 of a Dask array have shape \(1996, 12\) when they are computed"),
    ]:
        with pytest.raises(kind, match=message):
            call()


# PyTorch --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype,error", [("float64", 1e-9), ("float32", 1e-3)])
def test_torch(dtype, error):
    torch = pytest.importorskip("torch")
    A, b = problem(dtype, 3)
    X, right = torch.from_numpy(A), torch.from_numpy(b)
    for given in (X, X.T.contiguous().T, torch.cat([X, X])[:D], X.repeat_interleave(2, 1)[:, ::2]):
        check_all(A, b, torch.Tensor, lambda tensor: tensor.numpy(), given, right, error, dtype)


def test_torch_gradients_half_types_and_q_in_place():
    torch = pytest.importorskip("torch")
    A, b = (torch.from_numpy(array) for array in problem("float32"))
    exact = fs.lstsq(A, b).x
    for call in (fs.qr, fs.svd, fs.pca, fs.leverage, lambda A: fs.lstsq(A, b), lambda C: fs.lstsq(A, C[:, 0]),
                 fs.Preconditioner):
        with pytest.raises(RuntimeError, match="needs a gradient, and tasks have none"):
            call(A.clone().requires_grad_())
        with torch.no_grad():
            call(A.clone().requires_grad_())
    for half in (torch.float16, torch.bfloat16):
        found = fs.lstsq(A.to(half), b)
        assert found.x.dtype is torch.float32
        np.testing.assert_allclose(found.x, fs.lstsq(A.to(half).float(), b).x, rtol=1e-3)
    assert fs.lstsq(A, b.double()).x.dtype is torch.float64
    np.testing.assert_allclose(fs.lstsq(A, b.double()).x, exact, rtol=1e-3)
    A2, version = A.clone(), A.clone()._version
    Q, R = fs.qr(A2, overwrite_a=True)
    assert Q is A2 and A2._version > version
    np.testing.assert_allclose(Q @ R, A, atol=1e-5)
    for right, message in [(b.numpy(), "both must be of one framework"), (b.to_sparse(), "no tensors of layout")]:
        with pytest.raises(TypeError, match=message):
            fs.lstsq(A, right)


# JAX, the array API ---------------------------------------------------------------------------------------------------


def test_jax():
    jax = pytest.importorskip("jax")
    A, b = problem("float32", 2)
    with jax.default_device(jax.devices("cpu")[0]):
        X, right = jax.numpy.asarray(A), jax.numpy.asarray(b)
        check_all(A, b, jax.Array, np.asarray, X, right, 1e-3, "float32")
        assert fs.lstsq(X.astype("bfloat16"), right).x.dtype == "float32"
        with jax.enable_x64(True):
            A, b = problem(rhs=2)
            check_all(A, b, jax.Array, np.asarray, jax.numpy.asarray(A), jax.numpy.asarray(b), 1e-9, "float64")
        with pytest.raises(TypeError, match="inside jax.jit or jax.grad there are none"):
            jax.jit(lambda A: fs.qr(A).R)(X)
        with pytest.raises(TypeError, match="overwrite_a needs a dense"):
            fs.qr(X, overwrite_a=True)


def test_the_array_api():
    xp = pytest.importorskip("array_api_strict")
    A, b = problem(rhs=2)
    kind = type(xp.asarray(A))
    check_all(A, b, kind, np.from_dlpack, xp.asarray(A), xp.asarray(b), 1e-9, "float64")
    narrow = xp.asarray(A.astype("float32"))
    assert fs.lstsq(narrow, xp.asarray(b.astype("float32"))).x.dtype == xp.float32
    M = fs.Preconditioner(xp.asarray(A))
    assert isinstance(M.matrix, kind) and M.rank == N
