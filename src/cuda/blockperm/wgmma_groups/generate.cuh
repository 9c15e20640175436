/* generate.cuh - wgmma_groups.cu: generator warps, which keep the ring of S tiles filled. */
#ifndef FSI_CUDA_BLOCKPERM_WGMMA_GROUPS_GENERATE_CUH
#define FSI_CUDA_BLOCKPERM_WGMMA_GROUPS_GENERATE_CUH

#include "cuda/blockperm/wgmma_groups/layout.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
namespace {

/* Two neighbouring S tiles become zero. */
__device__ __forceinline__ void clear_pair(uint8_t *pair, int lane)
{
#pragma unroll
    for (int i = 0; i < 2 * S_TILE_BYTES / 512; i++) ((uint4 *)pair)[i * 32 + lane] = make_uint4(0, 0, 0, 0);
    __syncwarp();
}
/* They are full, from tile `first` of the ring on; the first pair begins S. */
template <int STAGES, int S_TILES, int STEP_BYTES>
__device__ __forceinline__ void pass_on_pair(const memory<STAGES, S_TILES, STEP_BYTES> &m, int first, int lane,
                                             bool begins)
{
    fsi_proxy_fence();
    __syncwarp();
    if (lane == 0) {
        fsi_mbarrier_arrive(m.tile_full(first));
        fsi_mbarrier_arrive(m.tile_full(first + 1));
        if (begins) fsi_mbarrier_arrive(m.begun());
    }
}

/* A generator warp: of the two, each has every second pair of neighbouring S tiles, and a lane a quad.  Each lane
 * computes one row group, of the next AHEAD pairs of its warp.  Words are drawn before the S tiles are waited for;
 * while these are cleared and written, the other warp's are multiplied. */
template <class T, int C, int SAMPLES, int STAGES, int S_TILES>
__device__ void make_s_tiles(const fsi_tile_args &a, const work &j,
                             const memory<STAGES, S_TILES, shape<T, C, SAMPLES>::STEP_BYTES> &m, uint8_t *tiles,
                             int tile_count)
{
    typedef shape<T, C, SAMPLES> sh;
    enum {
        ONE = in_halves<T>::value ? F16_ONE : BF16_ONE,
        GROUPS = C == 16 ? 8 : 4, /* of two S tiles */
        AHEAD = 32 / GROUPS
    };
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & (GENERATOR_WARPS - 1);
    const int quad = lane & 15, second = lane >> 4;
    const int side = sh::STEP_TILES == 2 ? second : 0; /* the warpgroup that the S tile is for, if it is one */
    const int q = C == 1 ? quad & 3 : quad >> 2;
    uint32_t tall = 0;   /* which of the S tile's blocks are the taller ones */
    bool accepts = true; /* whether every word is good for all of them */
    for (int t = 0; t < sh::BLOCKS; t++) {
        const int taller = block_of_number(a, j, (C < 8 ? 0 : 4 * side) + t).block_rows > a.B.out.small;
        tall |= (uint32_t)taller << t;
        accepts = accepts && a.B.accepts[taller];
    }
    /* The block of column i of the quad, as a bit of `tall`. */
    const auto block_of = [](int i, uint32_t mask) { return C == 1 ? 0 : i ^ (int)(mask & 3); };
    int64_t ahead = 0;
    uint32_t masks = 0;
    for (int pass = warp, number = 0; 2 * pass < tile_count; pass += GENERATOR_WARPS, number++) {
        /* 1. the quad and the first words of its columns */
        if (number % AHEAD == 0) {
            const int64_t round = (int64_t)(pass + lane / GROUPS * GENERATOR_WARPS) * GROUPS + lane % GROUPS;
            ahead = fsi_blockperm_assigned_rolled(&a.B, j.H, j.first + round);
            masks = C > 1 ? fsi_blockperm_mask_rolled(&a.B, ahead) : 0;
        }
        const int from = number % AHEAD * GROUPS + quad / sh::TILE_QUADS + (C < 8 ? second * sh::TILE_GROUPS : 0);
        const int64_t group = __shfl_sync(~0u, ahead, from);
        const uint32_t mask = C > 1 ? __shfl_sync(~0u, masks, from) : 0;
        const int64_t column = group * FSI_GROUP_ROWS +
                               4 * quad_of<T, C>(quad % sh::TILE_QUADS, quad / sh::TILE_QUADS, j.half, side, mask);
        fsi_quad words = fsi_blockperm_quad_rolled(&a.B, column >> 2, 1, 0);
        fsi_split slices[4];
        uint32_t at[4]; /* of the column's K position */
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int block = block_of(i, mask), e = C == 1 ? i : quad & 3;
            at[i] = 2 * ((C == 1 ? quad >> 2 : block) * 16 + 2 * q + (e & 1) + 8 * (e >> 1));
            slices[i] = a.B.strata[tall >> block & 1];
        }

        /* 2. two empty S tiles */
        const int first = 2 * pass % S_TILES, parity = 2 * pass / S_TILES & 1 ^ 1;
        uint8_t *pair = tiles + first * S_TILE_BYTES, *s_tile = pair + second * S_TILE_BYTES;
        fsi_mbarrier_wait(m.tile_empty(first), parity);
        fsi_mbarrier_wait(m.tile_empty(first + 1), parity);
        clear_pair(pair, lane);

        /* 3. +-1 for every nonzero */
#pragma unroll 1
        for (int w = 0, t = 0;;) {
            if (!accepts)
#pragma unroll 1
                for (int i = 0; i < 4; i++) {
                    /* the words go round, so that there is one copy of this */
                    const int64_t rows = a.B.out.small + (tall >> block_of(i, mask) & 1);
                    const uint32_t word = fsi_blockperm_accepted(&a.B, words.w[0], column + i, 1, w, rows);
                    words.w[0] = words.w[1], words.w[1] = words.w[2], words.w[2] = words.w[3], words.w[3] = word;
                }
#pragma unroll 1
            for (int c = fsi_blockperm_count(&a.B, w); c > 0; c--, t++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const uint32_t code = fsi_blockperm_next(&slices[i], t, &words.w[i]), row = code >> 1;
                    *(uint16_t *)(s_tile + row * 128 + (at[i] ^ (row & 7) << 4)) = (uint16_t)(ONE | code << 15);
                }
            if (++w == (int)a.B.words) break;
            words = fsi_blockperm_quad_rolled(&a.B, column >> 2, 1, w);
        }
        pass_on_pair(m, first, lane, pass == 0);
    }
}

}  // namespace
#endif

#endif
