#!/usr/bin/env python3
"""streams.py - matrices in files, a panel at a time, by the command flashsketch: the same bits however A is cut into
panels, files and row slices, and however often the run was killed; and no data are lost by a failure.

usage: streams.py FLASHSKETCH.  Needs nothing but Python.  Each property is a function; prints which fail, and exits
with 1 then."""
import array
import errno
import gzip
import itertools
import json
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from command import FLASHSKETCH, about, check, npy, npy_bytes, run

D, N, K = 2003, 13, 90
SKETCH = ["sketch", "-k", K, "-s", 4, "--seed", 7]  # sums of integers are exact


def shards(name, rows, cuts, **how):
    """Writes rows cut there; returns the names."""
    names = []
    for i, (first, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)])):
        names.append(f"{name}{i}.npy")
        npy(names[-1], rows[first:end], **how)
    return names


rng = random.Random(5)
WHOLE = [[rng.randrange(-9, 10) for _ in range(N)] for _ in range(D)]
REAL = [[rng.gauss(0, 1) for _ in range(N)] for _ in range(D)]
CUTS = ([1], [1000, 1001, 1004], [700, 1999])


def panels_and_files_of_any_size_give_the_same_bits():
    """On integers, for S whose entries are powers of two: every sum is exact."""
    columns = [list(column) for column in zip(*WHOLE)]
    for code in "f", "d":
        npy("A.npy", WHOLE, code)
        run(*SKETCH, "A.npy", "-o", "Y.npy")
        wanted = npy_bytes("Y.npy")
        npy("B.npy", columns, code)
        run(*SKETCH, "--batch-major", "B.npy", "-o", "YB.npy")
        wanted_batch = npy_bytes("YB.npy")
        inputs = [["A.npy"]] + [shards(f"A{i}", WHOLE, cuts, code=code) for i, cuts in enumerate(CUTS)]
        inputs += [shards("F", WHOLE, CUTS[1], code=code, fortran=True)]
        for files, memory in itertools.product(inputs, (4096, "100K")):
            run(*SKETCH, *files, "--memory", memory, "-o", "Y1.npy")
            assert npy_bytes("Y1.npy") == wanted, f"{files} with {memory}"
        for files, memory in itertools.product((["B.npy"], shards("B", columns, [5, 6], code=code)), (4096, "100K")):
            run(*SKETCH, "--batch-major", *files, "--memory", memory, "-o", "Y1.npy")
            assert npy_bytes("Y1.npy") == wanted_batch, f"batch-major {files} with {memory}"


def files_may_end_anywhere():
    """On real numbers: the bits depend on A and --memory, not on the files."""
    npy("A.npy", REAL)
    run(*SKETCH, "A.npy", "--memory", "10K", "-o", "Y.npy")
    for i, cuts in enumerate(CUTS):
        run(*SKETCH, *shards("A", REAL, cuts), "--memory", "10K", "--threads", 1 + i, "-o", "Y1.npy")
        assert npy_bytes("Y1.npy") == npy_bytes("Y.npy"), cuts


def gzipped(path, data):
    pathlib.Path(path).write_bytes(gzip.compress(data))
    return path


def mtx(rows, sparse):
    """Rows as a Matrix Market file, a coordinate one without what is 0."""
    lines = [f"{i + 1} {j + 1} {x}" for i, row in enumerate(rows) for j, x in enumerate(row) if x]
    if sparse:
        return f"%%MatrixMarket matrix coordinate integer general\n{len(rows)} {N} {len(lines)}\n" + "\n".join(lines)
    return f"%%MatrixMarket matrix array real general\n{len(rows)} {N}\n" + "\n".join(
        str(x) for column in zip(*rows) for x in column)


def idx(rows):
    """Rows of integers as an IDX file of int8."""
    return bytes([0, 0, 9, 2]) + len(rows).to_bytes(4, "big") + len(rows[0]).to_bytes(4, "big") + bytes(
        x % 256 for row in rows for x in row)


