#!/usr/bin/env python3
"""Fills in the numbers of the documents that come from records: a table, or a few words, between two markers.

    python3 bench/report_pages.py            writes each text between `<!-- from: NAME -->` and `<!-- end -->`
    python3 bench/report_pages.py --check    writes nothing; exits with 1 and names the markers whose text differs

NAME is a function below, decorated with @shown.  A marker whose text has several lines stands on a line of its own;
otherwise the text is part of a line.  README.md's table is that of report_rivals.py, and
performance.md, quality.md and solvers.md have scripts of their own.
"""
import argparse
import json
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
MARKED = re.compile(r"<!-- from: ([a-z0-9 -]+) -->(\n?)(.*?)<!-- end -->", re.DOTALL)
LARGE = 1 << 28  # bytes of A from which on a GPU's time is that of memory
SHOWN = {}


def shown(function):
    SHOWN[function.__name__.replace("_", "-")] = function
    return function


def records(name, **wanted):
    """The records of a file in bench/results whose fields have these values."""
    lines = (RESULTS / name).read_text(encoding="utf-8").splitlines()
    found = [r for r in map(json.loads, lines) if all(r.get(key) == value for key, value in wanted.items())]
    if not found:
        sys.exit(f"bench/results/{name} has no record with {wanted}")
    return found


def table(head, rows):
    lines = ["| " + " | ".join(line) + " |\n" for line in (head, *rows)]
    return "".join([lines[0], "|---" * len(head) + "|\n", *lines[1:]]).replace("|  |", "| |")


# prices of rungs ---------------------------------------------------------------------------------------------------

def price(case):
    """The least and the largest time over the bandwidth lower bound, of large matrices on an H200."""
    ratios = [r["ratio"] for r in records("h200/cuda.jsonl", case=case)
              if r["d"] * r["n"] * (4 if r["dtype"] == "f32" else 2) >= LARGE]
    return f"{min(ratios):.1f} to {max(ratios):.1f}"


@shown
def price_default():
    return price("rows-s8-rows")


@shown
def price_fast():
    return price("rows-s4-rows")


@shown
def price_high():
    return price("rung-high")


@shown
def price_kappa2_f16():
    return price("half-f16-kappa2-s4")


@shown
def price_gaussian():
    return price("rung-gaussian")


@shown
def price_f16():
    return price("half-f16-s8")


# MPI ---------------------------------------------------------------------------------------------------------------

@shown
def mpi_network():
    """The sum of Y, 1024 x 512 in f32, over a link of 400 Mbit/s each way: the fastest, and over the model's bytes."""
    ranks = (2, 4, 8)
    size = 4 * 1024 * 512 / (400e6 / 8) * 1000  # ms for the bytes of Y
    kinds = [("to all", lambda p: 2 * size * (p - 1) / p, "default-ordered", "default"),
             ("scattered", lambda p: size * (p - 1) / p, "default-scatter-ordered", "default-scatter"),
             ("to one rank", lambda p: size, None, "default-root")]
    rows = []
    for what, model, ordered, unordered in kinds:
        rows.append([f"{what}: the model", *(f"{model(p):.1f}" for p in ranks)])
        for name, case in (("in the order of ranks", ordered), ("in MPI's order", unordered)):
            if case:
                least = {p: records("amd-epyc-2threads/mpi_network.jsonl", case=case, ranks=p)[0]["sum_min"]
                         for p in ranks}
                rows.append([name, *(f"{least[p]:.1f}, **{least[p] / model(p):.1f}**" for p in ranks)])
    return table(["", *(f"{p} ranks" for p in ranks)], rows)


@shown
def mpi_ranks():
    """Two ranks with a thread each beside one process with two threads."""
    cases = [("65536 × 512, k = 1024, to all, in the order of ranks", "default-ordered"),
             ("the same in MPI's order", "default"),
             ("to one rank, in MPI's order", "default-root"),
             ("scattered, in the order of ranks", "default-scatter-ordered"),
             ("scattered, in MPI's order", "default-scatter"),
             ("262144 × 512, k = 1024, to all, in MPI's order", "tall"),
             ("262144 × 512, k = 4096, to all, in MPI's order", "tall-k4096"),
             ("65536 × 2048, k = 1024, to all, in the order of ranks", "wide-ordered"),
             ("the same in MPI's order", "wide")]
    rows = []
    for what, case in cases:
        r = records("amd-epyc-2threads/mpi.jsonl", case=case, ranks=2)[0]
        rows.append([what, f"{r['ratio']:.2f}", f"{r['ms']:.1f}", f"{r['sum_ms']:.1f}"])
    return table(["A, k, sum", "ratio", "two ranks, ms", "the sum alone, ms"], rows)


# attribution -------------------------------------------------------------------------------------------------------

SIZES = (1024, 2048, 4096)
FIRST = "4e1bcd3"  # the commit of the run with all families


def scores(family, k, **wanted):
    """The LDS of each seed."""
    found = [r["lds"] for r in records("h200/grass_lds.jsonl", **wanted)
             if (r["spec"]["family"], r["spec"]["k"]) == (family, k)]
    return statistics.mean(found), statistics.stdev(found)


def signed(value):
    return f"{'−' if value < 0 else '+'}{abs(value):.4f}"


