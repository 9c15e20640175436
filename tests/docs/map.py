#!/usr/bin/env python3
"""map.py - the trees in src/README.md name files that exist, and every source file of src.

usage: map.py ROOT [MAP].  MAP is src/README.md unless given.

A tree is a ``` block whose first line is a folder, "src/".  An entry is one or several names, then two or more spaces
and a description; deeper entries belong to the folder above them.  name.[ch] is name.c and name.h, name.[cu,cuh] is
name.cu and name.cuh; *_name.h is every file of the folder that matches.  A folder without entries of its own stands for
all files in it.  Lines indented by DESCRIPTION columns or more continue a description."""
import pathlib
import re
import sys

DESCRIPTION = 20
SOURCES = {".c", ".h", ".cu", ".cuh"}


def expanded(name):
    """The file names that an entry stands for."""
    match = re.fullmatch(r"(.*\.)\[([a-z,]+)\]", name)
    if not match:
        return [name]
    endings = match[2].split(",") if "," in match[2] else list(match[2])
    return [match[1] + ending for ending in endings]


def entries(text):
    """(path, is_folder) of every entry of every tree, in order."""
    for block in re.findall(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if not re.match(r"[a-z_]+/(\s|$)", block):
            continue
        folders = []  # (indentation, path) of the folders that the line is in
        for line in block.splitlines():
            indentation = len(line) - len(line.lstrip())
            if not line.strip() or indentation >= DESCRIPTION:
                continue
            while folders and folders[-1][0] >= indentation:
                folders.pop()
            above = folders[-1][1] if folders else ""
            for name in re.split(r"\s{2,}", line.strip())[0].split():
                if name.endswith("/"):
                    folders.append((indentation, above + name))
                    yield above + name, True
                else:
                    yield from ((above + file, False) for file in expanded(name))


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    map_file = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else root / "src/README.md"
    found = list(entries(map_file.read_text(encoding="utf-8")))
    patterns = [path for path, is_folder in found if not is_folder and "*" in path]
    matching = {str(path.relative_to(root)) for pattern in patterns for path in root.glob(pattern)}
    files = [path for path, is_folder in found if not is_folder and "*" not in path]
    folders = [path for path, is_folder in found if is_folder]
    inner = {path for path in folders if any(other != path and other.startswith(path) for other, _ in found)}
    whole = tuple(path for path in folders if path not in inner)
    faults = [f"{path} is in the map and does not exist" for path in files if not (root / path).is_file()]
    faults += [f"{path} is in the map and is no folder" for path in folders if not (root / path).is_dir()]
    faults += [f"{path} is in the map and matches no file" for path in patterns if not any(root.glob(path))]
    faults += [f"{path} is in the map twice" for path in sorted(set(files)) if files.count(path) > 1]
    sources = sorted(str(path.relative_to(root)) for path in (root / "src").rglob("*") if path.suffix in SOURCES)
    known = matching.union(files)
    faults += [f"{path} is not in the map" for path in sources if path not in known and not path.startswith(whole)]
    for fault in faults:
        print(fault)
    print(f"{len(files)} files and {len(folders)} folders in the map, {len(sources)} sources in src, "
          f"{len(faults)} fault(s)")
    return len(faults) > 0 or not files or not sources


sys.exit(main())
