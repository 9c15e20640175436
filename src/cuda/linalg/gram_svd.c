/* gram_svd.c - X = U diag(s) V' by eigenvectors of Gram matrices: products, Cholesky factors and a few symmetric
 * eigenproblems, in place of the bidiagonal form, whose reduction reads the matrix once for each column.
 *
 * The eigenvectors E of F'F leave F E with columns that are orthogonal but for a few roundings of |F|^2,
 *     (F E)'(F E) = diag(s^2) + eta,   eta ~ sqrt(p) u |F|^2.
 * So a QR factorization Q T of F E has T(i, j) = eta / s_i above its diagonal: small beside |X| for the columns with s_i
 * near |F|, and for the others not.  The first are final, with U = Q and V = E, and T but for its diagonal is the error.
 * What is left of the others, orthogonal to Q, is the next F, whose eta is smaller by the square of its length: columns
 * down to |F|^2 / (8 |X|) are final in each round, so that condition numbers of 8, 512, 2e6 and 4e13 take 1, 2, 3 and 4.
 * `error` allows more: with u of f32, one round does for all singular values that f32 resolves.
 *
 * Columns are in ascending order until the end, so that those which are not final are the first ones. */
#include "cuda/linalg/gram_svd.h"

#include <math.h>

#include "base/error.h"

#define UNIT 0x1p-53
/* Rounds at most; a column is final where its length is at least this share of the longest: T is well conditioned. */
enum { ROUNDS = 10 };
static const double RESOLVED = 0x1p-18;

typedef struct gram_svd {
    const fsi_dense *dense;
    void *handle;
    int64_t m, p, left; /* columns that are not final */
    double *F, *spare;  /* m x p each; the first `left` columns of F are in use */
    double *U;          /* m x p: columns from `left` on are final */
    double *V, *turned; /* p x p each */
    double *G;          /* p x p */
    double *lengths;    /* p */
    double *host;       /* 2 p in host memory: eigenvalues; squared singular values, ascending */
    double largest, error;
} gram_svd;

#define DO(t, f, ...) FSI_TRY((t)->dense->f((t)->handle, __VA_ARGS__))

static fs_matrix columns_of(double *data, int64_t rows, int64_t cols)
{
    const fs_matrix m = {data, cols, rows, rows, 1, 0, 0, FS_F64, FS_MEMORY_HOST}; /* memory: not looked at */
    return m;
}

/* to = from, rows x cols, both packed. */
static fs_result copy(const gram_svd *t, double *from, int64_t rows, int64_t cols, double *to)
{
    const fs_matrix all = columns_of(from, rows, cols);
    DO(t, widen, &all, to, rows);
    return FS_OK;
}

/* to, its transpose where `turned`, = from with its columns in reverse order. */
static fs_result reverse(const gram_svd *t, double *from, int64_t rows, int64_t cols, int turned, double *to,
                         int64_t ld)
{
    fs_matrix all = columns_of(from + (cols - 1) * rows, rows, cols);
    all.row_stride = -rows;
    if (turned) {
        all.rows = rows, all.cols = cols;
        all.row_stride = 1, all.col_stride = -rows;
    }
    DO(t, widen, &all, to, ld);
    return FS_OK;
}

/* Columns of X, m x count, become orthonormal; their condition number is small. */
static fs_result orthonormalise(const gram_svd *t, int64_t count, double *X)
{
    DO(t, zero, t->G, (size_t)(count * count) * sizeof(double));
    DO(t, gemm, 1, 0, count, count, t->m, 1.0, X, t->m, X, t->m, 0.0, t->G, count);
    DO(t, potrf, count, t->G, count);
    DO(t, trsm, 0, 1, t->m, count, t->G, count, X, t->m);
    return FS_OK;
}

/* X -= Q (Q'X), Q m x q, X m x count; `turned` is spoilt. */
static fs_result project(const gram_svd *t, const double *Q, int64_t q, double *X, int64_t count)
{
    if (!q || !count) return FS_OK;
    DO(t, gemm, 1, 0, q, count, t->m, 1.0, Q, t->m, X, t->m, 0.0, t->turned, q);
    DO(t, gemm, 0, 0, t->m, count, q, -1.0, Q, t->m, t->turned, q, 1.0, X, t->m);
    return FS_OK;
}

/* F = F E and V = V E, E the eigenvectors of F'F; host = its eigenvalues. */
static fs_result turn(gram_svd *t, int first)
{
    const int64_t m = t->m, p = t->p, w = t->left;
    DO(t, gemm, 1, 0, w, w, m, 1.0, t->F, m, t->F, m, 0.0, t->G, w);
    DO(t, eigen, w, t->G, w, 1, t->host);
    DO(t, gemm, 0, 0, m, w, w, 1.0, t->F, m, t->G, w, 0.0, t->spare, m);
    double *const swap = t->F;
    t->F = t->spare;
    t->spare = swap;
    if (first) return copy(t, t->G, p, p, t->V);
    DO(t, gemm, 0, 0, p, w, w, 1.0, t->V, p, t->G, w, 0.0, t->turned, p);
    return copy(t, t->turned, p, w, t->V);
}

