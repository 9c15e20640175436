#!/bin/sh
# oldest.sh - every kernel compiles without a warning for the oldest GPUs that `make cuda` builds for, compute
# capability 7.5, where the tensor-core kernels are empty and what only they call is unused.  PTX of few instances: the
# front end's warnings do not depend on how many there are.
# usage: oldest.sh NVCC SOURCE
set -eu
nvcc=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$source/src/cuda"
failed=0
for file in *.cu; do
    "$nvcc" -ptx -arch=compute_75 -std=c++17 -DFS_FEW_INSTANCES -Werror all-warnings -I. -I../core -I../def \
        -I"$source/include" "$file" -o "$work/ptx" || { echo "$file does not compile for compute_75"; failed=1; }
done
exit $failed
