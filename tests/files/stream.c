/* stream.c - a stream gives every element of its files once, in panels that fit its memory, however the files are cut;
 * and a fault of a file, before or while it is read, is reported by an error message.
 *
 * The linker sends malloc, calloc, aligned_alloc and strdup of the readers here, so that memory can run out at any
 * moment. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dtype.h"
#include "flashsketch_files.h"
#include "tests/files/shards.h"

#include "tests/support/failing_malloc.h"

void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return is_out() ? NULL : __real_aligned_alloc(alignment, size);
}
char *__wrap_strdup(const char *text) { return is_out() ? NULL : __real_strdup(text); }

/* Reads the rest of a stream; every element that comes is right, and counted in seen[]. */
static int64_t read_rest(fs_stream *stream, int batch, int64_t memory, unsigned char *seen)
{
    int64_t panels = 0;
    for (fs_panel p = FS_PANEL_INIT;; panels++) {
        assert_int_equal(fs_stream_next(stream, &p), FS_OK);
        if (!p.A.rows) return panels;
        assert_true(p.A.rows * p.A.cols * fsi_dtype_size(p.A.dtype) <= memory);
        assert_int_equal((uintptr_t)p.A.data % (uintptr_t)fsi_dtype_size(p.A.dtype), 0);
        for (int64_t i = 0; i < p.A.rows; i++)
            for (int64_t j = 0; j < p.A.cols; j++) {
                const int64_t row = batch ? p.col0 + j : p.row0 + i, col = batch ? p.row0 + i : p.col0 + j;
                const double x = fsi_load(p.A.data, p.A.dtype, i * p.A.row_stride + j * p.A.col_stride);
                assert_true(row < ROWS && col < COLS);
                if (x != value(row, col)) print_error("(%d, %d) is %g\n", (int)row, (int)col, x);
                assert_true(x == value(row, col));
                seen[row * COLS + col]++;
            }
    }
}

static void expect_all_once(const unsigned char *seen)
{
    for (int64_t i = 0; i < ROWS * COLS; i++) assert_int_equal(seen[i], 1);
}

/* properties ------------------------------------------------------------------------------------------------------- */

static const int64_t memories[] = {1, 8, 353, 8 * COLS, 1000, 5000, 8 * COLS * 64, (int64_t)1 << 40};
enum { MEMORIES = sizeof memories / sizeof memories[0] };

static void every_element_comes_once_however_files_are_cut(void **state)
{
    (void)state;
    for (int cut = 0; cut < CUTS; cut++)
        for (int how = 0; how < 4; how++)
            for (int t = FS_F32; t <= FS_F16; t++) {
                const int64_t count = save_shards(cuts[cut], (fs_dtype)t, how & 1);
                for (int m = cut == 2 && t == FS_F32 ? 0 : 2; m < MEMORIES; m++) { /* the smallest take long */
                    unsigned char seen[ROWS * COLS] = {0};
                    fs_stream_options o = FS_STREAM_INIT;
                    fs_matrix A;
                    o.memory = memories[m];
                    o.batch_major = how >> 1;
                    o.threads = 1 + m % 2;
                    fs_stream *stream = opened_stream(names, count, &o);
                    assert_int_equal(fs_stream_shape(stream, &A), FS_OK);
                    assert_true(A.rows == (o.batch_major ? COLS : ROWS) && A.cols == (o.batch_major ? ROWS : COLS));
                    assert_int_equal(A.dtype, t);
                    const int64_t least = fsi_dtype_size((fs_dtype)t), room = memories[m] < least ? least : memories[m];
                    const int64_t panels = read_rest(stream, o.batch_major, room, seen);
                    assert_int_equal(panels, fs_stream_panels(stream));
                    expect_all_once(seen);
                    fs_stream_destroy(stream);
                }
            }
}

