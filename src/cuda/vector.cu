/* vector.cu - BlockPerm-SJLT of few columns, dealt rows: A is read in memory order and dealt in shared memory.
 *
 * Formulation.  With few columns a row of A is short, and a block's rows, one of every round, lie far apart: reading them
 * block by block fetches each sector many times, and every row draws its own random numbers.  Here a thread block takes whole
 * rounds as they lie in memory, so that four rows share a Philox call, and puts each row's word and elements where its input
 * block will look for them; then every warp adds up the rows of one block.  A lane has a tile of sums of its own (64 rows), so
 * nothing is atomic; lanes that share a column take different rounds and are added in order at the end.
 *
 * grid     groups of blocks x parts of A's rounds, in this order, in x
 * threads  a warp for each block of a group
 * shared   sums: a group's blocks x 64 rows x 32 lanes; of a tile of rounds: where each round begins, where each row goes, the
 *          rows' words and their elements, by block
 * needs    dealt rows, kappa = 1, at most 32 columns, blocks of at most 64 rows whose nonzeros fit one word; no f64 */
#include "instances.h"
#include "ptx.cuh"
#include "tile.cuh"

namespace {

enum { HEIGHT = 64 };

template <class T>
__global__ void __launch_bounds__(512) vector(const __grid_constant__ fs_tile_args a, int blocks_at_once, int rounds_at_once,
                                              int lanes)
{
    extern __shared__ __align__(16) char shared[];
    const int tid = threadIdx.x, threads = blockDim.x, warp = tid >> 5, lane = tid & 31;
    const int M = (int)a.B.M, n = (int)a.n, groups = (M + blocks_at_once - 1) / blocks_at_once;
    const int block0 = (int)(blockIdx.x % groups) * blocks_at_once, z = (int)(blockIdx.x / groups);
    const int blocks = M - block0 < blocks_at_once ? M - block0 : blocks_at_once;
    const int64_t begin = a.slots.first + z * a.length, all = a.slots.first + a.slots.count;
    const int64_t end = begin + a.length < all ? begin + a.length : all;
    const bool across = a.col_stride == 1 || n == 1, even = a.B.out.larger == 0;
    auto height_of = [&](int b) {  /* rows of the block of Y that block b of the group feeds */
        return even ? a.B.out.small : fs_split_size(&a.B.out, fs_output_block(a.B, block0 + b, 1));
    };
    float *sums = (float *)shared;
    float *elements = sums + blocks_at_once * HEIGHT * 32;
    uint32_t *words = (uint32_t *)(elements + blocks_at_once * rounds_at_once * lanes);
    int *turns = (int *)(words + blocks_at_once * rounds_at_once), *places = turns + rounds_at_once;
    for (int i = tid; i < blocks_at_once * HEIGHT * 32; i += threads) sums[i] = 0.0f;
    fs_start_next_kernel();

    for (int64_t u = begin; u < end; u += rounds_at_once) {
        const int rounds = (int)(end - u < rounds_at_once ? end - u : rounds_at_once), rows = rounds * M;
        const int64_t column0 = u * M;  /* of S: row column0 - row0 of the piece */
        /* 1. where each round begins; words and elements of rows that are not there are 0, which adds nothing */
        __syncthreads();
        for (int i = tid; i < rounds; i += threads) turns[i] = (int)fs_blockperm_turn(&a.B, u + i);
        for (int i = tid; i < blocks * rounds_at_once * lanes; i += threads) elements[i] = 0.0f;
        __syncthreads();
        /* 2. where each row goes, and its word: four neighbours share a draw */
        const int lead = (int)(column0 & 3);
        for (int i = 4 * tid - lead; i < rows; i += 4 * threads) {
            const fs_quad quad = fs_blockperm_quad(&a.B, (column0 + i) >> 2, 1, 0);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int row = i + j;
                if (row < 0 || row >= rows) continue;
                const int round = row / M;
                const int b = (int)fs_blockperm_deal(&a.B, row - round * M, turns[round]) - block0;
                const int place = b >= 0 && b < blocks ? b * rounds_at_once + round : -1;
                places[row] = place;
                if (place < 0) continue;
                const int64_t block_rows = height_of(b);
                words[place] = a.B.accepts[block_rows > a.B.out.small]
                                   ? quad.w[j] : fs_blockperm_word(&a.B, column0 + row, 1, 0, block_rows);
            }
        }
        __syncthreads();
        /* 3. the elements, in the order of memory */
        const int64_t first_row = column0 - a.row0;
        for (int i = tid; i < rows * n; i += threads) {
            const int row = across ? i / n : i % rows, c = across ? i - row * n : i / rows;
            const int64_t at = first_row + row;
            if (places[row] >= 0 && at >= 0 && at < a.rows)
                elements[places[row] * lanes + c] = fs_widen(((const T *)a.data)[at * a.row_stride + c * a.col_stride]);
        }
        __syncthreads();
        /* 4. each warp adds the rows of its block, 32 / lanes rounds at a time */
        if (warp < blocks) {
            const int64_t block_rows = height_of(warp);
            const fs_split parts = a.B.parts[block_rows > a.B.out.small];
            float *mine = sums + warp * HEIGHT * 32 + lane;
            const int s = (int)a.B.s;
            for (int r = lane / lanes; r < rounds; r += 32 / lanes) {
                const int place = warp * rounds_at_once + r;
                uint32_t word = words[place];
                const float x = elements[place * lanes + lane % lanes];
                for (int t = 0; t < s; t++) {
                    const uint32_t code = fs_blockperm_next(&parts, t, &word);
                    const float signed_x = __uint_as_float(__float_as_uint(x) ^ code << 31);
                    mine[(code >> 1) * 32] += signed_x;
                }
            }
        }
    }

    /* 5. the lanes of a column added in order, and out */
    __syncthreads();
    const fs_output to = fs_plane(a, 1, z);
    for (int i = tid; i < blocks * HEIGHT * n; i += threads) {
        const int c = i % n, r = i / n % HEIGHT, b = i / n / HEIGHT;
        const uint32_t g = fs_output_block(a.B, block0 + b, 1);
        if (r >= fs_split_size(&a.B.out, g)) continue;
        const float *at = sums + (b * HEIGHT + r) * 32 + c;
        float sum = at[0];
        for (int p = lanes; p < 32; p += lanes) sum += at[p];
        fs_output_put(to, fs_split_start(&a.B.out, g) + r, c, sum);
    }
}

}  // namespace

#define KERNEL(T, dtype) (const void *)vector<T>,
extern "C" const void *const fs_vector_kernels[] = {FS_VECTOR(KERNEL)};
