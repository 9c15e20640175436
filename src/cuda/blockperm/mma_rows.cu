/* mma_rows.cu - BlockPerm-SJLT on the tensor cores, rows of A contiguous, by mma.sync: every GPU from sm_80 on.
 *
 * Formulation: tensor.cuh.  wgmma_rows.cu does the same on sm_90, from 48 columns on.
 * Accuracy.  The tensor cores round every sum towards zero.  64 rows at a time the small pieces are added first and the
 * large ones last, so that only four sums lose anything, and the result goes to a second set of sums by rounded
 * additions: the error stays at that of plain float summation for every d.
 * Inf and NaN.  0 x Inf is NaN, so a non-finite element spoils all rows of its block in its column.  When a thread
 * block finds a sum that is not finite it makes its slice again by plain additions, which only touch the nonzeros of S.
 *
 * grid     kappa x M x column tiles x slices, in this order, in x
 * threads  GROUPS groups of 128; each makes 64 rows x 128 columns
 * shared   two chunks of S (128 local rows each), four chunks of offsets, a ring of STAGES x 16 rows of A per group
 * needs    blocks of at most 64 rows; columns of A contiguous, rows 16-byte aligned and whole 16 bytes long */
#include "cuda/blockperm/mma_rows_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/blockperm/common/tensor.cuh"

namespace {

enum { WIDTH = 128, CHUNK = 128, CHUNK_BYTES = 2 * PANEL_BYTES, OFFSETS = 4 };

/* A group's ring of steps: 16 rows of 128 columns each, 16-byte chunks exchanged within a row so that both the copies
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

template <class T, int PASSES, int GROUPS, int STAGES>
__global__ void __launch_bounds__(GROUPS * 128, GROUPS == 1 ? 2 : 1) mma_rows(const __grid_constant__ fsi_tile_args a)
{
#if __CUDA_ARCH__ >= 800
    constexpr int HALF = is_half<T>::value, ONE = HALF ? F16_ONE : BF16_ONE, THREADS = GROUPS * 128;
    typedef ring<T, STAGES> ring_t;
    extern __shared__ __align__(1024) uint8_t shared[];
    int64_t *offsets = (int64_t *)(shared + 2 * CHUNK_BYTES);
    const int tid = threadIdx.x, group = tid >> 7, local_row = tid & 127;
    const fsi_slice slice = fsi_slice_of(a, 1, GROUPS * WIDTH);
    fsi_slice p = slice;
    const int lead = align_slots(p), chunk_count = (int)((p.count + CHUNK - 1) / CHUNK),
              steps = chunk_count * (CHUNK / STEP);
    const ring_t r(a, fsi_shared_address(offsets + OFFSETS * CHUNK) + group * STAGES * ring_t::STEP_BYTES,
                   p.column + group * WIDTH);

    /* A warp of one of the groups, in turn, makes a chunk, each thread four local rows: their rows and, a chunk later, their
     * nonzeros.  An empty local row reads row 0 and has no nonzeros. */
    const bool fours = made_by_fours(a, p);
    uint32_t word[4];
    int valid = 0;
    auto makes = [&](int c) { return group == c % GROUPS && local_row < CHUNK / 4; };
    auto number_rows = [&](int c) {
        if (!makes(c)) return;
        const int64_t first = (int64_t)c * CHUNK + 4 * local_row;
        int64_t column[4];
        if (fours) valid = number_slots(a, p, first, lead, column, word);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int64_t row = -1;
            if (fours) row = valid >> i & 1 ? column[i] - a.row0 : -1;
            else if (first + i >= lead && first + i < p.count)
                row = fsi_local_row_source(&a.B, p.h, p.first + first + i, a.row0, a.rows);
            offsets[c % OFFSETS * CHUNK + (4 * local_row & ~15) + ring_t::place((4 * local_row + i) & 15)] =
                row < 0 ? 0 : row * a.row_stride * (int64_t)sizeof(T);
        }
    };
    auto clear_chunk = [&](int c) {
        uint4 *at = (uint4 *)(shared + (c & 1) * CHUNK_BYTES);
#pragma unroll
        for (int i = 0; i < CHUNK_BYTES / 16; i += THREADS) at[i + tid] = make_uint4(0, 0, 0, 0);
    };
    auto make_chunk = [&](int c) {
        if (!makes(c)) return;
        const int64_t first = (int64_t)c * CHUNK + 4 * local_row;
        uint8_t *panel = shared + (c & 1) * CHUNK_BYTES + (local_row >> 4) * PANEL_BYTES;
        if (fours) put_slots<ONE>(a, p, panel, 4 * local_row, valid, word);
        else
#pragma unroll 1
            for (int i = first < lead ? lead : 0; i < 4; i++) put_slot<ONE>(a, p, panel, first + i);
    };

    fsi_start_next_kernel();
    /* 1. the rows of the first two chunks, the first chunk of S, the ring filled */
    number_rows(0);
    clear_chunk(0);
    __syncthreads();
    make_chunk(0);
    number_rows(1);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < steps) r.fetch(offsets, i);
        fsi_copy_commit();
    }

    float sums[64], total[64];
