/* nonzeros.cuh - the nonzeros of a window of S as a sorted list in device memory, and products made from it.
 *
 * Kernels that cannot compute their nonzeros (a row of an SJLT, a column of FlashBlockRow) read them from a list.
 * Every nonzero is one 64-bit word
 *     major << (minor_bits + 1)  |  minor << 1  |  (1 if its sign is minus)
 * with major and minor its row and column, or the other way round, counted from the corner of the window.  The list
 * is made in a fixed order and sorted by a stable radix sort, so the order of sums made from it is fixed too. */
#ifndef FSI_CUDA_FAMILIES_NONZEROS_CUH
#define FSI_CUDA_FAMILIES_NONZEROS_CUH

#include "cuda/runtime/element.cuh"
#include "cuda/runtime/gpu.h"

/* Slices of one scratch request: a plan calls fsi_take for each slice, the address is base + what it returned. */
static inline int64_t fsi_take(int64_t *bytes, int64_t size)
{
    const int64_t at = *bytes;
    *bytes += fsi_round_up(size, 256);
    return at;
}

/* Bits of the number x, at least 1. */
static inline int fsi_bits(uint64_t x)
{
    int bits = 1;
    while (bits < 64 && x >> bits) bits++;
    return bits;
}

/* A launch whose threads loop over `items` in steps of the grid: FSI_LOOP(gpu, kernel, items)(arguments), and in the
 * kernel
 *     for (int64_t x = fsi_first_item(); x < items; x += fsi_item_step()) */
enum { FSI_LOOP_THREADS = 256 };
#define FSI_LOOP(gpu, kernel, items) kernel<<<fsi_loop_blocks(items), FSI_LOOP_THREADS, 0, (gpu)->stream>>>
static inline unsigned fsi_loop_blocks(int64_t items)
{
    const int64_t blocks = fsi_div_up(items, FSI_LOOP_THREADS);
    return (unsigned)(blocks < 1 ? 1 : blocks > 1 << 20 ? 1 << 20 : blocks);
}
static __device__ __forceinline__ int64_t fsi_first_item(void)
{
    return (int64_t)blockIdx.x * FSI_LOOP_THREADS + threadIdx.x;
}
static __device__ __forceinline__ int64_t fsi_item_step(void) { return (int64_t)gridDim.x * FSI_LOOP_THREADS; }

