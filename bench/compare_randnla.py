#!/usr/bin/env python3
"""Compares the errors of two records of `fsbench randnla`: S and the data do not depend on the machine, nor may errors.

    python3 bench/compare_randnla.py RECORD OTHER

Exit code 1 if a cell that both have differs by more than a thousandth, or none is in both.  Residuals without noise are
rounding errors and are not compared.
"""
import json
import pathlib
import sys

TOLERANCE = 1e-3


def errors(path):
    found = {}
    for line in pathlib.Path(path).read_text().splitlines():
        r = json.loads(line)
        if r["what"] == "error":
            for seed, value in zip(r["seeds"], r["noisy"] if r["task"] in ("ridge", "solve") else r["error"]):
                found[r["cell"], seed] = value
    return found


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    one, other = errors(sys.argv[1]), errors(sys.argv[2])
    both = sorted(set(one) & set(other))
    apart = []
    for key in both:
        a, b = one[key], other[key]
        if (a is None) != (b is None) or (a is not None and abs(a - b) > TOLERANCE * max(abs(a), abs(b))):
            apart.append(f"{key[0]}, seed {key[1]}: {a} and {b}")
    print("\n".join(apart[:40]))
    print(f"{len(both)} errors in both records, {len(apart)} differ by more than {TOLERANCE:g}")
    sys.exit(1 if apart or not both else 0)


if __name__ == "__main__":
    main()
