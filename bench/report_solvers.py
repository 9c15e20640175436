#!/usr/bin/env python3
"""Writes the measured part of docs/solvers.md, and its figures, from the records of the solvers.

    python3 bench/report_solvers.py [--results bench/results] [--page docs/solvers.md]

MACHINE/solve.jsonl is the record of `fsbench solve`, MACHINE/solve_python.jsonl that of compare_solvers.py, and
MACHINE/solve.note, where it exists, remarks on both.  Where a cell was measured twice the later line counts.  The text
goes between the page's markers, the figures into the folder images beside it.
"""
import argparse
import json
import pathlib
import sys

from report_randnla import pyplot, table

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN = "<!-- begin: written by bench/report_solvers.py; edit that or the records, not this -->"
END = "<!-- end -->"
UNIT = {"f32": 2.0**-24, "f64": 2.0**-53, "float32": 2.0**-24, "float64": 2.0**-53}
TASKS = {"lstsq": "least squares", "qr": "QR", "pivoted": "pivoted QR", "svd": "all singular values"}
PEERS = ("gelsd", "gelsy", "gels", "geqrf", "geqp3", "gesdd", "gesvda", "normal")

# Bars: task, type, on a GPU, the fastest of which peers, how many times as long they must take, where a bar has one;
# n from which it holds.
SPEED = [
    ("lstsq", "f64", False, ("gelsd", "gelsy"), 3.0, 0),
    ("lstsq", "f64", False, ("gelsd", "gelsy"), 5.0, 500),
    ("lstsq", "f32", True, ("gels",), 10.0, 0),
    ("lstsq", "f64", True, ("gels",), 5.0, 0),
    ("qr", "f32", True, ("geqrf",), 6.0, 0),
    ("qr", "f64", True, ("geqrf",), 4.0, 0),
    ("pivoted", "f32", True, ("geqrf",), 3.0, 0),
    ("svd", "f32", True, ("gesvda",), 2.0, 0),
]
BACKWARD_BAR = 4.0  # of the reference's backward error

# Methods of the figure: name, label, colour, marker.  Points of one label are joined.
STYLES = [
    ("flashsketch-1e-4", "FlashSketch, to a tolerance", "#D55E00", "o"),
    ("flashsketch-1e-8", "FlashSketch, to a tolerance", "#D55E00", "o"),
    ("flashsketch-1e-12", "FlashSketch, to a tolerance", "#D55E00", "o"),
    ("flashsketch-iterate", "FlashSketch, to a tolerance", "#D55E00", "o"),
    ("flashsketch", "FlashSketch, default", "#D55E00", "D"),
    ("sketch-and-solve-2", "sketch-and-solve, k = 2, 4, 16 n", "#E69F00", "s"),
    ("sketch-and-solve-4", "sketch-and-solve, k = 2, 4, 16 n", "#E69F00", "s"),
    ("sketch-and-solve-16", "sketch-and-solve, k = 2, 4, 16 n", "#E69F00", "s"),
    ("normal", "normal equations", "#0072B2", "^"),
    ("gels", "QR (gels)", "#009E73", "P"),
    ("gelsd", "singular values (gelsd)", "#000000", "*"),
    ("gelsy", "pivoted QR (gelsy)", "#CC79A7", "v"),
]


def read(path):
    """The lines of a record by cell."""
    records = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            record = json.loads(line)
            records[record["cell"]] = record
            if "ms" not in record and record["outcome"] != "breaks down":
                raise KeyError("ms")
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            sys.exit(f"report_solvers.py: {path}, line {number} is not a line of a solvers' record: {error!r}")
    return list(records.values())


class Problems:
    """The lines of `fsbench solve` by problem: (task, d, n, dtype, cond) to lines by method."""

    def __init__(self, records):
        self.by: dict[tuple, dict] = {}
        for r in records:
            self.by.setdefault((r["task"], r["d"], r["n"], r["dtype"], r["cond"]), {})[r["method"]] = r

    def keys(self, task):
        return sorted((key for key in self.by if key[0] == task), key=lambda k: (k[3], k[1] * -1, k[2], k[4]))


