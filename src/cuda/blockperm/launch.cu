/* launch.cu - a BlockPerm-SJLT product: the plan of choose.c run by its kernel; and the registry of the launch halves. */
#include "cuda/blockperm/common/launch.cuh"

#include "cuda/plan/kernel.h"
#include "cuda/runtime/split_reduce.cuh"

/* In the order of fsi_kernels. */
static const fsi_kernel_code *const codes[FSI_KERNEL_COUNT] = {
#define ENTRY(NAME, name) &fsi_kernel_##name##_code,
    FSI_KERNELS(ENTRY)
#undef ENTRY
};

/* Y as the kernels see it, or the partial-sum buffers that split_reduce.cu will add. */
static fs_result open_output(fsi_tile_launch *l)
{
    const fsi_operands *o = l->operands;
    const fs_matrix *Y = o->to;
    const fs_dtype sum = fsi_dtype_sum(o->from->dtype);
    const int64_t partials = fsi_plan_partials(l->problem, l->plan), bytes = Y->rows * Y->cols * fsi_dtype_size(sum);
    l->args.out = fsi_output_of(Y, o->alpha * o->scale, o->beta);
    l->args.partial = 0;
    if (partials == 0) return FS_OK;
    void *memory;
    FSI_TRY(fsi_gpu_scratch(l->gpu, partials * bytes, &memory));
    const int down = fsi_runs_down(Y);
    const fsi_output partial = {memory, down ? 1 : Y->cols, down ? Y->rows : 1, 1.0, 0.0, sum};
    l->args.out = partial;
    l->args.partial = bytes;
    return FS_OK;
}

static void set_arguments(fsi_tile_launch *l)
{
    const fsi_operands *o = l->operands;
    const fs_matrix *from = o->from;
    fsi_tile_args *a = &l->args;
    a->B = *o->S;
    a->row0 = o->row0;
    a->rows = l->problem->rows;
    a->n = from->cols;
    a->data = from->data;
    a->row_stride = from->row_stride;
    a->col_stride = from->col_stride;
    a->list = o->rows ? o->rows->index : NULL;
    a->list_type = o->rows ? o->rows->index_type : FS_INDEX64;
    a->all_rows = from->rows;
    a->local_rows = fsi_local_rows_of(o->S, 0, o->row0, l->problem->rows);
    a->outputs = fsi_kernel_of(l->plan->kernel)->whole_blocks ? fsi_output_tiles_whole(o->S)
                                                              : fsi_output_tiles_of(o->S);
    a->length = l->plan->length;
    a->slices = l->plan->slices;
    a->cluster = l->plan->cluster;
    a->factors = o->factors ? *o->factors : fsi_factors{};
    a->tiles = fsi_div_up(a->n, fsi_plan_width(l->plan));
    a->blocks = fsi_plan_blocks(l->problem, l->plan) * a->tiles * a->slices;
}

fs_result fsi_tile_launch_open(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                               const fsi_operands *operands, fsi_tile_launch *l)
{
    l->gpu = gpu;
    l->problem = problem;
    l->plan = plan;
    l->operands = operands;
    set_arguments(l);
    if (l->args.blocks > 0x7FFFFFFF)
        return gpu->host.fail(
            FS_EUNSUPPORTED, "%lld x %lld with %lld blocks needs %lld thread blocks, a GPU has at most 2^31 - 1",
            (long long)l->args.rows, (long long)l->args.n, (long long)l->args.B.M, (long long)l->args.blocks);
    FSI_TRY(open_output(l));
    l->config = {};
    l->config.gridDim = dim3((unsigned)l->args.blocks);
    l->config.blockDim = dim3((unsigned)plan->threads);
    l->config.dynamicSmemBytes = (size_t)plan->shared;
    l->config.stream = gpu->stream;
    l->config.attrs = &l->attribute;
    l->config.numAttrs = fsi_plan_cluster(plan) > 1;
    l->attribute.id = cudaLaunchAttributeClusterDimension;
    l->attribute.val.clusterDim.x = (unsigned)fsi_plan_cluster(plan);
    l->attribute.val.clusterDim.y = l->attribute.val.clusterDim.z = 1;
    return FS_OK;
}

fs_result fsi_tile_launch_run(fsi_tile_launch *l, const void *kernel, void **arguments)
{
    const fsi_operands *o = l->operands;
    const fs_matrix *Y = o->to;
    const int64_t partials = fsi_plan_partials(l->problem, l->plan);
    FSI_TRY(fsi_gpu_check(l->gpu, cudaLaunchKernelExC(&l->config, kernel, arguments), "sketching"));
    if (partials == 0) return FS_OK;
    const fsi_output out = fsi_output_of(Y, o->alpha * o->scale, o->beta);
    return fsi_gpu_split_reduce(l->gpu, l->args.out.data, (int)partials, Y->rows, Y->cols, fsi_runs_down(Y),
                                fsi_dtype_sum(o->from->dtype), &out);
}

fs_result fsi_gpu_blockperm_run(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                const fsi_operands *operands)
{
    return codes[plan->kernel - 1]->launch(gpu, problem, plan, operands);
}

FSI_GPU_OP(fsi_gpu_blockperm_apply, fsi_blockperm)
{
    const fsi_operands operands = {S, scale, row0, alpha, from, NULL, NULL, beta, to};
    const fsi_problem problem = fsi_problem_of(S, row0, from, gpu->precision);
    const fsi_plan plan = fsi_choose(&problem, &gpu->traits, gpu->tuning);
    return fsi_gpu_blockperm_run(gpu, &problem, &plan, &operands);
}

fs_result fsi_gpu_blockperm_prepare(fsi_gpu *gpu)
{
    for (int k = 0; k < FSI_KERNEL_COUNT; k++)
        for (int i = 0;
             i < fsi_kernels[k]->instances && codes[k]->instances && gpu->traits.arch >= fsi_kernels[k]->least_arch;
             i++)
            FSI_TRY(
                fsi_gpu_check(gpu,
                              cudaFuncSetAttribute(codes[k]->instances[i], cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   (int)gpu->traits.shared),
                              "preparing kernels"));
    /* Without sm_90a the instances of wgmma_rows.cu are empty; their few registers show it. The GPU then counts as its
     * predecessor, whose instructions it has. */
    cudaFuncAttributes hopper;
    FSI_TRY(fsi_gpu_check(gpu, cudaFuncGetAttributes(&hopper, fsi_kernel_wgmma_rows_code.instances[0]),
                          "looking at a kernel"));
    if (gpu->capability == 90 && hopper.numRegs < 64) gpu->traits.arch = 89;
    return fsi_gpu_split_reduce_prepare(gpu);
}
