#!/bin/sh
# bench_randnla.sh - measures the RandNLA grid, the most important cases first, and writes the record.
#
# usage: bench_randnla.sh [--cpu] [SECONDS]   (default 360 on a GPU, 1200 on a CPU; the build included)
#
# Builds fsbench, with the plugin for this machine's GPU, and continues bench/results/MACHINE/randnla.jsonl, MACHINE
# being the name of the GPU or CPU as a word: h200, amd-epyc-1thread.  Lines are written as cells are finished and
# finished cells are not measured again, so the time may run out at any point and a second run continues from there;
# RESTART=1 begins a new record.  On a CPU one thread is used: it is not held up by other work on the machine as threads
# are that wait for each other.  JOBS limits the compilers at a time, FS_COMMIT names what is measured where git cannot.
set -eu
cd "$(dirname "$0")/.."
began=$(date +%s)
where=gpu
if [ "${1-}" = --cpu ]; then
    where=cpu
    shift
fi
word() { echo "$1" | tr '[:upper:]' '[:lower:]' | sed 's/^nvidia *//; s/[^a-z0-9]\{1,\}/-/g; s/-$//'; }
if [ $where = gpu ]; then
    seconds=${1:-360} build=build/bench-cuda cuda=--cuda
    name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || name=
    options="$(sh scripts/cuda.sh this) -DFS_BUILD_CLI=OFF"
    if [ -z "$name" ] || [ "${options#-DFS_CUDA=OFF}" != "$options" ]; then
        echo "bench_randnla.sh: this needs a GPU, its driver and nvcc; --cpu does without" >&2
        exit 1
    fi
    folder=bench/results/$(word "$name")
    export OMP_WAIT_POLICY=passive
else
    sh scripts/setup.sh bench
    seconds=${1:-1200} build=build/bench-cpu cuda= options=-DFS_CUDA=OFF
    name=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
    folder=bench/results/$(word "${name:-cpu}")-1thread
    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
fi
record=$folder/randnla.jsonl
generator=
command -v ninja >/dev/null && generator=-GNinja
# shellcheck disable=SC2086  # several options; no generator is no argument
cmake -S . -B $build $generator $options -DCMAKE_BUILD_TYPE=Release -DFS_BUILD_TESTS=OFF -DFS_BUILD_BENCH=ON \
    --log-level=WARNING
cmake --build $build --parallel "${JOBS:-$(nproc)}"
mkdir -p "$folder"
[ -z "${RESTART-}" ] || rm -f "$record"
commit=${FS_COMMIT:-$(git describe --always --dirty 2>/dev/null || echo unknown)}

left() { echo $((seconds - $(date +%s) + began)); }
# grid OPTION...: a part of the grid, as long as there is time.
grid() {
    if [ "$(left)" -le 5 ]; then
        echo "-- $(left) s left: not started: $*"
        return 0
    fi
    echo "-- $(left) s left: $*"
    # shellcheck disable=SC2086  # no $cuda is no argument
    timeout "$(left)" $build/bench/fsbench randnla $cuda --quiet --commit "$commit" --record "$record" "$@" ||
        echo "bench_randnla.sh: '$*' ended with exit code $? (124: the time was up)" >&2
}

bars=flashsketch-1-4,algorithm1-1-4,algorithm1-2-2,algorithm1-4-1,sjlt-sparse-4,srht,gaussian
coherent=hot,bundles,decay,identity,diagonal,student
fits=flashsketch-1-4,algorithm1-1-4,sjlt-sparse-4,sjlt-scatter-4,srht,srht-passes,gaussian

# Whether the GPU's errors are the CPU's: S and the data are the same, so they agree but for rounding.
check() {
    rm -f $build/check.jsonl
    timeout 60 $build/bench/fsbench randnla --cuda --quiet --reps 3 --shape 8192x128 --k 1024 --seeds 0-0 \
        --data gaussian,lowrank,hot,identity --task gram,ose,ridge,solve --record $build/check.jsonl \
        --method $bars,contiguous-2-2,blockrow-1-4 &&
        python3 bench/compare_randnla.py bench/results/amd-epyc-1thread/randnla.jsonl $build/check.jsonl ||
        echo "bench_randnla.sh: the errors are not the CPU's; the grid is measured all the same" >&2
}

on_gpu() {
    check
    # The bars: times of the default and the baselines; Gram and OSE on ordinary and coherent inputs; ridge, solve.
    grid --reps 9 --task sketch --method $bars,sjlt-scatter-4,srht-passes
    grid --reps 9 --task gram,ose --method $bars --data gaussian,$coherent --k 1024,4096 --seeds 0-1
    grid --reps 9 --task ridge,solve --method flashsketch-1-4,algorithm1-1-4 --data gaussian --k 2048,4096 --seeds 0-2
    # Twice as many nonzeros: as fast on a GPU, and closer to the Gaussian where few rows carry the matrix.
    grid --reps 9 --task sketch,gram,ose --method flashsketch-1-8 --data gaussian,$coherent --seeds 0-2
    # The default where a baseline errs less at the same k.
    grid --reps 9 --task sketch,gram,ose --method flashsketch-1-4 --k 8192 --seeds 0-2
    # The rest of the paper's tables: other data and k, other variants, then more seeds.
    grid --reps 9 --task gram,ose --method $bars,contiguous-1-4 --data gaussian,lowrank,sparse --seeds 0-2
    grid --reps 9 --task sketch --method contiguous,algorithm1,sjlt-sparse,sjlt-scatter,blockrow
    grid --reps 9 --task ridge,solve --method $fits --data gaussian --k 1024,2048,4096 --seeds 0-2
    grid --reps 9 --task gram,ose --method $bars,contiguous-1-4,contiguous-4-1,blockrow-1-4 --seeds 0-2
    grid --reps 9 --task gram,ose --method $bars,contiguous-1-4,contiguous-4-1,blockrow-1-4 --seeds 0-9
    grid --reps 9 --task gram,ose --seeds 0-9
}

on_cpu() {
    main=$bars,flashsketch-1-8,contiguous-1-4,contiguous-2-2,contiguous-4-1,blockrow-1-4
    grid --threads 1 --task sketch
    grid --threads 1 --task gram,ose --method "$main" --seeds 0-9
    grid --threads 1 --task ridge,solve --method $fits --data gaussian,lowrank,hot,identity \
        --k 256,512,1024,2048,4096 --seeds 0-4
    # Larger than the caches; and real images, if Debian's dataset-fashion-mnist is installed.
    grid --threads 1 --task sketch --shape 65536x256 --reps 7 \
        --method flashsketch,contiguous,algorithm1,sjlt-sparse,sjlt-scatter,srht,gaussian,blockrow-1-4
    grid --threads 1 --task gram,ose --shape 65536x256 --data gaussian,hot --k 256,1024,4096 --method "$main" \
        --seeds 0-2
    grid --threads 1 --task sketch,gram,ose --data fashion --k 256,1024 --seeds 0-2 \
        --method flashsketch-1-4,contiguous-1-4,sjlt-sparse-4,sjlt-scatter-4,srht
}

on_$where
echo "$(wc -l <"$record") lines in $record;" \
    "python3 bench/report.py writes docs/performance.md and the figures from them (Matplotlib: python3-matplotlib)"
