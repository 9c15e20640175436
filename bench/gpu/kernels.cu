/* kernels.cu - the lower bound of a measurement, test data, and the comparison with a result in double.
 *
 * The lower bound is what no sketch can avoid: it reads the bytes of the input once, 16 at a time with several loads of
 * a thread in flight, and writes the bytes of the output.  Which launch shape is fastest differs from size to size and
 * from GPU to GPU, so there is a table of them and the measurement keeps the fastest. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "bench_gpu.h"

/* volatile: a load must happen even where its thread has nothing to write.  FORGET: a hint that L2 may forget the
 * line first; whether that makes reading faster is not documented, so both are tried. */
template <bool FORGET> static __device__ __forceinline__ uint4 load_once(const uint4 *from, uint64_t policy)
{
    uint4 v;
#if __CUDA_ARCH__ >= 800
    if (FORGET) {
        asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(from), "l"(policy));
        return v;
    }
#endif
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

static __device__ __forceinline__ void mix(uint4 *sum, uint4 v)
{
    sum->x ^= v.x, sum->y ^= v.y, sum->z ^= v.z, sum->w ^= v.w;
}

/* A block takes tiles of blockDim.x IN_FLIGHT vectors in turn; each thread then writes its share, made of what it
 * read. */
template <int IN_FLIGHT, bool FORGET>
static __global__ void read_and_write(const uint4 *from, int64_t vectors, uint4 *to, int64_t written)
{
    uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
    if (FORGET) asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    const int64_t tile = (int64_t)blockDim.x * IN_FLIGHT, threads = (int64_t)gridDim.x * blockDim.x;
    uint4 sum = make_uint4(0, 0, 0, 0);
    for (int64_t start = blockIdx.x * tile; start < vectors; start += gridDim.x * tile) {
        const uint4 *mine = from + start + threadIdx.x;
        if (start + tile > vectors) {
            for (int64_t at = start + threadIdx.x; at < vectors; at += blockDim.x)
                mix(&sum, load_once<FORGET>(from + at, policy));
            break;
        }
        uint4 v[IN_FLIGHT];
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; i++) v[i] = load_once<FORGET>(mine + i * blockDim.x, policy);
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; i++) mix(&sum, v[i]);
    }
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < written; at += threads) to[at] = sum;
}

static const struct {
    int in_flight, threads, blocks; /* blocks of an SM; 0: one for every tile */
} shapes[BENCH_FLOOR_SHAPES / 2] = {
    {4, 256, 8}, {8, 256, 4}, {4, 512, 4}, {8, 512, 2}, {8, 512, 4}, {4, 256, 0}, {8, 256, 0}, {4, 512, 0},
};

void bench_gpu_floor(const bench_gpu *g, int shape, const void *from, int64_t read, void *to, int64_t written)
{
    const bool forget = shape >= BENCH_FLOOR_SHAPES / 2;
    shape %= BENCH_FLOOR_SHAPES / 2;
    const int64_t vectors = read / 16, tile = (int64_t)shapes[shape].threads * shapes[shape].in_flight;
    const int64_t most = vectors > written / 16 ? vectors : written / 16;
    const int64_t tiles = (most + tile - 1) / tile, resident = (int64_t)shapes[shape].blocks * g->processors;
    const unsigned blocks = (unsigned)(resident && resident < tiles ? resident : tiles);
    const bool four = shapes[shape].in_flight == 4;
    const auto kernel = forget ? (four ? read_and_write<4, true> : read_and_write<8, true>)
                               : (four ? read_and_write<4, false> : read_and_write<8, false>);
    kernel<<<blocks, shapes[shape].threads, 0, g->stream>>>((const uint4 *)from, vectors, (uint4 *)to, written / 16);
}

/* Waits so long that a host can queue a lower bound and a sketch of a few kernels meanwhile. */
static __global__ void wait(uint64_t nanoseconds)
{
    uint64_t start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        __nanosleep(1000);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}
void bench_gpu_hold(const bench_gpu *g) { wait<<<1, 1, 0, g->stream>>>(150000); }

/* Numbers from -1 to 1, a hash of their place. */
template <class T> static __global__ void fill(T *data, int64_t count)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        uint64_t z = (uint64_t)(i + 1) * 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        data[i] = (T)((float)(z >> 40) * 0x1p-23f - 1.0f);
    }
}

static __device__ double in_double(double x) { return x; }
static __device__ double in_double(float x) { return x; }
static __device__ double in_double(__half x) { return __half2float(x); }
static __device__ double in_double(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T> static __global__ void widen(const T *data, int64_t rows, int64_t row_stride, int64_t col_stride,
                                                int64_t cols, double *out)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < rows * cols; at += threads)
        out[at] = in_double(data[at / cols * row_stride + at % cols * col_stride]);
}

template <class T> static __global__ void compare(const T *data, int64_t rows, int64_t row_stride, int64_t col_stride,
                                                  int64_t cols, const double *reference, double *sums)
{
    const int64_t threads = (int64_t)gridDim.x * blockDim.x;
    double difference = 0, norm = 0;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < rows * cols; at += threads) {
        const double y = in_double(data[at / cols * row_stride + at % cols * col_stride]), r = reference[at];
        difference += (y - r) * (y - r);
        norm += r * r;
    }
    for (int lane = 16; lane; lane /= 2) {
        difference += __shfl_xor_sync(~0u, difference, lane);
        norm += __shfl_xor_sync(~0u, norm, lane);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(&sums[0], difference);
        atomicAdd(&sums[1], norm);
    }
}

/* A grid that covers `items` with 256 threads a block, in several rounds where there are very many. */
static unsigned blocks_for(const bench_gpu *g, int64_t items)
{
    const int64_t needed = (items + 255) / 256, most = 32 * (int64_t)g->processors;
    return (unsigned)(needed < most ? needed : most);
}

/* RUN(T) with T the C type of a dtype. */
#define BY_DTYPE(dtype, RUN) \
    switch (dtype) { \
    case FS_F32: RUN(float); break; \
    case FS_F64: RUN(double); break; \
    case FS_F16: RUN(__half); break; \
    default: RUN(__nv_bfloat16); \
    }

void bench_gpu_fill(const bench_gpu *g, void *data, int64_t bytes, fs_dtype dtype)
{
    const int64_t count = bytes / (int64_t)fs_dtype_size(dtype);
#define FILL(T) fill<T><<<blocks_for(g, count), 256, 0, g->stream>>>((T *)data, count)
    BY_DTYPE(dtype, FILL)
#undef FILL
}

void bench_gpu_widen(const bench_gpu *g, const fs_matrix *m, int64_t step, int64_t cols, double *out)
{
    const unsigned blocks = blocks_for(g, m->rows * cols);
#define WIDEN(T) \
    widen<T><<<blocks, 256, 0, g->stream>>>((const T *)m->data, m->rows, m->row_stride, step * m->col_stride, cols, out)
    BY_DTYPE(m->dtype, WIDEN)
#undef WIDEN
}

void bench_gpu_compare(const bench_gpu *g, const fs_matrix *m, int64_t step, int64_t cols, const double *reference,
                       double *sums)
{
    const unsigned blocks = blocks_for(g, m->rows * cols);
#define COMPARE(T) \
    compare<T><<<blocks, 256, 0, g->stream>>>((const T *)m->data, m->rows, m->row_stride, step * m->col_stride, cols, \
                                              reference, sums)
    BY_DTYPE(m->dtype, COMPARE)
#undef COMPARE
}
