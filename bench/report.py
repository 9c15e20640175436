#!/usr/bin/env python3
"""Writes docs/performance.md from the records in bench/results: tables, bars, and whether they hold.

    python3 bench/report.py [--results bench/results] [--gpu h200] [--output docs/performance.md]

A record is a line of JSON as `fsbench cpu` and `fsbench cuda` print it.  Where a case was measured twice the later line
counts, files in the order of their names.  A bar is what a case must keep, an aim what it should reach.  The records of
`fsbench randnla` are report_randnla.py's, those of GraSS report_grass.py's, those of `fsbench cpu` report_cpu.py's;
their figures go into the folder images beside the page.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys

import report_cpu
import report_grass
import report_randnla
import report_sweep
from report_randnla import table

ROOT = pathlib.Path(__file__).resolve().parent.parent
LARGE = "65536 × 1024 and larger"

# Which records, what they are called, the bar and the aim; the ratio must stay below both.
BARS = [
    (lambda r: r["case"].startswith("rows-") and r["d"] > 16384, f"rows, κ = 1, {LARGE}", 1.25, 1.08),
    (lambda r: r["case"].startswith("rows-") and r["d"] <= 16384, "rows, κ = 1, 16384 × 1024", 1.5, 1.2),
    (lambda r: r["case"] == "kappa2", "κ = 2, s = 2", 1.5, 1.15),
    (lambda r: r["case"] == "kappa4", "κ = 4, s = 1", 2.0, 1.3),
    (lambda r: r["case"].startswith("half-") and r["kappa"] == 1, "f16 and bf16, κ = 1", 1.3, 1.1),
    (lambda r: r["case"] == "batch-one", "batch-major, interleave 1", 1.3, 1.08),
    (lambda r: r["case"] == "batch-largest", "batch-major, largest interleave", 1.5, 1.15),
    (lambda r: r["case"] == "narrow" and r["n"] == 16, "narrow, n = 16", 2.5, 1.5),
    (lambda r: r["case"] == "narrow" and r["n"] == 1, "narrow, n = 1", 8.0, 3.0),
    (lambda r: r["case"].startswith("adjoint-"), "adjoint", 1.5, 1.15),
    (lambda r: r["case"] == "blockrow", "FlashBlockRow", 2.0, 1.2),
    (lambda r: r["case"] == "srht", "SRHT", 5.0, 3.2),
]
HOST_BAR = 0.85  # of the rate of a plain copy from pinned memory

# Bound of the relative error of a correct result.
ERRORS = {"f32": 2e-5, "f64": 1e-13, "f16": 2e-3, "bf16": 1e-2, "f32, precision fast": 1e-4, "f32, TF32 product": 1e-2}

# Peers in the order of the table: case, name, and the line of the library that it is compared with.
PEERS = [
    ("baseline-flashsketch", "**FlashSketch**, `fast`: κ = 1, s = 4 (row groups where batch-major)", None),
    ("baseline-flashsketch-bf16", "**FlashSketch**, `fast`, A in bf16", None),
    ("baseline-flashsketch-kappa1", "**FlashSketch**, contiguous, κ = 1, s = 4", None),
    ("baseline-flashsketch-kappa2", "**FlashSketch**, contiguous, κ = 2, s = 2", None),
    ("baseline-flashsketch-kappa4", "**FlashSketch**, contiguous, κ = 4, s = 1", None),
    ("baseline-flashsketch-srht", "SRHT of this library", "baseline-flashsketch"),
    ("baseline-srht-passes", "SRHT, Hadamard transform in memory", "baseline-flashsketch"),
    ("baseline-shared-kappa1", "paper's Algorithm 1, κ = 1, s = 4", "baseline-flashsketch-kappa1"),
    ("baseline-shared-kappa2", "paper's Algorithm 1, κ = 2, s = 2", "baseline-flashsketch-kappa2"),
    ("baseline-shared-kappa4", "paper's Algorithm 1, κ = 4, s = 1", "baseline-flashsketch-kappa4"),
    ("baseline-cusparse-sjlt", "SJLT, s = 4, cuSPARSE", "baseline-flashsketch"),
    ("baseline-scatter-sjlt", "SJLT, s = 4, global atomics (as GraSS)", "baseline-flashsketch"),
    ("baseline-gaussian-f32", "Gaussian, cuBLAS f32", "baseline-flashsketch"),
    ("baseline-gaussian-tf32", "Gaussian, cuBLAS TF32", "baseline-flashsketch"),
    ("baseline-gaussian-bf16", "Gaussian, cuBLAS bf16, A in bf16", "baseline-flashsketch-bf16"),
]

KEY = ("case", "op", "family", "d", "n", "pad", "k", "M", "kappa", "s", "shuffle", "interleave", "layout", "dtype",
       "precision")


def read(paths):
    """The records of some files, the last of each case."""
    records = {}
    for path in sorted(paths):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                sys.exit(f"report.py: {path}, line {number} is not JSON: {error}")
            records[tuple(record.get(field) for field in KEY)] = record
    return list(records.values())


def time_text(ms):
    return f"{ms:.4f}" if ms < 1 else f"{ms:.3f}" if ms < 10 else f"{ms:.1f}"


def bar_of(record):
    """The bar and the aim of a record, or None."""
    return next(((bar, aim) for belongs, _, bar, aim in BARS if belongs(record)), None)


def ratio_text(record):
    """The ratio; bold where it is over its bar, with a star where it reaches its aim."""
    ratio, limits = record["ratio"], bar_of(record)
    if ratio is None:
        return "no number"
    if limits and ratio > limits[0]:
        return f"**{ratio:.2f}**"
    return f"{ratio:.2f}" + ("*" if limits and ratio <= limits[1] else "")


def where(record):
    return f"{record['case']}, {record['d']} × {record['n']}, k = {record['k']}"


def bars_section(records):
    rows = []
    for belongs, name, bar, aim in BARS:
        mine = [r for r in records if belongs(r) and r["ratio"] is not None]
        if not mine:
            rows.append([name, "0", "", "", "", str(bar), str(aim), "not measured"])
            continue
        worst = max(mine, key=lambda r: r["ratio"])
        middle = statistics.median(r["ratio"] for r in mine)
        over, reached = sum(r["ratio"] > bar for r in mine), sum(r["ratio"] <= aim for r in mine)
        holds = (f"no: {over} over" if over else "yes") + f"; {reached} reach the aim"
        rows.append([name, str(len(mine)), f"{middle:.2f}", f"{worst['ratio']:.2f}", where(worst), str(bar), str(aim),
                     holds])
    for record in (r for r in records if r.get("copy_share") is not None):
        share = record["copy_share"]
        rows.append([f"{record['case']}: share of the copy rate", "1", f"{share:.2f}", f"{share:.2f}", where(record),
                     f"≥ {HOST_BAR}", "", "yes" if share >= HOST_BAR else "no"])
    return table(["cases", "number", "median ratio", "worst", "which", "bar", "aim", "holds"], rows)


def grid_section(records, cases):
    """One line a sketch and shape, one column a k."""
    mine = [r for r in records if cases(r["case"])]
    if not mine:
        return "Not measured."
    ks = sorted({r["k"] for r in mine})
    lines: dict = {}
    for r in mine:
        lines.setdefault((r["case"], r["d"], r["n"]), {})[r["k"]] = r
    rows = []
    for (case, d, n), by_k in lines.items():
        floor = statistics.median(r["floor_ms"] for r in by_k.values())
        cells = [f"{time_text(by_k[k]['ms'])} ms, {ratio_text(by_k[k])}" if k in by_k else "" for k in ks]
        rows.append([case, f"{d} × {n}", f"{time_text(floor)} ms"] + cells)
    return table(["case", "d × n", "lower bound"] + [f"k = {k}" for k in ks], rows)


def list_section(records, cases):
    rows = []
    for r in (r for r in records if cases(r["case"])):
        rows.append([r["case"], f"{r['d']} × {r['n']}", str(r["k"]), r["dtype"], time_text(r["floor_ms"]),
                     time_text(r["ms"]), ratio_text(r), f"{r['bytes_per_s'] / 1e12:.2f}", f"{r['call_us']:.0f}"])
    if not rows:
        return "Not measured."
    return table(["case", "d × n", "k", "type", "bound, ms", "ms", "ratio", "TB/s", "host, µs"], rows)


def peers_section(records):
    parts = []
    by_case = {(r["case"], r["d"], r["n"], r["layout"], r["k"]): r for r in records}
    shapes = sorted({key[1:4] for key in by_case if key[0].startswith("baseline-")}, key=lambda s: (s[2] == "batch", s))
    for d, n, layout in shapes:
        ks = sorted({key[4] for key in by_case if key[0].startswith("baseline-") and key[1:4] == (d, n, layout)})
        rows = []
        for case, name, against in PEERS:
            cells = []
            for k in ks:
                r, ours = by_case.get((case, d, n, layout, k)), by_case.get((against, d, n, layout, k))
                if r is None:
                    cells.append("")
                    continue
                text = time_text(r["ms"])
                if r.get("full_ms") is not None:
                    text += f" ({time_text(r['full_ms'])})"
                if ours is not None:
                    text += f", {r['ms'] / ours['ms']:.1f}×"
                cells.append(text)
            if any(cells):
                rows.append([name] + cells)
        name = f"{n} samples × {d} coordinates, batch-major" if layout == "batch" else f"{d} × {n}, row-major"
        parts.append(f"**{name}**\n\n" + table(["ms"] + [f"k = {k}" for k in ks], rows))
    return "\n\n".join(parts) if parts else "Not measured."


# Fields of peers.json and what they are.
THEIRS = [
    ("authors_k1_s4", "the paper's kernel, κ = 1, s = 4"),
    ("authors_k2_s2", "the paper's kernel, κ = 2, s = 2"),
    ("authors_k4_s1", "the paper's kernel, κ = 4, s = 1"),
    ("authors_k1_s1", "the paper's kernel, κ = 1, s = 1"),
    ("srht", "SRHT: signs, fast-hadamard-transform, sampling"),
    ("cusparse_s4", "SJLT, s = 4, cuSPARSE, S ready"),
    ("cusparse_s4_made", "SJLT, s = 4, cuSPARSE, S made in the call"),
    ("grass_s4", "SJLT, s = 4, GraSS's scatter-add, indices ready"),
    ("gaussian_f32", "dense Gaussian, f32, S ready"),
    ("gaussian_tf32", "dense Gaussian, TF32, S ready"),
]

THEIR_PAGE = """**Third-party programs themselves**, timed in PyTorch on an H200 with the same driver and CUDA, each
over our default at the same k, k = {first} … {last} ([`peers.json`](../bench/results/{path}) has the times, and what
each is). Our own implementations above are faster than most of these, and the harder test. Over the read alone, a dense
product in f32 takes {gaussian} times at k = {first}, and the paper's kernel with κ = s = 1 {lightest} times: nothing
can be more times as fast than that.

