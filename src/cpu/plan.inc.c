/* plan.inc.c - S prepared for a kernel: rows of A sorted by input block, and the nonzeros of a chunk of columns.
 *
 * A panel of at most PANEL_ROWS rows of A is sorted by input block once (a counting sort, rows stay ascending within
 * a block), so that a row slice costs what its own rows cost, whatever the shuffle.  The nonzeros of a chunk of columns
 * are then sorted by output row: a kernel adds all rows of A that go to one row of Y while it holds
 * that row in registers. */

enum {
    PANEL_ROWS = 1 << 20,
    CHUNK_LEAST = 128,       /* rows of A that the gather kernel takes at a time, at least */
    CHUNK_MOST = 512,        /* and at most; longer chunks are slower */
    TABLE_ENTRIES = 1 << 20, /* nonzeros of a table of columns of S, 4 bytes each */
    FEW_TASKS = 8            /* with fewer tasks than this the work is cut further */
};

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

/* The input blocks of columns j0 ... j0 + count - 1; rounds and row groups are computed once each. */
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

/* code[t stride + i]: nonzero t of column j[i] of input block h under permutation l, in output blocks of `rows` rows.
 * Neighbours in j are mostly of one window, whose digits are drawn once. */
static void column_codes(const fsi_blockperm *B, int64_t l, int64_t h, int64_t rows, const int64_t *j, int count,
                         uint32_t *code, int64_t stride)
{
    enum { RUN = 128 };
    uint32_t digits[RUN], signs[RUN], turn[RUN];
    for (int64_t q = 0; q < B->bands; q++)
        for (int i0 = 0; i0 < count; i0 += RUN) {
            const int run = count - i0 < RUN ? count - i0 : RUN;
            fsi_draw draw = {0, 0, 0};
            int64_t first = -1, signed_by = -1; /* the window's first local row; the sign word at hand */
            uint32_t word = 0;
            for (int i = 0; i < run; i++) {
                const int64_t u = fsi_blockperm_local_row(B, h, j[i0 + i]);
                if (first < 0 || u - first >= B->window || u < first) {
                    draw = fsi_blockperm_draw(B, h, u, l, q, rows);
                    first = u - draw.turn;
                    signed_by = -1;
                }
                digits[i] = draw.digits;
                turn[i] = (uint32_t)(u - first);
                const int64_t n = fsi_blockperm_sign_word(B, turn[i]);
                if (n != signed_by) {
                    word = fsi_blockperm_window_word(B, h, (uint64_t)(first / B->window), fsi_blockperm_band(B, l, q),
                                                     n, 0);
                    signed_by = n;
                }
                signs[i] = word << turn[i] % (uint32_t)B->lanes;
            }
            fsi_blockperm_decode(B, digits, signs, turn, run, q, rows, code + q * B->per_band * stride + i0, stride);
        }
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

/* The nonzeros of a chunk of columns, grouped by output row: group c is row row[c] of the block, and its entries
 * entry[start[c]] ... entry[start[c + 1] - 1] are 2 (where the column's row of A is) + (1 if minus), columns ascending
 * (the nonzeros of a row of S all belong to one stratum t). */
typedef struct chunk {
    int groups;
    int64_t *entry;
    uint32_t *code, *row, *start, *count;
} chunk;

static int64_t chunk_bytes(int64_t columns, int64_t s, int64_t rows) { return 4 * (columns * s * 5 + 1 + rows); }
static chunk chunk_at(void *memory, int64_t columns, int64_t s)
{
    chunk c;
    c.groups = 0;
    c.entry = memory;
    c.code = (uint32_t *)(c.entry + columns * s);
    c.row = c.code + columns * s;
    c.start = c.row + columns * s;
    c.count = c.start + columns * s + 1;
    return c;
}

/* The rows of a block in the order of how many nonzeros they have, empty ones left out; count[r] becomes where the
 * entries of row r begin.  Equal lengths side by side make the kernel's inner loop predictable. */
static void chunk_order(chunk *c, int64_t rows)
{
    enum { LENGTHS = 64 };
    uint32_t place[LENGTHS + 1] = {0}, at = 0;
    for (int64_t r = 0; r < rows; r++) place[c->count[r] < LENGTHS ? c->count[r] : LENGTHS]++;
    place[0] = 0;
    for (int n = 0; n <= LENGTHS; n++) {
        const uint32_t here = place[n];
        place[n] = at;
        at += here;
    }
    for (int64_t r = 0; r < rows; r++)
        if (c->count[r]) c->row[place[c->count[r] < LENGTHS ? c->count[r] : LENGTHS]++] = (uint32_t)r;
    c->groups = (int)at;
    at = 0;
    for (int i = 0; i < c->groups; i++) {
        const uint32_t here = c->count[c->row[i]];
        c->count[c->row[i]] = c->start[i] = at;
        at += here;
    }
    c->start[c->groups] = at;
}

/* Fills *c for columns j[0 .. columns) of input block h, whose rows of A are at where[], and output block g.  When the block has far more
 * rows than the chunk has nonzeros, sorting would mostly visit empty rows: then every nonzero is a group of its own. */
static void chunk_fill(chunk *c, const fsi_blockperm *B, int64_t l, int64_t h, int64_t g, const int64_t *j,
                       const int64_t *where, int columns)
{
    const int s = (int)B->s, nonzeros = columns * s;
    const int64_t rows = fsi_split_size(&B->out, g);
    column_codes(B, l, h, rows, j, columns, c->code, columns);
    if (rows > 4 * (int64_t)nonzeros) {
        for (int e = 0; e < nonzeros; e++) {
            c->row[e] = c->code[e] >> 1;
            c->start[e] = (uint32_t)e;
            c->entry[e] = 2 * where[e % columns] + (c->code[e] & 1);
        }
        c->groups = nonzeros;
        c->start[nonzeros] = (uint32_t)nonzeros;
        return;
    }
    for (int64_t r = 0; r < rows; r++) c->count[r] = 0;
    for (int e = 0; e < nonzeros; e++) c->count[c->code[e] >> 1]++;
    chunk_order(c, rows);
    for (int t = 0, e = 0; t < s; t++)
        for (int i = 0; i < columns; i++, e++) c->entry[c->count[c->code[e] >> 1]++] = 2 * where[i] + (c->code[e] & 1);
}
