#!/bin/sh
# soname.sh PROGRAM - a program needs the library by its SONAME, which before 1.0 has the minor version, and the
# loader finds that library.
set -eu
readelf -d "$1" | grep -q 'NEEDED.*\[libflashsketch\.so\.0\.1\]' ||
    { echo "$1 does not need libflashsketch.so.0.1"; readelf -d "$1"; exit 1; }
! ldd "$1" | grep 'not found'
