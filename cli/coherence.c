/* coherence.c - an orthonormal basis of the range of A, block by block, and the norms of its blocks.
 *
 * The basis is made by Cholesky factors of Gram matrices, twice, in f64 (CholeskyQR2: Yamamoto, Nakatsukasa, Yanagisawa
 * and Fukaya, 2015): the first, with pivots and columns scaled to length 1, tells the rank and leaves a basis that is
 * nearly orthonormal; the second makes it so to rounding.  The norms are largest eigenvalues of U_h'U_h by Lanczos'
 * method, which needs U_h and no n x n matrix for every block. */
#include "coherence.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "dtype.h"

/* Rows of U in the order of their input blocks: block h is rows start[h] ... start[h + 1] - 1. */
typedef struct basis {
    int64_t d, n, M;
    double *U; /* d x n, packed rows */
    int64_t *start;
    double *G; /* n x n: a Gram matrix, then its factor */
} basis;

/* the rows of A ---------------------------------------------------------------------------------------------- */

/* Where every row of A goes: to[i] is its place in U.  A counting sort, so that the order within a block stays. */
static void sort_rows(basis *b, const fs_blockperm *B, int64_t *to)
{
    memset(b->start, 0, (size_t)(b->M + 1) * sizeof *b->start);
    for (int64_t i = 0; i < b->d; i++) b->start[fs_blockperm_input_block(B, i) + 1]++;
    for (int64_t h = 0; h < b->M; h++) b->start[h + 1] += b->start[h];
    for (int64_t i = 0; i < b->d; i++) to[i] = b->start[fs_blockperm_input_block(B, i)]++;
    memmove(b->start + 1, b->start, (size_t)b->M * sizeof *b->start);
    b->start[0] = 0;
}

static void load_dense(basis *b, const fs_matrix *A, const int64_t *to)
{
#pragma omp parallel for
    for (int64_t i = 0; i < b->d; i++)
        for (int64_t j = 0; j < b->n; j++)
            b->U[to[i] * b->n + j] = fs_load(A->data, A->dtype, A->offset + i * A->row_stride + j * A->col_stride);
}

