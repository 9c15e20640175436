/* sparse.inc.c - BlockPerm-SJLT of a sparse A: a stored element goes to the kappa s rows its row of A goes to.
 *
 * CSR: the rows of A are sorted by input block, and a task computes one output block, or, when there are few blocks,
 * one of its s strata; no two tasks share a row of Y. CSC: a task computes one column of Y. */
typedef struct NAME(sparse_call) {
    const fsi_blockperm *B;
    const fs_sparse *A;
    const fs_matrix *Y;
    int64_t row0;
    SUM scale, beta;
    int64_t parts; /* tasks that an output block is cut into: 1 or s */
} NAME(sparse_call);

/* sums[row][column] += sign value, for the stored elements of row i of A. */
static void NAME(sparse_add)(const fs_sparse *A, int64_t i, SUM sign, SUM *sums)
{
    const ELEM *value = A->value;
    const int64_t end = fsi_index_load(A->ptr, A->index_type, i + 1);
    for (int64_t e = fsi_index_load(A->ptr, A->index_type, i); e < end; e++)
        sums[fsi_index_load(A->index, A->index_type, e)] += sign * TO_SUM(value[e]);
}

static int NAME(sparse_is_empty)(const fs_sparse *A, int64_t i)
{
    return fsi_index_load(A->ptr, A->index_type, i) == fsi_index_load(A->ptr, A->index_type, i + 1);
}

static void NAME(sparse_task)(const NAME(sparse_call) * C, const buckets *b, int64_t g, int64_t part, SUM *sums)
{
    const fsi_blockperm *B = C->B;
    const int64_t start = fsi_split_start(&B->out, g), rows = fsi_split_size(&B->out, g), n = C->A->cols;
    const fsi_split *parts = &B->strata[rows - B->out.small];
    const int64_t low = C->parts > 1 ? fsi_split_start(parts, part) : 0;
    const int64_t high = C->parts > 1 ? low + fsi_split_size(parts, part) : rows;
    const int64_t first = C->parts > 1 ? part / B->per_band : 0, last = C->parts > 1 ? first + 1 : B->bands;
    memset(sums, 0, (size_t)((high - low) * n) * sizeof(SUM));
    uint32_t h = (uint32_t)g, code[FSI_MAX_PER_BAND];
    for (int64_t l = 1; l <= B->kappa; l++) {
        h = fsi_wiring_next(&B->wiring, h);
        for (int64_t i = b->start[h]; i < b->start[h + 1]; i++) {
            if (NAME(sparse_is_empty)(C->A, b->rows[i])) continue; /* before its random words are drawn */
            const int64_t u = fsi_blockperm_local_row(B, h, C->row0 + b->rows[i]);
            for (int64_t q = first; q < last; q++) {
                const int count = fsi_blockperm_nonzeros(B, h, u, l, q, rows, code, 1);
                for (int t = 0; t < count; t++) {
                    const int64_t r = code[t] >> 1;
                    if (r >= low && r < high)
                        NAME(sparse_add)(C->A, b->rows[i], code[t] & 1 ? -1 : 1, sums + (r - low) * n);
                }
            }
        }
    }
    for (int64_t r = low; r < high; r++)
        NAME(store_row)(C->Y, start + r, 0, n, sums + (r - low) * n, C->scale, C->beta);
}

/* Scratch: 8 bytes for each row of A, and per thread the sums of one task: the rows of Y of a block, or of one
 * stratum. */
static fs_result NAME(sparse_rows)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A,
                                   double beta, const fs_matrix *Y)
{
    const fsi_blockperm *B = &S->u.blockperm;
    const int64_t parts = B->M < FEW_TASKS ? B->s : 1, tallest = (B->out.small + parts) / parts + (parts > 1);
    const NAME(sparse_call) C = {B, A, Y, row0, (SUM)(alpha * S->scale), (SUM)beta, parts};
    int64_t each = 0;
    const int64_t bucket_bytes = fsi_round_up(buckets_bytes(B, A->rows), 64);
    if (A->rows > INT32_MAX || __builtin_mul_overflow(tallest * (int64_t)sizeof(SUM), A->cols, &each))
        return fsi_cpu_reference.sparse(cpu, S, row0, alpha, A, beta, Y);
    each = fsi_round_up(each, 64);
    char *memory = fsi_cpu_scratch(cpu, bucket_bytes + cpu->threads * each);
    if (!memory) return FS_ENOMEM;
    const buckets b = buckets_at(memory, A->rows);
    buckets_fill(&b, B, row0, A->rows, cpu->threads);
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic)
    for (int64_t task = 0; task < B->M * parts; task++) {
        NAME(sparse_task)
        (&C, &b, task / parts, task % parts, (SUM *)(memory + bucket_bytes + omp_get_thread_num() * each));
    }
    return FS_OK;
}

/* One column of Y: sums[k]. */
static void NAME(sparse_column)(const NAME(sparse_call) * C, int64_t c, const uint32_t *table, SUM *sums)
{
    const fsi_blockperm *B = C->B;
    const fs_sparse *A = C->A;
    const int64_t nonzeros = B->kappa * B->s, end = fsi_index_load(A->ptr, A->index_type, c + 1);
    memset(sums, 0, (size_t)B->k * sizeof(SUM));
    for (int64_t e = fsi_index_load(A->ptr, A->index_type, c); e < end; e++) {
        const SUM x = TO_SUM(((const ELEM *)A->value)[e]);
        const uint32_t *code = table + fsi_index_load(A->index, A->index_type, e) * nonzeros;
        for (int64_t t = 0; t < nonzeros; t++) sums[code[t] >> 1] += code[t] & 1 ? -x : x;
    }
    fs_matrix turned = *C->Y;
    turned.row_stride = C->Y->col_stride;
    turned.col_stride = C->Y->row_stride;
    NAME(store_row)(&turned, c, 0, B->k, sums, C->scale, C->beta);
}

/* Scratch: the nonzeros of S in A's rows (4 kappa s bytes for each), and per thread a column of Y. */
static fs_result NAME(sparse_columns)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_sparse *A,
                                      double beta, const fs_matrix *Y)
{
    const fsi_blockperm *B = &S->u.blockperm;
    const NAME(sparse_call) C = {B, A, Y, row0, (SUM)(alpha * S->scale), (SUM)beta, 1};
    int64_t table_bytes = 0;
    if (__builtin_mul_overflow(A->rows, 4 * B->kappa * B->s, &table_bytes))
        return fsi_cpu_reference.sparse(cpu, S, row0, alpha, A, beta, Y);
    table_bytes = fsi_round_up(table_bytes, 64);
    const int64_t each = fsi_round_up(B->k * (int64_t)sizeof(SUM), 64);
    char *memory = fsi_cpu_scratch(cpu, table_bytes + cpu->threads * each);
    if (!memory) return FS_ENOMEM;
    table_fill(B, row0, A->rows, (uint32_t *)memory, cpu->threads);
#pragma omp parallel for num_threads(cpu->threads) schedule(dynamic, 16)
    for (int64_t c = 0; c < A->cols; c++) {
        NAME(sparse_column)
        (&C, c, (const uint32_t *)memory, (SUM *)(memory + table_bytes + omp_get_thread_num() * each));
    }
    return FS_OK;
}
