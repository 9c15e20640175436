/* multiply.cuh - wgmma_groups.cu: consumer warpgroups, which multiply steps of A by S tiles. */
#ifndef FSI_CUDA_BLOCKPERM_WGMMA_GROUPS_MULTIPLY_CUH
#define FSI_CUDA_BLOCKPERM_WGMMA_GROUPS_MULTIPLY_CUH

#include "cuda/blockperm/wgmma_groups/layout.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
namespace {

/* The first of a thread's samples, within the thread block's; the other is 8 behind it.  Neighbours, which read
 * together, have samples whose units in a tensor map's box differ in just the bit in which they would agree. */
template <class T, int C, int SAMPLES> __device__ __forceinline__ int sample_of(int side)
{
    const int i = threadIdx.x >> 2 & 7;
    const int swizzle = !FSI_WGMMA_GROUPS_BOXES(sizeof(T)) ? i
                        : C == 1                           ? (i & 1) << 2 | (i & 2) | i >> 2
                        : C == 4                           ? (i & 1) << 1 | (i >> 1 & 1) | (i & 4)
                                                           : i;
    return (SAMPLES == 128 ? 64 * side : 0) + (threadIdx.x >> 5 & 3) * 16 + swizzle;
}

/* TILES fragments of a thread: with C = 1 tile t is K step t of the S tile, otherwise block t of the warpgroup.  Split
 * terms of floats, the first of them the larger, are scaled by up[v], sample v of the thread's two; two-byte elements
 * are as they are. */
template <class T, int TILES> struct fragments {
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

/* The row group of a step that has a thread's quad i: quad 4 i + q of the S tile (C = 1), or quad 4 q + i. */
template <class T, int C, int SAMPLES> __device__ __forceinline__ int group_of(int i, int side)
{
    typedef shape<T, C, SAMPLES> sh;
    const int q = threadIdx.x & 3;
    return (sh::APART ? side * sh::TILE_GROUPS : 0) + (C == 1   ? i >> 1
                                                       : C == 4 ? q >> 1
                                                       : C == 8 ? q
                                                                : 2 * q + (i >> 1));
}
/* Where its quad 0 of floats is, of its first sample, in a row group whose mask is 0. */
template <class T, int C, int SAMPLES> __device__ __forceinline__ uint32_t first_unit(int half, int side)
{
    const int q = threadIdx.x & 3, group = group_of<T, C, SAMPLES>(0, side);
    const int quad = quad_of<T, C>(C == 1 ? q : C == 4 ? 4 * (q & 1) : 0, group, half, side);
    return unit_address<T, C, SAMPLES>(group, sample_of<T, C, SAMPLES>(side), quad) + (C == 16 ? 4 * (q & 2) : 0);
}

/* Where the elements of a step are, of a thread's two samples. */
template <class T, int C, int SAMPLES> struct source {
    typedef shape<T, C, SAMPLES> sh;
    uint32_t from;  /* the step; of floats first_unit in it */
    uint32_t masks; /* of the runs that its quads are in, a byte each */
    int side;
    __device__ __forceinline__ int mask(int i) const { return (int)(masks >> 8 * i); }
    /* Quad i of floats, of sample v.  Quads of a row group, and those of different masks, differ in bits of their unit.
     * With C = 16 it is a random one of four quads of a row group.  So 16 lanes read half of it at a time, of four
     * samples, and thereby use each 16 bytes of the banks twice; lanes that use the same have read the same index of
     * different row groups, and begin with different halves: `order` is the mask of what they have read. */
    __device__ __forceinline__ float4 quad(int i, int v) const
    {
        const int quad = C == 4 ? i : C == 8 ? 2 * i : 4 * (i & 1), group = C == 1 || C == 16 ? i >> 1 : 0;
        const uint32_t at = from ^ 16 * quad ^ (C < 8 ? 0 : mask(i) << 2 & (4 * C - 16));
        const uint32_t behind = (group * SAMPLES + 8 * v) * sh::UNITS * 16;
        if (C < 16) return fsi_shared_float4(at + behind);
        const float2 first = fsi_shared_float2(at + behind), second = fsi_shared_float2((at ^ 8) + behind);
        return make_float4(first.x, first.y, second.x, second.y);
    }
    __device__ __forceinline__ int order(int i) const { return mask(i) ^ (C == 16 ? threadIdx.x & 2 : 0); }
};

/* Tiles FIRST ... FIRST + TILES - 1 of a step; with C > 1 all of them. */
template <int FIRST, int C, int SAMPLES, int TILES>
__device__ __forceinline__ void load(const source<float, C, SAMPLES> &s, const float (&up)[2],
                                     fragments<float, TILES> &to)
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
/* Of two-byte elements a quad is half of a unit. */
template <int FIRST, class T, int C, int SAMPLES, int TILES>
__device__ __forceinline__ void load(const source<T, C, SAMPLES> &s, const float (&)[2], fragments<T, TILES> &to)
{
    typedef shape<T, C, SAMPLES> sh;
    const int q = threadIdx.x & 3, sample = sample_of<T, C, SAMPLES>(s.side);
#pragma unroll
    for (int v = 0; v < 2; v++) {
        const auto unit_at = [=](int i, int unit) {
            return s.from + unit_address<T, C, SAMPLES>(group_of<T, C, SAMPLES>(i, s.side), sample + 8 * v, unit);
        };
#pragma unroll
        for (int i = FIRST; i < FIRST + TILES && C == 1; i++) {
            /* quad 4 i + q of the S tile */
            const uint2 y = fsi_shared_uint2(unit_at(i, 2 * (i & 1) + (q >> 1)) + 8 * (q & 1));
            to.of[0][i - FIRST][v] = y.x, to.of[0][i - FIRST][2 + v] = y.y;
        }
#pragma unroll
        for (int h = 0; h < 2 && C > 1; h++) {
            /* quads 4 q + 2 h and the next one: a pair of K positions */
            const int of_a = s.mask(2 * h), of_b = s.mask(2 * h + 1);
            uint2 a, b;
            if (C == 4) {
                const float4 y = fsi_shared_float4(unit_at(2 * h, 2 * (q & 1) + h));
                a = make_uint2(__float_as_uint(y.x), __float_as_uint(y.y));
                b = make_uint2(__float_as_uint(y.z), __float_as_uint(y.w));
            } else {
                const int unit = C == 8 ? 2 * h : 0;
                a = fsi_shared_uint2(unit_at(2 * h, unit) + 8 * (s.side ^ (of_a >> 2 & 1)));
                b = fsi_shared_uint2(unit_at(2 * h, unit + 1) + 8 * (s.side ^ (of_b >> 2 & 1)));
            }
            const uint32_t a0 = of_a & 2 ? a.y : a.x, a2 = of_a & 2 ? a.x : a.y;
            const uint32_t b0 = of_b & 2 ? b.y : b.x, b2 = of_b & 2 ? b.x : b.y;
            /* Which half of each is that of the first block; the other halves are the second's. */
            const uint32_t halves = (of_a & 1 ? 0x32 : 0x10) | (of_b & 1 ? 0x7600 : 0x5400);
            to.of[0][0][2 * h + v] = __byte_perm(a0, b0, halves),
                                to.of[0][1][2 * h + v] = __byte_perm(a0, b0, halves ^ 0x2222);
            to.of[0][TILES - 2][2 * h + v] = __byte_perm(a2, b2, halves);
            to.of[0][TILES - 1][2 * h + v] = __byte_perm(a2, b2, halves ^ 0x2222);
        }
    }
}

/* Whether a split term of the warp's samples has become infinite. */
template <class T, int TILES> __device__ __forceinline__ bool overflown(const fragments<T, TILES> &) { return false; }
template <int TILES> __device__ __forceinline__ bool overflown(const fragments<float, TILES> &x)
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

/* sums = the products of COUNT fragments from `first` on, of each the smaller split terms first, plus sums if `keep`;
 * queued.  `s_tile` holds their K positions, of 2 SUMS rows. */
template <int COUNT, class T, int TILES, int SUMS>
__device__ __forceinline__ void multiply(float (&sums)[SUMS], const fragments<T, TILES> &x, int first, uint32_t s_tile,
                                         int keep)
{
    fsi_wgmma_fence();
#pragma unroll
    for (int t = 0; t < COUNT; t++)
#pragma unroll
        for (int p = fragments<T, TILES>::PASSES - 1; p >= 0; p--)
            fsi_wgmma<in_halves<T>::value, 2 * SUMS>(sums, x.of[p][first + t], fsi_wgmma_operand(s_tile + t * 2 * STEP),
                                                     keep || t > 0 || p < fragments<T, TILES>::PASSES - 1);
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

/* Where a consumer warpgroup is: a stage of the ring, an S tile. */
template <class T, int C, int SAMPLES, int STAGES, int S_TILES> struct position {
    typedef shape<T, C, SAMPLES> sh;
    typedef memory<STAGES, S_TILES, sh::STEP_BYTES> memory_t;
    const memory_t &m;
    int side, stage, parity;
    uint32_t unit, first_mask; /* of quad 0 */
    __device__ __forceinline__ position(const memory_t &m, int half)
        : m(m), side((int)(threadIdx.x - sh::PRODUCER_THREADS) >> 7), stage(0), parity(0)
    {
        unit = sizeof(T) == 4 ? first_unit<T, C, SAMPLES>(half, side) : 0;
        first_mask = (sh::APART ? side * sh::TILE_GROUPS * (FSI_GROUP_ROWS / C) : 0) + 4 * (threadIdx.x & 3);
        asm volatile("" : "+r"(unit), "+r"(first_mask)); /* not to be recomputed for every step */
        /* Then the warpgroups have S tiles of their own, whose addresses wgmma takes from uniform registers. */
        if (sh::STEP_TILES == 2) side = __shfl_sync(~0u, side, 0);
    }
    __device__ __forceinline__ source<T, C, SAMPLES> wait_for_step() const
    {
        fsi_mbarrier_wait(m.step_full(stage), parity);
        const uint8_t *masks = m.masks + stage * MASK_BYTES + first_mask;
        const source<T, C, SAMPLES> s = {m.steps + stage * sh::STEP_BYTES + unit,
                                         C == 1 ? 0u : *(const uint32_t *)masks, side};
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
    __device__ __forceinline__ int number(int step) const { return sh::STEP_TILES == 2 ? 2 * step + side : step; }
    __device__ __forceinline__ uint32_t wait_for_tile(int step) const
    {
        const int at = number(step) % S_TILES;
        fsi_mbarrier_wait(m.tile_full(at), number(step) / S_TILES & 1);
        return m.tiles + at * S_TILE_BYTES;
    }
    __device__ __forceinline__ void leave_tile(int step) const
    {
        if ((threadIdx.x & 31) == 0) fsi_mbarrier_arrive(m.tile_empty(number(step) % S_TILES));
    }
};

/* Half a step, tiles FIRST and FIRST + 1; where a split term would become infinite, sums so far are promoted and scales
 * lowered. */
template <int FIRST, class T, int SAMPLES>
__device__ __forceinline__ void load_half(source<T, 1, SAMPLES> &s, float (&up)[2], fragments<T, 2> &x,
                                          float (&sums)[32], float (&total)[32])
{
    for (;;) {
        load<FIRST>(s, up, x);
        if (!overflown(x)) break;
        wait_for_sums(sums);
        promote<T>(total, sums, up);
#pragma unroll
        for (int i = 0; i < 32; i++) sums[i] = 0.0f;
        lower_scales<FIRST, 2>(s, up);
    }
}
/* A consumer warpgroup, C = 1: total[0] = its 64 samples.  Half a step is loaded and cut while the half before
 * it is multiplied; sums are promoted when the next half is ready. */
template <class T, int SAMPLES, int STAGES, int S_TILES>
__device__ __forceinline__ void multiply_steps(position<T, 1, SAMPLES, STAGES, S_TILES> at, int step_count,
                                               float (&total)[1][32])
{
    /* Sums of two-byte elements, whose products have 11 or 8 bits, are promoted every 256 local rows. */
    enum { PROMOTE = is_float<T>::value ? 1 : 4 };
    float sums[32], up[2] = {FIRST_SCALE, FIRST_SCALE};
    fragments<T, 2> x[2] = {};
#pragma unroll
    for (int i = 0; i < 32; i++) total[0][i] = sums[i] = 0.0f;
#pragma unroll 1
    for (int step = 0; step < step_count; step++) {
        source<T, 1, SAMPLES> s = at.wait_for_step();
        load_half<0>(s, up, x[0], sums, total[0]);
        const uint32_t s_tile = at.wait_for_tile(step);
        if (step % PROMOTE == 0) {
            wait_for_sums(sums);
            promote<T>(total[0], sums, up);
        }
        multiply<2>(sums, x[0], 0, s_tile, step % PROMOTE > 0);
        fsi_wgmma_wait<1>();
        x[1].keep();
        if (step > 0) at.leave_tile(step - 1);
        load_half<2>(s, up, x[1], sums, total[0]);
        at.leave_step();
        multiply<2>(sums, x[1], 0, s_tile + 4 * STEP, 1);
        fsi_wgmma_wait<1>();
        x[0].keep();
    }
    wait_for_sums(sums);
    promote<T>(total[0], sums, up);
}

/* C > 1: total[t] = its 64 samples of block t.  There are no registers to cut while sums are multiplied, but the other
 * warpgroup does; and while 32 rows of a block are promoted, the next 32 are multiplied. */
template <class T, int C, int SAMPLES, int STAGES, int S_TILES>
__device__ __forceinline__ void multiply_steps(position<T, C, SAMPLES, STAGES, S_TILES> at, int step_count,
                                               float (&total)[4][32])
{
    float up[2] = {FIRST_SCALE, FIRST_SCALE};
#pragma unroll
    for (int i = 0; i < 128; i++) total[i >> 5][i & 31] = 0.0f;
#pragma unroll 1
    for (int step = 0; step < step_count; step++) {
        source<T, C, SAMPLES> s = at.wait_for_step();
        fragments<T, 4> x;
        for (;;) {
            load<0>(s, up, x);
            if (!overflown(x)) break;
            lower_scales<0, 4>(s, up);
        }
        at.leave_step();
        const uint32_t s_tile = at.wait_for_tile(step);
        float sums[2][16];
        const auto multiply_half = [&](int i) {
            multiply<1>(sums[i & 1], x, i >> 1, s_tile + (i >> 1) * 2 * STEP + (i & 1) * S_TILE_BYTES / 2, 0);
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
        at.leave_tile(step);
        promote<T>(total[3] + 16, sums[1], up);
    }
}

}  // namespace
#endif

#endif
