#!/usr/bin/env python3
"""lengths.py - checks that no source file has more than 600 lines.

usage: lengths.py [--root TREE]

An exception needs a reason; one that is not needed any more is an error."""
import tree

LIMIT = 600
FOLDERS = ("include", "src", "apps", "cli", "mpi", "bench", "python", "scripts", "examples", "tests")
EXCEPTIONS: dict[str, str] = {}


def check(root, exceptions):
    problems, used = [], set()
    for path in tree.sources(root, FOLDERS, (".c", ".h", ".cu", ".cuh", ".py")):
        count = sum(1 for _ in tree.lines(root, path))
        if count > LIMIT and path.as_posix() in exceptions:
            used.add(path.as_posix())
        elif count > LIMIT:
            problems.append(f"{path}:{LIMIT + 1}: the file has {count} lines; the limit is {LIMIT}")
    return problems + [f"stale exception, delete it: {path}" for path in sorted(set(exceptions) - used)]


def main():
    options = tree.arguments(__doc__.splitlines()[0]).parse_args()
    tree.report(check(options.root, EXCEPTIONS), f"source files have at most {LIMIT} lines")


if __name__ == "__main__":
    main()