/* Integers are converted as they are read, whole files of them side by side with floats. */
static void integers_are_converted_panel_by_panel(void **state)
{
    static const char *const descr[] = {"<i2", ">u2", ">i4", "<u4", "<i8", ">u8"};
    (void)state;
    for (int type = 0; type < 6; type++)
        for (int how = 0; how < 4; how++)
            for (int m = 2; m < MEMORIES; m++) {
                unsigned char seen[ROWS * COLS] = {0};
                const int64_t *at = cuts[3];
                const fs_dtype dtype = type < 2 ? FS_F32 : FS_F64;
                fs_stream_options o = FS_STREAM_INIT;
                fs_matrix A;
                int64_t count = 0;
                for (; at[count] < ROWS; count++)
                    if (count == 1) save_npy(names[count], at[count], at[count + 1], dtype, how & 1);
                    else save_integers(names[count], at[count], at[count + 1], descr[type], how & 1);
                o.memory = memories[m], o.batch_major = how >> 1, o.threads = 1 + m % 2;
                fs_stream *stream = opened_stream(names, count, &o);
                assert_int_equal(fs_stream_shape(stream, &A), FS_OK);
                assert_int_equal(A.dtype, dtype);
                read_rest(stream, o.batch_major, o.memory, seen);
                expect_all_once(seen);
                fs_stream_destroy(stream);
            }
}

/* IDX files and arrays of text are cut like any other; every second IDX file is an npy file, every third is packed. */
static void files_that_are_read_whole_are_cut_into_panels(void **state)
{
    (void)state;
    for (int cut = 0; cut < CUTS; cut++)
        for (int format = IDX; format <= TABLE; format++)
            for (int batch = 0; batch < 2; batch++)
                for (int m = 2; m < MEMORIES; m++) {
                    unsigned char seen[ROWS * COLS] = {0};
                    int64_t count = 0;
                    for (const int64_t *at = cuts[cut]; at[count] < ROWS; count++)
                        if (format == IDX && count % 2) save_npy(names[count], at[count], at[count + 1], FS_F32, 0);
                        else save_whole(names[count], at[count], at[count + 1], (whole_format)format, count % 3 == 2);
                    fs_stream_options o = FS_STREAM_INIT;
                    fs_matrix A;
                    o.memory = memories[m], o.batch_major = batch, o.threads = 1 + m % 2;
                    fs_stream *stream = opened_stream(names, count, &o);
                    assert_int_equal(fs_stream_shape(stream, &A), FS_OK);
                    assert_true(A.rows == (batch ? COLS : ROWS) && A.cols == (batch ? ROWS : COLS));
                    assert_int_equal(A.dtype, format == IDX ? FS_F32 : FS_F64);
                    assert_int_equal(read_rest(stream, batch, o.memory, seen), fs_stream_panels(stream));
                    expect_all_once(seen);
                    assert_int_equal(fs_stream_seek(stream, 0), FS_OK); /* files that are held no more are read again */
                    read_rest(stream, batch, o.memory, seen);
                    fs_stream_destroy(stream);
                }
}

/* A sparse file is a panel, whose entries are those of its rows of the whole. */
static void sparse_files_are_panels(void **state)
{
    (void)state;
    for (int cut = 0; cut < CUTS; cut++)
        for (int batch = 0; batch < 2; batch++) {
            double *all = calloc(ROWS * COLS, sizeof *all);
            int64_t count = 0;
            for (const int64_t *at = cuts[cut]; at[count] < ROWS; count++)
                save_whole(names[count], at[count], at[count + 1], ENTRIES, count % 2);
            fs_stream_options o = FS_STREAM_INIT;
            fs_matrix A;
            fs_panel p = FS_PANEL_INIT;
            o.batch_major = batch, o.memory = 1;
            fs_stream *stream = opened_stream(names, count, &o);
            assert_int_equal(fs_stream_shape(stream, &A), FS_OK);
            assert_true(A.rows == (batch ? COLS : ROWS) && A.cols == (batch ? ROWS : COLS) && A.dtype == FS_F64);
            assert_int_equal(fs_stream_panels(stream), count);
            for (int64_t i = 0; i < count; i++) {
                assert_int_equal(fs_stream_next(stream, &p), FS_OK);
                assert_true(p.is_sparse && !p.A.data && p.A.rows == p.sparse.rows && p.A.cols == p.sparse.cols);
                assert_true((batch ? p.col0 : p.row0) == cuts[cut][i] && (batch ? p.row0 : p.col0) == 0);
                assert_int_equal(p.sparse.format, batch ? FS_CSC : FS_CSR);
                const int64_t lines = batch ? p.sparse.cols : p.sparse.rows;
                assert_int_equal(lines, cuts[cut][i + 1] - cuts[cut][i]);
                for (int64_t line = 0; line < lines; line++)
                    for (int64_t e = fsi_index_load(p.sparse.ptr, p.sparse.index_type, line);
                         e < fsi_index_load(p.sparse.ptr, p.sparse.index_type, line + 1); e++)
                        all[(cuts[cut][i] + line) * COLS + fsi_index_load(p.sparse.index, p.sparse.index_type, e)] +=
                            ((double *)p.sparse.value)[e];
            }
            assert_int_equal(fs_stream_next(stream, &p), FS_OK);
            assert_int_equal(p.A.rows, 0);
            for (int64_t i = 0; i < ROWS; i++)
                for (int64_t j = 0; j < COLS; j++) assert_true(all[i * COLS + j] == value(i, j));
            fs_stream_destroy(stream);
            free(all);
        }
}

