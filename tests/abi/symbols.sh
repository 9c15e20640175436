#!/bin/sh
# symbols.sh LIBRARY LIST - compares the names a shared library exports with a sorted list; exits 77 without nm.
#
# To take a change of the interface into the list: sh symbols.sh LIBRARY LIST --write.  A name that leaves the list
# breaks programs that are already built, so it needs a new SOVERSION.
set -eu
library=$1 list=$2
command -v nm >/dev/null || { echo "abi.symbols: no nm here"; exit 77; }
# Sanitizers export markers of their own, which begin with two underscores.
exported=$(nm -D --defined-only "$library" | awk '$3 !~ /^__/ { print $3 }' | LC_ALL=C sort)
if [ "${3:-}" = --write ]; then
    echo "$exported" >"$list"
fi
if [ "$exported" != "$(cat "$list")" ]; then
    echo "exported names (>) differ from $list (<):"
    echo "$exported" | diff "$list" - || true
    exit 1
fi
if stray=$(echo "$exported" | grep -v '^fs_'); then
    echo "names that do not begin with fs_: $stray"
    exit 1
fi
echo "$(echo "$exported" | wc -l) names, all in the list"
