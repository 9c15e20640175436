"""The wheel of libflashsketch: its files, and its functions where only pip has installed it."""

import hashlib
import json
import pathlib
import re
import shutil
import zipfile

import pytest
from conftest import ROOT, VERSION, WHEEL, WORK, outcome, run

MEGABYTE = 10**6
ESTIMATORS = ["FlashSketchProjection(n_components=3)", "FlashLinearRegression()", "FlashRidge()",
              "FlashPCA(n_components=1)", "FlashTruncatedSVD(n_components=1)"]


@pytest.fixture(scope="module")
def archive():
    with zipfile.ZipFile(WHEEL) as file:
        yield file


def test_it_is_small_and_for_old_systems():
    assert WHEEL.stat().st_size <= 10 * MEGABYTE
    assert re.fullmatch(rf"libflashsketch-{VERSION}-py3-none-manylinux_2_28_(x86_64|aarch64)\.whl", WHEEL.name)
    report = (ROOT / "build" / "wheels" / f"{WHEEL.stem}.log").read_text()
    glibc = re.search(r"platform\s+tag:\s+\"manylinux_2_(\d+)_", report)
    assert glibc and int(glibc[1]) <= 28, report


def test_two_builds_in_two_folders_are_the_same_bytes():
    assert WHEEL.read_bytes() == (WORK / "again" / WHEEL.name).read_bytes()


def test_its_files(archive):
    """All of python/flashsketch, two libraries, the command, OpenMP, cJSON, and nothing else."""
    info = f"libflashsketch-{VERSION}"
    python = {str(path.relative_to(ROOT / "python")) for path in (ROOT / "python" / "flashsketch").rglob("*")
              if path.suffix in (".py", ".typed")}
    wanted = {re.escape(name) for name in python} | {
        r"flashsketch/libflashsketch\.so", r"flashsketch/libflashsketch_files\.so", "flashsketch/bin/flashsketch",
        r"flashsketch/libgomp-[0-9a-f]+\.so\.1\.0\.0", r"libflashsketch\.libs/libcjson-[0-9a-f]+\.so\.[\d.]+",
        rf"{info}\.data/scripts/flashsketch", rf"{info}\.dist-info/sboms/libflashsketch\.cdx\.json",
        *(rf"{info}\.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE",
                                                    r"licenses/libgomp\.txt", r"licenses/libcjson\.txt"))}
    names = archive.namelist()
    strange = [name for name in names if not any(re.fullmatch(pattern, name) for pattern in wanted)]
    missing = [pattern for pattern in wanted if not any(re.fullmatch(pattern, name) for name in names)]
    assert not strange and not missing, (strange, missing)


def test_its_list_of_what_it_bundles(archive):
    sbom = json.loads(archive.read(f"libflashsketch-{VERSION}.dist-info/sboms/libflashsketch.cdx.json"))
    assert sbom["bomFormat"] == "CycloneDX" and sbom["metadata"]["component"]["version"] == VERSION
    parts = sbom["components"]
    listed = {part["evidence"]["occurrences"][0]["location"]: part["hashes"][0]["content"] for part in parts}
    inside = {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()
              if ".so" in name and not pathlib.Path(name).name.startswith("libflashsketch")}
    assert listed == inside
    assert all(part["purl"] and part["licenses"] for part in parts)


@pytest.mark.parametrize("library, symbols", [("libflashsketch", "symbols"), ("libflashsketch_files", "symbols_files")])
def test_its_abi(archive, library, symbols, tmp_path):
    (tmp_path / "library.so").write_bytes(archive.read(f"flashsketch/{library}.so"))
    abi = ROOT / "tests" / "abi"
    run("sh", abi / "symbols.sh", tmp_path / "library.so", abi / f"{symbols}.txt")


def test_its_names_and_extras(archive):
    text = archive.read(f"libflashsketch-{VERSION}.dist-info/METADATA").decode()
    assert "\nName: libflashsketch\n" in text and "\nRequires-Dist: scipy-openblas32" in text
    extras = set(re.findall(r"^Provides-Extra: (.*)$", text, re.MULTILINE))
    assert {"cuda12", "cuda13", "torch", "sklearn", "dask", "scipy"} <= extras


