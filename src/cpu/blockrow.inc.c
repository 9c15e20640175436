/* blockrow.inc.c - FlashBlockRow: a row of Y is a signed sum of the kappa s rows of A that it samples.
 *
 * Only sampled rows of A are read.  Blocks of A may have two sizes and so two weights (fsi_weights): each has sums of
 * its own, which are weighted and added at the end, as in the reference implementation. */
typedef struct NAME(blockrow) {
    const fsi_blockrow *R;
    const fs_matrix *A, *Y;
    const fs_rows *list; /* rows of A; NULL: all */
    int64_t row0;
    SUM weight[2];
    SUM beta;
} NAME(blockrow);

/* y = beta y + weight_0 sums_0 + weight_1 sums_1 */
static void NAME(blockrow_store)(const NAME(blockrow) * C, int64_t row, int64_t col, int64_t count, SUM *light,
                                 const SUM *heavy)
{
    if (C->weight[1] == 0) {
        NAME(store_row)(C->Y, row, col, count, light, C->weight[0], C->beta);
        return;
    }
    for (int64_t c = 0; c < count; c++) light[c] = C->weight[0] * light[c] + C->weight[1] * heavy[c];
    NAME(store_row)(C->Y, row, col, count, light, 1, C->beta);
}

/* Row i of Y, columns col ... col + TILE - 1. */
static void NAME(blockrow_row)(const NAME(blockrow) * C, const fsi_neighbours *neighbours, int64_t i, int64_t col)
{
    const fsi_blockrow *R = C->R;
    const int64_t count = fsi_min64(TILE, C->A->cols - col), stride = C->A->col_stride;
    VEC sum[2][TILE_VECTORS];
    memset(sum, 0, sizeof sum);
    for (int64_t l = 0; l < R->kappa; l++) {
        const int64_t h = fsi_blockrow_neighbour(neighbours, l);
        VEC *to = sum[h < R->in.larger];
        for (int64_t t = 0; t < R->s; t++) {
            int minus;
            const int64_t j = fsi_blockrow_draw(R, i, h, l * R->s + t, &minus) - C->row0;
            if (j < 0 || j >= C->A->rows) continue;
            const ELEM *x = (const ELEM *)C->A->data + fsi_row_at(C->list, j) * C->A->row_stride + col * stride;
            for (int64_t c = 0, v = 0; c < count; c += LANES, v++) {
                const VEC part = stride == 1 && count - c >= LANES
                                     ? NAME(vector)(x + c)
                                     : NAME(vector_some)(x + c * stride, stride, fsi_min64(LANES, count - c));
                to[v] += minus ? -part : part;
            }
        }
    }
    NAME(blockrow_store)(C, i, col, count, (SUM *)sum[0], (const SUM *)sum[1]);
}

static NAME(blockrow) NAME(blockrow_call)(const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                                          const fs_rows *list, double beta, const fs_matrix *Y)
{
    const fsi_weights w = fsi_weights_of(S);
    const NAME(blockrow)
        C = {&S->u.blockrow, A, Y, list, row0, {(SUM)(alpha * w.weight[0]), (SUM)(alpha * w.weight[1])}, (SUM)beta};
    return C;
}

static fs_result NAME(blockrow_apply)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                                      const fs_rows *list, double beta, const fs_matrix *Y)
{
    const NAME(blockrow) C = NAME(blockrow_call)(S, row0, alpha, A, list, beta, Y);
    const fsi_blockrow *R = C.R;
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
    for (int64_t g = 0; g < R->M; g++) {
        const fsi_neighbours neighbours = fsi_blockrow_neighbours(R, g);
        const int64_t start = fsi_split_start(&R->out, g), rows = fsi_split_size(&R->out, g);
        for (int64_t i = start; i < start + rows; i++)
            for (int64_t col = 0; col < A->cols; col += TILE) NAME(blockrow_row)(&C, &neighbours, i, col);
    }
    return FS_OK;
}

/* A in CSR.  Scratch: two rows of Y per thread. */
static fs_result NAME(blockrow_sparse)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A,
                                       double beta, const fs_matrix *Y)
{
    const NAME(blockrow) C = NAME(blockrow_call)(S, row0, alpha, NULL, NULL, beta, Y);
    const fsi_blockrow *R = C.R;
    const int64_t width = fsi_round_up(A->cols, LANES);
    SUM *memory = fsi_cpu_scratch(cpu, cpu->threads * 2 * width * (int64_t)sizeof(SUM));
    if (!memory) return FS_ENOMEM;
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic, 16)
    for (int64_t i = 0; i < R->k; i++) {
        const fsi_neighbours neighbours = fsi_blockrow_neighbours(R, fsi_split_index(&R->out, i));
        SUM *sums = memory + omp_get_thread_num() * 2 * width;
        memset(sums, 0, (size_t)(2 * width) * sizeof(SUM));
        for (int64_t e = 0; e < R->kappa * R->s; e++) {
            int minus;
            const int64_t h = fsi_blockrow_neighbour(&neighbours, e / R->s);
            const int64_t j = fsi_blockrow_draw(R, i, h, e, &minus) - row0;
            if (j >= 0 && j < A->rows) NAME(sparse_add)(A, j, minus ? -1 : 1, sums + (h < R->in.larger ? width : 0));
        }
        NAME(blockrow_store)(&C, i, 0, A->cols, sums, sums + width);
    }
    return FS_OK;
}
