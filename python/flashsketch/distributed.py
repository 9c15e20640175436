"""Tensors whose rows are spread over the ranks of torch.distributed: every rank sketches its own, and only Y is
communicated.

    Y = flashsketch.distributed.all_reduce(S, A)          # A: this rank's rows; Y = S A of all of them, on every rank
    Y = flashsketch.distributed.reduce_scatter(S, A)      # some rows of Y on every rank; `rows` says which

Partial results are float32 (float64 for float64) until they have been summed, for half types too, and are rounded once.
An error on one rank raises the same exception on all ranks: no rank deadlocks.  The order of the sum is the backend's
(NCCL, gloo).
"""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch
import torch.distributed as dist

from ._library import whole
from ._sketch import Sketch

__all__ = ["all_reduce", "reduce_scatter", "rows"]

# gloo has reduce_scatter_tensor from this version of PyTorch on at the latest; before, all of Y is summed and cut.
_GLOO_SCATTERS = (2, 15)


def all_reduce(S: Sketch, A: torch.Tensor, row0: Optional[int] = None, *, group: Any = None) -> torch.Tensor:
    """Y = S A, k x n on every rank, for an A whose rows are spread over the ranks of `group`.

    A: this rank's rows, possibly none, with the same number of columns on every rank. row0: the first of them in the d
    rows of the whole; None: in the order of ranks, from rank 0 on.
    """
    part = _part(S, A, row0, group)
    dist.all_reduce(part, group=group)
    return part.to(A.dtype)


def reduce_scatter(S: Sketch, A: torch.Tensor, row0: Optional[int] = None, *, group: Any = None) -> torch.Tensor:
    """The rows of Y = S A that `rows` gives this rank; otherwise as all_reduce."""
    part = _part(S, A, row0, group)
    first, count = rows(S, group)
    version = tuple(int(number) for number in torch.__version__.split(".")[:2])
    if dist.get_backend(group) == "gloo" and version < _GLOO_SCATTERS:
        dist.all_reduce(part, group=group)
        return part[first : first + count].to(A.dtype)
    size = dist.get_world_size(group)
    each = -(-S.k // size)
    if each * size > S.k:  # the backends scatter equal parts
        part = torch.cat([part, part.new_zeros(each * size - S.k, part.shape[1])])
    own = part.new_empty(each, part.shape[1])
    dist.reduce_scatter_tensor(own, part, group=group)
    return own[:count].to(A.dtype)


def rows(S: Sketch, group: Any = None) -> Tuple[int, int]:
    """(first, count): the rows of Y that reduce_scatter gives this rank: k divided by the ranks, rounded up, for each;
    the last ranks get the rest."""
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    each = -(-S.k // size)
    first = min(each * rank, S.k)
    return first, min(each, S.k - first)


def _part(S: Sketch, A: torch.Tensor, row0: Optional[int], group: Any) -> torch.Tensor:
    """This rank's partial result, once all ranks have one."""
    problem: Optional[Exception] = None
    try:
        _check(S, A, row0)
    except (TypeError, ValueError, RuntimeError) as error:
        problem = error
    row0 = _agree(S, A, row0, group, problem)
    try:
        part = torch.empty((S.k, A.shape[1]), dtype=torch.promote_types(A.dtype, torch.float32), device=A.device)
        with torch.no_grad():
            S.apply(A, out=part, row0=row0)
    except (TypeError, ValueError, RuntimeError, MemoryError) as error:  # of the library, and of PyTorch's memory
        problem = error
    _raise_together(group, problem)
    return part


def _check(S: Sketch, A: torch.Tensor, row0: Optional[int]) -> None:
    if row0 is not None and isinstance(S, Sketch):  # a number of more than 64 bits could not even be sent
        whole("row0", row0, 0, S.d, who="a product over ranks")
    if not isinstance(S, Sketch) or not isinstance(A, torch.Tensor):
        raise TypeError(f"a sketch and a tensor are needed, not {type(S).__name__} and {type(A).__name__}")
    if A.dim() != 2:
        raise ValueError(f"A has shape {tuple(A.shape)}; rows on ranks are those of a matrix")
    if not A.dtype.is_floating_point:
        raise TypeError(
            f"A's dtype is {A.dtype}; over ranks a sketch takes float32, float64, float16 and bfloat16: convert it "
            "first, A.to(torch.float64)"
        )
    if A.requires_grad and torch.is_grad_enabled():
        raise RuntimeError("a product over ranks has no gradient: detach A, or use torch.no_grad()")


def _device(group: Any) -> torch.device:
    """The device of a group's messages."""
    if dist.get_backend(group) == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _gather(numbers: List[int], group: Any) -> List[List[int]]:
    """The numbers of every rank."""
    mine = torch.tensor(numbers, dtype=torch.int64, device=_device(group))
    found = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
    dist.all_gather(found, mine, group=group)
    return [numbers.tolist() for numbers in found]


def _raise_together(group: Any, problem: Optional[Exception]) -> None:
    """Raises on all ranks the error of the lowest rank that has one, prefixed with its rank."""
    failed = _gather([problem is not None], group)
    first = next((rank for rank, flags in enumerate(failed) if flags[0]), None)
    if first is None:
        return
    news = [None if problem is None else (type(problem), str(problem))]
    source = first if group is None else dist.get_global_rank(group, first)
    dist.broadcast_object_list(news, src=source, group=group, device=_device(group))
    kind, message = news[0]  # type: ignore[misc]
    raise kind(f"rank {first}: {message}")


def _agree(S: Sketch, A: torch.Tensor, row0: Optional[int], group: Any, problem: Optional[Exception]) -> int:
    """The first of this rank's rows, once all ranks request the same product and no row is on two of them."""
    _raise_together(group, problem)
    wide = torch.promote_types(A.dtype, torch.float32)
    key = int.from_bytes(S._key.encode(), "little") % (2**61 - 1)
    said = -1 if row0 is None else int(row0)
    all_ranks = _gather([key, A.shape[1], wide.itemsize, row0 is None, A.shape[0], said], group)
    for rank, found in enumerate(all_ranks):
        for name, own, other in zip(("sketch", "number of columns", "width of sums", "row0"), all_ranks[0], found):
            if own != other:
                shown = {"sketch": "", "row0": " (a number or None)"}.get(name, f": {other} and {own}")
                raise ValueError(f"rank {rank} has another {name} than rank 0{shown}")
    counts = [found[4] for found in all_ranks]
    starts = [sum(counts[:rank]) if row0 is None else found[5] for rank, found in enumerate(all_ranks)]
    if row0 is None and sum(counts) != S.d:
        raise ValueError(
            f"the ranks have {sum(counts)} rows together, and S is {S.k} x {S.d}: give the first row of each (row0)"
        )
    order = sorted((start, count, rank) for rank, (start, count) in enumerate(zip(starts, counts)) if count)
    for (start, count, rank), (later, _, other) in zip(order, order[1:]):
        if start + count > later:
            raise ValueError(
                f"rank {rank} has rows {start} to {start + count - 1} and rank {other} has rows from {later} on: "
                "no row may be on two ranks"
            )
    return int(starts[dist.get_rank(group)])
