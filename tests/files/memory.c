/* memory.c - memory that runs out at any allocation: every reader fails with FS_ENOMEM and frees what it had (the address
 * sanitizer checks that).  The linker sends the readers' malloc, calloc and realloc here; those of zlib and cJSON stay
 * their own. */
#include "flashsketch_extend.h"
#include "tests/support/files.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static int left = -1; /* how many more times there is memory; negative: always */

static int is_out(void)
{
    if (left > 0) left--;
    else if (left == 0) return 1;
    return 0;
}
void *__wrap_malloc(size_t size) { return is_out() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return is_out() ? NULL : __real_calloc(count, size); }

void *__wrap_realloc(void *memory, size_t size) { return is_out() ? NULL : __real_realloc(memory, size); }

/* The file opens where `least` allocations succeed, and is FS_ENOMEM where fewer do. */
static void expect_steps(const bytes *b, const char *path, const file_options *options, int least)
{
    save(b, path);
    for (int times = 0; times < least; times++) {
        file_matrix file;
        (void)fs_fail(FS_OK, "%s", "");
        left = times;
        const fs_result code = file_open(path, options, &file);
        left = -1;
        if (code != FS_ENOMEM || !strstr(fs_error_message(), "no memory")) {
            print_error("%s with memory %d times: code %d, \"%s\"\n", path, times, code, fs_error_message());
            fail();
        }
    }
    left = least;
    file_matrix file = opened(path, options);
    left = -1;
    file_close(&file);
}

static void coordinates_need_memory_nine_times(void **state)
{
    (void)state;
    bytes b = {.count = 0};
    put_text(&b, "%%%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n1 1 1\n2 1 2\n");
    expect_steps(&b, "A.mtx", NULL, 9); /* bytes, to guess and to read; the line; arrays of entries and of the matrix */
}

static void arrays_need_memory_four_times(void **state)
{
    (void)state;
    bytes b = {.count = 0};
    put_text(&b, "%%%%MatrixMarket matrix array real general\n1 2\n1\n2\n");
    expect_steps(&b, "A.mtx", NULL, 4);
}

static void tables_need_memory_five_times(void **state)
{
    (void)state;
    bytes b = {.count = 0};
    for (int i = 0; i < 65; i++) put_text(&b, "%d\n", i);
    expect_steps(&b, "A.csv", NULL, 5); /* the bytes, twice; the line; 64 rows, 128 */
}

static void images_need_memory_four_times(void **state)
{
    (void)state;
    bytes b = {.count = 0};
    put(&b, "\0\0\x08\2\0\0\0\1\0\0\0\2ab", 14);
    expect_steps(&b, "A.idx", NULL, 4);
}

static void misaligned_tensors_need_memory_five_times(void **state)
{
    static const char header[] = "{\"a\" :{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}";
    (void)state;
    bytes b = {.count = 0};
    put_little(&b, sizeof header - 1, 8);
    put_text(&b, "%s", header);
    put_little(&b, 0, 8);
    assert_int_not_equal(b.count % 4, 0);
    expect_steps(&b, "A.safetensors", NULL, 5); /* the bytes, twice; the header, the table, the copy */
}

static void mapped_files_need_none(void **state)
{
    const file_options options = {.format = FILE_RAW, .rows = 2, .cols = 1, .dtype = FS_F32};
    (void)state;
    bytes b = {.count = 0};
    put_little(&b, 0, 8);
    expect_steps(&b, "A.bin", &options, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coordinates_need_memory_nine_times),
        cmocka_unit_test(arrays_need_memory_four_times),
        cmocka_unit_test(tables_need_memory_five_times),
        cmocka_unit_test(images_need_memory_four_times),
        cmocka_unit_test(misaligned_tensors_need_memory_five_times),
        cmocka_unit_test(mapped_files_need_none),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
