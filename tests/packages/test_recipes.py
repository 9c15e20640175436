"""The recipes of packaging/, as far as they run without the package managers' networks, and scripts/release.sh."""

import ast
import json
import os
import re
import shutil

import pytest
from conftest import ROOT, VERSION, outcome, run

RECIPES = ROOT / "packaging"


def test_vcpkgs_manifest_names_its_features():
    manifest = json.loads((RECIPES / "vcpkg" / "vcpkg.json").read_text())
    port = (RECIPES / "vcpkg" / "portfile.cmake").read_text()
    assert manifest["version"] == VERSION
    assert all(f"FEATURES {name} " in port for name in manifest["features"])


def options_of_the_build():
    """What CMakeLists.txt declares: a recipe that sets another option sets nothing."""
    text = (ROOT / "CMakeLists.txt").read_text()
    return {line.split("(")[1].split()[0] for line in text.splitlines() if line.startswith(("option(FS_", "set(FS_"))}


@pytest.mark.parametrize("recipe", ["conan/conanfile.py", "spack/package.py", "vcpkg/portfile.cmake",
                                    "conda-forge/recipe.yaml", "yggdrasil/build_tarballs.jl"])
def test_a_recipe_sets_options_that_exist(recipe):
    text = (RECIPES / recipe).read_text()
    if recipe.endswith(".py"):
        ast.parse(text)
    named = set(re.findall(r"FS_[A-Z_]*[A-Z]", text)) - {"FS_BUILD"}
    assert named and named <= options_of_the_build(), named - options_of_the_build()


def test_condas_recipe_is_yaml():
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((RECIPES / "conda-forge" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == VERSION and recipe["requirements"]["run"]


def test_conan_creates_the_package(tmp_path):
    if not shutil.which("conan"):
        pytest.skip("there is no Conan here")
    there = {**os.environ, "CONAN_HOME": str(tmp_path)}
    run("conan", "profile", "detect", env=there)
    told = outcome("conan", "create", RECIPES / "conan", "--no-remote", "--test-folder", "", env=there, timeout=600)
    assert told.returncode == 0, told.stderr[-3000:]
    # The program of another project is built outside of the sources.
    shutil.copytree(RECIPES / "conan" / "test_package", tmp_path / "a" / "b" / "c")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    told = outcome("conan", "test", tmp_path / "a" / "b" / "c", f"flashsketch/{VERSION}", "--no-remote", env=there)
    assert told.returncode == 0, told.stderr[-3000:]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A checkout of the last commit, to plant mistakes in."""
    folder = tmp_path_factory.mktemp("clone") / "flashsketch"
    if outcome("git", "-C", ROOT, "rev-parse", "HEAD").returncode:
        pytest.skip("this is no checkout")
    run("git", "clone", "-q", "--shared", ROOT, folder)
    return folder


def test_release_names_what_is_not_ready(clone):
    (clone / "VERSION").write_text("9.9.9\n")
    (clone / "docs" / "definition.md").write_text("It is definition version 99.\n")
    told = outcome("sh", clone / "scripts" / "release.sh", "--check")
    assert told.returncode == 1
    for problem in ("there are uncommitted changes", "CITATION.cff is of version '0.1.0', VERSION is 9.9.9",
                    "CHANGELOG.md has no heading '## [9.9.9]", "packaging/conan/conanfile.py does not have version",
                    "src/def/def.h has definition version"):
        assert f"not ready: {problem}" in told.stdout, told.stdout


def test_release_finds_a_record_that_is_older_than_the_hot_path(clone):
    run("git", "-C", clone, "reset", "-q", "--hard")
    def problems():
        told = outcome("sh", clone / "scripts" / "release.sh", "--check")
        return [line for line in told.stdout.splitlines() if "bench/results" in line]
    head = run("git", "-C", clone, "rev-parse", "HEAD").strip()[:9]
    for record in (clone / "bench" / "results").glob("*/cpu.jsonl"):
        record.write_text(f'{{"commit": "{head}"}}\n')
    assert not [line for line in problems() if "cpu.jsonl" in line]
    (clone / "src" / "cpu" / "table.c").write_text("\n")
    run("git", "-C", clone, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qam", "cpu: change a kernel")
    expected = f"is of {head}, and commits after it, 1 of them, changed src/cpu"
    assert any(expected in line for line in problems()), problems()
