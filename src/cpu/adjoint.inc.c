/* adjoint.inc.c - X = S' Y for BlockPerm-SJLT: every row of X is a signed sum of kappa s rows of Y.
 *
 * Y is copied to tiles of sums, for all tasks.  The local rows of an input block need the rows of kappa output blocks
 * only, which the first-level cache holds: a chunk of them at a time is a product of tiles as in multiply.inc.c, its
 * lists being columns of S instead of rows.  Long rows of X are made block by block; short ones, and columns, in the
 * order of memory, a step at a time, as stream.inc.c reads A. */

/* Fills *c for chunk number i of block h: entry[each r + ...] are 2 (row of S) + (1 if minus) of local row r. */
static void NAME(adjoint_fill)(chunk *c, const fsi_blockperm *B, const chunking *cut, int64_t i, int64_t h)
{
    const int64_t u0 = chunking_start(cut, i), W = B->window, s = B->s, each = B->kappa * s;
    const uint64_t w0 = (uint64_t)(u0 / W);
    const int64_t v0 = cut->windows ? 0 : u0 % W, columns = cut->windows ? W : chunking_size(cut, i);
    const int windows = cut->windows ? cut->windows : 1;
    const int64_t words = fsi_bulk_sign_words(columns);
    uint32_t g = (uint32_t)h;
    c->groups = windows * columns;
    c->each = (int)each;
    for (int64_t l = 1; l <= B->kappa; l++) {
        g = fsi_wiring_back(&B->wiring, g);
        const int64_t rows = fsi_split_size(&B->out, g), start = fsi_split_start(&B->out, g);
        const fsi_split *parts = &B->strata[rows - B->out.small];
        for (int i0 = 0; i0 < windows; i0 += FSI_BULK) {
            const int n = windows - i0 < FSI_BULK ? windows - i0 : FSI_BULK;
            fsi_bulk_windows(B, h, w0 + (uint64_t)i0, n, l, rows, v0, columns, c->first, c->minus);
            for (int64_t t = 0; t < s; t++)
                for (int w = 0; w < n; w++) {
                    const uint32_t size = (uint32_t)fsi_split_size(parts, t),
                                   at = (uint32_t)(start + fsi_split_start(parts, t));
                    const uint32_t *minus = c->minus + t * words * FSI_BULK + w;
                    uint32_t r = (c->first[t * FSI_BULK + w] + (uint32_t)v0) % size;
                    uint32_t *to = c->entry + (i0 + w) * columns * each + (l - 1) * s + t;
                    for (uint32_t v = 0; v < (uint32_t)columns; v++, to += each) {
                        *to = 2 * (at + r) + (minus[(v >> 5) * FSI_BULK] << (v & 31) >> 31);
                        r = r + 1 < size ? r + 1 : 0;
                    }
                }
        }
    }
}

/* One product, for all its tasks. */
typedef struct NAME(adjoining) {
    const fsi_blockperm *B;
    const fs_matrix *X;
    int64_t row0;
    SUM scale, beta;
    chunking cut;
    int vectors;              /* of a tile; 0: less than one (adjoint_flat) */
    int64_t width, pitch;     /* columns of a tile; its rows for each block */
    int64_t col, cols, tiles; /* columns at work, in this many tiles */
    SUM *Y;                   /* [tile][row of Y], or as adjoint_double makes it */
    int64_t pieces;
    int past_cache; /* whether X is larger than a cache */
    int64_t place_bytes, where_bytes, chunk_bytes, tile_bytes;
} NAME(adjoining);

/* Rows that are no longer than a vector: rows of a window side by side, as in flat.inc.c.  A stratum of Y is stored
 * twice, one copy behind the other, so that what the columns of a window need of it is contiguous.  Rows of a window in
 * a tile, windows beginning at vectors; and sums of a stratum of Y: */
