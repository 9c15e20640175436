/* flat.inc.c - a chunk of a block of S times rows of A that are no longer than a vector.
 *
 * A row is `width` sums, a power of two, and the rows of a window lie side by side in memory, several to a vector.  The
 * columns of a window use the rows of a stratum in turn: what a window adds to a stratum is its rows, rotated by the
 * row x of its column 0 and with their signs.  So a window is stored twice, one copy behind the other, and read from
 * row size - x on; no nonzero is listed.  Where a stratum has W + 1 rows, one that no column uses, a row of zeros and a
 * third copy follow.  Long windows are stored once and added in two parts, up to the end of the stratum and from its
 * beginning. */

#if SUM_BYTES == 4
typedef uint32_t NAME(bits);
#else
typedef uint64_t NAME(bits);
#endif
typedef NAME(bits) NAME(bit_vector) __attribute__((vector_size(VARIANT_BYTES)));

/* Whether a window is long: its signs, and a bit more, are not in one word. */
static int NAME(flat_is_long)(const fsi_blockperm *B) { return B->window > 30; }

/* Rows in the copies of a window; sums of a block, whose strata begin at vectors. */
static int64_t NAME(flat_window)(const fsi_blockperm *B)
{
    if (NAME(flat_is_long)(B)) return B->window;
    return B->out.larger || B->strata[0].larger ? 3 * B->window + 1 : 2 * B->window;
}
static int64_t NAME(flat_stratum)(const fsi_blockperm *B, int64_t width)
{
    return fsi_round_up((B->window + 1) * width, LANES) + (NAME(flat_is_long)(B) ? LANES : 0); /* vectors at any row */
}

/* A row at its places among the copies of its window, of which row `place` of the tile, if not negative, is the first;
 * second, third: how far the other copies are from it. */
static inline __attribute__((always_inline)) void NAME(flat_put)(SUM *tile, int32_t place, int64_t second,
                                                                 int64_t third, const SUM *row, const int64_t width)
{
    SUM *to = tile + place * width;
    if (place < 0) return;
    memcpy(to, row, (size_t)width * sizeof *row);
    if (second) memcpy(to + second, row, (size_t)width * sizeof *row);
    if (third != second) memcpy(to + third, row, (size_t)width * sizeof *row);
}

/* Rows row ... row + count - 1 of A, or of its gathered rows, to their places in the tile.  Rows without gaps are
 * loaded as whole vectors where these end inside of A: what is in columns past the matrix does not matter. */
static inline __attribute__((always_inline)) void NAME(flat_load_by)(const fsi_blockperm *B, const fs_matrix *A,
                                                                     const fs_rows *list, int64_t row, int64_t count,
                                                                     const int32_t *place, SUM *tile,
                                                                     const int64_t width)
{
    const int64_t cols = A->cols, step = cols == 1 ? 1 : A->col_stride;
    const int64_t second = NAME(flat_is_long)(B) ? 0 : B->window * width;
    const int64_t third = NAME(flat_window)(B) > 2 * B->window ? 2 * second + width : second;
    const ELEM *x = A->data;
    int64_t i = 0;
    if (A->row_stride == 1 && !list)
        for (; i + LANES <= count; i += LANES) {
            VEC v[LANES];
            for (int64_t n = 0; n < (width == 1 ? 1 : LANES); n++)
                v[n] = n < cols ? NAME(vector)(x + n * step + row + i) : (VEC){0};
            if (width > 1) NAME(transpose)(v);
            for (int n = 0; n < LANES; n++)
                NAME(flat_put)(tile, place[i + n], second, third, (const SUM *)v + n * (width == 1 ? 1 : LANES), width);
        }
    const int64_t inside = step == 1 && !list && A->row_stride == cols ? A->rows - row - fsi_div_up(LANES - cols, cols)
                                                                       : 0;
    for (; i < fsi_min64(count, inside); i++) {
        const VEC v = NAME(vector)(x + (row + i) * cols);
        NAME(flat_put)(tile, place[i], second, third, (const SUM *)&v, width);
    }
    for (; i < count; i++) {
        const ELEM *at = x + fsi_row_at(list, row + i) * A->row_stride;
        const VEC v = step == 1 && cols < LANES ? NAME(vector_first)(at, cols) : NAME(vector_some)(at, step, cols);
        NAME(flat_put)(tile, place[i], second, third, (const SUM *)&v, width);
    }
}
static void NAME(flat_load)(const fsi_blockperm *B, const fs_matrix *A, const fs_rows *list, int64_t row, int64_t count,
                            const int32_t *place, SUM *tile, int64_t width)
{
    if (width == 1) NAME(flat_load_by)(B, A, list, row, count, place, tile, 1);
    else if (width == 2) NAME(flat_load_by)(B, A, list, row, count, place, tile, 2);
    else if (width == 4 && LANES > 4) NAME(flat_load_by)(B, A, list, row, count, place, tile, LANES > 4 ? 4 : 1);
    else if (width == 8 && LANES > 8) NAME(flat_load_by)(B, A, list, row, count, place, tile, LANES > 8 ? 8 : 1);
    else NAME(flat_load_by)(B, A, list, row, count, place, tile, LANES);
}

