/* test_gauss.c - the dense Gaussian: its entries are standard normal, independent, and close to the exact transform. */
#include "property.h"

enum { ROWS = 1024, COLUMNS = 1024, SAMPLES = ROWS * COLUMNS };
static const double two_pi = 6.283185307179586476925;
static double z[COLUMNS][ROWS]; /* z of all rows, column by column */

static int draw_all(void **state)
{
    const fsi_gauss G = fsi_gauss_make(0x0123456789ABCDEFu, COLUMNS, ROWS);
    (void)state;
    for (int64_t j = 0; j < COLUMNS; j++)
        for (int64_t p = 0; p < ROWS / 4; p++) {
            float four[4];
            fsi_gauss_four(&G, p, j, four);
            for (int i = 0; i < 4; i++) z[j][4 * p + i] = (double)four[i];
        }
    return 0;
}

/* E z^n of the normal is 0, 1, 0, 3, 0, 15, and Var z^n = E z^2n - (E z^n)^2 says how far a mean may be off. */
static void moments_are_those_of_the_normal(void **state)
{
    static const double moment[] = {1, 0, 1, 0, 3, 0, 15, 0, 105, 0, 945, 0, 10395};
    (void)state;
    for (int n = 1; n <= 6; n++) {
        double sum = 0.0;
        for (int j = 0; j < COLUMNS; j++)
            for (int i = 0; i < ROWS; i++) sum += pow(z[j][i], n);
        const double variance = moment[2 * n] - moment[n] * moment[n];
        check_mean(sum / SAMPLES, moment[n], sqrt(variance / SAMPLES), "mean of z^%d", n);
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: sqrt(n) times the largest distance of the two distribution functions exceeds 2.4 with
 * probability 2 exp(-2 x 2.4^2) = 2e-5. */
static void the_distribution_is_normal(void **state)
{
    static double sorted[SAMPLES];
    double distance = 0.0;
    (void)state;
    memcpy(sorted, z, sizeof sorted);
    qsort(sorted, SAMPLES, sizeof *sorted, ascending);
    for (int n = 0; n < SAMPLES; n++) {
        const double F = 0.5 * erfc(-sorted[n] * sqrt(0.5));
        distance = fmax(distance, fmax(fabs(F - (double)n / SAMPLES), fabs(F - (double)(n + 1) / SAMPLES)));
    }
    HOLDS(distance * sqrt(SAMPLES) < 2.4, "distance %g, times sqrt(n) %.2f", distance, distance * sqrt(SAMPLES));
}

/* The correlation of z and of z^2 with the entry `down` rows and `right` columns on: 1 and 2 rows on share a Philox
 * call, 1 often a Box-Muller pair. */
static void neighbours_are_independent(void **state)
{
    static const int by[][2] = {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {0, 1}, {0, 2}, {1, 1}, {0, 512}, {512, 0}};
    (void)state;
    for (int n = 0; n < COUNT(by); n++) {
        double sum = 0.0, squares = 0.0, count = 0.0;
        for (int j = 0; j + by[n][1] < COLUMNS; j++)
            for (int i = 0; i + by[n][0] < ROWS; i++, count++) {
                const double a = z[j][i], b = z[j + by[n][1]][i + by[n][0]];
                sum += a * b;
                squares += (a * a - 1.0) * (b * b - 1.0) / 2.0;
            }
        const double error = 1.0 / sqrt(count);
        check_mean(sum / count, 0.0, error, "correlation %d rows and %d columns on", by[n][0], by[n][1]);
        check_mean(squares / count, 0.0, error, "correlation of squares %d rows and %d columns on", by[n][0], by[n][1]);
    }
}

/* Against the C library in double precision; the largest errors over all words are 5.34e-7 of the radius and 1.19e-7 of
 * the cosine and sine.  u is rounded to float first, which is part of the definition. */
static void radius_and_turn_are_close_to_the_exact_functions(void **state)
{
    double radius = 0.0, cosine = 0.0, sine = 0.0;
    (void)state;
    for (uint64_t n = 0; n < 1 << 20; n++) {
        const uint32_t w = (uint32_t)(n < 4096 ? n : n < 8192 ? 4095 - n : n * 4099);
        const float u = ((float)w + 0.5f) * 2.3283064365386963e-10f;
        float c, s;
        fsi_gauss_turn(w, &c, &s);
        radius = fmax(radius, fabs((double)fsi_gauss_radius(w) - sqrt(-2.0 * log((double)u))));
        cosine = fmax(cosine, fabs((double)c - cos(two_pi / 4294967296.0 * w)));
        sine = fmax(sine, fabs((double)s - sin(two_pi / 4294967296.0 * w)));
    }
    HOLDS(radius < 5.5e-7 && cosine < 1.25e-7 && sine < 1.25e-7, "the radius is %g off, the cosine %g, the sine %g",
          radius, cosine, sine);
}

/* Quarter turns are exact, and the radius falls from sqrt(66 ln 2) at w = 0 to 0 at the last words. */
static void the_ends_of_the_range_are_right(void **state)
{
    (void)state;
    for (uint32_t quarter = 0; quarter < 4; quarter++) {
        static const float expected[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
        float c, s;
        fsi_gauss_turn(quarter << 30, &c, &s);
        HOLDS(c == expected[quarter][0] && s == expected[quarter][1], "quarter " U32 ": (%g, %g)", quarter, (double)c,
              (double)s);
    }
    const double largest = (double)fsi_gauss_radius(0), least = (double)fsi_gauss_radius(0xFFFFFFFF);
    HOLDS(fabs(largest - sqrt(66.0 * log(2.0))) < 5.5e-7 && least == 0.0, "the radius goes from %.8g to %g", largest,
          least);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_are_those_of_the_normal),
        cmocka_unit_test(the_distribution_is_normal),
        cmocka_unit_test(neighbours_are_independent),
        cmocka_unit_test(radius_and_turn_are_close_to_the_exact_functions),
        cmocka_unit_test(the_ends_of_the_range_are_right),
    };
    return cmocka_run_group_tests(tests, draw_all, NULL);
}
