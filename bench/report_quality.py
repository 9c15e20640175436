#!/usr/bin/env python3
"""Writes the measured part of docs/quality.md, and its figure, from the records of `fsbench quality`.

    python3 bench/report_quality.py [--results bench/results] [--page docs/quality.md]
    python3 bench/report_quality.py --summarise RECORD >bench/results/MACHINE/quality.jsonl

The records are MACHINE/quality.jsonl; errors depend on S and the input, not on the machine, so all are merged.
Of a cell that was measured twice, and of a rung whose spec has changed, the later line counts; lines of an earlier
version of the definition do not.  The text goes between the page's markers, the figure into the folder images beside
it.

fsbench writes the numbers of every seed.  --summarise prints a record with a line for each cell, which has instead of
`seeds` their number `draws`, of `error` and `residual` the means, beside `p95` and `residual_p95`, of `smallest` the
median, and the number of `singular` draws.  The records in the repository are such; both kinds are read.
"""
import argparse
import json
import pathlib
import statistics
import sys

from report_randnla import pyplot, table

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN = "<!-- begin: written by bench/report_quality.py; edit that or the records, not this -->"
END = "<!-- end -->"
SINGULAR = 1e-9
SPREAD = 0.25  # an input whose largest leverage is at most this is spread

# Groups in the order of the tables: what they are called.
GROUPS = {
    "spread": "spread: leverage ≤ 1/4, and files",
    "few": "few large rows among all rows",
    "regular": "large rows side by side, at a stride, in few places of a round",
    "scattered": "large rows scattered",
}
COLUMNS = [(64, 2), (64, 4), (64, 16), (128, 16), (256, 2), (256, 4), (256, 8), (256, 16)]  # n, k / n of the tables
SHOWN = 16  # inputs of a table

# Bars: rung, groups, largest k / n, mean, 95th percentile (None: no bar).  Of cells with k >= 2 n.
BARS = [
    ("default", ("spread",), 16, 1.04, 1.10),
    ("default", ("regular",), 16, 1.15, 1.30),
    ("default", ("scattered",), 8, 1.20, None),
    ("default", ("scattered",), 16, 1.30, None),
    ("gaussian", tuple(GROUPS), 16, 1.08, 1.20),
]
SINGULAR_BARS = [("gaussian", 1.25, 0.0), ("default", 1.5, 0.001), ("default", 2, 0.0)]
TAIL_BAR = 1.2
UNUSED = ("d", "shuffle", "threads")  # of a line, in a summary: the cell's name has what matters of them
MANY = 200  # draws: where some cells have as many, shares of singular draws are of these alone

# Rungs of the figure: colour, marker.
STYLES = {
    "fast": ("#E69F00", "s"), "default": ("#D55E00", "o"), "high": ("#CC79A7", "D"), "gaussian": ("#009E73", "P"),
    "sjlt4": ("#0072B2", "^"), "sjlt8": ("#56B4E9", "v"), "groups": ("#66C2A5", "p"),
    "contiguous": ("#B8860B", "<"), "srht": ("#999999", "x"), "dense": ("#000000", "*"),
}


def quantile(values, q):
    values = sorted(values)
    at = q * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def digits(value):
    return None if value is None else float(f"{value:.4g}")


def summarised(lines):
    """The lines with one for each embedding cell and each rank, over all its seeds; a later line of a seed, and one of
    another d, replace earlier ones."""
    found, draws = {}, {}
    for number, line in enumerate(lines):
        key = (line["what"], line["cell"]) if line["what"] in ("embedding", "rank") else number
        if "seeds" not in line:
            found[key] = line
            continue
        if key not in draws or found[key].get("d") != line.get("d"):
            draws[key] = {}
        found[key] = line
        if line["what"] == "embedding":
            draws[key].update(zip(line["seeds"], zip(line["error"], line["smallest"], line["residual"])))
        elif not draws[key].keys() & set(line["seeds"]):
            share = line["singular"] / len(line["seeds"])
            draws[key].update((seed, share) for seed in line["seeds"])
    for key, values in draws.items():
        line = {name: value for name, value in found[key].items() if name != "seeds"}
        if line["what"] == "rank":
            line.update(draws=len(values), singular=round(sum(values.values())))
        else:
            errors, smallest, residuals = zip(*values.values())
            residuals = [r for r in residuals if r is not None]
            line.update(draws=len(errors), error=digits(statistics.fmean(errors)), p95=digits(quantile(errors, 0.95)),
                        smallest=digits(statistics.median(smallest)), singular=sum(s < SINGULAR for s in smallest),
                        residual=digits(statistics.fmean(residuals)) if residuals else None,
                        residual_p95=digits(quantile(residuals, 0.95)) if residuals else None)
        found[key] = line
    return list(found.values())