def files_of_every_format_are_shards():
    """IDX and Matrix Market, with and without gzip, in the middle of a state too: the bits of one npy file."""
    npy("A.npy", WHOLE)
    npy("D.npy", WHOLE, "d")
    run(*SKETCH, "A.npy", "-o", "YA.npy")
    run(*SKETCH, "D.npy", "-o", "YD.npy")
    pieces = [WHOLE[:700], WHOLE[700:701], WHOLE[701:]]
    npy("a1.npy", pieces[1])
    pathlib.Path("a0.idx").write_bytes(idx(pieces[0]))
    gzipped("a2.gz", idx(pieces[2]))
    inputs = {"YA.npy": [["a0.idx", "a1.npy", "a2.gz"]], "YD.npy": []}
    for sparse in False, True:
        names = [f"m{sparse:d}{i}.mtx" for i in range(3)]
        for name, piece in zip(names, pieces):
            pathlib.Path(name).write_text(mtx(piece, sparse))
        gzipped(names[1], pathlib.Path(names[1]).read_bytes())
        inputs["YD.npy"].append(names)
    for wanted, several in inputs.items():
        for files in several:
            for options in [], ["--memory", "8K"], ["--memory", "8K", "--resume", "--every", 0]:
                run(*SKETCH, *files, *options, "-o", "Y.npy")
                assert npy_bytes("Y.npy") == npy_bytes(wanted), f"{files} {options}"
    run(*SKETCH, "m00.mtx", "m11.mtx", "-o", "W.npy", fails=["m11.mtx: it is sparse, but m00.mtx is dense"])
    run(*SKETCH, "a0.idx", "m00.mtx", "-o", "W.npy", fails=["m00.mtx: it holds float64, but a0.idx holds float32"])
    pathlib.Path("cut.idx").write_bytes(idx(pieces[0])[:-1])
    run(*SKETCH, "a0.idx", "cut.idx", "-o", "W.npy", fails=["cut.idx", "which needs 9100 bytes, but 9099 follow it"])
    pathlib.Path("cut.mtx").write_text(mtx(pieces[0], True)[:-7])
    run(*SKETCH, "m10.mtx", "cut.mtx", "-o", "W.npy", fails=["cut.mtx: "])
    pathlib.Path("wide.idx").write_bytes(idx([[1] * (N + 1)]))
    run(*SKETCH, "a0.idx", "wide.idx", "-o", "W.npy", fails=["wide.idx: its rows have 14 elements", "a0.idx have 13"])
    assert not os.path.exists("W.npy")


def pieces_add_up_in_any_order():
    npy("A.npy", WHOLE)
    run(*SKETCH, "A.npy", "-o", "Y.npy")
    bounds, pieces = [0, 1, 800, 801, D], []
    for i, (first, end) in enumerate(zip(bounds, bounds[1:])):
        npy("piece.npy", WHOLE[first:end])
        run(*SKETCH, "-d", D, "--row0", first, "piece.npy", "-o", f"P{i}.npy")
        pieces.append(f"P{i}.npy")
    wanted = about("Y.npy")
    for order in itertools.permutations(pieces):
        run("add", *order, "-o", "Y1.npy")
        assert npy_bytes("Y1.npy") == npy_bytes("Y.npy") and about("Y1.npy") == wanted, order
    run("add", pieces[3], pieces[1], "-o", "Q.npy")
    assert about("Q.npy")["rows"] == [[1, 800], [801, D]], about("Q.npy")
    run("add", "Q.npy", pieces[2], pieces[0], "-o", "Y1.npy")
    assert npy_bytes("Y1.npy") == npy_bytes("Y.npy")
    npy("R.npy", REAL)  # on real numbers too: the order of rows counts, not that of the arguments
    names = []
    for i, (first, end) in enumerate(zip(bounds, bounds[1:])):
        npy("piece.npy", REAL[first:end])
        run(*SKETCH, "-d", D, "--row0", first, "piece.npy", "-o", f"R{i}.npy")
        names.append(f"R{i}.npy")
    sums = set()
    for order in (names, names[::-1], [names[2], names[0], names[3], names[1]]):
        run("add", *order, "-o", "Y1.npy")
        sums.add(npy_bytes("Y1.npy"))
    assert len(sums) == 1


