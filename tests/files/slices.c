/* slices.c - a stream as the matrix of a solver: every pass gives the same whole rows in their order, however the files
 * are cut and stored; a file that changes between two passes ends the solver with its name.
 *
 * The linker sends malloc, calloc and aligned_alloc of the readers here, so that memory can run out at any moment. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dtype.h"
#include "tests/files/shards.h"

#include "tests/support/failing_malloc.h"

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return is_out() ? NULL : __real_aligned_alloc(alignment, size);
}

/* passes ----------------------------------------------------------------------------------------------------- */

static fs_slices slices_of(fs_stream *stream)
{
    fs_slices A = FS_SLICES_INIT;
    if (fs_stream_slices(stream, &A) != FS_OK) {
        print_error("%s\n", fs_error_message());
        fail();
    }
    return A;
}

/* What A[i, j] is: of the files, or of their transpose. */
static double wanted(int batch, int64_t i, int64_t j) { return batch ? value(j, i) : value(i, j); }

/* Files whose columns of A do not join are refused; whether these were. */
static int are_refused(fs_stream *stream, int apart)
{
    fs_slices A = FS_SLICES_INIT;
    if (!apart) return 0;
    expect_words(fs_stream_slices(stream, &A), FS_EINVAL, "s0.npy: a solver takes whole rows of A",
                 "join them to one file");
    assert_null(A.next);
    fs_stream_destroy(stream);
    return 1;
}

/* One read of A; returns how many slices there were, none of more than `room` bytes unless it is one row. */
static int64_t pass(const fs_slices *A, int batch, int64_t room)
{
    int64_t count = 0, row = 0;
    assert_int_equal(A->rewind(A->user), FS_OK);
    for (; row < A->rows; count++) {
        fs_matrix m = {0};
        const fs_sparse *sparse = NULL;
        assert_int_equal(A->next(A->user, &m, &sparse), FS_OK);
        assert_null(sparse);
        assert_true(m.rows >= 1 && m.rows <= A->rows - row && m.cols == A->cols && m.dtype == A->dtype);
        assert_true(m.rows == 1 || m.rows * m.cols * fsi_dtype_size(m.dtype) <= room);
        for (int64_t i = 0; i < m.rows; i++)
            for (int64_t j = 0; j < m.cols; j++)
                assert_true(fsi_load(m.data, m.dtype, m.offset + i * m.row_stride + j * m.col_stride) ==
                            wanted(batch, row + i, j));
        row += m.rows;
    }
    return count;
}

static const int64_t memories[] = {1, 8 * COLS, 1000, 8 * ROWS, 5000, (int64_t)1 << 40};
enum { MEMORIES = sizeof memories / sizeof memories[0] };

static void every_pass_gives_all_rows_in_order(void **state)
{
    (void)state;
    for (int cut = 0; cut < CUTS; cut++)
        for (int how = 0; how < 4; how++)
            for (int t = FS_F32; t <= FS_F16; t++)
                for (int m = cut == 2 && t == FS_F32 ? 0 : 1; m < MEMORIES; m++) { /* the smallest take long */
                    fs_stream_options o = FS_STREAM_INIT;
                    const int64_t count = save_shards(cuts[cut], (fs_dtype)t, how & 1);
                    o.memory = memories[m], o.batch_major = how >> 1;
                    fs_stream *stream = opened_stream(names, count, &o);
                    if (are_refused(stream, how == 3 && count > 1)) continue;
                    const fs_slices A = slices_of(stream);
                    assert_true(A.rows == (o.batch_major ? COLS : ROWS) && A.cols == (o.batch_major ? ROWS : COLS));
                    assert_int_equal(A.dtype, t);
                    const int64_t slices = pass(&A, o.batch_major, memories[m]);
                    assert_int_equal(slices, fs_stream_panels(stream));
                    if (m == 0) assert_int_equal(slices, A.rows);
                    if (m == MEMORIES - 1 && !((how & 1) && count > 1)) assert_int_equal(slices, 1);
                    for (int again = 0; again < 2; again++)
                        assert_int_equal(pass(&A, o.batch_major, memories[m]), slices);
                    fs_stream_destroy(stream);
                }
}

static void files_that_are_read_whole_come_again(void **state)
{
    (void)state;
    for (int format = IDX; format <= TABLE; format++)
        for (int cut = 0; cut < CUTS; cut++)
            for (int batch = 0; batch < 2; batch++) {
                fs_stream_options o = FS_STREAM_INIT;
                int64_t count = 0;
                for (const int64_t *at = cuts[cut]; at[count] < ROWS; count++)
                    save_whole(names[count], at[count], at[count + 1], (whole_format)format, count % 2);
                o.memory = 3000, o.batch_major = batch;
                fs_stream *stream = opened_stream(names, count, &o);
                if (are_refused(stream, format == ARRAY && batch && count > 1)) continue;
                const fs_slices A = slices_of(stream);
                for (int again = 0; again < 3; again++) pass(&A, batch, o.memory);
                fs_stream_destroy(stream);
            }
}

