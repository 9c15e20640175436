/* checkpoint.c - see checkpoint.h. */
#include "checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "output.h"

static const double share = 20; /* writing states takes at most 1 / this of the time */

int checkpoint_start(checkpoint *c, const char *output, double every)
{
    const int length = snprintf(c->path, sizeof c->path, "%s" OUTPUT_STATE, output);
    c->every = every;
    c->next = cli_seconds() + every;
    if (length < 0 || (size_t)length >= sizeof c->path)
        return cli_fail("the name of the output is too long (%zu bytes); give a shorter one", strlen(output));
    return output_check(c->path);
}

/* In the layout of the state's file: n x k for a batch. */
static fs_matrix as_stored(const fs_matrix *Y, int batch_major)
{
    fs_matrix m = *Y;
    if (batch_major) m = fs_row_major(Y->data, Y->cols, Y->rows, Y->dtype);
    return m;
}

static int other(const checkpoint *c)
{
    return cli_fail("%s; give the same command as before, or remove %s to start again", fs_error_message(), c->path);
}

/* Checks that a number of the state's run is that of this one. */
static int same(const checkpoint *c, const char *what, int64_t before, int64_t now)
{
    if (before == now) return 0;
    return cli_fail("%s is of a run with %s %" PRId64 ", this one has %" PRId64 "; give the same command as before, or "
                    "remove it to start again",
                    c->path, what, before, now);
}

static int same_file(const checkpoint *c, const identity_file *before, const identity_file *now, const char *path)
{
    if (before->bytes == now->bytes && before->changed == now->changed) return 0;
    return cli_fail("%s has changed since %s was written: it had %" PRId64 " bytes and has %" PRId64 "%s; remove the "
                    "state to start again",
                    path, c->path, before->bytes, now->bytes,
                    before->bytes == now->bytes ? ", but was written to" : "");
}

/* Checks that a state was written by a run of the same command. */
static int checkpoint_compare(const checkpoint *c, const identity *run, const identity *state, const fs_stream *stream)
{
    if (!state->panels)
        return cli_fail("%s is a sketch and not the state of a run; remove it, or name another output", c->path);
    if (same(c, "so many files:", state->files, run->files)) return EXIT_FAILURE;
    for (int64_t i = 0; i < run->files; i++) {
        fs_stream_file file = FS_STREAM_FILE_INIT;
        if (fs_stream_get_file(stream, i, &file)) return cli_library_fail();
        if (same_file(c, &state->file[i], &run->file[i], file.path) ||
            same(c, "elements that begin at byte", state->file[i].start, run->file[i].start))
            return EXIT_FAILURE;
    }
    if (identity_agree("this run", run, c->path, state)) return other(c);
    if (strcmp(state->reads, run->reads))
        return cli_fail("%s is of a run that reads %s, this one reads %s; give the same command as before, or remove "
                        "it to start again",
                        c->path, state->reads, run->reads);
    return same(c, "--row0", state->rows[0].first, run->rows[0].first) ||
           same(c, "--memory", state->memory, run->memory) || same(c, "so many panels:", state->panels, run->panels);
}

int checkpoint_load(const checkpoint *c, identity *run, const fs_stream *stream, fs_matrix *Y)
{
    fs_file *file;
    fs_matrix stored;
    identity state;
    run->done = 0;
    if (access(c->path, F_OK)) return 0;
    if (identity_open(c->path, &file, &stored, &state)) return other(c);
    const int code = checkpoint_compare(c, run, &state, stream);
    if (!code) {
        memcpy(Y->data, stored.data, (size_t)(Y->rows * Y->cols) * fs_dtype_size(Y->dtype));
        run->done = state.done;
    }
    fs_file_close(file);
    identity_free(&state);
    return code;
}

void checkpoint_save(checkpoint *c, const identity *run, const fs_matrix *Y)
{
    const double start = cli_seconds();
    if (start < c->next) return;
    const fs_matrix stored = as_stored(Y, run->batch_major);
    identity state = *run;
    state.crc = fs_file_crc32(&stored);
    char *text = identity_text(&state);
    FILE *out = text ? output_open(c->path) : NULL;
    if (!text) cli_fail("no memory for the text of %s", c->path);
    if (out && fs_file_write_safetensors(out, &stored, "Y", IDENTITY_KEY, text)) cli_library_fail();
    else if (out) output_close();
    output_abandon();
    free(text);
    const double end = cli_seconds(), pause = share * (end - start);
    c->next = end + (pause > c->every && c->every > 0 ? pause : c->every);
}

void checkpoint_end(const checkpoint *c) { unlink(c->path); }
