"""09_distributed.py - rows spread over the ranks of torch.distributed: each rank sketches its own, and only Y is sent.

    python3 09_distributed.py                          two ranks on this machine
    torchrun --nproc-per-node 4 09_distributed.py      as many as torchrun starts, on as many machines

Needs PyTorch.
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import flashsketch as fs
import flashsketch.distributed as fsd

D, N, K = 100_000, 20, 512


def work() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    rows = D * (rank + 1) // size - D * rank // size
    A = torch.randn(rows, N, generator=torch.Generator().manual_seed(rank))  # the rows of this rank

    S = fs.Sketch(k=K, d=D, seed=7)
    Y = fsd.all_reduce(S, A)  # S A of all rows, K x N, on every rank

    exact = A.T @ A
    dist.all_reduce(exact)  # the Gram matrix in the ordinary way, to compare with
    error = torch.linalg.norm(Y.T @ Y - exact) / torch.linalg.norm(exact)
    if rank == 0:
        print(f"{size} ranks, A is {D} x {N}, Y is {K} x {N}: the Gram matrix of Y is that of A within {error:.1%}")
    assert error < 0.5


def start(rank: int, size: int, meeting: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
    work()
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:  # torchrun's
        dist.init_process_group("gloo")
        work()
        dist.destroy_process_group()
    else:
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(start, (2, os.path.join(folder, "meet")), nprocs=2)
