/* ptx.cuh - one function for each PTX instruction that the kernels use and CUDA C has no name for. */
#ifndef FSI_CUDA_RUNTIME_PTX_CUH
#define FSI_CUDA_RUNTIME_PTX_CUH

#include <cuda.h>
#include <stdint.h>

static __device__ __forceinline__ uint32_t fsi_shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* cp.async: 16 bytes from global to shared memory. */
static __device__ __forceinline__ void fsi_copy16(uint32_t to, const void *from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#endif
}
/* The same, of which only the first `bytes` are read; the rest become zero. */
static __device__ __forceinline__ void fsi_copy16_part(uint32_t to, const void *from, int bytes)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#endif
}
/* 4 or 8 bytes, which stay in L1 for reads of the rest of the cache line; zeros if not `there`. */
template <int BYTES> static __device__ __forceinline__ void fsi_copy_small(uint32_t to, const void *from, bool there)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES),
                 "r"(there ? BYTES : 0)
                 : "memory");
#endif
}
/* 4, 8 or 16 bytes that are there. */
template <int BYTES> static __device__ __forceinline__ void fsi_copy_there(uint32_t to, const void *from)
{
#if __CUDA_ARCH__ >= 800
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
#endif
}
static __device__ __forceinline__ void fsi_copy_commit(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N> static __device__ __forceinline__ void fsi_copy_wait(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

/* mma: d += a b, 16 x 8 x 16, of f64.  Lane l has a[q] = A(l / 4 + q % 2 * 8, l % 4 + q / 2 * 4), b[q] = B(l % 4 + 4 q,
 * l / 4) and d[q] = D(l / 4 + q / 2 * 8, l % 4 * 2 + q % 2): on sm_80 it is eight products of 8 x 8 x 4. */
static __device__ __forceinline__ void fsi_mma_f64(double (&d)[4], const double (&a)[8], const double (&b)[4])
{
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, "
                 "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
                 : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]),
                   "d"(b[1]), "d"(b[2]), "d"(b[3]));
#elif __CUDA_ARCH__ >= 800
#pragma unroll
    for (int q = 0; q < 8; q++)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                     : "+d"(d[q % 2 * 2]), "+d"(d[q % 2 * 2 + 1])
                     : "d"(a[q]), "d"(b[q / 2]));
#endif
}

/* 1 / x and 1 / sqrt(x) to some 20 bits; 0 where that is below 2^-1022. */
static __device__ __forceinline__ double fsi_reciprocal_guess(double x)
{
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
}
static __device__ __forceinline__ double fsi_reciprocal_root_guess(double x)
{
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    return y;
}

/* Flags between thread blocks: what was written before the store, by threads that a barrier has brought together with
 * this one, is seen after a load that finds its value. */
static __device__ __forceinline__ int fsi_load_acquire(const int *at)
{
    int x;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
    return x;
}
static __device__ __forceinline__ void fsi_store_release(int *at, int x)
{
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(at), "r"(x) : "memory");
}

/* Programmatic dependent launch: the kernel queued next may already start, if it was launched with that attribute;
 * there fsi_await_last_kernel waits until this one is done and its writes are visible. */
