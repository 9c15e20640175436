"""old_glibc.py - libraries to link with, so that what is linked runs with an older glibc than this machine's.

usage: old_glibc.py VERSION CC LIBC_FOLDER OUT      for example: old_glibc.py 2.28 gcc /lib/x86_64-linux-gnu build/glibc

A glibc keeps the old versions of its symbols, and a program asks for the version that the linker saw.  So OUT gets
libc.so.6, libm.so.6 and others without code, which have of every symbol in LIBC_FOLDER the newest version up to
VERSION, and not the symbols that are newer: needing one is an error of the linker, before it is one of a user's loader.
`CC -L OUT` links with them.  Functions that 2.34 moved into libc.so.6 are in the libraries where they were before, and
those of the stat family, which 2.33 made symbols, call the functions behind the former inline ones.
"""

import pathlib
import re
import subprocess
import sys
from typing import Dict, NamedTuple, Tuple


class Symbol(NamedTuple):
    version: str
    kind: str
    size: int


# Where functions of today's libc.so.6 were before 2.34.
MOVED = [("libpthread.so.0", r"pthread_|sem_"), ("libdl.so.2", r"dl(open|close|sym|vsym|error|addr|addr1|info|mopen)$"),
         ("librt.so.1", r"(shm_|aio_|mq_|timer_|lio_)")]
MERGED = (2, 34)
# The archive beside libc.so.6: functions that were inline before 2.33, over those that they called.  The first argument
# is the layout of struct stat, which is 1 on x86-64 and 0 on aarch64.
STAT = """
#include <sys/stat.h>
#ifdef __x86_64__
enum { LAYOUT = 1 };
#else
enum { LAYOUT = 0 };
#endif
int __xstat(int, const char *, struct stat *);
int __lxstat(int, const char *, struct stat *);
int __fxstat(int, int, struct stat *);
__attribute__((visibility("hidden"))) int stat(const char *path, struct stat *s) { return __xstat(LAYOUT, path, s); }
__attribute__((visibility("hidden"))) int lstat(const char *path, struct stat *s) { return __lxstat(LAYOUT, path, s); }
__attribute__((visibility("hidden"))) int fstat(int file, struct stat *s) { return __fxstat(LAYOUT, file, s); }
"""


def number(version: str) -> Tuple[int, ...]:
    return tuple(map(int, version.removeprefix("GLIBC_").split(".")))


def symbols(library: pathlib.Path, limit: Tuple[int, ...]) -> Tuple[Dict[str, Symbol], Dict[str, Symbol]]:
    """Of each symbol the newest version up to the limit: those that stay, and those that 2.34 moved here."""
    listed = subprocess.run(["readelf", "-W", "--dyn-syms", library], check=True, capture_output=True, text=True).stdout
    found: Dict[str, Symbol] = {}
    moved = set()
    for line in listed.splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[6] == "UND" or fields[3] not in ("FUNC", "OBJECT", "IFUNC"):
            continue
        name, _, version = fields[7].replace("@@", "@").partition("@")
        if not re.fullmatch(r"GLIBC_[\d.]+", version):
            continue
        if number(version) > limit:
            if number(version) == MERGED or name.startswith("pthread_"):
                moved.add(name)
        elif name not in found or number(found[name].version) < number(version):
            found[name] = Symbol(version, "object" if fields[3] == "OBJECT" else "function", int(fields[2], 0))
    return ({name: symbol for name, symbol in found.items() if name not in moved},
            {name: symbol for name, symbol in found.items() if name in moved})


def write(compiler: str, out: pathlib.Path, soname: str, wanted: Dict[str, Symbol]) -> None:
    """A shared library of that name with those symbols."""
    source = []
    for i, (name, symbol) in enumerate(sorted(wanted.items())):
        # Data has its size, which an executable may reserve for a copy of its own.
        size = max(symbol.size, 1)
        source += [".data" if symbol.kind == "object" else ".text", f".globl stub_{i}",
                   f".type stub_{i}, %{symbol.kind}", f".size stub_{i}, {size}", f"stub_{i}: .skip {size}",
                   f".symver stub_{i}, {name}@@@{symbol.version}"]
    versions = sorted({symbol.version for symbol in wanted.values()}, key=number)
    path = out / soname
    path.with_suffix(".s").write_text("\n".join(source) + "\n")
    path.with_suffix(".map").write_text("".join(f"{version} {{ }};\n" for version in versions))
    subprocess.run([compiler, "-shared", "-nostdlib", "-o", path, path.with_suffix(".s"), f"-Wl,-soname,{soname}",
                    f"-Wl,--version-script={path.with_suffix('.map')}", "-Wl,--hash-style=gnu"], check=True)


def main() -> None:
    limit, compiler = number(sys.argv[1]), sys.argv[2]
    folder, out = pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
    out.mkdir(parents=True, exist_ok=True)
    libc, merged = symbols(folder / "libc.so.6", limit)
    libm, _ = symbols(folder / "libm.so.6", limit)
    write(compiler, out, "libm.so.6", libm)
    for soname, pattern in MOVED:
        part = {name: symbol for name, symbol in {**libc, **merged}.items() if re.match(pattern, name)}
        libc = {name: symbol for name, symbol in libc.items() if name not in part}
        write(compiler, out, soname, part)
    libc.update({name: symbol for name, symbol in merged.items()
                 if not any(re.match(pattern, name) for _, pattern in MOVED)})
    write(compiler, out, "libc.so.6", libc)

    (out / "stat.c").write_text(STAT)
    subprocess.run([compiler, "-std=gnu11", "-O2", "-fPIC", "-c", out / "stat.c", "-o", out / "stat.o"], check=True)
    (out / "libstat.a").unlink(missing_ok=True)
    subprocess.run([compiler.removesuffix("gcc") + "ar", "rcs", out / "libstat.a", out / "stat.o"], check=True)

    def ask(name: str) -> str:
        return subprocess.run([compiler, f"-print-file-name={name}"], check=True, capture_output=True,
                              text=True).stdout.strip()

    # What the compiler's own libc.so is too: a script of the linker.
    loader = next(folder.glob("ld-linux-*.so.*"))
    needed = " ".join(str(out / name) for name, _ in MOVED)
    (out / "libc.so").write_text(f"GROUP ( {out / 'libc.so.6'} {out / 'libstat.a'} {ask('libc_nonshared.a')} "
                                 f"AS_NEEDED ( {needed} {loader} ) )\n")
    for name in ("libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"):
        link = out / name.split(".so")[0]
        link = link.with_name(link.name + ".so")
        link.unlink(missing_ok=True)
        link.symlink_to(name)


if __name__ == "__main__":
    main()
