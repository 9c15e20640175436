#!/bin/sh
# death.sh - a rank that is killed in the middle of a solver ends all ranks: the launcher exits with an error.
#
# usage: death.sh LAUNCHER...
timeout 60 "$@"
status=$?
[ $status = 77 ] && exit 77
[ $status != 0 ] && [ $status != 124 ] || { echo "death.sh: the launcher ended with $status" >&2; exit 1; }
