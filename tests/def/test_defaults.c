/* test_defaults.c - what a spec leaves open is filled with legal values by its rung, and what is given is kept. */
#include "property.h"

static fsi_def_spec filled(fsi_def_spec p)
{
    fsi_def_defaults(&p);
    return p;
}

/* The conditions of docs/definition.md, "Specs". */
static int legal(const fsi_def_spec *p)
{
    const int blocks = p->family == FSI_DEF_BLOCKPERM || p->family == FSI_DEF_BLOCKROW;
    const int sparse = blocks || p->family == FSI_DEF_SJLT;
    return p->M >= 1 && p->M <= p->k && p->kappa >= 1 && p->kappa <= p->M && p->s >= 1 && p->interleave >= 1 &&
           p->interleave <= FSI_GROUP_ROWS && (p->interleave & (p->interleave - 1)) == 0 && p->M % p->interleave == 0 &&
           (blocks || (p->M == 1 && p->kappa == 1)) && (sparse || p->s == 1) &&
           (p->family == FSI_DEF_BLOCKROW ? p->M <= p->d : !sparse || p->s <= p->k / p->M) &&
           (p->family == FSI_DEF_BLOCKPERM || p->shuffle == FSI_DEF_NONE) &&
           (p->shuffle == FSI_DEF_GROUPS || p->interleave == 1);
}

static void d_and_k_alone_make_a_legal_spec(void **state)
{
    static const int64_t d[] = {1, 2, 31, 63, 64, 100, 4096, 1000003, FSI_MAX_D};
    (void)state;
    for (int n = 0; n < COUNT(d); n++)
        for (int64_t k = 1; k <= 5000; k++)
            for (int32_t family = 0; family <= FSI_DEF_GAUSS; family++)
                for (int32_t shuffle = 0; shuffle <= (family <= FSI_DEF_BLOCKPERM ? FSI_DEF_GROUPS : 0); shuffle++) {
                    const int32_t quality = (int32_t)(k % 5);
                    const fsi_def_spec given = {d[n], k, 0, 0, 0, 0, 5, family, shuffle, quality}, p = filled(given);
                    HOLDS(legal(&p),
                          "family %d, shuffle %d, quality %d, d = " I64 ", k = " I64 ": M = " I64 ", kappa = " I64
                          ", s = " I64 ", interleave " I64,
                          p.family, p.shuffle, quality, p.d, k, p.M, p.kappa, p.s, p.interleave);
                    HOLDS(p.d == d[n] && p.k == k && p.seed == 5 && (!family || p.family == family) &&
                              (!shuffle || p.shuffle == shuffle) && p.quality == (quality ? quality : FSI_DEF_DEFAULT),
                          "family %d, shuffle %d, quality %d: what was given has changed", family, shuffle, quality);
                    const fsi_def_spec again = filled(p);
                    HOLDS(again.M == p.M && again.kappa == p.kappa && again.s == p.s &&
                              again.interleave == p.interleave && again.family == p.family,
                          "a full spec changes when it is filled again");
                }
}

/* A case of the_values_are_those_that_are_documented: what is given for d = 4096, or what it becomes. */
typedef struct given {
    int64_t k, M, kappa, s, interleave;
    int32_t family, shuffle, quality;
} given;

#define ROWS FSI_DEF_BLOCKPERM, FSI_DEF_ROWS
#define GROUPS FSI_DEF_BLOCKPERM, FSI_DEF_GROUPS
#define NONE FSI_DEF_BLOCKPERM, FSI_DEF_NONE