/* Sparse files are slices as they are: rows of A, or the one file that holds its columns. */
static void sparse_files_are_slices(void **state)
{
    (void)state;
    for (int cut = 0; cut < CUTS; cut++)
        for (int batch = 0; batch < 2; batch++) {
            fs_stream_options o = FS_STREAM_INIT;
            int64_t count = 0;
            for (const int64_t *at = cuts[cut]; at[count] < ROWS; count++)
                save_whole(names[count], at[count], at[count + 1], ENTRIES, count % 2);
            o.batch_major = batch;
            fs_stream *stream = opened_stream(names, count, &o);
            if (are_refused(stream, batch && count > 1)) continue;
            const fs_slices A = slices_of(stream);
            assert_int_equal(A.dtype, FS_F64);
            for (int again = 0; again < 3; again++) {
                double all[ROWS * COLS] = {0};
                int64_t row = 0;
                assert_int_equal(A.rewind(A.user), FS_OK);
                while (row < A.rows) {
                    fs_matrix m = {0};
                    const fs_sparse *p = NULL;
                    assert_int_equal(A.next(A.user, &m, &p), FS_OK);
                    assert_true(p && !m.data && p->cols == A.cols && p->format == (batch ? FS_CSC : FS_CSR));
                    const int64_t lines = batch ? p->cols : p->rows;
                    for (int64_t line = 0; line < lines; line++)
                        for (int64_t e = fsi_index_load(p->ptr, p->index_type, line);
                             e < fsi_index_load(p->ptr, p->index_type, line + 1); e++)
                            all[((batch ? 0 : row) + line) * COLS + fsi_index_load(p->index, p->index_type, e)] +=
                                ((const double *)p->value)[e];
                    row += p->rows;
                }
                for (int64_t i = 0; i < ROWS; i++)
                    for (int64_t j = 0; j < COLS; j++) assert_true(all[i * COLS + j] == value(i, j));
            }
            fs_stream_destroy(stream);
        }
}

/* The memory may be another one between two solvers, and panels are of whole rows from then on. */
static void panels_stay_whole_rows(void **state)
{
    (void)state;
    fs_stream_options o = FS_STREAM_INIT;
    fs_panel p = FS_PANEL_INIT;
    fs_stream *stream = opened_stream(names, save_shards(cuts[2], FS_F64, 1), &o);
    const fs_slices A = slices_of(stream);
    assert_int_equal(pass(&A, 0, (int64_t)64 << 20), 4); /* one for each file: their columns do not join */
    assert_int_equal(fs_stream_set_memory(stream, 8 * COLS * 10), FS_OK);
    assert_int_equal(pass(&A, 0, 8 * COLS * 10), 10 + 1 + 1 + 11);
    assert_int_equal(fs_stream_seek(stream, 0), FS_OK);
    assert_int_equal(fs_stream_next(stream, &p), FS_OK);
    assert_true(p.A.rows == 10 && p.A.cols == COLS && p.row0 == 0 && p.col0 == 0);
    fs_stream_destroy(stream);
}

/* failures --------------------------------------------------------------------------------------------------- */

/* A pipe comes once: it must have been copied to a temporary file. */
static void a_pipe_must_be_reread(void **state)
{
    static const char *const input[] = {"-"};
    (void)state;
    for (int reread = 0; reread < 2; reread++) {
        int ends[2];
        char all[1 << 15];
        fs_stream_options o = FS_STREAM_INIT;
        fs_slices A = FS_SLICES_INIT;
        save_npy("s0.npy", 0, ROWS, FS_F32, 0);
        FILE *file = fopen("s0.npy", "rb");
        const size_t count = fread(all, 1, sizeof all, file);
        fclose(file);
        assert_true(count == 128 + 4 * ROWS * COLS && pipe(ends) == 0);
        assert_int_equal(write(ends[1], all, count), count); /* as much as a pipe holds */
        close(ends[1]);
        assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
        close(ends[0]);
        o.reread = reread, o.memory = 1000;
        fs_stream *stream = opened_stream(input, 1, &o);
        if (reread) {
            A = slices_of(stream);
            for (int again = 0; again < 3; again++) pass(&A, 0, o.memory);
        } else expect_words(fs_stream_slices(stream, &A), FS_EINVAL, "standard input", "options.reread");
        fs_stream_destroy(stream);
    }
}

