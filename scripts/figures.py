#!/usr/bin/env python3
"""figures.py - draws the pictures that explain, docs/images/how.svg and docs/images/blocks.svg, and the site's icon.

usage: figures.py            writes them
       figures.py --check    writes nothing; exits with 1 and names those that differ
"""
import pathlib
import random
import sys

import drawing
from drawing import BLUE, FAINT, GREEN, GREY, INK, ORANGE, PINK, Picture

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
IMAGES, SITE = DOCS / "images", DOCS / "site" / "static"
BLOCK = [BLUE, ORANGE, GREEN, PINK]  # a colour for each input block
PALE = ["#dbe9f4", "#f9e3d3", "#d6efe6", "#f6e6ef"]


def how():
    """S times A is Y: which nonzeros of S meet which rows of A."""
    picture = Picture(860, 440, "How a sketch works: each row of A is added, with a sign, to a few rows of Y")
    cell, M, s, per_block = 16, 4, 2, 6
    k, d, n = 2 * M * s, M * per_block, 5
    draw = random.Random(1)
    block_of = []
    for _ in range(per_block):
        turn = draw.randrange(M)
        block_of += [(j + turn) % M for j in range(M)]
    left, top = 40, 104
    right = left + d * cell + 46
    above = top + k * cell / 2 - d * 5.5
    picture.text(left, 32, "S is random, sparse and never stored; Y = S A keeps lengths and angles", 14, INK, bold=True)
    picture.text(left, top - 12, "S, k × d", 13, INK, bold=True)
    picture.rect(left, top, d * cell, k * cell, "#ffffff", GREY)
    stratum = k // M // s
    for j in range(d):
        g = block_of[j]
        for t in range(s):
            row = g * (k // M) + t * stratum + draw.randrange(stratum)
            x, y = left + j * cell, top + row * cell
            picture.rect(x + 1, y + 1, cell - 2, cell - 2, BLOCK[g])
            picture.text(x + cell / 2, y + cell - 4, draw.choice("+−"), 12, "#ffffff", "middle", bold=True)
    for g in range(1, M):
        y = top + g * (k // M) * cell
        picture.line([(left, y), (left + d * cell, y)], FAINT)
    picture.text(left + d * cell + 22, top + k * cell / 2, "×", 20, INK, "middle")
    small = 11
    picture.text(right, above - 12, "A, d × n", 13, INK, bold=True)
    for j in range(d):
        picture.rect(right, above + j * small, n * cell, small - 1, BLOCK[block_of[j]])
    middle = right + n * cell
    picture.text(middle + 24, top + k * cell / 2, "=", 20, INK, "middle")
    last = middle + 50
    picture.text(last, top - 12, "Y, k × n", 13, INK, bold=True)
    for i in range(k):
        picture.rect(last, top + i * cell, n * cell, cell - 1, BLOCK[i // (k // M)])
    first = last + n * cell + 18
    for i, text in enumerate(["Every row of A belongs", "to one block (colour).", "It is added, with signs,",
                              "to s rows of Y of that", "block: here s = 2."]):
        picture.text(first, top + 92 + 18 * i, text, 12.5, GREY)
    for i, text in enumerate(["A column of S has s nonzeros, ±1 before scaling. A seed defines where they are:",
                              "so A can be read once, in slices, on any machine, and S is the same."]):
        picture.text(left, 398 + 19 * i, text, 12.5, GREY)
    return picture.svg()


def assignment(picture, x, top, title, block_of, heavy):
    """Rows of A, coloured by block; large rows are long.  Right of them the load of each block."""
    step = 15
    picture.text(x, top - 16, title, 13, INK, bold=True)
    for j, g in enumerate(block_of):
        y = top + j * step
        picture.rect(x, y, 120, step - 3, PALE[g])
        picture.rect(x, y, 120 if j in heavy else 26, step - 3, BLOCK[g])
    loads = [sum(1.0 if j in heavy else 0.05 for j, of in enumerate(block_of) if of == g) for g in range(4)]
    left, bottom, unit = x + 178, top + 24 * step - 40, 33
    picture.line([(left - 8, bottom), (left + 4 * 44, bottom)], GREY)
    for g, load in enumerate(loads):
        height = load * unit
        picture.rect(left + g * 44, bottom - height, 32, height, BLOCK[g])
        picture.text(left + g * 44 + 16, bottom + 17, f"{g + 1}", 12, GREY, "middle")
    picture.text(left + 82, bottom + 35, "squared length in each block", 12, GREY, "middle")
    even = bottom - sum(loads) / 4 * unit
    picture.line([(left - 8, even), (left + 4 * 44, even)], INK, 1.2, "5 4")
    picture.text(left + 4 * 44 - 2, even - 6, "even", 11.5, INK, "end")


def blocks():
    picture = Picture(860, 490, "Contiguous blocks against shuffled rows: where neighbouring large rows go")
    picture.text(40, 32, "Eight neighbouring rows of A are large. Which blocks have to hold them?", 14, INK, bold=True)
    heavy = range(4, 12)
    draw = random.Random(5)
    shuffled = []
    for _ in range(6):
        turn = draw.randrange(4)
        shuffled += [(i + turn) % 4 for i in range(4)]
    assignment(picture, 40, 80, "contiguous blocks (the paper)", [j // 6 for j in range(24)], heavy)
    assignment(picture, 460, 80, "shuffled rows (the default)", shuffled, heavy)
    picture.text(40, 470, "Each block has k / M rows of Y. One block that holds everything has too few of them, and "
                 "the error is large.", 12.5, GREY)
    return picture.svg()


def icon():
    """Four nonzeros of S."""
    picture = Picture(64, 64, "FlashSketch")
    for number, (x, y) in enumerate([(10, 22), (22, 46), (34, 10), (46, 34)]):
        picture.rect(x, y, 10, 10, BLOCK[number])
    return picture.svg()


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit("usage: figures.py [--check]")
    made = {IMAGES / "how.svg": how(), IMAGES / "blocks.svg": blocks(), SITE / "icon.svg": icon()}
    stale = [path for file, text in made.items() if (path := drawing.put(file, text, bool(arguments)))]
    if stale:
        sys.exit(f"{', '.join(path.name for path in stale)}: not what scripts/figures.py draws; run it")


main(sys.argv[1:])
