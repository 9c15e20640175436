/* dense.c - the linear algebra of tasks on a CPU: OpenBLAS and the LAPACK in it. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "cpu/cpu.h"

/* Elements from which on a parallel loop pays: OpenMP's threads spin for a while afterwards and take cores from
 * OpenBLAS's. */
enum { WORTH_THREADS = 1 << 18 };

typedef struct cpu_dense {
    fsi_host host;
    const fsi_blas *blas;
    fsi_cpu *cpu; /* the backend's state */
    int asked;    /* as in fsi_cpu */
    double *work; /* of dsyevd and dgesdd */
    int *iwork;
    int lwork, liwork;
    size_t bytes;
    double mark[FSI_DENSE_MARKS];
    int info;
} cpu_dense;

static void *dense_take(cpu_dense *h, size_t bytes)
{
    void *memory = h->host.allocator.alloc(h->host.allocator.user, bytes ? bytes : 1);
    if (!memory) h->host.fail(FS_ENOMEM, "no memory for %zu bytes of a workspace", bytes);
    return memory;
}
static void dense_give(cpu_dense *h, void *memory)
{
    if (memory) h->host.allocator.release(h->host.allocator.user, memory);
}

static void dense_close(void *handle)
{
    cpu_dense *h = handle;
    dense_give(h, h->work);
    dense_give(h, h->iwork);
    dense_give(h, h);
}

/* Asks LAPACK how much work space it wants. */
static fs_result dense_reserve(cpu_dense *h, int64_t n, int64_t m, int64_t p)
{
    const int ask = -1, order = (int)n, rows = (int)m, cols = (int)p, ld = rows > 0 ? rows : 1;
    double eigen = 1, svd = 1, none = 0;
    int ieigen = 1, info = 0;
    h->blas->dsyevd("N", "L", &order, &none, &order, &none, &eigen, &ask, &ieigen, &ask, &info);
    h->blas->dgesdd("O", &rows, &cols, &none, &ld, &none, &none, &ld, &none, &cols, &svd, &ask, &ieigen, &info);
    /* The least that LAPACK documents, should an answer be less (some versions have returned too little). */
    const double least = 5.0 * (double)p * (double)p + 7.0 * (double)p + (double)m,
                 most = fmax(fmax(eigen, svd), least);
    if (!(most < INT_MAX))
        return h->host.fail(FS_EUNSUPPORTED,
                            "a singular value decomposition of %d x %d needs %.0f numbers of work space, "
                            "more than LAPACK's int counts",
                            rows, cols, most);
    h->lwork = (int)most;
    h->liwork = 8 * cols + 8 > ieigen ? 8 * cols + 8 : ieigen;
    h->work = dense_take(h, (size_t)h->lwork * sizeof *h->work);
    h->iwork = dense_take(h, (size_t)h->liwork * sizeof *h->iwork);
    h->bytes = (size_t)h->lwork * sizeof *h->work + (size_t)h->liwork * sizeof *h->iwork;
    return h->work && h->iwork ? FS_OK : FS_ENOMEM;
}

static fs_result open_blas(cpu_dense *h)
{
    const fs_result result = fsi_blas_open(&h->blas, h->host.fail);
    const fsi_blas *b = h->blas;
    if (result == FS_OK &&
        !(b->dgemm && b->dsyrk && b->dtrsm && b->dnrm2 && b->dpotrf && b->dsyevd && b->dgesdd && b->dgeqrf))
        return h->host.fail(FS_EBACKEND, "the OpenBLAS of this machine was built without LAPACK, which tasks need");
    return result;
}

static fs_result dense_open(void **handle, void *backend, const fsi_host *host, int64_t n, int64_t m, int64_t p)
{
    fsi_cpu *cpu = backend;
    cpu_dense *h = host->allocator.alloc(host->allocator.user, sizeof *h);
    if (!h) return host->fail(FS_ENOMEM, "no memory for the %zu bytes of a workspace", sizeof *h);
    memset(h, 0, sizeof *h);
    h->host = *host;
    h->cpu = cpu;
    h->asked = cpu->asked;
    fs_result result = open_blas(h);
    if (result == FS_OK) result = dense_reserve(h, n, m, p);
    if (result != FS_OK) {
        dense_close(h);
        return result;
    }
    *handle = h;
    return FS_OK;
}

