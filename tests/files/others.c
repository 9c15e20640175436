/* others.c - files that NumPy and SciPy wrote (others.py) hold what was written.
 *
 * usage: others FOLDER.  Missing files were not written; others.py has the conditions.  Exits 77 if there is no folder,
 * because there is no NumPy. */
#include "tests/support/files.h"

#include <dirent.h>
#include <unistd.h>

#include "base/dtype.h"

enum { ROWS = 13, COLS = 5 };
static const char *folder;

static int is_there(const char *name) { return access(name, R_OK) == 0; }

/* The same whether the file is dense or sparse. */
static void expect_values(const char *name, int64_t rows, int64_t cols, double (*value)(int64_t, int64_t))
{
    file_matrix file = opened(name, NULL);
    double dense[ROWS * COLS];
    for (int64_t p = 0; p < rows * cols; p++) dense[p] = value(p / cols, p % cols);
    if (file.is_sparse) expect_sparse(&file, rows, cols, dense);
    else {
        const fs_matrix *m = &file.dense;
        assert_true(m->rows == rows && m->cols == cols);
        for (int64_t p = 0; p < rows * cols; p++)
            assert_true(fsi_load(m->data, m->dtype, p / cols * m->row_stride + p % cols * m->col_stride) == dense[p]);
    }
    file_close(&file);
}

static void npy_files_of_numpy_are_read(void **state)
{
    static const char *const codes[] = {"", "f4", "f8", "f2"};
    char name[64];
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_F16; dtype++)
        for (int order = 0; order < 2; order++)
            for (int version = 1; version <= 3; version++) {
                snprintf(name, sizeof name, "%s-%c-%d.npy", codes[dtype], order ? 'F' : 'C', version);
                file_matrix file = opened(name, NULL);
                assert_true(order ? file.dense.row_stride == 1 : file.dense.col_stride == 1);
                assert_null(file.memory[0]); /* NumPy aligns its data */
                expect_dense(&file, ROWS, COLS, (fs_dtype)dtype);
                file_close(&file);
            }
    expect_values("saved.npy", ROWS, 1, element);
    expect_values("cube.npy", ROWS, COLS, element);
}

static double twice(int64_t i, int64_t j) { return 2 * element(i, j); }
static double positive(int64_t i, int64_t j) { return element(i, j) > 0; }

static void npy_files_of_all_numbers_are_read(void **state)
{
    static const char *const codes[] = {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"};
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        for (int big = 0; big < 2; big++) {
            char name[64];
            const int is_float = codes[i][0] == 'f', is_signed = codes[i][0] == 'i';
            if (big ? codes[i][1] == '1' : is_float) continue; /* a single byte has no order; little floats are above */
            snprintf(name, sizeof name, "number-%c%s.npy", big ? '>' : '<', codes[i]);
            expect_values(name, ROWS, COLS, is_float || is_signed ? twice : positive);
        }
}

static void tables_of_numpy_and_python_are_read(void **state)
{
    static const char *const files[] = {"spaces.txt", "commas.csv", "semicolons.csv.gz", "tabs.tsv", "quoted.csv"};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) expect_values(files[i], ROWS, COLS, element);
}

static void archives_of_numpy_are_read(void **state)
{
    const file_options A = {.tensor = "A"};
    (void)state;
    expect_values("packed.npz", ROWS, COLS, element);
    file_matrix file = opened("arrays.npz", &A);
    expect_dense(&file, ROWS, COLS, FS_F64);
    file_close(&file);
}

static void sparse_matrices_of_scipy_are_read(void **state)
{
    static const char *const files[] = {"csr-0.npz", "csr-1.npz", "csc-0.npz", "csc-1.npz", "coo-0.npz", "coo-1.npz"};
    (void)state;
    if (!is_there("dense.mtx")) skip();
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) expect_values(files[i], ROWS, COLS, element);
    if (is_there("array.npz")) expect_values("array.npz", ROWS, COLS, twice);
}

static void tensors_are_read(void **state)
{
    static const char *const names[] = {"", "f32", "f64", "f16", "bf16"};
    (void)state;
    for (int dtype = FS_F32; dtype <= FS_BF16; dtype++) {
        const file_options options = {.tensor = names[dtype]};
        file_matrix file = opened("all.safetensors", &options);
        expect_dense(&file, ROWS, COLS, (fs_dtype)dtype);
        file_close(&file);
    }
}

static double sum(int64_t i, int64_t j) { return element(i, j) + element(j, i); }
static double difference(int64_t i, int64_t j) { return element(i, j) - element(j, i); }
static double pattern(int64_t i, int64_t j) { return element(i, j) != 0; }

static void matrix_market_files_of_scipy_are_read(void **state)
{
    static const struct {
        const char *name;
        int64_t rows;
        double (*value)(int64_t, int64_t);
    } cases[] = {{"dense.mtx", ROWS, element},   {"sparse.mtx", ROWS, element},        {"symmetric.mtx", COLS, sum},
                 {"skew.mtx", COLS, difference}, {"skew-dense.mtx", COLS, difference}, {"integer.mtx", ROWS, twice},
                 {"pattern.mtx", ROWS, pattern}};
    (void)state;
    if (!is_there("dense.mtx")) skip();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char packed[64];
        snprintf(packed, sizeof packed, "%s.gz", cases[i].name);
        expect_values(cases[i].name, cases[i].rows, COLS, cases[i].value);
        expect_values(packed, cases[i].rows, COLS, cases[i].value);
    }
}

static void what_is_not_read_is_refused(void **state)
{
    int count = 0;
    (void)state;
    DIR *all = opendir(".");
    assert_non_null(all);
    for (struct dirent *one; (one = readdir(all));)
        if (!strncmp(one->d_name, "refused", 7)) {
            REFUSED(one->d_name, NULL, one->d_name);
            count++;
        }
    closedir(all);
    assert_true(count >= 6);
}

static int enter(void **state)
{
    (void)state;
    return chdir(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_files_of_numpy_are_read),           cmocka_unit_test(npy_files_of_all_numbers_are_read),
        cmocka_unit_test(tables_of_numpy_and_python_are_read),   cmocka_unit_test(archives_of_numpy_are_read),
        cmocka_unit_test(sparse_matrices_of_scipy_are_read),     cmocka_unit_test(tensors_are_read),
        cmocka_unit_test(matrix_market_files_of_scipy_are_read), cmocka_unit_test(what_is_not_read_is_refused),
    };
    if (argc != 2) return fprintf(stderr, "usage: others FOLDER\n"), 2;
    folder = argv[1];
    if (!is_there(folder)) return 77;
    return cmocka_run_group_tests(tests, enter, NULL);
}
