/* simt_generic.cu - BlockPerm-SJLT by plain additions: a thread owns columns of A and adds their elements to a tile of
 * sums.
 *
 * Formulation.  The tile holds the rows of Y that input block h feeds, for `ls` of the kappa permutations (at most
 * `group`): A is read once for all of them.  The rows and signs of a chunk of local rows are computed by all threads
 * together and kept in shared memory; all columns of a row use the same ones.  A thread adds to its own columns of the
 * tile, so no atomics are needed and every sum has a fixed order.  Where A has few columns the threads are `phases`
 * thread groups that take every phases-th local row into tiles of their own; at the end these
 *         tiles are
 * added in order.
 * Two accesses of shared memory per nonzero: the fastest kernel for few nonzeros (kappa s <= 4 when kappa > 1), for few
 * columns, for f64, and for GPUs without tensor cores for bf16; any stride and alignment.
 *
 * grid     groups of permutations x M x column tiles x slices, in this order, in x
 * threads  `team` threads, VECTOR columns each, x phases
 * shared   a chunk of row numbers and of codes; the tile: ls x block rows x threads x VECTOR sums */
#include "cuda/blockperm/simt_generic_instances.h"
#include "cuda/blockperm/common/launch.cuh"
#include "cuda/runtime/ptx.cuh"
#include "cuda/blockperm/common/tile.cuh"

namespace {

enum { UNROLL = FSI_SIMT_GENERIC_UNROLL };

/* Adds +-x to COUNT distinct rows of the tile: all loads before the first store.  A code is the byte offset of
 * a row and, in bit 31, the sign. */
template <class S, int VECTOR, int COUNT>
__device__ __forceinline__ void add(char *mine, const uint32_t (&code)[COUNT], const pack<S, VECTOR> &x)
{
    pack<S, VECTOR> y[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) y[i] = *(const pack<S, VECTOR> *)(mine + (code[i] & 0x7FFFFFFFu));
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const float sign = __uint_as_float((code[i] & 0x80000000u) | 0x3F800000u);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) y[i].x[v] = (S)sign * x.x[v] + y[i].x[v];
        *(pack<S, VECTOR> *)(mine + (code[i] & 0x7FFFFFFFu)) = y[i];
    }
}

/* Adds a row's elements to the rows of the tile that its codes name. */
template <int NONZEROS, class T, int VECTOR>
__device__ __forceinline__ void add_row(const pack<T, VECTOR> &raw, const uint32_t *code, int per_row, char *mine)
{
    typedef typename fsi_sum<T>::type S;
    pack<S, VECTOR> x;
#pragma unroll
    for (int v = 0; v < VECTOR; v++) x.x[v] = fsi_widen(raw.x[v]);
    if (NONZEROS) {
#pragma unroll
        for (int t = 0; t < NONZEROS; t += 4) {
            const uint4 four = *(const uint4 *)(code + t);
            const uint32_t list[4] = {four.x, four.y, four.z, four.w};
            add<S, VECTOR, 4>(mine, list, x);
        }
    } else {
        int t = 0;
#pragma unroll 1
        for (; t + 4 <= per_row; t += 4) {
            const uint32_t list[4] = {code[t], code[t + 1], code[t + 2], code[t + 3]};
            add<S, VECTOR, 4>(mine, list, x);
        }
#pragma unroll 1
        for (; t < per_row; t++) {
            const uint32_t list[1] = {code[t]};
            add<S, VECTOR, 1>(mine, list, x);
        }
    }
}

