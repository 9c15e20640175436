#!/usr/bin/env python3
"""outputs.py - the files that the command flashsketch writes: complete or absent, both or neither, no leftovers,
never in place of an input, with the rights of the file that they replace.

usage: outputs.py FLASHSKETCH INTERPOSE.so (interpose.c).  Needs nothing but Python.  Each property is a function;
prints which fail, and exits with 1 then."""
import atexit
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import time

from command import FLASHSKETCH, about, check, npy, npy_bytes, run

INTERPOSE = str(pathlib.Path(sys.argv[2]).resolve())
ROWS = [[(7 * i + 3 * j) % 19 - 9 for j in range(8)] for i in range(2000)]
SKETCH = ["sketch", "-k", 40, "-s", 4, "--seed", 7]  # sums of integers are exact
PANELS = ["--memory", "4K", "--resume", "--every", 0]  # 2000 rows of 32 bytes are 16 panels


def with_rule(rule="", **more):
    """The environment in which interpose.c follows a rule."""
    options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0:handle_sigbus=0"]))
    return {**os.environ, "ASAN_OPTIONS": options, "LD_PRELOAD": INTERPOSE, "INTERPOSE": rule, **more}


def start(*arguments, **how):
    process = subprocess.Popen([FLASHSKETCH, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               **how)
    atexit.register(process.kill)
    return process


def ends(process, code):
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == code, f"{process.args} ended with {process.returncode}: {said}"
    return said


def stopped(process):
    """Waits until the process has stopped itself."""
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), f"{process.args} did not stop: {status}"


def parts(folder="."):
    return sorted(name for name in os.listdir(folder) if ".part" in name)


def wait_for(what, seconds=60):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "nothing came of it"
        time.sleep(0.002)


def is_pair(path):
    """That both files are there and belong together: add compares them by the CRC-32."""
    run("add", path, "-o", "pair.npy")


# leftovers ------------------------------------------------------------------------------------------------------


def a_killed_run_blocks_no_other_with_its_number():
    """As in a container, where every process has the same number."""
    npy("A.npy", ROWS)
    run(*SKETCH, "A.npy", "-o", "W.npy")
    same = f"getpid 0 return {os.getpid()}"  # a process that exists: LLVM's OpenMP reads its /proc
    for options, rule, left in (([], "fsync 1 kill", 2), (PANELS, "fsync 1 kill", 1), ([], "rename 2 kill", 2),
                                (["--memory", "4K", "--resume"], "rename 1 kill", 3)):
        command = [*SKETCH, *options, "A.npy", "-o", "Z.npy"]
        for _ in range(2):  # the second finds what the first has left
            run(*command, env=with_rule(f"{same};{rule}"), fails=[], code=-signal.SIGKILL)
            assert len(parts()) == left, f"{options} {rule}: {parts()}"
        run(*command, env=with_rule(same))
        assert npy_bytes("Z.npy") == npy_bytes("W.npy"), options
        assert not parts() and not os.path.exists("Z.npy.state"), os.listdir()
        is_pair("Z.npy")


def what_a_killed_run_left_is_removed_by_any_command_with_that_output():
    """FILE, FILE.json and both states, with --resume and without; leftovers of other outputs stay."""
    npy("A.npy", ROWS)
    npy("b.npy", [[1.0]] * len(ROWS))
    others = [["gram", "-k", 40, "A.npy"], [*SKETCH, "A.npy"], [*SKETCH, *PANELS, "A.npy"], ["add", "Y.npy"],
              ["solve", "-k", 40, *PANELS, "--rhs", "b.npy", "A.npy"]]
    run(*SKETCH, "A.npy", "-o", "Y.npy")
    for other in others:
        for command, output in (([*SKETCH, "A.npy"], "Z"), (["gram", "-k", 40, "A.npy"], "Z.state"),
                                (["gram", "-k", 40, "A.npy"], "Z.rhs.state"), (["gram", "-k", 40, "A.npy"], "other")):
            run(*command, "-o", output, env=with_rule("fsync 1 kill"), fails=[], code=-signal.SIGKILL)
        left = parts()
        run(*other, "-o", "Z")
        assert len(left) == 5 and len(parts()) == 1, f"{other}: of {left} are left {parts()}"
        run("gram", "-k", 40, "A.npy", "-o", "other")
        assert not parts(), parts()


