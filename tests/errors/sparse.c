/* sparse.c - the checks of fs_apply_sparse: arrays that are not a sparse matrix are refused before anything is
 * computed, with the offending entry in the message, and Y is left as it was. */
#include <inttypes.h>
#include <string.h>

#include "tests/support/support.h"

enum { D = 6, K = 8, N = 5, NNZ = 7 };

/* A valid 6 x 5 matrix in CSR, and its arrays read as a 5 x 6 one in CSC. */
static int32_t ptr[D + 1] = {0, 2, 2, 4, 5, 6, 7}, index_of[NNZ] = {4, 0, 1, 1, 3, 2, 0};
static float value_of[NNZ] = {1, 2, 3, 4, 5, 6, 7};

typedef struct call {
    fs_context *ctx;
    fs_sketch *S;
    fs_sparse A;
    view Y;
} call;

static int make_call(void **state)
{
    static call c;
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K;
    c.ctx = context_of("ref", 1);
    c.S = sketch_of(&spec);
    c.A = (fs_sparse){FS_CSR, FS_INDEX32, D, N, NNZ, ptr, index_of, value_of, FS_F32, FS_MEMORY_HOST};
    c.Y = view_make(ROWS, K, N, FS_F32);
    view_seal(&c.Y);
    MUST(fs_apply_sparse(c.ctx, c.S, 0, 1.0, &c.A, 0.0, &c.Y.m));
    memcpy(c.Y.m.data, c.Y.sealed, sizeof(float) * K * N);
    *state = &c;
    return 0;
}
static int free_call(void **state)
{
    call *c = *state;
    fs_context_destroy(c->ctx);
    fs_sketch_destroy(c->S);
    view_free(&c->Y);
    return 0;
}

static void refuse(const call *c, const fs_sparse *A, fs_result code, const char *first, const char *second)
{
    fs_matrix Y = c->Y.m;
    REFUSED(fs_apply_sparse(c->ctx, c->S, 0, 1.0, A, 0.0, &Y), code, "fs_apply_sparse", first, second);
    expect_untouched(first, &c->Y);
}

/* A with one field, or one entry of an array for the while, changed. */
#define BAD(field, wrong, code, first, second) \
    do { \
        fs_sparse bad_ = c->A; \
        bad_.field = wrong; \
        refuse(c, &bad_, code, first, second); \
    } while (0)
#define BAD_ENTRY(entry, wrong, first, second) \
    do { \
        const int32_t good_ = entry; \
        entry = wrong; \
        refuse(c, &c->A, FS_EINVAL, first, second); \
        entry = good_; \
    } while (0)

static void matrices_that_make_no_sense_are_refused(void **state)
{
    call *c = *state;
    fs_matrix Y = c->Y.m;
    REFUSED(fs_apply_sparse(NULL, c->S, 0, 1.0, &c->A, 0.0, &Y), FS_EINVAL, "ctx is NULL");
    REFUSED(fs_apply_sparse(c->ctx, NULL, 0, 1.0, &c->A, 0.0, &Y), FS_EINVAL, "S is NULL");
    REFUSED(fs_apply_sparse(c->ctx, c->S, 0, 1.0, &c->A, 0.0, NULL), FS_EINVAL, "Y is NULL");
    refuse(c, NULL, FS_EINVAL, "A is NULL", "");
    BAD(format, (fs_sparse_format)3, FS_EINVAL, "format 3", "not exist");
    BAD(index_type, (fs_index_type)0, FS_EINVAL, "index_type 0", "not exist");
    BAD(dtype, (fs_dtype)9, FS_EINVAL, "dtype 9", "not exist");
    BAD(memory, (fs_memory)7, FS_EINVAL, "memory 7", "not exist");
    BAD(memory, FS_MEMORY_CUDA, FS_EUNSUPPORTED, "cuda memory", "host memory");
    BAD(rows, -1, FS_EINVAL, "-1 x 5", "negative");
    BAD(cols, -2, FS_EINVAL, "6 x -2", "negative");
    BAD(nnz, -3, FS_EINVAL, "-3 nonzeros", "negative");
    BAD(ptr, NULL, FS_EINVAL, "NULL", "");
    BAD(index, NULL, FS_EINVAL, "NULL", "");
    BAD(value, NULL, FS_EINVAL, "NULL", "");
}

