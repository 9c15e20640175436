#!/bin/sh
# solve.sh FSBENCH - a small grid of `fsbench solve`: errors are those of the methods, a record is continued.
#
# Exits 77 where OpenBLAS is not installed.
set -eu
fsbench=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "solve.sh: $1" >&2
    exit 1
}
# grid RECORD [OPTION]...: the small grid.
grid() {
    record=$1
    shift
    "$fsbench" solve --quiet --record "$record" --shape 1500x20 --reps 3 "$@"
}
# errors FIELD: "cell value" of every line that has the field.
errors() { sed -n "s/.*\"cell\": \"solve\/\([^\"]*\)\".*\"$1\": \([^,]*\),.*/\1 \2/p" whole.jsonl; }
# below FIELD PATTERN BOUND COUNT: in COUNT cells that match, the field is finite, not negative and below BOUND.
below() {
    errors "$1" | awk -v pattern="$2" -v bound="$3" -v count="$4" '
        $1 ~ pattern { n++; if (!($2 >= 0 && $2 < bound)) { print "solve.sh: " $0 " is not below " bound; bad = 1 } }
        END { if (n != count) print "solve.sh: " n + 0 " cells match " pattern ", not " count; exit bad || n != count }
    ' || fail "$1 is wrong"
}

if ! grid whole.jsonl 2>said; then
    grep -q "OpenBLAS is not installed" said && exit 77
    fail "$(cat said)"
fi
lines=$(wc -l <whole.jsonl)
[ "$lines" -eq $((7 * 13 + 3 * 2 * 2)) ] || fail "$lines lines; 7 problems, 13 methods and 3 pairs in 2 types make 103"

# Errors of the methods of full accuracy, in f64 and f32, and of a sketch alone.
exact='(flashsketch|gelsd|gelsy|gels)$'
below backward "lstsq/.*/f64/.*/$exact" 1e-14 16
below backward "lstsq/.*/f32/.*/$exact" 1e-6 12
below forward "lstsq/.*/f64/cond10/$exact" 1e-13 4
below forward "lstsq/.*/f32/cond10/$exact" 1e-4 4
below orthogonality "(qr|pivoted|svd)/.*/f64/" 1e-12 6
below orthogonality "(qr|pivoted|svd)/.*/f32/" 1e-4 6
below product "(qr|pivoted|svd)/.*/f64/" 1e-13 6
below product "(qr|pivoted|svd)/.*/f32/" 1e-5 6
below values "svd/.*/f64/" 1e-13 2
errors excess | awk '$1 ~ /sketch-and-solve-4/ && !($2 > 0.02 && $2 < 3) { print; bad = 1 } END { exit bad }' ||
    fail "sketch-and-solve leaves other residuals than theory"
errors forward | awk '$1 ~ /f64\/cond1e\+06\/normal/ { seen = 1; bad = !($2 > 1e-7 && $2 < 1e-2) } END { exit bad || !seen }' ||
    fail "the normal equations have another error than cond^2 u"
grep -q '"cell": "solve/lstsq/1500x20/f64/cond1e+14/normal".*"outcome": "breaks down"' whole.jsonl ||
    fail "Cholesky's factor of A'A exists at cond 1e14"

# Again, and nothing is measured; a part, and the rest is.
cp whole.jsonl before.jsonl
grid whole.jsonl
cmp whole.jsonl before.jsonl || fail "a finished record was measured again"
grid parts.jsonl --task qr --dtype f64 --cond 1e3
[ "$(wc -l <parts.jsonl)" -eq 2 ] || fail "a part has $(wc -l <parts.jsonl) lines, not 2"
grid parts.jsonl --task qr --dtype f64 --cond 1e3,1e4 --method geqrf
[ "$(wc -l <parts.jsonl)" -eq 3 ] || fail "the rest has $(wc -l <parts.jsonl) lines, not 3"

# refused MESSAGE COMMAND...: the command fails with the message.
refused() {
    message=$1
    shift
    if "$@" >said 2>&1; then fail "'$*' succeeded"; fi
    grep -q -e "$message" said || fail "'$*' said: $(cat said)"
}
echo 'not a record' >other.jsonl
refused "other.jsonl: line 1 is not a line of 'fsbench solve'" grid other.jsonl
refused "'magic' is not a method" "$fsbench" solve --method magic
refused "'some' is not lstsq, qr, pivoted or svd" "$fsbench" solve --task some
refused "'f16' is not f32 or f64" "$fsbench" solve --dtype f16
refused "'20x1500' is not ROWSxCOLUMNS" "$fsbench" solve --shape 20x1500
refused "'0.5' is not a condition number" "$fsbench" solve --cond 0.5
refused "--reps from 3 to 64" "$fsbench" solve --reps 65
refused "nowhere/r.jsonl cannot be written" "$fsbench" solve --shape 100x4 --record nowhere/r.jsonl
