/* blockperm.cu - a BlockPerm-SJLT product: the plan of choose.c carried out. */
#include "combine.cuh"
#include "gpu.h"
#include "instances.h"
#include "maps.cuh"
#include "tile.cuh"

static int64_t sum_size(fs_dtype dtype) { return dtype == FS_F64 ? 8 : 4; }

/* Y as the kernels see it, or the planes of sums that combine.cu will add. */
static fs_result open_output(fs_gpu *gpu, const fs_matrix *A, const fs_matrix *Y, int64_t planes, int down,
                             double factor, double beta, fs_tile_args *a)
{
    a->out = fs_output_of(Y, factor, beta);
    a->plane = 0;
    if (planes == 0) return FS_OK;
    void *memory;
    const int64_t bytes = Y->rows * Y->cols * sum_size(A->dtype);
    FS_TRY_GPU(fs_gpu_scratch(gpu, planes * bytes, &memory));
    const fs_output plane = {memory, down ? 1 : Y->cols, down ? Y->rows : 1, 1.0, 0.0, fs_dtype_sum(A->dtype)};
    a->out = plane;
    a->plane = bytes;
    return FS_OK;
}

static fs_result launch(fs_gpu *gpu, const fs_problem *problem, const fs_plan *plan, const fs_matrix *A,
                        fs_tile_args *a)
{
    const void *const *kernels = plan->kernel == FS_KERNEL_COLUMNS ? fs_columns_kernels
                               : plan->kernel == FS_KERNEL_NARROW ? fs_narrow_kernels
                               : plan->kernel == FS_KERNEL_TALL ? fs_tall_kernels
                               : plan->kernel == FS_KERNEL_TENSOR_ROWS ? fs_tensor_rows_kernels
                               : plan->kernel == FS_KERNEL_HOPPER_LINES ? fs_hopper_lines_kernels
                               : plan->kernel == FS_KERNEL_HALF_ROWS ? fs_half_rows_kernels
                               : plan->kernel == FS_KERNEL_LISTED_ROWS ? fs_listed_rows_kernels
                               : plan->kernel == FS_KERNEL_PRODUCTS ? fs_direct_products_kernels
                               : plan->kernel == FS_KERNEL_DIRECT ? fs_direct_kernels
                               : fs_hopper_rows_kernels;
    a->tiles = fs_div_up(a->n, fs_plan_width(plan));
    const int64_t blocks = fs_plan_blocks(problem, plan) * a->tiles * a->parts;
    if (blocks > 0x7FFFFFFF)
        return gpu->host.fail(FS_EUNSUPPORTED,
                              "%lld x %lld with %lld blocks needs %lld thread blocks, a GPU has at most 2^31 - 1",
                              (long long)a->rows, (long long)a->n, (long long)a->B.M, (long long)blocks);
    a->blocks = blocks;
    const bool fewer = fs_plan_takes_many(plan) && blocks > gpu->traits.processors;
    int team = plan->team, chunk = plan->chunk, group = plan->group;
    fs_row_maps maps;
    CUtensorMap map;
    fs_philox_keys keys = fs_philox_keys_of(a->B.seed);
    void *numbers[] = {a, &team, &chunk, &group}, *rows[] = {a, &maps}, *lines[] = {a, &map}, *keyed[] = {a, &keys};
    void **with = plan->kernel == FS_KERNEL_HOPPER_ROWS || plan->kernel == FS_KERNEL_LISTED_ROWS ? rows
                : plan->kernel == FS_KERNEL_HOPPER_LINES ? lines
                : plan->kernel == FS_KERNEL_TALL || plan->kernel == FS_KERNEL_HALF_ROWS ? keyed : numbers;
    if (with == rows) FS_TRY_GPU(fs_gpu_row_maps(gpu, A, fs_plan_width(plan), fs_plan_box(problem, plan), &maps));
    if (with == lines && FS_HOPPER_LINES_BOXES(fs_dtype_size(A->dtype)))
        FS_TRY_GPU(fs_gpu_line_map(gpu, A, (int)fs_plan_width(plan), &map));
    /* Products come from a copy of factors, which runs while this kernel makes its first panels of S. */
    cudaLaunchAttribute how;
    if (plan->kernel == FS_KERNEL_PRODUCTS) {
        how.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        how.val.programmaticStreamSerializationAllowed = 1;
    } else {
        how.id = cudaLaunchAttributeClusterDimension;
        how.val.clusterDim.x = (unsigned)fs_plan_cluster(plan);
        how.val.clusterDim.y = how.val.clusterDim.z = 1;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)(fewer ? gpu->traits.processors : blocks));
    /* Thread blocks that need not divide to know their part begin to copy 0.3 us earlier (H200). */
    if (plan->kernel == FS_KERNEL_HALF_ROWS)
        config.gridDim = dim3((unsigned)(plan->cluster * problem->M), (unsigned)a->tiles,
                              (unsigned)(plan->parts / plan->cluster));
    config.blockDim = dim3((unsigned)plan->threads);
    config.dynamicSmemBytes = (size_t)plan->shared;
    config.stream = gpu->stream;
    config.attrs = &how;
    config.numAttrs = fs_plan_cluster(plan) > 1 || (plan->kernel == FS_KERNEL_PRODUCTS && gpu->traits.arch >= 90);
    return fs_gpu_check(gpu, cudaLaunchKernelExC(&config, kernels[plan->instance], with),
                        "sketching");
}

