#!/bin/sh
# test_docs.sh - builds the site and opens every page in headless Chromium (tests/site).
#
# usage: test_docs.sh REPORT      REPORT: where pytest's JUnit report goes
#
# Builds build/release if it is not there.  Leaves two screenshots to look at, build/site-desktop.png and
# build/site-phone.png.  Exits with 77 and a message where there is no Chromium, no venv module, or no index for pip.
set -eu
report=$1
root=$(cd "$(dirname "$0")/.." && pwd)
for name in chromium chromium-browser google-chrome; do
    ! command -v "$name" >/dev/null || chromium=$name
done
[ -n "${chromium-}" ] || { echo "there is no Chromium: the Debian package chromium has it"; exit 77; }
if [ ! -x "$root/build/release/cli/flashsketch" ]; then
    (cd "$root" && cmake --preset release -DFS_CUDA=OFF --log-level=WARNING &&
        cmake --build --preset release --target flashsketch_cli ${JOBS:+-j "$JOBS"})
fi
sh "$root/scripts/docs.sh"
exec "$root/build/docs/venv/bin/python" -B -m pytest -c "$root/pyproject.toml" --rootdir "$root" -p no:cacheprovider \
    -q -rs --junitxml "$report" "$root/tests/site"
