/* matrices.c - the checks of fs_apply, fs_apply_adjoint and fs_apply_sparse: every wrong argument is refused with the
 * right code and a message that has the numbers, and Y is left as it was; unusual but valid arguments are
 * accepted. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

enum { D = 100, K = 32, N = 4 };

/* A valid call, of which each test makes one thing wrong. */
typedef struct call {
    fs_context *ctx;
    fs_sketch *S;
    view A, Y;
} call;

static int make_call(void **state)
{
    static call c;
    fs_spec spec = FS_SPEC_INIT;
    spec.d = D, spec.k = K, spec.s = 4;
    c.ctx = context_of("ref", 1);
    c.S = sketch_of(&spec);
    c.A = view_make(ROWS, D, N, FS_F32);
    c.Y = view_make(ROWS, K, N, FS_F32);
    fill_whole(&c.A.m, 1, 8);
    view_seal(&c.Y);
    *state = &c;
    return 0;
}
static int free_call(void **state)
{
    call *c = *state;
    fs_context_destroy(c->ctx);
    fs_sketch_destroy(c->S);
    view_free(&c->A), view_free(&c->Y);
    return 0;
}

/* fs_apply with A, Y and row0 as given is refused in these words, the adjoint with X = A too where `both`, and nothing
 * is written. */
static void refuse(const call *c, int64_t row0, const fs_matrix *A, const fs_matrix *Y, fs_result code, int both,
                   const char *first, const char *second)
{
    fs_matrix to = Y ? *Y : c->Y.m, X = A ? *A : c->A.m;
    REFUSED(fs_apply(c->ctx, c->S, row0, 1.0, A, 0.0, Y ? &to : NULL), code, "fs_apply", first, second);
    if (both) REFUSED(fs_apply_adjoint(c->ctx, c->S, row0, 1.0, Y, 0.0, A ? &X : NULL), code, "adjoint", first, second);
    expect_untouched(first, &c->Y);
}

/* A, or Y, with one field changed. */
#define CHANGED(matrix, field, value) changed_##field(&(matrix), (value))
#define CHANGER(type, field) \
    static fs_matrix changed_##field(const fs_matrix *m, type value) \
    { \
        fs_matrix other = *m; \
        other.field = value; \
        return other; \
    }
CHANGER(void *, data)
CHANGER(int64_t, rows)
CHANGER(int64_t, cols)
CHANGER(int64_t, row_stride)
CHANGER(int64_t, col_stride)
CHANGER(int64_t, offset)
CHANGER(int64_t, size)
CHANGER(fs_dtype, dtype)
CHANGER(fs_memory, memory)

#define BAD_A(field, value, code, first, second) \
    do { \
        const fs_matrix bad_ = CHANGED(c->A.m, field, value); \
        refuse(c, 0, &bad_, &c->Y.m, code, 1, first, second); \
    } while (0)
#define BAD_Y(field, value, code, first, second) \
    do { \
        const fs_matrix bad_ = CHANGED(c->Y.m, field, value); \
        refuse(c, 0, &c->A.m, &bad_, code, 1, first, second); \
    } while (0)

static void pointers_that_are_null_are_refused(void **state)
{
    call *c = *state;
    fs_matrix X = c->A.m;
    REFUSED(fs_apply(NULL, c->S, 0, 1.0, &c->A.m, 0.0, &c->Y.m), FS_EINVAL, "ctx is NULL");
    REFUSED(fs_apply(c->ctx, NULL, 0, 1.0, &c->A.m, 0.0, &c->Y.m), FS_EINVAL, "S is NULL");
    REFUSED(fs_apply_adjoint(NULL, c->S, 0, 1.0, &c->Y.m, 0.0, &X), FS_EINVAL, "ctx is NULL");
    REFUSED(fs_apply_adjoint(c->ctx, NULL, 0, 1.0, &c->Y.m, 0.0, &X), FS_EINVAL, "S is NULL");
    refuse(c, 0, NULL, &c->Y.m, FS_EINVAL, 1, "is NULL", "");
    refuse(c, 0, &c->A.m, NULL, FS_EINVAL, 1, "Y is NULL", "");
    BAD_A(data, NULL, FS_EINVAL, "100 x 4", "NULL");
    BAD_Y(data, NULL, FS_EINVAL, "32 x 4", "NULL");
}

