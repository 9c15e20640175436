/* rows.h - the rows of A, or of A P, as columns in f64, a panel at a time, for every kind of A. */
#ifndef FSI_TASKS_ROWS_H
#define FSI_TASKS_ROWS_H

#include "tasks/operand.h"

typedef struct fsi_rows {
    fsi_operand *A;
    const int64_t *order;  /* the columns of A in the order that is wanted; NULL: as they are */
    int64_t most;          /* rows of a panel */
    int64_t m;             /* columns of P; without P, n */
    double *Z;             /* m x most, packed, in the backend's memory: row i of the panel is column i */
    double *wide;          /* dense rows of A before P; NULL: not needed */
    const double *P;       /* n x m, packed columns: the caller's, or `select`; NULL: not needed */
    double *select;        /* n x n: ones where column j of the wanted order is; NULL: not needed */
    void *order_there;     /* `order` in the backend's memory */
    void *ptr, *ptr_there; /* most + 1 indices of a sparse panel: in host memory, in the backend's */
} fsi_rows;

/* Called with the number of the first row (from this caller's first), the rows, and Z filled.  Z may be spoilt. */
typedef fs_result (*fsi_visit_panel)(void *user, int64_t row0, int64_t rows);

/* Takes the memory; `order` (n numbers in host memory, or NULL) must live as long.  *rows is to be closed, also after a
 * failure. */
fs_result fsi_rows_open(fsi_rows *rows, fsi_operand *A, const int64_t *order);
/* The same for rows of A P; P is n x m, packed columns in the backend's memory, and must live as long. */
fs_result fsi_rows_open_product(fsi_rows *rows, fsi_operand *A, int64_t m, const double *P);
void fsi_rows_close(fsi_rows *rows);

/* One read of A.  A sparse A is never dense in more than a panel; A P is computed from its nonzeros. */
fs_result fsi_rows_visit(fsi_rows *rows, fsi_visit_panel visit, void *user);

/* Memory of the context's allocator, and back; NULL is a no-op. */
fs_result fsi_rows_host(const fsi_operand *A, int64_t count, size_t element, void **memory);
void fsi_rows_release(const fsi_operand *A, void *memory);

#endif
