#!/bin/sh
# map_faults.sh - map.py reports a missing file, a file twice and a file left out, each in a copy of the map that has
# this one fault.
#
# usage: map_faults.sh ROOT WORK_DIR.  Exits 77 where there is no Python.
set -eu
root=$1 work=$2
rm -rf "$work"
mkdir -p "$work"
failed=0
check() { # NAME REPORT SED_PROGRAM
    sed "$3" "$root/src/README.md" >"$work/$1.md"
    status=0
    sh "$root/tests/python.sh" pathlib "$root/tests/docs/map.py" "$root" "$work/$1.md" >"$work/$1.out" || status=$?
    [ $status -ne 77 ] || exit 77
    [ $status -eq 1 ] && grep -qF "$2" "$work/$1.out" && grep -qF ' 1 fault(s)' "$work/$1.out" || {
        echo "$1: the exit status is $status and '$2' is expected; printed:"
        cat "$work/$1.out"
        failed=1
    }
}
check missing 'src/core/no_such.h is in the map and does not exist' 's/^    backend.h  /    backend.h no_such.h  /'
check twice 'src/core/backend.h is in the map twice' 's/^    backend.h  /    backend.h backend.h  /'
check left_out 'src/core/backend.h is not in the map' '/^    backend.h  /d'
exit $failed
