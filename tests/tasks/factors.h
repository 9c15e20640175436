/* factors.h - what the tests of fs_qr share: a factorization, and everything that must hold of one. */
#ifndef FSI_TESTS_TASKS_FACTORS_H
#define FSI_TESTS_TASKS_FACTORS_H

#include "tests/support/problems.h"
#include "tests/support/sources.h"

typedef struct answer {
    view Q, R;
    int64_t *pivots;
    fs_qr_report report;
} answer;
answer answer_make(int64_t d, int64_t n, fs_dtype dtype);
void answer_free(answer *a);

fs_qr_options options_of(int pivot);

/* fs_qr into *a. */
fs_result factor(fs_context *ctx, const fs_operand *A, const fs_qr_options *o, answer *a);

/* |Q'Q - I|_F, columns from `rank` on being 0; the rounding of its own sums does not count. */
double unorthogonality(const fs_matrix *Q, int64_t rank);
/* |A(:, J) - Q R|_F over |A|_F. */
double misfit(const fs_matrix *A, const answer *a, int pivoted);
/* Fail the test unless R is upper triangular of this rank, pivots a permutation. */
void expect_triangle(const fs_matrix *R, int64_t rank);
void expect_permutation(const int64_t *pivots, int64_t n);

/* A of singular values from 1 to 1 / condition in a layout and type. */
view matrix_of(layout how, int64_t d, int64_t n, fs_dtype dtype, double condition);

/* Whole numbers, mostly 0; the first rows are those of I, so that it has full rank. */
view whole_matrix(int64_t d, int64_t n, fs_dtype dtype);

/* Everything that a factorization is.  `what` begins every message. */
void expect_factors(const char *what, const fs_matrix *A, const answer *a, int pivot);

/* Runs fs_qr, Q of type dtype, and checks it; returns the rank. */
int64_t check_qr(const char *what, const fs_matrix *A, int pivot, fs_dtype dtype);

#endif
