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

/* A lane's four local rows of an S tile, 4 w ... 4 w + 3 of `block` of the warpgroup's: they share a Philox call. */
template <class T, int C> struct local_quad {
    typedef shape<T, C, 64> sh;
    int block, w;
    __device__ __forceinline__ explicit local_quad(int item)
        : block(C == 1 ? 0 : item & 3), w(C == 1 ? item : item >> 2)
    {
    }
    /* The first local row of the tile's row groups that a quad begins in, as one of all rows of the block. */
    __device__ __forceinline__ int64_t first(int64_t round) const { return round * (FSI_GROUP_ROWS / C) + 4 * w; }
    /* Where the K position of local row i is in the tile's rows. */
    __device__ __forceinline__ uint32_t position(int i) const
    {
        const int group = C == 1 ? 0 : C == 4 ? w >> 1 : C == 8 ? w : 2 * w + (i >> 1);
        const int run = C == 4 ? 4 * (w & 1) + i : C == 8 ? i : i & 1;
        const int quad = C == 1 ? w : group * sh::TILE_QUADS + swizzled_run<T, C>(run, group);
        const int q = C == 1 ? quad & 3 : quad >> 2, e = C == 1 ? i : quad & 3;
        return 2 * ((C == 1 ? quad >> 2 : block) * 16 + 2 * q + (e & 1) + 8 * (e >> 1));
    }
};

/* A generator warp: of the two, each has every second pair of neighbouring S tiles, and a lane four local rows of a
 * block.  Words are drawn before the S tiles are waited for; while these are cleared and written, the other warp's are
 * multiplied. */
template <class T, int C, int SAMPLES, int STAGES, int S_TILES>
__device__ void make_s_tiles(const fsi_tile_args &a, const work &j,
                             const memory<STAGES, S_TILES, shape<T, C, SAMPLES>::STEP_BYTES> &m, uint8_t *tiles,
                             int tile_count)
{
    typedef shape<T, C, SAMPLES> sh;
    enum { ONE = in_halves<T>::value ? F16_ONE : BF16_ONE, GROUPS = C == 16 ? 8 : 4 /* of two S tiles */ };
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & (GENERATOR_WARPS - 1), second = lane >> 4;
    const int side = sh::STEP_TILES == 2 ? second : 0; /* the warpgroup that the S tile is for, if it is one */
    const local_quad<T, C> mine(lane & 15);
    const int number = (C < 8 ? 0 : 4 * side) + mine.block;
    const int64_t h = j.first_block + number;
    const int rows = block_of_number(a, j, number).block_rows;
    const fsi_split strata = a.B.strata[rows > a.B.out.small];
    const bool packed = fsi_output_tiles_packed(&a.B, a.outputs);
    for (int pass = warp; 2 * pass < tile_count; pass += GENERATOR_WARPS) {
        /* 1. the words of four local rows */
        const int64_t round = j.first + (int64_t)pass * GROUPS + (C < 8 ? second * sh::TILE_GROUPS : 0);
        const int64_t u = mine.first(round);
        fsi_quad words;
        if (packed) words = fsi_blockperm_quad_rolled(&a.B, h, u, 0);

        /* 2. two empty S tiles */
        const int first = 2 * pass % S_TILES, parity = 2 * pass / S_TILES & 1 ^ 1;
        uint8_t *pair = tiles + first * S_TILE_BYTES, *s_tile = pair + second * S_TILE_BYTES;
        fsi_mbarrier_wait(m.tile_empty(first), parity);
        fsi_mbarrier_wait(m.tile_empty(first + 1), parity);
        clear_pair(pair, lane);

        /* 3. +-1 for every nonzero */
        const auto put = [&](int i, uint32_t code) {
            const uint32_t row = code >> 1;
            *(uint16_t *)(s_tile + row * 128 + (mine.position(i) ^ (row & 7) << 4)) = (uint16_t)(ONE | code << 15);
        };
        if (packed)
#pragma unroll 1
            for (int t = 0; t < a.B.per_band; t++)
#pragma unroll
                for (int i = 0; i < 4; i++) put(i, fsi_packed_code(&a.B, t, &words.w[i]));
        else
#pragma unroll 1
            for (int n = 0; n < 4 * (int)a.B.bands; n++) {
                const int i = n & 3, q = n >> 2;
                fsi_draw draw = fsi_blockperm_draw(&a.B, h, u + i, 1, q, rows);
                for (int c = 0; c < fsi_blockperm_count(&a.B, q); c++)
                    put(i, fsi_blockperm_code(&a.B, &strata, (int64_t)q * a.B.per_band + c, &draw));
            }
        pass_on_pair(m, first, lane, pass == 0);
    }
}

}  // namespace
#endif

#endif