static __device__ __forceinline__ void fsi_start_next_kernel(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}
static __device__ __forceinline__ void fsi_await_last_kernel(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* A barrier of `threads` threads; barrier 0 is __syncthreads'. */
static __device__ __forceinline__ void fsi_barrier(int number, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/* The same, and whether the predicate held in any of them. */
static __device__ __forceinline__ bool fsi_barrier_or(int number, int threads, bool predicate)
{
    int any;
    asm volatile("{.reg .pred p, q; setp.ne.b32 p, %3, 0;\n"
                 "barrier.cta.red.or.pred q, %1, %2, p;\n"
                 "selp.b32 %0, 1, 0, q; }"
                 : "=r"(any)
                 : "r"(number), "r"(threads), "r"((int)predicate)
                 : "memory");
    return any;
}

/* Shared memory by its 32-bit address, to which the compiler adds nothing. */
static __device__ __forceinline__ void fsi_shared_get(uint32_t at, float *x)
{
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(*x) : "r"(at));
}
static __device__ __forceinline__ void fsi_shared_get(uint32_t at, double *x)
{
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(*x) : "r"(at));
}
static __device__ __forceinline__ void fsi_shared_put(uint32_t at, float x)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory");
}
static __device__ __forceinline__ void fsi_shared_put(uint32_t at, double x)
{
    asm volatile("st.shared.f64 [%0], %1;" ::"r"(at), "d"(x) : "memory");
}
static __device__ __forceinline__ void fsi_shared_put16(uint32_t at, uint32_t x)
{
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"((uint16_t)x) : "memory");
}
static __device__ __forceinline__ void fsi_shared_put8(uint32_t at, uint32_t x)
{
    asm volatile("st.shared.u8 [%0], %1;" ::"r"(at), "r"(x) : "memory");
}
static __device__ __forceinline__ void fsi_shared_put32(uint32_t at, uint32_t x)
{
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(x) : "memory");
}
static __device__ __forceinline__ void fsi_shared_put2(uint32_t at, uint32_t x, uint32_t y)
{
    asm volatile("st.shared.v2.u32 [%0], {%1,%2};" ::"r"(at), "r"(x), "r"(y) : "memory");
}
static __device__ __forceinline__ void fsi_shared_put4(uint32_t at, uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
}
static __device__ __forceinline__ float4 fsi_shared_float4(uint32_t at)
{
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(at));
    return x;
}
/* The same, and a store, under a predicate and without a branch: the instruction is fetched in any case. */
static __device__ __forceinline__ void fsi_shared_get4(bool so, uint32_t at, float4 *x)
{
    asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0;\n"
                 "@p ld.shared.v4.f32 {%0,%1,%2,%3}, [%4]; }"
                 : "+f"(x->x), "+f"(x->y), "+f"(x->z), "+f"(x->w)
                 : "r"(at), "r"((uint32_t)so));
}
static __device__ __forceinline__ void fsi_shared_put4(bool so, uint32_t at, float4 x)
{
    asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0;\n"
                 "@p st.shared.v4.f32 [%0], {%1,%2,%3,%4}; }" ::"r"(at),
                 "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w), "r"((uint32_t)so)
                 : "memory");
}
static __device__ __forceinline__ float2 fsi_shared_float2(uint32_t at)
{
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(at));
    return x;
}
static __device__ __forceinline__ uint2 fsi_shared_uint2(uint32_t at)
{
    uint2 x;
    asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(at));
    return x;
}
static __device__ __forceinline__ uint32_t fsi_shared_uint(uint32_t at)
{
    uint32_t x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at));
    return x;
}

/* 8 or 16 bytes. */
template <int BYTES> static __device__ __forceinline__ void fsi_shared_words(uint32_t *x, uint32_t at)
{
    if constexpr (BYTES == 16)
        asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(at));
    else asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(x[0]), "=r"(x[1]) : "r"(at));
}

static __device__ __forceinline__ uint32_t fsi_shared_short(uint32_t at)
{
    uint16_t x;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(at));
    return x;
}

static __device__ __forceinline__ uint32_t fsi_shared_byte(uint32_t at)
{
    uint32_t x;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(x) : "r"(at));
    return x;
}

/* Bytes chosen out of two words by a compile-time selector. */
template <int SELECT> static __device__ __forceinline__ uint32_t fsi_bytes(uint32_t a, uint32_t b)
{
    uint32_t r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "n"(SELECT));
    return r;
}

