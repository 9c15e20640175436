/* support.c - see support.h. */
#include "support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"

void must(fs_result result, const char *call, const char *file, int line)
{
    if (result != FS_OK) fail_msg("%s:%d: %s: %s: %s", file, line, call, fs_result_name(result), fs_error_message());
}

void refused(fs_result result, fs_result code, const char *call, const char *file, int line, const char *const *words)
{
    if (result != code)
        fail_msg("%s:%d: %s: %s (%s), it must be %s", file, line, call, fs_result_name(result),
                 result == FS_OK ? "" : fs_error_message(), fs_result_name(code));
    for (; *words; words++)
        if (!strstr(fs_error_message(), *words))
            fail_msg("%s:%d: %s: the message \"%s\" does not say \"%s\"", file, line, call, fs_error_message(), *words);
}

void *room(int64_t count, size_t bytes)
{
    void *memory = malloc(count > 0 ? (size_t)count * bytes : 1);
    if (!memory) fail_msg("the test has no memory for %" PRId64 " x %zu bytes", count, bytes);
    return memory;
}

/* sketches -------------------------------------------------------------------------------------------------- */

const recipe recipes[] = {
    {"blockperm none kappa 1 s 4", FS_BLOCKPERM, FS_SHUFFLE_NONE, 4, 1, 4, 0, 1003, 257, 1},
    {"blockperm none kappa 4 s 1", FS_BLOCKPERM, FS_SHUFFLE_NONE, 5, 4, 1, 0, 777, 100, 1},
    {"blockperm none kappa 3 s 2", FS_BLOCKPERM, FS_SHUFFLE_NONE, 6, 3, 2, 0, 500, 100, 0},
    {"blockperm, all defaults", FS_BLOCKPERM, (fs_shuffle)0, 0, 0, 0, 0, 1003, 257, 0},
    {"blockperm, defaults but s 4", FS_BLOCKPERM, (fs_shuffle)0, 0, 0, 4, 0, 1003, 257, 1},
    {"blockperm rows kappa 4 s 4", FS_BLOCKPERM, FS_SHUFFLE_ROWS, 8, 4, 4, 0, 1003, 129, 1},
    {"blockperm rows kappa 1 s 1", FS_BLOCKPERM, FS_SHUFFLE_ROWS, 2, 1, 1, 0, 700, 65, 1},
    {"blockperm rows, blocks dense", FS_BLOCKPERM, FS_SHUFFLE_ROWS, 25, 1, 4, 0, 400, 100, 1},
    {"blockperm rows kappa 1 s 16", FS_BLOCKPERM, FS_SHUFFLE_ROWS, 2, 1, 16, 0, 600, 129, 1},
    {"blockperm rows kappa 2 s 3", FS_BLOCKPERM, FS_SHUFFLE_ROWS, 9, 2, 3, 0, 600, 100, 0},
    {"blockperm groups interleave 1", FS_BLOCKPERM, FS_SHUFFLE_GROUPS, 5, 1, 4, 1, 1003, 257, 1},
    {"blockperm groups interleave 4 kappa 2", FS_BLOCKPERM, FS_SHUFFLE_GROUPS, 8, 2, 2, 4, 1003, 257, 1},
    {"blockperm groups interleave 16", FS_BLOCKPERM, FS_SHUFFLE_GROUPS, 16, 1, 4, 16, 1003, 257, 1},
    {"blockperm groups interleave 32", FS_BLOCKPERM, FS_SHUFFLE_GROUPS, 64, 4, 1, 32, 2100, 257, 1},
    {"sjlt s 4", FS_SJLT, (fs_shuffle)0, 0, 0, 4, 0, 1003, 257, 1},
    {"sjlt s 16", FS_SJLT, (fs_shuffle)0, 0, 0, 16, 0, 500, 100, 1},
    {"sjlt s 3", FS_SJLT, (fs_shuffle)0, 0, 0, 3, 0, 500, 100, 0},
    {"CountSketch", FS_SJLT, (fs_shuffle)0, 0, 0, 1, 0, 1003, 257, 1},
    {"blockrow, blocks even", FS_BLOCKROW, (fs_shuffle)0, 4, 2, 2, 0, 1024, 64, 1},
    {"blockrow, blocks uneven", FS_BLOCKROW, (fs_shuffle)0, 7, 3, 2, 0, 1003, 100, 0},
    {"srht k 64", FS_SRHT, (fs_shuffle)0, 0, 0, 0, 0, 700, 64, 1},
    {"srht k 100", FS_SRHT, (fs_shuffle)0, 0, 0, 0, 0, 257, 100, 0},
    {"gaussian", FS_GAUSSIAN, (fs_shuffle)0, 0, 0, 0, 0, 300, 100, 0},
};
const int recipe_count = sizeof recipes / sizeof recipes[0];

