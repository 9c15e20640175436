/* test_permute.c - the keyed bijection is one, in both directions, and its blocks are as random as they must be.
 *
 * What the sketch needs of P is that two rows share a block with the right probability, whatever rows they are: that
 * is the whole second moment of S.  So the pairs tested are structured ones, on which a weak mixer fails. */
#include "property.h"

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void it_is_one_to_one_and_inverted_for_all_n_to_5000(void **state)
{
    static unsigned char seen[5000];
    (void)state;
    for (uint64_t n = 1; n <= 5000; n++) {
        const fsi_bijection P = fsi_bijection_make(n * 0x9E3779B97F4A7C15u, FSI_TAG_SHUFFLE, 0, n);
        memset(seen, 0, sizeof seen);
        for (uint64_t x = 0; x < n; x++) {
            const uint64_t y = fsi_permute(&P, x);
            HOLDS(y < n && !seen[y], "n = " U64 ": P(" U64 ") = " U64 " is outside or taken", n, x, y);
            seen[y] = 1;
            const uint64_t back = fsi_permute_inverse(&P, y);
            HOLDS(back == x, "n = " U64 ": P(" U64 ") = " U64 ", whose inverse is " U64, n, x, y, back);
        }
    }
}

/* 2^e - 1, 2^e, 2^e + 1 and an odd number between, for every e up to the largest n. */
static void it_is_one_to_one_and_inverted_for_n_to_two_to_the_48(void **state)
{
    enum { SAMPLES = 1000 };
    static uint64_t image[SAMPLES];
    (void)state;
    for (int e = 11; e <= 48; e++) {
        const uint64_t two = (uint64_t)1 << e, sizes[4] = {two - 1, two, two + 1, two / 3 * 2 + 1};
        for (int i = 0; i < 4; i++) {
            const uint64_t n = sizes[i] > (uint64_t)FSI_MAX_D ? (uint64_t)FSI_MAX_D - 2 : sizes[i];
            const fsi_bijection P = fsi_bijection_make(n, FSI_TAG_SHUFFLE, 0, n);
            for (uint64_t t = 0; t < SAMPLES; t++) {
                const uint64_t x = t < 300 ? t : t < 600 ? n - 1 - (t - 300) : t * 0x9E3779B97F4A7C15u % n;
                const uint64_t y = fsi_permute(&P, x), z = fsi_permute_inverse(&P, x);
                HOLDS(y < n && z < n, "n = " U64 ": " U64 " goes to " U64 " and back to " U64, n, x, y, z);
                HOLDS(fsi_permute_inverse(&P, y) == x, "n = " U64 ": the inverse of P(" U64 ") is another", n, x);
                HOLDS(fsi_permute(&P, z) == x, "n = " U64 ": P of the inverse of " U64 " is another", n, x);
                image[t] = t < 600 ? y : n + t;
            }
            qsort(image, SAMPLES, sizeof *image, ascending);
            for (int t = 1; t < SAMPLES; t++)
                HOLDS(image[t] != image[t - 1], "n = " U64 ": two rows go to " U64, n, image[t]);
        }
    }
}

/* Fewer than 2^r inputs leave [n] in one pass, 2^r being at most 2 sqrt(n): the walk stays rare. */
static void few_inputs_need_a_second_pass(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 5000; n++) {
        const fsi_bijection P = fsi_bijection_make(n, FSI_TAG_SHUFFLE, 0, n);
        const uint64_t side = (uint64_t)1 << P.bits;
        uint64_t outside = 0;
        for (uint64_t x = 0; x < n; x++) outside += fsi_permute_pass(&P, P.key, x) >= n;
        HOLDS(outside < side && side * side < 4 * n + 1, "n = " U64 ": " U64 " inputs walk, 2^r = " U64, n, outside,
              side);
    }
}

/* The probability that two rows of a uniform permutation of [n] fall into the same of M blocks. */
static double same_block(const fsi_split *blocks, int64_t n, int64_t M)
{
    double sum = 0.0;
    for (int64_t h = 0; h < M; h++) {
        const double b = (double)fsi_split_size(blocks, h);
        sum += b * (b - 1.0);
    }
    return sum / ((double)n * (double)(n - 1));
}

/* Pairs (x, x + 2^t) from the front, the middle and the end of [n]: each pair within 4 sigma of theory, and the
 * squares of all deviations together within the chi-square limit. */
