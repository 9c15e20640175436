/* cmd_sketch.c - flashsketch sketch: Y = S A for a matrix in files. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "command.h"
#include "output.h"
#include "sketching.h"
#include "spec_options.h"
#include "where.h"

typedef struct sketch_options {
    const char *output;
    input_options input;
    sketching_options how;
    fs_spec spec;
    double error; /* in place of spec.k; 0: not given */
    fs_context_options where;
    int64_t row0; /* negative: not given, and 0 */
    fs_dtype out; /* 0: the type of sums */
    int quiet;
} sketch_options;

enum { ROW0 = INPUT_OTHER, OUTPUT_DTYPE };

static int sketch_take(void *options, int code, const char *value)
{
    sketch_options *o = options;
    if (spec_is_option(code)) return spec_option(sketch_command.name, code, value, &o->spec);
    if (code == SPEC_ERROR) return spec_error_option(sketch_command.name, value, &o->error);
    if (input_is_option(code)) return input_option(sketch_command.name, code, value, &o->input);
    if (where_is_option(code)) return where_option(sketch_command.name, code, value, &o->where);
    if (sketching_is_option(code)) return sketching_option(sketch_command.name, code, value, &o->how);
    switch (code) {
    case ROW0: return cli_number(sketch_command.name, "--row0", value, 0, (int64_t)1 << 48, &o->row0);
    case OUTPUT_DTYPE: return input_dtype(sketch_command.name, "--output-dtype", value, &o->out);
    case 'q': o->quiet = 1; return 0;
    default: o->output = value; return 0;
    }
}

static int check_options(sketch_options *o)
{
    const char *name = sketch_command.name;
    const int wrong = spec_error_check(name, &o->spec, o->error, "Y");
    if (wrong) return wrong;
    if (o->row0 >= 0 && !o->spec.d)
        return cli_usage(name,
                         "--row0 is the first row of a row slice in a larger matrix; give the number of rows of that "
                         "matrix, with -d N: S depends on it");
    if (o->out == FS_BF16) return cli_usage(name, "npy files have no bf16; --output-dtype is f16, f32 or f64");
    if (o->row0 < 0) o->row0 = 0;
    return sketching_check(name, &o->how, o->output);
}

typedef struct work {
    const sketch_options *o;
    sketching A;
    fs_spec spec; /* full */
    fs_sketch *S;
    fs_context *ctx;
    fs_matrix Y; /* k x n in memory: row-major, or batch-major */
} work;

/* The sketch; d is the number of rows of A where -d is not given. */
static int open_sketch(work *w)
{
    const sketching *A = &w->A;
    const int64_t row0 = w->o->row0;
    fs_spec spec = w->spec;
    if (!spec.d) spec.d = A->d;
    if (spec.d - row0 < A->d)
        return cli_fail("%s has %" PRId64 " rows from row %" PRId64 " on, but S has only %" PRId64
                        " columns; give a larger -d%s",
                        A->files > 1 ? "A" : A->name, A->d, row0, spec.d, row0 ? " or a smaller --row0" : ", or none");
    return spec_sketch(&spec, &w->S, &w->spec);
}

static int make_room(work *w)
{
    const fs_dtype sum = cli_sum_dtype(w->A.dtype);
    const int64_t k = w->spec.k, n = w->A.n;
    void *data = cli_array(k, n, fs_dtype_size(sum));
    if (!data)
        return cli_fail("no memory for Y, %" PRId64 " x %" PRId64 " %s; give a smaller -k", k, n,
                        fs_file_dtype_name(sum));
    w->Y = w->o->input.file.batch_major ? fs_batch_major(data, n, k, sum) : fs_row_major(data, k, n, sum);
    return 0;
}

/* In the layout of the file of Y: k x n, or n x k for a batch. */
static int write_output(work *w, FILE *out)
{
    fs_matrix Y = w->Y;
    identity id = w->A.id;
    id.panels = 0; /* it is no longer a state */
    if (w->o->input.file.batch_major) Y = fs_row_major(Y.data, Y.cols, Y.rows, Y.dtype);
    if (w->o->how.resume) out = output_open_two(w->o->output, OUTPUT_IDENTITY);
    const int code = out ? identity_write(out, &id, &Y, w->o->out ? w->o->out : Y.dtype) : EXIT_FAILURE;
    if (!code) sketching_end(&w->A);
    return code;
}

