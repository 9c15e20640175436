"""report_quality.py FSBENCH ROOT - docs/quality.md from a small record, verdicts on records made for them."""
import json
import pathlib
import subprocess
import sys
import tempfile

fsbench, root = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, str(root / "bench"))
import report_quality as report  # noqa: E402


def expect(holds, message):
    if not holds:
        sys.exit(f"report_quality.py: {message}")


COMMON = {"definition": 1, "machine": "m", "threads": 2, "commit": "c", "date": "2026-01-01"}
GAUSSIAN = {"cell": "g", "what": "gaussian", "n": 32, "k": 64, "draws": 10, "error": 0.5, "deviation": 0.1, "p95": 0.6,
            "smallest": 0.1, "residual": 1.4, "residual_p95": 1.6, **COMMON}


def embedding(rungs="default", name="scattered", group="scattered", error=(0.5, 0.5), seeds=(0, 1), smallest=0.1,
              leverage=1.0, ratio=2, **fields):
    return {"cell": f"{rungs}/{name}", "what": "embedding", "input": name, "group": group, "d": 99, "n": 32, "k": 64,
            "ratio": ratio, "rungs": rungs, "family": "blockperm", "M": 1, "kappa": 1, "s": 4, "shuffle": "rows",
            "leverage": leverage, "seeds": list(seeds), "error": list(error), "smallest": [smallest] * len(seeds),
            "residual": [1.4] * len(seeds), **COMMON, **fields}


def tail(rungs, family, kappa, s, q999, top):
    return {"cell": f"t/{family}-{s}", "what": "tail", "shape": "2 rows", "k": 64, "rungs": rungs, "blocks": 1,
            "family": family, "M": 1, "kappa": kappa, "s": s, "shuffle": "rows", "draws": 9, "deviation": 1.0,
            "kurtosis": 3.0, "q99": 0.1, "q999": q999, "top": top, **COMMON}


