/* stream.inc.c - BlockPerm-SJLT of a matrix whose rows are short or not contiguous: narrow matrices, batches, any
 * strides.
 *
 * A is read in the order of memory.  Task (panel of columns, one tile wide; piece of the local rows): a step is one
 * chunk of local rows of every block, which with shuffled rows are neighbours in A (without a shuffle: of one block).
 * Their rows are loaded, as sums, each to its place among those of its block; where columns of A are contiguous, LANES
 * x LANES elements are transposed in registers.  Then every block is multiplied by S from the second-level cache. */

/* What a thread has for itself. */
typedef struct NAME(streaming) {
    int32_t *place, *at; /* of a step's rows; of the local rows of a block (step_places) */
    fsi_round *round;
    chunk c;
    SUM *tile, *flat, *sums; /* flat: sums of all blocks as flat_multiply makes them */
} NAME(streaming);

/* Blocks in a step; rows of A in one, at most; rows of its tile for each block. */
static int64_t NAME(stream_blocks)(const fsi_blockperm *B) { return B->shuffle == FSI_DEF_NONE ? 1 : B->M; }
static int64_t NAME(stream_rows)(const NAME(product) * P)
{
    const int64_t unit = P->B->shuffle == FSI_DEF_GROUPS ? FSI_GROUP_ROWS : 1;
    return (P->cut.rows / unit_rows(P->B) + 2) * NAME(stream_blocks)(P->B) * unit;
}
static int64_t NAME(stream_pitch)(const NAME(product) * P)
{
    return P->vectors ? P->cut.rows + 1 : fsi_max(P->cut.windows * NAME(flat_window)(P->B), P->cut.rows);
}
static int64_t NAME(stream_tile)(const NAME(product) * P) /* sums; what follows is read, too */
{
    return fsi_round_up(NAME(stream_blocks)(P->B) * NAME(stream_pitch)(P) * P->width, LANES) + 2 * LANES;
}
static int64_t NAME(stream_flat)(const NAME(product) * P)
{
    return P->vectors ? 0 : P->B->kappa * P->B->M * P->B->s * NAME(flat_stratum)(P->B, P->width);
}
static int64_t NAME(streaming_bytes)(const NAME(product) * P)
{
    const int64_t sums = P->apart ? 0 : (P->pieces > 1 ? 2 : 1) * P->B->kappa * P->panel_sums + LANES;
    return fsi_round_up(4 * NAME(stream_rows)(P), 64) + fsi_round_up(12 * P->cut.rows + 16, 64) +
           chunk_bytes(P->B, &P->cut) +
           fsi_round_up((NAME(stream_tile)(P) + NAME(stream_flat)(P) + sums) * (int64_t)sizeof(SUM), 64);
}
static NAME(streaming) NAME(streaming_at)(const NAME(product) * P, char *memory)
{
    const int64_t W = P->B->window, rows = P->cut.rows;
    NAME(streaming) G;
    G.place = (int32_t *)memory;
    memory += fsi_round_up(4 * NAME(stream_rows)(P), 64);
    G.round = (fsi_round *)memory;
    G.at = (int32_t *)(G.round + rows + 2);
    memory += fsi_round_up(12 * rows + 16, 64);
    G.c = chunk_at(memory, P->B, &P->cut);
    G.tile = (SUM *)(memory + chunk_bytes(P->B, &P->cut));
    G.flat = G.tile + NAME(stream_tile)(P);
    G.sums = G.flat + NAME(stream_flat)(P);
    for (int64_t u = 0; u < rows; u++) G.at[u] = (int32_t)(P->vectors ? u : u / W * NAME(flat_window)(P->B) + u % W);
    memset(G.tile, 0, (size_t)NAME(stream_tile)(P) * sizeof(SUM));
    return G;
}

/* Rows row ... row + count - 1 of A, of the listed ones if there is a list, columns col ... col + cols - 1: row i goes
 * to row place[i] of the tile, if that is not negative. */
