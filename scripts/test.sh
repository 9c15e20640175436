#!/bin/sh
# test.sh - builds and tests CMake presets, the Python package, the site and the packages, and prints the counts.
#
# usage: test.sh PRESET|python|docs|packages...  All of them are run, one after the other, even when one fails; the exit
# code is 1 if any did.  python, docs and packages are scripts/test_NAME.sh REPORT, which leave pytest's JUnit report.
# JOBS limits the number of compilers and of tests at a time (default: the processors, but at most 4 tests, since a test
# itself may use all of them).  CUDA selects the GPUs that the preset release builds the CUDA plugin for
# (scripts/cuda.sh); the other presets build none.
cd "$(dirname "$0")/.." || exit 1
mkdir -p build
summary=build/test-summary.txt
printf '%-10s %6s %7s %8s %7s %8s\n' preset tests passed skipped failed seconds >$summary
failed=0
processors=$(nproc 2>/dev/null || echo 1)
tests_at_once=${JOBS:-$((processors < 4 ? processors : 4))}
# Threads that wait do not spin: tests run side by side.
export OMP_WAIT_POLICY=passive

# Whether the preset's compiler works: clang must compile OpenMP, that for aarch64 needs an emulator.  Otherwise the preset is skipped, with a line in the
# summary.
usable() {
    case $1 in
    aarch64)
        command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null
        return
        ;;
    clang) flags=-fopenmp ;;
    tsan) flags="-fopenmp -fsanitize=thread" ;;
    *) return 0 ;;
    esac
    echo 'int main(void) { return 0; }' | clang $flags -x c - -o build/probe 2>/dev/null
}

# attribute NAME FILE: a number in the head of a JUnit report, which CMake writes one to a line.
attribute() { sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1; }

run() {
    start=$(date +%s)
    report=$PWD/build/$1/tests.xml
    rm -f "$report"
    echo
    echo "== $1: building"
    cuda=
    [ "$1" != release ] || cuda=$(sh scripts/cuda.sh "${CUDA:-test}") || return 1
    # shellcheck disable=SC2086  # several options, or none
    cmake --preset "$1" $cuda -DFS_BUILD_TESTS=ON --log-level=WARNING &&
        cmake --build --preset "$1" ${JOBS:+-j "$JOBS"} || { echo "$1: the build failed" >>$summary; return 1; }
    echo "== $1: testing"
    ctest --preset "$1" -j "$tests_at_once" --output-junit "$report"
    result=$?
    [ -f "$report" ] || { echo "$1: the tests could not be run" >>$summary; return 1; }
    tests=$(attribute tests "$report") bad=$(attribute failures "$report")
    skipped=$(($(attribute skipped "$report") + $(attribute disabled "$report")))
    printf '%-10s %6d %7d %8d %7d %8d\n' "$1" "$tests" $((tests - bad - skipped)) "$skipped" "$bad" \
        $(($(date +%s) - start)) >>$summary
    sed -n 's/.*<testcase name="\([^"]*\)".*status="notrun".*/\1/p' "$report" | awk '
        /^device\./ { device++; next }
        { print "    skipped: " $0 }
        END { if (device) print "    skipped: " device " device tests: they need a GPU (make test-device)" }
    ' >>$summary
    [ "$tests" -gt 0 ] && return $result
    echo "$1: no tests were found" >>$summary
    return 1
}

# pytest_count NAME FILE: a number in the head of a report of pytest, which is one line.
pytest_count() { sed -n "s/.*<testsuite [^>]* $1=\"\([0-9]*\)\".*/\1/p" "$2"; }

# run_script NAME: scripts/test_NAME.sh, counted like a preset.
run_script() {
    start=$(date +%s)
    report=$PWD/build/$1.xml log=build/$1.log
    rm -f "$report"
    echo
    echo "== $1: building and testing"
    sh "scripts/test_$1.sh" "$report" >"$log" 2>&1
    result=$?
    cat "$log"
    [ $result != 77 ] || { echo "$1: skipped, $(tail -n 1 "$log")" >>$summary; return 0; }
    [ -f "$report" ] || { echo "$1: the tests could not be run" >>$summary; return 1; }
    tests=$(pytest_count tests "$report") skipped=$(pytest_count skipped "$report")
    bad=$(($(pytest_count failures "$report") + $(pytest_count errors "$report")))
    printf '%-10s %6d %7d %8d %7d %8d\n' "$1" "$tests" $((tests - bad - skipped)) "$skipped" "$bad" \
        $(($(date +%s) - start)) >>$summary
    sed -n 's/^SKIPPED \(\[[0-9]*\]\) [^ ]* \(.*\)/    skipped: \1 \2/p' "$log" | sort -u >>$summary
    return $result
}

for preset; do
    if [ -f "scripts/test_$preset.sh" ]; then
        run_script "$preset" || failed=1
    elif usable "$preset"; then
        run "$preset" || failed=1
    else
        packages="clang, libclang-rt-dev and libomp-dev"
        [ "$preset" != aarch64 ] || packages="gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user"
        echo "$preset: skipped, it needs the packages $packages" >>$summary
    fi
done
echo
cat $summary
exit $failed
