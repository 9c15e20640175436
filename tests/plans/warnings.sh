#!/bin/sh
# warnings.sh - every kernel compiles without a warning in the builds that the tests do not make: for the oldest GPUs of
# `make cuda`, compute capability 7.5, where the tensor-core kernels are empty and what only they call is unused; and
# with few instances (the preset cuda-dev) for Hopper.  PTX is enough: the warnings are the front end's.
# usage: warnings.sh NVCC SOURCE
set -eu
nvcc=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source/src"
failed=0
check() { # architecture, files
    architecture=$1
    shift
    for file; do
        "$nvcc" -ptx -arch="$architecture" -std=c++17 -DFS_FEW_INSTANCES -Werror all-warnings -I. \
            -I"$source/include" "$file" -o "$work/ptx" || { echo "$file: warnings for $architecture"; failed=1; }
    done
}
check compute_75 cuda/*/*.cu
# shellcheck disable=SC2046  # several words: the kernels whose instances are a list
check compute_90a $(grep -lE '_instances.h|launch.cuh|tile.cuh|tensor.cuh' cuda/*/*.cu)
exit $failed
