/* mma_rows.cu - BlockPerm-SJLT on the tensor cores, rows of A contiguous, by mma.sync: every GPU from sm_80 on.
 *
 * Formulation: tensor.cuh.  wgmma_rows.cu does the same on sm_90, from 48 columns on.
 * Accuracy.  The tensor cores round every sum towards zero.  Of every 64 rows the small split terms are added first and
 * the large ones last, so that only four sums are truncated noticeably; the result is added to a second set of sums
 * with rounding to nearest.  The error stays at that of plain float summation for every d.
 * Inf and NaN.  0 x Inf is NaN, so a non-finite element spoils all rows of its block in its column.  When a thread
 * block finds a sum that is not finite it recomputes its slice by plain additions, which only touch the nonzeros of S.
 *
 * grid     outputs x M x column tiles x slices, in this order, in x
 * threads  GROUPS groups of 128; each computes 64 rows x 128 columns
 * shared   two chunks of S (128 local rows each), four chunks of offsets, a ring of STAGES x 16 rows of A per group
 * needs    output tiles of at most 64 rows; columns of A contiguous, rows 16-byte aligned and whole 16 bytes long */
#include "cuda/blockperm/mma_rows_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/blockperm/common/tensor.cuh"

namespace {

enum { WIDTH = 128, CHUNK = 128, CHUNK_BYTES = 2 * S_TILE_BYTES, OFFSETS = 4 };

/* A group's ring of steps: 16 rows of 128 columns each, 16-byte chunks swizzled within a row so that both the copies
 * (eight neighbouring chunks of a row) and the fragments (two neighbouring chunks of four rows) are free of conflicts.
 * A thread copies one chunk of STEP / AT_ONCE rows of a step: rows row, row + AT_ONCE, ..., whose offsets in A stand
 * side by side in shared memory. */
template <class T, int STAGES> struct ring {
    enum {
        ROW_BYTES = WIDTH * (int)sizeof(T),
        CHUNKS = ROW_BYTES / 16,
        AT_ONCE = 128 / CHUNKS,
        COPIES = STEP / AT_ONCE,
        STEP_BYTES = STEP * ROW_BYTES
    };
    const char *data;  /* A at this thread's chunk of columns */
    uint32_t to, from; /* where in the first step this thread writes, and where it reads */
    int bytes;         /* of its chunk that are inside A */
    int row;

    __device__ __forceinline__ ring(const fsi_tile_args &a, uint32_t start, int64_t column)
    {
        const int t = threadIdx.x & 127, chunk = t % CHUNKS, warp = t >> 5, lane = t & 31, q = lane & 3;
        row = t / CHUNKS;
        to = start + row * ROW_BYTES + ((chunk ^ (row & 3) * 2) << 4);
        const int byte = (warp * 32 + (lane >> 2) * 4) * (int)sizeof(T);
        from = start + q * ROW_BYTES + (((byte >> 4) ^ q * 2) << 4) + (byte & 15);
        const int64_t inside = (a.n - column) * (int64_t)sizeof(T) - chunk * 16;
        bytes = inside < 0 ? 0 : inside < 16 ? (int)inside : 16;
        data = (const char *)a.data + (bytes ? column * (int64_t)sizeof(T) + chunk * 16 : 0);
    }
    /* Where the offset of row r of a step stands. */
    static __device__ __forceinline__ int place(int r) { return r % AT_ONCE * COPIES + r / AT_ONCE; }

    __device__ __forceinline__ void fetch(const int64_t *offsets, int step) const
    {
        const longlong2 *mine = (const longlong2 *)(offsets + step % (OFFSETS * CHUNK / STEP) * STEP + row * COPIES);
        const uint32_t at = to + step % STAGES * STEP_BYTES;
#pragma unroll
        for (int j = 0; j < COPIES; j += 2) {
            const longlong2 two = mine[j / 2];
            if (bytes == 16) {
                fsi_copy16(at + j * AT_ONCE * ROW_BYTES, data + two.x);
                fsi_copy16(at + (j + 1) * AT_ONCE * ROW_BYTES, data + two.y);
            } else {
                fsi_copy16_part(at + j * AT_ONCE * ROW_BYTES, data + two.x, bytes);
                fsi_copy16_part(at + (j + 1) * AT_ONCE * ROW_BYTES, data + two.y, bytes);
            }
        }
    }
};

#if __CUDA_ARCH__ >= 800

/* A warp of one of the groups, in turn, prepares chunk c, each thread four local rows. */
template <int GROUPS> __device__ __forceinline__ bool prepares(int c, int group, int local_row)
{
    return group == c % GROUPS && local_row < CHUNK / 4;
}
/* Where the rows of chunk c are in A, and, by fours, which local rows hold a row and their words; an empty local row
 * reads row 0. */
template <class T, int GROUPS, class RING>
__device__ __forceinline__ void number_rows(const fsi_tile_args &a, const fsi_slice &p, int64_t *offsets, int c,
                                            int group, int local_row, int lead, const bool &fours, int &valid,
                                            uint32_t (&word)[4])
{
    if (!prepares<GROUPS>(c, group, local_row)) return;
    const int64_t first = (int64_t)c * CHUNK + 4 * local_row;
    int64_t column[4];
    if (fours) valid = number_local_rows(a, p, first, lead, column, word);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int64_t row = -1;
        if (fours) row = valid >> i & 1 ? column[i] - a.row0 : -1;
        else if (first + i >= lead && first + i < p.count)
            row = fsi_local_row_source(&a.B, p.h, p.first + first + i, a.row0, a.rows);
        offsets[c % OFFSETS * CHUNK + (4 * local_row & ~15) + RING::place((4 * local_row + i) & 15)] =
            row < 0 ? 0 : row * a.row_stride * (int64_t)sizeof(T);
    }
}
/* The nonzeros of chunk c of S, whose tiles are zero; an empty local row has none. */
template <int ONE, int GROUPS> __device__ __forceinline__ void make_chunk(const fsi_tile_args &a, const fsi_slice &p,
                                                                          uint8_t *shared, int c, int group,
                                                                          int local_row, int lead, const bool &fours,
                                                                          int valid, uint32_t (&word)[4])
{
    if (!prepares<GROUPS>(c, group, local_row)) return;
    const int64_t first = (int64_t)c * CHUNK + 4 * local_row;
    uint8_t *tile = shared + (c & 1) * CHUNK_BYTES + (local_row >> 4) * S_TILE_BYTES;
    if (fours) put_local_rows<ONE>(a, p, tile, 4 * local_row, valid, word);
    else
#pragma unroll 1
        for (int i = first < lead ? lead : 0; i < 4; i++) put_local_row<ONE>(a, p, tile, first + i);
}

