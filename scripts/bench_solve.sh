#!/bin/sh
# bench_solve.sh - measures the solvers beside LAPACK (cuSOLVER on a GPU) and Python's libraries, the bars first, and
# writes the records and docs/solvers.md.
#
# usage: bench_solve.sh [SECONDS]   (default 600; the build included)
#
# Builds fsbench and continues bench/results/MACHINE/solve.jsonl and solve_python.jsonl, MACHINE being the name of the
# GPU, or of the CPU with its threads, as a word: h200, amd-epyc-2threads.  Lines are written as cases are finished and
# finished cases are not measured again, so the time may run out at any point and a second run continues from there;
# RESTART=1 begins new records.  With a GPU, its driver and nvcc it measures there.  THREADS (2) are those of a CPU,
# JOBS limits the compilers at a time, FS_COMMIT names what is measured where git cannot.
set -eu
cd "$(dirname "$0")/.."
began=$(date +%s)
seconds=${1:-600}
threads=${THREADS:-2}
word() { echo "$1" | tr '[:upper:]' '[:lower:]' | sed 's/^nvidia *//; s/[^a-z0-9]\{1,\}/-/g; s/-$//'; }
name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || name=
options=$(sh scripts/cuda.sh this)
if [ -n "$name" ] && [ "${options#-DFS_CUDA=OFF}" = "$options" ]; then
    cuda=--cuda build=build/bench-cuda folder=bench/results/$(word "$name")
    options="$options -DFS_BUILD_CLI=OFF"
    threads=$(nproc)
else
    sh scripts/setup.sh solve
    cuda= build=build/bench-cpu options=-DFS_CUDA=OFF
    name=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
    folder=bench/results/$(word "${name:-cpu}")-${threads}threads
fi
generator=
command -v ninja >/dev/null && generator=-GNinja
# shellcheck disable=SC2086  # several options; no generator is no argument
cmake -S . -B $build $generator $options -DCMAKE_BUILD_TYPE=Release -DFS_BUILD_TESTS=OFF -DFS_BUILD_BENCH=ON \
    --log-level=WARNING
cmake --build $build --parallel "${JOBS:-$(nproc)}"
mkdir -p "$folder"
[ -z "${RESTART-}" ] || rm -f "$folder/solve.jsonl" "$folder/solve_python.jsonl" "$folder/solve.note"
commit=${FS_COMMIT:-$(git describe --always --dirty 2>/dev/null || echo unknown)}
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS="$threads" OPENBLAS_NUM_THREADS="$threads"

left() { echo $((seconds - $(date +%s) + began)); }
# measured WHAT COMMAND...: the command, for as long as there is time.
measured() {
    what=$1
    shift
    if [ "$(left)" -le 5 ]; then
        echo "-- $(left) s left: not started: $what"
        return 0
    fi
    echo "-- $(left) s left: $what"
    timeout "$(left)" "$@" || echo "bench_solve.sh: '$what' ended with exit code $? (124: the time was up)" >&2
}
# grid OPTION...: a part of fsbench's cases; python OPTION...: of those of compare_solvers.py.
grid() {
    # shellcheck disable=SC2086  # no $cuda is no argument
    measured "$*" $build/bench/fsbench solve $cuda --quiet --threads "$threads" --commit "$commit" \
        --record "$folder/solve.jsonl" "$@"
}
python() {
    # shellcheck disable=SC2086
    FLASHSKETCH_CUDA_PLUGIN=$(find "$PWD/$build" -name 'libflashsketch_cuda.so' | head -n 1) measured "python $*" \
        sh tests/python.sh "${cuda:+torch,}numpy,scipy" bench/compare_solvers.py $cuda --threads "$threads" \
        --library "$build/src/libflashsketch.so" --commit "$commit" --record "$folder/solve_python.jsonl" "$@"
}

if [ -n "$cuda" ]; then
    # The bars in PyTorch's terms, then the same against cuSOLVER, and all of it.
    for case in lstsq qr svd; do python --reps 9 --seconds 2 --case $case/; done
    grid --reps 9 --seconds 2 --task lstsq --method flashsketch,gels,normal
    grid --reps 9 --seconds 2
else
    # All methods at one condition number of each shape and type, and errors at the others.
    few=flashsketch,gelsd,gels,normal,sketch-and-solve-4
    grid --shape 200000x200 --task lstsq --dtype f64 --seconds 8
    grid --shape 100000x500 --task lstsq --dtype f64 --cond 1e6 --seconds 8 --method "$few,gelsy"
    python --reps 5 --seconds 8 --case svd/60000x500
    grid --shape 200000x200 --task qr,pivoted,svd --dtype f64 --seconds 8
    for case in leverage/ svd/100000x2000 oneread/ pca/ lstsq/200000x200; do
        python --reps 5 --seconds 8 --case $case
    done
    grid --shape 200000x200 --task lstsq --dtype f32 --seconds 6
    grid --shape 100000x500 --task lstsq --dtype f64 --seconds 6 --method "$few"
    grid --shape 100000x500 --task lstsq --dtype f32 --seconds 6 --method "$few"
    # Other shapes than those of the bars: few columns, and hardly more rows than columns.
    grid --shape 1000000x30,8000x800 --task lstsq --cond 1e6 --dtype f64 --seconds 5
    grid --shape 200000x200,100000x500 --task qr,pivoted,svd --seconds 6
    for case in qr/ pivoted/ lstsq/; do python --reps 5 --seconds 8 --case $case; done
fi
echo "$(wc -l <"$folder/solve.jsonl") lines in $folder/solve.jsonl; $folder/solve.note may say what a reader should know"
sh tests/python.sh matplotlib bench/report_solvers.py ||
    echo "bench_solve.sh: Matplotlib is not installed; bench/report_solvers.py writes docs/solvers.md where it is" >&2
