/* source.c - sources of bytes: a file, standard input that is one, a pipe, or the temporary copy of a pipe. */
#define _GNU_SOURCE /* O_TMPFILE */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "files/reader.h"

static const char STANDARD_INPUT[] = "standard input";

static const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

/* A file without a name, which is gone when it is closed, however the process ends.  Returns -1 and errno. */
static int temporary_file(const char *folder)
{
    char name[4096];
#ifdef O_TMPFILE
    const int unnamed = open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (unnamed >= 0) return unnamed;
#endif
    const int length = snprintf(name, sizeof name, "%s/flashsketch-XXXXXX", folder);
    if (length >= (int)sizeof name) return errno = ENAMETOOLONG, -1;
    const int named = mkstemp(name);
    if (named >= 0) (void)unlink(name);
    return named;
}

/* Writes all of it, or returns an errno; *written counts. */
static int write_all(int fd, const unsigned char *data, int64_t bytes, int64_t *written)
{
    while (bytes > 0) {
        const ssize_t done = write(fd, data, (size_t)bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done ? errno : EIO;
        data += done, bytes -= done, *written += done;
    }
    return 0;
}

fs_result pipe_spool(reader_pipe *pipe, const reader_source *watching, int *fd)
{
    const char *folder = temporary_folder();
    reader_stream *s = &pipe->stream;
    int64_t bytes = 0, got = s->filled; /* only the first buffer has been read, however much of it was consumed */
    *fd = temporary_file(folder);
    int why = *fd < 0 ? errno : 0;
    while (!why && got > 0) {
        if ((why = write_all(*fd, s->buffer, got, &bytes))) break;
        reader_watch(watching, bytes, 0);
        s->filled = 0;
        if ((got = reader_fill(s)) < 0) {
            close(*fd);
            return reader_failure(got);
        }
    }
    if (!why) return 0;
    if (*fd >= 0) close(*fd);
    *fd = -1;
    return bad_file("standard input must be copied to a temporary file, and that failed in the folder '%s' (%s, after "
                    "%" PRId64 " bytes); set TMPDIR to a folder that has room, or name a file instead of '-'",
                    folder, strerror(why), bytes);
}

/* The first bytes of standard input, which is not a file. */
static fs_result pipe_open(reader_source *in)
{
    reader_pipe *pipe = calloc(1, sizeof *pipe);
    if (!pipe) return out_of_memory("%s: no memory for a pipe", in->path);
    pipe->in = (reader_source){.path = STANDARD_INPUT, .fd = dup(STDIN_FILENO), .options = &pipe->none};
    if (pipe->in.fd < 0) {
        free(pipe);
        return bad_file("standard input cannot be read (%s)", strerror(errno));
    }
    in->pipe = pipe;
    FSI_TRY(reader_start_at(&pipe->in, READER_PLAIN, 0, INT64_MAX, &pipe->stream));
    pipe->stream.is_pipe = 1;
    const int64_t filled = reader_fill(&pipe->stream);
    if (filled < 0) return reader_failure(filled);
    return pipe->stream.filled ? 0 : bad_file("%s: the file is empty", in->path);
}

void pipe_close(reader_pipe *pipe)
{
    if (!pipe) return;
    if (pipe->stream.buffer) reader_stop(&pipe->stream);
    close(pipe->in.fd);
    free(pipe);
}

/* Whether a pipe can be read in order: where only the position is needed, and the elements follow a short header. */
static int comes_in_order(const reader_source *in)
{
    const file_options *o = in->options;
    const reader_stream *s = &in->pipe->stream;
    if (!o->locate || o->spool) return 0;
    return o->format == FILE_RAW || ((o->format == FILE_GUESS || o->format == FILE_NPY) && !o->tensor &&
                                     s->filled >= 6 && !memcmp(s->buffer, "\x93NUMPY", 6));
}

static fs_result standard_input(reader_source *in)
{
    struct stat about;
    in->path = STANDARD_INPUT;
    if (isatty(STDIN_FILENO)) return bad_file("standard input is a terminal; pipe a matrix into it, or name a file");
    if (fstat(STDIN_FILENO, &about) == 0 && S_ISREG(about.st_mode) && !lseek(STDIN_FILENO, 0, SEEK_CUR)) {
        in->fd = dup(STDIN_FILENO);
        return in->fd >= 0 ? 0 : bad_file("standard input cannot be read (%s)", strerror(errno));
    }
    FSI_TRY(pipe_open(in));
    if (comes_in_order(in)) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now); /* two runs never read the same pipe */
        in->changed = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
        return 0;
    }
    const fs_result code = pipe_spool(in->pipe, in, &in->fd);
    pipe_close(in->pipe);
    in->pipe = NULL;
    return code;
}

fs_result source_measure(reader_source *in)
{
    struct stat about;
    const int is_file = fstat(in->fd, &about) == 0 && S_ISREG(about.st_mode);
    in->bytes = is_file ? about.st_size : 0;
    in->changed = is_file ? about.st_mtim.tv_sec * INT64_C(1000000000) + about.st_mtim.tv_nsec : 0;
    if (in->bytes > 0) return 0;
    if (is_file) return bad_file("%s: the file is empty", in->path);
    return bad_file("%s: this is not a file; a pipe or device is read as standard input ('-')", in->path);
}

fs_result source_open(const char *path, const file_options *options, reader_source *in)
{
    *in = (reader_source){.path = path, .fd = -1, .options = options};
    fs_result code;
    if (!strcmp(path, "-")) {
        code = standard_input(in);
        if (!code && in->pipe) return 0;
    } else {
        in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO without a writer must not block */
        code = in->fd < 0 ? bad_file("%s: the file cannot be opened (%s)", path, strerror(errno)) : 0;
    }
    if (!code) code = source_measure(in);
    if (code) source_close(in);
    return code;
}

void source_close(reader_source *in)
{
    pipe_close(in->pipe);
    if (in->fd >= 0) close(in->fd);
    in->pipe = NULL;
    in->fd = -1;
}
