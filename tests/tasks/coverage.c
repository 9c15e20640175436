/* coverage.c - where a task reports an interval for 99 of 100 draws of S, the true value is in it: for every family, on
 * inputs with and without dominant rows, with spread noise, outliers and spikes in B, several right-hand sides and
 * dependent columns.  Elsewhere the confidence is 0.
 *
 * For each family and input the truth may be outside of the interval in 4 of 120 draws: of a coverage of 0.99 that has
 * a probability of 0.992 (binomial), and all cells of a task together must be outside in at most 1 of 100.  The seeds
 * are fixed, so that the test passes always or never.  The width of intervals is tested too: on spread inputs with
 * Gaussian noise it must be there, no wider than three deviations and what is measured of the fourth moment; and 2.5
 * deviations in place of 3 are too few for 99 of 100. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/problems.h"

enum { D = 512, RUNS = 120, MISSES = 4 };

/* inputs ------------------------------------------------------------------------------------------------------ */

/* Nearly Student's t with 1.5 degrees of freedom: a normal over sqrt(x / 1.5), where x, a normal's square and half of
 * another's, has the mean of chi^2_1.5 and its density's tail at 0 to a factor.  No variance is what counts. */
static double student_at(uint64_t seed, int64_t i)
{
    const double a = normal_at(seed + 1, i), b = normal_at(seed + 2, i);
    return normal_at(seed, i) / sqrt((a * a + b * b / 2) / 1.5);
}

typedef enum kind { SPREAD, STUDENT, IDENTITY_ON_TOP, IDENTITY_SCATTERED, DEPENDENT, KINDS } kind;
static const char *const kind_names[] = {"spread", "Student-t", "identity on top", "identity, scattered", "rank n - 2"};
typedef enum noise { NORMAL, SPIKE, OUTLIERS, HEAVY, HALF, NOISES } noise;
static const char *const noise_names[] = {"normal noise", "a spike", "8 outliers", "Student-t noise",
                                          "half in one row"};

static double entry(kind what, int64_t n, int64_t i, int64_t j)
{
    const double spread = normal_at(1, i * n + j);
    switch (what) {
    case SPREAD: return spread;
    case STUDENT: return student_at(10, i * n + j);
    case IDENTITY_ON_TOP: return (i == j) + 1e-4 * spread;
    case IDENTITY_SCATTERED: return (i == (int64_t)(bits_at(20, j) % (D / n)) + j * (D / n)) + 1e-4 * spread;
    default: return j < n - 2 ? spread : normal_at(1, i * n + j - (n - 2)); /* copies of columns 0 and 1 */
    }
}
static double noise_at(noise what, int64_t i)
{
    const double normal = normal_at(30, i);
    switch (what) {
    case NORMAL: return normal;
    case SPIKE: return i == D / 3 ? 1000 : 1e-3 * normal;
    case OUTLIERS: return i % (D / 8) == 13 ? 100 * normal : normal;
    case HEAVY: return student_at(31, i);
    default: return i == D / 5 ? sqrt(D) : normal;
    }
}

/* B = A 1 + noise, in f64; right-hand sides have noises of different kinds, beginning with `what`. */
static problem problem_of(kind in, noise what, int64_t n, int64_t rhs)
{
    problem p = {D, n, rhs, fs_row_major(room(D * n, 8), D, n, FS_F64), fs_row_major(room(D * rhs, 8), D, rhs, FS_F64)};
    for (int64_t i = 0; i < D; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            put(&p.A, i, j, entry(in, n, i, j));
            sum += at(&p.A, i, j);
        }
        for (int64_t c = 0; c < rhs; c++) put(&p.B, i, c, sum + noise_at((noise)((what + c) % NOISES), i));
    }
    return p;
}

/* sketches ---------------------------------------------------------------------------------------------------- */

static const struct sketch_kind {
    const char *name;
    fs_family family;
    int64_t s;
    fs_shuffle shuffle;
    int known; /* whether residuals have intervals, given enough rows */
} families[] = {
    {"the default", FS_BLOCKPERM, 0, FS_UNSET(fs_shuffle), 1},
    {"s = 4", FS_BLOCKPERM, 4, FS_UNSET(fs_shuffle), 1},
    {"SJLT", FS_SJLT, 4, FS_UNSET(fs_shuffle), 1},
    {"Gaussian", FS_GAUSSIAN, 0, FS_UNSET(fs_shuffle), 1},
    {"s = 2", FS_BLOCKPERM, 2, FS_UNSET(fs_shuffle), 0},
    {"contiguous blocks", FS_BLOCKPERM, 0, FS_SHUFFLE_NONE, 0},
    {"groups", FS_BLOCKPERM, 0, FS_SHUFFLE_GROUPS, 0},
    {"SRHT", FS_SRHT, 0, FS_UNSET(fs_shuffle), 0},
    {"FlashBlockRow", FS_BLOCKROW, 4, FS_UNSET(fs_shuffle), 0},
};
enum { GAUSSIAN = 3, FAMILIES = sizeof families / sizeof families[0] };

