/* rank.c - whether n unit rows keep their rank, for n so large that eigenvalues take too long.
 *
 * S Q is n columns of S.  Columns that share no row of S, not even through others, are orthogonal: each connected
 * component of the Gram matrix has a Cholesky factor of its own.  A draw is singular where a component has none, or one
 * with a squared pivot below QUALITY_SINGULAR; the smallest eigenvalue is at most that. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "quality.h"
#include "random.h"

/* The nonzeros of n columns, `each` a column. */
typedef struct columns {
    int64_t n, k, each;
    int32_t *row;
    double *value;
    int32_t *parent; /* n: a forest whose trees are the components */
    int32_t *last;   /* k: a column, or an entry, that has the row; -1: none */
    int32_t *next;   /* of an entry: the one before it in its row */
    int32_t *number; /* n: of a column in its component */
} columns;

static int32_t root_of(columns *c, int32_t j)
{
    while (c->parent[j] != j) j = c->parent[j] = c->parent[c->parent[j]];
    return j;
}

static int columns_open(columns *c, int64_t n, const fs_spec *spec)
{
    *c = (columns){.n = n, .k = spec->k, .each = (spec->kappa ? spec->kappa : 1) * spec->s};
    c->row = calloc((size_t)(n * c->each), sizeof *c->row);
    c->value = malloc(sizeof *c->value * (size_t)(n * c->each));
    c->parent = malloc(sizeof *c->parent * (size_t)n);
    c->last = malloc(sizeof *c->last * (size_t)spec->k);
    c->next = malloc(sizeof *c->next * (size_t)(n * c->each));
    c->number = malloc(sizeof *c->number * (size_t)n);
    return !c->row || !c->value || !c->parent || !c->last || !c->next || !c->number;
}
static void columns_close(columns *c)
{
    free(c->row);
    free(c->value);
    free(c->parent);
    free(c->last);
    free(c->next);
    free(c->number);
}

/* Reads the columns of a sketch, one at a time: they are anywhere. */
static int read_columns(columns *c, const fs_sketch *S, const int64_t *at)
{
    int32_t *ptr = malloc(sizeof *ptr * (size_t)(c->k + 1));
    int32_t *zeros = malloc(sizeof *zeros * (size_t)c->each);
    int bad = !ptr || !zeros;
    for (int64_t j = 0; j < c->n && !bad; j++) {
        const fs_sparse one = {FS_CSR, FS_INDEX32,    c->k, 1, c->each, ptr, zeros, c->value + j * c->each,
                               FS_F64, FS_MEMORY_HOST};
        bad = bench_fs_failed(fs_sketch_to_csr(NULL, S, at[j], &one), "reading a column of S");
        for (int64_t i = 0; i < c->k && !bad; i++)
            if (ptr[i + 1] > ptr[i]) c->row[j * c->each + ptr[i]] = (int32_t)i;
    }
    free(ptr);
    free(zeros);
    return bad;
}

static void join_columns(columns *c)
{
    for (int64_t i = 0; i < c->k; i++) c->last[i] = -1;
    for (int64_t j = 0; j < c->n; j++) c->parent[j] = (int32_t)j;
    for (int64_t e = 0; e < c->n * c->each; e++) {
        int32_t *last = &c->last[c->row[e]];
        if (*last >= 0) c->parent[root_of(c, *last)] = root_of(c, (int32_t)(e / c->each));
        *last = (int32_t)(e / c->each);
    }
}

/* The smallest squared pivot of a component's Gram matrix; 0 where it has no Cholesky factor, NaN without memory. 
 * Every nonzero is multiplied with the earlier columns of its row: chains of entries, the head of a row's in `last`. */
static double pivot_of(const lapack *l, columns *c, const int32_t *members, int64_t count)
{
    const int order = (int)count;
    double *G = calloc((size_t)(count * count), sizeof *G), least = 1;
    int info = 0;
    if (!G) return NAN;
    for (int64_t m = 0; m < count; m++)
        for (int64_t e = members[m] * c->each; e < (members[m] + 1) * c->each; e++) c->last[c->row[e]] = -1;
    for (int64_t m = 0; m < count; m++) {
        const int64_t first = members[m] * c->each;
        c->number[members[m]] = (int32_t)m;
        for (int64_t e = first; e < first + c->each; e++) {
            c->next[e] = c->last[c->row[e]];
            c->last[c->row[e]] = (int32_t)e;
            for (int64_t other = e; other >= 0; other = c->next[other])
                G[m * count + c->number[other / c->each]] += c->value[e] * c->value[other];
        }
    }
    l->f64.potrf("U", &order, G, &order, &info);
    for (int64_t m = 0; m < count; m++) least = fmin(least, G[m * count + m] * G[m * count + m]);
    free(G);
    return info ? 0 : least;
}

/* 1 if singular, 0 if not, -1 after an error message. */
static int one_draw(const lapack *l, columns *c, const fs_spec *spec, const int64_t *at)
{
    fs_sketch *S;
    double least = 1;
    int32_t *members = malloc(sizeof *members * (size_t)c->n);
    if (!members || bench_fs_failed(fs_sketch_create(&S, spec), "making a sketch")) {
        free(members);
        return -1;
    }
    const int bad = read_columns(c, S, at);
    fs_sketch_destroy(S);
    if (!bad) join_columns(c);
    for (int32_t j = 0; j < c->n && !bad && least >= QUALITY_SINGULAR; j++) {
        int64_t count = 0;
        if (c->parent[j] != j) continue;
        for (int32_t i = 0; i < c->n; i++)
            if (root_of(c, i) == j) members[count++] = i;
        least = pivot_of(l, c, members, count);
    }
    free(members);
    if (!bad && isnan(least)) fprintf(stderr, "fsbench: no memory for a Gram matrix of %" PRId64 "\n", c->n);
    return bad || isnan(least) ? -1 : least < QUALITY_SINGULAR;
}

int quality_rank(const lapack *l, const fs_spec *spec, int64_t n, int scattered, const int *seeds, int seed_count,
                 int threads, int *singular)
{
    int64_t *at = malloc(sizeof *at * (size_t)n), apart = spec->d / n;
    uint64_t state = 1;
    int failed = !at;
    for (int64_t j = 0; j < n && at; j++) at[j] = scattered ? j * apart + random_below(&state, apart) : j;
    *singular = 0;
    int found = 0;
#pragma omp parallel num_threads(threads) reduction(| : failed) reduction(+ : found)
    {
        columns c;
        failed |= columns_open(&c, n, spec);
#pragma omp for schedule(dynamic)
        for (int i = 0; i < seed_count; i++) {
            fs_spec drawn = *spec;
            drawn.seed = (uint64_t)seeds[i];
            const int is = failed ? -1 : one_draw(l, &c, &drawn, at);
            failed |= is < 0;
            found += is == 1;
        }
        columns_close(&c);
    }
    *singular = found;
    free(at);
    return failed;
}
