/* cmd_add.c - flashsketch add: the sum of sketches of different rows of one matrix, which is the sketch of all those
 * rows.
 *
 * Files are added in the order of their rows, whatever the order of the arguments, in double, and rounded once: the
 * same files give the same bits. */
#include <flashsketch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "cli.h"
#include "command.h"
#include "identity.h"
#include "output.h"

typedef struct summand {
    const char *path;
    fs_file *file;
    fs_matrix Y;
    identity id;
} summand;

typedef struct rows_of { /* a range of rows, and the sketch that has it */
    identity_rows rows;
    const summand *in;
} rows_of;

static int add_take(void *options, int code, const char *value)
{
    (void)code;
    *(const char **)options = value;
    return 0;
}

static int open_all(summand *all, int count, char **paths)
{
    for (int i = 0; i < count; i++) {
        all[i].path = paths[i];
        if (identity_open_finished(paths[i], &all[i].file, &all[i].Y, &all[i].id) ||
            identity_agree(paths[0], &all[0].id, paths[i], &all[i].id))
            return cli_library_fail();
    }
    return 0;
}

static int by_first(const void *a, const void *b)
{
    const rows_of *x = a, *y = b;
    return (x->rows.first > y->rows.first) - (x->rows.first < y->rows.first);
}
static int by_rows(const void *a, const void *b)
{
    const summand *x = a, *y = b;
    return (x->id.rows[0].first > y->id.rows[0].first) - (x->id.rows[0].first < y->id.rows[0].first);
}

/* The rows of all of them, in *sum; a row that two of them have is an error. */
static int join_rows(const summand *all, int count, identity *sum)
{
    int64_t ranges = 0, at = 0;
    for (int i = 0; i < count; i++) ranges += all[i].id.count;
    rows_of *list = cli_array(ranges, 1, sizeof *list);
    sum->rows = cli_array(ranges, 1, sizeof *sum->rows);
    if (!list || !sum->rows) {
        free(list);
        return cli_fail("no memory for %" PRId64 " ranges of rows", ranges);
    }
    for (int i = 0; i < count; i++)
        for (int64_t j = 0; j < all[i].id.count; j++) list[at++] = (rows_of){all[i].id.rows[j], &all[i]};
    qsort(list, (size_t)ranges, sizeof *list, by_first);
    int code = 0;
    sum->count = 0;
    for (int64_t i = 0; i < ranges && !code; i++) {
        identity_rows *last = sum->count ? &sum->rows[sum->count - 1] : NULL;
        if (last && list[i].rows.first < last->end)
            code = cli_fail("%s has rows %" PRId64 " to %" PRId64 ", and %s has rows %" PRId64 " to %" PRId64
                            ": a row would count twice",
                            list[i - 1].in->path, list[i - 1].rows.first, list[i - 1].rows.end - 1, list[i].in->path,
                            list[i].rows.first, list[i].rows.end - 1);
        else if (last && list[i].rows.first == last->end) last->end = list[i].rows.end;
        else sum->rows[sum->count++] = list[i].rows;
    }
    free(list);
    return code;
}

/* Y = the sum of all sketches, in their order. */
static int sum_sketches(const summand *all, int count, fs_matrix *Y)
{
    fs_context_options where = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    fs_matrix *P = cli_array(count, 1, sizeof *P);
    where.backend = FS_BACKEND_CPU;
    *Y = all[0].Y;
    Y->data = cli_array(Y->rows, Y->cols, fs_dtype_size(Y->dtype));
    int code = 0;
    if (!P || !Y->data) code = cli_fail("no memory for Y, %" PRId64 " x %" PRId64, Y->rows, Y->cols);
    for (int i = 0; i < count && !code; i++) P[i] = all[i].Y;
    if (!code && (fs_context_create(&ctx, &where) || fs_add(ctx, P, count, 0.0, Y))) code = cli_library_fail();
    fs_context_destroy(ctx);
    free(P);
    return code;
}

static int add(summand *all, int count, char **paths, FILE *out)
{
    fs_matrix Y = {.data = NULL};
    identity sum = {.count = 0};
    int code = open_all(all, count, paths);
    if (!code) {
        sum = all[0].id;
        sum.rows = NULL;
        code = join_rows(all, count, &sum);
    }
    if (!code) {
        qsort(all, (size_t)count, sizeof *all, by_rows);
        code = sum_sketches(all, count, &Y);
    }
    if (!code) code = identity_write(out, &sum, &Y, Y.dtype);
    free(Y.data);
    free(sum.rows);
    return code;
}

static int add_run(int argc, char **argv)
{
    const char *output = "-";
    const int parsed = cli_parse(&add_command, &argc, argv, add_take, &output);
    if (parsed) return parsed;
    const int count = argc - 1;
    if (count < 1) return cli_usage(argv[0], "name the sketches to add");
    for (int i = 1; i < argc; i++)
        if (claims_input(argv[i]) || claims_input_beside(argv[i], OUTPUT_IDENTITY)) return EXIT_FAILURE;
    FILE *out = output_open_two(output, OUTPUT_IDENTITY);
    if (!out) return EXIT_FAILURE;
    summand *all = calloc((size_t)count, sizeof *all);
    int code = all ? add(all, count, argv + 1, out) : cli_fail("no memory for %d files", count);
    for (int i = 0; all && i < count; i++) {
        fs_file_close(all[i].file);
        identity_free(&all[i].id);
    }
    free(all);
    output_abandon();
    return code;
}

static const cli_option options[] = {
    {'o', "output", "FILE", "file for the sum, npy (default -, standard output)", CLI_FILES}, {0}};
const cli_command add_command = {
    "add",
    "[OPTION]... FILE...",
    "add sketches of different rows of one matrix",
    "Writes the sum of the sketches in npy files: the sketch of all their rows.  FILE.json, which 'flashsketch sketch\n"
    "-o FILE' writes, describes each of them: S and the type must be the same, and no row may be in two of them.",
    options,
    "The order of the files makes no difference.  'flashsketch info' prints which rows a sketch covers.",
    add_run};
