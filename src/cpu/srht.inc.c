/* srht.inc.c - the SRHT in N (log2 L + k / L) additions a column, without an array of N.
 *
 * Rows of A come in segments of L = 2^p at multiples of L.  For row r of H and column j of segment c, the sign is that
 * of (r mod L, j mod L) times that of (floor(r / L), c): so a segment is transformed by a Hadamard matrix of order L, in
 * cache and in place, and each of the k chosen rows takes one of its results, with a sign, into its sum.  L is about k:
 * then log2 N - log2 L levels are never computed, A is read once, and a row slice of A costs its own rows only. */
typedef struct NAME(hadamard) {
    const fsi_srht *H;
    uint64_t *picked; /* the k chosen rows of H */
    int p;            /* L = 2^p */
    int64_t width;    /* columns of a tile: a multiple of LANES that keeps L x width in 256 KiB */
} NAME(hadamard);

/* The Walsh-Hadamard transform down the L rows of a tile: three levels at a time while eight rows fit in registers. */
static void NAME(hadamard_transform)(SUM *tile, int64_t L, int64_t width)
{
    int64_t step = 1;
    for (; step * 8 <= L; step *= 8)
        for (int64_t base = 0; base < L; base += 8 * step)
            for (int64_t r = base; r < base + step; r++)
                for (int64_t c = 0; c < width; c += LANES) {
                    VEC v[8];
                    for (int i = 0; i < 8; i++) v[i] = *(VEC *)(tile + (r + i * step) * width + c);
                    for (int half = 1; half < 8; half *= 2)
                        for (int i = 0; i < 8; i++)
                            if (!(i & half)) {
                                const VEC a = v[i], b = v[i + half];
                                v[i] = a + b;
                                v[i + half] = a - b;
                            }
                    for (int i = 0; i < 8; i++) *(VEC *)(tile + (r + i * step) * width + c) = v[i];
                }
    for (; step < L; step *= 2)
        for (int64_t base = 0; base < L; base += 2 * step)
            for (int64_t r = base; r < base + step; r++)
                for (int64_t c = 0; c < width; c += LANES) {
                    VEC *low = (VEC *)(tile + r * width + c), *high = (VEC *)(tile + (r + step) * width + c);
                    const VEC a = *low, b = *high;
                    *low = a + b;
                    *high = a - b;
                }
}

/* Negates the rows that D negates: row r of the tile is column j0 + r of S. */
static void NAME(hadamard_flip)(const fsi_srht *H, int64_t j0, int64_t rows, int64_t width, SUM *tile)
{
    for (int64_t r = 0; r < rows; r++)
        if (fsi_srht_flip(H, j0 + r))
            for (int64_t c = 0; c < width; c++) tile[r * width + c] = -tile[r * width + c];
}

/* The rows of segment c that are in row0 ... row0 + rows - 1: the first one, and how many. */
static int64_t NAME(segment_rows)(int64_t c, int64_t L, int64_t row0, int64_t rows, int64_t *first)
{
    *first = c * L > row0 ? c * L : row0;
    return fsi_min64((c + 1) * L, row0 + rows) - *first;
}

/* sums (k x width) += the segment's share, tile L x width is scratch. */
static void NAME(hadamard_segment)(const NAME(hadamard) * C, const fs_matrix *A, const fs_rows *list, int64_t row0,
                                   int64_t c, int64_t col, SUM *tile, SUM *sums)
{
    const int64_t L = (int64_t)1 << C->p, width = C->width;
    int64_t first;
    const int64_t rows = NAME(segment_rows)(c, L, row0, A->rows, &first);
    SUM *at = tile + (first - c * L) * width;
    memset(tile, 0, (size_t)(L * width) * sizeof(SUM));
    NAME(load_tile)(A, list, first - row0, rows, col, fsi_min64(width, A->cols - col), width, at);
    NAME(hadamard_flip)(C->H, first, rows, width, at);
    NAME(hadamard_transform)(tile, L, width);
    for (int64_t i = 0; i < C->H->k; i++) {
        const SUM sign = fsi_hadamard_minus(C->picked[i] >> C->p, (uint64_t)c) ? -1 : 1;
        const VEC *from = (const VEC *)(tile + (int64_t)(C->picked[i] & (uint64_t)(L - 1)) * width);
        VEC *to = (VEC *)(sums + i * width);
        for (int64_t v = 0; v < width / LANES; v++) to[v] += from[v] * sign;
    }
}

static NAME(hadamard) NAME(hadamard_call)(const fsi_srht *H, int64_t cols)
{
    NAME(hadamard) C = {H, NULL, 8, 0};
    while (C.p < 12 && ((int64_t)1 << C.p) < H->k) C.p++;
    while (((int64_t)1 << C.p) > H->N) C.p--;
    C.width = fsi_min64((1 << 18) / (int)sizeof(SUM) >> C.p, 8 * LANES) / LANES * LANES;
    C.width = fsi_min64(C.width, fsi_round_up(cols, LANES));
    return C;
}
static void NAME(hadamard_pick)(NAME(hadamard) * C, void *memory)
{
    C->picked = memory;
    for (int64_t i = 0; i < C->H->k; i++) C->picked[i] = fsi_srht_row(C->H, i);
}

