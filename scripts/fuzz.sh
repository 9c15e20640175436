#!/bin/sh
# fuzz.sh - runs the fuzzers of the readers (tests/fuzz), one after the other.
#
# usage: fuzz.sh SECONDS [READER]...  Each runs for SECONDS; without readers, all of them.  New inputs are kept in
# build/fuzz/found, inputs that break a reader in build/fuzz/broken: those go into the corpus with the repair.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:?"usage: fuzz.sh SECONDS [READER]..."}
shift
[ $# -gt 0 ] || set -- npy mtx csv npz safetensors idx raw guess identity
programs=build/fuzz/tests/fuzz
targets=$(printf 'fuzz.%s ' "$@")
cmake --preset fuzz --log-level=WARNING >/dev/null
# shellcheck disable=SC2086  # several targets
cmake --build --preset fuzz ${JOBS:+-j "$JOBS"} --target $targets >build/fuzz/build.log || {
    cat build/fuzz/build.log
    exit 1
}
failed=0
mkdir -p build/fuzz/broken
for reader; do
    words=tests/fuzz/words/$reader
    [ -f "$words" ] || words=
    found=build/fuzz/found/$reader
    mkdir -p "$found"
    "$programs/fuzz.$reader" -max_total_time="$seconds" -timeout=20 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/broken/$reader-" ${words:+"-dict=$words"} \
        "$found" "tests/fuzz/corpus/$reader" >"build/fuzz/$reader.log" 2>&1 || failed=1
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$reader.log")
    covered=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "build/fuzz/$reader.log" | tail -n 1)
    echo "$reader: ${runs:-no} runs, $covered places reached, $(find build/fuzz/broken -name "$reader-*" | wc -l) broken"
done
exit $failed
