/* grass.h - the parts of `fsbench grass`: how long a batch of gradients takes to become features, as in GraSS.
 *
 * A batch is n gradients of p coordinates, f32, one after the other (n x p).  Features are n x k: of all p coordinates
 * (case `all`), or of those that a random mask of 4 k of them keeps, in ascending order, one by one (case `masked`) or
 * eight neighbours together (case `runs`).  In case `layers` the gradients are a perceptron's: the library gets the
 * inputs and the output gradients of its layers, of which they are products, and the same mask; baselines get
 * gradients that are already there, as in `masked`.
 *
 * The library takes the batch as it lies, and the mask's list, in one call.  Baselines need up to four steps, which are
 * timed as one sequence and then some of them alone:
 *
 *   gather     the masked coordinates, n x d             where there is a mask
 *   transpose  to d x n, and of the features to n x k    where the baseline takes rows
 *   product    S times that, S made beforehand
 *
 * The bandwidth lower bound reads the 32-byte sectors that hold a coordinate which is kept, or all inputs and output
 * gradients, and writes the features. */
#ifndef FSI_BENCH_GRASS_GRASS_H
#define FSI_BENCH_GRASS_GRASS_H

#include "bench/randnla/randnla.h"

enum { GRASS_MASKED = 1, GRASS_RUNS = 2, GRASS_LAYERS = 4, GRASS_ALL = 8 }; /* cases */
enum { GRASS_GATHER = 1, GRASS_TRANSPOSE = 2, GRASS_PRODUCT = 4, GRASS_STEPS = 7 };
enum { GRASS_KEPT = 4 }; /* a mask keeps this many k coordinates */
enum { GRASS_RUN = 8 };  /* of case `runs`, neighbours that it keeps together: a sector of a GPU's memory */

/* layers.c: a perceptron, from the width of its input to that of its output. */
enum { GRASS_WIDTHS = 16 };
typedef struct grass_layers {
    int widths;
    int64_t width[GRASS_WIDTHS];
} grass_layers;

typedef struct grass_options {
    nla_options common; /* cuda, threads, repetitions, quiet, commit, record, k, methods by name */
    int64_t n, p;
    grass_layers layers; /* of case `layers`; p is the number of their parameters */
    int cases;           /* bits */
    double seconds;      /* no case begins after so many; 0: no limit */
} grass_options;

/* layers.c -------------------------------------------------------------------------------------------------- */

/* Coordinates of a gradient; inputs and output gradients of an example. */
int64_t grass_layers_parameters(const grass_layers *l);
int64_t grass_layers_values(const grass_layers *l);
/* The factors that lie in a batch, at most 2 GRASS_WIDTHS; returns how many. */
int grass_layers_factors(const grass_layers *l, float *batch, int64_t n, fs_memory memory, fs_matrix *factors);
/* The two rows of the factors whose product a coordinate is, the second -1 for a bias; and a row's value. */
void grass_layers_pair(const grass_layers *l, int64_t coordinate, int32_t pair[2]);
double grass_layers_value(const grass_layers *l, const float *batch, int64_t n, int64_t example, int32_t row);

/* methods.c ------------------------------------------------------------------------------------------------- */

/* A way to project. */
typedef struct grass_method {
    const char *name;
    const baseline *cpu, *gpu; /* NULL: none, or not in this build */
    int gpu_by_rows;           /* whether `gpu` takes d x n; every `cpu` does except the library */
    fs_family family;
    int64_t kappa, s; /* 0: the default */
    fs_shuffle shuffle;
    int64_t interleave;
    baseline_product product;
} grass_method;
extern const grass_method grass_methods[];
extern const int grass_method_count;

/* Values from sample to sample where the library reads. */
static inline int64_t grass_pitch(int64_t p) { return (p + 31) / 32 * 32; }

/* The coordinates that a case keeps at some k; and the columns of S for them, some of them zeros behind the others
 * where the method takes whole blocks only.  0: there is no such sketch. */
int64_t grass_kept(const grass_options *o, int which, int64_t k);
int64_t grass_columns(const grass_method *method, int64_t kept, int64_t k);

/* machine_cpu.c, machine_gpu.c ------------------------------------------------------------------------------ */

/* Work to be timed: from one batch to its features. */
typedef struct grass_work {
    int64_t from_bytes, to_bytes;                   /* of a batch and of its features */
    int64_t read, written;                          /* bytes of the lower bound */
    int (*queue)(void *user, void *from, void *to); /* 0, or 1 */
    void *user;
} grass_work;

typedef struct grass_times {
    double floor_ms, ms, ms_min; /* medians, and the fastest */
    double call_us;              /* the host's time in a call; NaN: not measured */
} grass_times;

/* Where the benchmark runs.  Functions return 0, or 1 after a message. */
typedef struct grass_machine {
    int (*open)(struct grass_machine *m, const grass_options *o, int64_t most_k);
    void (*close)(struct grass_machine *m);
    /* to[i count + j] = A[i p + list[j]], i < n, j < count */
    int (*gather)(struct grass_machine *m, const float *A, int64_t n, int64_t p, const int64_t *list, int64_t count,
                  float *to);
    /* to[j rows + i] = from[i cols + j] */
    int (*transpose)(struct grass_machine *m, const float *from, int64_t rows, int64_t cols, float *to);
    /* Times the work; A and Y hold one batch and its features afterwards. */
    int (*measure)(struct grass_machine *m, const grass_work *work, grass_times *times);
    /* Median milliseconds of something that takes no batch: making S. */
    int (*measure_alone)(struct grass_machine *m, int (*call)(void *user), void *user, double *ms);
    nla_machine base; /* memory, copies, the context and names */
    float *A, *Y;
} grass_machine;
extern const grass_machine grass_cpu, grass_gpu;

/* projection.c ---------------------------------------------------------------------------------------------- */

/* A method and its buffers for the batches of one case. */
typedef struct projection {
    grass_machine *m;
    const grass_method *method;
    const baseline *peer;     /* NULL: the library */
    baseline_problem problem; /* spec: the full one of S */
    fs_sketch *S;
    void *state;
    int64_t n, p, kept;   /* kept < p: masked */
    int64_t pitch;        /* from sample to sample: p, or where the library reads p rounded up to whole lines, as it
                               * keeps gradients of its own */
    const int64_t *list;  /* the mask, in the machine's memory; NULL: all */
    const int32_t *pairs; /* the same as pairs of rows of the layers' factors; NULL: from gradients.  pitch is then
                               * what an example has of all factors */
    const grass_layers *layers;
    float *gathered, *turned, *features; /* n x kept, d x n, k x n; NULL where that step is not needed */
    int unsupported;                     /* the library cannot do this here; fs_error_message has the reason */
} projection;

/* 0, or 1 after a message; close it all the same.  pairs: of case `layers`, for the library. */
int projection_open(projection *p, grass_machine *m, const grass_options *o, const grass_method *method, int64_t kept,
                    const int64_t *list, const int32_t *pairs, int64_t k);
void projection_close(projection *p);

/* Some steps of a projection, all of them being GRASS_STEPS, from a batch to its features.  0, or 1 after a message
 * unless p->unsupported. */
int projection_run(projection *p, int steps, void *from, void *to);
/* Which of the steps there are. */
int projection_steps(const projection *p);

/* |features - exact| / |exact| over some samples; exact is computed in double on the CPU, with the peer's own S where
 * it has one, otherwise with the library's. */
int projection_error(const projection *p, fs_context *exact, const int64_t *host_list, double *error);

/* grid.c ---------------------------------------------------------------------------------------------------- */

int grass_grid(const grass_options *o);

#endif
