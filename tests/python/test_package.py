"""The package as it is installed: its files, what README and the examples show."""

import ctypes
import doctest
import os
import pathlib
import re
import subprocess
import sys

import pytest

import flashsketch as fs

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(fs.__file__).parent


def run(*command, timeout=120, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **options)


def test_it_is_the_installed_package_that_is_tested():
    if "FLASHSKETCH_LIBRARY" in os.environ:
        pytest.skip("FLASHSKETCH_LIBRARY is set: the sources are tested, with the library that it names")
    assert ROOT / "python" not in PACKAGE.parents
    assert (PACKAGE / "libflashsketch.so").exists()


def test_the_version_is_the_projects():
    assert fs.__version__ == (ROOT / "VERSION").read_text().strip()


def test_the_soname_is_the_librarys():
    major, minor = fs.__version__.split(".")[:2]
    assert fs._library.SONAME == f"libflashsketch.so.{major if major != '0' else f'0.{minor}'}"


def test_it_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").exists()


def test_mypy_finds_nothing(tmp_path):
    pytest.importorskip("mypy")
    sources = ROOT / "python" / "flashsketch"
    told = run(sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", tmp_path, sources,
               cwd=tmp_path)
    assert told.returncode == 0, told.stdout


def test_ruff_finds_nothing():
    pytest.importorskip("ruff")
    told = run(sys.executable, "-m", "ruff", "check", "--no-cache", "--quiet", ROOT)
    assert told.returncode == 0, told.stdout


def test_a_missing_library_is_an_import_error_with_a_sentence(tmp_path):
    try:
        ctypes.CDLL(fs._library.SONAME)
        pytest.skip("the library is installed where the loader finds it")
    except OSError:
        pass
    for file in PACKAGE.glob("*.py"):
        (tmp_path / "flashsketch").mkdir(exist_ok=True)
        (tmp_path / "flashsketch" / file.name).write_text(file.read_text())
    elsewhere = dict(os.environ, PYTHONPATH=str(tmp_path))
    elsewhere.pop("FLASHSKETCH_LIBRARY", None)
    told = run(sys.executable, "-c", "import flashsketch", cwd=tmp_path, env=elsewhere)
    assert "libflashsketch.so is not beside the Python package" in told.stderr


def test_python_m_is_the_command():
    if not (PACKAGE / "bin" / "flashsketch").exists():
        pytest.skip("the package was built without the command: zlib and cJSON were not found")
    told = run(sys.executable, "-m", "flashsketch", "--version")
    assert told.stdout == f"flashsketch {fs.__version__}, definition of S {fs.definition_version}\n", told.stderr
    told = run(sys.executable, "-m", "flashsketch", "sketch")
    assert told.returncode == 2 and told.stderr.startswith("flashsketch sketch: "), told.stderr


