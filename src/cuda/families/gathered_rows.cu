/* gathered_rows.cu - the sketch of the rows of A that a list names.
 *
 * BlockPerm-SJLTs whose strata have at most 64 rows read A in place (mma_gather.cu). For other sketches, whose products
 * take longer than a copy, and for f64, the gathered rows are copied into memory of the context first, contiguous in
 * the direction in which A is. */
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/families/nonzeros.cuh"

namespace {

/* to, packed along rows or `down` its columns, = the gathered rows of from. */
template <class T> __global__ void copy_listed(const T *from, int64_t row_stride, int64_t col_stride, int64_t all_rows,
                                               const void *list, fs_index_type type, int64_t rows, int64_t n, int down,
                                               T *to)
{
    for (int64_t e = fsi_first_item(); e < rows * n; e += fsi_item_step()) {
        const int64_t i = down ? e % rows : e / n, j = down ? e / rows : e % n, row = fsi_index_at(list, type, i);
        to[e] = row >= 0 && row < all_rows ? from[row * row_stride + j * col_stride] : (T)fsi_no_row();
    }
}

template <class T>
fs_result copy_rows(fsi_gpu *gpu, const fs_matrix *from, const fs_rows *rows, int down, const fs_matrix *to)
{
    FSI_LOOP(gpu, copy_listed<T>, rows->count * from->cols)
    ((const T *)from->data, from->row_stride, from->col_stride, from->rows, rows->index, rows->index_type, rows->count,
     from->cols, down, (T *)to->data);
    return FSI_LAUNCHED(gpu, "copying gathered rows");
}

}  // namespace

fs_result fsi_gpu_rows_apply(fsi_gpu *gpu, const fsi_def *S, int64_t row0, double alpha, const fs_matrix *from,
                             const fs_rows *rows, double beta, const fs_matrix *to)
{
    if (to->rows == 0 || to->cols == 0) return FS_OK;
    fs_matrix listed = *from;
    listed.rows = rows->count;
    if ((S->family == FSI_DEF_BLOCKPERM || S->family == FSI_DEF_SJLT) && rows->count > 0 && from->rows > 0) {
        fsi_problem problem = fsi_problem_of(&S->u.blockperm, row0, &listed, gpu->precision);
        problem.input = FSI_INPUT_GATHERED;
        const fsi_plan plan = fsi_choose(&problem, &gpu->traits, gpu->tuning);
        const fsi_operands operands = {&S->u.blockperm, S->scale, row0, alpha, from, rows, NULL, beta, to};
        if (plan.kernel != FSI_KERNEL_NONE) return fsi_gpu_blockperm_run(gpu, &problem, &plan, &operands);
    }
    const int down = fsi_runs_down(from);
    listed.row_stride = down ? 1 : from->cols;
    listed.col_stride = down ? rows->count : 1;
    if (rows->count > 0) {
        const int64_t bytes = rows->count * from->cols * fsi_dtype_size(from->dtype);
        FSI_TRY(fsi_gpu_take(gpu, &gpu->copies, bytes, &listed.data));
#define RUN(T) copy_rows<T>(gpu, from, rows, down, &listed)
        FSI_TRY(FSI_BY_DTYPE(from->dtype, RUN));
#undef RUN
    }
    return fsi_gpu_product(gpu, S, 0, row0, alpha, &listed, beta, to);
}