def what_does_not_add_up_is_refused():
    npy("A.npy", WHOLE[:100])
    npy("B.npy", WHOLE[100:300])
    base = ["sketch", "-d", D, "A.npy", "-o"]
    run(*base, "A0.npy", "-k", K)
    run("sketch", "-d", D, "-k", K, "--row0", 99, "B.npy", "-o", "B0.npy")
    run("add", "A0.npy", "B0.npy", "-o", "Y.npy", fails=["A0.npy has rows 0 to 99", "B0.npy has rows 99 to 298"])
    run("add", "A0.npy", "A0.npy", "-o", "Y.npy", fails=["rows 0 to 99", "twice"])
    for options, word in ((["-k", K, "--seed", 8], "seed 8"), (["-k", K + 1], "k = 91"), (["-k", K, "-s", 2], "s = 2"),
                          (["-k", K, "--family", "sjlt"], "family sjlt"), (["-k", K, "-d", D + 1], f"d = {D + 1}"),
                          (["-k", K, "--shuffle", "none"], "shuffle none"),
                          (["-k", K, "--output-dtype", "f64"], "type float64")):
        run(*base, "C.npy", *options)
        run("add", "A0.npy", "C.npy", "-o", "Y.npy", fails=["C.npy: it has", word, "A0.npy"])
    run("add", "A0.npy", "A.npy", "-o", "Y.npy", fails=["A.npy: its description is missing", "A.npy.json"])
    run("sketch", "-d", D, "-k", K, "--row0", 100, "B.npy", "-o", "B0.npy")
    original = about("B0.npy")
    for change, word in (({"definition": 2}, "definition 2 of S, and this flashsketch has definition 3; make it again"),
                         ({"flashsketch": 2}, "version 2"), ({"n": N + 1}, "x 14"),
                         ({"crc32": 1}, "CRC-32"), ({"rows": []}, "'rows'"), ({"rows": [[5, 5]]}, "'rows'"),
                         ({"rows": [[0, D + 1]]}, "'rows'"), ({"rows": [[5, 9], [7, 12]]}, "'rows'"),
                         ({"dtype": "int8"}, "'dtype'"), ({"spec": {}}, "'family'"), ({"crc32": -1}, "'crc32'")):
        pathlib.Path("B0.npy.json").write_text(json.dumps({**original, **change}))
        run("add", "A0.npy", "B0.npy", "-o", "Y.npy", fails=["B0.npy", word])
    for text in "", "{", "[]", json.dumps(original)[:-1]:
        pathlib.Path("B0.npy.json").write_text(text)
        run("add", "A0.npy", "B0.npy", "-o", "Y.npy", fails=["B0.npy.json"])
    assert not os.path.exists("Y.npy") and not os.path.exists("Y.npy.json")


