/* plan.inc.c - S made ready for a kernel: chunks of local rows of an input block, which rows of A these are, and their
 * nonzeros sorted by output row.
 *
 * Local rows are numbered through A, so that a chunk of a block is found without a list of all rows and a piece of A
 * costs what its own rows cost.  In a chunk of whole windows every row of a stratum has one nonzero in each window: the
 * nonzeros of an output row are an array of fixed length, and a kernel that adds rows of A to one row of Y while it
 * holds that in registers has no branch that depends on S. */

enum {
    CHUNK_WINDOWS = 8,        /* nonzeros of an output row in a chunk where rows of A are long, */
    CHUNK_FEWEST = 4,         /* or so many where windows have more rows than */
    CHUNK_ROWS = 128,         /* in this many */
    LONG_WINDOW = 128,        /* local rows; chunks of longer windows are parts of one */
    CHUNK_LEAST = 64,         /* local rows in a chunk, at least, */
    CHUNK_MOST = 512,         /* and at most */
    CHUNK_NONZEROS = 1 << 22, /* of a chunk, at most, but for one of a window */
    MOST_VECTORS = 8,         /* in a row of a tile */
    GATHER_VECTORS = 4,       /* in a row of A, at least, that is gathered, */
    GATHER_ROWS = 512,        /* so many at a time at most */
    TABLE_ENTRIES = 1 << 20,  /* nonzeros of a table of columns of S, 4 bytes each */
    FEW_TASKS = 8             /* with fewer tasks than this the work is cut further */
};

/* How local rows are cut into chunks.  A period is several whole windows, or one window, which then is cut into
 * parts.  A unit, the same for all cuts of a sketch, begins where chunks begin: a power of two of short windows, or one
 * long window. */
typedef struct chunking {
    int64_t rows;    /* of a chunk, at most */
    int64_t period;  /* after which the cut repeats */
    int64_t in_each; /* chunks of a period */
    int64_t in_unit; /* chunks of a unit */
    int windows;     /* whole windows in a chunk, a power of two; 0: chunks are parts of a window */
} chunking;

/* The largest power of two up to x, at least 1. */
static int64_t power_below(int64_t x)
{
    int64_t power = 1;
    while (power <= x / 2) power *= 2;
    return power;
}
static int64_t unit_windows(const fsi_blockperm *B)
{
    const int64_t tallest = B->out.small + (B->out.larger > 0);
    return B->window > LONG_WINDOW ? 1 : power_below(fsi_min64(CHUNK_MOST / B->window, CHUNK_NONZEROS / tallest));
}

/* Chunks of at least `least` windows, if these have at most `most` rows, and of one otherwise; or of at most `most`
 * rows of a long window. */
static chunking chunking_of(const fsi_blockperm *B, int64_t least, int64_t most)
{
    const int64_t W = B->window;
    chunking cut;
    if (W > LONG_WINDOW) {
        const int64_t part = fsi_max(fsi_min64(most, CHUNK_NONZEROS / B->s), 32);
        cut.windows = 0;
        cut.rows = fsi_round_up(fsi_div_up(W, fsi_div_up(W, part)), 32);
        cut.period = W;
        cut.in_each = cut.in_unit = fsi_div_up(W, cut.rows);
        return cut;
    }
    const int64_t windows = fsi_min64(fsi_max(least, fsi_div_up(CHUNK_LEAST, W)), most / W);
    cut.windows = (int)power_below(fsi_min64(windows, unit_windows(B)));
    cut.rows = cut.period = cut.windows * W;
    cut.in_each = 1;
    cut.in_unit = unit_windows(B) / cut.windows;
    return cut;
}
static int64_t chunking_start(const chunking *cut, int64_t i)
{
    return i / cut->in_each * cut->period + i % cut->in_each * cut->rows;
}
static int64_t chunking_size(const chunking *cut, int64_t i)
{
    return fsi_min64(cut->rows, cut->period - i % cut->in_each * cut->rows);
}
static int64_t chunking_index(const chunking *cut, int64_t u)
{
    return u / cut->period * cut->in_each + u % cut->period / cut->rows;
}

/* Local rows of a unit of the shuffle. */
static int64_t unit_rows(const fsi_blockperm *B)
{
    return B->shuffle == FSI_DEF_GROUPS ? FSI_GROUP_ROWS / B->interleave : 1;
}
/* The chunks of block h, first ... last - 1, that columns j0 ... j0 + count - 1 are in, of piece number `piece` of
 * `pieces`; shuffle rows and groups: the same for all blocks.  Pieces are whole units, so that a local row is in the
 * same piece however units are cut into chunks. */
