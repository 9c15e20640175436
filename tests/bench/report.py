"""report.py FSBENCH ROOT - properties of a small grid: errors agree with theory, and the page of results is made from
it."""
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

fsbench, root = sys.argv[1], pathlib.Path(sys.argv[2])
d, n = 4096, 32


def expect(holds, message):
    if not holds:
        sys.exit(f"report.py: {message}")


with tempfile.TemporaryDirectory() as temporary:
    results = pathlib.Path(temporary)
    record = results / "small" / "randnla.jsonl"
    record.parent.mkdir()
    subprocess.run([fsbench, "randnla", "--quiet", "--record", record, "--shape", f"{d}x{n}", "--k", "256,1024",
                    "--data", "gaussian,hot", "--reps", "3", "--seeds", "0-2", "--commit", "test"], check=True)
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    for field in ("cell", "what", "task", "method", "family", "d", "n", "k", "backend", "machine", "commit", "date"):
        expect(all(field in line for line in lines), f"a line has no {field}")
    expect(len({line["cell"] for line in lines}) == len(lines), "a cell has two lines")

    # |(SA)'SA - A'A| / |A'A| of a Gaussian S has mean square (tr(G)^2 / |G|_F^2 + 1) / k, G = A'A; tr(G)^2 / |G|_F^2 is
    # n d / (n + d) for i.i.d. normal A of expectation.  Every other family is close to it on such an A.
    error = {(r["task"], r["data"], r["k"], r["method"]): statistics.fmean(r["error"])
             for r in lines if r["what"] == "error"}
    degrees = n * d / (n + d)
    seen = 0
    for (task, data, k, method), value in error.items():
        if task == "gram" and data == "gaussian":
            seen += 1
            ratio = value / math.sqrt((degrees + 1) / k)
            expect(0.8 < ratio < 1.25, f"{method} at k = {k} has {ratio:.2f} times the Gram error of theory")
        if task == "ose" and data == "gaussian":
            ratio = value / ((1 + math.sqrt(n / k)) ** 2 - 1)
            expect(0.6 < ratio < 1.4, f"{method} at k = {k} has {ratio:.2f} times the embedding error of theory")
    expect(seen == 2 * 30, f"{seen} Gram errors; 30 methods with an S of their own and 2 k make 60")
    for k in (256, 1024):
        ours, gaussian = error["gram", "hot", k, "flashsketch-1-4"], error["gram", "hot", k, "gaussian"]
        contiguous = error["gram", "hot", k, "contiguous-1-4"]
        expect(ours < 1.3 * gaussian, f"large rows, k = {k}: our error {ours:.3f}, the Gaussian's {gaussian:.3f}")
        expect(contiguous > 1.5 * gaussian, f"large rows, k = {k}: contiguous blocks err by {contiguous:.3f} only")

    # Least squares: no residual is below the smallest possible one, and at k = 32 n it is close to it.
    for r in lines:
        if r["what"] == "error" and r["task"] == "solve" and r["data"] == "gaussian":
            for value in r["noisy"]:
                expect(value >= 0.9999 * r["best_noisy"], f"{r['cell']} is better than the best")
                if r["k"] == 1024:
                    ratio = value / r["best_noisy"]
                    expect(ratio < 1.2, f"{r['cell']} is {ratio:.2f} times the best")

    # The page.
    (results / "h200").symlink_to(root / "bench" / "results" / "h200")
    page = results / "docs" / "performance.md"
    page.parent.mkdir()
    subprocess.run([sys.executable, root / "bench" / "report.py", "--results", results, "--output", page], check=True)
    text = page.read_text()
    expect("### small" in text and "As the paper counts" in text, "the page has no section of it")
    for task in ("gram", "ose", "ridge", "solve"):
        picture = page.parent / "images" / f"randnla-small-{task}.svg"
        expect(picture.exists() and "<svg" in picture.read_text()[:1000], f"there is no figure of {task}")
    with record.open("a") as file:
        file.write('{"cell": "x", "task": "gram"}\n')
    broken = subprocess.run([sys.executable, root / "bench" / "report.py", "--results", results, "--output", page],
                            capture_output=True, text=True)
    expect(broken.returncode == 1 and f"line {len(lines) + 1} is not a line of" in broken.stderr, broken.stderr)