class Cell:
    """An input, n, k and one S, over the seeds; errors are over the Gaussian's."""

    def __init__(self, line, gaussian):
        self.line, self.count = line, line["draws"]
        self.mean = line["error"] / gaussian["error"]
        self.p95 = line["p95"] / gaussian["p95"]
        self.smallest = line["smallest"] / gaussian["smallest"]
        self.singular = line["singular"] / self.count
        known = line["residual"] is not None
        self.residual = line["residual"] / gaussian["residual"] if known else None
        self.residual_p95 = line["residual_p95"] / gaussian["residual_p95"] if known else None


class Records:
    """cells[rung][input][n, k / n], tails[rung][shape, k] and ranks[rung][input, n, k / n], singular draws of draws."""

    def __init__(self, paths):
        self.lines = []
        for path in sorted(paths):
            for number, text in enumerate(path.read_text().splitlines(), 1):
                try:
                    line = json.loads(text)
                    if line["what"] not in ("gaussian", "embedding", "tail", "rank"):
                        raise KeyError(line["what"])
                    self.lines.append(line)
                except (json.JSONDecodeError, KeyError, TypeError) as error:
                    sys.exit(f"report_quality.py: {path}, line {number} is not a line of 'fsbench quality': {error!r}")
        self.version = max(line["definition"] for line in self.lines)
        self.lines = summarised([line for line in self.lines if line["definition"] == self.version])
        self.gaussian = {(r["n"], r["k"]): r for r in self.lines if r["what"] == "gaussian"}
        self.cells, self.groups = {}, {}
        for line in self.lines:
            if line["what"] == "embedding":
                self.add(line)
        self.tails, self.sjlt, self.ranks = {}, {}, {}
        for line in self.lines:
            if line["what"] == "rank":
                self.add_rank(line)
        for line in self.lines:
            if line["what"] == "tail":
                key = (line["shape"], line["k"])
                if line["family"] == "sjlt":
                    self.sjlt[key + (line["blocks"], line["s"])] = line
                for rung in line["rungs"].split() if line["family"] != "sjlt" else ():
                    self.tails.setdefault(rung, {})[key] = line

    def add(self, line):
        name, key = line["input"], (line["n"], line["ratio"])
        largest = max(line["leverage"], self.groups.get(name, ("", 0))[1])
        self.groups[name] = (line["group"], largest)
        for rung in line["rungs"].split():
            cell = Cell(line, self.gaussian[line["n"], line["k"]])
            self.cells.setdefault(rung, {}).setdefault(name, {})[key] = cell

    def add_rank(self, line):
        for rung in line["rungs"].split():
            self.ranks.setdefault(rung, {})[line["input"], line["n"], line["ratio"]] = line

    def group(self, name):
        """By where the large rows are, if there are any."""
        group, largest = self.groups[name]
        return "spread" if largest <= SPREAD or group == "file" else "few" if group == "spread" else group

    def rungs(self):
        """Rungs with the same cells together: ["fast", "default"]."""
        found = {}
        for rung, inputs in self.cells.items():
            key = tuple(sorted(cell.line["cell"] for cells in inputs.values() for cell in cells.values()))
            found.setdefault(key, []).append(rung)
        order = list(STYLES)
        return sorted((sorted(names, key=order.index) for names in found.values()), key=lambda r: order.index(r[0]))

    def all(self, rung, groups=tuple(GROUPS), least=2, most=16):
        """(cell, input, n, k / n) of some groups."""
        return [(cell, name, n, ratio) for name, cells in self.cells.get(rung, {}).items() if self.group(name) in groups
                for (n, ratio), cell in cells.items() if least <= ratio <= most]


def counted(found):
    """Those of (cell, ...) in which a share of singular draws means something."""
    return [at for at in found if at[0].count >= MANY] or found


def titled(rungs):
    return ", ".join(f"`{rung}`" for rung in rungs)


