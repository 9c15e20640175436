#!/usr/bin/env python3
"""Measures this library's solvers beside NumPy's, SciPy's and scikit-learn's (and PyTorch's on a GPU), in turns in one
process; prints a line of JSON for each method of each case.

    python3 bench/compare_solvers.py --library build/release/src/libflashsketch.so [--case TEXT] [--small] [--cuda]
        [--threads 2] [--seconds 20] [--reps 9] [--commit NAME] [--record bench/results/MACHINE/solve_python.jsonl]

The library is called through ctypes as C programs call it.  A turn is one call of every method of the case and one read
of A (its sum); times are medians over turns, of which 3 are taken at least.  Peers that are not installed have no line.
What a record already has is not measured again.

Errors: lstsq has Karlson and Walden's backward error over |A|_F, by the singular values that A was made from, and the
forward error; qr |Q'Q - I|_F; svd |A - U s V'|_F over the least that this rank allows; pca the same of the centred A;
leverage the relative root mean square error of the scores.
"""
import argparse
import ctypes
import datetime
import functools
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
import typing

F32, F64, HOST, CUDA, CSR = 1, 2, 0, 1, 1
LEAST_TURNS = 3
Method = typing.Tuple[str, str, typing.Callable[[], typing.Any]]  # name, library, call
i64, f64, pointer, flag = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p, ctypes.c_int


def struct(name, *fields):
    """A structure of the C header, whose first field is its size where the header has one."""
    return type(name, (ctypes.Structure,), {"_fields_": [(field, kind) for kind, names in fields
                                                         for field in names.split()]})


size = (ctypes.c_size_t, "size")
Matrix = struct("Matrix", (pointer, "data"), (i64, "rows cols row_stride col_stride offset count"),
                (flag, "dtype memory"))
Sparse = struct("Sparse", (flag, "format index_type"), (i64, "rows cols nnz"), (pointer, "ptr index value"),
                (flag, "dtype memory"))
ContextOptions = struct("ContextOptions", size, (flag, "backend threads device"),
                        (pointer, "stream alloc release user"), (flag, "precision"), (pointer, "isa"))
Operand = struct("Operand", size, (pointer, "dense sparse slices"))
NEXT = ctypes.CFUNCTYPE(flag, pointer, ctypes.POINTER(Matrix), pointer)
REWIND = ctypes.CFUNCTYPE(flag, pointer)
Slices = struct("Slices", size, (i64, "rows cols"), (flag, "dtype"), (REWIND, "rewind"), (NEXT, "next"),
                (pointer, "user"))
LstsqOptions = struct("LstsqOptions", size, (f64, "damping rcond tolerance"), (i64, "max_iterations"), (flag, "method"),
                      (pointer, "sketch"), (ctypes.c_uint64, "seed"), (flag, "measure_error"),
                      (pointer, "ranks progress"))
LstsqReport = struct("LstsqReport", size, (flag, "method"), (i64, "k rank"), (f64, "condition"),
                     (i64, "iterations reads"), (flag, "converged"),
                     (f64, "backward_error true_backward_error residual solution seconds sketch_seconds"),
                     (ctypes.c_char * 320, "note"))
QrOptions = struct("QrOptions", size, (flag, "pivot"), (f64, "rcond"), (pointer, "sketch"), (ctypes.c_uint64, "seed"),
                   (pointer, "ranks progress"))
SvdOptions = struct("SvdOptions", size, (i64, "rank oversampling"), (flag, "power_steps one_read"),
                    (ctypes.c_uint64, "seed"), (pointer, "ranks progress"))
LeverageOptions = struct("LeverageOptions", size, (flag, "exact"), (f64, "error rcond"), (pointer, "sketch"),
                         (ctypes.c_uint64, "seed"), (pointer, "ranks progress"))


