/* sparse.c - a sparse A in device memory gives what its dense form gives, and a broken one is refused unharmed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "call.h"

/* Three quarters of the entries, the whole first row, and every fifth row are 0. */
static void fill_sparse(const fs_matrix *m, uint64_t seed)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++) {
            const int64_t e = i * m->cols + j;
            put(m, i, j, i % 5 == 0 || bits_at(seed, e) % 4 != 0 ? 0.0 : whole_at(seed + 1, e, 8));
        }
}

/* An entry x may be stored as x - 1 and 1: absolute values up to 10. */
enum { LIMIT = 10 };

static void check_product(const lane *l, const call *c, fs_sparse_format format, fs_index_type index)
{
    fs_sketch *S = sketch_of(&c->spec);
    view A = view_make(ROWS, c->rows, c->n, c->in), want = call_output(c), Y = call_output(c);
    fill_sparse(&A.m, 31);
    fs_sparse host = sparse_of(&A.m, 41, format, index), device = sparse_mirror(l, &host);
    mirror to = mirror_make(l, &Y);
    MUST(fs_apply_sparse(l->gpu, S, c->row0, c->alpha, &device, c->beta, &to.m));
    stream_wait(l->stream);
    mirror_fetch(l, c->name, &to, &Y);
    expect_padding_untouched(c->name, &Y);
    MUST(call_run(c, c->large ? l->tuned : l->ref, S, &A.m, &want.m));
    call_compare(c, S, &Y, &want);
    sparse_mirror_free(l, &device), mirror_free(l, &to);
    sparse_free(&host);
    view_free(&A), view_free(&want), view_free(&Y);
    fs_sketch_destroy(S);
}

/* The digits are recipe, format, index type and types; shapes and scalars are drawn. */
static void check_case(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const int64_t widths[] = {1, 3, 17, 64, 65, 130}, depths[] = {1, 40, 129, 333};
    const recipe *R = &recipes[number % recipe_count];
    const uint64_t draw = bits_at(51, number), scalars = bits_at(52, number);
    const int64_t kind = number / recipe_count;
    const type_pair types = type_pairs[kind / 4 % TYPE_PAIRS];
    call c = {.in = types.in, .out = types.out, .limit = LIMIT, .row0 = (int64_t)(draw & 63), .from = ROWS};
    c.rows = depths[draw >> 8 & 3];
    c.n = widths[(draw >> 16) % 6];
    c.to = (layout)((draw >> 24) % OUTPUT_LAYOUTS);
    c.spec = spec_at(R, c.row0 + c.rows + 3, draw >> 32 & 1 ? 65 : 257, 21);
    draw_scalars(&c, scalars);
    char name[120];
    snprintf(name, sizeof name, "%s, %s with %d-bit indices", R->name, kind & 1 ? "CSR" : "CSC", kind & 2 ? 32 : 64);
    call_name(&c, name);
    check_product(l, &c, kind & 1 ? FS_CSR : FS_CSC, kind & 2 ? FS_INDEX32 : FS_INDEX64);
}
static void a_sparse_matrix_gives_what_its_dense_form_gives(void **state)
{
    (void)state;
    for_each_case((int64_t)recipe_count * 4 * TYPE_PAIRS * 2, 100, check_case, NULL);
}

/* Many rows of A, most of them short, and more columns than any tile of Y has. */
static void check_large(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const recipe R = {"blockperm", FS_BLOCKPERM, FS_SHUFFLE_ROWS, 16, number & 2 ? 4 : 1, 4, 0, 0, 0, 1};
    call c = {.in = FS_F32, .out = FS_F32, .limit = LIMIT, .large = 1, .alpha = 1, .beta = 1, .from = ROWS, .to = ROWS};
    c.rows = small_set ? 300 : number & 4 ? 40000 : 3000;
    c.n = small_set ? 130 : number & 4 ? 33 : 600;
    c.spec = spec_at(&R, c.rows, 1000, 3);
    call_name(&c, number & 1 ? "CSR" : "CSC");
    check_product(l, &c, number & 1 ? FS_CSR : FS_CSC, FS_INDEX32);
}
static void a_large_sparse_matrix_gives_what_its_dense_form_gives(void **state)
{
    (void)state;
    for_each_case(8, 8, check_large, NULL);
}

/* Nothing stored, no rows, no columns: Y = beta Y. */
static void check_empty(const lane *l, int64_t number, const void *data)
{
    (void)data;
    static const struct {
        int64_t rows, n;
    } shapes[] = {{30, 4}, {0, 4}, {30, 0}};
    const recipe *R = &recipes[number % recipe_count];
    const int64_t variant = number / recipe_count;
    call c = {.in = FS_F32, .out = FS_F32, .beta = variant & 1 ? 2 : 0, .alpha = 1, .from = ROWS, .to = ROWS};
    c.rows = shapes[variant / 4].rows;
    c.n = shapes[variant / 4].n;
    c.spec = spec_at(R, 30, 20, 1);
    call_name(&c, R->name);
    fs_sketch *S = sketch_of(&c.spec);
    int64_t ptr[31] = {0};
    const fs_sparse_format format = variant & 2 ? FS_CSR : FS_CSC;
    const fs_sparse host = {format, FS_INDEX64, c.rows, c.n, 0, ptr, NULL, NULL, FS_F32, FS_MEMORY_HOST};
    fs_sparse device = sparse_mirror(l, &host);
    view Y = call_output(&c);
    mirror to = mirror_make(l, &Y);
    MUST(fs_apply_sparse(l->gpu, S, 0, c.alpha, &device, c.beta, &to.m));
    stream_wait(l->stream);
    view got = view_copy(&Y);
    mirror_fetch(l, c.name, &to, &got);
    for (int64_t e = 0; e < Y.m.rows * c.n; e++) {
        const double want = c.beta != 0.0 ? c.beta * at(&Y.m, e / c.n, e % c.n) : 0.0, y = at(&got.m, e / c.n, e % c.n);
        if (y != want) fail_msg("%s: element %" PRId64 " is %g, it must be %g", c.name, e, y, want);
    }
    sparse_mirror_free(l, &device), mirror_free(l, &to);
    view_free(&Y), view_free(&got);
    fs_sketch_destroy(S);
}
static void an_empty_sparse_matrix_adds_nothing(void **state)
{
    (void)state;
    for_each_case(12 * recipe_count, 22, check_empty, NULL);
}