def killed(command, number, wait):
    """Starts a run of many panels and ends it by a signal as soon as wait() is true.  Returns its exit code."""
    process = subprocess.Popen([FLASHSKETCH, *map(str, command)], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while process.poll() is None and not wait() and time.monotonic() < until:
        time.sleep(0.001)
    process.send_signal(number)
    return process.wait()


def killed_with_a_state(command):
    killed(command, signal.SIGKILL, lambda: os.path.exists("Z.npy.state"))
    assert os.path.exists("Z.npy.state"), "the run was over before it was killed"
    return npy_bytes("Z.npy.state")


def a_run_that_is_killed_goes_on_and_gives_the_same_bits(*options):
    for batch in False, True:  # Y of a batch has a row for every sample: fewer of them
        files = shards("A", REAL * (4 if batch else 40), [3, 2000])
        command = [*SKETCH, *options, "--memory", "4K", *(["--batch-major"] if batch else []), *files, "-o"]
        run(*command, "Y.npy")
        kills = 0
        for number in itertools.cycle((signal.SIGKILL, signal.SIGINT, signal.SIGTERM)):
            def state():
                try:
                    return os.stat("Z.npy.state").st_mtime_ns
                except FileNotFoundError:
                    return None
            before, steps = state(), rng.randrange(1, 4)
            seen = [before]
            def moved():
                if state() not in seen:
                    seen.append(state())
                return len(seen) > steps
            code = killed([*command, "Z.npy", "--resume", "--every", 0], number, moved)
            if code == 0:
                break
            assert code == -number, code
            assert not os.path.exists("Z.npy") and os.path.exists("Z.npy.state")
            kills += 1
            if kills == 6:
                run(*command, "Z.npy", "--resume")
                break
        assert kills >= 3, f"the run was over after {kills} kills"
        assert npy_bytes("Z.npy") == npy_bytes("Y.npy"), f"after {kills} kills"
        assert about("Z.npy") == about("Y.npy")
        left = [name for name in os.listdir() if name.startswith("Z.npy")]
        assert sorted(left) == ["Z.npy", "Z.npy.json"], left
        os.remove("Z.npy")


def a_state_of_another_run_is_refused_and_kept():
    rows = REAL * 20
    npy("A.npy", rows)
    npy("A2.npy", rows[:5])
    npy("B.npy", rows)
    command = [*SKETCH, "--memory", "4K", "--resume"]
    state = killed_with_a_state([*command, "A.npy", "-o", "Z.npy", "--every", 0])
    run(*SKETCH, "A.npy", "--memory", "4K", "-o", "W.npy")
    for changed, words in (([*command, "--seed", 8, "A.npy"], ["seed 7", "seed", "8"]),
                           ([*command, "-s", 2, "A.npy"], ["s = 4"]),
                           ([*command, "A.npy", "A2.npy"], ["files: 1", "2"]),
                           ([*command, "--memory", "32K", "A.npy"], ["--memory 4096", "32768"]),
                           ([*command, "--row0", 1, "-d", len(rows) + 1, "A.npy"], [f"d = {len(rows)}"]),
                           ([*command, "B.npy"], ["B.npy has changed since", "was written to"]),
                           ([*command, "A2.npy"], ["A2.npy has changed since Z.npy.state was written", "bytes"])):
        run(*changed, "-o", "Z.npy", fails=["Z.npy.state", *words])
        assert npy_bytes("Z.npy.state") == state and not os.path.exists("Z.npy")
    told = subprocess.run([FLASHSKETCH, "info", "Z.npy.state"], capture_output=True, check=True).stdout.decode()
    assert "of rows   0 to " in told and " panels are in it" in told, told
    run("add", "Z.npy.state", "-o", "W.npy", fails=["the state of a run that is not finished"])
    for damaged in state[:-1], state[:40], b"", state[:-4] + b"\0\1\2\3", npy_bytes("W.npy"):
        pathlib.Path("Z.npy.state").write_bytes(damaged)
        run(*command, "A.npy", "-o", "Z.npy", fails=["Z.npy.state"])
        assert npy_bytes("Z.npy.state") == damaged and not os.path.exists("Z.npy")
    pathlib.Path("Z.npy.state").write_bytes(state)
    run(*command, "A.npy", "-o", "Z.npy")
    assert npy_bytes("Z.npy") == npy_bytes("W.npy")
    for name in "A.npy", "Z.npy":  # a header with a larger size than the file has
        whole = npy_bytes(name)
        pathlib.Path("cut.npy").write_bytes(whole[:-5])
        run(*SKETCH, name, "cut.npy", "-o", "V.npy",
            fails=["cut.npy: the header gives", f"but {len(whole) - 133} follow"])
        assert not os.path.exists("V.npy") and not os.path.exists("V.npy.json")


def tensors(path, names, rows):
    """Writes rows as so many f32 tensors of one safetensors file."""
    data = array.array("f", itertools.chain.from_iterable(rows))
    if sys.byteorder == "big":
        data.byteswap()
    each = data.tobytes()
    header = json.dumps({name: {"dtype": "F32", "shape": [len(rows), len(rows[0])],
                                "data_offsets": [i * len(each), (i + 1) * len(each)]}
                         for i, name in enumerate(names)}).encode()
    pathlib.Path(path).write_bytes(len(header).to_bytes(8, "little") + header + each * len(names))


def each_thing_that_a_state_depends_on_is_compared_alone():
    """Runs that differ from that of the state in a single thing, each of which would give other bits."""
    rows = REAL * 20
    npy("A.npy", rows)
    tensors("A.safetensors", ["one", "two"], rows)
    pathlib.Path("A.raw").write_bytes(npy_bytes("A.npy")[128:])
    shape = ["--shape", f"{len(rows)}x{N}"]
    half = ["--shape", f"{2 * len(rows)}x{N}"]
    command = [*SKETCH, "--memory", "4K", "--resume", "-o", "Z.npy"]
    same = "give the same command as before"
    for before, now, words in (
            (["-d", len(rows) + 9, "--row0", 2, "A.npy"], ["-d", len(rows) + 9, "--row0", 3, "A.npy"],
             ["--row0 2, this one has 3", same]),
            ([*half, "--dtype", "f16", "A.raw"], [*half, "--dtype", "bf16", "A.raw"],
             ["reads float16 by rows, this one reads bfloat16 by rows", same]),
            ([*shape, "--dtype", "f32", "A.raw"], [*shape, "--dtype", "f32", "--columns", "A.raw"],
             ["reads float32 by rows, this one reads float32 by columns", same]),
            (["--tensor", "one", "A.safetensors"], ["--tensor", "two", "A.safetensors"],
             ["elements that begin at byte", same])):
        state = killed_with_a_state([*command, *before, "--every", 0])
        run(*command, *now, fails=["Z.npy.state", *words])
        assert npy_bytes("Z.npy.state") == state and not os.path.exists("Z.npy")
        run(*command, *before)
        run(*SKETCH, "--memory", "4K", *before, "-o", "W.npy")
        assert npy_bytes("Z.npy") == npy_bytes("W.npy"), before
        os.remove("Z.npy")


def a_state_with_another_number_of_panels_is_refused():
    """Panels follow from the matrix and --memory; a flashsketch that cuts them otherwise would leave such a state."""
    npy("A.npy", REAL * 20)
    command = [*SKETCH, "--memory", "4K", "--resume", "A.npy", "-o", "Z.npy"]
    state = killed_with_a_state([*command, "--every", 0])
    panels = re.search(rb'panels\\":\\?[^0-9]*([0-9]+)', state)
    other = state[:panels.start(1)] + str(int(panels[1]) - 1).encode() + state[panels.end(1):]
    assert len(other) == len(state)
    pathlib.Path("Z.npy.state").write_bytes(other)
    run(*command, fails=["Z.npy.state", f"panels: {int(panels[1]) - 1}, this one has {int(panels[1])}"])
    assert npy_bytes("Z.npy.state") == other and not os.path.exists("Z.npy")
    pathlib.Path("Z.npy.state").write_bytes(state)
    run(*command)


def a_full_disk_loses_nothing():
    """RLIMIT_FSIZE: no file may grow beyond a limit that Y needs."""
    rows = REAL * 20
    npy("A.npy", rows)
    command = [*SKETCH, "--memory", "4K", "A.npy", "-o"]
    run(*command, "Y.npy")
    why = f"could not be written ({os.strerror(errno.EFBIG)}); make room"
    run(*command, "W.npy", limit=2000, fails=[f"'W.npy' {why}"])
    run("add", "Y.npy", "-o", "W.npy", limit=2000, fails=[f"'W.npy' {why}"])
    assert not [name for name in os.listdir() if name.startswith("W.npy")]
    shutil.copy("Y.npy", "V.npy")
    shutil.copy("Y.npy.json", "V.npy.json")
    run(*command, "V.npy", "--seed", 9, limit=2000, fails=[f"'V.npy' {why}"])
    assert npy_bytes("V.npy") == npy_bytes("Y.npy") and about("V.npy") == about("Y.npy")
    state = killed_with_a_state([*command, "Z.npy", "--resume", "--every", 0])
    said = run(*command, "Z.npy", "--resume", "--every", 0, limit=2000,
               fails=[f"'Z.npy.state' {why}", f"'Z.npy' {why}"])
    assert said.count("make room") >= 2 and npy_bytes("Z.npy.state") == state
    run(*command, "Z.npy", "--resume")
    assert npy_bytes("Z.npy") == npy_bytes("Y.npy")
    assert sorted(name for name in os.listdir() if name.startswith("Z.npy")) == ["Z.npy", "Z.npy.json"]


def a_bar_tells_how_long_it_will_take():
    """On a terminal, after a second: the run is stopped for longer than that, early on."""
    npy("A.npy", REAL * 20)
    ours, its = pty.openpty()
    process = subprocess.Popen([FLASHSKETCH, *map(str, SKETCH), "--memory", "4K", "A.npy", "-o", "Z.npy", "--resume",
                                "--every", "0"], stderr=its, env={**os.environ, "TERM": "xterm"})
    os.close(its)
    while process.poll() is None and not os.path.exists("Z.npy.state"):
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.1)
    process.send_signal(signal.SIGCONT)
    seen = b""
    try:
        while part := os.read(ours, 65536):
            seen += part
    except OSError:  # Linux's error when the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0, seen
    assert re.search(rb"\r\[[#.]{32}\] +[0-9]+ %  sketching A\.npy, [0-9]+ (s|min|h) left\x1b\[K", seen), seen
    assert seen.endswith(b"\r\x1b[K"), seen


