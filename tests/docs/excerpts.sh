#!/bin/sh
# excerpts.sh - each excerpt of C in a document is in a program that the tests build and run: a block ```c without
# main stands, line by line but for the indentation, in one of the examples.
#
# usage: excerpts.sh DOCUMENT EXAMPLE...
set -eu
awk '
    function stripped(line) { sub(/^ +/, "", line); return line "\n" }
    FNR == 1 { file++; names[file] = FILENAME }
    file > 1 { text[file] = text[file] stripped($0); next }
    /^```c$/ { block = "\n"; first = FNR + 1; next }
    /^```/ && block != "" {
        if (block !~ /int main/) blocks[first] = substr(block, 2)
        block = ""
    }
    block != "" { block = block stripped($0) }
    END {
        for (first in blocks) {
            found = 0
            for (i = 2; i <= file; i++) found += index("\n" text[i], "\n" blocks[first]) > 0
            count++
            if (!found) { print names[1] ":" first ": these lines of C are in no example"; bad = 1 }
        }
        print count + 0 " excerpt(s)"
        exit bad || !count
    }' "$@"
