"""The layouts of the package are those of the C headers (tests/abi/layouts.h, which the C tests compare with them)."""

import pathlib
import re
import struct

import pytest

from flashsketch import _layouts

TABLE = pathlib.Path(__file__).resolve().parent.parent / "abi" / "layouts.h"


def table():
    """{struct: (size, {member: offset})}"""
    found = {}
    for kind, arguments in re.findall(r"^(STRUCT|FIELD)\((.*)\)$", TABLE.read_text(), re.MULTILINE):
        name, *rest = arguments.split(", ")
        if kind == "STRUCT":
            found[name] = (int(rest[0]), {})
        else:
            found[name][1][rest[0]] = int(rest[1])
    return found


@pytest.mark.parametrize("name", sorted(_layouts.STRUCTS))
def test_a_struct_has_the_layout_of_the_header(name):
    size, offsets = table()[name]
    codes, found = "@", {}
    for member, code in _layouts.members(name):
        found[member] = struct.calcsize(codes + "0" + code[-1])
        codes += code
    assert list(found.items()) == list(offsets.items())
    assert _layouts.layout(name).size == size


def test_structs_that_follow_one_another_are_aligned():
    assert _layouts.layout("fs_rows", "fs_matrix").size == table()["fs_rows"][0] + table()["fs_matrix"][0]
