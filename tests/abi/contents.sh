#!/bin/sh
# contents.sh LIBRARY KNOWN - a library contains no code of perceptrons: no symbol, exported or not, has one of its
# names.
# KNOWN is a private symbol that it must have: without it there is no table of symbols, and the script exits 77.
set -eu
library=$1 known=$2
command -v nm >/dev/null || { echo "abi.contents: no nm here"; exit 77; }
symbols=$(nm "$library" 2>/dev/null | awk '{ print $NF }')
echo "$symbols" | grep -q -w "$known" || { echo "abi.contents: $library is stripped"; exit 77; }
if stray=$(echo "$symbols" | grep -i -E 'grass|perceptron|dropout|relu|momentum|cross_entropy|gemm_f32|_models'); then
    printf 'names of the experiment in %s:\n%s\n' "$library" "$stray"
    exit 1
fi
