#!/bin/sh
# lint.sh - checks the sources without running them.
#
# usage: lint.sh [--install] [--fix] [CHECK]...      without CHECK, all of them
#     format      C and CUDA sources have the layout of .clang-format; --fix rewrites them
#     tidy        clang-tidy finds nothing in the C sources of the library, the command and the MPI layer
#     python      ruff and mypy find nothing in the Python sources; --fix lets ruff repair what it can
#     structure   the checks of tests/structure: includes, lengths, words, prose
#
# --install puts the tools of lint.txt into a virtual environment, build/lint, unless they are there.
#
# Exits 1 if a check finds something, and 77 if nothing was found but the tool of a check is missing.  Every version of
# clang-format has a layout of its own, so only version 14, Debian 12's, is used: clang-format-14, or a clang-format of
# that version (lint.txt has it), or the program named by CLANG_FORMAT.
set -u
cd "$(dirname "$0")/.." || exit 1
fix=
if [ "${1-}" = --install ]; then
    shift
    [ -x build/lint/bin/ruff ] ||
        { python3 -m venv build/lint && build/lint/bin/pip install -q numpy -r scripts/lint.txt; } ||
        echo "the tools of scripts/lint.txt could not be installed; checks without a tool are skipped"
fi
if [ "${1-}" = --fix ]; then
    fix=yes
    shift
fi
[ $# -gt 0 ] || set -- structure format python tidy
PATH=$PWD/build/lint/bin:$PATH:$PWD/build/python/venv/bin
processors=$(nproc 2>/dev/null || echo 1)

# missing TOOL HOW: that a check is skipped.
missing() {
    echo "skipped: there is no $1 here ($2)"
    return 77
}

# of_version_14 PROGRAM
of_version_14() { "$1" --version 2>/dev/null | grep -q 'version 14\.'; }

check_format() {
    for program in ${CLANG_FORMAT:+"$CLANG_FORMAT"} clang-format-14 clang-format ''; do
        [ -z "$program" ] || ! of_version_14 "$program" || break
    done
    [ -n "$program" ] || { missing "clang-format 14" "scripts/lint.sh --install gets it"; return; }
    options="--dry-run --Werror"
    [ -z "$fix" ] || options=-i
    # shellcheck disable=SC2086  # several options
    find include src apps cli mpi bench examples tests \
        \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z |
        xargs -0 -n 32 -P "$processors" "$program" $options || {
        echo "scripts/lint.sh --fix format repairs this"
        return 1
    }
}

check_tidy() {
    command -v clang-tidy >/dev/null || { missing clang-tidy "the Debian package clang-tidy has it"; return; }
    commands=build/lint-commands
    cmake -S . -B $commands -DFS_CUDA=OFF -DFS_BUILD_TESTS=OFF -DFS_BUILD_BENCH=OFF --log-level=WARNING >/dev/null ||
        return 1
    # On stderr it counts the warnings that it does not print.
    sed -n "s,.*\"file\": \"$PWD/\(.*\)\".*,\1,p" $commands/compile_commands.json |
        grep -E '^(src/(base|core|tasks|attribution|files)|cli|mpi)/' | sort -u |
        xargs -n 1 -P "$processors" clang-tidy --quiet -p $commands 2>$commands/tidy.log ||
        { grep -v 'warnings\? generated' $commands/tidy.log; return 1; }
}

check_python() {
    command -v ruff >/dev/null || { missing ruff "scripts/lint.sh --install gets it"; return; }
    command -v mypy >/dev/null || { missing mypy "scripts/lint.sh --install gets it"; return; }
    found=0
    ruff check --no-cache --quiet ${fix:+--fix} || found=1
    # The package is typed throughout (pyproject.toml); programs are typed where mypy cannot infer.
    mypy --cache-dir build/mypy --no-error-summary python/flashsketch || found=1
    for folder in scripts bench tests/structure packaging/wheels; do
        mypy --cache-dir build/mypy --config-file= --ignore-missing-imports --check-untyped-defs --no-error-summary \
            "$folder"/*.py || found=1
    done
    return $found
}

check_structure() {
    found=0
    for check in includes lengths words prose; do python3 -B tests/structure/$check.py || found=1; done
    return $found
}

result=0
for check; do
    case $check in
    format | tidy | python | structure) ;;
    *)
        echo "usage: lint.sh [--install] [--fix] [format|tidy|python|structure]..." >&2
        exit 2
        ;;
    esac
    echo "== $check"
    check_$check
    case $? in
    0) ;;
    77) [ $result = 1 ] || result=77 ;;
    *) result=1 ;;
    esac
done
exit $result
