"""command.py - what the tests of the command flashsketch in Python share: how it is run, matrices in npy files, and the
running of properties, which are functions that fail by an assertion.  sys.argv[1] is the command."""
import array
import itertools
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

FLASHSKETCH = str(pathlib.Path(sys.argv[1]).resolve())


def run(*arguments, fails=None, code=1, limit=None, **how):
    """Runs the command; with fails, it must exit with `code` after a message that has all these words.  limit: bytes
    that a file may have; how: as of subprocess.run.  Returns what it wrote on stderr."""
    def limited():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    done = subprocess.run([FLASHSKETCH, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          preexec_fn=limited, timeout=120, **how)
    said = done.stderr.decode()
    wanted = 0 if fails is None else code
    assert done.returncode == wanted, f"{arguments} exited with {done.returncode}: {said}"
    for word in fails or []:
        assert word in said, f"{arguments} said {said!r}, without {word!r}"
    return said


def npy(path, rows, code="f", fortran=False):
    """Writes rows (lists of numbers) as an npy file."""
    lines = list(zip(*rows)) if fortran else rows
    size = {"f": 4, "d": 8}[code]
    head = f"{{'descr': '<f{size}', 'fortran_order': {fortran}, 'shape': ({len(rows)}, {len(rows[0])}), }}"
    header = head.ljust(117).encode() + b"\n"
    data = array.array(code, itertools.chain.from_iterable(lines))
    if sys.byteorder == "big":
        data.byteswap()
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data.tobytes())


def npy_bytes(path):
    return pathlib.Path(path).read_bytes()


def about(path):
    return json.loads(pathlib.Path(path + ".json").read_text())


def check(properties):
    """Runs each property in an empty folder; prints which fail, and exits with 1 then."""
    failed = 0
    for property in properties:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            start = time.monotonic()
            try:
                property()
                print(f"passed {time.monotonic() - start:5.1f} s  {property.__name__}")
            except AssertionError as error:
                failed += 1
                print(f"FAILED {time.monotonic() - start:5.1f} s  {property.__name__}: {error}")
            os.chdir("/")
    sys.exit(failed > 0)
