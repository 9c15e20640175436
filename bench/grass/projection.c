/* projection.c - one projection: the library's in one call, a peer's in the steps that it needs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/baselines/algorithm1.h"
#include "grass.h"

enum { SEED = 42, CHECKED = 8 /* samples */ };

static int by_rows(const projection *p)
{
    return p->peer && (p->m->base.memory == FS_MEMORY_HOST || p->method->gpu_by_rows);
}

static int make_sketch(projection *p, int64_t columns, int64_t k)
{
    fs_spec *spec = &p->problem.spec;
    const grass_method *method = p->method;
    *spec = (fs_spec)FS_SPEC_INIT;
    spec->family = method->family, spec->d = columns, spec->k = k, spec->seed = SEED;
    spec->kappa = method->kappa, spec->s = method->s, spec->M = algorithm1_blocks(method->shuffle, spec->k);
    spec->shuffle = method->shuffle, spec->interleave = method->interleave;
    if (bench_fs_failed(fs_sketch_create(&p->S, spec), "making a sketch")) return 1;
    p->problem.S = p->S;
    return bench_fs_failed(fs_sketch_spec(p->S, spec), "reading a sketch's spec");
}

/* A rows x cols matrix of floats in the machine's memory. */
static int reserve(const projection *p, int64_t rows, int64_t cols, float **out)
{
    *out = p->m->base.alloc(sizeof **out * (size_t)(rows * cols));
    return !*out;
}

/* d x n, zeros in the rows that the transpose never writes. */
static int reserve_turned(projection *p)
{
    nla_machine *base = &p->m->base;
    const int64_t d = p->problem.spec.d, behind = (d - p->kept) * p->n;
    if (reserve(p, d, p->n, &p->turned)) return 1;
    if (!behind) return 0;
    const size_t bytes = sizeof *p->turned * (size_t)behind;
    float *zeros = calloc((size_t)behind, sizeof *zeros);
    const int bad = !zeros || base->copy(base, p->turned + p->kept * p->n, bytes, zeros, bytes, bytes, 1);
    free(zeros);
    return bad;
}

int projection_open(projection *p, grass_machine *m, const grass_options *o, const grass_method *method, int64_t kept,
                    const int64_t *list, const int32_t *pairs, int64_t k)
{
    const baseline *b = m->base.memory == FS_MEMORY_CUDA ? method->gpu : method->cpu;
    *p = (projection){.m = m, .method = method, .n = o->n, .p = o->p, .kept = kept, .list = list, .layers = &o->layers};
    p->peer = b == &baseline_library ? NULL : b;
    p->pairs = p->peer ? NULL : pairs;
    p->pitch = p->peer ? o->p : p->pairs ? grass_layers_values(p->layers) : grass_pitch(o->p);
    p->problem = (baseline_problem){m->base.g, m->base.context, FS_SPEC_INIT, NULL,
                                    o->n,      !by_rows(p),     FS_F32,       method->product};
    if (make_sketch(p, grass_columns(method, kept, k), k)) return 1;
    if (!p->peer) return 0;
    if (list && reserve(p, p->n, kept, &p->gathered)) return 1;
    if (by_rows(p) && (reserve_turned(p) || reserve(p, k, p->n, &p->features))) return 1;
    return p->peer->open(&p->state, &p->problem) || (p->peer->prepare && p->peer->prepare(p->state));
}

void projection_close(projection *p)
{
    void (*const release)(void *) = p->m->base.release;
    if (p->peer) p->peer->close(p->state);
    release(p->gathered);
    release(p->turned);
    release(p->features);
    fs_sketch_destroy(p->S);
}

int projection_steps(const projection *p)
{
    return GRASS_PRODUCT | (p->gathered ? GRASS_GATHER : 0) | (p->turned ? GRASS_TRANSPOSE : 0);
}

static fs_result run_layers(projection *p, void *from, fs_matrix *Y)
{
    fs_matrix factors[2 * GRASS_WIDTHS];
    const int count = grass_layers_factors(p->layers, from, p->n, Y->memory, factors);
    const fs_pairs pairs = {p->kept, p->pairs, Y->memory};
    return fs_apply_products(p->problem.context, p->S, 0, 1.0, factors, count, 1, &pairs, 0.0, Y);
}
static int run_library(projection *p, void *from, void *to)
{
    const fs_rows mask = {p->kept, FS_INDEX64, p->list, p->m->base.memory};
    fs_matrix A = fs_batch_major(from, p->n, p->p, FS_F32);
    A.col_stride = p->pitch, A.size = p->n * p->pitch;
    fs_matrix Y = fs_batch_major(to, p->n, p->problem.spec.k, FS_F32);
    A.memory = Y.memory = p->m->base.memory;
    const fs_result result = p->pairs  ? run_layers(p, from, &Y)
                             : p->list ? fs_apply_rows(p->problem.context, p->S, 0, 1.0, &A, &mask, 0.0, &Y)
                                       : fs_apply(p->problem.context, p->S, 0, 1.0, &A, 0.0, &Y);
    p->unsupported = result == FS_EUNSUPPORTED;
    return p->unsupported || bench_fs_failed(result, "projecting gradients");
}

