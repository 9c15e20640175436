#!/usr/bin/env python3
"""api.py - makes docs/api.md from the comments of the public headers, include/flashsketch*.h.

usage: api.py            writes docs/api.md
       api.py --check    writes nothing; prints what differs and exits with 1 if docs/api.md is not what the headers say

Understands these headers and no more of C: sections are lines `/* name ------ */`; a comment that begins a line belongs
to the declarations that follow it without an empty line; members of enums and structs have their comments behind them.
Anything else, and a public function without a comment, is an error."""
import difflib
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The headers in include, and the headings of their parts of the page.
HEADERS = [("flashsketch.h", None), ("flashsketch_files.h", "Files"), ("flashsketch_tasks.h", "Tasks"),
           ("flashsketch_solvers.h", "Solvers"), ("flashsketch_attribution.h", "Attribution"),
           ("flashsketch_mpi.h", "MPI"), ("flashsketch_extend.h", "Extending")]
PAGE = ROOT / "docs" / "api.md"

SECTION = re.compile(r"/\* ([A-Za-z ]+) -+ \*/")
FUNCTION = re.compile(r"FS_API (?:FS_NODISCARD )?(.*?\b(fs_\w+)\(.*?\))(?: FS_PRINTF\(2, 3\))?;", re.DOTALL)
TYPE = re.compile(r"typedef (enum|struct) (\w+) ?(?:\{(.*)\} \2|\2);", re.DOTALL)
MACRO = re.compile(r"#define (FS_[A-Z_]+_INIT|FS_VERSION(?:_\w+)?|FS_COHERENCE_MAX_COLS|FS_THREADS_MAX)\s(.*)",
                   re.DOTALL)
# Left out: guards, includes, C++, attributes.
MACHINERY = re.compile(r"#(ifndef|ifdef|if|else|endif|include|"
                       r"define (FLASHSKETCH_\w+|FS_API|FS_NODISCARD|FS_UNSET|FS_PRINTF)\b)|"
                       r'extern "C"|\}$|struct fs_\w+;$')


def fail(message):
    sys.exit(f"api.py: {message}")


# the header -> items -----------------------------------------------------------------------------------------------

def chunks(text):
    """The header cut at its empty lines, but not inside a comment or braces."""
    chunk: list[str] = []
    for line in text.splitlines():
        whole = "\n".join(chunk)
        if line or whole.count("/*") > whole.count("*/") or whole.count("{") > whole.count("}") and "typedef" in whole:
            chunk.append(line)
        elif chunk:
            yield whole
            chunk = []
    if chunk:
        yield "\n".join(chunk)


def comment_text(comment):
    """The text of a comment that begins a line, without its stars."""
    lines = comment.strip()[2:-2].split("\n")
    return "\n".join(re.sub(r"^ \* ?", "", line).rstrip() for line in lines).strip()


def declarations(code):
    """The declarations in a chunk without its comment: strings that end with ; or are a #define."""
    found, current = [], ""
    for line in code.splitlines():
        if not current and MACHINERY.match(line):
            continue
        current = f"{current}\n{line}" if current else line
        if current.startswith("#define"):
            done = not line.endswith("\\")
        else:
            done = line.endswith(";") and current.count("{") == current.count("}")
        if done:
            found.append(current)
            current = ""
    if current:
        fail(f"this does not end: {current}")
    return found


