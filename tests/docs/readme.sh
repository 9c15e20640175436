#!/bin/sh
# readme.sh - compiles the C that README.md or another page shows, unchanged: a text with main is run too, a fragment
# is put into a function that declares what the fragment uses.
#
# usage: readme.sh CC README INCLUDE_DIR LIBRARY WORK_DIR
set -eu
cc=$1 readme=$2 include=$3 library=$4 work=$5
warnings="-std=c11 -Wall -Wextra -Wpedantic -Werror"
rm -rf "$work"
mkdir -p "$work"
awk -v work="$work" '
    /^```c$/ { file = work "/" ++count ".txt"; next }
    /^```/ { file = "" }
    file { print > file }' "$readme"

programs=0
for text in "$work"/*.txt; do
    source=${text%.txt}.c
    if grep -q 'int main' "$text"; then
        cp "$text" "$source"
        # shellcheck disable=SC2086  # several flags
        "$cc" $warnings -I"$include" "$source" "$library" -Wl,-rpath,"$(dirname "$library")" -o "${text%.txt}"
        "${text%.txt}"
        programs=$((programs + 1))
    else
        {
            printf '%s\n' '#include <flashsketch.h>' '#include <stdio.h>' \
                "int fragment(const fs_sketch *S, void *stream, float *a, float *y, long d, long n, long k)" '{'
            cat "$text"
            printf '%s\n' 'fs_context_destroy(gpu);' 'return 0;' '}'
        } >"$source"
        # shellcheck disable=SC2086
        "$cc" $warnings -I"$include" -c "$source" -o "${text%.txt}.o"
    fi
done
[ $programs -gt 0 ] || { echo "$readme shows no C program" >&2; exit 1; }
echo "$programs program(s) run, $(($(find "$work" -name '*.txt' | wc -l) - programs)) fragment(s) compiled"
