/* tensor_maps.cu - see tensor_maps.cuh.
 *
 * Columns are cut into groups of 128 bytes, because that is the widest box whose 16-byte chunks the hardware swizzles,
 * so that reads down a column of shared memory do not hit one bank again and again; a row group of floats is such a
 * group, wherever it begins.  The function that encodes a map belongs to the driver and is looked up at run time:
 * nothing is linked against the driver. */
#include "cuda/runtime/tensor_maps.cuh"

typedef CUresult (*encode_fn)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                              const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                              CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static fs_result find_encoder(fsi_gpu *gpu)
{
    if (gpu->encode_map) return FS_OK;
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &gpu->encode_map, 12000,
                                                               cudaEnableDefault, &found);
#else
    const cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &gpu->encode_map, cudaEnableDefault,
                                                      &found);
#endif
    FSI_TRY(fsi_gpu_check(gpu, error, "looking up the driver's cuTensorMapEncodeTiled"));
    if (gpu->encode_map) return FS_OK;
    return gpu->host.fail(FS_EBACKEND, "the driver has no cuTensorMapEncodeTiled (answer %d); CUDA 12 or later has it",
                          (int)found);
}

/* A map of three axes, whose boxes are 128 bytes wide. */
static fs_result encode(fsi_gpu *gpu, CUtensorMapDataType type, void *data, const cuuint64_t *dims,
                        const cuuint64_t *strides, const cuuint32_t *box, CUtensorMap *map)
{
    const cuuint32_t steps[] = {1, 1, 1};
    const CUresult error = ((encode_fn)gpu->encode_map)(
        map, type, 3, data, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (error == CUDA_SUCCESS) return FS_OK;
    return gpu->host.fail(FS_EBACKEND, "the driver cannot map %llu x %llu x %llu elements, %llu bytes apart (error %d)",
                          (unsigned long long)dims[0], (unsigned long long)dims[1], (unsigned long long)dims[2],
                          (unsigned long long)strides[0], (int)error);
}

/* Groups from `column` on, `groups` of them.  The elements of the map are bytes, because they are only copied. */
static fs_result encode_rows(fsi_gpu *gpu, const fs_matrix *A, int64_t column, int64_t groups, int64_t width,
                             int box_rows, CUtensorMap *map)
{
    const int64_t size = fsi_dtype_size(A->dtype);
    /* The stride of a single row is never used, but must be a legal one. */
    const int64_t pitch = A->rows > 1 ? A->row_stride * size : (int64_t)FSI_MAP_GROUP;
    const cuuint64_t dims[] = {FSI_MAP_GROUP, (cuuint64_t)groups, (cuuint64_t)A->rows};
    const cuuint64_t strides[] = {FSI_MAP_GROUP, (cuuint64_t)pitch};
    const cuuint32_t box[] = {FSI_MAP_GROUP, (cuuint32_t)(width * size / FSI_MAP_GROUP), (cuuint32_t)box_rows};
    return encode(gpu, CU_TENSOR_MAP_DATA_TYPE_UINT8, (char *)A->data + column * size, dims, strides, box, map);
}

fs_result fsi_gpu_row_maps(fsi_gpu *gpu, const fs_matrix *A, int64_t width, int box_rows, fsi_row_maps *maps)
{
    const int64_t group = FSI_MAP_GROUP / fsi_dtype_size(A->dtype), groups = A->cols / group;
    FSI_TRY(find_encoder(gpu));
    if (groups > 0) FSI_TRY(encode_rows(gpu, A, 0, groups, width, box_rows, &maps->all));
    if (A->cols % group == 0) return FS_OK;
    return encode_rows(gpu, A, A->cols - width, width / group, width, box_rows, &maps->last);
}

fs_result fsi_gpu_group_map(fsi_gpu *gpu, const fs_matrix *A, int samples, CUtensorMap *map)
{
    FSI_TRY(find_encoder(gpu));
    const cuuint64_t pitch = (cuuint64_t)A->col_stride * 4, strides[] = {pitch, pitch};
    const cuuint64_t dims[] = {(cuuint64_t)A->rows, 1, (cuuint64_t)A->cols};
    const cuuint32_t box[] = {FSI_MAP_GROUP / 4, 1, (cuuint32_t)samples};
    return encode(gpu, CU_TENSOR_MAP_DATA_TYPE_UINT32, A->data, dims, strides, box, map);
}