def what_a_running_process_writes_is_not_removed():
    npy("A.npy", ROWS)
    run(*SKETCH, "A.npy", "-o", "W.npy")
    process = start(*SKETCH, "A.npy", "-o", "Z.npy", env=with_rule("fsync 1 stop"))
    stopped(process)
    its = parts()
    assert len(its) == 2, its
    run(*SKETCH, "--seed", 8, "A.npy", "-o", "Z.npy")
    assert parts() == its
    process.send_signal(signal.SIGCONT)
    ends(process, 0)
    assert npy_bytes("Z.npy") == npy_bytes("W.npy") and not parts()
    is_pair("Z.npy")


def a_file_that_is_swept_before_it_is_locked_is_made_again():
    """Between open and flock a temporary belongs to no process."""
    npy("A.npy", ROWS)
    for number in 1, 2:
        process = start(*SKETCH, "A.npy", "-o", "Z.npy", env=with_rule(f"flock {number} stop"))
        stopped(process)
        assert len(parts()) == number
        run(*SKETCH, "A.npy", "-o", "Z.npy")
        assert len(parts()) == number - 1
        process.send_signal(signal.SIGCONT)
        ends(process, 0)
        assert not parts()
        is_pair("Z.npy")


def without_locks_nothing_is_removed():
    """A file system that refuses locks (ENOLCK 37): a leftover cannot be distinguished from the file of a running
    process."""
    npy("A.npy", ROWS)
    run(*SKETCH, "A.npy", "-o", "Z.npy", env=with_rule("fsync 1 kill"), fails=[], code=-signal.SIGKILL)
    left = parts()
    run(*SKETCH, "A.npy", "-o", "Z.npy", env=with_rule("flock 0 fail 37"))
    assert parts() == left and len(left) == 2
    is_pair("Z.npy")
    run(*SKETCH, "A.npy", "-o", "Z.npy")
    assert not parts()


def a_signal_leaves_nothing():
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXCPU:
        def heard():  # a child of a shell in the background ignores SIGINT
            signal.signal(number, signal.SIG_DFL)
            os.setpgrp()
        process = start(*SKETCH, "-", "-o", "Z.npy", stdin=subprocess.PIPE, preexec_fn=heard)
        wait_for(lambda: len(parts()) == 2)
        process.send_signal(number)
        ends(process, -number)
        assert not os.listdir(), f"{number}: {os.listdir()}"


# both or neither ------------------------------------------------------------------------------------------------


def two_renames_are_not_interrupted():
    npy("A.npy", ROWS)
    process = start(*SKETCH, "A.npy", "-o", "Z.npy", env=with_rule("rename 2 stop"))
    stopped(process)
    assert os.path.exists("Z.npy.json") and not os.path.exists("Z.npy")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    ends(process, -signal.SIGTERM)
    assert sorted(os.listdir()) == ["A.npy", "Z.npy", "Z.npy.json"], os.listdir()
    is_pair("Z.npy")


def two_runs_at_once_leave_a_pair():
    """The second one waits while the first is between its two renames."""
    npy("A.npy", ROWS)
    first = start(*SKETCH, "A.npy", "-o", "Z.npy", env=with_rule("rename 2 stop"))
    stopped(first)
    second = start(*SKETCH, "--seed", 8, "A.npy", "-o", "Z.npy", env=with_rule(INTERPOSE_LOG="log"))
    pathlib.Path("log").touch()
    wait_for(lambda: second.poll() is not None or "flock folder -1" in pathlib.Path("log").read_text())
    first.send_signal(signal.SIGCONT)
    ends(first, 0)
    ends(second, 0)
    assert not parts() and about("Z.npy")["spec"]["seed"] == "8"
    is_pair("Z.npy")


