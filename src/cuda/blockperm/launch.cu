/* launch.cu - a BlockPerm-SJLT product: the plan of choose.c carried out. */
#include "cuda/runtime/split_reduce.cuh"
#include "cuda/runtime/gpu.h"
#include "cuda/plan/instances.h"
#include "cuda/runtime/tensor_maps.cuh"
#include "cuda/blockperm/common/tile.cuh"

static int64_t sum_size(fs_dtype dtype) { return dtype == FS_F64 ? 8 : 4; }

/* Y as the kernels see it, or the partial-sum buffers of sums that split_reduce.cu will add. */
static fs_result open_output(fsi_gpu *gpu, const fs_matrix *A, const fs_matrix *Y, int64_t partials, int down,
                             double factor, double beta, fsi_tile_args *a)
{
    a->out = fsi_output_of(Y, factor, beta);
    a->partial = 0;
    if (partials == 0) return FS_OK;
    void *memory;
    const int64_t bytes = Y->rows * Y->cols * sum_size(A->dtype);
    FSI_TRY(fsi_gpu_scratch(gpu, partials * bytes, &memory));
    const fsi_output partial = {memory, down ? 1 : Y->cols, down ? Y->rows : 1, 1.0, 0.0, fsi_dtype_sum(A->dtype)};
    a->out = partial;
    a->partial = bytes;
    return FS_OK;
}

static fs_result launch(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan, const fs_matrix *A,
                        fsi_tile_args *a)
{
    const void *const *kernels = plan->kernel == FSI_KERNEL_SIMT_GENERIC       ? fsi_simt_generic_kernels
                                 : plan->kernel == FSI_KERNEL_SIMT_SKINNY      ? fsi_simt_skinny_kernels
                                 : plan->kernel == FSI_KERNEL_MMA_SKINNY       ? fsi_mma_skinny_kernels
                                 : plan->kernel == FSI_KERNEL_MMA_ROWS         ? fsi_mma_rows_kernels
                                 : plan->kernel == FSI_KERNEL_WGMMA_GROUPS     ? fsi_wgmma_groups_kernels
                                 : plan->kernel == FSI_KERNEL_WGMMA_ROWS_16BIT ? fsi_wgmma_rows_16bit_kernels
                                 : plan->kernel == FSI_KERNEL_GATHER_ROWS_SIMT ? fsi_gather_rows_simt_kernels
                                 : plan->kernel == FSI_KERNEL_MMA_FACTORED     ? fsi_mma_factored_kernels
                                 : plan->kernel == FSI_KERNEL_MMA_GATHER       ? fsi_mma_gather_kernels
                                                                               : fsi_wgmma_rows_kernels;
    a->tiles = fsi_ceil_div(a->n, fsi_plan_width(plan));
    const int64_t blocks = fsi_plan_blocks(problem, plan) * a->tiles * a->slices;
    if (blocks > 0x7FFFFFFF)
        return gpu->host.fail(FS_EUNSUPPORTED,
                              "%lld x %lld with %lld blocks needs %lld thread blocks, a GPU has at most 2^31 - 1",
                              (long long)a->rows, (long long)a->n, (long long)a->B.M, (long long)blocks);
    a->blocks = blocks;
    const bool fewer = fsi_plan_takes_many(plan) && blocks > gpu->traits.processors;
    int team = plan->team, chunk = plan->chunk, group = plan->group;
    fsi_row_maps maps;
    CUtensorMap map;
    fsi_philox_keys keys = fsi_philox_keys_of(a->B.seed);
    void *numbers[] = {a, &team, &chunk, &group}, *rows[] = {a, &maps}, *lines[] = {a, &map}, *keyed[] = {a, &keys};
    void **with = plan->kernel == FSI_KERNEL_WGMMA_ROWS || plan->kernel == FSI_KERNEL_GATHER_ROWS_SIMT   ? rows
                  : plan->kernel == FSI_KERNEL_WGMMA_GROUPS                                              ? lines
                  : plan->kernel == FSI_KERNEL_MMA_SKINNY || plan->kernel == FSI_KERNEL_WGMMA_ROWS_16BIT ? keyed
                                                                                                         : numbers;
    if (with == rows) FSI_TRY(fsi_gpu_row_maps(gpu, A, fsi_plan_width(plan), fsi_plan_box(problem, plan), &maps));
    if (with == lines && FSI_WGMMA_GROUPS_BOXES(fsi_dtype_size(A->dtype)))
        FSI_TRY(fsi_gpu_group_map(gpu, A, (int)fsi_plan_width(plan), &map));
    /* Products come from a copy of factors, which runs while this kernel makes its first panels of S. */
    cudaLaunchAttribute how;
    if (plan->kernel == FSI_KERNEL_MMA_FACTORED) {
        how.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        how.val.programmaticStreamSerializationAllowed = 1;
    } else {
        how.id = cudaLaunchAttributeClusterDimension;
        how.val.clusterDim.x = (unsigned)fsi_plan_cluster(plan);
        how.val.clusterDim.y = how.val.clusterDim.z = 1;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)(fewer ? gpu->traits.processors : blocks));
    /* Thread blocks that need not divide to know their slice begin to copy 0.3 us earlier (H200). */
    if (plan->kernel == FSI_KERNEL_WGMMA_ROWS_16BIT)
        config.gridDim = dim3((unsigned)(plan->cluster * problem->M), (unsigned)a->tiles,
                              (unsigned)(plan->slices / plan->cluster));
    config.blockDim = dim3((unsigned)plan->threads);
    config.dynamicSmemBytes = (size_t)plan->shared;
    config.stream = gpu->stream;
    config.attrs = &how;
    config.numAttrs = fsi_plan_cluster(plan) > 1 || (plan->kernel == FSI_KERNEL_MMA_FACTORED && gpu->traits.arch >= 90);
    return fsi_gpu_check(gpu, cudaLaunchKernelExC(&config, kernels[plan->instance], with), "sketching");
}

