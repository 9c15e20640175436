/* mtx.c - Matrix Market files: every kind is read, with and without gzip; any other line is refused by number. */
#include "tests/support/files.h"

#include <math.h>

#define BANNER "%%%%MatrixMarket matrix "

/* A file with this text, packed or not. */
static void write_text(int gzip, const char *text)
{
    bytes b = {.count = 0};
    put_text(&b, "%s", text);
    (gzip ? save_gzip : save)(&b, "A.mtx");
}

typedef struct sparse_case {
    const char *text, *stored;
    int64_t rows, cols;
    double dense[12];
} sparse_case;

static void every_kind_of_coordinates_becomes_csr(void **state)
{
    static const sparse_case cases[] = {
        {"%%MatrixMarket matrix coordinate real general\n% made by hand\n%\n\n3 4 5\n1 1 1.5\n3 4 -2e-3\n2 2 .25\n"
         "1 4 7.\n3 1 +1E2\n",
         "coordinate real general",
         3,
         4,
         {1.5, 0, 0, 7, 0, .25, 0, 0, 100, 0, 0, -2e-3}},
        {"%%matrixmarket MATRIX Coordinate Double General\r\n2 2 1\r\n\r\n  2\t1   3.125  \r\n\r\n",
         "coordinate real general",
         2,
         2,
         {0, 0, 3.125, 0}},
        {"%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 2 -9007199254740992\n2 1 +3",
         "coordinate integer general",
         2,
         2,
         {0, -0x1p53, 3, 0}},
        {"%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 3\n2 1\n",
         "coordinate pattern general",
         2,
         3,
         {0, 0, 1, 1, 0, 0}},
        {"%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 4\n3 1 5\n3 2 6\n",
         "coordinate real symmetric",
         3,
         3,
         {4, 0, 5, 0, 0, 6, 5, 6, 0}},
        {"%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n2 1\n2 2\n",
         "coordinate pattern symmetric",
         2,
         2,
         {0, 1, 1, 1}},
        {"%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 5\n3 2 -6\n",
         "coordinate real skew-symmetric",
         3,
         3,
         {0, -5, 0, 5, 0, 6, 0, -6, 0}},
        {"%%MatrixMarket matrix coordinate real general\n2 2 0\n", "coordinate real general", 2, 2, {0}},
        {"%%MatrixMarket matrix coordinate real general\n1 2 3\n1 2 1\n1 2 2\n1 1 3\n",
         "coordinate real general",
         1,
         2,
         {3, 3}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int gzip = 0; gzip < 2; gzip++) {
            write_text(gzip, cases[i].text);
            file_matrix file = opened("A.mtx", NULL);
            assert_int_equal(file.format, FILE_MTX);
            assert_int_equal(file.gzip, gzip);
            assert_string_equal(file.stored, cases[i].stored);
            expect_sparse(&file, cases[i].rows, cases[i].cols, cases[i].dense);
            file_close(&file);
        }
}

static void every_kind_of_array_becomes_columns(void **state)
{
    static const sparse_case cases[] = {
        {"%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n",
         "array real general",
         2,
         3,
         {1, 3, 5, 2, 4, 6}},
        {"%%MatrixMarket matrix array integer general\n% c\n2 2\n1 2\n-3 4",
         "array integer general",
         2,
         2,
         {1, -3, 2, 4}},
        {"%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n", "array real symmetric", 2, 2, {1, 2, 2, 3}},
        {"%%MatrixMarket matrix array real skew-symmetric\n2 2\n7\n", "array real skew-symmetric", 2, 2, {0, -7, 7, 0}},
        {"%%MatrixMarket matrix array real skew-symmetric\n1 1\n", "array real skew-symmetric", 1, 1, {0}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int gzip = 0; gzip < 2; gzip++) {
            write_text(gzip, cases[i].text);
            file_matrix file = opened("A.mtx", NULL);
            const fs_matrix *m = &file.dense;
            assert_true(!file.is_sparse && m->rows == cases[i].rows && m->cols == cases[i].cols && m->dtype == FS_F64);
            assert_string_equal(file.stored, cases[i].stored);
            for (int64_t p = 0; p < m->rows * m->cols; p++)
                assert_true(((double *)m->data)[p / m->cols * m->row_stride + p % m->cols * m->col_stride] ==
                            cases[i].dense[p]);
            file_close(&file);
        }
}

/* Against strtod, on numbers of all lengths. */
static void reals_are_rounded_correctly(void **state)
{
    static const char *const fixed[] = {"0",
                                        "-0",
                                        "1",
                                        "0.1",
                                        "123456789012345",
                                        "1234567890123456",
                                        "0.000000000000001",
                                        "9007199254740993",
                                        "179769313486231570000000000000000000000",
                                        "1e22",
                                        "1e23",
                                        "4.9e-324",
                                        "2.2250738585072014e-308",
                                        "1e-400",
                                        "inf",
                                        "-inf",
                                        "0.30000000000000004",
                                        "00000000000000000000000000001.5",
                                        "3.14159265358979323846264338327950288",
                                        "0.0000000000000000000000001",
                                        "1.7976931348623157e308",
                                        "999999999999999.9",
                                        "0.00000000000000000000012345"};
    enum { FIXED = sizeof fixed / sizeof fixed[0], RANDOM = 1000 };
    static bytes b;
    static char texts[RANDOM][40];
    (void)state;
    b.count = 0;
    uint64_t x = 1;
    put_text(&b, BANNER "array real general\n%d 1\n", FIXED + RANDOM);
    for (int i = 0; i < FIXED; i++) put_text(&b, "%s\n", fixed[i]);
    for (int i = 0; i < RANDOM; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const int digits = 1 + (int)(x >> 33) % 19;
        snprintf(texts[i], sizeof texts[i], i % 2 ? "%.*e" : "%.*f", digits, ((double)(x >> 20) - 0x1p43) / 0x1p40);
        put_text(&b, "%s\n", texts[i]);
    }
    save(&b, "A.mtx");
    file_matrix file = opened("A.mtx", NULL);
    const double *value = file.dense.data;
    for (int i = 0; i < FIXED + RANDOM; i++) {
        const char *text = i < FIXED ? fixed[i] : texts[i - FIXED];
        const double wanted = strtod(text, NULL);
        if (memcmp(&value[i], &wanted, sizeof wanted)) {
            print_error("%s is read as %.17g, not %.17g\n", text, value[i], wanted);
            fail();
        }
    }
    file_close(&file);
}

static void lines_cross_the_buffer_unharmed(void **state)
{
    enum { COUNT = 30000 };
    (void)state;
    FILE *out = fopen("A.mtx", "wb");
    assert_non_null(out);
    fprintf(out, "%%%%MatrixMarket matrix coordinate integer general\n%%%60000s\n%d 7 %d\n", "", COUNT, COUNT);
    for (int i = 0; i < COUNT; i++) fprintf(out, "%d %d %d\n", COUNT - i, i % 7 + 1, i);
    assert_int_equal(fclose(out), 0);
    file_matrix file = opened("A.mtx", NULL);
    assert_int_equal(file.sparse.nnz, COUNT);
    assert_int_equal(file.sparse.index_type, FS_INDEX32);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(((int32_t *)file.sparse.ptr)[i], i);
        assert_int_equal(((int32_t *)file.sparse.index)[i], (COUNT - 1 - i) % 7);
        assert_true(((double *)file.sparse.value)[i] == COUNT - 1 - i);
    }
    file_close(&file);
}

static void columns_of_more_than_32_bits_have_wide_indices(void **state)
{
    (void)state;
    write_text(0, "%%MatrixMarket matrix coordinate pattern general\n2 9223372036854775 1\n2 9223372036854775\n");
    file_matrix file = opened("A.mtx", NULL);
    assert_int_equal(file.sparse.index_type, FS_INDEX64);
    assert_int_equal(((int64_t *)file.sparse.index)[0], 9223372036854774);
    assert_int_equal(((int64_t *)file.sparse.ptr)[2], 1);
    file_close(&file);
}

static void wrong_files_are_refused_with_the_line(void **state)
{
#define REAL "%%MatrixMarket matrix coordinate real general\n"
#define ARRAY "%%MatrixMarket matrix array real general\n"
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"%%MatrixMarket\n", "not a Matrix Market file"},
        {"%%MatrixMarket vector coordinate real general\n1 1 1\n", "not a Matrix Market file"},
        {"%%MatrixMarket matrix coordinate real general twice\n1 1 1\n", "not a Matrix Market file"},
        {"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "'complex'"},
        {"%%MatrixMarket matrix coordinate real hermitian\n1 1 1\n1 1 1\n", "'hermitian'"},
        {"%%MatrixMarket matrix list\x1b real general\n1 1 1\n1 1 1\n", "'list\\x1b'"},
        {"%%MatrixMarket matrix array pattern general\n1 1\n", "array pattern general"},
        {"%%MatrixMarket matrix coordinate pattern skew-symmetric\n2 2 1\n2 1\n", "coordinate pattern skew-symmetric"},
        {REAL, "before the line with its sizes"},
        {REAL "% only\n%comments", "before the line with its sizes"},
        {REAL "2 2\n1 1 1\n", "line 2: expected the number of entries"},
        {REAL "2 2 1 1\n1 1 1\n", "line 2: expected the end of the line with the sizes"},
        {REAL "-2 2 1\n1 1 1\n", "line 2: expected the number of rows, found '-2 2 1'"},
        {REAL "2 2.0 1\n1 1 1\n", "line 2: expected the number of columns"},
        {REAL "0 2 0\n", "0 x 2: there is nothing to read"},
        {REAL "2 99999999999999999999 1\n1 1 1\n", "line 2: a number of more than 63 bits"},
        {REAL "2 2 9223372036854775807\n1 1 1\n", "9223372036854775807 entries, but the file's"},
        {REAL "2 2 9223372036854775808\n1 1 1\n", "line 2: a number of more than 63 bits"},
        {REAL "9223372036854775807 2 1\n1 1 1\n", "9223372036854775807 rows and only 1 entries"},
        {REAL "2 2 922337203685477580\n1 1 1\n", "922337203685477580 entries, but the file's"},
        {REAL "2 2 2\n1 1 1\n", "gives 2 entries, but the file ends after 1"},
        {REAL "2 2 1\n1 1 1\n2 2 2\n", "line 4: the header gives 1 entries, but more follow"},
        {REAL "2 2 1\n3 1 1\n", "line 3: the entry (3, 1) is outside the 2 x 2 matrix"},
        {REAL "2 2 1\n1 3 1\n", "line 3: the entry (1, 3) is outside"},
        {REAL "2 2 1\n0 1 1\n", "line 3: the entry (0, 1) is outside"},
        {REAL "2 2 1\n1 0 1\n", "line 3: the entry (1, 0) is outside"},
        {REAL "2 2 1\n\n1 -1 1\n", "line 4: expected a column"},
        {REAL "2 2 1\n1 1\n", "line 3: expected a number of 64 bits, found ''"},
        {REAL "2 2 1\n1 1 1 1\n", "line 3: expected the end of the entry"},
        {REAL "2 2 1\n1 1 1,5\n", "line 3: expected a number of 64 bits, found '1,5'"},
        {REAL "2 2 1\n1 1 0x10\n", "'0x10'"},
        {REAL "2 2 1\n1 1 -0X1p3\n", "'-0X1p3'"},
        {REAL "2 2 1\n1 1 1e999\n", "'1e999'"},
        {REAL "2 2 1\n1 1 .\n", "'.'"},
        {REAL "2 2 1\n1 1 -\n", "'-'"},
        {REAL "2 2 1\n1 1 1.2.3\n", "'1.2.3'"},
        {REAL "2 2 1\n1 1 \x1b[2J\n", "'\\x1b[2J'"},
        {REAL "4194305 2 1\n1 1 1\n", "4194305 rows and only 1 entries"},
        {REAL "9223372036854775799 2 0\n", "9223372036854775799 rows and only 0 entries"},
        {"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1.5\n", "line 3: expected an integer"},
        {"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 99999999999999999999\n",
         "line 3: a number of more"},
        {"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 1\n", "line 3: expected the end of the entry"},
        {"%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n", "2 x 3 and symmetric"},
        {"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 1\n",
         "(2, 2) of a skew-symmetric matrix is on the diagonal"},
        {ARRAY "2 2\n1\n2\n3\n", "gives 4 values, but the file ends after 3"},
        {ARRAY "2 2\n1\n2\n3\n4\n5\n", "line 7: the header gives 4 values, but more follow"},
        {ARRAY "2 2\n1\n2\n3\n4 5\n", "line 6: expected the end of the values"},
        {ARRAY "3037000500 3037000500\n1\n", "more than can be counted"},
        {ARRAY "1000000 1000000\n1\n", "1000000000000 values"},
        {ARRAY "2 2 4\n1\n", "line 2: expected the end of the line"},
    };
    const file_options mtx = {.format = FILE_MTX};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int gzip = 0; gzip < 2; gzip++) {
            write_text(gzip, cases[i].text);
            REFUSED("A.mtx", &mtx, cases[i].word);
        }
}