static int64_t NAME(adjoint_window)(const NAME(adjoining) * J) { return fsi_round_up(J->B->window, LANES / J->width); }
static int64_t NAME(adjoint_stratum)(const NAME(adjoining) * J)
{
    return fsi_round_up(2 * (J->B->window + 1) * J->width, LANES) + LANES;
}

/* The strata of all blocks stored so, from k rows of LANES sums. */
static void NAME(adjoint_double)(const NAME(adjoining) * J, const SUM *rows, SUM *to)
{
    const fsi_blockperm *B = J->B;
    for (int64_t g = 0; g < B->M; g++) {
        const fsi_split *parts = &B->strata[fsi_split_size(&B->out, g) - B->out.small];
        for (int64_t t = 0; t < B->s; t++, to += NAME(adjoint_stratum)(J)) {
            const int64_t size = fsi_split_size(parts, t);
            const SUM *from = rows + (fsi_split_start(&B->out, g) + fsi_split_start(parts, t)) * LANES;
            memset(to, 0, (size_t)NAME(adjoint_stratum)(J) * sizeof(SUM));
            for (int64_t r = 0; r < 2 * size; r++)
                memcpy(to + r * J->width, from + r % size * LANES, (size_t)J->width * sizeof(SUM));
        }
    }
}

/* tile += chunk number i of block h of S', times Y. */
static void NAME(adjoint_flat)(const NAME(adjoining) * J, chunk *c, int64_t i, int64_t h, SUM *tile)
{
    const fsi_blockperm *B = J->B;
    const int64_t u0 = chunking_start(&J->cut, i), W = B->window, width = J->width, step = LANES / width;
    const int64_t v0 = J->cut.windows ? 0 : u0 % W, columns = J->cut.windows ? W : chunking_size(&J->cut, i);
    const int64_t words = fsi_bulk_sign_words(columns), stratum = NAME(adjoint_stratum)(J);
    const int windows = J->cut.windows ? J->cut.windows : 1;
    const NAME(bits) top = (NAME(bits))1 << (8 * SUM_BYTES - 1);
    NAME(bit_vector) row;
    for (int lane = 0; lane < LANES; lane++) row[lane] = (NAME(bits))lane / (NAME(bits))width;
    uint32_t g = (uint32_t)h;
    for (int64_t l = 1; l <= B->kappa; l++) {
        g = fsi_wiring_back(&B->wiring, g);
        const int64_t rows = fsi_split_size(&B->out, g);
        const fsi_split *parts = &B->strata[rows - B->out.small];
        const SUM *Y = J->Y + g * B->s * stratum;
        for (int i0 = 0; i0 < windows; i0 += FSI_BULK) {
            const int n = windows - i0 < FSI_BULK ? windows - i0 : FSI_BULK;
            fsi_bulk_windows(B, h, (uint64_t)(u0 / W + i0), n, l, rows, v0, columns, c->first, c->minus);
            for (int64_t t = 0; v0 && t < B->s; t++)
                c->first[t * FSI_BULK] = (uint32_t)((c->first[t * FSI_BULK] + v0) % fsi_split_size(parts, t));
            for (int w = 0; w < n; w++)
                for (int64_t v = 0; v < columns; v += step) {
                    VEC *to = (VEC *)(tile + ((i0 + w) * NAME(adjoint_window)(J) + v) * width), sum = *to;
                    for (int64_t t = 0; t < B->s; t++) {
                        const uint32_t minus = c->minus[(t * words + (v >> 5)) * FSI_BULK + w] << (v & 31);
                        const NAME(bits) signs = (NAME(bits))minus << (8 * SUM_BYTES - 32);
                        const SUM *y = Y + t * stratum + (c->first[t * FSI_BULK + w] + v) * width;
                        const NAME(bit_vector) x = (NAME(bit_vector)) * (const NAME(loose) *)y;
                        sum += (VEC)(x ^ ((((NAME(bit_vector)){0} + signs) << row) & top));
                    }
                    *to = sum;
                }
        }
    }
}

