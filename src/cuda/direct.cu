/* direct.cu - BlockPerm-SJLT on the tensor cores, elements of A straight from global memory: the rows that a list names
 * (a mask and a sketch in one pass), and matrices of few columns.
 *
 * Formulation.  As in tensor.cuh, but nothing is staged.  A listed row of a batch of gradients is one element of every
 * sample, 32 bytes are fetched for four of them whoever reads it; and a row of few columns is shorter than what copies
 * are good for.  So the elements of a fragment go into the registers of the thread that multiplies them.  A thread has
 * the 16 elements of 32 slots in flight, 16 warps of a processor do, while S is made.  Warps that share columns take 32
 * slots in turn; their sums are added in order.
 * Accuracy, Inf and NaN: as in tensor_rows.cu.  An element of a row that is not there is taken for NaN.
 *
 * grid     kappa x M x tiles of columns x parts, in this order, in x
 * threads  8 warps: GROUPS groups of 16 columns, 8 / GROUPS warps each
 * shared   two chunks of S (256 slots, four panels) and where in A their rows are; then the sums of all but the first
 *          warp of a group, or the tile of sums by plain additions
 * needs    blocks of at most 64 rows; any strides, or (PAIRS) columns that are contiguous two by two */
#include "instances.h"
#include "tensor.cuh"

namespace {

enum { THREADS = FS_DIRECT_THREADS, WARPS = THREADS / 32, CHUNK = THREADS, PANELS = CHUNK / 64,
       CHUNK_BYTES = PANELS * PANEL_BYTES, UNIT = 32, STEPS = UNIT / STEP, UNITS = CHUNK / UNIT };
static_assert(FS_DIRECT_SHARED == 2 * (CHUNK_BYTES + 8 * CHUNK), "instances.h disagrees");

/* The 32 slots of a unit: rows q + 4 i of each step of 16, two columns; and their fragments. */
template <class T, int PAIRS> struct elements {  /* of two bytes, taken as they are */
    enum { PASSES = 1 };
    uint16_t x[STEPS][4][2];
    __device__ __forceinline__ void take(int step, int i, const T *first, const T *second)
    {
        x[step][i][0] = *(const uint16_t *)first;
        x[step][i][1] = *(const uint16_t *)second;
    }
    __device__ __forceinline__ void cut(int step, fragment<1> (&of)[PASSES])
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
            of[0].tile[0][i] = x[step][i & 2][i & 1] | (uint32_t)x[step][(i & 2) + 1][i & 1] << 16;
    }
};
template <class T> struct elements<T, 1> {
    enum { PASSES = 1 };
    uint32_t x[STEPS][4][1];
    __device__ __forceinline__ void take(int step, int i, const T *first, const T *)
    {
        x[step][i][0] = *(const uint32_t *)first;
    }
    __device__ __forceinline__ void cut(int step, fragment<1> (&of)[PASSES]) { of[0] = pairs<1>(x[step]); }
};
/* Floats, in three pieces. */
struct floats {
    enum { PASSES = 3 };
    float x[STEPS][4][2];
    __device__ __forceinline__ void cut(int step, fragment<1> (&of)[PASSES])
    {
        pieces<float, PASSES, 1, 0> p;
        p.cut(x[step]);
#pragma unroll
        for (int i = 0; i < PASSES; i++) of[i] = p.of[i];
    }
};
template <> struct elements<float, 0> : floats {
    __device__ __forceinline__ void take(int step, int i, const float *first, const float *second)
    {
        x[step][i][0] = *first;
        x[step][i][1] = *second;
    }
};
template <> struct elements<float, 1> : floats {
    __device__ __forceinline__ void take(int step, int i, const float *first, const float *)
    {
        const float2 two = *(const float2 *)first;
        x[step][i][0] = two.x;
        x[step][i][1] = two.y;
    }
};

/* total += the products of a unit, which begins at step `first` of its panel: the small pieces of all steps first, then
 * the large ones. */
template <class T, int PAIRS>
__device__ __forceinline__ void multiply_unit(elements<T, PAIRS> &e, uint32_t panel, int first, float (&total)[32])
{
    enum { HALF = is_half<T>::value, PASSES = elements<T, PAIRS>::PASSES };
    float sums[32];
    fragment<1> top[STEPS];
#pragma unroll
    for (int i = 0; i < 32; i++) sums[i] = 0.0f;
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        fragment<1> of[PASSES];
        e.cut(step, of);
#pragma unroll
        for (int i = PASSES - 1; i > 0; i--) multiply<HALF, 1, 1>(sums, of[i], panel, first + step);
        top[step] = of[0];
    }
#pragma unroll
    for (int step = 0; step < STEPS; step++) multiply<HALF, 1, 1>(sums, top[step], panel, first + step);
#pragma unroll
    for (int i = 0; i < 32; i++) total[i] += sums[i];
}

