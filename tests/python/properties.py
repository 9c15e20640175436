"""What the tests share: integers, sketches of every family, and S written out.

With integers and a sketch whose scale is a power of two, every sum is exact in any order and any type that holds
it, so that products are compared by ==.
"""

import numpy as np

import flashsketch as fs

FAMILIES = [
    {},
    {"batch_major": True},
    {"kappa": 2, "s": 2},
    {"shuffle": "none", "kappa": 4, "s": 1},
    {"family": "sjlt"},
    {"family": "blockrow"},
    {"family": "srht"},
    {"family": "gaussian"},
]


def sketch(k=200, d=1000, seed=7, quality="fast", **options):
    """A sketch; where kappa and s are not given they are 1 and 4, whose scale is a power of two."""
    return fs.Sketch(k=k, d=d, seed=seed, quality=quality, **options)


def dense(S):
    """S as a NumPy matrix of float64."""
    return S.to_scipy().toarray()


def whole(*shape, seed=0, dtype="float32"):
    """Integers from -4 to 4."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)
