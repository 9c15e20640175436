"""The part of bench/report.py on the records of `fsbench randnla`: speedups, bars and Pareto figures.

A line is a cell: the time of a sketch or of a fit, or the errors of one (a list, one for each seed).  Lines of one
cell with other seeds are merged.  Two methods with the same S have the same errors, so only one of them has any.
"""
import functools
import json
import math
import re
import statistics
import sys

TASKS = ("gram", "ose", "ridge", "solve")
COHERENT = ("hot", "bundles", "decay", "identity", "diagonal", "student")
DEFAULT, DOUBLE = "flashsketch-1-4", "flashsketch-1-8"  # ours, and ours with twice as many nonzeros
OURS = ("flashsketch", "contiguous")

# Baselines in the order of the tables: the method's name, what it is, and what the paper calls it.
BASELINES = [
    ("algorithm1", "the paper's Algorithm 1", None),
    ("sjlt-sparse", "SJLT as a sparse matrix", "SJLT (cuSPARSE)"),
    ("sjlt-scatter", "SJLT by scattering", "SJLT (GraSS kernel)"),
    ("srht", "SRHT of this library", None),
    ("srht-passes", "SRHT, Hadamard transform in memory", "SRHT (FHT)"),
    ("gaussian", "dense Gaussian", "Gaussian (cuBLAS)"),
]
# The paper's table, RTX 4090: fastest variant against fastest variant; and over all tasks against the next best, 1.73.
PUBLISHED = {
    "gram": {"sjlt-sparse": 2.67, "sjlt-scatter": 4.17, "srht-passes": 16.22, "gaussian": 7.64},
    "ose": {"sjlt-sparse": 2.69, "sjlt-scatter": 4.16, "srht-passes": 16.20, "gaussian": 7.63},
    "ridge": {"sjlt-sparse": 1.42, "sjlt-scatter": 1.54, "srht-passes": 3.94, "gaussian": 3.10},
    "solve": {"sjlt-sparse": 1.37, "sjlt-scatter": 1.41, "srht-passes": 3.33, "gaussian": 2.34},
}
PUBLISHED_GLOBAL = 1.73

# Bars on a GPU: tasks, baseline, how many times as long as our default it must take.
SPEED_BARS = [
    (("gram", "ose"), "algorithm1", 4.0),
    (("gram", "ose"), "sjlt-sparse", 2.5),
    (("gram", "ose"), "srht", 5.0),
    (("gram", "ose"), "srht-passes", 5.0),
    (("gram", "ose"), "gaussian", 5.0),
    (("ridge",), "algorithm1", 3.0),
    (("solve",), "algorithm1", 3.0),
]
COHERENT_BAR = 1.15  # the error of our default over the Gaussian's
ALLOWANCE = 1.01  # errors within 1 % and two standard errors of their means count as matched


# Methods with the S, and so the errors, of another.
SAME = {"sjlt-scatter": "sjlt-sparse", "srht-passes": "srht"}


def name_of(method):
    """algorithm1 of algorithm1-2-2."""
    return re.sub(r"(-\d+)+$", "", method)


def same_errors(method):
    """The method that has the errors of this one."""
    name = name_of(method)
    return SAME.get(name, name) + method[len(name):]


