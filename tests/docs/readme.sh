#!/bin/sh
# readme.sh - compiles and runs the C program that README.md shows, exactly as it stands there.
#
# usage: readme.sh CC README INCLUDE_DIR LIBRARY WORK_DIR
set -eu
mkdir -p "$5"
sed -n '/^```c$/,/^```$/p' "$2" | sed '/^```/d' >"$5/readme.c"
grep -q 'int main' "$5/readme.c" || { echo "$2 shows no C program" >&2; exit 1; }
"$1" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$3" "$5/readme.c" "$4" -Wl,-rpath,"$(dirname "$4")" -o "$5/readme"
"$5/readme"
