#!/usr/bin/env python3
"""glossary.py - docs/glossary.md defines each term once, in order, and names code that exists.

usage: glossary.py ROOT [GLOSSARY].  In the column "in code", a name with a slash or a suffix of SUFFIXES is a file or
folder, of the root or of a folder in FOLDERS; any other consists of identifiers that sources use: `type.field`,
`struct name`, `function`."""
import pathlib
import re
import sys

SUFFIXES = {".c", ".h", ".cu", ".cuh", ".py"}
FOLDERS = ("src", "src/cuda", "src/cuda/runtime", "src/cuda/blockperm", "src/cuda/blockperm/common")
CODE = ("include", "src", "apps", "cli", "bench")


def tables(text):
    """(heading, rows) of every table with a column "in code"; a row is a list of cells."""
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        rows = [[cell.strip() for cell in line.strip("|").split("|")]
                for line in section.splitlines() if line.startswith("|")]
        if rows and rows[0][-1] == "in code":
            yield section.splitlines()[0], rows[2:]


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    glossary = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else root / "docs/glossary.md"
    words = set()
    for folder in CODE:
        for path in (root / folder).rglob("*"):
            if path.suffix in SUFFIXES:
                words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    faults, terms, names = [], [], 0
    for heading, rows in tables(glossary.read_text(encoding="utf-8")):
        own = [row[0] for row in rows]
        terms += own
        if heading != "Letters":
            faults += [f"{after} stands behind {before}" for before, after in zip(own, own[1:])
                       if before.casefold() > after.casefold()]
        for row in rows:
            for name in re.findall(r"`([^`]+)`", row[-1]):
                names += 1
                if "/" in name or pathlib.PurePath(name).suffix in SUFFIXES:
                    found = any((root / folder / name).exists() for folder in ("", *FOLDERS))
                else:
                    found = set(re.findall(r"\w+", name)) - {"struct", "enum"} <= words
                if not found:
                    faults.append(f"{row[0]}: there is no {name}")
    faults += [f"{term} is defined twice" for term in sorted(set(terms)) if terms.count(term) > 1]
    for fault in faults:
        print(fault)
    print(f"{len(terms)} terms, {names} names of code, {len(faults)} fault(s)")
    return len(faults) > 0 or not terms or not names


sys.exit(main())
