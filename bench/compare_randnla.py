#!/usr/bin/env python3
"""Compares the errors of two records of `fsbench randnla`: S and the data do not depend on the machine, nor may errors.

    python3 bench/compare_randnla.py RECORD OTHER

Exit code 1 if a cell that both have differs by more than a thousandth, of ridge and solve a hundredth (LU and QR in f32
amplify rounding where A is ill-conditioned), or none is in both.  Residuals without noise are rounding errors and are
not compared.
"""
import json
import pathlib
import sys

FITS = ("ridge", "solve")


def errors(path):
    found = {}
    for line in pathlib.Path(path).read_text().splitlines():
        r = json.loads(line)
        if r["what"] == "error":
            for seed, value in zip(r["seeds"], r["noisy"] if r["task"] in FITS else r["error"]):
                found[r["cell"], seed] = value
    return found


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    one, other = errors(sys.argv[1]), errors(sys.argv[2])
    both = sorted(set(one) & set(other))
    apart = []
    for key in both:
        a, b, limit = one[key], other[key], 1e-2 if key[0].split("/")[1] in FITS else 1e-3
        if (a is None) != (b is None) or (a is not None and abs(a - b) > limit * max(abs(a), abs(b))):
            apart.append(f"{key[0]}, seed {key[1]}: {a} and {b}")
    for line in apart[:40]:
        print(line)
    print(f"{len(both)} errors in both records, {len(apart)} differ")
    sys.exit(1 if apart or not both else 0)


if __name__ == "__main__":
    main()