/* A zero byte inside a line does not end it. */
static void zero_bytes_are_refused(void **state)
{
    static const char text[] = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\0 7\n";
    (void)state;
    bytes b = {.count = 0};
    put(&b, text, sizeof text - 1);
    save(&b, "A.mtx");
    REFUSED("A.mtx", NULL, "line 3: expected the end of the entry");
    static const char banner[] = "%%MatrixMarket matrix coordinate real general\0x\n1 1 1\n1 1 1\n";
    b.count = 0;
    put(&b, banner, sizeof banner - 1);
    save(&b, "A.mtx");
    REFUSED("A.mtx", NULL, "not a Matrix Market file");
}

static void endless_lines_are_refused(void **state)
{
    (void)state;
    FILE *out = fopen("A.mtx", "wb");
    assert_non_null(out);
    fprintf(out, "%%%%MatrixMarket matrix coordinate real general\n%%%70000s\n1 1 1\n1 1 1\n", "");
    assert_int_equal(fclose(out), 0);
    REFUSED("A.mtx", NULL, "line 2 is longer than 65536 bytes");
}

static void damaged_gzip_is_refused(void **state)
{
    const file_options mtx = {.format = FILE_MTX};
    bytes b = {.count = 0};
    (void)state;
    write_text(1, "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 2\n");
    FILE *file = fopen("A.mtx", "rb");
    assert_non_null(file);
    b.count = fread(b.at, 1, sizeof b.at, file);
    fclose(file);
    refused_wherever_cut(&b, "A.mtx", &mtx);
    for (size_t i = 10; i < b.count; i++) {
        b.at[i] ^= 0x10;
        save(&b, "A.mtx");
        REFUSED("A.mtx", &mtx, "A.mtx");
        b.at[i] ^= 0x10;
    }
}

