/* test_moments.c - the second moment: E |S x|^2 = |x|^2, and the variance that the definition promises.
 *
 * |S x|^2 - |x|^2 = sum over i != j of x_i x_j <S_i, S_j>, and the signs are independent, so
 *     Var |S x|^2 = 2 sum over i != j of x_i^2 x_j^2 E <S_i, S_j>^2.
 * Columns of one window of a block have no row in common.  Other columns in one output block of B_r rows in s equal
 * strata have E <S_i, S_j>^2 = 1 / (kappa^2 B_r).  So everything rests on how often two columns share a block, and on
 * their windows: with rows shuffled and fewer than 16 blocks never in one round and else with probability 1/M, so
 *     Var |S x|^2 = (2 / k) (sum over i, j of different windows of W rounds of x_i^2 x_j^2)
 *                <= (2 / k) (|x|_2^4 - |x|_4^4)
 * for every x.  In a cycle the probability depends on the pair, and is at most 2 / (M - 1).
 * A mean must be within 4 standard errors, a variance within 4 of its own, both taken from the samples. */
#include "property.h"

enum { MOST = 64 };

/* A sparse vector: `count` values v at coordinates first, first + stride, ... */
typedef struct vector {
    int64_t count, first, stride;
    double v[MOST];
} vector;

/* Flat, and falling by a tenth from one coordinate to the next (a few large ones), signs alternating. */
static vector make_vector(int64_t count, int64_t first, int64_t stride, double ratio)
{
    vector x = {count, first, stride, {0}};
    for (int64_t i = 0; i < count; i++) x.v[i] = pow(ratio, (double)i) * (i % 2 ? -1.0 : 1.0);
    return x;
}

static int64_t coordinate(const vector *x, int64_t n) { return x->first + n * x->stride; }

/* The sum of x_i^2 x_j^2 over pairs in different ranges of `range` neighbours; |x|_2^4 - |x|_4^4 for 1. */
static double spread(const vector *x, int64_t range)
{
    double sum = 0.0;
    for (int64_t a = 0; a < x->count; a++)
        for (int64_t b = 0; b < x->count; b++)
            if (coordinate(x, a) / range != coordinate(x, b) / range) sum += x->v[a] * x->v[a] * x->v[b] * x->v[b];
    return sum;
}

typedef struct image {
    double x, y[2048];
} image;

static void add_entry(void *user, int64_t i, int64_t j, double value)
{
    image *Sx = (image *)user;
    (void)j;
    Sx->y[i] += value * Sx->x;
}

static double squared_norm(const fsi_def *S, const vector *x, int64_t k)
{
    static image Sx;
    double norm = 0.0;
    memset(Sx.y, 0, (size_t)k * sizeof *Sx.y);
    for (int64_t i = 0; i < x->count; i++) {
        const int64_t j = coordinate(x, i);
        Sx.x = x->v[i];
        fsi_def_visit(S, j, j + 1, add_entry, &Sx);
    }
    for (int64_t i = 0; i < k; i++) norm += Sx.y[i] * Sx.y[i];
    return norm;
}

/* Mean and variance of |S x|^2 over the seeds, and their standard errors. */
typedef struct moments {
    double truth, mean, mean_error, variance, variance_error;
} moments;

static moments moments_of(fsi_def_spec p, const vector *x)
{
    enum { SEEDS = 8000 };
    static double norm[SEEDS];
    moments m = {0.0, 0.0, 0.0, 0.0, 0.0};
    double fourth = 0.0;
    for (int64_t i = 0; i < x->count; i++) m.truth += x->v[i] * x->v[i];
    for (int n = 0; n < SEEDS; n++) {
        p.seed = (uint64_t)n * 0x9E3779B97F4A7C15u;
        const fsi_def S = fsi_def_make(&p);
        norm[n] = squared_norm(&S, x, p.k);
        m.mean += norm[n] / SEEDS;
    }
    for (int n = 0; n < SEEDS; n++) {
        const double square = (norm[n] - m.truth) * (norm[n] - m.truth);
        m.variance += square / SEEDS;
        fourth += square * square / SEEDS;
    }
    /* Where the variance is 0 by theory only rounding is left: 1e-12 of the square. */
    const double rounding = 1e-12 * m.truth * m.truth;
    m.mean_error = sqrt(m.variance / SEEDS) + rounding;
    m.variance_error = sqrt(fmax(0.0, fourth - m.variance * m.variance) / SEEDS) + rounding;
    return m;
}

