#!/bin/sh
# run.sh - runs one case of the command line and compares what it printed.
#
# usage: run.sh PATHS CASE.  CASE.cmd is run by sh in an empty folder with PATHS in front of PATH.  Its stdout must be
# CASE.out, its stderr CASE.err (nothing where there is no such file), its exit code the number in CASE.code (0 where
# there is none).  A case that exits with 77 cannot be run here: it is skipped.  In the expected texts * stands for
# anything, newlines too; every other character is itself.
set -u
paths=$1
case=$2
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/work"
cd "$folder/work" || exit 1

PATH=${paths:+$paths:}$PATH LC_ALL=C sh "$case.cmd" >"$folder/out" 2>"$folder/err" </dev/null
code=$?
failed=0
[ $code -eq 77 ] && exit 77

# matches EXPECTED TEXT: two files.  What stands between the stars is looked for one after the other, so that a text that
# does not match is found out at once (a shell's patterns try every way, which takes hours with dozens of stars).
matches() {
    LC_ALL=C awk -v expected="$1" -v text="$2" '
        function whole(file,    all, line) {
            while ((getline line < file) > 0) all = all line "\n"
            sub(/\n+$/, "", all)
            return all
        }
        BEGIN {
            e = whole(expected); t = whole(text)
            n = split(e, part, /[*]/)
            if (n < 2) exit e != t
            if (substr(t, 1, length(part[1])) != part[1]) exit 1
            t = substr(t, length(part[1]) + 1)
            for (i = 2; i < n; i++) {
                if (part[i] == "") continue
                if (!(at = index(t, part[i]))) exit 1
                t = substr(t, at + length(part[i]))
            }
            rest = length(t) - length(part[n])
            exit rest < 0 || substr(t, rest + 1) != part[n]
        }'
}

# compare NAME: the file NAME in $folder against the expected text.
compare() {
    expected=/dev/null
    [ -f "$case.$1" ] && expected=$case.$1
    matches "$expected" "$folder/$1" && return
    echo "std$1 is not what $expected says (- expected, + printed):"
    diff -u "$expected" "$folder/$1" | tail -n +3 | head -n 100
    failed=1
}

compare out
compare err
wanted=0
[ -f "$case.code" ] && wanted=$(cat "$case.code")
if [ "$code" -ne "$wanted" ]; then
    echo "the exit code is $code, it must be $wanted; stderr:"
    cat "$folder/err"
    failed=1
fi
exit $failed