def memory_does_not_grow_with_the_file():
    row = array.array("f", [1.5] * 1024).tobytes()
    peaks = []
    for mib in 4, 64:
        with open("A.raw", "wb") as file:
            for _ in range(mib * 256):
                file.write(row)
        process = subprocess.Popen([FLASHSKETCH, "sketch", "-k", "64", "--memory", "1M", "--shape", f"{mib * 256}x1024",
                                    "--dtype", "f32", "A.raw", "-o", "Y.npy"])
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0
        peaks.append(used.ru_maxrss)
    assert peaks[1] < peaks[0] + 16 * 1024, f"{peaks[0]} kB for 4 MiB, {peaks[1]} kB for 64 MiB"


def has_tasks():
    """Whether the tasks' linear algebra is here; prints a line where it is not."""
    npy("one.npy", [[1.0]])
    done = subprocess.run([FLASHSKETCH, "gram", "-k", "1", "one.npy"], capture_output=True)
    if done.returncode and b"OpenBLAS" in done.stderr:
        print("no OpenBLAS here: properties of tasks are skipped")
        return False
    return True


TASKS = {"solve": ["solve"], "ridge": ["ridge", "--lambda", 3], "gram": ["gram"]}
HOW = ["-k", K, "-s", 4, "--seed", 7]
RHS = [[sum(row), row[0] - row[1]] for row in WHOLE]


