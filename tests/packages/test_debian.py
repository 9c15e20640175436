"""The Debian packages: built from debian/, clean for lintian, and installed in a copy of this system."""

import os
import re
import shutil

import pytest
from conftest import ROOT, VERSION, WORK, outcome, run

FOLDER = WORK / "debian"
PACKAGES = ["libflashsketch0.1", "libflashsketch-dev", "flashsketch-bin", "python3-flashsketch"]

if not list(FOLDER.glob("*.deb")):
    pytest.skip("no Debian packages were built: debhelper and dh-python build them", allow_module_level=True)


def package(name):
    return next(FOLDER.glob(f"{name}_{VERSION}-*.deb"))


def files(name):
    """The paths of its files and links."""
    listed = run("dpkg-deb", "--contents", package(name)).splitlines()
    return [line.split(" -> ")[0].split()[-1][1:] for line in listed if not line.startswith("d")]


def test_lintian_finds_nothing():
    if not shutil.which("lintian"):
        pytest.skip("there is no lintian")
    # A bug of Debian to close, which a first upload must name, exists only when there is an upload.
    options = ["--fail-on", "error,warning", "--suppress-tags", "initial-upload-closes-no-bugs", "--allow-root"]
    told = outcome("lintian", *options, next(FOLDER.glob("*.changes")))
    (WORK / "lintian.log").write_text(told.stdout)
    assert told.returncode == 0 and not told.stdout.strip(), told.stdout + told.stderr


def test_each_package_has_its_files():
    libraries = files("libflashsketch0.1")
    assert any(re.fullmatch(rf"/usr/lib/[^/]+/libflashsketch\.so\.{VERSION}", file) for file in libraries)
    assert any(file.endswith("/libflashsketch_files.so.0.1") for file in libraries)
    dev = files("libflashsketch-dev")
    for file in ("include/flashsketch.h", "pkgconfig/flashsketch.pc", "cmake/flashsketch/flashsketch-config.cmake",
                 "/libflashsketch.so", "share/flashsketch/vectors.txt"):
        assert any(name.endswith(file) for name in dev), file
    command = files("flashsketch-bin")
    assert "/usr/bin/flashsketch" in command and "/usr/share/man/man1/flashsketch-lstsq.1.gz" in command
    assert "/usr/share/bash-completion/completions/flashsketch" in command
    assert "/usr/share/zsh/vendor-completions/_flashsketch" in command
    assert "/usr/lib/python3/dist-packages/flashsketch/__init__.py" in files("python3-flashsketch")


def test_they_work_where_they_are_installed():
    """dpkg -i in an overlay of this system: pkg-config, CMake and the loader find the library in /usr, Python the
    package; after the removal nothing is left."""
    if os.geteuid() != 0:
        pytest.skip("only root can install packages")
    script = ROOT / "tests" / "packages" / "debian.sh"
    told = outcome("unshare", "-m", "sh", "-eu", script, ROOT, *map(package, PACKAGES))
    if told.returncode == 77:
        pytest.skip(told.stdout.strip().splitlines()[-1])
    assert told.returncode == 0 and told.stdout.rstrip().endswith("all of it worked"), told.stdout + told.stderr