/* rows and factors NULL: all of `from`; otherwise the plan is direct.cu's.  With factors `from` is the shape of their
 * products alone. */
static fs_result carry_out(fs_gpu *gpu, const fs_problem *problem, const fs_plan *plan, const fs_blockperm *S,
                           double scale, int64_t row0, double alpha, const fs_matrix *from, const fs_rows *rows,
                           const fs_factors *factors, double beta, const fs_matrix *to)
{
    const int64_t planes = fs_plan_planes(problem, plan);
    const int down = to->row_stride == 1 && to->cols > 1;
    fs_tile_args a;
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
    a.slots = fs_slots_of(S, 0, row0, problem->rows);
    a.length = plan->length;
    a.parts = plan->parts;
    a.cluster = plan->cluster;
    a.factors = factors ? *factors : fs_factors{};
    FS_TRY_GPU(open_output(gpu, from, to, planes, down, alpha * scale, beta, &a));
    FS_TRY_GPU(launch(gpu, problem, plan, from, &a));
    if (planes == 0) return FS_OK;
    const fs_output out = fs_output_of(to, alpha * scale, beta);
    return fs_gpu_combine(gpu, a.out.data, (int)planes, to->rows, to->cols, down, fs_dtype_sum(from->dtype), &out);
}

FS_GPU_OP(fs_gpu_blockperm_apply, fs_blockperm)
{
    const fs_problem problem = fs_problem_of(S, row0, from, gpu->precision);
    const fs_plan plan = fs_choose(&problem, &gpu->traits, gpu->tuning);
    if (plan.kernel == FS_KERNEL_SORTED) return fs_gpu_sorted_apply(gpu, S, scale, row0, alpha, from, beta, to);
    return carry_out(gpu, &problem, &plan, S, scale, row0, alpha, from, NULL, NULL, beta, to);
}

fs_result fs_gpu_blockperm_listed(fs_gpu *gpu, const fs_blockperm *S, double scale, int64_t row0, double alpha,
                                  const fs_matrix *from, const fs_rows *rows, double beta, const fs_matrix *to,
                                  int *done)
{
    fs_matrix listed = *from;
    listed.rows = rows->count;
    const fs_problem problem = fs_problem_of(S, row0, &listed, gpu->precision);
    fs_plan plan;
    *done = from->rows > 0 && fs_choose_listed(&problem, &gpu->traits, &plan);
    if (!*done) return FS_OK;
    return carry_out(gpu, &problem, &plan, S, scale, row0, alpha, from, rows, NULL, beta, to);
}

static int plan_products(const fs_gpu *gpu, const fs_blockperm *S, int64_t row0, const fs_matrix *X,
                         fs_problem *problem, fs_plan *plan)
{
    *problem = fs_problem_of(S, row0, X, gpu->precision);
    return fs_choose_products(problem, &gpu->traits, plan);
}
/* The products as a matrix, of which there is nothing but the shape. */
static fs_matrix shape_of(int64_t rows, int64_t n)
{
    const fs_matrix X = {NULL, rows, n, n, 1, 0, 0, FS_F32, FS_CUDA};
    return X;
}
int fs_gpu_blockperm_multiplies(const fs_gpu *gpu, const fs_blockperm *S, int64_t row0, int64_t count, int64_t n)
{
    const fs_matrix X = shape_of(count, n);
    fs_problem problem;
    fs_plan plan;
    return plan_products(gpu, S, row0, &X, &problem, &plan);
}
fs_result fs_gpu_blockperm_products(fs_gpu *gpu, const fs_blockperm *S, double scale, int64_t row0, double alpha,
                                    const fs_factors *factors, int64_t count, double beta, const fs_matrix *to)
{
    const fs_matrix X = shape_of(count, to->cols);
    fs_problem problem;
    fs_plan plan;
    if (!plan_products(gpu, S, row0, &X, &problem, &plan))
        return gpu->host.fail(FS_EUNSUPPORTED, "no kernel multiplies by blocks of %lld rows",
                              (long long)problem.block_rows);
    return carry_out(gpu, &problem, &plan, S, scale, row0, alpha, &X, NULL, factors, beta, to);
}