fs_spec spec_at(const recipe *r, int64_t d, int64_t k, uint64_t seed)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.family = r->family;
    spec.shuffle = r->shuffle;
    spec.seed = seed;
    spec.d = d;
    spec.k = k;
    int64_t order = 1;
    while (order < d) order *= 2;
    if (r->family == FS_SRHT) spec.k = fsi_min(k, order);
    spec.interleave = r->interleave;
    while (spec.interleave > k) spec.interleave /= 2;
    spec.M = fsi_min(r->M, r->family == FS_BLOCKROW ? fsi_min(d, k) : k);
    if (spec.interleave > 1) spec.M = spec.M / spec.interleave * spec.interleave;
    spec.kappa = fsi_min(r->kappa, spec.M);
    spec.s = r->family == FS_BLOCKROW ? r->s : fsi_min(r->s, spec.M ? k / spec.M : k);
    return spec;
}

fs_sketch *sketch_of(const fs_spec *spec)
{
    fs_sketch *S = NULL;
    MUST(fs_sketch_create(&S, spec));
    return S;
}

fs_sparse export_columns(const fs_sketch *S, int64_t col0, int64_t cols, fs_index_type index, fs_dtype dtype)
{
    fs_spec spec = FS_SPEC_INIT;
    int64_t nnz;
    MUST(fs_sketch_spec(S, &spec));
    MUST(fs_sketch_nnz(S, col0, cols, &nnz));
    fs_sparse c = {FS_CSR,       index,        spec.k, cols,          nnz, room(spec.k + 1, 8),
                   room(nnz, 8), room(nnz, 8), dtype,  FS_MEMORY_HOST};
    MUST(fs_sketch_to_csr(NULL, S, col0, &c));
    return c;
}
void sparse_free(fs_sparse *A)
{
    free(A->ptr);
    free(A->index);
    free(A->value);
}

double *dense_of(const fs_sparse *A)
{
    double *dense = room(A->rows * A->cols, sizeof *dense);
    for (int64_t e = 0; e < A->rows * A->cols; e++) dense[e] = 0.0;
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t e = fsi_index_load(A->ptr, A->index_type, i); e < fsi_index_load(A->ptr, A->index_type, i + 1);
             e++)
            dense[i * A->cols + fsi_index_load(A->index, A->index_type, e)] = fsi_load(A->value, A->dtype, e);
    return dense;
}
double *columns_of(const fs_sketch *S, int64_t col0, int64_t cols)
{
    fs_sparse c = export_columns(S, col0, cols, FS_INDEX64, FS_F64);
    double *dense = dense_of(&c);
    sparse_free(&c);
    return dense;
}

/* contexts -------------------------------------------------------------------------------------------------- */

const char *const variants[] = {
    "ref",
    "base",
#if defined(__x86_64__)
    "avx2",
    "avx512",
#endif
};
const int variant_count = sizeof variants / sizeof variants[0];

fs_context *context_of(const char *variant, int threads)
{
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    options.backend = FS_BACKEND_CPU;
    options.threads = threads;
    options.isa = variant;
    const fs_result result = fs_context_create(&ctx, &options);
    if (result != FS_EBACKEND) MUST(result);
    return ctx;
}

named_context contexts[sizeof variants / sizeof variants[0]];
int context_count = 0;

int open_contexts(void **state)
{
    (void)state;
    printf("variants:");
    for (int v = 0; v < variant_count; v++) {
        fs_context *ctx = context_of(variants[v], 2);
        printf(" %s%s", variants[v], ctx ? "" : " (not run: this processor cannot)");
        if (ctx) contexts[context_count++] = (named_context){variants[v], ctx};
    }
    printf("\n");
    /* Every processor runs these two. */
    if (context_count >= 2 && !strcmp(contexts[0].name, "ref") && !strcmp(contexts[1].name, "base")) return 0;
    fprintf(stderr, "there is no context of ref, or none of base: %s\n", fs_error_message());
    return 1;
}
int close_contexts(void **state)
{
    (void)state;
    while (context_count > 0) fs_context_destroy(contexts[--context_count].ctx);
    return 0;
}

/* data ------------------------------------------------------------------------------------------------------ */