template <int THREADS> __device__ __forceinline__ void clear_chunk(uint8_t *shared, int c)
{
    const int tid = threadIdx.x;
    uint4 *at = (uint4 *)(shared + (c & 1) * CHUNK_BYTES);
#pragma unroll
    for (int i = 0; i < CHUNK_BYTES / 16; i += THREADS) at[i + tid] = make_uint4(0, 0, 0, 0);
}

/* x = the elements of the next of `steps` steps, while the one STAGES - 1 behind it is fetched. */
template <int STAGES, class RING, class TERMS>
__device__ __forceinline__ void take_step(const RING &r, const int64_t *offsets, int group, int steps, int &step,
                                          TERMS &x)
{
    fsi_copy_wait<STAGES - 2>();
    fsi_barrier(1 + group, 128);
    if (step + STAGES - 1 < steps) r.fetch(offsets, step + STAGES - 1);
    fsi_copy_commit();
    x.load(r.from + step % STAGES * RING::STEP_BYTES);
    step++;
}

/* total += the products of the two S tiles of chunk c, 64 local rows each, four steps of 16: the small split terms of
 * all steps first, then the large ones. */
template <class T, int PASSES, int STAGES>
__device__ __forceinline__ void multiply_chunk(const ring<T, STAGES> &r, const int64_t *offsets, const uint8_t *shared,
                                               int group, int steps, int c, int &step, float (&total)[64])
{
    constexpr int HALF = is_half<T>::value;
    float sums[64];
    split_terms<T, PASSES, 2, ring<T, STAGES>::ROW_BYTES> x;
    fragment<2> top[4];
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
        const uint32_t tile = fsi_shared_address(shared + (c & 1) * CHUNK_BYTES) + half * S_TILE_BYTES;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            take_step<STAGES>(r, offsets, group, steps, step, x);
            if (k == 0 && PASSES > 1) multiply<HALF, 0, 2>(sums, x.of[PASSES - 1], tile, k);
            else if (PASSES > 1) multiply<HALF, 1, 2>(sums, x.of[PASSES - 1], tile, k);
            if (PASSES > 2) multiply<HALF, 1, 2>(sums, x.of[1], tile, k);
            top[k] = x.of[0];
        }
        multiply<HALF, (PASSES > 1), 2>(sums, top[0], tile, 0);
#pragma unroll
        for (int k = 1; k < 4; k++) multiply<HALF, 1, 2>(sums, top[k], tile, k);
#pragma unroll
        for (int i = 0; i < 64; i++) total[i] += sums[i];
    }
}

/* All finite: scale once, store once, four neighbouring columns of a row at a time.  Otherwise the slice is recomputed
 * by plain additions. */
