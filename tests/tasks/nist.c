/* nist.c - the problems of NIST's Statistical Reference Datasets for linear regression: fs_lstsq has the certified
 * coefficients to the digits that LAPACK's gelsd has in the same run.
 *
 * Data and certified values: https://www.itl.nist.gov/div898/strd/lls/lls.shtml.  The certified residual sums of squares
 * show that the tables below are the data. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"

enum { MOST_ROWS = 82, MOST_COLUMNS = 11 };

/* y, and the columns of A: `predictors` given ones (packed rows), or powers of the only one up to `degree`; before them
 * a column of ones where there is an intercept. */
typedef struct dataset {
    const char *name;
    int d, intercept, predictors, degree;
    const double *y, *x;
    double squares; /* certified residual sum of squares */
    double certified[MOST_COLUMNS];
} dataset;

static const double norris_x[] = {0.2, 337.4, 118.2, 884.6, 10.1,  226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4,
                                  0.6, 775.5, 666.9, 338.0, 447.5, 11.6,  556.0, 228.1, 995.8, 887.6, 120.2, 0.3,
                                  0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1,  118.3, 229.2, 669.1, 448.9, 0.5};
static const double norris_y[] = {0.1, 338.8, 118.1, 888.0, 9.2,   228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3,
                                  0.1, 778.1, 668.8, 339.3, 448.9, 10.8,  557.7, 228.3, 998.0, 888.8, 119.6, 0.3,
                                  0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2,  117.6, 228.9, 668.4, 449.2, 0.2};

static const double pontius_x[] = {150000,  300000,  450000,  600000,  750000,  900000,  1050000, 1200000,
                                   1350000, 1500000, 1650000, 1800000, 1950000, 2100000, 2250000, 2400000,
                                   2550000, 2700000, 2850000, 3000000, 150000,  300000,  450000,  600000,
                                   750000,  900000,  1050000, 1200000, 1350000, 1500000, 1650000, 1800000,
                                   1950000, 2100000, 2250000, 2400000, 2550000, 2700000, 2850000, 3000000};
static const double pontius_y[] = {.11019,  .21956,  .32949,  .43899,  .54803,  .65694,  .76562,  .87487,
                                   .98292,  1.09146, 1.20001, 1.30822, 1.41599, 1.52399, 1.63194, 1.73947,
                                   1.84646, 1.95392, 2.06128, 2.16844, .11052,  .22018,  .32939,  .43886,
                                   .54798,  .65739,  .76596,  .87474,  .98300,  1.09150, 1.20004, 1.30818,
                                   1.41613, 1.52408, 1.63159, 1.73965, 1.84696, 1.95445, 2.06177, 2.16829};

static const double noint1_x[] = {60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70};
static const double noint1_y[] = {130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140};
static const double noint2_x[] = {4, 5, 6}, noint2_y[] = {3, 4, 4};

static const double filip_x[] = {
    -6.860120914, -4.324130045, -4.358625055, -4.358426747, -6.955852379, -6.661145254, -6.355462942, -6.118102026,
    -7.115148017, -6.815308569, -6.519993057, -6.204119983, -5.853871964, -6.109523091, -5.79832982,  -5.482672118,
    -5.171791386, -4.851705903, -4.517126416, -4.143573228, -3.709075441, -3.499489089, -6.300769497, -5.953504836,
    -5.642065153, -5.031376979, -4.680685696, -4.329846955, -3.928486195, -8.56735134,  -8.363211311, -8.107682739,
    -7.823908741, -7.522878745, -7.218819279, -6.920818754, -6.628932138, -6.323946875, -5.991399828, -8.781464495,
    -8.663140179, -8.473531488, -8.247337057, -7.971428747, -7.676129393, -7.352812702, -7.072065318, -6.774174009,
    -6.478861916, -6.159517513, -6.835647144, -6.53165267,  -6.224098421, -5.910094889, -5.598599459, -5.290645224,
    -4.974284616, -4.64454848,  -4.290560426, -3.885055584, -3.408378962, -3.13200249,  -8.726767166, -8.66695597,
    -8.511026475, -8.165388579, -7.886056648, -7.588043762, -7.283412422, -6.995678626, -6.691862621, -6.392544977,
    -6.067374056, -6.684029655, -6.378719832, -6.065855188, -5.752272167, -5.132414673, -4.811352704, -4.098269308,
    -3.66174277,  -3.2644011};
static const double filip_y[] = {
    0.8116, 0.9072, 0.9052, 0.9039, 0.8053, 0.8377, 0.8667, 0.8809, 0.7975, 0.8162, 0.8515, 0.8766, 0.8885, 0.8859,
    0.8959, 0.8913, 0.8959, 0.8971, 0.9021, 0.909,  0.9139, 0.9199, 0.8692, 0.8872, 0.89,   0.891,  0.8977, 0.9035,
    0.9078, 0.7675, 0.7705, 0.7713, 0.7736, 0.7775, 0.7841, 0.7971, 0.8329, 0.8641, 0.8804, 0.7668, 0.7633, 0.7678,
    0.7697, 0.77,   0.7749, 0.7796, 0.7897, 0.8131, 0.8498, 0.8741, 0.8061, 0.846,  0.8751, 0.8856, 0.8919, 0.8934,
    0.894,  0.8957, 0.9047, 0.9129, 0.9209, 0.9219, 0.7739, 0.7681, 0.7665, 0.7703, 0.7702, 0.7761, 0.7809, 0.7961,
    0.8253, 0.8602, 0.8809, 0.8301, 0.8664, 0.8834, 0.8898, 0.8964, 0.8963, 0.9074, 0.9119, 0.9228};