/* A solver's view of a stream that counts its passes, and changes a file when pass 7 is in its middle. */
typedef struct changing {
    fs_slices inner;
    int passes, slices, way;
} changing;

static fs_result rewind_changing(void *user)
{
    changing *c = user;
    c->passes++;
    c->slices = 0;
    return c->inner.rewind(c->inner.user);
}

static fs_result next_changing(void *user, fs_matrix *dense, const fs_sparse **sparse)
{
    const struct timespec then[2] = {{1, 0}, {1, 0}};
    changing *c = user;
    if (c->passes == 7 && c->slices++ == 2) {
        if (c->way == 0) assert_int_equal(truncate("s1.npy", 5000), 0);
        else if (c->way == 1) assert_int_equal(utimensat(AT_FDCWD, "s1.npy", then, 0), 0);
        else assert_int_equal(unlink("s1.npy"), 0);
    }
    return c->inner.next(c->inner.user, dense, sparse);
}

static void a_file_that_changes_in_pass_7_ends_the_solver(void **state)
{
    static const char *const words[] = {"it had 8448 bytes and has 5000", "but was written to",
                                        "can no longer be opened"};
    (void)state;
    for (int way = 0; way < 3; way++) {
        fs_stream_options o = FS_STREAM_INIT;
        fs_svd_options how = FS_SVD_INIT;
        fs_svd_report report = FS_SVD_REPORT_INIT;
        fs_operand A = FS_OPERAND_INIT;
        fs_context *ctx;
        double s[2] = {0};
        o.memory = 1000;
        how.rank = 2, how.oversampling = 3, how.power_steps = 8;
        fs_stream *stream = opened_stream(names, save_shards(cuts[3], FS_F32, 0), &o);
        changing c = {.inner = slices_of(stream), .way = way};
        fs_slices seen = c.inner;
        seen.rewind = rewind_changing, seen.next = next_changing, seen.user = &c;
        A.slices = &seen;
        assert_int_equal(fs_context_create(&ctx, NULL), FS_OK);
        const fs_result result = fs_svd(ctx, &A, &how, NULL, s, NULL, &report);
        fs_context_destroy(ctx);
        fs_stream_destroy(stream);
        if (result == FS_EUNSUPPORTED) skip(); /* there is no OpenBLAS */
        expect_words(result, FS_EFILE, "s1.npy: ", words[way]);
        assert_int_equal(c.passes, 7);
    }
}

/* A slice for which there was no memory can be requested again. */
static void memory_that_runs_out_in_a_pass(void **state)
{
    (void)state;
    for (int fortran = 0; fortran < 2; fortran++)
        for (int times = 0;; times++) {
            fs_stream_options o = FS_STREAM_INIT;
            fs_matrix m = {0};
            const fs_sparse *sparse = NULL;
            o.memory = 20 * 4 * COLS;
            fs_stream *stream = opened_stream(names, save_shards(cuts[3], FS_F32, fortran), &o);
            const fs_slices A = slices_of(stream);
            assert_int_equal(A.rewind(A.user), FS_OK);
            assert_int_equal(fs_stream_seek(stream, 2),
                             FS_OK); /* of two files, or of pieces of columns: it is copied */
            left = times;
            const fs_result result = A.next(A.user, &m, &sparse);
            left = -1;
            if (result != FS_OK) {
                expect_words(result, FS_ENOMEM, "s0.npy: ", "memory");
                assert_int_equal(A.next(A.user, &m, &sparse), FS_OK);
            }
            assert_true(m.rows >= 1 && fsi_load(m.data, FS_F32, 0) == value(40, 0));
            fs_stream_destroy(stream);
            if (result == FS_OK) {
                assert_true(times >= 1);
                break;
            }
        }
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    fs_slices A = FS_SLICES_INIT;
    fs_stream *stream = opened_stream(names, save_shards(cuts[0], FS_F32, 0), NULL);
    expect_words(fs_stream_slices(NULL, &A), FS_EINVAL, "fs_stream_slices", "NULL");
    expect_words(fs_stream_slices(stream, NULL), FS_EINVAL, "fs_stream_slices", "NULL");
    A.size = 3;
    expect_words(fs_stream_slices(stream, &A), FS_EINVAL, "fs_stream_slices", "size");
    assert_null(A.next);
    fs_stream_destroy(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pass_gives_all_rows_in_order),
        cmocka_unit_test(files_that_are_read_whole_come_again),
        cmocka_unit_test(sparse_files_are_slices),
        cmocka_unit_test(panels_stay_whole_rows),
        cmocka_unit_test(a_pipe_must_be_reread),
        cmocka_unit_test(a_file_that_changes_in_pass_7_ends_the_solver),
        cmocka_unit_test(memory_that_runs_out_in_a_pass),
        cmocka_unit_test(wrong_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
