/* multiply.inc.c - a chunk of a block of S times a tile: rows of A, as sums, side by side in cache.
 *
 * A tile is `vectors` vectors wide; row i of it is local row i of the chunk, and a row of zeros follows.  An output row
 * is loaded into registers, all rows of the tile that its nonzeros name are added or subtracted, and it is stored. */

/* +-1, the sign of an entry. */
static inline SUM NAME(unit)(uint32_t entry)
{
#if SUM_BYTES == 4
    return fsi_float_of_bits(0x3F800000u | entry << 31);
#else
    const uint64_t bits = 0x3FF0000000000000u | (uint64_t)entry << 63;
    double unit;
    memcpy(&unit, &bits, sizeof unit);
    return unit;
#endif
}

/* sums += (chunk of S) tile; fetches its share of `next` for each output row. */
static inline __attribute__((always_inline)) void NAME(multiply_by)(const chunk *c, const SUM *tile, SUM *sums,
                                                                    ahead *next, const int vectors)
{
    const int each = c->each;
    const uint32_t *entry = c->entry;
    for (int64_t i = 0; i < c->groups; i++, entry += each) {
        fetch(next);
        VEC *at = (VEC *)(sums + (int64_t)c->row[i] * vectors * LANES), sum[MOST_VECTORS];
        for (int v = 0; v < vectors; v++) sum[v] = at[v];
        for (int e = 0; e < each; e++) {
            const VEC *x = (const VEC *)(tile + (int64_t)(entry[e] >> 1) * vectors * LANES);
            const SUM pm = NAME(unit)(entry[e]);
            for (int v = 0; v < vectors; v++) sum[v] = NAME(add_signed)(sum[v], x[v], pm);
        }
        for (int v = 0; v < vectors; v++) at[v] = sum[v];
    }
}
#define MULTIPLY(vectors) \
    case vectors: NAME(multiply_by)(c, tile, sums, next, vectors); break;
static void NAME(multiply)(const chunk *c, const SUM *tile, SUM *sums, ahead *next, int vectors)
{
    switch (vectors) {
        MULTIPLY(1)
        MULTIPLY(2)
        MULTIPLY(3)
        MULTIPLY(4)
        MULTIPLY(5)
        MULTIPLY(6)
        MULTIPLY(7)
        MULTIPLY(8)
    }
}
#undef MULTIPLY

/* One product, for all its tasks.  Its columns are cut into panels, these into tiles of equal width; its local rows
 * into pieces, in the same places for any number of columns and threads.
 *
 * An element of Y is the sum over permutations, in order, of the sum over pieces, in order, of the sum of the piece's
 * nonzeros under the permutation, in the order of local rows.  Every kernel adds in this order, so bits depend on S,
 * row0 and the number of rows of A alone: not on the other columns, on strides or on threads.  Pieces are tasks of
 * their own only where there are few other tasks. */
typedef struct NAME(product) {
    const fsi_blockperm *B;
    const fs_matrix *A, *Y;
    const fs_rows *list; /* rows of A; NULL: all */
    int64_t row0;
    SUM scale, beta;
    chunking cut;
    int64_t panel_cols, panels;
    int64_t pieces;     /* of the local rows */
    int apart;          /* whether pieces are tasks of their own */
    int64_t width;      /* of a tile, in columns */
    int once;           /* whether rows of A are multiplied where they are (gather.inc.c) */
    int vectors, tiles; /* of a tile, 0: less than one (flat.inc.c); of a panel, at most */
    SUM *sums;          /* of pieces apart: [permutation][piece][panel][tile][row of Y] */
    int64_t panel_sums; /* of a permutation, a piece and a panel */
} NAME(product);

static inline int64_t NAME(product_cols)(const NAME(product) * P, int64_t panel)
{
    return fsi_min64(P->panel_cols, P->A->cols - panel * P->panel_cols);
}
static int NAME(product_tiles)(const NAME(product) * P, int64_t panel)
{
    return (int)fsi_div_up(NAME(product_cols)(P, panel), P->width);
}
static SUM *NAME(product_sums)(const NAME(product) * P, int64_t l, int64_t piece, int64_t panel)
{
    return P->sums + (((l - 1) * P->pieces + piece) * P->panels + panel) * P->panel_sums;
}

static void NAME(add_sums)(SUM *restrict to, const SUM *restrict from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

/* Rows row ... row + rows - 1 of a panel to Y; `pitch` sums from tile to tile. */
static void NAME(product_store)(const NAME(product) * P, int64_t panel, int64_t row, int64_t rows, const SUM *sums,
                                int64_t pitch)
{
    const int64_t width = P->width, cols = NAME(product_cols)(P, panel);
    for (int64_t t = 0; t * width < cols; t++) {
        const int64_t col = panel * P->panel_cols + t * width, count = fsi_min64(width, cols - t * width);
        NAME(store_tile)(P->Y, row, rows, col, count, width, sums + t * pitch, P->scale, P->beta);
    }
}

/* Adds the sums of pieces apart, in order, and stores them. */
static void NAME(product_finish)(const NAME(product) * P, int threads)
{
    enum { ROWS = 64 };
    const int64_t width = P->width, k = P->B->k, parts = fsi_div_up(k, ROWS);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t task = 0; task < P->panels * parts; task++) {
        const int64_t panel = task / parts, row = task % parts * ROWS, rows = fsi_min64(ROWS, k - row);
        for (int t = 0; t < NAME(product_tiles)(P, panel); t++) {
            const int64_t at = (t * k + row) * width;
            for (int64_t l = 1; l <= P->B->kappa; l++) {
                SUM *to = NAME(product_sums)(P, l, 0, panel) + at;
                for (int64_t p = 1; p < P->pieces; p++)
                    NAME(add_sums)(to, NAME(product_sums)(P, l, p, panel) + at, rows * width);
                if (l > 1) NAME(add_sums)(NAME(product_sums)(P, 1, 0, panel) + at, to, rows * width);
            }
        }
        NAME(product_store)(P, panel, row, rows, NAME(product_sums)(P, 1, 0, panel) + row * width, k * width);
    }
}

/* Into how many pieces local rows are cut: enough for many threads, but with sums that are few beside A, and a few
 * units each. */
static int64_t NAME(product_pieces)(const NAME(product) * P)
{
    enum { MOST = 32, SHARE = 8, UNITS = 2 };
    const fsi_blockperm *B = P->B;
    const int64_t units = P->A->rows / (B->M * B->window * unit_windows(B));
    return fsi_max(fsi_min64(fsi_min64(P->A->rows / (SHARE * B->k), units / UNITS), MOST), 1);
}
/* Bytes of the sums of pieces apart; 0, and pieces are not apart, where `tasks` are enough or sums take too much. */
static int64_t NAME(product_bytes)(NAME(product) * P, int64_t tasks, int threads)
{
    enum { EACH = 4 };
    const int64_t parts = P->B->kappa * P->pieces * P->panels, most = ((int64_t)1 << 28) / (int64_t)sizeof(SUM);
    P->apart = P->pieces > 1 && threads > 1 && tasks < EACH * threads && P->panel_sums <= most / parts;
    return P->apart ? (parts * P->panel_sums + LANES) * (int64_t)sizeof(SUM) : 0;
}
