"""`python -m flashsketch` is the command flashsketch: the program in the folder bin of this package."""

import os
import pathlib
import sys

program = pathlib.Path(__file__).resolve().parent / "bin" / "flashsketch"
if not program.exists():
    sys.exit(
        f"flashsketch: there is no command in this package, {program} is missing; wheels of libflashsketch have it, "
        "Debian's is in flashsketch-bin, and an installation from a checkout has it where zlib and cJSON were found "
        "(Debian: zlib1g-dev, libcjson-dev)"
    )
os.execv(program, ["flashsketch", *sys.argv[1:]])
