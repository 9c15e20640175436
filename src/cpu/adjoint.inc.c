/* adjoint.inc.c - X = S' Y for BlockPerm-SJLT: every row of X is a signed sum of kappa s rows of Y.
 *
 * A tile of columns of Y (k rows, in cache) serves all rows of X; the nonzeros come from a table, computed once for all
 * columns.  No sum is shared, so rows of X are computed in parallel. */
static void NAME(adjoint_rows)(const fs_matrix *X, int64_t row, int64_t rows, int64_t col, const SUM *tile,
                               const uint32_t *code, int64_t nonzeros, SUM scale, SUM beta)
{
    static const SUM sign[2] = {1, -1};
    SUM sums[LANES * TILE] __attribute__((aligned(64)));
    for (int64_t r0 = 0; r0 < rows; r0 += LANES) {
        const int64_t count = fsi_min64(LANES, rows - r0);
        for (int64_t r = 0; r < count; r++) {
            VEC sum[TILE_VECTORS];
            for (int v = 0; v < TILE_VECTORS; v++) sum[v] = (VEC){0};
            for (int64_t t = 0; t < nonzeros; t++, code++) {
                const VEC *y = (const VEC *)(tile + (int64_t)(*code >> 1) * TILE);
                const SUM pm = sign[*code & 1];
                for (int v = 0; v < TILE_VECTORS; v++) sum[v] = NAME(add_signed)(sum[v], y[v], pm);
            }
            memcpy(sums + r * TILE, sum, sizeof sum);
        }
        NAME(store_tile)(X, row + r0, count, col, fsi_min64(TILE, X->cols - col), TILE, sums, scale, beta);
    }
}

/* Scratch: the table (4 MiB, more only if kappa s is over a million) and k x TILE sums. */
static fs_result NAME(sjlt_adjoint)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *Y,
                                    double beta, const fs_matrix *X)
{
    enum { ROWS = 512 };
    const fsi_blockperm *B = &S->u.blockperm;
    const int64_t nonzeros = B->kappa * B->s, per_turn = TABLE_ENTRIES / nonzeros + 1;
    const int64_t table_bytes = fsi_round_up(4 * fsi_min64(X->rows, per_turn) * nonzeros, 64);
    char *memory = fsi_cpu_scratch(cpu, table_bytes + B->k * TILE * (int64_t)sizeof(SUM));
    if (!memory) return FS_ENOMEM;
    uint32_t *table = (uint32_t *)memory;
    SUM *tile = (SUM *)(memory + table_bytes);
    const SUM scale = (SUM)(alpha * S->scale);
    for (int64_t j0 = 0; j0 < X->rows; j0 += per_turn) {
        const int64_t here = fsi_min64(per_turn, X->rows - j0), pieces = (here + ROWS - 1) / ROWS;
        table_fill(B, row0 + j0, here, table, cpu->threads);
        for (int64_t col = 0; col < X->cols; col += TILE) {
            NAME(load_tile)(Y, NULL, 0, B->k, col, fsi_min64(TILE, X->cols - col), TILE, tile);
#pragma omp parallel for num_threads(cpu->threads) schedule(static)
            for (int64_t p = 0; p < pieces; p++) {
                NAME(adjoint_rows)
                (X, j0 + p * ROWS, fsi_min64(ROWS, here - p * ROWS), col, tile, table + p * ROWS * nonzeros, nonzeros,
                 scale, (SUM)beta);
            }
        }
    }
    return FS_OK;
}
