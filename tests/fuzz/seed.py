#!/usr/bin/env python3
"""seed.py - writes the corpus: small valid files, one of each kind, and bad-*, which are invalid: truncated, huge,
negative, overlapping, malicious.  Inputs that a fuzzer finds to fail are added beside them by hand."""
import gzip
import io
import json
import pathlib
import struct
import zipfile
import zlib

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
for code in "|b1", "|i1", "|u1", "<i2", ">u2", ">i4", "<u4", "<i8", ">u8", ">f2", ">f8", "<c8", "<U2", "<M8[ns]", "|V3":
    size = {"U": 8, "M": 8}.get(code[1], int(code[2]))
    header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': (3, 1), }}\n"
    write("npy", f"type-{code[1:3]}-{'big' if code[0] == '>' else 'little'}", npy(1, header, bytes(range(3 * size))))
write("npy", "vector", npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3L,)}", bytes(12)))
write("npy", "tensor", npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 1)}", bytes(8)))
write("npy", "big", npy(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", bytes(4)))
for name, version, header, data in (
        ("negative", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3)}", 12),
        ("huge", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 2)}", 12),
        ("uncountable", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}", 8),
        ("wraps", 2, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0),
        ("zero", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807)}", 0),
        ("deep", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 40 + ")}", 4),
        ("twice", 1, "{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", 4),
        ("code", 1, "{'descr': __import__('os').system('true'), 'fortran_order': False, 'shape': (1,)}", 4),
        ("object", 1, "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", 8),
        ("open", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,", 4),
        ("escape", 1, "{'descr': '\x1b[2J', 'fortran_order': False, 'shape': (1,)}", 4),
        ("short", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 23),
        ("long", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 25)):
    write("npy", "bad-" + name, npy(version, header, bytes(data)))
write("npy", "bad-header-length", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}")
write("npy", "bad-stub", b"\x93NUMPY\x02\x00\x01")
write("npy", "bad-version", b"\x93NUMPY\x04\x00\x00\x00")
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
for name, text in {
    "huge": "coordinate real general\n9223372036854775807 9223372036854775807 9223372036854775807\n",
    "wraps": "array real general\n4294967296 4294967296\n1\n",
    "tall": "coordinate real general\n999999999999 2 1\n1 1 1\n",
    "negative": "coordinate real general\n-2 2 1\n1 1 1\n",
    "outside": "coordinate real general\n2 2 1\n3 1 1\n",
    "zero-index": "coordinate real general\n2 2 1\n0 1 1\n",
    "short": "coordinate real general\n2 2 3\n1 1 1\n",
    "long": "coordinate real general\n2 2 1\n1 1 1\n2 2 2\n",
    "oblong": "coordinate real symmetric\n2 3 1\n1 1 1\n",
    "diagonal": "coordinate real skew-symmetric\n2 2 1\n1 1 1\n",
    "hexadecimal": "coordinate real general\n1 1 1\n1 1 0x1p4\n",
    "digits": "array real general\n1 1\n" + "9" * 400 + "." + "9" * 400 + "e-999999999999\n",
    "escape": "coordinate real general\n1 1 1\n1 1 \x1b]0;title\x07\n",
    "nul": "coordinate real general\n1 1 1\n1 1\0 1\n",
    "complex": "coordinate complex general\n1 1 1\n1 1 1 1\n",
    "sizes": "coordinate real general\n",
}.items():
    text = ("%%MatrixMarket matrix " + text).encode()
    write("mtx", "bad-" + name, text)
    if name in ("huge", "short"):
        write("mtx", f"bad-{name}.gz", gzip.compress(text, mtime=0))
packed = gzip.compress(("%%MatrixMarket matrix " + MTX["real"]).encode(), mtime=0)
write("mtx", "bad-truncated.gz", packed[:-11])
write("mtx", "bad-checksum.gz", packed[:-8] + b"12345678")
write("mtx", "bad-bomb.gz", gzip.compress(b"%%MatrixMarket matrix array real general\n" + b"% \n" * 300000, mtime=0))

