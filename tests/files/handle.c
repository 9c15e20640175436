/* handle.c - fs_file: what an open file reports, its matrix, and files that are written; what streams report. */
#include "base/dtype.h"
#include "flashsketch_files.h"
#include "tests/support/files.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
char *__wrap_strdup(const char *text);

static int left = -1; /* allocations that still succeed; negative: all */

static int is_out(void) { return left > 0 ? left--, 0 : left == 0; }
void *__wrap_malloc(size_t size) { return is_out() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return is_out() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *memory, size_t size) { return is_out() ? NULL : __real_realloc(memory, size); }
char *__wrap_strdup(const char *text) { return is_out() ? NULL : __real_strdup(text); }

enum { ROWS = 5, COLS = 3 };

static fs_file *opened_file(const char *path, const fs_file_options *options)
{
    fs_file *file = NULL;
    if (fs_file_open(&file, path, options)) fail_msg("%s", fs_error_message());
    return file;
}

static fs_file_info info_of(const fs_file *file)
{
    fs_file_info info = FS_FILE_INFO_INIT;
    assert_int_equal(fs_file_get_info(file, &info), FS_OK);
    return info;
}

static void save_stream(const char *path, const fs_matrix *m, fs_dtype dtype, uint32_t *crc)
{
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fs_file_write_npy(out, m, dtype, crc), FS_OK);
    assert_int_equal(fclose(out), 0);
}

static void fill(float *data)
{
    for (int64_t p = 0; p < ROWS * COLS; p++) data[p] = (float)element(p / COLS, p % COLS);
}

/* Every type that npy has, from f32; the CRC-32 is that of the elements as they are read again. */
static void npy_files_are_read_as_they_were_written(void **state)
{
    static const fs_dtype types[] = {FS_F16, FS_F32, FS_F64};
    float data[ROWS * COLS];
    const fs_matrix m = fs_row_major(data, ROWS, COLS, FS_F32);
    (void)state;
    fill(data);
    for (int t = 0; t < 3; t++)
        for (int header_only = 0; header_only < 2; header_only++) {
            fs_file_options o = FS_FILE_INIT;
            fs_matrix A;
            uint32_t crc = 0;
            save_stream("A.npy", &m, types[t], &crc);
            o.header_only = header_only;
            fs_file *file = opened_file("A.npy", &o);
            const fs_file_info info = info_of(file);
            assert_true(info.format == FS_FILE_NPY && !info.gzip && !info.is_sparse && !info.by_columns);
            assert_true(info.rows == ROWS && info.cols == COLS && info.dtype == types[t] && !info.tensors);
            assert_true(info.dimensions == 2 && info.shape[0] == ROWS && info.shape[1] == COLS);
            assert_string_equal(info.stored, fs_file_dtype_name(types[t]));
            assert_string_equal(info.why, "");
            assert_int_equal(fs_file_matrix(file, &A), FS_OK);
            for (int64_t i = 0; i < ROWS; i++)
                for (int64_t j = 0; j < COLS; j++)
                    assert_true(fsi_load(A.data, A.dtype, i * A.row_stride + j) == element(i, j));
            assert_int_equal(fs_file_crc32(&A), crc);
            fs_sparse S;
            assert_int_equal(fs_file_sparse(file, &S), FS_EINVAL);
            assert_non_null(strstr(fs_error_message(), "A.npy is dense"));
            fs_file_close(file);
        }
}

static void what_cannot_be_written_is_refused(void **state)
{
    float data[ROWS * COLS] = {0};
    fs_matrix m = fs_row_major(data, ROWS, COLS, FS_F32);
    FILE *out = fopen("A.npy", "wb");
    (void)state;
    assert_non_null(out);
    assert_int_equal(fs_file_write_npy(out, &m, FS_BF16, NULL), FS_EINVAL);
    assert_non_null(strstr(fs_error_message(), "bf16"));
    m = fs_col_major(data, ROWS, COLS, FS_F32);
    assert_int_equal(fs_file_write_npy(out, &m, FS_F32, NULL), FS_EINVAL);
    assert_non_null(strstr(fs_error_message(), "strides are 1 and 5"));
    assert_int_equal(fs_file_write_safetensors(out, &m, "Y", "key", "text"), FS_EINVAL);
    assert_int_equal(ftell(out), 0);
    fclose(out);
}