class Records:
    """The lines of some files, by cell; complete when it is created, so that frequent queries are computed once."""

    def __init__(self, paths):
        self.lines, self.times, self.errors = [], {}, {}
        for path in sorted(paths):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                try:
                    self.add(json.loads(line))
                except (json.JSONDecodeError, KeyError, TypeError) as error:
                    sys.exit(f"report.py: {path}, line {number} is not a line of 'fsbench randnla': {error!r}")

    def add(self, r):
        key = (r["task"], r["d"], r["n"], r["k"], r["method"])
        self.lines.append(r)
        if r["what"] == "time":
            self.times[key] = r
            return
        cell = self.errors.setdefault((r["data"],) + key, {"error": {}, "noisy": {}, "best": r.get("best_noisy")})
        for name in ("error", "noisy"):
            for seed, value in zip(r["seeds"], r.get(name, [])):
                cell[name][seed] = value

    def shapes(self):
        return sorted({(r["d"], r["n"]) for r in self.lines})

    @functools.cache
    def ks(self):
        return sorted({r["k"] for r in self.lines})

    def data(self):
        order = ("gaussian", "lowrank", "sparse") + COHERENT
        names = {key[0] for key in self.errors}
        return [name for name in order if name in names] + sorted(names - set(order))

    @functools.cache
    def methods(self):
        return list(dict.fromkeys(r["method"] for r in self.lines))

    def time(self, task, d, n, k, method, made=False):
        """Milliseconds of a sketch (S ready, or made in the call), or of a whole fit; None: not measured."""
        fit = task in ("ridge", "solve")
        r = self.times.get((task if fit else "sketch", d, n, k, method))
        if r is None:
            return None
        if not fit and made and r.get("full_ms") is not None:
            return r["full_ms"]
        return r["wall_ms"] if fit else r.get("ms", r.get("wall_ms"))

    @functools.cache
    def error(self, task, data, d, n, k, method):
        """Mean and standard error over the seeds, of ridge and solve with a noisy b; None: no finite number."""
        cell = self.errors.get((data, task, d, n, k, same_errors(method)))
        if cell is None:
            return None
        values = list(cell["noisy" if task in ("ridge", "solve") else "error"].values())
        if not values or None in values:
            return None
        spread = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
        return statistics.fmean(values), spread


def geomean(values):
    return math.exp(statistics.fmean(math.log(v) for v in values))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def times_text(value):
    return f"{value:.2f}×" if value < 10 else f"{value:.1f}×"


# as the paper counts -------------------------------------------------------------------------------------------------

def fastest(records, task, d, n, k, names, made):
    found = [records.time(task, d, n, k, m, made) for m in records.methods() if name_of(m) in names]
    found = [t for t in found if t is not None]
    return min(found) if found else None


def paper_ratios(records, task, name, made):
    """Fastest variant of a baseline over ours, for every shape and k."""
    ratios = []
    for d, n in records.shapes():
        for k in records.ks():
            ours = fastest(records, task, d, n, k, OURS, made)
            other = fastest(records, task, d, n, k, (name,), made)
            if ours is not None and other is not None:
                ratios.append(other / ours)
    return ratios


def next_best(records, task, made):
    """The fastest baseline but Algorithm 1, which is the paper's own, over ours, for every shape and k."""
    names = [name for name, _, _ in BASELINES if name != "algorithm1"]
    ratios = []
    for d, n in records.shapes():
        for k in records.ks():
            ours = fastest(records, task, d, n, k, OURS, made)
            other = fastest(records, task, d, n, k, names, made)
            if ours is not None and other is not None:
                ratios.append(other / ours)
    return ratios


def paper_section(records, gpu):
    rows, everything = [], []
    shown = [line for line in BASELINES if any(name_of(key[4]) == line[0] for key in records.times)]
    for task in TASKS:
        for made in (True, False):
            if task in ("ridge", "solve") and made:
                continue
            cells = []
            for name, _, _ in shown:
                ratios = paper_ratios(records, task, name, made)
                here = times_text(geomean(ratios)) if ratios else "not measured"
                there = PUBLISHED[task].get(name) if gpu else None
                cells.append(here + (f" ({there:.2f}×)" if there else ""))
            best = next_best(records, task, made)
            if made or task in ("ridge", "solve"):
                everything += best
            label = task + ("" if task in ("ridge", "solve") else ", S made in the call" if made else ", S ready")
            rows.append([label] + cells + [times_text(geomean(best)) if best else "not measured"])
    text = table(["task"] + [what for _, what, _ in shown] + ["the next best"], rows)
    if everything:
        text += (f"\n\nOver all tasks, S made in the call, against the next best: **{times_text(geomean(everything))}**"
                 + (f" ({PUBLISHED_GLOBAL:.2f}× in the paper)." if gpu else "."))
    return text


