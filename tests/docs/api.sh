#!/bin/sh
# api.sh - the pages of the C interface are what scripts/api.py makes from the headers now, and have a heading for every
# public function.
#
# usage: api.sh ROOT.  Exits 77 where there is no Python.
set -eu
root=$1
sh "$root/tests/python.sh" difflib "$root/scripts/api.py" --check
missing=0
# explained PAGE SYMBOLS
explained() {
    count=0
    while read -r symbol; do
        count=$((count + 1))
        grep -Eq "^### (.*, )?$symbol(,|\$)" "$root/docs/$1" || { echo "docs/$1 does not explain $symbol"; missing=1; }
    done <"$root/tests/abi/$2"
    echo "docs/$1 has $count functions"
    [ "$count" -gt 0 ] || missing=1
}
explained api.md symbols.txt
explained api_mpi.md symbols_mpi.txt
exit $missing