for name, text in {
    "commas": "a,b,c\n1,2,3\n4,5.5,-6e-3\n",
    "quoted": '"a, b","c ""d"""\r\n"1",2\r\n3,"4"\r\n\r\n',
    "semicolons": "# comment\n1;2\n\t3; 4 \n",
    "tabs": "\ufeffx\ty\n1\t2\nnan\t-inf\n",
    "spaces": "  1 2\t3\n4  5 6  \n\n\n",
    "column": "my name\n1\n2\n3",
    "bad-empty": "1,,2\n3,4,5\n",
    "bad-tabs": "1\t\t2\n",
    "bad-trailing": "1,2,\n",
    "bad-ragged": "1,2\n3\n",
    "bad-mixed": "1,x,3\n4,5,6\n",
    "bad-names": "a,b\n1,2,3\n",
    "bad-blank": "1\n\n2\n",
    "bad-comma": "1,5;2,5\n",
    "bad-words": "hello\nworld\n",
    "bad-header": "a,b\n",
    "bad-comments": "# a\n#b",
    "bad-quote": '"1,2\n3,4\n',
    "bad-huge": "1e999\n",
    "bad-escape": "1,\x1b[2J\n2,3\n",
    "bad-nul": "1,2\0,3\n",
}.items():
    write("csv", name, text.encode())
    if name in ("commas", "bad-ragged"):
        write("csv", name + ".gz", gzip.compress(text.encode(), mtime=0))


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
for name, header, data in (
        ("overlap", {"a": tensor("F32", [2], 0, 8), "b": tensor("F32", [2], 4, 12)}, 12),
        ("gap", {"a": tensor("F32", [1], 0, 4), "b": tensor("F32", [1], 8, 12)}, 12),
        ("reversed", {"a": tensor("F32", [1], 4, 0)}, 4),
        ("negative", {"a": tensor("F32", [-1], -4, 0)}, 0),
        ("fraction", {"a": tensor("F32", [1.5], 0, 6)}, 6),
        ("outside", {"a": tensor("F32", [1024], 0, 4096)}, 4),
        ("wraps", {"a": tensor("F64", [2**32, 2**32], 0, 0)}, 0),
        ("huge", {"a": tensor("F32", [2**53 + 2], 0, 4)}, 4),
        ("rest", {"a": tensor("F32", [1], 0, 4)}, 9),
        ("fields", {"a": {"dtype": "F32", "shape": [1]}}, 4),
        ("metadata", {"__metadata__": {"a": {"b": 1}}}, 0),
        ("twice", b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],'
                  b'"data_offsets":[0,0]}}', 0),
        ("nul", b'{"a\\u0000b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 4),
        ("nested", b'{"a":' + b"[" * 1200 + b"]" * 1200 + b"}", 0),
        ("escape", {"\x1b[2J": tensor("F32", [2], 0, 4)}, 4),
        ("array", b"[1, 2]", 0),
        ("not-json", b"{'a': 1}", 0),
        ("goes-on", b"{} {}", 0)):
    write("safetensors", "bad-" + name, safetensors(header, bytes(data)))
write("safetensors", "bad-length", b"\xff" * 8 + b"{}")
write("safetensors", "bad-stub", b"\x02\x00\x00")

def npz(members, method=zipfile.ZIP_STORED, wide=False):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members.items():
            with archive.open(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), "w", force_zip64=wide) as member:
                member.write(data)
    return file.getvalue()


