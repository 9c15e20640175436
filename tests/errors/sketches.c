/* sketches.c - the checks of fs_sketch_create and of the calls that take a sketch alone: every wrong argument is
 * refused with the right code and a message that has the numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/support.h"

/* A legal spec but for the one wrong value that a test puts into it. */
#define SPEC(rows, height, ...) \
    (fs_spec) { .size = sizeof(fs_spec), .d = (rows), .k = (height), __VA_ARGS__ }

/* fs_sketch_create refuses the spec with these words in its message, and leaves NULL. */
static void refuse(fs_spec spec, const char *first, const char *second)
{
    fs_sketch *S = (fs_sketch *)&spec;
    REFUSED(fs_sketch_create(&S, &spec), FS_EINVAL, "fs_sketch_create", first, second);
    assert_null(S);
}

static void pointers_that_are_null_are_refused(void **state)
{
    (void)state;
    const fs_spec spec = SPEC(1000, 64, .seed = 1);
    fs_sketch *S = NULL;
    REFUSED(fs_sketch_create(NULL, &spec), FS_EINVAL, "out is NULL");
    REFUSED(fs_sketch_create(&S, NULL), FS_EINVAL, "spec is NULL");
    assert_null(S);
}

/* The size field determines which fields a caller knows; tests/abi/older.c has all structs and sizes. */
static void wrong_struct_sizes_are_refused(void **state)
{
    (void)state;
    refuse((fs_spec){.size = 0, .d = 1000, .k = 64}, "spec.size is 0", "INIT macro");
    refuse((fs_spec){.size = sizeof(size_t) - 1, .d = 1000, .k = 64}, "spec.size is 7", "INIT macro");
    fs_sketch *S = sketch_of(&SPEC(1000, 64, .seed = 5));
    fs_spec spec = {.size = 0};
    REFUSED(fs_sketch_spec(S, &spec), FS_EINVAL, "spec.size is 0");

    /* A caller with an older, shorter struct gets its fields and nothing past them. */
    memset(&spec, 0x55, sizeof spec);
    spec.size = offsetof(fs_spec, kappa);
    MUST(fs_sketch_spec(S, &spec));
    assert_int_equal(spec.M, 1);
    assert_int_equal(spec.kappa, 0x5555555555555555);
    fs_sketch_destroy(S);
    spec = (fs_spec){.size = offsetof(fs_spec, seed), .d = 1000, .k = 64, .seed = 9};
    S = sketch_of(&spec);
    spec = SPEC(1000, 64, .seed = 9);
    MUST(fs_sketch_spec(S, &spec));
    assert_int_equal(spec.seed, 0);
    fs_sketch_destroy(S);
}

static void sizes_out_of_range_are_refused(void **state)
{
    (void)state;
    refuse(SPEC(0, 64, .seed = 1), "d = 0", "281474976710656");
    refuse(SPEC(-5, 64, .seed = 1), "d = -5", "from 1");
    refuse(SPEC(((int64_t)1 << 48) + 1, 64, .seed = 1), "d = 281474976710657", "281474976710656");
    refuse(SPEC(INT64_MAX, 64, .seed = 1), "d = 9223372036854775807", "281474976710656");
    refuse(SPEC(1000, 0, .seed = 1), "k = 0", "2147483647");
    refuse(SPEC(1000, -3, .seed = 1), "k = -3", "from 1");
    refuse(SPEC(1000, (int64_t)1 << 31, .seed = 1), "k = 2147483648", "2147483647");
    refuse(SPEC(1000, 64, .M = -1), "M = -1", "negative");
    refuse(SPEC(1000, 64, .kappa = -2), "kappa = -2", "negative");
    refuse(SPEC(1000, 64, .s = -3), "s = -3", "negative");
    refuse(SPEC(1000, 64, .interleave = -4), "interleave = -4", "negative");
}