template <class T, int VECTOR, int NONZEROS> __global__ void __launch_bounds__(256, 2)
    simt_generic(const __grid_constant__ fsi_tile_args a, int team, int chunk, int group)
{
    typedef typename fsi_sum<T>::type S;
    extern __shared__ __align__(16) char shared[];
    const int tid = threadIdx.x, threads = blockDim.x, phases = threads / team, phase = tid / team;
    fsi_start_next_kernel();
    /* 1. which slice of the work this is; an empty tile, with one row too many for local rows that are empty */
    const fsi_slice p = fsi_slice_of(a, group, team * VECTOR);
    const int after = (int)a.B.kappa - p.l + 1, ls = after < group ? after : group;
    const uint32_t height = (uint32_t)fsi_output_tiles_rows(&a.B, a.outputs), pitch = threads * VECTOR * sizeof(S);
    const int per_tile = (int)fsi_min(a.B.s, (int64_t)a.outputs.bands * a.B.per_band);
    const int per_row = NONZEROS ? NONZEROS : ls * per_tile;
    const uint32_t nowhere = ls * height * pitch;
    uint8_t *tall = (uint8_t *)shared;
    int64_t *offsets = (int64_t *)(shared + FSI_SIMT_GENERIC_HEAD);
    uint32_t *codes = (uint32_t *)(offsets + chunk);
    char *tile = (char *)codes + (((int64_t)chunk * per_row * 4 + 15) & ~15), *mine = tile + tid * VECTOR * sizeof(S);
    for (uint32_t r = 0; r <= ls * height; r++)
#pragma unroll
        for (int v = 0; v < VECTOR; v++) ((S *)(mine + r * pitch))[v] = 0;
    fsi_tall_blocks(a.B, p.h, p.l, ls, tall);
    /* Threads past the last column read the first one and store nothing. */
    const int64_t column = p.column + tid % team * VECTOR;
    const char *data = (const char *)((const T *)a.data + (column < a.n ? column * a.col_stride : 0));

    for (int64_t c = 0; c < p.count; c += chunk) {
        /* 2. offsets and codes of a chunk of local rows */
        __syncthreads();
        for (int i = tid; i < chunk; i += threads) {
            const int64_t row = c + i < p.count ? fsi_local_row_source(&a.B, p.h, p.first + c + i, a.row0, a.rows) : -1;
            offsets[i] = row < 0 ? 0 : row * a.row_stride * (int64_t)sizeof(T);
            uint32_t *code = codes + i * per_row;
            int t = 0;
            if (row >= 0)
                t = fsi_local_row_codes(a.B, p.l, ls, tall, p.band, p.bands_end, p.h, p.first + c + i, pitch, height,
                                        code);
            for (; t < per_row; t++) code[t] = nowhere;
        }
        __syncthreads();
        /* 3. every phases-th local row: the next UNROLL loads in flight while the last ones are added, in order */
        pack<T, VECTOR> raw[UNROLL], ahead[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) ahead[u] = *(const pack<T, VECTOR> *)(data + offsets[phase + u * phases]);
        for (int i = phase; i < chunk; i += UNROLL * phases) {
            const int later = i + UNROLL * phases < chunk ? i + UNROLL * phases : phase;
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                raw[u] = ahead[u];
                ahead[u] = *(const pack<T, VECTOR> *)(data + offsets[later + u * phases]);
            }
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                add_row<NONZEROS>(raw[u], codes + (i + u * phases) * per_row, per_row, mine);
            }
        }
    }

    /* 4. the tiles of all phases added in order, scaled once, stored once */
    __syncthreads();
    const int wide = team * VECTOR, shift = 31 - __clz(wide);         /* a power of two */
    const bool down = a.out.row_stride == 1 && a.out.col_stride != 1; /* neighbours in memory are rows of Y */
    for (int l = 0; l < ls; l++) {
        const fsi_slice its = l ? fsi_slice_for(a, p, p.l + l - 1) : p; /* several permutations: of one tile each */
        const fsi_output to = fsi_partial_sums(a, its.l, p.z);
        for (int i = tid; i < its.tile_rows * wide; i += threads) {
            const int r = down ? i % its.tile_rows : i >> shift, j = down ? i / its.tile_rows : i & (wide - 1);
            if (p.column + j >= a.n) continue;
            const S *at = (const S *)(tile + (l * height + r) * pitch) + j;
            S sum = at[0];
            for (int f = 1; f < phases; f++) sum += at[f * wide];
            fsi_output_put(to, its.output_row + r, p.column + j, sum);
        }
    }
}

}  // namespace

#define KERNEL(T, dtype, vector, nonzeros) (const void *)simt_generic<T, vector, nonzeros>,
static const void *const simt_generic_instances[] = {FSI_SIMT_GENERIC(KERNEL)};

static fs_result launch_simt_generic(fsi_gpu *gpu, const fsi_problem *problem, const fsi_plan *plan,
                                     const fsi_operands *operands)
{
    fsi_tile_launch l;
    FSI_TRY(fsi_tile_launch_open(gpu, problem, plan, operands, &l));
    int team = plan->team, chunk = plan->chunk, group = plan->group;
    void *arguments[] = {&l.args, &team, &chunk, &group};
    return fsi_tile_launch_run(&l, simt_generic_instances[plan->instance], arguments);
}
const fsi_kernel_code fsi_kernel_simt_generic_code = {launch_simt_generic, simt_generic_instances};