static void views_that_make_no_sense_are_refused(void **state)
{
    call *c = *state;
    BAD_A(dtype, (fs_dtype)0, FS_EINVAL, "dtype 0", "not exist");
    BAD_A(dtype, (fs_dtype)5, FS_EINVAL, "dtype 5", "not exist");
    BAD_Y(dtype, (fs_dtype)-1, FS_EINVAL, "dtype -1", "not exist");
    BAD_A(memory, (fs_memory)2, FS_EINVAL, "memory space 2", "not exist");
    BAD_Y(memory, (fs_memory)-1, FS_EINVAL, "memory space -1", "not exist");
    BAD_A(rows, -1, FS_EINVAL, "-1 x 4", "negative");
    BAD_A(cols, -2, FS_EINVAL, "100 x -2", "negative");
    BAD_Y(rows, INT64_MIN, FS_EINVAL, "-9223372036854775808 x 4", "negative");
    BAD_A(size, -1, FS_EINVAL, "-1 elements", "");
}

/* An address that is no multiple of the element's size, for every type. */
static void misaligned_data_are_refused(void **state)
{
    call *c = *state;
    for (fs_dtype t = FS_F32; t <= FS_BF16; t++) {
        char bytes[16];
        fs_matrix A = CHANGED(c->A.m, dtype, t), Y = CHANGED(c->Y.m, dtype, t);
        snprintf(bytes, sizeof bytes, "%d-byte", (int)fsi_dtype_size(t));
        A.data = (char *)A.data + fsi_dtype_size(t) / 2;
        refuse(c, 0, &A, &Y, FS_EINVAL, 1, "aligned", bytes);
        A.data = c->A.m.data;
        Y.data = (char *)Y.data + 1;
        refuse(c, 0, &A, &Y, FS_EINVAL, 1, "aligned", bytes);
    }
}

static void views_that_leave_their_buffer_are_refused(void **state)
{
    call *c = *state;
    BAD_A(row_stride, -4, FS_EINVAL, "reaches element -396", "-4");
    BAD_A(col_stride, -1, FS_EINVAL, "reaches element -3", "-1");
    BAD_A(offset, -1, FS_EINVAL, "reaches element -1", "");
    BAD_A(size, D * N - 1, FS_EINVAL, "reaches element 399", "buffer of 399");
    BAD_Y(offset, 1, FS_EINVAL, "reaches element 128", "buffer of 128");
    BAD_Y(row_stride, 5, FS_EINVAL, "reaches element 158", "buffer of 128");
}

/* Sizes and strides whose products do not fit 64 bits, as elements or only as bytes. */
static void addresses_that_overflow_are_refused(void **state)
{
    call *c = *state;
    BAD_A(row_stride, INT64_MAX, FS_EINVAL, "9223372036854775807", "64 bits");
    BAD_A(row_stride, INT64_MIN, FS_EINVAL, "-9223372036854775808", "64 bits");
    BAD_A(col_stride, INT64_MAX / 2, FS_EINVAL, "4611686018427387903", "64 bits");
    BAD_A(row_stride, (int64_t)1 << 56, FS_EINVAL, "72057594037927936", "64 bits");
    BAD_A(offset, INT64_MAX, FS_EINVAL, "64 bits", "100 x 4");
    BAD_Y(col_stride, INT64_MAX, FS_EINVAL, "9223372036854775807", "64 bits");
    BAD_Y(offset, INT64_MAX - 10, FS_EINVAL, "64 bits", "32 x 4");
}

static void shapes_that_do_not_fit_S_are_refused(void **state)
{
    call *c = *state;
    refuse(c, -1, &c->A.m, &c->Y.m, FS_EINVAL, 1, "rows -1 to -1 + 100", "d = 100");
    refuse(c, 1, &c->A.m, &c->Y.m, FS_EINVAL, 1, "rows 1 to 1 + 100", "d = 100");
    refuse(c, INT64_MAX, &c->A.m, &c->Y.m, FS_EINVAL, 1, "9223372036854775807 + 100", "d = 100");
    refuse(c, INT64_MIN, &c->A.m, &c->Y.m, FS_EINVAL, 1, "-9223372036854775808 + 100", "d = 100");
    const fs_matrix tall = {c->A.m.data, INT64_MAX, N, 0, 1, 0, 0, FS_F32, FS_MEMORY_HOST};
    refuse(c, 0, &tall, &c->Y.m, FS_EINVAL, 0, "0 + 9223372036854775807", "d = 100");
    BAD_Y(rows, K - 1, FS_EINVAL, "Y is 31 x 4", "32 x 4");
    BAD_Y(cols, N - 1, FS_EINVAL, "Y is 32 x 3", "32 x 4");
    BAD_A(cols, N - 1, FS_EINVAL, "Y is 32 x 4", "32 x 3");
}

