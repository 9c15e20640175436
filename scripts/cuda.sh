#!/bin/sh
# cuda.sh - prints the CMake options for the GPUs that the CUDA plugin is built for.
#
# usage: cuda.sh this|test|all|none|LIST
#     this   the GPUs of this machine; without a GPU, or without nvcc, no plugin
#     test   what the tests compile where nvcc is found: both kinds of tensor kernels, PTX, and this machine's GPUs
#     all    every GPU that nvcc knows
#     none   no plugin
#     LIST   like "80-real;90a-real": what FS_CUDA_ARCHITECTURES takes
set -eu
PATH=$PATH:/usr/local/cuda/bin
nvcc=${CUDACXX:-nvcc}

# The compute capabilities of this machine's GPUs from 7.5 on, without the point.
capabilities() {
    nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d ' .' |
        awk '/^[0-9]+$/ && $1 >= 75'
}

# The architectures of this machine's GPUs.  The wgmma kernels need 90a.  A GPU that is newer than nvcc gets the newest
# PTX that nvcc makes, which the driver compiles.
architectures() {
    command -v "$nvcc" >/dev/null || return 0
    known=$("$nvcc" --list-gpu-code)
    newest=$("$nvcc" --list-gpu-arch | sed -n 's/^compute_\([0-9]*\)$/\1/p' | sort -n | tail -n 1)
    for number in $(capabilities); do
        case $number in
        90) echo 90a-real ;;
        *) echo "$known" | grep -qx "sm_$number" && echo "$number-real" || echo "$newest-virtual" ;;
        esac
    done
}

# Lines to a list, each once.
list() { awk '!seen[$0]++' | paste -sd ';' -; }

case ${1-} in
this)
    here=$(architectures | list)
    [ -n "$here" ] || [ -z "$(capabilities)" ] ||
        echo "There is a GPU here but no nvcc (CUDA 12 or later has it): only the CPU will be used." >&2
    [ -n "$here" ] && echo "-DFS_CUDA=AUTO -DFS_CUDA_ARCHITECTURES=$here" || echo "-DFS_CUDA=OFF"
    ;;
test)
    here=$({ printf '%s\n' 80-real 90a-real 90-virtual; architectures; } | list)
    echo "-DFS_CUDA=AUTO -DFS_CUDA_ARCHITECTURES=$here"
    ;;
all) echo "-DFS_CUDA=ON -DFS_CUDA_ARCHITECTURES=" ;;
none) echo "-DFS_CUDA=OFF" ;;
*-real | *-virtual) echo "-DFS_CUDA=ON -DFS_CUDA_ARCHITECTURES=$1" ;;
*)
    echo "usage: cuda.sh this|test|all|none|LIST, LIST like \"80-real;90a-real\"" >&2
    exit 2
    ;;
esac
