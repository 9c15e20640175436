/* families.c - properties of the plans of other products: the adjoint of a BlockPerm-SJLT, and the SRHT. */
#include <inttypes.h>

#include "cuda/plan/adjoint.h"
#include "cuda/plan/srht.h"
#include "plans.h"

/* the adjoint -------------------------------------------------------------------------------------------------- */

static const char *fault_of_adjoint_blocks(const fsi_blockperm *B, const fs_matrix *X, const fsi_adjoint_plan *plan,
                                           int64_t local_rows, const fsi_gpu_traits *gpu)
{
    const int64_t sum_bytes = X->dtype == FS_F64 ? 8 : 4, height = B->kappa * (B->out.small + (B->out.larger > 0));
    if (X->col_stride != 1 && X->cols > 1) return "it writes rows that are not contiguous";
    if (plan->shared > gpu->shared) return "it has more shared memory than a thread block can have";
    if (plan->shared < height * plan->wide * sum_bytes) return "its tile does not fit its shared memory";
    if (plan->wide < 1 || plan->wide > 128 || (plan->wide & (plan->wide - 1))) return "its width is no power of two";
    if (plan->wide < 32 && plan->wide < X->cols) return "its tiles are narrow";
    if (plan->tiles * plan->wide < X->cols || (plan->tiles - 1) * plan->wide >= X->cols)
        return "its tiles are not those of the columns";
    if (plan->vector != (plan->straight || plan->spread ? 4 : 1)) return "its threads have another number of columns";
    if (plan->straight && (plan->spread || sum_bytes == 8 || X->cols % 4)) return "its vectors do not fit";
    if (plan->team < 1 || plan->team > 32 || plan->wide % (plan->team * plan->vector))
        return "its lanes do not divide its tile";
    if (plan->length < 1 || plan->slices * plan->length < local_rows) return "its slices do not hold all local rows";
    if ((plan->slices - 1) * plan->length >= local_rows) return "its last slice is empty";
    return NULL;
}
static const char *fault_of_adjoint_coordinates(const fs_matrix *X, const fsi_adjoint_plan *plan)
{
    if (plan->tiles * FSI_ADJOINT_THREADS < X->rows || (plan->tiles - 1) * FSI_ADJOINT_THREADS >= X->rows)
        return "its threads are not those of the rows";
    if (plan->slices > 65535) return "its grid is too wide";
    if (plan->length < 1 || plan->slices * plan->length < X->cols) return "it does not reach all columns";
    return NULL;
}

static void every_adjoint_plan_fits(void **state)
{
    (void)state;
    call c;
    const gpu_kind *gpu;
    int by_blocks = 0, by_coordinates = 0, straight = 0;
    for (int64_t i = 0; sweep(i, &c, &gpu); i += STEP) {
        const fsi_blockperm S = sketch_of_call(&c);
        const fs_matrix X = matrix_of_call(&c);
        if (c.rows == 0) continue;
        const int64_t local_rows = S.shuffle == FSI_DEF_NONE ? S.in.small + 1 : problem_of_call(&c).local_rows;
        const fsi_adjoint_plan plan = fsi_choose_adjoint(&S, c.row0, c.dtype == FS_F64 ? 8 : 4, &X, 0.0, &gpu->traits);
        const char *fault = plan.by_blocks ? fault_of_adjoint_blocks(&S, &X, &plan, local_rows, &gpu->traits)
                                           : fault_of_adjoint_coordinates(&X, &plan);
        if (fault)
            fail_msg("%s: %s: %s, tiles %" PRId64 ", slices %" PRId64 ", length %" PRId64
                     ", width %d, vector %d, team %d",
                     say_call(&c, gpu), plan.by_blocks ? "blocks" : "coordinates", fault, plan.tiles, plan.slices,
                     plan.length, plan.wide, plan.vector, plan.team);
        by_blocks += plan.by_blocks, by_coordinates += !plan.by_blocks, straight += plan.straight;
    }
    if (by_blocks < 100 || by_coordinates < 100 || straight < 100)
        fail_msg("%d plans by blocks, %d of them straight, %d by coordinates", by_blocks, straight, by_coordinates);
}

/* Whole vectors are stored only where nothing is added, rounded or misaligned. */
static void vectors_are_stored_only_where_memory_allows_it(void **state)
{
    (void)state;
    const struct {
        memory memory;
        fs_dtype dtype;
        int64_t n;
        double beta;
        int straight;
    } cases[] = {
        {PACKED, FS_F32, 64, 0, 1},  {PACKED, FS_F32, 64, 1, 0},  {PACKED, FS_F32, 63, 0, 0},
        {PADDED, FS_F32, 64, 0, 1},  {SHIFTED, FS_F32, 64, 0, 0}, {ODD, FS_F32, 64, 0, 0},
        {PACKED, FS_F16, 64, 0, 0},  {PACKED, FS_F64, 63, 0, 0},  {BATCH, FS_F32, 64, 0, 0},
        {SHIFTED, FS_F64, 64, 0, 0},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        const call c = {65536, 1024, 0, 1, 4, SHUFFLED, 0, 0, 65536, cases[i].n, cases[i].dtype, FULL, cases[i].memory};
        const fsi_blockperm S = sketch_of_call(&c);
        const fs_matrix X = matrix_of_call(&c);
        const fsi_adjoint_plan plan = fsi_choose_adjoint(&S, 0, c.dtype == FS_F64 ? 8 : 4, &X, cases[i].beta,
                                                         &gpus[H200].traits);
        if (plan.straight != cases[i].straight)
            fail_msg("case %d, %s: stored in %s", i, say_call(&c, NULL), plan.straight ? "vectors" : "elements");
    }
}