static void the_values_are_those_that_are_documented(void **state)
{
    enum { FAST = FSI_DEF_FAST, HIGH = FSI_DEF_HIGH, GAUSSIAN = FSI_DEF_GAUSSIAN };
    static const struct {
        given open, full;
    } cases[] = {
        /* kappa 1 and s = 8, fewer where a block has fewer rows */
        {{256, 0, 0, 0, 0, 0, 0, 0}, {256, 2, 1, 8, 1, ROWS, 0}},
        {{257, 0, 0, 0, 0, 0, 0, 0}, {257, 3, 1, 8, 1, ROWS, 0}},
        {{128, 0, 0, 0, 0, 0, 0, 0}, {128, 1, 1, 8, 1, ROWS, 0}},
        {{65, 0, 0, 0, 0, 0, 0, 0}, {65, 1, 1, 8, 1, ROWS, 0}},
        {{3, 0, 0, 0, 0, 0, 0, 0}, {3, 1, 1, 3, 1, ROWS, 0}},
        {{300, 100, 5, 0, 0, NONE, 0}, {300, 100, 5, 1, 1, NONE, 0}},
        {{4096, 0, 0, 0, 0, 0, FSI_DEF_GROUPS, 0}, {4096, 64, 1, 8, 16, GROUPS, 0}},
        {{1100, 0, 0, 0, 0, 0, FSI_DEF_GROUPS, 0}, {1100, 32, 1, 8, 16, GROUPS, 0}},
        {{200, 0, 0, 0, 0, 0, FSI_DEF_GROUPS, 0}, {200, 4, 1, 8, 4, GROUPS, 0}},
        {{2000, 12, 0, 0, 0, 0, FSI_DEF_GROUPS, 0}, {2000, 12, 1, 8, 4, GROUPS, 0}},
        /* the rungs; kappa at most M, s fills kappa s nonzeros up to floor(k / M) */
        {{1024, 0, 0, 0, 0, 0, 0, FAST}, {1024, 8, 1, 4, 1, ROWS, FAST}},
        {{1024, 0, 0, 0, 0, 0, 0, FSI_DEF_DEFAULT}, {1024, 8, 1, 8, 1, ROWS, FSI_DEF_DEFAULT}},
        {{1024, 0, 0, 0, 0, 0, 0, HIGH}, {1024, 8, 2, 8, 1, ROWS, HIGH}},
        {{1024, 0, 0, 0, 0, 0, 0, GAUSSIAN}, {1024, 8, 4, 8, 1, ROWS, GAUSSIAN}},
        {{64, 0, 0, 0, 0, 0, 0, HIGH}, {64, 1, 1, 16, 1, ROWS, HIGH}},
        {{64, 0, 0, 0, 0, 0, 0, GAUSSIAN}, {64, 1, 1, 32, 1, ROWS, GAUSSIAN}},
        {{384, 0, 0, 0, 0, 0, 0, GAUSSIAN}, {384, 3, 3, 10, 1, ROWS, GAUSSIAN}},
        {{7, 0, 0, 0, 0, 0, 0, GAUSSIAN}, {7, 1, 1, 7, 1, ROWS, GAUSSIAN}},
        {{64, 32, 0, 0, 0, 0, 0, GAUSSIAN}, {64, 32, 4, 2, 1, ROWS, GAUSSIAN}},
        {{1024, 0, 0, 0, 0, 0, FSI_DEF_GROUPS, HIGH}, {1024, 16, 2, 8, 16, GROUPS, HIGH}},
        /* what is given is kept, the rest still goes by the rung */
        {{1024, 0, 0, 3, 0, 0, 0, HIGH}, {1024, 8, 2, 3, 1, ROWS, HIGH}},
        {{1024, 0, 4, 0, 0, 0, 0, HIGH}, {1024, 8, 4, 4, 1, ROWS, HIGH}},
        {{1024, 0, 4, 5, 0, 0, 0, GAUSSIAN}, {1024, 8, 4, 5, 1, ROWS, GAUSSIAN}},
        {{1024, 0, 16, 0, 0, 0, 0, FAST}, {1024, 16, 16, 1, 1, ROWS, FAST}},
        {{1024, 8, 0, 0, 0, 0, 0, GAUSSIAN}, {1024, 8, 4, 8, 1, ROWS, GAUSSIAN}},
        /* blocks of at most 64 rows where a column would have one nonzero in each, or of row groups */
        {{256, 0, 0, 1, 0, 0, 0, 0}, {256, 4, 1, 1, 1, ROWS, 0}},
        {{65, 0, 0, 1, 0, 0, 0, HIGH}, {65, 2, 2, 1, 1, ROWS, HIGH}},
        {{512, 0, 8, 0, 0, 0, 0, 0}, {512, 8, 8, 1, 1, ROWS, 0}},
        {{256, 0, 4, 0, 0, 0, 0, FAST}, {256, 4, 4, 1, 1, ROWS, FAST}},
        {{2048, 0, 4, 0, 0, 0, 0, 0}, {2048, 16, 4, 2, 1, ROWS, 0}},
        {{2048, 0, 0, 1, 0, 0, FSI_DEF_GROUPS, 0}, {2048, 32, 1, 1, 16, GROUPS, 0}},
        /* other families: SJLT has kappa 1, the rest has no rungs */
        {{256, 0, 0, 0, 0, FSI_DEF_SJLT, 0, 0}, {256, 1, 1, 8, 1, FSI_DEF_SJLT, FSI_DEF_NONE, 0}},
        {{256, 0, 0, 0, 0, FSI_DEF_SJLT, 0, FAST}, {256, 1, 1, 4, 1, FSI_DEF_SJLT, FSI_DEF_NONE, FAST}},
        {{256, 0, 0, 0, 0, FSI_DEF_SJLT, 0, HIGH}, {256, 1, 1, 16, 1, FSI_DEF_SJLT, FSI_DEF_NONE, HIGH}},
        {{256, 0, 0, 0, 0, FSI_DEF_SJLT, 0, GAUSSIAN}, {256, 1, 1, 32, 1, FSI_DEF_SJLT, FSI_DEF_NONE, GAUSSIAN}},
        {{256, 0, 0, 0, 0, FSI_DEF_BLOCKROW, 0, 0}, {256, 4, 2, 2, 1, FSI_DEF_BLOCKROW, FSI_DEF_NONE, 0}},
        {{256, 0, 0, 0, 0, FSI_DEF_BLOCKROW, 0, HIGH}, {256, 4, 2, 2, 1, FSI_DEF_BLOCKROW, FSI_DEF_NONE, HIGH}},
        {{9, 0, 0, 0, 0, FSI_DEF_BLOCKROW, 0, 0}, {9, 1, 1, 2, 1, FSI_DEF_BLOCKROW, FSI_DEF_NONE, 0}},
        {{256, 0, 0, 0, 0, FSI_DEF_SRHT, 0, HIGH}, {256, 1, 1, 1, 1, FSI_DEF_SRHT, FSI_DEF_NONE, HIGH}},
        {{256, 0, 0, 0, 0, FSI_DEF_GAUSS, 0, HIGH}, {256, 1, 1, 1, 1, FSI_DEF_GAUSS, FSI_DEF_NONE, HIGH}},
    };
    (void)state;
    for (int n = 0; n < COUNT(cases); n++) {
        const given a = cases[n].open, q = cases[n].full;
        const fsi_def_spec p = filled(
            (fsi_def_spec){4096, a.k, a.M, a.kappa, a.s, a.interleave, 0, a.family, a.shuffle, a.quality});
        HOLDS(p.M == q.M && p.kappa == q.kappa && p.s == q.s && p.interleave == q.interleave && p.family == q.family &&
                  p.shuffle == q.shuffle && p.quality == (q.quality ? q.quality : FSI_DEF_DEFAULT),
              "case %d: family %d, shuffle %d, M = " I64 ", kappa = " I64 ", s = " I64 ", interleave " I64
              ", quality %d",
              n, p.family, p.shuffle, p.M, p.kappa, p.s, p.interleave, p.quality);
    }
    const fsi_def_spec small = filled((fsi_def_spec){3, 256, 0, 0, 0, 0, 0, FSI_DEF_BLOCKROW, 0, 0});
    HOLDS(small.M == 3 && small.kappa == 2, "blockrow of d = 3: M = " I64 ", kappa = " I64, small.M, small.kappa);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d_and_k_alone_make_a_legal_spec),
        cmocka_unit_test(the_values_are_those_that_are_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