def number(value):
    return "" if value is None else f"{value:.1e}"


def milliseconds(r):
    if r is None:
        return ""
    if r["outcome"] != "solved":
        return "breaks down"
    ms = r["ms"]
    return f"{ms:.3g}" if ms < 100 else f"{ms:.0f}"


def ratio(r, ours):
    if r is None or r["outcome"] != "solved":
        return milliseconds(r)
    return f"{milliseconds(r)} ({r['ms'] / ours['ms']:.1f}×)"


def times_section(problems):
    """A line for each problem, a column for each peer: milliseconds, and in brackets over ours."""
    parts = []
    for task, title in TASKS.items():
        keys = [key for key in problems.keys(task) if "flashsketch" in problems.by[key]]
        peers = [p for p in PEERS if any(p in problems.by[key] for key in keys)]
        rows = []
        for key in keys:
            ours, lines = problems.by[key]["flashsketch"], problems.by[key]
            way = ours.get("note", "").split(",")[0] if task == "lstsq" else ""
            rows.append([f"{key[1]} × {key[2]}", key[3], f"{key[4]:g}", f"{ours['read_ms']:.3g}",
                         f"**{milliseconds(ours)}** ({ours['reads']:.0f} reads{', ' + way if way else ''})"]
                        + [ratio(lines.get(p), ours) for p in peers])
        if rows:
            parts.append(f"**{title[0].upper()}{title[1:]}**, ms; in brackets the time of LAPACK's over ours.\n\n"
                         + table(["d × n", "type", "cond", "read", "FlashSketch"] + [f"`{p}`" for p in peers], rows))
    return "\n\n".join(parts)


def accuracy_section(problems):
    """Backward and forward errors of least squares."""
    methods = [("flashsketch", "FlashSketch"), ("gelsd", "`gelsd`"), ("gels", "`gels`"), ("normal", "`normal`"),
               ("sketch-and-solve-4", "sketch-and-solve, k = 4 n")]
    keys = problems.keys("lstsq")
    methods = [m for m in methods if any(m[0] in problems.by[key] for key in keys)]
    parts = []
    for field, title in (("backward", "Backward error"), ("forward", "Forward error |x − x*| / |x*|")):
        rows = [[f"{key[1]} × {key[2]}", key[3], f"{key[4]:g}"]
                + ["breaks down" if (r := problems.by[key].get(m)) and r["outcome"] != "solved"
                   else number(r.get(field)) if r else "" for m, _ in methods] for key in keys]
        if rows:
            parts.append(f"**{title}**\n\n" + table(["d × n", "type", "cond"] + [name for _, name in methods], rows))
    rows = []
    for task in ("qr", "pivoted", "svd"):
        for key in problems.keys(task):
            for method, r in problems.by[key].items():
                if r["outcome"] == "solved":
                    name = "FlashSketch" if method == "flashsketch" else f"`{method}`"
                    rows.append([TASKS[task], f"{key[1]} × {key[2]}", key[3], f"{key[4]:g}", name,
                                 f"{r['orthogonality']:.1e}", f"{r['product']:.1e}", number(r.get("values"))])
    if rows:
        parts.append("**Factorizations**\n\n" + table(["what", "d × n", "type", "cond", "by", "‖QᵀQ − I‖",
                                                       "‖A − QR‖ / ‖A‖", "largest error of a singular value"], rows))
    return "\n\n".join(parts)


def solved(lines, method):
    r = lines.get(method)
    return r if r and r["outcome"] == "solved" else None


