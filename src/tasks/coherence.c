/* coherence.c - mu_blk and mu_nbr: an orthonormal basis of the range of A, block by block, and the norms of its blocks.
 *
 * In host memory and f64, with loops of its own: a diagnostic that needs no OpenBLAS and whose pivots give the rank.
 *
 * The basis is made by Cholesky factors of Gram matrices, twice, in f64 (CholeskyQR2: Yamamoto, Nakatsukasa, Yanagisawa
 * and Fukaya, 2015): the first, with pivots and columns scaled to length 1, gives the rank and a basis that is nearly
 * orthonormal; the second makes it orthonormal to rounding.  The norms are largest eigenvalues of U_h'U_h by Lanczos'
 * method, which needs U_h and no n x n matrix for every block. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/context.h"
#include "base/dtype.h"
#include "base/error.h"
#include "flashsketch_tasks.h"
#include "core/matrix.h"
#include "core/sketch.h"

/* Rows of U in the order of their input blocks: block h is rows start[h] ... start[h + 1] - 1. */
typedef struct basis {
    int64_t d, n, M;
    int threads;
    double *U; /* d x n, packed rows */
    int64_t *start;
    double *G;     /* n x n: a Gram matrix, then its factor */
    double *scale; /* n */
    int64_t *rows; /* d, or n if that is more: where rows of A go; then pivots */
    fs_allocator memory;
    const fs_progress *progress;
} basis;

static void at(const basis *b, double share, const char *doing)
{
    if (b->progress && b->progress->at) b->progress->at(b->progress->user, share, doing);
}

/* the rows of A ---------------------------------------------------------------------------------------------- */

/* The row of U for every row of A: to[i] is that of row i.  A counting sort, so that the order within a block stays. */
static void sort_rows(basis *b, const fsi_blockperm *B, int64_t *to)
{
    memset(b->start, 0, (size_t)(b->M + 1) * sizeof *b->start);
    for (int64_t i = 0; i < b->d; i++) b->start[fsi_blockperm_local(B, i).h + 1]++;
    for (int64_t h = 0; h < b->M; h++) b->start[h + 1] += b->start[h];
    for (int64_t i = 0; i < b->d; i++) to[i] = b->start[fsi_blockperm_local(B, i).h]++;
    memmove(b->start + 1, b->start, (size_t)b->M * sizeof *b->start);
    b->start[0] = 0;
}

static void load_dense(basis *b, const fs_matrix *A, const int64_t *to)
{
#pragma omp parallel for num_threads(b->threads)
    for (int64_t i = 0; i < b->d; i++)
        for (int64_t j = 0; j < b->n; j++)
            b->U[to[i] * b->n + j] = fsi_load(A->data, A->dtype, A->offset + i * A->row_stride + j * A->col_stride);
}

static void load_sparse(basis *b, const fs_sparse *A, const int64_t *to)
{
    const int64_t lines = A->format == FS_CSR ? A->rows : A->cols;
    memset(b->U, 0, (size_t)(b->d * b->n) * sizeof *b->U);
    for (int64_t line = 0; line < lines; line++) {
        const int64_t end = fsi_index_load(A->ptr, A->index_type, line + 1);
        for (int64_t e = fsi_index_load(A->ptr, A->index_type, line); e < end; e++) {
            const int64_t other = fsi_index_load(A->index, A->index_type, e);
            const int64_t i = A->format == FS_CSR ? line : other, j = A->format == FS_CSR ? other : line;
            b->U[to[i] * b->n + j] += fsi_load(A->value, A->dtype, e);
        }
    }
}

/* the basis -------------------------------------------------------------------------------------------------- */

/* y += sum_f a[f] x_f for the rows x_f = x, x + stride, ...: four at a time, so that y is loaded and stored once for
 * all. */
enum { FOUR = 4 };
static void add_four(double *y, const double a[FOUR], const double *x, int64_t stride, int64_t n)
{
    const double *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
    for (int64_t j = 0; j < n; j++) y[j] += a[0] * x[j] + a[1] * x1[j] + a[2] * x2[j] + a[3] * x3[j];
}