static void load_sparse(basis *b, const fs_sparse *A, const int64_t *to)
{
    const int64_t lines = A->format == FS_CSR ? A->rows : A->cols;
    memset(b->U, 0, (size_t)(b->d * b->n) * sizeof *b->U);
    for (int64_t line = 0; line < lines; line++) {
        const int64_t end = fs_index_load(A->ptr, A->index_type, line + 1);
        for (int64_t e = fs_index_load(A->ptr, A->index_type, line); e < end; e++) {
            const int64_t other = fs_index_load(A->index, A->index_type, e);
            const int64_t i = A->format == FS_CSR ? line : other, j = A->format == FS_CSR ? other : line;
            b->U[to[i] * b->n + j] += fs_load(A->value, A->dtype, e);
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

/* G = U'U, the upper triangle of cols x cols; the rows of a tile stay in cache while all of G's rows take them in. */
static void gram_of(basis *b, int64_t cols, progress *bar, double from, double to)
{
    enum { TILE = 64 };
    memset(b->G, 0, (size_t)(cols * cols) * sizeof *b->G);
    for (int64_t first = 0; first < b->d; first += TILE) {
        const int64_t end = first + TILE < b->d ? first + TILE : b->d;
        progress_at(bar, from + (to - from) * (double)first / (double)b->d, "an orthonormal basis");
#pragma omp parallel for schedule(dynamic, 16)
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
static void exchange(double *G, int64_t n, int64_t p, int64_t q)
{
    swap(&G[p * n + p], &G[q * n + q]);
    for (int64_t i = 0; i < p; i++) swap(&G[i * n + p], &G[i * n + q]);
    for (int64_t i = p + 1; i < q; i++) swap(&G[p * n + i], &G[i * n + q]);
    for (int64_t i = q + 1; i < n; i++) swap(&G[p * n + i], &G[q * n + i]);
}

/* G becomes R with R'R = G, rows and columns in the order of `pivot`, the largest diagonal first; returns how many
 * rows it has: where the rest of the diagonal is below `least`, the columns left depend on those taken. */
static int64_t factor(double *G, int64_t n, double least, int64_t *pivot)
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
            exchange(G, n, j, best);
        }
        const double diagonal = sqrt(G[j * n + j]);
        for (int64_t i = j; i < n; i++) G[j * n + i] /= diagonal;
#pragma omp parallel for schedule(static) if (n - j > 128)
        for (int64_t i = j + 1; i < n; i++)
            for (int64_t l = i; l < n; l++) G[i * n + l] -= G[j * n + i] * G[j * n + l];
    }
    return n;
}

/* Every row u of U becomes (u scaled and in the order of pivot) R^-1, of `rank` elements. */
static void solve(basis *b, const double *scale, const int64_t *pivot, int64_t cols, int64_t rank)
{
#pragma omp parallel for
    for (int64_t r = 0; r < b->d; r++) {
        double *row = b->U + r * b->n, x[COHERENCE_MAX_COLS];
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

/* U becomes an orthonormal basis of its own range; *rank is its number of columns, 0 where A is 0.  Returns 0, or
 * EXIT_FAILURE after saying that A is not finite.  scale and pivot: room for n. */
static int orthonormalize(basis *b, const char *name, double *scale, int64_t *pivot, progress *bar, int64_t *rank)
{
    const double dependent = 1e-12, nearly = 1e-6; /* squared lengths; of the second factor all are near 1 */
    const int64_t n = b->n;
    gram_of(b, n, bar, 0.0, 0.3);
    for (int64_t j = 0; j < n; j++) {
        const double square = b->G[j * n + j];
        if (!isfinite(square))
            return cli_fail("%s: column %" PRId64 " has elements that are not finite, or above 1e150", name, j + 1);
        scale[j] = square > 0 ? 1 / sqrt(square) : 0;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++) b->G[i * n + j] *= scale[i] * scale[j];
    *rank = factor(b->G, n, dependent, pivot);
    solve(b, scale, pivot, n, *rank);
    for (int64_t j = 0; j < n; j++) scale[j] = 1;
    gram_of(b, *rank, bar, 0.4, 0.7);
    const int64_t first = *rank;
    *rank = factor(b->G, first, nearly, pivot);
    solve(b, scale, pivot, first, *rank);
    return 0;
}

/* norms ------------------------------------------------------------------------------------------------------ */

enum { STEPS = 96 };

/* The largest eigenvalue of the symmetric tridiagonal matrix with these diagonals, by bisection: the signs of the
 * pivots of T - x I tell how many eigenvalues are above x. */
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
static void multiply(const basis *b, int64_t rank, const int64_t *blocks, int64_t count, const double *v, double *w)
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
    for (int64_t j = 0; j < rank; j++) { /* a linear congruential generator: any vector without a pattern will do */
        state = state * 6364136223846793005u + 1442695040888963407u;
        q[j] = (double)(state >> 33) * 0x1p-30 - 1;
    }
    const double length = sqrt(dot(q, q, rank));
    for (int64_t j = 0; j < rank; j++) q[j] /= length;
    int still = 0;
    for (int64_t m = 0; m < steps && still < 3; m++) {
        double *w = q + (m + 1) * rank;
        multiply(b, rank, blocks, count, q + m * rank, w);
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
 * blocks, each alone.  Negative where there is no memory. */
static double largest_norm(const basis *b, int64_t rank, const fs_wiring *f, int64_t kappa, int64_t *where)
{
    double largest = -1;
    int failed = 0;
    *where = 0;
#pragma omp parallel for schedule(dynamic)
    for (int64_t g = 0; g < b->M; g++) {
        double *q = cli_array(STEPS + 1, rank, sizeof *q);
        int64_t *blocks = cli_array(kappa ? kappa : 1, 1, sizeof *blocks);
        if (q && blocks) {
            blocks[0] = g;
            uint32_t h = (uint32_t)g;
            for (int64_t l = 0; l < kappa; l++) blocks[l] = h = fs_wiring_next(f, h);
            const double norm = norm_squared(b, rank, blocks, kappa ? kappa : 1, q);
#pragma omp critical
            if (norm > largest || (norm == largest && g < *where)) largest = norm, *where = g;
        } else {
#pragma omp atomic write
            failed = 1;
        }
        free(q);
        free(blocks);
    }
    return failed ? -1 : largest;
}

static int measure(basis *b, const input *in, const fs_blockperm *B, int64_t kappa, progress *bar, int64_t *rows,
                   double *scale, coherence *out)
{
    int64_t *pivot = rows; /* where the rows go is not needed any more when pivots are */
    sort_rows(b, B, rows);
    if (in->is_sparse) load_sparse(b, &in->sparse, rows);
    else load_dense(b, &in->A, rows);
    if (orthonormalize(b, in->name, scale, pivot, bar, &out->rank)) return EXIT_FAILURE;
    if (!out->rank) return cli_fail("%s: all elements are 0: there is no range to measure", in->name);
    progress_at(bar, 0.8, "the norms of %" PRId64 " blocks", b->M);
    const double blk = largest_norm(b, out->rank, &B->wiring, 0, &out->block);
    progress_at(bar, 0.9, "the norms of %" PRId64 " neighbourhoods", b->M);
    const double nbr = largest_norm(b, out->rank, &B->wiring, kappa, &out->neighbourhood);
    if (blk < 0 || nbr < 0) return cli_fail("there is no memory for vectors of %" PRId64 " elements", out->rank);
    out->blk = (double)b->M * blk;
    out->nbr = (double)b->M / (double)kappa * nbr;
    return 0;
}

int coherence_measure(const input *in, const fs_blockperm *B, int64_t kappa, progress *bar, coherence *out)
{
    basis b = {in->d, in->n, B->wiring.M, NULL, NULL, NULL};
    if (b.n > COHERENCE_MAX_COLS)
        return cli_fail("%s has %" PRId64 " columns, but the coherence of at most %d is measured; give fewer of them",
                        in->name, b.n, COHERENCE_MAX_COLS);
    b.U = cli_array(b.d, b.n, sizeof *b.U);
    b.G = cli_array(b.n, b.n, sizeof *b.G);
    b.start = cli_array(b.M + 1, 1, sizeof *b.start);
    double *scale = cli_array(b.n, 1, sizeof *scale);
    int64_t *rows = cli_array(b.d > b.n ? b.d : b.n, 1, sizeof *rows);
    int code;
    if (b.U && b.G && b.start && scale && rows) code = measure(&b, in, B, kappa, bar, rows, scale, out);
    else code = cli_fail("there is no memory for a basis of %" PRId64 " x %" PRId64 " float64", b.d, b.n);
    free(b.U);
    free(b.G);
    free(b.start);
    free(scale);
    free(rows);
    return code;
}
