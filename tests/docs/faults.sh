#!/bin/sh
# faults.sh - map.py, glossary.py and bench/report_pages.py report each kind of fault, in a copy of their document that
# has this one fault.
#
# usage: faults.sh ROOT WORK_DIR.  Exits 77 where there is no Python.
set -eu
root=$1 work=$2
rm -rf "$work"
mkdir -p "$work"
failed=0
check() { # PROGRAM DOCUMENT REPORT SED_PROGRAM
    sed "$4" "$root/$2" >"$work/copy.md"
    status=0
    sh "$root/tests/python.sh" pathlib "$root/tests/docs/$1" "$root" "$work/copy.md" >"$work/out" || status=$?
    [ $status -ne 77 ] || exit 77
    if [ $status -ne 1 ] || ! grep -qF "$3" "$work/out" || ! grep -qF ' 1 fault(s)' "$work/out"; then
        echo "$1 after '$4' exits with $status, and must report '$3' alone:"
        cat "$work/out"
        failed=1
    fi
}
map() { check map.py src/README.md "$@"; }
map 'src/core/no_such.h is in the map and does not exist' 's/^    backend.h  /    backend.h no_such.h  /'
map 'src/core/*_such.h is in the map and matches no file' 's/^    backend.h  /    backend.h *_such.h  /'
map 'src/core/no_such/ is in the map and is no folder' 's/^    backend.h  /    no_such\/\n&/'
map 'src/core/backend.h is in the map twice' 's/^    backend.h  /    backend.h backend.h  /'
map 'src/core/backend.h is not in the map' '/^    backend.h  /d'
glossary() { check glossary.py docs/glossary.md "$@"; }
glossary 'adjoint: there is no fs_apply_nothing' 's/fs_apply_adjoint/fs_apply_nothing/'
glossary 'split-K reduction: there is no no_such.cu' 's/split_reduce.cu/no_such.cu/'
glossary 'adjoint is defined twice' 's/^| adjoint .*/&\n&/'
glossary 'adjoint stands behind zebra' 's/^| adjoint .*/| zebra | an animal | |\n&/'
# A number that was typed over one of a record.
mkdir -p "$work/tree/docs"
sed 's/\(from: price-gaussian -->\)[0-9]/\19/' "$root/docs/choosing.md" >"$work/tree/docs/choosing.md"
if python3 "$root/bench/report_pages.py" --check --root "$work/tree" 2>"$work/out" ||
    ! grep -qF 'docs/choosing.md: price-gaussian' "$work/out"; then
    echo "bench/report_pages.py must report the changed price-gaussian:"
    cat "$work/out"
    failed=1
fi
exit $failed
