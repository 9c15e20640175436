/* gather.inc.c - BlockPerm-SJLT when a row of A is contiguous: rows of A are gathered into sums in registers.
 *
 * Task (output block g, panel of columns): for each chunk of rows of A that go to g, for each tile of columns, for each
 * row of the block: load its sums, add or subtract the tile of every row of A that goes there, store the sums.  A is
 * read from memory once per permutation (software prefetch runs one tile ahead) and from cache s times; a
 * scatter of each row into s rows of sums would store s times as much, and stores are the bottleneck.
 * Rows of A whose stride or width does not fit are processed one vector at a time, or element by element. */

#define PANEL_COLS (2048 / (int64_t)sizeof(ELEM) / TILE * TILE) /* columns of a task: half a page of a row */

/* One call, for all its tasks. */
typedef struct NAME(gather) {
    const fsi_blockperm *B;
    const fs_matrix *A, *Y;
    const fs_rows *list; /* rows of A; NULL: all */
    int64_t row0;
    SUM scale, beta;
    int64_t panel_cols; /* columns of a task */
    int64_t chunk_rows; /* rows of A taken at a time */
} NAME(gather);

/* The sums of a task: full tiles first, each rows x TILE, then single vectors, each rows x LANES. */
typedef struct NAME(columns) {
    int64_t first, count; /* the columns of the task */
    int64_t tiles, singles;
} NAME(columns);

static NAME(columns) NAME(columns_of)(const NAME(gather) * G, int64_t panel)
{
    NAME(columns) c;
    c.first = panel * G->panel_cols;
    c.count = fsi_min64(G->panel_cols, G->A->cols - c.first);
    c.tiles = G->A->col_stride == 1 ? c.count / TILE : 0;
    c.singles = (c.count - c.tiles * TILE + LANES - 1) / LANES;
    return c;
}

/* One tile of columns that begins at A: adds the chunk's rows to sums, and fetches the tile that comes next, which
 * begins at `next` in rows `where` apart. */
static void NAME(gather_tile)(const chunk *c, const ELEM *A, SUM *sums, const ELEM *next, const int64_t *where,
                              int next_rows)
{
    static const SUM sign[2] = {1, -1};
    const int ahead = (next_rows + c->groups - 1) / (c->groups ? c->groups : 1);
    int fetched = 0;
    for (int i = 0; i < c->groups; i++) {
        for (int p = 0; p < ahead && fetched < next_rows; p++, fetched++)
            for (int64_t b = 0; b < TILE; b += 64 / (int)sizeof(ELEM))
                __builtin_prefetch(next + where[fetched] + b, 0, 2);
        VEC *at = (VEC *)(sums + (int64_t)c->row[i] * TILE), sum[TILE_VECTORS];
        for (int v = 0; v < TILE_VECTORS; v++) sum[v] = at[v];
        for (uint32_t e = c->start[i]; e < c->start[i + 1]; e++) {
            const ELEM *x = A + (c->entry[e] >> 1);
            const SUM pm = sign[c->entry[e] & 1];
            for (int v = 0; v < TILE_VECTORS; v++) sum[v] = NAME(add_signed)(sum[v], NAME(vector)(x + v * LANES), pm);
        }
        for (int v = 0; v < TILE_VECTORS; v++) at[v] = sum[v];
    }
}

/* The same for at most LANES columns, `stride` apart. */
static void NAME(gather_single)(const chunk *c, const ELEM *A, int64_t stride, int64_t count, SUM *sums)
{
    static const SUM sign[2] = {1, -1};
    for (int i = 0; i < c->groups; i++) {
        VEC *at = (VEC *)(sums + (int64_t)c->row[i] * LANES), sum = *at;
        for (uint32_t e = c->start[i]; e < c->start[i + 1]; e++) {
            const ELEM *x = A + (c->entry[e] >> 1);
            const VEC v = stride == 1 && count >= LANES ? NAME(vector)(x) : NAME(vector_some)(x, stride, count);
            sum = NAME(add_signed)(sum, v, sign[c->entry[e] & 1]);
        }
        *at = sum;
    }
}