static void add(double *y, double a, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

/* G = U'U, the upper triangle of cols x cols; the rows of a tile stay in cache while they are added to all of G's
 * rows. */
static void gram_of(basis *b, int64_t cols, double from, double to)
{
    enum { TILE = 64 };
    memset(b->G, 0, (size_t)(cols * cols) * sizeof *b->G);
    for (int64_t first = 0; first < b->d; first += TILE) {
        const int64_t end = first + TILE < b->d ? first + TILE : b->d;
        at(b, from + (to - from) * (double)first / (double)b->d, "an orthonormal basis");
#pragma omp parallel for schedule(dynamic, 16) num_threads(b->threads)
        for (int64_t i = 0; i < cols; i++) {
            double *sum = b->G + i * cols + i;
            const double *column = b->U + i;
            int64_t r = first;
            for (; r + FOUR <= end; r += FOUR) {
                const double *x = column + r * b->n;
                add_four(sum, (double[FOUR]){x[0], x[b->n], x[2 * b->n], x[3 * b->n]}, x, b->n, cols - i);
            }
            for (; r < end; r++) add(sum, column[r * b->n], column + r * b->n, cols - i);
        }
    }
}

static void swap(double *a, double *b)
{
    const double kept = *a;
    *a = *b;
    *b = kept;
}

/* Exchanges rows and columns p and q, p < q, of a symmetric matrix given by its upper triangle. */
static void coherence_exchange(double *G, int64_t n, int64_t p, int64_t q)
{
    swap(&G[p * n + p], &G[q * n + q]);
    for (int64_t i = 0; i < p; i++) swap(&G[i * n + p], &G[i * n + q]);
    for (int64_t i = p + 1; i < q; i++) swap(&G[p * n + i], &G[i * n + q]);
    for (int64_t i = q + 1; i < n; i++) swap(&G[p * n + i], &G[q * n + i]);
}

/* G becomes R with R'R = G, rows and columns in the order of `pivot`, the largest diagonal first; returns how many
 * rows it has: where the rest of the diagonal is below `least`, the columns left depend on those taken. */
static int64_t factor(double *G, int64_t n, double least, int threads, int64_t *pivot)
{
    for (int64_t j = 0; j < n; j++) pivot[j] = j;
    for (int64_t j = 0; j < n; j++) {
        int64_t best = j;
        for (int64_t i = j + 1; i < n; i++)
            if (G[i * n + i] > G[best * n + best]) best = i;
        if (!(G[best * n + best] > least)) return j;
        if (best > j) {
            const int64_t kept = pivot[j];
            pivot[j] = pivot[best], pivot[best] = kept;
            coherence_exchange(G, n, j, best);
        }
        const double diagonal = sqrt(G[j * n + j]);
        for (int64_t i = j; i < n; i++) G[j * n + i] /= diagonal;
#pragma omp parallel for schedule(static) num_threads(threads) if (n - j > 128)
        for (int64_t i = j + 1; i < n; i++)
            for (int64_t l = i; l < n; l++) G[i * n + l] -= G[j * n + i] * G[j * n + l];
    }
    return n;
}

/* Every row u of U becomes (u scaled and in the order of pivot) R^-1, of `rank` elements. */
static void coherence_solve(basis *b, const double *scale, const int64_t *pivot, int64_t cols, int64_t rank)
{
#pragma omp parallel for num_threads(b->threads)
    for (int64_t r = 0; r < b->d; r++) {
        double *row = b->U + r * b->n, x[FS_COHERENCE_MAX_COLS];
        for (int64_t j = 0; j < rank; j++) x[j] = row[pivot[j]] * scale[pivot[j]];
        for (int64_t i = 0; i < rank; i += FOUR) {
            const int64_t end = i + FOUR < rank ? i + FOUR : rank;
            for (int64_t p = i; p < end; p++) {
                x[p] /= b->G[p * cols + p];
                add(x + p + 1, -x[p], b->G + p * cols + p + 1, end - p - 1);
            }
            if (end < rank)
                add_four(x + end, (double[FOUR]){-x[i], -x[i + 1], -x[i + 2], -x[i + 3]}, b->G + i * cols + end, cols,
                         rank - end);
        }
        memcpy(row, x, (size_t)rank * sizeof *x);
    }
}

/* U becomes an orthonormal basis of its own range; *rank is its number of columns, 0 where A is 0. */
static fs_result orthonormalize(basis *b, int64_t *rank)
{
    const double dependent = 1e-12, nearly = 1e-6; /* squared lengths; of the second factor all are near 1 */
    const int64_t n = b->n;
    double *scale = b->scale;
    gram_of(b, n, 0.0, 0.3);
    for (int64_t j = 0; j < n; j++) {
        const double square = b->G[j * n + j];
        FSI_REQUIRE(isfinite(square),
                    "fs_coherence: column %" PRId64 " of A has elements that are not finite, or above 1e150", j + 1);
        scale[j] = square > 0 ? 1 / sqrt(square) : 0;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) b->G[i * n + j] *= scale[i] * scale[j];
    *rank = factor(b->G, n, dependent, b->threads, b->rows);
    coherence_solve(b, scale, b->rows, n, *rank);
    for (int64_t j = 0; j < n; j++) scale[j] = 1;
    gram_of(b, *rank, 0.4, 0.7);
    const int64_t first = *rank;
    *rank = factor(b->G, first, nearly, b->threads, b->rows);
    coherence_solve(b, scale, b->rows, first, *rank);
    return FS_OK;
}

/* norms ------------------------------------------------------------------------------------------------------ */

enum { STEPS = 96 };

/* The largest eigenvalue of the symmetric tridiagonal matrix with these diagonals, by bisection: the signs of the
 * pivots of T - x I give the number of eigenvalues above x. */
static double largest_of(const double *diagonal, const double *beside, int64_t count)
{
    double low = diagonal[0], high = 0;
    for (int64_t i = 0; i < count; i++) {
        const double reach = diagonal[i] + (i ? beside[i - 1] : 0) + (i + 1 < count ? beside[i] : 0);
        if (reach > high) high = reach;
        if (diagonal[i] > low) low = diagonal[i];
    }
    for (int step = 0; step < 60; step++) {
        const double x = (low + high) / 2;
        double pivot = diagonal[0] - x;
        int above = pivot > 0;
        for (int64_t i = 1; i < count && !above; i++) {
            if (pivot == 0) pivot = -1e-300;
            pivot = diagonal[i] - x - beside[i - 1] * beside[i - 1] / pivot;
            above = pivot > 0;
        }
        if (above) low = x;
        else high = x;
    }
    return low;
}

/* Eight sums side by side, so that additions do not wait for each other. */
static double dot(const double *x, const double *y, int64_t n)
{
    enum { LANES = 8 };
    double lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += x[i + l] * y[i + l];
    for (; i < n; i++) sum += x[i] * y[i];
    for (int l = 0; l < LANES; l++) sum += lane[l];
    return sum;
}

/* w = sum over the blocks of U_h'U_h v. */
static void coherence_multiply(const basis *b, int64_t rank, const int64_t *blocks, int64_t count, const double *v,
                               double *w)
{
    memset(w, 0, (size_t)rank * sizeof *w);
    for (int64_t c = 0; c < count; c++)
        for (int64_t r = b->start[blocks[c]]; r < b->start[blocks[c] + 1]; r++)
            add(w, dot(b->U + r * b->n, v, rank), b->U + r * b->n, rank);
}

/* |U of these blocks|_2^2 by Lanczos' method with all vectors kept orthogonal, until the value stands still three
 * times.  q: room for (STEPS + 1) vectors of `rank`. */
static double norm_squared(const basis *b, int64_t rank, const int64_t *blocks, int64_t count, double *q)
{
    double diagonal[STEPS], beside[STEPS], value = 0;
    const int64_t steps = rank < STEPS ? rank : STEPS;
    uint64_t state = 1;
    for (int64_t j = 0; j < rank; j++) { /* a linear congruential generator: any vector without a pattern serves */
        state = state * 6364136223846793005u + 1442695040888963407u;
        q[j] = (double)(state >> 33) * 0x1p-30 - 1;
    }
    const double length = sqrt(dot(q, q, rank));
    for (int64_t j = 0; j < rank; j++) q[j] /= length;
    int still = 0;
    for (int64_t m = 0; m < steps && still < 3; m++) {
        double *w = q + (m + 1) * rank;
        coherence_multiply(b, rank, blocks, count, q + m * rank, w);
        diagonal[m] = dot(q + m * rank, w, rank);
        for (int twice = 0; twice < 2; twice++)
            for (int64_t i = 0; i <= m; i++) add(w, -dot(q + i * rank, w, rank), q + i * rank, rank);
        beside[m] = sqrt(dot(w, w, rank));
        const double next = largest_of(diagonal, beside, m + 1);
        still = fabs(next - value) <= 1e-9 * next ? still + 1 : 0;
        value = next;
        if (beside[m] <= 1e-12) break; /* U'U is at most I */
        for (int64_t j = 0; j < rank; j++) w[j] /= beside[m];
    }
    return value;
}

/* The largest norm over all output blocks, each with the input blocks f^1(g) ... f^kappa(g); kappa = 0: over all input
 * blocks, each alone.  q: room for (STEPS + 1) vectors of `rank` elements for every thread, blocks for kappa numbers,
 * norms for M. */
static double largest_norm(const basis *b, int64_t rank, const fsi_wiring *f, int64_t kappa, int threads, double *q,
                           int64_t *blocks, double *norms, int64_t *where)
{
    const int64_t count = kappa ? kappa : 1;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t g = 0; g < b->M; g++) {
        int64_t *mine = blocks + omp_get_thread_num() * count;
        mine[0] = g;
        uint32_t h = (uint32_t)g;
        for (int64_t l = 0; l < kappa; l++) mine[l] = h = fsi_wiring_next(f, h);
        norms[g] = norm_squared(b, rank, mine, count, q + omp_get_thread_num() * (STEPS + 1) * rank);
    }
    *where = 0;
    for (int64_t g = 1; g < b->M; g++)
        if (norms[g] > norms[*where]) *where = g;
    return norms[*where];
}

