"""Wrong arguments are refused with an error message that has the numbers, and nothing is written."""

import numpy as np
import pytest
from properties import sketch, whole

import flashsketch as fs
from flashsketch import _library, _sketch

S = sketch()

WRONG = [
    (lambda: fs.Sketch(k=0, d=10), ValueError, "k = 0, it must be from 1 to 2147483647"),
    (lambda: fs.Sketch(k=10, d=-1), ValueError, "d = -1"),
    (lambda: fs.Sketch(k=10, d=10, seed=-1), ValueError, "seed is -1, it must be from 0 to 18446744073709551615"),
    (lambda: fs.Sketch(k=10, d=10, seed=2**64), ValueError, "seed is 18446744073709551616"),
    (lambda: fs.Sketch(k=10, d=2**70), ValueError, "d is 1180591620717411303424, it must be from"),
    (lambda: fs.Sketch(k=10, d=10.5), TypeError, "d is 10.5, it must be an integer"),
    (lambda: fs.Sketch(k="10", d=10), TypeError, "k is '10', it must be an integer"),
    (lambda: fs.Sketch(k=10, d=10, family="sparse"), ValueError, "family is 'sparse', it must be one of blockperm"),
    (
        lambda: fs.Sketch(k=10, d=10, shuffle="all"),
        ValueError,
        "shuffle is 'all', it must be one of none, rows, groups",
    ),
    (
        lambda: fs.Sketch(k=10, d=10, quality="best"),
        ValueError,
        "quality is 'best', it must be one of fast, default, high, gaussian",
    ),
    (lambda: fs.Sketch(k=10, d=10, kappa=3), ValueError, "kappa = 3 is more than M = 1"),
    (lambda: fs.Sketch(k=10, d=10, family="srht", s=4), ValueError, "srht is dense, so s = 4"),
    (lambda: S @ whole(999, 3), ValueError, "A has 999 rows, and S is 200 x 1000: A must have d = 1000"),
    (lambda: S.project(whole(3, 999)), ValueError, "A has 999 columns, and S is 200 x 1000"),
    (lambda: S.T @ whole(199, 3), ValueError, "Y has 199 rows, and S is 200 x 1000: Y must have k = 200"),
    (lambda: S @ whole(1000, 2, 2), ValueError, r"A has shape \(1000, 2, 2\); a sketch takes vectors and matrices"),
    (lambda: S @ np.float32(3), TypeError, "numpy.float32 is not an array that a sketch takes"),
    (lambda: S @ [1.0, 2.0], ValueError, "A has 2 rows, and S is 200 x 1000"),
    (lambda: S @ None, TypeError, "builtins.NoneType is not an array that a sketch takes"),
    (lambda: S @ np.ndarray, TypeError, "builtins.type is not an array"),
    (lambda: S @ S, TypeError, "Sketch is not an array"),
    (lambda: S @ (["a"] * 1000), TypeError, "<U1; a sketch takes float32, float64.* convert it first, A.astype"),
    (lambda: S @ whole(1000, 3, dtype="complex64"), TypeError, "dtype is complex64; .* sketch A.real and A.imag"),
    (lambda: S @ whole(1000, 3, dtype="object"), TypeError, r"dtype is object; .* A.astype\('float64'\)"),
    (lambda: S @ whole(1000, 3, dtype="longdouble"), TypeError, "dtype is float128"),
    (lambda: S @ whole(1000, 3).astype("M8[s]"), TypeError, "dtype is datetime64"),
    (lambda: S.project([["1"] * 1000]), TypeError, "dtype is <U1"),
    (lambda: S.T @ whole(200, 3, dtype="complex128"), TypeError, "dtype is complex128"),
    (lambda: S @ np.ma.masked_array(whole(1000, 3)), TypeError, "no masked arrays"),
    (lambda: S @ _field(), ValueError, "a stride of 5 bytes, which is not a multiple of its 4-byte elements"),
    (lambda: S @ np.frombuffer(bytes(4001), "float32", 1000, 1), ValueError, "not aligned to its 4-byte elements"),
    (lambda: S.apply(whole(1000, 3), out=_y(200, 4)), ValueError, "Y is 200 x 4, it must be 200 x 3"),
    (lambda: S.apply(whole(1000, 3), out=_y(200, 3, "float64")), ValueError, "A is f32, so Y must be f32, not f64"),
    (lambda: S.apply(whole(1000, 3), out=[1]), TypeError, "builtins.list is not an array"),
    (lambda: S.apply(whole(1000, 3), out=_read_only()), ValueError, "not writeable"),
    (lambda: _overlapping(), ValueError, "A and Y overlap in memory"),
    (lambda: S.apply(whole(100, 3), row0=950), ValueError, r"rows 950 to 950 \+ 100 of A are not all in S"),
    (lambda: S.update(_y(200, 3), whole(100, 3), -1), ValueError, "row0 is -1, it must be from 0 to 1000"),
    (lambda: S.update(_y(200, 3), whole(100, 3), 1.5), TypeError, "row0 is 1.5, it must be an integer"),
    # ctypes would keep the last 64 bits: 5, 0 and 5.
    (lambda: S.apply(whole(100, 3), row0=2**64 + 5), ValueError, "row0 is 18446744073709551621, it must be from 0"),
    (lambda: S.apply(whole(100, 3), row0=2**70), ValueError, "row0 is 1180591620717411303424"),
    (lambda: S.update(_y(200, 3), whole(100, 3), 5 - 2**64), ValueError, "row0 is -18446744073709551611"),
    (lambda: S.project(whole(3, 100), row0=2**64), ValueError, "row0 is 18446744073709551616"),
    (lambda: S.apply(whole(100, 3), row0=2**64, rows=[5]), ValueError, "row0 is 18446744073709551616, it must"),
    (lambda: S.T.apply(whole(200, 3), row0=2**64, rows=5), ValueError, "row0 is 18446744073709551616, it must be"),
    (lambda: S.T.apply(whole(200, 3), row0=-1), ValueError, "row0 is -1, it must be from 0 to 1000"),
    (lambda: S.T.apply(whole(200, 3), rows=2**64), ValueError, "rows is 18446744073709551616"),
    (lambda: S.T.apply(whole(200, 3), rows=1.0), TypeError, "rows is 1.0, it must be an integer"),
    (lambda: S.update([[0.0] * 3] * 200, whole(1000, 3)), TypeError, "builtins.list is not an array"),
    (lambda: S.apply(np.array(1.0), row0=0), ValueError, r"shape \(\); a sketch takes vectors and matrices"),
    (lambda: S.T.apply(whole(200, 3), out=7), TypeError, "builtins.int is not an array"),
    (lambda: S.T.apply(whole(200, 3), row0=900, rows=101), ValueError, r"rows 900 to 900 \+ 101 are not all in S.T"),
    (lambda: whole(3, 200) @ S, TypeError, "unsupported operand"),
    (lambda: S.to_scipy("int8"), ValueError, "dtype is int8"),
    (lambda: fs.configure(threads=-1), ValueError, "threads is -1, it must be from 0 to 1024"),
    (lambda: fs.configure(threads=1025), ValueError, "threads is 1025, it must be from 0 to 1024"),
    (lambda: fs.configure(threads=2**40), ValueError, "threads is 1099511627776"),
    (lambda: fs.configure(threads="2"), TypeError, "threads is '2', it must be an integer"),
    (lambda: fs.configure(precision="half"), ValueError, "precision is 'half', it must be 'full' or 'fast'"),
]