/* the SRHT ------------------------------------------------------------------------------------------------------ */

static fsi_srht srht_of(int64_t d, int64_t k) { return fsi_srht_make(7, d, k); }

static void few_rows_of_Y_are_sampled(void **state)
{
    (void)state;
    const struct {
        int64_t d, k;
        fs_dtype dtype;
        int sampled;
    } cases[] = {{1 << 20, 2048, FS_F32, 1}, {1 << 20, 2049, FS_F32, 0}, {1 << 20, 2048, FS_F16, 1},
                 {1 << 20, 1024, FS_F64, 1}, {1 << 20, 1025, FS_F64, 0}, {1024, 16, FS_F32, 1},
                 {512, 16, FS_F32, 0},       {513, 16, FS_F32, 1}};
    for (int i = 0; i < COUNT(cases); i++) {
        const fsi_srht S = srht_of(cases[i].d, cases[i].k);
        if (fsi_srht_is_sampled(&S, cases[i].dtype) != cases[i].sampled)
            fail_msg("d = %" PRId64 ", k = %" PRId64 ", %s: %ssampled", cases[i].d, cases[i].k,
                     fs_dtype_name(cases[i].dtype), cases[i].sampled ? "not " : "");
    }
}

static void sampled_slices_hold_all_segments_in_bounded_memory(void **state)
{
    (void)state;
    for (int g = 0; g < GPUS; g++)
        for (int64_t segments = 1; segments <= 1 << 20; segments = segments * 3 + 1)
            for (int64_t blocks = 1; blocks <= 4096; blocks *= 4)
                for (int64_t partial = 1 << 10; partial <= (int64_t)1 << 31; partial *= 64) {
                    const int64_t length = fsi_srht_slice_length(&gpus[g].traits, segments, blocks, 2, partial);
                    const int64_t slices = length > 0 ? (segments + length - 1) / length : 0;
                    if (length < 1 || length > segments || (slices > 1 && slices * partial > (int64_t)1 << 30))
                        fail_msg("%s: %" PRId64 " segments, %" PRId64 " blocks, buffers of %" PRId64
                                 " bytes: slices of %" PRId64,
                                 gpus[g].name, segments, blocks, partial, length);
                }
    /* A GPU with room for all slices of one segment gets more than one slice. */
    assert_true(fsi_srht_slice_length(&gpus[H200].traits, 1 << 14, 1, 2, 1 << 10) < 1 << 14);
    assert_int_equal(fsi_srht_slice_length(&gpus[H200].traits, 0, 1, 2, 1 << 10), 0);
}

static const char *fault_of_srht(const fsi_srht *S, int64_t cols, int64_t sum_bytes, const fsi_srht_plan *plan,
                                 const fsi_gpu_traits *gpu)
{
    if ((int64_t)1 << plan->bits != S->N) return "its bits are not those of N";
    if (plan->passes < 1 || plan->passes * plan->tile_bits < plan->bits) return "its passes do not take all bits";
    if (plan->tile_bits == FSI_SRHT_LARGE_BITS) {
        if (gpu->shared < FSI_SRHT_LARGE_BYTES) return "its tile does not fit";
        if (plan->passes * FSI_SRHT_SMALL_BITS >= plan->bits) return "its large tile saves no pass";
    } else if (plan->tile_bits != FSI_SRHT_SMALL_BITS) return "there is no such tile";
    if (plan->width < 1 || plan->panels * plan->width < cols) return "its panels do not hold all columns";
    if ((plan->panels - 1) * plan->width >= cols) return "its last panel is empty";
    if (plan->buffers != 1 && (plan->buffers > plan->passes || plan->buffers > plan->panels))
        return "it has more buffers than passes or panels";
    const int64_t bytes = plan->buffers * S->N * plan->width * sum_bytes;
    if (plan->buffers > 1 && bytes > gpu->l2) return "its ring does not fit L2";
    if (plan->passes > 1 && plan->width > 1 && bytes > (int64_t)1 << 30 && bytes > gpu->l2)
        return "its panel is larger than 1 GiB";
    return NULL;
}

static void every_srht_plan_fits(void **state)
{
    (void)state;
    int large = 0, rings = 0;
    for (int g = 0; g < GPUS; g++)
        for (int64_t d = 1; d <= (int64_t)1 << 34; d = d * 2 + (d & 1))
            for (int64_t cols = 1; cols <= 1 << 26; cols = cols * 3 + 1)
                for (int64_t sum_bytes = 4; sum_bytes <= 8; sum_bytes *= 2) {
                    const fsi_srht S = srht_of(d, 1);
                    const fsi_srht_plan plan = fsi_choose_srht(&S, cols, sum_bytes, &gpus[g].traits);
                    const char *fault = fault_of_srht(&S, cols, sum_bytes, &plan, &gpus[g].traits);
                    if (fault)
                        fail_msg("%s: d = %" PRId64 ", %" PRId64 " columns, sums of %" PRId64
                                 " bytes: %s: %d passes, %d buffers, %" PRId64 " panels of %" PRId64,
                                 gpus[g].name, d, cols, sum_bytes, fault, plan.passes, plan.buffers, plan.panels,
                                 plan.width);
                    large += plan.tile_bits == FSI_SRHT_LARGE_BITS, rings += plan.buffers > 1;
                }
    if (large < 100 || rings < 100) fail_msg("%d plans with large tiles, %d with rings", large, rings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_adjoint_plan_fits),
        cmocka_unit_test(vectors_are_stored_only_where_memory_allows_it),
        cmocka_unit_test(few_rows_of_Y_are_sampled),
        cmocka_unit_test(sampled_slices_hold_all_segments_in_bounded_memory),
        cmocka_unit_test(every_srht_plan_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