/* 1 in bf16 (HALF 0) or f16 (HALF 1) where the halves of two words, as numbers of that type, are equal, 0 where not. */
template <int HALF> static __device__ __forceinline__ uint32_t fsi_equal_ones(uint32_t a, uint32_t b)
{
    uint32_t r;
    if (HALF) asm("set.eq.f16x2.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#if __CUDA_ARCH__ >= 900
    else asm("set.eq.bf16x2.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#else
    else { /* numbers of f16 are as different */ asm("set.eq.u32.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
        r &= 0x3F803F80u;
    }
#endif
    return r;
}

/* x with the signs of its halves changed where those of `signs` are set. */
static __device__ __forceinline__ uint32_t fsi_turned_halves(uint32_t x, uint32_t signs)
{
    uint32_t r;
    asm("lop3.b32 %0, %1, %2, 0x80008000, 0x78;" : "=r"(r) : "r"(x), "r"(signs));
    return r;
}

/* a b + c; for the same in C, ptxas 13.0 emits a redundant addition of 0. */
static __device__ __forceinline__ uint64_t fsi_mad_wide(uint32_t a, uint32_t b, uint64_t c)
{
    uint64_t r;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(r) : "r"(a), "r"(b), "l"(c));
    return r;
}

/* ldmatrix: four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8. */
static __device__ __forceinline__ void fsi_load_matrices(uint32_t (&r)[4], uint32_t at)
{
#if __CUDA_ARCH__ >= 750
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
#endif
}

/* mma: d += a b, 16 x 8 x 16, of bf16 (HALF 0) or f16 (HALF 1). */
template <int HALF>
static __device__ __forceinline__ void fsi_mma(float *d, const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
    if (HALF)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* Whether this lane is the elected one of its warp. */
static __device__ __forceinline__ bool fsi_elect(void)
{
    int elected;
    asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p;}" : "=r"(elected));
    return elected;
}

/* mbarriers: a phase ends when `count` threads have arrived. */
static __device__ __forceinline__ void fsi_mbarrier_init(uint32_t at, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}
static __device__ __forceinline__ void fsi_mbarrier_arrive(uint32_t at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}
/* Arrives when all copies (fsi_copy16) that this thread has begun are there. */
static __device__ __forceinline__ void fsi_mbarrier_arrive_copied(uint32_t at)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(at) : "memory");
}
/* Arrives, and keeps the phase open until `bytes` more bytes of bulk copies are there. */
static __device__ __forceinline__ void fsi_mbarrier_arrive_expect(uint32_t at, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}
/* Copies a box of a three-dimensional tensor map (tensor_maps.cuh), from element (x, y, z) on, which may be outside: what is
 * outside is zero.  Reported to an mbarrier, all of the box.  Data that are read once are the first that L2 evicts: the
 * policy is that of createpolicy.fractional.L2::evict_first. */
static __device__ __forceinline__ void fsi_copy_box(uint32_t to, const CUtensorMap *map, int x, int y, int z,
                                                    uint32_t mbarrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(mbarrier), "l"(0x12F0000000000000ull)
                 : "memory");
}
/* The same into both thread blocks of a cluster of two: to the same places of their shared memory, each reported to its
 * own mbarrier. */