static void shapes_and_types_that_do_not_fit_are_refused(void **state)
{
    call *c = *state;
    fs_matrix Y = c->Y.m;
    REFUSED(fs_apply_sparse(c->ctx, c->S, 1, 1.0, &c->A, 0.0, &Y), FS_EINVAL, "rows 1 to 1 + 6", "d = 6");
    REFUSED(fs_apply_sparse(c->ctx, c->S, -1, 1.0, &c->A, 0.0, &Y), FS_EINVAL, "rows -1 to -1 + 6", "d = 6");
    Y.cols = N - 1;
    REFUSED(fs_apply_sparse(c->ctx, c->S, 0, 1.0, &c->A, 0.0, &Y), FS_EINVAL, "Y is 8 x 4", "8 x 5");
    Y = c->Y.m;
    Y.dtype = FS_F16;
    REFUSED(fs_apply_sparse(c->ctx, c->S, 0, 1.0, &c->A, 0.0, &Y), FS_EINVAL, "A is f32", "not f16");
    Y = c->Y.m;
    Y.row_stride = 0;
    REFUSED(fs_apply_sparse(c->ctx, c->S, 0, 1.0, &c->A, 0.0, &Y), FS_EINVAL, "lie on each other");
    Y = c->Y.m;
    Y.memory = FS_MEMORY_CUDA;
    REFUSED(fs_apply_sparse(c->ctx, c->S, 0, 1.0, &c->A, 0.0, &Y), FS_EUNSUPPORTED, "cuda memory");
    expect_untouched("shapes", &c->Y);
}

static void pointers_that_do_not_ascend_to_nnz_are_refused(void **state)
{
    call *c = *state;
    BAD_ENTRY(ptr[0], 1, "ptr starts with 1", "0");
    BAD_ENTRY(ptr[0], -1, "ptr starts with -1", "0");
    BAD_ENTRY(ptr[2], 1, "ptr[2] is 1", "from 2");
    BAD_ENTRY(ptr[3], -4, "ptr[3] is -4", "from 2");
    BAD_ENTRY(ptr[3], 8, "ptr[3] is 8", "nnz = 7");
    BAD_ENTRY(ptr[3], INT32_MAX, "ptr[3] is 2147483647", "nnz = 7");
    BAD_ENTRY(ptr[6], 6, "ends with 6", "nnz is 7");
}

static void indices_outside_the_matrix_are_refused(void **state)
{
    call *c = *state;
    BAD_ENTRY(index_of[0], 5, "index[0] is 5", "from 0 to 4");
    BAD_ENTRY(index_of[6], -1, "index[6] is -1", "from 0 to 4");
    BAD_ENTRY(index_of[3], INT32_MAX, "index[3] is 2147483647", "from 0 to 4");
    BAD_ENTRY(index_of[3], INT32_MIN, "index[3] is -2147483648", "from 0 to 4");
    /* The same arrays by columns: 5 rows, 6 columns. */
    fs_sparse columns = c->A;
    columns.format = FS_CSC;
    columns.rows = N, columns.cols = D;
    view Y = view_make(ROWS, K, D, FS_F32);
    view_seal(&Y);
    index_of[2] = 5;
    REFUSED(fs_apply_sparse(c->ctx, c->S, 1, 1.0, &columns, 0.0, &Y.m), FS_EINVAL, "index[2] is 5", "from 0 to 4");
    expect_untouched("CSC", &Y);
    index_of[2] = 1;
    MUST(fs_apply_sparse(c->ctx, c->S, 1, 1.0, &columns, 0.0, &Y.m));
    view_free(&Y);
    /* In a matrix without columns no index is valid. */
    fs_sparse none = c->A;
    none.cols = 0;
    fs_matrix empty = c->Y.m;
    empty.cols = 0;
    REFUSED(fs_apply_sparse(c->ctx, c->S, 0, 1.0, &none, 0.0, &empty), FS_EINVAL, "index[0] is 4");
}

/* Y over any of the three arrays: it would be written while they are read. */
static void outputs_that_overlap_an_array_are_refused(void **state)
{
    call *c = *state;
    static union {
        int32_t index[64];
        float value[64];
    } both;
    const struct {
        void **array;
        const void *from;
        size_t bytes;
    } arrays[] = {{&c->A.value, value_of, sizeof value_of},
                  {&c->A.ptr, ptr, sizeof ptr},
                  {&c->A.index, index_of, sizeof index_of}};
    for (int i = 0; i < 3; i++) {
        void *own = *arrays[i].array;
        memcpy(both.index, arrays[i].from, arrays[i].bytes);
        *arrays[i].array = both.index;
        fs_matrix Y = fs_row_major(both.value + 1, K, N, FS_F32);
        REFUSED(fs_apply_sparse(c->ctx, c->S, 0, 1.0, &c->A, 0.0, &Y), FS_EINVAL, "overlap");
        assert_memory_equal(both.index, arrays[i].from, arrays[i].bytes);
        *arrays[i].array = own;
    }
}

static void misaligned_arrays_are_refused(void **state)
{
    call *c = *state;
    BAD(value, (char *)value_of + 2, FS_EINVAL, "align", "");
    BAD(ptr, (char *)ptr + 2, FS_EINVAL, "align", "");
    BAD(index, (char *)index_of + 2, FS_EINVAL, "align", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_that_make_no_sense_are_refused),
        cmocka_unit_test(shapes_and_types_that_do_not_fit_are_refused),
        cmocka_unit_test(pointers_that_do_not_ascend_to_nnz_are_refused),
        cmocka_unit_test(indices_outside_the_matrix_are_refused),
        cmocka_unit_test(outputs_that_overlap_an_array_are_refused),
        cmocka_unit_test(misaligned_arrays_are_refused),
    };
    return cmocka_run_group_tests(tests, make_call, free_call);
}