template <class T, int GROUPS, int PAIRS>
__global__ void __launch_bounds__(THREADS, 2) direct(const __grid_constant__ fs_tile_args a)
{
#if __CUDA_ARCH__ >= 800
    constexpr int ONE = is_half<T>::value ? F16_ONE : BF16_ONE, COLUMNS = 16 * GROUPS, SHARES = WARPS / GROUPS,
                  APART = PAIRS ? 1 : 8;  /* the two columns of a thread */
    extern __shared__ __align__(1024) uint8_t shared[];
    const int tid = threadIdx.x, warp = tid >> 5, group = warp % GROUPS, share = warp / GROUPS;
    const int lane = tid & 31, q = lane & 3, first = group * 16 + (lane >> 2) * (PAIRS ? 2 : 1);
    const fs_part part = fs_part_of(a, 1, COLUMNS);
    fs_part p = part;
    const int lead = align_slots(p);
    const bool fours = made_by_fours(a, p);
    /* Columns behind the last are the last again and not stored; slots that are empty have row 0 and no nonzeros. */
    const T *column[2];
#pragma unroll
    for (int v = 0; v < 2; v++)
        column[v] = (const T *)a.data + min(p.column + first + APART * v, a.n - (PAIRS ? 2 - v : 1)) * a.col_stride;
    bool missing = false;  /* whether the list names a row that is not there */
    float total[32];
#pragma unroll
    for (int i = 0; i < 32; i++) total[i] = 0.0f;

    fs_start_next_kernel();
#pragma unroll 1
    for (int64_t c = 0; c < p.count; c += CHUNK) {
        const int buffer = (int)(c / CHUNK & 1);
        uint8_t *panels = shared + buffer * CHUNK_BYTES;
        int64_t *offsets = (int64_t *)(shared + 2 * CHUNK_BYTES) + buffer * CHUNK;
        const auto place = [&](int slot, int64_t row) {
            const int64_t from = row < 0 ? 0 : fs_source_row(a, row);
            missing |= from < 0;
            offsets[slot] = from < 0 ? 0 : from * a.row_stride;
        };
        /* 1. where the rows are: four slots of some threads, or one of each */
        int64_t row = -1;
        uint32_t word[4];
        int valid = 0;
        if (!fours) {
            if (c + tid >= lead && c + tid < p.count)
                row = fs_slot_row(&a.B, p.h, p.first + c + tid, a.row0, a.rows);
            place(tid, row);
        } else if (tid < CHUNK / 4) {
            int64_t at[4];
            valid = number_slots(a, p, c + 4 * tid, lead, at, word);
#pragma unroll
            for (int i = 0; i < 4; i++) place(4 * tid + i, valid >> i & 1 ? at[i] - a.row0 : -1);
        }
#pragma unroll
        for (int i = 0; i < CHUNK_BYTES / 16; i += THREADS) ((uint4 *)panels)[i + tid] = make_uint4(0, 0, 0, 0);
        __syncthreads();
        elements<T, PAIRS> e;
        const auto load = [&](int unit) {
#pragma unroll
            for (int i = 0; i < UNIT / 4; i++) {
                const int64_t offset = offsets[UNIT * unit + 4 * i + q];
                e.take(i >> 2, i & 3, column[0] + offset, column[1] + offset);
            }
        };
        /* 2. the first elements are on their way while S is made */
        load(share);
        if (!fours) put_nonzeros<ONE>(a, p, panels + (tid >> 6) * PANEL_BYTES, tid, row);
        else if (tid < CHUNK / 4) put_slots<ONE>(a, p, panels + (tid >> 4) * PANEL_BYTES, 4 * tid, valid, word);
        __syncthreads();
        /* 3. products */
#pragma unroll 1
        for (int unit = share;; load(unit)) {
            multiply_unit<T, PAIRS>(e, fs_shared_address(panels + (unit >> 1) * PANEL_BYTES), (unit & 1) * STEPS, total);
            unit += SHARES;
            if (unit >= UNITS || c + UNIT * unit >= p.count) break;
        }
    }

    /* 4. all finite and there: sums of a group's warps are added, scaled once, stored once */
    float zero = 0.0f, *tile = (float *)shared;
    const fs_output to = fs_plane(a, p.l, p.z);
#pragma unroll
    for (int i = 0; i < 32; i++) zero = fmaf(total[i], 0.0f, zero);
    if (__syncthreads_or(missing || zero != 0.0f)) {
        const int64_t mine = p.column + tid;
        if (tid >= COLUMNS || mine >= a.n) return;
        make_again<T>(a, part, mine, tile + tid, COLUMNS);
        for (int r = 0; r < p.block_rows; r++) fs_output_put(to, p.output_row + r, mine, tile[r * COLUMNS + tid]);
        return;
    }
    if (share > 0)
#pragma unroll
        for (int i = 0; i < 32; i++) tile[((share - 1) * 32 + i) * (32 * GROUPS) + group * 32 + lane] = total[i];
    if (SHARES > 1) __syncthreads();
    if (share > 0) return;
#pragma unroll
    for (int other = 0; other < SHARES - 1; other++)
#pragma unroll
        for (int i = 0; i < 32; i++) total[i] += tile[(other * 32 + i) * (32 * GROUPS) + group * 32 + lane];
    store_samples<T, APART>(a, p, to, total, p.column + first);
#endif
}

}  // namespace

#define KERNEL(T, dtype, groups, pairs) (const void *)direct<T, groups, pairs>,
extern "C" const void *const fs_direct_kernels[] = {FS_DIRECT(KERNEL)};