static const double longley_x[] = {83.0,  234289, 2356, 1590, 107608, 1947, 88.5,  259426, 2325, 1456, 108632, 1948,
                                   88.2,  258054, 3682, 1616, 109773, 1949, 89.5,  284599, 3351, 1650, 110929, 1950,
                                   96.2,  328975, 2099, 3099, 112075, 1951, 98.1,  346999, 1932, 3594, 113270, 1952,
                                   99.0,  365385, 1870, 3547, 115094, 1953, 100.0, 363112, 3578, 3350, 116219, 1954,
                                   101.2, 397469, 2904, 3048, 117388, 1955, 104.6, 419180, 2822, 2857, 118734, 1956,
                                   108.4, 442769, 2936, 2798, 120445, 1957, 110.8, 444546, 4681, 2637, 121950, 1958,
                                   112.6, 482704, 3813, 2552, 123366, 1959, 114.2, 502601, 3931, 2514, 125368, 1960,
                                   115.7, 518173, 4806, 2572, 127852, 1961, 116.9, 554894, 4007, 2827, 130081, 1962};
static const double longley_y[] = {60323, 61122, 60171, 61187, 63221, 63639, 64989, 63761,
                                   66019, 67857, 68169, 66513, 68655, 69564, 69331, 70551};

static const double wampler_x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
static const double wampler1_y[] = {1,      6,      63,      364,     1365,    3906,    9331,
                                    19608,  37449,  66430,   111111,  177156,  271453,  402234,
                                    579195, 813616, 1118481, 1508598, 2000719, 2613660, 3368421};
static const double wampler2_y[] = {1.00000,  1.11111,  1.24992,  1.42753,  1.65984,  1.96875,  2.38336,
                                    2.94117,  3.68928,  4.68559,  6.00000,  7.71561,  9.92992,  12.75603,
                                    16.32384, 20.78125, 26.29536, 33.05367, 41.26528, 51.16209, 63.00000};
static const double wampler3_y[] = {760,    -2042,  2111,    -1684,   3888,    1858,    11379,
                                    17560,  39287,  64382,   113159,  175108,  273291,  400186,
                                    581243, 811568, 1121004, 1506550, 2002767, 2611612, 3369180};
static const double wampler4_y[] = {75901,   -204794, 204863,  -204436, 253665,  -200894, 214131,
                                    -185192, 221249,  -138370, 315911,  -27644,  455253,  197434,
                                    783995,  608816,  1370781, 1303798, 2205519, 2408860, 3444321};
static const double wampler5_y[] = {7590001,   -20479994, 20480063,  -20479636, 25231365,  -20476094, 20489331,
                                    -20460392, 18417449,  -20413570, 20591111,  -20302844, 18651453,  -20077766,
                                    21059195,  -19666384, 26348481,  -18971402, 22480719,  -17866340, 10958421};

static const dataset datasets[] = {
    {"Norris", 36, 1, 1, 1, norris_y, norris_x, 26.6173985294224, {-0.262323073774029, 1.00211681802045}},
    {"Pontius",
     40,
     1,
     1,
     2,
     pontius_y,
     pontius_x,
     0.155761768796992e-05,
     {0.673565789473684e-03, 0.732059160401003e-06, -0.316081871345029e-14}},
    {"NoInt1", 11, 0, 1, 1, noint1_y, noint1_x, 127.272727272727, {2.07438016528926}},
    {"NoInt2", 3, 0, 1, 1, noint2_y, noint2_x, 0.272727272727273, {0.727272727272727}},
    {"Filip",
     82,
     1,
     1,
     10,
     filip_y,
     filip_x,
     0.795851382172941e-03,
     {-1467.48961422980, -2772.17959193342, -2316.37108160893, -1127.97394098372, -354.478233703349, -75.1242017393757,
      -10.8753180355343, -1.06221498588947, -0.670191154593408e-01, -0.246781078275479e-02, -0.402962525080404e-04}},
    {"Longley",
     16,
     1,
     6,
     1,
     longley_y,
     longley_x,
     836424.055505915,
     {-3482258.63459582, 15.0618722713733, -0.358191792925910e-01, -2.02022980381683, -1.03322686717359,
      -0.511041056535807e-01, 1829.15146461355}},
    {"Wampler1", 21, 1, 1, 5, wampler1_y, wampler_x, 0, {1, 1, 1, 1, 1, 1}},
    {"Wampler2", 21, 1, 1, 5, wampler2_y, wampler_x, 0, {1, 0.1, 0.01, 0.001, 0.0001, 0.00001}},
    {"Wampler3", 21, 1, 1, 5, wampler3_y, wampler_x, 83554268, {1, 1, 1, 1, 1, 1}},
    {"Wampler4", 21, 1, 1, 5, wampler4_y, wampler_x, 835542680000, {1, 1, 1, 1, 1, 1}},
    {"Wampler5", 21, 1, 1, 5, wampler5_y, wampler_x, 0.83554268e16, {1, 1, 1, 1, 1, 1}},
};
enum { DATASETS = sizeof datasets / sizeof datasets[0] };

