"""The configuration of Sphinx; scripts/docs.sh builds the site from pages that scripts/site_pages.py collects."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

project = "FlashSketch"
author = "The FlashSketch authors"
copyright = author
version = release = (ROOT / "VERSION").read_text(encoding="utf-8").strip()

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["source/**/*.txt"]
highlight_language = "text"
myst_heading_anchors = 4
# Headings of records skip levels; sessions of a shell and C with prose behind it cannot be lexed strictly.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

html_theme = "furo"
html_title = f"FlashSketch {release}"
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = []
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#a34700", "color-brand-content": "#a34700"},
    "dark_css_variables": {"color-brand-primary": "#f5a06a", "color-brand-content": "#f5a06a"},
}

smartquotes = False  # S' is a transpose

autodoc_mock_imports = ["scipy", "sklearn", "torch"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"


def as_rst(app, what, name, obj, options, lines):
    """Docstrings are plain text: outside of examples |A|, A* and x_ mean themselves, `name` is code, and so is an
    indented paragraph."""
    made, example, code = [], False, False
    for number, line in enumerate(lines):
        begins = bool(line.strip()) and (number == 0 or not lines[number - 1].strip())
        if begins and line.startswith("    ") and not line.lstrip().startswith(">>>"):
            made += [] if code else ["::", ""]
            code = True
        elif begins:
            code = False
        example = line.lstrip().startswith(">>>") or example and bool(line.strip())
        if not example and not code:
            parts = re.split(r"(`[^`]*`)", line)
            line = "".join(f"`{part}`" if part.startswith("`") else
                           re.sub(r"([|*\\])|(?<=\w)(_)(?!\w)", r"\\\1\2", part) for part in parts)
        made.append(line)
    lines[:] = made


def scripts(app, pagename, templatename, context, doctree):
    """The calculator is on one page only."""
    if pagename == "docs/choosing":
        app.add_js_file("measured.js")
        app.add_js_file("calculator.js")


def setup(app):
    app.connect("autodoc-process-docstring", as_rst)
    app.connect("html-page-context", scripts)
    return {"parallel_read_safe": True}
