"""10_dask.py - a Dask array larger than we would like to hold: S @ A is a map over its chunks and a tree of sums.

Here chunks are generated when they are needed; with dask.array.from_zarr, from_npy_stack or read_parquet they would
come from files, and with a Dask cluster from many machines.  Every chunk is sketched where it is, and only Y is
communicated.
"""

import dask.array as da
import numpy as np

import flashsketch as fs

D, N, K = 1_000_000, 16, 512

A = da.random.default_rng(0).standard_normal((D, N), dtype="float32", chunks=(50_000, N))
S = fs.Sketch(k=K, d=D, seed=7)
Y = S @ A  # nothing has been computed yet
print("A has", A.npartitions, "chunks; Y is", Y.shape, Y.dtype)

sketched, exact = da.compute(Y, A.T @ A)  # both in one pass over A
error = np.linalg.norm(sketched.T @ sketched - exact) / np.linalg.norm(exact)
print(f"the Gram matrix of Y is that of A within {error:.1%}")
assert error < 0.5
