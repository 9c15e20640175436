/* cmd_demo.c - flashsketch demo: every sketch on one real matrix, by time and by the error of its Gram matrix.
 *
 * Two comparisons.  The first is the matrix as given, at several k: all good sketches are equally accurate, and time
 * decides.  The second scales a few neighbouring rows up: a sketch must spread them over its blocks, and contiguous
 * blocks do not. */
#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "command.h"
#include "demo.h"
#include "output.h"

enum { DRAWS = 5 };
static const double longest = 8e3; /* ms; a sketch that needs more for one product is left out */

typedef struct demo_options {
    const char *data, *output;
    int64_t rows, threads;
    uint64_t seed;
} demo_options;

enum { DATA = 256, ROWS, SEED, THREADS };

static int demo_take(void *options, int code, const char *value)
{
    demo_options *o = options;
    const char *name = demo_command.name;
    switch (code) {
    case DATA: o->data = value; return 0;
    case ROWS: return cli_number(name, "--rows", value, DEMO_MIN_ROWS, INT32_MAX, &o->rows);
    case SEED: return cli_seed(name, value, &o->seed);
    case THREADS: return cli_number(name, "--threads", value, 1, FS_THREADS_MAX, &o->threads);
    default: o->output = value; return 0;
    }
}

/* 256, 1024 and 4096, as far as they are at most a quarter of the rows. */
static void choose_sizes(demo_table *table)
{
    for (int64_t k = 256; table->sizes < DEMO_SIZES && 4 * k <= table->A->rows; k *= 4) table->k[table->sizes++] = k;
}

/* Three significant digits, in a column of `width`. */
static void print_short(int width, double value)
{
    printf("%*.*f", width, value < 10 ? 2 : value < 100 ? 1 : 0, value);
}

static void print_table(const demo_table *table)
{
    printf("\n%-19s", "");
    for (int i = 0; i < table->sizes; i++) printf("%14s%-6" PRId64, "k = ", table->k[i]);
    printf("\n%-19s", "sketch");
    for (int i = 0; i < table->sizes; i++) printf("%7s%6s%7s", "ms", "/read", "error");
    printf("\n");
    for (int which = 0; which < DEMO_SKETCHES; which++) {
        printf("%-19s", demo_sketches[which].name);
        for (int i = 0; i < table->sizes; i++) {
            const demo_result *r = &table->result[which][i];
            if (r->ms == 0) {
                printf("%7s%6s%7s", "-", "-", "-");
                continue;
            }
            print_short(7, r->ms);
            print_short(6, r->ms / r->read);
            printf("%7.3f", r->error);
        }
        printf("\n");
    }
    printf("\nms: median of up to %d draws of S.  /read: ms over the time to read A once, taken beside it.\n"
           "error: |Y'Y - A'A| / |A'A| in the Frobenius norm, mean of the draws.  -: it would take over %.0f s.\n",
           DRAWS, longest / 1e3);
}

static int exact_gram(const demo_race *race, demo_matrix *A)
{
    const int code = demo_gram(race, A->data, A->rows, A->cols, A->gram);
    if (code) return code;
    double trace = 0;
    for (int64_t i = 0; i < A->cols; i++) trace += A->gram[i * A->cols + i];
    return trace > 0 ? 0 : cli_fail("all rows of %s are equal: there is nothing to compare", A->name);
}

/* Whether this sketch would take too long at size i.  Dense ones take time in proportion to k. */
static int too_long(const demo_table *table, int which, int i)
{
    if (i == 0) return 0;
    const double before = table->result[which][i - 1].ms;
    return before == 0 || before * (double)table->k[i] / (double)table->k[i - 1] > longest;
}

/* Fills the table. */
static int run_race(demo_race *race, demo_table *table, progress *bar)
{
    double reads[DEMO_SKETCHES * DEMO_SIZES];
    int count = 0;
    for (int i = 0; i < table->sizes; i++)
        for (int which = 0; which < DEMO_SKETCHES; which++) {
            progress_step(bar, "%s, k = %" PRId64, demo_sketches[which].name, table->k[i]);
            if (too_long(table, which, i)) continue;
            const int code = demo_measure(race, &demo_sketches[which], table->k[i], DRAWS, &table->result[which][i]);
            if (code) return code;
            reads[count++] = table->result[which][i].read;
        }
    table->read = cli_median(reads, count);
    return 0;
}

/* The second comparison, at one k; errors only. */
static int run_heavy(demo_race *race, demo_matrix *A, const demo_table *table, int size, progress *bar, double *error)
{
    progress_step(bar, "the exact Gram matrix with %d large rows", DEMO_HEAVY);
    demo_make_heavy(A);
    int code = exact_gram(race, A);
    for (int which = 0; which < DEMO_SKETCHES && !code; which++) {
        demo_result result = {0};
        progress_step(bar, "%s, %d large rows", demo_sketches[which].name, DEMO_HEAVY);
        if (table->result[which][size].ms == 0) continue;
        code = demo_measure(race, &demo_sketches[which], table->k[size], DRAWS, &result);
        error[which] = result.error;
    }
    return code;
}

