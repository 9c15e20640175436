#!/bin/sh
# api.sh - docs/api.md is what scripts/api.py makes from the headers now, and has a heading for every public function.
#
# usage: api.sh ROOT.  Exits 77 where there is no Python.
set -eu
root=$1
sh "$root/tests/python.sh" difflib "$root/scripts/api.py" --check
missing=0 count=0
while read -r symbol; do
    count=$((count + 1))
    grep -Eq "^### (.*, )?$symbol(,|\$)" "$root/docs/api.md" || { echo "docs/api.md does not explain $symbol"; missing=1; }
done <<SYMBOLS
$(cat "$root"/tests/abi/symbols*.txt)
SYMBOLS
echo "docs/api.md has $count functions"
[ "$count" -gt 0 ] && exit $missing