def test_the_quick_start_of_readme(python, bare, tmp_path):
    program = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    assert run(python, "-c", program, env=bare, cwd=tmp_path).split("\n")[:2] == ["1.0", "[1. 1. 1.]"]


def test_the_command(python, bare, tmp_path):
    command = python.parent / "flashsketch"
    text = run(command, "--version", env=bare)
    assert text == run(python, "-m", "flashsketch", "--version", env=bare)
    assert text.startswith(f"flashsketch {VERSION}, ")
    # The shell session of README: what it shows is what the command prints.
    session = re.search(r"^```console\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[1]
    lines = [line[2:] for line in session.splitlines() if line.startswith("$ ")]
    environment = {**bare, "PATH": f"{command.parent}:{bare['PATH']}"}
    told = run("/bin/sh", "-c", "\n".join(lines), env=environment, cwd=tmp_path)
    assert told.rstrip().endswith(session.split("flashsketch info Y.npy\n")[1].rstrip()), told


def test_the_command_is_found_through_a_link(python, bare, tmp_path):
    """pipx and uv link to the script from another folder."""
    (tmp_path / "flashsketch").symlink_to(python.parent / "flashsketch")
    assert run(tmp_path / "flashsketch", "--version", env=bare).startswith("flashsketch ")


def test_the_command_knows_s(python, bare):
    assert "98 of 98 digests, 56 of 56 products are right" in run(python, "-m", "flashsketch", "check", env=bare)


def test_every_task_works(python, bare):
    """With the OpenBLAS of scipy-openblas32, wherever the machine has another, and one OpenMP."""
    told = run(python, "-c", """
import flashsketch as fs, numpy as np
A = np.random.default_rng(0).standard_normal((3000, 20)); x = np.arange(20.0); b = A @ x
close = lambda p, q, bound=1e-9: np.abs(np.asarray(p) - q).max() < bound
S = fs.Sketch(k=400, d=3000, seed=1)
assert close(fs.lstsq(A, b).x, x) and close(fs.solve(S, A, b).x, x) and close(fs.ridge(S, A, b, 1e-12).x, x)
assert close(np.abs(fs.qr(A).R), np.abs(np.linalg.qr(A)[1])) and close(fs.svd(A).s, np.linalg.svd(A)[1])
assert close(fs.leverage(A, exact=True).scores, (np.linalg.qr(A)[0] ** 2).sum(axis=1))
assert fs.pca(A, 2) and fs.gram(S, A) and 0 < fs.ose(S, A).error < 1
mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print([name for name in mapped if name.endswith("libscipy_openblas.so")])
print([name for name in mapped if "libopenblas" in name])
print([name for name in mapped if "libgomp" in name])
""", env=bare).splitlines()
    assert "scipy_openblas32/lib" in told[0] and told[1] == "[]"
    assert told[2].count("libgomp") == 1 and "flashsketch/libgomp" in told[2]


def test_nothing_of_cuda_is_touched(python, bare):
    """Neither the import nor a product on a CPU opens or looks for a file of CUDA: what the loader reports has none."""
    program = "import flashsketch as fs, numpy as np; fs.Sketch(k=9, d=99) @ np.ones((99, 2))"
    told = outcome(python, "-c", program, env={**bare, "LD_DEBUG": "files,libs"})
    assert told.returncode == 0 and "libflashsketch.so" in told.stderr
    files = {file.split("/")[-1] for file in re.findall(r"file=(\S+)", told.stderr)}
    assert "libflashsketch.so" in files and not [file for file in files if re.search("cuda|cublas|cusolver|nccl", file)]


def test_the_plugin_is_found_beside_the_package(python, bare):
    """Where libflashsketch-cuda13 puts it; without a GPU its message is that of cudart, not of the loader."""
    made = sorted((ROOT / "dist").glob("libflashsketch_cuda13-*.whl"))
    built = ROOT / "build" / "release" / "src" / "cuda" / "libflashsketch_cuda.so"
    packages = next((python.parent.parent / "lib").glob("python3*/site-packages"))
    folder = packages / "flashsketch_cuda13"
    if made:
        run(python, "-m", "pip", "install", "-q", "--no-deps", made[0], env=bare)
    elif built.exists():
        folder.mkdir()
        shutil.copy(built, folder)
    else:
        pytest.skip("there is no CUDA plugin: neither dist nor build/release has one")
    told = run(python, "-m", "flashsketch", "info", env={**bare, "CUDA_VISIBLE_DEVICES": ""})
    shutil.rmtree(folder)
    assert "gpu       none (the CUDA backend found no GPU: " in told, told


def test_the_import_brings_numpy_alone(python, bare):
    """An import is quick because of what it leaves to calls that need it (docs/install.md has the times)."""
    told = run(python, "-c", "import sys, flashsketch; print(*sys.modules)", env=bare).split()
    assert "numpy" in told
    assert not {"torch", "scipy", "sklearn", "dask", "cupy", "jax", "importlib.metadata"} & set(told)


def test_the_placeholder_is_reported(python, bare, tmp_path):
    """pip's own flashsketch 0.0.3, before and after libflashsketch: both share the folder flashsketch."""
    target, pip = tmp_path / "target", [python, "-m", "pip", "-q", "--no-input"]
    run(*pip, "download", "--no-deps", "-d", tmp_path, "flashsketch==0.0.3", env=bare)
    placeholder, there = next(tmp_path.glob("flashsketch-*.whl")), {**bare, "PYTHONPATH": str(target)}
    install = [*pip, "install", "--no-deps", "--upgrade", "--target", target]
    run(*install, placeholder, env=bare)
    for wheel in (WHEEL, placeholder):  # each overwrites the other's files
        with zipfile.ZipFile(wheel) as file:
            file.extractall(target)
        told = outcome(python, "-c", "import flashsketch", env=there, cwd=tmp_path)
        assert "pip uninstall -y flashsketch" in told.stderr, told.stderr
        assert told.returncode == (wheel is placeholder), told.stderr


def test_scikit_learns_checks(python, bare):
    run(python, "-m", "pip", "install", "-q", "--only-binary", ":all:", f"{WHEEL}[sklearn]", env=bare)
    told = run(python, "-W", "ignore", "-c", f"""
from sklearn.utils.estimator_checks import check_estimator
from flashsketch.sklearn import *
for estimator in {ESTIMATORS}:
    check_estimator(eval(estimator), on_skip=None)
    print(estimator)
""", env=bare, timeout=600)
    assert told.splitlines() == ESTIMATORS


@pytest.mark.parametrize("major", [12, 13])
def test_the_wheel_of_the_plugin(major, tmp_path):
    made = sorted((ROOT / "dist").glob(f"libflashsketch_cuda{major}-*.whl"))
    if not made:
        pytest.skip(f"dist has no wheel of the CUDA {major} plugin: `make wheels` makes it with nvcc {major}")
    assert made[0].stat().st_size <= 60 * MEGABYTE
    with zipfile.ZipFile(made[0]) as file:
        folder, info = f"flashsketch_cuda{major}", f"libflashsketch_cuda{major}-{VERSION}.dist-info"
        inside = {name for name in file.namelist() if not name.startswith((info, f"{folder}/libgomp-"))}
        assert inside == {f"{folder}/libflashsketch_cuda.so", f"{folder}/libflashsketch_grass_cuda.so"}
        assert f"Requires-Dist: libflashsketch=={VERSION}" in file.read(f"{info}/METADATA").decode()
        assert f"{info}/licenses/cudart.txt" in file.namelist()
        file.extractall(tmp_path)
    dynamic = run("readelf", "-d", tmp_path / folder / "libflashsketch_cuda.so")
    for place in ("nvidia/cu13/lib", "nvidia/cublas/lib", "nvidia/cusolver/lib", "nvidia/nccl/lib"):
        assert f"$ORIGIN/../{place}" in dynamic  # where NVIDIA's packages have what solvers need


