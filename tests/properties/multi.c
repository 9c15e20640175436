/* multi.c - several contexts as one: for any contexts and any spread of rows over them, Y is the sum of
 * their partial results in order; on integers, the Y of one context with all rows, to the bit.  Here they are CPU
 * contexts, each with threads of its own; tests/device/multi.c has GPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/scarce.h"
#include "tests/support/support.h"

enum { MOST = 5 };

/* `count` row slices of A: even, uneven, or with no rows in the first and the last. */
static void cut(const fs_matrix *A, int count, int ragged, int64_t *row0, fs_matrix *pieces)
{
    for (int i = 0; i < count; i++) {
        int64_t from = A->rows * i / count, to = A->rows * (i + 1) / count;
        if (ragged && count > 2) {
            from = i < 2 ? 0 : A->rows * (i - 1) / (count - 2);
            to = i < 1 ? 0 : i == count - 1 ? A->rows : A->rows * i / (count - 2);
            if (i == count - 1) from = A->rows;
            if (to > A->rows) to = A->rows;
        }
        pieces[i] = *A;
        pieces[i].rows = to - from;
        pieces[i].offset += from * A->row_stride;
        row0[i] = from;
    }
}

static void whole_numbers_have_the_same_bits_on_any_number_of_contexts(void **state)
{
    (void)state;
    fs_context *contexts_[MOST], *one = context_of("base", 2);
    for (int i = 0; i < MOST; i++) contexts_[i] = context_of(i % 2 ? "base" : "ref", 1 + i % 2);
    for (int r = 0; r < recipe_count; r++) {
        if (!recipes[r].exact) continue;
        const fs_dtype in = (fs_dtype)(FS_F32 + r % 4), out = r % 3 ? in : fsi_dtype_sum(in);
        const fs_spec spec = spec_at(&recipes[r], recipes[r].d, recipes[r].k, 5);
        fs_sketch *S = sketch_of(&spec);
        const layout how = (layout)(r % OUTPUT_LAYOUTS);
        view A = view_make(how, spec.d, 5, in), want = view_make(how, spec.k, 5, out);
        fill_whole(&A.m, 3, 2);
        MUST(fs_apply(one, S, 0, 1.0, &A.m, 0.0, &want.m));
        for (int count = 1; count <= MOST; count++) {
            fs_multi *multi = NULL;
            MUST(fs_multi_create(&multi, contexts_, count, NULL));
            for (int ragged = 0; ragged < 2; ragged++) {
                view Y = view_make(how, spec.k, 5, out);
                int64_t row0[MOST];
                fs_matrix pieces[MOST];
                cut(&A.m, count, ragged, row0, pieces);
                view_seal(&Y);
                MUST(fs_multi_apply(multi, S, row0, 1.0, pieces, 0.0, &Y.m));
                expect_equal(recipes[r].name, &Y.m, &want.m);
                expect_padding_untouched(recipes[r].name, &Y);
                view_free(&Y);
            }
            fs_multi_destroy(multi);
        }
        view_free(&A), view_free(&want);
        fs_sketch_destroy(S);
    }
    for (int i = 0; i < MOST; i++) fs_context_destroy(contexts_[i]);
    fs_context_destroy(one);
}

static fs_sketch *some_sketch(void)
{
    fs_spec spec = FS_SPEC_INIT;
    spec.d = 300, spec.k = 64, spec.seed = 2;
    return sketch_of(&spec);
}

/* On numbers that round: fs_add of the partial results of each context; alpha and beta; twice, with memory that is
 * reused. */
static void parts_are_added_in_the_order_of_contexts(void **state)
{
    (void)state;
    fs_context *contexts_[3] = {context_of("base", 1), context_of("base", 1), context_of("base", 2)};
    fs_sketch *S = some_sketch();
    fs_multi *multi = NULL;
    MUST(fs_multi_create(&multi, contexts_, 3, NULL));
    view A = view_make(ROWS, 300, 7, FS_F32), Y = view_make(COLUMNS, 64, 7, FS_F32);
    view want = view_make(COLUMNS, 64, 7, FS_F32);
    fill_normal(&A.m, 1), fill_normal(&Y.m, 2), fill_normal(&want.m, 2);
    int64_t row0[3];
    fs_matrix pieces[3], parts[3];
    view made[3];
    cut(&A.m, 3, 0, row0, pieces);
    for (int i = 0; i < 3; i++) {
        made[i] = view_make(ROWS, 64, 7, FS_F32);
        MUST(fs_apply(contexts_[0], S, row0[i], -0.5, &pieces[i], 0.0, &made[i].m));
        parts[i] = made[i].m;
    }
    for (int again = 0; again < 2; again++) {
        MUST(fs_add(contexts_[0], parts, 3, 3.0, &want.m));
        MUST(fs_multi_apply(multi, S, row0, -0.5, pieces, 3.0, &Y.m));
        expect_same_bits("in order", &Y, &want);
    }
    char text[512];
    fs_multi_describe(multi, text, sizeof text);
    if (!strstr(text, "3 contexts, partial results added in host memory")) fail_msg("%s", text);
    for (int i = 0; i < 3; i++) view_free(&made[i]), fs_context_destroy(contexts_[i]);
    view_free(&A), view_free(&Y), view_free(&want);
    fs_multi_destroy(multi);
    fs_sketch_destroy(S);
}