@shown
def lds():
    """LDS of every family, with the deviation of a seed, and how much it is above the Gaussian's."""
    rows = []
    for family in ("blockperm", "sjlt", "blockrow", "srht", "gaussian"):
        cells = []
        for k in SIZES:
            mean, deviation = scores(family, k, commit=FIRST)
            less = signed(mean - scores("gaussian", k, commit=FIRST)[0])
            cells.append(f"{mean:.4f} ± {deviation:.4f}" + (f"; {less}" if family != "gaussian" else ""))
        rows.append([family, *cells])
    return table(["family", *(f"k = {k}" for k in SIZES)], rows)


@shown
def lds_variants():
    """LDS of blockperm without a mask, and with other shuffles."""
    rows = []
    for what, wanted in (("no mask", {"mask": 0, "commit": "70748d2"}), ("contiguous blocks", {"commit": "e28ab3c"}),
                         ("rows shuffled", {"commit": "70748d2"})):
        shuffle = {"contiguous blocks": "none", "rows shuffled": "rows"}.get(what, "groups")
        cells = []
        for k in SIZES:
            found = [r["lds"] for r in records("h200/grass_lds.jsonl", **wanted)
                     if (r["spec"]["family"], r["spec"]["k"], r["spec"]["shuffle"]) == ("blockperm", k, shuffle)]
            cells.append(f"{statistics.mean(found):.4f}" if found else "–")
        rows.append([what, *cells, wanted["commit"]])
    return table(["blockperm", *(f"k = {k}" for k in SIZES), "commit"], rows)


@shown
def projecting():
    """Microseconds of masking and sketching a batch on an H200, and how many times as long the others take."""
    rows = []
    for case, what in (("layers", "from layers, masked"), ("masked", "from gradients, masked"),
                       ("runs", "from gradients, mask of runs of 8"), ("all", "from gradients, no mask")):
        def of(method, k, case=case):
            return records("h200/grass.jsonl", case=case, method=method, k=k)[0]["ms"]
        cells = [f"{1000 * of('flashsketch', k):.0f}" for k in SIZES]
        for method in ("sjlt-scatter", "algorithm1"):
            cells.append(", ".join(f"{of(method, k) / of('flashsketch', k):.1f}" for k in SIZES))
        rows.append([what, *cells])
    return table(["a batch of 512", *(f"k = {k}, µs" for k in SIZES), "scattered SJLT, times as long",
                  "Algorithm 1, times as long"], rows)


# solvers on a GPU --------------------------------------------------------------------------------------------------

TASKS = {"lstsq": "least squares", "qr": "QR", "svd": "singular values"}
PIVOTED = "flashsketch, pivoted"


def milliseconds(record):
    return f"{record['ms']:.1f}" if record and record.get("ms") else "breaks down" if record else ""


@shown
def solvers_h200():
    """Milliseconds of the solvers on an H200 beside PyTorch's, a line for each problem."""
    cases = {}
    for r in records("h200/solve_python.jsonl"):
        if "rank64" not in r["case"]:
            cases.setdefault(r["case"], {})[r["method"]] = r
    rows = []
    for by_method in cases.values():
        ours = by_method["flashsketch"]
        theirs = next(r for method, r in by_method.items() if method.startswith("torch.linalg"))
        ratio = f"{theirs['ms'] / ours['ms']:.1f}×" if theirs.get("ms") else ""
        rows.append([TASKS[ours["task"]], f"{ours['d']} × {ours['n']}", "f32" if ours["dtype"] == "float32" else "f64",
                     f"{ours['cond']:g}", milliseconds(ours), milliseconds(theirs), ratio,
                     milliseconds(by_method.get(PIVOTED) or by_method.get("torch normal equations"))])
    return table(["task", "d × n", "type", "cond", "ours", "PyTorch", "ratio", "pivoted QR; normal equations"], rows)


@shown
def rank_64_h200():
    """Milliseconds of 64 singular values on an H200, and the error over the least possible."""
    return table(["d × n", "method", "ms", "error over the best"],
                 [[f"{r['d']} × {r['n']}", r["method"], milliseconds(r), f"{r['over_best']:.2f}"]
                  for r in records("h200/solve_python.jsonl") if "rank64" in r["case"]])


@shown
def solvers_h200_commit():
    return records("h200/solve_python.jsonl")[0]["commit"]


# the pages ---------------------------------------------------------------------------------------------------------

def filled(text, path):
    """The page with every marker's text made from the records; the names of those that differ."""
    changed = []

    def new(match):
        name, newline, old = match.groups()
        if name not in SHOWN:
            sys.exit(f"{path}: bench/report_pages.py has no '{name}'; it has {', '.join(SHOWN)}")
        text = SHOWN[name]()
        if text != old:
            changed.append(name)
        return f"<!-- from: {name} -->{newline}{text}<!-- end -->"

    return MARKED.sub(new, text), changed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the tree with docs")
    options = parser.parse_args()
    wrong = []
    for path in sorted((options.root / "docs").rglob("*.md")):
        old = path.read_text(encoding="utf-8")
        text, changed = filled(old, path)
        wrong += [f"{path.relative_to(options.root)}: {name}" for name in changed]
        if changed and not options.check:
            path.write_text(text, encoding="utf-8")
    if wrong and options.check:
        sys.exit("not as the records say; run bench/report_pages.py: " + ", ".join(wrong))


if __name__ == "__main__":
    main()