static fs_sketch *draw(int family, int64_t k, uint64_t seed)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.family = families[family].family, spec.s = families[family].s, spec.shuffle = families[family].shuffle;
    spec.d = D, spec.k = k, spec.seed = seed;
    return sketch_of(&spec);
}

/* counting ---------------------------------------------------------------------------------------------------- */

typedef struct count {
    int runs, known, outside, outside_narrow;
    double width; /* sum of log(high / low) */
} count;

static void add(count *all, const count *one)
{
    all->runs += one->runs, all->known += one->known, all->outside += one->outside;
    all->outside_narrow += one->outside_narrow, all->width += one->width;
}

/* |A X - B| by Gram matrices: |A X|^2 - 2 <A X, B> + |B|^2 is good to 1e-7 of |B| in f64, far below an interval. */
typedef struct grams {
    double *AA, *AB, BB;
} grams;
static grams grams_of(const problem *p)
{
    const int64_t n = p->n, rhs = p->rhs;
    grams g = {room(n * n, 8), room(n * rhs, 8), 0};
    memset(g.AA, 0, (size_t)(n * n) * 8), memset(g.AB, 0, (size_t)(n * rhs) * 8);
    for (int64_t i = 0; i < p->d; i++) {
        const double *a = (const double *)p->A.data + i * n, *b = (const double *)p->B.data + i * rhs;
        for (int64_t j = 0; j < n; j++) {
            for (int64_t l = 0; l < n; l++) g.AA[j * n + l] += a[j] * a[l];
            for (int64_t c = 0; c < rhs; c++) g.AB[j * rhs + c] += a[j] * b[c];
        }
        for (int64_t c = 0; c < rhs; c++) g.BB += b[c] * b[c];
    }
    return g;
}
static double true_residual(const grams *g, const fs_matrix *X)
{
    double square = g->BB;
    for (int64_t j = 0; j < X->rows; j++)
        for (int64_t c = 0; c < X->cols; c++) {
            double sum = -2 * g->AB[j * X->cols + c];
            for (int64_t l = 0; l < X->rows; l++) sum += g->AA[j * X->rows + l] * at(X, l, c);
            square += at(X, j, c) * sum;
        }
    return sqrt(fmax(0.0, square));
}

static count cover_fit(const problem *p, int family, int64_t k, double lambda, int runs)
{
    count all = {0, 0, 0, 0, 0};
    bench b = bench_open(p, k, 0, 0);
    grams g = grams_of(p);
    fs_matrix X = fs_row_major(room(p->n * p->rhs, 8), p->n, p->rhs, FS_F64);
    for (int seed = 0; seed < runs; seed++) {
        fs_sketch *S = draw(family, k, (uint64_t)seed + 1);
        fs_fit_report r = FS_FIT_REPORT_INIT;
        MUST(fs_task_sketch(b.w, S, &p->A, &p->B));
        MUST(lambda > 0 ? fs_ridge(b.w, lambda, &X, &r) : fs_solve(b.w, 0.0, &X, &r));
        const double truth = true_residual(&g, &X);
        const int known = r.confidence > 0;
        assert_true(known ? r.confidence == 0.99 : r.low == 0 && isinf(r.high));
        assert_true(known || strstr(r.note, "not known"));
        const double reach = known ? pow(r.high / r.residual, 2.5 / 3) : INFINITY;
        add(&all, &(count){1, known, known && !(r.low <= truth && truth <= r.high),
                           known && !(r.residual / reach <= truth && truth <= r.residual * reach),
                           known ? log(r.high / r.low) : 0});
        fs_sketch_destroy(S);
    }
    free(X.data), free(g.AA), free(g.AB);
    bench_close(&b);
    return all;
}

static int report(const char *task, int family, const char *in, const char *with, int64_t n, int64_t rhs, int64_t k,
                  const count *c)
{
    const int bad = c->outside > MISSES * c->runs / RUNS;
    if (bad)
        print_message("%s, %s, %s, %s, n %d, rhs %d, k %d: outside %d of %d\n", task, families[family].name, in, with,
                      (int)n, (int)rhs, (int)k, c->outside, c->known);
    return bad;
}

/* tests ------------------------------------------------------------------------------------------------------- */

