/* test_defaults.c - what a spec leaves open is filled with legal values, and what it says is kept. */
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
                    const fsi_def_spec said = {d[n], k, 0, 0, 0, 0, 5, family, shuffle}, p = filled(said);
                    HOLDS(legal(&p),
                          "family %d, shuffle %d, d = " I64 ", k = " I64 ": M = " I64 ", kappa = " I64 ", s = " I64
                          ", interleave " I64,
                          p.family, p.shuffle, p.d, k, p.M, p.kappa, p.s, p.interleave);
                    HOLDS(p.d == d[n] && p.k == k && p.seed == 5 && (!family || p.family == family) &&
                              (!shuffle || p.shuffle == shuffle),
                          "family %d, shuffle %d: what was said has changed", family, shuffle);
                }
}

static void the_values_are_those_that_are_documented(void **state)
{
    static const struct {
        fsi_def_spec said, full;
    } cases[] = {
        {{4096, 256, 0, 0, 0, 0, 0, 0, 0}, {4096, 256, 4, 1, 4, 1, 0, FSI_DEF_BLOCKPERM, FSI_DEF_ROWS}},
        {{4096, 100, 0, 0, 0, 0, 0, 0, 0}, {4096, 100, 2, 1, 4, 1, 0, FSI_DEF_BLOCKPERM, FSI_DEF_ROWS}},
        {{4096, 3, 0, 0, 0, 0, 0, 0, 0}, {4096, 3, 1, 1, 3, 1, 0, FSI_DEF_BLOCKPERM, FSI_DEF_ROWS}},
        {{4096, 300, 100, 5, 0, 0, 0, 0, FSI_DEF_NONE}, {4096, 300, 100, 5, 3, 1, 0, FSI_DEF_BLOCKPERM, FSI_DEF_NONE}},
        {{4096, 4096, 0, 0, 0, 0, 0, 0, FSI_DEF_GROUPS},
         {4096, 4096, 64, 1, 4, 16, 0, FSI_DEF_BLOCKPERM, FSI_DEF_GROUPS}},
        {{4096, 1100, 0, 0, 0, 0, 0, 0, FSI_DEF_GROUPS},
         {4096, 1100, 32, 1, 4, 16, 0, FSI_DEF_BLOCKPERM, FSI_DEF_GROUPS}},
        {{4096, 200, 0, 0, 0, 0, 0, 0, FSI_DEF_GROUPS}, {4096, 200, 4, 1, 4, 4, 0, FSI_DEF_BLOCKPERM, FSI_DEF_GROUPS}},
        {{4096, 2000, 12, 0, 0, 0, 0, 0, FSI_DEF_GROUPS},
         {4096, 2000, 12, 1, 4, 4, 0, FSI_DEF_BLOCKPERM, FSI_DEF_GROUPS}},
        {{4096, 256, 0, 0, 0, 0, 0, FSI_DEF_SJLT, 0}, {4096, 256, 1, 1, 4, 1, 0, FSI_DEF_SJLT, FSI_DEF_NONE}},
        {{4096, 256, 0, 0, 0, 0, 0, FSI_DEF_BLOCKROW, 0}, {4096, 256, 4, 2, 2, 1, 0, FSI_DEF_BLOCKROW, FSI_DEF_NONE}},
        {{3, 256, 0, 0, 0, 0, 0, FSI_DEF_BLOCKROW, 0}, {3, 256, 3, 2, 2, 1, 0, FSI_DEF_BLOCKROW, FSI_DEF_NONE}},
        {{4096, 256, 0, 0, 0, 0, 0, FSI_DEF_SRHT, 0}, {4096, 256, 1, 1, 1, 1, 0, FSI_DEF_SRHT, FSI_DEF_NONE}},
        {{4096, 256, 0, 0, 0, 0, 0, FSI_DEF_GAUSS, 0}, {4096, 256, 1, 1, 1, 1, 0, FSI_DEF_GAUSS, FSI_DEF_NONE}},
    };
    (void)state;
    for (int n = 0; n < COUNT(cases); n++) {
        const fsi_def_spec p = filled(cases[n].said), q = cases[n].full;
        HOLDS(p.M == q.M && p.kappa == q.kappa && p.s == q.s && p.interleave == q.interleave && p.family == q.family &&
                  p.shuffle == q.shuffle,
              "case %d: family %d, shuffle %d, M = " I64 ", kappa = " I64 ", s = " I64 ", interleave " I64, n, p.family,
              p.shuffle, p.M, p.kappa, p.s, p.interleave);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(d_and_k_alone_make_a_legal_spec),
        cmocka_unit_test(the_values_are_those_that_are_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