static void chunks_of(const fsi_blockperm *B, const chunking *cut, int64_t h, int64_t j0, int64_t count, int64_t piece,
                      int64_t pieces, int64_t *first, int64_t *last)
{
    int64_t begin = 0, end = 0; /* local rows */
    if (B->shuffle == FSI_DEF_NONE) {
        const int64_t start = fsi_split_start(&B->in, h);
        begin = fsi_max(j0 - start, 0);
        end = fsi_min64(j0 + count - start, fsi_split_size(&B->in, h));
    } else if (count > 0) {
        const int64_t unit = B->shuffle == FSI_DEF_GROUPS ? FSI_GROUP_ROWS : 1;
        begin = j0 / unit / B->ways * unit_rows(B);
        end = ((j0 + count - 1) / unit / B->ways + 1) * unit_rows(B);
    }
    *first = *last = 0;
    if (begin >= end) return;
    const int64_t from = chunking_index(cut, begin), to = chunking_index(cut, end - 1) + 1;
    const int64_t unit = from / cut->in_unit, units = fsi_div_up(to, cut->in_unit) - unit;
    *first = fsi_max(from, (unit + units * piece / pieces) * cut->in_unit);
    *last = fsi_max(fsi_min64(to, (unit + units * (piece + 1) / pieces) * cut->in_unit), *first);
}

/* j[i]: the column of local row u0 + i of block h, -1 where there is none; round: room for count + 1. */
static void local_columns(const fsi_blockperm *B, int64_t h, int64_t u0, int64_t count, fsi_round *round, int64_t *j)
{
    if (B->shuffle == FSI_DEF_NONE) {
        const int64_t size = fsi_split_size(&B->in, h), start = fsi_split_start(&B->in, h);
        for (int64_t i = 0; i < count; i++) j[i] = u0 + i < size ? start + u0 + i : -1;
        return;
    }
    const int64_t each = unit_rows(B), q0 = u0 / each;
    fsi_bulk_rounds(B, q0, (u0 + count - 1) / each - q0 + 1, round);
    if (B->shuffle == FSI_DEF_ROWS) {
        for (int64_t i = 0; i < count; i++) j[i] = fsi_blockperm_assigned_from(B, h, q0 + i, round[i]);
    } else {
        const int64_t c = B->interleave;
        for (int64_t i = 0; i < count;) {
            const int64_t q = (u0 + i) / each, group = fsi_blockperm_assigned_from(B, h / c, q, round[q - q0]);
            const uint32_t word = fsi_blockperm_group_word(B, group);
            for (int64_t p = u0 + i - q * each; p < each && i < count; p++, i++)
                j[i] = group * FSI_GROUP_ROWS + fsi_blockperm_offset(B, (uint32_t)(h % c), (uint32_t)p, word);
        }
    }
    for (int64_t i = 0; i < count; i++) j[i] = j[i] < B->d ? j[i] : -1;
}

/* The columns, from j0 on, that local rows u0 ... u0 + count - 1 of all blocks are, shuffle rows or groups; returns how
 * many, past the end of S too. */
static int64_t step_columns(const fsi_blockperm *B, int64_t u0, int64_t count, int64_t *j0)
{
    const int64_t each = unit_rows(B), q0 = u0 / each, q1 = (u0 + count - 1) / each;
    const int64_t unit = B->shuffle == FSI_DEF_GROUPS ? FSI_GROUP_ROWS : 1;
    *j0 = q0 * B->ways * unit;
    return (q1 - q0 + 1) * B->ways * unit;
}
/* place[i], of those columns: h pitch + at[u - u0] for local row u of block h; -1 where u is outside. */
static void step_places(const fsi_blockperm *B, int64_t u0, int64_t count, int64_t pitch, const int32_t *at,
                        fsi_round *round, int32_t *place)
{
    const int64_t each = unit_rows(B), q0 = u0 / each, rounds = (u0 + count - 1) / each - q0 + 1, ways = B->ways;
    fsi_bulk_rounds(B, q0, rounds, round);
    if (B->shuffle == FSI_DEF_ROWS) {
        for (int64_t q = 0; q < rounds; q++)
            for (int64_t i = 0; i < ways; i++)
                place[q * ways + i] = (int32_t)(fsi_blockperm_assign(B, i, round[q]) * pitch) + at[q];
        return;
    }
    const int64_t c = B->interleave;
    for (int64_t unit = 0; unit < rounds * ways; unit++) {
        const int64_t q = q0 + unit / ways, H = fsi_blockperm_assign(B, unit % ways, round[q - q0]);
        const uint32_t word = fsi_blockperm_group_word(B, q * ways + unit % ways);
        for (int64_t o = 0; o < FSI_GROUP_ROWS; o++) {
            const int64_t u = q * each + o / c - u0, h = H * c + fsi_blockperm_class(B, (uint32_t)o, word);
            place[unit * FSI_GROUP_ROWS + o] = u < 0 || u >= count ? -1 : (int32_t)(h * pitch) + at[u];
        }
    }
}