def where_a_rename_fails_both_files_are_as_they_were():
    npy("A.npy", ROWS)
    fresh = [*SKETCH, "A.npy", "-o", "Z.npy"]
    for had in False, True:
        if had:
            run(*SKETCH, "--seed", 9, "A.npy", "-o", "Z.npy")
        before = {name: npy_bytes(name) for name in os.listdir()}
        for rule, name in (("rename 1 fail 5", "Z.npy.json"), ("rename 2 fail 5", "Z.npy")):
            run(*fresh, env=with_rule(rule), fails=[f"'{name}' could not be written (Input/output error)"])
            after = {name: npy_bytes(name) for name in os.listdir()}
            assert after == before, f"{rule}: {sorted(before)} became {sorted(after)}"
    # Where the file system has no links (EPERM 1), the old file is renamed, which is the first rename then.
    no_links = with_rule("link 1 fail 1", INTERPOSE_LOG="log")
    run(*fresh, env=no_links)
    assert pathlib.Path("log").read_text().count("rename ") == 3 and not parts()
    is_pair("Z.npy")
    os.remove("log")
    # The same by nothing but the file system: the name becomes a folder while the command waits for its input.
    for had in False, True:
        for name in "Y.npy", "Y.npy.json":
            pathlib.Path(name).unlink(missing_ok=True)
        if had:
            pathlib.Path("Y.npy.json").write_text("of something else")
        process = start(*SKETCH, "-", "-o", "Y.npy", stdin=subprocess.PIPE)
        wait_for(lambda: len(parts()) == 2)
        os.mkdir("Y.npy")
        process.stdin.write(npy_bytes("A.npy"))
        said = ends(process, 1)
        assert "'Y.npy' could not be written (Is a directory)" in said, said
        os.rmdir("Y.npy")
        left = [name for name in os.listdir() if name.startswith("Y.npy")]
        assert left == (["Y.npy.json"] if had else []) and not parts(), os.listdir()
        if had:
            assert pathlib.Path("Y.npy.json").read_text() == "of something else"


def files_are_on_the_disk_before_they_are_in_place():
    npy("A.npy", ROWS)
    run(*SKETCH, "A.npy", "-o", "Z.npy", env=with_rule(INTERPOSE_LOG="log"))
    lines = [line.split(" ") for line in pathlib.Path("log").read_text().splitlines() if not line.startswith("flock")]
    assert [line[:2] for line in lines[:2]] == [["fsync", "file"]] * 2, lines
    flushed = sorted(os.path.basename(line[2]) for line in lines[:2])
    assert [line[0] for line in lines[2:4]] == ["rename"] * 2, lines
    assert sorted(os.path.basename(line[1]) for line in lines[2:4]) == flushed, lines
    assert [os.path.basename(line[2]) for line in lines[2:4]] == ["Z.npy.json", "Z.npy"], lines
    assert [line[:2] for line in lines[4:]] == [["fsync", "folder"]] and lines[4][2] == os.getcwd(), lines
    os.remove("log")
    run(*SKETCH, *PANELS, "A.npy", "-o", "Z.npy", env=with_rule(INTERPOSE_LOG="log"))
    lines = [line.split(" ") for line in pathlib.Path("log").read_text().splitlines() if not line.startswith("flock")]
    assert len(lines) == 3 * 15 + 5, len(lines)  # no state after the last panel
    for i in range(0, 45, 3):
        assert [line[0] for line in lines[i:i + 3]] == ["fsync", "rename", "fsync"], lines[i:i + 3]
        assert os.path.basename(lines[i][2]) == os.path.basename(lines[i + 1][1]), lines[i:i + 3]
        assert lines[i + 1][2] == "Z.npy.state", lines[i:i + 3]


# names and rights -----------------------------------------------------------------------------------------------


def names_may_be_as_long_as_the_folder_allows():
    """The longest that FILE.json, or FILE.state, leaves room for."""
    npy("A.npy", ROWS)
    most = os.pathconf(".", "PC_NAME_MAX")
    for beside, command in (("", ["gram", "-k", 40, "A.npy"]), (".json", [*SKETCH, "A.npy"]),
                            (".state", [*SKETCH, *PANELS, "A.npy"])):
        name = "n" * (most - len(beside))
        run(*command, "-o", name)
        assert os.path.exists(name) and (beside != ".json" or os.path.exists(name + beside))
        run(*command, "-o", name + "n", fails=["cannot be written", f"{most + 1} bytes", f"allows {most}",
                                               "shorter by 1"])
    run(*SKETCH, "A.npy", "-o", "x/" * 2100 + "Y.npy", fails=["4205 bytes", "at most 4095"])
    assert not parts() and not os.path.exists("n" * most + "n")


