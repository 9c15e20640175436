#!/bin/sh
# console.sh - runs the commands that a document shows and compares what they print.
#
# usage: console.sh PATHS DOCUMENT WORK_DIR [SOURCE].  In a block ```console a line that starts with "$ " is a command,
# with the lines behind it that start with "> "; the lines up to the next one are what it prints, on stdout and stderr;
# * stands for anything.  A command exits with 0, or with N where its line ends in "# exits with N".  A block ```c that
# begins with /* NAME.c - is a file which the commands after it find.  All blocks of a document are one session in one
# empty folder (tests/cli/run.sh).  With SOURCE that folder is the home of a user who has just got the sources: they are
# in flashsketch, and nothing is built.
set -eu
paths=$1 document=$2 work=$3 source=${4-}
rm -rf "$work"
mkdir -p "$work"
cat >"$work/console.cmd" <<'CHECK'
exec 2>&1
console_failed=0
console_check() {
    [ "$1" -eq "$2" ] || { console_failed=1; echo "the command exits with $1, it must exit with $2"; }
}
CHECK
if [ -n "$source" ]; then
    # The session's make is not part of the make that runs the tests.  Compiling kernels would take minutes.
    cat >>"$work/console.cmd" <<SETUP
unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES MFLAGS LD_LIBRARY_PATH PKG_CONFIG_PATH
export HOME="\$PWD" CUDA=none
mkdir flashsketch && (cd '$source' && tar -cf - --exclude=./build --exclude=./.git --exclude=./venv .) |
    tar -xf - -C flashsketch
SETUP
fi
awk -v cmd="$work/console.cmd" -v out="$work/console.out" '
    function run() {
        if (command == "") return
        gsub(/\047/, "\047\\\047\047", shown)
        print "printf \"%s\\n\" \047" shown "\047" >> cmd
        print command >> cmd
        wanted = match(command, /# exits with [0-9]+$/) ? substr(command, RSTART + 13) : 0
        print "console_check $? " wanted >> cmd
        command = ""
    }
    /^```console$/ { inside = 1; next }
    /^```c$/ { perhaps = 1; next }
    /^```/ { run(); if (file) print "END OF FILE" >> cmd; inside = perhaps = file = 0; next }
    perhaps && /^\/\* [a-z0-9_]+\.c - / { file = $2; print "cat >" file " <<\047END OF FILE\047" >> cmd }
    { perhaps = 0 }
    file { print >> cmd }
    inside { print > out }
    inside && /^\$ / { run(); commands++; command = substr($0, 3); shown = $0; next }
    inside && /^> / && command != "" { command = command "\n" substr($0, 3); shown = shown "\n" $0; next }
    { run() }
    END { if (!commands) exit 1; print "exit $console_failed" >> cmd; print commands " command(s)" }' "$document" || { echo "$document shows none"; exit 1; }
sh "$(dirname "$0")/../cli/run.sh" "$paths" "$work/console"