{table}"""


def theirs_section(records, path):
    """Times of third-party baselines over that of our default, a column a shape."""
    ours = {(r["d"], r["n"], r["k"]): r for r in records if r["case"] == "rows-s8-rows"}
    theirs = json.loads(path.read_text())["rows"] if path.exists() else []
    both = [(r, ours[key]) for r in theirs if (key := (r["d"], r["n"], r["k"])) in ours]
    if not both:
        return ""
    shapes = sorted({(r["d"], r["n"]) for r, _ in both})
    rows = []
    for field, name in THEIRS:
        cells = []
        for shape in shapes:
            ratios = [(r[field] / mine["ms"], r["k"]) for r, mine in both if (r["d"], r["n"]) == shape]
            mean = statistics.geometric_mean(ratio for ratio, _ in ratios)
            least, k = min(ratios)
            cells.append(f"{mean:.1f}×, least {least:.1f}× at k = {k}")
        rows.append([name] + cells)

    def reads(field, ks):
        times = [r[field] / mine["floor_ms"] for r, mine in both if r["k"] in ks]
        return f"{min(times):.1f} to {max(times):.1f}"

    ks = sorted({r["k"] for r, _ in both})
    return THEIR_PAGE.format(path=f"{path.parent.name}/{path.name}", first=ks[0], last=ks[-1],
                             gaussian=reads("gaussian_f32", ks[:1]), lightest=reads("authors_k1_s1", ks),
                             table=table(["over our default"] + [f"{d} × {n}" for d, n in shapes], rows))


def errors_section(records):
    wrong: list[str] = []
    worst: dict[str, float] = {}
    for r in records:
        kind = r["dtype"]
        if r["precision"] == "fast":
            kind += ", precision fast"
        if r["case"].endswith("-tf32"):
            kind += ", TF32 product"
        if r["error"] is None or r["error"] > ERRORS[kind]:
            wrong.append(f"- {where(r)}: {r['error']}")
        else:
            worst[kind] = max(worst.get(kind, 0.0), r["error"])
    text = "Largest relative error against a result in double, over the cases of each type: "
    text += "; ".join(f"{kind}: {error:.1e}" for kind, error in sorted(worst.items())) + "."
    return text + ("\n\n**Wrong results:**\n\n" + "\n".join(wrong) if wrong else "")


def provenance(records):
    def values(field):
        return ", ".join(sorted({str(r[field]) for r in records if field in r}))

    text = f"{values('machine')}; commit {values('commit')}; {values('date')}"
    if any("driver" in r for r in records):
        text += f"; driver {values('driver')}, CUDA {values('cuda')}; {values('reps')} repetitions"
    return text


def stream_section(folder):
    records = read([folder / "stream.jsonl"])
    mib = 1 << 20
    rows = [[r["case"], str(r["k"]), f"{r['memory'] / mib:.0f}", f"{r['beyond_y'] / mib:.0f}", f"{r['ms']:.0f}",
             f"{r['ratio']:.2f}", f"{r['small_ratio']:.2f}", f"{r['cpu_ratio']:.2f}", f"{r['small_cpu_ratio']:.2f}"]
            for r in records]
    return (f"### {folder.name}\n\n{provenance(records)}; {records[0]['threads']} threads; medians of "
            f"{records[0]['reps']}.\n\n" +
            table(["case", "k", "panel, MiB", "beyond Y, MiB", "ms", "ratio, same panels", "ratio, small",
                   "CPU, same panels", "CPU, small"], rows))


PAGE = """# Performance

