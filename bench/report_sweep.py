"""report_sweep.py - the part of docs/performance.md on `fsbench cuda --case sweep`: every width, and a picture."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from drawing import BLUE, GREY, ORANGE, SKY, YELLOW, Axes, Picture  # noqa: E402
from report_randnla import table  # noqa: E402

SIZES = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2}
# case, what its column is called
ROWS = [("sweep-f32", "f32"), ("sweep-f32-offset", "f32, offset"), ("sweep-f32-gap", "f32, gap"),
        ("sweep-f32-none", "f32, contiguous blocks"), ("sweep-f16", "f16"), ("sweep-bf16", "bf16"),
        ("sweep-f64", "f64")]
BATCHES = [("sweep-batch-lines", "f32, row groups"), ("sweep-batch-rows", "f32, shuffled rows"),
           ("sweep-batch-bf16", "bf16, row groups")]
# case, whether rows start at multiples of 16 bytes, name, colour, marker
LINES = [("sweep-f32", True, "f32, aligned", BLUE, "o"), ("sweep-f32", False, "f32, not aligned", SKY, "s"),
         ("sweep-f16", True, "f16, aligned", ORANGE, "^"), ("sweep-f16", False, "f16, not aligned", YELLOW, "d")]


def ratios(records, case):
    return {(r["d"], r["n"], r["k"]): r["ms"] / r["floor_ms"] for r in records if r["case"] == case}


def side_by_side(records, columns, head, name):
    """A line for each shape, a column for each case."""
    by_case = [ratios(records, case) for case, _ in columns]
    shapes = sorted({shape for case in by_case for shape in case}, key=lambda shape: (shape[1], shape[0]))
    rows = [[name(d, n)] + [f"{case[d, n, k]:.2f}" if (d, n, k) in case else "" for case in by_case]
            for d, n, k in shapes]
    return table([head] + [title for _, title in columns], rows)


def widths(records):
    """By columns alone: the f64 and the two-byte cases have as many rows as those of floats."""
    return side_by_side(records, ROWS, "columns", lambda d, n: str(n))


def by_width(records, cases):
    """A line for each case and k, a column for each width."""
    mine = [r for r in records if r["case"] in cases]
    found = {(r["case"], r["k"], r["n"]): r["ms"] / r["floor_ms"] for r in mine}
    lines = list(dict.fromkeys((r["case"], r["k"]) for r in mine))
    ns = sorted({r["n"] for r in mine})
    return table(["case", "k"] + [f"n = {n}" for n in ns],
                 [[case.removeprefix("sweep-"), str(k)] + [f"{found[case, k, n]:.2f}" if (case, k, n) in found else ""
                                                          for n in ns] for case, k in lines])


def others(records):
    named = {case for case, _ in ROWS + BATCHES} | {"sweep-tiny", "sweep-adjoint"}
    return by_width(records, {r["case"] for r in records} - named)


def tiny(records):
    return table(["d × n", "k", "µs", "bound, µs"],
                 [[f"{r['d']} × {r['n']}", str(r["k"]), f"{1000 * r['ms']:.1f}", f"{1000 * r['floor_ms']:.1f}"]
                  for r in records if r["case"] == "sweep-tiny"])


def picture(records):
    drawn = Picture(720, 330, "times the lower bound against the columns of A")
    axes = Axes(drawn, (60, 40, 480, 240), (1, 4200), (1, 30))
    axes.frame((1, 4, 16, 64, 256, 1024, 4096), (1, 1.5, 2, 3, 5, 10, 20, 30), "time over the lower bound, k = 1024")
    drawn.text(300, 318, "columns of A", 12, GREY, "middle")
    for place, (case, aligned, name, colour, marker) in enumerate(LINES):
        points = sorted((r["n"], r["ms"] / r["floor_ms"]) for r in records if r["case"] == case
                        and (r["n"] * SIZES[r["dtype"]] % 16 == 0) == aligned)
        if points:
            axes.series([(n, max(1, ratio)) for n, ratio in points], colour, marker)
        drawn.marker(562, 60 + 24 * place, marker, colour)
        drawn.text(574, 64 + 24 * place, name, 12)
    return drawn.svg()


def section(records, images):
    """Tables and the picture, which goes into the folder `images`; of records without a sweep "Not measured."."""
    mine = [r for r in records if r["case"].startswith("sweep-")]
    if not mine:
        return "Not measured."
    images.mkdir(exist_ok=True)
    (images / "sweep.svg").write_text(picture(mine), encoding="utf-8")
    worst = max((r for r in mine if r["case"] in ("sweep-f32", "sweep-f16") and r["n"] >= 17),
                key=lambda r: r["ms"] / r["floor_ms"])
    return "\n\n".join([
        "![time over the lower bound against the columns of A](images/sweep.svg)",
        "2²⁵ elements of A at every width, k = 1024, the default sketch: times the lower bound. Rows of `offset` begin "
        "one element behind a multiple of 16 bytes, those of `gap` are one element further apart than they are long. "
        f"From 17 columns on the worst is {worst['ms'] / worst['floor_ms']:.1f}: {worst['n']} columns of "
        f"{worst['dtype']}.",
        widths(mine), "Batch-major: samples of d coordinates.",
        side_by_side(mine, BATCHES, "d × samples", lambda d, n: f"{d} × {n}"),
        "Other sketches of rows of f32, other families.", others(mine),
        "The adjoint, whose lower bound writes d × n values.", by_width(mine, {"sweep-adjoint"}),
        "Calls of a few microseconds.", tiny(mine)])
