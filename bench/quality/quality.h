/* quality.h - the parts of `fsbench quality`: how well a sketch embeds the columns of inputs that are hard for it,
 * beside a dense Gaussian of the same shape.
 *
 * An input is an orthonormal basis Q (d x n) of the columns of a matrix and a unit residual r orthogonal to it.  A draw
 * is one seed: Z = S [Q r], in f64, and of it
 *
 *   error     max(1 - smallest, largest - 1) of the eigenvalues of (S Q)'S Q: the embedding error
 *   smallest  the smallest of these eigenvalues; the draw is singular below QUALITY_SINGULAR
 *   residual  |A x - b| / |A x* - b| of sketch-and-solve with b - A x* = r: sqrt(1 + |y|^2), y minimises |S Q y - S r|.
 *             r is Student's t with 1.5 degrees of freedom, in the rows of Q and 1024 others: few of its entries have
 *             most of its norm.  None where S Q is singular
 *
 * The Gaussian's distribution does not depend on the input.  It is drawn once for each n and k, from the bidiagonal
 * form of its S Q (gaussian.c), thousands of times.
 *
 * Some inputs have their large rows at distances that depend on the number of blocks M: then on that of the measured
 * sketch, so that each rung is measured on its own worst input.
 *
 * Ranks are of more unit rows, 1024 and 4096: only whether a draw is singular (rank.c).
 *
 * Tails are of |S x|^2 for x with few nonzeros in rows that the assignment to blocks treats alike, beside an SJLT with
 * as many nonzeros a column (tails.c). */
#ifndef FSI_BENCH_QUALITY_QUALITY_H
#define FSI_BENCH_QUALITY_QUALITY_H

#include "bench/randnla/randnla.h"
#include "bench/solve/lapack.h"

#define QUALITY_SINGULAR 1e-9

enum { QUALITY_LIST = 64, QUALITY_MOST_N = 1024, QUALITY_LINE_SEEDS = 64 };

/* rungs.c ---------------------------------------------------------------------------------------------------- */

typedef struct quality_rung {
    const char *name;
    fs_family family;
    fs_quality quality; /* of blockperm; 0: the default */
    int64_t s;          /* of an SJLT */
    int on_request;     /* measured only where it is named */
    fs_shuffle shuffle;
} quality_rung;
extern const quality_rung quality_rungs[];
extern const int quality_rung_count;

/* The full spec of a rung at a shape.  0, or 1 after printing an error message. */
int quality_spec(const quality_rung *rung, int64_t d, int64_t k, uint64_t seed, fs_spec *spec);
/* "blockperm-M64-1-4-rows": the part of a cell's name that is S. */
void quality_spec_label(const fs_spec *spec, char *text, size_t bytes);
/* The names of all rungs that have this S, between spaces. */
void quality_spec_rungs(const fs_spec *spec, char *text, size_t bytes);
/* The smallest k with k / n not below a ratio. */
int64_t quality_k(int64_t n, double ratio);
/* M of a spec; of families without blocks what the default has at this k. */
int64_t quality_blocks(const fs_spec *spec);

/* inputs.c, dense.c, basis.c --------------------------------------------------------------------------------- */

/* An input and its basis.  A maker allocates with quality_matrix_rows and writes A; quality_matrix_finish makes the
 * rest. */
typedef struct quality_matrix {
    int64_t d, n, M;
    uint64_t seed;
    int64_t count;   /* rows that are not zero */
    int64_t *rows;   /* their indices, not in order */
    double *A;       /* count x n by columns: the matrix, then Q */
    int orthonormal; /* the maker has written Q itself */
    double leverage; /* the largest squared norm of a row of Q */
    double *dense;   /* [Q r], d x (n + 1) row-major; NULL where it is sparse */
    fs_sparse sparse;
    int32_t *ptr;
    int32_t *index;
    double *value;
} quality_matrix;

/* Where the large rows of an input are; the groups of the report. */
typedef enum quality_group {
    QUALITY_SPREAD,
    QUALITY_REGULAR,
    QUALITY_SCATTERED,
    QUALITY_FILE,
    QUALITY_GROUPS
} quality_group;
extern const char *const quality_group_names[QUALITY_GROUPS];

typedef struct quality_input {
    const char *name;
    quality_group group;
    int by_blocks; /* depends on M */
    int (*make)(quality_matrix *m, double parameter);
    double parameter;
} quality_input;
extern const quality_input quality_inputs[]; /* the worst for shuffled rows first */
extern const int quality_input_count;

/* Makes [Q r] of an input; M counts only where the input depends on it.  0, or 1 after printing an error message; free
 * it all the same. */
