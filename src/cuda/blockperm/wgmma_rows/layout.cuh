/* layout.cuh - wgmma_rows.cu: the parameters of an instance and shared memory.  Include it after the list of
 * instances. */
#ifndef FSI_CUDA_BLOCKPERM_WGMMA_ROWS_LAYOUT_CUH
#define FSI_CUDA_BLOCKPERM_WGMMA_ROWS_LAYOUT_CUH

#include "cuda/blockperm/common/row_ring.cuh"
#include "cuda/blockperm/common/tensor.cuh"

namespace {

enum { THREADS = 512, PREPARE = 256, MULTIPLY = 256, MAKERS = 4, SET = 128 };

/* A row of the ring that a map copies takes 2, 6, 10, ... groups of 128 bytes: then the fragment reads, 32 bytes of four
 * neighbouring rows, hit all banks.  (Other ways that were tried: docs/kernels/wgmma_rows.md.) */
template <class T, int CHUNKED, int OUTS, int TILES> struct shape {
    enum {
        APART = TILES == 0,          /* the warpgroups take S tiles in turn, for the same columns */
        ACROSS = APART ? 1 : TILES,  /* tiles of a warpgroup */
        BLOCKS = OUTS == 1 ? 1 : 2,  /* a warpgroup's output tiles */
        SUMS = 32 * ACROSS * BLOCKS, /* of a thread */
        COLUMNS = 2 * ACROSS,        /* of A, of a thread */
        WIDTH = FSI_WGMMA_ROWS_WIDTH(OUTS, TILES),
        ROW_BYTES = FSI_WGMMA_ROWS_PITCH(sizeof(T), CHUNKED, OUTS, TILES),
        STAGE = FSI_WGMMA_ROWS_STAGE(sizeof(T), CHUNKED, OUTS, TILES), /* rows */
        STAGE_BYTES = STAGE * ROW_BYTES,
        HALF_SET = OUTS * S_TILE_BYTES, /* 64 local rows: an S tile for each block,
                                                                * one after the other */
        SET_BYTES = 2 * HALF_SET,
        PITCH = WIDTH + 4,               /* floats of a row of sums in shared memory */
        PREPARING = TILES == 2 ? 72 : 80 /* registers of a thread that prepares */
    };
};

/* Shared memory: sets of S tiles, stages, the mbarriers of stages and of sets; then slices, OUTS for each of the last
 * work items. */
template <class T, int CHUNKED, int OUTS, int TILES, int STAGES, int SETS> struct memory {
    typedef shape<T, CHUNKED, OUTS, TILES> sh;
    uint32_t sets, barriers, shifts; /* shifts: of rows that are copied by chunks */
    row_ring<T, sh::WIDTH, sh::STAGE, sh::ROW_BYTES, STAGES> ring;
    __device__ __forceinline__ explicit memory(const void *shared)
    {
        sets = fsi_shared_address(shared);
        ring.stages = sets + SETS * sh::SET_BYTES;
        ring.barriers = ring.stages + STAGES * sh::STAGE_BYTES;
        barriers = ring.barriers + 16 * STAGES;
        shifts = barriers + 16 * SETS;
    }
    __device__ __forceinline__ uint32_t set_full(int i) const { return barriers + 8 * i; }
    __device__ __forceinline__ uint32_t set_empty(int i) const { return barriers + 8 * (SETS + i); }
};

}  // namespace

#endif