static scarce memory;

static void what_is_wrong_gets_a_message_and_y_stays(void **state)
{
    (void)state;
    fs_context *contexts_[2] = {context_of("base", 1), context_of("base", 1)}, *twice[2] = {contexts_[0], contexts_[0]};
    fs_sketch *S = some_sketch();
    fs_multi *multi = NULL;
    REFUSED(fs_multi_create(NULL, contexts_, 2, NULL), FS_EINVAL, "out is NULL");
    REFUSED(fs_multi_create(&multi, contexts_, 0, NULL), FS_EINVAL, "count is 0");
    REFUSED(fs_multi_create(&multi, twice, 2, NULL), FS_EINVAL, "contexts[0] and contexts[1] are one");
    fs_multi_options options = FS_MULTI_INIT;
    options.sum = FS_MULTI_NCCL;
    REFUSED(fs_multi_create(&multi, contexts_, 2, &options), FS_EUNSUPPORTED, "NCCL", "not all contexts are CUDA's");
    options.sum = (fs_multi_sum)3;
    REFUSED(fs_multi_create(&multi, contexts_, 2, &options), FS_EINVAL, "sum 3 does not exist");
    options.sum = FS_MULTI_COPY, options.allocator = scarce_allocator(&memory);
    memory.left = 0;
    REFUSED(fs_multi_create(&multi, contexts_, 2, &options), FS_ENOMEM, "no memory");
    memory.left = 1;
    MUST(fs_multi_create(&multi, contexts_, 2, &options));

    view A = view_make(ROWS, 300, 7, FS_F32), Y = view_make(ROWS, 64, 7, FS_F32);
    fill_normal(&A.m, 1), fill_normal(&Y.m, 2);
    int64_t row0[2];
    fs_matrix pieces[2], bad = Y.m;
    cut(&A.m, 2, 0, row0, pieces);
    view_seal(&Y);
    REFUSED(fs_multi_apply(multi, S, row0, 1.0, pieces, 0.0, &Y.m), FS_ENOMEM, "2 parts of Y");
    memory.left = 1;
    bad.rows = 63;
    REFUSED(fs_multi_apply(multi, S, row0, 1.0, pieces, 0.0, &bad), FS_EINVAL, "Y is 63 x 7");
    REFUSED(fs_multi_apply(multi, NULL, row0, 1.0, pieces, 0.0, &Y.m), FS_EINVAL, "S is NULL");
    row0[1] = 149;
    REFUSED(fs_multi_apply(multi, S, row0, 1.0, pieces, 0.0, &Y.m), FS_EINVAL, "A[0] has rows 0 to 149",
            "A[1] rows 149 to 298");
    row0[1] = 151;
    REFUSED(fs_multi_apply(multi, S, row0, 1.0, pieces, 0.0, &Y.m), FS_EINVAL, "d = 300");
    row0[1] = 150, pieces[1].dtype = FS_F64;
    REFUSED(fs_multi_apply(multi, S, row0, 1.0, pieces, 0.0, &Y.m), FS_EINVAL, "f64");
    expect_untouched("refused", &Y);
    fs_multi_destroy(multi);
    fs_multi_destroy(NULL);

    /* A context that fails during the product, for want of scratch.  The message names it. */
    fs_context_options poor = FS_CONTEXT_INIT;
    poor.backend = FS_BACKEND_CPU, poor.threads = 1, poor.allocator = scarce_allocator(&memory);
    memory.left = 2;
    fs_context_destroy(contexts_[1]);
    MUST(fs_context_create(&contexts_[1], &poor));
    MUST(fs_multi_create(&multi, contexts_, 2, NULL));
    cut(&A.m, 2, 0, row0, pieces);
    REFUSED(fs_multi_apply(multi, S, row0, 1.0, pieces, 0.0, &Y.m), FS_ENOMEM, "contexts[1]: ", "scratch");
    expect_untouched("out of memory", &Y);
    fs_multi_destroy(multi);
    for (int i = 0; i < 2; i++) fs_context_destroy(contexts_[i]);
    view_free(&A), view_free(&Y);
    fs_sketch_destroy(S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_have_the_same_bits_on_any_number_of_contexts),
        cmocka_unit_test(parts_are_added_in_the_order_of_contexts),
        cmocka_unit_test(what_is_wrong_gets_a_message_and_y_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
