/* test_blockrow.c - FlashBlockRow: distinct neighbours, uniform draws, and the weight that keeps norms right. */
#include "property.h"

static void the_neighbours_of_a_block_row_are_distinct(void **state)
{
    (void)state;
    for (int64_t M = 1; M <= 64; M++) {
        const fsi_blockrow R = fsi_blockrow_make((uint64_t)M, 1000, 1000, M, M, 1);
        for (int64_t g = 0; g < M; g++) {
            const fsi_neighbours neighbours = fsi_blockrow_neighbours(&R, g);
            unsigned char taken[64] = {0};
            for (int64_t l = 0; l < M; l++) {
                const int64_t h = fsi_blockrow_neighbour(&neighbours, l);
                HOLDS(h >= 0 && h < M && !taken[h],
                      "M = " I64 ": neighbour " I64 " of block row " I64 " is " I64 ", outside or taken", M, l, g, h);
                taken[h] = 1;
            }
        }
    }
}

static void every_block_is_a_neighbour_equally_often(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 24, 32};
    enum { SEEDS = 2000, ROWS = 32 };
    (void)state;
    for (int n = 0; n < COUNT(sizes); n++)
        for (int64_t l = 0; l < sizes[n] && l < 3; l++) {
            int64_t count[ROWS] = {0};
            for (uint64_t seed = 0; seed < SEEDS; seed++) {
                const fsi_blockrow R = fsi_blockrow_make(seed, 1000, ROWS, sizes[n], 1, 1);
                for (int64_t g = 0; g < ROWS; g++) {
                    const fsi_neighbours neighbours = fsi_blockrow_neighbours(&R, g);
                    count[fsi_blockrow_neighbour(&neighbours, l)]++;
                }
            }
            check_uniform(count, sizes[n], "M = " I64 ": neighbour " I64, sizes[n], l);
        }
}

/* Draws and signs are uniform together in large and small blocks, and independent of the next draw of the row and of
 * the same draw of the next row. */
static void draws_and_signs_are_uniform_and_independent(void **state)
{
    enum { ROWS = 40000 };
    const fsi_blockrow R = fsi_blockrow_make(31, 97, ROWS, 9, 3, 2);
    (void)state;
    for (int64_t h = 0; h < 9; h += 8) {
        const int64_t codes = 2 * fsi_split_size(&R.in, h), start = fsi_split_start(&R.in, h);
        int64_t one[22] = {0}, next_draw[22 * 22] = {0}, next_row[22 * 22] = {0}, before = 0;
        for (int64_t i = 0; i < ROWS; i++) {
            int minus, other_minus;
            const int64_t a = 2 * (fsi_blockrow_draw(&R, i, h, 2, &minus) - start);
            const int64_t b = 2 * (fsi_blockrow_draw(&R, i, h, 3, &other_minus) - start);
            HOLDS(a >= 0 && a < codes && b >= 0 && b < codes, "block " I64 ": draws " I64 " and " I64, h, a / 2, b / 2);
            one[a + minus]++;
            next_draw[(a + minus) * codes + b + other_minus]++;
            if (i) next_row[before * codes + a + minus]++;
            before = a + minus;
        }
        check_uniform(one, codes, "draws and signs in block " I64, h);
        check_uniform(next_draw, codes * codes, "two draws of a row in block " I64, h);
        check_uniform(next_row, codes * codes, "draws of neighbouring rows in block " I64, h);
    }
}

typedef struct product {
    const double *x;
    double *y;
} product;

static void add_entry(void *user, int64_t i, int64_t j, double value)
{
    const product *p = (const product *)user;
    p->y[i] += value * p->x[j];
}

/* E |S x|^2 = |x|^2 with blocks of unequal size, for x in one coordinate of the first and of the last block (the large
 * and the small ones) and for x everywhere. */
static void norms_are_right_on_average_where_M_does_not_divide_d(void **state)
{
    static const struct {
        int64_t d, k, M, kappa, s;
    } specs[] = {{13, 10, 5, 2, 2}, {37, 20, 6, 1, 1}, {9, 8, 8, 8, 2}, {1001, 7, 2, 1, 5}};
    enum { SEEDS = 20000 };
    (void)state;
    for (int n = 0; n < COUNT(specs); n++)
        for (int at = 0; at < 3; at++) {
            double x[1001] = {0}, norm = 0.0, sum = 0.0, square = 0.0;
            for (int64_t j = 0; j < specs[n].d; j++) {
                x[j] = at == 2 ? (double)(j % 5) - 1.0 : j == (at ? specs[n].d - 1 : 0) ? 3.0 : 0.0;
                norm += x[j] * x[j];
            }
            for (uint64_t seed = 0; seed < SEEDS; seed++) {
                const fsi_def_spec p = {specs[n].d, specs[n].k, specs[n].M,       specs[n].kappa, specs[n].s,
                                        1,          seed,       FSI_DEF_BLOCKROW, FSI_DEF_NONE,   0};
                const fsi_def S = fsi_def_make(&p);
                double y[20] = {0}, found = 0.0;
                product Sx = {x, y};
                fsi_def_visit(&S, 0, p.d, add_entry, &Sx);
                for (int64_t i = 0; i < p.k; i++) found += y[i] * y[i] / norm;
                sum += found;
                square += found * found;
            }
            const double mean = sum / SEEDS, error = sqrt((square / SEEDS - mean * mean) / SEEDS);
            check_mean(mean, 1.0, error, "d = " I64 ", M = " I64 ", x number %d: mean of |S x|^2 / |x|^2", specs[n].d,
                       specs[n].M, at);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_neighbours_of_a_block_row_are_distinct),
        cmocka_unit_test(every_block_is_a_neighbour_equally_often),
        cmocka_unit_test(draws_and_signs_are_uniform_and_independent),
        cmocka_unit_test(norms_are_right_on_average_where_M_does_not_divide_d),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
