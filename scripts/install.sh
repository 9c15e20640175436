#!/bin/sh
# install.sh - installs a build under a prefix and makes the loader find the library, or prints how.
#
# usage: install.sh BUILD PREFIX      with DESTDIR set, files are only staged there
#
# The loader finds a library in a folder that its cache covers.  As root the cache is refreshed (ldconfig), which is
# enough for /usr/local on Debian.  Where the folder is not covered, as with PREFIX=$HOME/.local, the lines that a shell
# needs for pkg-config and the loader are printed.
set -eu
build=$1 prefix=$2

cmake --install "$build" --prefix "$prefix"
[ -z "${DESTDIR-}" ] || exit 0 # a package's own scripts run ldconfig where it is unpacked

# lib, lib64 or lib/<triplet>: what CMake chose.
libdir=$(sed -n 's/^CMAKE_INSTALL_LIBDIR:[A-Z]*=//p' "$build/CMakeCache.txt")
folder=$(cd "$prefix/$libdir" && pwd)

PATH=$PATH:/sbin:/usr/sbin
if [ "$(id -u)" -eq 0 ] && command -v ldconfig >/dev/null; then ldconfig; fi
if command -v ldconfig >/dev/null && ldconfig -p | grep -qF "=> $folder/libflashsketch.so"; then exit 0; fi
cat <<TEXT

Installed in $prefix, which the loader does not search.  For this shell, and in your shell's start-up file:
    export PATH="$prefix/bin:\$PATH"
    export PKG_CONFIG_PATH="$folder/pkgconfig\${PKG_CONFIG_PATH:+:\$PKG_CONFIG_PATH}"
    export LD_LIBRARY_PATH="$folder\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
TEXT
