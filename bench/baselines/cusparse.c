/* cusparse.c - the SJLT as a sparse matrix: S in CSR, Y = S A by cuSPARSE's SpMM. */
#include <cusparse.h>
#include <stdio.h>
#include <stdlib.h>

#include "baselines.h"
#include "bench/gpu/bench_gpu.h"

typedef struct spmm {
    baseline_problem problem;
    cusparseHandle_t handle;
    cusparseSpMatDescr_t matrix;
    cusparseDnMatDescr_t A, Y;
    cusparseSpMMAlg_t algorithm;
    fs_sparse S; /* k x d in device memory, 32-bit indices */
    void *buffer;
} spmm;

static const float one = 1, zero = 0;
static const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;

static int cusparse_failed(cusparseStatus_t status, const char *doing)
{
    if (status == CUSPARSE_STATUS_SUCCESS) return 0;
    fprintf(stderr, "fsbench: %s: %s\n", doing, cusparseGetErrorString(status));
    return 1;
}

static int reserve(spmm *s)
{
    const fs_spec *spec = &s->problem.spec;
    s->S = (fs_sparse){.format = FS_CSR,
                       .index_type = FS_INDEX32,
                       .rows = spec->k,
                       .cols = spec->d,
                       .dtype = FS_F32,
                       .memory = FS_MEMORY_CUDA};
    if (bench_fs_failed(fs_sketch_nnz(s->problem.S, 0, spec->d, &s->S.nnz), "counting the nonzeros of S")) return 1;
    const size_t entries = (size_t)s->S.nnz, rows = (size_t)spec->k + 1;
    return bench_cuda_failed(cudaMalloc(&s->S.ptr, sizeof(int32_t) * rows), "reserving memory for S") ||
           bench_cuda_failed(cudaMalloc(&s->S.index, sizeof(int32_t) * entries), "reserving memory for S") ||
           bench_cuda_failed(cudaMalloc(&s->S.value, sizeof(float) * entries), "reserving memory for S");
}

static int export_csr(spmm *s)
{
    return bench_fs_failed(fs_sketch_to_csr(s->problem.context, s->problem.S, 0, &s->S), "writing S as CSR");
}

/* The dense matrices are described once, with any buffers; run changes the pointers. */
static int describe(spmm *s)
{
    const baseline_problem *p = &s->problem;
    const int64_t d = p->spec.d, k = p->spec.k, n = p->n;
    const cusparseOrder_t order = p->batch_major ? CUSPARSE_ORDER_COL : CUSPARSE_ORDER_ROW;
    const cusparseIndexType_t index = CUSPARSE_INDEX_32I;
    return cusparse_failed(cusparseCreateCsr(&s->matrix, k, d, s->S.nnz, s->S.ptr, s->S.index, s->S.value, index, index,
                                             CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F),
                           "describing S to cuSPARSE") ||
           cusparse_failed(cusparseCreateDnMat(&s->A, d, n, p->batch_major ? d : n, p->g->from.data, CUDA_R_32F, order),
                           "describing A to cuSPARSE") ||
           cusparse_failed(cusparseCreateDnMat(&s->Y, k, n, p->batch_major ? k : n, p->g->to.data, CUDA_R_32F, order),
                           "describing Y to cuSPARSE");
}

static int open(void **state, const baseline_problem *problem)
{
    size_t bytes;
    spmm *s = calloc(1, sizeof *s);
    *state = s;
    if (!s) return 1;
    s->problem = *problem;
    /* NVIDIA's advice: algorithm 2 for row-major, 1 for column-major dense matrices. */
    s->algorithm = problem->batch_major ? CUSPARSE_SPMM_CSR_ALG1 : CUSPARSE_SPMM_CSR_ALG2;
    if (reserve(s) || export_csr(s)) return 1;
    if (cusparse_failed(cusparseCreate(&s->handle), "opening cuSPARSE")) return 1;
    if (cusparse_failed(cusparseSetStream(s->handle, problem->g->stream), "giving cuSPARSE a stream")) return 1;
    if (describe(s)) return 1;
    const cusparseStatus_t status = cusparseSpMM_bufferSize(s->handle, plain, plain, &one, s->matrix, s->A, &zero, s->Y,
                                                            CUDA_R_32F, s->algorithm, &bytes);
    if (cusparse_failed(status, "asking cuSPARSE for its buffer's size")) return 1;
    return bench_cuda_failed(cudaMalloc(&s->buffer, bytes ? bytes : 1), "reserving memory for cuSPARSE");
}

static int prepare(void *state)
{
    spmm *s = state;
    if (export_csr(s)) return 1;
    return cusparse_failed(cusparseSpMM_preprocess(s->handle, plain, plain, &one, s->matrix, s->A, &zero, s->Y,
                                                   CUDA_R_32F, s->algorithm, s->buffer),
                           "preparing a sparse product");
}

static int run(void *state, void *A, void *Y)
{
    spmm *s = state;
    if (cusparse_failed(cusparseDnMatSetValues(s->A, A), "giving cuSPARSE another A")) return 1;
    if (cusparse_failed(cusparseDnMatSetValues(s->Y, Y), "giving cuSPARSE another Y")) return 1;
    return cusparse_failed(
        cusparseSpMM(s->handle, plain, plain, &one, s->matrix, s->A, &zero, s->Y, CUDA_R_32F, s->algorithm, s->buffer),
        "multiplying by cuSPARSE");
}

static void close(void *state)
{
    spmm *s = state;
    if (!s) return;
    if (s->matrix) cusparseDestroySpMat(s->matrix);
    if (s->A) cusparseDestroyDnMat(s->A);
    if (s->Y) cusparseDestroyDnMat(s->Y);
    if (s->handle) cusparseDestroy(s->handle);
    cudaFree(s->buffer);
    cudaFree(s->S.ptr);
    cudaFree(s->S.index);
    cudaFree(s->S.value);
    free(s);
}

const baseline baseline_cusparse = {open, prepare, run, NULL, close};
