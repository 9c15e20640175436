/* safetensors.c - safetensors files: tensors are read by name; a header that contradicts the data is refused. */
#include "flashsketch_extend.h"
#include "tests/support/files.h"

static void put_header(bytes *b, const char *header)
{
    put_little(b, strlen(header), 8);
    put_text(b, "%s", header);
}

static void put_matrix(bytes *b, int64_t rows, int64_t cols, fs_dtype dtype)
{
    for (int64_t p = 0; p < rows * cols; p++) put_double(b, element(p / cols, p % cols), dtype);
}

/* Four tensors, one of each type that is read, and three that are not; the first makes all others misaligned. */
static void put_all(bytes *b, int spaces)
{
    char header[1024];
    snprintf(header, sizeof header,
             "{\"__metadata__\":{\"format\":\"pt\"},"
             "\"odd\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
             "\"half\":{\"dtype\":\"F16\",\"shape\":[5,3],\"data_offsets\":[3,33]},"
             "\"nothing\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[33,33]},"
             "\"double\":{\"data_offsets\":[93,213],\"dtype\":\"F64\",\"shape\":[5,1,3]},"
             "\"single\":{\"dtype\":\"F32\",\"shape\":[5,3],\"data_offsets\":[33,93]},"
             "\"brain \\u00e9\":{\"dtype\":\"BF16\",\"shape\":[15],\"data_offsets\":[213,243]},"
             "\"scalar\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[243,251]}}%*s",
             spaces, "");
    put_header(b, header);
    put(b, "abc", 3);
    put_matrix(b, 5, 3, FS_F16);
    put_matrix(b, 5, 3, FS_F32);
    put_matrix(b, 5, 3, FS_F64);
    put_matrix(b, 15, 1, FS_BF16);
    put_double(b, 1.0, FS_F64);
}

static void every_tensor_is_read_by_its_name(void **state)
{
    static const struct {
        const char *name;
        int64_t rows, cols;
        fs_dtype dtype;
    } tensors[] = {
        {"half", 5, 3, FS_F16}, {"single", 5, 3, FS_F32}, {"double", 5, 3, FS_F64}, {"brain \xC3\xA9", 15, 1, FS_BF16}};
    (void)state;
    for (int spaces = 0; spaces < 8; spaces++) {
        bytes b = {.count = 0};
        put_all(&b, spaces);
        save(&b, "A.safetensors");
        for (int i = 0; i < 4; i++) {
            const file_options options = {.tensor = tensors[i].name};
            file_matrix file = opened("A.safetensors", &options);
            assert_int_equal(file.format, FILE_SAFETENSORS);
            expect_dense(&file, tensors[i].rows, tensors[i].cols, tensors[i].dtype);
            file_close(&file);
        }
    }
}

static void what_cannot_be_a_matrix_or_is_not_there_is_refused_by_name(void **state)
{
    (void)state;
    bytes b = {.count = 0};
    put_all(&b, 0);
    save(&b, "A.safetensors");
    REFUSED("A.safetensors", NULL, "holds 7 tensors; choose one with --tensor: 'odd', 'half', 'nothing', 'single'",
            "'brain \\xc3\\xa9'");
    REFUSED("A.safetensors", (&(file_options){.tensor = "half\x1b"}), "no tensor 'half\\x1b'; the file holds 7: 'odd'");
    REFUSED("A.safetensors", (&(file_options){.tensor = "odd"}), "'odd' is of type U8");
    REFUSED("A.safetensors", (&(file_options){.tensor = "nothing"}), "size 0 in dimension 1");
    REFUSED("A.safetensors", (&(file_options){.tensor = "scalar"}), "0 dimensions");
    REFUSED("A.safetensors", (&(file_options){.tensor = "__metadata__"}), "no tensor '__metadata__'");
}

static void the_only_tensor_needs_no_name(void **state)
{
    (void)state;
    bytes b = {.count = 0};
    put_header(&b, "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}");
    put_matrix(&b, 2, 3, FS_F32);
    save(&b, "A.safetensors");
    file_matrix file = opened("A.safetensors", NULL);
    expect_dense(&file, 2, 3, FS_F32);
    file_close(&file);
    b.count = 0;
    put_header(&b, "{}");
    save(&b, "A.safetensors");
    REFUSED("A.safetensors", NULL, "holds no tensors");
}

