#!/usr/bin/env python3
"""site_pages.py - collects the pages of the site: the Markdown of the project unchanged, and the pages generated for
the site.

usage: site_pages.py FOLDER COMMAND

Pages keep their places, so that links between them need no change; README.md becomes index.md.  A file of the sources
that a page links to becomes a page too, under source/, and a folder a list of its files.  reference/command.md is what
COMMAND prints for --help.  Text between a page and its generator: docs/site/conf.py.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MARKDOWN = ["*.md", "docs/*.md", "docs/guides/*.md", "docs/kernels/*.md", "src/**/*.md", "tests/**/*.md", "bench/*.md",
            "python/*.md"]
LARGEST = 300_000  # bytes of a source that becomes a page; larger ones are copied, to be downloaded
LEXERS = {".c": "c", ".h": "c", ".cu": "cuda", ".cuh": "cuda", ".py": "python", ".sh": "sh", ".txt": "text",
          ".cff": "yaml", ".jsonl": "json", ".json": "json"}

# The contents of the site: heading, pages.
CONTENTS = [
    ("Start", ["docs/install", "docs/tutorial", "docs/choosing"]),
    ("Guides", ["docs/guides/README"]),
    ("In depth", ["docs/solvers", "docs/attribution", "docs/files", "docs/sketches", "docs/gpu", "docs/scaling",
                  "docs/performance"]),
    ("Reference", ["docs/definition", "docs/glossary", "docs/api", "docs/python", "reference/python",
                   "reference/command"]),
    ("Inside", ["docs/design", "docs/kernels/README", "src/README", "tests/README", "bench/README",
                "python/README"]),
    ("Project", ["CHANGELOG", "CONTRIBUTING", "SECURITY", "CODE_OF_CONDUCT"]),
]
BELOW = {"docs/guides/README.md": "docs/guides", "docs/kernels/README.md": "docs/kernels"}
GUIDES = ["least-squares", "pca-larger-than-memory", "attribution", "sparse-text", "several-gpus", "mpi", "dask",
          "pytorch-training"]


def tree(caption, entries):
    lines = ["", "```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), "", *entries, "```", ""]
    return "\n".join(lines)


def one_title(text):
    """A page with a single first-level heading: docs/api.md has one for each header."""
    first, mark, rest = text.partition("\n# ")
    return first + re.sub(r"^(#+ )", r"#\1", mark + rest, flags=re.MULTILINE)


def without_code(text):
    """The text with blocks of code blanked, so that nothing in them counts as a link."""
    return re.sub(r"^```.*?^```$", lambda match: " " * len(match[0]), text, flags=re.MULTILINE | re.DOTALL)


class Site:
    def __init__(self, out):
        self.out = out
        self.pages = {path for pattern in MARKDOWN for path in ROOT.glob(pattern)}
        self.sources = set()  # files and folders that pages link to

    def write(self, name, text):
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def place(self, target):
        """The name in the site of a file or folder of the project."""
        name = target.relative_to(ROOT).as_posix()
        if target in self.pages:
            return "index.md" if name == "README.md" else name
        if target.is_dir():
            readme = target / "README.md"
            if readme in self.pages:
                return readme.relative_to(ROOT).as_posix()
            self.sources.add(target)
            return f"source/{name}/index.md"
        self.sources.add(target)
        return f"source/{name}.md" if target.stat().st_size <= LARGEST else f"source/{name}"

    def linked(self, document, text):
        """The text of a page with its links as the site has them."""
        here = (self.out / self.place(document)).parent
        shown, made, last = without_code(text), [], 0
        for match in re.finditer(r"(!?)\[[^]]*\]\(([^)\s#]+)(#[^)\s]*)?\)", shown):
            if match[1] or re.match(r"[a-z]+:", match[2]):
                continue
            target = (document.parent / match[2]).resolve()
            if target.suffix in (".svg", ".png"):
                continue
            place = os.path.relpath(self.out / self.place(target), here)
            made += [text[last : match.start(2)], place]
            last = match.end(2)
        return "".join([*made, text[last:]])

    def markdown(self):
        for document in sorted(self.pages):
            text = self.linked(document, document.read_text(encoding="utf-8"))
            name = document.relative_to(ROOT).as_posix()
            if name == "docs/api.md":
                text = one_title(text)
            if name == "README.md":
                text += "".join(tree(caption, entries) for caption, entries in CONTENTS)
            elif name in BELOW:
                folder = ROOT / BELOW[name]
                names = GUIDES if folder.name == "guides" else sorted(p.stem for p in folder.glob("[!R]*.md"))
                text += tree("", names)
            elif not any(name.removesuffix(".md") in entries for _, entries in CONTENTS):
                text = "---\norphan: true\n---\n\n" + text
            self.write(self.place(document), text)
        images = self.out / "docs" / "images"
        images.symlink_to(ROOT / "docs" / "images")

    def source_pages(self):
        done: set[pathlib.Path] = set()
        while left := sorted(self.sources - done):
            for path in left:
                done.add(path)
                self.source(path)

    def source(self, path):
        name = path.relative_to(ROOT).as_posix()
        head = f"---\norphan: true\nnosearch: true\n---\n\n# {name}\n\n"
        if path.is_dir():
            names = []
            for file in sorted(p for p in path.iterdir() if not p.name.startswith((".", "__"))):
                shown = file.suffix in LEXERS or file in self.pages
                link = os.path.relpath(self.out / self.place(file), self.out / "source" / name) if shown else ""
                names.append(f"- [{file.name}]({link})" if shown else f"- {file.name}{'/' if file.is_dir() else ''}")
            self.write(f"source/{name}/index.md", head + "\n".join(names) + "\n")
            return
        target = self.out / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(path)
        if path.stat().st_size <= LARGEST:
            lexer = LEXERS.get(path.suffix, "text")
            self.write(f"source/{name}.md", head + f"```{{literalinclude}} {path.name}\n:language: {lexer}\n```\n")

    def command(self, command):
        """What --help prints, for every command in the order of the help."""
        def printed(*arguments):
            return subprocess.run([command, *arguments], check=True, capture_output=True, text=True).stdout

        overview = printed("--help")
        names = re.findall(r"^  ([a-z]+)  ", overview, re.MULTILINE)
        if not names:
            sys.exit(f"site_pages.py: {command} --help lists no command:\n{overview}")
        parts = ["# The command line", "What `flashsketch help` prints; `man flashsketch` has the same.",
                 f"```text\n{overview}```"]
        for name in names:
            parts.append(f"## {name}\n\n```text\n{printed('help', name)}```")
        self.write("reference/command.md", "\n\n".join(parts) + "\n")

    def python(self):
        modules = [("flashsketch", ""), ("flashsketch.attribution", "Attribution"),
                   ("flashsketch.sklearn", "scikit-learn"), ("flashsketch.distributed", "torch.distributed")]
        text = "# The Python interface\n"
        for module, title in modules:
            text += (f"\n## {title}\n" if title else "") + (
                f"\n```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n   :imported-members:\n```\n")
        self.write("reference/python.md", text)


def main(folder, command):
    site = Site(pathlib.Path(folder).resolve())
    site.markdown()
    site.command(command)
    site.python()
    site.source_pages()


main(*sys.argv[1:])
