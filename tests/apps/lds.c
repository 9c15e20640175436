/* lds.c - Spearman with ties by hand and by its invariances; LDS of scores that are right by construction; intervals.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/grass/lds.h"
#include "apps/grass/random.h"
#include "tests/support/support.h"

enum { MOST = 64 };
static double work[5 * MOST];

/* Worked by hand: ranks of b are 0, 1.5, 1.5, 3, so sums of squares are 5 and 4.5, and of products 4.5. */
static void ties_share_the_mean_of_their_ranks(void **state)
{
    static const double a[] = {1, 2, 3, 4}, b[] = {0.1, 7, 7, 9}, back[] = {9, 7, 7, 0.1};
    (void)state;
    assert_true(fabs(lds_spearman(4, a, b, work) - 4.5 / sqrt(5 * 4.5)) < 1e-15);
    assert_true(fabs(lds_spearman(4, a, back, work) + 4.5 / sqrt(5 * 4.5)) < 1e-15);
    assert_true(lds_spearman(4, b, b, work) == 1.0);
}

static void only_the_order_counts(void **state)
{
    double a[MOST], b[MOST], ea[MOST], nb[MOST];
    (void)state;
    for (int i = 0; i < MOST; i++) {
        a[i] = whole_at(1, i, 5);
        b[i] = a[i] + whole_at(2, i, 5);
        ea[i] = exp(a[i]);
        nb[i] = -b[i];
    }
    const double r = lds_spearman(MOST, a, b, work);
    assert_true(r > 0.3 && r < 0.95);
    assert_true(lds_spearman(MOST, ea, b, work) == r);
    assert_true(lds_spearman(MOST, a, nb, work) == -r);
    assert_true(lds_spearman(MOST, b, a, work) == r);
}

/* 1 - 6 sum of squared differences / (n^3 - n), which holds where there are no ties. */
static void without_ties_it_is_the_textbook_formula(void **state)
{
    enum { N = 31 };
    double a[N], b[N], sum = 0;
    const fsi_bijection P = fsi_bijection_make(4, GRASS_TAG_ORDER, 0, N);
    (void)state;
    for (int i = 0; i < N; i++) {
        a[i] = i;
        b[i] = (double)fsi_permute(&P, (uint64_t)i);
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    }
    assert_true(fabs(lds_spearman(N, a, b, work) - (1 - 6 * sum / (N * (N * N - 1.0)))) < 1e-14);
}

static void what_has_no_order_has_no_correlation(void **state)
{
    static const double a[] = {1, 2, 3}, same[] = {5, 5, 5}, hole[] = {1, NAN, 3};
    (void)state;
    assert_true(isnan(lds_spearman(3, a, same, work)) && isnan(lds_spearman(3, same, a, work)));
    assert_true(isnan(lds_spearman(3, a, hole, work)));
}

/* If the outputs of models are sums of the scores, LDS is 1; with opposite signs, -1; of other scores, near 0. */
static void scores_that_predict_the_models_have_lds_1(void **state)
{
    enum { N = 40, HALF = 20, SUBSETS = 50, TESTS = 30 };
    static double scores[TESTS * N], other[TESTS * N], y[SUBSETS * TESTS], lds[TESTS], none[TESTS];
    static int64_t chosen[SUBSETS * HALF];
    (void)state;
    for (int i = 0; i < TESTS * N; i++) {
        scores[i] = normal_at(1, i);
        other[i] = normal_at(2, i);
    }
    for (uint32_t i = 0; i < SUBSETS; i++) {
        grass_choose(7, GRASS_TAG_SUBSET, i, N, HALF, chosen + i * HALF);
        for (int t = 0; t < TESTS; t++) {
            double sum = 0;
            for (int j = 0; j < HALF; j++) sum += scores[t * N + chosen[i * HALF + j]];
            y[i * TESTS + t] = (t % 2 ? -1 : 1) * (sum + 1e-9 * sum * sum * sum);
        }
    }
    double *room_for_lds = room(5 * SUBSETS, sizeof *room_for_lds), mean = 0;
    lds_of(TESTS, N, SUBSETS, HALF, scores, chosen, y, lds, room_for_lds);
    for (int t = 0; t < TESTS; t++) assert_true(fabs(lds[t] - (t % 2 ? -1 : 1)) < 1e-12);
    lds_of(TESTS, N, SUBSETS, HALF, other, chosen, y, none, room_for_lds);
    for (int t = 0; t < TESTS; t++) mean += none[t] / TESTS;
    assert_true(fabs(mean) < 5 / sqrt(SUBSETS * TESTS)); /* each has deviation 1 / sqrt(subsets - 1) */
    free(room_for_lds);
}

/* Of 200 draws of 50 normal values, the interval must hold the true mean in about 95 of 100; with so few values it is a
 * little less, because it is as wide as the deviation seen: P(|t_49| < 1.96 sqrt(49 / 50)) = 0.94. */
