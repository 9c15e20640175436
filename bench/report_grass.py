"""The part of bench/report.py on GraSS: times of projections (`fsbench grass`), the bars that they must keep, and the
linear datamodeling score against time (`flashsketch grass run --record`).

Times are lines of MACHINE/grass.jsonl, one a cell; a later line of a cell counts.  Scores are lines of
*/grass_lds.jsonl, of any machine: they do not depend on it.  A line has the spec of a sketch with its seed, the mask,
and lds with lds_low and lds_high, the interval over test images; seeds of one sketch are averaged, and so are the ends
of their intervals, which the same images make.
"""
import json
import statistics
import sys

from report_randnla import pyplot, table

# Methods in the order of the tables: name, what it is, and the family and shuffle whose S and so whose scores it has.
# Algorithm 1 hashes in its own way; its S has the distribution of the contiguous one.
METHODS = [
    ("flashsketch", "**FlashSketch**, row groups shuffled: the default here", ("blockperm", "groups-1")),
    ("contiguous", "**FlashSketch**, contiguous blocks", ("blockperm", "none")),
    ("interleaved", "**FlashSketch**, row groups shuffled and interleaved", ("blockperm", "groups")),
    ("rows", "**FlashSketch**, rows shuffled", ("blockperm", "rows")),
    ("sjlt", "SJLT of this library", ("sjlt", "none")),
    ("blockrow", "FlashBlockRow of this library", ("blockrow", "none")),
    ("srht", "SRHT of this library", ("srht", "none")),
    ("gaussian", "Gaussian of this library", ("gaussian", "none")),
    ("sjlt-scatter", "SJLT, scatter-add (as GraSS)", ("sjlt", "none")),
    ("algorithm1", "the paper's Algorithm 1 with its transposes", ("blockperm", "none")),
    ("sjlt-sparse", "SJLT as a sparse matrix", ("sjlt", "none")),
    ("sjlt-sparse-rows", "SJLT as a sparse matrix, with transposes", ("sjlt", "none")),
    ("srht-passes", "SRHT, Hadamard transform in memory, with transposes", ("srht", "none")),
    ("gaussian-blas", "Gaussian, BLAS, f32", ("gaussian", "none")),
    ("gaussian-tf32", "Gaussian, cuBLAS, TF32", ("gaussian", "none")),
]
NAMES = {name: what for name, what, _ in METHODS}
SCORES_OF = {name: kind for name, _, kind in METHODS}

OURS = "flashsketch"

CASES = {"masked": "Masked", "runs": "Masked in runs of eight", "layers": "Masked, ours from layers",
         "all": "All coordinates"}

# Bars on a GPU.  Masked: a peer, and how many times as long as ours it must take; all coordinates: the ratio to the
# bandwidth lower bound that ours may reach.
SPEED_BARS = [("sjlt-scatter", 5.0), ("algorithm1", 3.0)]
FLOOR_BAR = 1.4
ERRORS = {"full": 2e-5, "tf32": 1e-2}  # bound of the relative error of a correct result


def read_lines(path, command, needed):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            for field in needed:
                record[field]
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            sys.exit(f"report.py: {path}, line {number} is not a line of '{command}': {error!r}")
        yield record


class Times:
    """The lines of a record of `fsbench grass`."""

    def __init__(self, path):
        cells = {r["cell"]: r for r in read_lines(path, "fsbench grass",
                                                  ("cell", "case", "method", "k", "ms", "floor_ms", "error", "p", "n"))}
        self.lines = list(cells.values())
        self.by = {(r["case"], r["k"], r["method"]): r for r in self.lines}
        self.ks = sorted({r["k"] for r in self.lines})
        self.gpu = any("cuda" in r for r in self.lines)

    def right(self, case, k, method):
        """The line of a cell whose result is right; None: there is none."""
        r = self.by.get((case, k, method))
        wrong = r is None or r["error"] is None or r["error"] > ERRORS[r.get("precision", "full")]
        return None if wrong else r

    def wrong(self):
        return [r for r in self.lines if not self.right(r["case"], r["k"], r["method"])]

    def methods(self, case):
        return [name for name, _, _ in METHODS if any((case, k, name) in self.by for k in self.ks)]


