#!/bin/sh
# limits.sh - under every limit of addresses (ulimit -v) a command ends: with its result, or with a message that names
# memory.  OpenBLAS alone would retry its allocations without end.
# usage: limits.sh FLASHSKETCH
set -u
command=$1
folder=$(mktemp -d) || exit 77
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 77
(ulimit -v 1000000) 2>/dev/null || { echo "skipped: this shell has no ulimit -v"; exit 77; }
# LLVM's OpenMP allocates in its worker threads, also when they are there, and where that fails its own error message
# recurses until the stack is full (version 14: 22 of 700 runs at 104 MB).  With one thread it allocates nothing.
if ldd "$command" 2>/dev/null | grep -q libomp; then
    OMP_NUM_THREADS=1
    export OMP_NUM_THREADS
fi
# glibc reserves 64 MiB of addresses for the heap of a thread that allocates while another does, if they are there: what a
# limit leaves then differs from run to run (a Gaussian had no memory in 3 of 160 runs at 100 and 104 MB; 0 of 180 so).
MALLOC_ARENA_MAX=1
export MALLOC_ARENA_MAX
matrix() { # rows cols: entries without structure, in Matrix Market's dense format
    awk -v d="$1" -v n="$2" 'BEGIN { print "%%MatrixMarket matrix array real general"; print d, n
        for (i = 1; i <= d * n; i++) { x = (x * 69069 + 12345) % 4294967296; print x / 4294967296 - 0.5 } }'
}
matrix 2000 20 >A.mtx
matrix 2000 1 >b.mtx
failed=0
run() { # megabytes, whether it must succeed, command line
    limit=$1 must=$2
    shift 2
    (ulimit -v $((limit * 1024)); timeout 30 "$command" "$@" >out 2>err)
    code=$?
    if [ $code -ne 0 ] && { [ $code -ne 1 ] || [ "$must" = must ] || ! grep -q "memory\|OpenBLAS" err; }; then
        echo "$limit MB: flashsketch $*: exit code $code: $(cat err)"
        failed=1
    fi
}
for limit in 64 104 170 250 330 400; do
    run $limit must sketch -k 10 A.mtx -o Y.npy
    run $limit must sketch -k 10 --family gaussian A.mtx -o Y.npy
    run $limit must coherence -k 64 A.mtx
    run $limit may solve -k 100 --rhs b.mtx A.mtx
    run $limit may ridge -k 100 --lambda 1 --rhs b.mtx A.mtx
    run $limit may gram -k 100 A.mtx
    run $limit may ose -k 100 A.mtx
done
run 104 must check
[ $failed = 0 ] && echo "every command ended"
exit $failed