/* Adds the rows of A that go to block g under permutation l, as the buckets list them, to the task's sums. */
static void NAME(gather_block)(const NAME(gather) * G, const NAME(columns) * cols, const buckets *b, int64_t panel_row,
                               int64_t l, int64_t h, int64_t g, chunk *c, SUM *sums)
{
    const int64_t rows = fsi_split_size(&G->B->out, g);
    const int64_t first = b->start[h], last = b->start[h + 1], stride = G->A->row_stride;
    const ELEM *A = (const ELEM *)G->A->data + cols->first * G->A->col_stride;
    int64_t where[2][CHUNK_MOST], j[CHUNK_MOST];
    int ready = 0;
    for (int64_t u = first; u < last; u += G->chunk_rows) {
        const int count = (int)fsi_min64(G->chunk_rows, last - u);
        const int next = (int)fsi_min64(G->chunk_rows, last - u - count);
        int64_t *now = where[ready], *then = where[!ready];
        if (u == first)
            for (int i = 0; i < count; i++) now[i] = fsi_row_at(G->list, panel_row + b->rows[u + i]) * stride;
        for (int i = 0; i < next; i++) then[i] = fsi_row_at(G->list, panel_row + b->rows[u + count + i]) * stride;
        for (int i = 0; i < count; i++) j[i] = G->row0 + panel_row + b->rows[u + i];
        chunk_fill(c, G->B, l, h, g, j, now, count);
        for (int64_t t = 0; t < cols->tiles; t++) {
            const int last_tile = t + 1 == cols->tiles;
            NAME(gather_tile)
            (c, A + t * TILE, sums + t * rows * TILE, last_tile ? A : A + (t + 1) * TILE, last_tile ? then : now,
             last_tile ? next : count);
        }
        for (int64_t v = 0; v < cols->singles; v++) {
            const int64_t col = cols->tiles * TILE + v * LANES;
            NAME(gather_single)
            (c, A + col * G->A->col_stride, G->A->col_stride, fsi_min64(LANES, cols->count - col), sums + col * rows);
        }
        ready = !ready;
    }
}

static void NAME(gather_flush)(const NAME(gather) * G, const NAME(columns) * cols, int64_t start, int64_t rows,
                               const SUM *sums)
{
    if (G->Y->row_stride == 1 && G->Y->col_stride != 1) {
        for (int64_t t = 0; t < cols->tiles; t++) {
            NAME(store_tile)
            (G->Y, start, rows, cols->first + t * TILE, TILE, TILE, sums + t * rows * TILE, G->scale, G->beta);
        }
        for (int64_t v = 0; v < cols->singles; v++) {
            const int64_t col = cols->tiles * TILE + v * LANES;
            NAME(store_tile)
            (G->Y, start, rows, cols->first + col, fsi_min64(LANES, cols->count - col), LANES, sums + col * rows,
             G->scale, G->beta);
        }
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t t = 0; t < cols->tiles; t++) {
            NAME(store_row)
            (G->Y, start + r, cols->first + t * TILE, TILE, sums + (t * rows + r) * TILE, G->scale, G->beta);
        }
        for (int64_t v = 0; v < cols->singles; v++) {
            const int64_t col = cols->tiles * TILE + v * LANES;
            NAME(store_row)
            (G->Y, start + r, cols->first + col, fsi_min64(LANES, cols->count - col), sums + col * rows + r * LANES,
             G->scale, G->beta);
        }
    }
}

/* The columns of a task: as many as keep the sums of a block in 256 KiB, but a tile at least; one vector where even that
 * is over 64 MiB, for a block or, when A has several row panels so that all sums must be kept, for all blocks. */
static int64_t NAME(gather_width)(const fsi_blockperm *B, const fs_matrix *A)
{
    const int64_t rows = B->out.small + (B->out.larger > 0), kept = A->rows > PANEL_ROWS ? B->k : rows;
    const int64_t fits = ((int64_t)1 << 18) / (rows * (int64_t)sizeof(SUM)) / TILE * TILE;
    const int64_t most = ((int64_t)1 << 26) / (kept * (int64_t)sizeof(SUM)) / TILE * TILE;
    if (most == 0) return LANES;
    return fsi_min64(fsi_min64(fits ? fits : TILE, most), PANEL_COLS);
}

