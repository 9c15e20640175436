#!/usr/bin/env python3
"""torch_without_cuda.py - installs PyTorch from pip's index without the 2 GB of CUDA packages that it requires.

usage: VENV/bin/python torch_without_cuda.py [REQUIREMENT]      REQUIREMENT: for pip; default torch>=2.7

For the tests of the Python package on a machine without a GPU.  PyTorch's wheel for Linux is a build with CUDA: its
libraries are linked to cuBLAS, cuDNN, NCCL and others, so that it cannot be imported without them, although on a CPU
nothing of them is called.  So torch is installed without its dependencies, those of its dependencies that are not of
CUDA are installed, and every library that is then missing is made here: with the functions and symbol versions that
torch's libraries need from it, all of which return 100, cudaErrorNoDevice.  torch.cuda.is_available() is False.

Downloads about 600 MB and takes 1.3 GB in the environment.  Needs cc and readelf.  Exits with 1 and a message if torch
cannot be installed or does not work; then torch is uninstalled again."""
import importlib.metadata
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

CUDA = re.compile(r"(nvidia|cuda|triton)", re.IGNORECASE)
LIBRARY = re.compile(r"lib(cu|nv|nccl)")  # those of NVIDIA, by their names
DRIVER = {"libcuda.so.1"}  # comes with a GPU, and is opened when there is one
PROBE = """
import torch
A = torch.randn(50, 50, requires_grad=True)
(A @ A).sum().backward()
assert not torch.cuda.is_available() and A.grad.shape == (50, 50)
print("torch", torch.__version__, "without CUDA")
"""


def pip(*arguments):
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--no-input"]
    return subprocess.run(command, capture_output=True, text=True)


def install(requirement):
    """torch, and what it needs beside CUDA; the error's text, or nothing."""
    told = pip("install", "--no-cache-dir", "--no-deps", requirement)
    if told.returncode:
        return told.stderr.strip()
    needed = [line for line in importlib.metadata.requires("torch") or [] if "extra ==" not in line]
    told = pip("install", *[line for line in needed if not CUDA.match(line)])
    return told.stderr.strip() if told.returncode else ""


class Library:
    """The symbols that one of torch's libraries needs from others."""

    def __init__(self, path):
        text = subprocess.run(["readelf", "-W", "-d", "-V", "--dyn-syms", path], capture_output=True, text=True,
                              check=True).stdout
        self.needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
        self.undefined = re.findall(r" UND (\w+)(?:@(\S+))?", text)  # name, version or ""
        self.versions = {}  # by the library that has them
        for file, names in re.findall(r"File: (\S+) +Cnt: \d+\n((?:.*  Name: .*\n)+)", text):
            self.versions[file] = re.findall(r"Name: (\S+)", names)


def stub(name, libraries, folder):
    """Makes a missing library.  A symbol without a version belongs to it if it begins as the library's name does."""
    stem = re.sub(r"lib([A-Za-z]+).*", r"\1", name)
    symbols: dict[str, set[str]] = {}  # by version, "" for none
    for library in libraries:
        for version in library.versions.get(name, ()):
            symbols.setdefault(version, set())
        for symbol, version in library.undefined:
            if version in symbols if version else symbol.lower().startswith(stem.lower()):
                symbols.setdefault(version, set()).add(symbol)
    code = "".join(f"int {symbol}(void) {{ return 100; }}\n" for symbol in sorted(set().union(*symbols.values())))
    script = folder / "stub.map"
    script.write_text("".join(
        f"{version} {{ global: {''.join(f'{symbol}; ' for symbol in sorted(of))}}};\n"
        for version, of in symbols.items() if version
    ))
    command = ["cc", "-w", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{name}", "-o", folder / name]
    versioned = [f"-Wl,--version-script={script}"] if script.stat().st_size else []
    subprocess.run([*command, *versioned], input=code, text=True, check=True)
    script.unlink()


def main():
    problem = install(*(sys.argv[1:] or ["torch>=2.7"]))
    package = pathlib.Path(sysconfig.get_path("platlib"), "torch")
    if not problem:
        folder = package / "lib"
        libraries = [Library(path) for path in sorted(folder.glob("*.so*"))]
        for name in sorted({name for library in libraries for name in library.needed}):
            if LIBRARY.match(name) and name not in DRIVER and not (folder / name).exists():
                stub(name, libraries, folder)
        probe = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True)
        print(probe.stdout, end="")
        if probe.returncode:  # negative: a signal, which leaves no text
            problem = probe.stderr.strip() or f"import torch ends with {probe.returncode}"
    if problem:
        pip("uninstall", "-y", "torch")
        # pip leaves files that it did not install, and the folder can still be imported
        shutil.rmtree(package, ignore_errors=True)
        sys.exit(f"PyTorch could not be installed without CUDA: {problem.splitlines()[-1]}")


if __name__ == "__main__":
    main()
