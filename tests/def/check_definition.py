"""check_definition.py - the test vectors against definition.py: python3 check_definition.py vectors.txt

Prints every mismatch with both numbers and ends with "N passed, M failed"; exits 1 on any failure or if there are
no vectors."""
import sys

from definition import digest, sketch

passed = failed = 0
with open(sys.argv[1]) as file:
    lines = file.readlines()
for number, line in enumerate(lines, 1):
    if line.startswith("#") or not line.strip():
        continue
    family, d, k, M, kappa, s, shuffle, interleave, seed, col0, cols, expected = line.split()
    spec = [family, *map(int, (d, k, M, kappa, s)), shuffle, int(interleave), int(seed, 16)]
    found = digest(*sketch(*spec, int(col0), int(cols)))
    if found == int(expected, 16):
        passed += 1
    else:
        failed += 1
        print(f"line {number}: the digest is 0x{found:016x}, the file says {expected}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0 or passed == 0)
