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
 * into pieces, always in the same places, whose sums are added in order. */
typedef struct NAME(product) {
    const fsi_blockperm *B;
    const fs_matrix *A, *Y;
    const fs_rows *list; /* rows of A; NULL: all */
    int64_t row0;
    SUM scale, beta;
    chunking cut;
    int64_t panel_cols, panels, pieces;
    int64_t width;      /* of a tile, in columns */
    int vectors, tiles; /* of a tile, 0: less than one (flat.inc.c); of a panel, at most */
    SUM *sums;          /* of several pieces: [piece][panel][tile][row of Y] */
    int64_t panel_sums; /* of a piece and a panel */
} NAME(product);

static inline int64_t NAME(product_cols)(const NAME(product) * P, int64_t panel)
{
    return fsi_min64(P->panel_cols, P->A->cols - panel * P->panel_cols);
}
static int NAME(product_tiles)(const NAME(product) * P, int64_t panel)
{
    return (int)fsi_div_up(NAME(product_cols)(P, panel), P->width);
}
static SUM *NAME(product_sums)(const NAME(product) * P, int64_t piece, int64_t panel)
{
    return P->sums + (piece * P->panels + panel) * P->panel_sums;
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

/* Adds the sums of all pieces, in order, and stores them. */
static void NAME(product_finish)(const NAME(product) * P, int threads)
{
    enum { ROWS = 64 };
    const int64_t width = P->width, k = P->B->k, parts = fsi_div_up(k, ROWS);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t task = 0; task < P->panels * parts; task++) {
        const int64_t panel = task / parts, row = task % parts * ROWS, rows = fsi_min64(ROWS, k - row);
        SUM *sums = NAME(product_sums)(P, 0, panel) + row * width;
        for (int t = 0; t < NAME(product_tiles)(P, panel); t++)
            for (int64_t p = 1; p < P->pieces; p++) {
                SUM *to = sums + t * k * width;
                const SUM *from = to + p * P->panels * P->panel_sums;
                for (int64_t i = 0; i < rows * width; i++) to[i] += from[i];
            }
        NAME(product_store)(P, panel, row, rows, sums, k * width);
    }
}

/* Into how many pieces a product is cut that has so many tasks otherwise: enough for many threads, but with sums that
 * are few beside A, and of 64 MiB at most. */
static int64_t NAME(product_pieces)(const NAME(product) * P, int64_t tasks)
{
    enum { TASKS = 32, SHARE = 8 };
    const int64_t by_sums = P->A->rows / (SHARE * P->B->k);
    const int64_t by_memory = ((int64_t)1 << 26) / (int64_t)sizeof(SUM) / (P->panels * P->panel_sums + 1);
    return fsi_max(fsi_min64(fsi_div_up(TASKS, fsi_max(tasks, 1)), fsi_min64(by_sums, by_memory)), 1);
}
