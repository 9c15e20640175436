#!/bin/sh
# install.sh - installs into a prefix, and builds and runs an example against nothing but that prefix.
#
#     install.sh prefix CMAKE BUILD PREFIX
#     install.sh pkg_config COMPILER PREFIX EXAMPLE                     exits 77 without pkg-config
#     install.sh find_package CMAKE PREFIX EXAMPLE CONSUMER COMPILER
#     install.sh mpi MPICC MPIRUN PREFIX EXAMPLE                        exits 77 without pkg-config
#     install.sh plugin COMPILER PREFIX PROGRAM
#     install.sh libdir CMAKE SOURCE PREFIX                             exits 77 without pkg-config
#     install.sh system COMPILER BUILD PREFIX EXAMPLE SOURCE            exits 77 without root or namespaces
#     install.sh home COMPILER BUILD PREFIX EXAMPLE SOURCE              exits 77 without pkg-config
#
# plugin runs PROGRAM where the CUDA plugin can be found beside the library alone, and with every GPU hidden from it.
# libdir configures for libraries in lib/<triplet>, as Debian has them in /usr, and checks that flashsketch.pc finds
# the header from there too.  system and home run `make install`'s script and then what README.md says, in a shell
# with no other settings: for /usr/local, in a mount namespace with copies of /usr/local's folders and /etc, no
# variable is set; for a prefix of one's own, the variables that the script prints are.
set -eu
how=$1 tool=$2
unset LD_LIBRARY_PATH LIBRARY_PATH CPATH || true

# The folder of the library: lib, lib64 or lib/<triplet>, as the platform has it.
libdir() { dirname "$(find "$1" -name 'libflashsketch.so' | head -n 1)"; }

case $how in
prefix)
    build=$3 prefix=$4
    rm -rf "$prefix"
    "$tool" --install "$build" --prefix "$prefix" >"$prefix.log" 2>&1 || { cat "$prefix.log"; exit 1; }
    test -f "$prefix/include/flashsketch.h" && test -f "$prefix/include/flashsketch_tasks.h" &&
        test -f "$prefix/include/flashsketch_attribution.h"
    test -f "$prefix/include/flashsketch_extend.h"
    test -f "$prefix/share/flashsketch/vectors.txt"
    test -f "$(libdir "$prefix")/pkgconfig/flashsketch.pc"
    # Before 1.0 every minor version has an ABI of its own: lib...so.0.1 for version 0.1.x.
    version=$(sed -n 's/^Version: //p' "$(libdir "$prefix")/pkgconfig/flashsketch.pc")
    for library in flashsketch flashsketch_files flashsketch_mpi; do
        [ ! -e "$(libdir "$prefix")/lib$library.so" ] || test -e "$(libdir "$prefix")/lib$library.so.${version%.*}"
    done
    [ -x "$prefix/bin/flashsketch" ] || exit 0 # built without the command
    test -f "$prefix/include/flashsketch_files.h"
    test -f "$(libdir "$prefix")/libflashsketch_files.so"
    "$prefix/bin/flashsketch" version
    grep -q '^.SH NAME' "$prefix/share/man/man1/flashsketch.1"
    for command in $("$prefix/bin/flashsketch" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
        page=$prefix/share/man/man1/flashsketch-$command.1
        grep -q "^flashsketch\\\\-$command" "$page" && grep -q '^.SH OPTIONS' "$page" ||
            { echo "$page is no man page of $command"; exit 1; }
        ! command -v man >/dev/null || [ -z "$(MANWIDTH=100 man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null)" ] ||
            { echo "$page has errors"; exit 1; }
    done
    grep -q '^complete -F _flashsketch flashsketch' "$prefix/share/bash-completion/completions/flashsketch"
    grep -q '^#compdef flashsketch' "$prefix/share/zsh/site-functions/_flashsketch"
    ;;
pkg_config)
    prefix=$3 example=$4
    command -v pkg-config >/dev/null || { echo "no pkg-config here"; exit 77; }
    PKG_CONFIG_PATH=$(libdir "$prefix")/pkgconfig
    export PKG_CONFIG_PATH
    for header in "$prefix"/include/flashsketch*.h; do # each is complete with what is installed; MPI's is mpicc's
        # shellcheck disable=SC2046  # several words
        [ "${header##*/}" = flashsketch_mpi.h ] || echo "#include <${header##*/}>" |
            "$tool" -std=c11 -fsyntax-only $(pkg-config --cflags flashsketch) -x c - || exit 1
    done
    # shellcheck disable=SC2046  # several words
    "$tool" -std=c11 $(pkg-config --cflags flashsketch) "$example" -o "$prefix.by_pkg_config" \
        $(pkg-config --libs flashsketch)
    LD_LIBRARY_PATH=$(libdir "$prefix") "$prefix.by_pkg_config"
    ;;
