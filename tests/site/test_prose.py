"""proselint finds nothing in the prose of README and the documents.

Left out are its rules of typography (quotes are straight and x is a letter in code and in headers) and those that
tests/structure/prose.py has; blocks and spans of code are blanked, as it does."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "structure"))

import prose  # noqa: E402

OFF = "typography|lexical_illusions|weasel_words"


def test_proselint_finds_nothing(tmp_path):
    files = []
    for path in prose.pages(ROOT):
        if path.suffix == ".md" and path.as_posix() != "docs/api.md":
            text = prose.prose_of(path, (ROOT / path).read_text(encoding="utf-8"))
            files.append(tmp_path / path)
            files[-1].parent.mkdir(parents=True, exist_ok=True)
            files[-1].write_text(text, encoding="utf-8")
    program = pathlib.Path(sys.executable).with_name("proselint")
    told = subprocess.run([program, "check", *files], capture_output=True, text=True)
    found = [line.removeprefix(f"{tmp_path}/") for line in told.stdout.splitlines()
             if re.match(r".*?:\d+:\d+: ", line) and not re.match(rf".*?:\d+:\d+: ({OFF})\b", line)]
    assert not found
    assert told.returncode in (0, 1) and len(files) > 30, told.stderr
