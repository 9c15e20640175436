/* huge.c - matrices of more than 2^31 elements: no index of a kernel may be 32 bits wide.
 *
 * Such a matrix is made on the device by repeating a pattern of integers whose length is prime, so that any element
 * of it is known here; the CPU multiplies a few columns, or makes a few rows, and those must be equal. */
#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "call.h"

enum { N = 1040, PERIOD = 1000003, CHECKED = 4 };
static int64_t depth(void) { return dry ? 2051 : ((int64_t)1 << 21) + 3; }
static const int64_t checked[CHECKED] = {0, 1, N / 2, N - 1};

static fs_spec spec_of(fs_shuffle shuffle)
{
    const recipe R = {"huge", FS_BLOCKPERM, shuffle, 16, 1, 4, shuffle == FS_SHUFFLE_GROUPS ? 16 : 0, 0, 0, 1};
    return spec_at(&R, depth(), 1024, 23);
}

static void skip_unless_room(int64_t bytes)
{
    if (small_set) skip_because("too large for a sanitizer");
    if (dry) return;
    /* Memory that earlier tests returned to the pool is free only when the pool releases it. */
    cudaMemPool_t pool;
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    CUDA(cudaMemPoolTrimTo(pool, 0));
    size_t available, total;
    CUDA(cudaMemGetInfo(&available, &total));
    if ((int64_t)available < bytes + ((int64_t)1 << 30)) skip_because("this GPU has too little free memory");
}

/* A d x N matrix on the device in which element (i, j) is pattern_at(its place in memory). */
static double pattern_at(int64_t place) { return whole_at(29, place % PERIOD, 8); }
static fs_matrix huge_matrix(const lane *l, fs_dtype type, int by_columns)
{
    const int64_t elements = depth() * N, bytes = elements * fsi_dtype_size(type),
                  period = PERIOD * fsi_dtype_size(type);
    skip_unless_room(bytes);
    void *pattern = room(PERIOD, (size_t)fsi_dtype_size(type)), *memory = device_alloc(l->stream, bytes);
    for (int64_t e = 0; e < PERIOD; e++) fsi_store(pattern, type, e, pattern_at(e));
    copy_in(l->stream, memory, pattern, period);
    device_repeat(l->stream, memory, period, bytes);
    free(pattern);
    fs_matrix m = by_columns ? fs_batch_major(memory, N, depth(), type) : fs_row_major(memory, depth(), N, type);
    m.memory = device_place();
    m.size = elements;
    return m;
}

static void apply_law(fs_dtype type, int by_columns, fs_shuffle shuffle)
{
    const lane *l = &lanes[0];
    const fs_spec spec = spec_of(shuffle);
    fs_matrix A = huge_matrix(l, type, by_columns);
    fs_sketch *S = sketch_of(&spec);
    view Y = view_make(by_columns ? COLUMNS : ROWS, spec.k, N, FS_F32);
    view some = view_make(ROWS, depth(), CHECKED, FS_F32), want = view_make(ROWS, spec.k, CHECKED, FS_F32);
    mirror to = mirror_make(l, &Y);
    MUST(fs_apply(l->gpu, S, 0, 1.0, &A, 0.0, &to.m));
    for (int64_t i = 0; i < depth(); i++)
        for (int64_t j = 0; j < CHECKED; j++)
            put(&some.m, i, j, pattern_at(i * A.row_stride + checked[j] * A.col_stride));
    MUST(fs_apply(l->tuned, S, 0, 1.0, &some.m, 0.0, &want.m));
    stream_wait(l->stream);
    mirror_fetch(l, "huge", &to, &Y);
    for (int64_t i = 0; i < spec.k; i++)
        for (int64_t j = 0; j < CHECKED; j++)
            if (at(&Y.m, i, checked[j]) != at(&want.m, i, j))
                fail_msg("%s, %s: row %" PRId64 " of column %" PRId64 " is %.9g, it must be %.9g", fs_dtype_name(type),
                         by_columns ? "batch-major" : "row-major", i, checked[j], at(&Y.m, i, checked[j]),
                         at(&want.m, i, j));
    device_free(l->stream, A.data);
    mirror_free(l, &to);
    view_free(&Y), view_free(&some), view_free(&want);
    fs_sketch_destroy(S);
}
static void apply_of_a_huge_row_major_bf16_matrix_equals_the_cpu(void **state)
{
    (void)state;
    apply_law(FS_BF16, 0, FS_SHUFFLE_ROWS);
}
static void apply_of_a_huge_batch_major_f32_matrix_equals_the_cpu(void **state)
{
    (void)state;
    apply_law(FS_F32, 1, FS_SHUFFLE_GROUPS);
}