/* `count` things of `bytes` bytes from the context's allocator; NULL also when they cannot be counted. */
static void *coherence_take(const basis *b, int64_t rows, int64_t cols, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow((size_t)rows, (size_t)cols, &all) || __builtin_mul_overflow(all, bytes, &all))
        return NULL;
    return b->memory.alloc(b->memory.user, all ? all : 1);
}
static void coherence_give(const basis *b, void *memory)
{
    if (memory) b->memory.release(b->memory.user, memory);
}

static fs_result measure_norms(basis *b, const fsi_blockperm *B, fs_coherence_report *out)
{
    const int threads = b->threads;
    double *q = coherence_take(b, (STEPS + 1) * (int64_t)threads, out->rank, sizeof *q);
    int64_t *blocks = coherence_take(b, threads, B->kappa, sizeof *blocks);
    double *norms = coherence_take(b, b->M, 1, sizeof *norms);
    if (q && blocks && norms) {
        at(b, 0.8, "the norms of the blocks");
        const double blk = largest_norm(b, out->rank, &B->wiring, 0, threads, q, blocks, norms, &out->block);
        at(b, 0.9, "the norms of the neighbourhoods");
        const double nbr = largest_norm(b, out->rank, &B->wiring, B->kappa, threads, q, blocks, norms,
                                        &out->neighbourhood);
        out->mu_blk = (double)b->M * blk;
        out->mu_nbr = (double)b->M / (double)B->kappa * nbr;
    }
    const int failed = !q || !blocks || !norms;
    coherence_give(b, q);
    coherence_give(b, blocks);
    coherence_give(b, norms);
    return failed ? fs_fail(FS_ENOMEM, "fs_coherence: no memory for vectors of %" PRId64 " elements", out->rank)
                  : FS_OK;
}

