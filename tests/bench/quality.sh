#!/bin/sh
# quality.sh FSBENCH - a small grid of `fsbench quality`: the fields of lines, a record that is continued, what is
# refused.
#
# Exits 77 where OpenBLAS is not installed.
set -eu
fsbench=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "quality.sh: $1" >&2
    exit 1
}
# grid RECORD [OPTION]...: the small grid.
grid() {
    record=$1
    shift
    "$fsbench" quality --quiet --threads 2 --record "$record" --part embedding --n 32,32 --k 1.1,4 "$@"
}
# count FILE PATTERN NUMBER: so many lines match.
count() {
    found=$(grep -c -e "$2" "$1") || :
    [ "$found" -eq "$3" ] || fail "$found lines of $1 have '$2', not $3"
}

"$fsbench" quality --help >said
for word in --record --seconds --case --rung scattered flat-four-rounds default dense; do
    grep -q -e "$word" said || fail "the help lacks $word"
done

# All inputs once: two lines of the Gaussian, and finite numbers.  Where fast and default are one S, they are one line.
if ! grid all.jsonl --rung fast,default --seeds 0-1 2>said; then
    grep -q "OpenBLAS is not installed" said && exit 77
    fail "$(cat said)"
fi
count all.jsonl '"what": "gaussian"' 2
inputs=$("$fsbench" quality --help | sed -n '/^inputs, the worst first:/,/^$/p' | sed 1d | wc -w)
[ "$inputs" -ge 40 ] || fail "there are $inputs inputs"
lines=$(grep -c '"what": "embedding"' all.jsonl)
[ $((lines % (2 * inputs))) -eq 0 ] || fail "$lines lines are not a multiple of 2 for each of $inputs inputs"
count all.jsonl '"rungs": "[^"]*default' $((2 * inputs))
count all.jsonl '"error": \[[0-9.e+-]*, [0-9.e+-]*\]' "$lines"
sed -n 's/.*"leverage": \([^,]*\),.*/\1/p' all.jsonl | awk '!($1 > 0 && $1 < 1 + 1e-9) { bad = 1 } END { exit bad }' ||
    fail "a leverage is not from 0 to 1"

# Again, and nothing is measured; more seeds, and only those are; a line that was not finished is measured again.
cp all.jsonl before.jsonl
grid all.jsonl --rung fast,default --seeds 0-1
cmp all.jsonl before.jsonl || fail "a finished record was measured again"
grid part.jsonl --case scattered --rung sjlt4 --seeds 0-1
count part.jsonl '"input"' 2
grid part.jsonl --case scattered --rung sjlt4 --seeds 0-3
count part.jsonl '"seeds": \[2, 3\]' 2
grid whole.jsonl --case scattered --rung sjlt4 --seeds 0-3
for field in error smallest residual; do
    sed -n "s/.*\"$field\": \[\([^]]*\)\].*/\1/p" whole.jsonl | tr -d ' ' | tr ',' '\n' | sort >whole.txt
    sed -n "s/.*\"$field\": \[\([^]]*\)\].*/\1/p" part.jsonl | tr -d ' ' | tr ',' '\n' | sort >part.txt
    cmp whole.txt part.txt || fail "seeds measured apart have another $field"
done
head -c 900 whole.jsonl >cut.jsonl
grid cut.jsonl --case scattered --rung sjlt4 --seeds 0-3 2>said
count cut.jsonl '"seeds": \[0, 1, 2, 3\]' 2

# A name of an input is that input; a part of names is all that have it.
grid some.jsonl --case stride-2,half-runs --rung high --k 4 --seeds 0-0
count some.jsonl '"input": "\(stride-2\|half-runs\)"' 4
grid some.jsonl --case stacked --rung high --k 4 --seeds 0-0
count some.jsonl '"input": "stacked' 8

# No time: no cell.
grid none.jsonl --seconds 1e-9 2>said
count none.jsonl '"input"' 0
grep -q "the time is up" said || fail "a run that ended early says: $(cat said)"

# Tails: a rung, and the SJLT beside it.  The second cell may begin after the time is up.
"$fsbench" quality --quiet --threads 2 --record tails.jsonl --part tails --rung high --seconds 0.001 2>said
[ "$(wc -l <tails.jsonl)" -le 2 ] || fail "cells began after the time was up"
"$fsbench" quality --quiet --threads 2 --record tails.jsonl --part tails --rung high --seconds 1.5 2>said
grep -q '"what": "tail".*"kappa": 2, "s": 8.*"q999": [0-9.]*, "top": [0-9.]*' tails.jsonl || fail "there is no tail"

# A file; some columns of it.
awk 'BEGIN { srand(1); print "%%MatrixMarket matrix array real general"; print 300, 40
    for (i = 0; i < 300 * 40; i++) print rand() - 0.5 }' >tall.mtx
if "$fsbench" quality --quiet --part embedding --n 32 --k 2 --rung default --seeds 0-1 --data file:tall.mtx \
    --record data.jsonl 2>said; then
    count data.jsonl '"input": "data-tall.mtx", "group": "file", "d": 300' 1
    "$fsbench" quality --quiet --part embedding --n 32,64 --k 2 --rung default,high,sjlt4 --seeds 0-1 \
        --data file:tall.mtx --record data.jsonl
    count data.jsonl '"input"' 3 # there are no 64 columns
else
    grep -q "has no readers of files" said || fail "$(cat said)"
fi

# refused MESSAGE COMMAND...: the command fails with the message.
refused() {
    message=$1
    shift
    if "$@" >said 2>&1; then fail "'$*' succeeded"; fi
    grep -q -e "$message" said || fail "'$*' said: $(cat said)"
}
echo 'not a record' >other.jsonl
refused "other.jsonl: line 1 is not a line of 'fsbench quality'" grid other.jsonl
refused "'magic' is not an input" "$fsbench" quality --case magic
refused "'magic' is not a rung" "$fsbench" quality --rung magic
refused "'some' is not embedding, tails or rank" "$fsbench" quality --part some
refused "'33' is not a multiple of 16" "$fsbench" quality --n 33
refused "'1' is not a multiple of n, above 1" "$fsbench" quality --k 1
refused "'3-1' is not FIRST-LAST" "$fsbench" quality --seeds 3-1
refused "seconds above 0" "$fsbench" quality --seconds 0
refused "threads must be from 1 to 64" "$fsbench" quality --threads 65
refused "nowhere/r.jsonl cannot be written" "$fsbench" quality --record nowhere/r.jsonl
