"""JAX's arrays on the CPU."""

import numpy as np
import pytest
from properties import dense, sketch, whole

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(scope="module", autouse=True)
def on_the_cpu():
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_products_equal_the_dense_s_and_are_jax_arrays(dtype):
    S, A = sketch(), whole(1000, 6)
    X = jnp.asarray(A, dtype)
    Y, expected = S @ X, dense(S) @ A.astype("float64")
    assert isinstance(Y, jax.Array) and Y.dtype == dtype and Y.devices() == X.devices()
    rounded = np.asarray(jnp.asarray(expected, dtype), "float64")
    assert (np.asarray(Y, "float64") == rounded).all()
    assert (np.asarray(S.project(X.T), "float64") == rounded.T).all()
    assert (S.T @ Y).shape == (1000, 6) and (S @ X[:, 0]).shape == (200,)


def test_a_result_is_not_changed_by_later_products():
    S, A, B = sketch(), jnp.asarray(whole(1000, 6)), jnp.asarray(whole(1000, 6, seed=1))
    first = S @ A
    kept = np.array(first)
    for _ in range(20):
        S @ B
    assert (np.asarray(first) == kept).all()


def test_pieces_are_summed():
    S, A = sketch(), jnp.asarray(whole(1000, 6))
    assert (S.apply(A[:300], row0=0) + S.apply(A[300:], row0=300) == S @ A).all()


def test_what_is_wrong_gets_a_message():
    S, A = sketch(), jnp.asarray(whole(1000, 6))
    with pytest.raises(TypeError, match="inside jax.jit or jax.grad there are none"):
        jax.jit(lambda A: S @ A)(A)
    with pytest.raises(TypeError, match="JAX arrays cannot be written to"):
        S.update(S @ A, A)
    with pytest.raises(ValueError, match="A has 5 rows, and S is 200 x 1000"):
        S @ A[:5]
    with pytest.raises(TypeError, match="dtype is complex64"):
        S @ A.astype("complex64")


def test_whole_numbers_become_jaxs_widest_type():
    S, A = sketch(), whole(1000, 6)
    for dtype in ("int32", "int16", "uint8", "bool"):
        X = jnp.asarray(A, dtype)
        Y = S @ X
        assert isinstance(Y, jax.Array) and Y.dtype == "float32"
        assert (np.asarray(Y) == S @ np.asarray(X, "float32")).all()
    with jax.enable_x64(True):
        assert (S @ jnp.asarray(A, "int64")).dtype == "float64" and (S @ jnp.asarray(A, "int16")).dtype == "float32"