/* That |S x|^2 has mean |x|^2 and variance `variance` over the seeds. */
static void check_moments(fsi_def_spec p, const vector *x, double variance, const char *what)
{
    const moments m = moments_of(p, x);
    check_mean(m.mean, m.truth, m.mean_error, "%s: mean of |S x|^2", what);
    check_mean(m.variance, variance, m.variance_error, "%s: variance of |S x|^2", what);
}

/* Coherent vectors: neighbouring coordinates, flat and with a few large ones, and strides that are powers of two. */
static const struct {
    int64_t count, first, stride;
    double ratio;
} shapes[] = {
    {64, 1000, 1, 1.0}, {64, 0, 1, 0.8}, {8, 2040, 1, 1.0}, {64, 3, 64, 1.0}, {64, 17, 32, 0.9}, {2, 4094, 1, 1.0},
};

/* Columns of W successive rounds have disjoint supports: 64 neighbours in 8 rounds of 8 have variance 0.  Blocks of one
 * band and, of 128 rows, of two. */
static void shuffled_rows_have_the_variance_of_different_windows(void **state)
{
    enum { D = 4096, K = 512 };
    static const int64_t s[] = {4, 8, 64, 8}, blocks[] = {8, 8, 8, 4};
    (void)state;
    for (int i = 0; i < COUNT(s); i++) {
        const int64_t M = blocks[i];
        for (int n = 0; n < COUNT(shapes); n++) {
            const vector x = make_vector(shapes[n].count, shapes[n].first, shapes[n].stride, shapes[n].ratio);
            const double expected = 2.0 / K * spread(&x, M * (K / M / s[i]));
            HOLDS(expected <= 2.0 / K * spread(&x, 1), "the variance %g is above the SJLT's %g", expected,
                  2.0 / K * spread(&x, 1));
            if (s[i] == 64 && n % 3) continue;
            check_moments(blockperm_spec(D, K, M, 1, s[i], FSI_DEF_ROWS, 1, 0), &x, expected, "rows, kappa = 1");
        }
    }
}

/* kappa > 1, columns of different rounds.  They are in the same input block with probability 1/M and then meet in kappa
 * output blocks, in different rows if they are in one window; else they meet in (kappa^2 - kappa) / (M - 1) on average:
 * E <S_i, S_j>^2 = 1 / k in different windows, (1 - 1 / kappa) / k in one. */
static void more_blocks_a_column_obey_the_same_law(void **state)
{
    enum { D = 4096, K = 512, M = 8, KAPPA = 3, S = 2 };
    (void)state;
    for (int n = 0; n < COUNT(shapes); n++) {
        if (shapes[n].stride < M) continue;
        const vector x = make_vector(shapes[n].count, shapes[n].first, shapes[n].stride, shapes[n].ratio);
        const double apart = spread(&x, M * (K / M / S)), all = spread(&x, 1);
        check_moments(blockperm_spec(D, K, M, KAPPA, S, FSI_DEF_ROWS, 1, 0), &x,
                      2.0 / K * (apart + (all - apart) * (1.0 - 1.0 / KAPPA)), "rows, kappa = 3, s = 2");
    }
}