def bars_section(problems, gpu):
    """Whether each bar holds at every problem of its kind; [bar, where it is worst, value, holds]."""
    rows = []

    def line(name, found, bar, holds, text):
        if found:
            worst = (min if holds == "at least" else max)(found)
            kept = worst[0] >= bar if holds == "at least" else worst[0] <= bar
            rows.append([name, f"{holds} {text.format(bar)}", text.format(worst[0]), worst[1],
                         "yes" if kept else "**no**"])

    def place(key):
        return f"{key[1]} × {key[2]}, {key[3]}, cond {key[4]:g}"

    for task, dtype, on_gpu, peers, bar, least_n in SPEED:
        found = []
        for key in problems.keys(task):
            lines = problems.by[key]
            ours, others = solved(lines, "flashsketch"), [solved(lines, p) for p in peers]
            others = [r["ms"] for r in others if r]
            if key[3] == dtype and key[2] >= least_n and gpu == on_gpu and ours and others:
                found.append((min(others) / ours["ms"], place(key)))
        where = f", n ≥ {least_n}" if least_n else ""
        line(f"{TASKS[task]}, {dtype}{where}: the faster of {' and '.join(f'`{p}`' for p in peers)} over ours"
             if len(peers) > 1 else f"{TASKS[task]}, {dtype}: `{peers[0]}` over ours", found, bar, "at least",
             "{:.1f}×")
    reference = "gels" if gpu else "gelsd"
    found = []
    for key in problems.keys("lstsq"):
        ours, other = solved(problems.by[key], "flashsketch"), solved(problems.by[key], reference)
        if ours and other:
            found.append((ours["backward"] / other["backward"], place(key)))
    line(f"least squares: our backward error over that of `{reference}`", found, BACKWARD_BAR, "at most", "{:.2g}×")
    for task in ("qr", "pivoted", "svd"):
        found = [(r["orthogonality"] / (10 * key[2] * UNIT[key[3]]), place(key)) for key in problems.keys(task)
                 if (r := solved(problems.by[key], "flashsketch"))]
        line(f"{TASKS[task]}: ‖QᵀQ − I‖ over 10 n u", found, 1.0, "at most", "{:.2g}")
    return table(["bar", "must be", "worst", "where", "holds"], rows) if rows else ""


def python_section(path):
    """The record of compare_solvers.py, case by case."""
    if not path.exists():
        return ""
    records = read(path)
    rows = []
    for case in dict.fromkeys(r["case"] for r in records):
        mine = [r for r in records if r["case"] == case]
        ours = next((r for r in mine if r["by"] == "library"), None)
        for r in mine:
            errors = [f"{name} {r[field]:.2g}" for field, name in
                      (("backward", "backward"), ("forward", "forward"), ("orthogonality", "‖QᵀQ − I‖"),
                       ("rms", "relative error")) if r.get(field) is not None]
            if r.get("over_best") is not None:
                errors.append(f"error {r['over_best']:.3f} of the best")
            shown = f"**{r['method']}**" if r["by"] == "library" else r["method"]
            scale = r.get("scale", 1)
            if scale != 1:
                shown += f" (of which the last ratio has {scale:g} times)"
            rows.append([case if r is mine[0] else "", shown, f"{r['ms']:.4g}", f"{r['reads']:.3g}",
                         "" if r is ours or not ours else f"{scale * r['ms'] / ours['ms']:.2f}×", ", ".join(errors)])
    first = records[0]
    versions = ", ".join(f"{name} {first[field]}" for field, name in
                         (("numpy", "NumPy"), ("scipy", "SciPy"), ("torch", "PyTorch")) if first.get(field))
    return (f"**Beside Python's libraries** (`bench/compare_solvers.py`; {versions}; commit {first['commit']}, "
            f"{first['date']}): ms, reads of A, and the time over that of the case's first line.\n\n"
            + table(["case", "method", "ms", "reads", "over the first", "errors"], rows))