/* Scratch: 8 k bytes, and for each task at work a tile of at most 256 KiB and sums of k x width.  Few tasks: the
 * segments are cut into slices, always at the same positions, whose sums are kept (64 MiB at most) and added in
 * order. */
static fs_result NAME(hadamard_apply)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                                      const fs_rows *list, double beta, const fs_matrix *Y)
{
    NAME(hadamard) C = NAME(hadamard_call)(&S->u.srht, A->cols);
    if (A->cols == 0) return FS_OK;
    const int64_t groups = (A->cols + C.width - 1) / C.width, sums_each = C.H->k * C.width;
    const int64_t kept_bytes = groups * FEW_TASKS * sums_each * (int64_t)sizeof(SUM);
    const int64_t pieces = groups < FEW_TASKS && kept_bytes <= (int64_t)1 << 26 ? FEW_TASKS : 1;
    const int64_t tile_each = C.width << C.p, slots = pieces > 1 ? groups * pieces : cpu->threads;
    const int64_t pick_bytes = fsi_round_up(8 * C.H->k, 64);
    char *memory = fsi_cpu_scratch(cpu,
                                   pick_bytes + (cpu->threads * tile_each + slots * sums_each) * (int64_t)sizeof(SUM));
    if (!memory) return FS_ENOMEM;
    NAME(hadamard_pick)(&C, memory);
    SUM *tiles = (SUM *)(memory + pick_bytes), *all = tiles + cpu->threads * tile_each;
    const int64_t first = row0 >> C.p, segments = A->rows ? ((row0 + A->rows - 1) >> C.p) - first + 1 : 0;
    const SUM scale = (SUM)(alpha * S->scale);
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
    for (int64_t task = 0; task < groups * pieces; task++) {
        const int64_t thread = omp_get_thread_num(), col = task / pieces * C.width, piece = task % pieces;
        SUM *sums = all + (pieces > 1 ? task : thread) * sums_each;
        memset(sums, 0, (size_t)sums_each * sizeof(SUM));
        for (int64_t c = segments * piece / pieces; c < segments * (piece + 1) / pieces; c++)
            NAME(hadamard_segment)(&C, A, list, row0, first + c, col, tiles + thread * tile_each, sums);
        if (pieces == 1)
            NAME(store_tile)(Y, 0, C.H->k, col, fsi_min64(C.width, A->cols - col), C.width, sums, scale, (SUM)beta);
    }
    for (int64_t group = 0; pieces > 1 && group < groups; group++) {
        SUM *sums = all + group * pieces * sums_each;
        for (int64_t p = 1; p < pieces; p++)
            for (int64_t i = 0; i < sums_each; i++) sums[i] += sums[p * sums_each + i];
        const int64_t col = group * C.width;
        NAME(store_tile)(Y, 0, C.H->k, col, fsi_min64(C.width, A->cols - col), C.width, sums, scale, (SUM)beta);
    }
    return FS_OK;
}

/* The adjoint reverses the steps: the k rows of Y are stored where they were taken from, then the segment is
 * transformed (H is symmetric) and its signs are applied.  Scratch: 8 k bytes, k x width sums for Y, a tile per
 * thread. */
static fs_result NAME(hadamard_adjoint)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *Y,
                                        double beta, const fs_matrix *X)
{
    NAME(hadamard) C = NAME(hadamard_call)(&S->u.srht, X->cols);
    if (X->cols == 0 || X->rows == 0) return FS_OK;
    const int64_t width = C.width, tile_each = width << C.p, L = (int64_t)1 << C.p, k = C.H->k;
    const int64_t pick_bytes = fsi_round_up(8 * k, 64);
    char *memory = fsi_cpu_scratch(cpu, pick_bytes + (cpu->threads * tile_each + k * width) * (int64_t)sizeof(SUM));
    if (!memory) return FS_ENOMEM;
    NAME(hadamard_pick)(&C, memory);
    SUM *tiles = (SUM *)(memory + pick_bytes), *from = tiles + cpu->threads * tile_each;
    const int64_t first = row0 >> C.p, last = (row0 + X->rows - 1) >> C.p;
    for (int64_t col = 0; col < X->cols; col += width) {
        const int64_t cols = fsi_min64(width, X->cols - col);
        NAME(load_tile)(Y, NULL, 0, k, col, cols, width, from);
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
        for (int64_t c = first; c <= last; c++) {
            SUM *tile = tiles + omp_get_thread_num() * tile_each;
            int64_t row;
            const int64_t rows = NAME(segment_rows)(c, L, row0, X->rows, &row);
            memset(tile, 0, (size_t)tile_each * sizeof(SUM));
            for (int64_t i = 0; i < k; i++) {
                const SUM sign = fsi_hadamard_minus(C.picked[i] >> C.p, (uint64_t)c) ? -1 : 1;
                SUM *to = tile + (int64_t)(C.picked[i] & (uint64_t)(L - 1)) * width;
                for (int64_t v = 0; v < width; v++) to[v] += sign * from[i * width + v];
            }
            NAME(hadamard_transform)(tile, L, width);
            SUM *at = tile + (row - c * L) * width;
            NAME(hadamard_flip)(C.H, row, rows, width, at);
            NAME(store_tile)(X, row - row0, rows, col, cols, width, at, (SUM)(alpha * S->scale), (SUM)beta);
        }
    }
    return FS_OK;
}