def a_name_that_names_no_file_is_refused():
    npy("A.npy", ROWS)
    os.mkdir("folder")
    os.mkdir("Y.npy.json")
    pathlib.Path("loop").symlink_to("loop")
    for name, words in (("", "name of the output is empty"), ("folder", "not a file"), ("folder/", "not a file"),
                        ("new/", "names a folder"), ("loop", "Too many levels"), ("A.npy/x", "Not a directory"),
                        ("Y.npy", "'Y.npy.json' exists and is not a file")):
        run(*SKETCH, "A.npy", "-o", name, fails=[words])
        assert sorted(os.listdir()) == ["A.npy", "Y.npy.json", "folder", "loop"], os.listdir()
    os.rmdir("Y.npy.json")
    os.mkdir("Y.npy.state")
    run(*SKETCH, *PANELS, "A.npy", "-o", "Y.npy", fails=["'Y.npy.state' exists and is not a file"])
    assert sorted(os.listdir()) == ["A.npy", "Y.npy.state", "folder", "loop"] and not os.listdir("folder")


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def a_file_keeps_its_mode_and_a_new_one_has_that_of_the_umask():
    npy("A.npy", ROWS)
    for mask, wanted in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        run(*SKETCH, "A.npy", "-o", f"Y{mask}", umask=mask)
        assert mode(f"Y{mask}") == mode(f"Y{mask}.json") == wanted, f"{mask:o}: {mode(f'Y{mask}'):o}"
    for rights in 0o600, 0o640, 0o755, 0o444:
        pathlib.Path("Z").write_text("old")
        pathlib.Path("Z.json").write_text("old")
        os.chmod("Z", rights)
        os.chmod("Z.json", 0o604)
        process = start(*SKETCH, "A.npy", "-o", "Z", env=with_rule("fsync 1 stop"), umask=0)
        stopped(process)
        seen = {mode(part) for part in parts()}
        process.send_signal(signal.SIGCONT)
        ends(process, 0)
        assert seen == {rights, 0o604}, f"while it is written, the file has rights {seen}, not {rights:o}"
        assert mode("Z") == rights and mode("Z.json") == 0o604, f"{rights:o} became {mode('Z'):o}"
        is_pair("Z")
        os.remove("Z")
    if os.geteuid() == 0:
        pathlib.Path("Z").write_text("old")
        os.chown("Z", 1234, 5678)
        run(*SKETCH, "A.npy", "-o", "Z")
        assert (os.stat("Z").st_uid, os.stat("Z").st_gid) == (1234, 5678)


def a_symbolic_link_is_followed_and_a_hard_link_is_not():
    npy("A.npy", ROWS)
    run(*SKETCH, "A.npy", "-o", "W.npy")
    os.makedirs("far/away")
    os.mkdir("links")
    pathlib.Path("far/away/real").write_text("old")
    pathlib.Path("far/there").symlink_to("away/real")
    pathlib.Path("links/absolute").symlink_to(os.path.abspath("far/there"))
    pathlib.Path("Z").symlink_to("links/absolute")
    pathlib.Path("new").symlink_to("far/away/made")
    for name, real in (("Z", "far/away/real"), ("new", "far/away/made")):
        run(*SKETCH, "A.npy", "-o", name)
        assert os.path.islink(name) and not os.path.islink(real) and npy_bytes(real) == npy_bytes("W.npy")
        is_pair(name)  # FILE.json goes by the name of the link, as commands look for it
    assert not parts() and not parts("far/away") and os.path.islink("far/there")
    process = start(*SKETCH, "A.npy", "-o", "Z", env=with_rule("fsync 1 kill"))
    ends(process, -signal.SIGKILL)
    assert len(parts("far/away")) == 1 and len(parts()) == 1
    run(*SKETCH, "A.npy", "-o", "Z")
    assert not parts() and not parts("far/away")
    pathlib.Path("one").write_text("old")
    os.link("one", "two")
    run(*SKETCH, "A.npy", "-o", "one")
    assert pathlib.Path("two").read_text() == "old" and npy_bytes("one") == npy_bytes("W.npy")


