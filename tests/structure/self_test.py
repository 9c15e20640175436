#!/usr/bin/env python3
"""self_test.py - plants violations in a temporary tree and checks that each is reported, and nothing else."""
import pathlib
import tempfile
import unittest

import includes
import lengths
import prose
import words

# A tree that follows every rule; "" is an empty file.
GOOD = {
    "include/flashsketch.h": "#include <stdint.h>\n",
    "src/def/port.h": "#include <stdint.h>\n",
    "src/def/rng.h": '#include "def/port.h"\n',
    "src/base/error.h": '#include "flashsketch.h"\n#include "def/port.h"\n',
    "src/core/backend.h": '#include "base/error.h"\n#include "def/rng.h"\n',
    "src/cpu/table.c": '#include "core/backend.h"\n#include <math.h>\n',
    "src/cuda/plan/plan.h": '#include "def/rng.h"\n',
    "src/cuda/plan/mma_rows.c": '#include "cuda/blockperm/mma_rows_instances.h"\n',
    "src/cuda/blockperm/mma_rows_instances.h": "",
    "src/cuda/runtime/gpu.h": '#include <cuda_runtime.h>\n#include "cuda/plan/plan.h"\n#include "core/backend.h"\n',
    "src/tasks/fit.h": '#include "core/backend.h"\n',
    "src/files/file.h": '#include "base/error.h"\n',
    "cli/cli.h": "#include <flashsketch.h>\n",
    "cli/main.c": '#include "cli.h"\n',
    "bench/bench.h": "",
    "bench/cases/cpu.c": '#include "bench/bench.h"\n',
}

# File, line that is added to it, part of the report.
PLANTED = [
    ("src/def/rng.h", "#include <math.h>", "nothing but <stdint.h>"),
    ("src/def/rng.h", '#include "flashsketch.h"', "src/def may include nothing private"),
    ("src/base/error.h", '#include "def/rng.h"', "src/base may include"),
    ("src/base/error.h", '#include "core/backend.h"', "src/base may include"),
    ("src/core/backend.h", '#include "tasks/fit.h"', "src/core may include"),
    ("src/core/backend.h", "#include <tasks/fit.h>", "src/core may include"),
    ("src/cpu/table.c", '#include "cuda/runtime/gpu.h"', "src/cpu may include"),
    ("src/cpu/table.c", "#include <cuda_runtime.h>", "a CUDA header"),
    ("src/cuda/runtime/gpu.h", '#include "cpu/table.c"', "src/cuda may include"),
    ("src/cuda/plan/plan.h", "#include <cuda_runtime.h>", "a CUDA header"),
    ("src/cuda/blockperm/mma_rows_instances.h", "#include <cuda_fp16.h>", "a CUDA header"),
    ("src/cuda/plan/plan.h", '#include "cuda/runtime/gpu.h"', "src/cuda/plan may include"),
    ("src/tasks/fit.h", '#include "files/file.h"', "src/tasks may include"),
    ("src/tasks/fit.h", '#include "../core/backend.h"', "not qualified"),
    ("src/cpu/table.c", '#include "table.c"', "write the path from src"),
    ("src/cpu/table.c", '#include "core/missing.h"', "no such file"),
    ("src/cpu/table.c", "#include HEADER", "by a macro"),
    ("cli/main.c", '#include "base/error.h"', "cli may include"),
    ("cli/main.c", "  #  include <base/error.h>", "cli may include"),
    ("bench/cases/cpu.c", '#include "cli/cli.h"', "bench may include"),
    ("apps/other/main.c", "#include <stdio.h>", "not in GRAPH"),
]