static void families_and_shuffles_that_do_not_exist_are_refused(void **state)
{
    (void)state;
    refuse(SPEC(1000, 64, .family = (fs_family)6), "family 6", "not exist");
    refuse(SPEC(1000, 64, .family = (fs_family)-1), "family -1", "not exist");
    refuse(SPEC(1000, 64, .shuffle = (fs_shuffle)4), "shuffle 4", "not exist");
    refuse(SPEC(1000, 64, .shuffle = (fs_shuffle)-1), "shuffle -1", "not exist");
}

static void blocks_that_cannot_be_are_refused(void **state)
{
    (void)state;
    refuse(SPEC(1000, 64, .M = 65), "M = 65", "k = 64");
    refuse(SPEC(1000, 64, .M = INT64_MAX), "M = 9223372036854775807", "k = 64");
    refuse(SPEC(1000, 64, .M = 4, .kappa = 5), "kappa = 5", "M = 4");
    refuse(SPEC(1000, 64, .M = 4, .kappa = INT64_MAX), "kappa = 9223372036854775807", "M = 4");
    refuse(SPEC(1000, 64, .kappa = 2), "kappa = 2", "M = 1");
    refuse(SPEC(1000, 64, .M = 8, .s = 9), "s = 9", "= 8");
    refuse(SPEC(1000, 64, .M = 7, .s = 10), "s = 10", "= 9");
    refuse(SPEC(1000, 64, .s = INT64_MAX), "s = 9223372036854775807", "= 64");
    refuse(SPEC(1000, 64, .family = FS_SJLT, .s = 65), "s = 65", "= 64");
    refuse(SPEC(10, 64, .family = FS_BLOCKROW, .M = 20), "M = 20", "d = 10");
    refuse(SPEC((int64_t)1 << 40, 64, .family = FS_BLOCKROW), "1099511627776", "2147483647");
    refuse(SPEC(1000, 64, .family = FS_BLOCKROW, .M = 2, .kappa = 2, .s = 1 << 30), "2 x 1073741824", "2147483647");
    refuse(SPEC(1000, 64, .family = FS_BLOCKROW, .M = 2, .kappa = 3), "kappa = 3", "M = 2");
    refuse(SPEC(100, 129, .family = FS_SRHT), "k = 129", "128");
}

static void interleaves_that_cannot_be_are_refused(void **state)
{
    (void)state;
    const fs_shuffle lines = FS_SHUFFLE_GROUPS;
    const char *legal = "1, 2, 4, 8, 16 or 32", *huge = "interleave = 9223372036854775807";
    refuse(SPEC(1000, 64, .shuffle = lines, .M = 12, .interleave = 3), "interleave = 3", legal);
    refuse(SPEC(1000, 64, .shuffle = lines, .M = 64, .interleave = 64), "interleave = 64", legal);
    refuse(SPEC(1000, 64, .shuffle = lines, .M = 6, .interleave = 4), "interleave = 4", "M = 6");
    refuse(SPEC(1000, 10, .shuffle = lines, .interleave = 16), "M = 16", "k = 10");
    refuse(SPEC(1000, 64, .shuffle = FS_SHUFFLE_ROWS, .M = 4, .interleave = 4), "interleave = 4", "rows");
    refuse(SPEC(1000, 64, .shuffle = FS_SHUFFLE_NONE, .M = 4, .interleave = 2), "interleave = 2", "none");
    refuse(SPEC(1000, 64, .family = FS_SJLT, .interleave = 2), "interleave = 2", "groups");
    refuse(SPEC(1000, 64, .shuffle = lines, .interleave = INT64_MAX), huge, legal);
    refuse(SPEC(1000, 1000, .shuffle = lines, .interleave = INT64_MAX), huge, legal);
}

