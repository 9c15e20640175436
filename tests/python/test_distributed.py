"""torch.distributed with gloo, in processes of this machine: every rank its own rows, one sum."""

import os
import subprocess
import sys

import pytest
from properties import sketch, whole

torch = pytest.importorskip("torch", "2.7")
if not torch.distributed.is_available():
    pytest.skip("this PyTorch has no torch.distributed", allow_module_level=True)

import flashsketch.distributed as fsd


def cut(size, rank, d=1000):
    return d * rank // size, d * (rank + 1) // size


def properties_of_one_rank(rank, size):
    """All properties, one after the other on every rank; what fails ends the rank, and with it the test."""
    A = torch.from_numpy(whole(1000, 6))
    first, last = cut(size, rank)
    for options in ({}, {"family": "sjlt"}, {"k": 37}):
        S = sketch(**options)
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            own, want = A[first:last].to(dtype), S @ A.to(dtype)
            assert torch.equal(fsd.all_reduce(S, own), want), (options, dtype)
            assert torch.equal(fsd.all_reduce(S, own, first), want)
            row, count = fsd.rows(S)
            got = fsd.reduce_scatter(S, own)
            assert got.shape == (count, 6) and torch.equal(got, want[row : row + count]), (options, dtype)
    # Ranks without rows, and rows in another order than the ranks.
    S, Y = sketch(), sketch() @ A
    assert torch.equal(fsd.all_reduce(S, A if rank == size - 1 else A[:0]), Y)
    back, end = cut(size, size - 1 - rank)
    assert torch.equal(fsd.all_reduce(S, A[back:end], back), Y)

    bad = size - 1
    own = A[first:last]
    for make, kind, message in [
        (lambda: fsd.all_reduce(S, own[0] if rank == bad else own), ValueError, f"rank {bad}: A has shape (6,)"),
        (lambda: fsd.all_reduce(S, own.int() if rank == bad else own), TypeError, f"rank {bad}: A's dtype is"),
        (lambda: fsd.all_reduce(S, "no tensor" if rank == bad else own), TypeError, f"rank {bad}: a sketch and"),
        (lambda: fsd.all_reduce(S, own.clone().requires_grad_(rank == bad)), RuntimeError, f"rank {bad}: a product"),
        (lambda: fsd.all_reduce(S, own, 2**70 if rank == bad else first), ValueError, f"rank {bad}: a product over "
         "ranks: row0 is 1180591620717411303424, it must be from 0 to 1000"),
        (lambda: fsd.all_reduce(S, own, 1.5 if rank == bad else first), TypeError,
         "row0 is 1.5, it must be an integer"),
        (lambda: fsd.all_reduce(S, own[:-1]), ValueError, "rows together"),
        (lambda: fsd.all_reduce(S, own, first + (rank == bad)), ValueError, f"rank {bad}: "),
    ]:
        refused(make, kind, message)
    if size > 1:
        refused(lambda: fsd.all_reduce(S, own, 0), ValueError, "no row may be on two ranks")
        refused(lambda: fsd.all_reduce(S, own[:, rank == bad :]), ValueError, "another number of columns")
        refused(lambda: fsd.all_reduce(sketch(seed=rank == bad), own), ValueError, "another sketch than rank 0")
    assert torch.equal(fsd.all_reduce(S, own), Y)  # and ranks continue


def refused(call, kind, message):
    try:
        call()
    except kind as error:
        assert message in str(error), (message, str(error))
    else:
        raise AssertionError(f"nothing was raised: {message}")


@pytest.mark.parametrize("size", [1, 3])
def test_rows_spread_over_ranks_give_the_same_bits(size, tmp_path):
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, str(rank), str(size), str(tmp_path / "meet")],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(size)
    ]
    try:
        told = [process.communicate(timeout=120)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * size, "\n".join(told)


if __name__ == "__main__":
    number, ranks, meeting = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=number, world_size=ranks)
    properties_of_one_rank(number, ranks)
    torch.distributed.destroy_process_group()
