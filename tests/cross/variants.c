/* variants.c - on any processor: the chosen variant gives what the reference gives on integers, and the same bits with one
 * thread and with three. */
#include <flashsketch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct kind {
    fs_family family;
    fs_shuffle shuffle;
    int64_t d, k, kappa, s; /* kappa s a power of four: the scale is exact */
} kinds[] = {
    {FS_BLOCKPERM, FS_SHUFFLE_ROWS, 1500, 256, 1, 4},  {FS_BLOCKPERM, FS_SHUFFLE_ROWS, 1500, 250, 1, 16},
    {FS_BLOCKPERM, FS_SHUFFLE_ROWS, 3000, 1024, 2, 2}, {FS_BLOCKPERM, FS_SHUFFLE_GROUPS, 2000, 300, 4, 4},
    {FS_BLOCKPERM, FS_SHUFFLE_NONE, 700, 100, 1, 1},   {FS_SJLT, (fs_shuffle)0, 1300, 500, 1, 4},
    {FS_SRHT, (fs_shuffle)0, 500, 64, 1, 1},           {FS_BLOCKROW, (fs_shuffle)0, 1024, 128, 2, 2},
};
static const int64_t widths[] = {1, 3, 4, 7, 16, 33, 70};
enum { KINDS = sizeof kinds / sizeof kinds[0], WIDTHS = sizeof widths / sizeof widths[0] };

static void must(fs_result result, const char *doing)
{
    if (result == FS_OK) return;
    fprintf(stderr, "cross.variants: %s: %s\n", doing, fs_error_message());
    exit(1);
}

static fs_context *context_of(const char *variant, int threads)
{
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    options.backend = FS_BACKEND_CPU, options.isa = variant, options.threads = threads;
    must(fs_context_create(&ctx, &options), "fs_context_create");
    return ctx;
}

static fs_matrix view(void *data, int64_t rows, int64_t cols, fs_dtype type, int batch)
{
    return batch ? fs_batch_major(data, cols, rows, type) : fs_row_major(data, rows, cols, type);
}

/* Integers from -4 to 4, or, not whole, sevenths of them. */
static void fill(fs_context *ctx, const fs_matrix *m, float *x, int whole)
{
    const int64_t count = m->rows * m->cols;
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)((int)((uint64_t)i * 0x9E3779B97F4A7C15u >> 40) % 9 - 4) / (whole ? 1 : 7);
    const fs_matrix from = fs_row_major(x, m->rows, m->cols, FS_F32);
    must(fs_add(ctx, &from, 1, 0.0, m), "fs_add");
}

/* Whether two results are equal; zeros may differ in their signs. */
static int equal_numbers(const void *x, const void *y, int64_t count, fs_dtype type)
{
    for (int64_t i = 0; i < count; i++)
        if (type == FS_F64 ? ((const double *)x)[i] != ((const double *)y)[i]
                           : ((const float *)x)[i] != ((const float *)y)[i])
            return 0;
    return 1;
}

static int same(const struct kind *kind, const fs_sketch *S, fs_context *const ctx[3], int64_t n, fs_dtype type,
                int batch, int adjoint)
{
    const fs_dtype sum = type == FS_F64 ? FS_F64 : FS_F32;
    const int64_t in = adjoint ? kind->k : kind->d, out = adjoint ? kind->d : kind->k;
    void *data = malloc((size_t)(in * n) * 8), *y[3];
    float *x = malloc((size_t)(in * n) * sizeof *x);
    fs_matrix A = view(data, in, n, type, batch), Y[3];
    int equal = 1;
    for (int whole = 0; whole < 2; whole++) {
        fill(ctx[0], &A, x, whole);
        for (int i = 0; i < 3; i++) {
            if (!whole) y[i] = malloc((size_t)(out * n) * 8);
            Y[i] = view(y[i], out, n, sum, batch);
            must(adjoint ? fs_apply_adjoint(ctx[i], S, 0, 1.0, &A, 0.0, &Y[i])
                         : fs_apply(ctx[i], S, 0, 1.0, &A, 0.0, &Y[i]),
                 "the product");
        }
        const size_t bytes = (size_t)(out * n) * fs_dtype_size(sum);
        if (memcmp(y[1], y[2], bytes)) equal = 0;
        if (whole && !equal_numbers(y[0], y[1], out * n, sum)) equal = 0;
    }
    for (int i = 0; i < 3; i++) free(y[i]);
    free(data);
    free(x);
    return equal;
}

int main(void)
{
    fs_context *ctx[3] = {context_of("ref", 1), context_of(NULL, 1), context_of(NULL, 3)};
    char text[200];
    int cases = 0, wrong = 0;
    fs_context_describe(ctx[1], text, sizeof text);
    for (int i = 0; i < KINDS; i++) {
        fs_spec spec = FS_SPEC_INIT;
        fs_sketch *S = NULL;
        spec.family = kinds[i].family, spec.shuffle = kinds[i].shuffle, spec.d = kinds[i].d, spec.k = kinds[i].k;
        spec.kappa = kinds[i].kappa, spec.s = kinds[i].family == FS_SRHT ? 0 : kinds[i].s, spec.seed = 5;
        must(fs_sketch_create(&S, &spec), "fs_sketch_create");
        for (int w = 0; w < WIDTHS; w++)
            for (int which = w; which < 16; which += 5, cases++) {
                const fs_dtype type = (fs_dtype)(1 + which % 4);
                if (same(&kinds[i], S, ctx, widths[w], type, which / 4 % 2, which / 8)) continue;
                fprintf(stderr, "cross.variants: %s differ: kind %d, n %lld, %s, %s, %s\n", text, i,
                        (long long)widths[w], fs_dtype_name(type), which / 4 % 2 ? "batch" : "rows",
                        which / 8 ? "adjoint" : "apply");
                wrong++;
            }
        fs_sketch_destroy(S);
    }
    for (int i = 0; i < 3; i++) fs_context_destroy(ctx[i]);
    printf("%s: %d of %d cases are wrong\n", text, wrong, cases);
    return wrong > 0;
}
