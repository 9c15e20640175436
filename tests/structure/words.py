#!/usr/bin/env python3
"""words.py - keeps words that docs/glossary.md replaces out of comments, messages and documents.

usage: words.py [--root TREE] [--update]

words.txt lists how often a file still uses one of them; a file that is not listed uses none.  A count that differs from
the list, in either direction, is an error: --update rewrites the list, and its diff shows which counts grew."""
import re

import tree

# Each with the word to use instead.
WORDS = {
    r"nobody": "no thread, no rank, ...",
    r"everybody": "all threads, all ranks, ...",
    r"those who": "the warps, ranks or callers that ...",
    r"who (?:copy|copies|make|makes|fill|fills|read|reads|write|writes|wait|waits)": "producer or consumer warp",
    r"(?:is|are|was|were) told": "receives, is given",
    r"made again": "recomputed",
    r"sentences?": "error message",
    r"doors?": "entry point",
    r"judge[sd]?": "reference implementation, compare with",
    r"laws?": "property",
    r"whole numbers?": "integer",
    r"multiprocessors?": "SM",
    r"no failures?": "is not an error",
    r"g(?:oes|o|oing|one) on": "continue",
    r"(?:gives?|given|gave|giving) back": "release",
    r"on (?:its|their) way": "in flight, being copied",
    r"(?:told|tell|tells) apart": "distinguish",
    r"be had": "is available, is possible",
    r"(?:hot|heavy) rows?": "large rows, rows of high leverage",
    r"listed rows?": "gathered rows",
    r"(?:says?|said|saying) so": "report, print, return",
    r"it is said": "the message is, it is noted",
}
PATTERN = re.compile(r"\b(?:" + "|".join(f"(?:{word})" for word in WORDS) + r")\b", re.IGNORECASE)
FOLDERS = ("include", "src", "apps", "cli", "mpi", "bench", "python", "scripts", "examples", "tests", "cmake", "docs")
SUFFIXES = (".c", ".h", ".cu", ".cuh", ".py", ".sh", ".md", ".cmake", "CMakeLists.txt")
TOP = ("CMakeLists.txt", "CONTRIBUTING.md", "Makefile", "README.md")
LIST = "tests/structure/words.txt"


def uses(root):
    """By file: the lines with a word of the list, and the word."""
    found = {}
    paths = tree.sources(root, FOLDERS, SUFFIXES) + [root.joinpath(name).relative_to(root) for name in TOP]
    for path in paths:
        if path.is_relative_to("tests/structure") or not (root / path).is_file():
            continue
        hits = [(number, word) for number, line in tree.lines(root, path) for word in PATTERN.findall(line)]
        if hits:
            found[path.as_posix()] = hits
    return found


def instead_of(word):
    return next(instead for pattern, instead in WORDS.items() if re.fullmatch(pattern, word, re.IGNORECASE))


def check(root, allowed):
    problems = []
    found = uses(root)
    for path, hits in found.items():
        if len(hits) > allowed.get(path, 0):
            problems += [f'{path}:{number}: "{word}": write {instead_of(word)}' for number, word in hits]
            problems.append(f"{path}: {len(hits)} such words; {LIST} allows {allowed.get(path, 0)}")
    for path, count in allowed.items():
        if len(found.get(path, ())) < count:
            less = len(found.get(path, ()))
            problems.append(f"{path}: {less} such words, {LIST} says {count}: run tests/structure/words.py --update")
    return problems


def allowed_in(root):
    file = root / LIST
    pairs = [line.split(maxsplit=1) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    return {path: int(count) for count, path in pairs}


def main():
    parser = tree.arguments(__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="write the counts of today to words.txt")
    options = parser.parse_args()
    if options.update:
        text = "".join(f"{len(hits)} {path}\n" for path, hits in sorted(uses(options.root).items()))
        (options.root / LIST).write_text(text, encoding="utf-8")
        return
    tree.report(check(options.root, allowed_in(options.root)), "no new use of a word that the glossary replaces")


if __name__ == "__main__":
    main()
