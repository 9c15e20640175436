"""report_grass.py FSBENCH ROOT - the page of GraSS: from a small record, and its verdicts on records made for them."""
import json
import pathlib
import subprocess
import sys
import tempfile

fsbench, root = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, str(root / "bench"))
import report_grass  # noqa: E402


def expect(holds, message):
    if not holds:
        sys.exit(f"report_grass.py: {message}")


def write(path, lines):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def time(case, k, method, ms, floor_ms=1.0, error=1e-7):
    return {"cell": f"{case}/{k}/{method}", "case": case, "k": k, "method": method, "by": "library", "p": 4000, "n": 16,
            "ms": ms, "floor_ms": floor_ms, "error": error, "cuda": "0", "machine": "m", "commit": "c", "date": "d",
            "reps": 3, "driver": "0"}


def verdicts(lines):
    """The last cell of each bar."""
    with tempfile.TemporaryDirectory() as temporary:
        path = pathlib.Path(temporary) / "grass.jsonl"
        write(path, lines)
        rows = report_grass.bars_section(report_grass.Times(path)).split("\n")[2:]
        return [row.split("|")[-2].strip() for row in rows]


# Bars: at least 5 and 3 times ours, at most 1.4 of the floor, at every k.
good = [time("masked", k, method, ms) for k in (64, 128)
        for method, ms in (("flashsketch", 1.0), ("sjlt-scatter", 5.0), ("algorithm1", 3.0))]
good += [time("all", k, "flashsketch", 1.4) for k in (64, 128)]
expect(verdicts(good) == ["yes"] * 3, f"what keeps every bar is reported as {verdicts(good)}")
layers = [dict(line, case="layers", cell="layers" + line["cell"]) for line in good[:6]]
expect(verdicts(good + layers) == ["yes"] * 5, f"with layers they are reported as {verdicts(good + layers)}")
late = dict(time("layers", 64, "sjlt-scatter", 4.9), cell=layers[1]["cell"])
expect(verdicts(good + layers + [late]) == ["yes", "yes", "no", "yes", "yes"], "a slow case of layers is not reported")
for late, expected in ((time("masked", 128, "sjlt-scatter", 4.9), ["no", "yes", "yes"]),
                       (time("masked", 64, "algorithm1", 2.9), ["yes", "no", "yes"]),
                       (time("all", 128, "flashsketch", 1.41), ["yes", "yes", "no"]),
                       (time("masked", 64, "flashsketch", 0.1, error=0.1), ["not measured", "not measured", "yes"]),
                       (time("all", 64, "flashsketch", 1.0, error=None), ["yes", "yes", "not measured"])):
    said = verdicts(good + [late])
    expect(said == expected,
           f"with {late['cell']} at {late['ms']} ms, error {late['error']}, the bars are reported as {said}")

with tempfile.TemporaryDirectory() as temporary:
    results = pathlib.Path(temporary)
    record = results / "small" / "grass.jsonl"
    record.parent.mkdir()
    subprocess.run([fsbench, "grass", "--quiet", "--record", record, "--batch", "16x4000", "--layers", "84,42,10",
                    "--k", "64,128", "--reps", "3", "--commit", "test"], check=True)
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    for field in ("cell", "case", "method", "family", "p", "mask", "d", "n", "k", "floor_ms", "ms", "ratio", "error",
                  "backend", "machine", "commit", "date"):
        expect(all(field in line for line in lines), f"a line has no {field}")
    expect(len({line["cell"] for line in lines}) == len(lines), "a cell has two lines")
    expect(len(lines) == 2 * 4 * 12, f"{len(lines)} lines; 12 methods in 4 cases, at 2 k, make 96")

    # Seeds are averaged, another mask and other parameters are left alone, a later line of a seed counts;
    # a seed is a text, in older records a number.
    def score(k, seed, lds, mask=None, family="blockperm", shuffle="rows", s=4):
        return {"spec": {"family": family, "k": k, "seed": seed, "kappa": 1, "s": s, "shuffle": shuffle},
                "mask": 4 * k if mask is None else mask, "parameters": 4000, "lds": lds, "lds_low": lds - 0.01,
                "lds_high": lds + 0.02}

    write(results / "small" / "grass_lds.jsonl",
          [score(64, 1, 0.9), score(64, "1", 0.3), score(64, "2", 0.4), score(64, 3, 0.8, mask=100),
           score(64, 4, 0.8, s=8), score(128, 1, 0.5, mask=0), score(64, 1, 0.45, family="gaussian", shuffle="none")])
    scores = report_grass.Scores([results / "small" / "grass_lds.jsonl"])
    mean, low, high, _, seeds = scores.score("", "masked", 64, ("blockperm", "rows"))
    expect(seeds == 2 and abs(mean - 0.35) < 1e-9 and abs(low - 0.34) < 1e-9 and abs(high - 0.37) < 1e-9,
        f"the score of two seeds is {mean} from {low} to {high} of {seeds}")
    times = report_grass.Times(record)
    found = report_grass.points(times, scores, "", "masked", "rows", None)
    ms = next(r["ms"] for r in lines if (r["case"], r["k"], r["method"]) == ("masked", 64, "rows"))
    expect([point[:2] for point in found] == [(64, ms)], f"the figure has {found}")
    expect(len(report_grass.points(times, scores, "", "all", "rows", None)) == 1, "the figure lacks unmasked points")
    expect(len(report_grass.points(times, scores, "", "masked", "gaussian-blas", None)) == 1,
        "a peer lacks its family's score")
    found = report_grass.points(times, scores, "", "masked", "rows", "layers")
    ms = next(r["ms"] for r in lines if (r["case"], r["k"], r["method"]) == ("layers", 64, "rows"))
    expect([point[:2] for point in found] == [(64, ms)], f"the figure has {found} from layers")
    expect(not report_grass.points(times, scores, "", "all", "rows", "layers"), "layers are timed with a mask")

    (results / "h200").mkdir()
    (results / "h200" / "cuda.jsonl").symlink_to(root / "bench" / "results" / "h200" / "cuda.jsonl")
    page = results / "docs" / "performance.md"
    page.parent.mkdir()
    report = [sys.executable, root / "bench" / "report.py", "--results", results, "--output", page]
    subprocess.run(report, check=True)
    text = page.read_text()
    expect("### small" in text.split("## GraSS")[1] and "0.3500 [0.3400, 0.3700]" in text, "the page lacks GraSS")
    picture = page.parent / "images" / "grass-small.svg"
    expect(picture.exists() and "<svg" in picture.read_text()[:1000], "there is no figure")
    with record.open("a") as file:
        file.write('{"cell": "x", "case": "masked"}\n')
    broken = subprocess.run(report, capture_output=True, text=True)
    expect(broken.returncode == 1 and f"line {len(lines) + 1} is not a line of 'fsbench grass'" in broken.stderr,
        broken.stderr)