def by(task, A, B=(), *options):
    """The arguments of a task on the files of A, and of B where it takes one."""
    right = [] if task == "gram" else [word for name in B for word in ("--rhs", name)]
    return [*TASKS[task], *options, *right, *A]


def tasks_take_files_and_panels_of_any_size():
    """Integers: S A and S B are exact, so X and G have the same bits, also from existing sketches."""
    if not has_tasks():
        return
    npy("A.npy", WHOLE)
    npy("AT.npy", [list(column) for column in zip(*WHOLE)])
    npy("B.npy", RHS)
    npy("B64.npy", RHS, "d")
    right = shards("B", RHS, CUTS[1])
    pathlib.Path("a.mtx").write_text(mtx(WHOLE[:700], True))
    pathlib.Path("b.mtx").write_text(mtx(WHOLE[700:], True))
    npy("D.npy", WHOLE, "d")
    run("sketch", *HOW, "A.npy", "-o", "Y.npy")
    run("sketch", *HOW, "--batch-major", "AT.npy", "-o", "YT.npy")
    run("sketch", *HOW, "B64.npy", "-o", "C.npy")
    for task in TASKS:
        run(*by(task, ["A.npy"], ["B.npy"], *HOW), "-o", "X.npy")
        wanted = npy_bytes("X.npy")
        for A, B, options in ((shards("A", WHOLE, CUTS[1]), ["B.npy"], []), (["A.npy"], right, ["--memory", 4096]),
                              (shards("F", WHOLE, CUTS[2], fortran=True), right, ["--memory", "100K"]),
                              (["AT.npy"], ["B64.npy"], ["--batch-major", "--memory", 4096]),
                              (["A.npy"], ["B64.npy"], []), (["AT.npy"], right, ["--batch-major"])):
            run(*by(task, A, B, *HOW, *options), "-o", "X1.npy")
            assert npy_bytes("X1.npy") == wanted, f"{task} {A} {B} {options}"
        for sketch in "Y.npy", "YT.npy":
            run(*TASKS[task], "--from", sketch, *([] if task == "gram" else ["C.npy"]), "-o", "X1.npy")
            assert npy_bytes("X1.npy") == wanted, f"{task} --from {sketch}"
        run(*by(task, ["D.npy"], ["B64.npy"], *HOW), "-o", "X.npy")  # f64, and B in f32 loses nothing
        for A, B in (["D.npy"], ["B.npy"]), (["a.mtx", "b.mtx"], ["B64.npy"]):
            run(*by(task, A, B, *HOW), "-o", "X1.npy")
            assert npy_bytes("X1.npy") == npy_bytes("X.npy"), f"{task} {A} {B}"


