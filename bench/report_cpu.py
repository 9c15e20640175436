"""What bench/report.py says of the records of `fsbench cpu`: a table of one shape, tables of the sweep, its picture.

A ratio is that of the fastest times where the record has them: on a machine that others use, medians are of its
scheduler.
"""
import pathlib
import sys

from report_randnla import table

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))

import drawing  # noqa: E402
from drawing import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY, Axes, Picture  # noqa: E402

# Lines of the picture: case, type, layout, label, colour, marker.
LINES = [
    ("sweep-rows", "f32", "row", "rows, f32", ORANGE, "o"),
    ("sweep-rows", "f64", "row", "rows, f64", BLUE, "s"),
    ("sweep-rows", "bf16", "row", "rows, bf16", GREEN, "d"),
    ("sweep-rows", "f16", "row", "rows, f16", SKY, "^"),
    ("sweep-batch", "f32", "batch", "batch-major, f32", PINK, "v"),
    ("sweep-adjoint", "f32", "row", "adjoint, f32", BLACK, "<"),
]


def ratio(record):
    return record["ms_min"] / record["floor_min"] if "ms_min" in record else record["ratio"]


def milliseconds(record):
    return record.get("ms_min", record["ms"])


def is_line(record, line):
    """Whether a record is a point of a line: default sketches at k = 1024, rows without gaps."""
    return (record["case"], record["dtype"], record["layout"]) == line[:3] and not record.get("pad")


def one_shape(records):
    rows = [[r["case"], f"{r['d']} × {r['n']}", str(r["k"]), r["dtype"], r["layout"], f"{milliseconds(r):.2f}",
             f"{ratio(r):.2f}"] for r in records if not r["case"].startswith("sweep-")]
    return table(["case", "d × n", "k", "type", "layout", "ms", "ratio"], rows) if rows else ""


def sweep(records):
    """The lines of the picture as columns by n; every other case by itself."""
    mine = [r for r in records if r["case"].startswith("sweep-")]
    if not mine:
        return ""
    lines = [line for line in LINES if any(is_line(r, line) for r in mine)]
    shown = {id(r) for r in mine for line in lines if is_line(r, line)}
    by_n = {}
    for r in mine:
        for line in lines:
            if is_line(r, line):
                by_n.setdefault(r["n"], {})[line] = r
    rows = [[str(n)] + [f"{milliseconds(by_n[n][line]):.1f} ms, {ratio(by_n[n][line]):.2f}" if line in by_n[n] else ""
                        for line in lines] for n in sorted(by_n)]
    others = [[r["case"].removeprefix("sweep-"), r["family"], r["dtype"], r["layout"] + (", gaps" if r["pad"] else ""),
               str(r["n"]), str(r["k"]), f"{r['kappa']}, {r['s']}", f"{milliseconds(r):.1f}", f"{ratio(r):.2f}"]
              for r in mine if id(r) not in shown]
    return ("Matrices of 128 MiB of any width, the default sketch, k = 1024:\n\n"
            + table(["n"] + [line[3] for line in lines], rows) + "\n\nOther sketches and layouts:\n\n"
            + table(["case", "family", "type", "layout", "n", "k", "κ, s", "ms", "ratio"], others))


def picture(records):
    """Ratio against n."""
    mine = [(line, sorted((r["n"], ratio(r)) for r in records if is_line(r, line))) for line in LINES]
    mine = [(line, points) for line, points in mine if points]
    ratios = [y for _, points in mine for _, y in points]
    high = 2 ** next(e for e in range(1, 12) if 2**e >= max(ratios))
    image = Picture(760, 400, "CPU time over the lower bound against the number of columns")
    axes = Axes(image, (60, 46, 500, 300), (1, 4096), (min(1, *ratios), high))
    axes.frame([4**i for i in range(7)], [2**i for i in range(0, high.bit_length())],
               "time over reading A and writing Y, 128 MiB, k = 1024")
    for index, ((_, _, _, label, colour, marker), points) in enumerate(mine):
        axes.series(points, colour, marker)
        image.line([(580, 70 + 24 * index), (604, 70 + 24 * index)], colour, 1.6)
        image.marker(592, 70 + 24 * index, marker, colour)
        image.text(612, 74 + 24 * index, label, 12)
    image.text(310, 386, "columns of A", 12, GREY, "middle")
    return image.svg()


def section(folder, records, provenance, images):
    """The part of the page about one machine; writes its picture if there is a sweep."""
    threads = records[0]["threads"]
    parts = [f"### {folder.name}", f"{provenance(records)}; {threads} thread{'s' if threads > 1 else ''}.",
             one_shape(records), sweep(records)]
    if any(is_line(r, line) for r in records for line in LINES):
        images.mkdir(parents=True, exist_ok=True)
        drawing.put(images / f"cpu-{folder.name}.svg", picture(records), False)
        parts.append(f"![time over the lower bound against the number of columns](images/cpu-{folder.name}.svg)")
    return "\n\n".join(part for part in parts if part)
