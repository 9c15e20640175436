/* idx.c - IDX files: every type, with and without gzip. */
#include "tests/support/files.h"

static const struct {
    int code, bytes;
    fs_dtype dtype;
    const char *name;
} kinds[] = {{0x08, 1, FS_F32, "uint8"}, {0x09, 1, FS_F32, "int8"},    {0x0B, 2, FS_F32, "int16"},
             {0x0C, 4, FS_F64, "int32"}, {0x0D, 4, FS_F32, "float32"}, {0x0E, 8, FS_F64, "float64"}};

/* The value p of a file: the ends of the type's range first. */
static double value_at(int code, int p)
{
    static const double low[] = {0, -128, 0, -32768, -2147483648.0, -0x1.fffffep127, -0x1.fffffffffffffp1023};
    static const double high[] = {255, 127, 0, 32767, 2147483647.0, 0x1.8p-149, 0x1p-1074};
    return p == 0 ? low[code - 8] : p == 1 ? high[code - 8] : p;
}

static void put_value(bytes *b, int code, int width, double value)
{
    const float single = (float)value;
    uint64_t bits = code >= 0x0D ? 0 : (uint64_t)(int64_t)value;
    uint32_t half;
    if (code == 0x0D) memcpy(&half, &single, sizeof half), bits = half;
    if (code == 0x0E) memcpy(&bits, &value, sizeof bits);
    put_big(b, bits, width);
}

static void put_file(bytes *b, int kind, int dimensions, const int *sizes)
{
    int count = 1;
    b->count = 0;
    put_big(b, (uint64_t)(kinds[kind].code << 8 | dimensions), 4);
    for (int i = 0; i < dimensions; count *= sizes[i++]) put_big(b, (uint64_t)sizes[i], 4);
    for (int p = 0; p < count; p++) put_value(b, kinds[kind].code, kinds[kind].bytes, value_at(kinds[kind].code, p));
}

static void every_type_is_read_exactly_with_gzip_and_without(void **state)
{
    static const int sizes[] = {3, 2, 5, 1};
    bytes b;
    (void)state;
    for (int kind = 0; kind < 6; kind++)
        for (int dimensions = 1; dimensions <= 4; dimensions++)
            for (int gzip = 0; gzip < 2; gzip++) {
                const int cols = dimensions == 1 ? 1 : dimensions == 2 ? 2 : 10;
                put_file(&b, kind, dimensions, sizes);
                (gzip ? save_gzip : save)(&b, "A.idx");
                file_matrix file = opened("A.idx", NULL);
                const fs_matrix *m = &file.dense;
                assert_int_equal(file.gzip, gzip);
                assert_string_equal(file.stored, kinds[kind].name);
                assert_true(m->rows == 3 && m->cols == cols && m->dtype == kinds[kind].dtype && !file.is_sparse);
                for (int p = 0; p < 3 * cols; p++) {
                    const double value = value_at(kinds[kind].code, p);
                    const double wanted = kinds[kind].dtype == FS_F32 ? (double)(float)value : value;
                    const double found = m->dtype == FS_F64 ? ((double *)m->data)[p] : (double)((float *)m->data)[p];
                    assert_true(found == wanted);
                }
                file_close(&file);
            }
}

static void only_the_rows_asked_for_are_kept(void **state)
{
    static const int sizes[] = {3, 2, 5};
    file_options options = {.format = FILE_IDX, .max_rows = 2, .max_cols = 10};
    bytes b;
    (void)state;
    put_file(&b, 0, 3, sizes);
    save(&b, "A.idx");
    file_matrix file = opened("A.idx", &options);
    assert_true(file.dense.rows == 2 && file.dense.cols == 10 && ((float *)file.dense.data)[19] == 19);
    file_close(&file);
    options.max_cols = 9;
    REFUSED("A.idx", &options, "rows of 10 values; at most 9");
}

static void files_that_are_cut_or_too_long_are_refused(void **state)
{
    static const int sizes[] = {3, 4};
    const file_options idx = {.format = FILE_IDX};
    bytes b, packed = {.count = 0};
    (void)state;
    put_file(&b, 2, 2, sizes);
    refused_wherever_cut(&b, "A.idx", &idx);
    REFUSED("A.idx", NULL, "A.idx: the header gives 3 x 4 int16, which needs 24 bytes, but 23 follow it");
    save_gzip(&b, "A.gz");
    FILE *file = fopen("A.gz", "rb");
    assert_non_null(file);
    packed.count = fread(packed.at, 1, sizeof packed.at, file);
    fclose(file);
    refused_wherever_cut(&packed, "B.gz", &idx);
    REFUSED("B.gz", NULL, "the gzip data end in the middle");
    put_text(&packed, "junk");
    save(&packed, "B.gz");
    REFUSED("B.gz", NULL, "what follows is not gzip");
    packed.count -= 4;
    packed.at[packed.count - 6] ^= 1;
    save(&packed, "B.gz");
    REFUSED("B.gz", NULL, "B.gz: incorrect data check; the file is damaged");
    b.count--;
    save_gzip(&b, "A.gz");
    REFUSED("A.gz", NULL, "gives 24 bytes of values, but 23 follow");
    b.count += 2;
    save_gzip(&b, "A.gz");
    REFUSED("A.gz", NULL, "gives 24 bytes of values, but more follow");
    save(&b, "A.idx");
    REFUSED("A.idx", NULL, "needs 24 bytes, but 25 follow it");
}

static void wrong_headers_are_refused_before_memory_is_asked_for(void **state)
{
    static const struct {
        const char *header;
        size_t count;
        const char *word;
    } cases[] = {
        {"\0\0\x0A\2\0\0\0\1\0\0\0\1x", 13, "type 0x0a"},
        {"\0\0\x08\0\0\0\0\1", 8, "0 dimensions"},
        {"\0\0\x08\5\0\0\0\1", 8, "5 dimensions"},
        {"\0\0\x08\2\0\0\0\1\0\0\0\0", 12, "size 0 in dimension 2"},
        {"\0\0\x0E\2\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12, "more bytes than can be counted"},
        {"\0\0\x08\2\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12, "needs 9223372030412324865 bytes, but 0 follow"},
        {"\0\0\x08\4\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 20, "4294967295 x 4294967295 x"},
        {"PK\x03\x04", 4, "50 4b"},
    };
    const file_options idx = {.format = FILE_IDX};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = {.count = 0};
        put(&b, cases[i].header, cases[i].count);
        save(&b, "A.idx");
        REFUSED("A.idx", &idx, cases[i].word);
    }
    bytes b = {.count = 0};
    put(&b, "\0\0\x08\2\x7F\xFF\xFF\xFF\0\0\0\1", 12);
    save_gzip(&b, "A.gz");
    REFUSED("A.gz", &idx, "needs 2147483647 bytes, but", "bytes of gzip unpack to at most");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read_exactly_with_gzip_and_without),
        cmocka_unit_test(only_the_rows_asked_for_are_kept),
        cmocka_unit_test(files_that_are_cut_or_too_long_are_refused),
        cmocka_unit_test(wrong_headers_are_refused_before_memory_is_asked_for),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