static void long_lists_of_names_are_cut(void **state)
{
    enum { COUNT = 40 };
    bytes b = {.count = 0}, header = {.count = 0};
    (void)state;
    for (int i = 0; i < COUNT; i++)
        put_text(&header,
                 "%c\"a_name_as_long_as_they_are_in_large_models.and_then_some.and_more.%d\":"
                 "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                 i ? ',' : '{', i, 4 * i, 4 * i + 4);
    put_text(&header, "}");
    put_little(&b, header.count, 8);
    put(&b, header.at, header.count);
    put_matrix(&b, COUNT, 1, FS_F32);
    save(&b, "A.safetensors");
    REFUSED("A.safetensors", NULL, "holds 40 tensors; choose one with --tensor: 'a_name", ".4', ...");
    REFUSED("A.safetensors", (&(file_options){.tensor = "b"}), "no tensor 'b'; the file holds 40: 'a_name", ".4', ...");
}

static void list_one(void *user, const file_tensor *tensor)
{
    char *text = user;
    const size_t at = strlen(text);
    snprintf(text + at, 512 - at, "%s %s %d %" PRId64 ";", tensor->name, tensor->dtype, tensor->dimensions,
             tensor->dimensions ? tensor->shape[tensor->dimensions - 1] : -1);
}

static int list_all(const char *path, char *text)
{
    const file_options options = {.format = FILE_SAFETENSORS, .list = list_one, .describe = 1, .user = text};
    file_matrix file;
    const int code = file_open(path, &options, &file);
    if (code) return code;
    assert_null(file.dense.data);
    assert_non_null(strstr(file.why, "the file holds 7 tensors"));
    file_close(&file);
    return 0;
}

static void tensors_are_listed_in_the_order_of_their_data(void **state)
{
    char text[512] = "";
    (void)state;
    bytes b = {.count = 0};
    put_all(&b, 3);
    save(&b, "A.safetensors");
    assert_int_equal(list_all("A.safetensors", text), 0);
    assert_string_equal(text, "odd U8 1 3;half F16 2 3;nothing F32 2 7;single F32 2 3;double F64 3 3;"
                              "brain \xC3\xA9 BF16 1 15;scalar F64 0 -1;");
    (void)fs_fail(FS_OK, "%s", "");
    text[0] = 0;
    save_some(&b, "A.safetensors", b.count - 1);
    assert_int_equal(list_all("A.safetensors", text), FS_EFILE);
    assert_string_not_equal(fs_error_message(), "");
    assert_string_equal(text, "");
    assert_int_equal(list_all("absent", text), FS_EFILE);
}

static void files_that_are_cut_or_too_long_are_refused(void **state)
{
    const file_options options = {.format = FILE_SAFETENSORS, .tensor = "half"};
    (void)state;
    bytes b = {.count = 0};
    put_all(&b, 0);
    refused_wherever_cut(&b, "A.safetensors", &options);
    REFUSED("A.safetensors", &options, "'scalar' ends at byte 251 of the data, but 250 follow the header");
    put(&b, "x", 1);
    save(&b, "A.safetensors");
    REFUSED("A.safetensors", &options, "end at byte 251 of the data, but 252 follow");
}

/* Each header stands before 24 bytes of data. */
static void headers_that_lie_are_refused(void **state)
{
#define A_IS(text) "{\"a\":{" text "}}"
#define ALL "\"data_offsets\":[0,24]"
#define HALF_A "\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}"
    static const struct {
        const char *header, *word;
    } cases[] = {
        {"", "not JSON from byte 0"},
        {"[]", "not JSON from byte 0"},
        {" {}", "not JSON"},
        {"{", "not JSON"},
        {"{\"a\":}", "not JSON from byte 5"},
        {"{} x", "continues after its JSON, at byte 3"},
        {"{}", "the tensors end at byte 0 of the data, but 24 follow"},
        {"{\"__metadata__\":1}", "__metadata__ is not a table of strings"},
        {"{\"__metadata__\":[\"a\"]}", "__metadata__ is not a table of strings"},
        {"{\"__metadata__\":{\"a\":\"b\",\"c\":1}}", "__metadata__ is not a table of strings"},
        {"{\"a\":1}", "'a' is not described by"},
        {"{\"a\":[1,2,3]}", "'a' is not described by"},
        {"{\"a\":null}", "'a' is not described by"},
        {A_IS(""), "'a' is not described by"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[2,3]"), "'a' is not described by"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[2,3]," ALL ",\"more\":1"), "'a' is not described by"},
        {A_IS("\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2,3]"), "'a' is not described by"},
        {A_IS("\"dtype\":1,\"shape\":[2,3]," ALL), "'a' is not described by"},
        {A_IS("\"dtype\":\"F32\",\"shape\":6," ALL), "'a' is not described by"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[2,-3]," ALL), "size in dimension 2 that is not an integer"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[2.5,3]," ALL), "size in dimension 1 that is not an integer"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[\"2\",3]," ALL), "size in dimension 1"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[1e30]," ALL), "size in dimension 1"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[[6]]," ALL), "size in dimension 1"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[1e999]," ALL), "size in dimension 1"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[4294967296,4294967296]," ALL), "needs more than 9223372036854775807 bytes"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[2,4]," ALL),
         "'a' is 2 x 4 F32, which needs 32 bytes, but its offsets span 24"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[]," ALL), "'a' is one F32, which needs 4 bytes"},
        {A_IS("\"dtype\":\"F4\",\"shape\":[47],\"data_offsets\":[0,25]"), "ends at byte 25 of the data, but 24 follow"},
        {A_IS("\"dtype\":\"F4\",\"shape\":[45]," ALL), "which needs 23 bytes"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24,0]"), "data_offsets that are not"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[-24,0]"), "data_offsets that are not"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0]"), "data_offsets that are not"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24,24]"), "data_offsets that are not"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,18446744073709551616]"),
         "data_offsets that are not"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,9007199254740992]"),
         "ends at byte 9007199254740992"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[4,24]"),
         "'a' starts at byte 4 of the data, but the one before it ends at 0"},
        {A_IS("\"dtype\":\"I32\",\"shape\":[6]," ALL), "'a' is of type I32"},
        {A_IS("\"dtype\":\"\x1bX\",\"shape\":[6]," ALL), "'a' is of type \\x1bX"},
        {"{" HALF_A ",\"b\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[8,24]}}",
         "'b' starts at byte 8 of the data, but the one before it ends at 12"},
        {"{" HALF_A ",\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]}}", "'b' starts at byte 16"},
        {"{" HALF_A ",\"b\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", "'b' starts at byte 0"},
        {"{" HALF_A ",\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[12,24]}}", "'a' occurs twice"},
        {"{\"\":{\"dtype\":\"F32\",\"shape\":[7],\"data_offsets\":[0,24]}}", "'' is 7 F32"},
        {A_IS("\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,6]," ALL),
         "more than 32 dimensions"},
    };
    const file_options options = {.format = FILE_SAFETENSORS};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = {.count = 0};
        put_header(&b, cases[i].header);
        put_matrix(&b, 2, 3, FS_F32);
        save(&b, "A.safetensors");
        REFUSED("A.safetensors", &options, cases[i].word);
    }
}