/* What a thread has for itself. */
typedef struct NAME(adjoiner) {
    int32_t *place, *at;
    int64_t *column;
    fsi_round *round;
    chunk c;
    SUM *tile;
} NAME(adjoiner);

static int64_t NAME(adjoiner_bytes)(const NAME(adjoining) * J)
{
    return J->place_bytes + J->where_bytes + J->chunk_bytes + J->tile_bytes;
}
static NAME(adjoiner) NAME(adjoiner_at)(const NAME(adjoining) * J, char *memory)
{
    const int64_t rows = J->cut.rows;
    NAME(adjoiner) a;
    a.column = (int64_t *)memory;
    a.round = (fsi_round *)(a.column + rows);
    a.at = (int32_t *)(a.round + rows + 2);
    memory += J->where_bytes;
    a.place = (int32_t *)memory;
    memory += J->place_bytes;
    memset(&a.c, 0, sizeof a.c);
    a.c.row = (uint32_t *)memory;
    a.c.entry = a.c.row + rows;
    a.c.first = a.c.entry + rows * J->B->kappa * J->B->s;
    a.c.minus = a.c.first + FSI_BULK * J->B->s;
    a.tile = (SUM *)(memory + J->chunk_bytes);
    for (int64_t u = 0; u < rows; u++) {
        a.c.row[u] = (uint32_t)u;
        a.at[u] = (int32_t)(J->vectors ? u : u / J->B->window * NAME(adjoint_window)(J) + u % J->B->window);
    }
    return a;
}

/* Chunks of block h, piece by piece: rows of X as the block has them. */
static void NAME(adjoint_block)(const NAME(adjoining) * J, NAME(adjoiner) * a, int64_t h, int64_t piece)
{
    const int64_t width = J->width;
    const int64_t bytes = fsi_dtype_size(J->X->dtype), pitch = J->X->row_stride * bytes;
    int64_t first, last;
    chunks_of(J->B, &J->cut, h, J->row0, J->X->rows, piece, J->pieces, &first, &last);
    for (int64_t i = first; i < last; i++) {
        local_columns(J->B, h, chunking_start(&J->cut, i), chunking_size(&J->cut, i), a->round, a->column);
        for (int64_t r = 0; r < chunking_size(&J->cut, i); r++) { /* where the row of X is, in bytes */
            const int64_t row = a->column[r] - J->row0, inside = a->column[r] >= 0 && row >= 0 && row < J->X->rows;
            a->column[r] = inside ? row * pitch : NO_ROW;
        }
        NAME(adjoint_fill)(&a->c, J->B, &J->cut, i, h);
        for (int64_t t = 0; t < J->tiles; t++) {
            const int64_t cols = fsi_min64(width, J->cols - t * width), col = J->col + t * width;
            ahead rows = ahead_of((char *)J->X->data + col * bytes, a->column, 0, a->c.groups, cols * bytes,
                                  a->c.groups);
            memset(a->tile, 0, (size_t)(a->c.groups * width) * sizeof(SUM));
            NAME(multiply)(&a->c, J->Y + t * J->B->k * width, a->tile, &rows, J->vectors);
            for (int64_t r = 0; r < a->c.groups; r++)
                if (a->column[r] != NO_ROW) NAME(store_line)
            (J->X, pitch ? a->column[r] / pitch : 0, col, cols, a->tile + r * width, J->scale, J->beta, J->past_cache);
        }
    }
}

