#!/usr/bin/env python3
"""solvers.py - the commands lstsq, qr, svd, pca and leverage on matrices in files: the same result however A is cut
into panels and files, the same bits from the same call; several outputs that are in place together or not at all; and a
Q that needs no memory.

usage: solvers.py FLASHSKETCH INTERPOSE.so (interpose.c).  Needs nothing but Python.  Each property is a function;
prints which fail, and exits with 1 then."""
import array
import gzip
import itertools
import os
import pathlib
import pty
import random
import re
import resource
import signal
import subprocess
import sys
import time

from command import FLASHSKETCH, check, npy, npy_bytes, run

INTERPOSE = str(pathlib.Path(sys.argv[2]).resolve())
D, N = 1203, 7
rng = random.Random(11)
A = [[rng.gauss(0, 1) * 3 ** -j for j in range(N)] for _ in range(D)]
B = [[sum(row) + rng.gauss(0, 0.1), row[0] - row[1]] for row in A]
COMMANDS = {"lstsq": (["--rhs", "B.npy"], ["-o"]), "qr": ([], ["-o", "-R"]), "svd": (["-r", 3], ["-U", "-S", "-V"]),
            "pca": (["-r", 3], ["--mean", "--values", "--components", "--variances", "--scores"]),
            "leverage": (["--seed", 9], ["-o"])}
OTHER_WAYS = (("lstsq", ["--method", "iterate"]), ("lstsq", ["--method", "direct"]), ("lstsq", ["--lambda", 2]),
              ("svd", ["--one-read"]), ("svd", ["--power", 0]), ("leverage", ["--exact"]),
              ("qr", ["--pivot", "--pivots", "p.npy"]))


def numbers(path):
    """The elements of an npy file of f64 or f32."""
    data = npy_bytes(path)
    found = array.array("d" if b"'<f8'" in data[:128] else "f")
    found.frombytes(data[128:])
    return list(found)


def results(command, files, *options):
    """What a command writes of these files, output by output."""
    fixed, outputs = COMMANDS[command]
    names = [f"out{i}.npy" for i in range(len(outputs))]
    run(command, *fixed, *options, *files, *itertools.chain(*zip(outputs, names)))
    return [numbers(name) for name in names]


def near(found, wanted, what, most):
    for i, (one, other) in enumerate(zip(found, wanted)):
        scale = max(map(abs, other))
        assert len(one) == len(other), f"{what}: output {i} has {len(one)} elements, not {len(other)}"
        worst = max(abs(x - y) for x, y in zip(one, other))
        assert worst <= most * scale, f"{what}: output {i} differs by {worst}, of {scale}"


def shards(name, rows, cuts, **how):
    names = []
    for i, (first, end) in enumerate(zip([0, *cuts], [*cuts, len(rows)])):
        names.append(f"{name}{i}.npy")
        npy(names[-1], rows[first:end], **how)
    return names


def files_and_panels_of_any_size_give_the_same_result():
    """To rounding: the order of sums depends on panels.  f64, in which 1e-9 is far above it and far below any error."""
    npy("A.npy", A, "d")
    npy("B.npy", B, "d")
    npy("AT.npy", [list(column) for column in zip(*A)], "d")
    lines = ["%.17g " * N % tuple(row) for row in A]
    pathlib.Path("A.txt").write_text("\n".join(lines))
    pathlib.Path("a.gz").write_bytes(gzip.compress("\n".join(lines[:500]).encode()))
    pathlib.Path("b.txt").write_text("\n".join(lines[500:]))
    entries = [f"{i + 1} {j + 1} {x!r}" for i, row in enumerate(A) for j, x in enumerate(row)]
    pathlib.Path("A.mtx").write_text(f"%%MatrixMarket matrix coordinate real general\n{D} {N} {D * N}\n" +
                                     "\n".join(entries))
    pathlib.Path("A.raw").write_bytes(npy_bytes("A.npy")[128:])
    ways = [(["A.npy"], ["--memory", 4096]), (["A.npy"], ["--threads", 1]),
            (shards("s", A, [1, 600, 601], code="d"), []),
            (shards("s", A, [1, 600, 601], code="d"), ["--memory", "10K"]),
            (shards("f", A, [700], code="d", fortran=True), ["--memory", "5K"]), (["AT.npy"], ["--batch-major"]),
            (["AT.npy"], ["--batch-major", "--memory", 4096]), (["A.txt"], ["--memory", "10K"]),
            (["a.gz", "b.txt"], []), (["A.mtx"], []), (["A.raw"], ["--shape", f"{D}x{N}", "--dtype", "f64"])]
    for command in COMMANDS:
        wanted = results(command, ["A.npy"])
        for files, options in ways:
            near(results(command, files, *options), wanted, f"{command} of {files} {options}", 1e-9)
    for command, options in OTHER_WAYS:
        wanted = results(command, ["A.npy"], *options)
        for files, more in ways[3], ways[9]:
            near(results(command, files, *options, *more), wanted, f"{command} {options} of {files} {more}", 1e-7)


