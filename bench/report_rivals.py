#!/usr/bin/env python3
"""Writes what README.md and the documents show of third-party baselines: pictures and the table between its markers.

    python3 bench/report_rivals.py            writes the picture, the table and the constants of the site's calculator
    python3 bench/report_rivals.py --check    writes nothing; exits with 1 and names the markers whose text differs

Times of sketches: our default from h200/cuda.jsonl, the others from h200/peers.json, which are other projects' own
programs.  Errors: h200/randnla.jsonl, of sketches of the same distribution as each program's.  Least squares, QR and
singular values: amd-epyc-2threads/solve.jsonl, beside LAPACK.
"""
import argparse
import json
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import drawing  # noqa: E402
from drawing import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY, Axes, Picture  # noqa: E402
from report import read as read_times  # noqa: E402
from report_randnla import Records, table  # noqa: E402

RESULTS = ROOT / "bench" / "results"
SHAPE = (65536, 1024)
NONZEROS = 8  # s of the default sketch
KS = (256, 512, 1024, 2048, 4096)

# name, field of peers.json, method of randnla.jsonl whose S has the same distribution, colour, marker
RIVALS = [
    ("the paper's kernel, κ = 1, s = 4", "authors_k1_s4", "algorithm1-1-4", PINK, "s"),
    ("the paper's kernel, κ = 2, s = 2", "authors_k2_s2", "algorithm1-2-2", SKY, "d"),
    ("SJLT, s = 4, cuSPARSE, S stored", "cusparse_s4", "sjlt-sparse-4", BLUE, "^"),
    ("SJLT, s = 4, GraSS's scatter-add", "grass_s4", "sjlt-sparse-4", "#7f7f7f", "<"),
    ("SRHT, fast-hadamard-transform", "srht", "srht", GREEN, "v"),
    ("dense Gaussian, cuBLAS f32, S stored", "gaussian_f32", "gaussian", BLACK, "d"),
]
INPUTS = [("gaussian", "all rows alike"), ("hot", "64 neighbouring rows dominate")]
# task of solve.jsonl, what it is, LAPACK's routines
SOLVERS = [("lstsq", "least squares", ("gelsd",)), ("qr", "QR", ("geqrf",)), ("pivoted", "QR with pivots", ("geqp3",)),
           ("svd", "all singular values", ("gesdd",))]


def records_of_ours():
    return [r for r in read_times([RESULTS / "h200" / "cuda.jsonl"]) if r["case"] == f"rows-s{NONZEROS}-rows"]


def records_of_theirs():
    return json.loads((RESULTS / "h200" / "peers.json").read_text())["rows"]


def times():
    """{k: milliseconds} of our default, and {field: {k: milliseconds}} of the others, at SHAPE; what made ours."""
    records = [r for r in records_of_ours() if (r["d"], r["n"]) == SHAPE]
    rows = [r for r in records_of_theirs() if (r["d"], r["n"]) == SHAPE]
    others = {field: {r["k"]: r[field] for r in rows} for _, field, _, _, _ in RIVALS}
    return {r["k"]: r["ms"] for r in records}, others, records