def copy_of_the_package(folder):
    """The Python files in another folder, for changes of them, and an environment in which they are imported."""
    for file in PACKAGE.rglob("*.py"):
        copy = folder / "flashsketch" / file.relative_to(PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(file.read_text())
    library = os.environ.get("FLASHSKETCH_LIBRARY", str(PACKAGE / "libflashsketch.so"))
    return dict(os.environ, PYTHONPATH=str(folder), FLASHSKETCH_LIBRARY=library)


def test_the_placeholder_of_the_same_import_name_is_reported(tmp_path):
    """pip's index has a distribution `flashsketch`, which shares the folder."""
    there = copy_of_the_package(tmp_path)
    told = run(sys.executable, "-c", "import flashsketch", cwd=tmp_path, env=there)
    assert told.returncode == 0 and not told.stderr
    (tmp_path / "flashsketch-0.0.3.dist-info").mkdir()
    told = run(sys.executable, "-c", "import flashsketch; flashsketch.Sketch(k=2, d=9)", cwd=tmp_path, env=there)
    assert told.returncode == 0
    assert "is installed beside libflashsketch" in told.stderr and "pip uninstall -y flashsketch" in told.stderr


def test_the_placeholder_over_this_package_is_an_import_error(tmp_path):
    there = copy_of_the_package(tmp_path)
    (tmp_path / "flashsketch" / "__init__.py").write_text("from .flashsketch import sketch\n")
    (tmp_path / "flashsketch" / "flashsketch.py").write_text("def sketch():\n    pass\n")
    told = run(sys.executable, "-c", "import flashsketch", cwd=tmp_path, env=there)
    assert "ImportError: the placeholder distribution 'flashsketch' has replaced files" in told.stderr
    assert "pip uninstall -y flashsketch" in told.stderr


FLOORS = ["numpy", "rows", "scipy", "tasks", "solvers", "preconditioner", "errors"]


def test_the_oldest_numpy_and_scipy_that_pyproject_allows():
    """Where scripts/test_python.sh made an environment with them and the package."""
    python = os.environ.get("FLASHSKETCH_FLOOR_PYTHON")
    if not python:
        pytest.skip("there is no environment with the oldest NumPy and SciPy: scripts/test_python.sh makes it")
    wanted = re.findall(r"\"(?:numpy|scipy)>=([\d.]+)\"", (ROOT / "pyproject.toml").read_text())
    told = run(python, "-c", "import numpy, scipy; print(numpy.__version__, scipy.__version__)")
    assert told.stdout.split() == wanted, told.stderr
    tests = [ROOT / "tests" / "python" / f"test_{name}.py" for name in FLOORS]
    options = ["-c", ROOT / "pyproject.toml", "-q", "-p", "no:cacheprovider"]
    told = run(python, "-m", "pytest", *options, *tests, timeout=400)
    assert told.returncode == 0 and " passed" in told.stdout, told.stdout


def test_files_of_the_package_safetensors_are_read_by_the_command():
    """ctest has this test, too, but the package is in no Debian package."""
    pytest.importorskip("safetensors")
    command = ROOT / "build" / "release" / "cli" / "flashsketch"
    if not command.exists():
        pytest.skip("there is no build/release/cli/flashsketch: make build makes it")
    told = run(sys.executable, ROOT / "tests" / "cli" / "against_safetensors.py", command)
    assert told.returncode == 0, told.stderr


def pages_with_python():
    """README and the pages of docs with blocks ```python that need nothing from outside: docs/solvers.md begins with an
    A of the reader's, docs/attribution.md with a model, docs/sketches.md with a file (below)."""
    others = {"solvers.md", "attribution.md", "sketches.md"}
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md")]
    return [ROOT / "README.md", *(p for p in sorted(pages) if (p.name not in others or p.parent.name == "guides")
                                  and "\n```python\n" in p.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", pages_with_python(), ids=lambda path: path.stem)
def test_what_a_page_shows_runs(page, tmp_path):
    """All blocks ```python of a page are one program; a line `print(...)  # text` prints that text."""
    program = "".join(re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    for module in re.findall(r"^import (\w+)|^from (\w+)", program, re.MULTILINE):
        if (name := module[0] or module[1]) != "flashsketch":
            pytest.importorskip(name)
    told = run(sys.executable, "-c", program, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    promised = re.findall(r"^print\(.*\)\s+# (.*)$", program, re.MULTILINE)
    assert told.stdout.splitlines() == promised


@pytest.mark.parametrize(
    "page, least", [("docs/tutorial.md", 10), ("docs/attribution.md", 5), ("python/README.md", 2)]
)
def test_what_a_page_shows_works(page, least):
    """All blocks ```pycon of a page are one session, and print what stands there."""
    if page == "docs/attribution.md":
        try:
            fs.attribution.Attributor(3, examples=1, k=2)
        except fs.BackendError as error:
            pytest.skip(f"attribution cannot run here: {error}")
    text = (ROOT / page).read_text(encoding="utf-8")
    # Everything else becomes empty lines, so that a failure names the page's own line.
    session, inside = [], False
    for line in text.splitlines():
        fence = line.startswith("```")
        session.append(line if inside and not fence else "")
        inside = line == "```pycon" if fence else inside
    told = []
    test = doctest.DocTestParser().get_doctest("\n".join(session) + "\n", {}, page, page, 0)
    assert len(test.examples) > least, f"{page} shows hardly any Python"
    failed, _ = doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    assert not failed, "".join(told)


def test_what_a_sketch_says_of_itself_makes_its_s_again(tmp_path):
    """The Python of docs/sketches.md, on the JSON that stands there."""
    text = (ROOT / "docs" / "sketches.md").read_text(encoding="utf-8")
    about, program = (re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
                      for kind in ("json", "python"))
    (tmp_path / "Y.npy.json").write_text(about[0])
    told = run(sys.executable, "-c", program[0], cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert told.stdout == f"{fs.Sketch(k=400, d=10000, seed=7)} [[0, 4000], [7000, 10000]]\n"


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*.py")), ids=lambda path: path.name)
def test_examples_run(example, tmp_path):
    for name in ("torch", "dask"):
        if f"import {name}" in example.read_text():
            pytest.importorskip(name)
    told = run(sys.executable, example, cwd=tmp_path)
    assert told.returncode == 0 and told.stdout, told.stderr
    print(told.stdout)
