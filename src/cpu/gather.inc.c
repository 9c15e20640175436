/* gather.inc.c - BlockPerm-SJLT of a matrix whose rows are long and contiguous: rows of A are gathered block by block.
 *
 * Task (segment of output blocks, panel of columns, piece of the local rows).  The output blocks of a segment follow
 * each other in the cycle g, f(g), f(f(g)), ... of the block permutations, so that kappa successive ones share an input
 * block and A is read 1 + (kappa - 1) / (length of the segment) times.  For each chunk of local rows of an input block,
 * for each tile of columns: the rows of A are copied to a tile in the first-level cache, as sums, and multiplied by S
 * for all output blocks.  The copy is needed because rows of A at a stride fall into few sets of that cache; it also
 * ends all differences of types, alignments and widths.  The tile that comes next is fetched meanwhile. */

/* What a thread has for itself. */
typedef struct NAME(gathering) {
    int64_t *column,
        *where[2]; /* columns of S in a chunk; where their rows of A are, in bytes: of this chunk and the next */
    fsi_round *round;
    chunk *chunks; /* of kappa output blocks */
    SUM *tile, *ring;
} NAME(gathering);

static int64_t NAME(gathering_bytes)(const NAME(product) * P, int64_t ring)
{
    const int64_t rows = P->cut.rows, tile = (rows + 1) * P->width;
    return fsi_round_up(rows * 32 + 64, 64) + fsi_round_up(P->B->kappa * (int64_t)sizeof(chunk), 64) +
           P->B->kappa * chunk_bytes(P->B, &P->cut) + fsi_round_up((tile + ring) * (int64_t)sizeof(SUM), 64);
}
static NAME(gathering) NAME(gathering_at)(const NAME(product) * P, char *memory)
{
    const int64_t rows = P->cut.rows, width = P->width, each = chunk_bytes(P->B, &P->cut);
    NAME(gathering) G;
    G.column = (int64_t *)memory;
    G.where[0] = G.column + rows;
    G.where[1] = G.where[0] + rows;
    G.round = (fsi_round *)(G.where[1] + rows);
    memory += fsi_round_up(rows * 32 + 64, 64);
    G.chunks = (chunk *)memory;
    memory += fsi_round_up(P->B->kappa * (int64_t)sizeof(chunk), 64);
    for (int64_t l = 0; l < P->B->kappa; l++) G.chunks[l] = chunk_at(memory + l * each, P->B, &P->cut);
    G.tile = (SUM *)(memory + P->B->kappa * each);
    G.ring = G.tile + (rows + 1) * width;
    memset(G.tile + rows * width, 0, (size_t)width * sizeof(SUM));
    return G;
}

/* where[r]: the row of A that local row r of a chunk of block h is, in bytes, or NO_ROW.  Returns how many. */
static int NAME(gather_where)(const NAME(product) * P, NAME(gathering) * G, int64_t h, int64_t i, int64_t *where)
{
    const int64_t count = chunking_size(&P->cut, i), stride = P->A->row_stride * (int64_t)sizeof(ELEM);
    local_columns(P->B, h, chunking_start(&P->cut, i), count, G->round, G->column);
    for (int64_t r = 0; r < count; r++) {
        const int64_t row = G->column[r] - P->row0, inside = G->column[r] >= 0 && row >= 0 && row < P->A->rows;
        where[r] = inside ? fsi_row_at(P->list, row) * stride : NO_ROW;
    }
    return (int)count;
}

/* tile = `cols` columns from A on of these rows, as sums; zeros behind them and where there is no row. */
static void NAME(gather_tile)(const char *A, const int64_t *where, int rows, int64_t cols, int vectors, SUM *tile)
{
    const int64_t full = cols / LANES < vectors ? cols / LANES : vectors,
                  some = full < vectors ? cols - full * LANES : 0;
    for (int r = 0; r < rows; r++) {
        VEC *to = (VEC *)tile + (int64_t)r * vectors;
        if (where[r] == NO_ROW) {
            for (int v = 0; v < vectors; v++) to[v] = (VEC){0};
            continue;
        }
        const ELEM *x = (const ELEM *)(A + where[r]);
        for (int v = 0; v < full; v++) to[v] = NAME(vector)(x + v * LANES);
        for (int64_t v = full; v < vectors; v++)
            to[v] = v == full && some ? NAME(vector_first)(x + v * LANES, some) : (VEC){0};
    }
}

