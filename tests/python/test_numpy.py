"""Products with NumPy arrays equal those with S written out, for all strides, types and row slices."""

import gc
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from properties import FAMILIES, dense, sketch, whole

import flashsketch as fs


@pytest.mark.parametrize("options", FAMILIES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_product_projection_and_adjoint_equal_the_dense_s(options, dtype):
    S, A = sketch(**options), np.random.default_rng(0).standard_normal((1000, 17)).astype(dtype)
    D, exact = dense(S), A.astype("float64")
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    Y = S @ A
    assert Y.dtype == A.dtype and Y.flags.c_contiguous
    np.testing.assert_allclose(Y, D @ exact, atol=tolerance, rtol=0)
    np.testing.assert_allclose(S.project(A.T), (D @ exact).T, atol=tolerance, rtol=0)
    np.testing.assert_allclose(S.T @ Y, D.T @ Y.astype("float64"), atol=tolerance, rtol=0)


def test_the_adjoint_is_the_transpose():
    S, rng = sketch(), np.random.default_rng(1)
    x, y = rng.standard_normal(1000), rng.standard_normal(200)
    assert (S @ x) @ y == pytest.approx(x @ (S.T @ y), rel=1e-12)


LAYOUTS = {
    "C": lambda A: A,
    "Fortran": np.asfortranarray,
    "every second row": lambda A: np.repeat(A, 2, axis=0)[::2],
    "every third column": lambda A: np.repeat(A, 3, axis=1)[:, ::3],
    "rows backwards": lambda A: A[::-1].copy()[::-1],
    "columns backwards": lambda A: A[:, ::-1].copy()[:, ::-1],
    "both backwards": lambda A: A[::-1, ::-1].copy()[::-1, ::-1],
    "Fortran, rows backwards": lambda A: np.asfortranarray(A[::-1])[::-1],
    "inside a larger matrix": lambda A: np.pad(A, 5)[5:-5, 5:-5],
    "one column for all": lambda A: np.broadcast_to(A[:, :1], A.shape),
    "read-only": lambda A: _frozen(A.copy()),
    "mapped from a file": lambda A: _mapped(A),
}


def _frozen(A):
    A.flags.writeable = False
    return A


def _mapped(A):
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        A.tofile(file.name)
        return np.memmap(file.name, A.dtype, "r", shape=A.shape)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_any_strides_give_the_same_product(layout, dtype):
    S, A = sketch(), LAYOUTS[layout](whole(1000, 13, dtype=dtype))
    expected = (dense(S) @ np.array(A, "float64")).astype(dtype)
    assert (S @ A == expected).all()
    assert (S.project(A.T) == expected.T).all()


@pytest.mark.parametrize("step", [(1, 1), (2, 1), (1, 3), (-1, 1), (1, -2), (-2, -1)], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_out_of_any_strides_is_written_and_nothing_beside_it(step, order):
    S, A = sketch(), whole(1000, 9)
    around = np.full((200 * abs(step[0]) + 2, 9 * abs(step[1]) + 2), 77, "float32", order=order)
    out = around[1:-1, 1:-1][:: step[0], :: step[1]]
    assert S.apply(A, out=out) is out
    assert (out == S @ A).all()
    out[:] = 77
    assert (around == 77).all()


def test_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    S, A = sketch(), whole(1000, 5).astype(ml_dtypes.bfloat16)
    Y = S @ A
    assert Y.dtype == A.dtype
    assert (Y.astype("float64") == (dense(S) @ A.astype("float64")).astype(ml_dtypes.bfloat16).astype("float64")).all()


CONVERTED = {
    "bool": "float32", "int8": "float32", "uint8": "float32", "int16": "float32", "uint16": "float32",
    "int32": "float64", "uint32": "float64", "int64": "float64", "uint64": "float64",
    ">i2": "float32", ">u4": "float64", ">f2": "float16", ">f4": "float32", ">f8": "float64",
}


@pytest.mark.parametrize("dtype", CONVERTED)
def test_whole_numbers_and_other_byte_orders_are_converted(dtype):
    S, A = sketch(), np.abs(whole(1000, 6)).astype(dtype)
    same = A.astype(CONVERTED[dtype])
    for given, wanted in ((A, same), (A[::-1, ::2], same[::-1, ::2]), (A[:, 0], same[:, 0])):
        Y = S @ given
        assert Y.dtype == CONVERTED[dtype] and (Y == S @ wanted).all()
        assert (S.project(given.T) == S.project(wanted.T)).all()
    assert (S.apply(A, rows=np.arange(999, -1, -1)) == S.apply(same, rows=np.arange(999, -1, -1))).all()
    pieces = [S.update(S.apply(X[:300], row0=0), X[300:], 300) for X in (A, same)]
    assert (pieces[0] == pieces[1]).all()
    assert (S.T @ A[:200] == S.T @ same[:200]).all()


def test_wide_whole_numbers_are_not_rounded_to_float32():
    S, A = sketch(k=4, d=4, family="sjlt", s=1), np.array([2**40 + 1, 3, 2**52 - 1, 5])
    assert (S @ A == dense(S) @ A).all() and np.abs(S @ A).sum() % 2 == A.sum() % 2


class _Table:
    """The part of a DataFrame that NumPy uses."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)


def test_lists_and_tables_become_numpys():
    S, A = sketch(), whole(1000, 6, dtype="float64")
    for given in (A.tolist(), tuple(map(tuple, A.tolist())), list(A), _Table(A)):
        Y = S @ given
        assert type(Y) is np.ndarray and Y.dtype == "float64" and (Y == S @ A).all()
    assert (S @ whole(1000, 6).astype(int).tolist() == S @ A).all() and (S @ A[:, 0].tolist() == S @ A[:, 0]).all()
    assert (S.project(A.T.tolist()) == S.project(A.T)).all() and (S.T @ A[:200].tolist() == S.T @ A[:200]).all()
    out = np.empty((200, 6))
    assert S.apply(A.tolist(), out=out) is out and (out == S @ A).all()
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(A).astype({0: "int8", 1: "float32"})
    assert (S @ frame == S @ A).all() and (S @ frame[2] == S @ A[:, 2]).all()
    assert (S @ frame[0]).dtype == "float32" and (S @ (frame > 0) == S @ (A > 0)).all()
    mixed = frame.assign(flag=True)  # NumPy makes objects of numbers and bools in one table
    with pytest.raises(TypeError, match=r"dtype is object; .* A.astype\('float64'\)"):
        S @ mixed
    assert (S @ mixed.astype("float64")).shape == (200, 7)


def test_half_sums_go_into_float32_without_rounding():
    S, A = sketch(), whole(1000, 5, dtype="float16") * np.float16(1.001)
    out = S.apply(A, out=np.empty((200, 5), "float32"))
    np.testing.assert_allclose(out, dense(S) @ A.astype("float64"), atol=1e-4)


@pytest.mark.parametrize("options", FAMILIES[:6], ids=str)
def test_updates_with_pieces_equal_the_whole(options):
    S, A = sketch(**options), whole(1000, 11, dtype="float64")
    Y, sums = np.zeros((200, 11)), np.zeros((200, 11))
    for row0, row1 in [(0, 1), (1, 333), (333, 600), (600, 600), (600, 1000)]:
        assert S.update(Y, A[row0:row1], row0) is Y
        sums += S.apply(A[row0:row1], row0=row0)
    np.testing.assert_allclose(Y, S @ A, rtol=0, atol=1e-12)
    np.testing.assert_allclose(sums, S @ A, rtol=0, atol=1e-12)
    S.update(Y, A, alpha=-1.0)
    np.testing.assert_allclose(Y, 0, atol=1e-12)


def test_pieces_of_a_batch_are_updates_of_transposes():
    S, X = sketch(batch_major=True), whole(6, 1000)
    Y = S.project(X[:, :300], row0=0)
    S.update(Y.T, X[:, 300:].T, 300)
    assert (Y == S.project(X)).all()


def test_a_piece_of_the_adjoint():
    S, Y = sketch(), whole(200, 4)
    whole_adjoint = S.T @ Y
    assert (S.T.apply(Y, row0=100, rows=50) == whole_adjoint[100:150]).all()
    out = np.empty((50, 4), "float32")
    assert S.T.apply(Y, out=out, row0=950) is out
    assert (out == whole_adjoint[950:]).all()
    assert (S.T.apply(Y, row0=900) == whole_adjoint[900:]).all()


def test_vectors_give_vectors_and_empty_matrices_empty_ones():
    S, x = sketch(), whole(1000)
    assert (S @ x).shape == (200,) and (S @ x == (S @ x[:, None])[:, 0]).all()
    assert S.project(x).shape == (200,) and (S.T @ (S @ x)).shape == (1000,)
    assert (S @ np.empty((1000, 0), "float32")).shape == (200, 0)
    assert S.project(np.empty((0, 1000))).shape == (0, 200)


def test_repr_spec_equality_and_digest_say_the_same():
    for options in FAMILIES:
        S = sketch(seed=2**64 - 1, **options)
        again = eval(repr(S), {"Sketch": fs.Sketch})
        assert again == S == fs.Sketch(**S.spec) and hash(again) == hash(S) and again.digest() == S.digest()
        other = sketch(seed=2**63, **options)
        assert other != S and other.digest() != S.digest() and other.spec["seed"] == 2**63
    assert repr(sketch().T) == repr(sketch()) + ".T" and sketch().T.shape == (1000, 200) and sketch() != 7


def test_a_rung_chooses_kappa_and_s_and_is_kept():
    for quality, kappa, s in (("fast", 1, 4), ("default", 1, 8), ("high", 2, 8), ("gaussian", 4, 8)):
        S = fs.Sketch(k=1024, d=5000, quality=quality)
        assert (S.quality, S.spec["kappa"], S.spec["s"]) == (quality, kappa, s)
        given = fs.Sketch(k=1024, d=5000, kappa=kappa, s=s)
        assert S == given and hash(S) == hash(given) and S.digest() == given.digest()
        assert pickle.loads(pickle.dumps(S)).quality == quality
        assert eval(repr(S), {"Sketch": fs.Sketch}).quality == quality
        assert ("quality" in repr(S)) == (quality != "default")
        assert fs.Sketch(k=1024, d=5000, quality=quality, family="sjlt").spec["s"] == kappa * s
        assert fs.Sketch(k=1024, d=5000, quality=quality, kappa=1, s=2).spec["s"] == 2
    assert fs.Sketch(k=1024, d=5000, kappa=2).spec["s"] == 4 and fs.Sketch(k=1024, d=5000, s=3).spec["kappa"] == 1


def test_batch_major_is_shuffle_lines_and_leaves_the_rest_alone():
    assert sketch(batch_major=True) == sketch(shuffle="groups") != sketch()
    assert sketch(batch_major=True, shuffle="none") == sketch(shuffle="none")
    assert sketch(batch_major=True, family="sjlt") == sketch(family="sjlt")


def test_pickles_are_the_same_sketch_here_and_in_another_process():
    for options in FAMILIES:
        S = sketch(seed=2**64 - 5, **options)
        again = pickle.loads(pickle.dumps(S))
        assert again == S and again.digest() == S.digest()
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer).digest())"
    told = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(S), capture_output=True, check=True)
    assert int(told.stdout) == S.digest()


def test_a_pickle_of_another_definition_is_refused():
    make, (key, version, quality) = sketch().__reduce__()
    with pytest.raises(ValueError, match=f"version {version + 1} of the definition of S, this library of {version}"):
        make(key, version + 1, quality)


def test_threads_share_a_sketch():
    S, right = sketch(k=512, d=20000), []
    inputs = [whole(20000, 8, seed=seed) for seed in range(4)]
    expected = [S @ A for A in inputs]

    def work(A, Y):
        for _ in range(20):
            right.append((S @ A == Y).all())

    workers = [threading.Thread(target=work, args=pair) for pair in zip(inputs, expected)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert right == 80 * [True]


def test_other_threads_run_while_a_product_is_made():
    """ctypes releases the GIL: another thread keeps running while this one is inside one long call."""
    S, A = sketch(k=1024, d=4000, family="gaussian"), np.ones((4000, 1024), "float32")
    woken, done = [], threading.Event()

    def wake():
        while not done.wait(0.002):
            woken.append(time.perf_counter())

    worker = threading.Thread(target=wake)
    worker.start()
    begin = time.perf_counter()
    S @ A
    end = time.perf_counter()
    done.set()
    worker.join()
    inside = [moment for moment in woken if begin < moment < end]
    assert len(inside) >= 3, f"{len(inside)} times in {end - begin:.3f} s"


def test_a_forked_child_can_make_products():
    """Several threads of GNU's OpenMP would hang in the child, which therefore uses one."""
    program = """
import os
import numpy as np
import flashsketch as fs
fs.configure(threads=2)
S, A = fs.Sketch(k=512, d=20000), np.ones((20000, 8), "float32")
expected = S @ A
child = os.fork()
if child == 0:
    os._exit(0 if (S @ A == expected).all() else 1)
print(os.waitpid(child, 0)[1])
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
    assert told.stdout == b"0\n"


def test_a_forked_child_may_ask_for_threads():
    """It still gets one where two would hang."""
    program = """
import os, signal
import numpy as np
import flashsketch as fs
fs.configure(threads=2)
S, A = fs.Sketch(k=512, d=20000), np.ones((20000, 8), "float32")
expected = S @ A
child = os.fork()
if child == 0:
    signal.alarm(20)                                            # a child that hangs ends, too
    for threads in (2, 0, 1024):
        fs.configure(threads=threads)
        if not ((S @ A == expected).all() and "1 thread" in fs.describe()):
            os._exit(1)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
    assert told.stdout == b"0\n"


def test_as_many_threads_work_as_were_asked_for():
    """Also after products with another number: their contexts are not used again."""
    program = """
import os
import numpy as np
import flashsketch as fs
S, A = fs.Sketch(k=512, d=20000), np.ones((20000, 64), "float32")
counts = []
for threads in (1, 3, 4):
    fs.configure(threads=threads)
    S @ A
    counts.append(len(os.listdir("/proc/self/task")))
print(counts[1] - counts[0], counts[2] - counts[0])
"""
    quiet = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", OMP_DYNAMIC="false")
    quiet.pop("OMP_THREAD_LIMIT", None)
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True, env=quiet)
    assert told.stdout == b"2 3\n", told.stdout


def test_the_number_of_threads_does_not_change_a_bit():
    S, A = sketch(k=512, d=20000), np.random.default_rng(0).standard_normal((20000, 33), dtype="float32")
    several = S @ A
    fs.configure(threads=1)
    try:
        assert (S @ A == several).all() and "1 thread" in fs.describe()
    finally:
        fs.configure(threads=0)


def test_products_outlive_what_they_came_from():
    def make():
        S, A = sketch(), whole(1000, 7)
        return S @ A, S.T, (dense(S) @ A.astype("float64"))

    Y, adjoint, expected = make()
    gc.collect()
    assert (Y == expected).all() and (adjoint @ Y).shape == (1000, 7)


def test_calls_leave_no_memory_behind():
    import resource

    S, A = sketch(), whole(1000, 64)
    for _ in range(200):
        S @ A, sketch(seed=3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(2000):
        S @ A, sketch(seed=seed)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024  # KiB; one Y is 50 KiB