/* Panels of rows are cut by the shape alone: shards have the panels of the whole. */
static void panels_do_not_depend_on_where_files_end(void **state)
{
    (void)state;
    for (int m = 2; m < MEMORIES; m++)
        for (int batch = 0; batch < 2; batch++) {
            fs_stream_options o = FS_STREAM_INIT;
            static fs_panel whole[ROWS * COLS + 1];
            fs_panel p = FS_PANEL_INIT;
            o.memory = memories[m];
            o.batch_major = batch;
            save_shards(cuts[0], FS_F32, 0);
            fs_stream *stream = opened_stream(names, 1, &o);
            const int64_t panels = fs_stream_panels(stream);
            assert_true(panels <= ROWS * COLS);
            for (int64_t i = 0; i <= panels; whole[i++] = p) assert_int_equal(fs_stream_next(stream, &p), FS_OK);
            fs_stream_destroy(stream);
            stream = opened_stream(names, save_shards(cuts[2], FS_F32, 0), &o);
            assert_int_equal(fs_stream_panels(stream), panels);
            for (int64_t i = 0; i <= panels; i++) {
                assert_int_equal(fs_stream_next(stream, &p), FS_OK);
                assert_true(p.row0 == whole[i].row0 && p.col0 == whole[i].col0 && p.A.rows == whole[i].A.rows &&
                            p.A.cols == whole[i].A.cols);
            }
            fs_stream_destroy(stream);
        }
}

static void a_stream_goes_on_from_any_panel(void **state)
{
    (void)state;
    const int64_t count = save_shards(cuts[2], FS_F32, 0);
    fs_stream_options o = FS_STREAM_INIT;
    o.memory = 1000;
    fs_stream *stream = opened_stream(names, count, &o);
    const int64_t panels = fs_stream_panels(stream);
    assert_true(panels > 8);
    for (int64_t from = panels; from >= 0; from--) { /* backwards too: what was read ahead is left */
        unsigned char seen[ROWS * COLS] = {0};
        assert_int_equal(fs_stream_seek(stream, from), FS_OK);
        assert_int_equal(read_rest(stream, 0, o.memory, seen), panels - from);
        if (from == 0) expect_all_once(seen);
    }
    assert_int_equal(fs_stream_seek(stream, panels + 1), FS_EINVAL);
    assert_int_equal(fs_stream_seek(stream, -1), FS_EINVAL);
    fs_stream_destroy(stream);
}