/* A file may be several gzip members one after the other; anything else behind a member is refused. */
static void what_follows_gzip_is_gzip(void **state)
{
    static const char *const rest[] = {"junk\n", "\x1f", "\x1f\x8b", "\x1fjunk and more junk"};
    bytes first = {.count = 0}, second = {.count = 0}, all = {.count = 0};
    const double dense[] = {1, 0, 0, 2};
    (void)state;
    put_text(&first, "%%%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 ");
    put_text(&second, "1\n2 2 2\n");
    put_gzip(&all, &first);
    put_gzip(&all, &second);
    save(&all, "A.mtx.gz");
    file_matrix file = opened("A.mtx.gz", NULL);
    expect_sparse(&file, 2, 2, dense);
    file_close(&file);
    const size_t end = all.count;
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
        all.count = end;
        put_text(&all, "%s", rest[i]);
        save(&all, "A.mtx.gz");
        REFUSED("A.mtx.gz", NULL, i == 1 || i == 2 ? "the gzip data end in the middle" : "what follows is not gzip");
    }
    all.count = end;
    put_little(&all, 0, 1);
    save(&all, "A.mtx.gz");
    REFUSED("A.mtx.gz", NULL, "what follows is not gzip; get the file again, or cut it there (head -c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_coordinates_becomes_csr),
        cmocka_unit_test(every_kind_of_array_becomes_columns),
        cmocka_unit_test(reals_are_rounded_correctly),
        cmocka_unit_test(lines_cross_the_buffer_unharmed),
        cmocka_unit_test(columns_of_more_than_32_bits_have_wide_indices),
        cmocka_unit_test(wrong_files_are_refused_with_the_line),
        cmocka_unit_test(zero_bytes_are_refused),
        cmocka_unit_test(endless_lines_are_refused),
        cmocka_unit_test(damaged_gzip_is_refused),
        cmocka_unit_test(what_follows_gzip_is_gzip),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