def _y(*shape):
    return np.zeros(shape[:2], shape[2] if len(shape) > 2 else "float32")


def _field():
    return np.zeros(1000, np.dtype([("byte", "i1"), ("number", "f4")]))["number"]


def _read_only():
    out = _y(200, 3)
    out.flags.writeable = False
    return out


def _overlapping():
    memory = whole(1100, 3)
    S.apply(memory[:1000], out=memory[900:])


@pytest.mark.parametrize("call, kind, message", WRONG, ids=[case[2] for case in WRONG])
def test_what_is_wrong_gets_a_message(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_the_librarys_errors_are_also_pythons():
    with pytest.raises(fs.InvalidArgument) as caught:
        fs.Sketch(k=0, d=1)
    assert isinstance(caught.value, fs.Error) and isinstance(caught.value, ValueError)
    assert str(caught.value) == "fs_sketch_create: k = 0, it must be from 1 to 2147483647"
    assert issubclass(fs.OutOfMemory, MemoryError) and issubclass(fs.Unsupported, NotImplementedError)
    assert issubclass(fs.BackendError, RuntimeError) and issubclass(fs.FileError, OSError)


def test_every_result_of_the_library_has_an_exception():
    kinds = [fs.InvalidArgument, fs.OutOfMemory, fs.Unsupported, fs.BackendError, fs.FileError]
    assert [type(_library.failure(code)) for code in range(1, 6)] == kinds
    names = [_library.lib.fs_result_name(code) for code in range(7)]
    assert names[5] == b"FS_EFILE" and names[6] == b"not an fs_result"


def test_names_are_the_librarys():
    assert _sketch.FAMILIES == {"blockperm": 1, "sjlt": 2, "blockrow": 3, "srht": 4, "gaussian": 5}
    assert _sketch.SHUFFLES == {"none": 1, "rows": 2, "groups": 3}
    assert _library.ITEMSIZE == {_library.F32: 4, _library.F64: 8, _library.F16: 2, _library.BF16: 2}


def test_a_refused_update_changes_nothing():
    Y = np.full((200, 3), 5.0, "float32")
    with pytest.raises(ValueError):
        S.update(Y, whole(600, 3), 500)
    assert (Y == 5).all()


@pytest.mark.parametrize("name", ["k", "d", "shape", "spec", "dtype", "T", "seed"])
def test_a_sketch_never_changes(name):
    for of in (S, S.T):
        with pytest.raises(AttributeError):
            setattr(of, name, 5)
    assert S.shape == (200, 1000) and S.T.shape == (1000, 200) and S.T.T is S


def test_contexts_are_put_back_after_errors():
    from flashsketch import _library

    A = whole(1000, 3)
    S @ A
    pools = {key: list(pool) for key, pool in _library._idle.items()}
    sparse = pytest.importorskip("scipy.sparse").csr_array(A)
    sparse.indices[0] = 3
    for wrong in (
        lambda: S.apply(A, out=_y(200, 4)),
        lambda: S.apply(A, rows=[1000] * 1000),
        lambda: S @ sparse,
        lambda: fs.gram(S, A * np.float32(np.nan)),
    ):
        with pytest.raises(fs.Error):
            wrong()
        assert {key: list(pool) for key, pool in _library._idle.items()} == pools


def test_after_an_error_the_next_call_is_as_before():
    A, Y = whole(1000, 3), S @ whole(1000, 3)
    for _ in range(10):
        with pytest.raises(ValueError):
            S.apply(A, out=np.empty((1, 1), "float32"))
        assert (S @ A == Y).all()
