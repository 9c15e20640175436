/* pipes.c - standard input that is a pipe, and files that cannot be mapped.
 *
 * A matrix that is read in order needs no temporary file when it comes through a pipe: TMPDIR names a folder that
 * does not exist. The linker sends the readers' mmap here. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/dtype.h"
#include "flashsketch_files.h"
#include "tests/support/files.h"

static int no_address_space;
void *__real_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int file, off_t offset)
{
    if (no_address_space && file >= 0) return errno = ENOMEM, MAP_FAILED;
    return __real_mmap(address, length, protection, flags, file, offset);
}

/* a writer --------------------------------------------------------------------------------------------------- */

typedef struct writer {
    const unsigned char *data;
    size_t count;
    int fd;
    pthread_t thread;
} writer;

static void *work(void *argument)
{
    writer *w = argument;
    for (size_t at = 0; at < w->count;) { /* in small amounts: reads return less than was requested */
        const size_t left = w->count - at;
        const ssize_t done = write(w->fd, w->data + at, left < 777 ? left : 777);
        if (done < 0) break; /* the reader has closed its end */
        at += (size_t)done;
    }
    close(w->fd);
    return NULL;
}

/* Makes standard input a pipe that a thread writes to; and ends it. */
static void start_with(writer *w, const void *data, size_t count)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    if (ends[0] != STDIN_FILENO) { /* it was open */
        assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
        close(ends[0]);
    }
    w->data = data;
    w->count = count;
    w->fd = ends[1];
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
}
static void start(writer *w, const bytes *content) { start_with(w, content->at, content->count); }
static void finish(writer *w)
{
    close(STDIN_FILENO);
    pthread_join(w->thread, NULL);
}

/* matrices --------------------------------------------------------------------------------------------------- */

enum { ROWS = 600, COLS = 11 };

static void put_array(bytes *b, int64_t rows, int64_t cols, int fortran)
{
    char header[128];
    snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': %s, 'shape': (%d, %d), }\n",
             fortran ? "True" : "False", (int)rows, (int)cols);
    put(b, "\x93NUMPY\1\0", 8);
    put_little(b, strlen(header), 2);
    put_text(b, "%s", header);
    for (int64_t p = 0; p < rows * cols; p++)
        put_double(b, fortran ? element(p % rows, p / rows) : element(p / cols, p % cols), FS_F32);
}

/* All that comes is right; returns how many elements. */
static int64_t expect_panels(fs_stream *stream, int batch)
{
    int64_t elements = 0;
    for (fs_panel p = FS_PANEL_INIT;;) {
        if (fs_stream_next(stream, &p)) fail_msg("%s", fs_error_message());
        if (!p.A.rows) return elements;
        elements += p.A.rows * p.A.cols;
        for (int64_t i = 0; i < p.A.rows; i++)
            for (int64_t j = 0; j < p.A.cols; j++) {
                const double x = fsi_load(p.A.data, p.A.dtype, i * p.A.row_stride + j * p.A.col_stride);
                assert_true(x == (batch ? element(p.col0 + j, p.row0 + i) : element(p.row0 + i, p.col0 + j)));
            }
    }
}

static fs_stream *opened_stream(const char *path, const fs_stream_options *o)
{
    fs_stream *stream = NULL;
    if (fs_stream_create(&stream, &path, 1, o)) fail_msg("%s", fs_error_message());
    return stream;
}

static void expect_message(fs_result result, const char *const *words)
{
    const char *message = fs_error_message();
    for (; *words; words++)
        if (result != FS_EFILE || !strstr(message, *words))
            fail_msg("%s \"%s\" lacks \"%s\"", fs_result_name(result), message, *words);
}
#define EXPECT_MESSAGE(result, ...) expect_message((result), (const char *const[]){__VA_ARGS__, NULL})

/* pipes ------------------------------------------------------------------------------------------------------ */

/* Arrays whose panels follow one another: rows, columns in Fortran order where a panel is whole columns, raw files; and
 * rows that are longer than the memory. */