static __device__ __forceinline__ void fsi_copy_box_to_both(uint32_t to, const CUtensorMap *map, int x, int y, int z,
                                                            uint32_t mbarrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                 ".L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6, %7;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(z), "r"(mbarrier), "h"((uint16_t)3), "l"(0x12F0000000000000ull)
                 : "memory");
}
/* Copies `bytes`, a multiple of 16, from global to shared memory, both 16-byte aligned; reported to an mbarrier. */
static __device__ __forceinline__ void fsi_copy_bytes(uint32_t to, const void *from, int bytes, uint32_t mbarrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(mbarrier)
                 : "memory");
}
/* The same into both thread blocks of a cluster of two. */
static __device__ __forceinline__ void fsi_copy_bytes_to_both(uint32_t to, const void *from, int bytes,
                                                              uint32_t mbarrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(mbarrier), "h"((uint16_t)3)
                 : "memory");
}
/* fsi_copy16_part and fsi_copy16 of what is read once, with the same policy. */
static __device__ __forceinline__ void fsi_copy16_once(uint32_t to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(to), "l"(from), "r"(bytes),
                 "l"(0x12F0000000000000ull)
                 : "memory");
}
static __device__ __forceinline__ void fsi_copy16_whole(uint32_t to, const void *from)
{
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "l"(0x12F0000000000000ull)
                 : "memory");
}
/* A tensor map of the kernel's arguments is fetched before it is needed. */
static __device__ __forceinline__ void fsi_fetch_map(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}
/* Whether the phase of this parity has ended; does not wait. */
static __device__ __forceinline__ bool fsi_mbarrier_test(uint32_t at, int parity)
{
    int ended;
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p;}"
                 : "=r"(ended)
                 : "r"(at), "r"(parity)
                 : "memory");
    return ended;
}
/* Waits for the end of the phase of this parity. */
static __device__ __forceinline__ void fsi_mbarrier_wait(uint32_t at, int parity)
{
    asm volatile("{.reg .pred p;\n"
                 "again%=: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@p bra done%=;\n"
                 "bra again%=;\n"
                 "done%=: }" ::"r"(at),
                 "r"(parity)
                 : "memory");
}
/* Thread blocks of a cluster: this one's number among them, a barrier of all their threads, which orders shared memory,
 * and four floats at a shared address of another. */
static __device__ __forceinline__ int fsi_cluster_rank(void)
{
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
static __device__ __forceinline__ void fsi_cluster_barrier(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}
/* The same without ordering of memory, for data that have been read from another thread block and used. */
static __device__ __forceinline__ void fsi_cluster_meet(void)
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n"
                 "barrier.cluster.wait.aligned;" ::
                     : "memory");
}
static __device__ __forceinline__ float4 fsi_cluster_float4(uint32_t at, int rank)
{
    float4 x;
    asm volatile("{.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [there]; }"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(at), "r"(rank)
                 : "memory");
    return x;
}
/* A shared address of this thread block as that of thread block `rank`. */
static __device__ __forceinline__ uint32_t fsi_cluster_address(uint32_t at, int rank)
{
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}
/* Four floats to such an address, reported to an mbarrier there, under a predicate (as fsi_shared_put4). */
static __device__ __forceinline__ void fsi_cluster_send4(bool so, uint32_t there, float4 x, uint32_t mbarrier)
{
    asm volatile(
        "{.reg .pred p; setp.ne.u32 p, %6, 0;\n"
        "@p st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1,%2,%3,%4}, [%5]; }" ::"r"(
            there),
        "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w), "r"(mbarrier), "r"((uint32_t)so)
        : "memory");
}
/* A barrier of all threads of a cluster in two halves: code behind the second sees the mbarriers that were initialised
 * before the first; nothing else is ordered. */