This page is written by `bench/report.py` from the records in [`bench/results`](../bench/results); edit those, not this.

A sketch must read A and write Y. The time to do only that, by the fastest of sixteen kernels that only read and write,
is the **lower bound**; the **ratio** is the sketch's time over that of the lower bound, measured alternately in the
same run. 1 is the best there is. The lower bound of FlashBlockRow reads only the rows it samples; that of the adjoint
writes d × n values.

## On a GPU

{gpu_provenance}.

```sh
cmake --preset release && cmake --build --preset release
build/release/bench/fsbench cuda --commit "$(git describe --always --dirty)" > bench/results/{gpu}/cuda.jsonl
python3 bench/report.py
```

Times are medians between CUDA events on a stream that is kept busy, with as many buffers in turn as it takes for
600 MB to pass before one is read again, so that nothing is in L2 beforehand. "host, µs" is what a call costs the host.
`fsbench cuda --case TEXT` measures some cases only.

### Bars

A bar must hold, an aim should be reached.

{bars}

In the tables below a ratio over its bar is bold, and one that reaches its aim has a star.

### Rows of A contiguous, f32

κ = 1; the name has s and the shuffle.

{rows}

### More blocks a column: κ = 2 and κ = 4

Contiguous input blocks, as in the paper.

{kappa}

