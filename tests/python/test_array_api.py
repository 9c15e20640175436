"""Arrays of other libraries of the array API standard, through DLPack."""

import numpy as np
import pytest
from laws import dense, sketch, whole

xp = pytest.importorskip("array_api_strict")


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
