/* call.h - one product on the device, compared with the CPU: the element of the grids of these tests. */
#ifndef FSI_TESTS_DEVICE_CALL_H
#define FSI_TESTS_DEVICE_CALL_H

#include "device.h"

/* rows is A's (for the adjoint X's) share of the d rows of S, from row0 on.  pad and lead are view_padded's, for both
 * matrices. */
typedef struct call {
    char name[400];
    fs_spec spec;
    int adjoint;
    int64_t row0, rows, n;
    layout from, to;
    int64_t pad, lead;
    fs_dtype in, out;
    double alpha, beta;
    int large;              /* the reference is the tuned variant */
    int from_host, to_host; /* matrices that stay in host memory */
    int64_t limit;          /* the largest integer in the input; 0: what keeps sums exact */
} call;

/* A line of a list of calls: the sketch, columns, the layout of both matrices, the input's type. */
typedef struct call_kind {
    recipe R;
    int64_t n;
    layout how;
    fs_dtype in;
    int adjoint;
} call_kind;
#define BLOCKPERM(shuffle, M, kappa, s, interleave, d, k) \
    { \
#shuffle, FS_BLOCKPERM, FS_SHUFFLE_##shuffle, M, kappa, s, interleave, d, k, 1 \
    }
#define OTHER(family, s, d, k) \
    { \
#family, FS_##family, (fs_shuffle)0, 0, 0, s, 0, d, k, 1 \
    }

/* Input and output types that belong together. */
typedef struct type_pair {
    fs_dtype in, out;
} type_pair;
extern const type_pair type_pairs[];
enum { TYPE_PAIRS = 6 };

/* (alpha, beta) number `draw` of the pairs that are tried. */
void draw_scalars(call *c, uint64_t draw);

/* Writes into c->name what the call is, the kind of sketch in front. */
void call_name(call *c, const char *kind);

int64_t call_in_rows(const call *c);
int64_t call_out_rows(const call *c);

/* The input, NaN where no element is, and the output as it is before the call, sealed: NaN when beta is 0. */
view call_input(const call *c);
view call_output(const call *c);

/* fs_apply or fs_apply_adjoint. */
fs_result call_run(const call *c, fs_context *ctx, const fs_sketch *S, const fs_matrix *from, fs_matrix *to);

/* Fails the test unless the two results are ==, if all weights of S are powers of two, or otherwise as close as the
 * rounding of both allows. */
void call_compare(const call *c, const fs_sketch *S, const view *got, const view *reference);

/* Integers through the device and through the reference, compared.  Inputs, padding and guards must be untouched.
 * */
void call_check(const lane *l, const call *c);

/* What the device gives for an input; nothing but the padding is checked. */
view call_on_device(const lane *l, const call *c, fs_context *ctx, const view *A);

/* For each of the k rows of Y whether it reads column `column` of S: 1 or 0; free() it. */
signed char *call_readers(const fs_sketch *S, const call *c, int64_t column);

#endif