class Library:
    """This library's functions on arrays of NumPy, SciPy and PyTorch."""

    def __init__(self, path, threads, cuda):
        self.lib = ctypes.CDLL(path)
        self.lib.fs_error_message.restype = ctypes.c_char_p
        self.cuda, self.context = cuda, pointer()
        options = ContextOptions(size=ctypes.sizeof(ContextOptions), backend=2 if cuda else 1, threads=threads)
        self.call("fs_context_create", ctypes.byref(self.context), ctypes.byref(options))

    def call(self, name, *arguments):
        if getattr(self.lib, name)(*arguments):
            sys.exit(f"compare_solvers.py: {name}: {self.lib.fs_error_message().decode()}")

    def matrix(self, a):
        """A view of a NumPy array or a PyTorch tensor."""
        torch = not hasattr(a, "ctypes")
        strides = a.stride() if torch else [s // a.itemsize for s in a.strides]
        data = a.data_ptr() if torch else a.ctypes.data
        rows, cols, across = (a.shape[0], 1, 1) if a.ndim == 1 else (*a.shape, strides[1])
        return Matrix(data, rows, cols, strides[0], across, 0, 0, F64 if a.itemsize == 8 else F32,
                      CUDA if torch and a.is_cuda else HOST)

    def operand(self, A):
        if isinstance(A, Slices):
            return Operand(size=ctypes.sizeof(Operand), slices=ctypes.addressof(A)), A
        view = self.sparse(A) if hasattr(A, "indptr") else self.matrix(A)
        which = "sparse" if hasattr(A, "indptr") else "dense"
        return Operand(size=ctypes.sizeof(Operand), **{which: ctypes.addressof(view)}), view

    @staticmethod
    def sparse(A):
        return Sparse(CSR, 1 if A.indptr.itemsize == 4 else 2, *A.shape, A.nnz, A.indptr.ctypes.data,
                      A.indices.ctypes.data, A.data.ctypes.data, F64 if A.data.itemsize == 8 else F32, HOST)

    def solve(self, name, A, options, *arguments):
        """fs_NAME(context, A, [B,] options, outputs ...): views in place of arrays, None for NULL."""
        operand, kept = self.operand(A)
        options = options and ctypes.byref(options)
        views = [self.matrix(a) if hasattr(a, "shape") else a for a in arguments]
        passed = [ctypes.byref(v) if isinstance(v, ctypes.Structure) else v for v in views]
        before = [passed.pop(0)] if name == "lstsq" else []
        self.call(f"fs_{name}", self.context, ctypes.byref(operand), *before, options, *passed)
        return kept

    def lstsq(self, A, b, x):
        report = LstsqReport(size=ctypes.sizeof(LstsqReport))
        self.solve("lstsq", A, None, b, x, report)
        return {"reads_made": report.reads, "iterations": report.iterations, "rank": report.rank}

    def qr(self, A, Q, R, pivots=None):
        options = QrOptions(size=ctypes.sizeof(QrOptions), pivot=pivots is not None)
        self.solve("qr", A, options, Q, R, pivots.ctypes.data_as(pointer) if pivots is not None else None, None)

    def svd(self, A, s, U, V, **options):
        options = SvdOptions(size=ctypes.sizeof(SvdOptions), **{"rank": len(s), "power_steps": -1, **options})
        self.solve("svd", A, options, U, s.ctypes.data_as(pointer), V, None)

    def pca(self, A, s, U, V, **options):
        options = SvdOptions(size=ctypes.sizeof(SvdOptions), **{"rank": len(s), "power_steps": -1, **options})
        self.solve("pca", A, options, None, U, s.ctypes.data_as(pointer), V, None)

    def leverage(self, A, scores, **options):
        options = LeverageOptions(size=ctypes.sizeof(LeverageOptions), **options)
        self.solve("leverage", A, options, scores.ctypes.data_as(pointer), None)


class Record:
    """A file of JSON lines that a run continues, or stdout."""

    def __init__(self, path, common):
        self.common, self.path, self.cells = common, path, set()
        if path and path.exists():
            self.cells = {json.loads(line)["cell"] for line in path.read_text().splitlines()}

    def write(self, fields):
        line = json.dumps({**fields, **self.common})
        if not self.path:
            print(line, flush=True)
            return
        with self.path.open("a") as file:
            file.write(line + "\n")


def seconds_of(call, wait):
    start = time.perf_counter()
    result = call()
    wait()
    return time.perf_counter() - start, result


def measure(case, methods, read, errors, options, record, fields, wait=lambda: None):
    """Times of methods (name, by, call) in turns.  errors(result) returns fields of the record.  A call may return a
    dictionary: its entry `result` is the result, the others are fields.  A peer that fails is recorded as such."""
    if all(f"{case}/{name}" in record.cells for name, _, _ in methods):
        return
    taken: dict[str, list[float]] = {name: [] for name, _, _ in methods}
    found, failed = {}, {}
    for name, by, call in methods:  # the first call touches memory and counts for errors only
        try:
            result = call()
        except (RuntimeError, ValueError) as error:  # LinAlgError of PyTorch and NumPy
            if by != "peer":
                raise
            failed[name] = {"outcome": "breaks down", "why": str(error).splitlines()[0]}
            continue
        extra = {key: value for key, value in result.items() if key != "result"} if isinstance(result, dict) else {}
        found[name] = {**extra, **errors(result["result"] if isinstance(result, dict) else result)}
        del result
    reads: list[float] = []
    start = time.perf_counter()
    while len(reads) < LEAST_TURNS or len(reads) < options.reps and time.perf_counter() - start < options.seconds:
        reads.append(seconds_of(read, wait)[0])
        for name, _, call in methods:
            if name not in failed:
                taken[name].append(seconds_of(call, wait)[0])
    read_ms = 1e3 * statistics.median(reads)
    for name, by, _ in methods:
        if f"{case}/{name}" in record.cells:
            continue
        cell = {"cell": f"{case}/{name}", "case": case, "method": name, "by": by, **fields,
                "read_ms": round(read_ms, 4)}
        if name in failed:
            record.write({**cell, **failed[name]})
        else:
            ms = 1e3 * statistics.median(taken[name])
            record.write({**cell, "ms": round(ms, 4), "ms_min": round(1e3 * min(taken[name]), 4),
                          "reads": round(ms / read_ms, 3), **found[name], "reps": len(reads)})


# problems -------------------------------------------------------------------------------------------------------------

def orthonormal(np, draw, d, n):
    """Orthonormal columns: Cholesky QR twice of a random matrix."""
    U = draw.standard_normal((d, n))
    for _ in range(2):
        U = np.linalg.solve(np.linalg.cholesky(U.T @ U), U.T).T
    return U


def least_squares(np, d, n, dtype, cond):
    """A = U s V' of geometric s from 1 to 1 / cond, and b with a residual of a tenth, as in bench/solve/solve.h."""
    draw = np.random.default_rng(1)
    U, V = orthonormal(np, draw, d, n), np.linalg.qr(draw.standard_normal((n, n)))[0]
    s = cond ** -np.linspace(0, 1, n)
    y = draw.standard_normal(n)
    e = draw.standard_normal(d)
    for _ in range(2):
        e -= U @ (U.T @ e)
    b = U @ (s * y)
    b += 0.1 * np.linalg.norm(b) / np.linalg.norm(e) * e
    A = np.ascontiguousarray(((U * s) @ V.T).astype(dtype))
    return A, b.astype(dtype), V @ y, s, V


def lstsq_errors(np, A, b, x_star, s, V):
    norm, b_norm = np.linalg.norm(s), np.linalg.norm(b.astype(np.float64))

    def errors(x):
        x = np.asarray(x, np.float64).ravel()
        r = b - A.astype(np.float64, copy=False) @ x
        theta = norm / b_norm
        h = np.sqrt(1 + theta**2 * (x @ x))
        shift = theta * np.linalg.norm(r) / h
        g = V.T @ (A.T.astype(np.float64, copy=False) @ r)
        return {"backward": float(theta / h * np.linalg.norm(g / np.hypot(s, shift)) / norm),
                "forward": float(np.linalg.norm(x - x_star) / np.linalg.norm(x_star))}
    return errors


def low_rank(np, d, n, dtype, spectrum):
    """A = G s V': G Gaussian, d x n, which is nearly orthonormal for d much above n, V random orthonormal."""
    draw = np.random.default_rng(2)
    s = spectrum(np.arange(1, n + 1))
    V = np.linalg.qr(draw.standard_normal((n, n)))[0]
    mixing = (s[:, None] * V.T / np.sqrt(d)).astype(dtype)
    A = np.empty((d, n), dtype)
    for i in range(0, d, 8192):
        A[i:i + 8192] = draw.standard_normal((len(A[i:i + 8192]), n), dtype) @ mixing
    return A


# cases ----------------------------------------------------------------------------------------------------------------

def lstsq_case(np, ours, options, record, d, n, name, cond):
    import scipy.linalg
    dtype = np.dtype(name)
    case = f"lstsq/{d}x{n}/{name}/cond{cond:g}"
    if options.skips(case):
        return
    A, b, x_star, s, V = least_squares(np, d, n, dtype, cond)
    x = np.empty(n)
    methods = [
        ("flashsketch", "library", lambda: {**ours.lstsq(A, b, x), "result": x.copy()}),
        ("numpy.linalg.lstsq", "peer", lambda: np.linalg.lstsq(A, b, rcond=None)[0]),
        ("scipy gelsy", "peer", lambda: scipy.linalg.lstsq(A, b, lapack_driver="gelsy", check_finite=False)[0]),
    ]
    measure(case, methods, A.sum, lstsq_errors(np, A, b, x_star, s, V), options, record,
            {"task": "lstsq", "d": d, "n": n, "dtype": name, "cond": cond})


def qr_case(np, ours, options, record, d, n, name, pivoted):
    import scipy.linalg
    dtype = np.dtype(name)
    task = "pivoted" if pivoted else "qr"
    case = f"{task}/{d}x{n}/{name}"
    if options.skips(case):
        return
    A = least_squares(np, d, n, dtype, 1e6 if dtype.itemsize == 4 else 1e14)[0]
    Q, R = np.empty((d, n), dtype), np.empty((n, n), dtype)
    pivots = np.empty(n, np.int64) if pivoted else None

    def call():
        ours.qr(A, Q, R, pivots)
        return Q
    peer = (("scipy.linalg.qr(pivoting=True)",
             lambda: scipy.linalg.qr(A, mode="economic", pivoting=True, check_finite=False)[0]) if pivoted else
            ("numpy.linalg.qr", lambda: np.linalg.qr(A)[0]))

    def errors(basis):
        gap = basis.T.astype(np.float64) @ basis.astype(np.float64) - np.eye(n)
        return {"orthogonality": float(np.linalg.norm(gap))}
    measure(case, [("flashsketch", "library", call), (peer[0], "peer", peer[1])], A.sum, errors, options, record,
            {"task": task, "d": d, "n": n, "dtype": name})


def svd_case(np, ours, options, record, d, n, rank, name, spectrum, label, pca=False):
    dtype = np.dtype(name)
    case = f"{'pca' if pca else 'svd'}/{d}x{n}/rank{rank}/{name}/{label}"
    if options.skips(case):
        return
    A = low_rank(np, d, n, dtype, spectrum)
    if pca:
        A += np.linspace(0, 1, n, dtype=dtype) * dtype.type(1 / np.sqrt(d))
    centred = A - A.mean(axis=0, dtype=np.float64).astype(dtype) if pca else A
    gram = np.zeros((n, n))
    for i in range(0, d, 8192):
        part = centred[i:i + 8192].astype(np.float64)
        gram += part.T @ part
    values = np.linalg.eigvalsh(gram)[::-1]
    best, total = np.sqrt(values[rank:].sum()), values.sum()
    del centred

    def errors(triple):  # |A - U s V'|, from A'A where V is orthonormal and U s = A V; otherwise directly
        U, sigma, Vt = triple
        square, mean = 0.0, A.mean(axis=0, dtype=np.float64) if pca else 0.0
        for i in range(0, d, 8192):
            gap = A[i:i + 8192].astype(np.float64) - mean - (U[i:i + 8192] * sigma).astype(np.float64) @ Vt
            square += float((gap * gap).sum())
        return {"over_best": float(np.sqrt(square) / best), "share": float(1 - square / total)}

    U, V, sigma = np.empty((d, rank), dtype), np.empty((n, rank), dtype), np.empty(rank)

    def call(**how):
        (ours.pca if pca else ours.svd)(A, sigma, U, V, **how)
        return U, sigma.copy(), V.T
    methods: list[Method] = [(f"flashsketch, {steps} power steps", "library",
                              functools.partial(call, power_steps=steps)) for steps in (0, 1, 2)]
    methods.append(("flashsketch, one read", "library", lambda: call(one_read=1)))
    if pca:
        from sklearn.decomposition import PCA

        def fit():
            model = PCA(n_components=rank, svd_solver="randomized", random_state=0)
            scores = model.fit_transform(A)
            return scores / model.singular_values_, model.singular_values_, model.components_
        methods.append(("sklearn PCA(svd_solver=\"randomized\")", "peer", fit))
    else:
        from sklearn.utils.extmath import randomized_svd
        for steps in (0, 1, 2, "auto"):
            methods.append((f"sklearn randomized_svd, n_iter={steps}", "peer",
                            functools.partial(randomized_svd, A, rank, n_iter=steps, random_state=0)))
        import scipy.sparse.linalg

        def arpack():
            left, found, right = scipy.sparse.linalg.svds(A, k=rank)
            return left[:, ::-1], found[::-1], right[::-1]
        if A.size <= 1 << 25:  # ARPACK reads A hundreds of times
            methods.append(("scipy.sparse.linalg.svds", "peer", arpack))
    measure(case, methods, A.sum, errors, options, record,
            {"task": "pca" if pca else "svd", "d": d, "n": n, "rank": rank, "dtype": name})


def leverage_case(np, ours, options, record, d, n, per_row):
    import scipy.linalg
    import scipy.sparse
    case = f"leverage/{d}x{n}/sparse{per_row}"
    if options.skips(case):
        return
    draw = np.random.default_rng(3)
    columns = draw.integers(0, n, (d, per_row), dtype=np.int32)
    A = scipy.sparse.csr_matrix((draw.standard_normal(d * per_row).astype(np.float32), columns.ravel(),
                                 np.arange(0, d * per_row + 1, per_row, dtype=np.int32)), shape=(d, n))
    A.sum_duplicates()
    wide = A.astype(np.float64)
    factor = np.linalg.cholesky((wide.T @ wide).toarray())
    exact = np.concatenate([(scipy.linalg.solve_triangular(factor, wide[i:i + 20000].toarray().T, lower=True)**2
                             ).sum(axis=0) for i in range(0, d, 20000)])
    scores = np.empty(d)

    def call(**how):
        ours.leverage(A, scores, **how)
        return scores

    tenth = A[:d // 10]

    def by_qr():  # the scores of a tenth of the rows, as if they were all
        return (scipy.linalg.qr(tenth.toarray(), mode="economic", check_finite=False)[0]**2).sum(axis=1)

    def errors(found):
        if len(found) < d:
            return {"scale": d / len(found)}  # factor of its time
        return {"rms": float(np.sqrt(np.mean((found / exact - 1)**2)))}
    measure(case, [("flashsketch", "library", call), ("flashsketch, exact", "library", lambda: call(exact=1)),
                   ("scipy.linalg.qr of a tenth of the rows", "peer", by_qr)], A.sum, errors, options, record,
            {"task": "leverage", "d": d, "n": n, "dtype": "float32"})


def one_read_case(np, ours, options, record, d, n, rank):
    """A rank-r SVD of a file in one read, against reading it in the same row panels."""
    case = f"oneread/{d}x{n}/rank{rank}/float32"
    if options.skips(case):
        return
    draw = np.random.default_rng(4)
    piece = max(1, (16 << 20) // (4 * n))
    mixing = (draw.standard_normal((64, n)) / np.arange(1, 65)[:, None]).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "A")
        with path.open("wb") as file:
            for i in range(0, d, piece):
                rows = min(piece, d - i)
                part = draw.standard_normal((rows, 64), dtype=np.float32) @ mixing
                part += 1e-3 * draw.standard_normal((rows, n), dtype=np.float32)
                part.tofile(file)
        room = np.empty((piece, n), np.float32)
        handle = path.open("rb", buffering=0)

        def rewind(_):
            handle.seek(0)
            return 0

        def following(_, view, __):
            rows = handle.readinto(memoryview(room).cast("B")) // (4 * n)
            view[0] = ours.matrix(room[:rows])
            return 0

        def read():
            handle.seek(0)
            while handle.readinto(memoryview(room).cast("B")):
                pass
        slices = Slices(size=ctypes.sizeof(Slices), rows=d, cols=n, dtype=F32, rewind=REWIND(rewind),
                        next=NEXT(following))
        s, V = np.empty(rank), np.empty((n, rank), np.float32)
        call = functools.partial(ours.svd, slices, s, None, V)
        methods = [("flashsketch, one read", "library", lambda: call(one_read=1, power_steps=0)),
                   ("flashsketch, 1 power step", "library", lambda: call(power_steps=1))]
        measure(case, methods, read, lambda _: {}, options, record,
                {"task": "oneread", "d": d, "n": n, "rank": rank, "dtype": "float32"})
        handle.close()


def torch_cases(np, ours, options, record):
    """The shapes of a GPU, in f32 and f64, and rank 64 of two matrices."""
    import torch
    shapes = [(4096, 64)] if options.small else [(65536, 1024), (262144, 512), (1048576, 256), (4194304, 64)]
    wait = torch.cuda.synchronize
    for d, n in shapes:
        for name, cond in (("float32", 1e1), ("float32", 1e5), ("float64", 1e1), ("float64", 1e10)):
            kind = getattr(torch, name)
            U = torch.linalg.qr(torch.randn(d, n, dtype=torch.float64, device="cuda"))[0]
            V = torch.linalg.qr(torch.randn(n, n, dtype=torch.float64, device="cuda"))[0]
            s = cond ** -torch.linspace(0, 1, n, dtype=torch.float64, device="cuda")
            e = torch.randn(d, dtype=torch.float64, device="cuda")
            for _ in range(2):
                e -= U @ (U.T @ e)
            y = torch.randn(n, dtype=torch.float64, device="cuda")
            b = U @ (s * y)
            b += 0.1 * b.norm() / e.norm() * e
            A, b, x_star = ((U * s) @ V.T).to(kind).contiguous(), b.to(kind), V @ y
            del U
            fields = {"d": d, "n": n, "dtype": name, "cond": cond}
            x, Q, R = torch.empty(n, dtype=kind, device="cuda"), torch.empty_like(A), torch.empty(
                n, n, dtype=kind, device="cuda")

            def errors(found, A=A, b=b, x_star=x_star, s=s, V=V):
                found = found.double().ravel()
                r = b.double() - A.double() @ found
                theta = s.norm() / b.double().norm()
                h = (1 + theta**2 * found @ found).sqrt()
                g = V.T @ (A.T.double() @ r)
                return {"backward": float(theta / h * (g / torch.hypot(s, theta * r.norm() / h)).norm() / s.norm()),
                        "forward": float((found - x_star).norm() / x_star.norm())}

            def mine(A=A, b=b, x=x):
                return {**ours.lstsq(A, b, x), "result": x}

            def normal(A=A, b=b):
                factor, info = torch.linalg.cholesky_ex(A.T @ A)
                return torch.cholesky_solve((A.T @ b)[:, None], factor) if not info else torch.full_like(b[:n], np.nan)
            case = f"lstsq/{d}x{n}/{name}/cond{cond:g}"
            if not options.skips(case):
                measure(case, [("flashsketch", "library", mine),
                               ("torch.linalg.lstsq", "peer", lambda A=A, b=b: torch.linalg.lstsq(A, b[:, None])[0]),
                               ("torch normal equations", "peer", normal)],
                        A.sum, errors, options, record, {"task": "lstsq", **fields}, wait)

            def factor(pivots=None, A=A, Q=Q, R=R):
                ours.qr(A, Q, R, pivots)
                return Q

            def gap(basis, n=n):
                product = basis.T.double() @ basis.double()
                return {"orthogonality": float((product - torch.eye(n, dtype=torch.float64, device="cuda")).norm())}
            case = f"qr/{d}x{n}/{name}/cond{cond:g}"
            if not options.skips(case):
                measure(case, [("flashsketch", "library", factor),
                               ("flashsketch, pivoted", "library",
                                lambda factor=factor, n=n: factor(np.empty(n, np.int64))),
                               ("torch.linalg.qr", "peer", lambda A=A: torch.linalg.qr(A)[0])],
                        A.sum, gap, options, record, {"task": "qr", **fields}, wait)
            sigma, right = np.empty(n), torch.empty(n, n, dtype=kind, device="cuda")

            def all_values(A=A, sigma=sigma, Q=Q, right=right):
                ours.svd(A, sigma, Q, right, rank=0)
                return Q
            case = f"svd/{d}x{n}/all/{name}/cond{cond:g}"
            if not options.skips(case):
                measure(case, [("flashsketch", "library", all_values),
                               ("torch.linalg.svd(driver=\"gesvda\")", "peer",
                                lambda A=A: torch.linalg.svd(A, full_matrices=False, driver="gesvda")[0])],
                        A.sum, gap, options, record, {"task": "svd", **fields}, wait)
    for d, n in [(2048, 256)] if options.small else [(65536, 4096), (16384, 16384)]:
        rank = 64
        s = 1 / torch.arange(1, n + 1, dtype=torch.float64, device="cuda")
        U = torch.linalg.qr(torch.randn(d, n, device="cuda"))[0]
        A = ((U * s.float()) @ torch.linalg.qr(torch.randn(n, n, device="cuda"))[0].T).contiguous()
        del U
        best = float(s[rank:].norm())
        left, right, sigma = (torch.empty(d, rank, device="cuda"), torch.empty(n, rank, device="cuda"), np.empty(rank))

        def over_best(triple, A=A, best=best):
            found, values, vectors = triple
            return {"over_best": float((A - (found * values) @ vectors.T).norm()) / best}

        def truncated(A=A, left=left, right=right, sigma=sigma, **how):
            ours.svd(A, sigma, left, right, **how)
            return left, torch.from_numpy(sigma).to("cuda", torch.float32), right
        case = f"svd/{d}x{n}/rank{rank}/float32/1-over-j"
        if options.skips(case):
            continue
        methods = [(f"flashsketch, {steps} power steps", "library",
                    lambda steps=steps, call=truncated: call(power_steps=steps)) for steps in (0, 1, 2)]
        methods += [(f"torch.svd_lowrank, niter={steps}", "peer", lambda steps=steps, A=A: tuple(
            part[..., :64] for part in torch.svd_lowrank(A, q=74, niter=steps))) for steps in (0, 1, 2)]
        measure(case, methods, A.sum, over_best, options, record,
                {"task": "svd", "d": d, "n": n, "rank": rank, "dtype": "float32"}, wait)


def cpu_cases(np, ours, options, record):
    small = options.small
    for d, n in [(4000, 50)] if small else [(200000, 200), (100000, 500)]:
        lstsq_case(np, ours, options, record, d, n, "float64", 1e6)
        lstsq_case(np, ours, options, record, d, n, "float32", 1e3)
        for pivoted in (False, True):
            qr_case(np, ours, options, record, d, n, "float64", pivoted)
    try:
        import sklearn  # noqa: F401
        d, n, rank = (4000, 200, 10) if small else (100000, 2000, 50)
        svd_case(np, ours, options, record, d, n, rank, "float32", lambda j: 1 / j, "1-over-j")
        d, n, rank = (4000, 150, 5) if small else (60000, 500, 20)
        svd_case(np, ours, options, record, d, n, rank, "float32", lambda j: 1 / j, "1-over-j")
        svd_case(np, ours, options, record, d, n, rank, "float32", lambda j: 1 / j, "1-over-j", pca=True)
    except ImportError:
        print("compare_solvers.py: scikit-learn is not installed; its cases are skipped", file=sys.stderr)
    leverage_case(np, ours, options, record, *((20000, 100, 10) if small else (1000000, 1000, 20)))
    one_read_case(np, ours, options, record, *((20000, 100, 5) if small else (1 << 20, 256, 20)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--small", action="store_true", help="small shapes, for tests")
    parser.add_argument("--cuda", action="store_true", help="PyTorch's functions on a GPU")
    parser.add_argument("--threads", type=int, default=int(os.environ.get("OMP_NUM_THREADS", "0")) or os.cpu_count())
    parser.add_argument("--seconds", type=float, default=20, help="no turn of a case begins later, but 3 are taken")
    parser.add_argument("--reps", type=int, default=9)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    options.skips = lambda case: options.case not in case
    import numpy as np
    import scipy
    ours = Library(options.library, options.threads, options.cuda)
    text = ctypes.create_string_buffer(256)
    ours.lib.fs_context_describe(ours.context, text, ctypes.c_size_t(256))
    machine = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                   "unknown processor")
    common = {"backend": text.value.decode(), "machine": machine, "threads": options.threads,
              "numpy": np.__version__, "scipy": scipy.__version__, "commit": options.commit,
              "date": datetime.date.today().isoformat()}
    if options.cuda:
        import torch
        common.update(machine=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda)
    (torch_cases if options.cuda else cpu_cases)(np, ours, options, Record(options.record, common))


if __name__ == "__main__":
    main()
