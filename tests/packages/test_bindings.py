"""The bindings of bindings/ against the installed library: they need what its packages have, and no more."""

import os
import re
import shutil

import pytest
from conftest import ROOT, libraries, run

BINDINGS = ROOT / "bindings"
FLAGS = ["-lflashsketch"]


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            pytest.skip(f"there is no {tool} here")


@pytest.fixture(scope="module")
def there(prefix):
    """The environment in which pkg-config and the loader find the library."""
    folder = str(libraries(prefix))
    return {**os.environ, "PKG_CONFIG_PATH": f"{folder}/pkgconfig", "LD_LIBRARY_PATH": folder, "OMP_NUM_THREADS": "2"}


@pytest.fixture(scope="module")
def digest(python, bare):
    """Of the sketch that the examples use, by the Python package."""
    program = "import flashsketch as fs; print(f'{fs.Sketch(k=400, d=10000, seed=7).digest():016X}')"
    return run(python, "-c", program, env=bare).strip()


def struct_of_the_headers(name):
    """(size, {member: offset}) of a struct on this processor, from tests/abi/layouts.h."""
    table = (ROOT / "tests" / "abi" / "layouts.h").read_text()
    size = int(re.search(rf"^STRUCT\({name}, (\d+)", table, re.MULTILINE)[1])
    return size, {member: int(at) for member, at in re.findall(rf"^FIELD\({name}, (\w+), (\d+)", table, re.MULTILINE)}


def test_fortran(prefix, there, digest, tmp_path):
    need("gfortran")
    folder = BINDINGS / "fortran"
    run("gfortran", "-Wall", "-Wextra", "-Werror", "-std=f2018", folder / "flashsketch.f90", folder / "example.f90",
        f"-L{libraries(prefix)}", *FLAGS, "-o", tmp_path / "example", cwd=tmp_path)
    told = run(tmp_path / "example", env=there).splitlines()
    assert told[0] == f"digest {digest}" and 0.9 < float(told[1].split()[1]) < 1.1
    assert told[2] == "lstsq  1.000000 2.000000 3.000000"
    assert told[3].startswith("leverage  ") and 19.5 < float(told[3].split()[1]) < 20.5


@pytest.mark.parametrize("name", ["fs_spec", "fs_operand"])
def test_fortrans_sizes_are_those_of_the_headers(name):
    text = (BINDINGS / "fortran" / "flashsketch.f90").read_text()
    assert int(re.search(rf":: {name}\n.*:: size = (\d+)", text)[1]) == struct_of_the_headers(name)[0]


@pytest.mark.parametrize(
    "theirs, ours", [("FsSpec", "fs_spec"), ("FsMatrix", "fs_matrix"), ("FsOperand", "fs_operand")]
)
def test_julias_structs_are_those_of_the_headers(theirs, ours):
    """Member by member, as Julia lays out a struct: each at the next multiple of its size."""
    text = (BINDINGS / "julia" / "FlashSketch.jl").read_text()
    body = re.search(rf"^struct {theirs}\n(.*?)^end", text, re.MULTILINE | re.DOTALL)[1]
    members = re.findall(r"(\w+)::([\w{}]+)", body)
    at, offsets = 0, {}
    for member, kind in members:
        size = 4 if kind == "Cint" else 8
        at = (at + size - 1) // size * size
        offsets[member] = at
        at += size
    assert ((at + 7) // 8 * 8, offsets) == struct_of_the_headers(ours)


def test_julia(prefix, there, digest):
    need("julia")
    told = run("julia", "-e", f"""
        include("{BINDINGS}/julia/FlashSketch.jl"); using .FlashSketch
        A = rand(10000, 20); x = collect(1.0:20)
        S = Sketch(400, 10000; seed = 7)
        @assert size(S * A) == (400, 20) && isapprox(lstsq(A, A * x), x) && isapprox(sum(leverage(A)), 20, rtol = 0.1)
        println(uppercase(string(digest(S), base = 16, pad = 16)))""",
        env={**there, "FLASHSKETCH_LIBRARY": str(libraries(prefix) / "libflashsketch.so")})
    assert told.strip() == digest


def test_r(there, tmp_path):
    need("Rscript", "pkg-config")
    shutil.copytree(BINDINGS / "r", tmp_path / "r")
    (tmp_path / "library").mkdir()
    run("R", "CMD", "INSTALL", "--no-docs", "-l", tmp_path / "library", tmp_path / "r", env=there)
    told = run("Rscript", BINDINGS / "r" / "tests" / "example.R", env={**there, "R_LIBS": str(tmp_path / "library")})
    assert told.startswith("length ") and told.endswith("done\n")


def test_rust(prefix, there, digest, tmp_path):
    """bindgen reads every header, its own tests of their layouts pass, and a program works."""
    need("bindgen", "rustc")
    include = prefix / "include"
    headers = [path.name for path in sorted(include.glob("flashsketch*.h")) if path.name != "flashsketch_mpi.h"]
    (tmp_path / "all.h").write_text("".join(f"#include <{name}>\n" for name in headers))
    run("bindgen", tmp_path / "all.h", "-o", tmp_path / "bindings.rs", "--", f"-I{include}")
    environment = {**there, "BINDINGS": str(tmp_path)}
    options = [f"-L{libraries(prefix)}", *FLAGS, "-Adeprecated", "-Awarnings"]
    run("rustc", BINDINGS / "rust" / "example.rs", *options, "-o", tmp_path / "example", env=environment)
    told = run(tmp_path / "example", env=there).splitlines()
    assert told[0] == f"digest {digest}" and 0.9 < float(told[1].split()[1]) < 1.1
    options += ["-lflashsketch_files", "--test", "-o", tmp_path / "layouts"]
    run("rustc", BINDINGS / "rust" / "example.rs", *options, env=environment)
    assert re.search(r"test result: ok\. [1-9]\d* passed; 0 failed", run(tmp_path / "layouts", env=there))
