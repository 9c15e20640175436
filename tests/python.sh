#!/bin/sh
# python.sh MODULE PROGRAM [ARGUMENT]... - runs a Python program with the first Python that has a module: $PYTHON if it
# is set, the one on the path, the system's.  Exits 77 where none has it.
module=$1
shift
for python in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do
    if "$python" -c "import $module" 2>/dev/null; then
        exec "$python" -B "$@"
    fi
done
echo "no Python with $module here"
exit 77