/* The output has the input's type, or the type of its sums. */
static void pairs_of_types_that_do_not_belong_together_are_refused(void **state)
{
    call *c = *state;
    for (fs_dtype in = FS_F32; in <= FS_BF16; in++)
        for (fs_dtype out = FS_F32; out <= FS_BF16; out++) {
            view A = view_make(ROWS, D, N, in), Y = view_make(ROWS, K, N, out);
            view narrow = view_make(ROWS, K, N, in), X = view_make(ROWS, D, N, out);
            fill_whole(&A.m, 1, 8);
            fill_whole(&narrow.m, 1, 8);
            view_seal(&Y), view_seal(&X);
            if (out == in || out == fsi_dtype_sum(in)) {
                MUST(fs_apply(c->ctx, c->S, 0, 1.0, &A.m, 0.0, &Y.m));
                MUST(fs_apply_adjoint(c->ctx, c->S, 0, 1.0, &narrow.m, 0.0, &X.m));
            } else {
                char in_is[16], not_out[16];
                snprintf(in_is, sizeof in_is, "is %s", fs_dtype_name(in));
                snprintf(not_out, sizeof not_out, "not %s", fs_dtype_name(out));
                REFUSED(fs_apply(c->ctx, c->S, 0, 1.0, &A.m, 0.0, &Y.m), FS_EINVAL, in_is, not_out);
                REFUSED(fs_apply_adjoint(c->ctx, c->S, 0, 1.0, &narrow.m, 0.0, &X.m), FS_EINVAL, in_is, not_out);
                expect_untouched(not_out, &Y), expect_untouched(not_out, &X);
            }
            view_free(&A), view_free(&Y), view_free(&narrow), view_free(&X);
        }
}

static void a_place_that_is_not_the_contexts_is_unsupported(void **state)
{
    call *c = *state;
    BAD_A(memory, FS_MEMORY_CUDA, FS_EUNSUPPORTED, "cuda memory", "host memory");
    BAD_Y(memory, FS_MEMORY_CUDA, FS_EUNSUPPORTED, "cuda memory", "host memory");
}

static void an_output_whose_elements_lie_on_each_other_is_refused(void **state)
{
    call *c = *state;
    static const struct {
        int64_t row_stride, col_stride;
        const char *words;
    } strides[] = {{0, 1, "strides 0 and 1"}, {4, 0, "strides 4 and 0"},   {0, 0, "strides 0 and 0"},
                   {3, 1, "strides 3 and 1"}, {1, 31, "strides 1 and 31"}, {2, 3, "strides 2 and 3"},
                   {1, 1, "strides 1 and 1"}};
    for (int i = 0; i < 7; i++) {
        fs_matrix Y = c->Y.m;
        Y.row_stride = strides[i].row_stride;
        Y.col_stride = strides[i].col_stride;
        REFUSED(fs_apply(c->ctx, c->S, 0, 1.0, &c->A.m, 0.0, &Y), FS_EINVAL, "lie on each other", strides[i].words);
    }
    fs_matrix column = CHANGED(c->A.m, cols, 1), Y = CHANGED(c->Y.m, cols, 1);
    Y.row_stride = 0;
    REFUSED(fs_apply(c->ctx, c->S, 0, 1.0, &column, 0.0, &Y), FS_EINVAL, "lie on each other", "0");
    expect_untouched("stride 0", &c->Y);
}

/* overlap --------------------------------------------------------------------------------------------------- */

/* One buffer of 160 rows of 12 floats with A, 100 x 4, at its start and Y, 32 x 4, somewhere. */
typedef struct shared {
    view buffer;
    fs_matrix A;
} shared;
static shared share(int transposed)
{
    shared s = {view_make(transposed ? COLUMNS : ROWS, 160, 12, FS_F32), {0}};
    fill_whole(&s.buffer.m, 5, 8);
    s.A = s.buffer.m;
    s.A.rows = D, s.A.cols = N;
    view_seal(&s.buffer);
    return s;
}
static fs_matrix part(const shared *s, int64_t row, int64_t col)
{
    fs_matrix Y = s->buffer.m;
    Y.rows = K, Y.cols = N;
    Y.offset = row * Y.row_stride + col * Y.col_stride;
    return Y;
}