int quality_matrix_make(const lapack *l, const quality_input *input, int64_t n, int64_t M, quality_matrix *m);
/* The same of n columns, drawn at random, of a file.  2: the file has fewer columns that are not zero. */
int quality_matrix_read(const lapack *l, const data_source *source, int64_t n, quality_matrix *m);
void quality_matrix_free(quality_matrix *m);

/* For makers.  Room for `count` nonzero rows of d, A being zero; their indices are 0, 1, ... */
int quality_matrix_rows(quality_matrix *m, int64_t d, int64_t count);
int quality_matrix_finish(const lapack *l, quality_matrix *m);

/* dense.c: makers of matrices without zero rows; their parameters are described there. */
int quality_make_gaussian(quality_matrix *m, double unused);
int quality_make_low_rank(quality_matrix *m, double rank);
int quality_make_hadamard(quality_matrix *m, double drawn);
int quality_make_dct(quality_matrix *m, double unused);
int quality_make_polynomial(quality_matrix *m, double unused);
int quality_make_huge_row(quality_matrix *m, double factor);
int quality_make_block_diagonal(quality_matrix *m, double width);
int quality_make_arrowhead(quality_matrix *m, double unused);
int quality_make_copies(quality_matrix *m, double count);
int quality_make_two_nonzeros(quality_matrix *m, double rows);
int quality_make_one_hot(quality_matrix *m, double steep);
int quality_make_words(quality_matrix *m, double by_term);
int quality_make_student(quality_matrix *m, double freedom);
int quality_make_power_rows(quality_matrix *m, double exponent);
int quality_make_mixed(quality_matrix *m, double unused);

/* draw.c ----------------------------------------------------------------------------------------------------- */

typedef struct quality_draw {
    double error, smallest, residual; /* residual: NaN where S Q is singular */
} quality_draw;

/* A thread's memory. */
typedef struct quality_worker quality_worker;
quality_worker *quality_worker_open(const lapack *l);
void quality_worker_close(quality_worker *w);

/* The draw of one full spec, whose seed counts.  0, or 1 after printing an error message. */
int quality_draw_one(quality_worker *w, const quality_matrix *m, const fs_spec *spec, quality_draw *draw);

/* Draws of the seeds in a list, shared by the workers' threads. */
int quality_draws(quality_worker *const *workers, int count, const quality_matrix *m, const fs_spec *spec,
                  const int *seeds, int seed_count, quality_draw *draws);

/* The value below which a share q of `count` values lies, between neighbours in proportion; NaN counts as the largest.
 * Sorts them. */
double quality_quantile(double *values, int64_t count, double q);

/* gaussian.c ------------------------------------------------------------------------------------------------- */

typedef struct quality_summary {
    int64_t draws;
    double mean, deviation, p95; /* of the error */
    double smallest;             /* median */
    double residual, residual_p95;
} quality_summary;

/* Of a dense Gaussian S, k x d, on n orthonormal columns. */
int quality_gaussian(const lapack *l, int64_t n, int64_t k, int64_t draws, int threads, quality_summary *out);

/* tails.c ---------------------------------------------------------------------------------------------------- */

typedef struct quality_tail {
    int64_t draws;
    double deviation, kurtosis;
    double q99, q999; /* quantiles of |S x|^2 - 1, |x| = 1 */
    double top;       /* mean of the largest thousandth of it: quantiles of few different values jump, this does not */
} quality_tail;

typedef struct quality_shape quality_shape;
extern const int quality_shape_count;
const char *quality_shape_name(int shape);

/* Of x of a shape, its rows placed by M, over seeds and places.  0, or 1 after printing an error message. */
int quality_tail_of(int shape, const fs_spec *spec, int64_t M, int64_t draws, int threads, quality_tail *out);

/* rank.c ----------------------------------------------------------------------------------------------------- */

/* How many draws of the seeds in a list lose a rank of n unit rows, side by side or scattered.  0, or 1 after printing
 * an error message. */
int quality_rank(const lapack *l, const fs_spec *spec, int64_t n, int scattered, const int *seeds, int seed_count,
                 int threads, int *singular);

/* grid.c ----------------------------------------------------------------------------------------------------- */

enum quality_part { QUALITY_EMBEDDING = 1, QUALITY_TAILS = 2, QUALITY_RANK = 4 };

typedef struct quality_options {
    nla_options common; /* threads, quiet, commit, record, sources, first_seed, last_seed */
    char cases[1024], rungs[256];
    int64_t n[QUALITY_LIST];
    double ratios[QUALITY_LIST]; /* k / n */
    int n_count, ratio_count;
    unsigned parts;
    double seconds;
} quality_options;

int quality_grid(const quality_options *o);

#endif
