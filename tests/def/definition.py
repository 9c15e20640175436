"""definition.py - S in NumPy: docs/definition.md in executable form, to be read, and an independent check of the
vectors.
sketch(...) gives the nonzeros of columns col0 ... col0 + cols - 1 as arrays of rows, columns and values, the draws of
FlashBlockRow not merged; digest(...) is their fingerprint.  Integers are uint64 arrays and wrap as in C."""
import numpy as np
COLUMN, SHUFFLE, WIRING, GROUP, SAMPLE, NEIGHBOUR, FLIP, PICK, NORMAL = range(1, 10)
u64, f32, LOW = np.uint64, np.float32, 2**32 - 1
def ceil(a, b): return -(-a // b)
def philox(seed, tag, item, e, attempt=0):  # the four words at address (tag, item, e, attempt)
    w = [item & LOW, item >> 32 | attempt << 16, 0 * item + e, 0 * item + tag]
    for n in range(10):
        p, q, k0, k1 = 0xD2511F53 * w[0], 0xCD9E8D57 * w[2], seed + n * 0x9E3779B9, (seed >> 32) + n * 0xBB67AE85
        w = [q >> 32 ^ w[1] ^ (k0 & LOW), q & LOW, p >> 32 ^ w[3] ^ (k1 & LOW), p & LOW]
    return w
def word(seed, tag, i, e, attempt=0): return np.choose((i & 3).astype(int), philox(seed, tag, i >> 2, e, attempt))
def digits(seed, tag, i, e, bases, attempt=0):  # a uniform digit in each base, all from one word of item i
    rest, bases, out = word(seed, tag, i, e, attempt), [b + 0 * i for b in bases], []
    for b in bases: out, rest = out + [rest * b >> 32], rest * b & LOW
    out, again = np.array(out), rest < 2**32 % np.prod(bases, axis=0)
    if again.any(): out[:, again] = digits(seed, tag, i[again], e, [b[again] for b in bases], attempt + 1)
    return out
def size(n, parts, i): return n // parts + 0 * i + (i < n % parts)  # [n] in parts: the size of part i,
def start(n, parts, i): return n // parts * i + np.minimum(i, n % parts)  # its first member, and the part that x is in
def part(n, parts, x): return np.maximum(x // (n // parts + 1), (x - np.minimum(x, n % parts)) // max(n // parts, 1))
def mix(x, key): return ((x * 0x9E3779B1 + key & LOW) ^ (x * 0x9E3779B1 + key & LOW) >> 15) * 0x85EBCA77 & LOW
def permute(seed, tag, e, n, x):  # the keyed bijection of [n]
    r, key = ceil((n - 1).bit_length(), 2), word(seed, tag, np.arange(18, dtype=u64), e)
    L, R, high = x >> r, x & (1 << r) - 1, ceil(n, 1 << r)
    for i in range(0, 18 if n < 256 else 6, 2):
        R = R ^ mix(L, key[i]) << r >> 32
        L = (L + (mix(R, key[i + 1]) * high >> 32)) % high
    x = L << r | R
    if (x >= n).any(): x[x >= n] = permute(seed, tag, e, n, x[x >= n])
    return x
def wiring(seed, M):  # a and b of f(x) = (a x + b) mod M
    draw = lambda item, e, b: int(digits(seed, WIRING, np.array([item], u64), e, [b])[0, 0])
    step = int(np.prod([p for p in range(2, M + 1) if M % p == 0 and all(p % q for q in range(2, p))])) << (M % 4 == 0)
    return 1 + step * draw(0, 0, M // step), next(b for b in (draw(1, e, M) for e in range(9**9)) if np.gcd(b, M) == 1)
def rounds(seed, ways, q):  # shift and mask of each round, and how many places the mask permutes
    if ways < 16: return digits(seed, SHUFFLE, q, 0, [ways])[0], 0 * q, 0
    keys, bits, runs = philox(seed, SHUFFLE, q // ways, 1), (ways - 1).bit_length(), 1 << ways.bit_length() - 3
    shifts, x = (ceil(bits, 2), ceil(bits, 3), ceil(bits, 2), bits), q % ways + 2**bits  # outside, to begin
    while (y := x).max(initial=0) >= ways:
        for w, shift in zip(keys, shifts): y = (z := y * (w | 1) + (w >> 16) & 2**bits - 1) ^ z >> shift
        x = np.where(x >= ways, y, x)
    return x, (keys[3] * runs >> 32) * 4, 4 * runs
def local(d, M, shuffle, c, seed, j):  # input block and local row of column j
    if shuffle == "none": return part(d, M, j), j - start(d, M, part(d, M, j))
    unit, ways = (j // 32 if shuffle == "groups" else j), M // c
    (shift, mask, turned), place = rounds(seed, ways, unit // ways), unit % ways
    H = (np.where(place < turned, place ^ mask, place) + shift) % ways
    if shuffle == "rows": return H, unit // ways
    w, run = word(seed, GROUP, unit, 0), j % 32 // c
    for b in range(5): j = j ^ (run >> b & 1) * (w >> 5 * b)
    return H * c + ((j ^ w >> 27) & c - 1), unit // ways * (32 // c) + run
def blockperm(d, k, M, kappa, s, shuffle, c, seed, j):  # SJLT too
    (h, u), (a, b), W = local(d, M, shuffle, c, seed, j), wiring(seed, M), k // M // s
    m = ceil(ceil(k, M), s)  # each: the strata of a band
    each = ceil(s, ceil(s, min(32 // (2 * m - 1).bit_length(), 64 // m if m <= 64 else 32)))
    lanes, address, v, g = 32 // each, 4 * (u // W * M + h), u % W, h
    for l, q in np.ndindex(kappa, ceil(s, each)):
        if q == 0: g = pow(a, -1, M) * (g + (M - b)) % M
        rows, n, e = size(k, M, g), 1 + v // lanes, (l * ceil(s, each) + q) * ceil(1 + ceil(W, lanes), 4)
        signs, ts = word(seed, COLUMN, address + n % 4, e + n // 4), range(s)[q * each:][:each]
        for t, x in zip(ts, digits(seed, COLUMN, address, e, [2 * size(rows, s, t) for t in ts])):
            row, minus = (x // 2 + v) % size(rows, s, t), x ^ signs >> 31 - v % lanes - (t - ts[0]) * lanes
            yield start(k, M, g) + start(rows, s, t) + row, j, (-1.0)**(minus & 1) / np.sqrt(kappa * s)
def blockrow(d, k, M, kappa, s, shuffle, c, seed, columns):
    for g, e in np.ndindex(M, kappa * s):
        i = np.arange(start(k, M, g), start(k, M, g + 1), dtype=u64)
        h = permute(seed, NEIGHBOUR, g, M, (digits(seed, NEIGHBOUR, 0 * i + 18, g, [M])[0] + e // s) % M)
        x = digits(seed, SAMPLE, i, e, [2 * size(d, M, h)])[0]
        j, value = start(d, M, h) + x // 2, (-1.0)**x * np.sqrt(M * size(d, M, h) / (k * kappa * s))
        yield [a[(columns[0] <= j) & (j <= columns[-1])] for a in (i, j, value)]
def srht(d, k, M, kappa, s, shuffle, c, seed, j):
    x = permute(seed, PICK, 0, 1 << (d - 1).bit_length(), np.arange(k, dtype=u64))[:, None] & j
    for shift in 32, 16, 8, 4, 2, 1: x = x ^ x >> shift
    for i, bits in enumerate(x ^ word(seed, FLIP, j, 0) >> 31): yield 0 * j + i, j, (-1.0)**(bits & 1) / np.sqrt(k)
def normals(w, v):  # one Box-Muller pair, operation by operation in float32
    bits = ((w.astype(f32) + f32(0.5)) * f32(2**-32)).view(np.uint32)
    e = bits - 0x3F3504F3 & 0xFF800000
    x, e = (bits - e).view(f32) - f32(1), e.view(np.int32).astype(f32) * f32(2**-23)
    ln = e * f32(0.693147182) + x * np.polyval(f32([0.0874394551, -0.143773302, 0.149490952, -0.165606961, 0.199569777,
                                                    -0.250021547, 0.333341837, -0.499999881, 1]), x)
    x = (((v + 2**29) % 2**30).astype(int) - 2**29).astype(f32) * f32(1.46291807926715969e-09)
    sin = np.polyval(f32([2.71734939e-06, -0.000198392023, 0.00833332911, -0.166666672, 1]), x * x) * x
    cos = np.polyval(f32([2.43798804e-05, -0.00138866191, 0.0416666158, -0.5, 1]), x * x)
    turn = np.choose((v + 2**29 >> 30 & 3).astype(int), [(cos, sin), (-sin, cos), (-cos, -sin), (sin, -cos)])
    return (np.sqrt(f32(-2) * np.minimum(ln, f32(0))) * turn).astype(float)
def gaussian(d, k, M, kappa, s, shuffle, c, seed, j):
    for i in range(k):
        yield 0 * j + i, j, normals(*philox(seed, NORMAL, j, i // 4)[i & 2:][:2])[i & 1] * (1 / np.sqrt(k))
def sketch(family, d, k, M, kappa, s, shuffle, interleave, seed, col0=0, cols=None):
    columns = np.arange(col0, d if cols is None else col0 + cols, dtype=u64)
    entries = dict(blockperm=blockperm, sjlt=blockperm, blockrow=blockrow, srht=srht, gaussian=gaussian)[family]
    return [np.concatenate(a) for a in zip(*entries(d, k, M, kappa, s, shuffle, interleave, seed, columns))]
def digest(i, j, value):
    x = i * 0x9E3779B97F4A7C15 + j * 0xC2B2AE3D27D4EB4F + value.view(u64)
    for shift, c in (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB): x = (x ^ x >> shift) * c
    return int((x ^ x >> 31).sum())
