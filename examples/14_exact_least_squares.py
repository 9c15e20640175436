"""Least squares to the accuracy of LAPACK from a sketch, and what else the sketch is good for.

04_least_squares.py stops at the sketch, whose solution is nearly as good as the best.  fs.lstsq continues from there: R
of S A makes A R^-1 nearly orthonormal, so that each iteration, one read of A, leaves a fraction of the error, whatever
the condition of A.  The same R serves an iteration of one's own (here SciPy's LSQR), finds the rows that decide the fit
(leverage scores), and gives an orthonormal basis (QR).
"""

import numpy as np

import flashsketch as fs

d, n = 50000, 60
rng = np.random.default_rng(0)
A = rng.standard_normal((d, n)) * np.logspace(0, 8, n)  # columns of very different size: condition number 1e8
A[4711] *= 100  # a row that pulls the fit to itself
b = A @ np.logspace(0, -8, n) + rng.standard_normal(d)

found = fs.lstsq(A, b)
print(f"lstsq: rank {found.rank}, backward error {found.backward_error:.0e} after {found.reads} reads of A")
lengths = np.linalg.norm(A, axis=0)
exact = np.linalg.lstsq(A / lengths, b, rcond=None)[0] / lengths  # with columns of length 1, nothing is lost


def error(x):
    return np.linalg.norm(A @ (x - exact)) / np.linalg.norm(A @ exact)


lapack = np.linalg.lstsq(A, b, rcond=None)[0]
print(f"       the error of A x is {error(found.x):.0e}, that of LAPACK's gelsd {error(lapack):.0e}")
assert error(found.x) < 1e-8

Q, R = fs.qr(A)
orthogonal = np.linalg.norm(Q.T @ Q - np.eye(n))
print(f"qr:    |Q'Q - I| = {orthogonal:.0e}")
assert orthogonal < 1e-13

scores = fs.leverage(A)
print(f"leverage: row {scores.row} has the largest score, {scores.largest:.2f}; the mean is {n / d:.4f}")
assert scores.row == 4711

try:
    from scipy.sparse.linalg import lsqr
except ImportError:
    print("there is no SciPy: its LSQR is left out")
else:
    alone = lsqr(A, b, atol=1e-12, btol=1e-12, conlim=0, iter_lim=300)
    M = fs.Preconditioner(A)
    z, _, iterations = lsqr(M.operator(), b, atol=1e-12, btol=1e-12)[:3]
    last = error(M.solve(z))
    print(f"LSQR:  not done after {alone[2]} iterations; with the preconditioner {iterations}, error {last:.0e}")
    assert alone[2] == 300 and iterations < 60 and last < 1e-8