static void structured_pairs_share_a_block_as_often_as_random_ones(void **state)
{
    static const int64_t sizes[] = {500, 1000, 4096, 5000, 100003, 1 << 20, 1000000007, ((int64_t)1 << 40) + 1};
    enum { SEEDS = 30000, M = 12, PAIRS = 3 * 41 };
    (void)state;
    double chi = 0.0;
    int pairs_in_all = 0;
    for (int i = 0; i < COUNT(sizes); i++) {
        const int64_t n = sizes[i];
        const fsi_split blocks = fsi_split_make(n, M);
        const double p = same_block(&blocks, n, M), error = sqrt(p * (1.0 - p) / SEEDS);
        int64_t first[PAIRS], second[PAIRS], together[PAIRS] = {0};
        int pairs = 0;
        for (int64_t stride = 1; stride < n / 2; stride *= 2)
            for (int place = 0; place < 3; place++, pairs++) {
                first[pairs] = place * ((n - 1 - stride) / 2);
                second[pairs] = first[pairs] + stride;
            }
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            const fsi_bijection P = fsi_bijection_make(seed, FSI_TAG_SHUFFLE, (uint32_t)i, (uint64_t)n);
            for (int t = 0; t < pairs; t++)
                together[t] += fsi_split_index(&blocks, (int64_t)fsi_permute(&P, (uint64_t)first[t])) ==
                               fsi_split_index(&blocks, (int64_t)fsi_permute(&P, (uint64_t)second[t]));
        }
        for (int t = 0; t < pairs; t++, pairs_in_all++) {
            const double found = (double)together[t] / SEEDS;
            check_mean(found, p, error, "n = " I64 ", rows " I64 " and " I64 " together", n, first[t], second[t]);
            chi += (found - p) * (found - p) / (error * error);
        }
    }
    HOLDS(chi < chi_square_limit(pairs_in_all), "%d pairs: chi-square %.1f, the limit is %.1f", pairs_in_all, chi,
          chi_square_limit(pairs_in_all));
}

/* m large rows at a fixed stride: the number of pairs that share a block has the mean and, n being large, the variance
 * m (m - 1) / 2 p (1 - p) that independent rows have.  The variance depends on the joint distribution of four rows. */
static void a_run_of_rows_spreads_over_the_blocks_like_a_random_set(void **state)
{
    static const struct {
        int64_t n, stride;
    } runs[] = {{100003, 1},     {100003, 316},   {1 << 20, 1},          {1 << 20, 32},        {1 << 20, 1024},
                {1 << 20, 4096}, {1000000007, 1}, {1000000007, 1 << 15}, {1000000007, 1 << 21}};
    enum { SEEDS = 6000, M = 16, HOT = 256 };
    (void)state;
    for (int i = 0; i < COUNT(runs); i++) {
        const fsi_split blocks = fsi_split_make(runs[i].n, M);
        const double p = same_block(&blocks, runs[i].n, M), pairs = HOT * (HOT - 1) / 2.0,
                     expected = pairs * p * (1.0 - p);
        double sum = 0.0, square = 0.0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            const fsi_bijection P = fsi_bijection_make(seed, FSI_TAG_SHUFFLE, 0, (uint64_t)runs[i].n);
            double together = -pairs * p;
            int64_t in[M] = {0};
            for (int64_t x = 0; x < HOT; x++) {
                const uint64_t y = fsi_permute(&P, (uint64_t)(7 + x * runs[i].stride));
                together += (double)in[fsi_split_index(&blocks, (int64_t)y)]++;
            }
            sum += together;
            square += together * together;
        }
        check_mean(sum / SEEDS, 0.0, sqrt(expected / SEEDS), "n = " I64 ", stride " I64 ": pairs in a block, mean",
                   runs[i].n, runs[i].stride);
        /* The count is near a sum of chi-squares with 15 degrees of freedom: kurtosis 3 + 12 / 15. */
        check_mean(square / SEEDS / expected, 1.0, sqrt(2.8 / SEEDS),
                   "n = " I64 ", stride " I64 ": pairs in a block, variance", runs[i].n, runs[i].stride);
    }
}

static void a_row_falls_into_every_block_equally_often(void **state)
{
    static const int64_t sizes[] = {1024, 4096, 100000, 1000000000, (int64_t)1 << 48};
    enum { SEEDS = 20000, M = 16 };
    (void)state;
    for (int i = 0; i < COUNT(sizes); i++) {
        const fsi_split blocks = fsi_split_make(sizes[i], M);
        const int64_t rows[3] = {0, sizes[i] / 2, sizes[i] - 1};
        int64_t count[3][M] = {{0}};
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            const fsi_bijection P = fsi_bijection_make(seed << 32, FSI_TAG_SHUFFLE, 0, (uint64_t)sizes[i]);
            for (int t = 0; t < 3; t++)
                count[t][fsi_split_index(&blocks, (int64_t)fsi_permute(&P, (uint64_t)rows[t]))]++;
        }
        for (int t = 0; t < 3; t++) check_uniform(count[t], M, "n = " I64 ": the block of row " I64, sizes[i], rows[t]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_one_to_one_and_inverted_for_all_n_to_5000),
        cmocka_unit_test(it_is_one_to_one_and_inverted_for_n_to_two_to_the_48),
        cmocka_unit_test(few_inputs_need_a_second_pass),
        cmocka_unit_test(structured_pairs_share_a_block_as_often_as_random_ones),
        cmocka_unit_test(a_run_of_rows_spreads_over_the_blocks_like_a_random_set),
        cmocka_unit_test(a_row_falls_into_every_block_equally_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