static int sketch(work *w, char **paths, int64_t files, FILE *out, progress *bar)
{
    const sketch_options *o = w->o;
    sketching *A = &w->A;
    int code = sketching_open(A, (const char *const *)paths, files, &o->input, &o->how, o->where.threads, 0, bar);
    if (!code) code = sketching_keep(A, o->output);
    if (!code) code = sketching_context(A, NULL, &o->where, &w->ctx);
    w->spec = o->spec;
    if (!code) code = spec_for_error(&w->spec, o->error, A->d, A->n);
    if (!code) code = sketching_begin(A, w->ctx, w->spec.k);
    if (!code) code = open_sketch(w);
    if (!code) code = make_room(w);
    A->id.batch_major = o->input.file.batch_major;
    if (!code) code = sketching_run(A, w->ctx, w->S, &w->spec, o->row0, &w->Y);
    progress_end(bar);
    return code ? code : write_output(w, out);
}

static int sketch_run(int argc, char **argv)
{
    sketch_options o = {.output = "-",
                        .input = INPUT_INIT,
                        .how = SKETCHING_INIT,
                        .spec = FS_SPEC_INIT,
                        .where = FS_CONTEXT_INIT,
                        .row0 = -1};
    int code = cli_parse(&sketch_command, &argc, argv, sketch_take, &o);
    if (!code) code = input_paths(&o.input, argc, argv);
    if (!code) code = check_options(&o);
    if (code) return code;

    work w = {.o = &o};
    FILE *out = NULL;
    if (o.how.resume) code = output_check_two(o.output, OUTPUT_IDENTITY); /* states are written before it */
    else if (!(out = output_open_two(o.output, OUTPUT_IDENTITY))) code = EXIT_FAILURE;
    if (code) return code;
    progress bar = progress_start(1, o.quiet);
    code = sketch(&w, argv + 1, argc - 1, out, &bar);
    progress_end(&bar);
    output_abandon();
    free(w.Y.data);
    fs_context_destroy(w.ctx);
    fs_sketch_destroy(w.S);
    sketching_close(&w.A);
    return code;
}

static const cli_option options[] = {
    SPEC_ERROR_OPTION,
    SPEC_OPTIONS,
    INPUT_OPTIONS("the file holds n x d, a sample in each row; Y is written n x k too.\n"
                  "S does not depend on it; --shuffle groups is fast for it"),
    {ROW0, "row0", "N", "A is a row slice: its first row is row N of the whole, which has -d rows", NULL},
    WHERE_OPTIONS,
    SKETCHING_OPTIONS,
    {'o', "output", "FILE", "file for Y, npy (default -, standard output); FILE.json describes\nit", CLI_FILES},
    {OUTPUT_DTYPE, "output-dtype", "T", "f16, f32 or f64 (default: f64 where A is f64, otherwise f32)", "f16 f32 f64"},
    {'q', "quiet", NULL, "no progress bar", NULL},
    {0}};
const cli_command sketch_command = {
    "sketch",
    "-k N [OPTION]... FILE...",
    "multiply the matrix in files by S, Y = S A",
    "Writes Y = S A, k x n, as npy.\n" INPUT_TEXT "\n"
    "Several files are one matrix, joined along their first dimension in the order given.",
    options,
    "-d defaults to A's number of rows.  The library chooses what else is not given of S; 'flashsketch spec' prints\n"
    "its choice.  Sketches of row slices, each with the same -d and seed and its own --row0, add up to the sketch of\n"
    "the whole matrix: 'flashsketch add' adds them.\n"
    "\n"
    "A may be larger than memory; Matrix Market, IDX and text files and npz archives are read whole, one after the\n"
    "other, so a large matrix needs many of them.\n"
    "A run with --resume that was ended in any way continues when the same command is given again, and Y has the bits\n"
    "of a run without interruption.  The same --memory gives the same bits.",
    sketch_run};