static int threads_for(const cpu_dense *h, int64_t elements)
{
    return elements > WORTH_THREADS ? fs_thread_count(h->asked) : 1;
}

static size_t dense_bytes(const void *handle) { return ((const cpu_dense *)handle)->bytes; }
static fs_result dense_alloc(void *handle, size_t bytes, void **memory)
{
    *memory = dense_take(handle, bytes);
    return *memory ? FS_OK : FS_ENOMEM;
}
static void dense_release(void *handle, void *memory) { dense_give(handle, memory); }

/* copies ----------------------------------------------------------------------------------------------------- */

static fs_result dense_widen_columns(void *handle, const fs_matrix *from, const int64_t *order, double *to, int64_t ld)
{
    const cpu_dense *h = handle;
#pragma omp parallel for num_threads(threads_for(h, from->rows * from->cols)) schedule(static)
    for (int64_t i = 0; i < from->rows; i++)
        for (int64_t j = 0; j < from->cols; j++)
            to[j + i * ld] = fsi_load(from->data, from->dtype, i * from->row_stride + order[j] * from->col_stride);
    return FS_OK;
}
static fs_result dense_widen(void *handle, const fs_matrix *from, double *to, int64_t ld)
{
    const cpu_dense *h = handle;
#pragma omp parallel for num_threads(threads_for(h, from->rows * from->cols)) schedule(static)
    for (int64_t i = 0; i < from->rows; i++)
        for (int64_t j = 0; j < from->cols; j++)
            to[j + i * ld] = fsi_load(from->data, from->dtype, i * from->row_stride + j * from->col_stride);
    return FS_OK;
}

static fs_result dense_narrow(void *handle, const double *from, int64_t ld, int symmetric, const fs_matrix *to)
{
    (void)handle;
    for (int64_t i = 0; i < to->rows; i++)
        for (int64_t j = 0; j < to->cols; j++) {
            const int64_t at = symmetric && j < i ? i + j * ld : j + i * ld;
            fsi_store(to->data, to->dtype, i * to->row_stride + j * to->col_stride, from[at]);
        }
    return FS_OK;
}

static fs_result dense_copy(void *handle, const void *from, size_t bytes, void *to)
{
    (void)handle;
    memcpy(to, from, bytes);
    return FS_OK;
}

/* parts of matrices ------------------------------------------------------------------------------------------ */

static fs_result dense_zero(void *handle, void *x, size_t bytes)
{
    (void)handle;
    memset(x, 0, bytes);
    return FS_OK;
}

static fs_result dense_diagonal(void *handle, int64_t n, double *G, int64_t ld, double *d, double shift)
{
    (void)handle;
    for (int64_t j = 0; j < n; j++) {
        if (d) d[j] = G[j + j * ld];
        G[j + j * ld] += shift;
    }
    return FS_OK;
}

static fs_result dense_ones(void *handle, int64_t n, double *G, int64_t ld)
{
    (void)handle;
    for (int64_t j = 0; j < n; j++)
        if (G[j + j * ld] == 0) G[j + j * ld] = 1;
    return FS_OK;
}

static fs_result dense_squares(void *handle, int64_t n, int64_t count, const double *x, int64_t ld, double *squares)
{
    const cpu_dense *h = handle;
#pragma omp parallel for num_threads(threads_for(h, n *count)) schedule(static)
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += x[j + i * ld] * x[j + i * ld];
        squares[i] = sum;
    }
    return FS_OK;
}

static fs_result dense_scale_rows(void *handle, int64_t m, int64_t n, double *B, int64_t ld, const double *f)
{
    (void)handle;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) B[i + j * ld] *= f[i];
    return FS_OK;
}

