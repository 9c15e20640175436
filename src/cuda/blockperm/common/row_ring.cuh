/* row_ring.cuh - rows of A in shared memory: a ring of stages that producer warps keep filled through tensor maps where
 * one can describe A, otherwise by chunks of 16 bytes (wgmma_rows.cu, rotate_rows_simt.cu, gather_rows_simt.cu).
 *
 * A tensor map brings groups of 128 bytes whose 16-byte chunks are swizzled: chunk c of a group at byte g is at chunk c
 * ^ (g / 128 % 8). */
#ifndef FSI_CUDA_BLOCKPERM_COMMON_ROW_RING_CUH
#define FSI_CUDA_BLOCKPERM_COMMON_ROW_RING_CUH

#include "cuda/runtime/tensor_maps.cuh"
#include "cuda/runtime/ptx.cuh"
#include "cuda/blockperm/common/tile.cuh"

namespace {

enum { COPIERS = 4 };

/* STAGES stages of STAGE rows, WIDTH columns of each; rows ROW_BYTES apart; filled by WARPS producer warps.  BOX of
 * them, at most STAGE / WARPS, are one copy where they follow each other in both memories.  Where rows are copied by
 * chunks, the shifts of every SHIFT_STEP-th row of a stage are neighbours. */
template <class T, int WIDTH, int STAGE, int ROW_BYTES, int STAGES, int WARPS = COPIERS, int SHIFT_STEP = 4>
struct row_ring {
    enum {
        GROUP = FSI_MAP_GROUP / (int)sizeof(T), /* columns */
        ROWS = STAGE / WARPS,                   /* of a stage, for one producer warp */
        STAGE_BYTES = STAGE * ROW_BYTES
    };
    static __device__ __forceinline__ int shift_place(int row)
    {
        return row % SHIFT_STEP * (STAGE / SHIFT_STEP) + row / SHIFT_STEP;
    }
    uint32_t stages, barriers; /* in shared memory: the stages; their mbarriers, those of full ones first */
    __device__ __forceinline__ uint32_t full(int i) const { return barriers + 8 * i; }
    __device__ __forceinline__ uint32_t empty(int i) const { return barriers + 8 * (STAGES + i); }
};

/* The columns of a thread block: WIDTH from p.column on; those before the ones returned belong to another tile.  Where
 * the last columns are not whole groups, the last tile is moved left until they are the last of it. */
template <class T, int WIDTH> __device__ __forceinline__ int64_t place_columns(const fsi_tile_args &a, fsi_slice &p)
{
    const int64_t owned = p.column;
    if (a.n % (FSI_MAP_GROUP / (int)sizeof(T)) != 0 && owned + WIDTH > a.n) p.column = a.n - WIDTH;
    return owned;
}

/* The next stage, and the parity of its mbarrier's phase. */
struct ring_place {
    int stage, parity;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* A producer warp copies ROWS rows of every stage.  Each lane computes one row, of the next AHEAD stages; then one
 * lane copies row after row, or all of them at once where they are `together`.  (Operands come from
 * __shfl_sync so that the compiler knows them to be warp-uniform; otherwise it makes a loop over lanes.)
 * An empty local row copies row -1, which is zero, as are columns behind the last.  Where rows are copied together,
 * local rows outside the slice are copied too; their columns of S are zero.
 * `at` continues from call to call. */
template <class T, int WIDTH, int STAGE, int ROW_BYTES, int STAGES, int WARPS, int STEP>
__device__ void copy_rows(const fsi_tile_args &a, const fsi_row_maps &maps, const fsi_slice &p, int64_t owned, int lead,
                          const row_ring<T, WIDTH, STAGE, ROW_BYTES, STAGES, WARPS, STEP> &ring, bool together,
                          int stage_count, ring_place &at)
{
    typedef row_ring<T, WIDTH, STAGE, ROW_BYTES, STAGES, WARPS, STEP> ring_t;
    static_assert(ring_t::STAGE_BYTES % 1024 == 0, "the exchange of chunks begins again with every stage");
    enum { ROWS = ring_t::ROWS, AHEAD = 32 / ROWS, BATCH = ROWS < 8 ? ROWS : 8, BYTES = WIDTH * (int)sizeof(T) };
    const int lane = threadIdx.x & 31, warp = __shfl_sync(~0u, (int)threadIdx.x >> 5 & (WARPS - 1), 0);
    const bool moved = p.column != owned;
    const CUtensorMap *map = (const CUtensorMap *)__shfl_sync(~0u, (uint64_t)(moved ? &maps.last : &maps.all), 0);
    const int group = __shfl_sync(~0u, moved ? 0 : (int)(p.column / ring_t::GROUP), 0);
    int stage = at.stage, parity = at.parity;
    for (int t = 0; t < stage_count; t += AHEAD) {
        const int64_t local_row = (int64_t)(t + lane / ROWS) * STAGE + warp * ROWS + lane % ROWS;
        const int64_t row = together ? fsi_split_start(&a.B.in, p.h) + p.first + local_row - a.row0
                            : local_row >= lead && local_row < p.count
                                ? fsi_local_row_source(&a.B, p.h, p.first + local_row, a.row0, a.rows)
                                : -1;
#pragma unroll 1
        for (int k = 0; k < AHEAD && t + k < stage_count; k++) {
            const uint32_t to = ring.stages + stage * ring_t::STAGE_BYTES + warp * ROWS * ROW_BYTES;
            fsi_mbarrier_wait(ring.empty(stage), parity);
            if (fsi_elect()) fsi_mbarrier_arrive_expect(ring.full(stage), ROWS * BYTES);
            __syncwarp();
#pragma unroll 1
            for (int first = 0; first < (together ? 1 : ROWS); first += BATCH) {
                int rows[BATCH];
#pragma unroll
                for (int r = 0; r < BATCH; r++) rows[r] = __shfl_sync(~0u, (int)row, ROWS * k + first + r);
                if (fsi_elect())
#pragma unroll
                    for (int r = 0; r < (together ? 1 : BATCH); r++)
                        fsi_copy_box(to + (first + r) * ROW_BYTES, map, 0, group, rows[r], ring.full(stage));
            }
            __syncwarp();
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
    }
    at.stage = stage, at.parity = parity;
}

/* A chunk of 16 bytes of which `bytes` are needed, none if they are not positive; where it is not all in front of
 * `end`, element by element. */
template <class T> __device__ __forceinline__ void copy_chunk(uint32_t to, uint64_t from, int bytes, uint64_t end)
{
    if (bytes <= 0) return;
    if (from + 16 <= end) fsi_copy16_whole(to, (const void *)from);
    else
#pragma unroll 1
        for (int i = 0; i < min(bytes, 16); i += (int)sizeof(T))
            if constexpr (sizeof(T) >= 4) fsi_shared_put(to + i, *(const T *)(from + i));
            else fsi_shared_put16(to + i, *(const uint16_t *)(from + i));
}
/* The same for rows of any pitch and address, without a map: the chunks of 16 bytes that hold a row's columns, one
 * after the other and nothing exchanged, so a row begins up to 15 bytes behind its place in the stage.  How far is
 * stored by row, as a byte, at its shift_place of the STAGE bytes of a stage at `shifts`.  Columns behind the last may
 * become anything.  Empty local rows become zero.  Nothing is read behind A. */
template <class T, int WIDTH, int STAGE, int ROW_BYTES, int STAGES, int WARPS, int STEP>
__device__ void copy_chunks(const fsi_tile_args &a, const fsi_slice &p, int lead,
                            const row_ring<T, WIDTH, STAGE, ROW_BYTES, STAGES, WARPS, STEP> &ring, uint32_t shifts,
                            int stage_count, ring_place &at)
{
    typedef row_ring<T, WIDTH, STAGE, ROW_BYTES, STAGES, WARPS, STEP> ring_t;
    enum {
        SIZE = (int)sizeof(T),
        ROWS = ring_t::ROWS,
        AHEAD = 32 / ROWS,
        CHUNKS = WIDTH * SIZE / 16,               /* and one more where a row is shifted */
        TOGETHER = CHUNKS < 32 ? 32 / CHUNKS : 1, /* rows */
        TIMES = CHUNKS < 32 ? 1 : CHUNKS / 32
    };
    constexpr uint32_t ALL = ~0u >> (32 - ROWS); /* the rows of a stage, as bits */
    static_assert(ROW_BYTES >= WIDTH * SIZE + 16, "room for shifted rows");
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & (WARPS - 1);
    const int chunk = 16 * (lane % (CHUNKS < 32 ? CHUNKS : 32)), behind = TOGETHER > 1 ? lane / CHUNKS : 0;
    const int row_bytes = (int)(a.n - p.column < WIDTH ? a.n - p.column : WIDTH) * SIZE;
    const uint64_t begin = (uint64_t)((const T *)a.data + p.column);
    const uint64_t end = (uint64_t)((const T *)a.data + (a.row_stride > 0 ? (a.rows - 1) * a.row_stride : 0) + a.n);
    const uint32_t to_shift = shifts + ring_t::shift_place(warp * ROWS + lane % ROWS);
    int stage = at.stage, parity = at.parity;
    for (int t = 0; t < stage_count; t += AHEAD) {
        const int64_t local_row = (int64_t)(t + lane / ROWS) * STAGE + warp * ROWS + lane % ROWS;
        const int64_t row = local_row >= lead && local_row < p.count
                                ? fsi_local_row_source(&a.B, p.h, p.first + local_row, a.row0, a.rows)
                                : -1;
        /* of the lane's row: where it begins, how far behind a multiple of 16, and its bytes from there on */
        const uint64_t address = row < 0 ? begin & ~(uint64_t)15 : begin + (uint64_t)(row * a.row_stride * SIZE);
        const int shift = (int)address & 15, bytes = row < 0 ? 0 : shift + row_bytes;
        const uint64_t first = address - shift;
        /* rows that are there, with whole chunks to their last column and a chunk behind */
        const uint32_t inside = __ballot_sync(~0u, row >= 0 && address + row_bytes + 31 <= end);
#pragma unroll 1
        for (int k = 0; k < AHEAD && t + k < stage_count; k++) {
            const uint32_t to = ring.stages + stage * ring_t::STAGE_BYTES + warp * ROWS * ROW_BYTES + chunk;
            const bool mine = lane / ROWS == k;
            fsi_mbarrier_wait(ring.empty(stage), parity);
            if ((inside >> ROWS * k & ALL) == ALL) {
#pragma unroll
                for (int r = 0; r < ROWS; r += TOGETHER) {
                    const uint64_t from = __shfl_sync(~0u, first, ROWS * k + r + behind) + chunk;
#pragma unroll
                    for (int i = 0; i < TIMES; i++)
                        if (chunk + 512 * i < row_bytes + 15)
                            fsi_copy16_whole(to + (r + behind) * ROW_BYTES + 512 * i, (const void *)(from + 512 * i));
                }
                if (mine && bytes > 16 * CHUNKS)
                    fsi_copy16_whole(to - chunk + lane % ROWS * ROW_BYTES + 16 * CHUNKS,
                                     (const void *)(first + 16 * CHUNKS));
            } else {
#pragma unroll 1
                for (int r = 0; r < ROWS; r += TOGETHER) {
                    const uint64_t from = __shfl_sync(~0u, first, ROWS * k + r + behind) + chunk;
                    const int its = __shfl_sync(~0u, bytes, ROWS * k + r + behind);
#pragma unroll
                    for (int i = 0; i < TIMES; i++)
                        if (its)
                            copy_chunk<T>(to + (r + behind) * ROW_BYTES + 512 * i, from + 512 * i,
                                          its - chunk - 512 * i, end);
                        else fsi_copy16_once(to + (r + behind) * ROW_BYTES + 512 * i, a.data, 0);
                }
                if (mine)
                    copy_chunk<T>(to - chunk + lane % ROWS * ROW_BYTES + 16 * CHUNKS, first + 16 * CHUNKS,
                                  bytes - 16 * CHUNKS, end);
            }
            if (mine) fsi_shared_put8(to_shift + STAGE * stage, shift);
            __syncwarp();
            fsi_mbarrier_arrive_copied(ring.full(stage));
            if (lane == 0) fsi_mbarrier_arrive(ring.full(stage)); /* the shifts */
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
    }
    at.stage = stage, at.parity = parity;
}

#endif

}  // namespace

#endif
