/* names.c - names of the public enumerations: every value has one, names lead back to values, others are refused. */
#include <string.h>

#include "tests/support/support.h"

#define THERE_AND_BACK(noun, type, first, ...) \
    static void every_##noun##_has_its_name(void **state) \
    { \
        (void)state; \
        static const char *const names[] = {__VA_ARGS__}; \
        const int count = (int)(sizeof names / sizeof names[0]); \
        for (int i = 0; i < count; i++) { \
            type value = (type)(first + count); \
            assert_string_equal(fs_##noun##_name((type)(first + i)), names[i]); \
            MUST(fs_##noun##_from_name(names[i], &value)); \
            assert_int_equal(value, first + i); \
        } \
        type kept = (type)first; \
        assert_string_equal(fs_##noun##_name((type)(first + count)), "unknown"); \
        assert_string_equal(fs_##noun##_name((type)(first - 1)), "unknown"); \
        REFUSED(fs_##noun##_from_name("nonsense", &kept), FS_EINVAL, "'nonsense'", names[0], names[count - 1]); \
        REFUSED(fs_##noun##_from_name("", &kept), FS_EINVAL, "''"); \
        REFUSED(fs_##noun##_from_name(NULL, &kept), FS_EINVAL, "name is NULL"); \
        REFUSED(fs_##noun##_from_name(names[0], NULL), FS_EINVAL, #noun " is NULL"); \
        assert_int_equal(kept, first); \
    }
THERE_AND_BACK(family, fs_family, FS_BLOCKPERM, "blockperm", "sjlt", "blockrow", "srht", "gaussian")
THERE_AND_BACK(shuffle, fs_shuffle, FS_SHUFFLE_NONE, "none", "rows", "groups")
THERE_AND_BACK(quality, fs_quality, FS_QUALITY_FAST, "fast", "default", "high", "gaussian")
THERE_AND_BACK(dtype, fs_dtype, FS_F32, "f32", "f64", "f16", "bf16")
THERE_AND_BACK(backend, fs_backend_kind, FS_BACKEND_AUTO, "auto", "cpu", "cuda")

static void dtypes_have_sizes_and_numpys_names_too(void **state)
{
    (void)state;
    static const struct {
        fs_dtype dtype;
        size_t size;
        const char *name;
    } all[] = {{FS_F32, 4, "float32"}, {FS_F64, 8, "float64"}, {FS_F16, 2, "float16"}, {FS_BF16, 2, "bfloat16"}};
    for (int i = 0; i < 4; i++) {
        fs_dtype found = (fs_dtype)0;
        MUST(fs_dtype_from_name(all[i].name, &found));
        assert_int_equal(found, all[i].dtype);
        assert_int_equal(fs_dtype_size(found), all[i].size);
    }
    assert_int_equal(fs_dtype_size((fs_dtype)0), 0);
    assert_int_equal(fs_dtype_size((fs_dtype)5), 0);
}

static void memory_spaces_have_names(void **state)
{
    (void)state;
    assert_string_equal(fs_memory_name(FS_MEMORY_HOST), "host");
    assert_string_equal(fs_memory_name(FS_MEMORY_CUDA), "cuda");
    assert_string_equal(fs_memory_name((fs_memory)2), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_its_name),  cmocka_unit_test(every_shuffle_has_its_name),
        cmocka_unit_test(every_quality_has_its_name), cmocka_unit_test(every_dtype_has_its_name),
        cmocka_unit_test(every_backend_has_its_name), cmocka_unit_test(dtypes_have_sizes_and_numpys_names_too),
        cmocka_unit_test(memory_spaces_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