static fs_result dense_add(void *handle, int64_t count, double a, const double *x, double *y)
{
    (void)handle;
    for (int64_t i = 0; i < count; i++) y[i] += a * x[i];
    return FS_OK;
}

/* Vectors may be longer than an int counts. */
static fs_result dense_norm(void *handle, int64_t count, const double *x, double *norm)
{
    const cpu_dense *h = handle;
    *norm = 0;
    for (int64_t at = 0; at < count; at += INT_MAX)
        *norm = hypot(*norm, h->blas->dnrm2(count - at < INT_MAX ? (int)(count - at) : INT_MAX, x + at, 1));
    return FS_OK;
}

/* BLAS and LAPACK -------------------------------------------------------------------------------------------- */

static fs_result dense_syrk(void *handle, int64_t n, int64_t k, const double *X, int64_t ldx, double beta, double *G,
                            int64_t ldg)
{
    const cpu_dense *h = handle;
    h->blas->dsyrk(BLAS_COLUMNS, BLAS_LOWER, BLAS_PLAIN, (int)n, (int)k, 1, X, (int)ldx, beta, G, (int)ldg);
    return FS_OK;
}

static fs_result dense_gemm(void *handle, int ta, int tb, int64_t m, int64_t n, int64_t k, double alpha,
                            const double *A, int64_t lda, const double *B, int64_t ldb, double beta, double *C,
                            int64_t ldc)
{
    const cpu_dense *h = handle;
    h->blas->dgemm(BLAS_COLUMNS, ta ? BLAS_TRANSPOSED : BLAS_PLAIN, tb ? BLAS_TRANSPOSED : BLAS_PLAIN, (int)m, (int)n,
                   (int)k, alpha, A, (int)lda, B, (int)ldb, beta, C, (int)ldc);
    return FS_OK;
}

static fs_result dense_trsm(void *handle, int left, int transposed, int64_t m, int64_t n, const double *L, int64_t ldl,
                            double *B, int64_t ldb)
{
    const cpu_dense *h = handle;
    h->blas->dtrsm(BLAS_COLUMNS, left ? BLAS_LEFT : BLAS_RIGHT, BLAS_LOWER, transposed ? BLAS_TRANSPOSED : BLAS_PLAIN,
                   BLAS_NON_UNIT, (int)m, (int)n, 1, L, (int)ldl, B, (int)ldb);
    return FS_OK;
}

static fs_result dense_potrf(void *handle, int64_t n, double *G, int64_t ld)
{
    cpu_dense *h = handle;
    const int order = (int)n, pitch = (int)ld;
    h->blas->dpotrf("L", &order, G, &pitch, &h->info);
    return FS_OK;
}

static fs_result dense_eigen(void *handle, int64_t n, double *G, int64_t ld, double *values)
{
    cpu_dense *h = handle;
    const int order = (int)n, pitch = (int)ld;
    int info = 0;
    h->blas->dsyevd("N", "L", &order, G, &pitch, values, h->work, &h->lwork, h->iwork, &h->liwork, &info);
    return info ? h->host.fail(FS_EBACKEND, "the eigenvalues of a %d x %d matrix did not converge (dsyevd: %d)", order,
                               order, info)
                : FS_OK;
}

static fs_result dense_svd(void *handle, int64_t m, int64_t p, double *X, int64_t ld, double *s, double *Vt)
{
    cpu_dense *h = handle;
    const int rows = (int)m, cols = (int)p, pitch = (int)ld;
    double none = 0; /* with m >= p, X itself becomes U */
    int info = 0;
    h->blas->dgesdd("O", &rows, &cols, X, &pitch, s, &none, &rows, Vt, &cols, h->work, &h->lwork, h->iwork, &info);
    return info ? h->host.fail(FS_EBACKEND, "the singular values of a %d x %d matrix did not converge (dgesdd: %d)",
                               rows, cols, info)
                : FS_OK;
}

