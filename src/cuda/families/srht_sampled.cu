/* srht_sampled.cu - the SRHT where Y has few rows: A is read once, and only sums are written.
 *
 * Rows of A come in segments of 1024 at multiples of 1024.  For row r of H and column j of segment c, the sign is that
 * of (r mod 1024, j mod 1024) times that of (floor(r / 1024), c).  So a thread block transforms a segment by a Hadamard
 * matrix of order 1024, as a tile in shared memory and by two rounds of butterflies in registers, and each of the rows
 * that were picked takes one of the results, with a sign, into its sum.  The sums stay in registers while the block
 * loops over the segments of its slice; the higher levels of the transform are never computed.
 *
 *     flips     signs of D -> a bit for every row of A
 *     sampled   A, bits -> k sums for every slice of the segments, which split_reduce.cu adds; one slice is stored in Y
 *
 * A thread block has SAMPLES rows of Y.  Where there are more, blocks that have the same columns and segments run at
 * the same time and share A through L2.  Segments without a row of the row slice are not visited. */
#include "cuda/plan/srht.h"
#include "cuda/runtime/split_reduce.cuh"
#include "cuda/runtime/element.cuh"
#include "cuda/runtime/gpu.h"
#include "cuda/families/srht.cuh"
#include "cuda/runtime/ptx.cuh"

