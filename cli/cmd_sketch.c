/* cmd_sketch.c - flashsketch sketch: Y = S A for a matrix in a file. */
#include <flashsketch.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"
#include "command.h"
#include "input.h"
#include "multiply.h"
#include "output.h"
#include "spec_options.h"
#include "where.h"

typedef struct sketch_options {
    const char *path, *output;
    input_options input;
    fs_spec spec;
    fs_context_options where;
    int64_t row0;
    fs_dtype out; /* 0: the type that sums are made in */
    int quiet;
} sketch_options;

enum { ROW0 = INPUT_OTHER, OUTPUT_DTYPE };

/* the command line ------------------------------------------------------------------------------------------- */

static int take(void *options, int code, const char *value)
{
    sketch_options *o = options;
    if (spec_is_option(code)) return spec_option(sketch_command.name, code, value, &o->spec);
    if (input_is_option(code)) return input_option(sketch_command.name, code, value, &o->input);
    if (where_is_option(code)) return where_option(sketch_command.name, code, value, &o->where);
    switch (code) {
    case ROW0: return cli_number(sketch_command.name, "--row0", value, 0, (int64_t)1 << 48, &o->row0);
    case OUTPUT_DTYPE: return input_dtype(sketch_command.name, "--output-dtype", value, &o->out);
    case 'q': o->quiet = 1; return 0;
    default: o->output = value; return 0;
    }
}

/* the product ------------------------------------------------------------------------------------------------ */

typedef struct work {
    const sketch_options *o;
    progress bar;
    input in;
    fs_spec spec; /* full */
    fs_sketch *S;
    fs_context *ctx;
    fs_matrix Y;  /* k x n in memory: row-major, or batch-major */
} work;

/* Sketch and context; d is the rows of A where nothing else is said. */
static int open_sketch(work *w)
{
    fs_spec spec = w->o->spec;
    if (!spec.d) spec.d = w->o->row0 + w->in.d;
    if (spec.d - w->o->row0 < w->in.d)
        return cli_fail("%s has %" PRId64 " rows from row %" PRId64 " on, but S has only %" PRId64
                        " columns; give a larger -d, or none", w->in.name, w->in.d, w->o->row0, spec.d);
    if (spec_sketch(&spec, &w->S, &w->spec)) return EXIT_FAILURE;
    return multiply_context(&w->in, &w->o->where, &w->ctx);
}

static int make_room(work *w)
{
    const fs_dtype sum = w->in.dtype == FS_F64 ? FS_F64 : FS_F32;
    const int64_t k = w->spec.k, n = w->in.n;
    void *data = cli_array(k, n, sum == FS_F64 ? 8 : 4);
    if (!data)
        return cli_fail("there is no memory for Y, %" PRId64 " x %" PRId64 " %s; give a smaller -k", k, n,
                        file_dtype_name(sum));
    w->Y = w->o->input.batch_major ? fs_batch_major(data, n, k, sum) : fs_row_major(data, k, n, sum);
    return 0;
}

/* As the file of Y has it: k x n, or n x k for a batch. */
static void write_output(const work *w, FILE *out)
{
    fs_matrix Y = w->Y;
    if (w->o->input.batch_major) Y.rows = w->Y.cols, Y.cols = w->Y.rows;
    file_write_npy(out, &Y, w->o->out ? w->o->out : Y.dtype);
}

static int run(int argc, char **argv)
{
    sketch_options o = {.output = "-", .spec = FS_SPEC_INIT, .where = FS_CONTEXT_INIT};
    int code = cli_parse(&sketch_command, argc, argv, take, &o);
    if (!code) code = input_path(&o.input, argc, argv, &o.path);
    if (code) return code;
    if (!o.spec.k) return cli_usage(argv[0], "say how many rows Y has, with -k N");
    if (o.out == FS_BF16) return cli_usage(argv[0], "npy files have no bf16; --output-dtype is f16, f32 or f64");

    work w = {.o = &o};
    FILE *out = output_open(o.output);
    if (!out) return EXIT_FAILURE;
    w.bar = progress_start(1, o.quiet);
    code = input_open(o.path, &o.input, &w.bar, &w.in);
    if (!code) code = open_sketch(&w);
    if (!code) code = make_room(&w);
    if (!code) code = multiply(w.ctx, w.S, &w.spec, &w.in, o.row0, &w.Y, &w.bar);
    progress_end(&w.bar);
    if (!code) {
        write_output(&w, out);
        code = output_close();
    }
    output_abandon();
    free(w.Y.data);
    fs_context_destroy(w.ctx);
    fs_sketch_destroy(w.S);
    input_close(&w.in);
    return code;
}

static const cli_option options[] = {
    SPEC_OPTIONS, INPUT_OPTIONS,
    {ROW0, "row0", "N", "A is a piece: its first row is row N of the whole, which has -d rows", NULL},
    WHERE_OPTIONS,
    {'o', "output", "FILE", "where Y goes, npy (default -, standard output)", CLI_FILES},
    {OUTPUT_DTYPE, "output-dtype", "T", "f16, f32 or f64 (default: f64 where A is f64, otherwise f32)", "f16 f32 f64"},
    {'q', "quiet", NULL, "no progress bar", NULL},
    {0}};
const cli_command sketch_command = {
    "sketch", "-k N [OPTION]... FILE", "multiply the matrix in a file by S, Y = S A",
    "Writes Y = S A, k x n, as npy.\n" INPUT_TEXT,
    options,
    "-d is A's number of rows where it is not given; what else is not said of S the library chooses, and 'flashsketch\n"
    "spec' tells what.  The pieces of a matrix, each sketched with the same -d and seed and its own --row0, add up to\n"
    "the sketch of the whole.",
    run};
