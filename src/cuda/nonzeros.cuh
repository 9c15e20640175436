/* nonzeros.cuh - the nonzeros of a window of S as a sorted list in device memory, and products made from it.
 *
 * Kernels that cannot find their nonzeros by themselves (a row of an SJLT, a column of FlashBlockRow) get them from
 * a list.  Every nonzero is one 64-bit word
 *     major << (minor_bits + 1)  |  minor << 1  |  (1 if its sign is minus)
 * with major and minor its row and column, or the other way round, counted from the corner of the window.  The list
 * is made in a fixed order and sorted by a stable radix sort, so the order of sums made from it is fixed too. */
#ifndef FS_CUDA_NONZEROS_CUH
#define FS_CUDA_NONZEROS_CUH

#include "element.cuh"
#include "gpu.h"

/* Parts of one scratch request: a plan calls fs_take for each part, the address is base + what it returned. */
static inline int64_t fs_take(int64_t *bytes, int64_t size)
{
    const int64_t at = *bytes;
    *bytes += fs_div_up(size, 256) * 256;
    return at;
}

/* Bits of the number x, at least 1. */
static inline int fs_bits(uint64_t x)
{
    int bits = 1;
    while (bits < 64 && x >> bits) bits++;
    return bits;
}

/* A launch whose threads loop over `items` in steps of the grid: FS_LOOP(gpu, kernel, items)(arguments), and in the
 * kernel
 *     for (int64_t x = fs_first_item(); x < items; x += fs_item_step()) */
enum { FS_LOOP_THREADS = 256 };
#define FS_LOOP(gpu, kernel, items) kernel<<<fs_loop_blocks(items), FS_LOOP_THREADS, 0, (gpu)->stream>>>
static inline unsigned fs_loop_blocks(int64_t items)
{
    const int64_t blocks = fs_div_up(items, FS_LOOP_THREADS);
    return (unsigned)(blocks < 1 ? 1 : blocks > 1 << 20 ? 1 << 20 : blocks);
}
static __device__ __forceinline__ int64_t fs_first_item(void)
{
    return (int64_t)blockIdx.x * FS_LOOP_THREADS + threadIdx.x;
}
static __device__ __forceinline__ int64_t fs_item_step(void) { return (int64_t)gridDim.x * FS_LOOP_THREADS; }

/* The first of `count` ascending words that is at least x; count if none is. */
static __device__ __forceinline__ int64_t fs_lower_bound(const uint64_t *word, int64_t count, uint64_t x)
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

/* Words and what sorting them needs: two buffers, one of which holds the words at any time. */
typedef struct fs_words {
    uint64_t *now, *other;
    void *work;
    int64_t now_at, other_at, work_at;
    size_t work_bytes;
} fs_words;

/* Takes scratch for `capacity` words; later, the addresses. */
fs_result fs_words_plan(fs_gpu *gpu, int64_t capacity, fs_words *words, int64_t *bytes);
void fs_words_place(fs_words *words, void *scratch);

/* Sorts the first `count` words by their bits from ... to - 1; words that agree in them keep their order. */
fs_result fs_words_sort(fs_gpu *gpu, fs_words *words, int64_t count, int from, int to);

/* Rows row0 ... row0 + rows - 1 and columns col0 ... col0 + cols - 1 of S. */
typedef struct fs_window { int64_t row0, rows, col0, cols; } fs_window;

/* FS_BY_ROW: by row, and by column within a row.  FS_BY_COLUMN: by column, and by row within a column.  Draws of
 * FlashBlockRow that repeat an element stay apart, in the order of drawing. */
typedef enum fs_order { FS_BY_ROW, FS_BY_COLUMN } fs_order;

typedef struct fs_nonzeros {
    fs_order order;
    int minor_bits;
    int64_t majors;   /* rows, or columns, of the window */
    int64_t count;    /* words; draws outside the window are among them, at the end, with major = majors */
    fs_words words;
    int64_t *start;   /* words start[m] ... start[m + 1] - 1 have major m, m < majors; NULL if not asked for */
    int64_t start_at;
} fs_nonzeros;

/* How many words a window has: BlockPerm-SJLT's columns, FlashBlockRow's rows times kappa s. */
int64_t fs_nonzeros_count(const fs_def *S, fs_window window);

/* Takes scratch for the list of a window, or of any that is not larger either way.  A BlockPerm-SJLT's window has
 * all rows, and its order is FS_BY_ROW.  fs_bits(majors) + fs_bits(minors - 1) must be at most 63. */
fs_result fs_nonzeros_plan(fs_gpu *gpu, const fs_def *S, fs_window largest, fs_order order, int with_start,
                           fs_nonzeros *list, int64_t *bytes);
void fs_nonzeros_place(fs_nonzeros *list, void *scratch);

/* Queues the making of the list of a window. */
fs_result fs_nonzeros_fill(fs_gpu *gpu, const fs_def *S, fs_window window, fs_nonzeros *list);

/* FlashBlockRow's weights: columns below `heavy` weigh weight[1], the others weight[0]; weight[1] is 0 if there are
 * none.  The other families have weight[0] = scale. */
typedef struct fs_gpu_weights { double weight[2]; int64_t heavy; } fs_gpu_weights;
fs_gpu_weights fs_gpu_weights_of(const fs_def *S);

/* The sums of both weights, weighed and added with the roundings of the CPU variants. */
static __device__ __forceinline__ float fs_weigh(const double *factor, float light, float heavy)
{
    return __fadd_rn(__fmul_rn((float)factor[0], light), __fmul_rn((float)factor[1], heavy));
}
static __device__ __forceinline__ double fs_weigh(const double *factor, double light, double heavy)
{
    return __dadd_rn(__dmul_rn(factor[0], light), __dmul_rn(factor[1], heavy));
}

/* to[m, :] = beta to[m, :] + factor sum of +-from[minor, :] over the words of major m, for every m < list->majors.
 * The product may come in several lists: `first` starts the sums, `last` writes `to`; in between they are in `sums`,
 * a matrix of the sum type, which may be `to` itself when beta is 0 and is not used when first and last are both
 * set. */
typedef struct fs_gather {
    const fs_nonzeros *list;
    fs_matrix from, to, sums;
    int first, last;
    double beta, factor, heavy_factor;
    int64_t heavy;    /* rows of `to` below this have heavy_factor instead */
} fs_gather;
fs_result fs_gpu_gather(fs_gpu *gpu, const fs_gather *gather);

/* Where sums wait between lists: in `to` where that loses nothing, otherwise in scratch.  The plan returns the place in
 * scratch, -1 for none; fs_sums_at turns it into a matrix. */
static inline int64_t fs_sums_plan(const fs_matrix *to, int64_t rows, int64_t cols, double beta, fs_dtype sum,
                                   int lists, int64_t *bytes)
{
    if (lists < 2 || (beta == 0.0 && to->dtype == sum)) return -1;
    return fs_take(bytes, rows * cols * fs_dtype_size(sum));
}
static inline fs_matrix fs_sums_at(const fs_matrix *to, int64_t cols, fs_dtype sum, int64_t at, void *scratch)
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
static inline fs_matrix fs_matrix_from(const fs_matrix *m, int64_t i, int64_t j)
{
    fs_matrix part = *m;
    part.data = (char *)m->data + (i * m->row_stride + j * m->col_stride) * fs_dtype_size(m->dtype);
    part.rows -= i;
    part.cols -= j;
    return part;
}

#endif
