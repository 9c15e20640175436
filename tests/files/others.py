#!/usr/bin/env python3
"""others.py - files written by NumPy and SciPy, for others.c to read.

usage: others.py FOLDER.  Element (i, j) is ((7 i + 3 j) mod 11 - 5) / 2.  Without SciPy there are no Matrix Market
files.  safetensors' own package is for tests/cli/against_safetensors.py: here struct and json write its files."""
import csv
import gzip
import json
import pathlib
import struct
import sys

import numpy as np

try:
    from scipy import io, sparse
except ImportError:
    io = None

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for old in folder.iterdir():
    old.unlink()
i, j = np.meshgrid(np.arange(13), np.arange(5), indexing="ij")
A = ((7 * i + 3 * j) % 11 - 5) / 2

for code in "<f2", "<f4", "<f8":
    for order in "C", "F":
        for version in (1, 0), (2, 0), (3, 0):
            with open(folder / f"{code[1:]}-{order}-{version[0]}.npy", "wb") as file:
                np.lib.format.write_array(file, np.asarray(A, dtype=code, order=order), version=version)
np.save(folder / "saved.npy", A[:, 0])
np.save(folder / "cube.npy", A.astype("f4").reshape(13, 5, 1))
for code in ">f2", ">f4", ">f8", "|i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8":
    np.save(folder / f"number-{code[0].replace('|', '<')}{code[1:]}.npy", np.asfortranarray((2 * A).astype(code)))
for code in "|u1", "<u2", ">u2", "<u4", ">u4", "<u8", ">u8", "|b1":
    np.save(folder / f"number-{code[0].replace('|', '<')}{code[1:]}.npy", (A > 0).astype(code))
np.save(folder / "refused-complex.npy", A * 1j)
np.save(folder / "refused-text.npy", A.astype("U8"))
np.save(folder / "refused-times.npy", A.astype("i8").astype("M8[s]"))
np.save(folder / "refused-object.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
np.save(folder / "refused-structured.npy", np.zeros(3, dtype=[("x", "<f4"), ("y", "<f8")]))
np.save(folder / "refused-scalar.npy", np.float32(1))
np.save(folder / "refused-empty.npy", np.zeros((0, 5), dtype="f4"))

np.savetxt(folder / "spaces.txt", A)
np.savetxt(folder / "commas.csv", A, delimiter=",", header="a,b,c,d,e", fmt="%.3f", comments="")
np.savetxt(folder / "semicolons.csv.gz", A, delimiter=";", header="a comment", newline="\r\n")
np.savetxt(folder / "tabs.tsv", A, delimiter="\t", fmt="%g")
with open(folder / "quoted.csv", "w", newline="") as file:
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerow(["a", 'b "c"', "d, e", "f", ""])
    writer.writerows(A.tolist())

np.savez(folder / "arrays.npz", A=A, B=A.astype("i8"))
np.savez_compressed(folder / "packed.npz", np.asfortranarray(A.astype("f4")))
np.savez(folder / "refused-several.npz", A, A)

tensors, data = {}, b""
bfloat = (A.astype("<f4").view("<u4") >> 16).astype("<u2")  # exact: few bits are set
for name, dtype, array in ("f16", "F16", A.astype("<f2")), ("bf16", "BF16", bfloat), ("f32", "F32", A.astype("<f4")), \
        ("f64", "F64", A.astype("<f8")):
    tensors[name] = {"dtype": dtype, "shape": list(A.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
    data += array.tobytes()
header = json.dumps(tensors).encode()
header += b" " * (-len(header) % 8)
(folder / "all.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)

if io:
    for format in "csr", "csc", "coo":
        for compressed in False, True:
            sparse.save_npz(folder / f"{format}-{compressed:d}.npz", sparse.coo_matrix(A).asformat(format), compressed)
    sparse.save_npz(folder / "refused-bsr.npz", sparse.bsr_matrix(A))
    if hasattr(sparse, "csr_array"):
        sparse.save_npz(folder / "array.npz", sparse.csr_array((2 * A).astype("i8")))
    io.mmwrite(folder / "dense.mtx", A)
    io.mmwrite(folder / "sparse.mtx", sparse.coo_matrix(A))
    square = A[:5, :5]
    io.mmwrite(folder / "symmetric.mtx", sparse.coo_matrix(square + square.T))
    io.mmwrite(folder / "skew.mtx", sparse.coo_matrix(square - square.T))
    io.mmwrite(folder / "skew-dense.mtx", square - square.T)
    io.mmwrite(folder / "integer.mtx", sparse.coo_matrix((2 * A).astype("i4")))
    io.mmwrite(folder / "pattern.mtx", sparse.coo_matrix(A != 0).astype("i4"), field="pattern")
    io.mmwrite(folder / "refused-complex.mtx", sparse.coo_matrix(A * 1j))
    for plain in list(folder.glob("*.mtx")):
        plain.with_suffix(".mtx.gz").write_bytes(gzip.compress(plain.read_bytes()))