def a_pipe_is_a_file():
    npy("A.npy", A, "d")
    npy("B.npy", B, "d")
    for command, (fixed, outputs) in COMMANDS.items():
        wanted = results(command, ["A.npy"])[0]
        with open("A.npy", "rb") as file:
            process = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
            run(command, *fixed, "-", outputs[0], "piped.npy", stdin=process.stdout)
        assert numbers("piped.npy") == wanted, command
        process.wait()


def the_same_call_gives_the_same_bits():
    npy("A.npy", A)
    npy("B.npy", B)
    for command, options in [(name, []) for name in COMMANDS] + list(OTHER_WAYS):
        first = results(command, ["A.npy"], "--memory", "9K", *options)
        for _ in range(2):
            assert results(command, ["A.npy"], "--memory", "9K", *options) == first, f"{command} {options}"


def elements_of_f32_have_results_of_f32():
    npy("A.npy", A)
    npy("B.npy", B)
    results("qr", ["A.npy"])
    assert all(b"'<f4'" in npy_bytes(name)[:128] for name in ("out0.npy", "out1.npy"))
    results("svd", ["A.npy"])
    types = [npy_bytes(f"out{i}.npy")[:128] for i in range(3)]
    assert b"'<f4'" in types[0] and b"'<f8'" in types[1] and b"'<f4'" in types[2], types
    q = results("qr", ["A.npy"])[0]
    assert abs(sum(x * x for x in q[::N]) - 1) < 1e-6


def where_a_rename_fails_all_files_are_as_they_were():
    npy("A.npy", A)
    names = ["m.npy", "s.npy", "c.npy", "v.npy", "t.npy"]
    outputs = list(itertools.chain(*zip(["--mean", "-S", "-V", "--variances", "-U"], names)))
    for had in [], names, names[1:3]:
        for name in had:
            pathlib.Path(name).write_text("old " + name)
        before = {name: npy_bytes(name) for name in os.listdir()}
        for number in range(1, 6):
            options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
            interpose = {"LD_PRELOAD": INTERPOSE, "INTERPOSE": f"rename {number} fail 5"}
            env = {**os.environ, "ASAN_OPTIONS": options, **interpose}
            run("pca", "-r", 2, "A.npy", *outputs, env=env, fails=["could not be written (Input/output error)"])
            after = {name: npy_bytes(name) for name in os.listdir()}
            assert after == before, f"rename {number} with {had}: {sorted(before)} became {sorted(after)}"
        for name in had:
            os.remove(name)
    run("pca", "-r", 2, "A.npy", *outputs)
    assert sorted(os.listdir()) == sorted(["A.npy", *names])


def a_disk_without_room_is_found_before_the_work():
    npy("A.npy", A)
    pathlib.Path("Q.npy").write_text("old")
    run("qr", "A.npy", "-o", "Q.npy", "-R", "R.npy", limit=4 * D * N, fails=["'Q.npy' could not be written (File too"])
    assert sorted(os.listdir()) == ["A.npy", "Q.npy"] and pathlib.Path("Q.npy").read_text() == "old"