# at matched quality --------------------------------------------------------------------------------------------------

def matched(ours, other):
    return ours[0] <= ALLOWANCE * other[0] + 2 * math.hypot(ours[1], other[1])


def honest_ratios(records, task, name, shape=None, data=None):
    """(ratio, where) of a baseline's time over that of our default at the fastest k whose error is no larger, for every
    data set, shape, k and variant of the baseline; and how many had no such k."""
    found, lost = [], []
    for (what, t, d, n, k, method) in sorted(records.errors):
        if t != task or (shape and (d, n) != shape) or (data and what not in data):
            continue
        if name_of(method) != SAME.get(name, name):
            continue
        same = name + method[len(name_of(method)):]
        other, its_time = records.error(task, what, d, n, k, method), records.time(task, d, n, k, same)
        if other is None or its_time is None:
            continue
        times = []
        for mine in records.ks():
            ours, my_time = records.error(task, what, d, n, mine, DEFAULT), records.time(task, d, n, mine, DEFAULT)
            if ours is not None and my_time is not None and matched(ours, other):
                times.append(my_time)
        where = f"{what}, {d} × {n}, k = {k}, {same}"
        if times:
            found.append((its_time / min(times), where))
        else:
            lost.append(where)
    return found, lost


def honest_section(records):
    rows = []
    for task in TASKS:
        for name, what, _ in BASELINES:
            found, lost = honest_ratios(records, task, name)
            if not found:
                continue
            worst = min(found)
            rows.append([task, what, times_text(geomean([r for r, _ in found])), times_text(worst[0]), worst[1],
                         str(len(found)), str(len(lost))])
    if not rows:
        return "Not measured."
    return table(["task", "baseline", "geometric mean", "least", "where", "cells", "without a match"], rows)


# bars ----------------------------------------------------------------------------------------------------------------

def speed_cell(records, task, name, shape, bar):
    """Text, whether the bar holds (None: not measured), and (how far, where) of the worst."""
    found, lost = honest_ratios(records, task, name, shape)
    if not found:
        return "not measured", None, None
    below, worst = sum(r < bar for r, _ in found), min(found)
    text = f"{times_text(geomean([r for r, _ in found]))}, least {times_text(worst[0])}"
    if below:
        text += f"; {below} of {len(found)} below"
    if lost:
        text += f"; {len(lost)} without a match"
    return text, not below, worst


def coherent_cell(records, task, shape, ours):
    """The same for the errors of one of our sketches on coherent inputs."""
    ratios = []
    for data in COHERENT:
        for k in records.ks():
            mine, gaussian = (records.error(task, data, *shape, k, method) for method in (ours, "gaussian"))
            if mine and gaussian:
                ratios.append((mine[0] / gaussian[0], f"{data}, {shape[0]} × {shape[1]}, k = {k}"))
    if not ratios:
        return "not measured", None, None
    worst, over = max(ratios), sum(r > COHERENT_BAR for r, _ in ratios)
    text = f"{geomean([r for r, _ in ratios]):.2f}, most {worst[0]:.2f}"
    return text + (f"; {over} of {len(ratios)} over" if over else ""), not over, worst