def array(descr, shape, data):
    return npy(1, f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n", data)


def numbers(values, code="i"):
    data = struct.pack(f"<{len(values)}{code}", *values)
    return array("<i4" if code == "i" else "<f8", f"({len(values)},)", data)


def sparse(format, shape=(3, 3), data=(5.0, 7.0, -9.0), **parts):
    return {f"{name}.npy": numbers(values) for name, values in parts.items()} | {
        "format.npy": array("|S3", "()", format.encode()), "shape.npy": numbers(shape), "data.npy": numbers(data, "d")}


CSR = dict(indices=(1, 0, 2), indptr=(0, 1, 1, 3))
one = {"arr_0.npy": array("<f4", "(2, 3)", bytes(24))}
for wide in False, True:
    for method in zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED:
        write("npz", f"one-{wide}-{method}", npz(one, method, wide))
write("npz", "several",
      npz({"a.npy": array(">i2", "(2,)", bytes(4)), "b.npy": array("<c8", "()", bytes(8)), "c": b"x"}))
write("npz", "csr", npz(sparse("csr", **CSR), zipfile.ZIP_DEFLATED, True))
write("npz", "csc", npz(sparse("csc", indices=(2, 0, 2), indptr=(0, 1, 2, 3))))
write("npz", "coo", npz(sparse("coo", row=(2, 0, 2), col=(2, 1, 0))))
for name, members in {
    "outside": sparse("csr", indices=(1, 0, 3), indptr=(0, 1, 1, 3)),
    "falls": sparse("csr", indices=(1, 0, 2), indptr=(0, 2, 1, 3)),
    "beyond": sparse("csr", indices=(1, 0, 2), indptr=(0, 99, 1, 3)),
    "lines": sparse("csr", shape=(4, 3), **CSR),
    "negative": sparse("coo", row=(2, -1, 2), col=(2, 1, 0)),
    "tall": sparse("coo", shape=(2**31 - 1, 3), row=(2, 1, 2), col=(2, 1, 0)),
    "short": sparse("coo", row=(2, 1), col=(2, 1, 0)),
    "format": sparse("bsr", **CSR),
    "parts": sparse("csr", indices=(1, 0, 2)),
    "empty": {},
    "name": {"x.npy": b"", ".npy": b"", "\x1b[2J.npy": one["arr_0.npy"]},
    "long": {"a.npy": array("<f4", "(2, 3)", bytes(25))},
}.items():
    write("npz", "bad-" + name, npz(members))
whole = npz(one, zipfile.ZIP_DEFLATED)
write("npz", "bad-cut", whole[:-1])
write("npz", "bad-checksum", whole.replace(struct.pack("<I", zlib.crc32(one["arr_0.npy"])), b"1234"))
write("npz", "bad-bomb", npz({"a.npy": array("|u1", "(300000,)", bytes(300000))}, zipfile.ZIP_DEFLATED)[:-30])

for code, size in (8, 1), (9, 1), (11, 2), (12, 4), (13, 4), (14, 8):
    data = struct.pack(">BBBBII", 0, 0, code, 2, 2, 3) + bytes(range(6 * size))
    write("idx", f"{code}", data)
    write("idx", f"{code}.gz", gzip.compress(data, mtime=0))
write("idx", "cube", struct.pack(">BBBBIII", 0, 0, 8, 3, 2, 1, 2) + bytes(4))
for name, head, data in (
        ("huge", struct.pack(">BBBBIIII", 0, 0, 14, 4, *[0xFFFFFFFF] * 4), 8),
        ("zero", struct.pack(">BBBBII", 0, 0, 8, 2, 0, 3), 0),
        ("deep", struct.pack(">BBBB", 0, 0, 8, 255), 1020),
        ("none", struct.pack(">BBBB", 0, 0, 8, 0), 1),
        ("type", struct.pack(">BBBBI", 0, 0, 10, 1, 1), 1),
        ("short", struct.pack(">BBBBII", 0, 0, 8, 2, 2, 3), 5),
        ("long", struct.pack(">BBBBII", 0, 0, 8, 2, 2, 3), 7),
        ("sizes", struct.pack(">BBBBI", 0, 0, 8, 3, 2), 0)):
    write("idx", "bad-" + name, head + bytes(data))
    write("idx", f"bad-{name}.gz", gzip.compress(head + bytes(data), mtime=0))
write("idx", "bad-truncated.gz", gzip.compress(struct.pack(">BBBBII", 0, 0, 8, 2, 2, 3) + bytes(6), mtime=0)[:-9])

for dtype, size in (1, 4), (2, 8), (3, 2), (4, 2):
    write("raw", f"{dtype}", struct.pack("<qqBB", 2, 3, dtype, dtype % 2) + bytes(6 * size))
for name, rows, cols, dtype, data in ("negative", -2, -3, 1, 24), ("wraps", 2**32, 2**32, 2, 8), \
        ("huge", 2**63 - 1, 2**63 - 1, 1, 8), ("short", 2, 3, 1, 23), ("long", 2, 3, 1, 25), ("type", 2, 3, 5, 24):
    write("raw", "bad-" + name, struct.pack("<qqBB", rows, cols, dtype, 0) + bytes(data))

for path in "npy/f4-1", "mtx/real", "csv/commas", "csv/commas.gz", "npz/csr", \
        "mtx/array.gz", "safetensors/one", "idx/cube", "idx/8.gz":
    write("guess", path.replace("/", "-"), (HERE / path).read_bytes())