def time_text(ms):
    return f"{ms:.4f}" if ms < 1 else f"{ms:.3f}" if ms < 10 else f"{ms:.1f}"


# tables --------------------------------------------------------------------------------------------------------------

def bars_section(times):
    rows = []

    def line(name, values, holds, text):
        cells = ["not measured" if v is None else text(v) for v in values]
        verdict = "not measured" if None in values else "yes" if all(map(holds, values)) else "no"
        rows.append([name] + cells + [verdict])

    def ratio(case, k, numerator, denominator):
        a, b = times.right(case, k, numerator), times.right(case, k, denominator)
        return a["ms"] / b["ms"] if a and b else None

    for case in ("masked", "runs", "layers"):
        for peer, bar in SPEED_BARS if times.methods(case) else ():
            line(f"{CASES[case].lower()}: {NAMES[peer]}, at least {bar:g} times our default's time",
                 [ratio(case, k, peer, OURS) for k in times.ks], lambda v, bar=bar: v >= bar, lambda v: f"{v:.2f}×")
    found = [times.right("all", k, OURS) for k in times.ks]
    line(f"all coordinates: {NAMES[OURS].replace('**', '')}, at most {FLOOR_BAR:g} times the lower bound",
         [r["ms"] / r["floor_ms"] if r else None for r in found], lambda v: v <= FLOOR_BAR, lambda v: f"{v:.2f}")
    return table(["bar"] + [f"k = {k}" for k in times.ks] + ["holds"], rows)


def times_section(times, case):
    """One line a method: milliseconds, the ratio to the bandwidth lower bound, and the ratio to ours."""
    ours, rows = OURS, []
    for source, what in (("gradients", ""), ("layers", ", of inputs and output gradients")):
        floors = {k: [r["floor_ms"] for r in times.lines
                      if (r["case"], r["k"], r.get("from", "gradients")) == (case, k, source)] for k in times.ks}
        if any(floors.values()):
            rows.append(["the lower bound" + what] + [time_text(statistics.median(floors[k])) if floors[k] else ""
                                                for k in times.ks])
    for name in times.methods(case):
        cells = []
        for k in times.ks:
            r, base = times.right(case, k, name), times.right(case, k, ours)
            if (case, k, name) not in times.by:
                cells.append("")
            elif r is None:
                cells.append("wrong result")
            else:
                cells.append(f"{time_text(r['ms'])}, {r['ms'] / r['floor_ms']:.2f}"
                             + (f", {r['ms'] / base['ms']:.1f}×" if base and name != ours else ""))
        rows.append([NAMES[name]] + cells)
    return table(["ms, over the bound, over ours"] + [f"k = {k}" for k in times.ks], rows)


def parts_section(times, case):
    fields = ("gather_ms", "transpose_ms", "product_ms")
    rows = []
    for name in times.methods(case):
        cells = []
        for k in times.ks:
            r = times.right(case, k, name)
            known = r is not None and "product_ms" in r
            cells.append(" + ".join(time_text(r[f]) if f in r else "–" for f in fields) if known else "")
        if any(cells):
            rows.append([NAMES[name]] + cells)
    return table(["gather + transposes + product, ms"] + [f"k = {k}" for k in times.ks], rows) if rows else ""


# scores --------------------------------------------------------------------------------------------------------------

def kind_of(spec):
    """(family, shuffle) as METHODS has it, or None for a sketch of other parameters than those that are timed.
    FlashBlockRow takes about the same time for any kappa and s of the same product."""
    family, shuffle = spec["family"], spec.get("shuffle", "none")
    kappa, s = spec.get("kappa", 1), spec.get("s", 4)
    if (family in ("blockperm", "sjlt") and (kappa, s) != (1, 4)) or (family == "blockrow" and kappa * s != 4):
        return None
    if shuffle == "groups" and spec.get("interleave") == 1:
        shuffle = "groups-1"
    return family, shuffle


