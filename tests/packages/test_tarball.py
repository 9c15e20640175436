"""The tarball that cpack makes: unpacked anywhere, pkg-config and find_package find the library in it."""

import os

from conftest import ROOT, VERSION, libraries, run

EXAMPLE = ROOT / "examples" / "01_sketch.c"


def test_pkg_config_and_the_soname(prefix, tmp_path):
    where = {**os.environ, "PKG_CONFIG_PATH": str(libraries(prefix) / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "flashsketch", env=where).split()
    run("cc", "-std=c11", EXAMPLE, *flags, "-lm", "-o", tmp_path / "program")
    there = {**os.environ, "LD_LIBRARY_PATH": str(libraries(prefix))}
    assert run(tmp_path / "program", env=there)
    run("sh", ROOT / "tests" / "packages" / "soname.sh", tmp_path / "program", env=there)


def test_find_package(prefix, tmp_path):
    run("cmake", "-S", ROOT / "tests" / "install" / "consumer", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DEXAMPLE={EXAMPLE}", "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF")
    run("cmake", "--build", tmp_path)
    assert run(tmp_path / "consumer")


def test_the_command(prefix):
    assert run(prefix / "bin" / "flashsketch", "version").startswith(f"flashsketch {VERSION}, ")