def spec_of(records, rung):
    """κ and s where there are the most blocks."""
    inputs = records.cells[rung].values()
    line = max((cell.line for cells in inputs for cell in cells.values()), key=lambda r: r["M"])
    if line["family"] == "blockperm":
        return f"κ = {line['kappa']}, s = {line['s']}, {round(line['k'] / line['M'])} rows a block"
    return f"{line['family'].upper()}, s = {line['s']}" if line["s"] else line["family"]


def place(name, n, ratio):
    return f"{name}, n = {n}, k = {ratio:g} n"


def bars_section(records):
    rows = []

    def line(rung, what, bar, found, text="{:.2f}"):
        if found:
            value, where = max(found)
            rows.append([f"`{rung}`", what, "≤ " + text.format(bar), text.format(value), where,
                         "yes" if value <= bar + 1e-12 else "**no**"])

    for rung, groups, most, mean, p95 in BARS:
        what = "every input" if len(groups) > 1 else GROUPS[groups[0]]
        found = records.all(rung, groups, 2, most)
        line(rung, f"{what}; mean, 2 n ≤ k ≤ {most} n", mean, [(c.mean, place(*at)) for c, *at in found])
        if p95:
            line(rung, f"{what}; 95th percentile, 2 n ≤ k ≤ {most} n", p95, [(c.p95, place(*at)) for c, *at in found])
    for rung, ratio, bar in SINGULAR_BARS:
        line(rung, f"share of singular draws, k = {ratio:g} n", bar,
             [(c.singular, f"{place(*at)}, {c.count} draws")
              for c, *at in counted(records.all(rung, least=ratio, most=ratio))], "{:.2%}")
    line("default", "share of singular draws, n = 1024 and 4096, k = 2 n", 0.0,
         [(cell["singular"] / cell["draws"], place(*key)) for key, cell in records.ranks.get("default", {}).items()
          if key[2] == 2], "{:.2%}")
    for rung in ("default", "high", "gaussian"):
        found = tail_ratios(records, rung)
        for i, what in enumerate(("99.9 % quantile", "mean of the largest thousandth")):
            line(rung, f"{what} of ‖Sx‖² − 1 over the SJLT's", TAIL_BAR,
                 [(ratios[i], f"{shape}, k = {k}") for (shape, k), ratios in found.items()])
    return table(["rung", "what, over the Gaussian's", "bar", "largest", "where", "holds"], rows) if rows else ""


def summary_section(records):
    rows = []
    for rungs in records.rungs():
        row = [titled(rungs), spec_of(records, rungs[0])]
        for group in GROUPS:
            found = [cell for cell, *_ in records.all(rungs[0], (group,))]
            row.append(f"{max(c.mean for c in found):.2f} / {max(c.p95 for c in found):.2f}" if found else "")
        for ratio in (1.1, 1.25, 1.5, 2):
            found = [cell.singular for cell, *_ in counted(records.all(rungs[0], least=ratio, most=ratio))]
            row.append(f"{100 * max(found):.3g} %" if found else "")
        found = [cell for cell, *_ in records.all(rungs[0]) if cell.residual]
        row.append(f"{max(c.residual for c in found):.2f} / {max(c.residual_p95 for c in found):.2f}" if found else "")
        rows.append(row)
    singular = [f"singular, k = {ratio} n" for ratio in ("1.1", "1.25", "1.5", "2")]
    return table(["rung", "S"] + list(GROUPS) + singular + ["residual"], rows)


def rung_section(records, rungs):
    """The worst inputs first, by the largest mean at 2 n <= k <= 16 n."""
    worst = {}
    for cell, name, *_ in records.all(rungs[0]):
        old = worst.get(name, (0, 0))
        worst[name] = (max(old[0], cell.mean), max(old[1], cell.p95))
    order = sorted(worst, key=lambda name: -worst[name][0])
    cells = records.cells[rungs[0]]
    columns = [column for column in COLUMNS if any(column in cells[name] for name in order)]
    rows = []
    for name in order[:SHOWN]:
        row = [name, f"{worst[name][0]:.2f} / {worst[name][1]:.2f}"]
        for column in columns:
            cell = cells[name].get(column)
            row.append(f"{cell.mean:.2f} / {cell.p95:.2f}" if cell else "")
        rows.append(row)
    rest = order[SHOWN:]
    if rest:
        largest = f"≤ {max(worst[r][0] for r in rest):.2f} / {max(worst[r][1] for r in rest):.2f}"
        rows.append([f"{len(rest)} others", largest] + [""] * len(columns))
    text = table(["input", "largest"] + [f"{n}, {ratio:g} n" for n, ratio in columns], rows)
    return f"**{titled(rungs)}** ({spec_of(records, rungs[0])}): mean / 95th percentile\n\n{text}"


