#!/usr/bin/env python3
"""links.py - every link from a document to a file or a heading of this project leads somewhere.

usage: links.py ROOT.  Headings become anchors as GitHub makes them."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(path for folder in ("bench", "docs", "python", "src", "tests")
                                          for path in (ROOT / folder).rglob("*.md"))])


def without_code(text):
    """The lines outside of ``` blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(path):
    text = without_code(path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


links, bad = 0, 0
for document in DOCUMENTS:
    text = without_code(document.read_text(encoding="utf-8"))
    names = dict(re.findall(r"^\[([^]]+)\]: (\S+)$", text, re.MULTILINE))  # [name]: target
    for used in re.findall(r"\]\[([^]]+)\]", text):
        if used not in names:
            print(f"{document.relative_to(ROOT)}: [{used}] is not defined")
            bad += 1
    for target in [*re.findall(r"\]\(([^)\s]+)\)", text), *names.values()]:
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = document.parent / name if name else document
        links += 1
        if not path.exists() or anchor and anchor not in anchors(path):
            print(f"{document.relative_to(ROOT)}: {target} leads nowhere")
            bad += 1
print(f"{links} links in {len(DOCUMENTS)} documents, {bad} lead nowhere")
sys.exit(bad > 0 or not links)