def items(text):
    """(kind, names, comment, declarations) for sections, functions, types and macros, in the header's order."""
    for chunk in chunks(text):
        section = SECTION.fullmatch(chunk)
        if section:
            yield "section", [section[1]], "", []
            continue
        comment = ""
        if chunk.startswith("/*"):
            end = chunk.index("*/") + 2
            comment, chunk = comment_text(chunk[:end]), chunk[end:]
        previous = None
        for declaration in declarations(chunk.strip()):
            kind, name = next(((kind, match[2 if kind != "macro" else 1]) for kind, match in (
                ("function", FUNCTION.fullmatch(declaration)), ("type", TYPE.fullmatch(declaration)),
                ("macro", MACRO.fullmatch(declaration))) if match), (None, None))
            if not kind:
                fail(f"this is not understood: {declaration}")
            if previous and previous[0] == kind != "type":  # functions under one comment, macros in one group
                previous[1].append(name)
                previous[3].append(declaration)
            else:
                if previous:
                    yield previous
                previous = (kind, [name], comment, [declaration])
                comment = ""
        if previous:
            yield previous
        elif comment:
            yield "text", [], comment, []


# items -> Markdown -------------------------------------------------------------------------------------------------

def anchors(all_items):
    """The anchor of each name: {name: #anchor}, as GitHub derives anchors from headings."""
    return {name: "#" + "-".join(names) for kind, names, _, _ in all_items if kind in ("function", "type")
            for name in names}


class Page:
    def __init__(self, all_items):
        self.where = anchors(all_items)
        self.lines = []

    def prose(self, text, at=None):
        """A paragraph of a comment: names are code, and links where they are explained on this page (but not under
        their own heading, `at`); the rest is text."""
        def named(match):
            name = match[0]
            if name.startswith("`"):
                return name
            if name.startswith("docs/"):
                return f"[`{name}`]({name[5:]})"
            link = self.where.get(name.removesuffix("()"))
            return f"[`{name}`]({link})" if link and name not in (at or []) else f"`{name}`"

        text = re.sub(r"`[^`]*`|\bdocs/\w+\.md|(?:\bfs_\w+|\bFS_\w+|\bFLASHSKETCH_\w+)(?:\(\))?|\*\w+|\b\w+_\w+\b|"
                      r"\w*\[[^]]*\]'?", named, text)
        return text.replace("<", "&lt;").replace("|", "\\|")

    def paragraphs(self, comment, at=None):
        """A comment: indented paragraphs, and a first one that is a single formula, are code."""
        if not comment:
            return
        for number, paragraph in enumerate(comment.split("\n\n")):
            lines = paragraph.split("\n")
            if all(line.startswith("    ") for line in lines):
                self.code(textwrap.dedent(paragraph))
            elif number == 0 and len(lines) == 1 and " = " in paragraph and not paragraph.endswith("."):
                self.code(paragraph, "")
            else:
                self.add(textwrap.fill(re.sub(r"\.  ", ". ", self.prose(" ".join(lines), at)), 120,
                                       break_long_words=False, break_on_hyphens=False))

    def add(self, text):
        self.lines += [text, ""]

    def code(self, text, language="c"):
        self.add(f"```{language}\n{text}\n```")

    def table(self, head, rows):
        self.add("\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head)] +
                           [f"| {' | '.join(row)} |" for row in rows]))


def members(body):
    """[code, comment] of each line of an enum or a struct; a comment may continue in the next line."""
    found = []
    for code, comment in re.findall(r"\s*([^/]*?)[ \n]*(?:/\*(.*?)\*/|\n|$)", body, re.DOTALL):
        if code.strip() or comment:
            found.append([code.strip(), " ".join(re.sub(r"\n *\* ", " ", comment).split())])
    return found


def enum_rows(page, body):
    rows = []
    for code, comment in members(body):
        values = [value.strip() for value in code.split(",") if value.strip()]
        for value in values:
            name, number = value.split(" = ")
            rows.append([f"`{name}`", number, page.prose(comment)])
    return rows


def struct_rows(page, body):
    rows = []
    for code, comment in members(body):
        pointer = re.fullmatch(r"(.*)\(\*(\w+)\)(\(.*\));", code)
        plain = re.fullmatch(r"((?:const )?\w+) (.*);", code)
        if pointer:
            kind, names = f"{pointer[1]}(*){pointer[3]}", [pointer[2]]
        elif plain:
            names = plain[2].split(", ")
            kind = plain[1] + (" *" if names[0].startswith("*") else "")
        else:
            fail(f"this member is not understood: {code}")
        kind = f"`{kind}`" if kind not in page.where else f"[`{kind}`]({page.where[kind]})"
        rows.append([", ".join(f"`{name.lstrip('*')}`" for name in names), kind, page.prose(comment)])
    return rows