static void NAME(stream_load)(const NAME(product) * P, int64_t row, int64_t count, const int32_t *place, int64_t col,
                              int64_t cols, SUM *tile)
{
    enum { AHEAD = 4 };
    const fs_matrix *A = P->A;
    const int vectors = P->vectors;
    const ELEM *x = (const ELEM *)A->data + col * A->col_stride;
    int64_t i = 0;
    if (A->row_stride == 1 && A->col_stride != 1 && !P->list) {
        i = count / LANES * LANES;
        for (int c = 0; c < vectors; c++)
            for (int64_t r = 0; r < i; r += LANES) {
                VEC v[LANES];
                for (int64_t n = 0; n < LANES; n++)
                    v[n] = c * LANES + n < cols ? NAME(vector)(x + (c * LANES + n) * A->col_stride + row + r)
                                                : (VEC){0};
                NAME(transpose)(v);
                for (int n = 0; n < LANES; n++)
                    if (place[r + n] >= 0) ((VEC *)tile)[(int64_t)place[r + n] * vectors + c] = v[n];
            }
    }
    for (; i < count; i++) {
        if (place[i] < 0) continue;
        const ELEM *at = x + fsi_row_at(P->list, row + i) * A->row_stride;
        VEC *to = (VEC *)tile + (int64_t)place[i] * vectors;
        if (P->list &&
            A->col_stride != 1) { /* what lies between the listed elements is not read but for lines in common */
            const ELEM *then = x + fsi_row_at(P->list, row + fsi_min64(i + AHEAD, count - 1)) * A->row_stride;
            for (int64_t n = 0; n < cols; n++) __builtin_prefetch(then + n * A->col_stride, 0, 0);
        }
        for (int v = 0; v < vectors; v++) {
            const int64_t left = fsi_min64(LANES, cols - v * LANES);
            to[v] = left <= 0            ? (VEC){0}
                    : A->col_stride != 1 ? NAME(vector_some)(at + v * LANES * A->col_stride, A->col_stride, left)
                    : left == LANES      ? NAME(vector)(at + v * LANES)
                                         : NAME(vector_first)(at + v * LANES, left);
        }
    }
}

/* The columns of S, from *j0 on, and so rows of A, that chunk number i is of all blocks or of block h; returns how
 * many. */
static int64_t NAME(stream_columns)(const NAME(product) * P, int64_t i, int64_t h, int64_t *j0)
{
    const fsi_blockperm *B = P->B;
    const int64_t u0 = chunking_start(&P->cut, i), count = chunking_size(&P->cut, i);
    if (B->shuffle != FSI_DEF_NONE) return step_columns(B, u0, count, j0);
    *j0 = fsi_split_start(&B->in, h) + u0;
    return fsi_min64(count, fsi_split_size(&B->in, h) - u0);
}

/* The rows of A of the step that comes next, to be fetched while this one is multiplied; gathered rows are not. */
static ahead NAME(stream_next)(const NAME(product) * P, int64_t panel, int64_t i, int64_t h, int64_t calls)
{
    const fs_matrix *A = P->A;
    int64_t j0;
    const int64_t all = NAME(stream_columns)(P, i, h, &j0), cols = NAME(product_cols)(P, panel);
    const int64_t from = fsi_max(j0, P->row0) - P->row0, to = fsi_min64(j0 + all - P->row0, A->rows);
    const char *base = (const char *)A->data +
                       (from * A->row_stride + panel * P->panel_cols * A->col_stride) * (int64_t)sizeof(ELEM);
    const int64_t row = A->row_stride * (int64_t)sizeof(ELEM), col = A->col_stride * (int64_t)sizeof(ELEM);
    if (from >= to || P->list) return ahead_of(NULL, NULL, 0, 0, 0, 0);
    if (A->row_stride == 1) return ahead_of(base, NULL, col, cols, (to - from) * (int64_t)sizeof(ELEM), calls);
    if (A->col_stride == 1 && row == A->cols * (int64_t)sizeof(ELEM) && P->panels == 1)
        return ahead_of(base, NULL, 0, 1, (to - from) * row, calls);
    return ahead_of(base, NULL, row, to - from, cols * (int64_t)sizeof(ELEM), calls);
}

