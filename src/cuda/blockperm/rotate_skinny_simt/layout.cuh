/* layout.cuh - rotate_skinny_simt.cu: the parameters of an instance, shared memory, what a thread block does.  Include
 * it after the list of instances. */
#ifndef FSI_CUDA_BLOCKPERM_ROTATE_SKINNY_SIMT_LAYOUT_CUH
#define FSI_CUDA_BLOCKPERM_ROTATE_SKINNY_SIMT_LAYOUT_CUH

#include "cuda/blockperm/common/tile.cuh"
#include "cuda/runtime/ptx.cuh"

namespace {

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
enum { ASYNC = 1 }; /* there is cp.async */
#else
enum { ASYNC = 0 };
#endif
enum {
    THREADS = FSI_ROTATE_SKINNY_SIMT_THREADS,
    HEIGHT = FSI_ROTATE_SKINNY_SIMT_HEIGHT,
    STAGES = FSI_ROTATE_SKINNY_SIMT_STAGES,
    SPANS = FSI_ROTATE_SKINNY_SIMT_SPANS
};

template <class T, int BYTES> struct kept {
    typedef T type;
};
template <class T> struct kept<T, 6> { /* two bytes that become four */
    typedef float type;
};
template <class ELEMENT, int VECTOR_, int STRATA_> struct shape {
    typedef ELEMENT T;
    typedef typename fsi_sum<T>::type S;
    enum {
        VECTOR = VECTOR_,
        STRATA = STRATA_,
        W = HEIGHT / STRATA,
        WINDOW_BITS = 5 - (STRATA > 2) - (STRATA > 4),
        RAW = VECTOR * (int)sizeof(T), /* bytes of a local row in A, in a slab */
        UNIT = FSI_ROTATE_SKINNY_SIMT_UNIT((int)sizeof(T), VECTOR),
        WIDENS = RAW != UNIT,
        ROWS = FSI_ROTATE_SKINNY_SIMT_ROWS(STRATA, UNIT), /* rows of a lane in a stratum, and times a slab is kept */
        LANES = W / ROWS,
        TASKS = FSI_ROTATE_SKINNY_SIMT_TASKS((int)sizeof(S), VECTOR, STRATA, ROWS),
        SLOTS = THREADS / LANES * TASKS,
        LOAD = ROWS * UNIT, /* bytes of a lane's rows */
        STEP = ROWS * LOAD, /* from those of a lane to those of the next one */
        SLAB = W * UNIT * ROWS,
        QUAD = FSI_ROTATE_SKINNY_SIMT_QUAD((int)sizeof(T), VECTOR, STRATA), /* bytes of four rows; 0: see quads */
        ENTRY = FSI_ROTATE_SKINNY_SIMT_ENTRY(STRATA),
        /* Places of a stratum's rows in a slab are fields of a word: two, or four where an 8-bit field holds them. */
        FIELD = STRATA == 2 ? 16 : 8,
        FIELDS = 32 / FIELD,
        WORDS = STRATA / FIELDS
    };
    typedef typename kept<T, WIDENS ? 6 : 0>::type P;                         /* an element in a slab */
    static constexpr uint32_t EVERY = FIELD == 8 ? 0x01010101u : 0x00010001u; /* times a field: that in every field */
    static_assert(SLAB <= (FIELD == 8 ? 256 : 512), "a place does not fit its field");
};

__device__ __forceinline__ int clamped(int64_t x) { return x < 0 ? 0 : x > 0x7FFFFFFF ? 0x7FFFFFFF : (int)x; }

/* What is the same in all thread blocks. */
struct layout {
    int group, stage, span, span_bits; /* blocks of a thread block; windows of a stage and of a span, 2^span_bits */
    int outputs, chunks, slabs, replicas;
    int window_bytes, stage_bytes, entries; /* of rows; of rotations of a window */
    int next_rows, next_words;              /* bytes to a slot's next window */
    int bytes, step;                        /* of a copy; rounds whose slabs all threads copy together */
    int words, rounds, shares;              /* where they are in shared memory, the stages being the first */
    int zero;                               /* see constants */
    int quads;                              /* where a thread has four rows of A; 0: it copies them one by one */
    int64_t row_stride;                     /* bytes */
};
template <class K> layout layout_of(const fsi_tile_args &a, int64_t groups, int stage)
{
    layout l;
    const int row_bytes = (int)a.n * (int)sizeof(typename K::T);
    l.row_stride = a.row_stride * (int64_t)sizeof(typename K::T);
    const uint64_t grain = (uint64_t)a.data | (uint64_t)l.row_stride | (uint64_t)row_bytes | K::RAW;
    l.group = (int)fsi_div_up(a.B.M, groups), l.stage = stage;
    l.outputs = (int)a.B.kappa * a.outputs.tiles, l.chunks = ((int)a.n + K::VECTOR - 1) / K::VECTOR;
    /* a thread draws at most one window of a span */
    for (l.span_bits = 0;
         K::W << l.span_bits < FSI_ROTATE_SKINNY_SIMT_SPAN && 2 * l.group * l.outputs << l.span_bits <= THREADS;)
        l.span_bits++;
    l.span = 1 << l.span_bits;
    l.slabs = l.group * l.chunks;
    for (l.replicas = 1; 2 * l.replicas * l.slabs * l.outputs <= K::SLOTS && 2 * l.replicas <= l.stage;)
        l.replicas *= 2;
    l.window_bytes = FSI_ROTATE_SKINNY_SIMT_WINDOW(l.slabs, K::ROWS * K::UNIT, K::STRATA);
    l.stage_bytes = l.stage * l.window_bytes, l.entries = l.group * l.outputs * K::ENTRY;
    l.next_rows = l.replicas * l.window_bytes, l.next_words = l.replicas * l.entries;
    l.bytes = grain & 2 ? 2 : grain & 4 ? 4 : grain & 8 ? 8 : 16;
    for (l.step = 1; 2 * l.step * l.slabs <= THREADS;) l.step *= 2;
    l.zero = 0, l.words = STAGES * l.stage_bytes, l.rounds = l.words + 2 * l.span * l.entries;
    l.shares = l.rounds + SPANS * l.span * K::W * (int)sizeof(fsi_round);
    const bool quads = K::QUAD > 0 && a.n == K::VECTOR && a.row_stride == K::VECTOR && a.B.shuffle == FSI_DEF_ROWS &&
                       l.group == a.B.M && l.group % 4 == 0 && l.stage * K::W * l.group <= 4 * THREADS &&
                       ((uint64_t)a.data - (uint64_t)a.row0 * K::RAW) % (K::QUAD > 0 ? K::QUAD : 1) == 0;
    l.quads = quads ? l.shares + THREADS * FSI_ROTATE_SKINNY_SIMT_SHARE : 0;
    return l;
}

/* What a thread block does: blocks h0 ... h0 + blocks - 1, and slice z of their local rows, so many windows.  The slice
 * begins at local row first_local_row(h), a multiple of W. */
struct work {
    int h0, blocks, z, windows;
};
__device__ __forceinline__ bool is_shuffled(const fsi_tile_args &a) { return a.B.shuffle == FSI_DEF_ROWS; }
template <class K> __device__ __forceinline__ int64_t first_local_row(const fsi_tile_args &a, int h, int z)
{
    const fsi_local_rows all = is_shuffled(a) ? a.local_rows : fsi_local_rows_of(&a.B, h, a.row0, a.rows);
    return (all.first & ~(int64_t)(K::W - 1)) + z * a.length;
}
template <class K> __device__ __forceinline__ work work_of(const fsi_tile_args &a, const layout &l)
{
    work w;
    const int M = (int)a.B.M, groups = (M + l.group - 1) / l.group;
    w.h0 = (int)(blockIdx.x % groups) * l.group, w.z = (int)(blockIdx.x / groups);
    w.blocks = min(l.group, M - w.h0);
    int64_t most = 0; /* local rows from the slice's first on */
    for (int b = 0; b < (is_shuffled(a) ? 1 : w.blocks); b++) {
        const fsi_local_rows all = is_shuffled(a) ? a.local_rows : fsi_local_rows_of(&a.B, w.h0 + b, a.row0, a.rows);
        const int64_t rest = all.count > 0 ? all.first + all.count - first_local_row<K>(a, w.h0 + b, w.z) : 0;
        most = rest > most ? rest : most;
    }
    if (w.z + 1 < a.slices && most > a.length) most = a.length;
    w.windows = (int)((most + K::W - 1) / K::W);
    return w;
}

/* A slab is kept ROWS times, so that a lane loads its rows at once: local row v is in copy c at place (v + c) mod W.
 * ROWS neighbouring places are those of a lane; these of all copies lie side by side.  Those of lane i are at i ^
 * order of the slab: copies of a round write the same v of successive slabs. */
template <class K> __device__ __forceinline__ uint32_t order_of(const layout &l, int slab)
{
    constexpr int BESIDE = 128 / K::SLAB > 1 ? 128 / K::SLAB : 1,
                  AT = 128 / K::STEP < K::LANES ? 128 / K::STEP : K::LANES;
    return l.quads ? 0 : (slab / BESIDE & (AT - 1)) * K::STEP;
}
template <class K> __device__ __forceinline__ uint32_t place_of(uint32_t v, uint32_t c)
{
    const uint32_t place = (v + c) & (K::W - 1);
    return place / K::ROWS * K::STEP + c * K::LOAD + place % K::ROWS * K::UNIT;
}

/* VECTOR elements in words, as sums. */
template <class T, int VECTOR, class S> __device__ __forceinline__ void widen(const uint32_t *x, S (&y)[VECTOR])
{
#pragma unroll
    for (int v = 0; v < VECTOR; v++)
        if constexpr (sizeof(T) == 8) y[v] = __hiloint2double((int)x[2 * v + 1], (int)x[2 * v]);
        else if constexpr (sizeof(T) == 4) y[v] = __uint_as_float(x[v]);
        else y[v] = fsi_widen(((const T *)x)[v]);
}

}  // namespace

#endif