/* Chunk number i of all blocks, or of block h0: rows of X in the order of memory. */
static void NAME(adjoint_step)(const NAME(adjoining) * J, NAME(adjoiner) * a, int64_t i, int64_t h0)
{
    const fsi_blockperm *B = J->B;
    const int64_t width = J->width, pitch = J->pitch, count = chunking_size(&J->cut, i);
    const int none = B->shuffle == FSI_DEF_NONE;
    ahead nothing = ahead_of(NULL, NULL, 0, 0, 0, 0);
    int64_t j0 = none ? fsi_split_start(&B->in, h0) + chunking_start(&J->cut, i) : 0;
    const int64_t all = none ? fsi_min64(count, fsi_split_start(&B->in, h0) + fsi_split_size(&B->in, h0) - j0)
                             : step_columns(B, chunking_start(&J->cut, i), count, &j0);
    const int64_t from = fsi_max(j0, J->row0), to = fsi_min64(j0 + all, J->row0 + J->X->rows);
    if (from >= to) return;
    if (none) memcpy(a->place, a->at, (size_t)all * sizeof *a->at);
    else step_places(B, chunking_start(&J->cut, i), count, pitch, a->at, a->round, a->place);
    memset(a->tile, 0, (size_t)((none ? 1 : B->M) * pitch * width) * sizeof(SUM));
    for (int64_t b = 0; b < (none ? 1 : B->M); b++) {
        SUM *tile = a->tile + b * pitch * width;
        if (!J->vectors) {
            NAME(adjoint_flat)(J, &a->c, i, none ? h0 : b, tile);
            continue;
        }
        NAME(adjoint_fill)(&a->c, B, &J->cut, i, none ? h0 : b);
        NAME(multiply)(&a->c, J->Y, tile, &nothing, J->vectors);
    }
    SUM rows[LANES * MOST_VECTORS * LANES] __attribute__((aligned(64)));
    for (int64_t j = from, held; j < to; j += held) {
        const int64_t row = j - J->row0;
        for (held = 0; held < fsi_min64(LANES, to - j) && a->place[j - j0 + held] >= 0; held++)
            memcpy(rows + held * width, a->tile + a->place[j - j0 + held] * width, (size_t)width * sizeof(SUM));
        if (held) NAME(store_lines)
        (J->X, row, held, J->col, J->cols, width, rows, J->scale, J->beta, J->past_cache);
        else held = 1; }
}

/* Y, columns col ... of it, as tiles, or doubled by way of `rows`. */
static void NAME(adjoint_load)(const NAME(adjoining) * J, const fs_matrix *Y, SUM *rows, int threads)
{
    enum { ROWS = 64 };
    const int64_t k = J->B->k, parts = fsi_div_up(k, ROWS), width = J->vectors ? J->width : LANES;
    SUM *tiles = J->vectors ? J->Y : rows;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t task = 0; task < J->tiles * parts; task++) {
        const int64_t t = task / parts, row = task % parts * ROWS;
        NAME(load_tile)
        (Y, NULL, row, fsi_min64(ROWS, k - row), J->col + t * width, fsi_min64(width, J->cols - t * width), width,
         tiles + (t * k + row) * width);
    }
    if (!J->vectors) NAME(adjoint_double)(J, rows, J->Y);
}

/* How rows and columns of X are cut, and the memory that follows from it. */
static void NAME(adjoint_cut)(NAME(adjoining) * J, int is_wide, int none)
{
    enum { STEP = 1 << 18, VECTORS = 4 };
    const fsi_blockperm *B = J->B;
    const int64_t all = fsi_div_up(J->X->cols, LANES), unit = B->shuffle == FSI_DEF_GROUPS ? FSI_GROUP_ROWS : 1;
    J->vectors = (int)fsi_div_up(all, fsi_div_up(all, VECTORS));
    J->width = J->vectors * LANES;
    if (J->X->cols <= LANES) J->vectors = 0;
    while (J->width / 2 >= J->X->cols) J->width /= 2;
    const int64_t blocks = none || is_wide ? 1 : B->M,
                  rows = is_wide ? CHUNK_LEAST : STEP / (J->width * (int64_t)sizeof(SUM) * blocks);
    J->cut = chunking_of(B, is_wide ? CHUNK_WINDOWS : FSI_BULK,
                         fsi_min64(fsi_max(rows, fsi_max(CHUNK_LEAST, 4 * B->window)), CHUNK_MOST));
    J->pitch = J->vectors ? J->cut.rows
                          : fsi_max(J->cut.windows * NAME(adjoint_window)(J), fsi_round_up(J->cut.rows, LANES));
    J->place_bytes = fsi_round_up(4 * (J->cut.rows / unit_rows(B) + 2) * blocks * unit, 64);
    J->where_bytes = fsi_round_up(20 * J->cut.rows + 16, 64);
    J->chunk_bytes = fsi_round_up(
        4 * (J->cut.rows * (1 + B->kappa * B->s) + FSI_BULK * B->s * (1 + chunk_signs(B, &J->cut))), 64);
    J->tile_bytes = fsi_round_up(blocks * J->pitch * J->width * (int64_t)sizeof(SUM), 64);
}