def a_signal_leaves_nothing():
    for number in signal.SIGINT, signal.SIGTERM:
        def heard():
            signal.signal(number, signal.SIG_DFL)
        process = subprocess.Popen([FLASHSKETCH, "qr", "-", "-o", "Q.npy", "-R", "R.npy"], stdin=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, preexec_fn=heard)
        until = time.monotonic() + 60
        while len(os.listdir()) < 2 and time.monotonic() < until:
            time.sleep(0.002)
        assert len(os.listdir()) == 2, os.listdir()
        process.send_signal(number)
        assert process.wait(60) == -number
        process.stdin.close()
        assert not os.listdir(), os.listdir()


def a_file_that_ends_early_is_named():
    """Its header gives more than it has; and it is cut during one of many reads, which the bar shows after a second."""
    npy("A.npy", A * 40, "d")
    data = npy_bytes("A.npy")
    pathlib.Path("short.npy").write_bytes(data[:-8])
    for command, (fixed, outputs) in COMMANDS.items():
        if command != "lstsq":
            run(command, *fixed, "short.npy", outputs[0], "X.npy", fails=["short.npy: "])
    ours, its = pty.openpty()
    npy("B.npy", B * 40, "d")
    process = subprocess.Popen([FLASHSKETCH, "lstsq", "--method", "iterate", "--tolerance", "1e-300", "--rhs", "B.npy",
                                "--memory", "4K", "--max-iterations", "1000000", "A.npy", "-o", "X.npy"],
                               stderr=its, stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"})
    os.close(its)
    maps, seen = pathlib.Path(f"/proc/{process.pid}/maps"), b""
    while process.poll() is None and "/A.npy" not in maps.read_text():
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.1)
    process.send_signal(signal.SIGCONT)
    while b"read" not in seen and (part := read(ours)):
        seen += part
    os.truncate("A.npy", 100000)
    while part := read(ours):
        seen += part
    os.close(ours)
    assert re.search(rb"\] +[0-9]+ %  read [0-9]+ of A\.npy", seen), seen
    assert process.wait(60) == 1, seen
    assert b"flashsketch: A.npy: the file has changed while it was read" in seen, seen
    assert not os.path.exists("X.npy") and len(os.listdir()) == 3, os.listdir()


def read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux's error when the other end is closed
        return b""


def q_needs_no_memory():
    """Within the memory that R alone takes, and some: Q has 64 MiB."""
    row = array.array("f", (rng.gauss(0, 1) for _ in range(65536))).tobytes()
    with open("A.raw", "wb") as file:
        for i in range(256):
            file.write(row[4 * i:] + row[:4 * i])
    qr = [FLASHSKETCH, "qr", "--shape", "262144x64", "--dtype", "f32", "--memory", "1M", "A.raw"]

    def fits(mib, *more):
        def limited():
            resource.setrlimit(resource.RLIMIT_DATA, (mib << 20, mib << 20))
        return subprocess.run([*qr, *more], preexec_fn=limited, capture_output=True).returncode == 0
    low, least = 0, 1024
    if not fits(least):  # sanitizers, and libraries that reserve much
        print("no limit of memory below 1 GiB works here: q_needs_no_memory is skipped")
        return
    while least - low > 8:
        middle = (low + least) // 2
        low, least = (low, middle) if fits(middle) else (middle, least)
    assert fits(least + 24, "-o", "Q.npy"), f"R takes {least} MiB, and Q does not fit 24 more"
    assert os.path.getsize("Q.npy") == 128 + (64 << 20)


PROPERTIES = (files_and_panels_of_any_size_give_the_same_result, a_pipe_is_a_file, the_same_call_gives_the_same_bits,
              elements_of_f32_have_results_of_f32, where_a_rename_fails_all_files_are_as_they_were,
              a_disk_without_room_is_found_before_the_work, a_signal_leaves_nothing, a_file_that_ends_early_is_named,
              q_needs_no_memory)
probe = subprocess.run([FLASHSKETCH, "qr", "--shape", "1x1", "--dtype", "f32", "-"], input=bytes(4),
                       capture_output=True)
if b"OpenBLAS" in probe.stderr:
    print("skipped: the solvers need OpenBLAS")
    sys.exit(77)
check(PROPERTIES)
