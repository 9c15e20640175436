#!/usr/bin/env python3
"""against_numpy.py - the command flashsketch against NumPy and SciPy.

usage: against_numpy.py FLASHSKETCH.  Y is compared with S A, where S is made by tests/def/definition.py, an
independent implementation; coherence with singular values from LAPACK; lstsq, qr, svd, pca and leverage with LAPACK's
answers.  Matrices hold small integers, so only S's scale rounds.  Files are written by NumPy and, if installed,
SciPy; Y is read by NumPy.  Prints what differs; the exit code is 1 then."""
import gzip
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "def"))
from definition import sketch

try:
    from scipy import io, sparse
except ImportError:
    io = None
    print("no SciPy here: Matrix Market files are not checked")

FLASHSKETCH = str(pathlib.Path(sys.argv[1]).resolve())
D, N, K = 1000, 7, 96
counts = {"passed": 0, "failed": 0}


def run(*arguments, stdin=None):
    done = subprocess.run([FLASHSKETCH, *map(str, arguments)], input=stdin, capture_output=True)
    if done.returncode:
        sys.exit(f"{arguments} exited with {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def check(what, found, wanted, dtype=np.float32, most=1e-4):
    right = found.shape == wanted.shape and found.dtype == dtype and found.flags.c_contiguous \
        and np.abs(found - wanted).max() <= most * max(1, np.abs(wanted).max())
    counts["passed" if right else "failed"] += 1
    if not right:
        print(f"{what}: found {found.dtype} {found.shape}, wanted {np.dtype(dtype)} {wanted.shape}" +
              (f", differs by {np.abs(found - wanted).max()}" if found.shape == wanted.shape else ""))


def dense_sketch(*options, d=D):
    """S of these options: their full spec from the command, every entry from definition.py."""
    p = json.loads(run("spec", "--json", "-d", d, *options))
    rows, cols, values = sketch(p["family"], p["d"], p["k"], p["M"], p["kappa"], p["s"], p["shuffle"],
                                p["interleave"], int(p["seed"]), 0, d)
    S = np.zeros((p["k"], d))
    np.add.at(S, (rows.astype(int), cols.astype(int)), values)
    return S


def sketched(*arguments, stdin=None):
    run("sketch", "-o", "Y.npy", *arguments, stdin=stdin)
    return np.load("Y.npy")


def every_sketch(A):
    np.save("A.npy", A)
    seed = 0xFEDCBA9876543210
    for options in ([], ["--seed", seed], ["--shuffle", "none", "-M", 6, "--kappa", 3, "-s", 5, "--seed", seed],
                    ["--shuffle", "groups", "-M", 8, "--interleave", 4], ["--family", "sjlt", "-s", 3],
                    ["--family", "blockrow", "--kappa", 2], ["--family", "srht"], ["--family", "gaussian"]):
        options = ["-k", K, *options]
        check(options, sketched("A.npy", *options), dense_sketch(*options) @ A)


def every_file(A):
    options = ["-k", K, "--seed", 5]
    wanted = dense_sketch(*options) @ A
    for code, dtype in ("f2", np.float32), ("f4", np.float32), ("f8", np.float64):
        for order in "C", "F":
            for version in (1, 0), (2, 0), (3, 0):
                with open("B.npy", "wb") as file:
                    np.lib.format.write_array(file, np.asarray(A, dtype="<" + code, order=order), version=version)
                check((code, order, version), sketched("B.npy", *options), wanted, dtype)
    np.save("A.npy", A)
    bytes_of = open("A.npy", "rb").read()
    check("standard input", sketched("-", *options, stdin=bytes_of), wanted)
    open("Y2.npy", "wb").write(run("sketch", *options, "A.npy"))
    check("standard output", np.load("Y2.npy"), wanted)
    for name, dtype in ("f16", np.float16), ("f64", np.float64):
        check(("output", name), sketched("A.npy", *options, "--output-dtype", name), wanted, dtype, 1e-3)
    np.save("vector.npy", A[:, 0])
    check("a vector", sketched("vector.npy", *options), wanted[:, :1])
    np.save("batch.npy", A.T.copy())
    check("batch-major", sketched("batch.npy", *options, "--batch-major"), wanted.T)
    np.save("batch.npy", np.asfortranarray(A.T))
    check("batch-major, Fortran", sketched("batch.npy", *options, "--batch-major"), wanted.T)
    for name, raw in ("f16", A.astype("<f2")), ("f32", A.astype("<f4")), ("f64", A.astype("<f8")), \
            ("bf16", (A.astype("<f4").view("<u4") >> 16).astype("<u2")):
        dtype = np.float64 if name == "f64" else np.float32
        raw.tofile("A.raw")
        how = ["--shape", f"{D}x{N}", "--dtype", name]
        check(("raw", name), sketched("A.raw", *options, *how), wanted, dtype)
        raw.T.tofile("A.raw")  # tofile writes in C order
        check(("raw, by columns", name), sketched("A.raw", *options, *how, "--columns"), wanted, dtype)
        header = json.dumps({"other": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}, "w": {
            "dtype": name.upper(), "shape": [D, N], "data_offsets": [3, 3 + raw.nbytes]}}).encode()
        with open("A.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header + b"abc" + raw.tobytes())
        check(("safetensors", name), sketched("A.safetensors", *options, "--tensor", "w"), wanted, dtype)
    for code, kind in (0x09, ">i1"), (0x0B, ">i2"), (0x0D, ">f4"):
        data = struct.pack(">BBBBII", 0, 0, code, 2, D, N) + A.astype(kind).tobytes()
        open("A.idx", "wb").write(data)
        open("A.idx.gz", "wb").write(gzip.compress(data))
        check(("IDX", kind), sketched("A.idx", *options), wanted)
        check(("IDX, gzip", kind), sketched("A.idx.gz", *options), wanted)
    np.savez("A.npz", other=A[:5], w=A)
    np.savez_compressed("one.npz", A.astype("i2"))
    about = json.loads(run("info", "--json", "A.npz"))
    right = about["format"] == "npz" and about["tensors"] == [
        {"name": "other", "dtype": "<f4", "shape": [5, N]}, {"name": "w", "dtype": "<f4", "shape": [D, N]}]
    counts["passed" if right else "failed"] += 1
    if not right:
        print(f"info of an npz file: {about}")
    check("npz", sketched("A.npz", *options, "--tensor", "w"), wanted)
    check("npz, one array", sketched("one.npz", *options), wanted)
    check("npz, two files", sketched("A.npz", "A.npz", "--tensor", "w", *options),
          dense_sketch(*options, d=2 * D) @ np.vstack([A, A]))
    np.savetxt("A.csv", A, delimiter=",", header="a,b,c,d,e,f,g", comments="")
    np.savetxt("A.txt.gz", A)
    check("CSV", sketched("A.csv", *options), wanted, np.float64)
    check("CSV, two files", sketched("A.csv", "A.txt.gz", *options),
          dense_sketch(*options, d=2 * D) @ np.vstack([A, A]), np.float64)
    check("CSV, standard input", sketched("-", *options, stdin=open("A.csv", "rb").read()), wanted, np.float64)


def every_number(A):
    """Integers, booleans and big-endian numbers: the bits of the file with the numbers that NumPy converts them to."""
    options = ["-k", K, "--seed", 5, "-q"]
    for code in "i1 u1 b1 <i2 >i2 <u2 >u2 <i4 >i4 <u4 >u4 <i8 >i8 <u8 >u8 >f2 >f4 >f8".split():
        dtype = np.dtype(code)
        B = (np.abs(A) if dtype.kind in "ub" else A).astype(dtype)
        if dtype.itemsize == 8 and dtype.kind != "f":
            B[::7] += B.dtype.type(2**53 + 1)  # rounded as NumPy rounds it
        wanted = dtype.newbyteorder("=") if dtype.kind == "f" else "f4" if dtype.itemsize < 4 else "f8"
        for order in "C", "F":
            np.save("B.npy", np.asarray(B, order=order))
            np.save("C.npy", np.asarray(B.astype(wanted), order=order))
            for memory in [], ["--memory", 4096]:
                first = sketched("C.npy", *options, *memory)
                for name, stdin in ("B.npy", None), ("-", open("B.npy", "rb").read()):
                    second = sketched(name, *options, *memory, stdin=stdin)
                    right = first.dtype == second.dtype and first.tobytes() == second.tobytes()
                    counts["passed" if right else "failed"] += 1
                    if not right:
                        print(f"{code}, {order}, {name}, {memory}: not the bits of {wanted}")


def pieces_add_up(A):
    options = ["-k", K, "--seed", 9]
    total = 0
    for first, end in (0, 400), (400, 401), (401, D):
        np.save("piece.npy", A[first:end])
        total = total + sketched("piece.npy", *options, "-d", D, "--row0", first)
    check("pieces", total, dense_sketch(*options) @ A)


def matrix_market(A):
    options = ["-k", K, "--seed", 6]
    A = np.where(A > 1, A, 0)
    wanted = dense_sketch(*options) @ A
    io.mmwrite("sparse.mtx", sparse.coo_matrix(A))
    io.mmwrite("dense.mtx", A.astype("f8"))
    io.mmwrite("batch.mtx", sparse.coo_matrix(A.T))
    for name in "sparse.mtx", "dense.mtx":
        open(name + ".gz", "wb").write(gzip.compress(open(name, "rb").read()))
        check(name, sketched(name, *options), wanted, np.float64)
        check(name + ".gz", sketched(name + ".gz", *options), wanted, np.float64)
        packed = open(name + ".gz", "rb").read()
        check(name + ", standard input", sketched("-", *options, stdin=packed), wanted, np.float64)
    check("batch.mtx", sketched("batch.mtx", *options, "--batch-major"), wanted.T, np.float64)
    for kind in "csr", "csc", "coo":
        sparse.save_npz("A.npz", sparse.coo_matrix(A).asformat(kind))
        check(("npz", kind), sketched("A.npz", *options), wanted, np.float64)
        check(("npz and mtx", kind), sketched("A.npz", "sparse.mtx", *options, "--memory", "1M"),
              dense_sketch(*options, d=2 * D) @ np.vstack([A, A]), np.float64)
    square = A[:60, :5] @ A[:60, :5].T
    io.mmwrite("symmetric.mtx", sparse.coo_matrix(square), symmetry="symmetric")
    check("symmetric.mtx", sketched("symmetric.mtx", "-k", 20), dense_sketch("-k", 20, d=60) @ square, np.float64)


def coherence(A):
    rng = np.random.default_rng(3)
    hot = rng.standard_normal((D, N))
    hot[20:40] *= 300
    dependent = np.hstack([hot, hot[:, :2] @ rng.standard_normal((2, 3)), np.zeros((D, 1))])
    scaled = hot * 10.0 ** np.arange(-12, 12, 24 / N)
    for what, X, rank in ("integers", A, N), ("large rows", hot, N), ("dependent columns", dependent, N), \
            ("scaled columns", scaled, N):
        np.save("X.npy", X.astype("f8"))
        for M, kappa, shuffle in (1, 1, "none"), (8, 1, "none"), (8, 3, "none"), (6, 6, "rows"), (8, 2, "groups"):
            options = ["-k", K, "-M", M, "--kappa", kappa, "--shuffle", shuffle]
            found = json.loads(run("coherence", "--json", *options, "X.npy"))
            # Input blocks from S itself: columns of the same block have their nonzeros in the same block rows.
            S = dense_sketch(*options)
            starts = [round(K * g / M) for g in range(M + 1)]
            assert K % M == 0
            touches = np.array([np.any(S[a:b] != 0, axis=0) for a, b in zip(starts, starts[1:])])  # M x d
            U = np.linalg.qr(hot if X is dependent or X is scaled else X)[0]
            nbr = M / kappa * max(np.linalg.norm(U[touched], 2) ** 2 for touched in touches)
            groups = {}
            for column, key in enumerate(map(bytes, touches.T)):
                groups.setdefault(key, []).append(column)
            blk = M * max(np.linalg.norm(U[rows], 2) ** 2 for rows in groups.values())
            right = found["rank"] == rank and abs(found["mu_nbr"] - nbr) <= 1e-6 * nbr
            if len(groups) == M:  # kappa < M: blocks can be distinguished
                right = right and abs(found["mu_blk"] - blk) <= 1e-6 * blk
            right = right and found["mu_blk"] / kappa <= found["mu_nbr"] * (1 + 1e-9) <= found["mu_blk"] * (1 + 2e-9)
            counts["passed" if right else "failed"] += 1
            if not right:
                print(f"coherence of {what}, {options}: {found}; NumPy has mu_nbr {nbr}, mu_blk {blk}")


def least_squares(A, B, most, *options):
    np.save("A.npy", A)
    np.save("B.npy", B)
    wanted = np.linalg.lstsq(A.astype("f8"), B.astype("f8"), rcond=max(8, A.shape[1] ** 0.5) * np.finfo(A.dtype).eps)
    found = json.loads(run("lstsq", "--json", "--rhs", "B.npy", "A.npy", "--memory", "64K", *options))
    run("lstsq", "--rhs", "B.npy", "A.npy", "-o", "X.npy", "--memory", "64K", *options)
    what = f"lstsq of {A.shape} {A.dtype} {options}"
    check(what, np.load("X.npy"), wanted[0], A.dtype, most)
    residual = np.linalg.norm(A.astype("f8") @ wanted[0] - B)
    right = found["rank"] == wanted[2] and abs(found["residual"] - residual) <= 1e-6 * (residual + np.linalg.norm(B))
    counts["passed" if right else "failed"] += 1
    if not right:
        print(f"{what}: {found}; NumPy has rank {wanted[2]} and residual {residual}")


def solvers():
    """lstsq, qr, svd, pca and leverage against LAPACK by NumPy."""
    np.save("A.npy", np.ones((2, 1)))
    if b"OpenBLAS" in subprocess.run([FLASHSKETCH, "qr", "A.npy"], capture_output=True).stderr:
        print("no OpenBLAS here: solvers are not checked")
        return
    rng = np.random.default_rng(4)
    U, V = np.linalg.qr(rng.standard_normal((D, 20)))[0], np.linalg.qr(rng.standard_normal((20, 20)))[0]
    for condition in 10, 1e8:
        A = U * np.geomspace(1, 1 / condition, 20) @ V.T
        B = A @ rng.standard_normal((20, 3)) + 1e-3 * rng.standard_normal((D, 3))
        for options in [], ["--method", "iterate"], ["--method", "direct"]:
            least_squares(A, B, 1e-15 * condition ** 2 + 1e-10, *options)
    least_squares(A[:, :19].astype("f4"), B.astype("f4"), 1)  # ill-conditioned for f32: the residual is compared
    easy = U * np.geomspace(1, 0.1, 20) @ V.T
    least_squares(easy.astype("f4"), B.astype("f4"), 1e-4)
    least_squares(np.hstack([easy, easy[:, :4] @ rng.standard_normal((4, 3))]), B, 1e-9)
    least_squares(np.ascontiguousarray(easy[:15]), B[:15], 1e-9)
    np.save("A.npy", easy)
    np.save("B.npy", B)
    run("lstsq", "--rhs", "B.npy", "--lambda", 0.5, "A.npy", "-o", "X.npy")
    exact = np.linalg.solve(easy.T @ easy + 0.5 * np.eye(20), easy.T @ B)
    check("lstsq --lambda", np.load("X.npy"), exact, np.float64, 1e-9)

    for dtype, most in ("f8", 1e-12), ("f4", 1e-5):
        A = (easy + 0.1).astype(dtype)
        np.save("A.npy", A)
        Q, R = np.linalg.qr(A.astype("f8"))
        signs = np.sign(np.diag(R))
        run("qr", "A.npy", "-o", "Q.npy", "-R", "R.npy", "--memory", "64K")
        check(("qr, Q", dtype), np.load("Q.npy"), Q * signs, np.dtype(dtype), most)
        check(("qr, R", dtype), np.load("R.npy"), R * signs[:, None], np.dtype(dtype), most)
        run("qr", "A.npy", "--pivot", "--pivots", "p.npy", "-o", "Q.npy", "-R", "R.npy")
        pivots, Q1, R1 = np.load("p.npy"), np.load("Q.npy"), np.load("R.npy")
        check(("qr --pivot, A", dtype), Q1 @ R1, A[:, pivots], np.dtype(dtype), most)
        check(("qr --pivot, pivots", dtype), np.sort(pivots), np.arange(20), np.int64, 0)
        check(("qr --pivot, R", dtype), np.tril(R1, -1), np.zeros((20, 20)), np.dtype(dtype), 0)
        run("leverage", "--exact", "A.npy", "-o", "l.npy")
        check(("leverage", dtype), np.load("l.npy"), (Q ** 2).sum(axis=1), np.float64, most)
        u, s, vt = np.linalg.svd(A.astype("f8"), full_matrices=False)
        signs = np.sign(vt[np.arange(20), np.abs(vt).argmax(axis=1)])
        run("svd", "--all", "A.npy", "-U", "U.npy", "-S", "s.npy", "-V", "V.npy", "--memory", "64K")
        check(("svd, s", dtype), np.load("s.npy"), s, np.float64, most)
        check(("svd, U", dtype), np.load("U.npy"), u * signs, np.dtype(dtype), 100 * most)
        check(("svd, V", dtype), np.load("V.npy"), vt.T * signs, np.dtype(dtype), 100 * most)
        mean = A.astype("f8").mean(axis=0)
        c = np.linalg.svd(A - mean, full_matrices=False)
        run("pca", "--all", "A.npy", "--mean", "m.npy", "--variances", "v.npy", "--values", "s.npy",
            "--scores", "T.npy", "--components", "C.npy")
        check(("pca, mean", dtype), np.load("m.npy"), mean, np.float64, most)
        check(("pca, values", dtype), np.load("s.npy"), c[1], np.float64, most)
        check(("pca, variances", dtype), np.load("v.npy"), c[1] ** 2 / (D - 1), np.float64, most)
        check(("pca, scores", dtype), np.load("T.npy"), (A - mean) @ np.load("C.npy"), np.dtype(dtype), most)

    # Few of many values: 12 are large, and the rest is below what two power steps resolve.
    W = np.linalg.qr(rng.standard_normal((300, 300)))[0]
    spectrum = np.r_[np.geomspace(100, 10, 12), np.full(288, 1e-7)]
    A = np.linalg.qr(rng.standard_normal((D, 300)))[0] * spectrum @ W.T
    np.save("A.npy", A)
    s = np.linalg.svd(A, compute_uv=False)
    for options in [], ["--one-read"], ["--power", 0], ["--batch-major"]:
        found = json.loads(run("svd", "-r", 12, "--json", "A.npy", "-S", "s.npy", *options))
        check(("svd -r", options), np.load("s.npy"), s[:12], np.float64, 1e-6 if "--one-read" in options else 1e-9)
        right = found["low"] <= np.linalg.norm(s[12:]) * 1.3 + 1e-6 and found["rank"] == 12
        counts["passed" if right else "failed"] += 1
        if not right:
            print(f"svd -r 12 {options}: {found}, but the rest has norm {np.linalg.norm(s[12:])}")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    A = ((7 * np.arange(D)[:, None] + 3 * np.arange(N)) % 11 - 5).astype("f4")
    every_sketch(A)
    every_file(A)
    every_number(A)
    pieces_add_up(A)
    if io:
        matrix_market(A)
    coherence(A)
    solvers()
    os.chdir("/")
print(f"{counts['passed']} passed, {counts['failed']} failed")
sys.exit(counts["failed"] > 0)
