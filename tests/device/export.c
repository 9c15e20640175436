/* export.c - the device's own code generates the same S: its digest and its columns are the host's, bit for bit. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

/* Sizes beyond a recipe's own at which nothing divides anything. */
static const struct {
    int64_t d, k;
} sizes[] = {{0, 0}, {1, 1}, {2, 3}, {31, 64}, {129, 65}, {700, 130}, {64, 1000}};

static fs_sketch *sketch_at(int64_t number, const recipe **R, fs_spec *spec)
{
    *R = &recipes[number % recipe_count];
    const int64_t size = number / recipe_count % COUNT(sizes);
    *spec = spec_at(*R, size ? sizes[size].d : (*R)->d, size ? sizes[size].k : (*R)->k, 11 + (uint64_t)number);
    return sketch_of(spec);
}
enum { RANGES = 7 };
static int64_t range_at(int64_t d, int range, int64_t *cols)
{
    const int64_t ranges[RANGES][2] = {{0, d}, {0, 0}, {0, 1}, {d, 0}, {d - 1, 1}, {d / 3, d / 2}, {d / 2, d - d / 2}};
    *cols = ranges[range][1];
    return ranges[range][0];
}

static void check_digest(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const recipe *R;
    fs_spec spec;
    fs_sketch *S = sketch_at(number, &R, &spec);
    for (int range = 0; range < RANGES; range++) {
        int64_t cols;
        uint64_t got = 0, want = 0;
        const int64_t col0 = range_at(spec.d, range, &cols);
        MUST(fs_sketch_digest(l->gpu, S, col0, cols, &got));
        MUST(fs_sketch_digest(NULL, S, col0, cols, &want));
        if (got != want)
            fail_msg("%s, k %" PRId64 ", d %" PRId64 ", columns %" PRId64 " + %" PRId64
                     ": the device's digest is %016" PRIx64 ", the host's %016" PRIx64,
                     R->name, spec.k, spec.d, col0, cols, got, want);
    }
    fs_sketch_destroy(S);
}
static void the_devices_digest_is_the_hosts(void **state)
{
    (void)state;
    for_each_case(COUNT(sizes) * recipe_count, COUNT(sizes) * recipe_count, check_digest, NULL);
}

/* More columns than one launch has threads, and blocks of many sizes. */
static void check_long_digest(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const int64_t d = small_set ? 3001 : 1000003;
    const recipe *R = &recipes[number];
    if (R->family == FS_SRHT || R->family == FS_GAUSSIAN) return;
    const fs_spec spec = spec_at(R, d, 1000, 3);
    fs_sketch *S = sketch_of(&spec);
    uint64_t got = 0, want = 0;
    MUST(fs_sketch_digest(l->gpu, S, 5, d - 7, &got));
    MUST(fs_sketch_digest(NULL, S, 5, d - 7, &want));
    if (got != want)
        fail_msg("%s, d %" PRId64 ": the device's digest is %016" PRIx64 ", the host's %016" PRIx64, R->name, d, got,
                 want);
    fs_sketch_destroy(S);
}
static void the_digest_of_many_columns_is_the_hosts(void **state)
{
    (void)state;
    for_each_case(recipe_count, recipe_count, check_long_digest, NULL);
}

/* The three arrays come from device memory in which nothing was set. */
static void check_arrays(const lane *l, const recipe *R, const fs_sketch *S, const fs_sparse *want, int64_t col0)
{
    const int64_t index = want->index_type == FS_INDEX32 ? 4 : 8, value = fsi_dtype_size(want->dtype);
    const int64_t bytes[3] = {(want->rows + 1) * index, want->nnz * index, want->nnz * value};
    const void *const arrays[3] = {want->ptr, want->index, want->value};
    static const char *const names[3] = {"ptr", "index", "value"};
    fs_sparse device = sparse_mirror(l, want);
    void *const outputs[3] = {device.ptr, device.index, device.value};
    for (int a = 0; a < 3; a++) {
        unsigned char *noise = memset(room(bytes[a], 1), 0xA5, (size_t)bytes[a]);
        copy_in(l->stream, outputs[a], noise, bytes[a]);
        free(noise);
    }
    MUST(fs_sketch_to_csr(l->gpu, S, col0, &device));
    stream_wait(l->stream);
    for (int a = 0; a < 3; a++) {
        const int64_t each = a < 2 ? index : value;
        unsigned char *got = room(bytes[a], 1);
        copy_out(l->stream, got, outputs[a], bytes[a]);
        for (int64_t b = 0; b < bytes[a]; b++)
            if (got[b] != ((const unsigned char *)arrays[a])[b])
                fail_msg("%s, k %" PRId64 ", columns %" PRId64 " + %" PRId64 ", %d-bit indices, %s: %s[%" PRId64
                         "] is not the host's, byte %" PRId64 " is %02x, it must be %02x",
                         R->name, want->rows, col0, want->cols, (int)index * 8, fs_dtype_name(want->dtype), names[a],
                         b / each, b % each, got[b], ((const unsigned char *)arrays[a])[b]);
        free(got);
    }
    sparse_mirror_free(l, &device);
}
static void check_csr(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const recipe *R;
    fs_spec spec;
    fs_sketch *S = sketch_at(number, &R, &spec);
    for (int range = 0; range < RANGES; range++) {
        int64_t cols;
        const uint64_t draw = bits_at(19, number * RANGES + range);
        const int64_t col0 = range_at(spec.d, range, &cols);
        const fs_dtype type = (fs_dtype)(1 + (draw >> 1) % 4);
        fs_sparse want = export_columns(S, col0, cols, draw & 1 ? FS_INDEX32 : FS_INDEX64, type);
        check_arrays(l, R, S, &want, col0);
        sparse_free(&want);
    }
    fs_sketch_destroy(S);
}
static void the_devices_csr_arrays_are_the_hosts(void **state)
{
    (void)state;
    for_each_case(COUNT(sizes) * recipe_count, COUNT(sizes) * recipe_count, check_csr, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_devices_digest_is_the_hosts),
        cmocka_unit_test(the_digest_of_many_columns_is_the_hosts),
        cmocka_unit_test(the_devices_csr_arrays_are_the_hosts),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
