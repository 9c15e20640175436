#!/bin/sh
# bench_quality.sh - measures embedding errors on hard inputs beside a dense Gaussian, the worst inputs first, and
# writes the record and docs/quality.md.
#
# usage: bench_quality.sh [SECONDS]   (default 1800; the build included)
#
# Builds fsbench and continues build/bench-cpu/quality.jsonl, which has the numbers of every seed; its summary, a line for
# each cell, becomes bench/results/MACHINE/quality.jsonl, MACHINE being the name of the CPU with its threads, as a word:
# amd-epyc-2threads.  Lines are written as cells are finished and finished cells are not measured again, so the time may
# run out at any point and a second run continues from there; RESTART=1 begins a new record.  DATA lists
# files as `fsbench quality --data` takes them: file:A.npy,fashion.  THREADS (2) are those of the CPU, JOBS limits the
# compilers at a time, FS_COMMIT names what is measured where git cannot.
set -eu
cd "$(dirname "$0")/.."
began=$(date +%s)
seconds=${1:-1800}
threads=${THREADS:-2}
build=build/bench-cpu
word() { echo "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9]\{1,\}/-/g; s/-$//'; }
sh scripts/setup.sh solve
name=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
folder=bench/results/$(word "${name:-cpu}")-${threads}threads
record=$build/quality.jsonl
generator=
command -v ninja >/dev/null && generator=-GNinja
# shellcheck disable=SC2086  # no generator is no argument
cmake -S . -B $build $generator -DFS_CUDA=OFF -DCMAKE_BUILD_TYPE=Release -DFS_BUILD_TESTS=OFF -DFS_BUILD_BENCH=ON \
    --log-level=WARNING
cmake --build $build --parallel "${JOBS:-$(nproc)}"
mkdir -p "$folder"
[ -z "${RESTART-}" ] || rm -f "$record"
commit=${FS_COMMIT:-$(git describe --always --dirty 2>/dev/null || echo unknown)}
export OMP_WAIT_POLICY=passive

left() { echo $((seconds - $(date +%s) + began)); }
# grid OPTION...: a part of the grid, as long as there is time.
grid() {
    if [ "$(left)" -le 5 ]; then
        echo "-- $(left) s left: not started: $*"
        return 0
    fi
    echo "-- $(left) s left: $*"
    $build/bench/fsbench quality --quiet --threads "$threads" --seconds "$(left)" --commit "$commit" \
        --record "$record" "$@" || echo "bench_quality.sh: '$*' ended with exit code $?" >&2
}

# First the cases with limits in the report, then rare singular draws, then the rest; at last more seeds of spread inputs,
# whose bars are near the noise of the largest of hundreds of cells.
worst=scattered,stride-M,side-by-side,two-rounds,stride-32,half-runs,large-n,stride-100,one-hot-steep,bundles-4
spread=block-diagonal,low-rank,gaussian,hadamard,dct,copies,two-nonzeros,one-hot,documents,flat
grid --part embedding --case $worst --rung default,high,gaussian,fast --n 64,256
grid --part tails
grid --part embedding --case scattered,stride-M,side-by-side --n 128,256 --k 1.5,2 --rung default,high,gaussian \
    --seeds 0-999
for rung in default gaussian high fast; do
    grid --part embedding --rung $rung
done
[ -z "${DATA-}" ] || grid --part embedding --data "$DATA"
grid --part rank --rung default,fast --seeds 0-255
grid --part rank --seeds 0-63
grid --part embedding --rung sjlt8
grid --part embedding --rung default --case $spread --n 32,64 --k 2,4,8,16 --seeds 0-159
echo "$(wc -l <"$record") lines in $record"
python3 bench/report_quality.py --summarise "$record" >"$folder/quality.new"
mv "$folder/quality.new" "$folder/quality.jsonl"
sh tests/python.sh matplotlib bench/report_quality.py ||
    echo "bench_quality.sh: Matplotlib is not installed; bench/report_quality.py writes docs/quality.md where it is" >&2