template <class T, int THREADS> __device__ __forceinline__ void store_total(const fsi_tile_args &a,
                                                                            const fsi_slice &slice, const fsi_slice &p,
                                                                            uint8_t *shared, const float (&total)[64])
{
    const int tid = threadIdx.x;
    float zero = 0.0f;
#pragma unroll
    for (int i = 0; i < 64; i++) zero = fmaf(total[i], 0.0f, zero);
    if (__syncthreads_or(zero != 0.0f)) {
        const fsi_output to = fsi_partial_sums(a, p.l, p.z);
        float *mine = (float *)shared + tid;
        add_serial<T>(a, slice, p.column + tid, mine, THREADS);
        for (int r = 0; r < p.tile_rows && p.column + tid < a.n; r++)
            fsi_output_put(to, p.output_row + r, p.column + tid, mine[r * THREADS]);
    } else store_tile<2>(a, p, total, p.column + (tid >> 5) * 32 + (tid >> 2 & 7) * 4);
}
#endif

template <class T, int PASSES, int GROUPS, int STAGES>
__global__ void __launch_bounds__(GROUPS * 128, GROUPS == 1 ? 2 : 1) mma_rows(const __grid_constant__ fsi_tile_args a)
{
#if __CUDA_ARCH__ >= 800
    constexpr int ONE = is_half<T>::value ? F16_ONE : BF16_ONE, THREADS = GROUPS * 128;
    typedef ring<T, STAGES> ring_t;
    extern __shared__ __align__(1024) uint8_t shared[];
    int64_t *offsets = (int64_t *)(shared + 2 * CHUNK_BYTES);
    const int tid = threadIdx.x, group = tid >> 7, local_row = tid & 127;
    const fsi_slice slice = fsi_slice_of(a, 1, GROUPS * WIDTH);
    fsi_slice p = slice;
    const int lead = align_local_rows(p), chunk_count = (int)((p.count + CHUNK - 1) / CHUNK),
              steps = chunk_count * (CHUNK / STEP);
    const ring_t r(a, fsi_shared_address(offsets + OFFSETS * CHUNK) + group * STAGES * ring_t::STEP_BYTES,
                   p.column + group * WIDTH);
    const bool fours = made_by_fours(a);
    uint32_t word[4]; /* of the chunk whose rows were numbered last */
    int valid = 0;

    fsi_start_next_kernel();
    /* 1. the rows of the first two chunks, the first chunk of S, the ring filled */
    number_rows<T, GROUPS, ring_t>(a, p, offsets, 0, group, local_row, lead, fours, valid, word);
    clear_chunk<THREADS>(shared, 0);
    __syncthreads();
    make_chunk<ONE, GROUPS>(a, p, shared, 0, group, local_row, lead, fours, valid, word);
    number_rows<T, GROUPS, ring_t>(a, p, offsets, 1, group, local_row, lead, fours, valid, word);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < steps) r.fetch(offsets, i);
        fsi_copy_commit();
    }

    float total[64];
#pragma unroll
    for (int i = 0; i < 64; i++) total[i] = 0.0f;
    int step = 0;
    for (int c = 0; c < chunk_count; c++) {
        /* 2. the next chunk of S, and the rows of the one after it */
        clear_chunk<THREADS>(shared, c + 1);
        __syncthreads();
        make_chunk<ONE, GROUPS>(a, p, shared, c + 1, group, local_row, lead, fours, valid, word);
        number_rows<T, GROUPS, ring_t>(a, p, offsets, c + 2, group, local_row, lead, fours, valid, word);
        /* 3. this chunk's products */
        multiply_chunk<T, PASSES, STAGES>(r, offsets, shared, group, steps, c, step, total);
        __syncthreads();
    }

    /* 4. scale once, store once */
    store_total<T, THREADS>(a, slice, p, shared, total);
#endif
}

}  // namespace

/* The plan file knows how much shared memory an instance takes. */
#define SHARED(T, dtype, passes, groups, stages) \
    static_assert(FSI_MMA_ROWS_SHARED(sizeof(T), groups, stages) == \
                      2 * CHUNK_BYTES + OFFSETS * CHUNK * 8 + groups * stages * ring<T, stages>::STEP_BYTES, \
                  "the instance list disagrees");
FSI_MMA_ROWS(SHARED)
#define KERNEL(T, dtype, passes, groups, stages) (const void *)mma_rows<T, passes, groups, stages>,
static const void *const mma_rows_instances[] = {FSI_MMA_ROWS(KERNEL)};

static fs_result launch_mma_rows(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                 const fsi_operands *operands)
{
    fsi_tile_launch l;
    FSI_TRY(fsi_tile_launch_open(gpu, problem, plan, operands, &l));
    void *arguments[] = {&l.args};
    return fsi_tile_launch_run(&l, mma_rows_instances[plan->instance], arguments);
}
const fsi_kernel_code fsi_kernel_mma_rows_code = {launch_mma_rows, mma_rows_instances};