def type_of(page, names, comment, declaration):
    match = TYPE.fullmatch(declaration)
    assert match  # by items()
    kind, name, body = match.groups()
    page.add(f"### {name}")
    page.paragraphs(comment, names)
    if not body:
        page.code(declaration)
    elif kind == "enum":
        rows = enum_rows(page, body)
        if any(row[2] for row in rows):
            page.table(["", "value", "meaning"], rows)
        else:
            page.table(["", "value"], [row[:2] for row in rows])
    else:
        page.table(["field", "type", "meaning"], struct_rows(page, body))


def function_of(page, names, comment, found):
    if not comment:
        fail(f"{names[0]} has no comment")
    page.add("### " + ", ".join(names))
    texts = []
    for declaration in found:
        match = FUNCTION.fullmatch(declaration)
        assert match  # by items()
        text = match[1] + ";"
        texts.append(re.sub(r"\n +", "\n" + " " * (text.index("(") + 1), text))
    page.code("\n".join(texts))
    page.paragraphs(comment, names)


def contents(page, all_items):
    """The functions and types of each section, in one line each."""
    lines, section = [], ""
    names: list[str] = []
    for kind, found, _, _ in [*all_items, ("section", [""], "", [])]:
        if kind == "section":
            if names:
                links = ", ".join(f"[`{name}`]({page.where[name]})" for name in names)
                line = f"- [{section[0].upper() + section[1:]}](#{section.lower().replace(' ', '-')}): {links}"
                lines.append(textwrap.fill(line, 120, subsequent_indent="  ", break_on_hyphens=False))
            section, names = found[0], []
        elif kind in ("function", "type"):
            names += found
    page.add("\n".join(lines))


def title_of(page, path, all_items, heading):
    """The comment that a header begins with."""
    kind, _, comment, _ = all_items.pop(0)
    if kind != "text":
        fail(f"{path.name} does not begin with a comment")
    title, _, rest = comment.partition("\n\n")
    if heading:
        page.add(f"# {heading}")
    page.add(f"`#include <{path.name}>`: {title.partition(' - ')[2]}")
    page.paragraphs(rest)


def make():
    paths = [(ROOT / "include" / name, heading) for name, heading in HEADERS]
    found = [(path, heading, list(items(path.read_text(encoding="utf-8")))) for path, heading in paths]
    page = Page([item for _, _, all_items in found for item in all_items])
    page.add("# The C interface")
    page.add("<!-- Made from the headers in include/ by scripts/api.py: change them, then run the script. -->")
    for path, heading, all_items in found:
        title_of(page, path, all_items, heading)
        contents(page, all_items)
        body(page, all_items)
    return "\n".join(page.lines).rstrip() + "\n"


def body(page, all_items):
    for kind, names, comment, found in all_items:
        if kind == "section":
            page.add(f"## {names[0][0].upper() + names[0][1:]}")
        elif kind == "function":
            function_of(page, names, comment, found)
        elif kind == "type":
            type_of(page, names, comment, found[0])
        elif kind == "macro":
            page.paragraphs(comment)
            page.code("\n".join(found))
        else:
            fail(f"this comment belongs to nothing: {comment}")


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit("usage: api.py [--check]")
    wanted = make()
    if not arguments:
        PAGE.write_text(wanted, encoding="utf-8")
        return
    found = PAGE.read_text(encoding="utf-8")
    sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), "docs/api.md",
                                               "what scripts/api.py makes"))
    if found != wanted:
        sys.exit("docs/api.md is not what scripts/api.py makes from the headers: run it")


main(sys.argv[1:])