mpi)
    launcher=$3 prefix=$4 example=$5
    command -v pkg-config >/dev/null || { echo "no pkg-config here"; exit 77; }
    PKG_CONFIG_PATH=$(libdir "$prefix")/pkgconfig
    export PKG_CONFIG_PATH
    # shellcheck disable=SC2046  # several words
    "$tool" -std=c11 $(pkg-config --cflags flashsketch_mpi) "$example" -o "$prefix.mpi" \
        $(pkg-config --libs flashsketch_mpi) -lm
    LD_LIBRARY_PATH=$(libdir "$prefix") "$launcher" -n 2 "$prefix.mpi"
    ;;
find_package)
    prefix=$3 example=$4 consumer=$5 compiler=$6
    rm -rf "$prefix.consumer"
    "$tool" -S "$consumer" -B "$prefix.consumer" -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLE="$example" \
        -DCMAKE_C_COMPILER="$compiler" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
    "$tool" --build "$prefix.consumer"
    "$prefix.consumer/consumer"
    ;;
plugin)
    prefix=$3 program=$4
    folder=$(libdir "$prefix")
    test -f "$folder/libflashsketch_cuda.so" || { echo "$folder has no libflashsketch_cuda.so"; exit 1; }
    [ ! -x "$prefix/bin/flashsketch" ] || test -f "$folder/libflashsketch_grass_cuda.so" ||
        { echo "$folder has no libflashsketch_grass_cuda.so"; exit 1; }
    "$tool" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" "$program" -o "$prefix.plugin" \
        "$folder/libflashsketch.so" -Wl,--enable-new-dtags,-rpath,"$folder"
    unset FLASHSKETCH_CUDA_PLUGIN FLASHSKETCH_TUNING || true
    CUDA_VISIBLE_DEVICES="" "$prefix.plugin"
    ;;
libdir)
    source=$3 prefix=$4.libdir
    command -v pkg-config >/dev/null || { echo "no pkg-config here"; exit 77; }
    rm -rf "$prefix"
    "$tool" -S "$source" -B "$prefix/build" -DCMAKE_INSTALL_LIBDIR=lib/some-triplet -DFS_BUILD_CLI=OFF \
        -DFS_BUILD_BENCH=OFF -DFS_BUILD_TESTS=OFF -DFS_CUDA=OFF >/dev/null
    mkdir -p "$prefix/lib/some-triplet/pkgconfig" "$prefix/include"
    cp "$source/include/flashsketch.h" "$prefix/include"
    cp "$prefix/build/flashsketch.pc" "$prefix/lib/some-triplet/pkgconfig"
    include=$(PKG_CONFIG_PATH=$prefix/lib/some-triplet/pkgconfig pkg-config --variable=includedir flashsketch)
    echo "flashsketch.pc in lib/some-triplet/pkgconfig says the header is in $include"
    test -f "$include/flashsketch.h"
    ;;
system)
    build=$3 work=$4.system example=$5 source=$6
    command -v pkg-config >/dev/null || { echo "no pkg-config here"; exit 77; }
    [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || { echo "no mount namespaces here"; exit 77; }
    rm -rf "$work" && mkdir -p "$work"
    export tool build work example source
    result=0
    unshare -m sh -eu -c '
        for folder in /etc /usr/local/bin /usr/local/include /usr/local/lib /usr/local/share; do
            mkdir -p "$folder" "$work$folder"
            cp -a "$folder/." "$work$folder"
            mount --bind "$work$folder" "$folder" || { echo "no bind mounts here"; exit 77; }
        done
        sh "$source/scripts/install.sh" "$build" /usr/local >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
        if grep LD_LIBRARY_PATH "$work/log"; then echo "the loader does not search /usr/local/lib"; exit 1; fi
        cd "$work"
        "$tool" "$example" $(pkg-config --cflags --libs flashsketch) -lm
        ./a.out
        flashsketch version' || result=$?
    rm -rf "$work"
    exit $result
    ;;
home)
    build=$3 prefix=$4.home example=$5 source=$6
    command -v pkg-config >/dev/null || { echo "no pkg-config here"; exit 77; }
    rm -rf "$prefix"
    sh "$source/scripts/install.sh" "$build" "$prefix" >"$prefix.log" 2>&1 || { cat "$prefix.log"; exit 1; }
    lines=$(sed -n 's/^    \(export .*\)/\1/p' "$prefix.log")
    echo "$lines"
    eval "$lines"
    cd "$prefix"
    # shellcheck disable=SC2046  # several words
    "$tool" "$example" $(pkg-config --cflags --libs flashsketch) -lm
    ./a.out
    flashsketch version
    ;;
esac
