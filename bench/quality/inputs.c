/* inputs.c - the table of inputs, and the inputs that have large rows only, which differ in where these are.
 *
 * "Unit rows" is Q = I in some rows, all other rows zero: every one has leverage 1. */
#include <stdlib.h>

#include "quality.h"
#include "random.h"

const char *const quality_group_names[QUALITY_GROUPS] = {"spread", "regular", "scattered", "file"};

/* Rows at least, so that rows that are drawn are far from each other. */
enum { LEAST_ROWS = 32768 };

static int64_t at_least(int64_t x, int64_t y) { return x > y ? x : y; }

/* `count` rows with indices below `limit`; d is a multiple of 8192. */
static int large_rows(quality_matrix *m, int64_t count, int64_t limit)
{
    return quality_matrix_rows(m, at_least((limit + 8191) / 8192 * 8192, LEAST_ROWS), count);
}

static void unit_rows(quality_matrix *m)
{
    for (int64_t j = 0; j < m->n; j++) m->A[j * m->count + j] = 1;
    m->orthonormal = 1;
}

/* `count` different indices below `bound` for the rows, in random order, each times `step`; row i then gets
 * i mod step. */
static int scatter(quality_matrix *m, int64_t step)
{
    const int64_t bound = m->d / step;
    char *taken = calloc((size_t)bound, 1);
    if (!taken) return 1;
    for (int64_t i = 0; i < m->count; i++) {
        if (i % step) {
            m->rows[i] = m->rows[i - 1] + 1;
            continue;
        }
        int64_t at = random_below(&m->seed, bound);
        while (taken[at]) at = random_below(&m->seed, bound);
        taken[at] = 1;
        m->rows[i] = at * step;
    }
    free(taken);
    return 0;
}

/* unit rows --------------------------------------------------------------------------------------------------- */

/* Bundles of `size` neighbouring rows, anywhere; 1: every row anywhere. */
static int make_bundles(quality_matrix *m, double size)
{
    if (large_rows(m, m->n, 0) || scatter(m, (int64_t)size)) return 1;
    unit_rows(m);
    return 0;
}
static int make_stride(quality_matrix *m, double stride)
{
    const int64_t step = stride < 0 ? (int64_t)-stride * m->M : (int64_t)stride; /* below 0: times M */
    if (large_rows(m, m->n, (m->n - 1) * step + 1)) return 1;
    for (int64_t i = 0; i < m->n; i++) m->rows[i] = i * step;
    unit_rows(m);
    return 0;
}
/* `count` rows of each round, evenly apart; below 0: side by side, in the first 1 / -count of it. */
static int make_rounds(quality_matrix *m, double count)
{
    const int64_t each = count > 0 ? (int64_t)count : at_least(m->M / (int64_t)-count, 1);
    const int64_t step = count > 0 ? at_least(m->M / each, 1) : 1, round = at_least(m->M, each);
    if (large_rows(m, m->n, (m->n / each + 1) * round)) return 1;
    for (int64_t i = 0; i < m->n; i++) m->rows[i] = i / each * round + i % each * step;
    unit_rows(m);
    return 0;
}
/* Incidence of a path: n edges in order, one to seven rows apart.  Their columns span what unit rows span. */
static int make_path(quality_matrix *m, double longest)
{
    int64_t at = 0;
    if (large_rows(m, m->n, m->n * (int64_t)longest)) return 1;
    for (int64_t i = 0; i < m->n; i++) m->rows[i] = at += 1 + random_below(&m->seed, (int64_t)longest);
    for (int64_t i = 0; i < m->n; i++) m->rows[i] -= 1;
    unit_rows(m);
    return 0;
}

/* Groups of eight large rows in few equal places: four neighbouring places in two rounds. */
static void place_pairs(quality_matrix *m, int64_t rounds, int64_t round)
{
    const int64_t each = 8 / rounds;
    for (int64_t i = 0; i < m->count; i++) {
        const int64_t group = i / 8, q = i % 8 / each, place = (group * each + i % each) % round;
        m->rows[i] = (group * rounds + q) * round + place;
    }
}
static int make_two_rounds(quality_matrix *m, double unused)
{
    (void)unused;
    const int64_t round = at_least(m->M, 4);
    if (large_rows(m, m->n, (m->n / 8 + 1) * 2 * round)) return 1;
    place_pairs(m, 2, round);
    unit_rows(m);
    return 0;
}
/* A column for each group, flat on its eight rows. */
static int make_flat_rounds(quality_matrix *m, double rounds)
{
    const int64_t round = at_least(m->M, 4);
    if (large_rows(m, 8 * m->n, (m->n + 1) * (int64_t)rounds * round)) return 1;
    place_pairs(m, (int64_t)rounds, round);
    for (int64_t i = 0; i < m->count; i++) m->A[i / 8 * m->count + i] = sqrt(0.125);
    m->orthonormal = 1;
    return 0;
}