# inputs ---------------------------------------------------------------------------------------------------------


def an_output_that_is_an_input_is_refused():
    npy("A.npy", ROWS)
    npy("B.npy", ROWS)
    npy("b.npy", [[1.0]] * len(ROWS))
    run(*SKETCH, "A.npy", "-o", "Y.npy")
    shutil.copy("A.npy", "R.json")
    shutil.copy("A.npy", "R.state")
    pathlib.Path("link").symlink_to("A.npy")
    pathlib.Path("A.svg").symlink_to("A.npy")
    os.link("A.npy", "hard")
    shutil.copy("b.npy", "R.rhs.state")
    raw = ["--shape", "2004x8", "--dtype", "f32"]
    solve = ["-k", 40, "--rhs", "b.npy", "A.npy"]
    same, twice = "is read and would be replaced by the output", "they are the same file"
    cases = [
        ([*SKETCH, "A.npy"], "A.npy", ["'A.npy' " + same]),
        ([*SKETCH, *PANELS, "A.npy"], "A.npy", ["'A.npy' " + same]),
        ([*SKETCH, "A.npy"], "./A.npy", ["'./A.npy'", "'A.npy'", twice]),
        ([*SKETCH, "A.npy"], "link", ["'link'", "'A.npy'", twice]),
        ([*SKETCH, "link"], "A.npy", ["'link'", "'A.npy'", twice]),
        ([*SKETCH, "A.npy"], "hard", ["'hard'", "'A.npy'", twice]),
        ([*SKETCH, "B.npy", "A.npy"], "A.npy", ["'A.npy' " + same]),
        ([*SKETCH, "-"], "A.npy", ["'A.npy'", "'standard input'", twice]),
        ([*SKETCH, *raw, "R.json"], "R", ["'R.json' " + same]),
        ([*SKETCH, *PANELS, *raw, "R.state"], "R", ["'R.state' " + same]),
        (["add", "Y.npy"], "Y.npy", ["'Y.npy' " + same]),
        (["add", "Y.npy"], "Y.npy.json", ["'Y.npy.json' " + same]),
        (["solve", *solve], "A.npy", ["'A.npy' " + same]),
        (["solve", *solve], "b.npy", ["'b.npy' " + same]),
        (["ridge", "--lambda", 1, *solve], "b.npy", ["'b.npy' " + same]),
        (["gram", "-k", 40, "A.npy"], "link", ["'link'", "'A.npy'", twice]),
        (["gram", "-k", 40, "B.npy", "A.npy"], "A.npy", ["'A.npy' " + same]),
        (["solve", "-k", 40, "--rhs", "B.npy", "--rhs", "b.npy", "A.npy"], "b.npy", ["'b.npy' " + same]),
        (["solve", "-k", 40, *PANELS, "--rhs", "R.rhs.state", "A.npy"], "R", ["'R.rhs.state' " + same]),
        (["solve", "--from", "Y.npy", "Y.npy"], "Y.npy", ["'Y.npy' " + same]),
        (["gram", "--from", "Y.npy"], "Y.npy.json", ["'Y.npy.json' " + same]),
        (["demo", "--data", "A.npy"], "A.svg", ["'A.svg'", "'A.npy'", twice]),
    ]
    before = {name: npy_bytes(name) for name in os.listdir()}
    for command, output, words in cases:
        with open("A.npy", "rb") as file:
            run(*command, "-o", output, fails=words, stdin=file)
        after = {name: npy_bytes(name) for name in os.listdir()}
        assert after == before, f"{command} -o {output}: {sorted(after)}"
    with open("A.npy", "ab") as file:  # standard output, at the end of its own input
        done = subprocess.run([FLASHSKETCH, *map(str, SKETCH), "A.npy"], stdout=file, stderr=subprocess.PIPE)
    assert done.returncode == 1 and b"'standard output' would replace 'A.npy'" in done.stderr, done.stderr
    assert npy_bytes("A.npy") == before["A.npy"]
    # A state is read and replaced, and is no input; nor is what has the same contents.
    run(*SKETCH, *PANELS, "A.npy", "-o", "Z.npy")
    run(*SKETCH, "A.npy", "-o", "B.npy")


