"""demo.py FSBENCH FLASHSKETCH - the demo's table is that of `fsbench randnla`: the same errors on the same images."""
import json
import pathlib
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile

fsbench, flashsketch = sys.argv[1:]
METHODS = {"blockperm (default)": "flashsketch-1-8", "paper, kappa 1, s 4": "contiguous-1-4",
           "paper, kappa 4, s 1": "contiguous-4-1", "sjlt, s 4": "sjlt-sparse-4", "countsketch": "sjlt-sparse-1",
           "srht": "srht", "gaussian": "gaussian"}

with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    images = folder / "images"
    draw = random.Random(1)
    images.write_bytes(struct.pack(">IIII", 0x803, 1024, 4, 4) + bytes(draw.randrange(256) for _ in range(1024 * 16)))
    demo = subprocess.run([flashsketch, "demo", "--data", images, "--seed", "3", "--output", folder / "picture.svg"],
                          check=True, capture_output=True, text=True).stdout
    grid = subprocess.run([fsbench, "randnla", "--quiet", "--data", f"fashion:{images}", "--k", "256", "--task", "gram",
                           "--seeds", "3-7"], check=True, capture_output=True, text=True).stdout
errors = {r["method"]: statistics.fmean(r["error"]) for r in map(json.loads, grid.splitlines())}
# The first table has a line "name  ms  /read  error" for each sketch; the second begins after "The error again".
shown = {name: float(error) for name, error in
         re.findall(r"^(\S.*?)\s+\S+\s+\S+\s+(\d\.\d{3})$", demo.split("The error again")[0], re.M)}
for name, method in METHODS.items():
    if name not in shown or abs(shown[name] - errors[method]) > 6e-4:  # three decimals are shown
        sys.exit(f"demo.py: the demo says {shown.get(name)} of '{name}', fsbench {errors[method]:.4f} of {method}\n"
                 + demo)
