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
    SUM *tile, *sums;
} NAME(gathering);

static int64_t NAME(gathering_bytes)(const NAME(product) * P, int64_t sums)
{
    const int64_t rows = P->cut.rows, tile = (rows + 1) * P->width;
    return fsi_round_up(rows * 32 + 80, 64) + fsi_round_up(P->B->kappa * (int64_t)sizeof(chunk), 64) +
           P->B->kappa * chunk_bytes(P->B, &P->cut) + fsi_round_up((tile + sums) * (int64_t)sizeof(SUM), 64);
}
static NAME(gathering) NAME(gathering_at)(const NAME(product) * P, char *memory)
{
    const int64_t rows = P->cut.rows, width = P->width, each = chunk_bytes(P->B, &P->cut);
    NAME(gathering) G;
    G.column = (int64_t *)memory;
    G.where[0] = G.column + rows;
    G.where[1] = G.where[0] + rows + 1;
    G.round = (fsi_round *)(G.where[1] + rows + 1);
    G.where[0][rows] = G.where[1][rows] = NO_ROW; /* which entries without a nonzero name */
    memory += fsi_round_up(rows * 32 + 80, 64);
    G.chunks = (chunk *)memory;
    memory += fsi_round_up(P->B->kappa * (int64_t)sizeof(chunk), 64);
    for (int64_t l = 0; l < P->B->kappa; l++) G.chunks[l] = chunk_at(memory + l * each, P->B, &P->cut);
    G.tile = (SUM *)(memory + P->B->kappa * each);
    G.sums = G.tile + (rows + 1) * width;
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

/* Where a thread has sums of a block, from the first tile on: of block number p of the cycle; under permutation l, of
 * the present piece and of all pieces up to it. */
static int64_t NAME(gather_pitch)(const NAME(product) * P) /* from tile to tile */
{
    return (P->apart ? P->B->k : P->B->out.small + (P->B->out.larger > 0)) * P->width;
}
static SUM *NAME(gather_row)(const NAME(product) * P, const NAME(gathering) * G, int64_t p)
{
    return G->sums + p % P->B->kappa * P->tiles * NAME(gather_pitch)(P);
}
static SUM *NAME(gather_piece)(const NAME(product) * P, const NAME(gathering) * G, int64_t l)
{
    return G->sums + (P->B->kappa + l - 1) * P->tiles * NAME(gather_pitch)(P);
}
static SUM *NAME(gather_pieces)(const NAME(product) * P, const NAME(gathering) * G, int64_t l)
{
    return G->sums + (2 * P->B->kappa + l - 1) * P->tiles * NAME(gather_pitch)(P);
}
static int64_t NAME(gather_sums)(const NAME(product) * P)
{
    const int64_t kappa = P->B->kappa, blocks = kappa > 1 && P->pieces > 1 ? 3 * kappa : 2 * kappa;
    return P->apart ? 0 : blocks * P->tiles * NAME(gather_pitch)(P);
}

/* Input block h, which feeds output blocks number p - 1, ..., p - kappa of the cycle, those of them in begin ... end -
 * 1. */
typedef struct NAME(feeding) {
    const uint32_t *cycle;
    int64_t panel, p, begin, end;
} NAME(feeding);

static int NAME(feeds)(const NAME(feeding) * F, int64_t l) { return F->p - l >= F->begin && F->p - l < F->end; }
static int64_t NAME(fed)(const NAME(feeding) * F, int64_t M, int64_t l) { return F->cycle[(F->p - l) % M]; }
/* Where the sums of a piece are, in memory where pieces are apart. */
static SUM *NAME(gather_where_sums)(const NAME(product) * P, const NAME(gathering) * G, const NAME(feeding) * F,
                                    int64_t piece, int64_t l)
{
    if (!P->apart) return NAME(gather_piece)(P, G, l);
    const int64_t g = NAME(fed)(F, P->B->M, l);
    return NAME(product_sums)(P, l, piece, F->panel) + fsi_split_start(&P->B->out, g) * P->width;
}

/* sums += (chunk of S) A for rows of A where they are, `cols` columns from A on, which is quicker than by way of a tile
 * where each is read once; fetches its share of `next` for each output row. */
static inline __attribute__((always_inline)) void NAME(gather_once_by)(const chunk *c, const char *A,
                                                                       const int64_t *where, int64_t cols, SUM *sums,
                                                                       ahead *next, const int vectors)
{
    const int each = c->each;
    const uint32_t *entry = c->entry;
    const int64_t full = cols / LANES < vectors ? cols / LANES : vectors;
    const int64_t some = full < vectors ? cols - full * LANES : 0;
    for (int64_t i = 0; i < c->groups; i++, entry += each) {
        VEC *at = (VEC *)(sums + (int64_t)c->row[i] * vectors * LANES), sum[MOST_VECTORS];
        fetch(next);
        for (int v = 0; v < vectors; v++) sum[v] = at[v];
        for (int e = 0; e < each; e++) {
            const int64_t row = where[entry[e] >> 1];
            if (row == NO_ROW) continue;
            const ELEM *x = (const ELEM *)(A + row);
            const SUM pm = NAME(unit)(entry[e]);
            if (full == vectors)
                for (int v = 0; v < vectors; v++) sum[v] = NAME(add_signed)(sum[v], NAME(vector)(x + v * LANES), pm);
            else
                for (int v = 0; v < vectors; v++)
                    if (v < full) sum[v] = NAME(add_signed)(sum[v], NAME(vector)(x + v * LANES), pm);
                    else if (v == full && some)
                        sum[v] = NAME(add_signed)(sum[v], NAME(vector_first)(x + v * LANES, some), pm);
        }
        for (int v = 0; v < vectors; v++) at[v] = sum[v];
    }
}
#define ONCE(vectors) \
    case vectors: NAME(gather_once_by)(c, A, where, cols, sums, next, vectors); break;
static void NAME(gather_once)(const chunk *c, const char *A, const int64_t *where, int64_t cols, SUM *sums, ahead *next,
                              int vectors)
{
    switch (vectors) {
        ONCE(1)
        ONCE(2)
        ONCE(3)
        ONCE(4)
        ONCE(5)
        ONCE(6)
        ONCE(7)
        ONCE(8)
    }
}
#undef ONCE

/* The chunk whose rows of A are G->where[ready], times its tiles; next_rows rows in the other list come next. */
static void NAME(gather_chunk)(const NAME(product) * P, NAME(gathering) * G, const NAME(feeding) * F, int64_t piece,
                               int64_t i, int ready, int rows, int next_rows)
{
    const fsi_blockperm *B = P->B;
    const int64_t cols = NAME(product_cols)(P, F->panel), width = P->width;
    const char *A = (const char *)P->A->data + F->panel * P->panel_cols * (int64_t)sizeof(ELEM);
    const int tiles = NAME(product_tiles)(P, F->panel);
    const int64_t outputs = fsi_min64(F->end, F->p) - fsi_max(F->begin, F->p - B->kappa);
    for (int64_t l = 1; l <= B->kappa; l++)
        if (NAME(feeds)(F, l))
            chunk_fill(&G->chunks[l - 1], B, &P->cut, i, l, F->cycle[F->p % B->M], NAME(fed)(F, B->M, l));
    for (int t = 0; t < tiles; t++) {
        const int over = t + 1 == tiles; /* what comes next is the next chunk's */
        const int64_t col = over ? 0 : (t + 1) * width, left = fsi_min64(width, cols - col);
        ahead next = ahead_of(A + col * (int64_t)sizeof(ELEM), G->where[over ? !ready : ready], 0,
                              over ? next_rows : rows, left * (int64_t)sizeof(ELEM),
                              outputs * chunk_groups(B, &P->cut, i));
        if (P->once) {
            SUM *sums = NAME(gather_where_sums)(P, G, F, piece, 1) + t * NAME(gather_pitch)(P);
            NAME(gather_once)
            (&G->chunks[0], A + t * width * (int64_t)sizeof(ELEM), G->where[ready], cols - t * width, sums, &next,
             P->vectors);
            continue;
        }
        NAME(gather_tile)
        (A + t * width * (int64_t)sizeof(ELEM), G->where[ready], rows, cols - t * width, P->vectors, G->tile);
        for (int64_t l = 1; l <= B->kappa; l++) {
            if (!NAME(feeds)(F, l)) continue;
            SUM *sums = NAME(gather_where_sums)(P, G, F, piece, l);
            NAME(multiply)(&G->chunks[l - 1], G->tile, sums + t * NAME(gather_pitch)(P), &next, P->vectors);
        }
    }
}

/* Clears the sums of a piece. */
static void NAME(gather_clear)(const NAME(product) * P, const NAME(gathering) * G, const NAME(feeding) * F,
                               int64_t piece)
{
    const fsi_blockperm *B = P->B;
    for (int64_t l = 1; l <= B->kappa; l++) {
        if (!NAME(feeds)(F, l)) continue;
        const int64_t g = NAME(fed)(F, B->M, l);
        SUM *sums = NAME(gather_where_sums)(P, G, F, piece, l);
        for (int t = 0; t < NAME(product_tiles)(P, F->panel); t++)
            memset(sums + t * NAME(gather_pitch)(P), 0, (size_t)(fsi_split_size(&B->out, g) * P->width) * sizeof(SUM));
    }
}

/* Pieces from ... to - 1 of an input block. */
static void NAME(gather_block)(const NAME(product) * P, NAME(gathering) * G, const NAME(feeding) * F, int64_t from,
                               int64_t to)
{
    const fsi_blockperm *B = P->B;
    const int64_t h = F->cycle[F->p % B->M];
    const int64_t all = NAME(product_tiles)(P, F->panel) * NAME(gather_pitch)(P);
    int64_t first, last, unused;
    chunks_of(B, &P->cut, h, P->row0, P->A->rows, from, P->pieces, &first, &unused);
    chunks_of(B, &P->cut, h, P->row0, P->A->rows, to - 1, P->pieces, &unused, &last);
    int ready = 0, rows = first < last ? NAME(gather_where)(P, G, h, first, G->where[0]) : 0;
    for (int64_t piece = from, i = first; piece < to; piece++) {
        int64_t end;
        chunks_of(B, &P->cut, h, P->row0, P->A->rows, piece, P->pieces, &unused, &end);
        NAME(gather_clear)(P, G, F, piece);
        for (; i < end; i++) {
            const int next_rows = i + 1 < last ? NAME(gather_where)(P, G, h, i + 1, G->where[!ready]) : 0;
            NAME(gather_chunk)(P, G, F, piece, i, ready, rows, next_rows);
            ready = !ready;
            rows = next_rows;
        }
        for (int64_t l = 1; l <= B->kappa && !P->apart; l++) {
            if (!NAME(feeds)(F, l)) continue;
            SUM *sums = l == 1 || P->pieces == 1 ? NAME(gather_row)(P, G, F->p - l) : NAME(gather_pieces)(P, G, l);
            if (piece == 0 && l > 1 && P->pieces > 1) memset(sums, 0, (size_t)all * sizeof(SUM));
            NAME(add_sums)(sums, NAME(gather_piece)(P, G, l), all);
        }
    }
    for (int64_t l = 2; l <= B->kappa && !P->apart && P->pieces > 1; l++)
        if (NAME(feeds)(F, l)) NAME(add_sums)(NAME(gather_row)(P, G, F->p - l), NAME(gather_pieces)(P, G, l), all);
}

/* Output blocks number begin ... end - 1 of the cycle. */
static void NAME(gather_task)(const NAME(product) * P, NAME(gathering) * G, const uint32_t *cycle, int64_t piece,
                              int64_t panel, int64_t begin, int64_t end)
{
    const fsi_blockperm *B = P->B;
    const int64_t all = NAME(product_tiles)(P, panel) * NAME(gather_pitch)(P);
    for (int64_t p = begin + 1; p < end + B->kappa; p++) {
        const NAME(feeding) F = {cycle, panel, p, begin, end};
        if (p <= end && !P->apart) memset(NAME(gather_row)(P, G, p - 1), 0, (size_t)all * sizeof(SUM));
        NAME(gather_block)(P, G, &F, P->apart ? piece : 0, P->apart ? piece + 1 : P->pieces);
        if (p - B->kappa < begin || P->apart) continue;
        const int64_t g = cycle[(p - B->kappa) % B->M];
        NAME(product_store)
        (P, panel, fsi_split_start(&B->out, g), fsi_split_size(&B->out, g), NAME(gather_row)(P, G, p - B->kappa),
         NAME(gather_pitch)(P));
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
 * sums of two or three times kappa blocks (256 KiB, or 4 vectors a row, for kappa); where there are few blocks, the
 * sums of all pieces (256 MiB at most). */
static fs_result NAME(gather_apply)(fsi_cpu *cpu, NAME(product) * P)
{
    const fsi_blockperm *B = P->B;
    P->once = B->kappa == 1 && B->s <= (sizeof(ELEM) == 2 ? 4 : 2) && B->window <= LONG_WINDOW;
    P->cut = chunking_of(
        B, fsi_max(fsi_min64(CHUNK_WINDOWS, (P->once ? GATHER_ROWS : CHUNK_ROWS) / B->window), CHUNK_FEWEST),
        GATHER_ROWS);
    NAME(gather_cut)(P);
    P->panel_sums = P->tiles * B->k * P->width;
    P->pieces = NAME(product_pieces)(P);
    const int64_t all = NAME(product_bytes)(P, B->M * P->panels, cpu->threads), pieces = P->apart ? P->pieces : 1;
    const int64_t segment = B->kappa == 1 ? 1 : fsi_max(B->M * P->panels * pieces / (4 * cpu->threads), 1);
    const int64_t segments = fsi_div_up(B->M, fsi_min64(segment, B->M));
    const int64_t each = NAME(gathering_bytes)(P, NAME(gather_sums)(P)), cycle_bytes = fsi_round_up(4 * B->M, 64);
    char *memory = fsi_cpu_scratch(cpu, cycle_bytes + cpu->threads * each + all);
    if (!memory) return FS_ENOMEM;
    uint32_t *cycle = (uint32_t *)memory;
    memory += cycle_bytes;
    P->sums = (SUM *)(memory + cpu->threads * each);
    cycle[0] = 0;
    for (int64_t p = 1; p < B->M; p++) cycle[p] = fsi_wiring_next(&B->wiring, cycle[p - 1]);
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
    for (int64_t task = 0; task < segments * P->panels * pieces; task++) {
        const int64_t s = task % segments, panel = task / segments % P->panels, piece = task / segments / P->panels;
        NAME(gathering) G = NAME(gathering_at)(P, memory + omp_get_thread_num() * each);
        NAME(gather_task)(P, &G, cycle, piece, panel, B->M * s / segments, B->M * (s + 1) / segments);
    }
    if (P->apart) NAME(product_finish)(P, cpu->threads);
    return FS_OK;
}
