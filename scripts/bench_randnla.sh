#!/bin/sh
# bench_randnla.sh - measures the RandNLA grid on this machine's GPU, what matters most first, and keeps the record.
#
# usage: bench_randnla.sh [SECONDS]   (default 360, the build included)
#
# Builds fsbench and the plugin in build/bench-cuda and continues bench/results/GPU/randnla.jsonl, GPU being the GPU's name
# as a word: h200.  Lines are written as cells are finished and finished cells are not measured again, so the time may run
# out at any point and a second run goes on from there; RESTART=1 begins a new record.  JOBS limits the compilers at a time,
# FS_COMMIT names what is measured where git cannot.
set -eu
cd "$(dirname "$0")/.."
began=$(date +%s)
seconds=${1:-360}
build=build/bench-cuda
name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || name=
options=$(sh scripts/cuda.sh this)
if [ -z "$name" ] || [ "$options" = -DFS_CUDA=OFF ]; then
    echo "bench_randnla.sh: this needs a GPU, its driver and nvcc" >&2
    exit 1
fi
folder=bench/results/$(echo "$name" | tr '[:upper:]' '[:lower:]' | sed 's/^nvidia *//; s/[^a-z0-9]\{1,\}/-/g; s/-$//')
record=$folder/randnla.jsonl
generator=
command -v ninja >/dev/null && generator=-GNinja
# shellcheck disable=SC2086  # several options; no generator is no argument
cmake -S . -B $build $generator $options -DCMAKE_BUILD_TYPE=Release -DFS_BUILD_CLI=OFF -DFS_BUILD_TESTS=OFF \
    -DFS_BUILD_BENCH=ON --log-level=WARNING
cmake --build $build --parallel "${JOBS:-$(nproc)}"
mkdir -p "$folder"
[ -z "${RESTART-}" ] || rm -f "$record"
export OMP_WAIT_POLICY=passive
commit=${FS_COMMIT:-$(git describe --always --dirty 2>/dev/null || echo unknown)}

left() { echo $((seconds - $(date +%s) + began)); }
# grid OPTION...: a part of the grid, as long as there is time.
grid() {
    if [ "$(left)" -le 5 ]; then
        echo "-- $(left) s left: not started: $*"
        return 0
    fi
    echo "-- $(left) s left: $*"
    timeout "$(left)" $build/bench/fsbench randnla --cuda --quiet --reps 9 --commit "$commit" --record "$record" "$@" ||
        echo "bench_randnla.sh: '$*' ended with exit code $? (124: the time was up)" >&2
}

# First whether the GPU's errors are the CPU's: S and the data are the same, so they agree but for rounding.
check=$build/check.jsonl
rm -f "$check"
timeout 60 $build/bench/fsbench randnla --cuda --quiet --reps 3 --shape 8192x128 --k 1024 --seeds 0-0 \
    --data gaussian,lowrank,hot,identity --task gram,ose,ridge,solve --record "$check" \
    --method flashsketch-1-4,contiguous-2-2,algorithm1-1-4,algorithm1-4-1,sjlt-sparse-4,blockrow-1-4,srht,gaussian &&
    python3 bench/compare_randnla.py bench/results/amd-epyc-1thread/randnla.jsonl "$check" ||
    echo "bench_randnla.sh: the check against the CPU's errors failed; what follows is measured all the same" >&2

bars=flashsketch-1-4,algorithm1-1-4,algorithm1-2-2,algorithm1-4-1,sjlt-sparse-4,srht,gaussian
coherent=hot,bundles,decay,identity,diagonal,student
# The bars: times of the default and the baselines; Gram and OSE on an ordinary and on coherent inputs; ridge and solve.
grid --task sketch --method $bars,sjlt-scatter-4
grid --task gram,ose --method $bars --data gaussian,$coherent --k 1024,4096 --seeds 0-1
grid --task ridge,solve --method flashsketch-1-4,algorithm1-1-4 --data gaussian --k 2048,4096 --seeds 0-2
grid --task sketch,gram,ose --method flashsketch-1-4 --data gaussian,lowrank,sparse,$coherent --k 8192 --seeds 0-2
# The rest of the paper's tables: other data and k, other variants, then more seeds.
grid --task gram,ose --method $bars,contiguous-1-4 --data gaussian,lowrank,sparse --seeds 0-2
grid --task sketch --method contiguous,algorithm1,sjlt-sparse,sjlt-scatter,blockrow
grid --task ridge,solve --method flashsketch-1-4,algorithm1-1-4,sjlt-sparse-4,sjlt-scatter-4,srht,gaussian --data gaussian \
    --k 1024,2048,4096 --seeds 0-2
grid --task gram,ose --method $bars,contiguous-1-4 --data gaussian,lowrank,sparse,$coherent --seeds 0-2
grid --task gram,ose --method $bars,contiguous-1-4,contiguous-4-1,blockrow-1-4 --seeds 0-4
grid --task gram,ose --seeds 0-9

echo "$(wc -l <"$record") lines in $record;" \
    "python3 bench/report.py writes docs/performance.md and the figures from them (Matplotlib: python3-matplotlib)"