class Planted(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path, text in GOOD.items():
            self.write(path, text)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def test_a_tree_that_follows_the_rules_has_no_violation(self):
        self.assertEqual(includes.check(self.root, {}), [])
        self.assertEqual(lengths.check(self.root, {}), [])
        self.assertEqual(words.check(self.root, {}), [])
        self.assertEqual(prose.check(self.root), [])

    def test_every_planted_include_is_reported_with_its_line(self):
        for path, line, part in PLANTED:
            with self.subTest(f"{path}: {line}"):
                text = GOOD.get(path, "")
                self.write(path, text + line + "\n")
                problems = includes.check(self.root, {})
                self.assertEqual(len(problems), 1, problems)
                self.assertTrue(problems[0].startswith(f"{path}:{text.count(chr(10)) + 1}: "), problems)
                self.assertIn(part, problems[0])
                self.write(path, text)

    def test_an_exception_permits_one_include_and_must_be_used(self):
        exceptions = {"a reason": ("cli/main.c -> src/base/error.h",)}
        self.assertEqual(includes.check(self.root, exceptions),
                         ["stale exception, delete it: cli/main.c -> src/base/error.h"])
        self.write("cli/main.c", '#include "base/error.h"\n')
        self.assertEqual(includes.check(self.root, exceptions), [])
        self.write("cli/main.c", '#include "base/error.h"\n#include "core/backend.h"\n')
        self.assertEqual(len(includes.check(self.root, exceptions)), 1)

    def test_a_long_file_is_reported_and_its_exception_must_be_used(self):
        exceptions = {"cli/main.c": "a reason"}
        self.write("cli/main.c", "\n" * lengths.LIMIT)
        self.assertEqual(lengths.check(self.root, {}), [])
        self.assertEqual(lengths.check(self.root, exceptions), ["stale exception, delete it: cli/main.c"])
        self.write("cli/main.c", "\n" * (lengths.LIMIT + 1))
        self.assertEqual(len(lengths.check(self.root, {})), 1)
        self.assertEqual(lengths.check(self.root, exceptions), [])

    def test_every_word_is_found_and_a_count_may_not_change(self):
        for word in ("nobody", "Everybody", "those who", "who waits", "is told", "made again", "sentence", "doors",
                     "judged", "laws", "whole numbers", "goes on", "given back", "hot rows", "no failure"):
            with self.subTest(word):
                self.write("cli/main.c", f"int outlaw; /* {word} */\n")
                problems = words.check(self.root, {})
                self.assertEqual(len(problems), 2, problems)
                self.assertTrue(problems[0].startswith(f'cli/main.c:1: "{word}"'), problems)
                self.assertEqual(words.check(self.root, {"cli/main.c": 1}), [])
                self.assertEqual(len(words.check(self.root, {"cli/main.c": 2})), 1)

    def test_a_retired_word_is_found_in_prose_and_not_in_code(self):
        for line in ("Other people's programs", "a slot of it", "the peers", "rows are dealt", "the the report"):
            with self.subTest(line):
                self.write("docs/page.md", f"Text.\n{line}\n")
                problems = prose.check(self.root)
                self.assertEqual(len(problems), 1, problems)
                self.assertTrue(problems[0].startswith("docs/page.md:2: "), problems)
        for line in ("```\na peer\n```", "the `floor` of it", "[link](peers.json)", "floor(k / M)", "    floor = 1"):
            with self.subTest(line):
                self.write("docs/page.md", line + "\n")
                self.assertEqual(prose.check(self.root), [])
        self.write("docs/page.md", "")
        form = "# k\n\n## Formulation\n\n```\nx\n```\n\n" + "".join(f"## {part}\n\n" for part in prose.FORM[1:])
        self.write("docs/kernels/k.md", form)
        self.assertEqual(prose.check(self.root), [])
        for fault in (form.replace("## What was tried", "## Attempts"), form.replace("```\n", "")):
            self.write("docs/kernels/k.md", fault)
            self.assertEqual(len(prose.check(self.root)), 1)
        self.write("docs/kernels/k.md", form)
        self.write("include/flashsketch.h", "int peers; /* the floor */\n")
        self.assertEqual(len(prose.check(self.root)), 1)

    def test_a_long_sentence_is_found(self):
        self.write("docs/page.md", "Word, " * prose.LONGEST + "end.\n")
        self.assertEqual(len(prose.check(self.root)), 1)
        half = "Word, " * (prose.LONGEST // 2) + "end."
        self.write("docs/page.md", f"{half} {half}\n")
        self.assertEqual(prose.check(self.root), [])

    def test_readme_has_limits(self):
        for text, part in (("x" * 121, "121 columns"), ("a.\n" * 161, "161 lines"), ("some words. " * 700, "words"),
                           ("1, 2, 3 and 4", "4 numbers")):
            with self.subTest(part):
                lines = [text] if len(text) < 122 else text.split(" ")
                self.write("README.md", text if "\n" in text else "\n".join(
                    [" ".join(lines[i : i + 9]) for i in range(0, len(lines), 9)]) + "\n")
                problems = prose.check(self.root)
                self.assertEqual(len(problems), 1, problems)
                self.assertIn(part, problems[0])

    def test_a_word_that_the_glossary_retires_needs_a_rule(self):
        self.write("docs/glossary.md", "## Words we do not use\n\n| not | but |\n|---|---|\n| peers | baselines |\n")
        self.assertEqual(prose.check(self.root), [])
        self.write("docs/glossary.md", "## Words we do not use\n\n| not | but |\n|---|---|\n| gizmo | device |\n")
        self.assertEqual(len(prose.check(self.root)), 1)


if __name__ == "__main__":
    unittest.main()