/* A tensor that begins at an odd byte, and a raw file; the same file twice. */
static void elements_need_no_alignment_and_files_may_repeat(void **state)
{
    (void)state;
    bytes b = {.count = 0}, raw = {.count = 0};
    const char *header = "{\"x\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
                         "\"w\":{\"dtype\":\"F64\",\"shape\":[2,13],\"data_offsets\":[3,211]}}";
    put_little(&b, strlen(header), 8);
    put_text(&b, "%s", header);
    put_text(&b, "odd");
    for (int i = 0; i < 2 * COLS; i++) put_double(&b, value(0, i), FS_F64), put_double(&raw, value(0, i), FS_BF16);
    save(&b, "w.safetensors");
    save(&raw, "w.raw");
    const char *const twice[] = {"w.safetensors", "w.safetensors"}, *const alone[] = {"w.raw"};
    fs_stream_options o = FS_STREAM_INIT;
    fs_panel p = FS_PANEL_INIT;
    o.tensor = "w";
    fs_stream *stream = opened_stream(twice, 2, &o);
    assert_int_equal(fs_stream_next(stream, &p), FS_OK);
    assert_true(p.A.rows == 4 && p.A.cols == COLS);
    for (int i = 0; i < 4 * COLS; i++) assert_true(((double *)p.A.data)[i] == value(0, i % (2 * COLS)));
    fs_stream_destroy(stream);
    o = (fs_stream_options)FS_STREAM_INIT;
    o.rows = 2, o.cols = COLS, o.dtype = FS_BF16;
    stream = opened_stream(alone, 1, &o);
    assert_int_equal(fs_stream_next(stream, &p), FS_OK);
    for (int i = 0; i < 2 * COLS; i++) assert_true(fsi_load(p.A.data, FS_BF16, i) == value(0, i)); /* up to 25: exact */
    fs_stream_destroy(stream);
}

