#!/usr/bin/env python3
"""prose.py - README is short and narrow; documents have short sentences and no word that docs/glossary.md retires.

usage: prose.py [--root TREE]

Checks prose only, without blocks and spans of code and targets of links; text from bench/ is checked where it is
generated.  Every row of the glossary's "Words we do not use" is covered by RETIRED or by words.WORDS, or is in
AMBIGUOUS, the words that have another, right meaning."""
import re

import tree
import words

COLUMNS, LINES, WORDS, NUMBERS = 120, 160, 1300, 3  # of README; numbers: of a paragraph
LONGEST = 55  # words of a sentence, in any page
FOLDERS = ("docs", "src", "bench")
TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "tests/README.md")
HEADERS = ("include",)
FORM = ["Formulation", "Launch", "Requirements", "Measurements", "What was tried"]  # of a page of docs/kernels

# Each with the word to use instead.
RETIRED = {
    r"deal|deals|dealt": "round-robin assignment, shuffled rows",
    r"floors?\b(?!\()": "lower bound",
    r"other people's|people": "third-party baselines, callers, readers",
    r"peers?": "third-party baselines",
    r"slopes?": "output gradients",
    r"slots?": "local row, local row index",
    r"tells?|telling|told": "reports, prints, returns, shows",
    r"turned matri(?:x|ces)": "transposed",
    r"walked on|walks on": "cycle walking",
}
# Words of the glossary's table that are right elsewhere: a line of text, a part of a file, the plane of a drawing ...
AMBIGUOUS = {"combine", "line (of coordinates)", "N of M (for a change)", "panel (of S)", "part (of a block's rows)",
             "part (of a reduction)", "part (of Y)", "piece (of A)", "piece (of a float)", "piece (of work)",
             "place (of memory)", "plane", "processor (of a GPU)", "products of rows", "rotation (of a round)", "say",
             "team", "turned (matrix)", "turn (of a round)", "wiring (in prose)", "times the read"}
PATTERN = re.compile(r"\b(?:" + "|".join(f"(?:{word})" for word in RETIRED) + r")\b", re.IGNORECASE)
REPEATED = re.compile(r"\b(\w+)\s+\1\b", re.IGNORECASE)
RIGHT_TWICE = {"that", "had"}


def blanked(text, pattern, flags=0):
    """The text with what matches replaced by spaces, its lines kept."""
    return re.sub(pattern, lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=flags)


def prose_of(path, text):
    """The prose of a page, or of the comments of a header, in its places."""
    if path.suffix == ".h":
        comments = [False] * len(text)
        for match in re.finditer(r"/\*.*?\*/", text, re.DOTALL):
            comments[match.start() : match.end()] = [True] * (match.end() - match.start())
        return "".join(c if inside or c == "\n" else " " for c, inside in zip(text, comments))
    text = blanked(text, r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    text = blanked(text, r"^    .*$", re.MULTILINE) if path.name != "CHANGELOG.md" else text
    text = blanked(text, r"<!--.*?-->", re.DOTALL)
    text = blanked(text, r"`[^`]*`")
    return blanked(text, r"\]\([^)]*\)")


def pages(root):
    found = tree.sources(root, FOLDERS, (".md",)) + tree.sources(root, HEADERS, (".h",))
    return found + [root.joinpath(name).relative_to(root) for name in TOP if (root / name).is_file()]


def retired(root):
    problems = []
    for path in pages(root):
        text = prose_of(path, (root / path).read_text(encoding="utf-8"))
        table = text.find("## Words we do not use") if path.as_posix() == "docs/glossary.md" else -1
        text = text if table < 0 else text[:table]
        for number, line in enumerate(text.splitlines(), 1):
            for word in PATTERN.findall(line):
                instead = next(use for part, use in RETIRED.items() if re.fullmatch(part, word, re.IGNORECASE))
                problems.append(f'{path}:{number}: "{word}": write {instead}')
            if path.suffix == ".md" and not line.startswith("|"):
                problems += [f'{path}:{number}: "{word} {word}"' for word in REPEATED.findall(line)
                             if word.islower() and word.isalpha() and len(word) > 1 and word.lower() not in RIGHT_TWICE]
    return problems


def long_sentences(root):
    """Sentences of more than LONGEST words; a colon and a semicolon end one too, an item of a list begins one."""
    problems = []
    for path in pages(root):
        if path.suffix != ".md":
            continue
        text = prose_of(path, (root / path).read_text(encoding="utf-8"))
        text = re.sub(r"^(?:\||#|<).*$", "", text, flags=re.MULTILINE)
        for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", text):
            for sentence in re.split(r"(?<=[.!?:;])\s+", paragraph):
                if len(sentence.split()) > LONGEST:
                    problems.append(f"{path}: a sentence of {len(sentence.split())} words, at most {LONGEST}: "
                                    f"{' '.join(sentence.split()[:8])} ...")
    return problems


def readme(root):
    file = root / "README.md"
    if not file.is_file():
        return []
    text = file.read_text(encoding="utf-8")
    problems = [f"README.md:{number}: {len(line)} columns, at most {COLUMNS}"
                for number, line in enumerate(text.splitlines(), 1) if len(line) > COLUMNS]
    for count, limit, what in ((len(text.splitlines()), LINES, "lines"), (len(text.split()), WORDS, "words")):
        if count > limit:
            problems.append(f"README.md has {count} {what}, at most {limit}")
    for paragraph in re.split(r"\n\s*\n", prose_of(file, text)):
        numbers = re.findall(r"(?<![\w.])\d[\d.]*(?![\w])", paragraph)
        if len(numbers) > NUMBERS and not paragraph.lstrip().startswith("|"):
            problems.append(f"README.md: a paragraph with {len(numbers)} numbers: {paragraph.strip()[:60]} ...")
    return problems


def kernel_pages(root):
    """A page of docs/kernels has a drawing, and the parts of the form in its order."""
    problems = []
    for path in sorted((root / "docs" / "kernels").glob("*.md")):
        if path.stem in ("README", "families"):
            continue
        text = path.read_text(encoding="utf-8")
        parts = [part for part in re.findall(r"^## (.*)$", text, re.MULTILINE) if part in FORM]
        if parts != FORM:
            problems.append(f"{path.relative_to(root)} has the parts {', '.join(parts)}; it needs {', '.join(FORM)}")
        if "\n```\n" not in text.partition("## Launch")[0]:
            problems.append(f"{path.relative_to(root)} has no drawing of its formulation")
    return problems


def uncovered(root):
    """Words that the glossary retires and no rule knows."""
    file = root / "docs" / "glossary.md"
    if not file.is_file():
        return []
    table = file.read_text(encoding="utf-8").partition("## Words we do not use")[2]
    problems = []
    for row in re.findall(r"^\| (.*?) \|", table, re.MULTILINE)[1:]:
        for word in row.split(", ") if "(" not in row else [row]:
            known = word in AMBIGUOUS or PATTERN.search(row) or words.PATTERN.search(row)
            if not known and row not in AMBIGUOUS:
                problems.append(f'docs/glossary.md: "{word}" is retired, and tests/structure/prose.py has no rule')
    return problems


def check(root):
    return readme(root) + retired(root) + long_sentences(root) + kernel_pages(root) + uncovered(root)


def main():
    options = tree.arguments(__doc__.splitlines()[0]).parse_args()
    tree.report(check(options.root), "README is short, and documents use the words of the glossary")


if __name__ == "__main__":
    main()