### f16 and bf16

{half}

### Batch-major

n samples of d contiguous coordinates, row groups of 32 shuffled, each spread over one block or over as many as may be.

{batch}

### Few columns, other families, other types

{others}

### Every width, layout and sketch

{sweep}

### A in host memory

8 GiB stream through the GPU; the lower bound is a plain copy from pinned memory to the GPU. Pageable memory is copied
by the host's cores first, which is slower where other programs use these cores too: 0.50 of the copy rate once
(6185e7d).

{host}

### Against what else there is

Milliseconds with S ready; in brackets with S made in the same call; then how many times as long as the line of this
library that makes the same kind of sketch, or as its default. FlashSketch, the SRHT and the paper's kernel never store
S: what is measured includes making it. The kernel of Algorithm 1 and the scatter are our own implementations
([`bench/baselines`](../bench/baselines)). Every result is compared with a product in double.

{peers}

{theirs}

### Errors

{errors}

## On a CPU

The lower bound reads A and writes Y with the same threads: `fsbench cpu`, and `fsbench cpu --case sweep` for matrices
of any width. Times are the fastest of each case where the record has them, otherwise medians.

{cpu}

## Files on a CPU

A file of 4 GiB, f32, 2097152 × 512, in the page cache, or put out of it before every measurement (`cold`), is read in
panels and sketched: `fsbench stream`. The lower bounds read it with the same threads: the same panels into memory, or
(`small`) everything into a mebibyte for each thread, which stays in that core's cache; nothing reads a file faster. The
last two columns are ratios of CPU times, of all threads together: they mean more on a machine that others use.