static void fields_that_a_family_does_not_have_are_refused(void **state)
{
    (void)state;
    static const struct {
        fs_family family;
        const char *name;
    } others[] = {{FS_SJLT, "sjlt"}, {FS_BLOCKROW, "blockrow"}, {FS_SRHT, "srht"}, {FS_GAUSSIAN, "gaussian"}};
    for (int i = 0; i < 4; i++) {
        const fs_family family = others[i].family;
        const char *name = others[i].name;
        refuse(SPEC(1000, 64, .family = family, .shuffle = FS_SHUFFLE_ROWS), "shuffle rows", name);
        refuse(SPEC(1000, 64, .family = family, .shuffle = FS_SHUFFLE_GROUPS), "shuffle groups", name);
        if (family == FS_BLOCKROW) continue;
        refuse(SPEC(1000, 64, .family = family, .M = 2), "M = 2", name);
        refuse(SPEC(1000, 64, .family = family, .kappa = 2), "kappa = 2", name);
        if (family != FS_SJLT) refuse(SPEC(1000, 64, .family = family, .s = 4), "s = 4", name);
    }
}

static void qualities_that_do_not_exist_are_refused(void **state)
{
    (void)state;
    refuse(SPEC(1000, 64, .quality = (fs_quality)5), "quality 5", "from 1 (fast) to 4 (gaussian)");
    refuse(SPEC(1000, 64, .quality = (fs_quality)INT32_MAX), "quality 2147483647", "0 for the default");
}

