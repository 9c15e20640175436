"""What the tests of the packages share: where scripts/test_packages.sh put them, and running programs."""

import os
import pathlib
import shutil
import subprocess
import tarfile
import time
import venv

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "packages"
VERSION = (ROOT / "VERSION").read_text().strip()
WHEEL = next((WORK / "dist").glob("libflashsketch-*.whl"), None)


def outcome(*command, timeout=300, **options):
    """Runs a program: its exit code and what it printed."""
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=timeout, **options)


def run(*command, **options):
    """Runs a program and returns its stdout; a failure of it fails the test, with what it printed."""
    done = outcome(*command, **options)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def bare(tmp_path_factory):
    """An environment for programs: a PATH with what a start script needs, and no compiler, make or CMake."""
    folder = tmp_path_factory.mktemp("path")
    for tool in ("sh", "readlink", "dirname", "seq", "echo", "cat"):
        for system in ("/bin", "/usr/bin"):
            if os.path.exists(f"{system}/{tool}") and not (folder / tool).exists():
                (folder / tool).symlink_to(f"{system}/{tool}")
    return {"PATH": str(folder), "HOME": str(folder), "OMP_WAIT_POLICY": "passive", "LANG": "C.UTF-8",
            **{name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "SSL_", "REQUESTS_"))}}


@pytest.fixture(scope="session")
def python(tmp_path_factory, bare):
    """An environment in which pip, with no compiler on the PATH, has installed the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    begin = time.perf_counter()
    venv.create(folder, with_pip=True)
    program = folder / "bin" / "python"
    for name in ("cc", "gcc", "clang", "c++", "make", "cmake", "ninja", "nvcc"):
        assert not shutil.which(name, path=bare["PATH"]), f"{name} is on the PATH"
    run(program, "-m", "pip", "install", "-q", "--only-binary", ":all:", WHEEL, env=bare)
    quick_start = "import flashsketch as fs, numpy as np; fs.Sketch(k=9, d=99) @ np.ones((99, 2))"
    run(program, "-c", quick_start, env=bare)
    print(f"from an empty environment to the first sketch: {time.perf_counter() - begin:.1f} s")
    return program


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """The tarball of CPack, unpacked."""
    made = next((WORK / "tarball").glob(f"flashsketch-{VERSION}-*.tar.gz"))
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(made) as file:
        file.extractall(folder, filter="tar") if hasattr(tarfile, "tar_filter") else file.extractall(folder)
    return next(folder.iterdir())


def libraries(prefix):
    """The folder of the libraries in it: lib, lib64 or lib/TRIPLET."""
    return next(prefix.rglob("libflashsketch.so")).parent
