#!/bin/sh
# against_numpy.sh FLASHSKETCH - runs against_numpy.py with a Python that has NumPy; exits 77 where there is none.
set -eu
for python in python3 /usr/bin/python3; do
    if "$python" -c "import numpy" 2>/dev/null; then
        exec "$python" -B "$(dirname "$0")/against_numpy.py" "$1"
    fi
done
echo "no Python with NumPy here"
exit 77
