/* gaussian.inc.c - the dense Gaussian: panels of S are generated and multiplied, by OpenBLAS where it is installed.
 *
 * Panels of ROWS x INNER entries of S, tiles of INNER x n of A (converted to sums' type and row-major on the way) and
 * the ROWS x n sums are all that is held, for at most COLS columns at a time.  INNER is large because OpenBLAS has
 * threads of its own, and OpenMP's spin for a while after each parallel loop: short panels double the time. */
#define NORMAL_ROWS 512
#define NORMAL_INNER 4096
#define NORMAL_COLS 1024

/* panel[i][j] = z of row i0 + i, column j0 + j; i0 is a multiple of 4. */
static void NAME(normal_panel)(const fsi_gauss *G, int64_t i0, int64_t rows, int64_t j0, int64_t cols, SUM *panel,
                               int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < rows; i += 4)
        for (int64_t j = 0; j < cols; j += 64) {
            float z[4][64];
            const int64_t run = fsi_min64(64, cols - j);
            for (int64_t c = 0; c < run; c++) {
                float four[4];
                fsi_gauss_four(G, (i0 + i) >> 2, j0 + j + c, four);
                for (int r = 0; r < 4; r++) z[r][c] = four[r];
            }
            for (int64_t r = 0; r < fsi_min64(4, rows - i); r++)
                for (int64_t c = 0; c < run; c++) panel[(i + r) * NORMAL_INNER + j + c] = z[r][c];
        }
}

/* C (m x n, row-major, pitch n) += P B, or P' B: P is NORMAL_INNER wide. */
static void NAME(normal_multiply)(const fsi_cpu *cpu, int transposed, int64_t m, int64_t n, int64_t inner, const SUM *P,
                                  const SUM *B, SUM *C)
{
    const int op = transposed ? BLAS_TRANSPOSED : BLAS_PLAIN;
    if (SUM_BYTES == 4 && cpu->blas && cpu->blas->sgemm) {
        cpu->blas->sgemm(BLAS_ROWS, op, BLAS_PLAIN, (int)m, (int)n, (int)inner, 1, (const float *)P, NORMAL_INNER,
                         (const float *)B, (int)n, 1, (float *)C, (int)n);
        return;
    }
    if (SUM_BYTES == 8 && cpu->blas && cpu->blas->dgemm) {
        cpu->blas->dgemm(BLAS_ROWS, op, BLAS_PLAIN, (int)m, (int)n, (int)inner, 1, (const double *)P, NORMAL_INNER,
                         (const double *)B, (int)n, 1, (double *)C, (int)n);
        return;
    }
#pragma omp parallel for num_threads(cpu->threads) schedule(static)
    for (int64_t i = 0; i < m; i++)
        for (int64_t c = 0; c < n; c += LANES) {
            VEC sum = *(VEC *)(C + i * n + c);
            for (int64_t j = 0; j < inner; j++)
                sum += *(const VEC *)(B + j * n + c) * (transposed ? P[j * NORMAL_INNER + i] : P[i * NORMAL_INNER + j]);
            *(VEC *)(C + i * n + c) = sum;
        }
}

/* Scratch: 8 MiB for S, 16 MiB for A and 2 MiB for the sums at most (the adjoint: 2 and 16); twice that for f64. */
static SUM *NAME(normal_scratch)(fsi_cpu *cpu, int64_t cols, int64_t rows_of_B, SUM **B, SUM **C)
{
    const int64_t width = fsi_min64(NORMAL_COLS, fsi_round_up(cols, LANES));
    SUM *P = fsi_cpu_scratch(cpu, (NORMAL_ROWS * NORMAL_INNER + (NORMAL_INNER + NORMAL_ROWS) * width) *
                                      (int64_t)sizeof(SUM));
    if (!P) return NULL;
    *B = P + NORMAL_ROWS * NORMAL_INNER;
    *C = *B + rows_of_B * width;
    return P;
}

static void NAME(normal_load)(const fsi_cpu *cpu, const fs_matrix *A, const fs_rows *list, int64_t row, int64_t rows,
                              int64_t col, int64_t width, SUM *B)
{
    enum { PIECE = 32 };
#pragma omp parallel for num_threads(cpu->threads) schedule(static)
    for (int64_t r = 0; r < rows; r += PIECE) {
        NAME(load_tile)
        (A, list, row + r, fsi_min64(PIECE, rows - r), col, fsi_min64(width, A->cols - col), width, B + r * width);
    }
}

static fs_result NAME(normal_apply)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *A,
                                    const fs_rows *list, double beta, const fs_matrix *Y)
{
    const fsi_gauss *G = &S->u.gauss;
    SUM *B, *C, *P = NAME(normal_scratch)(cpu, A->cols, NORMAL_INNER, &B, &C);
    if (!P) return FS_ENOMEM;
    fsi_cpu_find_blas(cpu);
    for (int64_t col = 0; col < A->cols; col += NORMAL_COLS) {
        const int64_t cols = fsi_min64(NORMAL_COLS, A->cols - col), width = fsi_round_up(cols, LANES);
        for (int64_t i = 0; i < G->k; i += NORMAL_ROWS) {
            const int64_t rows = fsi_min64(NORMAL_ROWS, G->k - i);
            memset(C, 0, (size_t)(rows * width) * sizeof(SUM));
            for (int64_t j = 0; j < A->rows; j += NORMAL_INNER) {
                const int64_t inner = fsi_min64(NORMAL_INNER, A->rows - j);
                NAME(normal_panel)(G, i, rows, row0 + j, inner, P, cpu->threads);
                NAME(normal_load)(cpu, A, list, j, inner, col, width, B);
                NAME(normal_multiply)(cpu, 0, rows, width, inner, P, B, C);
            }
            NAME(store_tile)(Y, i, rows, col, cols, width, C, (SUM)(alpha * S->scale), (SUM)beta);
        }
    }
    return FS_OK;
}

static fs_result NAME(normal_adjoint)(fsi_cpu *cpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *Y,
                                      double beta, const fs_matrix *X)
{
    const fsi_gauss *G = &S->u.gauss;
    SUM *B, *C, *P = NAME(normal_scratch)(cpu, X->cols, NORMAL_ROWS, &B, &C);
    if (!P) return FS_ENOMEM;
    fsi_cpu_find_blas(cpu);
    for (int64_t col = 0; col < X->cols; col += NORMAL_COLS) {
        const int64_t cols = fsi_min64(NORMAL_COLS, X->cols - col), width = fsi_round_up(cols, LANES);
        for (int64_t j = 0; j < X->rows; j += NORMAL_INNER) {
            const int64_t inner = fsi_min64(NORMAL_INNER, X->rows - j);
            memset(C, 0, (size_t)(inner * width) * sizeof(SUM));
            for (int64_t i = 0; i < G->k; i += NORMAL_ROWS) {
                const int64_t rows = fsi_min64(NORMAL_ROWS, G->k - i);
                NAME(normal_panel)(G, i, rows, row0 + j, inner, P, cpu->threads);
                NAME(normal_load)(cpu, Y, NULL, i, rows, col, width, B);
                NAME(normal_multiply)(cpu, 1, inner, width, rows, P, B, C);
            }
            NAME(store_tile)(X, j, inner, col, cols, width, C, (SUM)(alpha * S->scale), (SUM)beta);
        }
    }
    return FS_OK;
}
#undef NORMAL_ROWS
#undef NORMAL_INNER
#undef NORMAL_COLS
