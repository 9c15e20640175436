#!/bin/sh
# flashsketch - the command of the Python package libflashsketch: runs the program that lies in the package, without
# starting Python.
self=$(readlink -f "$0")
bin=${self%/*}
for program in "$bin"/../lib*/python3*/*-packages/flashsketch/bin/flashsketch "$bin"/../flashsketch/bin/flashsketch; do
    [ ! -x "$program" ] || exec "$program" "$@"
done
exec "$bin/python3" -m flashsketch "$@"