/* splitmix64's output function at counter i (Steele, Lea, Flood, OOPSLA 2014). */
uint64_t bits_at(uint64_t seed, int64_t i)
{
    uint64_t x = seed * 0xD1342543DE82EF95u + (uint64_t)(i + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}
double whole_at(uint64_t seed, int64_t i, int64_t limit)
{
    return (double)(int64_t)(bits_at(seed, i) % (uint64_t)(2 * limit + 1)) - (double)limit;
}
double normal_at(uint64_t seed, int64_t i)
{
    const double u = ((double)(bits_at(seed, 2 * i) >> 11) + 0.5) * 0x1p-53;
    const double v = (double)(bits_at(seed, 2 * i + 1) >> 11) * 0x1p-53;
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* views ----------------------------------------------------------------------------------------------------- */

const char *const layout_names[] = {"rows",         "columns",         "rows padded",   "columns padded",
                                    "rows shifted", "columns shifted", "rows backward", "columns backward",
                                    "rows spread",  "columns spread",  "one column",    "one row"};

view view_make(layout how, int64_t rows, int64_t cols, fs_dtype dtype)
{
    const struct {
        int64_t down, across, lead;
    } strides[] = {
        [ROWS] = {cols, 1, 0},
        [COLUMNS] = {1, rows, 0},
        [ROWS_PADDED] = {cols + 3, 1, 0},
        [COLUMNS_PADDED] = {1, rows + 5, 0},
        [ROWS_SHIFTED] = {cols, 1, 1},
        [COLUMNS_SHIFTED] = {1, rows, 1},
        [ROWS_BACKWARD] = {-(cols + 1), -1, 0},
        [COLUMNS_BACKWARD] = {-1, rows + 2, 0},
        [ROWS_SPREAD] = {2 * cols + 1, 2, 3},
        [COLUMNS_SPREAD] = {3, 3 * rows + 2, 2},
        [ONE_COLUMN] = {1, 0, 0},
        [ONE_ROW] = {0, 1, 0},
    };
    const int64_t down = strides[how].down, across = strides[how].across;
    const int64_t tall = rows > 0 ? (rows - 1) * down : 0, wide = cols > 0 ? (cols - 1) * across : 0;
    view v = {{NULL, rows, cols, down, across, strides[how].lead, 0, dtype, FS_MEMORY_HOST}, NULL};
    v.m.offset -= (tall < 0 ? tall : 0) + (wide < 0 ? wide : 0);
    v.m.size = rows > 0 && cols > 0 ? v.m.offset + (tall > 0 ? tall : 0) + (wide > 0 ? wide : 0) + 1 : v.m.offset + 1;
    const int64_t bytes = v.m.size * fsi_dtype_size(dtype);
    v.m.data = memset(room(bytes, 1), 0xFF, (size_t)bytes);
    return v;
}
void view_free(view *v)
{
    free(v->m.data);
    free(v->sealed);
}

static int64_t place_of(const fs_matrix *m, int64_t i, int64_t j)
{
    return m->offset + i * m->row_stride + j * m->col_stride;
}
double at(const fs_matrix *m, int64_t i, int64_t j) { return fsi_load(m->data, m->dtype, place_of(m, i, j)); }
void put(const fs_matrix *m, int64_t i, int64_t j, double x) { fsi_store(m->data, m->dtype, place_of(m, i, j), x); }

void fill_whole(const fs_matrix *m, uint64_t seed, int64_t limit)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) put(m, i, j, whole_at(seed, i * m->cols + j, limit));
}
void fill_normal(const fs_matrix *m, uint64_t seed)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) put(m, i, j, normal_at(seed, i * m->cols + j));
}

static size_t buffer_bytes(const view *v) { return (size_t)(v->m.size * fsi_dtype_size(v->m.dtype)); }
void view_seal(view *v)
{
    free(v->sealed);
    v->sealed = memcpy(room(v->m.size, (size_t)fsi_dtype_size(v->m.dtype)), v->m.data, buffer_bytes(v));
}
static void expect_same_bytes(const char *what, const view *v, const char *bytes)
{
    const char *now = v->m.data;
    const int64_t each = fsi_dtype_size(v->m.dtype);
    if (memcmp(now, bytes, buffer_bytes(v)) == 0) return;
    for (size_t b = 0; b < buffer_bytes(v); b++)
        if (now[b] != bytes[b])
            fail_msg("%s: buffer element %" PRId64 " was written and must not be", what, (int64_t)b / each);
}
void expect_untouched(const char *what, const view *v) { expect_same_bytes(what, v, v->sealed); }
void expect_padding_untouched(const char *what, const view *v)
{
    const size_t each = (size_t)fsi_dtype_size(v->m.dtype);
    char *expected = memcpy(room(v->m.size, each), v->sealed, buffer_bytes(v));
    for (int64_t i = 0; i < v->m.rows; i++)
        for (int64_t j = 0; j < v->m.cols; j++) {
            const size_t byte = (size_t)place_of(&v->m, i, j) * each;
            memcpy(expected + byte, (const char *)v->m.data + byte, each);
        }
    expect_same_bytes(what, v, expected);
    free(expected);
}

