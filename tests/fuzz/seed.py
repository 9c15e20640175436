#!/usr/bin/env python3
"""seed.py - writes the first files of the corpus: small, right, one of each kind.  The fuzzers add what they find."""
import gzip
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent / "corpus"


def write(format, name, data):
    (HERE / format).mkdir(parents=True, exist_ok=True)
    (HERE / format / name).write_bytes(data)


def npy(version, header, data):
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + data


for version in 1, 2, 3:
    for code, size in ("f2", 2), ("f4", 4), ("f8", 8):
        order = version % 2 == 0
        header = f"{{'descr': '<{code}', 'fortran_order': {order}, 'shape': (2, 3), }}\n"
        write("npy", f"{code}-{version}", npy(version, header, bytes(range(6 * size))))
write("npy", "vector", npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3L,)}", bytes(12)))
write("npy", "tensor", npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 1)}", bytes(8)))
write("npy", "big", npy(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", bytes(4)))
write("npy", "structured", npy(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", bytes(4)))

MTX = {
    "real": "coordinate real general\n% comment\n3 4 3\n1 1 1.5\n3 4 -2e-3\n2 2 12345678901234567890.5\n",
    "integer": "coordinate integer general\n2 2 2\n1 2 -3\n2 1 +4\n",
    "pattern": "coordinate pattern symmetric\n2 2 2\n2 1\n2 2\n",
    "skew": "coordinate real skew-symmetric\n3 3 2\n2 1 5\n3 2 inf\n",
    "array": "array real general\n2 3\n1\n2\n3\n4 5 6\n",
    "array-symmetric": "array integer symmetric\n2 2\n1\n2\n3\n",
    "array-skew": "array real skew-symmetric\n2 2\n7\n",
}
for name, text in MTX.items():
    text = ("%%MatrixMarket matrix " + text).encode()
    write("mtx", name, text)
    write("mtx", name + ".gz", gzip.compress(text, mtime=0))


def safetensors(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype, shape, start, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


write("safetensors", "one", safetensors({"w": tensor("F32", [2, 3], 0, 24)}, bytes(24)))
write("safetensors", "none", safetensors({}, b""))
write("safetensors", "many", safetensors({
    "__metadata__": {"format": "pt"}, "a": tensor("F16", [3], 0, 6), "b": tensor("BF16", [1, 3], 6, 12),
    "c": tensor("F64", [], 12, 20), "d": tensor("U8", [3, 0], 20, 20), "e": tensor("F4", [3], 20, 22)}, bytes(22)))
write("safetensors", "escapes", safetensors(
    b'{"\\u00e9\\n\\ud83d\\ude00":{"shape":[1],"dtype":"F32","data_offsets":[0,4]}}  ', bytes(4)))

for code, size in (8, 1), (9, 1), (11, 2), (12, 4), (13, 4), (14, 8):
    data = struct.pack(">BBBBII", 0, 0, code, 2, 2, 3) + bytes(range(6 * size))
    write("idx", f"{code}", data)
    write("idx", f"{code}.gz", gzip.compress(data, mtime=0))
write("idx", "cube", struct.pack(">BBBBIII", 0, 0, 8, 3, 2, 1, 2) + bytes(4))

for dtype, size in (1, 4), (2, 8), (3, 2), (4, 2):
    write("raw", f"{dtype}", struct.pack("<qqBB", 2, 3, dtype, dtype % 2) + bytes(6 * size))

for path in "npy/f4-1", "mtx/real", "mtx/array.gz", "safetensors/one", "idx/cube", "idx/8.gz":
    write("guess", path.replace("/", "-"), (HERE / path).read_bytes())
