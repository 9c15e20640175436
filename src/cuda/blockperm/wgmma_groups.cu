/* wgmma_groups.cu - BlockPerm-SJLT on the tensor cores of sm_90, columns of A contiguous (batches), lines dealt.
 *
 * Formulation.  Samples (columns of A) are the M axis of the tensor cores, coordinates (rows of A) the K axis, the at
 * most 64 rows of a block the N axis.  A quad, four neighbouring coordinates at a multiple of four, is one Philox call;
 * of floats it is 16 bytes, of two-byte elements half of that.  Where lines stay whole (C = 1) a quad is four K
 * positions of one block; where a line goes to C blocks it is one K position of each of four blocks, in an order that
 * the line's mask decides.  A panel of S is 16 quads.  In a step a warpgroup multiplies 64 samples by a panel, for one
 * block (C = 1: four K steps of 16) or for four (a K step each):
 *
 *   C = 1, 4     the warpgroups take the halves of 128 samples and share a panel (SAMPLES = 128), or have a panel each
 *                for 64 samples, and their sums are added at the end (SAMPLES = 64)
 *   C = 8, 16    the warpgroups take four blocks each of the same 64 samples, so that a thread block makes eight.
 *                With C = 16 two thread blocks make the halves of a super-block, out of the same lines.
 *
 * Lines of floats come by a tensor map, for all samples at once.  Those two thread blocks are a cluster, and each
 * copies half of the lines to both.  (Copies of what one of them needs alone, every second 32 bytes, are more requests
 * than L2 answers in the time of the read: H200, 70748d2, 1.5 to 1.86 times as long.)  Two-byte elements are copied 16
 * bytes at a time; with C = 16 that is half a sector of memory, and L2 delivers everything twice.
 * Floats are cut into two f16 pieces, with a scale for every sample: see cut_pair in tensor.cuh.
 * Four blocks are 128 registers of sums a thread.  So a block's products of one step, 16 local rows, are multiplied into 32
 * other registers and added to its sums at once; sums of 16 local rows also keep what the tensor cores cut off, which round
 * towards zero, small.  C = 1 does the same after 64 local rows, or 256 of two-byte elements.
 * Inf and NaN: as in mma_rows.cu.
 *
 * grid     groups of eight blocks (C = 16: two, else one) x super-blocks x sample tiles x slices, in this order, in x
 * cluster  floats with C = 16: the two groups
 * threads  384 or 512: two warps make S, two or six copy, two warpgroups multiply; registers move to those
 * shared   a ring of PANELS panels of S, a ring of STAGES steps of 32 KiB (floats with C = 16: 64, two-byte elements:
 *          16), mbarriers, masks
 * needs    sm_90; lines, interleave 1, 4, 8 or 16; kappa = 1; f32, f16, bf16; blocks of at most 64 rows; coordinates
 *          contiguous, samples 16-byte aligned, row0 whole 16 bytes; of floats a matrix that tensor_maps.cu can describe,
 *          otherwise rows that are whole 16 bytes */
#include "cuda/plan/instances.h"
#include "cuda/runtime/tensor_maps.cuh"
#include "cuda/blockperm/common/tensor.cuh"

