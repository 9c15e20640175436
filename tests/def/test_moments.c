/* test_moments.c - the second moment: E |S x|^2 = |x|^2, and the variance that the definition promises.
 *
 * |S x|^2 - |x|^2 = sum over i != j of x_i x_j <S_i, S_j>, and the signs are independent, so
 *     Var |S x|^2 = 2 sum over i != j of x_i^2 x_j^2 E <S_i, S_j>^2.
 * Two columns in one output block of B_r rows in s equal parts have E <S_i, S_j>^2 = 1 / (kappa^2 B_r), so everything
 * rests on how often two columns share a block: with rows dealt, never in one round and else with probability 1/M, so
 *     Var |S x|^2 = (2 / k) (sum over i, j of different rounds of x_i^2 x_j^2) <= (2 / k) (|x|_2^4 - |x|_4^4)
 * for every x.
 * A mean must be within 4 standard errors, a variance within 4 of its own, both taken from the samples. */
#include "property.h"

enum { MOST = 64 };

/* A sparse vector: `count` values v at coordinates first, first + stride, ... */
typedef struct vector {
    int64_t count, first, stride;
    double v[MOST];
} vector;

/* Flat, and falling by a tenth from one coordinate to the next (a few heavy ones), signs alternating. */
static vector make_vector(int64_t count, int64_t first, int64_t stride, double ratio)
{
    vector x = {count, first, stride, {0}};
    for (int64_t i = 0; i < count; i++) x.v[i] = pow(ratio, (double)i) * (i % 2 ? -1.0 : 1.0);
    return x;
}

/* The sum of x_i^2 x_j^2 over pairs of coordinates in different rounds of `round` neighbours; |x|_2^4 - |x|_4^4 for 1. */
static double spread(const vector *x, int64_t round)
{
    double sum = 0.0;
    for (int64_t a = 0; a < x->count; a++)
        for (int64_t b = 0; b < x->count; b++)
            if ((x->first + a * x->stride) / round != (x->first + b * x->stride) / round)
                sum += x->v[a] * x->v[a] * x->v[b] * x->v[b];
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
        const int64_t j = x->first + i * x->stride;
        Sx.x = x->v[i];
        fsi_def_visit(S, j, j + 1, add_entry, &Sx);
    }
    for (int64_t i = 0; i < k; i++) norm += Sx.y[i] * Sx.y[i];
    return norm;
}

/* That |S x|^2 has mean |x|^2 and variance `variance` over the seeds. */
static void check_moments(fsi_def_spec p, const vector *x, double variance, const char *what)
{
    enum { SEEDS = 20000 };
    static double norm[SEEDS];
    double truth = 0.0, mean = 0.0, second = 0.0, fourth = 0.0;
    for (int64_t i = 0; i < x->count; i++) truth += x->v[i] * x->v[i];
    for (int n = 0; n < SEEDS; n++) {
        p.seed = (uint64_t)n * 0x9E3779B97F4A7C15u;
        const fsi_def S = fsi_def_make(&p);
        norm[n] = squared_norm(&S, x, p.k);
        mean += norm[n] / SEEDS;
    }
    for (int n = 0; n < SEEDS; n++) {
        const double square = (norm[n] - truth) * (norm[n] - truth);
        second += square / SEEDS;
        fourth += square * square / SEEDS;
    }
    /* Where it is 0 by theory (all of x in one round) only rounding is left: 1e-12 of the square. */
    const double rounding = 1e-12 * truth * truth;
    check_mean(mean, truth, sqrt(variance / SEEDS) + rounding, "%s: mean of |S x|^2", what);
    check_mean(second, variance, sqrt((fourth - second * second) / SEEDS) + rounding, "%s: variance of |S x|^2", what);
}

/* Coherent vectors: neighbouring coordinates, flat and heavy-headed, and strides that are powers of two. */
static const struct {
    int64_t count, first, stride;
    double ratio;
} shapes[] = {
    {64, 1000, 1, 1.0}, {64, 0, 1, 0.8}, {8, 2040, 1, 1.0}, {64, 3, 64, 1.0}, {64, 17, 32, 0.9}, {2, 4094, 1, 1.0},
};

static void shuffled_rows_obey_the_law_for_every_x(void **state)
{
    enum { D = 4096, K = 512, M = 8 };
    (void)state;
    for (int n = 0; n < COUNT(shapes); n++) {
        const vector x = make_vector(shapes[n].count, shapes[n].first, shapes[n].stride, shapes[n].ratio);
        const double expected = 2.0 / K * spread(&x, M);
        HOLDS(expected <= 2.0 / K * spread(&x, 1), "the variance %g is above the SJLT's %g", expected,
              2.0 / K * spread(&x, 1));
        check_moments(blockperm_spec(D, K, M, 1, 4, FSI_DEF_ROWS, 1, 0), &x, expected, "rows, kappa = 1, s = 4");
    }
}

/* Columns of different rounds are in the same input block with probability 1/M and then meet in kappa output blocks; else
 * in (kappa^2 - kappa) / (M - 1) on average: together kappa^2 / M, and so E <S_i, S_j>^2 = 1 / k again. */
static void more_blocks_a_column_obey_the_same_law(void **state)
{
    enum { D = 4096, K = 512, M = 8 };
    (void)state;
    for (int n = 0; n < COUNT(shapes); n++) {
        if (shapes[n].stride < M) continue;
        const vector x = make_vector(shapes[n].count, shapes[n].first, shapes[n].stride, shapes[n].ratio);
        check_moments(blockperm_spec(D, K, M, 3, 2, FSI_DEF_ROWS, 1, 0), &x, 2.0 / K * spread(&x, M),
                      "rows, kappa = 3, s = 2");
    }
}

