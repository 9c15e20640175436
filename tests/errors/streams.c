/* streams.c - streams and threads: a number of threads that is too large is refused, and a child of fork reads its
 * parent's stream and its own. */
#include <string.h>

#include <flashsketch_files.h>

#include "tests/support/support.h"
#include "children.h"

enum { ROWS_IN_ALL = 5000, COLS = 40 };

typedef struct work {
    const char *path;
    fs_stream *stream;
    int fresh;
} work;

static fs_stream_options small_panels(void)
{
    fs_stream_options how = FS_STREAM_INIT;
    how.memory = 100000, how.rows = ROWS_IN_ALL, how.cols = COLS, how.dtype = FS_F32;
    return how;
}

/* Reads all panels that are left; 0, or the step that was wrong. */
static int read_on(fs_stream *s)
{
    for (fs_panel panel = FS_PANEL_INIT;;) {
        if (fs_stream_next(s, &panel)) return 1;
        if (panel.A.rows == 0) return 0;
        for (int64_t i = 0; i < panel.A.rows; i++)
            for (int64_t j = 0; j < COLS; j++)
                if (at(&panel.A, i, j) != (double)((panel.row0 + i) * COLS + j)) return 2;
    }
}
static int in_child(void *argument)
{
    const work *w = argument;
    fs_stream *s = w->stream;
    const fs_stream_options how = small_panels();
    if (w->fresh && fs_stream_create(&s, &w->path, 1, &how)) return 3;
    const int wrong = read_on(s);
    fs_stream_destroy(s);
    return wrong;
}

static void a_child_reads_its_parents_stream_and_its_own(void **state)
{
    (void)state;
    char path[] = "/tmp/flashsketch-streams-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    float *data = room(ROWS_IN_ALL * COLS, 4);
    for (int64_t i = 0; i < ROWS_IN_ALL * COLS; i++) data[i] = (float)i;
    assert_int_equal(write(fd, data, ROWS_IN_ALL * COLS * 4), ROWS_IN_ALL * COLS * 4);
    close(fd);
    free(data);
    work w = {path, NULL, 0};
    const fs_stream_options how = small_panels();
    fs_panel panel = FS_PANEL_INIT;
    MUST(fs_stream_create(&w.stream, &w.path, 1, &how));
    assert_true(fs_stream_panels(w.stream) > 4);
    MUST(fs_stream_next(w.stream, &panel));
    assert_true(fs_thread_count(0) == 2);
    for (; w.fresh < 2; w.fresh++) run_in_child(w.fresh ? "a fresh stream" : "the parent's stream", in_child, &w);
    assert_int_equal(read_on(w.stream), 0);
    fs_stream_destroy(w.stream);
    unlink(path);
}

static void too_many_threads_are_refused(void **state)
{
    (void)state;
    const char *path = "/dev/null";
    fs_stream *s = NULL;
    fs_stream_options how = small_panels();
    how.threads = FS_THREADS_MAX + 1;
    REFUSED(fs_stream_create(&s, &path, 1, &how), FS_EINVAL, "threads is 1025", "to 1024");
    assert_null(s);
}

int main(void)
{
    need_children();
    const struct CMUnitTest tests[] = {cmocka_unit_test(too_many_threads_are_refused),
                                       cmocka_unit_test(a_child_reads_its_parents_stream_and_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