def bars_section(records):
    """A line for each bar, a column for each shape."""
    shapes = records.shapes()
    rows = []

    def line(name, cells, worst_of):
        verdicts = [holds for _, holds, _ in cells if holds is not None]
        worst = [worst for _, _, worst in cells if worst is not None]
        missed = verdicts.count(False)
        if not verdicts:
            verdict = "not measured"
        elif missed:
            verdict = f"no, at {missed} of {len(verdicts)} shapes"
        else:
            verdict = "yes" if len(verdicts) == len(shapes) else "yes, where measured"
        where = worst_of(worst) if worst else None
        rows.append([name] + [text for text, _, _ in cells] + [where[1] if where else "", verdict])

    for tasks, name, bar in SPEED_BARS:
        what = next(text for key, text, _ in BASELINES if key == name)
        if tasks[0] in ("ridge", "solve"):
            what += " and " + ("LU" if tasks[0] == "ridge" else "QR")
        for task in tasks:
            cells = [speed_cell(records, task, name, shape, bar) for shape in shapes]
            line(f"{task}: {what}, at least {bar:g}×", cells, min)
    for task in ("gram", "ose"):
        for ours, text in ((DEFAULT, "our error"), (DOUBLE, "our error with s = 8 instead of 4")):
            cells = [coherent_cell(records, task, shape, ours) for shape in shapes]
            if ours == DEFAULT or any(holds is not None for _, holds, _ in cells):
                line(f"{task}, coherent inputs: {text} over the Gaussian's, at most {COHERENT_BAR}", cells, max)
    return table(["bar"] + [f"{d} × {n}" for d, n in shapes] + ["the worst", "holds"], rows)


def coherent_section(records, shape, k):
    """Errors at one shape and k: a line for each method, a column for each data set."""
    methods = [DEFAULT, DOUBLE, "contiguous-1-4", "contiguous-2-2", "contiguous-4-1", "algorithm1-1-4", "blockrow-1-4",
               "sjlt-sparse-4", "srht", "gaussian"]
    parts = []
    for task in ("gram", "ose"):
        data = [name for name in records.data()
                if any((name, task) + shape + (k, method) in records.errors for method in methods)]
        rows = []
        for method in methods:
            cells = [records.error(task, name, *shape, k, method) for name in data]
            if any(cells):
                shown = f"**{method}**" if method == DEFAULT else method
                rows.append([shown] + [f"{c[0]:.3g}" if c else "" for c in cells])
        if rows:
            parts.append(f"**{task}**\n\n" + table(["method"] + data, rows))
    return "\n\n".join(parts) if parts else "Not measured."


# figures -------------------------------------------------------------------------------------------------------------

LEAST_WIDTH = 8.0  # inches, for the title and three columns of the legend

# One colour and marker for each method that is drawn, in the order of the legend.  The colours are mostly Okabe and
# Ito's, which colour-blind readers distinguish; markers differ for print without colour.
STYLES = [
    (DEFAULT, "FlashSketch, default", "#D55E00", "o", 2.4),
    ("contiguous-1-4", "FlashSketch, contiguous, κ = 1, s = 4", "#E69F00", "s", 1.4),
    ("contiguous-4-1", "FlashSketch, contiguous, κ = 4, s = 1", "#B8860B", "D", 1.2),
    ("algorithm1-1-4", "Algorithm 1, κ = 1, s = 4", "#CC79A7", "v", 1.4),
    ("blockrow-1-4", "FlashBlockRow, κ = 1, s = 4", "#999999", "x", 1.2),
    ("sjlt-sparse-4", "SJLT, sparse matrix, s = 4", "#0072B2", "^", 1.4),
    ("sjlt-scatter-4", "SJLT, scattered, s = 4", "#56B4E9", "<", 1.4),
    ("srht", "SRHT", "#009E73", "P", 1.4),
    ("srht-passes", "SRHT, transform in memory", "#66C2A5", "p", 1.2),
    ("gaussian", "Gaussian", "#000000", "*", 1.4),
]
LABELS = {
    "gram": "error of the Gram matrix, Frobenius", "ose": "embedding error, spectral",
    "ridge": "residual with noise, over the best", "solve": "residual with noise, over the best",
}