static fs_result coherence_measure(basis *b, const fsi_blockperm *B, const fs_matrix *dense, const fs_sparse *sparse,
                                   fs_coherence_report *out)
{
    if (!b->U || !b->G || !b->start || !b->scale || !b->rows)
        return fs_fail(FS_ENOMEM, "fs_coherence: no memory for a basis of %" PRId64 " x %" PRId64 " float64", b->d,
                       b->n);
    sort_rows(b, B, b->rows);
    if (sparse) load_sparse(b, sparse, b->rows);
    else load_dense(b, dense, b->rows);
    FSI_TRY(orthonormalize(b, &out->rank));
    FSI_REQUIRE(out->rank, "fs_coherence: all elements of A are 0: there is no range to measure");
    return measure_norms(b, B, out);
}

/* Both functions, after A itself was checked. */
static fs_result coherence(fs_context *ctx, const fs_sketch *S, int64_t d, int64_t n, const fs_matrix *dense,
                           const fs_sparse *sparse, const fs_progress *progress, fs_coherence_report *report)
{
    FSI_REQUIRE(report, "fs_coherence: report is NULL; start from FS_COHERENCE_REPORT_INIT");
    FSI_TRY(fs_struct_check("fs_coherence", "report", report, sizeof *report));
    FSI_REQUIRE(S->spec.family == FS_BLOCKPERM, "fs_coherence: coherence is about the blocks of family blockperm");
    FSI_REQUIRE(d == S->spec.d && n >= 1 && n <= FS_COHERENCE_MAX_COLS,
                "fs_coherence: A is %" PRId64 " x %" PRId64 ", it must have d = %" PRId64
                " rows and from 1 to %d columns",
                d, n, S->spec.d, FS_COHERENCE_MAX_COLS);
    const fsi_blockperm *B = &S->def.u.blockperm;
    basis b = {d, n, B->M, fs_context_threads(ctx), NULL, NULL, NULL, NULL, NULL, ctx->allocator, progress};
    b.U = coherence_take(&b, d, n, sizeof *b.U);
    b.G = coherence_take(&b, n, n, sizeof *b.G);
    b.start = coherence_take(&b, b.M + 1, 1, sizeof *b.start);
    b.scale = coherence_take(&b, n, 1, sizeof *b.scale);
    b.rows = coherence_take(&b, d > n ? d : n, 1, sizeof *b.rows);
    fs_coherence_report out = FS_COHERENCE_REPORT_INIT;
    const fs_result result = coherence_measure(&b, B, dense, sparse, &out);
    if (result == FS_OK) fs_struct_write(report, &out, sizeof out);
    coherence_give(&b, b.U);
    coherence_give(&b, b.G);
    coherence_give(&b, b.start);
    coherence_give(&b, b.scale);
    coherence_give(&b, b.rows);
    return result;
}