static void safetensors_files_have_tensors_and_metadata(void **state)
{
    float data[ROWS * COLS];
    const fs_matrix m = fs_row_major(data, ROWS, COLS, FS_F32);
    fs_file_tensor tensor = FS_FILE_TENSOR_INIT;
    fs_matrix A;
    (void)state;
    fill(data);
    FILE *out = fopen("A.safetensors", "wb");
    assert_non_null(out);
    assert_int_equal(fs_file_write_safetensors(out, &m, "Y", "key", "a \"text\""), FS_OK);
    assert_int_equal(fclose(out), 0);
    fs_file *file = opened_file("A.safetensors", NULL);
    const fs_file_info info = info_of(file);
    assert_true(info.format == FS_FILE_SAFETENSORS && info.tensors == 1 && info.rows == ROWS && info.cols == COLS);
    assert_int_equal(fs_file_get_tensor(file, 0, &tensor), FS_OK);
    assert_string_equal(tensor.name, "Y");
    assert_string_equal(tensor.dtype, "F32");
    assert_true(tensor.dimensions == 2 && tensor.shape[0] == ROWS && tensor.shape[1] == COLS);
    assert_int_equal(fs_file_get_tensor(file, 1, &tensor), FS_EINVAL);
    assert_string_equal(fs_file_metadata(file, "key"), "a \"text\"");
    assert_null(fs_file_metadata(file, "other"));
    assert_int_equal(fs_file_matrix(file, &A), FS_OK);
    assert_memory_equal(A.data, data, sizeof data);
    fs_file_close(file);
}

/* A file of two tensors has no matrix; it is an error unless it is only to be described. */
static void files_without_a_matrix_are_described(void **state)
{
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                                 "\"b\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[8,12]}}";
    fs_file_options o = FS_FILE_INIT;
    fs_matrix A;
    bytes b = {.count = 0};
    fs_file *file = NULL;
    (void)state;
    put_little(&b, sizeof header - 1, 8);
    put_text(&b, "%s", header);
    put_little(&b, 0, 8);
    put_little(&b, 0, 4);
    save(&b, "A.safetensors");
    assert_int_equal(fs_file_open(&file, "A.safetensors", NULL), FS_EFILE);
    assert_null(file);
    o.describe = o.header_only = 1;
    file = opened_file("A.safetensors", &o);
    fs_file_info info = info_of(file);
    assert_true(info.tensors == 2 && !info.rows && !info.dtype);
    assert_string_equal(info.why, "the file holds 2 tensors");
    assert_int_equal(fs_file_matrix(file, &A), FS_EINVAL);
    fs_file_close(file);
    o.tensor = "a";
    file = opened_file("A.safetensors", &o);
    info = info_of(file);
    assert_true(info.rows == 1 && info.cols == 2 && !info.tensors);
    assert_int_equal(fs_file_matrix(file, &A), FS_OK);
    fs_file_close(file);
}

static void sparse_files_have_entries(void **state)
{
    fs_sparse S;
    bytes b = {.count = 0};
    (void)state;
    put_text(&b, "%%%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n1 1 1\n2 1 2\n");
    save(&b, "A.mtx");
    fs_file *file = opened_file("A.mtx", NULL);
    const fs_file_info info = info_of(file);
    assert_true(info.is_sparse && info.entries == 3 && info.rows == 3 && info.dtype == FS_F64);
    assert_int_equal(fs_file_sparse(file, &S), FS_OK);
    assert_int_equal(S.nnz, 3);
    fs_matrix A;
    assert_int_equal(fs_file_matrix(file, &A), FS_EINVAL);
    fs_file_close(file);
}

static void wrong_options_are_refused(void **state)
{
    fs_file_options o = FS_FILE_INIT;
    fs_file *file = NULL;
    (void)state;
    o.format = (fs_file_format)8;
    assert_int_equal(fs_file_open(&file, "A.npy", &o), FS_EINVAL);
    o = (fs_file_options)FS_FILE_INIT;
    o.max_rows = -1;
    assert_int_equal(fs_file_open(&file, "A.npy", &o), FS_EINVAL);
    assert_int_equal(fs_file_open(&file, NULL, NULL), FS_EINVAL);
    assert_int_equal(fs_file_open(&file, "absent", NULL), FS_EFILE);
    fs_file_close(NULL);
}

static void memory_that_runs_out_is_an_error(void **state)
{
    static const char header[] = "{\"a\" :{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                                 "\"__metadata__\":{\"key\":\"text\"}}";
    bytes b = {.count = 0};
    (void)state;
    put_little(&b, sizeof header - 1, 8);
    put_text(&b, "%s", header);
    put_little(&b, 0, 8);
    save(&b, "A.safetensors");
    for (int times = 0;; times++) {
        fs_file *file = NULL;
        left = times;
        const fs_result result = fs_file_open(&file, "A.safetensors", NULL);
        left = -1;
        if (result == FS_OK) {
            assert_string_equal(fs_file_metadata(file, "key"), "text");
            assert_true(times > 10);
            fs_file_close(file);
            return;
        }
        assert_int_equal(result, FS_ENOMEM);
        assert_null(file);
        assert_non_null(strstr(fs_error_message(), "memory"));
    }
}