def points(records, task, data, shape, method):
    found = []
    for k in records.ks():
        error, time = records.error(task, data, *shape, k, method), records.time(task, *shape, k, method)
        if error is None or time is None:
            continue
        value = error[0]
        if task in ("ridge", "solve"):
            cell = records.errors[(data, task) + shape + (k, same_errors(method))]
            value = value / cell["best"]
        if 0 < value < 1e6:
            found.append((time, value))
    return found


def pyplot():
    """Matplotlib, for SVG that is legible in print and on a dark page, and the same whenever it is made."""
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    plt.rcParams.update({
        "figure.facecolor": "#ffffff", "axes.facecolor": "#ffffff", "savefig.facecolor": "#ffffff",
        "text.color": "#111111", "axes.edgecolor": "#555555", "axes.labelcolor": "#111111", "xtick.color": "#111111",
        "ytick.color": "#111111", "font.family": "DejaVu Sans", "font.size": 9, "svg.fonttype": "none",
        "svg.hashsalt": "flashsketch"})
    return plt


def figure(records, task, shape, machine, path):
    """Error against time, a panel for each data set; False where there is nothing to draw."""
    data = [name for name in records.data() if points(records, task, name, shape, DEFAULT)]
    if not data:
        return False
    plt = pyplot()
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    across = min(3, len(data))
    down = -(-len(data) // across)
    fig, axes = plt.subplots(down, across, figsize=(max(3.5 * across, LEAST_WIDTH), 2.7 * down + 1.1), squeeze=False,
                             sharex=True)
    lines = {}
    for i, name in enumerate(data):
        ax = axes[i // across][i % across]
        for method, label, colour, marker, width in STYLES:
            found = points(records, task, name, shape, method)
            if found:
                line, = ax.plot(*zip(*found), color=colour, marker=marker, linewidth=width, markersize=5,
                                markeredgecolor="#ffffff" if marker not in "x" else colour, markeredgewidth=0.6,
                                label=label, zorder=3 if method == DEFAULT else 2)
                lines[label] = line
        ax.set_title(name, fontsize=10, loc="left")
        ax.set_xscale("log")
        ax.set_yscale("log")
        low, high = ax.get_ylim()
        for axis, steps in ((ax.xaxis, (1,)), (ax.yaxis, (1, 2, 5) if high < 100 * low else (1,))):
            axis.set_major_locator(LogLocator(subs=steps, numticks=20))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.grid(True, color="#dddddd", linewidth=0.7)
    for i in range(len(data), down * across):
        axes[i // across][i % across].set_visible(False)
    for column in range(across):  # the lowest panel of each column has the numbers
        low = max(row for row in range(down) if row * across + column < len(data))
        axes[low][column].tick_params(labelbottom=True)
        axes[low][column].set_xlabel("time, ms")
    ks = [k for k in records.ks() if any(records.error(task, name, *shape, k, DEFAULT) for name in data)]
    fig.suptitle(f"{task}, {shape[0]} × {shape[1]}, {machine}: left is faster, down is better; one point for each k "
                 f"from {ks[0]} to {ks[-1]}", fontsize=10, x=0.01, ha="left")
    fig.supylabel(LABELS[task], fontsize=9)
    order = [label for _, label, *_ in STYLES if label in lines]
    fig.legend([lines[label] for label in order], order, loc="lower center", ncol=3, frameon=False, fontsize=8.5)
    fig.tight_layout(rect=(0.0, 0.7 / (2.7 * down + 1.1), 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
    return True


# the page ------------------------------------------------------------------------------------------------------------

INTRODUCTION = """The paper's four tasks, `fsbench randnla`, on its synthetic data (i.i.d. normal; rank 64 with noise;
as sparse as spal_004) and on six inputs that are coherent or adversarial for sketches which mix within contiguous
blocks ([`bench/data/recipe.h`](../bench/data/recipe.h)). `gram` is ‖(SA)ᵀSA − AᵀA‖ over ‖AᵀA‖ in the Frobenius norm,
`ose` the spectral norm of (SQ)ᵀSQ − I for a basis Q of up to 256 of A's columns; their time is that of the sketch.
`ridge` and `solve` are measured from A and b to x by the host's clock: our sketches end with this library's solvers,
baselines with the textbook's (LU of the normal equations; QR), and what is compared is the residual with a noisy b,
because without noise every sketch of full rank finds the solution. Errors are means over the seeds. FlashSketch, this
library's SRHT and Algorithm 1 make S in every call; the others have it ready except where it is noted that it is made
in the call. Algorithm 1, the scatter and the Hadamard transform in memory are our own implementations
([`bench/baselines`](../bench/baselines)). `make bench-randnla` measures on a GPU, `scripts/bench_randnla.sh --cpu` on a
CPU."""


def provenance(records):
    def values(field):
        return ", ".join(sorted({str(r[field]) for r in records.lines if field in r}))

    text = f"{values('machine')}; commit {values('commit')}; {values('date')}"
    if any("driver" in r for r in records.lines):
        text += f"; driver {values('driver')}, CUDA {values('cuda')}"
    seeds = sorted({len(cell["error"]) for cell in records.errors.values()})
    if seeds:
        text += f"; {seeds[0]} seeds a cell" if len(seeds) == 1 else f"; {seeds[0]} to {seeds[-1]} seeds a cell"
    return text


def machine_section(folder, images, gpu):
    """One machine: its tables, and its figures written into `images`."""
    records = Records([folder / "randnla.jsonl"])
    shapes = records.shapes()
    shape = (65536, 1024) if (65536, 1024) in shapes else shapes[0]
    ks = [k for k in records.ks() if any(key[2:5] == shape + (k,) for key in records.errors)]
    k = 1024 if 1024 in ks else ks[-1] if ks else 0
    machine = ", ".join(sorted({r["machine"] for r in records.lines}))
    parts = [f"### {folder.name}\n\n{provenance(records)}."]
    if gpu:
        parts.append("**Bars**: the time of a baseline over that of our default at its fastest k with an error no "
                     "larger (within 1 % and two standard errors), for every data set, k and variant of the baseline: "
                     "the geometric mean, and the least.\n\n" + bars_section(records))
    brackets = "; in brackets the paper's own figures (RTX 4090)" if gpu else ""
    parts.append("**As the paper counts**: the fastest variant against the fastest, whatever their errors; geometric "
                 f"means over shapes and k{brackets}.\n\n" + paper_section(records, gpu))
    parts.append("**At matched quality**: the baseline's time over that of our default at its fastest k with an error "
                 "no larger.\n\n" + honest_section(records))
    parts.append(f"**Errors**, {shape[0]} × {shape[1]}, k = {k}.\n\n" + coherent_section(records, shape, k))
    drawn = []
    for task in TASKS:
        path = images / f"randnla-{folder.name}-{task}.svg"
        try:
            if figure(records, task, shape, machine, path):
                drawn.append(f"![{task}: error against time, a panel for each data set](images/{path.name})")
        except ImportError:
            print("report.py: Matplotlib is not installed, so figures stay as they are (Debian: python3-matplotlib)",
                  file=sys.stderr)
            drawn = [f"![{t}: error against time, a panel for each data set](images/randnla-{folder.name}-{t}.svg)"
                     for t in TASKS if (images / f"randnla-{folder.name}-{t}.svg").exists()]
            break
    return "\n\n".join(parts + drawn)


def section(results, images):
    folders = sorted(path.parent for path in results.glob("*/randnla.jsonl"))
    parts = []
    for folder in folders:
        first = (folder / "randnla.jsonl").read_text().split("\n", 1)[0]
        parts.append(machine_section(folder, images, '"cuda": "' in first))
    return INTRODUCTION + "\n\n" + ("\n\n".join(parts) if parts else "Not measured.")