/* Blocks and parts of unequal sizes: 1 / M times the mean over g of the sum over the parts of 1 / (s^2 size). */
static void uneven_blocks_obey_the_law_with_their_sizes(void **state)
{
    enum { D = 1003, K = 107, M = 6, S = 5 };
    const fsi_split out = fsi_split_make(K, M);
    double overlap = 0.0;
    (void)state;
    for (int64_t g = 0; g < M; g++) {
        const fsi_split parts = fsi_split_make(fsi_split_size(&out, g), S);
        for (int64_t t = 0; t < S; t++) overlap += 1.0 / ((double)M * S * S * (double)fsi_split_size(&parts, t));
    }
    for (int64_t first = 500; first <= 939; first += 439) { /* the second reaches the incomplete last round */
        const vector x = make_vector(64, first, 1, 0.95);
        check_moments(blockperm_spec(D, K, M, 1, S, FSI_DEF_ROWS, 1, 0), &x, 2.0 / M * overlap * spread(&x, M),
                      "uneven blocks");
    }
}

/* Without the shuffle a vector inside one input block has M times the variance: what the shuffle is for. */
static void contiguous_blocks_pay_M_times_on_coherent_x(void **state)
{
    enum { D = 4096, K = 512, M = 8 };
    const vector x = make_vector(64, 1024, 1, 1.0);
    (void)state;
    check_moments(blockperm_spec(D, K, M, 1, 4, FSI_DEF_NONE, 1, 0), &x, M * 2.0 / K * spread(&x, 1),
                  "contiguous blocks");
}

/* Lines: coordinates of lines of one round never share a block, those of other lines do with probability 1/M; those of one
 * line do exactly where they differ by a multiple of c.  So a hot channel (stride 32) behaves as predicted, and 32
 * neighbours with c = 32 never meet. */
static void lines_obey_the_law_with_their_classes(void **state)
{
    enum { D = 8192, K = 2048, M = 32 };
    static const struct {
        int64_t c, count, first, stride;
    } runs[] = {{16, 64, 5, 32}, {32, 64, 5, 32}, {4, 64, 0, 64}, {8, 32, 96, 1}, {16, 64, 64, 1}};
    (void)state;
    for (int n = 0; n < COUNT(runs); n++) {
        const vector x = make_vector(runs[n].count, runs[n].first, runs[n].stride, 0.97);
        const int64_t round = 32 * (M / runs[n].c);
        double sum = 0.0;
        for (int64_t a = 0; a < x.count; a++)
            for (int64_t b = 0; b < x.count; b++) {
                const int64_t i = x.first + a * x.stride, j = x.first + b * x.stride;
                const double apart = i / round == j / round ? 0.0 : 1.0 / M, same = (i - j) % runs[n].c == 0;
                if (a != b) sum += x.v[a] * x.v[a] * x.v[b] * x.v[b] * (i / 32 == j / 32 ? same : apart);
            }
        check_moments(blockperm_spec(D, K, M, 1, 4, FSI_DEF_GROUPS, runs[n].c, 0), &x, 2.0 * sum * M / K, "groups");
    }
}

static void sjlt_and_count_sketch_obey_the_law(void **state)
{
    enum { D = 4096, K = 128 };
    (void)state;
    for (int64_t s = 1; s <= 8; s *= 8)
        for (int n = 0; n < 2; n++) {
            const vector x = make_vector(shapes[n].count, shapes[n].first, shapes[n].stride, shapes[n].ratio);
            const fsi_def_spec p = {D, K, 1, 1, s, 1, 0, FSI_DEF_SJLT, FSI_DEF_NONE};
            check_moments(p, &x, 2.0 / K * spread(&x, 1), s == 1 ? "CountSketch" : "SJLT, s = 8");
        }
}

/* Gaussian: (2 / k) |x|_2^4.  SRHT: two columns have <S_i, S_j> = (1 / k) sum over the rows r of (-1)^(r . (i ^ j)); k
 * rows without replacement of N, over which these signs sum to 0, give the factor 1 - (k - 1) / (N - 1). */
static void dense_families_obey_their_laws(void **state)
{
    enum { D = 700, N = 1024, K = 32 };
    const vector x = make_vector(20, 7, 1, 0.9);
    double norm = 0.0;
    const fsi_def_spec gauss = {D, K, 1, 1, 1, 1, 0, FSI_DEF_GAUSS, FSI_DEF_NONE};
    const fsi_def_spec srht = {D, K, 1, 1, 1, 1, 0, FSI_DEF_SRHT, FSI_DEF_NONE};
    (void)state;
    for (int64_t i = 0; i < x.count; i++) norm += x.v[i] * x.v[i];
    check_moments(gauss, &x, 2.0 / K * norm * norm, "Gaussian");
    check_moments(srht, &x, 2.0 / K * spread(&x, 1) * (1.0 - (K - 1.0) / (N - 1.0)), "SRHT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffled_rows_obey_the_law_for_every_x),
        cmocka_unit_test(more_blocks_a_column_obey_the_same_law),
        cmocka_unit_test(uneven_blocks_obey_the_law_with_their_sizes),
        cmocka_unit_test(contiguous_blocks_pay_M_times_on_coherent_x),
        cmocka_unit_test(lines_obey_the_law_with_their_classes),
        cmocka_unit_test(sjlt_and_count_sketch_obey_the_law),
        cmocka_unit_test(dense_families_obey_their_laws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
