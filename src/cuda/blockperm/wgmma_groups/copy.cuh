/* copy.cuh - wgmma_groups.cu: producer warps, which keep the ring of steps filled. */
#ifndef FSI_CUDA_BLOCKPERM_WGMMA_GROUPS_COPY_CUH
#define FSI_CUDA_BLOCKPERM_WGMMA_GROUPS_COPY_CUH

#include "cuda/blockperm/wgmma_groups/layout.cuh"
#include "cuda/runtime/tensor_maps.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
namespace {

/* A producer warp, elements of two bytes: warp w has steps w, w + COPY_WARPS, ...  Each lane computes one row group, of
 * the next AHEAD steps of its warp; then all lanes copy one row group after the other, 16 bytes each.  Chunks outside
 * A, and samples past the last, become zero, so that S has no effect there. */
template <class T, int C, int SAMPLES, int STAGES, int S_TILES>
__device__ void copy_groups(const fsi_tile_args &a, const work &j,
                            const memory<STAGES, S_TILES, shape<T, C, SAMPLES>::STEP_BYTES> &m, int step_count)
{
    typedef shape<T, C, SAMPLES> sh;
    enum { AHEAD = 32 / sh::GROUPS, TOGETHER = 32 / sh::UNITS, COPY_WARPS = sh::COPY_WARPS };
    const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) - GENERATOR_WARPS;
    const int unit = lane % sh::UNITS, mine = lane / sh::UNITS;
    const int64_t left = a.n - j.sample - mine;
    const int samples = (int)(left < SAMPLES ? left : SAMPLES);
    const T *data = (const T *)a.data + (j.sample + mine) * a.col_stride;
    for (int pass = 0; warp + pass * COPY_WARPS < step_count; pass += AHEAD) {
        const int64_t round = (int64_t)(warp + (pass + lane / sh::GROUPS) * COPY_WARPS) * sh::GROUPS +
                              lane % sh::GROUPS;
        const int64_t group = fsi_blockperm_assigned_rolled(&a.B, j.H, j.first + round);
        const int64_t start = round >= j.lead && round < j.rounds ? group * FSI_GROUP_ROWS - a.row0 : a.rows;
        const uint32_t word = C > 1 ? fsi_blockperm_group_word_rolled(&a.B, group) : 0;
        for (int k = 0; k < AHEAD; k++) {
            const int step = warp + (pass + k) * COPY_WARPS, stage = step % STAGES;
            if (step >= step_count) break;
            /* The instruction fetches of the first S tile compete with copies for memory: only one step is copied
             * meanwhile. */
            if (step > 0 && step < 2 * COPY_WARPS) fsi_mbarrier_wait(m.begun(), 0);
            fsi_mbarrier_wait(m.step_empty(stage), step / STAGES & 1 ^ 1);
            if (C > 1 && lane / sh::GROUPS == k) put_masks<T, C>(m.masks + stage * MASK_BYTES, lane % sh::GROUPS, word);
#pragma unroll 1
            for (int l = 0; l < sh::GROUPS; l++) {
                const int from = k * sh::GROUPS + l;
                const uint32_t its = C > 4 ? __shfl_sync(~0u, word, from) : 0;
                const int64_t row = __shfl_sync(~0u, start, from) + sh::CHUNK * chunk_at<C>(unit, j.half, its);
                const bool there = row >= 0 && row < a.rows;
                const int valid = there ? samples : 0;
                const T *source = data + row;
                const uint32_t to = m.steps + stage * sh::STEP_BYTES + unit_address<T, C, SAMPLES>(l, mine, unit);
#pragma unroll 8
                for (int s = 0; s < SAMPLES; s += TOGETHER) {
                    /* of these sectors another thread block reads the other half: keep them in L2 */
                    if (sh::HALF_SECTORS) fsi_copy16_part(to + s * sh::UNITS * 16, source, s < valid ? 16 : 0);
                    else fsi_copy16_once(to + s * sh::UNITS * 16, source, s < valid ? 16 : 0);
                    source += TOGETHER * a.col_stride;
                }
            }
            fsi_mbarrier_arrive_copied(m.step_full(stage));
            if (C > 1) {
                __syncwarp();
                if (lane == 0) fsi_mbarrier_arrive(m.step_full(stage)); /* the masks */
            }
        }
    }
}