def singular_section(records):
    """Share of singular draws, and the median smallest eigenvalue over the Gaussian's, at the input that is worst."""
    rows = []
    ratios = sorted({ratio for inputs in records.cells.values() for cells in inputs.values() for _, ratio in cells})
    ratios = [ratio for ratio in ratios if ratio <= 2]
    for rungs in records.rungs():
        row = [titled(rungs)]
        for ratio in ratios:
            found = records.all(rungs[0], least=ratio, most=ratio)
            if not found:
                row.append("")
                continue
            share, count, name, n = max((c.singular, c.count, name, n) for c, name, n, _ in found)
            row.append((f"{share * count:.0f} of {count} ({name}, n = {n})" if share else "none")
                       + f"; {max(0.0, min(c.smallest for c, *_ in found)):.2f}")
        rows.append(row)
    return table(["rung"] + [f"k = {ratio:g} n" for ratio in ratios], rows) if ratios else ""


def ranks_section(records):
    keys = list(dict.fromkeys(key for cells in records.ranks.values() for key in cells))
    rows = []
    for rungs in records.rungs():
        cells = records.ranks.get(rungs[0], {})
        if cells:
            found = [cells.get(key) for key in keys]
            rows.append([titled(rungs)] + [f"{c['singular']} of {c['draws']}" if c else "" for c in found])
    return table(["rung"] + [f"{name}, n = {n}, k = {ratio:g} n" for name, n, ratio in keys], rows) if rows else ""


def tail_ratios(records, rung):
    """Quantile and mean of the largest thousandth over those of the SJLT with as many nonzeros a column."""
    found = {}
    for (shape, k), line in records.tails.get(rung, {}).items():
        other = records.sjlt.get((shape, k, line["blocks"], line["kappa"] * line["s"]))
        if other and other["q999"] > 0 and other["top"] > 0:
            found[shape, k] = (max(line["q999"], 0.0) / other["q999"], max(line["top"], 0.0) / other["top"],
                               line["kurtosis"], other["kurtosis"])
    return found


def tails_section(records):
    groups = [rungs for rungs in records.rungs() if rungs[0] in records.tails]
    ratios = {rungs[0]: tail_ratios(records, rungs[0]) for rungs in groups}
    keys = list(dict.fromkeys(key for found in ratios.values() for key in found))
    rows = []
    for shape, k in keys:
        row = [shape, str(k)]
        for rungs in groups:
            found = ratios[rungs[0]].get((shape, k))
            kurtosis = "" if not found or found[2] is None else f"; {found[2]:.1f} ({found[3]:.1f})"
            row.append(f"{found[0]:.2f} / {found[1]:.2f}{kurtosis}" if found else "")
        rows.append(row)
    return table(["nonzeros of x", "k"] + [titled(rungs) for rungs in groups], rows) if rows else ""


