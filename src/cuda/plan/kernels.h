/* kernels.h - the registry of BlockPerm kernels: one line each, in order of preference.
 *
 * A line NAME, name stands for FSI_KERNEL_NAME, for the descriptor fsi_kernel_name (plan/name.c, see kernel.h) and for
 * the launch half fsi_kernel_name_code (blockperm/name.cu, see blockperm/common/launch.cuh). */
#ifndef FSI_CUDA_PLAN_KERNELS_H
#define FSI_CUDA_PLAN_KERNELS_H

#define FSI_KERNELS(X) \
    X(ROTATE_SKINNY_SIMT, rotate_skinny_simt) /* few columns, contiguous rows, plain additions, sums in registers */ \
    X(MMA_SKINNY, mma_skinny)                 /* few columns, output tiles of 64 rows, mma.sync, S in registers */ \
    X(GATHER_ROWS_SIMT, gather_rows_simt)     /* rows of A contiguous, few nonzeros, sums in registers */ \
    X(ROTATE_ROWS_SIMT, rotate_rows_simt)     /* rows of A contiguous, f64 and few nonzeros, additions */ \
    X(WGMMA_ROWS_16BIT, wgmma_rows_16bit)     /* rows of A contiguous, f16 and bf16, wgmma, S in registers */ \
    X(WGMMA_ROWS, wgmma_rows)                 /* rows of A contiguous, wgmma */ \
    X(WGMMA_GROUPS, wgmma_groups)             /* columns of A contiguous, row groups, wgmma */ \
    X(MMA_GATHER, mma_gather)                 /* gathered rows, and batches that no kernel above takes, mma.sync */ \
    X(MMA_ROWS, mma_rows)                     /* rows of A contiguous, mma.sync */ \
    X(SIMT_SKINNY, simt_skinny)               /* few columns, plain additions, a warp owns the sums of a block */ \
    X(SIMT_GENERIC, simt_generic)             /* any matrix, plain additions, a thread owns columns */ \
    X(SORTED_NONZEROS, sorted_nonzeros)       /* output blocks too tall for a tile */ \
    X(MMA_FACTORED, mma_factored)             /* factored input, mma.sync; in mma_gather.c and mma_gather.cu */

typedef enum fsi_kernel_id {
    FSI_KERNEL_NONE,
#define FSI_KERNEL_ID(NAME, name) FSI_KERNEL_##NAME,
    FSI_KERNELS(FSI_KERNEL_ID)
#undef FSI_KERNEL_ID
        FSI_KERNEL_END
} fsi_kernel_id;

#endif