/* Where output block number p of the cycle has its sums: the first tile, and from tile to tile. */
static SUM *NAME(gather_sums)(const NAME(product) * P, const NAME(gathering) * G, int64_t piece, int64_t panel,
                              int64_t p, int64_t g, int64_t *pitch)
{
    const int64_t width = P->width, tallest = P->B->out.small + (P->B->out.larger > 0);
    *pitch = (P->pieces > 1 ? P->B->k : tallest) * width;
    if (P->pieces > 1) return NAME(product_sums)(P, piece, panel) + fsi_split_start(&P->B->out, g) * width;
    return G->ring + p % P->B->kappa * P->tiles * *pitch;
}

/* Input block h, which feeds output blocks number p - 1, ..., p - kappa of the cycle, those of them in begin ... end -
 * 1. */
static void NAME(gather_block)(const NAME(product) * P, NAME(gathering) * G, const uint32_t *cycle, int64_t piece,
                               int64_t panel, int64_t p, int64_t begin, int64_t end)
{
    const fsi_blockperm *B = P->B;
    const int64_t h = cycle[p % B->M], cols = NAME(product_cols)(P, panel), width = P->width;
    int64_t begun, ended; /* chunks of h */
    chunks_of(B, &P->cut, h, P->row0, P->A->rows, &begun, &ended);
    const int64_t first = begun + (ended - begun) * piece / P->pieces;
    const int64_t last = begun + (ended - begun) * (piece + 1) / P->pieces;
    const char *A = (const char *)P->A->data + panel * P->panel_cols * (int64_t)sizeof(ELEM);
    const int tiles = NAME(product_tiles)(P, panel);
    const int64_t outputs = fsi_min64(end, p) - fsi_max(begin, p - B->kappa);
    int ready = 0, rows = first < last ? NAME(gather_where)(P, G, h, first, G->where[0]) : 0;
    for (int64_t i = first; i < last; i++) {
        const int next_rows = i + 1 < last ? NAME(gather_where)(P, G, h, i + 1, G->where[!ready]) : 0;
        for (int64_t l = 1; l <= B->kappa; l++)
            if (p - l >= begin && p - l < end)
                chunk_fill(&G->chunks[l - 1], B, &P->cut, i, l, h, cycle[(p - l) % B->M]);
        for (int t = 0; t < tiles; t++) {
            const int over = t + 1 == tiles; /* what comes next is the next chunk's */
            const int64_t col = over ? 0 : (t + 1) * width, left = fsi_min64(width, cols - col);
            ahead next = ahead_of(A + col * (int64_t)sizeof(ELEM), G->where[over ? !ready : ready], 0,
                                  over ? next_rows : rows, left * (int64_t)sizeof(ELEM),
                                  outputs * chunk_groups(B, &P->cut, i));
            NAME(gather_tile)
            (A + t * width * (int64_t)sizeof(ELEM), G->where[ready], rows, cols - t * width, P->vectors, G->tile);
            for (int64_t l = 1; l <= B->kappa; l++) {
                int64_t pitch;
                if (p - l < begin || p - l >= end) continue;
                SUM *sums = NAME(gather_sums)(P, G, piece, panel, p - l, cycle[(p - l) % B->M], &pitch);
                NAME(multiply)(&G->chunks[l - 1], G->tile, sums + t * pitch, &next, P->vectors);
            }
        }
        ready = !ready;
        rows = next_rows;
    }
}

/* Output blocks number begin ... end - 1 of the cycle. */
static void NAME(gather_task)(const NAME(product) * P, NAME(gathering) * G, const uint32_t *cycle, int64_t piece,
                              int64_t panel, int64_t begin, int64_t end)
{
    const fsi_blockperm *B = P->B;
    for (int64_t p = begin + 1; p < end + B->kappa; p++) {
        int64_t g = cycle[p % B->M], pitch;
        if (p <= end) { /* block p - 1 begins */
            g = cycle[(p - 1) % B->M];
            const int64_t width = P->width, rows = fsi_split_size(&B->out, g);
            SUM *sums = NAME(gather_sums)(P, G, piece, panel, p - 1, g, &pitch);
            for (int t = 0; t < NAME(product_tiles)(P, panel); t++)
                memset(sums + t * pitch, 0, (size_t)(rows * width) * sizeof(SUM));
        }
        NAME(gather_block)(P, G, cycle, piece, panel, p, begin, end);
        if (p - B->kappa >= begin && P->pieces == 1) {
            g = cycle[(p - B->kappa) % B->M];
            const SUM *sums = NAME(gather_sums)(P, G, piece, panel, p - B->kappa, g, &pitch);
            NAME(product_store)(P, panel, fsi_split_start(&B->out, g), fsi_split_size(&B->out, g), sums, pitch);
        }
    }
}