/* Chunk number i of local rows, of all blocks or of block h0; the next one is number i + 1, if that is not `last`. */
static void NAME(stream_step)(const NAME(product) * P, NAME(streaming) * G, int64_t panel, int64_t i, int64_t last,
                              int64_t h0, SUM *sums, int64_t step)
{
    const fsi_blockperm *B = P->B;
    const int64_t u0 = chunking_start(&P->cut, i), count = chunking_size(&P->cut, i), width = P->width;
    const int64_t pitch = NAME(stream_pitch)(P), blocks = NAME(stream_blocks)(B);
    const int64_t calls = blocks * B->kappa *
                          (P->vectors ? chunk_groups(B, &P->cut, i)
                                      : fsi_div_up(fsi_max(P->cut.windows, 1), FSI_BULK) * B->s);
    const int none = B->shuffle == FSI_DEF_NONE;
    int64_t j0;
    const int64_t all = NAME(stream_columns)(P, i, h0, &j0);
    const int64_t from = fsi_max(j0, P->row0), to = fsi_min64(j0 + all, P->row0 + P->A->rows);
    if (from >= to) return;
    if (none) memcpy(G->place, G->at, (size_t)all * sizeof *G->at);
    else step_places(B, u0, count, pitch, G->at, G->round, G->place);
    if (to - from < (none ? count : all)) memset(G->tile, 0, (size_t)NAME(stream_tile)(P) * sizeof(SUM));
    const int32_t *place = G->place + (from - j0);
    const int64_t row = from - P->row0, col = panel * P->panel_cols;
    if (!P->vectors) NAME(flat_load)(B, P->A, P->list, row, to - from, place, G->tile, width);
    else NAME(stream_load)(P, row, to - from, place, col, NAME(product_cols)(P, panel), G->tile);
    ahead next = i + 1 < last ? NAME(stream_next)(P, panel, i + 1, h0, calls) : ahead_of(NULL, NULL, 0, 0, 0, 0);
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t h = none ? h0 : b;
        const SUM *tile = G->tile + b * pitch * width;
        uint32_t g = (uint32_t)h;
        for (int64_t l = 1; l <= B->kappa; l++) {
            g = fsi_wiring_back(&B->wiring, g);
            if (!P->vectors) {
                SUM *to_block = G->flat + ((l - 1) * B->M + g) * B->s * NAME(flat_stratum)(B, width);
                NAME(flat_multiply)(B, &P->cut, i, l, h, g, width, &G->c, tile, to_block, &next);
                continue;
            }
            chunk_fill(&G->c, B, &P->cut, i, l, h, g);
            SUM *to_block = sums + (l - 1) * step + fsi_split_start(&B->out, g) * width;
            NAME(multiply)(&G->c, tile, to_block, &next, P->vectors);
        }
    }
}

/* The sums of a piece under each permutation, `step` sums apart. */
static void NAME(stream_piece)(const NAME(product) * P, NAME(streaming) * G, int64_t piece, int64_t panel, SUM *sums,
                               int64_t step)
{
    const fsi_blockperm *B = P->B;
    const int64_t none = B->shuffle == FSI_DEF_NONE, flat = NAME(stream_flat)(P) / B->kappa;
    for (int64_t l = 0; l < B->kappa; l++) memset(sums + l * step, 0, (size_t)P->panel_sums * sizeof(SUM));
    memset(G->flat, 0, (size_t)NAME(stream_flat)(P) * sizeof(SUM));
    for (int64_t h = 0; h < (none ? B->M : 1); h++) {
        int64_t first, last;
        chunks_of(B, &P->cut, h, P->row0, P->A->rows, piece, P->pieces, &first, &last);
        for (int64_t i = first; i < last; i++) NAME(stream_step)(P, G, panel, i, last, h, sums, step);
    }
    for (int64_t l = 0; l < B->kappa && !P->vectors; l++)
        for (int64_t g = 0; g < B->M; g++) NAME(flat_rows)
    (B, g, P->width, G->flat + l * flat + g * B->s * NAME(flat_stratum)(B, P->width),
     sums + l * step + fsi_split_start(&B->out, g) * P->width);
}

