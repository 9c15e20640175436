#!/bin/sh
# debian.sh ROOT PACKAGE... - installs Debian packages in an overlay of this system, uses them, and removes them.  It runs
# in a mount namespace of its own, so that nothing stays; exits with 77 where an overlay cannot be mounted.
set -eu
root=$1
shift
work=$root/build/packages/overlay
mkdir -p "$work"
mount -t tmpfs tmpfs "$work" && mkdir "$work/upper" "$work/work" "$work/root" &&
    mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root" ||
    { echo "no overlay can be mounted here"; exit 77; }
there=$work/root
mkdir "$there/packages" "$there/program"
cp "$@" "$there/packages"
cp "$root/examples/01_sketch.c" "$root/tests/install/consumer/CMakeLists.txt" "$root/tests/packages/soname.sh" "$there/program"
mount -t proc proc "$there/proc"
mount --bind /dev "$there/dev"
# What a package needs and this system lacks is a reason to skip, and dpkg names it.
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$there" sh -eu -c '
    cd /program
    rm -f /var/lib/man-db/auto-update # the index of all man pages takes longer than the rest
    dpkg -i /packages/*.deb >log 2>&1 || {
        cat log
        ! grep -q "dependency problems" log || { echo "this system lacks a dependency: $(grep -m 1 depends log)"; exit 77; }
        exit 1
    }
    flashsketch --version
    flashsketch check | grep "products are right"
    test -f /usr/share/man/man1/flashsketch-lstsq.1.gz || test -d /etc/dpkg/dpkg.cfg.d
    cc -std=c11 01_sketch.c $(pkg-config --cflags --libs flashsketch) -lm -o by_pkg_config
    ./by_pkg_config
    cmake -S . -B build -DEXAMPLE=/program/01_sketch.c >/dev/null
    cmake --build build >/dev/null
    build/consumer
    sh soname.sh by_pkg_config
    /usr/bin/python3 -c "
import flashsketch as fs, numpy as np
print(fs.__version__, (fs.Sketch(k=9, d=99) @ np.ones((99, 2))).shape)
print(fs.lstsq(np.eye(30, 3), np.ones(30)).x)
"
    /usr/bin/python3 -m flashsketch version
    dpkg --purge python3-flashsketch flashsketch-bin libflashsketch-dev libflashsketch0.1 >log 2>&1
    left=$(find /usr -name "*flashsketch*" -newer /program/log -o -path "/usr/lib/python3/dist-packages/flashsketch*")
    [ -z "$left" ] || { echo "left behind: $left"; exit 1; }
    echo "all of it worked"'