{stream}

## RandNLA

{randnla}

## GraSS

{grass}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--gpu", default="h200", help="folder of the GPU's records in RESULTS (default: h200)")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs" / "performance.md")
    options = parser.parse_args()

    folder, images = options.results / options.gpu, options.output.parent / "images"
    others = ("randnla.jsonl", "grass.jsonl", "grass_lds.jsonl", "solve_python.jsonl")
    records = read(path for path in folder.glob("*.jsonl") if path.name not in others)
    if not records:
        sys.exit(f"report.py: there are no records in {folder}")
    grids = ("rows-", "kappa", "half-", "batch-", "host-", "baseline-", "sweep-")
    cpu = "\n\n".join(report_cpu.section(path.parent, read([path]), provenance, images)
                      for path in sorted(options.results.glob("*/cpu.jsonl")))
    stream = "\n\n".join(stream_section(path.parent) for path in sorted(options.results.glob("*/stream.jsonl")))
    page = PAGE.format(
        gpu=options.gpu, gpu_provenance=provenance(records), bars=bars_section(records),
        rows=grid_section(records, lambda case: case.startswith("rows-")),
        kappa=grid_section(records, lambda case: case.startswith("kappa")),
        half=grid_section(records, lambda case: case.startswith("half-")),
        batch=grid_section(records, lambda case: case.startswith("batch-")),
        others=list_section(records, lambda case: not case.startswith(grids)),
        sweep=report_sweep.section(records, images),
        host=list_section(records, lambda case: case.startswith("host-")),
        peers=peers_section(records), theirs=theirs_section(records, folder / "peers.json"),
        errors=errors_section(records), cpu=cpu or "Not measured.",
        stream=stream or "Not measured.",
        randnla=report_randnla.section(options.results, images),
        grass=report_grass.section(options.results, images))
    beside = options.output.with_name(options.output.name + ".part")
    beside.write_text(page)
    os.replace(beside, options.output)


if __name__ == "__main__":
    main()