#pragma unroll
    for (int i = 0; i < 64; i++) total[i] = 0.0f;
    int step = 0;
    pieces<T, PASSES, 2, ring_t::ROW_BYTES> x;
    fragment<2> top[4];
    auto take_step = [&]() {
        fsi_copy_wait<STAGES - 2>();
        fsi_barrier(1 + group, 128);
        if (step + STAGES - 1 < steps) r.fetch(offsets, step + STAGES - 1);
        fsi_copy_commit();
        x.load(r.from + step % STAGES * ring_t::STEP_BYTES);
        step++;
    };
    for (int c = 0; c < chunk_count; c++) {
        /* 2. the next chunk of S, and the rows of the one after it */
        clear_chunk(c + 1);
        __syncthreads();
        make_chunk(c + 1);
        number_rows(c + 2);
        /* 3. two panels of 64 local rows, four steps of 16 each: the small pieces of all steps first, then the large ones */
#pragma unroll 1
        for (int half = 0; half < 2; half++) {
            const uint32_t panel = fsi_shared_address(shared + (c & 1) * CHUNK_BYTES) + half * PANEL_BYTES;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                take_step();
                if (k == 0 && PASSES > 1) multiply<HALF, 0, 2>(sums, x.of[PASSES - 1], panel, k);
                else if (PASSES > 1) multiply<HALF, 1, 2>(sums, x.of[PASSES - 1], panel, k);
                if (PASSES > 2) multiply<HALF, 1, 2>(sums, x.of[1], panel, k);
                top[k] = x.of[0];
            }
            multiply<HALF, (PASSES > 1), 2>(sums, top[0], panel, 0);
#pragma unroll
            for (int k = 1; k < 4; k++) multiply<HALF, 1, 2>(sums, top[k], panel, k);
#pragma unroll
            for (int i = 0; i < 64; i++) total[i] += sums[i];
        }
        __syncthreads();
    }

    /* 4. all finite: scale once, store once, four neighbouring columns of a row at a time */
    float zero = 0.0f;
#pragma unroll
    for (int i = 0; i < 64; i++) zero = fmaf(total[i], 0.0f, zero);
    if (__syncthreads_or(zero != 0.0f)) {
        const fsi_output to = fsi_partial_sums(a, p.l, p.z);
        float *mine = (float *)shared + tid;
        make_again<T>(a, slice, p.column + tid, mine, THREADS);
        for (int r = 0; r < p.block_rows && p.column + tid < a.n; r++)
            fsi_output_put(to, p.output_row + r, p.column + tid, mine[r * THREADS]);
    } else store_tile<2>(a, p, total, p.column + (tid >> 5) * 32 + (tid >> 2 & 7) * 4);
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