with tempfile.TemporaryDirectory() as temporary:
    results = pathlib.Path(temporary)
    record = results / "small" / "quality.jsonl"
    record.parent.mkdir()

    def records(*lines):
        record.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return report.Records([record])

    def verdicts(*lines):
        """Bar to its value and whether it holds."""
        rows = [row.split("|") for row in report.bars_section(records(GAUSSIAN, *lines)).split("\n")[2:]]
        return {(row[1].strip(" `"), row[2].strip()): (row[4].strip(), row[6].strip()) for row in rows}

    # A bar holds at its value and not beyond; of several inputs the worst counts, leverage makes the group.
    for error, expected in ((0.575, "yes"), (0.58, "**no**")):
        said = verdicts(embedding(name="a", group="regular"),
                        embedding(name="b", group="regular", error=(error, error)))
        key = next(k for k in said if "side by side" in k[1] and "mean" in k[1])
        expect(said[key][1] == expected, f"at {error / 0.5} times the Gaussian's error: {said}")
    said = verdicts(embedding(name="a", group="regular", leverage=0.2, error=(0.53, 0.53)))
    expect([v[1] for k, v in said.items() if "spread" in k[1] and "mean" in k[1]] == ["**no**"],
           f"leverage 0.2: {said}")
    said = verdicts(embedding(name="a", group="spread", leverage=0.9, error=(0.9, 0.9)))
    expect(not any("spread" in k[1] for k in said), f"leverage 0.9 is spread: {said}")
    said = verdicts(embedding(ratio=1.5, smallest=0.0), embedding(ratio=1.5, seeds=(2, 3)))
    expect([v for k, v in said.items() if "k = 1.5 n" in k[1]] == [("50.00%", "**no**")],
           f"half the draws singular: {said}")
    for q999, expected in ((0.24, "yes"), (0.25, "**no**")):
        said = verdicts(embedding(), tail("default", "blockperm", 2, 4, q999, 0.1),
                        tail("sjlt8", "sjlt", 1, 8, 0.2, 0.1))
        expect([v[1] for k, v in said.items() if "99.9" in k[1]] == [expected], f"{q999} over 0.2: {said}")

    said = verdicts(embedding(), {"what": "rank", "cell": "r", "input": "scattered", "n": 4096, "k": 8192, "ratio": 2,
                                  "rungs": "fast default", "seeds": [0, 1, 2, 3], "singular": 1, **COMMON})
    expect([v for k, v in said.items() if "4096" in k[1]] == [("25.00%", "**no**")], f"a draw of four singular: {said}")

    # Seeds of several lines are merged; a later line of a seed, a later spec and a later definition replace earlier
    # ones.
    def only(*lines):
        return records(GAUSSIAN, *lines).cells["default"]["scattered"][32, 2]

    cell = only(embedding(), embedding(seeds=(1, 2), error=(1.0, 1.5)))
    expect((cell.count, cell.mean) == (3, 2.0), f"{cell.count} seeds of mean {cell.mean}")
    cell = only(embedding(d=98, seeds=(7,)), embedding(error=(1.0, 1.0)))
    expect((cell.count, cell.mean) == (2, 2.0), f"an earlier d counts: {cell.count} seeds of mean {cell.mean}")
    cell = only(embedding(), embedding(cell="other", error=(1.0, 1.0)))
    expect((cell.count, cell.mean) == (2, 2.0), f"an earlier spec counts: {cell.mean}")
    newer = {"definition": 2}
    cells = records(GAUSSIAN, embedding(name="old"), {**GAUSSIAN, **newer}, {**embedding(), **newer}).cells["default"]
    expect(list(cells) == ["scattered"], f"an earlier definition counts: {list(cells)}")
    expect(records(GAUSSIAN, embedding("fast default")).rungs() == [["fast", "default"]], "one S is two rungs")

    record.unlink()
    page = results / "docs" / "quality.md"
    page.parent.mkdir()
    subprocess.run([fsbench, "quality", "--quiet", "--record", record, "--part", "embedding", "--case",
                    "scattered,side-by-side,gaussian", "--n", "32,256", "--k", "1.5,2", "--seeds", "0-2", "--commit",
                    "test"], check=True)
    command = [sys.executable, root / "bench" / "report_quality.py", "--results", results, "--page", page]
    page.write_text("head\n")
    broken = subprocess.run(command, capture_output=True, text=True)
    expect(broken.returncode == 1 and "must have one line" in broken.stderr, broken.stderr)
    page.write_text(f"head\n{report.BEGIN}\nold\n{report.END}\ntail\n")
    subprocess.run(command, check=True)
    text = page.read_text()

    # A summary has the same page, and is its own summary.
    whole = record.read_text()
    brief = subprocess.run([*command, "--summarise", record], check=True, capture_output=True, text=True).stdout
    expect(len(brief) < len(whole) and '"seeds"' not in brief, "the summary has seeds")
    record.write_text(brief)
    again = subprocess.run([*command, "--summarise", record], check=True, capture_output=True, text=True).stdout
    expect(again == brief, "the summary of a summary is another")
    subprocess.run(command, check=True)
    expect(page.read_text() == text, "the page of a summary is another")
    record.write_text(whole)
    expect(text.startswith("head\n") and text.endswith("tail\n") and "\nold\n" not in text, "the page lost its text")
    for part in ("commit test", "### Rungs", "### Bars", "### Inputs, the worst first", "### Few rows of S",
                 "| scattered |", "(images/quality.svg)"):
        expect(part in text, f"the page lacks '{part}'")
    expect("<svg" in (page.parent / "images" / "quality.svg").read_text()[:1000], "there is no figure")
    subprocess.run(command, check=True)
    expect(page.read_text() == text, "the page changes where the record has not")
    with record.open("a") as file:
        file.write('{"cell": "x", "what": "time"}\n')
    broken = subprocess.run(command, capture_output=True, text=True)
    expect(broken.returncode == 1 and "is not a line of 'fsbench quality'" in broken.stderr, broken.stderr)
