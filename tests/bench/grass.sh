#!/bin/sh
# grass.sh FSBENCH - a small grid of `fsbench grass`: projections are right, a record is continued, options have their
# effect.
set -eu
fsbench=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "grass.sh: $1" >&2
    exit 1
}
# grid RECORD [OPTION]...: the small grid.  5003 coordinates are no multiple of blocks or lines, 24 gradients no
# whole tile; 4 k is more than all coordinates at the last k.  They are those of a perceptron.
grid() {
    record=$1
    shift
    "$fsbench" grass --quiet --record "$record" --batch 24x5003 --layers 96,50,3 --k 64,128,1280 --reps 3 \
        --method flashsketch,contiguous,interleaved,rows,sjlt,blockrow,srht,gaussian \
        --method sjlt-scatter,algorithm1,sjlt-sparse "$@"
}

grid whole.jsonl
lines=$(wc -l <whole.jsonl)
[ "$lines" -eq $((4 * 3 * 11)) ] || fail "$lines lines; 4 cases, 3 k and 11 methods make 132"
sed 's/.*"cell": "\([^"]*\)".* "error": \([^,]*\),.*/\1 \2/' whole.jsonl >errors
wrong=$(awk '!($2 > 0 && $2 < 1e-5)' errors)
[ -z "$wrong" ] || fail "these have errors: $wrong"
[ "$(grep -c '"mask": 512,' whole.jsonl)" -eq 33 ] || fail "masks of k = 128 do not keep 512 coordinates"
[ "$(grep -c '"mask": 5000, "run": 8,' whole.jsonl)" -eq 11 ] || fail "runs of k = 1280 do not keep 5000 coordinates"
[ "$(grep -c '"mask": 5003,' whole.jsonl)" -eq 22 ] || fail "masks of k = 1280 do not keep all 5003 coordinates"
[ "$(grep -c '"gather_ms"' whole.jsonl)" -eq 27 ] || fail "3 peers at 3 k gather in three cases, others do not"
[ "$(grep -c '"transpose_ms"' whole.jsonl)" -eq 36 ] || fail "3 peers at 3 k transpose in every case, others do not"
[ "$(grep -c '"from": "layers"' whole.jsonl)" -eq 24 ] || fail "8 sketches at 3 k get layers, others do not"

# Again, and nothing is measured; a part, and the rest is.
cp whole.jsonl before.jsonl
grid whole.jsonl
cmp whole.jsonl before.jsonl || fail "a finished record was measured again"
grid parts.jsonl --case all
[ "$(wc -l <parts.jsonl)" -eq 33 ] || fail "--case all made $(wc -l <parts.jsonl) lines, not 33"
grid parts.jsonl --time 1e-9 2>said
grep -q "the time was up before 99 of 132 cells" said || fail "--time said: $(cat said)"
[ "$(wc -l <parts.jsonl)" -eq 33 ] || fail "cells were measured after the time was up"

# refused MESSAGE COMMAND...: the command fails with the message.
refused() {
    message=$1
    shift
    if "$@" >said 2>&1; then fail "'$*' succeeded"; fi
    grep -q -e "$message" said || fail "'$*' said: $(cat said)"
}
echo 'not a record' >other.jsonl
refused "other.jsonl: line 1 is not a line of 'fsbench grass'" grid other.jsonl
refused "'magic' is not a method" "$fsbench" grass --method magic
refused "'some' is not masked, runs, layers or all" "$fsbench" grass --case some
refused "'512' is not GRADIENTSxCOORDINATES" "$fsbench" grass --batch 512
refused "'0x5' is not GRADIENTSxCOORDINATES" "$fsbench" grass --batch 0x5
refused "k = 64, but a gradient has 63 coordinates" "$fsbench" grass --batch 4x63 --k 64
refused "the layers have 5003 parameters, but a gradient has 64 coordinates" grid x.jsonl --batch 4x64
refused "the layers have 109386 parameters, but a gradient has 64 coordinates" "$fsbench" grass --batch 4x64 --case layers
refused "'0' is not a width" "$fsbench" grass --layers 4,0
refused "'soon' is not a number of seconds" "$fsbench" grass --time soon
refused "--reps at least 3" "$fsbench" grass --reps 2
refused "nowhere/r.jsonl cannot be written" "$fsbench" grass --batch 4x64 --k 64 --record nowhere/r.jsonl
