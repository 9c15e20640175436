#!/bin/sh
# wheels.sh - builds the Python wheels in dist (DIST=FOLDER), the same bytes each time, on a Debian machine.
#
# usage: wheels.sh [x86_64|aarch64|cuda]...      default: all that this machine has compilers for
#
#     x86_64, aarch64   libflashsketch: the library, files, the command, with OpenMP and cJSON inside.  The one that is not
#                       this machine's needs Debian's cross compiler, gcc-aarch64-linux-gnu or gcc-x86-64-linux-gnu.
#     cuda              libflashsketch-cuda12 or -cuda13, by the release of nvcc (CUDACXX, the PATH or /usr/local/cuda):
#                       the CUDA plugin for every GPU from compute capability 7.5 on, or for those of CUDA="90a-real".
#                       All of them take half an hour of two cores.
#
# The wheels are manylinux_2_28: they run with glibc 2.28 and later.  Debian's compiler is used with libraries that have
# the symbols of glibc 2.28 alone (packaging/wheels/old_glibc.py) and with the libgomp of manylinux
# (packaging/wheels/libgomp.txt), which goes into the wheels as it is, under the name that scikit-learn has it by: a
# process that uses several of them has one OpenMP.  auditwheel checks the result and puts cJSON inside.  What it says
# is in build/wheels/*.log.  The bytes of libflashsketch are the same wherever the checkout lies, those of a plugin in
# the same folder: nvcc makes names of anonymous namespaces from paths.  Dates in the wheels are SOURCE_DATE_EPOCH, by
# default the commit's.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/build/wheels
dist=${DIST:-$root/dist}
tools=$root/packaging/wheels
version=$(cat "$root/VERSION")
glibc=2.28
core_limit=10 plugin_limit=60 # MB
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 1767225600)}
PIP_DISABLE_PIP_VERSION_CHECK=1
export SOURCE_DATE_EPOCH PIP_DISABLE_PIP_VERSION_CHECK
umask 022
unset LD_LIBRARY_PATH CFLAGS CXXFLAGS LDFLAGS CPATH LIBRARY_PATH CMAKE_TOOLCHAIN_FILE || true
machine=$(uname -m)

die() { echo "wheels.sh: $*" >&2; exit 1; }

# compiler ARCHITECTURE NAME: Debian's gcc or g++ for it.
compiler() { [ "$1" = "$machine" ] && echo "$2" || echo "$1-linux-gnu-$2"; }

# The tools, in an environment of their own.
tools() {
    [ ! -f "$work/tools.done" ] || cmp -s "$work/tools.done" "$tools/tools.txt" || rm -rf "$work/venv"
    if [ ! -x "$work/venv/bin/auditwheel" ]; then
        python3 -m venv "$work/venv" || die "python3 has no venv: the Debian package python3-venv has it"
        "$work/venv/bin/pip" install -q -r "$tools/tools.txt" || die "pip could not install packaging/wheels/tools.txt"
        cp "$tools/tools.txt" "$work/tools.done"
    fi
    PATH=$work/venv/bin:$PATH
}

# foreign ARCHITECTURE APT_GET_COMMAND...: apt-get for another architecture, with lists of its own in $sysroot/apt.
foreign() {
    architecture=$1
    shift
    apt-get -qq -o APT::Architecture="$architecture" -o APT::Architectures::="$architecture" -o APT::Sandbox::User=root \
        -o Dir::State="$sysroot/apt" -o Dir::State::status=/dev/null -o Dir::Cache="$sysroot/apt/cache" "$@"
}

# unpack ARCHITECTURE PACKAGE...: Debian packages of another architecture, unpacked into $sysroot and not installed.
unpack() {
    mkdir -p "$sysroot/apt/lists/partial" "$sysroot/apt/cache/archives/partial" "$sysroot/apt/debs"
    foreign "$1" update
    (cd "$sysroot/apt/debs" && architecture=$1 && shift && foreign "$architecture" download "$@")
    for package in "$sysroot/apt/debs"/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
    find "$sysroot/usr/lib" -type l -lname '/*' | while read -r link; do # they are for an installed package
        ln -sf "$sysroot$(readlink "$link")" "$link"
    done
}

