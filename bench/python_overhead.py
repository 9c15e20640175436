#!/usr/bin/env python3
"""Measures what a call costs from Python beyond what it costs in C; prints a line of JSON for each case.

    python3 bench/python_overhead.py [--commit NAME] > bench/results/MACHINE/python.json

The matrix is tiny (64 x 1, k = 16), so that the time is that of the call.  `c_us` is the C function called through
ctypes with its arguments ready, `us` the Python expression, both with one thread on a CPU; each is the least of many
means, measured in turns, because load on a shared machine only adds to them.  The aim is an overhead below 30
microseconds.
"""

import argparse
import datetime
import json
import platform
import timeit

import numpy as np

import flashsketch as fs
from flashsketch import _arrays, _library

AIM = 30.0
S = fs.Sketch(k=16, d=64, seed=7)


def cases():
    """Name, array, synchronization, and expressions of S, A, X (A as a batch) and Y."""
    arrays = {"numpy": np.ones((64, 1), np.float32)}
    wait = {}
    try:
        import torch

        arrays["torch, cpu"] = torch.ones(64, 1)
        if torch.cuda.is_available():
            arrays["torch, cuda"], wait["torch, cuda"] = torch.ones(64, 1, device="cuda"), torch.cuda.synchronize
    except ImportError:
        pass
    try:
        import cupy

        arrays["cupy"], wait["cupy"] = cupy.ones((64, 1), np.float32), cupy.cuda.runtime.deviceSynchronize
    except ImportError:
        pass
    for name, A in arrays.items():
        yield name, A, wait.get(name, lambda: None)


def c_call(A, Y, adjoint=False, batch=False, beta=0.0):
    """The C function with arguments that are ready: the lower bound of any binding."""
    adapter = _arrays.adapter_of(A)
    source = _arrays.matrix(adapter.read(A), batch, "A")
    target = _arrays.matrix(adapter.read(Y), batch, "out")
    context = _library.Context(source[6], 0 if source[6] == _library.HOST else adapter.stream(source[6]))
    _library._MATRICES.pack_into(context.memory, 0, *_library._parts(source), *_library._parts(target))
    function = _library.lib.fs_apply_adjoint if adjoint else _library.lib.fs_apply
    return lambda: function(context.pointer, S._handle, 0, 1.0, context.first, beta, context.second)


def measure(calls, wait, repeats=60, number=500):
    """The least mean of each call in microseconds, measured in turns."""
    best = [float("inf")] * len(calls)
    for _ in range(repeats):
        for i, call in enumerate(calls):
            best[i] = min(best[i], timeit.timeit(call, number=number) / number * 1e6)
            wait()
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    fs.configure(threads=1)
    for framework, A, wait in cases():
        X, Y, Z = A.reshape(1, 64), S @ A, S.T @ (S @ A)
        pairs = {
            "S @ A": (lambda: S @ A, c_call(A, Y)),
            "S.apply(A, out=Y)": (lambda: S.apply(A, out=Y), c_call(A, Y)),
            "S.project(X)": (lambda: S.project(X), c_call(X, Y.reshape(1, 16), batch=True)),
            "S.T @ Y": (lambda: S.T @ Y, c_call(Y, Z, adjoint=True)),
            "S.update(Y, A)": (lambda: S.update(Y, A), c_call(A, Y, beta=1.0)),
        }
        for expression, pair in pairs.items():
            cost, c_us = measure(pair, wait)
            print(json.dumps({
                "case": "python-overhead", "framework": framework, "call": expression, "c_us": round(c_us, 2),
                "us": round(cost, 2), "overhead_us": round(cost - c_us, 2), "below_aim": cost - c_us < AIM,
                "python": platform.python_version(), "backends": fs.describe().splitlines(),
                "commit": options.commit, "date": datetime.date.today().isoformat(),
            }))


if __name__ == "__main__":
    main()
