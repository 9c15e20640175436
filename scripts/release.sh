#!/bin/sh
# release.sh - checks that a release can be made, builds all its packages into dist, and prints what a person has to do.
#
# usage: release.sh [--check]      --check: only the checks, which take seconds
#
# It signs nothing and uploads nothing.  What it checks:
#     tree        every change is committed
#     version     VERSION is that of CHANGELOG.md, CITATION.cff, debian/changelog and the recipes of packaging/
#     definition  FSI_DEFINITION_VERSION is that of docs/definition.md; if the last release had another, CHANGELOG.md
#                 has a line about it
#     records     no commit after that of a record in bench/results has changed the hot path that the record is of
# Every problem is printed; with one, the exit code is 1 and nothing is built.
set -eu
cd "$(dirname "$0")/.."
version=$(cat VERSION)
problems=0
problem() { echo "not ready: $*"; problems=$((problems + 1)); }

check_tree() {
    [ -z "$(git status --porcelain)" ] || problem "there are uncommitted changes: git status lists them"
}

# expect FILE FOUND: a file's version is that of VERSION.
expect() { [ "$2" = "$version" ] || problem "$1 is of version '$2', VERSION is $version"; }

check_version() {
    grep -qE "^## \[$version\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md ||
        problem "CHANGELOG.md has no heading '## [$version] - DATE': [Unreleased] becomes it"
    expect CITATION.cff "$(sed -n 's/^version: //p' CITATION.cff)"
    expect debian/changelog "$(sed -n '1s/^flashsketch (\(.*\)-[^-]*) .*/\1/p' debian/changelog)"
    ! head -n 1 debian/changelog | grep -q UNRELEASED || problem "debian/changelog is UNRELEASED: name the distribution"
    expect bindings/r/DESCRIPTION "$(sed -n 's/^Version: //p' bindings/r/DESCRIPTION)"
    for recipe in packaging/conda-forge/recipe.yaml packaging/spack/package.py packaging/vcpkg/vcpkg.json \
        packaging/conan/conanfile.py packaging/yggdrasil/build_tarballs.jl; do
        grep -qF "\"$version\"" "$recipe" || problem "$recipe does not have version \"$version\""
    done
}

check_definition() {
    code=$(sed -n 's/^#define FSI_DEFINITION_VERSION //p' src/def/def.h)
    grep -q "It is definition version $code\." docs/definition.md ||
        problem "src/def/def.h has definition version $code, docs/definition.md another"
    last=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null) || return 0
    before=$(git show "$last:src/def/def.h" | sed -n 's/^#define FSI_DEFINITION_VERSION //p')
    [ "$before" = "$code" ] || grep -qi "definition of S, version $code" CHANGELOG.md ||
        problem "the definition went from version $before ($last) to $code, and CHANGELOG.md has no line about it"
}

# record FILE PATH...: the newest commit of a record is not older than the paths that it measures.
record() {
    file=$1
    shift
    for commit in $(sed -n 's/.*"commit": *"\([0-9a-f]*\).*/\1/p' "$file" | sort -u); do
        git merge-base --is-ancestor "$commit" HEAD 2>/dev/null || continue
        later=$(git rev-list --count "$commit..HEAD" -- "$@")
        [ "${least:-$later}" -lt "$later" ] || least=$later newest=$commit
    done
    [ -n "${least-}" ] || { problem "$file names no commit of this branch"; return 0; }
    [ "$least" -eq 0 ] || problem "$file is of $newest, and commits after it, $least of them, changed $*: measure again"
    unset least
}

check_records() {
    results=bench/results
    for file in "$results"/*/cpu.jsonl; do record "$file" src/cpu src/def; done
    for file in "$results"/*/cuda.jsonl; do record "$file" src/cuda src/def; done
    for file in "$results"/*/solve.jsonl; do record "$file" src/tasks src/cpu; done
    for file in "$results"/*/quality.jsonl; do record "$file" src/def; done
}

# Everything that is published, in dist.
build() {
    rm -rf dist
    mkdir -p dist build/release-packages
    git archive --prefix="flashsketch-$version/" -o "dist/flashsketch-$version.tar.gz" HEAD
    sh scripts/wheels.sh
    work=$PWD/build/release-packages
    rm -rf "$work"
    mkdir -p "$work"
    git archive --prefix="flashsketch-$version/" HEAD | tar -x -C "$work"
    (cd "$work" && tar -czf "flashsketch_$version.orig.tar.gz" --exclude=debian "flashsketch-$version" &&
        cd "flashsketch-$version" && dpkg-buildpackage -us -uc -d) >"$work/debian.log" 2>&1 ||
        { tail -n 40 "$work/debian.log"; exit 1; }
    mkdir dist/debian
    find "$work" -maxdepth 1 -name '*flashsketch*_*' -type f -exec cp {} dist/debian \;
    cmake -S . -B "$work/tarball" -DFS_CUDA=OFF -DFS_BUILD_MPI=OFF -DFS_BUILD_TESTS=OFF -DFS_BUILD_BENCH=OFF >/dev/null
    cmake --build "$work/tarball" >/dev/null
    (cd "$work/tarball" && cpack -B "$work/cpack" >/dev/null)
    cp "$work"/cpack/*.tar.gz dist
    (cd dist && find . -type f ! -name SHA256SUMS | sort | xargs sha256sum >SHA256SUMS)
}

check_tree
check_version
check_definition
check_records
[ $problems -eq 0 ] || { echo "$problems problems: no release of $version can be made"; exit 1; }
echo "a release of $version can be made"
[ "${1-}" != --check ] || exit 0
build
cat <<TEXT

dist/ has the packages of $version, and SHA256SUMS their digests.  What is left for a person:
  1. make test, and make test-device on a GPU: both pass on this commit.
  2. sh tests/packages/gpu.sh on a machine with a GPU, for each plugin; the wheel of the other release of CUDA is built
     by scripts/wheels.sh cuda with that nvcc.
  3. git tag -s v$version, and push it.
  4. Upload the wheels of dist/ with twine: libflashsketch first, then the plugins.
  5. debsign and dput dist/debian/*.changes, or hand the source package to a sponsor.
  6. Put address and digest of the source archive into the recipes of packaging/, and send them to conda-forge, Spack,
     vcpkg, Conan and Yggdrasil (packaging/README.md).
  7. VERSION, CHANGELOG.md and debian/changelog get the next version.
TEXT
