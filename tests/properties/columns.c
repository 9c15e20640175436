/* columns.c - laws of S itself, seen through its export: how many nonzeros, how large, in which order. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

static int64_t row_start(const fs_sparse *c, int64_t i) { return fsi_index_load(c->ptr, c->index_type, i); }
static int64_t column(const fs_sparse *c, int64_t e) { return fsi_index_load(c->index, c->index_type, e); }
static double value(const fs_sparse *c, int64_t e) { return fsi_load(c->value, c->dtype, e); }

/* Sizes beyond the recipe's own at which nothing divides anything. */
static const struct {
    int64_t d, k;
} sizes[] = {{1, 1}, {2, 3}, {31, 64}, {129, 65}, {700, 130}, {64, 1000}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Runs law(name, S, spec) on every recipe at its own size and at the odd ones. */
static void for_all(void (*law)(const char *name, const fs_sketch *S, const fs_spec *spec))
{
    for (int r = 0; r < recipe_count; r++)
        for (int z = -1; z < SIZES; z++) {
            const recipe *R = &recipes[r];
            const fs_spec asked = spec_at(R, z < 0 ? R->d : sizes[z].d, z < 0 ? R->k : sizes[z].k, 11 + (uint64_t)z);
            fs_sketch *S = sketch_of(&asked);
            fs_spec spec = FS_SPEC_INIT;
            MUST(fs_sketch_spec(S, &spec));
            law(R->name, S, &spec);
            fs_sketch_destroy(S);
        }
}

static void sorted_and_distinct(const char *name, const fs_sketch *S, const fs_spec *spec)
{
    fs_sparse c = export_columns(S, 0, spec->d, FS_INDEX64, FS_F64);
    if (row_start(&c, 0) != 0 || row_start(&c, spec->k) != c.nnz)
        fail_msg("%s: ptr runs from %" PRId64 " to %" PRId64 ", nnz is %" PRId64, name, row_start(&c, 0),
                 row_start(&c, spec->k), c.nnz);
    for (int64_t i = 0; i < spec->k; i++) {
        if (row_start(&c, i) > row_start(&c, i + 1))
            fail_msg("%s: row %" PRId64 " ends at %" PRId64 " before its start", name, i, row_start(&c, i + 1));
        for (int64_t e = row_start(&c, i); e < row_start(&c, i + 1); e++) {
            const int64_t before = e > row_start(&c, i) ? column(&c, e - 1) : -1;
            if (column(&c, e) <= before || column(&c, e) >= spec->d)
                fail_msg("%s: row %" PRId64 " has column %" PRId64 " after %" PRId64 ", d = %" PRId64, name, i,
                         column(&c, e), before, spec->d);
        }
    }
    sparse_free(&c);
}
static void stored_columns_are_sorted_and_distinct(void **state)
{
    (void)state;
    for_all(sorted_and_distinct);
}

/* Nonzeros that a column has, and their size: kappa s of 1 / sqrt(kappa s), or k of 1 / sqrt k.  Their squares sum to
 * 1.  FlashBlockRow's columns have norm 1 only in the mean, the Gaussian's too: they have no such law. */
static void unit_columns(const char *name, const fs_sketch *S, const fs_spec *spec)
{
    if (spec->family == FS_BLOCKROW || spec->family == FS_GAUSSIAN) return;
    const int64_t expected = spec->family == FS_SRHT ? spec->k : spec->kappa * spec->s;
    const double weight = 1.0 / sqrt((double)expected);
    int64_t *count = room(spec->d, sizeof *count);
    memset(count, 0, (size_t)spec->d * sizeof *count);
    fs_sparse c = export_columns(S, 0, spec->d, FS_INDEX64, FS_F64);
    for (int64_t e = 0; e < c.nnz; e++) {
        count[column(&c, e)]++;
        if (fabs(value(&c, e)) != weight)
            fail_msg("%s: entry %" PRId64 " is %.17g, it must be +-%.17g", name, e, value(&c, e), weight);
    }
    for (int64_t j = 0; j < spec->d; j++)
        if (count[j] != expected)
            fail_msg("%s, %" PRId64 " x %" PRId64 ": column %" PRId64 " has %" PRId64 " nonzeros, not %" PRId64, name,
                     spec->k, spec->d, j, count[j], expected);
    sparse_free(&c);
    free(count);
}
static void every_column_has_norm_1(void **state)
{
    (void)state;
    for_all(unit_columns);
}

/* A column's kappa s nonzeros are s in each of kappa distinct output blocks, whose sizes differ by at most one. */
static void spread_over_blocks(const char *name, const fs_sketch *S, const fs_spec *spec)
{
    if (spec->family != FS_BLOCKPERM) return;
    double *dense = columns_of(S, 0, spec->d);
    const int64_t small = spec->k / spec->M, larger = spec->k % spec->M;
    for (int64_t j = 0; j < spec->d; j++) {
        int64_t blocks = 0;
        for (int64_t g = 0, row = 0; g < spec->M; g++) {
            int64_t here = 0;
            for (int64_t i = 0; i < small + (g < larger); i++, row++) here += dense[row * spec->d + j] != 0.0;
            if (here != 0 && here != spec->s)
                fail_msg("%s: column %" PRId64 " has %" PRId64 " nonzeros in block %" PRId64 ", not 0 or s = %" PRId64,
                         name, j, here, g, spec->s);
            blocks += here != 0;
        }
        if (blocks != spec->kappa)
            fail_msg("%s: column %" PRId64 " reaches %" PRId64 " blocks, kappa is %" PRId64, name, j, blocks,
                     spec->kappa);
    }
    free(dense);
}
static void a_column_has_s_nonzeros_in_each_of_kappa_blocks(void **state)
{
    (void)state;
    for_all(spread_over_blocks);
}

static void same_in_all_types(const char *name, const fs_sketch *S, const fs_spec *spec)
{
    static const fs_dtype types[] = {FS_F32, FS_F16, FS_BF16};
    fs_sparse wide = export_columns(S, 0, spec->d, FS_INDEX64, FS_F64);
    for (int t = 0; t < 3; t++) {
        fs_sparse narrow = export_columns(S, 0, spec->d, FS_INDEX32, types[t]);
        for (int64_t i = 0; i <= spec->k; i++)
            if (row_start(&wide, i) != row_start(&narrow, i))
                fail_msg("%s: ptr[%" PRId64 "] is %" PRId64 " in 64 bits, %" PRId64 " in 32", name, i,
                         row_start(&wide, i), row_start(&narrow, i));
        for (int64_t e = 0; e < wide.nnz; e++) {
            double rounded;
            fsi_store(&rounded, types[t], 0, value(&wide, e));
            if (column(&wide, e) != column(&narrow, e) || value(&narrow, e) != fsi_load(&rounded, types[t], 0))
                fail_msg("%s: entry %" PRId64 " is (%" PRId64 ", %.9g) in %s, (%" PRId64 ", %.17g) in f64", name, e,
                         column(&narrow, e), value(&narrow, e), fs_dtype_name(types[t]), column(&wide, e),
                         value(&wide, e));
        }
        sparse_free(&narrow);
    }
    sparse_free(&wide);
}
static void indices_and_values_of_every_type_agree(void **state)
{
    (void)state;
    for_all(same_in_all_types);
}

static void slices(const char *name, const fs_sketch *S, const fs_spec *spec)
{
    const int64_t d = spec->d, cuts[][2] = {{0, 0}, {0, 1}, {d, 0}, {d - 1, 1}, {d / 3, d / 2}, {d / 2, d - d / 2}};
    double *whole = columns_of(S, 0, d);
    uint64_t digest, sum = 0, all;
    for (size_t c = 0; c < 2 * sizeof cuts / sizeof cuts[0]; c++) {
        const int64_t col0 = cuts[c / 2][0], cols = cuts[c / 2][1];
        fs_sparse exported = export_columns(S, col0, cols, c % 2 ? FS_INDEX32 : FS_INDEX64, FS_F64);
        double *part = dense_of(&exported);
        sparse_free(&exported);
        for (int64_t i = 0; i < spec->k; i++)
            for (int64_t j = 0; j < cols; j++)
                if (part[i * cols + j] != whole[i * d + col0 + j])
                    fail_msg("%s: S(%" PRId64 ", %" PRId64 ") is %.17g in columns %" PRId64 " + %" PRId64
                             ", %.17g in the whole",
                             name, i, col0 + j, part[i * cols + j], col0, cols, whole[i * d + col0 + j]);
        free(part);
    }
    for (int64_t col0 = 0, cols = 1; col0 < d; col0 += cols, cols = cols * 2 < d - col0 ? cols * 2 : d - col0) {
        MUST(fs_sketch_digest(NULL, S, col0, cols, &digest));
        sum += digest;
    }
    MUST(fs_sketch_digest(NULL, S, 0, d, &all));
    if (sum != all) fail_msg("%s: the pieces' digests sum to %" PRIx64 ", the whole has %" PRIx64, name, sum, all);
    free(whole);
}
static void a_range_of_columns_is_the_slice_of_the_whole(void **state)
{
    (void)state;
    for_all(slices);
}

/* All 64 bits of the seed count: flipping any one of them changes S. */
static void every_bit_of_the_seed_changes_S(void **state)
{
    (void)state;
    for (int r = 0; r < recipe_count; r++) {
        uint64_t first = 0;
        for (int bit = -1; bit < 64; bit++) {
            const fs_spec spec = spec_at(&recipes[r], 200, 64, 77 ^ (bit < 0 ? 0 : (uint64_t)1 << bit));
            fs_sketch *S = sketch_of(&spec);
            uint64_t digest;
            MUST(fs_sketch_digest(NULL, S, 0, 200, &digest));
            if (bit < 0) first = digest;
            else if (digest == first) fail_msg("%s: bit %d of the seed changes nothing", recipes[r].name, bit);
            fs_sketch_destroy(S);
        }
    }
}

/* fs_sketch_digest and fs_sketch_to_csr on a CPU context are fs_sketch_digest and fs_sketch_to_csr. */
static void exports_by_a_context(const char *name, const fs_sketch *S, const fs_spec *spec)
{
    fs_context *ctx = context_of("base", 2);
    const int64_t col0 = spec->d / 3, cols = spec->d - col0;
    uint64_t by_context = 0, by_sketch = 1;
    MUST(fs_sketch_digest(ctx, S, col0, cols, &by_context));
    MUST(fs_sketch_digest(NULL, S, col0, cols, &by_sketch));
    if (by_context != by_sketch)
        fail_msg("%s: the digests are %016" PRIx64 " and %016" PRIx64, name, by_context, by_sketch);
    fs_sparse want = export_columns(S, col0, cols, FS_INDEX32, FS_F32), got = want;
    got.ptr = room(spec->k + 1, 4), got.index = room(want.nnz, 4), got.value = room(want.nnz, 4);
    MUST(fs_sketch_to_csr(ctx, S, col0, &got));
    assert_memory_equal(got.ptr, want.ptr, (size_t)(spec->k + 1) * 4);
    if (want.nnz) assert_memory_equal(got.index, want.index, (size_t)want.nnz * 4);
    if (want.nnz) assert_memory_equal(got.value, want.value, (size_t)want.nnz * 4);
    got.memory = FS_MEMORY_CUDA;
    REFUSED(fs_sketch_to_csr(ctx, S, col0, &got), FS_EUNSUPPORTED, "cuda memory");
    REFUSED(fs_sketch_to_csr(NULL, S, col0, &got), FS_EINVAL, "cuda memory", "without a context");
    got.memory = FS_MEMORY_HOST, got.nnz++;
    REFUSED(fs_sketch_to_csr(ctx, S, col0, &got), FS_EINVAL, "fs_sketch_to_csr", "out.nnz");
    REFUSED(fs_sketch_to_csr(ctx, NULL, col0, &got), FS_EINVAL, "S is NULL");
    REFUSED(fs_sketch_digest(ctx, S, col0, cols + 1, &by_context), FS_EINVAL, "fs_sketch_digest", "columns");
    REFUSED(fs_sketch_digest(ctx, S, col0, cols, NULL), FS_EINVAL, "digest is NULL");
    sparse_free(&want), sparse_free(&got);
    fs_context_destroy(ctx);
}
static void a_cpu_context_exports_what_the_sketch_does(void **state)
{
    (void)state;
    for_all(exports_by_a_context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_columns_are_sorted_and_distinct),
        cmocka_unit_test(every_column_has_norm_1),
        cmocka_unit_test(a_column_has_s_nonzeros_in_each_of_kappa_blocks),
        cmocka_unit_test(indices_and_values_of_every_type_agree),
        cmocka_unit_test(a_range_of_columns_is_the_slice_of_the_whole),
        cmocka_unit_test(every_bit_of_the_seed_changes_S),
        cmocka_unit_test(a_cpu_context_exports_what_the_sketch_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
