/* input.h - the matrix A that a command takes from files: the options of its files, and one file as a whole.
 *
 * A is d x n whatever the file's order; a batch-major file holds it transposed, a sample in each row. */
#ifndef FSI_CLI_INPUT_H
#define FSI_CLI_INPUT_H

#include <flashsketch_files.h>

#include "apps/common/progress.h"

/* A command puts these in its table of options and numbers its own from INPUT_OTHER on.  The text is that of
 * --batch-major: INPUT_TRANSPOSED, or a longer one where results are transposed too. */
#define INPUT_OPTIONS(batch_major_text) \
    {INPUT_BATCH_MAJOR, "batch-major", NULL, batch_major_text, NULL}, \
        {INPUT_TENSOR, "tensor", "NAME", "safetensors, npz: the tensor or array to read", NULL}, \
        {INPUT_SHAPE, "shape", "RxC", "the file is raw, of so many rows and columns ...", NULL}, \
        {INPUT_DTYPE, "dtype", "TYPE", "... of f16, bf16, f32 or f64, little-endian ...", "f16 bf16 f32 f64"}, \
    { \
        INPUT_COLUMNS, "columns", NULL, "... column by column, not row by row", NULL \
    }
#define INPUT_TRANSPOSED \
    "the file holds n x d, a sample in each row; A is its transpose.\n" \
    "S does not depend on it; --shuffle groups is fast for it"
#define INPUT_TEXT \
    "FILE ('-' is standard input) holds A, d x n: npy, npz (SciPy's sparse matrices too), Matrix Market,\n" \
    "safetensors, IDX, CSV or another table of numbers as text, or raw elements whose --shape and --dtype are\n" \
    "given; Matrix Market, IDX and text with gzip or not.  An array of 10 x 4 x 5 is read as 10 x 20, one of a\n" \
    "single dimension as a column.  Integers of 8 and 16 bits and booleans are read as f32, those of 32 and 64\n" \
    "bits and text as f64.  A pipe of npy or raw elements that is read once is read in order; any other is first\n" \
    "copied to the folder TMPDIR (or /tmp)."
enum { INPUT_BATCH_MAJOR = 512, INPUT_TENSOR, INPUT_SHAPE, INPUT_DTYPE, INPUT_COLUMNS, INPUT_OTHER };

typedef struct input_options {
    fs_stream_options file; /* memory, threads, reread and progress are not options of the command line */
    int has_shape;
} input_options;
#define INPUT_INIT \
    { \
        .file = FS_STREAM_INIT \
    }

/* Is this the code of one of these options? */
int input_is_option(int code);

/* Puts the value of such an option into *o.  Returns 0, or EXIT_USAGE after printing what is wrong. */
int input_option(const char *command, int code, const char *value, input_options *o);

/* Reads the name of an element type.  Returns as input_option. */
int input_dtype(const char *command, const char *option, const char *text, fs_dtype *dtype);

/* Checks that there are files after the options, and that the options are consistent; claims the files (claims.h).
 * Returns as input_option, or EXIT_FAILURE after printing that a file is the output. */
int input_paths(const input_options *o, int argc, char **argv);

/* The same for one file; *path is it. */
int input_path(const input_options *o, int argc, char **argv, const char **path);

/* The name of a file in messages. */
const char *input_name(const char *path);

/* The progress of reading a file, as a bar: `progress` and `user` of the options of a file or a stream. */
typedef struct input_watch {
    progress *bar;
    const char *name;
} input_watch;
void input_progress(void *watch, int64_t bytes, int64_t all);

/* A whole matrix in memory, or mapped. */
typedef struct input {
    const char *name; /* for messages */
    fs_stream *stream;
    input_watch watch;
    int is_sparse; /* which of the two is A */
    fs_matrix A;
    fs_sparse sparse;
    int64_t d, n;
} input;

/* Opens A; the bar shows the progress of reading.  Returns 0, or EXIT_FAILURE after printing what is wrong; close it in
 * both cases. */
int input_open(const char *path, const input_options *o, progress *bar, input *in);
void input_close(input *in);

/* All of A as the only panel of a stream of one file.  Returns 0, or EXIT_FAILURE after printing what is wrong. */
int input_whole(fs_stream *stream, fs_panel *panel);

#endif