static void NAME(stream_task)(const NAME(product) * P, NAME(streaming) * G, int64_t piece, int64_t panel)
{
    const fsi_blockperm *B = P->B;
    const int64_t each = P->panel_sums;
    if (P->apart) {
        NAME(stream_piece)
        (P, G, piece, panel, NAME(product_sums)(P, 1, piece, panel), P->pieces * P->panels * each);
        return;
    }
    SUM *sums = P->pieces > 1 ? G->sums + B->kappa * each : G->sums;
    for (int64_t p = 0; p < P->pieces; p++) {
        NAME(stream_piece)(P, G, p, panel, G->sums, each);
        if (P->pieces == 1) break;
        if (p == 0) memcpy(sums, G->sums, (size_t)(B->kappa * each) * sizeof(SUM));
        else NAME(add_sums)(sums, G->sums, B->kappa * each);
    }
    for (int64_t l = 1; l < B->kappa; l++) NAME(add_sums)(sums, sums + l * each, each);
    NAME(product_store)(P, panel, 0, B->k, sums, 0);
}

/* The width of a tile, in vectors, that keeps the sums of all blocks in the second-level cache. */
static int64_t NAME(stream_vectors)(const fsi_blockperm *B)
{
    enum { VECTORS = 4, SUMS = 1 << 19 };
    return fsi_min64(fsi_max(SUMS / (B->kappa * B->k * VARIANT_BYTES), 1), VECTORS);
}

/* Tiles of that width, and steps of a quarter as much as the sums. */
static void NAME(stream_cut)(NAME(product) * P)
{
    enum { STEP = 1 << 17 };
    const fsi_blockperm *B = P->B;
    const int64_t all = fsi_div_up(P->A->cols, LANES);
    P->tiles = 1;
    P->vectors = (int)fsi_div_up(all, fsi_div_up(all, NAME(stream_vectors)(B)));
    P->width = P->vectors * LANES;
    if (P->A->cols <= LANES) {
        P->vectors = 0;
        while (P->width / 2 >= P->A->cols) P->width /= 2;
    }
    P->panel_cols = P->width;
    P->panels = fsi_div_up(P->A->cols, P->width);
    P->panel_sums = B->k * P->width;
    const int64_t rows = STEP / (P->width * (int64_t)sizeof(SUM) * NAME(stream_blocks)(B));
    P->cut = chunking_of(B, FSI_BULK, fsi_min64(fsi_max(rows, CHUNK_ROWS), CHUNK_MOST));
}

/* Scratch: per thread a step and kappa k rows of sums, a tile wide each: 1 MiB, or one vector a row where kappa k is
 * large; the sums of pieces once more; where columns are few, the sums of all pieces (256 MiB at most). */
static fs_result NAME(stream_apply)(fsi_cpu *cpu, NAME(product) * P)
{
    NAME(stream_cut)(P);
    P->pieces = NAME(product_pieces)(P);
    const int64_t all = NAME(product_bytes)(P, P->panels, cpu->threads), pieces = P->apart ? P->pieces : 1;
    const int64_t each = NAME(streaming_bytes)(P);
    char *memory = fsi_cpu_scratch(cpu, cpu->threads * each + all);
    if (!memory) return FS_ENOMEM;
    P->sums = (SUM *)(memory + cpu->threads * each);
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
    for (int64_t task = 0; task < P->panels * pieces; task++) {
        NAME(streaming) G = NAME(streaming_at)(P, memory + omp_get_thread_num() * each);
        NAME(stream_task)(P, &G, task % pieces, task / pieces);
    }
    if (P->apart) NAME(product_finish)(P, cpu->threads);
    return FS_OK;
}