namespace {

enum { MULTIPLY = 256, MAKERS = 2 };

template <class T, int C, int SAMPLES> struct shape {
    enum {
        BOXES = FSI_WGMMA_GROUPS_BOXES(sizeof(T)),        /* lines come by a tensor map */
        CLUSTER = FSI_WGMMA_GROUPS_CLUSTER(sizeof(T), C), /* thread blocks that get the same lines */
        THREADS = FSI_WGMMA_GROUPS_THREADS(sizeof(T), C, SAMPLES),
        PREPARE = THREADS - MULTIPLY,
        COPIERS = PREPARE / 32 - MAKERS,
        FEWER = PREPARE == 256 ? 96 : 88,  /* registers of a thread that prepares, */
        MORE = PREPARE == 256 ? 160 : 208, /* that multiplies */
        BLOCKS = C == 1 ? 1 : 4,           /* of a warpgroup */
        ALL_BLOCKS = C == 16 ? 8 : C,      /* of the thread block */
        PANEL_LINES = C == 1 ? 2 : C / 2,  /* lines that a panel has quads of */
        PANEL_QUADS = 16 / PANEL_LINES,    /* quads of a line in a panel */
        STEP_PANELS = SAMPLES == 64 ? 2 : 1,
        APART = C < 8 && SAMPLES == 64,                             /* the warpgroups have different lines */
        LINES = PANEL_LINES * (APART ? 2 : 1),                      /* of a step */
        CHUNK = 16 / (int)sizeof(T),                                /* coordinates of a copy */
        PLACES = (C == 16 && !BOXES ? 16 : FSI_GROUP_ROWS) / CHUNK, /* 16-byte pieces of a line in a step */
        HALF_SECTORS = C == 16 && !BOXES,
        STEP_BYTES = SAMPLES * LINES * PLACES * 16
    };
};

/* Shared memory: panels, steps, four groups of mbarriers and one that tells that S has begun, the masks of eight lines
 * of every step. */
template <int STAGES, int PANELS, int STEP_BYTES> struct memory {
    uint32_t panels, steps, barriers;
    uint8_t *masks;
    __device__ __forceinline__ explicit memory(uint8_t *shared)
    {
        panels = fsi_shared_address(shared);
        steps = panels + PANELS * S_TILE_BYTES;
        barriers = steps + STAGES * STEP_BYTES;
        masks = shared + PANELS * S_TILE_BYTES + STAGES * STEP_BYTES + 16 * (STAGES + PANELS) + 8;
    }
    __device__ __forceinline__ uint32_t step_full(int i) const { return barriers + 8 * i; }
    __device__ __forceinline__ uint32_t step_empty(int i) const { return barriers + 8 * (STAGES + i); }
    __device__ __forceinline__ uint32_t panel_full(int i) const { return barriers + 8 * (2 * STAGES + i); }
    __device__ __forceinline__ uint32_t panel_empty(int i) const { return barriers + 8 * (2 * STAGES + PANELS + i); }
    __device__ __forceinline__ uint32_t begun() const { return barriers + 16 * (STAGES + PANELS); }
};

/* What a thread block works on: blocks from `first_block` on, samples from `sample` on, and rounds first ...
 * first + rounds - 1 of the deal, which are slice z: a line of super-block H each. */
struct job {
    uint32_t H;
    int group, z;
    int64_t first_block, sample, first, rounds;
};
template <int C, int SAMPLES> __device__ __forceinline__ job job_of(const fsi_tile_args &a)
{
    job j;
    uint32_t id = blockIdx.x;
    const uint32_t groups = C == 16 ? 2 : 1, supers = (uint32_t)a.B.ways, tiles = (uint32_t)a.tiles;
    j.group = (int)(id % groups);
    id /= groups;
    j.H = id % supers;
    id /= supers;
    j.sample = (int64_t)(id % tiles) * SAMPLES;
    j.z = (int)(id / tiles);
    j.first_block = (int64_t)j.H * C + j.group * 8;
    const int64_t local_rows = FSI_GROUP_ROWS / C; /* of a block in a line */
    const int64_t length = a.length / local_rows, from = j.z * length, left = a.local_rows.count / local_rows - from;
    j.first = a.local_rows.first / local_rows + from;
    j.rounds = left < 0 ? 0 : left < length ? left : length;
    return j;
}
/* The quad of a line that a panel of warpgroup `side` has as number `index` of its PANEL_QUADS of line `line`.  They
 * are exchanged so that those who read the same index of neighbouring lines of a tensor map's box meet different
 * banks. */
template <class T, int C>
__device__ __forceinline__ int quad_of(int index, int line, int group, int side, uint32_t mask)
{
    const int sides = C < 8 ? 1 : C / 4; /* a quad of every so many is for four given blocks */
    if (FSI_WGMMA_GROUPS_BOXES(sizeof(T))) index ^= C == 4 ? line & 1 : C == 8 ? line & 3 : C == 16 ? line >> 1 & 1 : 0;
    return C < 8 ? index : (sides * index + 2 * group + side) ^ ((int)mask >> 2 & (sides - 1));
}

/* The 16 bytes of a line of two-byte elements that are copied to a place. */
template <int C> __device__ __forceinline__ int chunk_at(int place, int group, uint32_t mask)
{
    return C == 16 ? 2 * place + (group ^ ((int)mask >> 3 & 1)) : place;
}

/* Where line, sample and place are in a step.  Places are exchanged within 128 bytes so that both the eight lanes that
 * write 128 bytes and those that read meet all banks: `turned` differs in just those bits in which the readers' places
 * agree.  Of two-byte elements eight lanes read 16 bytes each of two samples with C = 4, two places of two lines,
 * otherwise 16 lanes 8 bytes each of four samples, half a place, which with C = 8 and 16 is one of two that the masks
 * decide, so that every second read meets another one.  A tensor map's boxes have an order of their own, which quad_of,
 * sample_of and source::quad suit. */
template <class T, int C, int SAMPLES> __device__ __forceinline__ uint32_t place_of(int line, int sample, int place)
{
    const int odd = sample & 1, next = sample & 2;
    const int turned = FSI_WGMMA_GROUPS_BOXES(sizeof(T)) ? sample & 7
                                                         : 4 * odd ^ (C == 1   ? next
                                                                      : C == 4 ? line & 1
                                                                      : C == 8 ? next ^ (line & 1)
                                                                               : next ^ (line >> 1 & 1));
    const int row = (line * SAMPLES + sample) * shape<T, C, SAMPLES>::PLACES / 8;
    return row * 128 + (place ^ turned) * 16;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* Rows of block `number` of the thread block. */
__device__ __forceinline__ fsi_slice part_of(const fsi_tile_args &a, const job &j, int number)
{
    fsi_slice p;
    p.h = (uint32_t)(j.first_block + number);
    p.z = j.z;
    return fsi_slice_for(a, p, 1);
}

/* A warp that copies: warp w has steps w, w + COPIERS, ...  Each lane works out one line, of the next AHEAD steps
 * of its warp; then all lanes copy line after line, 16 bytes each.  Chunks that the piece does not have, and samples
 * past the last, become zero, so that whatever S has there is without effect. */
template <class T, int C, int SAMPLES, int STAGES, int PANELS>
__device__ void copy_lines(const fsi_tile_args &a, const job &j,
                           const memory<STAGES, PANELS, shape<T, C, SAMPLES>::STEP_BYTES> &m, int step_count)
{
    typedef shape<T, C, SAMPLES> sh;
    enum { AHEAD = 32 / sh::LINES, TOGETHER = 32 / sh::PLACES, COPIERS = sh::COPIERS };
    const int lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) - MAKERS;
    const int place = lane % sh::PLACES, mine = lane / sh::PLACES;
    const int64_t left = a.n - j.sample - mine;
    const int samples = (int)(left < SAMPLES ? left : SAMPLES);
    const T *data = (const T *)a.data + (j.sample + mine) * a.col_stride;
    for (int turn = 0; warp + turn * COPIERS < step_count; turn += AHEAD) {
        const int64_t round = (int64_t)(warp + (turn + lane / sh::LINES) * COPIERS) * sh::LINES + lane % sh::LINES;
        const int64_t line = fsi_blockperm_assigned_rolled(&a.B, j.H, j.first + round);
        const int64_t start = round < j.rounds ? line * FSI_GROUP_ROWS - a.row0 : a.rows;
        const uint32_t mask = C > 1 ? fsi_blockperm_mask_rolled(&a.B, line) : 0;
        for (int k = 0; k < AHEAD; k++) {
            const int step = warp + (turn + k) * COPIERS, stage = step % STAGES;
            if (step >= step_count) break;
            /* While the first panel of S is made, its instructions are fetched through the memory that copies would
             * fill: one step is enough to begin with. */
            if (step > 0 && step < 2 * COPIERS) fsi_mbarrier_wait(m.begun(), 0);
            fsi_mbarrier_wait(m.step_empty(stage), step / STAGES & 1 ^ 1);
            if (C > 1 && lane / sh::LINES == k) m.masks[stage * 8 + lane % sh::LINES] = (uint8_t)mask;
#pragma unroll 1
            for (int l = 0; l < sh::LINES; l++) {
                const int from = k * sh::LINES + l;
                const uint32_t its = C > 4 ? __shfl_sync(~0u, mask, from) : 0;
                const int64_t row = __shfl_sync(~0u, start, from) + sh::CHUNK * chunk_at<C>(place, j.group, its);
                const bool there = row >= 0 && row < a.rows;
                const int valid = there ? samples : 0;
                const T *source = data + row;
                const uint32_t to = m.steps + stage * sh::STEP_BYTES + place_of<T, C, SAMPLES>(l, mine, place);
#pragma unroll 8
                for (int s = 0; s < SAMPLES; s += TOGETHER) {
                    /* what another thread block reads the other half of stays in L2 */
                    if (sh::HALF_SECTORS) fsi_copy16_part(to + s * sh::PLACES * 16, source, s < valid ? 16 : 0);
                    else fsi_copy16_once(to + s * sh::PLACES * 16, source, s < valid ? 16 : 0);
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

/* The same of lines that come by a tensor map: one lane copies them, all samples at once.  Lines that there are not are
 * copied from behind the last row, where a map is zero.  The thread blocks of a cluster copy a share of the lines of a
 * step each, to all of them, when all have read what was there. */
template <class T, int C, int SAMPLES, int STAGES, int PANELS>
__device__ void copy_boxes(const fsi_tile_args &a, const CUtensorMap &map, const job &j,
                           const memory<STAGES, PANELS, shape<T, C, SAMPLES>::STEP_BYTES> &m, int step_count)
{
    typedef shape<T, C, SAMPLES> sh;
    enum { AHEAD = 32 / sh::LINES, COPIERS = sh::COPIERS, SHARE = sh::LINES / sh::CLUSTER };
    const int lane = threadIdx.x & 31, warp = __shfl_sync(~0u, (int)(threadIdx.x >> 5) - MAKERS, 0);
    const int sample = __shfl_sync(~0u, (int)j.sample, 0);
    const int own = sh::CLUSTER > 1 ? __shfl_sync(~0u, j.group * SHARE, 0) : 0;
    /* Boxes begin at multiples of 16 bytes. */
    const int64_t behind = (a.rows + sh::CHUNK - 1) / sh::CHUNK * sh::CHUNK;
    for (int turn = 0; warp + turn * COPIERS < step_count; turn += AHEAD) {
        const int64_t round = (int64_t)(warp + (turn + lane / sh::LINES) * COPIERS) * sh::LINES + lane % sh::LINES;
        const int64_t line = fsi_blockperm_assigned_rolled(&a.B, j.H, j.first + round);
        const int64_t row = line * FSI_GROUP_ROWS - a.row0;
        const int start = (int)(round < j.rounds && row > -FSI_GROUP_ROWS && row < a.rows ? row : behind);
        const uint32_t mask = C > 1 ? fsi_blockperm_mask_rolled(&a.B, line) : 0;
#pragma unroll 1
        for (int k = 0; k < AHEAD && warp + (turn + k) * COPIERS < step_count; k++) {
            const int step = warp + (turn + k) * COPIERS, stage = step % STAGES;
            const uint32_t to = m.steps + stage * sh::STEP_BYTES + own * SAMPLES * 128;
            if (step > 0 && step < 2 * COPIERS) fsi_mbarrier_wait(m.begun(), 0);
            fsi_mbarrier_wait(m.step_empty(stage), step / STAGES & 1 ^ 1);
            if (C > 1 && lane / sh::LINES == k) m.masks[stage * 8 + lane % sh::LINES] = (uint8_t)mask;
            int starts[SHARE];
#pragma unroll
            for (int l = 0; l < SHARE; l++) starts[l] = __shfl_sync(~0u, start, k * sh::LINES + own + l);
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
    /* Nobody ends while others of the cluster may still read what this warp copied, or arrive here. */
#pragma unroll 1
    for (int step = step_count - STAGES; sh::CLUSTER > 1 && step < step_count; step++)
        if (step >= 0 && step % COPIERS == warp) fsi_mbarrier_wait(m.step_empty(step % STAGES), step / STAGES & 1);
}

/* A warp that makes panels of S: of the two, each has every second pair of neighbouring panels, and a lane a quad.
 * Each lane works out one line, of the next AHEAD pairs of its warp.
 * Words are drawn before the panels are waited for; while these are cleared and written, the other warp's are
 * multiplied. */
template <class T, int C, int SAMPLES, int STAGES, int PANELS>
__device__ void make_s_tiles(const fsi_tile_args &a, const job &j,
                            const memory<STAGES, PANELS, shape<T, C, SAMPLES>::STEP_BYTES> &m, uint8_t *panels,
                            int panel_count)
{
    typedef shape<T, C, SAMPLES> sh;
    enum {
        ONE = in_halves<T>::value ? F16_ONE : BF16_ONE,
        LINES = C == 16 ? 8 : 4, /* of two panels */
        AHEAD = 32 / LINES
    };
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & (MAKERS - 1);
    const int quad = lane & 15, second = lane >> 4;
    const int side = sh::STEP_PANELS == 2 ? second : 0; /* the warpgroup that the panel is for, if it is one */
    const int q = C == 1 ? quad & 3 : quad >> 2;
    uint32_t tall = 0;   /* which of the panel's blocks are the taller ones */
    bool accepts = true; /* whether every word is good for all of them */
    for (int t = 0; t < sh::BLOCKS; t++) {
        const int taller = part_of(a, j, (C < 8 ? 0 : 4 * side) + t).block_rows > a.B.out.small;
        tall |= (uint32_t)taller << t;
        accepts = accepts && a.B.accepts[taller];
    }
    /* The block of column i of the quad, as a bit of `tall`. */
    const auto block_of = [](int i, uint32_t mask) { return C == 1 ? 0 : i ^ (int)(mask & 3); };
    int64_t ahead = 0;
    uint32_t masks = 0;
    for (int turn = warp, number = 0; 2 * turn < panel_count; turn += MAKERS, number++) {
        /* 1. the quad and the first words of its columns */
        if (number % AHEAD == 0) {
            const int64_t round = (int64_t)(turn + lane / LINES * MAKERS) * LINES + lane % LINES;
            ahead = fsi_blockperm_assigned_rolled(&a.B, j.H, j.first + round);
            masks = C > 1 ? fsi_blockperm_mask_rolled(&a.B, ahead) : 0;
        }
        const int from = number % AHEAD * LINES + quad / sh::PANEL_QUADS + (C < 8 ? second * sh::PANEL_LINES : 0);
        const int64_t line = __shfl_sync(~0u, ahead, from);
        const uint32_t mask = C > 1 ? __shfl_sync(~0u, masks, from) : 0;
        const int64_t column = line * FSI_GROUP_ROWS +
                               4 * quad_of<T, C>(quad % sh::PANEL_QUADS, quad / sh::PANEL_QUADS, j.group, side, mask);
        fsi_quad words = fsi_blockperm_quad_rolled(&a.B, column >> 2, 1, 0);
        fsi_split slices[4];
        uint32_t at[4]; /* of the column's K position */
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int block = block_of(i, mask), e = C == 1 ? i : quad & 3;
            at[i] = 2 * ((C == 1 ? quad >> 2 : block) * 16 + 2 * q + (e & 1) + 8 * (e >> 1));
            slices[i] = a.B.strata[tall >> block & 1];
        }

        /* 2. two empty panels */
        const int first = 2 * turn % PANELS, parity = 2 * turn / PANELS & 1 ^ 1;
        uint8_t *pair = panels + first * S_TILE_BYTES, *panel = pair + second * S_TILE_BYTES;
        fsi_mbarrier_wait(m.panel_empty(first), parity);
        fsi_mbarrier_wait(m.panel_empty(first + 1), parity);
#pragma unroll
        for (int i = 0; i < 2 * S_TILE_BYTES / 512; i++) ((uint4 *)pair)[i * 32 + lane] = make_uint4(0, 0, 0, 0);
        __syncwarp();

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
                    *(uint16_t *)(panel + row * 128 + (at[i] ^ (row & 7) << 4)) = (uint16_t)(ONE | code << 15);
                }
            if (++w == (int)a.B.words) break;
            words = fsi_blockperm_quad_rolled(&a.B, column >> 2, 1, w);
        }
        fsi_proxy_fence();
        __syncwarp();
        if (lane == 0) {
            fsi_mbarrier_arrive(m.panel_full(first));
            fsi_mbarrier_arrive(m.panel_full(first + 1));
            if (turn == 0) fsi_mbarrier_arrive(m.begun());
        }
    }
}

/* The first of a thread's samples, within the thread block's; the other is 8 behind it.  Neighbours, which read
 * together, have samples whose places in a tensor map's box differ in just the bit in which they would agree. */
template <class T, int C, int SAMPLES> __device__ __forceinline__ int sample_of(int side)
{
    const int i = threadIdx.x >> 2 & 7;
    const int turned = !FSI_WGMMA_GROUPS_BOXES(sizeof(T)) ? i
                       : C == 1                           ? (i & 1) << 2 | (i & 2) | i >> 2
                       : C == 4                           ? (i & 1) << 1 | (i >> 1 & 1) | (i & 4)
                                                          : i;
    return (SAMPLES == 128 ? 64 * side : 0) + (threadIdx.x >> 5 & 3) * 16 + turned;
}

/* TILES fragments of a thread: with C = 1 tile t is K step t of the panel, otherwise block t of the warpgroup.  Pieces
 * of floats, the first of them the larger, are scaled by up[v], sample v of the thread's two; two-byte elements are as
 * they are. */
template <class T, int TILES> struct unit {
    enum { PASSES = is_float<T>::value ? 2 : 1 };
    uint32_t of[PASSES][TILES][4];
    /* Registers that wgmma reads keep their values until here. */
    __device__ __forceinline__ void keep(int tile) const
    {
#pragma unroll
        for (int i = 0; i < PASSES * 4; i++) asm volatile("" ::"r"(of[i >> 2][tile][i & 3]));
    }
    __device__ __forceinline__ void keep() const
    {
#pragma unroll
        for (int t = 0; t < TILES; t++) keep(t);
    }
};

/* The line of a step in which a thread finds its quad i: quad 4 i + q of the panel (C = 1), or quad 4 q + i. */
template <class T, int C, int SAMPLES> __device__ __forceinline__ int line_of(int i, int side)
{
    typedef shape<T, C, SAMPLES> sh;
    const int q = threadIdx.x & 3;
    return (sh::APART ? side * sh::PANEL_LINES : 0) + (C == 1   ? i >> 1
                                                       : C == 4 ? q >> 1
                                                       : C == 8 ? q
                                                                : 2 * q + (i >> 1));
}
/* Where its quad 0 of floats is, of its first sample, in a line whose mask is 0. */
template <class T, int C, int SAMPLES> __device__ __forceinline__ uint32_t first_place(int group, int side)
{
    const int q = threadIdx.x & 3, line = line_of<T, C, SAMPLES>(0, side);
    const int quad = quad_of<T, C>(C == 1 ? q : C == 4 ? 4 * (q & 1) : 0, line, group, side, 0);
    return place_of<T, C, SAMPLES>(line, sample_of<T, C, SAMPLES>(side), quad) + (C == 16 ? 4 * (q & 2) : 0);
}

/* Where a thread finds the elements of a step, of its two samples. */
template <class T, int C, int SAMPLES> struct source {
    typedef shape<T, C, SAMPLES> sh;
    uint32_t from;  /* the step; of floats first_place in it */
    uint32_t masks; /* of the line that its quads are in; with C = 16 they are in two, a byte each */
    int side;
    __device__ __forceinline__ int mask(int i) const { return (int)(C == 16 ? masks >> 8 * (i >> 1) : masks); }
    /* Quad i of floats, of sample v.  Quads of a line, and those of different masks, differ in bits of their place.
     * With C = 16 which of four quads of a line it is is random.  So 16 lanes read half of it at a time, of four
     * samples, and thereby meet each 16 bytes of the banks twice; those who meet have read the same index of different
     * lines, and begin with different halves: `order` is the mask of what they have read. */
    __device__ __forceinline__ float4 quad(int i, int v) const
    {
        const int quad = C == 4 ? i : C == 8 ? 2 * i : 4 * (i & 1), line = C == 1 || C == 16 ? i >> 1 : 0;
        const uint32_t at = from ^ 16 * quad ^ (C < 8 ? 0 : mask(i) << 2 & (4 * C - 16));
        const uint32_t behind = (line * SAMPLES + 8 * v) * sh::PLACES * 16;
        if (C < 16) return fsi_shared_float4(at + behind);
        const float2 first = fsi_shared_float2(at + behind), second = fsi_shared_float2((at ^ 8) + behind);
        return make_float4(first.x, first.y, second.x, second.y);
    }
    __device__ __forceinline__ int order(int i) const { return mask(i) ^ (C == 16 ? threadIdx.x & 2 : 0); }
};

/* Tiles FIRST ... FIRST + TILES - 1 of a step; with C > 1 all of them. */
template <int FIRST, int C, int SAMPLES, int TILES>
__device__ __forceinline__ void load(const source<float, C, SAMPLES> &s, const float (&up)[2], unit<float, TILES> &to)
{
#pragma unroll
    for (int i = 0; i < TILES && C == 1; i++)
#pragma unroll
        for (int v = 0; v < 2; v++) {
            const float4 y = s.quad(FIRST + i, v);
            cut_pair(y.x, y.y, up[v], to.of[0][i][v], to.of[1][i][v]);
            cut_pair(y.z, y.w, up[v], to.of[0][i][2 + v], to.of[1][i][2 + v]);
        }
#pragma unroll
    for (int h = 0; h < 2 && C > 1; h++) {
        if (h > 0) __syncwarp(); /* reads are not moved before this: there are no registers for all of them */
#pragma unroll
        for (int v = 0; v < 2; v++) {
            float x[2][4]; /* of two quads, neighbouring K positions of four blocks */
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const float4 y = s.quad(2 * h + e, v);
                const int mask = s.order(2 * h + e);
                const float a = mask & 1 ? y.y : y.x, b = mask & 1 ? y.x : y.y;
                const float c = mask & 1 ? y.w : y.z, d = mask & 1 ? y.z : y.w;
                x[e][0] = mask & 2 ? c : a, x[e][1] = mask & 2 ? d : b;
                x[e][2] = mask & 2 ? a : c, x[e][3] = mask & 2 ? b : d;
            }
#pragma unroll
            for (int t = 0; t < TILES; t++)
                cut_pair(x[0][t], x[1][t], up[v], to.of[0][t][2 * h + v], to.of[1][t][2 * h + v]);
        }
    }
}
/* Of two-byte elements a quad is half of a place. */
template <int FIRST, class T, int C, int SAMPLES, int TILES>
__device__ __forceinline__ void load(const source<T, C, SAMPLES> &s, const float (&)[2], unit<T, TILES> &to)
{
    typedef shape<T, C, SAMPLES> sh;
    const int q = threadIdx.x & 3, sample = sample_of<T, C, SAMPLES>(s.side);
#pragma unroll
    for (int v = 0; v < 2; v++) {
        const auto place_at = [=](int i, int place) {
            return s.from + place_of<T, C, SAMPLES>(line_of<T, C, SAMPLES>(i, s.side), sample + 8 * v, place);
        };
#pragma unroll
        for (int i = FIRST; i < FIRST + TILES && C == 1; i++) {
            /* quad 4 i + q of the panel */
            const uint2 y = fsi_shared_uint2(place_at(i, 2 * (i & 1) + (q >> 1)) + 8 * (q & 1));
            to.of[0][i - FIRST][v] = y.x, to.of[0][i - FIRST][2 + v] = y.y;
        }
#pragma unroll
        for (int h = 0; h < 2 && C > 1; h++) {
            /* quads 4 q + 2 h and the next one: a pair of K positions */
            const int mask = s.mask(2 * h);
            uint2 a, b;
            if (C == 4) {
                const float4 y = fsi_shared_float4(place_at(2 * h, 2 * (q & 1) + h));
                a = make_uint2(__float_as_uint(y.x), __float_as_uint(y.y));
                b = make_uint2(__float_as_uint(y.z), __float_as_uint(y.w));
            } else {
                const int place = C == 8 ? 2 * h : 0;
                const uint32_t half = 8 * (s.side ^ (mask >> 2 & 1));
                a = fsi_shared_uint2(place_at(2 * h, place) + half);
                b = fsi_shared_uint2(place_at(2 * h, place + 1) + half);
            }
            const uint32_t a0 = mask & 2 ? a.y : a.x, a2 = mask & 2 ? a.x : a.y;
            const uint32_t b0 = mask & 2 ? b.y : b.x, b2 = mask & 2 ? b.x : b.y;
            const uint32_t e0 = fsi_bytes<0x5410>(a0, b0), e1 = fsi_bytes<0x7632>(a0, b0);
            const uint32_t e2 = fsi_bytes<0x5410>(a2, b2), e3 = fsi_bytes<0x7632>(a2, b2);
            to.of[0][0][2 * h + v] = mask & 1 ? e1 : e0, to.of[0][1][2 * h + v] = mask & 1 ? e0 : e1;
            to.of[0][TILES - 2][2 * h + v] = mask & 1 ? e3 : e2, to.of[0][TILES - 1][2 * h + v] = mask & 1 ? e2 : e3;
        }
    }
}

/* Whether a piece of the warp's samples has become infinite. */
template <class T, int TILES> __device__ __forceinline__ bool overflown(const unit<T, TILES> &) { return false; }
template <int TILES> __device__ __forceinline__ bool overflown(const unit<float, TILES> &x)
{
    __half2 most = __half2();
#pragma unroll
    for (int i = 0; i < 4 * TILES; i++) most = __hmax2(most, __habs2(*(const __half2 *)&x.of[0][i >> 2][i & 3]));
    return any_infinite(most);
}
/* Lowers `up` of the samples whose largest element of these tiles would not be finite.  The compiler must not know that
 * elements are read again before and after: it would keep them in registers. */
template <int FIRST, int TILES, class T, int C, int SAMPLES>
__device__ __forceinline__ void lower_scales(source<T, C, SAMPLES> &s, float (&up)[2])
{
    asm volatile("" : "+r"(s.from));
#pragma unroll
    for (int v = 0; v < 2; v++) {
        float most = 0.0f;
#pragma unroll
        for (int i = FIRST; i < FIRST + TILES; i++) {
            const float4 y = s.quad(i, v);
            most = fmaxf(fmaxf(fmaxf(most, fabsf(y.x)), fmaxf(fabsf(y.y), fabsf(y.z))), fabsf(y.w));
        }
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
        up[v] = lowered(up[v], most);
    }
    asm volatile("" : "+r"(s.from));
}

/* sums = the products of COUNT tiles of a unit from `first` on, of each the smaller pieces first, plus sums if `keep`;
 * queued.  `panel` holds their K positions, of 2 SUMS rows. */
template <int COUNT, class T, int TILES, int SUMS>
__device__ __forceinline__ void multiply(float (&sums)[SUMS], const unit<T, TILES> &x, int first, uint32_t panel,
                                         int keep)
{
    fsi_wgmma_fence();
#pragma unroll
    for (int t = 0; t < COUNT; t++)
#pragma unroll
        for (int p = unit<T, TILES>::PASSES - 1; p >= 0; p--)
            fsi_wgmma<in_halves<T>::value, 2 * SUMS>(sums, x.of[p][first + t], fsi_wgmma_operand(panel + t * 2 * STEP),
                                                     keep || t > 0 || p < unit<T, TILES>::PASSES - 1);
    fsi_wgmma_commit();
}

/* As in wgmma_rows.cu. */
template <int QUEUED = 0, int SUMS> __device__ __forceinline__ void wait_for_sums(float (&sums)[SUMS])
{
    fsi_wgmma_wait<QUEUED>();
#pragma unroll
    for (int i = 0; i < SUMS; i++) asm volatile("" : "+f"(sums[i])::"memory");
}
/* total += sums, as they were before they were scaled. */
template <class T, int SUMS>
__device__ __forceinline__ void promote(float *total, const float (&sums)[SUMS], const float (&up)[2])
{
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        total[i] = is_float<T>::value ? fmaf(sums[i], inverse(up[i >> 1 & 1]), total[i]) : total[i] + sums[i];
}

/* What a warpgroup that multiplies has in hand: a stage of the ring, a panel. */
template <class T, int C, int SAMPLES, int STAGES, int PANELS> struct position {
    typedef shape<T, C, SAMPLES> sh;
    typedef memory<STAGES, PANELS, sh::STEP_BYTES> memory_t;
    const memory_t &m;
    int side, stage, parity;
    uint32_t place, line; /* of quad 0 */
    __device__ __forceinline__ position(const memory_t &m, int group)
        : m(m), side((int)(threadIdx.x - sh::PREPARE) >> 7), stage(0), parity(0)
    {
        place = sizeof(T) == 4 ? first_place<T, C, SAMPLES>(group, side) : 0;
        line = (uint32_t)line_of<T, C, SAMPLES>(0, side);
        asm volatile("" : "+r"(place), "+r"(line)); /* not to be worked out again for every step */
        /* Then the warpgroups have panels of their own, whose addresses wgmma takes from uniform registers. */
        if (sh::STEP_PANELS == 2) side = __shfl_sync(~0u, side, 0);
    }
    __device__ __forceinline__ source<T, C, SAMPLES> wait_for_step() const
    {
        fsi_mbarrier_wait(m.step_full(stage), parity);
        const uint8_t *mask = m.masks + stage * 8 + line;
        const source<T, C, SAMPLES> s = {m.steps + stage * sh::STEP_BYTES + place,
                                         C == 1    ? 0u
                                         : C == 16 ? *(const uint16_t *)mask
                                                   : *mask,
                                         side};
        return s;
    }
    __device__ __forceinline__ void leave_step()
    {
        const int lane = threadIdx.x & 31;
        __syncwarp();
        if (sh::CLUSTER > 1 && lane < sh::CLUSTER) fsi_mbarrier_arrive_in(lane, m.step_empty(stage));
        if (sh::CLUSTER == 1 && lane == 0) fsi_mbarrier_arrive(m.step_empty(stage));
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
    __device__ __forceinline__ int number(int step) const { return sh::STEP_PANELS == 2 ? 2 * step + side : step; }
    __device__ __forceinline__ uint32_t wait_for_panel(int step) const
    {
        const int at = number(step) % PANELS;
        fsi_mbarrier_wait(m.panel_full(at), number(step) / PANELS & 1);
        return m.panels + at * S_TILE_BYTES;
    }
    __device__ __forceinline__ void leave_panel(int step) const
    {
        if ((threadIdx.x & 31) == 0) fsi_mbarrier_arrive(m.panel_empty(number(step) % PANELS));
    }
};

/* A warpgroup that multiplies, C = 1: total[0] = its 64 samples.  Half a step is loaded and cut while the half before
 * it is multiplied; sums are promoted when the next half is ready. */
template <class T, int SAMPLES, int STAGES, int PANELS>
__device__ __forceinline__ void multiply_steps(position<T, 1, SAMPLES, STAGES, PANELS> at, int step_count,
                                               float (&total)[1][32])
{
    /* Sums of two-byte elements, whose products have 11 or 8 bits, are promoted every 256 local rows. */
    enum { PROMOTE = is_float<T>::value ? 1 : 4 };
    float sums[32], up[2] = {FIRST_SCALE, FIRST_SCALE};
    unit<T, 2> x[2] = {};
#pragma unroll
    for (int i = 0; i < 32; i++) total[0][i] = sums[i] = 0.0f;
#pragma unroll 1
    for (int step = 0; step < step_count; step++) {
        source<T, 1, SAMPLES> s = at.wait_for_step();
        for (;;) {
            load<0>(s, up, x[0]);
            if (!overflown(x[0])) break;
            wait_for_sums(sums);
            promote<T>(total[0], sums, up);
#pragma unroll
            for (int i = 0; i < 32; i++) sums[i] = 0.0f;
            lower_scales<0, 2>(s, up);
        }
        const uint32_t panel = at.wait_for_panel(step);
        if (step % PROMOTE == 0) {
            wait_for_sums(sums);
            promote<T>(total[0], sums, up);
        }
        multiply<2>(sums, x[0], 0, panel, step % PROMOTE > 0);
        fsi_wgmma_wait<1>();
        x[1].keep();
        if (step > 0) at.leave_panel(step - 1);
        for (;;) {
            load<2>(s, up, x[1]);
            if (!overflown(x[1])) break;
            wait_for_sums(sums);
            promote<T>(total[0], sums, up);
#pragma unroll
            for (int i = 0; i < 32; i++) sums[i] = 0.0f;
            lower_scales<2, 2>(s, up);
        }
        at.leave_step();
        multiply<2>(sums, x[1], 0, panel + 4 * STEP, 1);
        fsi_wgmma_wait<1>();
        x[0].keep();
    }
    wait_for_sums(sums);
    promote<T>(total[0], sums, up);
}

/* C > 1: total[t] = its 64 samples of block t.  There are no registers to cut while sums are multiplied, but the other
 * warpgroup does; and while 32 rows of a block are promoted, the next 32 are multiplied. */
template <class T, int C, int SAMPLES, int STAGES, int PANELS>
__device__ __forceinline__ void multiply_steps(position<T, C, SAMPLES, STAGES, PANELS> at, int step_count,
                                               float (&total)[4][32])
{
    float up[2] = {FIRST_SCALE, FIRST_SCALE};
#pragma unroll
    for (int i = 0; i < 128; i++) total[i >> 5][i & 31] = 0.0f;
#pragma unroll 1
    for (int step = 0; step < step_count; step++) {
        source<T, C, SAMPLES> s = at.wait_for_step();
        unit<T, 4> x;
        for (;;) {
            load<0>(s, up, x);
            if (!overflown(x)) break;
            lower_scales<0, 4>(s, up);
        }
        at.leave_step();
        const uint32_t panel = at.wait_for_panel(step);
        float sums[2][16];
        const auto multiply_half = [&](int i) {
            multiply<1>(sums[i & 1], x, i >> 1, panel + (i >> 1) * 2 * STEP + (i & 1) * S_TILE_BYTES / 2, 0);
        };
        multiply_half(0);
#pragma unroll
        for (int i = 0; i < 7; i++) {
            multiply_half(i + 1);
            wait_for_sums<1>(sums[i & 1]);
            x.keep(i >> 1);
            promote<T>(total[i >> 1] + 16 * (i & 1), sums[i & 1], up);
        }
        wait_for_sums(sums[1]);
        x.keep(3);
        at.leave_panel(step);
        promote<T>(total[3] + 16, sums[1], up);
    }
}

/* The same sums by plain additions, for data that are not finite: a thread owns a sample of a block. */
template <class T, int C, int SAMPLES>
__device__ __noinline__ void add_serial(const fsi_tile_args &a, const job &j, float *tile, int thread)
{
    enum { ITEMS = shape<T, C, SAMPLES>::ALL_BLOCKS * SAMPLES };
    const fsi_output to = fsi_partial_sums(a, 1, j.z);
    float *mine = tile + thread;
    for (int item = thread; item < ITEMS; item += MULTIPLY) {
        const int64_t sample = j.sample + item % SAMPLES;
        const fsi_slice p = part_of(a, j, item / SAMPLES);
        const fsi_split slices = a.B.strata[p.block_rows > a.B.out.small];
        if (sample >= a.n) continue;
        for (int r = 0; r < HEIGHT; r++) mine[r * MULTIPLY] = 0.0f;
        for (int64_t local_row = 0; local_row < j.rounds * (FSI_GROUP_ROWS / C); local_row++) {
            const int64_t row = fsi_local_row_source(&a.B, p.h, j.first * (FSI_GROUP_ROWS / C) + local_row, a.row0,
                                                     a.rows);
            if (row < 0) continue;
            const float x = fsi_widen(((const T *)a.data)[sample * a.col_stride + row]);
            for (int q = 0, t = 0; q < (int)a.B.words; q++) {
                uint32_t word = fsi_blockperm_word(&a.B, row + a.row0, 1, q, p.block_rows);
                for (int c = fsi_blockperm_count(&a.B, q); c > 0; c--, t++) {
                    const uint32_t code = fsi_blockperm_next(&slices, t, &word);
                    mine[(code >> 1) * MULTIPLY] += code & 1 ? -x : x;
                }
            }
        }
        for (int r = 0; r < p.block_rows; r++) fsi_output_put(to, p.output_row + r, sample, mine[r * MULTIPLY]);
    }
}
#endif

template <class T, int C, int SAMPLES, int STAGES, int PANELS>
__global__ void __launch_bounds__(FSI_WGMMA_GROUPS_THREADS(sizeof(T), C, SAMPLES), 1)
    wgmma_groups(const __grid_constant__ fsi_tile_args a, const __grid_constant__ CUtensorMap map)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    typedef shape<T, C, SAMPLES> sh;
    extern __shared__ __align__(1024) uint8_t shared[];
    const memory<STAGES, PANELS, sh::STEP_BYTES> m(shared);
    const int tid = threadIdx.x;
    const job j = job_of<C, SAMPLES>(a);
    const int step_count = (int)((j.rounds + sh::LINES - 1) / sh::LINES);

    fsi_start_next_kernel();
    /* 1. mbarriers */
    if (tid == 0) {
        if (sh::BOXES) fsi_fetch_map(&map);
        for (int i = 0; i < STAGES; i++) {
            fsi_mbarrier_init(m.step_full(i), sh::BOXES ? 1 : 32 + (C > 1));
            fsi_mbarrier_init(m.step_empty(i), MULTIPLY / 32 * sh::CLUSTER);
        }
        for (int i = 0; i < PANELS; i++) {
            fsi_mbarrier_init(m.panel_full(i), 1);
            fsi_mbarrier_init(m.panel_empty(i), MULTIPLY / 32 / sh::STEP_PANELS);
        }
        fsi_mbarrier_init(m.begun(), 1);
    }
    fsi_proxy_fence();
    if (sh::CLUSTER > 1) fsi_cluster_begin();
    else __syncthreads();

    /* 2. some prepare, two warpgroups multiply */
    if (tid < sh::PREPARE) {
        fsi_fewer_registers<sh::FEWER>();
        if (tid < 32 * MAKERS) make_s_tiles<T, C, SAMPLES>(a, j, m, shared, step_count * sh::STEP_PANELS);
        else if (sh::BOXES) copy_boxes<T, C, SAMPLES>(a, map, j, m, step_count);
        else copy_lines<T, C, SAMPLES>(a, j, m, step_count);
        fsi_barrier_or(1, sh::THREADS, false);
    } else {
        fsi_more_registers<sh::MORE>();
        const int side = (tid - sh::PREPARE) >> 7, thread = tid & 127;
        float total[sh::BLOCKS][32], zero = 0.0f;
        multiply_steps(position<T, C, SAMPLES, STAGES, PANELS>(m, j.group), step_count, total);
#pragma unroll
        for (int i = 0; i < 32 * sh::BLOCKS; i++) zero = fmaf(total[i >> 5][i & 31], 0.0f, zero);
        float *tile = (float *)shared;
        if (fsi_barrier_or(1, sh::THREADS, zero != 0.0f)) {
            add_serial<T, C, SAMPLES>(a, j, tile, tid - sh::PREPARE);
            return;
        }

        /* 3. all finite: sums of different lines are added */
        if (sh::APART) {
            if (side == 1)
#pragma unroll
                for (int i = 0; i < 32 * sh::BLOCKS; i++) tile[i * 128 + thread] = total[i >> 5][i & 31];
            fsi_barrier(2, MULTIPLY);
            if (side == 1) return;
#pragma unroll
            for (int i = 0; i < 32 * sh::BLOCKS; i++) total[i >> 5][i & 31] += tile[i * 128 + thread];
        }

        /* 4. scale once, store once */
        const fsi_output to = fsi_partial_sums(a, 1, j.z);
        const int64_t sample = j.sample + sample_of<T, C, SAMPLES>(side);
        const int block = C < 8 ? 0 : 4 * side;
#pragma unroll
        for (int t = 0; t < sh::BLOCKS; t++) store_samples<T>(a, part_of(a, j, block + t), to, total[t], sample);
    }
#endif
}

}  // namespace

/* choose.c knows how much shared memory an instance takes. */
#define SHARED(T, dtype, c, samples, stages, panels) \
    static_assert(FSI_WGMMA_GROUPS_SHARED(sizeof(T), c, stages, panels) == \
                      panels * S_TILE_BYTES + stages * shape<T, c, samples>::STEP_BYTES + 16 * (stages + panels) + 8 + \
                          8 * stages, \
                  "instances.h disagrees");
FSI_WGMMA_GROUPS(SHARED)
#define KERNEL(T, dtype, c, samples, stages, panels) (const void *)wgmma_groups<T, c, samples, stages, panels>,
extern "C" const void *const fsi_wgmma_groups_kernels[] = {FSI_WGMMA_GROUPS(KERNEL)};