def tasks_have_the_bits_of_the_sketch():
    """Real numbers: with the same --memory a task is what --from makes of the sketches; --exact adds up over panels."""
    if not has_tasks():
        return
    right = [[sum(row) + rng.gauss(0, 1)] for row in REAL]
    npy("A.npy", REAL)
    npy("B.npy", right)
    files = shards("A", REAL, CUTS[1])
    run("sketch", *HOW, "--memory", "10K", "A.npy", "-o", "Y.npy")
    run("sketch", *HOW, "--memory", "10K", "B.npy", "-o", "C.npy")
    for task in TASKS:
        run(*TASKS[task], "--from", "Y.npy", *([] if task == "gram" else ["C.npy"]), "-o", "X.npy")
        run(*by(task, files, ["B.npy"], *HOW, "--memory", "10K"), "-o", "X1.npy")
        assert npy_bytes("X1.npy") == npy_bytes("X.npy"), task
    npy("WIDE.npy", [[1.0] * 3000] * 3)
    npy("W.npy", [[1.0]] * 3)
    told = []
    for A, options in (["A.npy"], []), (files, []), (["A.npy"], ["--memory", 4096]):
        arguments = by("solve", A, ["B.npy"], *HOW, "--exact", "--json", *options)
        done = subprocess.run([FLASHSKETCH, *map(str, arguments)], capture_output=True, check=True)
        told.append(json.loads(done.stdout)["exact"])
    assert max(told) - min(told) < 1e-6 * told[0] and told[0] > 0, told
    run(*by("gram", files, [], *HOW, "--exact"), fails=["takes all of A at once", "one file, without --memory"])
    run(*by("solve", shards("F", REAL, CUTS[1], fortran=True), ["B.npy"], *HOW, "--exact", "--memory", "64K"),
        fails=["whole rows of A", "stored by columns"])
    run(*by("solve", ["WIDE.npy"], ["W.npy"], "-k", 2, "--exact", "--memory", 4096),
        fails=["1024 of 3000 elements of a row", "larger --memory"])


def a_task_that_is_killed_goes_on_and_gives_the_same_bits():
    """Two states, of B and of A: a run is ended in both, and nothing of them is left at its end."""
    if not has_tasks():
        return
    rows, states = REAL * 10, ("Z.npy.rhs.state", "Z.npy.state")
    npy("B.npy", [row[:3] for row in rows])
    files = shards("A", rows, [3, 2000])
    command = by("solve", files, ["B.npy"], *HOW, "--memory", "4K")
    run(*command, "-o", "Y.npy")
    for state in states:
        for number in signal.SIGKILL, signal.SIGTERM:
            code = killed([*command, "-o", "Z.npy", "--resume", "--every", 0], number, lambda: os.path.exists(state))
            assert code == -number, f"the run was over before {state} was there"
    assert all(os.path.exists(state) for state in states) and not os.path.exists("Z.npy")
    run(*command, "-o", "Z.npy", "--resume", "--seed", 8, fails=["seed", "remove Z.npy.rhs.state to start again"])
    os.utime("B.npy", ns=(1, 1))
    run(*command, "-o", "Z.npy", "--resume", fails=["B.npy has changed since Z.npy.rhs.state was written"])
    os.remove("Z.npy.rhs.state")  # B is sketched again; A continues
    run(*command, "--memory", "8K", "-o", "Z.npy", "--resume", fails=["Z.npy.state is of a run with --memory 4096"])
    run(*command, "-o", "Z.npy", "--resume", fails=["--memory 8192"])  # the state of B that this has left
    os.remove("Z.npy.rhs.state")
    run(*command, "-o", "Z.npy", "--resume")
    assert npy_bytes("Z.npy") == npy_bytes("Y.npy")
    assert [name for name in os.listdir() if name.startswith("Z.npy")] == ["Z.npy"], os.listdir()
    command = by("gram", files, [], *HOW, "--memory", "4K")
    run(*command, "-o", "Y.npy")
    os.remove("Z.npy")
    killed_with_a_state([*command, "-o", "Z.npy", "--resume", "--every", 0])
    run(*command, "-o", "Z.npy", "--resume")
    assert npy_bytes("Z.npy") == npy_bytes("Y.npy") and not os.path.exists("Z.npy.state")


