/* randnla.h - the parts of `fsbench randnla`: the paper's four tasks over data, sketch sizes, methods and seeds.
 *
 * What is measured how often.  The time of a sketch depends on its shape, k and method and not on the data or the
 * seed: it is measured once for each (task `sketch`).  Errors are computed for every seed.  Everything exact (A'A, a
 * basis Q, the least-squares solution) is made once for a matrix, and S once for all matrices of a shape: a sketched
 * matrix is W = [A  Q  b  b'], one product for all tasks.
 *
 *   sketch  no error; the time of Y = S A, which is that of the tasks gram and ose
 *   gram    |Y'Y - A'A|_F / |A'A|_F
 *   ose     |(SQ)'SQ - I|_2, Q the first r = min(256, n) columns of A's QR factorization
 *   ridge   |A x - b| / |b| of x from (SA)'SA + lambda I, lambda = 1e-3, with b = A x0 and with noise; and its time
 *   solve   the same of x that minimises |SA x - S b|, the shortest where there are many
 *
 * The linear algebra is the library's (flashsketch_tasks.h), but for baselines, which solve as textbooks do
 * (baselines/textbook.h). */
#ifndef FSI_BENCH_RANDNLA_RANDNLA_H
#define FSI_BENCH_RANDNLA_RANDNLA_H

#include <flashsketch_tasks.h>
#include <stdio.h>

#include "bench/baselines/baselines.h"
#include "bench/bench.h"
#include "bench/data/data.h"
#include "bench/baselines/textbook.h"

enum nla_task { TASK_SKETCH, TASK_GRAM, TASK_OSE, TASK_RIDGE, TASK_SOLVE, TASKS };
extern const char *const nla_task_names[TASKS];

enum {
    NLA_BASIS = 256, /* columns of Q, at most */
    NLA_RHS = 2,     /* b without noise, b with noise */
    NLA_PAD = 32,    /* columns behind Q, for right-hand sides: Algorithm 1 copies 32 columns at a time */
    NLA_LIST = 64,   /* entries of a filter */
    NLA_SEEDS = 64
};
#define NLA_LAMBDA 1e-3
#define NLA_NOISE 0.1 /* of b with noise, over the root mean square of A x */

/* methods.c ------------------------------------------------------------------------------------------------- */

/* A way to make Y = S A. */
typedef struct nla_method {
    const char *name;
    const baseline *cpu, *gpu; /* NULL: none, or not in this build */
    fs_family family;
    int64_t kappa, s; /* 0: the family has none */
    fs_shuffle shuffle;
    int same_S;   /* another method has the same S and its errors: only times are measured */
    int textbook; /* ridge and solve end with the textbook's solver, not with the library's */
} nla_method;
extern const nla_method nla_methods[];
extern const int nla_method_count;

/* "algorithm1-2-2": the name in records and filters. */
void nla_method_label(const nla_method *m, char *text, size_t bytes);

/* The spec of a method, full, and its S; 1 without a message where the method has no such S (kappa > M). */
int nla_sketch(const nla_method *m, int64_t d, int64_t k, uint64_t seed, fs_spec *spec, fs_sketch **S);

/* machine_cpu.c, machine_gpu.c ------------------------------------------------------------------------------ */

typedef struct nla_times {
    double ms, wall_ms;      /* medians: between events (the CPU has none: NaN), by the host's clock */
    double floor_ms;         /* reading A and writing Y; NaN: not measured */
    double prep_ms, full_ms; /* making S, and making it and multiplying; NaN: S is made in every call */
    double call_us;          /* the host's time in a call; NaN: not measured */
} nla_times;

/* Where the experiment runs.  Functions return 0, or 1 after printing an error message. */
typedef struct nla_options nla_options;
typedef struct nla_machine {
    int (*open)(struct nla_machine *m, const nla_options *o);
    void (*close)(struct nla_machine *m);
    void *(*alloc)(size_t bytes); /* NULL after printing an error message */
    void (*release)(void *memory);
    /* Copies `rows` rows of `width` bytes between buffers. */
    int (*copy)(struct nla_machine *m, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                size_t rows);
    int (*make)(struct nla_machine *m, const data_set *set, float *A);
    /* A x in double, from and to host memory but for A. */
    int (*times)(struct nla_machine *m, const float *A, int64_t d, int64_t n, const float *x, double *Ax);
    /* The time of a method; and of a call that waits for its result. */
    int (*measure)(struct nla_machine *m, const baseline *b, void *state, const baseline_problem *p, nla_times *times);
    int (*measure_call)(struct nla_machine *m, int (*call)(void *user), void *user, nla_times *times);
    const textbook *textbook;
    fs_memory memory;
    const nla_options *options;
    fs_context *context;
    struct bench_gpu *g;              /* NULL: on the CPU */
    const char *name, *driver, *cuda; /* for the record; driver and cuda NULL on the CPU */
} nla_machine;
extern const nla_machine nla_cpu, nla_gpu;