static void a_pipe_is_read_as_it_comes(void **state)
{
    static const struct {
        int64_t memory;
        int fortran, batch, raw;
    } cases[] = {{0, 0, 0, 0},       {1000, 0, 0, 0}, {4, 0, 0, 0},   {0, 0, 1, 0},
                 {1 << 20, 1, 0, 0}, {1000, 1, 1, 0}, {1000, 0, 0, 1}};
    (void)state;
    assert_int_equal(setenv("TMPDIR", "absent", 1), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static bytes b;
        writer w;
        fs_stream_options o = FS_STREAM_INIT;
        b.count = 0;
        if (!cases[i].raw) put_array(&b, ROWS, COLS, cases[i].fortran);
        else
            for (int64_t p = 0; p < ROWS * COLS; p++) put_double(&b, element(p / COLS, p % COLS), FS_F32);
        o.memory = cases[i].memory, o.batch_major = cases[i].batch;
        if (cases[i].raw) o.rows = ROWS, o.cols = COLS, o.dtype = FS_F32;
        start(&w, &b);
        fs_stream *stream = opened_stream("-", &o);
        assert_int_equal(expect_panels(stream, cases[i].batch), ROWS * COLS);
        fs_stream_destroy(stream);
        finish(&w);
    }
}

/* Panels that are skipped are read and dropped; earlier panels cannot be read again. */
static void a_pipe_goes_forward_only(void **state)
{
    static bytes b;
    writer w;
    fs_stream_options o = FS_STREAM_INIT;
    fs_panel p = FS_PANEL_INIT;
    (void)state;
    b.count = 0;
    put_array(&b, ROWS, COLS, 0);
    o.memory = 1000;
    start(&w, &b);
    fs_stream *stream = opened_stream("-", &o);
    assert_int_equal(fs_stream_seek(stream, 3), FS_OK);
    assert_int_equal(fs_stream_next(stream, &p), FS_OK);
    assert_true(p.row0 > 0 && ((const float *)p.A.data)[1] == (float)element(p.row0, 1));
    assert_int_equal(fs_stream_seek(stream, 0), FS_OK);
    EXPECT_MESSAGE(fs_stream_next(stream, &p), "standard input: byte 0 of a pipe is needed again", "give a file");
    fs_stream_destroy(stream);
    finish(&w);
}

/* A pipe has no length to compare a header with: it shows at its end. */
static void a_pipe_that_is_too_short_or_too_long_is_an_error(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        static bytes b;
        writer w;
        fs_stream_options o = FS_STREAM_INIT;
        fs_panel p = {.size = sizeof p, .A.rows = 1};
        fs_result result = FS_OK;
        b.count = 0;
        put_array(&b, ROWS, COLS, 0);
        if (more) put_text(&b, "x");
        else b.count -= 5;
        o.memory = 1000;
        start(&w, &b);
        fs_stream *stream = opened_stream("-", &o);
        while (!result && p.A.rows) result = fs_stream_next(stream, &p);
        EXPECT_MESSAGE(result, "standard input: 600 x 11 float32 needs 26400 bytes, but",
                       more ? "more than 26400 came" : "only 26395 came");
        fs_stream_destroy(stream);
        finish(&w);
    }
}

/* Samples so long that a panel has a range of coordinates of several: not in the order of the pipe. */
static void panels_in_another_order(int there, float *samples)
{
    enum { COUNT = 4, LENGTH = 40000 };
    const char *path = "-";
    fs_stream_options o = FS_STREAM_INIT;
    fs_stream *stream = NULL;
    writer w;
    for (int64_t p = 0; p < COUNT * LENGTH; p++) samples[p] = (float)element(p / LENGTH, p % LENGTH);
    o.memory = 200000, o.batch_major = 1, o.rows = COUNT, o.cols = LENGTH, o.dtype = FS_F32;
    start_with(&w, samples, COUNT * LENGTH * sizeof *samples);
    fs_panel p = FS_PANEL_INIT;
    assert_int_equal(fs_stream_create(&stream, &path, 1, &o), FS_OK);
    if (!there) EXPECT_MESSAGE(fs_stream_next(stream, &p), "in the folder 'absent'", "set TMPDIR");
    else {
        assert_int_equal(expect_panels(stream, 1), COUNT * LENGTH);
        assert_int_equal(fs_stream_seek(stream, 0), FS_OK); /* a copy can be read again */
        assert_int_equal(expect_panels(stream, 1), COUNT * LENGTH);
    }
    fs_stream_destroy(stream);
    finish(&w);
}

