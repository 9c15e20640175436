"""Arrays of other libraries of the array API standard, through DLPack."""

import ctypes

import numpy as np
import pytest
from properties import dense, sketch, whole

xp = pytest.importorskip("array_api_strict")


class _Tensor(ctypes.Structure):
    """DLPack's DLManagedTensor, as its header dlpack.h has it."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class Foreign:
    """A packed array of a library that uses what DLPack allows and NumPy never does: data that begin byte_offset bytes
    behind their address, and no strides, which is C order."""

    def __init__(self, values, byte_offset, strides):
        self.memory = np.concatenate([np.full(byte_offset, 0xC1, "uint8"), np.frombuffer(values.tobytes(), "uint8")])
        self.shape, self.dtype, self.device = values.shape, values.dtype, None
        self.sizes = (ctypes.c_int64 * values.ndim)(*values.shape)
        steps = [stride // values.itemsize for stride in values.strides]
        self.steps = (ctypes.c_int64 * values.ndim)(*steps)
        address = ctypes.addressof
        self.tensor = _Tensor(self.memory.ctypes.data, (1, 0), values.ndim, 2, 8 * values.itemsize, 1,
                              address(self.sizes), address(self.steps) if strides else None, byte_offset)

    def __array_namespace__(self):
        class Space:
            """The functions that a namespace must have."""

            isdtype = staticmethod(lambda dtype, kind: False)
            empty = staticmethod(lambda shape, dtype, device: np.empty(shape, dtype))

        return Space

    def __dlpack__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


@pytest.mark.parametrize("byte_offset", [0, 64])
@pytest.mark.parametrize("strides", [True, False])
def test_offsets_and_missing_strides(byte_offset, strides):
    S, A = sketch(), whole(1000, 6)
    assert (S @ Foreign(A, byte_offset, strides) == S @ A).all()
    assert (S.project(Foreign(A.T.copy(), byte_offset, strides)) == (S @ A).T).all()
    assert (S @ Foreign(A[:, 0].copy(), byte_offset, strides) == S @ A[:, 0]).all()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "int64"])
def test_whole_numbers_are_converted(dtype):
    S, A = sketch(), xp.asarray(whole(1000, 6).astype(dtype))
    Y = S @ A
    assert Y.dtype == (xp.float32 if dtype in ("bool", "uint8", "int16") else xp.float64)
    assert (np.asarray(Y) == S @ np.asarray(A).astype("float64")).all()


def test_an_unknown_framework_gets_its_own_arrays_back():
    S, A = sketch(), whole(1000, 6, dtype="float64")
    Y = S @ xp.asarray(A)
    assert type(Y) is type(xp.asarray(A))
    assert (np.from_dlpack(Y) == dense(S) @ A).all()
    assert (np.from_dlpack(S.project(xp.asarray(A).T)) == (dense(S) @ A).T).all()
    assert (np.from_dlpack(S.T @ Y) == dense(S).T @ (dense(S) @ A)).all()


def test_memory_is_given_back():
    import gc
    import weakref

    S, A = sketch(), xp.asarray(whole(1000, 6))
    gone = weakref.ref(A)
    S @ A
    del A
    gc.collect()
    assert gone() is None


def test_frameworks_do_not_mix():
    S = sketch()
    with pytest.raises(TypeError, match="does not go into numpy.ndarray: both must be of one framework"):
        S.apply(xp.asarray(whole(1000, 6)), out=np.empty((200, 6), "float32"))
