/* draw.c - one seed: S [Q r], its Gram matrix, the eigenvalues of that and the residual. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "quality.h"

struct quality_worker {
    const lapack *l;
    fs_context *ctx;
    double *memory; /* grows */
    int64_t room;
    int iwork[8];
};

/* Where things are in a worker's memory. */
typedef struct parts {
    double *Z;    /* k x (n + 1), row-major */
    double *gram; /* (n + 1) x (n + 1), the upper triangle of it by columns */
    double *copy; /* n x n */
    double *values, *work, *right;
    int *at; /* columns of the nonzeros of a row of Z */
    int room;
} parts;

quality_worker *quality_worker_open(const lapack *l)
{
    fs_context_options options = FS_CONTEXT_INIT;
    quality_worker *w = calloc(1, sizeof *w);
    options.backend = FS_BACKEND_CPU, options.threads = 1;
    if (!w) return NULL;
    w->l = l;
    if (!bench_fs_failed(fs_context_create(&w->ctx, &options), "opening a context")) return w;
    free(w);
    return NULL;
}

void quality_worker_close(quality_worker *w)
{
    if (!w) return;
    fs_context_destroy(w->ctx);
    free(w->memory);
    free(w);
}

static int take_parts(quality_worker *w, int64_t n, int64_t k, parts *p)
{
    const int64_t wide = n + 1, work = 66 * n + 64, total = k * wide + wide * wide + n * n + n + work + wide + wide;
    if (total > w->room) {
        free(w->memory);
        w->memory = malloc(sizeof *w->memory * (size_t)total);
        w->room = w->memory ? total : 0;
        if (!w->memory) {
            fprintf(stderr, "fsbench: no memory for a draw\n");
            return 1;
        }
    }
    p->Z = w->memory;
    p->gram = p->Z + k * wide;
    p->copy = p->gram + wide * wide;
    p->values = p->copy + n * n;
    p->work = p->values + n;
    p->right = p->work + work;
    p->at = (int *)(p->right + wide);
    p->room = (int)work;
    return 0;
}

/* Z'Z.  Where most of Z is zero, from the nonzeros of each row; otherwise LAPACK's. */
static void gram_of(const quality_worker *w, const parts *p, int64_t n, int64_t k)
{
    const int64_t wide = n + 1;
    const int order = (int)wide, rows = (int)k;
    const double one = 1, zero = 0;
    double pairs = 0;
    for (int64_t i = 0; i < k; i++) {
        int64_t count = 0;
        for (int64_t j = 0; j < n; j++) count += p->Z[i * wide + j] != 0;
        pairs += (double)(count * count);
    }
    if (pairs > 0.1 * (double)(k * n * n)) {
        w->l->f64.syrk("U", "N", &order, &rows, &one, p->Z, &order, &zero, p->gram, &order);
        return;
    }
    memset(p->gram, 0, sizeof *p->gram * (size_t)(wide * wide));
    for (int64_t i = 0; i < k; i++) {
        const double *row = p->Z + i * wide;
        int count = 0;
        for (int j = 0; j < order; j++)
            if (row[j] != 0) p->at[count++] = j;
        for (int b = 0; b < count; b++)
            for (int a = 0; a <= b; a++) p->gram[p->at[b] * wide + p->at[a]] += row[p->at[a]] * row[p->at[b]];
    }
}

/* sqrt(1 + |y|^2), y of the normal equations; NaN where they have no Cholesky factor. */
static double residual_of(const quality_worker *w, const parts *p, int64_t n)
{
    const int order = (int)n, wide = order + 1, one = 1;
    int info;
    double sum = 1;
    memcpy(p->right, p->gram + n * wide, sizeof *p->right * (size_t)n);
    w->l->f64.potrf("U", &order, p->gram, &wide, &info);
    if (info) return NAN;
    w->l->f64.potrs("U", &order, &one, p->gram, &wide, p->right, &order, &info);
    for (int64_t j = 0; j < n; j++) sum += p->right[j] * p->right[j];
    return sqrt(sum);
}

int quality_draw_one(quality_worker *w, const quality_matrix *m, const fs_spec *spec, quality_draw *draw)
{
    const int64_t n = m->n, k = spec->k, wide = n + 1;
    const int order = (int)n;
    fs_sketch *S;
    parts p;
    if (take_parts(w, n, k, &p) || bench_fs_failed(fs_sketch_create(&S, spec), "making a sketch")) return 1;
    const fs_matrix to = fs_row_major(p.Z, k, wide, FS_F64);
    fs_result result;
    if (m->dense) {
        const fs_matrix from = fs_row_major(m->dense, m->d, wide, FS_F64);
        result = fs_apply(w->ctx, S, 0, 1.0, &from, 0.0, &to);
    } else {
        result = fs_apply_sparse(w->ctx, S, 0, 1.0, &m->sparse, 0.0, &to);
    }
    fs_sketch_destroy(S);
    if (bench_fs_failed(result, "sketching an input")) return 1;
    gram_of(w, &p, n, k);
    for (int64_t j = 0; j < n; j++) memcpy(p.copy + j * n, p.gram + j * wide, sizeof *p.copy * (size_t)n);
    const int integers = 8;
    int info;
    w->l->f64.syevd("N", "U", &order, p.copy, &order, p.values, p.work, &p.room, w->iwork, &integers, &info);
    if (info) {
        fprintf(stderr, "fsbench: LAPACK finds no eigenvalues of a Gram matrix\n");
        return 1;
    }
    const double low = 1 - p.values[0], high = p.values[n - 1] - 1;
    *draw = (quality_draw){low > high ? low : high, p.values[0], NAN};
    if (draw->smallest >= QUALITY_SINGULAR) draw->residual = residual_of(w, &p, n);
    return 0;
}

int quality_draws(quality_worker *const *workers, int count, const quality_matrix *m, const fs_spec *spec,
                  const int *seeds, int seed_count, quality_draw *draws)
{
    int failed = 0;
#pragma omp parallel for num_threads(count) schedule(dynamic) reduction(| : failed)
    for (int i = 0; i < seed_count; i++) {
        fs_spec drawn = *spec;
        drawn.seed = (uint64_t)seeds[i];
        if (!failed) failed |= quality_draw_one(workers[omp_get_thread_num()], m, &drawn, &draws[i]);
    }
    return failed;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    if (isnan(x) || isnan(y)) return (isnan(x) != 0) - (isnan(y) != 0);
    return (x > y) - (x < y);
}
double quality_quantile(double *values, int64_t count, double q)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    const double at = q * (double)(count - 1);
    const int64_t i = (int64_t)at;
    const double part = at - (double)i;
    return i + 1 < count && part > 0 ? values[i] + part * (values[i + 1] - values[i]) : values[i];
}