/* The task (column panel, output block g) for one panel of rows of A. */
static void NAME(gather_task)(const NAME(gather) * G, const buckets *b, int64_t panel_row, int64_t column_panel,
                              int64_t g, chunk *c, SUM *sums)
{
    const fsi_blockperm *B = G->B;
    const NAME(columns) cols = NAME(columns_of)(G, column_panel);
    const int64_t start = fsi_split_start(&B->out, g), rows = fsi_split_size(&B->out, g);
    if (panel_row == 0) memset(sums, 0, (size_t)(rows * (cols.tiles * TILE + cols.singles * LANES)) * sizeof *sums);
    uint32_t h = (uint32_t)g;
    for (int64_t l = 1; l <= B->kappa; l++) {
        h = fsi_wiring_next(&B->wiring, h);
        NAME(gather_block)(G, &cols, b, panel_row, l, h, g, c, sums);
    }
    if (panel_row + PANEL_ROWS >= G->A->rows) NAME(gather_flush)(G, &cols, start, rows, sums);
}

/* Scratch: 8 bytes for each row of a row panel (8 MiB at most), 4 per block, per thread a chunk of nonzeros
 * (10 KiB s, 80 MiB at most) and the sums of a block (256 KiB, or a tile of columns of a tall block); with several row
 * panels the sums of all blocks.  Sums take 64 MiB at most, or one vector a row of Y if k is over a million. */
static fs_result NAME(gather_apply)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                                    const fs_rows *list, double beta, const fs_matrix *Y)
{
    const fsi_blockperm *B = &S->u.blockperm;
    /* About sixteen nonzeros a row of a block: with fewer, loading and storing the sums takes a larger share of the
     * time; with more, the chunk takes too much of the second-level cache. */
    const int64_t sixteen = 16 * B->out.small / B->s;
    const int64_t cached = sixteen < CHUNK_LEAST ? CHUNK_LEAST : fsi_min64(sixteen, CHUNK_MOST);
    const int64_t width = NAME(gather_width)(B, A), chunk_rows = fsi_min64(cached, ((int64_t)1 << 22) / B->s + 1);
    const NAME(gather) G = {B, A, Y, list, row0, (SUM)(alpha * S->scale), (SUM)beta, width, chunk_rows};
    const int64_t tallest = B->out.small + 1, row_panels = A->rows > PANEL_ROWS ? (A->rows - 1) / PANEL_ROWS + 1 : 1;
    const int64_t panel_rows = fsi_min64(PANEL_ROWS, A->rows);
    const int64_t sums_each = tallest * ((G.panel_cols + LANES - 1) / LANES * LANES);
    const int64_t slots = row_panels > 1 ? B->M : cpu->threads;
    const int64_t bucket_bytes = fsi_round_up(buckets_bytes(B, panel_rows), 64);
    const int64_t chunk_each = fsi_round_up(chunk_bytes(chunk_rows, B->s, tallest), 64);
    char *memory = fsi_cpu_scratch(cpu,
                                   bucket_bytes + cpu->threads * chunk_each + slots * sums_each * (int64_t)sizeof(SUM));
    if (!memory) return FS_ENOMEM;
    const buckets b = buckets_at(memory, panel_rows);
    char *chunks = memory + bucket_bytes;
    SUM *sums = (SUM *)(chunks + cpu->threads * chunk_each);

    /* With one row panel all columns share its buckets; with several, columns go panel by panel to bound the sums. */
    const int64_t column_panels = (A->cols + G.panel_cols - 1) / G.panel_cols;
    const int64_t together = row_panels > 1 ? 1 : column_panels;
    for (int64_t cp = 0; cp < column_panels; cp += together)
        for (int64_t p = 0; p < row_panels; p++) {
            buckets_fill(&b, B, row0 + p * PANEL_ROWS, fsi_min64(PANEL_ROWS, A->rows - p * PANEL_ROWS), cpu->threads);
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
            for (int64_t task = 0; task < together * B->M; task++) {
                const int64_t g = task % B->M, thread = omp_get_thread_num();
                chunk c = chunk_at(chunks + thread * chunk_each, chunk_rows, B->s);
                NAME(gather_task)
                (&G, &b, p * PANEL_ROWS, cp + task / B->M, g, &c, sums + (row_panels > 1 ? g : thread) * sums_each);
            }
        }
    return FS_OK;
}
#undef PANEL_COLS