def what_grass_reads_is_not_replaced():
    os.makedirs("kept/features")
    os.mkdir("data")
    names = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
    names = ["data/" + name for name in names] + ["kept/identity", "kept/model-000.npy", "kept/features/test-000.npy"]
    for name in names:
        pathlib.Path(name).write_text("precious")
    for name in names:
        os.link(name, "hard.png")
        run("grass", "query", "--data", "data", "-o", "hard.png", "kept", 0,
            fails=[f"would replace '{name}', which is"])
        os.remove("hard.png")
        run("grass", "run", "--data", "data", "--record", name, "kept", fails=[f"'{name}' is read and would be"])
        assert all(pathlib.Path(name).read_text() == "precious" for name in names)
    pathlib.Path("notes").write_text("precious")
    run("grass", "run", "--data", "data", "--record", "notes", "kept", fails=["notes: line 1 is not a line of"])
    assert pathlib.Path("notes").read_text() == "precious"
    # A picture beside the kept file is no input.
    pathlib.Path("kept/top.png").write_text("old")
    run("grass", "query", "--data", "data", "-o", "kept/top.png", "kept", 0, fails=["train-images-idx3-ubyte: "])


def an_input_that_is_made_shorter_gets_its_message():
    """A panel, and a file that is mapped as a whole, are cut after they were mapped and before they are read."""
    size = 2000 * 32 + 128
    for command in ([*SKETCH, "--memory", "32K", "A.npy"], [*SKETCH, *PANELS, "A.npy"], ["gram", "-k", 40, "A.npy"],
                    ["solve", "-k", 40, "--rhs", "b.npy", "A.npy"], ["add", "A.npy"]):
        npy("b.npy", [[1.0]] * len(ROWS))
        npy("A.npy", ROWS)
        if command[0] == "add":
            run("sketch", "-k", 2000, "A.npy", "-o", "Y.npy")
            os.replace("Y.npy", "A.npy"), os.replace("Y.npy.json", "A.npy.json")
        call = "madvise 1" if command[0] == "sketch" else "mmap 1"
        said = run(*command, "-o", "Z.npy", env=with_rule(f"{call} truncate 4096", INTERPOSE_FILE="A.npy"),
                   fails=["flashsketch: A.npy: the file ", f"{size} bytes and has 4096"])
        assert said.count("\n") == 1, said
        left = [name for name in os.listdir() if name.startswith("Z.npy") or name.endswith(".part")]
        assert not left, left
    # Less than a page: no signal comes, what is read is 0.
    npy("A.npy", ROWS)
    run("gram", "-k", 40, "A.npy", "-o", "Z.npy", fails=["A.npy", f"had {size} bytes and has {size - 9}"],
        env=with_rule(f"mmap 1 truncate {size - 9}", INTERPOSE_FILE="A.npy"))
    assert not os.path.exists("Z.npy") and not parts()


def another_bus_error_ends_the_program_as_ever():
    process = start(*SKETCH, "-", "-o", "Z.npy", stdin=subprocess.PIPE, env=with_rule())
    wait_for(lambda: len(parts()) == 2)
    process.send_signal(signal.SIGBUS)
    ends(process, -signal.SIGBUS)
    npy("A.npy", ROWS)
    process = start(*SKETCH, "A.npy", "-o", "Z.npy", env=with_rule("fsync 1 stop"))
    stopped(process)
    process.send_signal(signal.SIGBUS)
    process.send_signal(signal.SIGCONT)
    said = ends(process, -signal.SIGBUS)
    assert said == "" and os.path.exists("A.npy") and not os.path.exists("Z.npy"), said