/* Blocks and strata of unequal sizes: 1 / M times the mean over g of the sum over the strata of 1 / (s^2 size). */
static void uneven_blocks_obey_the_law_with_their_sizes(void **state)
{
    enum { D = 1003, K = 107, M = 6, S = 5 };
    const fsi_split out = fsi_split_make(K, M);
    double overlap = 0.0;
    (void)state;
    for (int64_t g = 0; g < M; g++) {
        const fsi_split strata = fsi_split_make(fsi_split_size(&out, g), S);
        for (int64_t t = 0; t < S; t++) overlap += 1.0 / ((double)M * S * S * (double)fsi_split_size(&strata, t));
    }
    for (int64_t first = 500; first <= 939; first += 439) { /* the second reaches the incomplete last round */
        const vector x = make_vector(64, first, 1, 0.95);
        check_moments(blockperm_spec(D, K, M, 1, S, FSI_DEF_ROWS, 1, 0), &x,
                      2.0 / M * overlap * spread(&x, M * (K / M / S)), "uneven blocks");
    }
}

/* Cycles: a pair of different rounds of a cycle shares a block with probability at most 2 / (M - 1), one at the same
 * place never, a pair of different cycles with 1 / M. */
static void cycles_have_at_most_twice_the_variance_of_different_rounds(void **state)
{
    enum { D = 65536, K = 1024, M = 16, S = 8, W = K / M / S };
    (void)state;
    for (int n = 0; n < COUNT(shapes); n++) {
        const vector x = make_vector(shapes[n].count, 7 * shapes[n].first, shapes[n].stride, shapes[n].ratio);
        const fsi_def_spec p = blockperm_spec(D, K, M, 1, S, FSI_DEF_ROWS, 1, 0);
        double least = 0.0, most = 0.0;
        for (int64_t a = 0; a < x.count; a++)
            for (int64_t b = 0; b < x.count; b++) {
                const int64_t i = coordinate(&x, a), j = coordinate(&x, b);
                const double both = 2.0 * M / K * x.v[a] * x.v[a] * x.v[b] * x.v[b];
                if (i / (M * W) == j / (M * W)) continue;
                const int one_cycle = i / (M * M) == j / (M * M);
                least += one_cycle ? 0.0 : both / M;
                most += one_cycle ? (i % M == j % M ? 0.0 : 2.0 * both / (M - 1)) : both / M;
            }
        const moments m = moments_of(p, &x);
        check_mean(m.mean, m.truth, m.mean_error, "cycles: mean of |S x|^2");
        HOLDS(m.variance <= most + FOUR_SIGMA * m.variance_error && m.variance >= least - FOUR_SIGMA * m.variance_error,
              "shape %d: the variance is %g, not between %g and %g", n, m.variance, least, most);
    }
    /* One place in all rounds of a cycle, or of W rounds: isometries.  Cycle by cycle: as if independent. */
    vector x = make_vector(16, 16 * M * M + 5, M, 1.0);
    check_moments(blockperm_spec(D, K, M, 1, S, FSI_DEF_ROWS, 1, 0), &x, 0.0, "a place in a cycle");
    x = make_vector(60, 5, M * M + M, 0.97);
    check_moments(blockperm_spec(D, K, M, 1, S, FSI_DEF_ROWS, 1, 0), &x, 2.0 / K * spread(&x, M * W),
                  "a place in different cycles");
}

/* Contiguous blocks: M times the sum over pairs of different windows of one block.  Shuffling lowers this. */
static void contiguous_blocks_have_M_times_the_variance_on_coherent_x(void **state)
{
    enum { D = 4096, K = 512, M = 8, S = 4, W = K / M / S };
    static const int64_t first[] = {1024, 1000, 2}, stride[] = {1, 1, 70};
    (void)state;
    for (int n = 0; n < COUNT(first); n++) {
        const vector x = make_vector(58, first[n], stride[n], 0.99);
        const double expected = M * 2.0 / K * (spread(&x, W) - spread(&x, D / M));
        check_moments(blockperm_spec(D, K, M, 1, S, FSI_DEF_NONE, 1, 0), &x, expected, "contiguous blocks");
    }
}

/* Row groups: coordinates of row groups of one round never share a block, those of other rounds do with probability
 * 1/M; those of one row group never in one run, else with probability 1/c.  In one window they then share no row. */