/* The baseline of a method on this machine; NULL: none. */
static inline const baseline *nla_baseline(const nla_machine *m, const nla_method *method)
{
    return m->memory == FS_MEMORY_CUDA ? method->gpu : method->cpu;
}
/* A row-major f32 matrix there, its rows `stride` elements apart. */
fs_matrix nla_view(const nla_machine *m, float *data, int64_t rows, int64_t cols, int64_t stride);

/* matrix.c -------------------------------------------------------------------------------------------------- */

/* A matrix of the grid with all that is exact about it. */
typedef struct nla_matrix {
    data_set set;
    int64_t basis, wide; /* columns of Q (0: A's columns are dependent, there is none) and of W */
    float *W;            /* d x wide: A, Q, b, b with noise, zeros */
    double *gram;        /* A'A, in host memory */
    double gram_norm;
    double b_norm[NLA_RHS]; /* |b| */
    double best[NLA_RHS];   /* the smallest |A x - b|; computed only for ridge or solve */
} nla_matrix;

int nla_matrix_make(nla_machine *m, const data_set *set, unsigned tasks, nla_matrix *out);
void nla_matrix_free(nla_machine *m, nla_matrix *a);
/* A and the right-hand sides within W. */
fs_matrix nla_matrix_A(const nla_machine *m, const nla_matrix *a);
fs_matrix nla_matrix_b(const nla_machine *m, const nla_matrix *a);

/* errors.c -------------------------------------------------------------------------------------------------- */

/* Errors of one draw of S. */
typedef struct nla_errors {
    double gram, ose;
    double ridge[NLA_RHS], solve[NLA_RHS]; /* |A x - b| / |b| */
} nla_errors;

/* Room for the sketches of one shape and k. */
typedef struct nla_room {
    int64_t k, n, basis, wide;
    fs_workspace *fit, *embed; /* Y and C; S Q */
    float *YW, *C, *X, *eye;   /* S W; C and X by columns; the identity */
    double *gram;              /* Y'Y, in host memory */
    void *textbook;
} nla_room;
int nla_room_open(nla_machine *m, const nla_matrix *like, int64_t k, unsigned tasks, nla_room *room);
void nla_room_close(nla_machine *m, nla_room *room);

/* The errors of the requested tasks (bits of 1 << TASK_...), from room->YW = S W. */
int nla_errors_of(nla_machine *m, nla_room *room, const nla_matrix *a, int by_textbook, unsigned tasks,
                  nla_errors *errors);

/* pipeline.c ------------------------------------------------------------------------------------------------ */

/* The time from A and b to x: task ridge or solve. */
int nla_measure_fit(nla_machine *m, const nla_method *method, const nla_matrix *a, int64_t k, enum nla_task task,
                    nla_times *times);

/* record.c -------------------------------------------------------------------------------------------------- */

/* A file of JSON lines, one for each cell, each beginning with its name.  Cells in it are not measured again. */
typedef struct nla_record {
    FILE *file;
    char **done; /* sorted: "cell" or "cell#seed" */
    int64_t count, room;
} nla_record;

/* Opens a record of a command of fsbench to continue it; path NULL: stdout, where nothing was done before.  An
 * incomplete last line is removed; any other line that is not of this program's form is an error, and the file stays
 * unchanged. */
int nla_record_open(nla_record *r, const char *path, const char *command);
int nla_record_close(nla_record *r);
/* Whether a cell has been recorded; seed < 0: the cell has no seeds. */
int nla_record_has(const nla_record *r, const char *cell, int seed);

/* A line being made. */
typedef struct nla_line {
    char text[8192];
    size_t length;
    int full;
} nla_line;
void nla_line_start(nla_line *l, const char *cell);
void nla_line_word(nla_line *l, const char *name, const char *value);
void nla_line_whole(nla_line *l, const char *name, int64_t value);
void nla_line_number(nla_line *l, const char *name, double value); /* null where it is not finite */
void nla_line_numbers(nla_line *l, const char *name, const double *values, int count);
int nla_record_write(nla_record *r, nla_line *l);

/* grid.c ---------------------------------------------------------------------------------------------------- */

struct nla_options {
    int cuda, threads, repetitions, quiet;
    const char *commit, *record;
    data_source sources[NLA_LIST];
    int source_count;
    int64_t shapes[NLA_LIST][2];
    int shape_count;
    int64_t k[NLA_LIST];
    int k_count;
    char methods[1024]; /* names or labels between commas; "": all */
    unsigned tasks;
    int first_seed, last_seed;
};
int nla_grid(const nla_options *o);

#endif