/* Makes the columns of F that are long enough final. */
static fs_result accept(gram_svd *t)
{
    const int64_t m = t->m, p = t->p, w = t->left;
    const double top = t->host[w - 1];
    const double eta = 8 * sqrt((double)p) * UNIT * top;
    const double least = fmax(eta / t->error * (eta / t->error) / t->largest, top * RESOLVED * RESOLVED);
    int64_t count = 1;
    while (count < w && t->host[w - 1 - count] >= least) count++;
    const int64_t rest = w - count;
    double *Q = t->U + rest * m;
    FSI_TRY(copy(t, t->F + rest * m, m, count, Q));
    DO(t, squares, m, count, Q, m, t->lengths);
    DO(t, fetch, t->lengths, (size_t)count * sizeof(double), t->host + p + rest);
    FSI_TRY(orthonormalise(t, count, Q));
    FSI_TRY(project(t, t->U + w * m, p - w, Q, count));
    FSI_TRY(orthonormalise(t, count, Q));
    FSI_TRY(project(t, Q, count, t->F, rest));
    t->left = rest;
    return FS_OK;
}

/* *off = |Q'Q - I|_F, Q rows x p. */
static fs_result departure(const gram_svd *t, const double *Q, int64_t rows, double *off)
{
    const int64_t p = t->p;
    DO(t, gemm, 1, 0, p, p, rows, 1.0, Q, rows, Q, rows, 0.0, t->G, p);
    DO(t, diagonal, p, t->G, p, NULL, -1.0);
    DO(t, norm, p * p, t->G, off);
    return FS_OK;
}

static fs_result rounds(gram_svd *t, int *done)
{
    const double good = 256 * UNIT * (double)t->p;
    double u = 0, v = 0;
    t->left = t->p;
    for (int round = 0; round < ROUNDS && t->left > 0; round++) {
        FSI_TRY(turn(t, round == 0));
        const double top = t->host[t->left - 1];
        if (round == 0) t->largest = top;
        if (!(top > t->largest * 0x1p-400) || !isfinite(top)) return FS_OK;
        FSI_TRY(accept(t));
    }
    if (t->left > 0) return FS_OK;
    FSI_TRY(departure(t, t->U, t->m, &u));
    FSI_TRY(departure(t, t->V, t->p, &v));
    *done = u <= good && v <= good;
    return FS_OK;
}

static fs_result run(gram_svd *t, double *X, int64_t ld, double *s, double *Vt, int *done)
{
    const int64_t m = t->m, p = t->p;
    const fs_matrix from = {X, p, m, ld, 1, 0, 0, FS_F64, FS_MEMORY_HOST};
    double size;
    DO(t, widen, &from, t->spare, m);
    DO(t, norm, m * p, t->spare, &size);
    if (!(size > 1e-300 && size < 1e300)) return FS_OK;
    DO(t, zero, t->F, (size_t)(m * p) * sizeof(double));
    DO(t, add, m * p, 1 / size, t->spare, t->F);
    FSI_TRY(rounds(t, done));
    if (!*done) return FS_OK;
    FSI_TRY(reverse(t, t->U, m, p, 0, X, ld));
    FSI_TRY(reverse(t, t->V, p, p, 1, Vt, p));
    for (int64_t j = 0; j < p; j++) {
        s[j] = size * sqrt(t->host[2 * p - 1 - j]);
        if (j > 0) s[j] = fmin(s[j], s[j - 1]); /* of two rounds: in order but for `error` */
    }
    return FS_OK;
}

fs_result fsi_gram_svd(const fsi_dense *dense, void *handle, double *host, int64_t m, int64_t p, double *X, int64_t ld,
                       double error, double *s, double *Vt, int *done)
{
    gram_svd t = {.dense = dense, .handle = handle, .m = m, .p = p, .host = host};
    const int64_t tall = m * p, square = p * p;
    void *memory = NULL;
    *done = 0;
    t.error = fmax(error, 64 * sqrt((double)p) * UNIT);
    FSI_TRY(dense->alloc(handle, (size_t)(3 * tall + 3 * square + p) * sizeof(double), &memory));
    t.F = memory;
    t.spare = t.F + tall;
    t.U = t.spare + tall;
    t.V = t.U + tall;
    t.turned = t.V + square;
    t.G = t.turned + square;
    t.lengths = t.G + square;
    const fs_result result = run(&t, X, ld, s, Vt, done);
    dense->release(handle, memory);
    return result;
}