/* streams ---------------------------------------------------------------------------------------------------- */

static const char *const halves[] = {"1.npy", "2.npy"};

/* The same rows twice, in two files. */
static fs_stream *opened_halves(void)
{
    float data[ROWS * COLS];
    const fs_matrix m = fs_row_major(data, ROWS, COLS, FS_F32);
    fs_stream *stream = NULL;
    fill(data);
    for (int i = 0; i < 2; i++) save_stream(halves[i], &m, FS_F32, NULL);
    if (fs_stream_create(&stream, halves, 2, NULL)) fail_msg("%s", fs_error_message());
    return stream;
}

/* Panels that are cut again hold the same elements; INT64_MAX makes row-major files one panel. */
static void panels_can_be_cut_again(void **state)
{
    static const int64_t sizes[] = {1, 4 * COLS, INT64_MAX}, expected[] = {2 * ROWS * COLS, 2 * ROWS, 1};
    fs_stream *stream = opened_halves();
    (void)state;
    for (int s = 0; s < 3; s++) {
        fs_panel p = FS_PANEL_INIT;
        int64_t elements = 0, panels = 0;
        assert_int_equal(fs_stream_set_memory(stream, sizes[s]), FS_OK);
        assert_int_equal(fs_stream_panels(stream), expected[s]);
        for (;; panels++) {
            assert_int_equal(fs_stream_next(stream, &p), FS_OK);
            if (!p.A.rows) break;
            elements += p.A.rows * p.A.cols;
            for (int64_t i = 0; i < p.A.rows; i++)
                for (int64_t j = 0; j < p.A.cols; j++)
                    assert_true(((const float *)p.A.data)[i * p.A.row_stride + j] ==
                                (float)element((p.row0 + i) % ROWS, p.col0 + j));
        }
        assert_int_equal(elements, 2 * ROWS * COLS);
        assert_int_equal(panels, expected[s]);
    }
    assert_int_equal(fs_stream_set_memory(stream, 0), FS_EINVAL);
    fs_stream_destroy(stream);
}

static void streams_describe_their_files(void **state)
{
    fs_stream_file file = FS_STREAM_FILE_INIT;
    fs_stream *stream = opened_halves();
    (void)state;
    assert_false(fs_stream_is_sparse(stream));
    assert_int_equal(fs_stream_get_file(stream, 1, &file), FS_OK);
    assert_string_equal(file.path, halves[1]);
    assert_true(file.start > 0 && file.bytes == file.start + ROWS * COLS * 4 && file.changed_ns > 0);
    assert_int_equal(fs_stream_get_file(stream, 2, &file), FS_EINVAL);
    fs_stream_destroy(stream);
}

/* A single file that must be read whole is read when the stream is created. */
static void memory_that_runs_out_while_the_only_file_is_read(void **state)
{
    const char *path = "A.csv";
    bytes b = {.count = 0};
    (void)state;
    for (int i = 0; i < 9; i++) put_text(&b, "%d,2\n", i);
    save(&b, path);
    for (int times = 0;; times++) {
        fs_stream *stream = NULL;
        fs_panel p = FS_PANEL_INIT;
        left = times;
        const fs_result result = fs_stream_create(&stream, &path, 1, NULL);
        left = -1;
        if (result != FS_OK) {
            assert_int_equal(result, FS_ENOMEM);
            assert_null(stream);
            continue;
        }
        assert_int_equal(remove(path), 0); /* it is not opened again */
        assert_int_equal(fs_stream_next(stream, &p), FS_OK);
        assert_int_equal(p.A.rows, 9);
        assert_true(times > 4);
        fs_stream_destroy(stream);
        return;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_files_are_read_as_they_were_written),
        cmocka_unit_test(what_cannot_be_written_is_refused),
        cmocka_unit_test(safetensors_files_have_tensors_and_metadata),
        cmocka_unit_test(files_without_a_matrix_are_described),
        cmocka_unit_test(sparse_files_have_entries),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
        cmocka_unit_test(panels_can_be_cut_again),
        cmocka_unit_test(streams_describe_their_files),
        cmocka_unit_test(memory_that_runs_out_while_the_only_file_is_read),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
