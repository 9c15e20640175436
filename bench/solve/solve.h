/* solve.h - the parts of `fsbench solve`: least squares, QR and singular values to full accuracy, by this library and
 * by LAPACK or cuSOLVER, in turns.
 *
 * A = U diag(s) V' of random U and V, its singular values falling geometrically from 1 to 1 / cond, and
 * b = A x + e / 10 |A x|, |e| = 1, e orthogonal to A's columns.  The library reads A in packed rows.  Peers get it in
 * packed columns, which is what they work on fastest; most overwrite it, and the copy is made before the clock starts.
 * A turn is one call of each method and one read of A; a time is a median over turns, and `reads` that over the read's.
 *
 *   lstsq    backward error: Karlson and Walden's formula over |A|_F, with the s and V that A was made from; forward
 *            error |x - x*| / |x*|, where for f32 x* is LAPACK's solution in f64 of A and b as they were rounded, for
 *            f64 the x above; excess: |A x - b|^2 / |A x* - b|^2 - 1
 *   qr       orthogonality |Q'Q - I|_F; product |A - Q R|_F / |A|_F
 *   pivoted  the same with column pivots
 *   svd      the same with U and diag(s) V'; values: the largest error of a singular value over the largest value
 *
 * Errors are computed from the result of the last turn, on the host in double, sums of least squares in long double. */
#ifndef FSI_BENCH_SOLVE_SOLVE_H
#define FSI_BENCH_SOLVE_SOLVE_H

#include <flashsketch_tasks.h>

#include "bench/randnla/randnla.h"
#include "bench/solve/lapack.h"

enum solve_task { SOLVE_LSTSQ, SOLVE_QR, SOLVE_PIVOTED, SOLVE_SVD, SOLVE_TASKS };
extern const char *const solve_task_names[SOLVE_TASKS];

enum { SOLVE_MOST_TURNS = 64, SOLVE_LEAST_TURNS = 3 };

typedef struct solve_options {
    nla_options common; /* cuda, threads, repetitions, quiet, commit, record, shapes, methods by name */
    double conditions[NLA_LIST];
    int condition_count;   /* 0: those of each type and task */
    unsigned tasks, types; /* bits: 1 << solve_task; 1 for f32, 2 for f64 */
    double seconds;        /* of the turns of a case, after SOLVE_LEAST_TURNS of them */
} solve_options;

/* problem.c -------------------------------------------------------------------------------------------------- */

/* What the problems of one shape share. */
typedef struct solve_base {
    int64_t d, n;
    double *U, *V; /* d x n in packed rows, n x n by columns */
    double *e, *y; /* d, n: unit vectors, e orthogonal to U's columns */
} solve_base;
int solve_base_make(const lapack *l, int64_t d, int64_t n, solve_base *base);
void solve_base_free(solve_base *base);

/* A problem; all in host memory. */
typedef struct solve_problem {
    int64_t d, n;
    fs_dtype dtype;
    double condition;
    const solve_base *base;
    void *A, *columns, *b; /* of dtype: packed rows, packed columns, d */
    double *x, *s;         /* n each */
    double norm, b_norm;   /* |A|_F, |b| */
    double best;           /* |A x - b| */
} solve_problem;
int solve_problem_make(const lapack *l, const solve_base *base, fs_dtype dtype, double condition, solve_problem *p);
void solve_problem_free(solve_problem *p);

/* errors.c --------------------------------------------------------------------------------------------------- */

/* Errors of a result; NaN where the task has none. */
typedef struct solve_errors {
    double backward, forward, excess;
    double orthogonality, product, values;
} solve_errors;

/* b - A x of an x in double, and A'(b - A x); the latter may be NULL. */
int solve_residual(const solve_problem *p, const double *x, long double *residual, long double *gradient);
int solve_errors_of_x(const solve_problem *p, const double *x, solve_errors *errors);
/* Of A(:, pivots) = Q R, Q d x n in packed rows and R n x n by columns, in double; pivots may be NULL.  Q is lost. */
int solve_errors_of_factors(const lapack *l, const solve_problem *p, double *Q, const double *R, const int64_t *pivots,
                            solve_errors *errors);
/* The largest error of n singular values. */
double solve_error_of_values(const solve_problem *p, const double *s);

/* methods.c -------------------------------------------------------------------------------------------------- */

/* A running case: the problem in the machine's memory, and the results of the methods. */
typedef struct solve_case {
    nla_machine *m;
    const lapack *l;
    const solve_problem *p;
    enum solve_task task;
    void *A, *b;               /* in the machine's memory, packed rows */
    void *columns;             /* A in packed columns */
    void *work, *right;        /* copies of columns and b that a peer may overwrite */
    void *Q, *R, *values;      /* results in the machine's memory, of A's type: d x n, n x n by columns (svd: V), n */
    struct cusolver *cusolver; /* NULL: on the CPU */

    /* results on the host */
    double *x;       /* n */
    double *s;       /* n */
    int64_t *pivots; /* n */
    int by_rows;     /* Q lies in packed rows; otherwise in packed columns */
    int Q_in_work;   /* Q is in `work`, in packed columns */
    int V_turned;    /* R has V' in place of V */
    int64_t iterations, reads, k;
    char note[64]; /* which way was chosen */
} solve_case;

/* A way to solve; run returns 0, 1 after an error message, or SOLVE_NO_ANSWER where it breaks down on this A. */
enum { SOLVE_NO_ANSWER = 2 };
typedef struct solve_method {
    const char *name;
    unsigned tasks;              /* bits */
    int on_cpu, on_gpu, by_peer; /* by_peer: it takes packed columns, work and right */
    int (*run)(solve_case *c, double parameter);
    double parameter;
} solve_method;
extern const solve_method solve_methods[];
extern const int solve_method_count;

int solve_case_open(solve_case *c, nla_machine *m, const lapack *l, const solve_problem *p, enum solve_task task);
void solve_case_close(solve_case *c);
/* Restores the inputs that a peer overwrites. */
int solve_case_refresh(solve_case *c);
/* The errors of the results of the last run. */
int solve_case_errors(solve_case *c, solve_errors *errors);
/* Reads A once. */
int solve_case_read(solve_case *c);

/* ours.c: parameters are a method or a tolerance, k / n, and nothing. */
int solve_ours_lstsq(solve_case *c, double method);
int solve_ours_until(solve_case *c, double tolerance);
int solve_ours_sketch(solve_case *c, double rows);
int solve_ours_qr(solve_case *c, double unused);
int solve_ours_svd(solve_case *c, double unused);

/* peers_cpu.c */
int solve_lapack_gelsd(solve_case *c, double unused);
int solve_lapack_gelsy(solve_case *c, double unused);
int solve_lapack_gels(solve_case *c, double unused);
int solve_lapack_normal(solve_case *c, double unused);
int solve_lapack_qr(solve_case *c, double unused);
int solve_lapack_svd(solve_case *c, double unused);

/* peers_gpu.c; without CUDA there are none. */
int solve_cusolver_open(solve_case *c);
void solve_cusolver_close(solve_case *c);
int solve_cusolver_read(solve_case *c);
int solve_cusolver_gels(solve_case *c, double unused);
int solve_cusolver_normal(solve_case *c, double unused);
int solve_cusolver_qr(solve_case *c, double unused);
int solve_cusolver_svd(solve_case *c, double unused);

/* grid.c ----------------------------------------------------------------------------------------------------- */

int solve_grid(const solve_options *o);

#endif
