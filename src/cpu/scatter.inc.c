/* scatter.inc.c - BlockPerm-SJLT when a column of A is contiguous (column-major A, or a batch n x d of gradients).
 *
 * Task (LANES columns of A, that is samples): LANES coordinates of LANES samples are loaded as they lie and transposed in
 * registers, so that one vector holds one coordinate of all samples; it is added to the rows of sums that its
 * column of S names.  The sums of a task are k rows of one vector each: 64 KiB at k = 1024, in cache.  A is read
 * once, in whole lines.  The nonzeros come from a table, computed once for all samples. */

/* sums[row][lane] += sign x: coordinates [first, last) of `samples` samples that start at x and are `pitch` apart. */
static void NAME(scatter_block)(const ELEM *x, int64_t pitch, int64_t samples, int64_t first, int64_t last,
                                const uint32_t *table, int nonzeros, SUM *sums)
{
    static const SUM sign[2] = {1, -1};
    for (int64_t j = first; j < last; j += LANES) {
        VEC v[LANES];
        const int64_t count = fsi_min64(LANES, last - j);
        if (count == LANES && samples == LANES)
            for (int i = 0; i < LANES; i++) v[i] = NAME(vector)(x + i * pitch + j);
        else
            for (int i = 0; i < LANES; i++)
                v[i] = NAME(vector_some)(x + (i < samples ? i * pitch + j : 0), 1, i < samples ? count : 0);
        NAME(transpose)(v);
        const uint32_t *code = table + j * nonzeros;
        for (int64_t c = 0; c < count; c++)
            for (int t = 0; t < nonzeros; t++, code++) {
                VEC *at = (VEC *)(sums + (int64_t)(*code >> 1) * LANES);
                *at = NAME(add_signed)(*at, v[c], sign[*code & 1]);
            }
    }
}

/* The same where coordinate j is at place fsi_row_at(list, j) of a sample: a vector of it is LANES loads, and of the
 * other coordinates only those are read that share a cache line with a gathered one.  Cache lines are fetched four
 * coordinates ahead: none ahead, and eight, were slower. */
static void NAME(scatter_listed)(const ELEM *x, int64_t pitch, int64_t samples, const fs_rows *list, int64_t j0,
                                 int64_t first, int64_t last, const uint32_t *table, int nonzeros, SUM *sums)
{
    enum { AHEAD = 4 };
    static const SUM sign[2] = {1, -1};
    const uint32_t *code = table + first * nonzeros;
    for (int64_t j = first; j < last; j++) {
        const ELEM *at = x + fsi_row_at(list, j0 + j),
                   *then = x + fsi_row_at(list, j0 + fsi_min64(j + AHEAD, last - 1));
        for (int64_t i = 0; i < samples; i++) __builtin_prefetch(then + i * pitch, 0, 0);
        const VEC v = samples == LANES ? NAME(vector_some)(at, pitch, LANES) : NAME(vector_some)(at, pitch, samples);
        for (int t = 0; t < nonzeros; t++, code++) {
            VEC *to = (VEC *)(sums + (int64_t)(*code >> 1) * LANES);
            *to = NAME(add_signed)(*to, v, sign[*code & 1]);
        }
    }
}

/* One call, for all its tasks.  A task is one group of LANES samples and one of `pieces` slices of the coordinates:
 * with few groups the coordinates are cut too, always at the same positions, and the sums of slices are added in
 * order. */
typedef struct NAME(scatter) {
    const fs_matrix *A;
    const fs_rows *list; /* rows of A; NULL: all */
    const uint32_t *table;
    int nonzeros;
    int64_t pieces, sums_each;
    SUM *sums;
} NAME(scatter);