static __device__ __forceinline__ void fsi_cluster_arrive(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;\n"
                 "barrier.cluster.arrive.relaxed.aligned;" ::
                     : "memory");
}
static __device__ __forceinline__ void fsi_cluster_await(void)
{
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
static __device__ __forceinline__ void fsi_cluster_begin(void)
{
    fsi_cluster_arrive();
    fsi_cluster_await();
}
/* Arrives at the mbarrier of thread block `rank` of the cluster.  Earlier reads are ordered before it, earlier writes
 * are not: that would take a fence of the whole GPU. */
static __device__ __forceinline__ void fsi_mbarrier_arrive_in(int rank, uint32_t at)
{
    asm volatile("{.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(at),
                 "r"(rank)
                 : "memory");
}
/* Registers released by, and added to, a warpgroup. */
template <int N> static __device__ __forceinline__ void fsi_fewer_registers(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> static __device__ __forceinline__ void fsi_more_registers(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

static __device__ __forceinline__ void fsi_wgmma_fence(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
static __device__ __forceinline__ void fsi_wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N> static __device__ __forceinline__ void fsi_wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
/* Shared memory written by ordinary stores becomes visible to wgmma. */
static __device__ __forceinline__ void fsi_proxy_fence(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* wgmma's view of a K-major operand: rows of 128 bytes, 128-byte swizzle, 1024 bytes from 8 rows to the next 8. */
static __device__ __forceinline__ uint64_t fsi_wgmma_operand(uint32_t at)
{
    return (uint64_t)((at & 0x3FFFF) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

#define FSI_WGMMA_64X32X16(type) \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %21, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type " {" \
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15" \
                 "}, {%16,%17,%18,%19}, %20, p, 1, 1, 0;}" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), \
                   "+f"(d[15]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep))
#define FSI_WGMMA_64X64X16(type) \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %37, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" \
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
                 "%25,%26,%27,%28,%29,%30,%31" \
                 "}, {%32,%33,%34,%35}, %36, p, 1, 1, 0;}" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), \
                   "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), \
                   "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), \
                   "+f"(d[29]), "+f"(d[30]), "+f"(d[31]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep))
#define FSI_WGMMA_64X128X16(type) \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %69, 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" \
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
                 "%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63" \
                 "}, {%64,%65,%66,%67}, %68, p, 1, 1, 0;}" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), \
                   "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), \
                   "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), \
                   "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), \
                   "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), \
                   "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), \
                   "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), \
                   "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep))

#define FSI_WGMMA_SPARSE_64X64X32(type) \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %38, 0;\n" \
                 "wgmma.mma_async.sp.sync.aligned.m64n64k32.f32." type "." type " {" \
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
                 "%25,%26,%27,%28,%29,%30,%31" \
                 "}, {%32,%33,%34,%35}, %36, %37, 0, p, 1, 1, 1;}" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), \
                   "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), \
                   "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), \
                   "+f"(d[29]), "+f"(d[30]), "+f"(d[31]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(places), "r"(keep))

/* wgmma, queued: d = a b, plus d if `keep`, 64 x N x 16, N = 32, 64 or 128; a in registers, b in shared memory. */
template <int HALF, int N>
static __device__ __forceinline__ void fsi_wgmma(float *d, const uint32_t (&a)[4], uint64_t b, int keep)
{
    if (N == 32 && HALF) FSI_WGMMA_64X32X16("f16");
    else if (N == 32) FSI_WGMMA_64X32X16("bf16");
    else if (N == 64 && HALF) FSI_WGMMA_64X64X16("f16");
    else if (N == 64) FSI_WGMMA_64X64X16("bf16");
    else if (HALF) FSI_WGMMA_64X128X16("f16");
    else FSI_WGMMA_64X128X16("bf16");
}
/* The same for N = 64 and K = 32, of a sparse a: two elements of each four neighbours along K, in order, and in
 * `places` the numbers of both among the four, two bits each.  64 neighbours along N, not along K, are a row of 128
 * bytes of b. With r = lane / 4, a thread has rows r and r + 8 of the 16 of its warp: in a[2 h + i] row r + 8 i, four
 * 4 h + lane % 4, the first element in the lower half; in bits 16 i + 4 j ... 16 i + 4 j + 3 of `places`, of which
 * only those of lanes 0 and 1 of four are read, row r + 8 i, four 4 (lane % 2) + j, the first number in the lower
 * bits.  (PTX ISA, "Matrix Fragments for sparse wgmma.mma_async.m64nNk32"; ALayout_64x32 and ELayout_64x32 of
 * CUTLASS.) */
template <int HALF> static __device__ __forceinline__ void fsi_wgmma_sparse(float *d, const uint32_t (&a)[4],
                                                                            uint32_t places, uint64_t b, int keep)
{
    if (HALF) FSI_WGMMA_SPARSE_64X64X32("f16");
    else FSI_WGMMA_SPARSE_64X64X32("bf16");
}
#endif

#endif
