#!/bin/sh
# test_packages.sh - builds the packages as a release does, installs them where nothing else is, and tests what is there.
#
# usage: test_packages.sh REPORT      REPORT: where pytest's JUnit report goes
#
# The wheel of this machine is built twice, from two folders, and must be the same bytes; tests/packages/test_wheel.py
# installs it into an environment without a compiler.  debian/ is built, checked with lintian and installed in a copy of
# this system (test_debian.py); the tarball of CPack and the bindings are tested with what was built (test_tarball.py,
# test_bindings.py), the recipes and the checks of a release as far as they can be run here (test_recipes.py).  Wheels
# of the CUDA plugin that lie in dist/ are looked into; tests/packages/gpu.sh installs one on a machine with a GPU.
# JOBS limits the compilers.  Exits with 77 and a message where pip cannot reach its index.
set -eu
report=$1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/build/packages
version=$(cat "$root/VERSION")
[ -z "${JOBS-}" ] || export CMAKE_BUILD_PARALLEL_LEVEL="$JOBS"
export PIP_DISABLE_PIP_VERSION_CHECK=1 OMP_WAIT_POLICY=passive
unset FLASHSKETCH_LIBRARY PYTHONPATH || true

rm -rf "$work"
mkdir -p "$work/debian"
python3 -m venv "$work/venv" >"$work/venv.log" 2>&1 ||
    { echo "python3 has no venv: the Debian package python3-venv has it"; exit 77; }
"$work/venv/bin/pip" install -q pytest pyyaml >"$work/venv.log" 2>&1 ||
    { tail -n 2 "$work/venv.log"; echo "pip could not install pytest; is there a network?"; exit 77; }
if [ ! -x "$root/build/release/cli/flashsketch" ] || [ ! -f "$root/build/release/CPackConfig.cmake" ]; then
    (cd "$root" && cmake --preset release -DFS_CUDA=OFF -DFS_BUILD_TESTS=OFF -DFS_BUILD_BENCH=OFF --log-level=WARNING &&
        cmake --build --preset release ${JOBS:+-j "$JOBS"})
fi

# The sources as git would give them: tracked files, and new ones that it does not ignore.  A source archive has no git.
sources() {
    git ls-files -co --exclude-standard 2>/dev/null ||
        find . -path ./build -prune -o -path ./dist -prune -o -type f -print
}
copy=$work/debian/flashsketch-$version
mkdir -p "$copy"
(cd "$root" && sources | while read -r file; do [ ! -f "$file" ] || echo "$file"; done | tar -cf - -T -) |
    tar -xf - -C "$copy"

DIST=$work/dist sh "$root/scripts/wheels.sh" "$(uname -m)"
mkdir -p "$copy/build/wheels"
cp -r "$root/build/wheels/tools.done" "$copy/build/wheels"
ln -s "$root/build/wheels/venv" "$copy/build/wheels/venv"
DIST=$work/again sh "$copy/scripts/wheels.sh" "$(uname -m)"
rm -rf "$copy/build"

if command -v dh >/dev/null && command -v dpkg-buildpackage >/dev/null; then
    (cd "$work/debian" && tar -czf "flashsketch_$version.orig.tar.gz" --exclude=debian "flashsketch-$version")
    (cd "$copy" && dpkg-buildpackage -us -uc -d -b ${JOBS:+-j"$JOBS"}) >"$work/debian.log" 2>&1 ||
        { tail -n 40 "$work/debian.log"; exit 1; }
fi
(cd "$root/build/release" && cpack -B "$work/tarball" >"$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; exit 1; }

exec "$work/venv/bin/python" -B -m pytest -c "$root/pyproject.toml" --rootdir "$root" -p no:cacheprovider -q -rs \
    --junitxml "$report" "$root/tests/packages"