/* A number for each of the windows that fsi_bulk_windows makes at a time. */
typedef uint32_t bulk_vector __attribute__((vector_size(4 * FSI_BULK), aligned(4), may_alias));

#define NO_ROW INT64_MIN

/* What is fetched into cache while something else is computed: `bytes` bytes from each of `segments` places on,
 * where[i] bytes from base, or, where being NULL, i pitch bytes.  Each call continues where the last one stopped,
 * `share` lines at a time. */
typedef struct ahead {
    const char *base;
    const int64_t *where;
    int64_t pitch, segments, bytes, share;
    int64_t segment;   /* the next one */
    uintptr_t at, end; /* of the present one */
} ahead;

enum { LINE = 64 };

/* After lines that were written as a whole, before another thread may read them. */
static void store_fence(void)
{
#if VARIANT_BYTES == 64
    _mm_sfence();
#endif
}

/* share: so that `calls` calls fetch all. */
static ahead ahead_of(const void *base, const int64_t *where, int64_t pitch, int64_t segments, int64_t bytes,
                      int64_t calls)
{
    const ahead a = {base, where, pitch, segments, bytes, 0, 0, 0, 0};
    ahead b = a;
    b.share = calls ? fsi_div_up(segments * (bytes / LINE + 1), calls) : 0;
    return b;
}
static inline void fetch(ahead *a)
{
    for (int64_t n = 0; n < a->share; n++, a->at += LINE) {
        while (a->at >= a->end) {
            if (a->segment >= a->segments) return;
            const int64_t start = a->where ? a->where[a->segment] : a->segment * a->pitch;
            a->segment++;
            if (start == NO_ROW) continue;
            a->at = (uintptr_t)a->base + (uintptr_t)start;
            a->end = a->at + (uintptr_t)a->bytes;
            a->at &= ~(uintptr_t)(LINE - 1);
        }
        __builtin_prefetch((const char *)a->at, 0, 2);
    }
}

/* The nonzeros of a chunk for an output block, grouped by output row: group i is row row[i] of the block, and its
 * `each` nonzeros entry[each i] ... are 2 (local row in the chunk) + (1 if minus).  Where a row has no nonzero in a
 * window, the entry is that of local row `none`, whose elements are zero. */
typedef struct chunk {
    int64_t groups;
    int each;
    uint32_t *row, *entry;
    uint32_t *first, *minus; /* what fsi_bulk_windows gives; of whole windows: */
    int64_t l, h;            /* under this permutation, 0: nothing yet, of this block */
    uint64_t begin;          /* from this window on, which FSI_BULK divides: chunks are parts or multiples of as many */
} chunk;

static int64_t chunk_rows(const fsi_blockperm *B, const chunking *cut)
{
    return cut->windows ? B->out.small + (B->out.larger > 0) : cut->rows * B->s;
}
/* Groups of chunk number i, about: blocks differ by a row. */
static int64_t chunk_groups(const fsi_blockperm *B, const chunking *cut, int64_t i)
{
    return cut->windows ? B->out.small : chunking_size(cut, i) * B->s;
}
static int64_t chunk_signs(const fsi_blockperm *B, const chunking *cut)
{
    return fsi_bulk_sign_words(fsi_min64(B->window, cut->rows) + 31);
}
static int64_t chunk_bytes(const fsi_blockperm *B, const chunking *cut)
{
    const int64_t rows = chunk_rows(B, cut), entries = cut->windows ? rows * cut->windows + FSI_BULK : rows;
    return fsi_round_up(4 * (rows + entries + FSI_BULK * B->s * (1 + chunk_signs(B, cut)) + FSI_BULK), 64);
}
static chunk chunk_at(void *memory, const fsi_blockperm *B, const chunking *cut)
{
    const int64_t rows = chunk_rows(B, cut);
    chunk c = {0, 0, memory, NULL, NULL, NULL, 0, 0, 0};
    c.entry = c.row + rows;
    c.first = c.entry + (cut->windows ? rows * cut->windows + FSI_BULK : rows);
    c.minus = c.first + FSI_BULK * B->s;
    return c;
}

