"""Least squares by sketch and solve: min |A x - b| with d = 200000 equations for n = 40 unknowns.

The sketch has k equations instead of d: min |S A x - S b|.  Its solution is not the exact one, but nearly as good: its
residual, measured in the whole problem, is expected to be sqrt(1 + n / (k - n - 1)) times the smallest.

Where the exact solution is wanted, the sketch helps too.  With S A = Q R the columns of A R^-1 are nearly orthonormal,
however badly conditioned A is, so that few steps of the simplest iteration are enough: each leaves about 2 sqrt(n / k)
of the error, or less.
"""

import numpy as np

import flashsketch as fs

d, n = 200000, 40
rng = np.random.default_rng(0)
A = rng.standard_normal((d, n)) * np.logspace(0, 4, n)  # columns of very different size: condition number 1e4
b = A @ rng.standard_normal(n) + rng.standard_normal(d)

exact = np.linalg.lstsq(A, b, rcond=None)[0]
smallest = np.linalg.norm(A @ exact - b)

print("    k   residual / smallest   expected")
for k in 100, 400, 1600, 6400:
    S = fs.Sketch(k=k, d=d, seed=7)
    x = np.linalg.lstsq(S @ A, S @ b, rcond=None)[0]
    ratio, expected = np.linalg.norm(A @ x - b) / smallest, np.sqrt(1 + n / (k - n - 1))
    print(f"{k:5} {ratio:21.3f} {expected:10.3f}")
    assert 1 <= ratio < 1 + 2 * (expected - 1), (k, ratio, expected)

R = np.linalg.qr(S @ A, mode="r")  # of the last sketch, k = 6400
print("steps   |x - exact| / |exact|")
for step in range(9):
    error = np.linalg.norm(x - exact) / np.linalg.norm(exact)
    if step % 2 == 0:
        print(f"{step:5} {error:23.0e}")
    x = x + np.linalg.solve(R, np.linalg.solve(R.T, A.T @ (b - A @ x)))
assert error < 1e-9, error