class Scores:
    """Linear datamodeling scores: by (data, case, k, kind), those of each seed."""

    def __init__(self, paths):
        self.by, self.lines, self.parameters = {}, [], set()
        for path in sorted(paths):
            for r in read_lines(path, "flashsketch grass run --record", ("spec", "mask", "lds")):
                self.add(r)

    def add(self, r):
        spec, parameters = r["spec"], r.get("parameters")
        kind, masked = kind_of(spec), r["mask"] not in (0, parameters)
        if kind is None or r["lds"] is None or (masked and r["mask"] != 4 * spec["k"]) or r.get("run", 1) not in (1, 8):
            return
        self.lines.append(r)
        self.parameters.add(parameters)
        case = "all" if not masked else "runs" if r.get("run", 1) == 8 else "masked"
        where = (str(r.get("data", "")), case, spec["k"], kind)
        self.by.setdefault(where, {})[str(spec.get("seed"))] = r  # a text; older records have a number

    def data(self):
        return sorted({where[0] for where in self.by})

    def score(self, data, case, k, kind):
        """Mean, low, high, the deviation over seeds, and how many they are; None: there is no score."""
        lines = list(self.by.get((data, case, k, kind), {}).values())
        if not lines:
            return None
        values = [r["lds"] for r in lines]
        low, high = (statistics.fmean(r.get(end) or r["lds"] for r in lines) for end in ("lds_low", "lds_high"))
        return (statistics.fmean(values), low, high, statistics.stdev(values) if len(values) > 1 else 0.0, len(values))


KINDS = {("blockperm", "groups-1"): "BlockPerm-SJLT, row groups shuffled: the default here",
         ("blockperm", "none"): "BlockPerm-SJLT, contiguous",
         ("blockperm", "groups"): "BlockPerm-SJLT, row groups shuffled and interleaved",
         ("blockperm", "rows"): "BlockPerm-SJLT, rows shuffled", ("sjlt", "none"): "SJLT",
         ("blockrow", "none"): "FlashBlockRow", ("srht", "none"): "SRHT", ("gaussian", "none"): "Gaussian"}


def data_name(data):
    return data.rstrip("/").rsplit("/", 1)[-1]


def scores_section(scores):
    parts = []
    for data in scores.data():
        for case in CASES:
            mine = [where for where in scores.by if where[:2] == (data, case)]
            ks = sorted({where[2] for where in mine})
            rows = []
            for kind in [kind for kind in KINDS if any(where[3] == kind for where in mine)]:
                found = [scores.score(data, case, k, kind) for k in ks]
                rows.append([KINDS[kind]] + [f"{s[0]:.4f} [{s[1]:.4f}, {s[2]:.4f}], ±{s[3]:.4f}, {s[4]}" if s else ""
                                             for s in found])
            if rows:
                name = ", ".join(filter(None, (data_name(data), CASES[case].lower())))
                parts.append(f"**{name}**\n\n" + table(["LDS [95 % over images], ± over seeds, seeds"]
                                                       + [f"k = {k}" for k in ks], rows))
    return "\n\n".join(parts)


# the figure ----------------------------------------------------------------------------------------------------------

# A colour for each family, as in the figures of randnla; the library's are full markers and lines, peers hollow and
# dashed.  The last is the case that the time is of, where it is not the panel's: masked features from layers are those
# of masked gradients, but for rounding.
STYLES = [
    ("flashsketch", "FlashSketch", "#D55E00", "o", None),
    ("flashsketch", "FlashSketch, from layers", "#8C2D04", "d", "layers"),
    ("contiguous", "FlashSketch, contiguous", "#E69F00", "s", None),
    ("rows", "FlashSketch, rows shuffled", "#B8860B", "D", None),
    ("algorithm1", "Algorithm 1 with transposes", "#CC79A7", "v", None),
    ("sjlt", "SJLT, this library", "#0072B2", "^", None),
    ("sjlt-scatter", "SJLT, scatter-add (as GraSS)", "#56B4E9", "<", None),
    ("sjlt-sparse", "SJLT, sparse matrix", "#0072B2", ">", None),
    ("blockrow", "FlashBlockRow, this library", "#999999", "X", None),
    ("srht", "SRHT, this library", "#009E73", "P", None),
    ("srht-passes", "SRHT, transform in memory", "#66C2A5", "p", None),
    ("gaussian", "Gaussian, this library", "#000000", "*", None),
    ("gaussian-blas", "Gaussian, BLAS", "#555555", "h", None),
]


