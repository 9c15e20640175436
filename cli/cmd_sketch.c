/* cmd_sketch.c - flashsketch sketch: Y = S A for a matrix in files.
 *
 * A is a stream of panels: it may be larger than memory.  A single file that must be read whole (Matrix Market, IDX) is
 * read whole. */
#include <flashsketch.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "cli.h"
#include "command.h"
#include "identity.h"
#include "input.h"
#include "multiply.h"
#include "output.h"
#include "spec_options.h"
#include "stream.h"
#include "where.h"

typedef struct sketch_options {
    char **paths;
    int64_t files;
    const char *output;
    input_options input;
    fs_spec spec;
    fs_context_options where;
    int64_t row0;
    int64_t memory; /* 0: not said */
    int64_t every;  /* seconds between two states; negative: not said */
    int resume;
    fs_dtype out;   /* 0: the type that sums are made in */
    int quiet;
} sketch_options;

enum { ROW0 = INPUT_OTHER, OUTPUT_DTYPE, MEMORY, RESUME, EVERY };
enum { EVERY_SECONDS = 30 };

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
    case MEMORY: return cli_size(sketch_command.name, "--memory", value, 4096, &o->memory);
    case EVERY: return cli_number(sketch_command.name, "--every", value, 0, 86400, &o->every);
    case RESUME: o->resume = 1; return 0;
    case 'q': o->quiet = 1; return 0;
    default: o->output = value; return 0;
    }
}

static int check_options(const sketch_options *o)
{
    const char *name = sketch_command.name;
    if (!o->spec.k) return cli_usage(name, "say how many rows Y has, with -k N");
    if (o->out == FS_BF16) return cli_usage(name, "npy files have no bf16; --output-dtype is f16, f32 or f64");
    if (o->resume && !strcmp(o->output, "-"))
        return cli_usage(name, "--resume keeps its state beside the output; name one with -o FILE");
    if (o->every >= 0 && !o->resume) return cli_usage(name, "--every says how often --resume writes its state");
    return 0;
}

/* opening ---------------------------------------------------------------------------------------------------- */

typedef struct work {
    const sketch_options *o;
    progress bar;
    input in;
    fs_stream *stream; /* NULL: A is in memory, in `in` */
    int64_t d, n;
    fs_dtype dtype;
    fs_sketch *S;
    fs_context *ctx;
    fs_matrix Y;       /* k x n in memory: row-major, or batch-major */
    identity id;       /* what Y is, and how far it is */
    checkpoint state;
} work;

static int open_stream(work *w)
{
    const sketch_options *o = w->o;
    const file_options *file = &o->input.file;
    fs_stream_options how = FS_STREAM_INIT;
    fs_matrix A;
    how.memory = w->id.memory;
    how.threads = o->where.threads;
    how.batch_major = o->input.batch_major;
    how.tensor = file->tensor;
    how.rows = file->rows;
    how.cols = file->cols;
    how.dtype = file->dtype;
    how.by_columns = file->by_columns;
    if (stream_open(&w->stream, (const char *const *)o->paths, o->files, &how, &w->in.file) ||
        fs_stream_shape(w->stream, &A))
        return cli_library_fail();
    w->d = A.rows;
    w->n = A.cols;
    snprintf(w->id.reads, sizeof w->id.reads, "%s by %s", file_dtype_name(A.dtype),
             w->in.is_sparse ? "entries" : A.col_stride == 1 ? "rows" : "columns");
    return 0;
}

/* How much of A is in memory where nobody says: four times Y, which every panel of rows reads and writes again, and
 * enough for long pieces of many samples of a batch; a GPU wants few calls. */
static int64_t choose_memory(const work *w)
{
    const int64_t least = (int64_t)64 << 20, most = (int64_t)192 << 20;
    char where[64];
    fs_context_describe(w->ctx, where, sizeof where);
    if (strncmp(where, "cpu", 3)) return most;
    const int64_t y = w->o->input.batch_major ? 0 : w->n > most / w->o->spec.k ? most : w->o->spec.k * w->n * 4;
    return 4 * y < least ? least : 4 * y > most ? most : 4 * y;
}

