#!/bin/sh
# randnla.sh FSBENCH - a small grid of `fsbench randnla`: a record is continued exactly, a broken one is refused.
set -eu
fsbench=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "randnla.sh: $1" >&2
    exit 1
}
# grid RECORD [OPTION]...: the small grid.
grid() {
    record=$1
    shift
    "$fsbench" randnla --quiet --record "$record" --shape 2048x32 --data gaussian,hot --reps 3 \
        --method flashsketch-1-4,contiguous-1-4,algorithm1-1-4,sjlt-sparse-4,sjlt-scatter-4,srht "$@"
}
# errors RECORD: its errors, in an order of their own; a line of some seeds is as good as several.
errors() { grep '"what": "error"' "$1" | sort; }

# The whole at once; again, and nothing is measured.
grid whole.jsonl --k 64,256 --seeds 0-1
cp whole.jsonl before.jsonl
grid whole.jsonl --k 64,256 --seeds 0-1
cmp whole.jsonl before.jsonl || fail "a finished record was measured again"
cells=$(grep -c '"what": "error"' whole.jsonl)
[ "$cells" -eq $((5 * 2 * 2 * 4)) ] || fail "$cells lines of errors; 5 methods, 2 k, 2 matrices and 4 tasks make 80"
cells=$(grep -c '"what": "time"' whole.jsonl)
[ "$cells" -eq $((6 * 2 * 3)) ] || fail "$cells lines of times; 6 methods, 2 k and 3 times make 36"

# In parts: the same errors to the last digit.
grid parts.jsonl --k 64 --seeds 0-1 --task gram
grid parts.jsonl --k 64,256 --seeds 0-1
errors whole.jsonl >a
errors parts.jsonl >b
cmp a b || fail "a record made in parts has other errors"

# Cut in the middle of a line: that line is measured again, and nothing else.
lines=$(wc -l <whole.jsonl)
bytes=$(head -n $((lines / 2)) whole.jsonl | wc -c)
head -c $((bytes + 40)) whole.jsonl >cut.jsonl
grid cut.jsonl --k 64,256 --seeds 0-1 2>said
grep -q "line $((lines / 2 + 1)) was not finished" said || fail "nothing was said of the unfinished line"
errors cut.jsonl >b
cmp a b || fail "an interrupted record was continued with other errors"
[ "$(wc -l <cut.jsonl)" -eq "$lines" ] || fail "an interrupted record has $(wc -l <cut.jsonl) lines, not $lines"

# More seeds: only the new ones.
grid whole.jsonl --k 64 --seeds 0-2 --task gram
[ "$(grep -c '"seeds": \[2\]' whole.jsonl)" -eq 10 ] || fail "a third seed did not make lines of its own"

# refused MESSAGE COMMAND...: the command fails with the message.
refused() {
    message=$1
    shift
    if "$@" >said 2>&1; then fail "'$*' succeeded"; fi
    grep -q "$message" said || fail "'$*' said: $(cat said)"
}
sed '3s/: 2048,/: 20,48,/' before.jsonl >broken.jsonl
cp broken.jsonl kept.jsonl
refused "broken.jsonl: line 3 is not a line of 'fsbench randnla'" grid broken.jsonl --k 64
cmp broken.jsonl kept.jsonl || fail "a broken record was changed"
echo 'not a record' >other.jsonl
refused "other.jsonl: line 1 is not a line" grid other.jsonl --k 64
refused "there is no data 'gausian'; it is one of gaussian lowrank" "$fsbench" randnla --data gausian
refused "data 'spal' needs a path" "$fsbench" randnla --data spal
refused "absent.mtx" "$fsbench" randnla --data file:absent.mtx
refused "'magic' is not a method" "$fsbench" randnla --method magic
refused "'norm' is not sketch, gram, ose, ridge or solve" "$fsbench" randnla --task norm
refused "'100' is not ROWSxCOLUMNS" "$fsbench" randnla --shape 100
refused "'5-2' is not FIRST-LAST" "$fsbench" randnla --seeds 5-2
refused "nowhere/r.jsonl cannot be written" "$fsbench" randnla --record nowhere/r.jsonl --data gaussian