static void lengths_and_depths_without_end_are_refused(void **state)
{
    const file_options options = {.format = FILE_SAFETENSORS};
    bytes b = {.count = 0};
    (void)state;
    put_little(&b, UINT64_MAX, 8);
    put_text(&b, "{}");
    save(&b, "A.safetensors");
    REFUSED("A.safetensors", &options, "gives its length as 18446744073709551615 bytes, but 2 follow");
    b.count = 0;
    put_little(&b, (uint64_t)-8, 8); /* 8 more would be 0 */
    save(&b, "A.safetensors");
    REFUSED("A.safetensors", &options, "18446744073709551608 bytes, but 0 follow");
    b.count = 0;
    put_little(&b, 60000, 8);
    put_text(&b, "{\"a\":");
    while (b.count < 60008) put_text(&b, "[");
    save(&b, "A.safetensors");
    REFUSED("A.safetensors", &options, "not JSON");
    b.count = 0;
    put_little(&b, (16 << 20) + 1, 8);
    put_text(&b, "{}");
    save(&b, "A.safetensors");
    FILE *file = fopen("A.safetensors", "r+b"); /* with a hole */
    assert_non_null(file);
    assert_int_equal(fseek(file, 20 << 20, SEEK_SET), 0);
    fputc(0, file);
    assert_int_equal(fclose(file), 0);
    REFUSED("A.safetensors", &options, "16777217 bytes; at most 16777216");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tensor_is_read_by_its_name),
        cmocka_unit_test(what_cannot_be_a_matrix_or_is_not_there_is_refused_by_name),
        cmocka_unit_test(the_only_tensor_needs_no_name),
        cmocka_unit_test(long_lists_of_names_are_cut),
        cmocka_unit_test(tensors_are_listed_in_the_order_of_their_data),
        cmocka_unit_test(files_that_are_cut_or_too_long_are_refused),
        cmocka_unit_test(headers_that_lie_are_refused),
        cmocka_unit_test(lengths_and_depths_without_end_are_refused),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