/* The upper triangle of X becomes the lower one of L, rows of R with a negative diagonal negated. */
static void triangle_of(int64_t p, const double *X, int64_t ld, double *L)
{
    for (int64_t j = 0; j < p; j++) {
        const double sign = X[j + j * ld] < 0 ? -1 : 1;
        for (int64_t i = 0; i < p; i++) L[i + j * p] = i < j ? 0 : sign * X[j + i * ld];
    }
}

static fs_result dense_qr(void *handle, int64_t m, int64_t p, double *X, int64_t ld, double *L)
{
    cpu_dense *h = handle;
    const int rows = (int)m, cols = (int)p, pitch = (int)ld, ask = -1;
    double wanted = 1, *tau = dense_take(h, (size_t)p * sizeof *tau);
    int info = 0;
    if (!tau) return FS_ENOMEM;
    h->blas->dgeqrf(&rows, &cols, X, &pitch, tau, &wanted, &ask, &info);
    const int lwork = fmax(wanted, (double)p) < INT_MAX ? (int)fmax(wanted, (double)p) : cols;
    double *work = dense_take(h, (size_t)lwork * sizeof *work);
    if (work) h->blas->dgeqrf(&rows, &cols, X, &pitch, tau, work, &lwork, &info);
    if (work) triangle_of(p, X, ld, L);
    dense_give(h, tau);
    dense_give(h, work);
    return work ? FS_OK : FS_ENOMEM;
}

/* products with rows of A --------------------------------------------------------------------------------------- */

static fs_result dense_product(void *handle, const fs_matrix *A, int64_t m, const double *P, double *U)
{
    return fsi_cpu_product(fsi_cpu_begin(((cpu_dense *)handle)->cpu), A, m, P, U);
}
static fs_result dense_normal(void *handle, const fs_matrix *A, int64_t m, const double *P, const fs_matrix *B,
                              double *W, double *squares)
{
    return fsi_cpu_normal(fsi_cpu_begin(((cpu_dense *)handle)->cpu), A, m, P, B, W, squares);
}
static fs_result dense_product_sparse(void *handle, const fs_sparse *A, int64_t m, const double *P, double *U)
{
    return fsi_cpu_product_sparse(fsi_cpu_begin(((cpu_dense *)handle)->cpu), A, m, P, U);
}
static fs_result dense_normal_sparse(void *handle, const fs_sparse *A, int64_t m, const double *P, const fs_matrix *B,
                                     double *W, double *squares)
{
    return fsi_cpu_normal_sparse(fsi_cpu_begin(((cpu_dense *)handle)->cpu), A, m, P, B, W, squares);
}

/* time ------------------------------------------------------------------------------------------------------- */

static fs_result dense_mark(void *handle, int mark)
{
    cpu_dense *h = handle;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    h->mark[mark] = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    return FS_OK;
}
static fs_result dense_wait(void *handle, int *info)
{
    if (info) *info = ((cpu_dense *)handle)->info;
    return FS_OK;
}
static double dense_seconds(void *handle, int from, int to)
{
    const cpu_dense *h = handle;
    return h->mark[to] - h->mark[from];
}

const fsi_dense fsi_cpu_dense = {
    .open = dense_open,
    .close = dense_close,
    .bytes = dense_bytes,
    .alloc = dense_alloc,
    .release = dense_release,
    .widen = dense_widen,
    .widen_columns = dense_widen_columns,
    .narrow = dense_narrow,
    .fetch = dense_copy,
    .send = dense_copy,
    .zero = dense_zero,
    .diagonal = dense_diagonal,
    .ones = dense_ones,
    .squares = dense_squares,
    .scale_rows = dense_scale_rows,
    .add = dense_add,
    .norm = dense_norm,
    .syrk = dense_syrk,
    .gemm = dense_gemm,
    .trsm = dense_trsm,
    .potrf = dense_potrf,
    .eigen = dense_eigen,
    .svd = dense_svd,
    .qr = dense_qr,
    .product = dense_product,
    .normal = dense_normal,
    .product_sparse = dense_product_sparse,
    .normal_sparse = dense_normal_sparse,
    .mark = dense_mark,
    .wait = dense_wait,
    .seconds = dense_seconds,
};