static void row_groups_obey_the_law_with_their_classes(void **state)
{
    enum { D = 16384, K = 2048, M = 32, S = 4, W = K / M / S };
    static const struct {
        int64_t c, count, first, stride;
    } runs[] = {{16, 64, 5, 32}, {32, 64, 5, 32}, {4, 64, 0, 64}, {8, 32, 96, 1},  {16, 64, 64, 1},
                {4, 64, 160, 8}, {8, 60, 0, 200}, {4, 32, 0, 1},  {16, 64, 96, 16}};
    (void)state;
    for (int n = 0; n < COUNT(runs); n++) {
        const vector x = make_vector(runs[n].count, runs[n].first, runs[n].stride, 0.97);
        const int64_t c = runs[n].c, round = 32 * (M / c);
        double sum = 0.0;
        for (int64_t a = 0; a < x.count; a++)
            for (int64_t b = 0; b < x.count; b++) {
                const int64_t i = coordinate(&x, a), j = coordinate(&x, b);
                const int64_t ui = i / round * (32 / c) + i % 32 / c, uj = j / round * (32 / c) + j % 32 / c;
                const double one_group = i / 32 == j / 32 ? (i / c == j / c ? 0.0 : 1.0 / (double)c) : 0.0;
                const double share = i / round == j / round ? one_group : 1.0 / M;
                if (ui / W != uj / W) sum += x.v[a] * x.v[a] * x.v[b] * x.v[b] * share;
            }
        check_moments(blockperm_spec(D, K, M, 1, S, FSI_DEF_GROUPS, c, 0), &x, 2.0 * sum * M / K, "groups");
    }
}

/* SJLT: pairs in different windows of floor(k / s) columns. */
static void sjlt_and_count_sketch_obey_the_law(void **state)
{
    enum { D = 4096, K = 128 };
    static const int64_t s[] = {1, 4, 8, 32};
    (void)state;
    for (int i = 0; i < COUNT(s); i++)
        for (int n = 0; n < 2; n++) {
            const vector x = make_vector(shapes[n].count, shapes[n].first, shapes[n].stride, shapes[n].ratio);
            const fsi_def_spec p = {D, K, 1, 1, s[i], 1, 0, FSI_DEF_SJLT, FSI_DEF_NONE, 0};
            check_moments(p, &x, 2.0 / K * spread(&x, K / s[i]), s[i] == 1 ? "CountSketch" : "SJLT");
        }
}

/* Gaussian: (2 / k) |x|_2^4.  SRHT: two columns have <S_i, S_j> = (1 / k) sum over the rows r of (-1)^(r . (i ^ j)); k
 * rows without replacement of N, over which these signs sum to 0, give the factor 1 - (k - 1) / (N - 1). */
static void dense_families_obey_their_laws(void **state)
{
    enum { D = 700, N = 1024, K = 32 };
    const vector x = make_vector(20, 7, 1, 0.9);
    double norm = 0.0;
    const fsi_def_spec gauss = {D, K, 1, 1, 1, 1, 0, FSI_DEF_GAUSS, FSI_DEF_NONE, 0};
    const fsi_def_spec srht = {D, K, 1, 1, 1, 1, 0, FSI_DEF_SRHT, FSI_DEF_NONE, 0};
    (void)state;
    for (int64_t i = 0; i < x.count; i++) norm += x.v[i] * x.v[i];
    check_moments(gauss, &x, 2.0 / K * norm * norm, "Gaussian");
    check_moments(srht, &x, 2.0 / K * spread(&x, 1) * (1.0 - (K - 1.0) / (N - 1.0)), "SRHT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffled_rows_have_the_variance_of_different_windows),
        cmocka_unit_test(more_blocks_a_column_obey_the_same_law),
        cmocka_unit_test(uneven_blocks_obey_the_law_with_their_sizes),
        cmocka_unit_test(cycles_have_at_most_twice_the_variance_of_different_rounds),
        cmocka_unit_test(contiguous_blocks_have_M_times_the_variance_on_coherent_x),
        cmocka_unit_test(row_groups_obey_the_law_with_their_classes),
        cmocka_unit_test(sjlt_and_count_sketch_obey_the_law),
        cmocka_unit_test(dense_families_obey_their_laws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
