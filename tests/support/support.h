/* support.h - what the tests share: the sketches that every property is tried on, data that make properties exact, and
 * views of matrices in every layout with guarded buffers.
 *
 * A view's buffer ends where its last element ends, and everything in it that is not an element is NaN in all four
 * types (bytes 0xFF): a kernel that reads past a row, or reads a Y it may not read, is detected. */
#ifndef FSI_TESTS_SUPPORT_SUPPORT_H
#define FSI_TESTS_SUPPORT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "flashsketch_extend.h"

/* Sanitizers make everything several times slower: grids then take every THIN-th case. */
#ifdef FS_TEST_SANITIZED
enum { THIN = 2 };
#else
enum { THIN = 1 };
#endif

/* Fails the test with the library's message unless the call succeeds. */
#define MUST(call) must((call), #call, __FILE__, __LINE__)
void must(fs_result result, const char *call, const char *file, int line);

/* Fails the test unless the call failed with this code and a message that has all these words. */
#define REFUSED(call, code, ...) \
    refused((call), (code), #call, __FILE__, __LINE__, (const char *const[]){__VA_ARGS__, NULL})
void refused(fs_result result, fs_result code, const char *call, const char *file, int line, const char *const *words);

/* sketches -------------------------------------------------------------------------------------------------- */

/* A kind of sketch.  At size k x d all weights of an `exact` one are powers of two, so that on integers S A is
 * exact in every step and properties hold with ==. */
typedef struct recipe {
    const char *name;
    fs_family family;
    fs_shuffle shuffle;
    int64_t M, kappa, s, interleave;
    int64_t d, k;
    int exact;
} recipe;
extern const recipe recipes[];
extern const int recipe_count;

/* The recipe at another size: M, kappa, s, interleave, and k for the SRHT, lowered to what is legal there. */
fs_spec spec_at(const recipe *r, int64_t d, int64_t k, uint64_t seed);
fs_sketch *sketch_of(const fs_spec *spec);

/* Columns col0 ... col0 + cols - 1 of S as fs_sketch_to_csr writes them; sparse_free frees the three arrays. */
fs_sparse export_columns(const fs_sketch *S, int64_t col0, int64_t cols, fs_index_type index, fs_dtype dtype);
void sparse_free(fs_sparse *A);

/* A CSR matrix without repeated indices as a dense row-major one; and so the columns of S, in f64. */
double *dense_of(const fs_sparse *A);
double *columns_of(const fs_sketch *S, int64_t col0, int64_t cols);

/* contexts -------------------------------------------------------------------------------------------------- */

/* The CPU variants; the first is the reference. */
extern const char *const variants[];
extern const int variant_count;

/* A CPU context of a variant; NULL where this processor cannot run it.  threads 0: the default. */
fs_context *context_of(const char *variant, int threads);

/* One context of each variant this processor runs, the reference first; made and freed as a cmocka group begins and
 * ends, so that all tests of a program share them and find their scratch as others left it. */
typedef struct named_context {
    const char *name;
    fs_context *ctx;
} named_context;
extern named_context contexts[];
extern int context_count;
int open_contexts(void **state);
int close_contexts(void **state);

/* data ------------------------------------------------------------------------------------------------------ */

/* Entry i of stream `seed`: 64 random bits; an integer from -limit to limit; a standard normal. */
uint64_t bits_at(uint64_t seed, int64_t i);
double whole_at(uint64_t seed, int64_t i, int64_t limit);
double normal_at(uint64_t seed, int64_t i);

/* views ----------------------------------------------------------------------------------------------------- */

typedef enum layout {
    ROWS,        /* packed row-major */
    COLUMNS,     /* packed column-major, which is batch-major too */
    ROWS_PADDED, /* leading dimensions */
    COLUMNS_PADDED,
    ROWS_SHIFTED, /* starts one element into the buffer: aligned to the element and no more */
    COLUMNS_SHIFTED,
    ROWS_BACKWARD,    /* both strides negative */
    COLUMNS_BACKWARD, /* row stride -1 */
    ROWS_SPREAD,      /* no stride is 1 */
    COLUMNS_SPREAD,
    OUTPUT_LAYOUTS,              /* those below are for inputs only: elements lie on each other */
    ONE_COLUMN = OUTPUT_LAYOUTS, /* column stride 0 */
    ONE_ROW,                     /* row stride 0 */
    INPUT_LAYOUTS
} layout;
extern const char *const layout_names[];

typedef struct view {
    fs_matrix m;
    void *sealed; /* the buffer as view_seal saw it */
} view;

view view_make(layout how, int64_t rows, int64_t cols, fs_dtype dtype);
void view_free(view *v);

double at(const fs_matrix *m, int64_t i, int64_t j);
void put(const fs_matrix *m, int64_t i, int64_t j, double x);
void fill_whole(const fs_matrix *m, uint64_t seed, int64_t limit);
void fill_normal(const fs_matrix *m, uint64_t seed);

/* Remembers the buffer; later fails the test if a byte that is no element has changed, or if any has. */
void view_seal(view *v);
void expect_padding_untouched(const char *what, const view *v);
void expect_untouched(const char *what, const view *v);

/* Fails with the numbers of the first element that differs, `what` in front. */
void expect_equal(const char *what, const fs_matrix *got, const fs_matrix *want);

/* The same for two views made alike, bit by bit. */
void expect_same_bits(const char *what, const view *got, const view *want);

/* |got - want| <= slack, == where slack is 0, element by element; want and slack are row-major doubles. */
void expect_close(const char *what, const fs_matrix *got, const double *want, const double *slack);

/* T X and |T| |X| for a dense row-major T of m x p, or for its transpose p x m when `transposed`: the exact product,
 * and the scale of its rounding errors. */
void product(const double *T, int64_t m, int64_t p, int transposed, const fs_matrix *X, double *value, double *size);

/* The bound on the error of a sum of `terms` products, computed in the sum type of dtype in any order and scaled,
 * when the absolute values of its terms sum to `size`: each of the terms + 4 roundings is at most eps / 2 of it. */
double slack_of(fs_dtype dtype, int64_t terms, double size);

/* A matrix of integers, mostly 0, as a sparse one: indices out of order, a quarter of the entries x stored twice,
 * as x - 1 and 1. */
fs_sparse sparse_of(const fs_matrix *dense, uint64_t seed, fs_sparse_format format, fs_index_type index);

/* Memory for count items, never NULL; free() it. */
void *room(int64_t count, size_t bytes);

#endif
