#!/usr/bin/env python3
"""against_safetensors.py - files that the package safetensors wrote, read by the command flashsketch.

usage: against_safetensors.py FLASHSKETCH.  With k = d and one nonzero of 1 or -1 in every column (sjlt, s = 1), Y is
sums and differences of rows of small numbers, exact in every type: the tensors are right if Y is that of the same
numbers in an npy file.  Needs the package and NumPy; bf16 is given to the package as bytes."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import safetensors
from safetensors.numpy import save_file

FLASHSKETCH = str(pathlib.Path(sys.argv[1]).resolve())


def run(*arguments):
    return subprocess.run([FLASHSKETCH, *arguments], check=True, capture_output=True).stdout


def sketched(*arguments):
    run("sketch", "--family", "sjlt", "-s", "1", "-k", "60", "-o", "Y.npy", *arguments)
    return np.load("Y.npy")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    A = ((7 * np.arange(60)[:, None] + 3 * np.arange(4)) % 11 - 5) / 2
    np.save("A.npy", A)
    wanted = sketched("A.npy")
    tensors = {"half": A.astype("f2"), "single": A.astype("f4"), "double": A, "cube": A.reshape(60, 2, 2).astype("f4"),
               "bytes": np.arange(7, dtype="u1"), "no rows": np.zeros((0, 3), "f4"), "\u00e9 \"w\"": A.astype("f4")}
    save_file(tensors, "A.safetensors", metadata={"format": "np", "made by": "the package"})
    about = json.loads(run("info", "--json", "A.safetensors"))
    listed = {t["name"]: (t["dtype"], t["shape"]) for t in about["tensors"]}
    codes = {"float16": "F16", "float32": "F32", "float64": "F64", "uint8": "U8"}
    assert listed == {name: (codes[str(x.dtype)], list(x.shape)) for name, x in tensors.items()}, listed
    for name in "half", "single", "double", "cube", "\u00e9 \"w\"":
        found = sketched("A.safetensors", "--tensor", name)
        assert (found == wanted).all(), (name, np.abs(found - wanted).max())
    brain = (A.astype("<f4").view("<u4") >> 16).astype("<u2")
    if hasattr(safetensors, "TensorSpec"):  # from 0.8 on
        tensor = safetensors.TensorSpec(dtype="bfloat16", shape=list(A.shape), data_ptr=brain.ctypes.data,
                                        data_len=brain.nbytes)
    else:
        tensor = {"dtype": "bfloat16", "shape": list(A.shape), "data": brain.tobytes()}
    pathlib.Path("B.safetensors").write_bytes(safetensors.serialize({"w": tensor}))
    assert (sketched("B.safetensors") == wanted).all()
    refused = subprocess.run([FLASHSKETCH, "sketch", "-k", "3", "A.safetensors", "--tensor", "bytes", "-o", "Z.npy"],
                             capture_output=True, text=True)
    assert refused.returncode == 1 and "'bytes' is of type U8" in refused.stderr, refused
    os.chdir("/")
print(f"safetensors {safetensors.__version__}: 6 tensors are read, one is refused")