/* A producer warp, floats: one lane copies row groups by a tensor map, all samples at once.  Row groups that do not
 * exist are copied from behind the last row, where a map is zero.  Each thread block of a cluster copies its share of
 * the row groups of a step to all of them, after all have read the buffer's last contents. */
template <class T, int C, int SAMPLES, int STAGES, int S_TILES>
__device__ void copy_boxes(const fsi_tile_args &a, const CUtensorMap &map, const work &j,
                           const memory<STAGES, S_TILES, shape<T, C, SAMPLES>::STEP_BYTES> &m, int step_count)
{
    typedef shape<T, C, SAMPLES> sh;
    enum { AHEAD = 32 / sh::GROUPS, COPY_WARPS = sh::COPY_WARPS, SHARE = sh::GROUPS / sh::CLUSTER };
    const int lane = threadIdx.x & 31, warp = __shfl_sync(~0u, (int)(threadIdx.x >> 5) - GENERATOR_WARPS, 0);
    const int sample = __shfl_sync(~0u, (int)j.sample, 0);
    const int own = sh::CLUSTER > 1 ? __shfl_sync(~0u, j.half * SHARE, 0) : 0;
    /* Boxes begin at multiples of 16 bytes. */
    const int64_t behind = (a.rows + sh::CHUNK - 1) / sh::CHUNK * sh::CHUNK;
    for (int pass = 0; warp + pass * COPY_WARPS < step_count; pass += AHEAD) {
        const int64_t round = (int64_t)(warp + (pass + lane / sh::GROUPS) * COPY_WARPS) * sh::GROUPS +
                              lane % sh::GROUPS;
        const int64_t group = fsi_blockperm_assigned_rolled(&a.B, j.H, j.first + round);
        const int64_t row = group * FSI_GROUP_ROWS - a.row0;
        const bool there = round >= j.lead && round < j.rounds && row > -FSI_GROUP_ROWS && row < a.rows;
        const int start = (int)(there ? row : behind);
        const uint32_t word = C > 1 ? fsi_blockperm_group_word_rolled(&a.B, group) : 0;
#pragma unroll 1
        for (int k = 0; k < AHEAD && warp + (pass + k) * COPY_WARPS < step_count; k++) {
            const int step = warp + (pass + k) * COPY_WARPS, stage = step % STAGES;
            const uint32_t to = m.steps + stage * sh::STEP_BYTES + own * SAMPLES * 128;
            if (step > 0 && step < 2 * COPY_WARPS) fsi_mbarrier_wait(m.begun(), 0);
            fsi_mbarrier_wait(m.step_empty(stage), step / STAGES & 1 ^ 1);
            if (C > 1 && lane / sh::GROUPS == k) put_masks<T, C>(m.masks + stage * MASK_BYTES, lane % sh::GROUPS, word);
            int starts[SHARE];
#pragma unroll
            for (int l = 0; l < SHARE; l++) starts[l] = __shfl_sync(~0u, start, k * sh::GROUPS + own + l);
            __syncwarp();
            if (fsi_elect()) {
                fsi_mbarrier_arrive_expect(m.step_full(stage), sh::STEP_BYTES);
#pragma unroll
                for (int l = 0; l < SHARE; l++)
                    if (sh::CLUSTER > 1)
                        fsi_copy_box_to_both(to + l * SAMPLES * 128, &map, starts[l], 0, sample, m.step_full(stage));
                    else fsi_copy_box(to + l * SAMPLES * 128, &map, starts[l], 0, sample, m.step_full(stage));
            }
            __syncwarp();
        }
    }
    /* Keep this block's shared memory alive until its cluster peers have read what this warp copied and have
     * arrived. */
#pragma unroll 1
    for (int step = step_count - STAGES; sh::CLUSTER > 1 && step < step_count; step++)
        if (step >= 0 && step % COPY_WARPS == warp) fsi_mbarrier_wait(m.step_empty(step % STAGES), step / STAGES & 1);
}

}  // namespace
#endif

#endif