fs_result fs_coherence(fs_context *ctx, const fs_sketch *S, const fs_matrix *A, const fs_progress *progress,
                       fs_coherence_report *report)
{
    FSI_REQUIRE(ctx && S, "fs_coherence: %s is NULL", ctx ? "S" : "ctx");
    FSI_TRY(fs_matrix_check("fs_coherence", "A", A));
    if (A->memory != FS_MEMORY_HOST)
        return fs_fail(FS_EUNSUPPORTED, "fs_coherence: A is in CUDA memory, it must be in the host's");
    return coherence(ctx, S, A->rows, A->cols, A, NULL, progress, report);
}

fs_result fs_coherence_sparse(fs_context *ctx, const fs_sketch *S, const fs_sparse *A, const fs_progress *progress,
                              fs_coherence_report *report)
{
    FSI_REQUIRE(ctx && S, "fs_coherence_sparse: %s is NULL", ctx ? "S" : "ctx");
    FSI_TRY(fsi_sparse_check("fs_coherence_sparse", "A", A));
    if (A->memory != FS_MEMORY_HOST)
        return fs_fail(FS_EUNSUPPORTED, "fs_coherence_sparse: A is in CUDA memory, it must be in the host's");
    FSI_TRY(fsi_sparse_check_arrays("fs_coherence_sparse", A));
    return coherence(ctx, S, A->rows, A->cols, NULL, A, progress, report);
}
