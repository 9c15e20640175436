/* workspace.h - what the tasks share: the memory of a workspace, and the steps that all of them take.
 *
 * A task is a sequence of calls of dense.h, the same in every memory space.  [Y C] lies in Z transposed and in f64: (n
 * + rhs) x k, column-major, so that Z Z' is the Gram matrix of Y, Y'C and C'C at once. */
#ifndef FSI_TASKS_WORKSPACE_H
#define FSI_TASKS_WORKSPACE_H

#include "core/context.h"
#include "base/error.h"
#include "flashsketch_tasks.h"

struct fs_workspace {
    fs_context *ctx;
    const fsi_dense *dense;
    void *handle;
    fs_task_shape shape;
    int64_t N;       /* n + rhs */
    int64_t pitch;   /* of Z and G: N rounded up, so that columns begin at multiples of 64 bytes */
    int64_t panel;   /* columns of Z, E and F: at least k and n, and rows of A that are read at a time */
    void *memory;    /* all that follows, in the backend's memory */
    void *Y, *C, *Q; /* of the shape's type: k x n, k x rhs, basis x n, packed rows */
    double *Z;       /* N x panel, columns `pitch` apart */
    double *G;       /* N x N, columns `pitch` apart, or n x n packed */
    double *H;       /* n x n */
    double *X, *W;   /* rhs x n each: X transposed */
    double *E, *F;   /* rhs x panel each */
    double *d;       /* 2 N: diagonals */
    double *squares; /* panel */
    double *host;    /* in host memory: room for any of d, squares, and a result that is copied to the host */
    size_t bytes;
    fs_spec made_by; /* the spec of the S that made Y and C; its size is 0 where that is not known */
    int sketched;    /* whether marks 0 and 1 are those of a sketch whose time has not been taken */
    double sketch_seconds;
};

/* Marks: 0 to 1 is the sketch, 2 to 3 the task. */
enum { MARK_SKETCH, MARK_SKETCHED, MARK_TASK, MARK_DONE };

/* Calls a function of the workspace's table: CALL(w, syrk, n, k, ...). */
#define CALL(w, function, ...) FSI_TRY((w)->dense->function((w)->handle, __VA_ARGS__))

/* A pivot of Cholesky's factor below this, relative to its column's length, counts as none.  It is 4 roundings of f32:
 * below that, columns of an f32 matrix cannot be distinguished from dependent ones; and a Gram matrix in f64 is
 * accurate only to the square root of 2^-53, 1e-8. */
#define SMALLEST_PIVOT 0x1p-21

/* fs_workspace_views for the tasks themselves, which only read the views. */
void fsi_workspace_parts(const fs_workspace *w, fs_matrix *Y, fs_matrix *C);

/* Z = [Y C]', or Y' alone. */
fs_result fsi_workspace_load(fs_workspace *w, int with_rhs);

/* The lower triangle of Y'Y into w->G with pitch n, zeros above it; Z is loaded.  *trace is that of it, and not finite
 * where Y is not. */
fs_result fsi_workspace_gram(fs_workspace *w, double *trace);

/* Rows row0 ... of A, `rows` of them, at most w->panel, as columns of Z. */
fs_result fsi_workspace_panel(fs_workspace *w, const fs_matrix *A, int64_t row0, int64_t rows);

/* to(i, j) = from[j + i ld], wherever `to` is. */
fs_result fsi_workspace_put(fs_workspace *w, const double *from, int64_t ld, int symmetric, const fs_matrix *to);

/* Ends a task: waits, and fills in the three times. */
fs_result fsi_workspace_times(fs_workspace *w, double *sketch, double *solve, double *total);

/* Checks that a matrix called `name` is sound, rows x cols, and in the context's memory (or, where `host`, in the
 * host's). */
fs_result fsi_workspace_check(const fs_workspace *w, const char *who, const char *name, const fs_matrix *m,
                              int64_t rows, int64_t cols, int host);

/* The square of the Frobenius norm of a symmetric n x n matrix whose lower triangle is in G (pitch n, zeros above). */
fs_result fsi_workspace_symmetric_square(fs_workspace *w, double *G, double *square);

/* The values that the confidence in a fit depends on, besides the S of Y. */
typedef struct fsi_fit_facts {
    double freedom;    /* degrees of freedom: the rank, or less with regularization */
    double unevenness; /* k sum h_i^2 / (sum h_i)^2 - 1, h_i the leverages of the rows of Y; NaN: not measured */
    int64_t rank;      /* of Y */
    int explain;       /* whether a rank below n is to be explained */
} fsi_fit_facts;

/* Whether the interval of a fit (of a Gram matrix's error) is known to hold with FSI_CONFIDENCE: see confidence.c.  The
 * note gives the reason if it is not, and the meaning of a rank below n; otherwise it is "". */
#define FSI_CONFIDENCE 0.99
int fsi_confidence_in_fit(const fs_workspace *w, const fsi_fit_facts *facts, char *note, size_t bytes);
int fsi_confidence_in_gram(const fs_sketch *S, char *note, size_t bytes);

/* count * sum of squares[i]^2 / (sum of squares[i])^2: 1 where all are equal, `count` where one has all; 0 of zeros. */
double fsi_relative_fourth(const double *squares, int64_t count);

/* The unit of rounding of a type: 2^-24 for f32. */
double fsi_unit(fs_dtype dtype);

#endif
