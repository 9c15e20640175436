#!/bin/sh
# others.sh OTHERS FOLDER - has NumPy and SciPy write files into FOLDER and the program OTHERS read them; exits 77 where
# no Python has NumPy.
set -eu
for python in python3 /usr/bin/python3; do
    if "$python" -c "import numpy" 2>/dev/null; then
        "$python" -B "$(dirname "$0")/others.py" "$2"
        exec "$1" "$2"
    fi
done
echo "no Python with NumPy here"
exit 77