/* The first of `count` ascending words that is at least x; count if none is. */
static __device__ __forceinline__ int64_t fsi_lower_bound(const uint64_t *word, int64_t count, uint64_t x)
{
    int64_t low = 0;
    while (count > 0) {
        const int64_t half = count / 2;
        if (word[low + half] < x) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low;
}

/* Words and the memory for sorting them: two buffers, one of which holds the words at any time. */
typedef struct fsi_words {
    uint64_t *now, *other;
    void *work;
    int64_t now_at, other_at, work_at;
    size_t work_bytes;
} fsi_words;

/* Takes scratch for `capacity` words; later, the addresses. */
fs_result fsi_words_plan(fsi_gpu *gpu, int64_t capacity, fsi_words *words, int64_t *bytes);
void fsi_words_place(fsi_words *words, void *scratch);

/* Sorts the first `count` words by their bits from ... to - 1; words that agree in them keep their order. */
fs_result fsi_words_sort(fsi_gpu *gpu, fsi_words *words, int64_t count, int from, int to);

/* Rows row0 ... row0 + rows - 1 and columns col0 ... col0 + cols - 1 of S. */
typedef struct fsi_window {
    int64_t row0, rows, col0, cols;
} fsi_window;

/* FSI_BY_ROW: by row, and by column within a row.  FSI_BY_COLUMN: by column, and by row within a column.  Draws of
 * FlashBlockRow that repeat an element stay apart, in the order of drawing. */
typedef enum fsi_order { FSI_BY_ROW, FSI_BY_COLUMN } fsi_order;

typedef struct fsi_nonzeros {
    fsi_order order;
    int minor_bits;
    int64_t majors; /* rows, or columns, of the window */
    int64_t count;  /* words; draws outside the window are among them, at the end, with major = majors */
    fsi_words words;
    int64_t *start; /* words start[m] ... start[m + 1] - 1 have major m, m < majors; NULL if not asked for */
    int64_t start_at;
} fsi_nonzeros;

/* How many words a window has: BlockPerm-SJLT's columns, FlashBlockRow's rows times kappa s. */
int64_t fsi_nonzeros_count(const fsi_def *S, fsi_window window);

/* Takes scratch for the list of a window, or of any that is not larger either way.  A BlockPerm-SJLT's window has
 * all rows, and its order is FSI_BY_ROW.  fsi_bits(majors) + fsi_bits(minors - 1) must be at most 63. */
fs_result fsi_nonzeros_plan(fsi_gpu *gpu, const fsi_def *S, fsi_window largest, fsi_order order, int with_start,
                            fsi_nonzeros *list, int64_t *bytes);
void fsi_nonzeros_place(fsi_nonzeros *list, void *scratch);

/* Queues the kernels that build the list of a window. */
fs_result fsi_nonzeros_fill(fsi_gpu *gpu, const fsi_def *S, fsi_window window, fsi_nonzeros *list);

/* FlashBlockRow's weights: columns below `heavy` weigh weight[1], the others weight[0]; weight[1] is 0 if there are
 * none.  The other families have weight[0] = scale. */
typedef struct fsi_gpu_weights {
    double weight[2];
    int64_t heavy;
} fsi_gpu_weights;
fsi_gpu_weights fsi_gpu_weights_of(const fsi_def *S);

/* The sums of both weights, weighted and added with the roundings of the CPU variants. */
static __device__ __forceinline__ float fsi_weigh(const double *factor, float light, float heavy)
{
    return __fadd_rn(__fmul_rn((float)factor[0], light), __fmul_rn((float)factor[1], heavy));
}
static __device__ __forceinline__ double fsi_weigh(const double *factor, double light, double heavy)
{
    return __dadd_rn(__dmul_rn(factor[0], light), __dmul_rn(factor[1], heavy));
}

/* to[m, :] = beta to[m, :] + factor sum of +-from[minor, :] over the words of major m, for every m < list->majors.
 * The product may come in several lists: `first` starts the sums, `last` writes `to`; in between they are in `sums`,
 * a matrix of the sum type, which may be `to` itself when beta is 0 and is not used when first and last are both
 * set. */
typedef struct fsi_gather {
    const fsi_nonzeros *list;
    fs_matrix from, to, sums;
    int first, last;
    double beta, factor, heavy_factor;
    int64_t heavy; /* rows of `to` below this have heavy_factor instead */
} fsi_gather;
fs_result fsi_gpu_gather(fsi_gpu *gpu, const fsi_gather *gather);

/* Where sums are kept between lists: in `to` where that loses nothing, otherwise in scratch.  The plan returns the
 * offset in scratch, -1 for none; fsi_sums_at makes a matrix of it. */
static inline int64_t fsi_sums_plan(const fs_matrix *to, int64_t rows, int64_t cols, double beta, fs_dtype sum,
                                    int lists, int64_t *bytes)
{
    if (lists < 2 || (beta == 0.0 && to->dtype == sum)) return -1;
    return fsi_take(bytes, rows * cols * fsi_dtype_size(sum));
}
static inline fs_matrix fsi_sums_at(const fs_matrix *to, int64_t cols, fs_dtype sum, int64_t at, void *scratch)
{
    fs_matrix sums = *to;
    if (at < 0) return sums;
    sums.data = (char *)scratch + at;
    sums.row_stride = cols;
    sums.col_stride = 1;
    sums.dtype = sum;
    return sums;
}

/* A matrix from element (i, j) on. */
static inline fs_matrix fsi_matrix_from(const fs_matrix *m, int64_t i, int64_t j)
{
    fs_matrix slice = *m;
    slice.data = (char *)m->data + (i * m->row_stride + j * m->col_stride) * fsi_dtype_size(m->dtype);
    slice.rows -= i;
    slice.cols -= j;
    return slice;
}

#endif