def points(times, scores, data, case, method, timed):
    """(k, ms, mean, low, high) where both a time and a score are known."""
    found = []
    for k in times.ks if timed is None or case == "masked" else ():
        r, score = times.right(timed or case, k, method), scores.score(data, case, k, SCORES_OF[method])
        if r and score and scores.parameters <= {r["p"], None}:
            found.append((k, r["ms"]) + score[:3])
    return found


def figure(times, scores, machine, path):
    """LDS against time, a panel for each data set and case with methods to compare; False where there is none."""
    panels = [(data, case) for data in scores.data() for case in CASES
              if sum(bool(points(times, scores, data, case, method, timed)) for method, *_, timed in STYLES) > 1]
    if not panels:
        return False
    plt = pyplot()
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    across = min(2, len(panels))
    down = -(-len(panels) // across)
    legend = 0.95
    height = 3.4 * down + legend + 0.4
    fig, axes = plt.subplots(down, across, figsize=(max(4.6 * across, 8.0), height), squeeze=False)
    lines: dict = {}
    for i, (data, case) in enumerate(panels):
        ax = axes[i // across][i % across]
        leftmost: dict = {}
        for method, label, colour, marker, timed in STYLES:
            found = points(times, scores, data, case, method, timed)
            if not found:
                continue
            ks, ms, mean, low, high = zip(*found)
            peer = times.by[(timed or case, ks[0], method)]["by"] == "peer"
            ends = ([y - e for y, e in zip(mean, low)], [e - y for y, e in zip(mean, high)])
            drawn = ax.errorbar(ms, mean, yerr=ends, color=colour, marker=marker, markersize=8 if marker == "*" else 6,
                                linewidth=2.2 if method == OURS else 1.2, linestyle="--" if peer else "-",
                                markerfacecolor="#ffffff" if peer else colour, markeredgecolor=colour,
                                elinewidth=0.8, capsize=2.5, zorder=3 if method == OURS else 2)
            lines.setdefault(label, drawn)
            for k, x, y in zip(ks, ms, mean):
                leftmost[k] = min(leftmost.get(k, (x, y)), (x, y))
        for k, point in leftmost.items():
            ax.annotate(f"k = {k}", point, xytext=(-8, -3), textcoords="offset points", fontsize=8, ha="right")
        name = CASES[case].lower() + (", 4 k coordinates" if case != "all" else "")
        ax.set_title(", ".join(filter(None, (data_name(data), name))), fontsize=10, loc="left")
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        low *= (low / high) ** 0.2  # room for the names of the leftmost points
        ax.set_xlim(low, high)
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,), numticks=20))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.grid(True, color="#dddddd", linewidth=0.7)
        ax.set_xlabel("projection of a batch of {n} gradients, ms".format(n=times.lines[0]["n"]))
    for i in range(len(panels), down * across):
        axes[i // across][i % across].set_visible(False)
    fig.suptitle(f"{machine}: left is faster, up is better; bars are 95 % over test images", fontsize=10, x=0.01,
                 ha="left")
    fig.supylabel("linear datamodeling score", fontsize=9)
    order = [label for _, label, *_ in STYLES if label in lines]
    fig.legend([lines[label] for label in order], order, loc="lower center", ncol=3, frameon=False, fontsize=8.5)
    fig.tight_layout(rect=(0.0, legend / height, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
    return True


# the page ------------------------------------------------------------------------------------------------------------

INTRODUCTION = """A batch of 512 gradients of 109386 coordinates, f32, becomes 512 features of k values, as in the
paper's data-attribution experiment: of a random mask of 4 k coordinates, or of all. Batch and features lie in the
device's memory, one gradient after the other, and no batch is in L2 beforehand. This library takes the batch and the
mask's list in one call; the others gather the masked coordinates first and, where they take rows, transpose before
and after; that is one sequence, timed as a whole with S made beforehand, and its parts alone are shown below. In
“masked, ours from layers” the gradients are those of the experiment's perceptron: this library gets the inputs and
the output gradients of its three layers, of which gradients are products, and the same mask (`fs_apply_products`), so
that no gradient is formed; the others get gradients that are already there, and forming them is not counted against
them. The lower bound reads the 32-byte sectors that hold a coordinate which is kept, or all inputs and output
gradients, and writes the features; it is the same for every sketch, although FlashBlockRow reads less. Gather,
transposes, scatter-add, Algorithm 1 and the Hadamard transform are our own implementations
([`bench/grass`](../bench/grass), [`bench/baselines`](../bench/baselines)); where blocks must be whole, Algorithm 1 gets
rows of zeros. Every result is compared with features made in double on the CPU. `make bench-grass` measures on a GPU,
`fsbench grass` on a CPU."""


def machine_section(folder, scores, images):
    times = Times(folder / "grass.jsonl")
    if not times.lines:
        return f"### {folder.name}\n\nNot measured."

    def values(field):
        return ", ".join(sorted({str(r[field]) for r in times.lines if field in r}))

    where = f"{values('machine')}; commit {values('commit')}; {values('date')}"
    if times.gpu:
        where += f"; driver {values('driver')}, CUDA {values('cuda')}"
    parts = [f"### {folder.name}\n\n{where}; {values('reps')} repetitions at most."]
    if times.gpu:
        parts.append("**Bars**\n\n" + bars_section(times))
    for case, name in CASES.items():
        if not times.methods(case):
            continue
        parts.append(f"**{name}**: milliseconds; over the lower bound; over our time in the line "
                     f"“{NAMES[OURS].replace('**', '')}”.\n\n" + times_section(times, case))
        alone = parts_section(times, case)
        if alone:
            parts.append("Their parts alone:\n\n" + alone)
    wrong = times.wrong()
    if wrong:
        parts.append("**Wrong results:**\n\n" + "\n".join(f"- {r['cell']}: {r['error']}" for r in wrong))
    right = [r["error"] for r in times.lines if r not in wrong and r.get("precision", "full") == "full"]
    if right:
        parts.append(f"Largest relative error of the others in f32: {max(right):.1e}.")
    path = images / f"grass-{folder.name}.svg"
    picture = f"![linear datamodeling score against the time of projecting a batch](images/{path.name})"
    try:
        if figure(times, scores, values("machine"), path):
            parts.append("Scores are those of the same S, or of the same distribution (Algorithm 1); "
                         "hollow markers are third-party baselines."
                         f"\n\n{picture}")
    except ImportError:
        print("report.py: Matplotlib is not installed, so figures stay as they are (Debian: python3-matplotlib)",
              file=sys.stderr)
        if path.exists():
            parts.append(picture)
    return "\n\n".join(parts)


def section(results, images):
    scores = Scores(results.glob("*/grass_lds.jsonl"))
    folders = sorted(path.parent for path in results.glob("*/grass.jsonl"))
    parts = [machine_section(folder, scores, images) for folder in folders]
    if scores.by:
        commits = ", ".join(sorted({str(r["commit"]) for r in scores.lines if "commit" in r}))
        parts.insert(0, "### Scores\n\nHow well sums of attributions predict what models trained on halves of the data "
                     "say, the linear datamodeling score: `flashsketch grass run --record`"
                     + (f"; commit {commits}" if commits else "") + ".\n\n" + scores_section(scores))
    return INTRODUCTION + "\n\n" + ("\n\n".join(parts) if parts else "Not measured.")