/* Entries of stratum t for windows number i0 ... of the chunk, which are windows `at` ... of those in c->first and
 * c->minus: always FSI_BULK, because the compiler makes vectors of that.  What is written for windows past the chunk is
 * overwritten by the row that follows. */
static void chunk_stratum(chunk *c, const fsi_blockperm *B, const fsi_split *parts, int64_t t, int i0, int at,
                          uint32_t none)
{
    const uint32_t W = (uint32_t)B->window;
    const uint32_t start = (uint32_t)fsi_split_start(parts, t), size = (uint32_t)fsi_split_size(parts, t);
    const int64_t each = fsi_bulk_sign_words(B->window);
    const uint32_t *restrict first = c->first + t * FSI_BULK + at;
    const uint32_t *restrict minus = c->minus + t * each * FSI_BULK + at;
    for (uint32_t r = 0; r < size; r++) {
        uint32_t *restrict to = c->entry + (int64_t)(start + r) * c->each + i0;
        c->row[start + r] = start + r;
        if (each == 1)
            for (uint32_t i = 0; i < FSI_BULK; i++) {
                const uint32_t v = r >= first[i] ? r - first[i] : r - first[i] + size;
                const uint32_t entry = 2 * (((uint32_t)i0 + i) * W + v) + (minus[i] << (v & 31) >> 31);
                to[i] = v < W ? entry : 2 * none;
            }
        else
            for (uint32_t i = 0; i < FSI_BULK; i++) {
                const uint32_t v = r >= first[i] ? r - first[i] : r - first[i] + size;
                const uint32_t bits = minus[(v < W ? v >> 5 : 0) * FSI_BULK + i] << (v & 31);
                to[i] = v < W ? 2 * (((uint32_t)i0 + i) * W + v) + (bits >> 31) : 2 * none;
            }
    }
}

/* Fills *c for chunk number i of local rows of block h, under permutation l, in output block g. */
static void chunk_fill(chunk *c, const fsi_blockperm *B, const chunking *cut, int64_t i, int64_t l, int64_t h,
                       int64_t g)
{
    const int64_t u0 = chunking_start(cut, i), rows = fsi_split_size(&B->out, g);
    const fsi_split *parts = &B->strata[rows - B->out.small];
    const uint64_t w0 = (uint64_t)(u0 / B->window);
    if (cut->windows) {
        c->groups = rows;
        c->each = cut->windows;
        for (int i0 = 0; i0 < cut->windows; i0 += FSI_BULK) {
            const uint64_t w = w0 + (uint64_t)i0, begin = w - w % FSI_BULK;
            if (c->l != l || c->h != h || c->begin != begin)
                fsi_bulk_windows(B, h, begin, FSI_BULK, l, rows, 0, B->window, c->first, c->minus);
            c->l = l, c->h = h, c->begin = begin;
            for (int64_t t = 0; t < B->s; t++) chunk_stratum(c, B, parts, t, i0, (int)(w - begin), (uint32_t)cut->rows);
        }
        return;
    }
    const int64_t v0 = u0 - (int64_t)w0 * B->window, count = chunking_size(cut, i), each = fsi_bulk_sign_words(count);
    fsi_bulk_windows(B, h, w0, 1, l, rows, v0, count, c->first, c->minus);
    c->groups = count * B->s;
    c->each = 1;
    for (int64_t t = 0; t < B->s; t++) {
        const uint32_t start = (uint32_t)fsi_split_start(parts, t), size = (uint32_t)fsi_split_size(parts, t);
        const uint32_t x = c->first[t * FSI_BULK] + (uint32_t)v0, *minus = c->minus + t * each * FSI_BULK;
        for (uint32_t n = 0; n < (uint32_t)count; n++) {
            const uint32_t r = x + n < size ? x + n : x + n - size;
            c->row[t * count + n] = start + (r < size ? r : r - size);
            c->entry[t * count + n] = 2 * n + (minus[(n >> 5) * FSI_BULK] << (n & 31) >> 31);
        }
    }
}