/* rows and factors NULL: all of `from`; otherwise the plan is mma_gather.cu's.  With factors `from` is the shape of their
 * products alone. */
static fs_result carry_out(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan, const fsi_blockperm *S,
                           double scale, int64_t row0, double alpha, const fs_matrix *from, const fs_rows *rows,
                           const fsi_factors *factors, double beta, const fs_matrix *to)
{
    const int64_t partials = fsi_plan_partials(problem, plan);
    const int down = to->row_stride == 1 && to->cols > 1;
    fsi_tile_args a;
    a.B = *S;
    a.row0 = row0;
    a.rows = problem->rows;
    a.n = from->cols;
    a.data = from->data;
    a.row_stride = from->row_stride;
    a.col_stride = from->col_stride;
    a.list = rows ? rows->index : NULL;
    a.list_type = rows ? rows->index_type : FS_INDEX64;
    a.all_rows = from->rows;
    a.local_rows = fsi_local_rows_of(S, 0, row0, problem->rows);
    a.length = plan->length;
    a.slices = plan->slices;
    a.cluster = plan->cluster;
    a.factors = factors ? *factors : fsi_factors{};
    FSI_TRY(open_output(gpu, from, to, partials, down, alpha * scale, beta, &a));
    FSI_TRY(launch(gpu, problem, plan, from, &a));
    if (partials == 0) return FS_OK;
    const fsi_output out = fsi_output_of(to, alpha * scale, beta);
    return fsi_gpu_split_reduce(gpu, a.out.data, (int)partials, to->rows, to->cols, down, fsi_dtype_sum(from->dtype),
                                &out);
}

FSI_GPU_OP(fsi_gpu_blockperm_apply, fsi_blockperm)
{
    const fsi_problem problem = fsi_problem_of(S, row0, from, gpu->precision);
    const fsi_plan plan = fsi_choose(&problem, &gpu->traits, gpu->tuning);
    if (plan.kernel == FSI_KERNEL_SORTED_NONZEROS)
        return fsi_gpu_sorted_apply(gpu, S, scale, row0, alpha, from, beta, to);
    return carry_out(gpu, &problem, &plan, S, scale, row0, alpha, from, NULL, NULL, beta, to);
}

fs_result fsi_gpu_blockperm_listed(fsi_gpu *gpu, const fsi_blockperm *S, double scale, int64_t row0, double alpha,
                                   const fs_matrix *from, const fs_rows *rows, double beta, const fs_matrix *to,
                                   int *done)
{
    fs_matrix listed = *from;
    listed.rows = rows->count;
    const fsi_problem problem = fsi_problem_of(S, row0, &listed, gpu->precision);
    fsi_plan plan;
    *done = from->rows > 0 && fsi_choose_listed(&problem, &gpu->traits, &plan);
    if (!*done) return FS_OK;
    return carry_out(gpu, &problem, &plan, S, scale, row0, alpha, from, rows, NULL, beta, to);
}

static int plan_products(const fsi_gpu *gpu, const fsi_blockperm *S, int64_t row0, const fs_matrix *X,
                         fsi_problem *problem, fsi_plan *plan)
{
    *problem = fsi_problem_of(S, row0, X, gpu->precision);
    return fsi_choose_products(problem, &gpu->traits, plan);
}
/* The products as a matrix, of which there is nothing but the shape. */
static fs_matrix shape_of(int64_t rows, int64_t n)
{
    const fs_matrix X = {NULL, rows, n, n, 1, 0, 0, FS_F32, FS_MEMORY_CUDA};
    return X;
}
int fsi_gpu_blockperm_multiplies(const fsi_gpu *gpu, const fsi_blockperm *S, int64_t row0, int64_t count, int64_t n)
{
    const fs_matrix X = shape_of(count, n);
    fsi_problem problem;
    fsi_plan plan;
    return plan_products(gpu, S, row0, &X, &problem, &plan);
}
fs_result fsi_gpu_blockperm_products(fsi_gpu *gpu, const fsi_blockperm *S, double scale, int64_t row0, double alpha,
                                     const fsi_factors *factors, int64_t count, double beta, const fs_matrix *to)
{
    const fs_matrix X = shape_of(count, to->cols);
    fsi_problem problem;
    fsi_plan plan;
    if (!plan_products(gpu, S, row0, &X, &problem, &plan))
        return gpu->host.fail(FS_EUNSUPPORTED, "no kernel multiplies by blocks of %lld rows",
                              (long long)problem.block_rows);
    return carry_out(gpu, &problem, &plan, S, scale, row0, alpha, &X, NULL, factors, beta, to);
}
