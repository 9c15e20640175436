/* copy.cuh - rotate_skinny_simt.cu: rows of A to shared memory.  Include it after layout.cuh. */
#ifndef FSI_CUDA_BLOCKPERM_ROTATE_SKINNY_SIMT_COPY_CUH
#define FSI_CUDA_BLOCKPERM_ROTATE_SKINNY_SIMT_COPY_CUH

#include "cuda/blockperm/rotate_skinny_simt/layout.cuh"

namespace {

[[maybe_unused]] __device__ __forceinline__ void put_raw(uint32_t to, uint16_t x) { fsi_shared_put16(to, x); }
[[maybe_unused]] __device__ __forceinline__ void put_raw(uint32_t to, uint32_t x)
{
    fsi_shared_put(to, __uint_as_float(x));
}
[[maybe_unused]] __device__ __forceinline__ void put_raw(uint32_t to, uint2 x) { fsi_shared_put2(to, x.x, x.y); }
[[maybe_unused]] __device__ __forceinline__ void put_raw(uint32_t to, uint4 x)
{
    fsi_shared_put2(to, x.x, x.y), fsi_shared_put2(to + 8, x.z, x.w);
}

/* The units that a thread copies: of a slab, in every step-th round. */
struct copy_share {
    uint64_t from;       /* of column 0 of S, those counted from the first of the slice's first round */
    uint32_t low, there; /* columns low ... low + there - 1 of these are in A */
    int h, at;           /* the slab's place in a window */
    uint16_t start, order, bytes;
};
template <class K>
__device__ __forceinline__ copy_share copy_share_of(const fsi_tile_args &a, const layout &l, const work &w)
{
    const bool shuffled = is_shuffled(a);
    const int chunk = (int)threadIdx.x % l.chunks, row = (int)threadIdx.x / l.chunks;
    const int b = shuffled ? row % l.group : row / l.step;
    const bool copies = b < w.blocks && row < l.group * l.step;
    copy_share k;
    k.start = (uint16_t)(!copies ? 0xFFFF : shuffled ? row / l.group : row % l.step);
    k.h = copies ? w.h0 + b : w.h0;
    const int slab = (k.h - w.h0) * l.chunks + chunk;
    k.at = slab * K::SLAB;
    k.order = (uint16_t)order_of<K>(l, slab);
    k.bytes = (uint16_t)min((int)K::RAW, ((int)a.n - chunk * K::VECTOR) * (int)sizeof(typename K::T));
    int64_t low = a.row0, high = a.row0 + a.rows, first = first_local_row<K>(a, k.h, w.z);
    if (shuffled) {
        first *= a.B.M;
    } else {
        const int64_t begin = fsi_split_start(&a.B.in, k.h), end = begin + fsi_split_size(&a.B.in, k.h);
        low = low > begin ? low : begin, high = high < end ? high : end;
        first += begin;
    }
    k.from = (uint64_t)a.data + (uint64_t)((first - a.row0) * l.row_stride + chunk * K::RAW);
    k.low = (uint32_t)clamped(low - first), k.there = (uint32_t)clamped(max(high, low) - first) - k.low;
    return k;
}

/* A copy of BYTES as a thread holds it, to a slab. */
template <class K, int BYTES> __device__ __forceinline__ void put_piece(uint32_t to, int i, typename raw<BYTES>::type x)
{
    if constexpr (K::WIDENS) {
        const typename K::T *all = (const typename K::T *)&x;
#pragma unroll
        for (int v = 0; v < BYTES / 2; v++) fsi_shared_put(to + (i * (BYTES / 2) + v) * 4, fsi_widen(all[v]));
    } else {
        put_raw(to + i * BYTES, x);
    }
}

/* Where a thread is in a stage: its next column before the places of a round, that round, and where the unit goes. */
struct copy_state {
    uint32_t column, round, to[2];
};
/* COUNT units by copies of BYTES, in rounds a stride apart.  INSIDE: their rows are known to be in A. */
template <class K, int BYTES, int COUNT, bool INSIDE>
__device__ __forceinline__ void copy_some(const fsi_blockperm &B, const layout &l, bool shuffled, const copy_share &k,
                                          const copy_state &by, copy_state &at)
{
    enum { COPIES = K::RAW / BYTES, HELD = !ASYNC || BYTES < 4 || K::WIDENS };
    [[maybe_unused]] typename raw<BYTES>::type x[COUNT][COPIES] = {};
    uint32_t column[COUNT];
#pragma unroll
    for (int u = 0; u < COUNT; u++) {
        column[u] = at.column + u * by.column;
        if (shuffled) {
            const uint2 its = fsi_shared_uint2(at.round + u * by.round);
            const uint32_t h = (uint32_t)k.h - its.x, place = min(h, h + (uint32_t)B.M);
            column[u] += fsi_blockperm_turned(&B, place, its.y);
        }
    }
#pragma unroll
    for (int u = 0; u < COUNT; u++) {
        const char *from = (const char *)(k.from + (uint64_t)l.row_stride * column[u]);
        const bool there = INSIDE || column[u] - k.low < k.there;
#pragma unroll
        for (int i = 0; i < COPIES; i++) {
            if (i > 0 && i * BYTES >= k.bytes) continue;
            if constexpr (HELD) {
                if (there) x[u][i] = __ldg((const typename raw<BYTES>::type *)from + i);
            } else {
#pragma unroll
                for (int c = 0; c < K::ROWS; c++) {
                    const uint32_t to = at.to[c] + u * by.to[0] + i * BYTES;
                    if constexpr (INSIDE) fsi_copy_there<BYTES>(to, from + i * BYTES);
                    else if constexpr (BYTES == 16) fsi_copy16_part(to, from, there ? 16 : 0);
                    else fsi_copy_small<BYTES>(to, from + i * BYTES, there);
                }
            }
        }
    }
#pragma unroll
    for (int u = 0; u < COUNT; u++)
#pragma unroll
        for (int c = 0; c < K::ROWS; c++)
#pragma unroll
            for (int i = 0; i < COPIES; i++)
                if constexpr (HELD) put_piece<K, BYTES>(at.to[c] + u * by.to[0], i, x[u][i]);
    at.column += COUNT * by.column, at.round += COUNT * by.round;
#pragma unroll
    for (int c = 0; c < K::ROWS; c++) at.to[c] += COUNT * by.to[0];
}
/* A thread's units: for each of its local rows v of a window, the same in successive windows. */
template <class K, int BYTES, bool INSIDE>
__device__ __forceinline__ void copy_units(const fsi_blockperm &B, const layout &l, bool shuffled, uint32_t rounds,
                                           const copy_share &k, uint32_t first, uint32_t stage)
{
    /* so many at once: two, or where they are waited for, more, the fewer of them are one unit */
    constexpr int COUNT = ASYNC && BYTES >= 4 && !K::WIDENS ? INSIDE ? 2 : 1 : K::RAW / BYTES >= 4 ? 1 : 4;
    const uint32_t count = l.stage * K::W, step = l.step, stride = step > K::W ? step : (uint32_t)K::W;
    const uint32_t columns = shuffled ? (uint32_t)B.M : 1;
    copy_state by;
    by.column = stride * columns, by.round = stride * (uint32_t)sizeof(fsi_round);
    by.to[0] = by.to[1] = (stride >> K::WINDOW_BITS) * l.window_bytes;
#pragma unroll 1
    for (uint32_t start = k.start; start < min(stride, count); start += step) {
        uint32_t r = start;
        copy_state at;
        at.column = (first + r) * columns, at.round = rounds + r * (uint32_t)sizeof(fsi_round);
#pragma unroll
        for (int c = 0; c < 2; c++)
            at.to[c] = stage + (r >> K::WINDOW_BITS) * l.window_bytes + (place_of<K>(r & (K::W - 1), c) ^ k.order);
        if constexpr (COUNT > 1)
#pragma unroll 1
            for (; r + (COUNT - 1) * stride < count; r += COUNT * stride)
                copy_some<K, BYTES, COUNT, INSIDE>(B, l, shuffled, k, by, at);
#pragma unroll 1
        for (; r < count; r += stride) copy_some<K, BYTES, 1, INSIDE>(B, l, shuffled, k, by, at);
    }
}
template <class K, int BYTES> __device__ __forceinline__ void copy_any(const fsi_blockperm &B, const layout &l,
                                                                       uint32_t shared, const copy_share &k,
                                                                       uint32_t first, uint32_t stage)
{
    const bool shuffled = B.shuffle == FSI_DEF_ROWS;
    const uint32_t columns = shuffled ? (uint32_t)B.M : 1, rounds = l.stage * K::W, kept = SPANS * l.span * K::W - 1;
    const uint32_t its = shared + l.rounds + (first & kept) * (uint32_t)sizeof(fsi_round);
    const bool inside = first * columns >= k.low && (first + rounds) * columns <= k.low + k.there;
    if (!inside) copy_units<K, BYTES, false>(B, l, shuffled, its, k, first, stage);
    else if (shuffled) copy_units<K, BYTES, true>(B, l, true, its, k, first, stage);
    else copy_units<K, BYTES, true>(B, l, false, its, k, first, stage);
}
/* The rows of stage number c, zeros where there are none; nothing behind the last stage. */
template <class K> __device__ __forceinline__ void copy_stage(const fsi_blockperm &B, const layout &l, const work &w,
                                                              uint32_t shared, const copy_share &mine, int c)
{
    const copy_share k = mine;
    constexpr int SIZE = (int)sizeof(typename K::T), UNIT = K::RAW;
    const uint32_t stage = shared + c % STAGES * l.stage_bytes + k.at, first = c * l.stage * K::W;
    if (c * l.stage < w.windows) {
        if constexpr (SIZE == 2)
            if (l.bytes == 2) copy_any<K, 2>(B, l, shared, k, first, stage);
        if constexpr (SIZE <= 4 && UNIT >= 4)
            if (l.bytes == 4) copy_any<K, 4>(B, l, shared, k, first, stage);
        if constexpr (UNIT >= 8)
            if (l.bytes == 8) copy_any<K, 8>(B, l, shared, k, first, stage);
        if constexpr (UNIT >= 16)
            if (l.bytes == 16) copy_any<K, 16>(B, l, shared, k, first, stage);
    }
    fsi_copy_commit();
}

/* quads ----------------------------------------------------------------------------------------------------------- */

/* Where A has VECTOR columns, rows side by side, and a thread block has all blocks, a thread copies four neighbouring
 * rows of a round at once to a place of its own, and from there to their slabs a stage later; they are the same four
 * of every stage.  In its copy_share, h is the place of the first, `at` that of its local row in the slab of block 0,
 * `order` what the second copy's place differs by. */
template <class K>
__device__ __forceinline__ copy_share quad_share_of(const fsi_tile_args &a, const layout &l, const work &w)
{
    const uint32_t row = 4 * threadIdx.x, M = (uint32_t)a.B.M, r = row / M, v = r & (K::W - 1);
    const int64_t first = first_local_row<K>(a, 0, w.z) * a.B.M;
    copy_share k;
    k.start = (uint16_t)(r < (uint32_t)l.stage * K::W ? r : 0xFFFF);
    k.h = (int)(row % M);
    k.at = (int)((r >> K::WINDOW_BITS) * l.window_bytes + place_of<K>(v, 0));
    k.order = (uint16_t)(place_of<K>(v, 0) ^ place_of<K>(v, 1));
    k.bytes = 0;
    k.from = (uint64_t)a.data + (uint64_t)(first - a.row0 + row) * K::RAW;
    k.low = (uint32_t)clamped(a.row0 - first), k.there = (uint32_t)clamped(a.row0 + a.rows - first) - k.low;
    return k;
}
template <class K> __device__ __forceinline__ bool has_quad(const layout &l, const work &w, const copy_share &k, int c)
{
    return k.start != 0xFFFF && c >= 0 && c * l.stage < w.windows;
}
/* The four rows of stage number c to the thread's own place; zeros where there are none. */
template <class K> __device__ __forceinline__ void load_quad(const fsi_blockperm &B, const layout &l, const work &w,
                                                             uint32_t shared, const copy_share &mine, int c)
{
    typedef typename raw<K::RAW>::type one;
    const copy_share k = mine;
    if (!has_quad<K>(l, w, k, c)) return;
    const uint32_t first = (uint32_t)(c * l.stage * K::W) * (uint32_t)B.M, column = first + 4 * threadIdx.x - k.low;
    const uint32_t to = shared + l.quads + threadIdx.x * K::QUAD;
    const one *from = (const one *)k.from + first;
    if (column < k.there && column + 3 < k.there) {
        if constexpr (ASYNC) fsi_copy_there<K::QUAD>(to, from);
        else put_raw(to, __ldg((const typename raw<K::QUAD>::type *)from));
    } else {
#pragma unroll 1
        for (uint32_t i = 0; i < 4; i++) put_raw(to + i * K::RAW, column + i < k.there ? __ldg(from + i) : (one)0);
    }
}
/* The same to their slabs; they have arrived. */
template <class K> __device__ __forceinline__ void put_quad(const fsi_blockperm &B, const layout &l, const work &w,
                                                            uint32_t shared, const copy_share &mine, int c)
{
    const copy_share k = mine;
    if (!has_quad<K>(l, w, k, c)) return;
    const uint32_t number = (uint32_t)(c * l.stage * K::W + k.start) & (SPANS * l.span * K::W - 1);
    const uint2 round = fsi_shared_uint2(shared + l.rounds + number * (uint32_t)sizeof(fsi_round));
    uint32_t words[K::QUAD / 4];
    float each[4 * K::VECTOR];
    fsi_shared_words<K::QUAD>(words, shared + l.quads + threadIdx.x * K::QUAD);
    widen<typename K::T, 4 * K::VECTOR>(words, each);
    const uint32_t h = fsi_blockperm_turned(&B, (uint32_t)k.h, round.y) + round.x;
    const uint32_t stage = shared + c % STAGES * l.stage_bytes + k.at;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t to = stage + min(h + i, h + i - (uint32_t)B.M) * K::SLAB;
        if constexpr (K::VECTOR == 1) {
            fsi_shared_put(to, each[i]), fsi_shared_put(to ^ k.order, each[i]);
        } else {
            const uint2 both = {__float_as_uint(each[2 * i]), __float_as_uint(each[2 * i + 1])};
            put_raw(to, both), put_raw(to ^ k.order, both);
        }
    }
}

}  // namespace

#endif