/* The rows of a panel, by input block: rows[start[h]] ... rows[start[h + 1] - 1], counted from the panel's start. */
typedef struct buckets {
    int32_t *rows;
    int32_t *start;  /* M + 1 */
    uint32_t *block; /* scratch: the block of each row */
} buckets;

static int64_t buckets_bytes(const fsi_blockperm *B, int64_t rows) { return 4 * (2 * rows + B->M + 1); }
static buckets buckets_at(void *memory, int64_t rows)
{
    buckets b;
    b.rows = memory;
    b.block = (uint32_t *)b.rows + rows;
    b.start = (int32_t *)b.block + rows;
    return b;
}

/* The input blocks of columns j0 ... j0 + count - 1, with one look per round and per row group. */
static void input_blocks(const fsi_blockperm *B, int64_t j0, int64_t count, uint32_t *block)
{
    if (B->shuffle == FSI_DEF_NONE) {
        for (int64_t i = 0; i < count; i++) block[i] = (uint32_t)fsi_split_index(&B->in, j0 + i);
        return;
    }
    const int64_t unit_size = B->shuffle == FSI_DEF_GROUPS ? FSI_GROUP_ROWS : 1;
    int64_t j = j0, unit = j0 / unit_size, q = unit / B->ways, place = unit % B->ways;
    for (fsi_round round = fsi_blockperm_round(B, q); j < j0 + count; unit++, place++) {
        if (place == B->ways) {
            place = 0;
            round = fsi_blockperm_round(B, ++q);
        }
        const int64_t h = fsi_blockperm_assign(B, place, round), end = fsi_min64((unit + 1) * unit_size, j0 + count);
        const uint32_t word = unit_size > 1 ? fsi_blockperm_group_word(B, unit) : 0;
        for (; j < end; j++)
            block[j - j0] = (uint32_t)(h * B->interleave) +
                            (unit_size > 1 ? fsi_blockperm_class(B, (uint32_t)(j % FSI_GROUP_ROWS), word) : 0);
    }
}

static void buckets_fill(const buckets *b, const fsi_blockperm *B, int64_t j0, int64_t count, int threads)
{
    enum { PIECE = 4096 };
    const int64_t pieces = (count + PIECE - 1) / PIECE;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t p = 0; p < pieces; p++)
        input_blocks(B, j0 + p * PIECE, fsi_min64(PIECE, count - p * PIECE), b->block + p * PIECE);
    for (int64_t h = 0; h <= B->M; h++) b->start[h] = 0;
    for (int64_t i = 0; i < count; i++) b->start[b->block[i]]++;
    int32_t end = 0;
    for (int64_t h = 0; h <= B->M; h++) b->start[h] = end += b->start[h];
    for (int64_t i = count - 1; i >= 0; i--) b->rows[--b->start[b->block[i]]] = (int32_t)i;
}

/* table[i kappa s + ...]: the kappa s nonzeros of column j0 + i, as 2 (row of S) + (1 if minus). */
static void table_fill(const fsi_blockperm *B, int64_t j0, int64_t count, uint32_t *table, int threads)
{
    enum { RUN = 64 };
    const int64_t nonzeros = B->kappa * B->s, pieces = (count + RUN - 1) / RUN;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t p = 0; p < pieces; p++) {
        uint32_t g[RUN], code[FSI_MAX_PER_BAND];
        const int64_t first = j0 + p * RUN;
        const int columns = (int)fsi_min64(RUN, count - p * RUN);
        input_blocks(B, first, columns, g);
        for (int i = 0; i < columns; i++) {
            uint32_t *to = table + (p * RUN + i) * nonzeros;
            const int64_t h = g[i], u = fsi_blockperm_local_row(B, h, first + i);
            for (int64_t l = 1; l <= B->kappa; l++) {
                g[i] = fsi_wiring_back(&B->wiring, g[i]);
                const int64_t rows = fsi_split_size(&B->out, g[i]), start = fsi_split_start(&B->out, g[i]);
                for (int64_t q = 0; q < B->bands; q++) {
                    const int held = fsi_blockperm_nonzeros(B, h, u, l, q, rows, code, 1);
                    for (int c = 0; c < held; c++) *to++ = code[c] + 2 * (uint32_t)start;
                }
            }
        }
    }
}