int projection_run(projection *p, int steps, void *from, void *to)
{
    grass_machine *m = p->m;
    float *X = from, *Y = p->features ? p->features : to;
    if (!p->peer) return run_library(p, from, to);
    if (p->gathered) {
        if (steps & GRASS_GATHER && m->gather(m, X, p->n, p->p, p->list, p->kept, p->gathered)) return 1;
        X = p->gathered;
    }
    if (p->turned) {
        if (steps & GRASS_TRANSPOSE && m->transpose(m, X, p->n, p->kept, p->turned)) return 1;
        X = p->turned;
    }
    if (steps & GRASS_PRODUCT && p->peer->run(p->state, X, Y)) return 1;
    return p->turned && steps & GRASS_TRANSPOSE && m->transpose(m, Y, p->problem.spec.k, p->n, to);
}

/* the check -------------------------------------------------------------------------------------------------- */

/* Samples 0, step, 2 step ... of a batch of samples of `width` values, in host memory. */
static float *fetch(const projection *p, const float *batch, int64_t width, int64_t step, int64_t count)
{
    nla_machine *base = &p->m->base;
    const size_t bytes = sizeof *batch * (size_t)width;
    float *some = malloc(bytes * (size_t)count);
    if (some && !base->copy(base, some, bytes, batch, (size_t)step * bytes, bytes, (size_t)count)) return some;
    free(some);
    return NULL;
}

/* Y = S X in double. */
static int exactly(const projection *p, fs_context *exact, const fs_matrix *X, fs_matrix *Y)
{
    const baseline *own = p->method->cpu;
    void *state = NULL;
    if (!p->peer || !own || !own->reference)
        return bench_fs_failed(fs_apply(exact, p->S, 0, 1.0, X, 0.0, Y), "making features in double");
    baseline_problem problem = p->problem;
    problem.g = NULL, problem.context = exact, problem.n = X->cols, problem.batch_major = 0;
    const int bad = own->open(&state, &problem) || own->reference(state, X, Y);
    own->close(state);
    return bad;
}

/* The kept coordinates of samples 0, step, 2 step ..., kept x count. */
static int fetch_kept(const projection *p, const int64_t *list, int64_t step, int64_t count, double *to)
{
    float *A = p->pairs ? fetch(p, p->m->A, p->pitch, 1, p->n) : fetch(p, p->m->A, p->pitch, step, count);
    for (int64_t i = 0; A && i < p->kept; i++) {
        int32_t pair[2];
        if (p->pairs) grass_layers_pair(p->layers, list[i], pair);
        for (int64_t c = 0; c < count; c++) {
            double *x = &to[i * count + c];
            if (!p->pairs) *x = A[c * p->pitch + (list ? list[i] : i)];
            else *x = grass_layers_value(p->layers, A, p->n, c * step, pair[0]);
            if (p->pairs && pair[1] >= 0) *x *= grass_layers_value(p->layers, A, p->n, c * step, pair[1]);
        }
    }
    free(A);
    return !A;
}

int projection_error(const projection *p, fs_context *exact, const int64_t *host_list, double *error)
{
    const int64_t d = p->problem.spec.d, k = p->problem.spec.k, count = p->n < CHECKED ? p->n : CHECKED;
    float *Y = fetch(p, p->m->Y, k, p->n / count, count);
    double *in = calloc((size_t)(d * count), sizeof *in), *out = calloc((size_t)(k * count), sizeof *out);
    int bad = !Y || !in || !out || fetch_kept(p, host_list, p->n / count, count, in);
    if (!bad) {
        const fs_matrix X = fs_row_major(in, d, count, FS_F64);
        fs_matrix features = fs_row_major(out, k, count, FS_F64);
        bad = exactly(p, exact, &X, &features);
        double difference = 0, norm = 0;
        for (int64_t i = 0; i < k; i++)
            for (int64_t c = 0; c < count; c++) {
                const double y = out[i * count + c], wrong = Y[c * k + i] - y;
                difference += wrong * wrong, norm += y * y;
            }
        *error = sqrt(difference / norm);
    } else {
        fprintf(stderr, "fsbench: %lld samples could not be checked: no memory for them, or no copy of them\n",
                (long long)count);
    }
    free(Y);
    free(in);
    free(out);
    return bad;
}
