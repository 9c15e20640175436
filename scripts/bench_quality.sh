#!/bin/sh
# bench_quality.sh - measures embedding errors on hard inputs beside a dense Gaussian, the worst inputs first, and
# writes the record and docs/quality.md.
#
# usage: bench_quality.sh [SECONDS]   (default 1800; the build included)
#
# Builds fsbench and continues bench/results/MACHINE/quality.jsonl, MACHINE being the name of the CPU with its threads,
# as a word: amd-epyc-2threads.  Lines are written as cells are finished and finished cells are not measured again, so
# the time may run out at any point and a second run continues from there; RESTART=1 begins a new record.  DATA lists
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
record=$folder/quality.jsonl
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

# First the cases with limits in the report: a minute or two.
worst=scattered,stride-M,side-by-side,two-rounds,stride-32,half-runs,large-n
grid --part embedding --case $worst --n 64,256 --k 1.25,1.5,2,8,16 --seeds 0-19
grid --part embedding --seeds 0-19
[ -z "${DATA-}" ] || grid --part embedding --data "$DATA" --seeds 0-19
grid --part tails
grid --part rank --seeds 0-63
grid --part rank --rung fast,default --seeds 0-999
# Rare singular draws, then more seeds, for the 95th percentiles.
grid --part embedding --case scattered,stride-M,side-by-side --n 128,256 --k 1.5,2 --rung default,high,gaussian \
    --seeds 0-999
grid --part embedding --seeds 0-39
echo "$(wc -l <"$record") lines in $record"
sh tests/python.sh matplotlib bench/report_quality.py ||
    echo "bench_quality.sh: Matplotlib is not installed; bench/report_quality.py writes docs/quality.md where it is" >&2