/* What must be read in another order, or whole, is copied to TMPDIR; where that fails, the message names the folder. */
static void other_pipes_are_copied_to_a_temporary_file(void **state)
{
    static const char *const folders[] = {"absent", "."};
    static float samples[1 << 18];
    static bytes b;
    (void)state;
    for (int there = 0; there < 2; there++) {
        writer w;
        file_matrix file;
        assert_int_equal(setenv("TMPDIR", folders[there], 1), 0);
        panels_in_another_order(there, samples);
        b.count = 0;
        put_array(&b, ROWS, COLS, 0);
        start(&w, &b);
        const fs_result result = file_open("-", NULL, &file);
        if (there) {
            assert_int_equal(result, FS_OK);
            expect_dense(&file, ROWS, COLS, FS_F32);
            file_close(&file);
        } else EXPECT_MESSAGE(result, "in the folder 'absent'", "No such file or directory, after 0 bytes", "TMPDIR");
        finish(&w);
    }
}

/* With options.reread a pipe is copied, so that its panels can be read and cut again. */
static void a_pipe_that_is_copied_can_be_cut_again(void **state)
{
    static bytes b;
    const char *path = "-";
    (void)state;
    assert_int_equal(setenv("TMPDIR", ".", 1), 0);
    for (int reread = 0; reread < 2; reread++) {
        fs_stream_options o = FS_STREAM_INIT;
        fs_stream *stream = NULL;
        fs_panel p = FS_PANEL_INIT;
        writer w;
        b.count = 0;
        put_array(&b, ROWS, COLS, 0);
        start(&w, &b);
        o.memory = 1000, o.reread = reread;
        assert_int_equal(fs_stream_create(&stream, &path, 1, &o), FS_OK);
        assert_int_equal(fs_stream_set_memory(stream, 2000), FS_OK); /* nothing has been read yet */
        assert_int_equal(fs_stream_next(stream, &p), FS_OK);
        assert_int_equal(fs_stream_set_memory(stream, INT64_MAX), reread ? FS_OK : FS_EINVAL);
        if (reread) {
            assert_int_equal(fs_stream_panels(stream), 1);
            assert_int_equal(expect_panels(stream, 0), ROWS * COLS);
        }
        fs_stream_destroy(stream);
        finish(&w);
    }
}

static void a_pipe_with_nothing_in_it_is_an_error(void **state)
{
    static bytes b;
    writer w;
    file_matrix file;
    (void)state;
    b.count = 0;
    start(&w, &b);
    EXPECT_MESSAGE(file_open("-", NULL, &file), "standard input: the file is empty");
    finish(&w);
}

/* address space ---------------------------------------------------------------------------------------------- */

static void files_that_cannot_be_mapped_are_read(void **state)
{
    static bytes b;
    fs_stream_options o = FS_STREAM_INIT;
    (void)state;
    b.count = 0;
    put_array(&b, ROWS, COLS, 0);
    save(&b, "A.npy");
    no_address_space = 1;
    file_matrix file = opened("A.npy", NULL);
    assert_null(file.map);
    expect_dense(&file, ROWS, COLS, FS_F32);
    file_close(&file);
    o.memory = 1000;
    fs_stream *stream = opened_stream("A.npy", &o);
    assert_int_equal(expect_panels(stream, 0), ROWS * COLS);
    fs_stream_destroy(stream);
    no_address_space = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_is_read_as_it_comes),
        cmocka_unit_test(a_pipe_goes_forward_only),
        cmocka_unit_test(a_pipe_that_is_too_short_or_too_long_is_an_error),
        cmocka_unit_test(other_pipes_are_copied_to_a_temporary_file),
        cmocka_unit_test(a_pipe_that_is_copied_can_be_cut_again),
        cmocka_unit_test(a_pipe_with_nothing_in_it_is_an_error),
        cmocka_unit_test(files_that_cannot_be_mapped_are_read),
    };
    signal(SIGPIPE, SIG_IGN); /* readers close a pipe before its end */
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