void expect_equal(const char *what, const fs_matrix *got, const fs_matrix *want)
{
    for (int64_t i = 0; i < got->rows; i++)
        for (int64_t j = 0; j < got->cols; j++)
            if (!(at(got, i, j) == at(want, i, j)))
                fail_msg("%s: element (%" PRId64 ", %" PRId64 ") is %.17g, it must be %.17g", what, i, j, at(got, i, j),
                         at(want, i, j));
}
void expect_same_bits(const char *what, const view *got, const view *want)
{
    const size_t each = (size_t)fsi_dtype_size(got->m.dtype);
    for (int64_t i = 0; i < got->m.rows; i++)
        for (int64_t j = 0; j < got->m.cols; j++) {
            const size_t byte = (size_t)place_of(&got->m, i, j) * each;
            if (memcmp((const char *)got->m.data + byte, (const char *)want->m.data + byte, each) != 0)
                fail_msg("%s: element (%" PRId64 ", %" PRId64 ") is %a, it must be %a", what, i, j, at(&got->m, i, j),
                         at(&want->m, i, j));
        }
}
void expect_close(const char *what, const fs_matrix *got, const double *want, const double *slack)
{
    for (int64_t i = 0; i < got->rows; i++)
        for (int64_t j = 0; j < got->cols; j++) {
            const int64_t e = i * got->cols + j;
            if (!(fabs(at(got, i, j) - want[e]) <= slack[e]))
                fail_msg("%s: element (%" PRId64 ", %" PRId64 ") is %.17g, it must be %.17g; off by %.3g, allowed %.3g",
                         what, i, j, at(got, i, j), want[e], fabs(at(got, i, j) - want[e]), slack[e]);
        }
}

void product(const double *T, int64_t m, int64_t p, int transposed, const fs_matrix *X, double *value, double *size)
{
    for (int64_t e = 0; e < m * X->cols; e++) value[e] = size[e] = 0.0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t q = 0; q < p; q++) {
            const double t = transposed ? T[q * m + i] : T[i * p + q];
            if (t == 0.0) continue;
            for (int64_t j = 0; j < X->cols; j++) {
                const double x = t * at(X, q, j);
                value[i * X->cols + j] += x;
                size[i * X->cols + j] += fabs(x);
            }
        }
}

fs_sparse sparse_of(const fs_matrix *dense, uint64_t seed, fs_sparse_format format, fs_index_type index)
{
    const int64_t lines = format == FS_CSR ? dense->rows : dense->cols, most = 2 * dense->rows * dense->cols;
    const int64_t across = format == FS_CSR ? dense->cols : dense->rows;
    fs_sparse A = {format,        index,         dense->rows,  dense->cols,   0, room(lines + 1, 8),
                   room(most, 8), room(most, 8), dense->dtype, FS_MEMORY_HOST};
    for (int64_t line = 0; line < lines; line++) {
        fsi_index_store(A.ptr, index, line, A.nnz);
        /* Down from a random start, so that indices are out of order; a second round stores what the first took. */
        const int64_t start = (int64_t)(bits_at(seed, line) % (uint64_t)across);
        for (int64_t step = 0; step < 2 * across; step++) {
            const int64_t to = (start + 2 * across - step) % across;
            const double x = format == FS_CSR ? at(dense, line, to) : at(dense, to, line);
            const int split = x != 0.0 && bits_at(seed, line * across + to) % 4 == 0;
            if (x == 0.0 || (step >= across && !split)) continue;
            fsi_index_store(A.index, index, A.nnz, to);
            fsi_store(A.value, A.dtype, A.nnz++, step >= across ? 1.0 : x - split);
        }
    }
    fsi_index_store(A.ptr, index, lines, A.nnz);
    return A;
}

double slack_of(fs_dtype dtype, int64_t terms, double size)
{
    return (double)(terms + 4) * (fsi_dtype_sum(dtype) == FS_F64 ? 0x1p-53 : 0x1p-24) * size;
}
