/* quality.c - how well the default sketch embeds subspaces, measured against a dense Gaussian.
 *
 * The subspace-embedding error of S on range(A) is |(S Q)' S Q - I|_2, Q an orthonormal basis of it.  The Gaussian's
 * does not depend on Q (its rows are invariant under rotations), so its mean is measured once, on the d = n identity.
 * Inputs are those on which a sketch with contiguous blocks fails: their mass is in few rows, side by side.
 * The mean error of the default (rows shuffled) and that of shuffle groups with its default interleave must be within
 * 1.05 of the Gaussian's.  Where the mass is in n rows far from each other, S Q is just n columns of S in blocks drawn
 * at random, and no few nonzeros reach a Gaussian: there the limit is 1.18 for both.  The contiguous sketch is measured
 * too, to see that the inputs are hard: where mass lies side by side its error must be well above the default's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

enum { D = 8192, N = 64, K = 1024, DRAWS = 80 };

/* inputs ---------------------------------------------------------------------------------------------------- */

/* Large rows are 1000 times the others: they hold all but a millionth of the leverage. */
static double hot(int is) { return is ? 1000.0 : 1.0; }

static double gaussian(int64_t i, int64_t j) { return normal_at(1, i * N + j); }
static double hot_64(int64_t i, int64_t j) { return hot(i >= 64 && i < 128) * gaussian(i, j); }
static double hot_128(int64_t i, int64_t j) { return hot(i >= 1024 && i < 1152) * gaussian(i, j); }
static double hot_650(int64_t i, int64_t j) { return hot(i >= 1000 && i < 1650) * gaussian(i, j); }
/* Row i falls as 1 / (i + 1)^2. */
static double decaying(int64_t i, int64_t j) { return gaussian(i, j) / ((double)(i + 1) * (double)(i + 1)); }
/* I_n over a thousandth of noise. */
static double identity_on_top(int64_t i, int64_t j) { return i < N ? i == j : 1e-3 * gaussian(i, j); }
/* Column j has its own d / n = 128 rows. */
static double block_diagonal(int64_t i, int64_t j) { return i / (D / N) == j ? gaussian(i, j) : 0.0; }
/* t with nu = 1.5: a normal over sqrt(chi^2_nu / nu).  chi^2_1.5 = 2 Gamma(3/4), and Gamma(3/4) = Gamma(7/4) U^(4/3)
 * with Gamma(7/4) by Marsaglia and Tsang's rejection ("A simple method for generating gamma variables", TOMS 2000). */
static double student(int64_t i, int64_t j)
{
    const double shape = 1.75 - 1.0 / 3, c = 1 / sqrt(9 * shape);
    for (int64_t attempt = 0;; attempt++) {
        const int64_t draw = (i * N + j) * 64 + attempt;
        const double x = normal_at(2, draw), v = (1 + c * x) * (1 + c * x) * (1 + c * x);
        const double u = ((double)(bits_at(3, draw) >> 11) + 0.5) * 0x1p-53;
        const double w = ((double)(bits_at(4, draw) >> 11) + 0.5) * 0x1p-53;
        if (v <= 0 || log(u) > x * x / 2 + shape - shape * v + shape * log(v)) continue;
        const double gamma = shape * v * pow(w, 4.0 / 3);
        return gaussian(i, j) / sqrt(2 * gamma / 1.5);
    }
}
/* 20 bundles of 16 neighbouring rows, anywhere. */
static double hot_bundles(int64_t i, int64_t j)
{
    int is = 0;
    for (int b = 0; b < 20; b++) is |= (int64_t)(bits_at(5, b) % (D / 16)) == i / 16;
    return hot(is) * gaussian(i, j);
}
/* One coordinate of every row group of 32, as a channel with large gradients in a network. */
static double hot_channel(int64_t i, int64_t j) { return hot(i % 32 == 7) * gaussian(i, j); }
/* One row of every 128. */
static double hot_scattered(int64_t i, int64_t j)
{
    return hot((int64_t)(bits_at(6, i / 128) % 128) == i % 128) * gaussian(i, j);
}

static const struct input {
    const char *name;
    double (*entry)(int64_t i, int64_t j);
    double rows, lines; /* limits of the two ratios */
    double none;        /* the contiguous sketch's ratio is at least this: the input is hard; 0: it is not */
} inputs[] = {
    {"Gaussian", gaussian, 1.05, 1.05, 0},
    {"rows 64..127 hot", hot_64, 1.05, 1.05, 2.2},
    {"decaying rows", decaying, 1.05, 1.05, 2.5},
    {"identity on top", identity_on_top, 1.05, 1.05, 2.3},
    {"block-diagonal", block_diagonal, 1.05, 1.05, 0},
    {"Student-t 1.5", student, 1.05, 1.05, 0},
    {"650 large rows", hot_650, 1.05, 1.05, 2.7},
    {"128 large rows", hot_128, 1.05, 1.05, 2.6},
    {"20 hot bundles of 16", hot_bundles, 1.05, 1.05, 0},
    {"one hot channel of 32", hot_channel, 1.05, 1.05, 0},
    {"64 large rows, scattered", hot_scattered, 1.18, 1.18, 0},
};
enum { INPUTS = sizeof inputs / sizeof inputs[0] };