/* sums += (rotated windows), n of them, `window` sums apart: from[w] is where the first row of the stratum is, minus[w]
 * has the signs of its rows from the highest bit on.  row: that of each lane of the first vector; step: rows in a
 * vector. */
static inline __attribute__((always_inline)) void NAME(flat_stratum_add)(const SUM *tile, int64_t window, int n,
                                                                         const uint32_t *from, const uint32_t *minus,
                                                                         int64_t vectors, NAME(bit_vector) row,
                                                                         NAME(bits) step, SUM *sums)
{
    const NAME(bits) top = (NAME(bits))1 << (8 * SUM_BYTES - 1);
    for (int64_t b = 0; b < vectors; b++, tile += LANES, sums += LANES, row += step) {
        VEC sum = *(const VEC *)sums;
        for (int w = 0; w < n; w++) {
            const NAME(bits) signs = (NAME(bits))minus[w] << (8 * SUM_BYTES - 32);
            const NAME(bit_vector) x = (NAME(bit_vector)) * (const NAME(loose) *)(tile + w * window + from[w]);
            sum += (VEC)(x ^ ((((NAME(bit_vector)){0} + signs) << row) & top));
        }
        *(VEC *)sums = sum;
    }
}

/* sums += (chunk number i of block h under permutation l, output block g) tile. */
static void NAME(flat_multiply_short)(const fsi_blockperm *B, const chunking *cut, int64_t i, int64_t l, int64_t h,
                                      int64_t g, int64_t width, chunk *c, const SUM *tile, SUM *sums, ahead *next)
{
    const int64_t rows = fsi_split_size(&B->out, g), window = NAME(flat_window)(B) * width, W = B->window;
    const fsi_split *parts = &B->strata[rows - B->out.small];
    const uint64_t w0 = (uint64_t)(chunking_start(cut, i) / W);
    const uint32_t columns = 0xFFFFFFFFu << (32 - W);
    NAME(bit_vector) row;
    for (int lane = 0; lane < LANES; lane++) row[lane] = (NAME(bits))lane / (NAME(bits))width;
    for (int i0 = 0; i0 < cut->windows; i0 += FSI_BULK) {
        const int n = cut->windows - i0 < FSI_BULK ? cut->windows - i0 : FSI_BULK;
        fsi_bulk_windows(B, h, w0 + (uint64_t)i0, n, l, rows, 0, W, c->first, c->minus);
        for (int64_t t = 0; t < B->s; t++) {
            fetch(next);
            const uint32_t size = (uint32_t)fsi_split_size(parts, t), begin = size == W ? 0 : (uint32_t)W;
            const bulk_vector x = *(const bulk_vector *)(c->first + t * FSI_BULK);
            const bulk_vector of = *(const bulk_vector *)(c->minus + t * FSI_BULK) & columns;
            const bulk_vector minus = of >> x | of << (size - x),
                              from = (begin + ((size - x) & (bulk_vector)(x != 0))) * (uint32_t)width;
            const uint32_t *f = (const uint32_t *)&from, *m = (const uint32_t *)&minus;
            const int64_t vectors = fsi_div_up(size * width, LANES), step = LANES / width;
            SUM *to = sums + t * NAME(flat_stratum)(B, width);
            if (n == FSI_BULK)
                NAME(flat_stratum_add)(tile + i0 * window, window, FSI_BULK, f, m, vectors, row, (NAME(bits))step, to);
            else NAME(flat_stratum_add)(tile + i0 * window, window, n, f, m, vectors, row, (NAME(bits))step, to);
        }
    }
}

