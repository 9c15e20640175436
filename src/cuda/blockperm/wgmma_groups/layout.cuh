/* layout.cuh - wgmma_groups.cu: the parameters of an instance, shared memory, what a thread block works on, and where
 * units of row groups are in a step.  Include it after the list of instances. */
#ifndef FSI_CUDA_BLOCKPERM_WGMMA_GROUPS_LAYOUT_CUH
#define FSI_CUDA_BLOCKPERM_WGMMA_GROUPS_LAYOUT_CUH

#include "cuda/blockperm/common/tensor.cuh"

namespace {

enum { CONSUMER_THREADS = 256, GENERATOR_WARPS = 2 };

template <class T, int C, int SAMPLES> struct shape {
    enum {
        BOXES = FSI_WGMMA_GROUPS_BOXES(sizeof(T)),        /* row groups are copied by a tensor map */
        CLUSTER = FSI_WGMMA_GROUPS_CLUSTER(sizeof(T), C), /* thread blocks that get the same row groups */
        THREADS = FSI_WGMMA_GROUPS_THREADS(sizeof(T), C, SAMPLES),
        PRODUCER_THREADS = THREADS - CONSUMER_THREADS,
        COPY_WARPS = PRODUCER_THREADS / 32 - GENERATOR_WARPS,
        PRODUCER_REGISTERS = PRODUCER_THREADS == 256 ? 96 : 88,   /* of a thread */
        CONSUMER_REGISTERS = PRODUCER_THREADS == 256 ? 160 : 208, /* of a thread */
        BLOCKS = C == 1 ? 1 : 4,                                  /* of a warpgroup */
        ALL_BLOCKS = C == 16 ? 8 : C,                             /* of the thread block */
        TILE_GROUPS = C == 1 ? 2 : C / 2,                         /* row groups that an S tile has quads of */
        TILE_QUADS = 16 / TILE_GROUPS,                            /* quads of a row group in an S tile */
        STEP_TILES = SAMPLES == 64 ? 2 : 1,
        APART = C < 8 && SAMPLES == 64,                            /* the warpgroups have different row groups */
        GROUPS = TILE_GROUPS * (APART ? 2 : 1),                    /* of a step */
        CHUNK = 16 / (int)sizeof(T),                               /* coordinates of a copy */
        UNITS = (C == 16 && !BOXES ? 16 : FSI_GROUP_ROWS) / CHUNK, /* 16-byte units of a row group in a step */
        HALF_SECTORS = C == 16 && !BOXES,
        STEP_BYTES = SAMPLES * GROUPS * UNITS * 16
    };
};
/* Bytes of the masks of a step: one for every run of C coordinates of its row groups, at most 32. */
enum { MASK_BYTES = FSI_WGMMA_GROUPS_MASKS };

/* Shared memory: S tiles, steps, four sets of mbarriers and one that signals that S has begun, the masks of every
 * step. */
template <int STAGES, int S_TILES, int STEP_BYTES> struct memory {
    uint32_t tiles, steps, barriers;
    uint8_t *masks;
    __device__ __forceinline__ explicit memory(uint8_t *shared)
    {
        tiles = fsi_shared_address(shared);
        steps = tiles + S_TILES * S_TILE_BYTES;
        barriers = steps + STAGES * STEP_BYTES;
        masks = shared + S_TILES * S_TILE_BYTES + STAGES * STEP_BYTES + 16 * (STAGES + S_TILES) + 8;
    }
    __device__ __forceinline__ uint32_t step_full(int i) const { return barriers + 8 * i; }
    __device__ __forceinline__ uint32_t step_empty(int i) const { return barriers + 8 * (STAGES + i); }
    __device__ __forceinline__ uint32_t tile_full(int i) const { return barriers + 8 * (2 * STAGES + i); }
    __device__ __forceinline__ uint32_t tile_empty(int i) const { return barriers + 8 * (2 * STAGES + S_TILES + i); }
    __device__ __forceinline__ uint32_t begun() const { return barriers + 16 * (STAGES + S_TILES); }
};

/* What a thread block works on: blocks from `first_block` on, which with C = 16 are a half of super-block H, samples
 * from `sample` on, and rounds first ... first + rounds - 1, which are slice z: a row group of super-block H each.  With
 * C = 16, where two row groups have four local rows of a block, `first` is even, and the first `lead` rounds are
 * another slice's. */
struct work {
    uint32_t H;
    int half, z, lead;
    int64_t first_block, sample, first, rounds;
};
template <int C, int SAMPLES> __device__ __forceinline__ work work_of(const fsi_tile_args &a)
{
    work j;
    uint32_t id = blockIdx.x;
    const uint32_t groups = C == 16 ? 2 : 1, supers = (uint32_t)a.B.ways, tiles = (uint32_t)a.tiles;
    j.half = (int)(id % groups);
    id /= groups;
    j.H = id % supers;
    id /= supers;
    j.sample = (int64_t)(id % tiles) * SAMPLES;
    j.z = (int)(id / tiles);
    j.first_block = (int64_t)j.H * C + j.half * 8;
    const int64_t local_rows = FSI_GROUP_ROWS / C; /* of a block in a row group */
    const int64_t length = a.length / local_rows, from = j.z * length, left = a.local_rows.count / local_rows - from;
    j.first = a.local_rows.first / local_rows + from;
    j.rounds = left < 0 ? 0 : left < length ? left : length;
    j.lead = C == 16 ? (int)(j.first & 1) : 0;
    j.first -= j.lead;
    j.rounds += j.lead;
    return j;
}
/* Which of the quads for given blocks that an S tile has of row group `group` is the one of a run of C coordinates, and
 * the other way round.  They are swizzled so that lanes that read the same index of neighbouring row groups of a tensor
 * map's box read different banks. */
template <class T, int C> __device__ __forceinline__ int swizzled_run(int index, int group)
{
    if (!FSI_WGMMA_GROUPS_BOXES(sizeof(T))) return index;
    return index ^ (C == 4 ? group & 1 : C == 8 ? group & 3 : C == 16 ? group >> 1 & 1 : 0);
}
/* The masks of a row group, number `group` of a step, go to shared memory in the order of the quads. */
template <class T, int C> __device__ __forceinline__ void put_masks(uint8_t *masks, int group, uint32_t word)
{
    enum { RUNS = FSI_GROUP_ROWS / C };
#pragma unroll
    for (int i = 0; i < RUNS; i++)
        masks[group * RUNS + i] = (uint8_t)fsi_blockperm_mask(word, (uint32_t)swizzled_run<T, C>(i, group));
}
/* The quad of row group `group` that an S tile of warpgroup `side` has as number `index` of its TILE_QUADS, if the mask
 * of its run is 0. */
template <class T, int C> __device__ __forceinline__ int quad_of(int index, int group, int half, int side)
{
    const int sides = C < 8 ? 1 : C / 4; /* a quad of every so many is for four given blocks */
    const int run = swizzled_run<T, C>(index, group);
    return C < 8 ? run : sides * run + 2 * half + side;
}

/* The 16 bytes of a row group of two-byte elements that are copied to a unit; with C = 16 a unit is a run's half. */
template <int C> __device__ __forceinline__ int chunk_at(int unit, int half, uint32_t word)
{
    return C == 16 ? 2 * unit + (half ^ (int)(fsi_blockperm_mask(word, (uint32_t)unit) >> 3 & 1)) : unit;
}

/* Where unit `unit` of a row group and sample is in a step.  Units are swizzled within 128 bytes so that both the eight
 * lanes that write 128 bytes and those that read use all banks: `swizzle` differs in just those bits in which the
 * readers' units agree.  Of two-byte elements eight lanes read 16 bytes each of two samples with C = 4, two units of
 * two row groups, otherwise 16 lanes 8 bytes each of four samples, half a unit, which with C = 8 and 16 is one of two
 * that the masks decide, so that every second read is of another one.  A tensor map's boxes have an order of their own,
 * for which quad_of, sample_of and source::quad are made. */
template <class T, int C, int SAMPLES> __device__ __forceinline__ uint32_t unit_address(int group, int sample, int unit)
{
    const int odd = sample & 1, next = sample & 2;
    const int swizzle = FSI_WGMMA_GROUPS_BOXES(sizeof(T)) ? sample & 7
                                                          : 4 * odd ^ (C == 1   ? next
                                                                       : C == 4 ? group & 1
                                                                       : C == 8 ? next ^ (group & 1)
                                                                                : next ^ (group >> 1 & 1));
    const int row = (group * SAMPLES + sample) * shape<T, C, SAMPLES>::UNITS / 8;
    return row * 128 + (unit ^ swizzle) * 16;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* The rows of Y of block `number` of the thread block. */
__device__ __forceinline__ fsi_slice block_of_number(const fsi_tile_args &a, const work &j, int number)
{
    fsi_slice p;
    p.h = (uint32_t)(j.first_block + number);
    p.z = j.z;
    return fsi_slice_for(a, p, 0);
}
#endif

}  // namespace

#endif