/* Opens A: as a stream where its files can be one, and where that was asked for. */
static int open_input(work *w)
{
    const sketch_options *o = w->o;
    input_options how = o->input;
    const int panels = o->files > 1 || o->memory || o->resume; /* asked for, of any format */
    how.locate = panels ? 2 : 1;
    if (input_open(o->paths[0], &how, &w->bar, &w->in)) return EXIT_FAILURE;
    w->d = w->in.d;
    w->n = w->in.n;
    w->dtype = w->in.dtype;
    if (multiply_context(&w->in, &o->where, &w->ctx)) return EXIT_FAILURE;
    w->id.memory = o->memory ? o->memory : choose_memory(w);
    return panels || (!w->in.is_sparse && !w->in.A.data) ? open_stream(w) : 0;
}

/* The sketch; d is the rows of A where nothing else is said. */
static int open_sketch(work *w)
{
    fs_spec spec = w->o->spec;
    if (!spec.d) spec.d = w->o->row0 + w->d;
    if (spec.d - w->o->row0 < w->d)
        return cli_fail("%s has %" PRId64 " rows from row %" PRId64 " on, but S has only %" PRId64
                        " columns; give a larger -d, or none", w->o->files > 1 ? "A" : w->in.name, w->d, w->o->row0,
                        spec.d);
    return spec_sketch(&spec, &w->S, &w->id.spec);
}

static int make_room(work *w)
{
    const fs_dtype sum = w->dtype == FS_F64 ? FS_F64 : FS_F32;
    const int64_t k = w->id.spec.k;
    void *data = cli_array(k, w->n, sum == FS_F64 ? 8 : 4);
    if (!data)
        return cli_fail("there is no memory for Y, %" PRId64 " x %" PRId64 " %s; give a smaller -k", k, w->n,
                        file_dtype_name(sum));
    w->Y = w->o->input.batch_major ? fs_batch_major(data, w->n, k, sum) : fs_row_major(data, k, w->n, sum);
    return 0;
}

/* What this run makes. */
static int identify(work *w)
{
    identity *id = &w->id;
    id->definition = fs_definition_version();
    id->n = w->n;
    id->batch_major = w->o->input.batch_major;
    id->dtype = w->Y.dtype;
    id->rows = cli_array(1, 1, sizeof *id->rows);
    if (!id->rows) return cli_fail("there is no memory for a range of rows");
    id->count = 1;
    *id->rows = (identity_rows){w->o->row0, w->o->row0 + w->d};
    if (!w->o->resume) return 0;
    id->panels = fs_stream_panels(w->stream);
    id->file = cli_array(w->o->files, 1, sizeof *id->file);
    if (!id->file) return cli_fail("there is no memory for %" PRId64 " files", w->o->files);
    id->files = w->o->files;
    for (int64_t i = 0; i < id->files; i++) {
        const stream_file file = stream_file_at(w->stream, i);
        id->file[i] = (identity_file){file.bytes, file.changed, file.start};
    }
    return checkpoint_load(&w->state, id, w->stream, &w->Y);
}

/* the product ------------------------------------------------------------------------------------------------ */

static int multiply_stream(work *w)
{
    const int64_t panels = fs_stream_panels(w->stream);
    fs_panel p;
    if (fs_stream_seek(w->stream, w->id.done)) return cli_library_fail();
    for (;;) {
        progress_at(&w->bar, (double)w->id.done / (double)panels, "sketching %s%s", w->in.name,
                    w->o->files > 1 ? " ..." : "");
        if (fs_stream_next(w->stream, &p)) return cli_library_fail();
        if (!p.A.rows) return 0;
        fs_matrix to = w->Y;
        to.cols = p.A.cols;
        to.offset += p.col0 * to.col_stride;
        const int64_t row0 = w->o->row0 + p.row0;
        const double beta = p.row0 ? 1.0 : 0.0;
        if (p.is_sparse ? fs_apply_csr(w->ctx, w->S, row0, 1.0, &p.sparse, beta, &to)
                        : fs_apply(w->ctx, w->S, row0, 1.0, &p.A, beta, &to))
            return cli_library_fail();
        w->id.done++;
        if (w->o->resume && w->id.done < panels) checkpoint_save(&w->state, &w->id, &w->Y);
    }
}