namespace {

enum { SIDE = 32, SEGMENT = FSI_SRHT_SEGMENT, FLIP_THREADS = SEGMENT / 4 };

/* A kind of kernel: the type of A, and whether lanes run along its rows (it is batch-major).  A tile has SEGMENT rows
 * and 32 bytes of columns; a thread has a column and SIDE rows of it, and SUMS sums. */
template <class Element, bool IS_ALONG_ROWS> struct sampled_kind {
    typedef Element T;
    typedef typename fsi_sum<T>::type Sum;
    enum {
        ALONG_ROWS = IS_ALONG_ROWS,
        COLS = 32 / (int)sizeof(Sum),
        GROUP = SIDE / COLS,
        THREADS = SIDE * COLS,
        SUMS = sizeof(Sum) == 8 ? 16 : 32,
        SAMPLES = SIDE * SUMS,
        CODE_PITCH = SUMS + 4,
        CODES = SIDE * CODE_PITCH,
        BYTES = SEGMENT * COLS * (int)sizeof(Sum) + 2 * CODES * (int)sizeof(uint32_t),
        BLOCKS = sizeof(Sum) == 8 ? 3 : 2, /* of an SM, and ... */
        AHEAD = 1 /* ... whether a thread reads its rows of the next segment before it adds those of this one */
    };
    /* Where row `row` of the tile is; column c is at that position ^ c.  GROUP rows fill the banks once.  Lanes run
     * along columns in GROUP neighbouring rows, or in GROUP rows SIDE apart, which the first swap puts on different
     * banks; or along SIDE neighbouring rows, which the second does.  Only then is it made. */
    static __device__ __forceinline__ int at(int row)
    {
        const int place = (row ^ (row / SIDE & (GROUP - 1))) * COLS;
        return ALONG_ROWS ? place | (row / GROUP & (COLS - 1)) : place;
    }
    /* at(SIDE t + low) ^ c from base = at(low) ^ c, and at(SIDE local row + t) ^ c from base = at(SIDE local row) ^
     * c. */
    static __device__ __forceinline__ int high(int base, int t)
    {
        return (base ^ (t % GROUP * COLS)) + t * SIDE * COLS;
    }
    static __device__ __forceinline__ int low(int base, int t)
    {
        return (base ^ (t % GROUP * COLS) ^ (ALONG_ROWS ? t / GROUP : 0)) + t / GROUP * SIDE;
    }
};

static_assert(SEGMENT == SIDE * SIDE && sampled_kind<float, 0>::SAMPLES == FSI_SRHT_SAMPLES(4) &&
                  sampled_kind<double, 0>::SAMPLES == FSI_SRHT_SAMPLES(8),
              "plan/srht.h disagrees");

/* A call: what its kernels share. */
template <class Kind> struct sampled_call {
    fsi_srht H;
    fsi_input<typename Kind::T> A;
    int64_t row0, rows, n;   /* the row slice of A */
    fsi_output out;          /* Y, or partial-sum buffer 0 with factor 1 */
    int64_t partial;         /* bytes from partial-sum buffer to partial-sum buffer; 0: straight to Y */
    const uint32_t *flips;   /* bit t of word 32 (c - first) + low: D negates row 32 t + low of segment c */
    int64_t first, segments; /* those in which the slice has rows */
    int64_t length;          /* segments of a slice */
    uint32_t groups, strips; /* of rows of Y, of columns */
    int down;                /* columns of `out` are contiguous */
};

__global__ void __launch_bounds__(FLIP_THREADS)
    flips(const __grid_constant__ fsi_srht H, int64_t first, uint32_t *words)
{
    fsi_start_next_kernel();
    const int t = threadIdx.x % 32, low = threadIdx.x / 32 * 4;
    const int64_t row = (first + blockIdx.x) * SEGMENT + t * SIDE + low;
    uint32_t word[4];
#pragma unroll
    for (int v = 0; v < 4; v++) word[v] = __ballot_sync(0xFFFFFFFFu, fsi_srht_flip(&H, row + v));
    if (t == 0) *(uint4 *)(words + (int64_t)blockIdx.x * SIDE + low) = make_uint4(word[0], word[1], word[2], word[3]);
}

/* Makes the compiler assume that x changes here, so that addresses computed from it are not kept from segment to
 * segment: there are no registers for them. */
__device__ __forceinline__ void forget(int &x) { asm volatile("" : "+r"(x)); }
template <class T> __device__ __forceinline__ void forget(const T *&x) { asm volatile("" : "+l"(x)); }

/* x[t] = row SIDE t + low of segment c, 0 where A has no such row. */
template <class Kind> __device__ __forceinline__ void read_segment(const sampled_call<Kind> &C, int64_t c, int low,
                                                                   int64_t col, typename Kind::Sum (&x)[SIDE])
{
    const int64_t base = (C.first + c) * SEGMENT - C.row0 + low, stride = C.A.row_stride * SIDE;
    const typename Kind::T *next = C.A.data + base * C.A.row_stride + col * C.A.col_stride;
    if (base >= low && base + SEGMENT <= C.rows + low && col < C.n) {
#pragma unroll
        for (int t = 0; t < SIDE; t++, next += stride) {
            x[t] = fsi_widen(__ldg(next));
            forget(next);
        }
        return;
    }
#pragma unroll
    for (int t = 0; t < SIDE; t++, next += stride) {
        const int64_t row = base + t * SIDE;
        x[t] = row >= 0 && row < C.rows && col < C.n ? fsi_widen(__ldg(next)) : 0;
        forget(next);
    }
}

/* The signs of (floor(r / SEGMENT), segment) into the codes of the thread block's rows of Y, four for each thread. */
template <class Kind>
__device__ __forceinline__ void set_signs(uint32_t *codes, const uint32_t *highs, uint32_t segment)
{
    const int tid = threadIdx.x;
    static_assert(4 * Kind::THREADS == Kind::SAMPLES, "a thread has four signs");
    const int four = tid / (Kind::SUMS / 4) * Kind::CODE_PITCH + tid % (Kind::SUMS / 4) * 4;
    const uint4 high = *(const uint4 *)(highs + four);
    uint4 code = *(const uint4 *)(codes + four);
    code.x = (code.x & 0x7FFFFFFFu) | (uint32_t)__popc(high.x & segment) << 31;
    code.y = (code.y & 0x7FFFFFFFu) | (uint32_t)__popc(high.y & segment) << 31;
    code.z = (code.z & 0x7FFFFFFFu) | (uint32_t)__popc(high.z & segment) << 31;
    code.w = (code.w & 0x7FFFFFFFu) | (uint32_t)__popc(high.w & segment) << 31;
    *(uint4 *)(codes + four) = code;
}

/* grid: groups x strips x slices in x.  shared: the tile; for every row of Y its position in the tile with its sign for
 * the present segment in bit 31, and floor(r / SEGMENT).  Row 32 t + local row of the group is entry t of `local
 * row`. */
template <class Kind> __global__ void __launch_bounds__(Kind::THREADS, Kind::BLOCKS)
    sampled(const __grid_constant__ sampled_call<Kind> C)
{
    typedef typename Kind::Sum Sum;
    extern __shared__ __align__(16) unsigned char shared[];
    Sum *const tile = (Sum *)shared;
    uint32_t *const codes = (uint32_t *)(tile + SEGMENT * Kind::COLS), *const highs = codes + Kind::CODES;
    const int tid = threadIdx.x, own = tid % Kind::COLS, local_row = tid / Kind::COLS;
    uint32_t id = blockIdx.x;
    const int64_t sample = (int64_t)(id % C.groups) * Kind::SAMPLES;
    id /= C.groups;
    const int64_t strip = (int64_t)(id % C.strips) * Kind::COLS, slice = id / C.strips;
    const int64_t begin = slice * C.length, end = min(begin + C.length, C.segments);
    const int samples = (int)min((int64_t)Kind::SAMPLES, C.H.k - sample);
    const int low = Kind::ALONG_ROWS ? tid % SIDE : local_row;
    const int64_t col = strip + (Kind::ALONG_ROWS ? tid / SIDE : own);
    int high_base = Kind::at(low) ^ (int)(col - strip), low_base = Kind::at(local_row * SIDE) ^ own;
    const int quads = (samples + 4 * SIDE - 1) / (4 * SIDE);

    /* 1. The rows of H that were picked. */
    for (int e = tid; e < Kind::SAMPLES; e += Kind::THREADS) {
        const uint64_t r = e < samples ? fsi_srht_row(&C.H, sample + e) : 0;
        codes[e % SIDE * Kind::CODE_PITCH + e / SIDE] = (uint32_t)(Kind::at((int)(r % SEGMENT)) * sizeof(Sum));
        highs[e % SIDE * Kind::CODE_PITCH + e / SIDE] = (uint32_t)(r / SEGMENT);
    }
    Sum x[SIDE], sum[Kind::SUMS] = {};
    if (Kind::AHEAD && begin < end) read_segment(C, begin, low, col, x);
    fsi_await_last_kernel();
    for (int64_t c = begin; c < end; c++) {
        forget(high_base);
        forget(low_base);
        /* 2. The high bits of the row: rows SIDE t + low, with the signs of D. */
        if (!Kind::AHEAD) read_segment(C, c, low, col, x);
        const uint32_t flip = C.flips[c * SIDE + low];
#pragma unroll
        for (int t = 0; t < SIDE; t++) x[t] = fsi_turned(x[t], flip << (31 - t));
        hadamard_butterflies(x, 5);
        __syncthreads();
#pragma unroll
        for (int t = 0; t < SIDE; t++) tile[Kind::high(high_base, t)] = x[t];
        __syncthreads();

        /* 3. The low bits: rows SIDE local row + t; the signs of (floor(r / SEGMENT), c). */
#pragma unroll
        for (int t = 0; t < SIDE; t++) x[t] = tile[Kind::low(low_base, t)];
        hadamard_butterflies(x, 5);
#pragma unroll
        for (int t = 0; t < SIDE; t++) tile[Kind::low(low_base, t)] = x[t];
        set_signs<Kind>(codes, highs, (uint32_t)(C.first + c));
        __syncthreads();

        /* 4. The sums. */
        if (Kind::AHEAD && c + 1 < end) read_segment(C, c + 1, low, col, x);
        const uint32_t mine = own * (uint32_t)sizeof(Sum);
#pragma unroll
        for (int q = 0; q < Kind::SUMS / 4; q++)
            if (q < quads) {
                const uint4 code = *(const uint4 *)(codes + local_row * Kind::CODE_PITCH + 4 * q);
                sum[4 * q] += fsi_turned(*(const Sum *)(shared + ((code.x & 0xFFFFu) ^ mine)), code.x);
                sum[4 * q + 1] += fsi_turned(*(const Sum *)(shared + ((code.y & 0xFFFFu) ^ mine)), code.y);
                sum[4 * q + 2] += fsi_turned(*(const Sum *)(shared + ((code.z & 0xFFFFu) ^ mine)), code.z);
                sum[4 * q + 3] += fsi_turned(*(const Sum *)(shared + ((code.w & 0xFFFFu) ^ mine)), code.w);
            }
    }
    fsi_start_next_kernel();

    /* 5.  Stored, through the tile. */
    __syncthreads();
#pragma unroll
    for (int t = 0; t < Kind::SUMS; t++) tile[(t * SIDE + local_row) * Kind::COLS + own] = sum[t];
    __syncthreads();
    fsi_output out = C.out;
    out.data = (char *)out.data + slice * C.partial;
    for (int e = tid; e < Kind::SAMPLES * Kind::COLS; e += Kind::THREADS) {
        const int i = C.down ? e % Kind::SAMPLES : e / Kind::COLS, j = C.down ? e / Kind::SAMPLES : e % Kind::COLS;
        if (i < samples && strip + j < C.n) fsi_output_put(out, sample + i, strip + j, tile[i * Kind::COLS + j]);
    }
}

/* Scratch: a bit for every row of A; a k x n partial-sum buffer of sums for every slice, if there are several. */
template <class Kind> fs_result run(fsi_gpu *gpu, const fsi_srht *S, double factor, int64_t row0, const fs_matrix *A,
                                    double beta, const fs_matrix *Y)
{
    typedef typename Kind::Sum Sum;
    sampled_call<Kind> C = {};
    C.H = *S;
    C.A = fsi_input_of<typename Kind::T>(A);
    C.row0 = row0;
    C.rows = A->rows;
    C.n = Y->cols;
    C.first = row0 / SEGMENT;
    C.segments = A->rows ? (row0 + A->rows - 1) / SEGMENT - C.first + 1 : 0;
    C.groups = (uint32_t)fsi_div_up(S->k, Kind::SAMPLES);
    C.strips = (uint32_t)fsi_div_up(C.n, Kind::COLS);
    C.down = fsi_runs_down(Y);
    C.length = fsi_srht_slice_length(&gpu->traits, C.segments, (int64_t)C.groups * C.strips, Kind::BLOCKS,
                                     S->k * C.n * (int64_t)sizeof(Sum));
    const int64_t slices = C.segments ? fsi_div_up(C.segments, C.length) : 1;
    const int64_t words = fsi_round_up(C.segments * SIDE, 64) * (int64_t)sizeof(uint32_t);
    C.partial = slices > 1 ? S->k * C.n * (int64_t)sizeof(Sum) : 0;
    void *memory;
    FSI_TRY(fsi_gpu_scratch(gpu, words + slices * C.partial, &memory));
    C.flips = (const uint32_t *)memory;
    const fsi_output to = fsi_output_of(Y, factor, beta);
    C.out = to;
    if (slices > 1) {
        const fsi_output partials = {
            (char *)memory + words, C.down ? 1 : C.n, C.down ? S->k : 1, 1.0, 0.0, sizeof(Sum) == 8 ? FS_F64 : FS_F32};
        C.out = partials;
    }
    if (C.segments) {
        flips<<<(unsigned)C.segments, FLIP_THREADS, 0, gpu->stream>>>(C.H, C.first, (uint32_t *)memory);
        FSI_TRY(FSI_LAUNCHED(gpu, "the signs of the SRHT"));
    }
    cudaLaunchAttribute early;
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)(C.groups * C.strips * slices));
    config.blockDim = dim3(Kind::THREADS);
    config.dynamicSmemBytes = Kind::BYTES;
    config.stream = gpu->stream;
    config.attrs = &early;
    config.numAttrs = gpu->traits.arch >= 90 && C.segments;
    FSI_TRY(fsi_gpu_check(gpu, cudaLaunchKernelEx(&config, sampled<Kind>, C), "the sampled Hadamard transform"));
    return slices > 1 ? fsi_gpu_split_reduce(gpu, C.out.data, (int)slices, S->k, C.n, C.down, C.out.dtype, &to) : FS_OK;
}

}  // namespace

FSI_GPU_OP(fsi_gpu_srht_sampled_apply, fsi_srht)
{
    const bool along_rows = to->cols == 1 || !fsi_view_is_row_major(from);
#define RUN(T) \
    (along_rows ? run<sampled_kind<T, true>>(gpu, S, alpha * scale, row0, from, beta, to) \
                : run<sampled_kind<T, false>>(gpu, S, alpha * scale, row0, from, beta, to))
    return FSI_BY_DTYPE(from->dtype, RUN);
#undef RUN
}