/* Scratch: columns of Y as sums, 16 MiB or one tile; per thread a step or a chunk of nonzeros and of rows of X. */
static fs_result NAME(sjlt_adjoint)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *Y,
                                    double beta, const fs_matrix *X)
{
    enum { MOST = 1 << 24, TASKS = 4, CACHE = 1 << 24 };
    const fsi_blockperm *B = &S->u.blockperm;
    NAME(adjoining) J;
    memset(&J, 0, sizeof J);
    if (X->cols == 0 || X->rows == 0) return FS_OK;
    J.B = B, J.X = X, J.row0 = row0, J.scale = (SUM)(alpha * S->scale), J.beta = (SUM)beta;
    const int none = B->shuffle == FSI_DEF_NONE, is_wide = X->col_stride == 1 && X->cols > (GATHER_VECTORS - 1) * LANES;
    NAME(adjoint_cut)(&J, is_wide, none);
    J.past_cache = X->rows * X->cols >= CACHE / (int64_t)sizeof(SUM);
    const int64_t tile = B->k * (J.vectors ? J.width : LANES) * (int64_t)sizeof(SUM);
    const int64_t tiles = is_wide ? fsi_min64(fsi_max(MOST / tile, 1), fsi_div_up(X->cols, J.width)) : 1;
    const int64_t y_bytes = fsi_round_up(tiles * tile, 64), each = NAME(adjoiner_bytes)(&J);
    const int64_t doubled = J.vectors ? 0 : B->M * B->s * NAME(adjoint_stratum)(&J) * (int64_t)sizeof(SUM);
    char *memory = fsi_cpu_scratch(cpu, y_bytes + doubled + cpu->threads * each);
    if (!memory) return FS_ENOMEM;
    J.Y = (SUM *)(memory + (J.vectors ? 0 : y_bytes));
    J.pieces = is_wide || none ? fsi_div_up(TASKS * cpu->threads, B->M) : TASKS * cpu->threads;
    const int64_t tasks = (is_wide || none ? B->M : 1) * J.pieces;
    for (J.col = 0; J.col < X->cols; J.col += tiles * J.width) {
        J.cols = fsi_min64(tiles * J.width, X->cols - J.col);
        J.tiles = fsi_div_up(J.cols, J.width);
        NAME(adjoint_load)(&J, Y, (SUM *)memory, cpu->threads);
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
        for (int64_t task = 0; task < tasks; task++) {
            const int64_t h = task / J.pieces, piece = task % J.pieces;
            NAME(adjoiner) a = NAME(adjoiner_at)(&J, memory + y_bytes + doubled + omp_get_thread_num() * each);
            int64_t first, last;
            chunks_of(B, &J.cut, h, row0, X->rows, piece, J.pieces, &first, &last);
            if (is_wide) NAME(adjoint_block)(&J, &a, h, piece);
            for (int64_t i = first; i < last && !is_wide; i++) NAME(adjoint_step)(&J, &a, i, h);
            store_fence();
        }
    }
    return FS_OK;
}