/* As the file of Y has it: k x n, or n x k for a batch. */
static int write_output(const work *w, FILE *out)
{
    fs_matrix Y = w->Y;
    identity id = w->id;
    id.panels = 0; /* it is no state any more */
    if (w->o->input.batch_major) Y = fs_row_major(Y.data, Y.cols, Y.rows, Y.dtype);
    if (w->o->resume) out = output_open_two(w->o->output, OUTPUT_IDENTITY);
    const int code = out ? identity_write(out, &id, &Y, w->o->out ? w->o->out : Y.dtype) : EXIT_FAILURE;
    if (!code && w->o->resume) checkpoint_end(&w->state);
    return code;
}

static int run(int argc, char **argv)
{
    sketch_options o = {.output = "-", .spec = FS_SPEC_INIT, .where = FS_CONTEXT_INIT, .every = -1};
    int code = cli_parse(&sketch_command, argc, argv, take, &o);
    if (!code) code = input_paths(&o.input, argc, argv);
    if (!code) code = check_options(&o);
    if (code) return code;
    o.paths = argv + optind;
    o.files = argc - optind;

    work w = {.o = &o};
    w.id.spec = o.spec;
    if (o.resume) code = checkpoint_start(&w.state, o.output, o.every < 0 ? EVERY_SECONDS : (double)o.every);
    FILE *out = code ? NULL : output_open_two(o.output, OUTPUT_IDENTITY);
    if (!out) return EXIT_FAILURE;
    if (o.resume) output_abandon(); /* it can be written; until it is, states are */
    w.bar = progress_start(1, o.quiet);
    code = open_input(&w);
    if (!code) code = open_sketch(&w);
    if (!code) code = make_room(&w);
    if (!code) code = identify(&w);
    if (!code) code = w.stream ? multiply_stream(&w) : multiply(w.ctx, w.S, &w.id.spec, &w.in, o.row0, &w.Y, &w.bar);
    progress_end(&w.bar);
    if (!code) code = write_output(&w, out);
    output_abandon();
    free(w.Y.data);
    identity_free(&w.id);
    fs_context_destroy(w.ctx);
    fs_sketch_destroy(w.S);
    fs_stream_close(w.stream);
    input_close(&w.in);
    return code;
}

static const cli_option options[] = {
    SPEC_OPTIONS, INPUT_OPTIONS,
    {ROW0, "row0", "N", "A is a piece: its first row is row N of the whole, which has -d rows", NULL},
    WHERE_OPTIONS,
    {MEMORY, "memory", "SIZE", "bytes of A in memory at a time, like 64M or 2G; Y comes on top (default:\n"
     "four times Y, but 64M to 192M)", NULL},
    {RESUME, "resume", NULL, "keep a state beside the output, and go on from it if it is there", NULL},
    {EVERY, "every", "N", "write the state every N seconds (default 30; 0: after each panel)", NULL},
    {'o', "output", "FILE", "where Y goes, npy (default -, standard output); FILE.json tells what\nit is", CLI_FILES},
    {OUTPUT_DTYPE, "output-dtype", "T", "f16, f32 or f64 (default: f64 where A is f64, otherwise f32)", "f16 f32 f64"},
    {'q', "quiet", NULL, "no progress bar", NULL},
    {0}};
const cli_command sketch_command = {
    "sketch", "-k N [OPTION]... FILE...", "multiply the matrix in files by S, Y = S A",
    "Writes Y = S A, k x n, as npy.\n" INPUT_TEXT "\n"
    "Several files are one matrix, joined along their first dimension in the order given.",
    options,
    "-d is A's number of rows where it is not given; what else is not said of S the library chooses, and 'flashsketch\n"
    "spec' tells what.  The pieces of a matrix, each sketched with the same -d and seed and its own --row0, add up to\n"
    "the sketch of the whole: 'flashsketch add' does it.\n"
    "\n"
    "A may be larger than memory; Matrix Market and IDX files are read whole, one after the other, so make them many.\n"
    "A run with --resume that was ended, by whatever it was, goes on when the same command is given again, and Y gets\n"
    "the bits it would have had.  The same --memory gives the same bits.",
    run};
