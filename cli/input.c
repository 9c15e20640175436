/* input.c - from the command line to the matrix A. */
#include "input.h"

#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "cli.h"

int input_is_option(int code) { return code >= INPUT_BATCH_MAJOR && code < INPUT_OTHER; }

int input_dtype(const char *command, const char *option, const char *text, fs_dtype *dtype)
{
    if (!fs_dtype_from_name(text, dtype)) return 0;
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
    default: o->file.batch_major = 1; return 0;
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

const char *input_name(const char *path) { return strcmp(path, "-") ? path : "standard input"; }

void input_progress(void *user, int64_t bytes, int64_t all)
{
    const input_watch *w = user;
    if (all) progress_at(w->bar, (double)bytes / (double)all, "reading %s", w->name);
    else progress_at(w->bar, -1, "reading %s, %.1f MB", w->name, 1e-6 * (double)bytes);
}

int input_whole(fs_stream *stream, fs_panel *panel)
{
    if (fs_stream_set_memory(stream, INT64_MAX) || fs_stream_next(stream, panel)) return cli_library_fail();
    return 0;
}

int input_open(const char *path, const input_options *o, progress *bar, input *in)
{
    fs_stream_options options = o->file;
    fs_panel all = FS_PANEL_INIT;
    *in = (input){.name = input_name(path), .watch = {bar, input_name(path)}};
    options.reread = 1;
    options.progress = input_progress;
    options.user = &in->watch;
    if (fs_stream_create(&in->stream, &path, 1, &options)) return cli_library_fail();
    if (input_whole(in->stream, &all)) return EXIT_FAILURE;
    in->is_sparse = all.is_sparse;
    in->A = all.A;
    in->sparse = all.sparse;
    in->d = all.A.rows;
    in->n = all.A.cols;
    return 0;
}

void input_close(input *in) { fs_stream_destroy(in->stream); }