/* An orthonormal basis of an input's range, row-major d x n: modified Gram-Schmidt, twice (twice is enough: Giraud,
 * Langou, Rozloznik, 2005).  Works on columns, which are contiguous here, and transposes at the end. */
static double *basis(const struct input *in)
{
    double *column = room((int64_t)D * N, 8), *Q = room((int64_t)D * N, 8);
    for (int64_t j = 0; j < N; j++) {
        double *q = column + j * D;
        for (int64_t i = 0; i < D; i++) q[i] = in->entry(i, j);
        for (int64_t p = 0; p < 2 * j + 2; p++) {
            const double *other = column + p % (j + 1) * D;
            double dot = 0.0;
            for (int64_t i = 0; i < D; i++) dot += q[i] * other[i];
            const double by = other == q ? 1 - 1 / sqrt(dot) : dot;
            for (int64_t i = 0; i < D; i++) q[i] -= by * other[i];
        }
    }
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < N; j++) Q[i * N + j] = column[j * D + i];
    free(column);
    return Q;
}

/* the error ------------------------------------------------------------------------------------------------- */

/* |G|_2 of a symmetric n x n matrix: |G^m|_F^(1/m) with m = 2^10 by squaring, at most n^(1/(2m)), 0.2 %, too large. */
static double spectral_norm(double *G)
{
    enum { SQUARINGS = 10 };
    static double next[N * N];
    double log_norm = 0.0, power = 1.0;
    for (int s = 0; s <= SQUARINGS; s++) {
        double sum = 0.0;
        for (int e = 0; e < N * N; e++) sum += G[e] * G[e];
        const double norm = sqrt(sum);
        log_norm += log(norm) / power;
        power *= 2;
        for (int e = 0; e < N * N; e++) G[e] /= norm;
        memset(next, 0, sizeof next);
        for (int i = 0; i < N; i++)
            for (int p = 0; p < N; p++)
                for (int j = 0; j < N; j++) next[i * N + j] += G[i * N + p] * G[p * N + j];
        memcpy(G, next, sizeof next);
    }
    return exp(log_norm);
}

/* The mean over so many seeds of |(S Q)' S Q - I|_2. */
static double mean_error(fs_context *ctx, fs_spec spec, const double *Q, int draws)
{
    static double Y[K * N], G[N * N];
    double total = 0.0;
    fs_matrix from = fs_row_major((void *)(uintptr_t)Q, spec.d, N, FS_F64), to = fs_row_major(Y, K, N, FS_F64);
    for (int draw = 0; draw < draws; draw++) {
        spec.seed = 1000 + (uint64_t)draw;
        fs_sketch *S = sketch_of(&spec);
        MUST(fs_apply(ctx, S, 0, 1.0, &from, 0.0, &to));
        fs_sketch_destroy(S);
        memset(G, 0, sizeof G);
        for (int k = 0; k < K; k++)
            for (int i = 0; i < N; i++)
                for (int j = 0; j <= i; j++) G[i * N + j] += Y[k * N + i] * Y[k * N + j];
        for (int i = 0; i < N; i++)
            for (int j = 0; j < i; j++) G[j * N + i] = G[i * N + j];
        for (int i = 0; i < N; i++) G[i * N + i] -= 1.0;
        total += spectral_norm(G);
    }
    return total / draws;
}

static void the_default_is_near_the_gaussian_on_every_input(void **state)
{
    (void)state;
    static double identity[N * N];
    for (int i = 0; i < N; i++) identity[i * N + i] = 1.0;
    fs_context *ctx = contexts[context_count - 1].ctx;
    fs_spec dense = FS_SPEC_INIT, rows = FS_SPEC_INIT, lines = FS_SPEC_INIT, none = FS_SPEC_INIT;
    dense.d = N, rows.d = lines.d = none.d = D;
    dense.k = rows.k = lines.k = none.k = K;
    dense.family = FS_GAUSSIAN, lines.shuffle = FS_SHUFFLE_GROUPS, none.shuffle = FS_SHUFFLE_NONE;
    const double reference = mean_error(ctx, dense, identity, DRAWS);
    print_message("Gaussian: mean error %.3f; ratios to it\n%-24s    rows   lines    none\n", reference, "input");
    int failures = 0;
    for (int i = 0; i < INPUTS; i++) {
        double *Q = basis(&inputs[i]);
        const double by_rows = mean_error(ctx, rows, Q, DRAWS) / reference;
        const double by_lines = mean_error(ctx, lines, Q, DRAWS) / reference;
        const double by_none = mean_error(ctx, none, Q, 2) / reference;
        print_message("%-24s %7.3f %7.3f %7.3f\n", inputs[i].name, by_rows, by_lines, by_none);
        failures += !(by_rows <= inputs[i].rows) + !(by_lines <= inputs[i].lines) + !(by_none >= inputs[i].none);
        free(Q);
    }
    if (failures) fail_msg("%d of these ratios are not within their limits", failures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_default_is_near_the_gaussian_on_every_input)};
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