/* A rung chooses what is left open, as far as there are blocks and rows; families without rungs take any. */
static void rungs_choose_kappa_and_s(void **state)
{
    (void)state;
    static const struct {
        fs_family family;
        fs_quality quality;
        int64_t k, kappa, s, want_kappa, want_s;
    } cases[] = {
        {FS_BLOCKPERM, (fs_quality)0, 1024, 0, 0, 1, 8},
        {FS_BLOCKPERM, FS_QUALITY_FAST, 1024, 0, 0, 1, 4},
        {FS_BLOCKPERM, FS_QUALITY_DEFAULT, 1024, 0, 0, 1, 8},
        {FS_BLOCKPERM, FS_QUALITY_HIGH, 1024, 0, 0, 2, 8},
        {FS_BLOCKPERM, FS_QUALITY_GAUSSIAN, 1024, 0, 0, 4, 8},
        {FS_BLOCKPERM, FS_QUALITY_GAUSSIAN, 256, 0, 0, 2, 16},
        {FS_BLOCKPERM, FS_QUALITY_GAUSSIAN, 10, 0, 0, 1, 10},
        {FS_BLOCKPERM, FS_QUALITY_HIGH, 1024, 4, 0, 4, 4},
        {FS_BLOCKPERM, FS_QUALITY_HIGH, 1024, 0, 3, 2, 3},
        {FS_BLOCKPERM, FS_QUALITY_HIGH, 1024, 1, 1, 1, 1},
        {FS_SJLT, (fs_quality)0, 1024, 0, 0, 1, 8},
        {FS_SJLT, FS_QUALITY_GAUSSIAN, 1024, 0, 0, 1, 32},
        {FS_BLOCKROW, FS_QUALITY_HIGH, 1024, 0, 0, 2, 2},
        {FS_SRHT, FS_QUALITY_HIGH, 1024, 0, 0, 1, 1},
        {FS_GAUSSIAN, FS_QUALITY_FAST, 1024, 0, 0, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const fs_spec given = SPEC(5000, cases[i].k, .family = cases[i].family, .quality = cases[i].quality,
                                   .kappa = cases[i].kappa, .s = cases[i].s);
        fs_spec full = FS_SPEC_INIT;
        fs_sketch *S = sketch_of(&given);
        MUST(fs_sketch_spec(S, &full));
        if (full.kappa != cases[i].want_kappa || full.s != cases[i].want_s)
            fail_msg("case %d: kappa %d, s %d", (int)i, (int)full.kappa, (int)full.s);
        assert_int_equal(full.quality, cases[i].quality ? cases[i].quality : FS_QUALITY_DEFAULT);
        fs_sketch_destroy(S);
        fs_sketch_destroy(sketch_of(&full));
    }
}

static void *give_nothing(void *user, size_t bytes)
{
    (void)user, (void)bytes;
    return NULL;
}
static void take_nothing(void *user, void *memory) { (void)user, (void)memory; }

static void half_an_allocator_is_refused(void **state)
{
    (void)state;
    const fs_spec spec = SPEC(1000, 64, .seed = 1);
    const fs_allocator no_release = {give_nothing, NULL, NULL}, no_alloc = {NULL, take_nothing, NULL};
    fs_sketch *S = NULL;
    REFUSED(fs_sketch_create_with(&S, &spec, &no_release), FS_EINVAL, "alloc", "release");
    REFUSED(fs_sketch_create_with(&S, &spec, &no_alloc), FS_EINVAL, "alloc", "release");
    assert_null(S);
}

static void ranges_of_columns_outside_S_are_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t col0, cols;
        const char *words;
    } ranges[] = {{-1, 1, "columns -1 to -1 + 1"},
                  {0, -1, "0 + -1"},
                  {0, 1001, "0 + 1001"},
                  {1000, 1, "1000 + 1"},
                  {INT64_MAX, 1, "9223372036854775807 + 1"},
                  {1, INT64_MAX, "1 + 9223372036854775807"}};
    fs_sketch *S = sketch_of(&SPEC(1000, 64, .seed = 1));
    int64_t nnz = -7, ptr[65], one[1];
    uint64_t digest = 77;
    for (int i = 0; i < 6; i++) {
        fs_sparse out = {FS_CSR, FS_INDEX64, 64, ranges[i].cols, 1, ptr, one, one, FS_F64, FS_MEMORY_HOST};
        REFUSED(fs_sketch_digest(NULL, S, ranges[i].col0, ranges[i].cols, &digest), FS_EINVAL, ranges[i].words,
                "d = 1000");
        REFUSED(fs_sketch_nnz(S, ranges[i].col0, ranges[i].cols, &nnz), FS_EINVAL, ranges[i].words, "d = 1000");
        REFUSED(fs_sketch_to_csr(NULL, S, ranges[i].col0, &out), FS_EINVAL, ranges[i].words, "d = 1000");
    }
    assert_int_equal(nnz, -7);
    assert_int_equal(digest, 77);
    REFUSED(fs_sketch_digest(NULL, NULL, 0, 1, &digest), FS_EINVAL, "S is NULL");
    REFUSED(fs_sketch_digest(NULL, S, 0, 1, NULL), FS_EINVAL, "digest is NULL");
    REFUSED(fs_sketch_nnz(NULL, 0, 1, &nnz), FS_EINVAL, "S is NULL");
    REFUSED(fs_sketch_nnz(S, 0, 1, NULL), FS_EINVAL, "nnz is NULL");
    REFUSED(fs_sketch_spec(NULL, &SPEC(1000, 64, .seed = 1)), FS_EINVAL, "S is NULL");
    REFUSED(fs_sketch_spec(S, NULL), FS_EINVAL, "spec is NULL");
    fs_sketch_destroy(S);
    fs_sketch_destroy(NULL);
}

/* 2^31 - 1 nonzeros in each of 2^48 columns; 2^32 of them in an array of 32-bit indices. */
static void counts_that_no_index_holds_are_refused(void **state)
{
    (void)state;
    fs_sketch *S = sketch_of(&SPEC((int64_t)1 << 48, INT32_MAX, .family = FS_GAUSSIAN));
    int64_t nnz = -7;
    REFUSED(fs_sketch_nnz(S, 0, (int64_t)1 << 48, &nnz), FS_EINVAL, "281474976710656", "2147483647");
    fs_sketch_destroy(S);
    S = sketch_of(&SPEC(4096, 1 << 20, .family = FS_GAUSSIAN));
    MUST(fs_sketch_nnz(S, 0, 4096, &nnz));
    int32_t one[1];
    fs_sparse out = {FS_CSR, FS_INDEX32, 1 << 20, 4096, nnz, one, one, one, FS_F32, FS_MEMORY_HOST};
    REFUSED(fs_sketch_to_csr(NULL, S, 0, &out), FS_EINVAL, "4294967296", "64-bit");
    fs_sketch_destroy(S);
}