/* How the columns are cut: into panels whose sums, of kappa blocks, are in the second-level cache, and these into tiles
 * of equal width whose chunks are in the first. */
static void NAME(gather_cut)(NAME(product) * P)
{
    const fsi_blockperm *B = P->B;
    const int64_t tallest = B->out.small + (B->out.larger > 0), row = tallest * B->kappa * VARIANT_BYTES;
    const int64_t most = fsi_max(fsi_min64(MOST_VECTORS, ((int64_t)1 << 15) / (P->cut.rows * VARIANT_BYTES)), 4);
    const int64_t cached = fsi_max(((int64_t)1 << 18) / row, 4), all = fsi_div_up(P->A->cols, LANES);
    const int64_t panels = fsi_div_up(all, fsi_max(fsi_min64(cached, 2048 / (LANES * (int64_t)sizeof(ELEM))), 1));
    const int64_t vectors = fsi_div_up(all, panels); /* of a panel */
    P->tiles = (int)fsi_div_up(vectors, most);
    P->vectors = (int)fsi_div_up(vectors, P->tiles);
    P->width = P->vectors * LANES;
    P->panel_cols = P->tiles * P->width;
    P->panels = fsi_div_up(P->A->cols, P->panel_cols);
}

/* Scratch: 4 M bytes; per thread a chunk of kappa blocks, a tile (32 KiB, or 256 KiB where a chunk is long) and the
 * sums of kappa blocks (256 KiB, or 4 vectors a row); where there are few blocks, the sums of all pieces (64 MiB at
 * most). */
static fs_result NAME(gather_apply)(fsi_cpu *cpu, NAME(product) * P)
{
    const fsi_blockperm *B = P->B;
    P->cut = chunking_of(B, CHUNK_WINDOWS, GATHER_ROWS);
    NAME(gather_cut)(P);
    const int64_t width = P->width, tallest = B->out.small + (B->out.larger > 0);
    P->panel_sums = P->tiles * B->k * width;
    P->pieces = NAME(product_pieces)(P, B->M * P->panels);
    const int64_t ring = P->pieces > 1 ? 0 : B->kappa * P->tiles * tallest * width;
    const int64_t segment = B->kappa == 1 ? 1 : fsi_max(B->M * P->panels * P->pieces / (4 * cpu->threads), 1);
    const int64_t segments = fsi_div_up(B->M, fsi_min64(segment, B->M)), each = NAME(gathering_bytes)(P, ring);
    const int64_t cycle_bytes = fsi_round_up(4 * B->M, 64);
    const int64_t all = P->pieces > 1 ? P->pieces * P->panels * P->panel_sums * (int64_t)sizeof(SUM) : 0;
    char *memory = fsi_cpu_scratch(cpu, cycle_bytes + cpu->threads * each + all);
    if (!memory) return FS_ENOMEM;
    uint32_t *cycle = (uint32_t *)memory;
    memory += cycle_bytes;
    P->sums = (SUM *)(memory + cpu->threads * each);
    cycle[0] = 0;
    for (int64_t p = 1; p < B->M; p++) cycle[p] = fsi_wiring_next(&B->wiring, cycle[p - 1]);
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
    for (int64_t task = 0; task < segments * P->panels * P->pieces; task++) {
        const int64_t s = task % segments, panel = task / segments % P->panels, piece = task / segments / P->panels;
        NAME(gathering) G = NAME(gathering_at)(P, memory + omp_get_thread_num() * each);
        NAME(gather_task)(P, &G, cycle, piece, panel, B->M * s / segments, B->M * (s + 1) / segments);
    }
    if (P->pieces > 1) NAME(product_finish)(P, cpu->threads);
    return FS_OK;
}
