/* test_wiring.c - the block permutations: one cycle through all blocks, drawn from all such maps with equal chances. */
#include "property.h"

enum { MOST = 256 };

/* Whether x -> (a x + b) mod M runs through all of [M], found by running. */
static int runs_through_all(uint32_t a, uint32_t b, uint32_t M)
{
    uint32_t x = 0, steps = 0;
    do x = (uint32_t)(((uint64_t)a * x + b) % M);
    while (++steps < M && x != 0);
    return steps == M && x == 0;
}

/* pi_l(g) = f^l(g), l = 1 ... M: for every g the M values are distinct, so any kappa of them are edge-disjoint; for
 * every l the M values are distinct, so every input block is read by exactly kappa output blocks. */
static void its_powers_are_edge_disjoint_permutations_for_all_M_to_256(void **state)
{
    static uint32_t at[MOST];
    static unsigned char of_g[MOST][MOST], of_l[MOST];
    (void)state;
    for (uint32_t M = 1; M <= MOST; M++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            const fsi_wiring f = fsi_wiring_make(seed * 0x9E3779B97F4A7C15u + M, M);
            memset(of_g, 0, sizeof of_g);
            for (uint32_t g = 0; g < M; g++) at[g] = g;
            for (uint32_t l = 1; l <= M; l++) {
                memset(of_l, 0, sizeof of_l);
                for (uint32_t g = 0; g < M; g++) {
                    at[g] = fsi_wiring_next(&f, at[g]);
                    HOLDS(at[g] < M && !of_g[g][at[g]] && !of_l[at[g]],
                          "M = " U32 ", a = " U32 ", b = " U32 ": pi_" U32 "(" U32 ") = " U32 " comes twice", M, f.a,
                          f.b, l, g, at[g]);
                    of_g[g][at[g]] = of_l[at[g]] = 1;
                }
            }
        }
}

static void check_back(uint32_t M, uint64_t seed, uint32_t x)
{
    const fsi_wiring f = fsi_wiring_make(seed, M);
    const uint32_t y = fsi_wiring_next(&f, x), z = fsi_wiring_back(&f, x);
    HOLDS(y < M && z < M && fsi_wiring_back(&f, y) == x && fsi_wiring_next(&f, z) == x,
          "M = " U32 ", a = " U32 ", b = " U32 ": " U32 " maps to " U32 " and back to " U32, M, f.a, f.b, x, y, z);
}

static void back_inverts_next(void **state)
{
    static const uint32_t large[] = {2147483647, 2147483646, 1073741824, 1162261467, 1220703125, 2147395600};
    (void)state;
    for (uint32_t M = 1; M <= MOST; M++)
        for (uint32_t x = 0; x < M; x++) check_back(M, x % 3, x);
    for (int i = 0; i < COUNT(large); i++)
        for (uint32_t t = 0; t < 50; t++)
            check_back(large[i], t, t < 2 ? t * (large[i] - 1) : t * 0x9E3779B1u % large[i]);
}

/* The step between multipliers is right for every M: 1 + step t has the full period, all others have not.  So the
 * block permutations are always cyclic shifts exactly when M is square-free or four times an odd square-free one. */
static void the_multipliers_are_those_of_the_full_period(void **state)
{
    (void)state;
    for (uint32_t M = 1; M <= 150; M++) {
        const uint32_t step = fsi_wiring_step(M);
        for (uint32_t a = 1; a < M; a++)
            HOLDS(runs_through_all(a, 1, M) == ((a - 1) % step == 0),
                  "M = " U32 ", step " U32 ": a = " U32 " was classified wrongly", M, step, a);
        int square_free = 1;
        for (uint32_t p = 2; p * p <= M; p++) square_free &= M % (p * p) != 0 || (p == 2 && M % 8 != 0);
        HOLDS((step == M) == square_free, "M = " U32 ": step " U32, M, step);
    }
}

/* All pairs (a, b) of the full period, found by running, are drawn, and drawn equally often. */
static void every_full_period_map_is_drawn_equally_often(void **state)
{
    static const uint32_t sizes[] = {2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 18, 20, 24, 25, 27, 32, 36};
    enum { SEEDS = 20000 };
    static int64_t drawn[36][36], count[36 * 36];
    (void)state;
    for (int i = 0; i < COUNT(sizes); i++) {
        const uint32_t M = sizes[i];
        memset(drawn, 0, sizeof drawn);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            const fsi_wiring f = fsi_wiring_make(seed, M);
            drawn[f.a][f.b]++;
        }
        int64_t maps = 0, outside = 0;
        for (uint32_t a = 0; a < M; a++)
            for (uint32_t b = 0; b < M; b++)
                if (runs_through_all(a, b, M)) count[maps++] = drawn[a][b];
                else outside += drawn[a][b];
        HOLDS(outside == 0, "M = " U32 ": " I64 " maps without the full period", M, outside);
        check_uniform(count, maps, "M = " U32 ", maps of the full period", M);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_powers_are_edge_disjoint_permutations_for_all_M_to_256),
        cmocka_unit_test(back_inverts_next),
        cmocka_unit_test(the_multipliers_are_those_of_the_full_period),
        cmocka_unit_test(every_full_period_map_is_drawn_equally_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
