/* data.c - sources by name, and matrices in host memory. */
#include "data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const data_recipe_names[RECIPES] = {"gaussian", "lowrank",  "sparse",   "hot",    "bundles",
                                                "decay",    "identity", "diagonal", "student"};
static const char *const file_kinds[] = {"spal", "gpt2", "gpt2-full", "qwen2", "fashion", "file"};
enum { FILE_KINDS = sizeof file_kinds / sizeof file_kinds[0] };
static const char fashion[] = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";

static int unknown(const char *text)
{
    fprintf(stderr, "fsbench: there is no data '%s'; it is one of", text);
    for (int i = 0; i < RECIPES; i++) fprintf(stderr, " %s", data_recipe_names[i]);
    fprintf(stderr, ", or");
    for (int i = 0; i < FILE_KINDS; i++) fprintf(stderr, " %s:PATH", file_kinds[i]);
    fprintf(stderr, "\n");
    return 1;
}

int data_source_parse(const char *text, data_source *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < RECIPES; i++)
        if (!strcmp(text, data_recipe_names[i])) {
            out->recipe = (recipe_kind)i;
            snprintf(out->name, sizeof out->name, "%s", text);
            return 0;
        }
    const size_t length = strcspn(text, ":");
    for (int i = 0; i < FILE_KINDS; i++)
        if (strlen(file_kinds[i]) == length && !strncmp(text, file_kinds[i], length)) out->kind = file_kinds[i];
    if (!out->kind) return unknown(text);
    out->path = text[length] ? text + length + 1 : !strcmp(out->kind, "fashion") ? fashion : "";
    if (!*out->path) {
        fprintf(stderr, "fsbench: data '%s' needs a path: %s:PATH\n", text, out->kind);
        return 1;
    }
    /* A file's name is written to records unchanged, so characters that JSON escapes are removed. */
    const char *slash = strrchr(out->path, '/');
    snprintf(out->name, sizeof out->name, "%s", strcmp(out->kind, "file") ? out->kind : slash ? slash + 1 : out->path);
    for (char *c = out->name; *c; c++)
        if (*c <= ' ' || *c > '~' || strchr("\"\\/,", *c)) *c = '_';
    return data_file_shape(out, &out->d, &out->n);
}

data_set data_set_of(const data_source *source, int64_t d, int64_t n)
{
    /* The paper's seeds; the shapes that it does not have take the first. */
    static const struct {
        const char *name;
        uint64_t seed[4]; /* 16384 x 1024, 65536 x 1024, 131072 x 512, 262144 x 512 */
    } seeds[] = {{"gaussian", {0, 6, 8, 3}}, {"lowrank", {1, 7, 9, 4}},  {"sparse", {2, 6, 7, 5}},
                 {"spal", {2, 6, 7, 5}},     {"gpt2", {12, 12, 12, 12}}, {"gpt2-full", {12, 12, 12, 12}},
                 {"qwen2", {12, 12, 14, 13}}};
    const int shape = d == 65536 ? 1 : d == 131072 ? 2 : d == 262144 ? 3 : 0;
    data_set set = {source, d, n, 100 + (uint64_t)source->recipe};
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        if (!strcmp(source->name, seeds[i].name)) set.seed = seeds[i].seed[shape];
    return set;
}

/* An i.i.d. N(0, 1) matrix of one stream. */
static void fill_normal(uint64_t seed, enum recipe_stream stream, int64_t rows, int64_t cols, float *out)
{
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < (rows + 3) / 4; p++)
        for (int64_t j = 0; j < cols; j++) {
            float z[4];
            recipe_normals(seed, stream, p, j, z);
            for (int64_t e = 0; e < 4 && 4 * p + e < rows; e++) out[(4 * p + e) * cols + j] = z[e];
        }
}

int data_make(const data_set *set, float *A)
{
    if (set->source->kind) return data_file_make(set, A);
    recipe r = {set->source->recipe, set->seed, set->d, set->n, NULL, NULL};
    float *factors = NULL;
    if (r.kind == RECIPE_LOWRANK) {
        factors = malloc(sizeof *factors * (size_t)(RECIPE_RANK * (r.d + r.n)));
        if (!factors) {
            fprintf(stderr, "fsbench: no memory for the factors of a %" PRId64 " x %" PRId64 " matrix\n", r.d, r.n);
            return 1;
        }
        fill_normal(r.seed, STREAM_U, r.d, RECIPE_RANK, factors);
        fill_normal(r.seed, STREAM_V, RECIPE_RANK, r.n, factors + RECIPE_RANK * r.d);
        r.U = factors, r.V = factors + RECIPE_RANK * r.d;
    }
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < (r.d + 3) / 4; p++)
        for (int64_t j = 0; j < r.n; j++) {
            float a[4];
            recipe_four(&r, p, j, a);
            for (int64_t e = 0; e < 4 && 4 * p + e < r.d; e++) A[(4 * p + e) * r.n + j] = a[e];
        }
    free(factors);
    return 0;
}

void data_solution(const data_set *set, float *x) { fill_normal(set->seed, STREAM_X, set->n, 1, x); }

void data_times(const float *A, int64_t d, int64_t n, const float *x, double *Ax)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < d; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += (double)A[i * n + j] * (double)x[j];
        Ax[i] = sum;
    }
}

void data_right_side(const data_set *set, const double *Ax, double noise, float *b)
{
    double squares = 0;
    for (int64_t i = 0; i < set->d; i++) squares += Ax[i] * Ax[i];
    const double sigma = noise * __builtin_sqrt(squares / (double)set->d);
    for (int64_t p = 0; p < (set->d + 3) / 4; p++) {
        float z[4];
        recipe_normals(set->seed, STREAM_NOISE, p, 0, z);
        for (int64_t e = 0; e < 4 && 4 * p + e < set->d; e++) b[4 * p + e] = (float)(Ax[4 * p + e] + sigma * z[e]);
    }
}