def chart():
    """Error against time: ours and the others', a panel for each input."""
    ours, others, _ = times()
    errors = Records([RESULTS / "h200" / "randnla.jsonl"])
    picture = Picture(900, 470, "Embedding error against time on an H200: FlashSketch and other sketches")
    lines = [(f"FlashSketch, default, κ = 1, s = {NONZEROS}", ours, f"flashsketch-1-{NONZEROS}", ORANGE, "o")]
    lines += [(name, others[field], method, colour, marker) for name, field, method, colour, marker in RIVALS]
    for panel, (data, title) in enumerate(INPUTS):
        axes = Axes(picture, (62 + 430 * panel, 62, 385, 270), (0.05, 20), (0.4, 5))
        axes.frame((0.1, 0.2, 0.5, 1, 2, 5, 10), (0.5, 1, 2, 4), title)
        for _, ms, method, colour, marker in reversed(lines):
            found = [(ms[k], errors.error("ose", data, *SHAPE, k, method)) for k in KS]
            axes.series([(time, error[0]) for time, error in found if error], colour, marker,
                        2.6 if marker == "o" else 1.5)
        picture.text(62 + 430 * panel + 192, 366, "time, ms", 11.5, GREY, "middle")
    picture.text(16, 200, "embedding error", 11.5, GREY, "middle", angle=-90)
    picture.text(16, 24, f"Sketching a {SHAPE[0]} × {SHAPE[1]} f32 matrix on an H200. Left is faster, down is better; "
                 f"a point each for k = {', '.join(map(str, KS))}.", 12)
    for number, (name, _, _, colour, marker) in enumerate(lines):
        x, y = 40 + 290 * (number % 3), 396 + 24 * (number // 3)
        picture.line([(x, y), (x + 26, y)], colour, 2.6 if marker == "o" else 1.5)
        picture.marker(x + 13, y, marker, colour)
        picture.text(x + 33, y + 4, name, 11.5, bold=marker == "o")
    return picture.svg()


def legend(picture, lines, left, top):
    """A line of (name, colour, marker, width) each, below one another."""
    for number, (name, colour, marker, width) in enumerate(lines):
        y = top + 26 * number
        picture.line([(left, y), (left + 26, y)], colour, width, "" if marker else "5 4")
        if marker:
            picture.marker(left + 13, y, marker, colour)
        picture.text(left + 34, y + 4, name, 11.5, bold=marker == "o")


def sizes():
    """Time against the size of A at one k."""
    k = 1024
    picture = Picture(860, 400, "Time against the size of A on an H200: FlashSketch and other sketches")
    picture.text(16, 24, f"Sketching A in f32 to k = {k} rows on an H200: time against the size of A.", 12)
    axes = Axes(picture, (62, 60, 420, 280), (50, 650), (0.015, 15))
    axes.frame((64, 128, 256, 512), (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10), "time, ms")
    picture.text(272, 378, "A, MiB", 11.5, GREY, "middle")

    def points(rows, field):
        return sorted((4 * r["d"] * r["n"] / 2**20, r[field]) for r in rows if r["k"] == k)

    ours = records_of_ours()
    lines = []
    for name, field, _, colour, marker in RIVALS:
        axes.series(points(records_of_theirs(), field), colour, marker, 1.5)
        lines.append((name, colour, marker, 1.5))
    axes.series(points(ours, "ms"), ORANGE, "o", 2.6)
    picture.line([axes.at(*point) for point in points(ours, "floor_ms")], GREY, 1.5, "5 4")
    lines = [("reading A and writing Y: the lower bound", GREY, "", 1.5),
             (f"FlashSketch, default, κ = 1, s = {NONZEROS}", ORANGE, "o", 2.6), *lines]
    legend(picture, lines, 520, 84)
    return picture.svg()


def sketch_rows():
    ours, others, records = times()
    commits = ", ".join(sorted({r["commit"] for r in records}))
    rows = []
    for name, field, _, _, _ in RIVALS:
        found = [others[field][k] / ours[k] for k in KS]
        rows.append(["sketch", f"{SHAPE[0]} × {SHAPE[1]}, f32", name, f"{min(found):.1f} to {max(found):.1f}×",
                     f"H200, {commits}"])
    return rows


def solver_rows():
    lines = [json.loads(line) for line in (RESULTS / "amd-epyc-2threads" / "solve.jsonl").read_text().splitlines()]
    cells = {r["cell"]: r for r in lines}  # the later line counts
    problems: dict[tuple, dict] = {}
    for r in cells.values():
        if r["dtype"] == "f64" and r["outcome"] == "solved":
            problems.setdefault((r["task"], r["d"], r["n"], r["cond"]), {})[r["method"]] = r
    rows = []
    for task, title, routines in SOLVERS:
        for routine in routines:
            both = [(m[routine], m["flashsketch"]) for key, m in problems.items()
                    if key[0] == task and routine in m and "flashsketch" in m]
            ratios = [theirs["ms"] / ours["ms"] for theirs, ours in both]
            commits = ", ".join(sorted({ours["commit"] for _, ours in both}))
            shapes = sorted({(ours["d"], ours["n"]) for _, ours in both})
            shape = f"{shapes[0][0]} × {shapes[0][1]}" if len(shapes) == 1 else f"{len(both)} problems"
            machines = f"{both[0][1]['machine']}, {both[0][1]['threads']} threads, {commits}"
            text = f"{ratios[0]:.1f}×" if len(ratios) == 1 else \
                f"{min(ratios):.1f} to {max(ratios):.1f}×"
            rows.append([title, f"{shape}, f64", f"LAPACK's `{routine}`", text, machines])
    return rows


def readme_table():
    return table(["task", "A", "compared with", "its time over ours", "machine, commit"], sketch_rows() + solver_rows())


def calculator():
    """The constants of the GPU for the calculator of docs/choosing.md, in the form of its script."""
    _, _, records = times()
    rates = [4 * (SHAPE[0] + r["k"]) * SHAPE[1] / (r["floor_ms"] * 1e6) for r in records]  # bytes / ms / 1e6 = GB/s
    known = {"machine": "NVIDIA H200", "commit": records[0]["commit"], "d": SHAPE[0], "n": SHAPE[1],
             "gigabytes_per_second": round(statistics.median(rates)),
             "ratio": {str(r["k"]): round(r["ratio"], 3) for r in sorted(records, key=lambda r: r["k"])}}
    return "/* Made by bench/report_rivals.py from bench/results. */\nconst measured = " + json.dumps(known) + ";\n"


PAGES = {"rivals": (ROOT / "README.md", readme_table)}


def filled(page, name, text):
    """The page with the text between `<!-- from: NAME -->` and `<!-- end -->`."""
    begin = f"<!-- from: {name} -->"
    before = page.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(begin) + r"\n.*?<!-- end -->", re.DOTALL)
    if not pattern.search(before):
        sys.exit(f"report_rivals.py: {page.name} has no {begin} ... <!-- end -->")
    return pattern.sub(lambda _: f"{begin}\n{text}\n<!-- end -->", before)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; name what differs")
    check = parser.parse_args().check
    images = ROOT / "docs" / "images"
    differing = [drawing.put(images / "rivals.svg", chart(), check), drawing.put(images / "sizes.svg", sizes(), check),
                 drawing.put(ROOT / "docs" / "site" / "static" / "measured.js", calculator(), check)]
    for name, (page, made) in PAGES.items():
        differing.append(drawing.put(page, filled(page, name, made()), check))
    stale = [str(path.relative_to(ROOT)) for path in differing if path]
    if stale:
        sys.exit(f"{', '.join(stale)}: not what the records say; run bench/report_rivals.py")


if __name__ == "__main__":
    main()