/* X = X + S' Y; rows of X at its start, middle and end, as many as 64 of them at a time. */
static void the_adjoint_into_a_huge_row_major_matrix_equals_the_cpu(void **state)
{
    (void)state;
    enum { ROWS_AT_ONCE = 64 };
    const lane *l = &lanes[0];
    const fs_spec spec = spec_of(FS_SHUFFLE_ROWS);
    const int64_t starts[] = {0, depth() / 2 + 1, depth() - ROWS_AT_ONCE};
    fs_matrix X = huge_matrix(l, FS_BF16, 0);
    fs_sketch *S = sketch_of(&spec);
    view Y = view_make(ROWS, spec.k, N, FS_BF16), want = view_make(ROWS, ROWS_AT_ONCE, N, FS_BF16);
    view got = view_make(ROWS, ROWS_AT_ONCE, N, FS_BF16);
    fill_whole(&Y.m, 31, 8);
    mirror from = mirror_make(l, &Y);
    MUST(fs_apply_adjoint(l->gpu, S, 0, 1.0, &from.m, 1.0, &X));
    stream_wait(l->stream);
    for (int64_t s = 0; s < COUNT(starts); s++) {
        for (int64_t e = 0; e < (int64_t)ROWS_AT_ONCE * N; e++)
            put(&want.m, e / N, e % N, pattern_at(starts[s] * N + e));
        MUST(fs_apply_adjoint(l->tuned, S, starts[s], 1.0, &Y.m, 1.0, &want.m));
        copy_out(l->stream, got.m.data, (const char *)X.data + starts[s] * N * 2, (int64_t)ROWS_AT_ONCE * N * 2);
        char name[64];
        snprintf(name, sizeof name, "rows from %" PRId64 " on", starts[s]);
        expect_equal(name, &got.m, &want.m);
    }
    device_free(l->stream, X.data);
    mirror_free(l, &from);
    view_free(&Y), view_free(&want), view_free(&got);
    fs_sketch_destroy(S);
}

/* X = S' Y, whole columns of X, which are contiguous. */
static void the_adjoint_into_a_huge_batch_major_matrix_equals_the_cpu(void **state)
{
    (void)state;
    const lane *l = &lanes[0];
    const fs_spec spec = spec_of(FS_SHUFFLE_GROUPS);
    fs_matrix X = huge_matrix(l, FS_F32, 1);
    fs_sketch *S = sketch_of(&spec);
    view Y = view_make(COLUMNS, spec.k, N, FS_F32), want = view_make(COLUMNS, depth(), 1, FS_F32);
    view got = view_make(COLUMNS, depth(), 1, FS_F32);
    fill_whole(&Y.m, 31, 8);
    mirror from = mirror_make(l, &Y);
    MUST(fs_apply_adjoint(l->gpu, S, 0, 1.0, &from.m, 0.0, &X));
    stream_wait(l->stream);
    for (int c = 0; c < CHECKED; c++) {
        fs_matrix column = Y.m;
        column.offset += checked[c] * column.col_stride;
        column.cols = 1;
        MUST(fs_apply_adjoint(l->tuned, S, 0, 1.0, &column, 0.0, &want.m));
        copy_out(l->stream, got.m.data, (const char *)X.data + checked[c] * depth() * 4, depth() * 4);
        char name[64];
        snprintf(name, sizeof name, "column %" PRId64, checked[c]);
        expect_equal(name, &got.m, &want.m);
    }
    device_free(l->stream, X.data);
    mirror_free(l, &from);
    view_free(&Y), view_free(&want), view_free(&got);
    fs_sketch_destroy(S);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(apply_of_a_huge_row_major_bf16_matrix_equals_the_cpu),
        cmocka_unit_test(apply_of_a_huge_batch_major_f32_matrix_equals_the_cpu),
        cmocka_unit_test(the_adjoint_into_a_huge_row_major_matrix_equals_the_cpu),
        cmocka_unit_test(the_adjoint_into_a_huge_batch_major_matrix_equals_the_cpu),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
