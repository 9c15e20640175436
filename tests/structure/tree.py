"""tree.py - the source files of the repository and the report that the checks of this folder share."""
import argparse
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def sources(root, folders, suffixes):
    """Paths of the files below `folders`, relative to root and sorted.  Needs no git: a source archive has none."""
    found = []
    for folder in folders:
        for directory, below, names in os.walk(root / folder):
            below[:] = [name for name in below if name != "__pycache__"]
            found += [pathlib.Path(directory, name).relative_to(root) for name in names if name.endswith(suffixes)]
    return sorted(found)


def lines(root, path):
    """The numbered lines of a file."""
    return enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1)


def arguments(what):
    """The command line of a check: the root of the tree, so that the self-test can plant violations in another one."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    return parser


def report(problems, rule):
    """Prints every problem and exits with 1, or reports that the rule holds."""
    for problem in problems:
        print(problem)
    print(f"{len(problems)} violations: {rule}" if problems else f"holds: {rule}")
    sys.exit(1 if problems else 0)