static void wrong_arrays_for_the_export_are_refused(void **state)
{
    (void)state;
    fs_sketch *S = sketch_of(&SPEC(3, 64, .seed = 1));
    int64_t ptr[65] = {-7}, index[24];
    double value[24];
    const fs_sparse good = {FS_CSR, FS_INDEX64, 64, 3, 24, ptr, index, value, FS_F64, FS_MEMORY_HOST};
    fs_sparse bad;
#define BAD(field, wrong, ...) \
    bad = good; \
    bad.field = wrong; \
    REFUSED(fs_sketch_to_csr(NULL, S, 0, &bad), FS_EINVAL, __VA_ARGS__)
    REFUSED(fs_sketch_to_csr(NULL, S, 0, NULL), FS_EINVAL, "out is NULL");
    REFUSED(fs_sketch_to_csr(NULL, NULL, 0,
                             &(fs_sparse){FS_CSR, FS_INDEX64, 0, 0, 0, ptr, index, value, FS_F64, FS_MEMORY_HOST}),
            FS_EINVAL, "S is NULL");
    BAD(format, FS_CSC, "format is 2");
    BAD(index_type, (fs_index_type)3, "index_type 3");
    BAD(dtype, (fs_dtype)5, "dtype 5");
    BAD(memory, FS_MEMORY_CUDA, "host");
    BAD(rows, 63, "63 rows", "k = 64");
    BAD(nnz, 23, "nnz is 23", "24");
    BAD(ptr, NULL, "NULL");
    BAD(index, NULL, "NULL");
    BAD(value, NULL, "NULL");
    BAD(ptr, (char *)ptr + 4, "align");
    BAD(index, (char *)index + 4, "align");
    BAD(value, (char *)value + 4, "align");
#undef BAD
    assert_int_equal(ptr[0], -7);
    fs_sketch_destroy(S);
}

static void descriptions_are_cut_as_snprintf_cuts(void **state)
{
    (void)state;
    char whole[256], part[10];
    fs_sketch *S = sketch_of(&SPEC(1000, 64, .seed = 123));
    const int length = fs_sketch_describe(S, whole, sizeof whole);
    assert_int_equal(length, strlen(whole));
    assert_non_null(strstr(whole, "64 x 1000"));
    assert_non_null(strstr(whole, "seed 123"));
    assert_int_equal(fs_sketch_describe(S, part, sizeof part), length);
    assert_int_equal(strlen(part), sizeof part - 1);
    assert_memory_equal(part, whole, sizeof part - 1);
    assert_int_equal(fs_sketch_describe(S, NULL, 0), length);
    assert_true(fs_sketch_describe(NULL, whole, sizeof whole) > 0);
    fs_sketch_destroy(S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pointers_that_are_null_are_refused),
        cmocka_unit_test(wrong_struct_sizes_are_refused),
        cmocka_unit_test(sizes_out_of_range_are_refused),
        cmocka_unit_test(families_and_shuffles_that_do_not_exist_are_refused),
        cmocka_unit_test(blocks_that_cannot_be_are_refused),
        cmocka_unit_test(interleaves_that_cannot_be_are_refused),
        cmocka_unit_test(fields_that_a_family_does_not_have_are_refused),
        cmocka_unit_test(qualities_that_do_not_exist_are_refused),
        cmocka_unit_test(rungs_choose_kappa_and_s),
        cmocka_unit_test(half_an_allocator_is_refused),
        cmocka_unit_test(ranges_of_columns_outside_S_are_refused),
        cmocka_unit_test(counts_that_no_index_holds_are_refused),
        cmocka_unit_test(wrong_arrays_for_the_export_are_refused),
        cmocka_unit_test(descriptions_are_cut_as_snprintf_cuts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
