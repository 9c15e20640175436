#!/usr/bin/env python3
"""includes.py - checks that includes are qualified and point one way.

usage: includes.py [--root TREE]

GRAPH is the table of permitted edges; EXCEPTIONS lists the includes that break it today.  An exception that no longer
occurs is an error too, so that the list shrinks with the code.  Prints FILE:LINE and the rule for every violation."""
import fnmatch
import posixpath
import re

import tree

# Folder: the folders, or patterns of headers, that it may include besides its own.  A file belongs to the folder with
# the longest path above it.  include/ is open to all but def.
GRAPH = {
    "include": (),
    "src/def": (),
    "src/base": ("src/def/port.h",),
    "src/core": ("src/base", "src/def"),
    "src/cpu": ("src/core", "src/base", "src/def"),
    "src/cuda/plan": ("src/cuda/blockperm/*_instances.h", "src/base", "src/def"),
    "src/cuda": ("src/cuda/plan", "src/core", "src/base", "src/def"),
    "src/tasks": ("src/core", "src/base", "src/def"),
    "src/attribution": ("src/core", "src/base", "src/def"),
    "src/files": ("src/core", "src/base", "src/def"),
    # Clients of the public headers.  apps/common holds what several programs share, and is no library of its own.
    "apps/common": (),
    "apps/grass": ("apps/common",),
    "cli": ("apps/common", "apps/grass"),
    "mpi": (),
    "bench": ("apps/common",),
}

# Where a path in an include is looked up, besides the includer's own folder: the compilers' -I options.
SEARCH = ("src", "include", "")

# Headers with CUDA in them; which files may include them, and which of these are plain C all the same.
CUDA = re.compile(r"(cuda|cub/|cublas|cusolver|cusparse|nccl|cooperative_groups)")
CUDA_FOLDERS = ("src/cuda", "bench", "apps/grass")
PLAIN_C = ("src/cuda/plan/*", "src/cuda/blockperm/*_instances.h")

# Headers that the build writes: includer and header.
GENERATED = {("cli/cmd_check.c", "vectors.inc")}

# Reason: the includes "FILE -> HEADER", HEADER relative to the root.
EXCEPTIONS = {
    "the experiment's random numbers are the definition's, and files that it has kept depend on them to the bit": (
        "apps/grass/lds.c -> src/def/uniform.h",
        "apps/grass/ops.h -> src/def/rng.h",
        "apps/grass/random.h -> src/def/permute.h",
    ),
    "baselines and data take their random numbers from the definition": (
        "bench/baselines/algorithm1.h -> src/def/permute.h",
        "bench/baselines/algorithm1.h -> src/def/wiring.h",
        "bench/baselines/cpu_gaussian.c -> src/def/gauss.h",
        "bench/baselines/cpu_scatter.c -> src/def/blockperm.h",
        "bench/baselines/gaussian.cu -> src/def/gauss.h",
        "bench/baselines/scatter.cu -> src/def/blockperm.h",
        "bench/baselines/srht_passes.cu -> src/def/srht.h",
        "bench/data/files.c -> src/def/uniform.h",
        "bench/data/recipe.h -> src/def/gauss.h",
    ),
    "fsbench tune measures plans of the CUDA backend": (
        "bench/cases/tune.c -> src/base/dtype.h",
        "bench/cases/tune.c -> src/cuda/plan/tune/candidates.h",
    ),
    "fsbench grass draws the masks of src/attribution": (
        "bench/grass/grid.c -> src/attribution/mask.h",
    ),
    "show and spec print derived sizes of the definition": (
        "cli/cmd_show.c -> src/def/def.h",
        "cli/cmd_spec.c -> src/def/def.h",
    ),
    "fs_definition_version is defined beside the error messages": (
        "src/base/error.c -> src/def/def.h",
    ),
}


def folder_of(path):
    """The folder of the graph that a path belongs to, or None."""
    parents = [folder for folder in GRAPH if path.startswith(folder + "/")]
    return max(parents, key=len, default=None)


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def permitted(source, target):
    """Whether a file of the graph may include another."""
    own = folder_of(source)
    if own == "src/def" or folder_of(target) == own:
        return folder_of(target) == own
    return target.startswith("include/") or folder_of(target) in GRAPH[own] or matches(target, GRAPH[own])


def resolve(root, source, name, quoted):
    """The file that an include names, relative to the root, and whether the name is qualified; None: not ours."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(source), name))
    if quoted and (root / beside).is_file():
        return beside, False
    for folder in SEARCH:
        path = posixpath.normpath(posixpath.join(folder, name))
        if (root / path).is_file():
            return path, True
    return None, True


def fault(root, source, name, quoted):
    """What is wrong with an include, and the file that it names."""
    target, qualified = resolve(root, source, name, quoted)
    own = folder_of(source)
    if own is None:
        return "the folder is not in GRAPH", target
    if ".." in name.split("/"):
        return "a path with .. is not qualified", target
    if target is None and quoted:
        return None if (source, name) in GENERATED else "no such file in the tree", target
    if target is None:
        if own == "src/def" and name != "stdint.h":
            return "src/def includes nothing but <stdint.h>", target
        if CUDA.match(name) and (matches(source, PLAIN_C) or not source.startswith(CUDA_FOLDERS)):
            return "a CUDA header; this file is plain C", target
        return None, target
    if not qualified and source.startswith("src/"):
        return f'write the path from src: "{target.removeprefix("src/")}"', target
    if not permitted(source, target):
        edges = ", ".join(GRAPH[own]) or "nothing private"
        return f"{own} may include {edges}", target
    return None, target


def check(root, exceptions):
    """All violations, and the exceptions that are not used."""
    listed = {include for group in exceptions.values() for include in group}
    used, problems = set(), []
    pattern = re.compile(r'\s*#\s*include\s*(?:(?P<angle><)|(?P<quote>"))?(?P<name>[^>"]*)')
    for path in tree.sources(root, sorted({folder.split("/")[0] for folder in GRAPH}), (".c", ".h", ".cu", ".cuh")):
        source = path.as_posix()
        for number, line in tree.lines(root, path):
            match = pattern.match(line)
            if not match:
                continue
            if not match["angle"] and not match["quote"]:
                problems.append(f"{source}:{number}: an include by a macro hides its direction")
                continue
            wrong, target = fault(root, source, match["name"], bool(match["quote"]))
            if wrong and f"{source} -> {target}" in listed:
                used.add(f"{source} -> {target}")
            elif wrong:
                problems.append(f"{source}:{number}: {line.strip()}: {wrong}")
    problems += [f"stale exception, delete it: {include}" for include in sorted(listed - used)]
    return problems


def main():
    options = tree.arguments(__doc__.splitlines()[0]).parse_args()
    tree.report(check(options.root, EXCEPTIONS), "includes are qualified and follow the graph of includes.py")


if __name__ == "__main__":
    main()
