#!/bin/sh
# bench_cuda.sh - measures the CUDA backend and third-party baselines, and writes the record.
#
# usage: bench_cuda.sh [cuda|grass].  Builds fsbench and the plugin for this machine's GPU in build/bench-cuda and
# replaces bench/results/GPU/cuda.jsonl (sketches; the default) or grass.jsonl (projections of gradients), GPU being the
# GPU's name as a word: h200.  JOBS limits the compilers at a time, FS_COMMIT names what is measured where git cannot.
set -eu
cd "$(dirname "$0")/.."
build=build/bench-cuda
what=${1:-cuda}
case $what in
cuda) command=cuda ;;
grass) command="grass --cuda --quiet" ;;
*)
    echo "usage: bench_cuda.sh [cuda|grass]" >&2
    exit 2
    ;;
esac
name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || name=
options=$(sh scripts/cuda.sh this)
if [ -z "$name" ] || [ "$options" = -DFS_CUDA=OFF ]; then
    echo "bench_cuda.sh: this needs a GPU, its driver and nvcc" >&2
    exit 1
fi
folder=bench/results/$(echo "$name" | tr '[:upper:]' '[:lower:]' | sed 's/^nvidia *//; s/[^a-z0-9]\{1,\}/-/g; s/-$//')
generator=
command -v ninja >/dev/null && generator=-GNinja
# shellcheck disable=SC2086  # several options; no generator is no argument
cmake -S . -B $build $generator $options -DCMAKE_BUILD_TYPE=Release -DFS_BUILD_CLI=OFF -DFS_BUILD_TESTS=OFF \
    -DFS_BUILD_BENCH=ON --log-level=WARNING
cmake --build $build --parallel "${JOBS:-$(nproc)}"

mkdir -p "$folder"
commit=${FS_COMMIT:-$(git describe --always --dirty 2>/dev/null || echo unknown)}
echo "Measuring on $name; this takes minutes."
# shellcheck disable=SC2086  # a command and its options
$build/bench/fsbench $command --commit "$commit" >"$folder/$what.jsonl.part"
mv "$folder/$what.jsonl.part" "$folder/$what.jsonl"
echo "$(wc -l <"$folder/$what.jsonl") cases in $folder/$what.jsonl;" \
    "python3 bench/report.py --gpu $(basename "$folder") writes docs/performance.md from them"