def memory_of_a_task_does_not_grow_with_the_file():
    if not has_tasks():
        return
    row, peaks = array.array("f", [1.5] * 256).tobytes(), []
    for mib in 4, 64:
        with open("A.raw", "wb") as file:
            for _ in range(mib * 1024):
                file.write(row)
        npy("B.npy", [[1.0]] * (mib * 1024))
        process = subprocess.Popen([FLASHSKETCH, "solve", "-k", "300", "--memory", "1M", "--shape", f"{mib * 1024}x256",
                                    "--dtype", "f32", "--rhs", "B.npy", "A.raw", "-o", "X.npy"],
                                   stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0
        peaks.append(used.ru_maxrss)
    assert peaks[1] < peaks[0] + 16 * 1024, f"{peaks[0]} kB for 4 MiB, {peaks[1]} kB for 64 MiB"


def has_a_gpu(property):
    machine = json.loads(subprocess.run([FLASHSKETCH, "info", "--json"], capture_output=True, check=True).stdout)
    if not machine["gpus"]:
        print(f"no GPU here: {property} is skipped")
    return bool(machine["gpus"])


def on_a_gpu_panels_give_the_same_bits():
    """Integers, so the CPU's bits."""
    if not has_a_gpu("on_a_gpu_panels_give_the_same_bits"):
        return
    npy("A.npy", WHOLE)
    npy("B.npy", [list(column) for column in zip(*WHOLE)])
    pathlib.Path("A.idx").write_bytes(idx(WHOLE[:1000]))
    npy("A2.npy", WHOLE[1000:])
    for files, options in ((["A.npy"], []), (shards("A", WHOLE, CUTS[1]), []), (["A.idx", "A2.npy"], []),
                           (["B.npy"], ["--batch-major"])):
        run(*SKETCH, *files, *options, "--device", "cpu", "-o", "Y.npy")
        for memory in "8K", "64K", "64M":
            run(*SKETCH, *files, *options, "--device", "cuda", "--memory", memory, "-o", "Y1.npy")
            assert npy_bytes("Y1.npy") == npy_bytes("Y.npy"), f"{files} with {memory}"


def on_a_gpu_a_run_that_is_killed_goes_on_and_gives_the_same_bits():
    """Real numbers: the bits of a run on the GPU that was left alone."""
    if has_a_gpu("on_a_gpu_a_run_that_is_killed_goes_on_and_gives_the_same_bits"):
        a_run_that_is_killed_goes_on_and_gives_the_same_bits("--device", "cuda")


def on_a_gpu_tasks_take_files_and_panels_of_any_size():
    """Integers: S A and S B are exact, so one GPU solves the same equations to the same bits."""
    if not has_a_gpu("on_a_gpu_tasks_take_files_and_panels_of_any_size"):
        return
    npy("A.npy", WHOLE)
    npy("B.npy", RHS)
    run("sketch", *HOW, "A.npy", "-o", "Y.npy")
    run("sketch", *HOW, "B.npy", "-o", "C.npy")
    on = ["--device", "cuda"]
    for task in TASKS:
        run(*by(task, ["A.npy"], ["B.npy"], *HOW, *on), "-o", "X.npy")
        for options in ["--memory", "8K"], ["--memory", "8K", "--resume", "--every", 0]:
            files = shards("A", WHOLE, CUTS[1])
            run(*by(task, files, shards("B", RHS, CUTS[2]), *HOW, *on, *options), "-o", "X1.npy")
            assert npy_bytes("X1.npy") == npy_bytes("X.npy"), f"{task} {options}"
        run(*TASKS[task], "--from", "Y.npy", *([] if task == "gram" else ["C.npy"]), *on, "-o", "X1.npy")
        assert npy_bytes("X1.npy") == npy_bytes("X.npy"), f"{task} --from"


PROPERTIES = (panels_and_files_of_any_size_give_the_same_bits, files_may_end_anywhere, files_of_every_format_are_shards,
        pieces_add_up_in_any_order, what_does_not_add_up_is_refused,
        a_run_that_is_killed_goes_on_and_gives_the_same_bits,
        a_state_of_another_run_is_refused_and_kept, each_thing_that_a_state_depends_on_is_compared_alone,
        a_state_with_another_number_of_panels_is_refused, a_full_disk_loses_nothing, a_bar_tells_how_long_it_will_take,
        memory_does_not_grow_with_the_file,
        tasks_take_files_and_panels_of_any_size, tasks_have_the_bits_of_the_sketch,
        a_task_that_is_killed_goes_on_and_gives_the_same_bits, memory_of_a_task_does_not_grow_with_the_file,
        on_a_gpu_tasks_take_files_and_panels_of_any_size,
        on_a_gpu_panels_give_the_same_bits, on_a_gpu_a_run_that_is_killed_goes_on_and_gives_the_same_bits)
check(PROPERTIES)