static void print_heavy(const demo_table *table, int size, const double *error)
{
    printf("\nThe error again, after %d neighbouring rows were multiplied by %d; k = %" PRId64 ":\n\n"
           "%-19s%10s%13s%7s\n",
           DEMO_HEAVY, DEMO_WEIGHT, table->k[size], "sketch", "as it was", "large rows", "ratio");
    for (int which = 0; which < DEMO_SKETCHES; which++) {
        const double before = table->result[which][size].error;
        if (table->result[which][size].ms == 0) continue;
        printf("%-19s%10.3f%13.3f%7.1f\n", demo_sketches[which].name, before, error[which], error[which] / before);
    }
}

/* The measurements and the tables. */
static int demo_compare(demo_matrix *A, demo_race *race, FILE *picture)
{
    demo_table table = {.A = A};
    double heavy[DEMO_SKETCHES];
    choose_sizes(&table);
    const int middle = (table.sizes - 1) / 2;
    race->A = A;
    race->Y = cli_array(table.k[table.sizes - 1], A->cols, sizeof *race->Y);
    int code = race->Y ? 0 : cli_fail("no memory for Y; give --rows a smaller number");
    if (!code) code = demo_gram_open(race, A->cols);
    progress bar = progress_start(2 + DEMO_SKETCHES * (table.sizes + 1), 0);
    if (!code) {
        progress_step(&bar, "the exact Gram matrix");
        code = exact_gram(race, A);
    }
    if (!code) code = run_race(race, &table, &bar);
    if (!code) code = run_heavy(race, A, &table, middle, &bar, heavy);
    progress_end(&bar);
    if (!code) {
        printf("reading A once: %.1f ms, %.1f GB/s\n", table.read, 4e-6 * (double)(A->rows * A->cols) / table.read);
        print_table(&table);
        print_heavy(&table, middle, heavy);
        demo_picture(picture, &table);
    }
    free(race->Y);
    demo_gram_close(race);
    return code;
}

/* The context, the comparison and the picture, for a matrix that has been read. */
static int demo_run(demo_matrix *A, const demo_options *o)
{
    demo_race race = {.seed = o->seed};
    fs_context_options context = FS_CONTEXT_INIT;
    context.backend = FS_BACKEND_CPU;
    context.threads = (int)o->threads;
    if (o->threads) omp_set_num_threads((int)o->threads);
    if (fs_context_create(&race.ctx, &context)) return cli_library_fail();

    char where[256];
    fs_context_describe(race.ctx, where, sizeof where);
    printf("A: %s, %" PRId64 " x %" PRId64 ", f32, columns of mean 0\n", A->name, A->rows, A->cols);
    if (A->stand_in)
        printf("   (Fashion-MNIST is not installed; 'apt-get install dataset-fashion-mnist' installs it)\n");
    printf("%s\n", where);
    fflush(stdout);
    FILE *picture = output_open(o->output);
    int code = picture ? demo_compare(A, &race, picture) : EXIT_FAILURE;
    if (!code) code = output_close();
    output_abandon();
    fs_context_destroy(race.ctx);
    if (!code) printf("\nThe picture is in %s\n", o->output);
    return code;
}

static int demo(int argc, char **argv)
{
    demo_options o = {.output = "flashsketch-demo.svg", .rows = 60000, .seed = 1};
    demo_matrix A;
    int code = cli_parse(&demo_command, &argc, argv, demo_take, &o);
    if (code) return code;
    if (argc > 1) return cli_usage(argv[0], "'%s' is not expected here; --data names the matrix", argv[1]);
    if (!cli_ends_with(o.output, ".svg"))
        return cli_usage(argv[0], "the picture is SVG: -o names a file that ends in .svg, not '%s'", o.output);
    code = output_check(o.output);
    if (!code) code = demo_load(&A, o.data, o.rows);
    if (code) return code;
    code = demo_run(&A, &o);
    demo_free(&A);
    return code;
}

static const cli_option options[] = {
    {DATA, "data", "FILE",
     "an IDX file of bytes, .gz or not, or 'synthetic';\n"
     "otherwise Fashion-MNIST from Debian's package dataset-fashion-mnist if it is there",
     CLI_FILES},
    {ROWS, "rows", "N", "use the first N rows, at least 1024 (default 60000)", NULL},
    {'o', "output", "FILE", "file for the picture, SVG (default flashsketch-demo.svg)", CLI_FILES},
    {SEED, "seed", "N", "seed of the first draw (default 1)", NULL},
    {THREADS, "threads", "N", "threads (default: all)", NULL},
    {0}};
_Static_assert(DEMO_MIN_ROWS == 1024, "the help of --rows has the number");
const cli_command demo_command = {
    "demo",
    "[OPTION]...",
    "compare every sketch on a real matrix, by time and by error",
    "Sketches a real matrix with every family of sketches, compares them by time and by the error of the Gram\n"
    "matrix, |Y'Y - A'A| / |A'A|, prints two tables and draws a quality-speed picture.",
    options,
    NULL,
    demo};
