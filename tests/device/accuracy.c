/* accuracy.c - f32 products on the device err at most twice as much as plain f32 summation does.
 *
 * Errors are Frobenius norms of the distance to the same product in double, of ref and of the device; data are normal,
 * and then also of magnitudes that differ from column to column and grow along the rows: there every column is compared
 * by itself.
 * A context of FS_PRECISION_FAST may err more, below 1e-4 of the result. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "call.h"

typedef struct shape {
    recipe R;
    int64_t n;
    layout how;
    int adjoint;
} shape;
#define SHAPE(shuffle, M, kappa, s, interleave, d, k, n, how, adjoint) \
    { \
        {#shuffle, FS_BLOCKPERM, FS_SHUFFLE_##shuffle, M, kappa, s, interleave, d, k, 1}, n, how, adjoint \
    }
#define GAUSSIAN(d, k, n, how, adjoint) \
    { \
        {"gaussian", FS_GAUSSIAN, (fs_shuffle)0, 0, 0, 0, 0, d, k, 0}, n, how, adjoint \
    }
static const shape shapes[] = {
    SHAPE(ROWS, 4, 1, 4, 0, 1000, 256, 128, ROWS, 0),
    SHAPE(ROWS, 4, 1, 4, 0, 4096, 256, 64, ROWS, 0),
    SHAPE(ROWS, 16, 1, 4, 0, 16384, 1024, 128, ROWS, 0),
    SHAPE(ROWS, 16, 4, 2, 0, 16384, 1024, 256, ROWS, 0),
    SHAPE(ROWS, 16, 2, 8, 0, 12345, 1000, 130, ROWS, 0),
    SHAPE(ROWS, 64, 2, 8, 0, 65536, 4096, 33, ROWS, 0),
    SHAPE(NONE, 16, 1, 1, 0, 65536, 1024, 32, ROWS, 0),
    GAUSSIAN(5001, 300, 61, ROWS, 0),
    GAUSSIAN(2500, 130, 140, COLUMNS, 0),
    SHAPE(ROWS, 1, 1, 4, 0, 200001, 64, 16, ROWS, 0),
    SHAPE(ROWS, 16, 1, 4, 0, 1 << 20, 1024, 8, ROWS, 0),
    SHAPE(ROWS, 16, 1, 4, 0, 1 << 20, 1024, 16, ROWS, 0),
    SHAPE(ROWS, 16, 1, 8, 0, 1 << 19, 1024, 64, ROWS, 0),
    SHAPE(ROWS, 64, 4, 4, 0, 1 << 20, 4096, 1, ROWS, 0),
    SHAPE(GROUPS, 16, 1, 4, 16, 16384, 1024, 128, COLUMNS, 0),
    SHAPE(GROUPS, 16, 1, 4, 1, 1 << 17, 1024, 64, COLUMNS, 0),
    SHAPE(GROUPS, 4, 1, 4, 1, 1000, 256, 128, COLUMNS, 0),
    SHAPE(GROUPS, 16, 1, 4, 4, 30000, 1024, 130, COLUMNS, 0),
    SHAPE(GROUPS, 8, 1, 64, 8, 4096, 512, 64, COLUMNS, 0),
    SHAPE(GROUPS, 64, 1, 1, 16, 1 << 17, 4096, 64, COLUMNS, 0),
    SHAPE(GROUPS, 8, 2, 4, 4, 30001, 512, 50, COLUMNS, 0),
    SHAPE(GROUPS, 16, 1, 4, 16, 1 << 20, 1024, 8, COLUMNS, 0),
    SHAPE(GROUPS, 2, 1, 4, 2, (1 << 20) + 5, 128, 3, COLUMNS, 0),
    SHAPE(ROWS, 16, 1, 4, 0, 100003, 1024, 16, COLUMNS, 0),
    SHAPE(ROWS, 16, 2, 8, 0, 16384, 1024, 128, ROWS, 1),
    SHAPE(GROUPS, 16, 4, 4, 4, 16384, 1024, 64, COLUMNS, 1),
    {{"sjlt", FS_SJLT, (fs_shuffle)0, 0, 0, 4, 0, 50001, 1000, 1}, 32, ROWS, 0},
    {{"blockrow", FS_BLOCKROW, (fs_shuffle)0, 8, 4, 16, 0, 50000, 1000, 0}, 32, ROWS, 0},
    {{"srht", FS_SRHT, (fs_shuffle)0, 0, 0, 0, 0, 3000, 200, 0}, 32, ROWS, 0},
    GAUSSIAN(128, 64, 257, ROWS, 0), /* the least that the tensor cores take; then two panels, and two bands of rows */
    GAUSSIAN(60001, 600, 40, ROWS, 0),
    GAUSSIAN(200, 33000, 33, COLUMNS, 0),
    GAUSSIAN(40001, 150, 70, COLUMNS, 1),
    GAUSSIAN(3000, 200, 5, ROWS, 0),
    GAUSSIAN(3000, 200, 32, ROWS, 0),
};

static call call_of(const shape *sh)
{
    call c = {.adjoint = sh->adjoint, .n = sh->n, .from = sh->how, .to = sh->how, .in = FS_F32, .out = FS_F32};
    c.alpha = 1;
    c.rows = sh->R.d;
    c.spec = spec_at(&sh->R, c.rows, sh->R.k, 19);
    call_name(&c, sh->R.name);
    return c;
}

static double distance(const fs_matrix *a, const fs_matrix *b, double *size)
{
    double square = 0.0;
    *size = 0.0;
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            const double off = at(a, i, j) - at(b, i, j);
            square += off * off;
            *size += at(b, i, j) * at(b, i, j);
        }
    *size = sqrt(*size);
    return sqrt(square);
}