/* More files than a process may have open. */
static void there_may_be_more_files_than_descriptors(void **state)
{
    (void)state;
    enum { FILES = 100 };
    const char *paths[FILES];
    struct rlimit before, few;
    fs_panel p = FS_PANEL_INIT;
    save_npy("s0.npy", 0, 2, FS_F32, 0);
    for (int i = 0; i < FILES; i++) paths[i] = "s0.npy";
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = 20;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    fs_stream *stream = opened_stream(paths, FILES, NULL);
    assert_int_equal(fs_stream_next(stream, &p), FS_OK);
    assert_int_equal(p.A.rows, 2 * FILES);
    fs_stream_destroy(stream);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* mistakes --------------------------------------------------------------------------------------------------- */

static void files_that_do_not_go_together_are_refused(void **state)
{
    (void)state;
    fs_stream *stream = NULL;
    fs_stream_options o = FS_STREAM_INIT;
    const char *paths[] = {"s0.npy", "other"};
    bytes b = {.count = 0};
    save_npy("s0.npy", 0, 5, FS_F32, 0);
    expect_words(fs_stream_create(&stream, paths, 2, NULL), FS_EFILE, "other: ", "cannot be opened");
    save_npy("other", 5, 9, FS_F64, 0);
    expect_words(fs_stream_create(&stream, paths, 2, NULL), FS_EFILE, "other: ", "float64, but s0.npy holds float32");
    save_npy("other", 5, 9, FS_F32, 1);
    expect_words(fs_stream_create(&stream, paths, 2, NULL), FS_EFILE, "other: ", "by columns");
    save_whole("other", 5, 9, ARRAY, 0);
    expect_words(fs_stream_create(&stream, paths, 2, NULL), FS_EFILE, "other: ", "float64, but s0.npy holds float32");
    save_npy("s0.npy", 0, 5, FS_F64, 0);
    expect_words(fs_stream_create(&stream, paths, 2, NULL), FS_EFILE, "other: ", "by columns");
    save_whole("other", 5, 9, ENTRIES, 0);
    expect_words(fs_stream_create(&stream, paths, 2, NULL), FS_EFILE, "other: ", "it is sparse, but s0.npy is dense");
    save_npy("s0.npy", 0, 5, FS_F32, 0);
    b.count = 0;
    put_text(&b, "{}");
    save(&b, "other");
    expect_words(fs_stream_create(&stream, paths, 2, NULL), FS_EFILE, "other: ", "is not the beginning of an npy");
    save_npy("other", 5, 9, FS_F32, 0);
    assert_int_equal(truncate("other", 200), 0);
    expect_words(fs_stream_create(&stream, paths, 2, NULL), FS_EFILE, "other: ", "needs 208 bytes, but 72 follow");
    save_npy("other", 5, 9, FS_F32, 0);
    o.rows = 4, o.cols = COLS, o.dtype = FS_F32;
    expect_words(fs_stream_create(&stream, paths + 1, 1, &o), FS_EFILE,
                 "other: ", "needs 208 bytes, but the file has 336");
    paths[1] = NULL;
    expect_words(fs_stream_create(&stream, paths, 2, NULL), FS_EINVAL, "file 1", "NULL");
    expect_words(fs_stream_create(&stream, paths, 0, NULL), FS_EINVAL, "count is 0", "");
    o.memory = -1;
    expect_words(fs_stream_create(&stream, paths, 1, &o), FS_EINVAL, "memory", "-1");
    o.size = 3;
    expect_words(fs_stream_create(&stream, paths, 1, &o), FS_EINVAL, "size", "3");
    assert_null(stream);
    fs_stream_destroy(NULL);
}

/* Rows of other lengths: the first file's. */
static void rows_of_another_length_are_refused(void **state)
{
    (void)state;
    fs_stream *stream = NULL;
    bytes b = {.count = 0};
    const char *const paths[] = {"s0.npy", "w.safetensors"};
    const char *header = "{\"w\":{\"dtype\":\"F32\",\"shape\":[1,12],\"data_offsets\":[0,48]}}";
    put_little(&b, strlen(header), 8);
    put_text(&b, "%s", header);
    for (int i = 0; i < 12; i++) put_double(&b, i, FS_F32);
    save(&b, "w.safetensors");
    save_npy("s0.npy", 0, 5, FS_F32, 0);
    expect_words(fs_stream_create(&stream, paths, 2, NULL), FS_EFILE, "w.safetensors: its rows have 12 elements",
                 "s0.npy have 13");
    b.count = 0;
    put_big(&b, 0x0802, 4), put_big(&b, 2, 4), put_big(&b, 3, 4), put_text(&b, "123456");
    save(&b, "w.safetensors");
    expect_words(fs_stream_create(&stream, paths, 2, NULL), FS_EFILE, "w.safetensors: its rows have 3 elements",
                 "s0.npy have 13");
}

/* A file that is read whole and is cut short: where its header tells, before anything is read; otherwise when it is. */
static void files_that_are_read_whole_and_end_early_are_errors(void **state)
{
    (void)state;
    static const struct {
        whole_format format;
        int packed;
        const char *words;
    } cases[] = {{IDX, 0, "which needs 208 bytes, but 195 follow it"},
                 {IDX, 1, "the gzip data end in the middle"},
                 {ARRAY, 0, "the header gives 52 values, but the file ends after"},
                 {TABLE, 0, "line 4, column 11: the field is empty"},
                 {ENTRIES, 0, "line 53: expected an integer"},
                 {ENTRIES, 1, "the gzip data end in the middle"}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        fs_stream *stream = NULL;
        fs_stream_options o = FS_STREAM_INIT;
        fs_panel p = FS_PANEL_INIT;
        struct stat about;
        o.memory = 100;
        save_whole("s0.npy", 1, 5, cases[c].format, 0);
        save_whole("s1.npy", 5, 9, cases[c].format, cases[c].packed);
        assert_int_equal(stat("s1.npy", &about), 0);
        assert_int_equal(truncate("s1.npy", about.st_size - 13), 0);
        fs_result result = fs_stream_create(&stream, names, 2, &o);
        while (result == FS_OK) {
            result = fs_stream_next(stream, &p);
            assert_true(result || p.A.rows);
        }
        expect_words(result, FS_EFILE, "s1.npy: ", cases[c].words);
        if (stream) { /* the panel is still the next one, and the file is looked at again */
            expect_words(fs_stream_next(stream, &p), FS_EFILE, "s1.npy: ", cases[c].words);
            save_whole("s1.npy", 5, 9, cases[c].format, cases[c].packed);
            expect_words(fs_stream_next(stream, &p), FS_EFILE, "s1.npy: ", "has changed while it was read");
        }
        fs_stream_destroy(stream);
    }
}

/* A file that is cut, written to or removed while it is read is an error, never a signal; restored, reading
 * continues. */
static void files_that_change_while_they_are_read_are_errors(void **state)
{
    (void)state;
    fs_stream_options o = FS_STREAM_INIT;
    fs_panel p = FS_PANEL_INIT;
    const char *const words[] = {"has changed while it was read: it had 11100 bytes and has 5000", "but was written to",
                                 "can no longer be opened"};
    o.memory = 1000;
    for (int way = 0; way < 3; way++) {
        save_npy("s0.npy", 0, ROWS, FS_F32, 0);
        fs_stream *stream = opened_stream(names, 1, &o);
        const struct timespec then[2] = {{1, 0}, {1, 0}};
        struct stat about;
        assert_int_equal(stat("s0.npy", &about), 0);
        assert_int_equal(fs_stream_next(stream, &p), FS_OK);
        const int64_t row0 = p.row0 + p.A.rows;
        if (way == 0) assert_int_equal(truncate("s0.npy", 5000), 0);
        else if (way == 1) assert_int_equal(utimensat(AT_FDCWD, "s0.npy", then, 0), 0);
        else assert_int_equal(unlink("s0.npy"), 0);
        expect_words(fs_stream_next(stream, &p), FS_EFILE, "s0.npy: ", words[way]);
        assert_int_equal(p.A.rows, 0);
        save_npy("s0.npy", 0, ROWS, FS_F32, 0);
        const struct timespec times[2] = {about.st_atim, about.st_mtim};
        assert_int_equal(utimensat(AT_FDCWD, "s0.npy", times, 0), 0);
        assert_int_equal(fs_stream_next(stream, &p), FS_OK);
        assert_int_equal(p.row0, row0);
        fs_stream_destroy(stream);
    }
}

/* One file of several is read when its first panel is requested; after a failure it can be requested again. */
static void memory_that_runs_out_while_a_file_is_read_whole(void **state)
{
    (void)state;
    for (int format = IDX; format < WHOLE_FORMATS; format++)
        for (int times = 0;; times++) {
            save_whole("s0.npy", 0, 9, (whole_format)format, 0);
            save_whole("s1.npy", 9, 11, (whole_format)format, 0);
            fs_stream_options o = FS_STREAM_INIT;
            o.memory = 1;
            fs_stream *stream = opened_stream(names, 2, &o);
            fs_panel p = FS_PANEL_INIT;
            left = times;
            const fs_result result = fs_stream_next(stream, &p);
            left = -1;
            if (result != FS_OK) expect_words(result, FS_ENOMEM, "memory", "");
            if (result != FS_OK) assert_int_equal(fs_stream_next(stream, &p), FS_OK);
            assert_true(p.A.rows >= 1 && p.row0 == 0);
            fs_stream_destroy(stream);
            if (result == FS_OK) break;
        }
}

static void memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    const int64_t count = save_shards(cuts[2], FS_F32, 0);
    for (int times = 0;; times++) {
        fs_stream *stream = NULL;
        left = times;
        const fs_result result = fs_stream_create(&stream, names, count, NULL);
        left = -1;
        if (result == FS_OK) {
            fs_stream_destroy(stream);
            assert_true(times >= (int)count + 2); /* a name for each, and the stream, its files */
            return;
        }
        assert_null(stream);
        expect_words(result, FS_ENOMEM, "memory", "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_comes_once_however_files_are_cut),
        cmocka_unit_test(integers_are_converted_panel_by_panel),
        cmocka_unit_test(files_that_are_read_whole_are_cut_into_panels),
        cmocka_unit_test(sparse_files_are_panels),
        cmocka_unit_test(panels_do_not_depend_on_where_files_end),
        cmocka_unit_test(a_stream_goes_on_from_any_panel),
        cmocka_unit_test(elements_need_no_alignment_and_files_may_repeat),
        cmocka_unit_test(there_may_be_more_files_than_descriptors),
        cmocka_unit_test(files_that_do_not_go_together_are_refused),
        cmocka_unit_test(rows_of_another_length_are_refused),
        cmocka_unit_test(files_that_are_read_whole_and_end_early_are_errors),
        cmocka_unit_test(files_that_change_while_they_are_read_are_errors),
        cmocka_unit_test(memory_that_runs_out_while_a_file_is_read_whole),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