static void residuals_are_where_they_are_said_to_be(void **state)
{
    (void)state;
    static const struct {
        int64_t n, rhs, k;
        double lambda;
    } shapes[] = {{16, 1, 32, 0}, {16, 1, 80, 0}, {24, 3, 256, 0}, {16, 2, 80, 50}};
    int bad = 0;
    for (int f = 0; f < FAMILIES; f++) {
        count whole = {0, 0, 0, 0, 0};
        for (int in = SPREAD; in < KINDS; in++)
            for (int what = NORMAL; what < NOISES; what++)
                for (int s = 0; s < 4; s++) {
                    /* Families without intervals are tried once for each input, shapes of several right-hand sides
                     * for every other noise: they mix them. */
                    if ((!families[f].known && s != what % 4) || (shapes[s].rhs > 1 && what % 2)) continue;
                    problem p = problem_of((kind)in, (noise)what, shapes[s].n, shapes[s].rhs);
                    const count c = cover_fit(&p, f, shapes[s].k, shapes[s].lambda, families[f].known ? RUNS : 10);
                    bad += report(shapes[s].lambda > 0 ? "ridge" : "solve", f, kind_names[in], noise_names[what],
                                  shapes[s].n, shapes[s].rhs, shapes[s].k, &c);
                    if (families[f].known && in <= STUDENT) assert_true(c.known * 10 >= c.runs * (in ? 9 : 10));
                    add(&whole, &c);
                    problem_free(&p);
                }
        print_message("%-18s %5d runs, an interval in %5d, outside %.2f %%; of 2.5 deviations %.2f %%\n",
                      families[f].name, whole.runs, whole.known, 100.0 * whole.outside / fmax(1, whole.known),
                      100.0 * whole.outside_narrow / fmax(1, whole.known));
        if (!families[f].known) assert_int_equal(whole.known, 0);
        if (families[f].known) assert_true(whole.outside * 100 <= whole.known);
    }
    assert_int_equal(bad, 0);
}

static void intervals_are_no_wider_than_they_must_be(void **state)
{
    (void)state;
    const int64_t n = 16, k = 80;
    problem p = problem_of(SPREAD, NORMAL, n, 1);
    const double three = 3 * sqrt(2 * (1 + (double)n / (double)k) / (double)(k - n));
    for (int f = 0; f <= GAUSSIAN; f++) {
        const count c = cover_fit(&p, f, k, 0, RUNS);
        assert_int_equal(c.known, c.runs);
        assert_true(c.width / c.known <= 1.1 * three); /* a tenth for the chance excess of the fourth moment */
    }
    problem_free(&p);
}

/* The distribution of a Gaussian sketch is known, so that its interval is as narrow as 99 of 100 allow. */
static void fewer_deviations_would_be_too_few(void **state)
{
    (void)state;
    problem p = problem_of(SPREAD, NORMAL, 16, 1);
    const count c = cover_fit(&p, GAUSSIAN, 36, 0, 4000);
    print_message("Gaussian, n 16, k 36: outside %.2f %%, of 2.5 deviations %.2f %%\n", 100.0 * c.outside / c.known,
                  100.0 * c.outside_narrow / c.known);
    assert_int_equal(c.known, c.runs);
    assert_true(c.outside * 100 <= c.known);
    assert_true(c.outside_narrow * 100 > c.known);
    problem_free(&p);
}

static void errors_of_gram_matrices_are_bounded(void **state)
{
    (void)state;
    static const struct {
        int64_t n, k;
    } shapes[] = {{1, 100}, {16, 32}, {16, 256}};
    int bad = 0;
    for (int f = 0; f < FAMILIES; f++) {
        count whole = {0, 0, 0, 0, 0};
        const int known = families[f].family != FS_BLOCKROW && families[f].family != FS_SRHT;
        for (int in = SPREAD; in < KINDS; in++)
            for (int s = 0; s < 3; s++) {
                if (shapes[s].n == 1 && in == DEPENDENT) continue;
                problem p = problem_of((kind)in, NORMAL, shapes[s].n, 0);
                bench b = bench_open(&p, shapes[s].k, 0, 0);
                count c = {0, 0, 0, 0, 0};
                for (int seed = 0; seed < (known ? RUNS : 5); seed++) {
                    fs_sketch *S = draw(f, shapes[s].k, (uint64_t)seed + 1);
                    fs_gram_report r = FS_GRAM_REPORT_INIT;
                    double truth;
                    MUST(fs_task_sketch(b.w, S, &p.A, NULL));
                    MUST(fs_gram(b.w, S, NULL, &r));
                    MUST(fs_gram_error(b.w, &p.A, &truth, NULL));
                    if (known) assert_true(r.confidence == 0.99 && r.note[0] == 0);
                    else assert_true(r.confidence == 0 && isinf(r.high) && strstr(r.note, "not known"));
                    assert_int_equal(r.low > 0, families[f].family == FS_GAUSSIAN && shapes[s].n > 1);
                    if (known && in == SPREAD && shapes[s].n > 1) assert_true(r.high <= 1.75 * r.error);
                    add(&c, &(count){1, known, !(r.low <= truth && truth <= r.high * (1 + 1e-9)), 0, 0});
                    fs_sketch_destroy(S);
                }
                bad += report("gram", f, kind_names[in], "", shapes[s].n, 0, shapes[s].k, &c);
                add(&whole, &c);
                bench_close(&b);
                problem_free(&p);
            }
        print_message("Gram, %-18s %4d runs, outside %.2f %%\n", families[f].name, whole.runs,
                      100.0 * whole.outside / fmax(1, whole.runs));
        if (known) assert_true(whole.outside * 100 <= whole.runs);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(residuals_are_where_they_are_said_to_be),
                                       cmocka_unit_test(intervals_are_no_wider_than_they_must_be),
                                       cmocka_unit_test(fewer_deviations_would_be_too_few),
                                       cmocka_unit_test(errors_of_gram_matrices_are_bounded)};
    return RUN_TASK_TESTS(tests);
}