/* several rows for a column ----------------------------------------------------------------------------------- */

static void normals(quality_matrix *m)
{
    for (int64_t e = 0; e < m->count * m->n; e++) m->A[e] = random_normal(&m->seed);
}
/* c n normal rows, anywhere: leverage about 1 / c. */
static int make_large(quality_matrix *m, double times)
{
    if (large_rows(m, (int64_t)(times * (double)m->n), 0) || scatter(m, 1)) return 1;
    normals(m);
    return 0;
}
/* 2 n normal rows at a stride; 0: M. */
static int make_periodic(quality_matrix *m, double stride)
{
    const int64_t step = stride > 0 ? (int64_t)stride : m->M;
    if (large_rows(m, 2 * m->n, 2 * m->n * step)) return 1;
    for (int64_t i = 0; i < m->count; i++) m->rows[i] = i * step;
    normals(m);
    return 0;
}
/* 8 n normal rows that fall by 10^-6 every 4 n; scattered: in random order, anywhere. */
static int make_decaying(quality_matrix *m, double scattered)
{
    if (large_rows(m, 8 * m->n, 0) || (scattered > 0 && scatter(m, 1))) return 1;
    normals(m);
    for (int64_t e = 0; e < m->count * m->n; e++) m->A[e] *= exp(-log(1e6) / 4 * (double)(e % m->count) / (double)m->n);
    return 0;
}
/* C copies of unit rows, divided by sqrt(C); below 0: scattered. */
static int make_stacked(quality_matrix *m, double copies)
{
    const int64_t count = (int64_t)fabs(copies);
    if (large_rows(m, count * m->n, 0) || (copies < 0 && scatter(m, 1))) return 1;
    for (int64_t i = 0; i < m->count; i++) m->A[i % m->n * m->count + i] = 1 / sqrt((double)count);
    m->orthonormal = 1;
    return 0;
}
/* Half the columns of the Hadamard matrix of 32, in blocks on the diagonal: leverage 1/2. */
static int make_block_hadamard(quality_matrix *m, double scattered)
{
    enum { ROWS = 32, COLUMNS = 16 };
    const int64_t blocks = (m->n + COLUMNS - 1) / COLUMNS;
    if (large_rows(m, blocks * ROWS, 0) || (scattered > 0 && scatter(m, 1))) return 1;
    for (int64_t j = 0; j < m->n; j++)
        for (int64_t i = 0; i < ROWS; i++) {
            const int minus = __builtin_parityll((unsigned long long)(i & j % COLUMNS));
            m->A[j * m->count + j / COLUMNS * ROWS + i] = (minus ? -1 : 1) / sqrt((double)ROWS);
        }
    m->orthonormal = 1;
    return 0;
}

/* graphs: an edge is a row with 1 and -1; of n + 1 vertices the last has no column ------------------------------ */

static void edge(quality_matrix *m, int64_t i, int64_t from, int64_t to)
{
    if (from < m->n) m->A[from * m->count + i] += 1;
    if (to < m->n) m->A[to * m->count + i] -= 1;
}
/* Complete graphs of eight vertices, in a chain of bridges: a bridge has leverage 1. */
static int make_bridges(quality_matrix *m, double unused)
{
    (void)unused;
    enum { CLIQUE = 8 };
    int64_t edges = 0;
    for (int64_t v = 1; v <= m->n; v++) edges += v % CLIQUE ? v % CLIQUE : 1;
    if (large_rows(m, edges, 0) || scatter(m, 1)) return 1;
    int64_t i = 0;
    for (int64_t v = 1; v <= m->n; v++) {
        if (v % CLIQUE == 0) edge(m, i++, v, v - 1);
        for (int64_t w = v / CLIQUE * CLIQUE; w < v; w++) edge(m, i++, v, w);
    }
    return 0;
}
/* Every vertex joins a number of earlier ones, those with many edges more often (Barabasi and Albert). */
static int make_power_graph(quality_matrix *m, double joins)
{
    const int64_t each = (int64_t)joins;
    if (large_rows(m, each * m->n, 0) || scatter(m, 1)) return 1;
    int64_t *ends = malloc(sizeof *ends * (size_t)(2 * m->count + 1)), used = 0;
    if (!ends) return 1;
    ends[used++] = 0;
    for (int64_t v = 1, i = 0; v <= m->n; v++) {
        const int64_t before = used;
        for (int64_t t = 0; t < each; t++, i++) {
            const int64_t other = ends[random_below(&m->seed, before)];
            edge(m, i, v, other);
            ends[used++] = v, ends[used++] = other;
        }
    }
    free(ends);
    return 0;
}

/* the table --------------------------------------------------------------------------------------------------- */