def figure(records, path, n=256):
    """The largest mean and 95th percentile of each group against k / n; False: nothing to draw."""
    groups = [g for g in GROUPS if any(m == n for _, _, m, _ in records.all("default", (g,), 1, 256))]
    if not groups:
        return False
    plt = pyplot()
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    fig, axes = plt.subplots(2, len(groups), figsize=(max(2.9 * len(groups), 6.0), 5.8), squeeze=False, sharex=True,
                             sharey="row")
    drawn = {}
    for column, group in enumerate(groups):
        for row, field in enumerate(("mean", "p95")):
            ax = axes[row][column]
            for rungs in records.rungs():
                worst = {}
                for cell, _, m, ratio in records.all(rungs[0], (group,), 1, 256):
                    if m == n:
                        worst[ratio] = max(worst.get(ratio, 0.0), getattr(cell, field))
                if not worst:
                    continue
                colour, marker = STYLES[rungs[-1] if "default" in rungs else rungs[0]]
                line, = ax.plot(*zip(*sorted(worst.items())), color=colour, marker=marker, markersize=6,
                                linewidth=2.2 if "default" in rungs else 1.4, markeredgecolor="#ffffff",
                                markeredgewidth=0.6, zorder=3 if "default" in rungs else 2)
                drawn[", ".join(rungs)] = line
            ax.axhline(1.0, color="#888888", linewidth=0.9, linestyle=":")
            ax.set_xscale("log")
            ax.xaxis.set_major_locator(FixedLocator([1.1, 1.5, 2, 4, 8, 16]))
            ax.xaxis.set_minor_locator(NullLocator())
            ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ax.grid(True, color="#dddddd", linewidth=0.7)
            if row == 0:
                ax.set_title(GROUPS[group].partition(":")[0].replace(", ", ",\n", 1), fontsize=9.5, loc="left")
            else:
                ax.set_xlabel("k / n")
        axes[0][0].set_ylabel("mean")
        axes[1][0].set_ylabel("95th percentile")
    fig.suptitle(f"embedding error over a dense Gaussian's, the worst input of each group, n = {n}", fontsize=10,
                 x=0.01, ha="left")
    fig.legend(list(drawn.values()), list(drawn), loc="lower center", ncol=len(drawn), frameon=False, fontsize=8.5)
    fig.tight_layout(rect=(0.0, 0.05, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
    return True


def section(results, images):
    records = Records(results.glob("*/quality.jsonl")) if list(results.glob("*/quality.jsonl")) else None
    if not records:
        return "Not measured."
    commits = ", ".join(sorted({line["commit"] for line in records.lines}))
    dates = sorted({line["date"] for line in records.lines})
    counts = sorted({cell.count for inputs in records.cells.values() for cells in inputs.values()
                     for cell in cells.values()})
    parts = [f"Definition {records.version}; commit {commits}; {dates[0]}"
             + (f" to {dates[-1]}" if dates[-1] > dates[0] else "")
             + (f"; {len(records.groups)} inputs, {counts[0]}" + (f" to {counts[-1]}" if counts[-1] > counts[0] else "")
                + " seeds a cell, 2000 draws of each Gaussian." if counts else ".")]
    picture = images / "quality.svg"
    try:
        shown = figure(records, picture)
    except ImportError:
        print("report_quality.py: Matplotlib is not installed; the figure stays as it is (Debian: python3-matplotlib)",
              file=sys.stderr)
        shown = picture.exists()
    if shown:
        parts.append(f"![embedding errors over the Gaussian's](images/{picture.name})")
    if records.cells:
        parts += ["### Rungs\n\nThe largest of each group of inputs, 2 n ≤ k ≤ 16 n, mean / 95th percentile over the "
                  "Gaussian's; the largest share of singular draws; the largest residual of sketch-and-solve, mean / "
                  "95th percentile over the Gaussian's.\n\n" + summary_section(records)]
        parts.append("### Bars\n\n" + bars_section(records))
        parts.append("### Inputs, the worst first\n\nColumns are n and k.\n\n"
                     + "\n\n".join(rung_section(records, rungs) for rungs in records.rungs()))
        parts.append("### Few rows of S\n\nThe largest share of singular draws, and the median of the smallest "
                     "eigenvalue over the Gaussian's, each at the input and n where it is worst.\n\n"
                     + singular_section(records))
    ranks = ranks_section(records)
    if ranks:
        parts.append("Singular draws of many unit rows:\n\n" + ranks)
    tails = tails_section(records)
    if tails:
        parts.append("### Tails\n\n‖Sx‖² − 1 of unit vectors x with equal nonzeros, over that of the SJLT with κ s "
                     "nonzeros a column: 99.9 % quantile / mean of the largest thousandth; kurtosis, in brackets the "
                     "SJLT's.\n\n"
                     + tails)
    return "\n\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs" / "quality.md")
    parser.add_argument("--summarise", type=pathlib.Path, metavar="RECORD")
    options = parser.parse_args()
    if options.summarise:
        for line in Records([options.summarise]).lines:
            print(json.dumps({name: value for name, value in line.items() if name not in UNUSED},
                             separators=(",", ":")))
        return
    text = options.page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit(f"report_quality.py: {options.page} must have one line '{BEGIN}' and after it one line '{END}'")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    measured = section(options.results, options.page.parent / "images")
    options.page.write_text(f"{head}{BEGIN}\n\n{measured}\n\n{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
