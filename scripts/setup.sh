#!/bin/sh
# setup.sh - installs the Debian packages that a target of the Makefile needs.
#
# usage: setup.sh build|demo|bench|solve|test|python|packages|docs|lint.  As root it installs what is missing; otherwise
# it prints the command that does, and fails if a needed package is missing.  A missing optional package is not an error:
# tests are skipped or builds are slower without it, and a line reports it.
set -eu

need="build-essential cmake ninja-build zlib1g-dev libcjson-dev"
want=""
case ${1-} in
build) want="libopenblas0" ;;
demo)
    need="$need libopenblas0"
    want="dataset-fashion-mnist"
    ;;
bench) want="libopenblas0 python3-matplotlib" ;;
solve) want="libopenblas0 python3-matplotlib python3-scipy python3-sklearn" ;;
test)
    need="$need libcmocka-dev pkg-config libopenblas0"
    want="libopenblas-dev python3-numpy python3-scipy python3-matplotlib clang libclang-rt-dev libomp-dev python3-venv"
    want="$want openmpi-bin libopenmpi-dev mpich libmpich-dev dataset-fashion-mnist clang-format ccache chromium"
    want="$want gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
    ;;
python)
    need="$need libopenblas0"
    want="python3-venv"
    ;;
packages)
    need="$need libopenblas0 python3-venv"
    want="debhelper dh-python lintian pkg-config python3-numpy gfortran"
    ;;
docs)
    need="$need python3"
    want="python3-venv chromium"
    ;;
lint)
    need="$need python3"
    want="libcmocka-dev libopenmpi-dev python3-venv clang-format clang-tidy libomp-dev"
    ;;
*)
    echo "usage: setup.sh build|demo|bench|solve|test|python|packages|docs|lint" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "This is not Debian, so nothing is installed.  Needed are what these Debian packages hold: $need${want:+;
good to have: $want}." >&2
    exit 0
fi

# missing PACKAGE...: those that are not installed.
missing() {
    for package; do
        status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || status=absent
        [ "$status" = installed ] || printf '%s ' "$package"
    done
}

install() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" </dev/null >/dev/null
}

needed=$(missing $need)
wanted=$(missing $want)
[ -z "$needed$wanted" ] && exit 0

if [ "$(id -u)" -ne 0 ]; then
    echo "Some packages are missing; this installs them:" >&2
    echo "    sudo apt-get install -y --no-install-recommends $needed$wanted" >&2
    [ -z "$needed" ] && exit 0
    exit 1
fi

echo "Installing $needed$wanted" >&2
apt-get -qq update </dev/null >&2 || echo "apt-get update failed; continuing with the package lists that are here." >&2
if [ -n "$needed" ] && ! install $needed; then
    echo "These packages could not be installed, and nothing works without them: $needed" >&2
    exit 1
fi
for package in $wanted; do
    install "$package" || echo "$package could not be installed; what uses it is skipped or slower." >&2
done