const quality_input quality_inputs[] = {
    {"scattered", QUALITY_SCATTERED, 0, make_bundles, 1},
    {"stride-M", QUALITY_REGULAR, 1, make_stride, -1},
    {"side-by-side", QUALITY_REGULAR, 0, make_stride, 1},
    {"two-rounds", QUALITY_REGULAR, 1, make_two_rounds, 0},
    {"two-places", QUALITY_REGULAR, 1, make_rounds, 2},
    {"stride-32", QUALITY_REGULAR, 0, make_stride, 32},
    {"path", QUALITY_SCATTERED, 0, make_path, 7},
    {"bundles-16", QUALITY_SCATTERED, 0, make_bundles, 16},
    {"half-runs", QUALITY_REGULAR, 1, make_rounds, -2},
    {"large-n", QUALITY_SCATTERED, 0, make_large, 1},
    {"stride-2", QUALITY_REGULAR, 0, make_stride, 2},
    {"stride-8", QUALITY_REGULAR, 0, make_stride, 8},
    {"stride-16", QUALITY_REGULAR, 0, make_stride, 16},
    {"decaying-scattered", QUALITY_SCATTERED, 0, make_decaying, 1},
    {"flat-two-rounds", QUALITY_REGULAR, 1, make_flat_rounds, 2},
    {"student", QUALITY_SPREAD, 0, quality_make_student, 1.5},
    {"gaussian", QUALITY_SPREAD, 0, quality_make_gaussian, 0},
    {"bundles-4", QUALITY_SCATTERED, 0, make_bundles, 4},
    {"four-places", QUALITY_REGULAR, 1, make_rounds, 4},
    {"quarter-runs", QUALITY_REGULAR, 1, make_rounds, -4},
    {"stride-2M", QUALITY_REGULAR, 1, make_stride, -2},
    {"stride-64", QUALITY_REGULAR, 0, make_stride, 64},
    {"stride-4", QUALITY_REGULAR, 0, make_stride, 4},
    {"stride-7", QUALITY_REGULAR, 0, make_stride, 7},
    {"stride-100", QUALITY_REGULAR, 0, make_stride, 100},
    {"one-hot-steep", QUALITY_SCATTERED, 0, quality_make_one_hot, 1},
    {"bridges", QUALITY_SCATTERED, 0, make_bridges, 0},
    {"large-1.5n", QUALITY_SCATTERED, 0, make_large, 1.5},
    {"large-2n", QUALITY_SCATTERED, 0, make_large, 2},
    {"large-4n", QUALITY_SCATTERED, 0, make_large, 4},
    {"mixed", QUALITY_SCATTERED, 0, quality_make_mixed, 0},
    {"decaying", QUALITY_REGULAR, 0, make_decaying, 0},
    {"power-rows", QUALITY_SCATTERED, 0, quality_make_power_rows, 1.5},
    {"two-nonzeros-few", QUALITY_SCATTERED, 0, quality_make_two_nonzeros, 2},
    {"periodic-M", QUALITY_REGULAR, 1, make_periodic, 0},
    {"periodic-32", QUALITY_REGULAR, 0, make_periodic, 32},
    {"stacked-2", QUALITY_REGULAR, 0, make_stacked, 2},
    {"stacked-4", QUALITY_REGULAR, 0, make_stacked, 4},
    {"stacked-2-scattered", QUALITY_SCATTERED, 0, make_stacked, -2},
    {"stacked-4-scattered", QUALITY_SCATTERED, 0, make_stacked, -4},
    {"block-hadamard", QUALITY_REGULAR, 0, make_block_hadamard, 0},
    {"block-hadamard-scattered", QUALITY_SCATTERED, 0, make_block_hadamard, 1},
    {"flat-four-rounds", QUALITY_REGULAR, 1, make_flat_rounds, 4},
    {"power-graph", QUALITY_SPREAD, 0, make_power_graph, 4},
    {"low-rank", QUALITY_SPREAD, 0, quality_make_low_rank, 0.25},
    {"hadamard", QUALITY_SPREAD, 0, quality_make_hadamard, 0},
    {"hadamard-drawn", QUALITY_SPREAD, 0, quality_make_hadamard, 1},
    {"dct", QUALITY_SPREAD, 0, quality_make_dct, 0},
    {"polynomial", QUALITY_SPREAD, 0, quality_make_polynomial, 0},
    {"huge-row", QUALITY_SPREAD, 0, quality_make_huge_row, 1e6},
    {"block-diagonal", QUALITY_SPREAD, 0, quality_make_block_diagonal, 16},
    {"arrowhead", QUALITY_SPREAD, 0, quality_make_arrowhead, 0},
    {"copies", QUALITY_SPREAD, 0, quality_make_copies, 2},
    {"two-nonzeros", QUALITY_SPREAD, 0, quality_make_two_nonzeros, 0},
    {"one-hot", QUALITY_SPREAD, 0, quality_make_one_hot, 0},
    {"documents", QUALITY_SPREAD, 0, quality_make_words, 0},
    {"terms", QUALITY_SPREAD, 0, quality_make_words, 1},
};
const int quality_input_count = sizeof quality_inputs / sizeof quality_inputs[0];