def figure(problems, machine, path):
    """Backward error against time in reads of A, a panel for each condition number; False: nothing to draw."""
    keys = [key for key in problems.keys("lstsq") if key[3] == "f64" and "flashsketch-1e-8" in problems.by[key]]
    if not keys:
        return False
    shape = max(((key[1], key[2]) for key in keys), key=lambda s: (sum(k[1:3] == s for k in keys), s[0] * s[1]))
    keys = [key for key in keys if key[1:3] == shape]
    plt = pyplot()
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    across = min(2, len(keys))
    down = -(-len(keys) // across)
    height = 2.9 * down + 1.3
    fig, axes = plt.subplots(down, across, figsize=(max(4.4 * across, 8.0), height), squeeze=False, sharex=True,
                             sharey=True)
    drawn = {}
    for i, key in enumerate(keys):
        ax = axes[i // across][i % across]
        for label in dict.fromkeys(style[1] for style in STYLES):
            styles = [style for style in STYLES if style[1] == label]
            points = [(r["reads"], max(r["backward"], 1e-19)) for style in styles
                      if (r := solved(problems.by[key], style[0])) and r.get("backward")]
            if not points:
                continue
            _, _, colour, marker = styles[0]
            line, = ax.plot(*zip(*points), color=colour, marker=marker, linewidth=1.8 if len(points) > 1 else 0,
                            markersize=10 if marker == "*" else 7, markeredgecolor="#ffffff", markeredgewidth=0.6,
                            zorder=4 if "default" in label else 3 if "FlashSketch" in label else 2)
            drawn[label] = line
        broken = [style[1] for style in STYLES if (r := problems.by[key].get(style[0])) and r["outcome"] != "solved"]
        ax.set_title(f"cond {key[4]:g}" + (f" ({', '.join(dict.fromkeys(broken))} break down)" if broken else ""),
                     fontsize=9.5, loc="left")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
        ax.yaxis.set_major_locator(LogLocator(base=100, numticks=20))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.grid(True, color="#dddddd", linewidth=0.7)
        ax.axhline(2.0**-53, color="#888888", linewidth=0.9, linestyle=":")
    for i in range(len(keys), down * across):
        axes[i // across][i % across].set_visible(False)
    for column in range(across):
        low = max(row for row in range(down) if row * across + column < len(keys))
        axes[low][column].tick_params(labelbottom=True)
        axes[low][column].set_xlabel("time, in reads of A")
    fig.suptitle(f"least squares, {shape[0]} × {shape[1]}, f64, {machine}: left is faster, down is better; "
                 "dotted: the rounding unit", fontsize=10, x=0.01, ha="left")
    fig.supylabel("backward error, over |A|", fontsize=9)
    fig.legend(list(drawn.values()), list(drawn), loc="lower center", ncol=3, frameon=False, fontsize=8.5)
    fig.tight_layout(rect=(0.0, 0.8 / height, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
    return True


def provenance(records):
    def values(field):
        return ", ".join(sorted({str(r[field]) for r in records if field in r}))

    turns = sorted({r["reps"] for r in records})
    text = f"{values('machine')}; {values('threads')} threads; commit {values('commit')}; {values('date')}"
    if any("driver" in r for r in records):
        text += f"; driver {values('driver')}, CUDA {values('cuda')}"
    return text + f"; medians of {turns[0]}" + (f" to {turns[-1]}" if turns[-1] > turns[0] else "") + " turns"


def machine_section(folder, images):
    records = read(folder / "solve.jsonl")
    problems, gpu = Problems(records), any("cuda" in r for r in records)
    note = folder / "solve.note"
    parts = [f"### {folder.name}\n\n{provenance(records)}."]
    if note.exists():
        parts.append(note.read_text().strip())
    picture = images / f"solvers-{folder.name}.svg"
    try:
        shown = figure(problems, records[0]["machine"], picture)
    except ImportError:
        print("report_solvers.py: Matplotlib is not installed; figures stay as they are (Debian: python3-matplotlib)",
              file=sys.stderr)
        shown = picture.exists()
    if shown:
        parts.append(f"![least squares: backward error against time](images/{picture.name})")
    bars = bars_section(problems, gpu)
    if bars:
        parts.append("**Bars**, each at the problem where it is worst.\n\n" + bars)
    parts += [times_section(problems), accuracy_section(problems), python_section(folder / "solve_python.jsonl")]
    return "\n\n".join(part for part in parts if part)


def section(results, images):
    folders = sorted(path.parent for path in results.glob("*/solve.jsonl"))
    return "\n\n".join(machine_section(folder, images) for folder in folders) or "Not measured."


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs" / "solvers.md")
    options = parser.parse_args()
    text = options.page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit(f"report_solvers.py: {options.page} must have one line '{BEGIN}' and after it one line '{END}'")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    measured = section(options.results, options.page.parent / "images")
    options.page.write_text(f"{head}{BEGIN}\n\n{measured}\n\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