/* faults ---------------------------------------------------------------------------------------------------- */

/* One array of a sound matrix is given a wrong entry.  The message must name the array and, for an index, say what it
 * is; Y must stay as it was, and the context must work after that. */
typedef struct fault {
    const char *word;
    int in_index;
    int64_t entry; /* from the end where negative */
    int64_t value;
} fault;
static const fault faults[] = {
    {"A.index", 1, 0, 40}, {"A.index", 1, -1, -1}, {"A.index", 1, 7, 1000000007}, {"A.index", 1, 100, INT32_MIN},
    {"A.ptr", 0, 0, 1},    {"A.ptr", 0, -1, 5},    {"A.ptr", 0, 3, 1000000},      {"A.ptr", 0, 5, -3},
};

static void check_fault(const lane *l, int64_t number, const void *data)
{
    (void)data;
    const fault *f = &faults[number % COUNT(faults)];
    const recipe *R = &recipes[number / COUNT(faults) / 4 * 3 % recipe_count];
    const int64_t kind = number / COUNT(faults);
    call c = {.in = FS_F32, .out = FS_F32, .limit = LIMIT, .rows = 40, .n = 40, .alpha = 1, .beta = 1, .from = ROWS};
    c.to = ROWS_PADDED;
    c.spec = spec_at(R, 40, 65, 4);
    call_name(&c, R->name);
    fs_sketch *S = sketch_of(&c.spec);
    view A = view_make(ROWS, c.rows, c.n, c.in), Y = call_output(&c);
    fill_sparse(&A.m, 31);
    fs_sparse host = sparse_of(&A.m, 41, kind & 1 ? FS_CSR : FS_CSC, kind & 2 ? FS_INDEX32 : FS_INDEX64);
    const int64_t entries = f->in_index ? host.nnz : 41;
    fsi_index_store(f->in_index ? host.index : host.ptr, host.index_type, f->entry < 0 ? entries + f->entry : f->entry,
                    f->value);
    fs_sparse device = sparse_mirror(l, &host);
    mirror to = mirror_make(l, &Y);
    char says[32];
    snprintf(says, sizeof says, "is %" PRId64, f->value);
    if (f->in_index) REFUSED(fs_apply_sparse(l->gpu, S, 0, 1.0, &device, 1.0, &to.m), FS_EINVAL, f->word, says);
    else REFUSED(fs_apply_sparse(l->gpu, S, 0, 1.0, &device, 1.0, &to.m), FS_EINVAL, f->word);
    stream_wait(l->stream);
    mirror_fetch(l, c.name, &to, &Y);
    expect_untouched(c.name, &Y);
    sparse_mirror_free(l, &device), mirror_free(l, &to);
    sparse_free(&host);
    view_free(&A), view_free(&Y);
    fs_sketch_destroy(S);
    check_product(l, &c, FS_CSR, FS_INDEX32);
}
static void a_broken_sparse_matrix_is_refused_and_Y_left_as_it_was(void **state)
{
    (void)state;
    for_each_case(COUNT(faults) * 4 * 6, 24, check_fault, NULL);
}

/* A CUDA context does not stream sparse arrays; it returns an error instead of reading them. */
static void sparse_arrays_in_host_memory_are_refused(void **state)
{
    (void)state;
    if (dry) skip_because("host memory is where CPU contexts have their arrays");
    const lane *l = &lanes[0];
    const fs_spec spec = spec_at(&recipes[0], 40, 65, 4);
    fs_sketch *S = sketch_of(&spec);
    view A = view_make(ROWS, 40, 3, FS_F32), Y = view_make(ROWS, 65, 3, FS_F32);
    fill_sparse(&A.m, 31);
    view_seal(&Y);
    fs_sparse host = sparse_of(&A.m, 41, FS_CSR, FS_INDEX32);
    mirror to = mirror_make(l, &Y);
    REFUSED(fs_apply_sparse(l->gpu, S, 0, 1.0, &host, 0.0, &to.m), FS_EUNSUPPORTED, "A is in host memory");
    mirror_fetch(l, "host arrays", &to, &Y);
    expect_untouched("host arrays", &Y);
    mirror_free(l, &to);
    sparse_free(&host);
    view_free(&A), view_free(&Y);
    fs_sketch_destroy(S);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sparse_matrix_gives_what_its_dense_form_gives),
        cmocka_unit_test(a_large_sparse_matrix_gives_what_its_dense_form_gives),
        cmocka_unit_test(an_empty_sparse_matrix_adds_nothing),
        cmocka_unit_test(a_broken_sparse_matrix_is_refused_and_Y_left_as_it_was),
        cmocka_unit_test(sparse_arrays_in_host_memory_are_refused),
    };
    return RUN_DEVICE_TESTS(argc, argv, tests);
}
