"""report_solvers.py FSBENCH LIBRARY ROOT - docs/solvers.md from small records, verdicts on records made for them."""
import json
import pathlib
import subprocess
import sys
import tempfile
import types

fsbench, library, root = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
sys.path.insert(0, str(root / "bench"))
import compare_solvers as compare  # noqa: E402
import report_solvers as report  # noqa: E402


def expect(holds, message):
    if not holds:
        sys.exit(f"report_solvers.py: {message}")


def line(task, method, ms, dtype="f64", n=200, **fields):
    return {"cell": f"{task}/{n}/{dtype}/{method}", "task": task, "method": method, "by": "library", "d": 9000, "n": n,
            "dtype": dtype, "cond": 10.0, "outcome": "solved", "read_ms": 1.0, "ms": ms, "reads": ms, **fields}


def verdicts(lines, gpu=False):
    """Bar to whether it holds."""
    rows = report.bars_section(report.Problems(lines), gpu).split("\n")[2:]
    return {row.split("|")[1].strip(): row.split("|")[-2].strip() for row in rows}


# A bar holds at its value and not beyond; the fastest peer counts, and one that breaks down does not.
SPEED, BACKWARD = "least squares, f64: the faster of `gelsd` and `gelsy` over ours", "our backward error over"
for ms, expected in ((3.0, "yes"), (2.99, "**no**")):
    said = verdicts([line("lstsq", "flashsketch", 1.0, backward=1.0), line("lstsq", "gelsd", 9.0, backward=1.0),
                     line("lstsq", "gelsy", ms, backward=1.0)])
    expect(said[SPEED] == expected, f"with gelsy at {ms} times our time: {said}")
said = verdicts([line("lstsq", "flashsketch", 1.0, backward=1.0), line("lstsq", "gelsd", 9.0, backward=1.0),
                 dict(line("lstsq", "gelsy", 0.1), outcome="breaks down")])
expect(said[SPEED] == "yes", f"a peer that breaks down counts: {said}")
for error, expected in ((4.0, "yes"), (4.01, "**no**")):
    said = verdicts([line("lstsq", "flashsketch", 1.0, backward=error), line("lstsq", "gelsd", 9.0, backward=1.0)])
    expect([v for k, v in said.items() if BACKWARD in k] == [expected], f"at {error} times gelsd's error: {said}")
for n, expected in ((200, 1), (500, 2)):
    said = verdicts([line("lstsq", "flashsketch", 1.0, n=n, backward=1.0),
                     line("lstsq", "gelsd", 4.0, n=n, backward=1.0)])
    expect(sum(SPEED[:18] in name for name in said) == expected, f"bars at n = {n}: {said}")
    expect(n < 500 or "**no**" in said.values(), "4 times keep the bar of 5")
limit = 10 * 200 * 2.0**-53
for orthogonality, expected in ((0.99 * limit, "yes"), (1.01 * limit, "**no**")):
    said = verdicts([line("qr", "flashsketch", 1.0, orthogonality=orthogonality, product=0.0)])
    expect(list(said.values()) == [expected], f"at {orthogonality:g}: {said}")
said = verdicts([line("qr", "flashsketch", 1.0, "f32", orthogonality=0.0), line("qr", "geqrf", 5.9, "f32")], gpu=True)
expect(list(said.values()) == ["**no**", "yes"], f"5.9 times cuSOLVER's QR: {said}")

with tempfile.TemporaryDirectory() as temporary:
    results, page = pathlib.Path(temporary), pathlib.Path(temporary, "docs", "solvers.md")
    record = results / "small" / "solve.jsonl"
    record.parent.mkdir()
    page.parent.mkdir()
    subprocess.run([fsbench, "solve", "--quiet", "--record", record, "--shape", "1200x16", "--reps", "3", "--commit",
                    "test"], check=True)
    python = record.parent / "solve_python.jsonl"
    run = [sys.executable, root / "bench" / "compare_solvers.py", "--library", library, "--small", "--reps", "3",
           "--threads", "2", "--record", python, "--case"]
    subprocess.run([*run, "lstsq"], check=True)
    subprocess.run([*run, "leverage"], check=True)
    lines = [json.loads(text) for text in python.read_text().splitlines()]
    expect(len(lines) == 2 * 3 + 3, f"{len(lines)} lines; 3 methods of 2 problems and 3 of leverage scores make 9")
    for r in lines:
        if r["task"] == "lstsq":
            expect(r["backward"] < (1e-14 if r["dtype"] == "float64" else 1e-6), f"{r['cell']}: {r['backward']}")
        elif r["by"] == "library":
            expect(r["rms"] < (1e-12 if "exact" in r["method"] else 0.2), f"{r['cell']}: {r['rms']}")
    before = python.read_text()
    subprocess.run([*run, "lstsq"], check=True)
    expect(python.read_text() == before, "a finished record was measured again")

    def fail():
        raise ValueError("it did not converge\nat all")
    common = {name: lines[0][name] for name in ("numpy", "scipy", "commit", "date")}
    few = types.SimpleNamespace(reps=3, seconds=1)
    compare.measure("broken", [("flashsketch", "library", int), ("peer", "peer", fail)], int, lambda result: {}, few,
                    compare.Record(python, common), {})
    last = [json.loads(text) for text in python.read_text().splitlines()][-2:]
    expect("ms" in last[0] and "ms" not in last[1] and last[1]["outcome"] == "breaks down", f"a peer failed: {last}")

    command = [sys.executable, root / "bench" / "report_solvers.py", "--results", results, "--page", page]
    page.write_text("head\n")
    broken = subprocess.run(command, capture_output=True, text=True)
    expect(broken.returncode == 1 and "must have one line" in broken.stderr, broken.stderr)
    page.write_text(f"head\n{report.BEGIN}\nold\n{report.END}\ntail\n")
    (record.parent / "solve.note").write_text("A quiet machine.\n")
    subprocess.run(command, check=True)
    text = page.read_text()
    expect(text.startswith("head\n") and text.endswith("tail\n") and "\nold\n" not in text, "the page lost its text")
    for part in ("### small", "A quiet machine.", "**Backward error**", "breaks down", "it did not converge |",
                 "numpy.linalg.lstsq", "(images/solvers-small.svg)", "**Bars**"):
        expect(part in text, f"the page lacks '{part}'")
    picture = page.parent / "images" / "solvers-small.svg"
    expect("<svg" in picture.read_text()[:1000], "there is no figure")
    subprocess.run(command, check=True)
    expect(page.read_text() == text, "the page changes where the records have not")
    with record.open("a") as file:
        file.write('{"cell": "x", "task": "lstsq"}\n')
    broken = subprocess.run(command, capture_output=True, text=True)
    expect(broken.returncode == 1 and "is not a line of a solvers' record" in broken.stderr, broken.stderr)
