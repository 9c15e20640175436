"""Dask arrays: a product is a blockwise map and a tree of sums, and nothing is computed before Dask computes it.

The first row of a chunk of A is known, so S needs only the chunk: S A is the sum over chunks of rows of S[:, row0 :
row0 + rows] A_chunk, computed in the chunk's own framework (NumPy, CuPy, SciPy sparse).  Sums are in float32 (float64
for float64), pairwise and always in the same order, and rounded to A's type once.
"""

from __future__ import annotations

from typing import Any, List

import dask.array
import dask.base
import numpy

from ._arrays import Adapter, Product, adapter_of, check_rows, source_rows


# Dask has no types for these.
normalize_chunks: Any = dask.array.core.normalize_chunks
concatenate: Any = dask.array.concatenate
compute: Any = dask.base.compute


class Dask(Adapter):
    name = "dask"

    @property
    def dense(self) -> Adapter:
        """The framework of a task's results."""
        return adapter_of(numpy.empty(0))

    def sketches(self, sketch: Any, A: Any, B: Any) -> List[Any]:
        """S A, and S B where there is a B of Dask's or NumPy's, in the type of sums: computed here, for a task, in one
        pass over the chunks of both."""
        check_in_host_memory(A)
        lazy = [sums(Product(sketch, False, 0, sketch.d, False), A)]
        if isinstance(B, dask.array.Array):
            check_in_host_memory(B)
            lazy.append(sums(Product(sketch, False, 0, sketch.d, False), B))
        elif B is not None:
            lazy.append(sketch @ B)
        return list(compute(*lazy))

    def residuals(self, A: Any, x: Any, B: Any) -> Any:
        """|A x - B| of each column: another pass over the chunks."""
        gap = A.astype("float64") @ x.astype("float64") - B
        return numpy.sqrt(numpy.atleast_1d((gap * gap).sum(axis=0).compute()))

    def fetched(self, array: Any) -> Any:
        chunk = array.compute()
        return adapter_of(chunk).fetched(chunk)

    def listed(self, rows: Any, like: Any, count: int) -> Any:
        raise TypeError("rows cannot be gathered from a Dask array, which is computed later; use S.apply(A[rows])")

    def product(self, what: Product, array: Any) -> Any:
        return sums(what, array).astype(array.dtype)

    def into(self, what: Product, alpha: float, array: Any, beta: float, target: Any) -> None:
        raise TypeError("a Dask array is computed later, so its product cannot be written into an array: use S @ A")


def sums(what: Product, array: Any) -> Any:
    """The product, where it is a sum (not of the adjoint) in the type of sums."""
    check_rows(what, source_rows(array, what.batch))
    check_known(array)
    if not what.adjoint and what.rows > what.sketch.d - what.row0:  # the library would report it at the computation
        raise ValueError(f"rows {what.row0} to {what.row0} + {what.rows} of A are not all in S, d = {what.sketch.d}")
    if array.ndim == 1:
        column = array[None, :] if what.batch else array[:, None]
        return sums(what, column).reshape(what.target_rows())
    if what.batch:
        flat = Product(what.sketch, what.adjoint, what.row0, what.rows, False)
        return sums(flat, array.T).T
    return _adjoint(what, array) if what.adjoint else _apply(what, array)


def check_known(array: Any) -> None:
    if any(numpy.isnan(size) for sizes in array.chunks for size in sizes):
        raise ValueError("a Dask array has chunks of unknown size: call A.compute_chunk_sizes()")


def check_in_host_memory(array: Any) -> None:
    meta = array._meta
    if not isinstance(meta, numpy.ndarray) and not type(meta).__module__.startswith("scipy."):
        raise TypeError(
            f"a Dask array has chunks of {type(meta).__module__}; a task takes those of NumPy and SciPy: "
            "A.map_blocks(cupy.asnumpy) converts CuPy's"
        )


def _wide(dtype: Any) -> Any:
    """The type of sums."""
    return numpy.dtype("float64") if dtype == numpy.dtype("float64") else numpy.dtype("float32")


def _apply(what: Product, array: Any) -> Any:
    """A partial result for each chunk of rows, stacked, and their sum, two at a time: at most log2 of their number are
    held on a worker."""
    wide = _wide(array.dtype)
    parts = array.map_blocks(
        _part,
        what.sketch,
        what.row0,
        dtype=wide,
        new_axis=1,
        chunks=((1,) * len(array.chunks[0]), (what.sketch.k,), array.chunks[1]),
        meta=_meta(array, wide, 3),
    )
    return parts.sum(axis=0, dtype=wide, split_every=2)


def _part(chunk: Any, sketch: Any, row0: int, block_info: Any = None) -> Any:
    first = row0 + block_info[0]["array-location"][0][0]
    wide = _wide(chunk.dtype)
    if chunk.dtype == wide or hasattr(chunk, "tocsr"):
        return sketch.apply(chunk, row0=first).astype(wide, copy=False)[None]
    out = numpy.empty_like(chunk, dtype=wide, shape=(sketch.k, chunk.shape[1]))
    return sketch.apply(chunk, out=out, row0=first)[None]


def _adjoint(what: Product, array: Any) -> Any:
    array = array.rechunk({0: -1})
    chunks = normalize_chunks(("auto", array.chunks[1]), (what.rows, array.shape[1]), dtype=array.dtype)
    row0, parts = what.row0, []
    for rows in chunks[0]:
        shape = ((rows,), array.chunks[1])
        meta = _meta(array, array.dtype, 2)
        parts.append(array.map_blocks(_rows, what.sketch, row0, rows, dtype=array.dtype, chunks=shape, meta=meta))
        row0 += rows
    return concatenate(parts, axis=0)


def _rows(chunk: Any, sketch: Any, row0: int, rows: int) -> Any:
    return sketch.T.apply(chunk, row0=row0, rows=rows)


def _meta(array: Any, dtype: Any, dimensions: int) -> Any:
    """An empty array of the chunks' framework; of sparse chunks the product is dense."""
    dense = numpy.empty(0) if hasattr(array._meta, "tocsr") else array._meta
    return numpy.empty_like(dense, dtype=dtype, shape=(0,) * dimensions)


ADAPTER = Dask()
