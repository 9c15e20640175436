/* conversions.c - f16 and bf16 to float and back: every pattern, and every value at which the result of rounding
 * changes.
 *
 * The reference works with ldexp and rint on doubles.  Loads and stores of every variant are reached through a 1 x 1
 * sketch S = (+1), whose product with a row of 65536 elements is that row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/support.h"

enum { PATTERNS = 65536 };

/* A 16-bit type: its bits of precision, and the exponents of its smallest and largest normal numbers. */
typedef struct format {
    fs_dtype type;
    int precision, least, most;
} format;
static const format formats[] = {{FS_F16, 11, -14, 15}, {FS_BF16, 8, -126, 127}};

static double value_of(const format *f, uint16_t pattern)
{
    const int mantissa_bits = f->precision - 1, mantissa = pattern & ((1 << mantissa_bits) - 1);
    const int exponent = (pattern & 0x7FFF) >> mantissa_bits;
    const double sign = pattern & 0x8000 ? -1.0 : 1.0;
    if (exponent == f->most - f->least + 2) return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(mantissa, f->least - mantissa_bits);
    return sign * ldexp(mantissa + (1 << mantissa_bits), f->least + exponent - 1 - mantissa_bits);
}

/* x rounded to the format: to nearest, ties to even; infinity from half a step above the largest number on. */
static double rounded(const format *f, double x)
{
    if (isnan(x) || isinf(x) || x == 0.0) return x;
    const int exponent = ilogb(x) > f->least ? ilogb(x) : f->least;
    const double step = ldexp(1.0, exponent - f->precision + 1), result = rint(x / step) * step;
    return fabs(result) >= ldexp(1.0, f->most + 1) ? copysign(INFINITY, x) : result;
}

static int same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* The 1 x 1 sketch whose entry is +1. */
static fs_sketch *one(void)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.family = FS_SJLT, spec.s = 1, spec.d = 1, spec.k = 1;
    for (;; spec.seed++) {
        fs_sketch *S = sketch_of(&spec);
        double *entry = columns_of(S, 0, 1);
        const double sign = *entry;
        free(entry);
        if (sign == 1.0) return S;
        fs_sketch_destroy(S);
    }
}

/* Multiplies all patterns by alpha, into `out`, by one variant, by rows or by columns, and forward or back. */
static void check_product(const format *f, fs_dtype out, double alpha, const named_context *variant, layout how,
                          int adjoint)
{
    fs_sketch *S = one();
    view A = view_make(how, 1, PATTERNS, f->type), Y = view_make(how, 1, PATTERNS, out);
    for (int p = 0; p < PATTERNS; p++) ((uint16_t *)A.m.data)[A.m.offset + p * A.m.col_stride] = (uint16_t)p;
    if (adjoint) MUST(fs_apply_adjoint(variant->ctx, S, 0, alpha, &A.m, 0.0, &Y.m));
    else MUST(fs_apply(variant->ctx, S, 0, alpha, &A.m, 0.0, &Y.m));
    for (int p = 0; p < PATTERNS; p++) {
        const int64_t at = Y.m.offset + p * Y.m.col_stride;
        const double x = value_of(f, (uint16_t)p), product = (float)((double)(float)alpha * x);
        const double want = out == FS_F32 ? product : rounded(f, product);
        const double got = out == FS_F32 ? ((float *)Y.m.data)[at] : value_of(f, ((uint16_t *)Y.m.data)[at]);
        if (!same(got, want))
            fail_msg("%s, %s: %g times %s pattern %04x, %.9g, is %.9g in %s, it must be %.9g", variant->name,
                     layout_names[how], alpha, fs_dtype_name(f->type), p, x, got, fs_dtype_name(out), want);
    }
    view_free(&A), view_free(&Y);
    fs_sketch_destroy(S);
}

static void every_pattern_is_read_exactly(void **state)
{
    (void)state;
    static const layout layouts[] = {ROWS, COLUMNS_SHIFTED, ROWS_SPREAD};
    for (int f = 0; f < 2; f++)
        for (int v = 0; v < context_count; v++)
            for (int i = 0; i < 6; i++) check_product(&formats[f], FS_F32, 1.0, &contexts[v], layouts[i % 3], i / 3);
}

/* 1 + 2^-8 and its like put products of 65536 patterns on, just above and just below the midpoints of both formats; the
 * large and small ones reach overflow and subnormals. */
static void every_product_is_rounded_to_nearest_even(void **state)
{
    (void)state;
    static const double alphas[] = {1.0,         1 + 0x1p-8, 1 - 0x1p-9, 1 + 0x1p-11, 1 - 0x1p-12,
                                    1 + 0x1p-12, 0.5,        3.0,        1.0 / 3,     0x1p-10,
                                    0x1.002p-13, 0x1.8p-20,  0x1.01p+9,  -0x1.ffp+3,  0x1.8p-130};
    for (int f = 0; f < 2; f++)
        for (int v = 0; v < context_count; v++)
            for (size_t a = 0; a < sizeof alphas / sizeof alphas[0]; a++)
                check_product(&formats[f], formats[f].type, alphas[a], &contexts[v], a & 1 ? ROWS : COLUMNS_SHIFTED,
                              a & 2);
}

static uint16_t pattern_of(const format *f, float x)
{
    return f->type == FS_F16 ? fsi_f16_of_float(x) : fsi_bf16_of_float(x);
}

static void expect_pattern(const format *f, float x, int want)
{
    for (int minus = 0; minus <= 1; minus++) {
        const int got = pattern_of(f, minus ? -x : x), expected = want | minus << 15;
        if (got != expected)
            fail_msg("%a becomes %s pattern %04x, it must be %04x", minus ? -x : x, fs_dtype_name(f->type), got,
                     expected);
    }
}

/* Rounding is monotone and changes only at midpoints of neighbours, so these floats determine the other 2^32: each
 * number of the format, each midpoint above one, and the floats on both sides of it. */
static void rounding_changes_at_every_midpoint_and_only_there(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const format *f = &formats[i];
        const int infinity = (f->most - f->least + 2) << (f->precision - 1);
        for (int p = 0; p < infinity; p++) {
            /* Above the largest number comes 2^(most + 1), as if the format continued. */
            const double low = value_of(f, (uint16_t)p);
            const double high = p + 1 == infinity ? ldexp(1.0, f->most + 1) : value_of(f, (uint16_t)(p + 1));
            const float middle = (float)(low + (high - low) / 2);
            expect_pattern(f, (float)low, p);
            expect_pattern(f, nextafterf(middle, 0.0f), p);
            expect_pattern(f, middle, p & 1 ? p + 1 : p);
            expect_pattern(f, nextafterf(middle, INFINITY), p + 1);
        }
        expect_pattern(f, INFINITY, infinity);
        expect_pattern(f, 3.4028234e38f, infinity);
        assert_true(isnan(value_of(f, pattern_of(f, NAN))));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_is_read_exactly),
        cmocka_unit_test(every_product_is_rounded_to_nearest_even),
        cmocka_unit_test(rounding_changes_at_every_midpoint_and_only_there),
    };
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
