/* input.c - from the command line to the matrix A. */
#include "input.h"

#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "cli.h"

int input_is_option(int code) { return code >= INPUT_BATCH_MAJOR && code < INPUT_OTHER; }

int input_dtype(const char *command, const char *option, const char *text, fs_dtype *dtype)
{
    static const char *const names[] = {"f32", "f64", "f16", "bf16"}; /* in the order of fs_dtype */
    for (int i = 0; i < 4; i++)
        if (!strcmp(text, names[i])) return *dtype = (fs_dtype)(FS_F32 + i), 0;
    return cli_usage(command, "%s is f16, bf16, f32 or f64, not '%s'", option, text);
}

/* "ROWSxCOLS". */
static int input_shape(const char *command, const char *text, input_options *o)
{
    char rows[24];
    const size_t length = strcspn(text, "x");
    if (text[length] != 'x' || length >= sizeof rows)
        return cli_usage(command, "--shape is ROWSxCOLS, like 1000x50, not '%s'", text);
    memcpy(rows, text, length);
    rows[length] = 0;
    o->has_shape = 1;
    const int code = cli_number(command, "--shape", rows, 1, INT64_MAX, &o->file.rows);
    return code ? code : cli_number(command, "--shape", text + length + 1, 1, INT64_MAX, &o->file.cols);
}

int input_option(const char *command, int code, const char *value, input_options *o)
{
    switch (code) {
    case INPUT_TENSOR: o->file.tensor = value; return 0;
    case INPUT_SHAPE: return input_shape(command, value, o);
    case INPUT_DTYPE: return input_dtype(command, "--dtype", value, &o->file.dtype);
    case INPUT_COLUMNS: o->file.by_columns = 1; return 0;
    default: o->batch_major = 1; return 0;
    }
}

int input_paths(const input_options *o, int argc, char **argv)
{
    if (argc < 2) return cli_usage(argv[0], "name the file of A ('-' is standard input)");
    if (o->has_shape != (o->file.dtype != 0) || (o->file.by_columns && !o->has_shape))
        return cli_usage(argv[0], "a raw file needs both --shape and --dtype; other files have them in their headers");
    for (int i = 1; i < argc; i++)
        if (claims_input(argv[i])) return EXIT_FAILURE;
    return 0;
}

int input_path(const input_options *o, int argc, char **argv, const char **path)
{
    const int code = input_paths(o, argc, argv);
    if (code) return code;
    if (argc > 2) return cli_usage(argv[0], "it takes one file, but got '%s' too", argv[2]);
    *path = argv[1];
    return 0;
}

typedef struct watcher {
    progress *bar;
    const char *name;
} watcher;

static void watch(void *user, int64_t bytes, int64_t all)
{
    const watcher *w = user;
    if (all) progress_at(w->bar, (double)bytes / (double)all, "reading %s", w->name);
    else progress_at(w->bar, -1, "reading %s, %.1f MB", w->name, 1e-6 * (double)bytes);
}

int input_open(const char *path, const input_options *o, progress *bar, input *in)
{
    file_options options = o->file;
    watcher w = {bar, strcmp(path, "-") ? path : "standard input"};
    memset(in, 0, sizeof *in);
    in->name = w.name;
    if (o->has_shape) options.format = FILE_RAW;
    options.locate = o->locate;
    options.watch = watch;
    options.user = &w;
    if (file_open(path, &options, &in->file)) return cli_library_fail();
    const fs_matrix *dense = &in->file.dense;
    const fs_sparse *sparse = &in->file.sparse;
    in->is_sparse = in->file.is_sparse;
    in->A = *dense;
    in->sparse = *sparse;
    if (o->batch_major) {
        in->A.rows = dense->cols, in->A.cols = dense->rows;
        in->A.row_stride = dense->col_stride, in->A.col_stride = dense->row_stride;
        in->sparse.rows = sparse->cols, in->sparse.cols = sparse->rows;
        in->sparse.format = FS_CSC;
    }
    in->dtype = in->is_sparse ? sparse->dtype : dense->dtype;
    in->d = in->is_sparse ? in->sparse.rows : in->A.rows;
    in->n = in->is_sparse ? in->sparse.cols : in->A.cols;
    return 0;
}

void input_close(input *in) { file_close(&in->file); }