static void outputs_that_overlap_the_input_are_refused(void **state)
{
    call *c = *state;
    static const struct {
        int64_t row, col;
    } places[] = {{0, 0}, {68, 0}, {99, 3}, {50, 3}, {0, 3}};
    for (int i = 0; i < 10; i++) {
        shared s = share(i & 1);
        fs_matrix Y = part(&s, places[i / 2].row, places[i / 2].col), X = s.A;
        REFUSED(fs_apply(c->ctx, c->S, 0, 1.0, &s.A, 0.0, &Y), FS_EINVAL, "A and Y overlap");
        REFUSED(fs_apply_adjoint(c->ctx, c->S, 0, 1.0, &Y, 0.0, &X), FS_EINVAL, "Y and X overlap");
        expect_untouched("overlap", &s.buffer);
        view_free(&s.buffer);
    }
}

/* Columns 4 ... 7 beside A's columns 0 ... 3, the rows below A, also upside down: no byte is shared. */
static void outputs_interleaved_with_the_input_are_accepted(void **state)
{
    call *c = *state;
    static const struct {
        int64_t row, col;
    } places[] = {{0, 4}, {60, 4}, {0, 8}, {100, 0}, {128, 2}};
    view want = view_make(ROWS, K, N, FS_F32);
    for (int i = 0; i < 20; i++) {
        shared s = share(i & 1);
        fs_matrix Y = part(&s, places[i / 4].row, places[i / 4].col);
        if (i & 2) {
            Y.offset += (K - 1) * Y.row_stride;
            Y.row_stride = -Y.row_stride;
        }
        MUST(fs_apply(c->ctx, c->S, 0, 1.0, &s.A, 0.0, &want.m));
        MUST(fs_apply(c->ctx, c->S, 0, 1.0, &s.A, 0.0, &Y));
        expect_equal("interleaved", &Y, &want.m);
        view_free(&s.buffer);
    }
    view_free(&want);
}

/* The stride of a dimension of one element has no meaning: it may be any number, and none may overflow. */
static void strides_that_are_never_taken_do_not_matter(void **state)
{
    call *c = *state;
    static const int64_t wild[] = {0, -1, INT64_MAX, INT64_MIN, INT64_MAX / 4};
    shared s = share(0);
    view want = view_make(ROWS, K, 1, FS_F32);
    for (int i = 0; i < 5; i++) {
        fs_matrix A = CHANGED(s.A, cols, 1), Y = part(&s, 0, 4);
        Y.cols = 1;
        MUST(fs_apply(c->ctx, c->S, 0, 1.0, &A, 0.0, &want.m));
        A.col_stride = wild[i];
        Y.col_stride = wild[4 - i];
        MUST(fs_apply(c->ctx, c->S, 0, 1.0, &A, 0.0, &Y));
        expect_equal("a column with a wild stride", &Y, &want.m);
        MUST(fs_apply_adjoint(c->ctx, c->S, 0, 1.0, &Y, 0.0, &A));
    }
    view_free(&want);
    /* Two rows that touch the ends of the address space's range of elements, around Y: refused or distinguished, but
     * none of their sums may overflow. */
    fs_spec spec = FS_SPEC_INIT;
    spec.d = 2, spec.k = 1;
    fs_sketch *S = sketch_of(&spec);
    fs_matrix A = {s.buffer.m.data, 2, 1, ((int64_t)1 << 61) - 1, 1, 0, 0, FS_F32, FS_MEMORY_HOST}, Y = part(&s, 0, 4);
    Y.rows = Y.cols = 1;
    A.memory = Y.memory = FS_MEMORY_CUDA;
    assert_int_not_equal(fs_apply(c->ctx, S, 0, 1.0, &A, 0.0, &Y), FS_OK);
    fs_sketch_destroy(S);
    view_free(&s.buffer);
}