def a_json_of_another_matrix_is_named():
    """info describes the matrix all the same; commands that need the text fail with its name."""
    npy("A.npy", ROWS)
    run(*SKETCH, "A.npy", "-o", "Y.npy")
    text = pathlib.Path("Y.npy.json").read_text()
    changed = [row[:] for row in ROWS[:40]]
    for rows, said, words in ((ROWS, text, "40 x 8 float32, but Y.npy holds 2000 x 8 float32"),
                              (changed, text, "CRC-32 is"), (ROWS, '{"title": 1}', "'flashsketch' is not"),
                              (ROWS, "", "cannot be read, or is empty")):
        npy("Y.npy", rows)
        pathlib.Path("Y.npy.json").write_text(said)
        for option in [], ["--json"]:
            done = subprocess.run([FLASHSKETCH, "info", "Y.npy", *option], capture_output=True)
            told = done.stdout.decode()
            assert done.returncode == 0 and not done.stderr, done
            if option:
                told = json.loads(told)
                assert told["rows"] == len(rows) and "sketch" not in told, told
                told = told["note"]
            else:
                assert f"matrix    {len(rows)} x 8\n" in told and "sketch by" not in told, told
                told = told[told.index("note      ") + 10:]
            assert told.startswith("Y.npy.json: ") and words in told, told
        run("add", "Y.npy", "-o", "Z.npy", fails=["flashsketch: Y.npy.json: ", words])
        assert not os.path.exists("Z.npy")


# disks ----------------------------------------------------------------------------------------------------------


def a_full_disk_is_called_by_its_name():
    """A file system of 64 KiB, in a mount namespace of its own; skipped where that is not possible."""
    npy("A.npy", [row * 64 for row in ROWS[:100]])
    os.mkdir("small")
    script = ('mount -t tmpfs -o size=64k none small || exit 77; "$0" sketch -k 90 A.npy -o small/Y.npy; code=$?; '
              'ls small; exit $code')
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script, FLASHSKETCH], capture_output=True)
    if done.returncode == 77 or b"unshare" in done.stderr:
        print("no mount namespace here: a_full_disk_is_called_by_its_name is skipped")
        return
    wanted = ("flashsketch: 'small/Y.npy' could not be written (No space left on device); make room or name another "
              "file\n")
    assert done.returncode == 1 and done.stderr.decode() == wanted and not done.stdout, (done.stderr, done.stdout)


def writing_a_state_takes_at_most_a_twentieth_of_the_time():
    """By a clock on which writing a state takes a second, and any other reading of the clock 0.1 s."""
    npy("A.npy", ROWS * 60)
    run(*SKETCH, "--memory", "4K", "--resume", "--every", 1, "A.npy", "-o", "Z.npy",
        env=with_rule(INTERPOSE_CLOCK="1", INTERPOSE_LOG="log"))
    lines = [line.split(" ") for line in pathlib.Path("log").read_text().splitlines()]
    began = [float(line[0]) for line in lines if line[1:3] == ["fsync", "file"]]
    states = [float(line[0]) for line in lines if line[1] == "rename" and line[3] == "Z.npy.state"]
    pauses = [b - a for a, b in zip(states, began[1:])]
    assert len(states) >= 3 and len(began) > len(states), f"{len(states)} states"
    assert min(pauses[:-1]) >= 20, f"pauses of {pauses} s between states that take 1 s"
    assert max(pauses[:-1]) < 25, f"pauses of {pauses} s between states that take 1 s"


check((a_killed_run_blocks_no_other_with_its_number, what_a_killed_run_left_is_removed_by_any_command_with_that_output,
       what_a_running_process_writes_is_not_removed, a_file_that_is_swept_before_it_is_locked_is_made_again,
       without_locks_nothing_is_removed, a_signal_leaves_nothing, two_renames_are_not_interrupted,
       two_runs_at_once_leave_a_pair, where_a_rename_fails_both_files_are_as_they_were,
       files_are_on_the_disk_before_they_are_in_place, names_may_be_as_long_as_the_folder_allows,
       a_name_that_names_no_file_is_refused, a_file_keeps_its_mode_and_a_new_one_has_that_of_the_umask,
       a_symbolic_link_is_followed_and_a_hard_link_is_not, an_output_that_is_an_input_is_refused,
       what_grass_reads_is_not_replaced, an_input_that_is_made_shorter_gets_its_message,
       another_bus_error_ends_the_program_as_ever, a_json_of_another_matrix_is_named, a_full_disk_is_called_by_its_name,
       writing_a_state_takes_at_most_a_twentieth_of_the_time))
