/* rows.h - a matrix whose rows are spread over ranks, for tests of the solvers: each rank has all of A and its rows. */
#ifndef FSI_TESTS_MPI_ROWS_H
#define FSI_TESTS_MPI_ROWS_H

#include "check.h"

/* How rows are spread. */
typedef enum distribution { EVEN, UNEVEN, BACKWARDS, EMPTY, DISTRIBUTIONS } distribution;

/* This rank's rows of d: from *row0 on, *rows of them.  UNEVEN: the last rank has most; BACKWARDS: the last rank has
 * row 0; EMPTY: the ranks but one have none, or where there are two, rank 0. */
void rows_of(distribution how, int64_t d, int64_t *row0, int64_t *rows);

/* The forms of A, all of the same elements. */
typedef enum form { DENSE_ROWS, DENSE_COLUMNS, SPARSE_ROWS, SPARSE_COLUMNS, SLICES, SPARSE_SLICES, FORMS } form;

/* Rows of A as an operand; what it points to lives until part_free.  Slices have at most 37 rows. */
typedef struct part {
    fs_operand operand;
    fs_matrix dense;
    fs_sparse sparse;
    fs_slices slices;
    int64_t at, reads;         /* of slices: the next row, reads begun */
    int64_t fails_at, dies_at; /* the read whose second slice fails, or in which the process ends; 0: none */
    int sparse_slices;
    fs_sparse slice;
    void *copy; /* packed columns */
} part;
void part_make(part *p, form how, const fs_matrix *whole, int64_t row0, int64_t rows);
void part_free(part *p);

/* `bytes` are the same on all ranks. */
void expect_same(const char *what, const void *data, size_t bytes);

/* |got - want| <= bound * max |want|, elementwise; two NaN are equal. */
void expect_near(const char *what, const double *got, const double *want, int64_t count, double bound);

#endif