static void NAME(scatter_task)(const NAME(scatter) * C, int64_t j0, int64_t columns, int64_t group, int64_t piece,
                               SUM *sums)
{
    const int64_t col = group * LANES, cut = fsi_round_up((columns + C->pieces - 1) / C->pieces, LANES);
    const int64_t first = fsi_min64(piece * cut, columns), last = fsi_min64(first + cut, columns);
    const ELEM *x = (const ELEM *)C->A->data + col * C->A->col_stride;
    const int64_t pitch = C->A->col_stride, samples = fsi_min64(LANES, C->A->cols - col);
    if (C->list) NAME(scatter_listed)(x, pitch, samples, C->list, j0, first, last, C->table, C->nonzeros, sums);
    else NAME(scatter_block)(x + j0, pitch, samples, first, last, C->table, C->nonzeros, sums);
}

/* Scratch: the table (4 MiB, more only if kappa s is over a million), and sums of k vectors: per thread, or, where A
 * has more coordinates than the table or few samples, per task of a panel of samples (64 MiB, or one task). */
static fs_result NAME(scatter_apply)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                                     const fs_rows *list, double beta, const fs_matrix *Y)
{
    const fsi_blockperm *B = &S->u.blockperm;
    const int64_t nonzeros = B->kappa * B->s, groups = (A->cols + LANES - 1) / LANES;
    const int64_t per_turn = fsi_round_up(TABLE_ENTRIES / nonzeros + 1, LANES), columns = fsi_min64(A->rows, per_turn);
    const int64_t turns = A->rows > per_turn ? (A->rows - 1) / per_turn + 1 : 1;
    const int64_t sums_each = B->k * LANES, budget = ((int64_t)1 << 26) / (sums_each * (int64_t)sizeof(SUM));
    const int64_t pieces = groups < FEW_TASKS && groups * FEW_TASKS <= budget ? FEW_TASKS : 1;
    const int kept = turns > 1 || pieces > 1;
    const int64_t together = kept ? fsi_min64(groups, budget / pieces > 1 ? budget / pieces : 1) : groups;
    const int64_t slots = kept ? together * pieces : cpu->threads;
    const int64_t table_bytes = fsi_round_up(4 * columns * nonzeros, 64);
    char *memory = fsi_cpu_scratch(cpu, table_bytes + slots * sums_each * (int64_t)sizeof(SUM));
    if (!memory) return FS_ENOMEM;
    uint32_t *table = (uint32_t *)memory;
    const NAME(scatter) C = {A, list, table, (int)nonzeros, pieces, sums_each, (SUM *)(memory + table_bytes)};
    const SUM scale = (SUM)(alpha * S->scale);

    for (int64_t group0 = 0; group0 < groups; group0 += together) {
        const int64_t tasks = fsi_min64(together, groups - group0) * pieces;
        for (int64_t turn = 0; turn < turns; turn++) {
            const int64_t j0 = turn * per_turn, here = fsi_min64(per_turn, A->rows - j0);
            if (turns > 1 || group0 == 0) table_fill(B, row0 + j0, here, table, cpu->threads);
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
            for (int64_t task = 0; task < tasks; task++) {
                const int64_t group = group0 + task / pieces;
                SUM *sums = C.sums + (kept ? task : omp_get_thread_num()) * sums_each;
                if (turn == 0) memset(sums, 0, (size_t)sums_each * sizeof(SUM));
                NAME(scatter_task)(&C, j0, here, group, task % pieces, sums);
                if (!kept) {
                    NAME(store_tile)
                    (Y, 0, B->k, group * LANES, fsi_min64(LANES, A->cols - group * LANES), LANES, sums, scale,
                     (SUM)beta);
                }
            }
        }
        if (!kept) continue;
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
        for (int64_t task = 0; task < tasks; task += pieces) {
            SUM *sums = C.sums + task * sums_each;
            for (int64_t p = 1; p < pieces; p++)
                for (int64_t i = 0; i < sums_each; i++) sums[i] += sums[p * sums_each + i];
            const int64_t col = (group0 + task / pieces) * LANES;
            NAME(store_tile)(Y, 0, B->k, col, fsi_min64(LANES, A->cols - col), LANES, sums, scale, (SUM)beta);
        }
    }
    return FS_OK;
}