/* The checks that libraries on top call: in the name of the caller's function, and of its argument. */
static void the_public_checks_speak_in_the_callers_name(void **state)
{
    (void)state;
    float data[12] = {0};
    const fs_matrix sound = fs_row_major(data, 3, 4, FS_F32);
    fs_matrix m = sound;
    m.size = 12;
    MUST(fs_matrix_check("f", "M", &m));
    MUST(fs_matrix_check_output("f", "M", &m));
    m.size = 11;
    REFUSED(fs_matrix_check("their_function", "M", &m), FS_EINVAL, "their_function: M", "element 11", "buffer of 11");
    REFUSED(fs_matrix_check_output("their_function", "Out", &m), FS_EINVAL, "their_function: Out", "element 11");
    REFUSED(fs_matrix_check("f", "M", NULL), FS_EINVAL, "f: M is NULL");
    REFUSED(fs_matrix_check_output("f", "M", NULL), FS_EINVAL, "f: M is NULL");
    m = sound, m.dtype = (fs_dtype)9;
    REFUSED(fs_matrix_check("f", "M", &m), FS_EINVAL, "dtype 9");
    m = sound, m.rows = -1;
    REFUSED(fs_matrix_check("f", "M", &m), FS_EINVAL, "-1 x 4");
    m = sound, m.data = NULL;
    REFUSED(fs_matrix_check("f", "M", &m), FS_EINVAL, "data is NULL");
    m.rows = 0;
    MUST(fs_matrix_check("f", "M", &m)); /* nothing needs no data */
    m = sound, m.row_stride = -4;
    REFUSED(fs_matrix_check("f", "M", &m), FS_EINVAL, "element -8");
    m.offset = 8;
    MUST(fs_matrix_check_output("f", "M", &m));
    /* An input may read an element twice, an output not. */
    m = sound, m.row_stride = 0;
    MUST(fs_matrix_check("f", "M", &m));
    REFUSED(fs_matrix_check_output("f", "M", &m), FS_EINVAL, "lie on each other", "3 x 4");
    m = sound, m.rows = 1, m.col_stride = 0;
    REFUSED(fs_matrix_check_output("f", "M", &m), FS_EINVAL, "stride is 0");
}

static void overlap_is_seen_and_interleaving_is_none(void **state)
{
    (void)state;
    float data[24] = {0};
    const fs_matrix whole = fs_row_major(data, 6, 4, FS_F32);
    fs_matrix left = whole, right = whole, upper = whole, lower = whole;
    left.cols = 2, right.cols = 2, right.offset = 2;
    upper.rows = 3, lower.rows = 3, lower.offset = 12;
    assert_int_equal(fs_matrix_overlap(&whole, &whole), 1);
    assert_int_equal(fs_matrix_overlap(&left, &right), 0); /* columns of one buffer */
    assert_int_equal(fs_matrix_overlap(&upper, &lower), 0);
    assert_int_equal(fs_matrix_overlap(&left, &upper), 1);
    right.offset = 1;
    assert_int_equal(fs_matrix_overlap(&left, &right), 1);
    assert_int_equal(fs_matrix_overlap(&right, &left), 1);
    lower.offset = 8;
    assert_int_equal(fs_matrix_overlap(&upper, &lower), 1);
    lower.rows = 0;
    assert_int_equal(fs_matrix_overlap(&upper, &lower), 0); /* empty matrices do not overlap */
    right = whole, right.memory = FS_MEMORY_CUDA;
    assert_int_equal(fs_matrix_overlap(&whole, &right), 0); /* other memory */
    upper.row_stride = -4, upper.offset = 8;
    assert_int_equal(fs_matrix_overlap(&upper, &whole), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pointers_that_are_null_are_refused),
        cmocka_unit_test(views_that_make_no_sense_are_refused),
        cmocka_unit_test(misaligned_data_are_refused),
        cmocka_unit_test(views_that_leave_their_buffer_are_refused),
        cmocka_unit_test(addresses_that_overflow_are_refused),
        cmocka_unit_test(shapes_that_do_not_fit_S_are_refused),
        cmocka_unit_test(pairs_of_types_that_do_not_belong_together_are_refused),
        cmocka_unit_test(a_place_that_is_not_the_contexts_is_unsupported),
        cmocka_unit_test(an_output_whose_elements_lie_on_each_other_is_refused),
        cmocka_unit_test(outputs_that_overlap_the_input_are_refused),
        cmocka_unit_test(outputs_interleaved_with_the_input_are_accepted),
        cmocka_unit_test(strides_that_are_never_taken_do_not_matter),
        cmocka_unit_test(the_public_checks_speak_in_the_callers_name),
        cmocka_unit_test(overlap_is_seen_and_interleaving_is_none),
    };
    return cmocka_run_group_tests(tests, make_call, free_call);
}
