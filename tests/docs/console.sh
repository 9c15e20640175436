#!/bin/sh
# console.sh - runs the commands that a document shows and compares what they print.
#
# usage: console.sh PATHS DOCUMENT WORK_DIR.  In a block ```console a line that starts with "$ " is a command; the lines
# up to the next one are what it prints, on stdout and stderr; * stands for anything.  All blocks of a document are one
# session in one empty folder (tests/cli/run.sh).
set -eu
paths=$1 document=$2 work=$3
rm -rf "$work"
mkdir -p "$work"
echo 'exec 2>&1' >"$work/console.cmd"
awk -v cmd="$work/console.cmd" -v out="$work/console.out" '
    /^```console$/ { inside = 1; next }
    /^```/ { inside = 0 }
    inside { print > out }
    inside && /^\$ / {
        commands++
        shown = $0
        gsub(/\047/, "\047\\\047\047", shown)
        print "printf \"%s\\n\" \047" shown "\047" >> cmd
        print substr($0, 3) >> cmd
    }
    END { if (!commands) exit 1; print commands " command(s)" }' "$document" || { echo "$document shows none"; exit 1; }
sh "$(dirname "$0")/../cli/run.sh" "$paths" "$work/console"
