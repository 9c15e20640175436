/* test_srht.c - the SRHT: distinct rows of a Hadamard matrix, fair signs, exact orthogonality in integers. */
#include "property.h"

/* H_1 = 1, H_2n = [H_n H_n; H_n -H_n]. */
static int hadamard_by_recursion(uint64_t row, uint64_t j)
{
    if (row == 0 || j == 0) return 0;
    return hadamard_by_recursion(row >> 1, j >> 1) ^ (int)(row & j & 1);
}

static void the_transform_is_sylvesters(void **state)
{
    (void)state;
    for (uint64_t row = 0; row < 512; row++)
        for (uint64_t j = 0; j < 512; j++) {
            const uint64_t far_row = row << 39 | row, far_j = j << 39 | (j & 7);
            HOLDS((int)fsi_hadamard_minus(row, j) == hadamard_by_recursion(row, j), "entry (" U64 ", " U64 ")", row, j);
            HOLDS((int)fsi_hadamard_minus(far_row, far_j) == hadamard_by_recursion(far_row, far_j),
                  "entry (" U64 ", " U64 ")", far_row, far_j);
        }
}

static void the_rows_are_distinct_rows_of_H(void **state)
{
    static unsigned char taken[4096];
    (void)state;
    for (int64_t d = 1; d <= 4096; d += 1 + d / 3) {
        const int64_t N = fsi_srht_order(d);
        HOLDS(N >= d && N < 2 * d && (N & (N - 1)) == 0, "d = " I64 ": N = " I64, d, N);
        const fsi_srht H = fsi_srht_make((uint64_t)d, d, N);
        memset(taken, 0, sizeof taken);
        for (int64_t i = 0; i < N; i++) {
            const uint64_t row = fsi_srht_row(&H, i);
            HOLDS(row < (uint64_t)N && !taken[row], "d = " I64 ": row " I64 " is " U64 ", outside or taken", d, i, row);
            taken[row] = 1;
        }
    }
}

static int sign_at(const fsi_srht *H, int64_t i, int64_t j)
{
    return fsi_srht_flip(H, j) ^ fsi_hadamard_minus(fsi_srht_row(H, i), (uint64_t)j) ? -1 : 1;
}

/* k S S' = N I when d = N, and S' S = I when k = N, summed in integers. */
static void rows_are_orthogonal_when_d_is_N_and_columns_when_k_is_N(void **state)
{
    static const struct {
        int64_t d, k;
    } specs[] = {{64, 64}, {64, 20}, {128, 100}, {1, 1}, {2, 2}, {100, 128}, {33, 64}};
    (void)state;
    for (int n = 0; n < COUNT(specs); n++) {
        const int64_t d = specs[n].d, k = specs[n].k, N = fsi_srht_order(d);
        const fsi_srht H = fsi_srht_make(77 + (uint64_t)n, d, k);
        for (int64_t i = 0; d == N && i < k; i++)
            for (int64_t other = 0; other < k; other++) {
                int64_t sum = 0;
                for (int64_t j = 0; j < d; j++) sum += sign_at(&H, i, j) * sign_at(&H, other, j);
                HOLDS(sum == (i == other ? N : 0), "rows " I64 " and " I64 ": " I64, i, other, sum);
            }
        for (int64_t j = 0; k == N && j < d; j++)
            for (int64_t other = 0; other < d; other++) {
                int64_t sum = 0;
                for (int64_t i = 0; i < k; i++) sum += sign_at(&H, i, j) * sign_at(&H, i, other);
                HOLDS(sum == (j == other ? N : 0), "columns " I64 " and " I64 ": " I64, j, other, sum);
            }
    }
}

static void signs_are_fair_and_independent_of_their_neighbours(void **state)
{
    enum { D = 1 << 16 };
    const fsi_srht H = fsi_srht_make(5, D, 1);
    int64_t runs[16] = {0}, before = 0;
    (void)state;
    for (int64_t j = 0; j < D; j++) {
        before = (before << 1 | (int64_t)fsi_srht_flip(&H, j)) & 15;
        if (j >= 3) runs[before]++;
    }
    check_uniform(runs, 16, "four neighbouring signs of D");
}

static void every_row_of_H_is_picked_equally_often(void **state)
{
    enum { SEEDS = 30000, N = 128 };
    int64_t count[3][N] = {{0}};
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const fsi_srht H = fsi_srht_make(seed, N, 3);
        for (int i = 0; i < 3; i++) count[i][fsi_srht_row(&H, i)]++;
    }
    for (int i = 0; i < 3; i++) check_uniform(count[i], N, "row %d of S", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_transform_is_sylvesters),
        cmocka_unit_test(the_rows_are_distinct_rows_of_H),
        cmocka_unit_test(rows_are_orthogonal_when_d_is_N_and_columns_when_k_is_N),
        cmocka_unit_test(signs_are_fair_and_independent_of_their_neighbours),
        cmocka_unit_test(every_row_of_H_is_picked_equally_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