static int columns_of_model(const dataset *s) { return s->intercept + s->predictors * s->degree; }

/* A, packed rows. */
static void make_matrix(const dataset *s, double *A)
{
    const int n = columns_of_model(s);
    for (int i = 0; i < s->d; i++) {
        double *row = A + i * n;
        if (s->intercept) row[0] = 1;
        if (s->degree == 1) {
            memcpy(row + s->intercept, s->x + i * s->predictors, (size_t)s->predictors * sizeof *row);
            continue;
        }
        for (int j = 1; j < n; j++) row[j] = (j == 1 ? 1 : row[j - 1]) * s->x[i];
    }
}

/* The fewest digits that any coefficient has in common with its certified value, of which 15 are given. */
static double digits_of(const dataset *s, const double *x)
{
    double fewest = 15;
    for (int j = 0; j < columns_of_model(s); j++) {
        const double error = fabs(x[j] / s->certified[j] - 1);
        fewest = fmin(fewest, error > 0 ? -log10(error) : 15);
    }
    return fewest;
}

static double residual_squares(const dataset *s, const double *A, const double *x)
{
    long double squares = 0;
    const int n = columns_of_model(s);
    for (int i = 0; i < s->d; i++) {
        long double r = s->y[i];
        for (int j = 0; j < n; j++) r -= (long double)A[i * n + j] * x[j];
        squares += r * r;
    }
    return (double)squares;
}

/* Filip has a condition number of 1.8e15, which the default rcond counts as dependent columns: all values count here, as
 * they do for gelsd with rcond -1. */
static const double RCOND = 0x1p-53;

static double solve(const dataset *s, const double *A, fs_lstsq_method method, const fs_sketch *S, double *x)
{
    const int n = columns_of_model(s);
    const fs_matrix matrix = fs_row_major((double *)A, s->d, n, FS_F64),
                    b = fs_row_major((double *)s->y, s->d, 1, FS_F64), X = fs_row_major(x, n, 1, FS_F64);
    fs_operand operand = FS_OPERAND_INIT;
    operand.dense = &matrix;
    fs_lstsq_options options = FS_LSTSQ_INIT;
    options.method = method, options.rcond = RCOND, options.sketch = S;
    fs_context *ctx = context_of(NULL, 0);
    fs_lstsq_report report = FS_LSTSQ_REPORT_INIT;
    MUST(fs_lstsq(ctx, &operand, &b, &options, &X, &report));
    assert_int_equal(report.rank, n);
    fs_context_destroy(ctx);
    return digits_of(s, x);
}

static void certified_values_have_lapacks_digits(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        fs_lstsq_method method;
        int64_t k; /* rows of a sketch of the caller's; 0: none */
    } ways[] = {{"auto", FS_LSTSQ_AUTO, 0},
                {"direct", FS_LSTSQ_DIRECT, 0},
                {"iterate", FS_LSTSQ_ITERATE, 0},
                {"sketch", FS_LSTSQ_ITERATE, 3}};
    for (int i = 0; i < DATASETS; i++) {
        const dataset *s = &datasets[i];
        const int n = columns_of_model(s);
        double A[MOST_ROWS * MOST_COLUMNS], x[MOST_COLUMNS], lapack[MOST_COLUMNS];
        make_matrix(s, A);
        assert_int_equal(lapack_solve(s->d, n, 1, A, s->y, RCOND, lapack), n);
        const double wanted = digits_of(s, lapack);
        for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
            fs_spec spec = FS_SPEC_INIT;
            spec.family = FS_GAUSSIAN, spec.d = s->d, spec.k = ways[w].k * n, spec.seed = 4;
            fs_sketch *S = ways[w].k ? sketch_of(&spec) : NULL;
            const double found = solve(s, A, ways[w].method, S, x);
            if (!(found >= wanted - 0.5))
                fail_msg("%s, %s: %.1f digits, gelsd has %.1f", s->name, ways[w].name, found, wanted);
            const double squares = residual_squares(s, A, x), scale = s->squares > 0 ? s->squares : 1e-6;
            if (!(fabs(squares - s->squares) <= 1e-8 * scale))
                fail_msg("%s, %s: residual sum of squares %.15g, certified %.15g", s->name, ways[w].name, squares,
                         s->squares);
            fs_sketch_destroy(S);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(certified_values_have_lapacks_digits)};
    return RUN_TASK_TESTS(tests);
}
