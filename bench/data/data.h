/* data.h - the matrices of `fsbench randnla`: recipes, and files by path; and right-hand sides.
 *
 * A source is named on the command line: a recipe by its name ("hot"), a file as KIND:PATH.
 *
 *   spal:X.mtx             Matrix Market, transposed, a window of the requested shape
 *   gpt2:X.safetensors     per layer [c_fc; c_proj'] of GPT-2's MLPs, a window
 *   gpt2-full:X.safetensors  per layer [c_attn'; attn.c_proj; c_fc'; mlp.c_proj], a window
 *   qwen2:X.safetensors    per layer [q; k; v; o; gate; up; down'], a window
 *   fashion:X              IDX images / 255, columns of mean 0, the whole file ("fashion": where Debian puts it)
 *   file:X                 npy, Matrix Market, safetensors with one tensor: the whole file
 *
 * Where a window begins is drawn from the seed, row before column.  A source and a shape have one seed, so that a
 * matrix is the same on every machine. */
#ifndef FSI_BENCH_DATA_DATA_H
#define FSI_BENCH_DATA_DATA_H

#include <stdint.h>

#include "recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct data_source {
    char name[64];    /* in records and filters: the recipe, the kind, or the file's own name */
    const char *kind; /* of a file; NULL: a recipe */
    const char *path;
    recipe_kind recipe;
    int64_t d, n; /* a whole file's own shape; 0: any shape */
} data_source;

typedef struct data_set {
    const data_source *source;
    int64_t d, n;
    uint64_t seed;
} data_set;

/* Reads the text of a source.  0, or 1 after printing an error message. */
int data_source_parse(const char *text, data_source *out);

/* The names of the recipes, for help and messages. */
extern const char *const data_recipe_names[RECIPES];

/* The matrix of a source and a shape, with its seed: of the paper's table where it is one of the paper's. */
data_set data_set_of(const data_source *source, int64_t d, int64_t n);

/* Writes A, d x n row-major, in host memory.  0, or 1 after printing an error message. */
int data_make(const data_set *set, float *A);

/* x of length n, and b = (A x) + noise sqrt(|A x|^2 / d) N(0, I), given A x in double. */
void data_solution(const data_set *set, float *x);
void data_right_side(const data_set *set, const double *Ax, double noise, float *b);

/* A x in double, term by term, so that a GPU makes the same bits. */
void data_times(const float *A, int64_t d, int64_t n, const float *x, double *Ax);

/* The same in device memory, queued on a stream (a cudaStream_t): data.cu, only in builds with CUDA.  0, or 1 after an
 * error message. */
int data_make_device(const data_set *set, float *A, void *stream);
int data_times_device(const float *A, int64_t d, int64_t n, const float *x, double *Ax, void *stream);

/* files.c; a build without the readers of files prints an error message. */
int data_file_shape(const data_source *source, int64_t *d, int64_t *n);
int data_file_make(const data_set *set, float *A);

#ifdef __cplusplus
}
#endif

#endif