/* to[i] += +-from[i] for `rows` rows; minus: the signs of the columns of a window, from->row number v on. */
static inline void NAME(flat_add_signed)(const SUM *from, int64_t v, int64_t rows, const uint32_t *minus, int64_t words,
                                         NAME(bit_vector) row, int64_t width, SUM *to)
{
    const NAME(bits) top = (NAME(bits))1 << (8 * SUM_BYTES - 1);
    const int64_t step = LANES / width;
    for (int64_t r = 0; r < rows; r += step) {
        const int64_t w = (v + r) >> 5;
        const uint64_t high = minus[w * FSI_BULK], low = w + 1 < words ? minus[(w + 1) * FSI_BULK] : 0;
        const NAME(bits) signs = (NAME(bits))((high << 32 | low) << ((v + r) & 31) >> (64 - 8 * SUM_BYTES));
        NAME(bit_vector) x = (NAME(bit_vector)) * (const NAME(loose) *)(from + r * width);
        x ^= (((NAME(bit_vector)){0} + signs) << row) & top;
        if (rows - r < step) x &= (NAME(bit_vector))(row < (NAME(bits))(rows - r));
        *(NAME(loose) *)(to + r * width) += (NAME(loose))(VEC)x;
    }
}

static void NAME(flat_multiply_long)(const fsi_blockperm *B, const chunking *cut, int64_t i, int64_t l, int64_t h,
                                     int64_t g, int64_t width, chunk *c, const SUM *tile, SUM *sums, ahead *next)
{
    const int64_t rows = fsi_split_size(&B->out, g), u0 = chunking_start(cut, i), W = B->window;
    const fsi_split *parts = &B->strata[rows - B->out.small];
    const int64_t v0 = cut->windows ? 0 : u0 % W, columns = cut->windows ? W : chunking_size(cut, i);
    const int64_t words = fsi_bulk_sign_words(columns);
    const int windows = cut->windows ? cut->windows : 1;
    NAME(bit_vector) row;
    for (int lane = 0; lane < LANES; lane++) row[lane] = (NAME(bits))lane / (NAME(bits))width;
    for (int i0 = 0; i0 < windows; i0 += FSI_BULK) {
        const int n = windows - i0 < FSI_BULK ? windows - i0 : FSI_BULK;
        fsi_bulk_windows(B, h, (uint64_t)(u0 / W + i0), n, l, rows, v0, columns, c->first, c->minus);
        for (int64_t t = 0; t < B->s; t++) {
            SUM *to = sums + t * NAME(flat_stratum)(B, width);
            const int64_t size = fsi_split_size(parts, t);
            fetch(next);
            for (int w = 0; w < n; w++) {
                const int64_t x = (c->first[t * FSI_BULK + w] + v0) % size, before = fsi_min64(size - x, columns);
                const uint32_t *minus = c->minus + t * words * FSI_BULK + w;
                const SUM *from = tile + (i0 + w) * W * width;
                NAME(flat_add_signed)(from, 0, before, minus, words, row, width, to + x * width);
                NAME(flat_add_signed)(from + before * width, before, columns - before, minus, words, row, width, to);
            }
        }
    }
}

static void NAME(flat_multiply)(const fsi_blockperm *B, const chunking *cut, int64_t i, int64_t l, int64_t h, int64_t g,
                                int64_t width, chunk *c, const SUM *tile, SUM *sums, ahead *next)
{
    (NAME(flat_is_long)(B) ? NAME(flat_multiply_long) : NAME(flat_multiply_short))(B, cut, i, l, h, g, width, c, tile,
                                                                                   sums, next);
}

/* The sums of a block as rows of `width`. */
static void NAME(flat_rows)(const fsi_blockperm *B, int64_t g, int64_t width, const SUM *sums, SUM *to)
{
    const fsi_split *parts = &B->strata[fsi_split_size(&B->out, g) - B->out.small];
    for (int64_t t = 0; t < B->s; t++)
        memcpy(to + fsi_split_start(parts, t) * width, sums + t * NAME(flat_stratum)(B, width),
               (size_t)(fsi_split_size(parts, t) * width) * sizeof(SUM));
}
