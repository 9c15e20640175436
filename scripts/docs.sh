#!/bin/sh
# docs.sh - builds the site from the Markdown of the project, the headers and the Python docstrings.
#
# usage: docs.sh      writes build/site; open build/site/index.html
#
# Needs build/release (make build), whose library gives the docstrings and whose command the texts of --help.  The
# generator is installed by pip into a virtual environment in build/docs, once for each version of scripts/docs.txt.
# Exits with 77 where there is no venv module or pip cannot reach its index.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/build/docs
mkdir -p "$work"
if ! cmp -s "$root/scripts/docs.txt" "$work/installed.txt"; then
    rm -rf "$work/venv"
    python3 -m venv "$work/venv" >"$work/venv.log" 2>&1 ||
        { echo "python3 has no venv: the Debian package python3-venv has it"; exit 77; }
    PIP_DISABLE_PIP_VERSION_CHECK=1 "$work/venv/bin/pip" install -q -r "$root/scripts/docs.txt" >"$work/pip.log" 2>&1 ||
        { tail -n 2 "$work/pip.log"; echo "pip could not install scripts/docs.txt; is there a network?"; exit 77; }
    cp "$root/scripts/docs.txt" "$work/installed.txt"
fi
rm -rf "$root/build/site" "$work/pages"
"$work/venv/bin/python" -B "$root/scripts/site_pages.py" "$work/pages" "$root/build/release/cli/flashsketch"
FLASHSKETCH_LIBRARY="$root/build/release/src/libflashsketch.so" PYTHONPATH="$root/python" PYTHONDONTWRITEBYTECODE=1 \
    "$work/venv/bin/sphinx-build" -q -W --keep-going -j "${JOBS:-2}" -c "$root/docs/site" -d "$work/doctrees" \
    "$work/pages" "$root/build/site"
echo "$(find "$root/build/site" -name '*.html' | wc -l) pages in $root/build/site"