# What an architecture is linked with: $sysroot, $licences, $components, and the flags.
prepare() {
    arch=$1
    sysroot=$work/sysroot-$arch licences=$work/licences-$arch
    mkdir -p "$sysroot" "$licences"
    CC=$(compiler "$arch" gcc) CXX=$(compiler "$arch" g++)
    command -v "$CC" >/dev/null || die "there is no $CC: the Debian package gcc-$(echo "$arch" | tr _ -)-linux-gnu has it"
    triplet=$arch-linux-gnu
    libc=/lib/$triplet
    [ "$arch" = "$machine" ] || libc=/usr/$triplet/lib
    python3 "$tools/old_glibc.py" $glibc "$CC" "$libc" "$sysroot/glibc"

    if [ ! -f "$sysroot/lib/libgomp.so" ]; then
        rm -rf "$sysroot/gomp"
        pip download -q --no-deps --only-binary :all: --python-version 3.11 --implementation cp --abi cp311 \
            --platform "manylinux_2_28_$arch" --require-hashes -r "$tools/libgomp.txt" -d "$sysroot/gomp"
        (cd "$sysroot/gomp" && python3 -m zipfile -e ./*.whl .)
        mkdir -p "$sysroot/lib"
        cp "$sysroot/gomp/scikit_learn.libs"/libgomp-* "$sysroot/lib"
        ln -sf "$(basename "$sysroot"/lib/libgomp-*)" "$sysroot/lib/libgomp.so"
    fi
    libgomp=$(echo "$sysroot"/lib/libgomp-*)
    gomp=$(sed -n 's/.*"purl": "\(pkg:rpm[^"]*libgomp@[^"]*\)".*/\1/p' "$sysroot/gomp"/*.dist-info/sboms/*.json)
    # The text of the exception and of the licence, as Debian has them.
    cat /usr/share/doc/libgomp1/copyright /usr/share/common-licenses/GPL-3 >"$licences/libgomp.txt"
    cp /usr/share/doc/libcjson1/copyright "$licences/libcjson.txt"

    prefix=/usr
    if [ "$arch" != "$machine" ]; then
        prefix=$sysroot/usr
        [ -e "$prefix/lib/$triplet/libcjson.so" ] ||
            unpack "$(echo "$arch" | sed 's/aarch64/arm64/; s/x86_64/amd64/')" libcjson-dev libcjson1 zlib1g-dev zlib1g
    fi
    cjson=$(basename "$(readlink -f "$prefix/lib/$triplet/libcjson.so")" | sed 's/libcjson\.so\.//')
    components="libgomp=${gomp##*@}=GPL-3.0-or-later WITH GCC-exception-3.1=$gomp
libcjson=$cjson=MIT=pkg:deb/debian/libcjson1@$cjson"
    export CC CXX
    export CFLAGS="-ffile-prefix-map=$root=."
    export CXXFLAGS="$CFLAGS"
    export LDFLAGS="-L$sysroot/glibc -L$sysroot/lib -Wl,-rpath-link,$sysroot/glibc -Wl,-rpath-link,$sysroot/lib -Wl,-z,relro,-z,now -Wl,--as-needed -s"
}

# finish WHEEL MEGABYTES: the libraries inside, the wheel in dist, and what auditwheel says of it.
finish() {
    rm -rf "$work/repaired"
    tagged=$(python3 -m wheel tags --remove --platform-tag "manylinux_$(echo $glibc | tr . _)_$arch" "$1")
    AUDITWHEEL_LD_LIBRARY_PATH=$sysroot/lib:$prefix/lib/$triplet auditwheel repair --plat auto --no-update-tags \
        -w "$work/repaired" "$(dirname "$1")/$tagged" >"$work/auditwheel.log" 2>&1 ||
        { cat "$work/auditwheel.log"; exit 1; }
    made=$(echo "$work/repaired"/*.whl)
    mkdir -p "$dist"
    saved=$IFS
    IFS='
'
    # shellcheck disable=SC2086  # a component is a line
    python3 "$tools/finish.py" "$made" "$dist" "$2" "$licences" $components
    IFS=$saved
    report=$work/$(basename "$made" .whl).log
    auditwheel show "$dist/$(basename "$made")" >"$report"
    found=$(tr '\n' ' ' <"$report" | sed -n 's/.*platform tag: *"manylinux_2_\([0-9]*\)_.*/\1/p')
    [ "${found:-99}" -le "${glibc#2.}" ] || { cat "$report"; die "$(basename "$made") needs a later glibc than $glibc"; }
}

core() {
    prepare "$1"
    set -- --config-settings=cmake.define.FS_CUDA=OFF --config-settings=cmake.define.FS_BUILD_CLI=ON \
        --config-settings=cmake.define.FS_WERROR=ON --config-settings=cmake.define.CMAKE_BUILD_WITH_INSTALL_RPATH=ON \
        --config-settings=build-dir="$work/core-$arch" \
        --config-settings=cmake.define.FS_WHEEL_LIBRARIES="$libgomp"
    if [ "$arch" != "$machine" ]; then
        set -- "$@" --config-settings=cmake.define.CMAKE_SYSTEM_NAME=Linux \
            --config-settings=cmake.define.CMAKE_SYSTEM_PROCESSOR="$arch" \
            --config-settings=cmake.define.CMAKE_LIBRARY_ARCHITECTURE="$triplet" \
            --config-settings=cmake.define.CMAKE_FIND_ROOT_PATH="$sysroot" \
            --config-settings=cmake.define.CMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER
    fi
    rm -rf "$work/core-$arch" "$work/built"
    _PYTHON_HOST_PLATFORM=linux-$arch pip wheel -v --no-deps --no-build-isolation -w "$work/built" "$@" "$root" \
        >"$work/core-$arch.log" 2>&1 || { tail -n 40 "$work/core-$arch.log"; die "the build failed"; }
    finish "$work"/built/*.whl $core_limit
}

cuda() {
    prepare "$machine"
    PATH=$PATH:/usr/local/cuda/bin
    nvcc=${CUDACXX:-nvcc}
    release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
    major=${release%%.*} build=$work/cuda${release%%.*}
    options=$(sh "$root/scripts/cuda.sh" "${CUDA:-all}")
    # shellcheck disable=SC2086  # several options
    cmake -S "$root" -B "$build" -G Ninja $options -DFS_WHEEL=ON -DFS_WERROR=ON -DFS_BUILD_TESTS=OFF \
        -DFS_BUILD_BENCH=OFF -DFS_BUILD_MPI=OFF -DFS_BUILD_CLI=OFF -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON \
        -DCMAKE_CUDA_FLAGS="-Xcompiler=-ffile-prefix-map=$root=." >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
    cmake --build "$build" --target flashsketch_cuda flashsketch_grass_cuda ${JOBS:+-j "$JOBS"} >>"$build.log" 2>&1 ||
        { tail -n 40 "$build.log"; die "the build failed"; }
    name=libflashsketch_cuda$major stage=$work/stage
    info=$stage/$name-$version.dist-info
    rm -rf "$stage" "$work/built"
    mkdir -p "$stage/flashsketch_cuda$major" "$info/licenses" "$work/built"
    cp "$build/src/cuda/libflashsketch_cuda.so" "$build/apps/grass/libflashsketch_grass_cuda.so" "$libgomp" \
        "$stage/flashsketch_cuda$major"
    cp "$root/LICENSE" "$info/licenses"
    cat >"$info/WHEEL" <<TEXT
Wheel-Version: 1.0
Generator: flashsketch scripts/wheels.sh
Root-Is-Purelib: false
Tag: py3-none-linux_$arch
TEXT
    cat >"$info/METADATA" <<TEXT
Metadata-Version: 2.4
Name: libflashsketch-cuda$major
Version: $version
Summary: The CUDA $major plugin of libflashsketch: random sketches on NVIDIA GPUs from compute capability 7.5 on
License-Expression: BSD-3-Clause
License-File: LICENSE
Requires-Python: >=3.11
Requires-Dist: libflashsketch==$version
Description-Content-Type: text/markdown

The plugin that libflashsketch opens where there is an NVIDIA GPU. Install it with
\`pip install "libflashsketch[cuda$major]"\`; the driver must support CUDA $major. cuBLAS, cuSOLVER and NCCL, which solvers and
several GPUs use, are found where PyTorch, CuPy or the system have them.
TEXT
    python3 -m wheel pack --dest-dir "$work/built" "$stage" >/dev/null
    # NVIDIA's licence lets programs contain cudart; its text comes with the toolkit, or with pip's package of cudart.
    eula=$(dirname "$(readlink -f "$(command -v "$nvcc")")")/../EULA.txt
    if [ ! -f "$eula" ]; then
        package=nvidia-cuda-runtime
        [ "$major" -ge 13 ] || package=$package-cu$major
        rm -rf "$work/cudart"
        pip download -q --no-deps --only-binary :all: "$package~=$release.0" -d "$work/cudart"
        (cd "$work/cudart" && python3 -m zipfile -e ./*.whl .)
        eula=$(find "$work/cudart" -name 'License.txt' | head -n 1)
    fi
    cp "$eula" "$licences/cudart.txt"
    components="$(echo "$components" | grep ^libgomp=)
cudart=$release=LicenseRef-NVIDIA-CUDA-EULA=pkg:generic/cudart@$release"
    finish "$work"/built/*.whl $plugin_limit
}

mkdir -p "$work"
tools
[ $# -gt 0 ] || {
    for arch in x86_64 aarch64; do ! command -v "$(compiler $arch gcc)" >/dev/null || set -- "$@" $arch; done
    PATH=$PATH:/usr/local/cuda/bin command -v "${CUDACXX:-nvcc}" >/dev/null && set -- "$@" cuda ||
        echo "There is no nvcc: no wheel of the CUDA plugin." >&2
}
for what; do
    case $what in
    x86_64 | aarch64) core "$what" ;;
    cuda) cuda ;;
    *) sed -n '3,5s/^# //p' "$0" >&2; exit 2 ;;
    esac
done
