"""The C structs that the package reads and writes: their members in order, each with its code of the module `struct`.

The one place of these layouts.  tests/python/test_layouts.py compares them with tests/abi/layouts.h, which the C tests
compare with the headers.
"""

from __future__ import annotations

import struct
from typing import Dict, Tuple

STRUCTS: Dict[str, str] = {
    "fs_spec": "size:N family:i d:q k:q seed:Q M:q kappa:q s:q shuffle:i interleave:q quality:i",
    "fs_context_options": "size:N backend:i threads:i device:i stream:P allocator:3P precision:i isa:P",
    "fs_matrix": "data:P rows:q cols:q row_stride:q col_stride:q offset:q size:q dtype:i memory:i",
    "fs_sparse": "format:i index_type:i rows:q cols:q nnz:q ptr:P index:P value:P dtype:i memory:i",
    "fs_rows": "count:q index_type:i index:P memory:i",
    "fs_task_shape": "size:N k:q n:q rhs:q dtype:i basis:q",
    "fs_gram_report": "size:N sketch_seconds:d solve_seconds:d total_seconds:d error:d low:d high:d effective_k:d "
    "confidence:d note:320s",
    "fs_ose_report": "size:N sketch_seconds:d solve_seconds:d total_seconds:d error:d frobenius:d sigma_min:d "
    "sigma_max:d expected:d low:d high:d",
    "fs_fit_report": "size:N sketch_seconds:d solve_seconds:d total_seconds:d method:i rank:q condition:d sketched:d "
    "rhs:d residual:d low:d high:d smallest:d confidence:d note:320s",
    "fs_progress": "at:P user:P",
    "fs_slices": "size:N rows:q cols:q dtype:i rewind:P next:P user:P checkpoint:P",
    "fs_operand": "size:N dense:P sparse:P slices:P",
    "fs_lstsq_options": "size:N lambda:d rcond:d tolerance:d max_iterations:q method:i sketch:P seed:Q measure_error:i "
    "ranks:P progress:P",
    "fs_lstsq_report": "size:N method:i k:q rank:q condition:d iterations:q reads:q converged:i backward_error:d "
    "true_backward_error:d residual:d solution:d seconds:d sketch_seconds:d note:320s",
    "fs_qr_options": "size:N pivot:i rcond:d sketch:P seed:Q ranks:P progress:P",
    "fs_qr_report": "size:N k:q rank:q condition:d orthogonality:d reads:q seconds:d",
    "fs_svd_options": "size:N rank:q oversampling:q power_steps:i one_read:i seed:Q ranks:P progress:P",
    "fs_svd_report": "size:N rank:q sketch:q reads:q norm:d error:d low:d high:d confidence:d seconds:d",
    "fs_leverage_options": "size:N exact:i error:d rcond:d sketch:P seed:Q ranks:P progress:P",
    "fs_leverage_report": "size:N rank:q sum:d largest:d row:q error:d reads:q seconds:d",
    "fs_plan_options": "size:N d:q n:q error:d probability:d coherent:i",
    "fs_plan_report": "size:N k:q kappa:q s:q typical:d exceeded:d reason:320s",
    "fs_attribution_options": "size:N examples:q parts:i parameters:P mask:q run:q scale:d sketch:P",
}


def members(name: str) -> Tuple[Tuple[str, str], ...]:
    """(member, code) of a struct."""
    return tuple((member, code) for member, _, code in (item.partition(":") for item in STRUCTS[name].split()))


def layout(*names: str) -> struct.Struct:
    """Structs that follow one another in memory, with the alignment and the padding of C."""
    return struct.Struct("@" + "".join("".join(code for _, code in members(name)) + "0q" for name in names))