static void intervals_hold_the_mean_as_often_as_they_say(void **state)
{
    enum { DRAWS = 200, N = 50 };
    double values[N], *space = room(2 * N + LDS_SAMPLES, sizeof *space);
    int held = 0;
    (void)state;
    for (int d = 0; d < DRAWS; d++) {
        for (int i = 0; i < N; i++) values[i] = 0.4 + 0.1 * normal_at(50, d * N + i);
        const lds_summary s = lds_summarise(N, 1, values, (uint64_t)d, space);
        assert_true(s.low < s.mean && s.mean < s.high && s.count == N);
        held += s.low < 0.4 && 0.4 < s.high;
    }
    if (held < 174 || held > 199) fail_msg("%d of %d intervals hold the mean", held, DRAWS); /* 188 +- 4 deviations */
    free(space);
}

static void values_that_are_no_numbers_are_left_out(void **state)
{
    static const double values[] = {1, NAN, 2, 3, NAN}, none[] = {NAN, NAN};
    double *space = room(2 * 5 + LDS_SAMPLES, sizeof *space);
    (void)state;
    lds_summary s = lds_summarise(5, 1, values, 1, space), again = lds_summarise(5, 1, values, 1, space);
    assert_true(s.count == 3 && s.mean == 2 && fabs(s.deviation - sqrt(2.0 / 3)) < 1e-15);
    assert_true(s.low >= 1 && s.high <= 3 && s.low == again.low && s.high == again.high);
    s = lds_summarise(2, 1, none, 1, space);
    assert_true(s.count == 0 && isnan(s.mean) && isnan(s.low) && isnan(s.high));
    free(space);
}

/* Of each draw, 40 examples and 8 seeds with effects of their own and noise: the mean of all, which is known, must be in
 * the interval about as often as it claims; the seeds' part is short (sqrt(7/8)) and has few degrees of freedom, so a
 * little less.  An interval over the examples alone would miss it in two of five draws. */
static void intervals_over_seeds_hold_the_mean_too(void **state)
{
    enum { DRAWS = 100, N = 40, SEEDS = 8 };
    double values[SEEDS * N], *space = room(2 * N + LDS_SAMPLES, sizeof *space);
    int held = 0;
    (void)state;
    for (int d = 0; d < DRAWS; d++) {
        for (int j = 0; j < SEEDS; j++)
            for (int i = 0; i < N; i++)
                values[j * N + i] = 0.3 + 0.05 * normal_at(61, d * N + i) + 0.05 * normal_at(62, d * SEEDS + j) +
                                    0.02 * normal_at(63, (d * SEEDS + j) * N + i);
        const lds_summary s = lds_summarise(N, SEEDS, values, (uint64_t)d, space);
        assert_true(s.low < s.mean && s.mean < s.high && s.count == N);
        held += s.low < 0.3 && 0.3 < s.high;
    }
    if (held < 78 || held > 99) fail_msg("%d of %d intervals hold the mean", held, DRAWS); /* about 91 of 100 */
    free(space);
}

/* What both sketches share is in no difference: the same example effects, as large as those of LDS, are gone. */
static void a_difference_knows_nothing_of_what_is_shared(void **state)
{
    enum { N = 100, SEEDS = 3 };
    double a[SEEDS * N], difference[SEEDS * N], *space = room(2 * N + LDS_SAMPLES, sizeof *space);
    (void)state;
    for (int j = 0; j < SEEDS * N; j++) {
        a[j] = 0.3 + 0.17 * normal_at(71, j % N) + 0.01 * normal_at(72, j);
        difference[j] = a[j] - (0.3 + 0.17 * normal_at(71, j % N) + 0.01 * normal_at(73, j));
    }
    const lds_summary alone = lds_summarise(N, SEEDS, a, 1, space), d = lds_summarise(N, SEEDS, difference, 1, space);
    assert_true(alone.high - alone.low > 0.05);
    assert_true(d.high - d.low < 0.01 && d.low < 0 && d.high > 0);
    difference[2 * N + 5] = NAN;
    assert_int_equal(lds_summarise(N, SEEDS, difference, 1, space).count, N - 1);
    free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ties_share_the_mean_of_their_ranks),
        cmocka_unit_test(only_the_order_counts),
        cmocka_unit_test(without_ties_it_is_the_textbook_formula),
        cmocka_unit_test(what_has_no_order_has_no_correlation),
        cmocka_unit_test(scores_that_predict_the_models_have_lds_1),
        cmocka_unit_test(intervals_hold_the_mean_as_often_as_they_say),
        cmocka_unit_test(values_that_are_no_numbers_are_left_out),
        cmocka_unit_test(intervals_over_seeds_hold_the_mean_too),
        cmocka_unit_test(a_difference_knows_nothing_of_what_is_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
