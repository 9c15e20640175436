"""PyTorch's tensors, on PyTorch's current stream, and the operator flashsketch::product for autograd and torch.compile.

A tensor that needs no gradient goes to the library directly, because an operator written in Python costs tens of
microseconds a call.  Everything else goes through the operator, whose gradient is the adjoint, which is the operator
again.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch

from ._arrays import (
    Adapter,
    Product,
    Reading,
    check_list,
    check_rows,
    host_list,
    source_rows,
    target_shape,
    unknown_dtype,
)
from ._library import BF16, F16, F32, F64, HOST

if not hasattr(torch.library, "custom_op"):
    raise ImportError(f"flashsketch needs PyTorch 2.7 or later, this is {torch.__version__}")

_DTYPES = {torch.float32: F32, torch.float64: F64, torch.float16: F16, torch.bfloat16: BF16}


class Torch(Adapter):
    name = "torch"

    def read(self, array: Any) -> Reading:
        if array.layout is not torch.strided:
            raise TypeError(f"a sketch takes no tensors of layout {array.layout}; use to_dense()")
        code = _DTYPES.get(array.dtype)
        if code is None:
            raise unknown_dtype(array.dtype)
        if array.is_cuda:
            device = array.get_device()
        elif array.is_cpu:
            device = HOST
        else:
            raise TypeError(f"a tensor is on {array.device}; a sketch takes tensors on cpu and cuda")
        if array.is_neg():
            array = array.resolve_neg()
        return array.data_ptr(), array.shape, array.stride(), code, device, array

    def empty(self, like: Any, shape: Tuple[int, ...], dtype: Optional[str] = None) -> Any:
        return like.new_empty(shape, dtype=getattr(torch, dtype) if dtype else like.dtype)

    def floating(self, array: Any) -> Any:
        dtype = array.dtype
        if dtype in _DTYPES or array.layout is not torch.strided:
            return array
        if dtype.is_floating_point or dtype.is_complex:
            raise unknown_dtype(dtype, "A.to(torch.float64)")
        return array.to(torch.float32 if dtype.itemsize <= 2 else torch.float64)

    def cast(self, array: Any, dtype: Any) -> Any:
        return array.to(getattr(torch, dtype))

    def listed(self, rows: Any, like: Any, count: int) -> Any:
        if not isinstance(rows, torch.Tensor):
            rows = torch.from_numpy(host_list(rows, count, checked=like.is_cuda))
        listed = rows.to(like.device)
        dtype = listed.dtype
        kind = "b" if dtype is torch.bool else "f" if dtype.is_floating_point or dtype.is_complex else "i"
        if check_list(listed.shape, dtype, kind, count):
            return listed.nonzero().flatten()
        return (listed if dtype in (torch.int32, torch.int64) else listed.to(torch.int64)).contiguous()

    def address(self, listed: Any) -> int:
        address: int = listed.data_ptr()
        return address

    def stream(self, device: int) -> int:
        handle: int = torch.cuda.current_stream(device).cuda_stream
        return handle

    def fetched(self, array: Any) -> Any:
        wide = array.float() if array.dtype is torch.bfloat16 else array  # NumPy has no bfloat16
        return wide.detach().cpu().numpy()

    def brought(self, array: Any, like: Any) -> Any:
        return torch.from_numpy(array).to(like.device)

    def written(self, array: Any) -> None:
        torch.autograd.graph.increment_version(array)

    def product(self, what: Product, array: Any) -> Any:
        if torch.compiler.is_compiling() or _traced(array):
            if what.listed is not None:  # autograd can differentiate a copy of the rows
                array = array.index_select(array.dim() - 1 if what.batch else 0, what.listed)
            return torch.ops.flashsketch.product(
                array, what.sketch._key, what.adjoint, what.row0, what.rows, what.batch
            )
        return super().product(what, array)

    def into(self, what: Product, alpha: float, array: Any, beta: float, target: Any) -> None:
        if torch.is_grad_enabled() and (array.requires_grad or getattr(target, "requires_grad", False)):
            raise RuntimeError(
                "a product that is written into a tensor has no gradient: use S.apply without out, or torch.no_grad()"
            )
        super().into(what, alpha, array, beta, target)


def _traced(array: Any) -> bool:
    """Whether PyTorch must see the operation: for a gradient, or because a subclass has its own meaning."""
    return (array.requires_grad and torch.is_grad_enabled()) or type(array) not in (torch.Tensor, torch.nn.Parameter)


ADAPTER = Torch()


# Older versions of PyTorch cannot derive a schema from annotations that are strings, as all are in this file.
@torch.library.custom_op(
    "flashsketch::product",
    mutates_args=(),
    schema="(Tensor A, str key, bool adjoint, SymInt row0, SymInt rows, bool batch) -> Tensor",
)
def _product(A: torch.Tensor, key: str, adjoint: bool, row0: int, rows: int, batch: bool) -> torch.Tensor:
    result: torch.Tensor = Adapter.product(ADAPTER, _asked(key, adjoint, row0, rows, batch), A)
    return result


def _asked(key: str, adjoint: bool, row0: int, rows: int, batch: bool) -> Product:
    from ._sketch import Sketch

    return Product(Sketch._from_key(key), adjoint, row0, rows, batch)


@_product.register_fake
def _(A: torch.Tensor, key: str, adjoint: bool, row0: int, rows: int, batch: bool) -> torch.Tensor:
    what = _asked(key, adjoint, row0, rows, batch)
    check_rows(what, source_rows(A, batch))
    return A.new_empty(target_shape(what, A.shape))


def _setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    ctx.arguments = inputs[1:]


def _backward(ctx: Any, grad: torch.Tensor) -> Tuple[Any, ...]:
    key, adjoint, row0, rows, batch = ctx.arguments
    return torch.ops.flashsketch.product(grad, key, not adjoint, row0, rows, batch), None, None, None, None, None


_product.register_autograd(_backward, setup_context=_setup_context)