/* The product in double of the very same numbers. */
static view in_double(const lane *l, const call *c, const fs_sketch *S, const view *A)
{
    view wide = view_make(c->from, A->m.rows, A->m.cols, FS_F64), Y = view_make(c->to, call_out_rows(c), c->n, FS_F64);
    for (int64_t i = 0; i < A->m.rows; i++)
        for (int64_t j = 0; j < A->m.cols; j++) put(&wide.m, i, j, at(&A->m, i, j));
    MUST(call_run(c, l->tuned, S, &wide.m, &Y.m));
    view_free(&wide);
    return Y;
}

static void check_full(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const call c = call_of(&shapes[number]);
    fs_sketch *S = sketch_of(&c.spec);
    view A = view_make(c.from, call_in_rows(&c), c.n, c.in), ref = call_output(&c);
    fill_normal(&A.m, 8);
    view got = call_on_device(l, &c, l->gpu, &A), truth = in_double(l, &c, S, &A);
    MUST(call_run(&c, l->ref, S, &A.m, &ref.m));
    double size;
    const double ref_error = distance(&ref.m, &truth.m, &size), error = distance(&got.m, &truth.m, &size);
    if (!(error <= 2 * ref_error))
        fail_msg("%s: the error is %.3g of |Y| = %.6g, that of ref %.3g: %.3g times as much", c.name, error / size,
                 size, ref_error / size, error / ref_error);
    view_free(&A), view_free(&ref), view_free(&got), view_free(&truth);
    fs_sketch_destroy(S);
}
static void f32_errs_at_most_twice_as_much_as_ref(void **state)
{
    (void)state;
    if (small_set) skip_because("accuracy is no matter for a sanitizer");
    for_each_case(COUNT(shapes), COUNT(shapes), check_full, NULL);
}

/* Columns of A from 2^-100 to 2^20 or so, every one growing 2^`growth` times from its first row to its last. */
static void spread_magnitudes(const fs_matrix *A, int growth)
{
    for (int64_t i = 0; i < A->rows; i++)
        for (int64_t j = 0; j < A->cols; j++)
            put(A, i, j, ldexp(at(A, i, j), (int)(j * 37 % 121) - 100 + (int)(growth * i / A->rows)));
}
/* Data: the growth.  Where one, the last, is the only term of a sum that counts, plain summation rounds almost
 * nothing, and it may be the last of a float's 24 bits that is lost. */
static void check_magnitudes(const lane *l, int64_t number, const void *data)
{
    const int growth = *(const int *)data;
    const call c = call_of(&shapes[number]);
    fs_sketch *S = sketch_of(&c.spec);
    view A = view_make(c.from, call_in_rows(&c), c.n, c.in), ref = call_output(&c);
    fill_normal(&A.m, 8);
    spread_magnitudes(&A.m, growth);
    view got = call_on_device(l, &c, l->gpu, &A), truth = in_double(l, &c, S, &A);
    MUST(call_run(&c, l->ref, S, &A.m, &ref.m));
    for (int64_t j = 0; j < c.n; j++) {
        fs_matrix column[] = {ref.m, got.m, truth.m};
        for (int i = 0; i < 3; i++) {
            column[i].data = (char *)column[i].data + j * column[i].col_stride * (i == 2 ? 8 : 4);
            column[i].cols = 1;
        }
        double size;
        const double ref_error = distance(&column[0], &column[2], &size);
        const double error = distance(&column[1], &column[2], &size);
        if (!(error <= 2 * ref_error || (growth && error <= 0x1p-23 * size)))
            fail_msg("%s, growth 2^%d, column %" PRId64 ": the error is %.3g of its %.6g, that of ref %.3g: %.3g times "
                     "as much",
                     c.name, growth, j, error / size, size, ref_error / size, error / ref_error);
    }
    view_free(&A), view_free(&ref), view_free(&got), view_free(&truth);
    fs_sketch_destroy(S);
}
static void columns_of_any_magnitude_err_at_most_twice_as_much(void **state)
{
    (void)state;
    if (small_set) skip_because("accuracy is no matter for a sanitizer");
    const int growth[] = {0, 40};
    for_each_case(9, 9, check_magnitudes, &growth[0]);
    for_each_case(9, 9, check_magnitudes, &growth[1]);
}

static void check_fast(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const call c = call_of(&shapes[number]);
    fs_sketch *S = sketch_of(&c.spec);
    fs_context *fast = gpu_context(l->stream, FS_PRECISION_FAST);
    view A = view_make(c.from, call_in_rows(&c), c.n, c.in);
    fill_normal(&A.m, 8);
    view got = call_on_device(l, &c, fast, &A), truth = in_double(l, &c, S, &A);
    double size;
    const double error = distance(&got.m, &truth.m, &size);
    if (!(error <= 1e-4 * size)) fail_msg("%s, fast: the error is %.3g of |Y| = %.6g", c.name, error / size, size);
    fs_context_destroy(fast);
    view_free(&A), view_free(&got), view_free(&truth);
    fs_sketch_destroy(S);
}
static void fast_precision_errs_less_than_a_ten_thousandth(void **state)
{
    (void)state;
    if (small_set) skip_because("accuracy is no matter for a sanitizer");
    for_each_case(COUNT(shapes), COUNT(shapes), check_fast, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_errs_at_most_twice_as_much_as_ref),
        cmocka_unit_test(columns_of_any_magnitude_err_at_most_twice_as_much),
        cmocka_unit_test(fast_precision_errs_less_than_a_ten_thousandth),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
