/* files.c - matrices from files: windows of a sparse matrix and of a model's stacked weights, images, whole files.
 *
 * All files are read by libflashsketch_files, which rejects malformed ones. */
#include <flashsketch_files.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "apps/common/images.h"
#include "def/uniform.h"

/* Prints why a reader has failed. */
static int tell(void)
{
    fprintf(stderr, "fsbench: %s\n", fs_error_message());
    return 1;
}

static int refuse(const data_source *source, const char *what, int64_t has, int64_t needed)
{
    fprintf(stderr, "fsbench: %s: %s %" PRId64 ", and %" PRId64 " are needed\n", source->path, what, has, needed);
    return 1;
}

/* Where the window of a rows x cols matrix begins: row, then column. */
static int window(const data_set *set, int64_t rows, int64_t cols, int64_t at[2])
{
    if (rows < set->d) return refuse(set->source, "the matrix has rows:", rows, set->d);
    if (cols < set->n) return refuse(set->source, "the matrix has columns:", cols, set->n);
    at[0] = fsi_random_below(set->seed, FSI_TAG_SAMPLE, 0, 0, (uint32_t)(rows - set->d + 1));
    at[1] = fsi_random_below(set->seed, FSI_TAG_SAMPLE, 4, 0, (uint32_t)(cols - set->n + 1));
    return 0;
}

/* Copies rows first ... first + count - 1 and n columns from `column` on of a dense file, transposed or not, as f32. */
static int copy_dense(const fs_matrix *m, int transposed, int64_t first, int64_t count, int64_t column, int64_t n,
                      float *out)
{
    fs_context_options options = FS_CONTEXT_INIT;
    fs_context *ctx = NULL;
    fs_matrix from = *m, to = fs_row_major(out, count, n, FS_F32);
    options.backend = FS_BACKEND_CPU;
    from.rows = count, from.cols = n;
    from.row_stride = transposed ? m->col_stride : m->row_stride;
    from.col_stride = transposed ? m->row_stride : m->col_stride;
    from.offset += first * from.row_stride + column * from.col_stride;
    const int bad = fs_context_create(&ctx, &options) || fs_add(ctx, &from, 1, 0.0, &to) ? tell() : 0;
    fs_context_destroy(ctx);
    return bad;
}

static int64_t index_at(const void *array, fs_index_type type, int64_t i)
{
    return type == FS_INDEX32 ? ((const int32_t *)array)[i] : ((const int64_t *)array)[i];
}

/* The same of a CSR file in f64: repeated entries are added. */
static void copy_sparse(const fs_sparse *m, int transposed, int64_t first, int64_t count, int64_t column, int64_t n,
                        float *out)
{
    memset(out, 0, sizeof *out * (size_t)(count * n));
    for (int64_t r = 0; r < m->rows; r++) {
        const int64_t end = index_at(m->ptr, m->index_type, r + 1);
        for (int64_t e = index_at(m->ptr, m->index_type, r); e < end; e++) {
            const int64_t c = index_at(m->index, m->index_type, e);
            const int64_t i = (transposed ? c : r) - first, j = (transposed ? r : c) - column;
            if (i >= 0 && i < count && j >= 0 && j < n) out[i * n + j] += (float)((const double *)m->value)[e];
        }
    }
}

/* A window of one file. */
static int copy_file(const data_set *set, int transposed, float *A)
{
    fs_file *f;
    fs_file_info info = FS_FILE_INFO_INIT;
    fs_matrix dense;
    fs_sparse sparse;
    int64_t at[2] = {0, 0};
    if (fs_file_open(&f, set->source->path, NULL)) return tell();
    int bad = fs_file_get_info(f, &info) ? tell() : 0;
    if (!bad && (info.is_sparse ? fs_file_sparse(f, &sparse) : fs_file_matrix(f, &dense))) bad = tell();
    if (!bad) bad = window(set, transposed ? info.cols : info.rows, transposed ? info.rows : info.cols, at);
    if (!bad && info.is_sparse) copy_sparse(&sparse, transposed, at[0], set->d, at[1], set->n, A);
    else if (!bad) bad = copy_dense(&dense, transposed, at[0], set->d, at[1], set->n, A);
    fs_file_close(f);
    return bad;
}

/* A model's weights, stacked layer by layer.  GPT-2's Conv1D stores (in, out), Qwen's Linear (out, in). */
enum { MOST_PARTS = 7 };
static const struct stack {
    const char *kind;
    const char *layer; /* how the names of a layer begin */
    struct part {
        const char *tensor;
        int transposed;
    } parts[MOST_PARTS + 1];
} stacks[] = {
    {"gpt2", "h.%d.", {{"mlp.c_fc.weight", 0}, {"mlp.c_proj.weight", 1}}},
    {"gpt2-full",
     "h.%d.",
     {{"attn.c_attn.weight", 1}, {"attn.c_proj.weight", 0}, {"mlp.c_fc.weight", 1}, {"mlp.c_proj.weight", 0}}},
    {"qwen2",
     "model.layers.%d.",
     {{"self_attn.q_proj.weight", 0},
      {"self_attn.k_proj.weight", 0},
      {"self_attn.v_proj.weight", 0},
      {"self_attn.o_proj.weight", 0},
      {"mlp.gate_proj.weight", 0},
      {"mlp.up_proj.weight", 0},
      {"mlp.down_proj.weight", 1}}},
};
enum { STACKS = sizeof stacks / sizeof stacks[0] };

/* The matrix `part` of a layer, with or without the name of the model's body before it.  Returns 0 where there is
 * none. */
static int find(const fs_file *file, const struct stack *stack, int layer, const char *part, fs_file_tensor *t)
{
    static const char *const bodies[] = {"", "transformer."};
    for (int body = 0; body < 2; body++) {
        char name[160], begin[64];
        snprintf(begin, sizeof begin, stack->layer, layer);
        snprintf(name, sizeof name, "%s%s%s", bodies[body], begin, part);
        for (int64_t i = 0; !fs_file_get_tensor(file, i, t); i++)
            if (t->dimensions == 2 && !strcmp(t->name, name)) return 1;
    }
    return 0;
}

/* Calls `visit` for every part in the order of the stack with its first row; returns the rows of all, or -1 where a
 * layer lacks a part or the widths differ. */
typedef int (*visitor)(void *user, const fs_file_tensor *t, int transposed, int64_t first, int64_t rows);
static int64_t walk(const fs_file *file, const struct stack *stack, const data_source *source, int64_t *cols,
                    visitor visit, void *user)
{
    fs_file_tensor t = FS_FILE_TENSOR_INIT;
    int64_t rows = 0;
    *cols = 0;
    for (int layer = 0; find(file, stack, layer, stack->parts[0].tensor, &t); layer++)
        for (const struct part *p = stack->parts; p->tensor; p++) {
            if (!find(file, stack, layer, p->tensor, &t)) {
                fprintf(stderr, "fsbench: %s: layer %d has no tensor %s\n", source->path, layer, p->tensor);
                return -1;
            }
            const int64_t high = t.shape[p->transposed], wide = t.shape[!p->transposed];
            if (*cols && wide != *cols) {
                fprintf(stderr, "fsbench: %s: %s is %" PRId64 " wide, the stack is %" PRId64 "\n", source->path, t.name,
                        wide, *cols);
                return -1;
            }
            *cols = wide;
            if (visit && visit(user, &t, p->transposed, rows, high)) return -1;
            rows += high;
        }
    return rows;
}

/* The part of a tensor that lies in the window goes to A. */
typedef struct stack_window {
    const data_set *set;
    int64_t row, column;
    float *A;
} stack_window;
static int copy_part(void *user, const fs_file_tensor *t, int transposed, int64_t first, int64_t rows)
{
    const stack_window *w = user;
    const int64_t end = w->row + w->set->d, from = first > w->row ? first : w->row;
    const int64_t to = first + rows < end ? first + rows : end;
    fs_file_options options = FS_FILE_INIT;
    fs_file *f;
    fs_matrix m;
    if (from >= to) return 0;
    options.format = FS_FILE_SAFETENSORS;
    options.tensor = t->name;
    if (fs_file_open(&f, w->set->source->path, &options)) return tell();
    int bad = fs_file_matrix(f, &m) ? tell() : 0;
    if (!bad)
        bad = copy_dense(&m, transposed, from - first, to - from, w->column, w->set->n,
                         w->A + (from - w->row) * w->set->n);
    fs_file_close(f);
    return bad;
}

static int copy_stack(const data_set *set, const struct stack *stack, float *A)
{
    fs_file_options options = FS_FILE_INIT;
    fs_file *f;
    int64_t cols = 0, at[2] = {0, 0};
    options.format = FS_FILE_SAFETENSORS;
    options.header_only = options.describe = 1;
    if (fs_file_open(&f, set->source->path, &options)) return tell();
    const int64_t rows = walk(f, stack, set->source, &cols, NULL, NULL);
    int bad = rows < 0;
    if (!rows) {
        fprintf(stderr, "fsbench: %s: there are no layers of %s\n", set->source->path, stack->kind);
        bad = 1;
    }
    if (!bad) bad = window(set, rows, cols, at);
    stack_window w = {set, at[0], at[1], A};
    if (!bad) bad = walk(f, stack, set->source, &cols, copy_part, &w) < 0;
    fs_file_close(f);
    return bad;
}

static int copy_images(const data_set *set, float *A)
{
    image_rows images;
    if (images_read(set->source->path, set->d, set->n, &images)) return tell();
    const int bad = images.rows != set->d || images.cols != set->n;
    if (bad) refuse(set->source, "the file has rows:", images.rows, set->d);
    else memcpy(A, images.data, sizeof *A * (size_t)(set->d * set->n));
    free(images.data);
    return bad;
}

int data_file_make(const data_set *set, float *A)
{
    const char *kind = set->source->kind;
    for (int i = 0; i < STACKS; i++)
        if (!strcmp(kind, stacks[i].kind)) return copy_stack(set, &stacks[i], A);
    if (!strcmp(kind, "fashion")) return copy_images(set, A);
    return copy_file(set, !strcmp(kind, "spal"), A);
}

int data_file_shape(const data_source *source, int64_t *d, int64_t *n)
{
    const int images = !strcmp(source->kind, "fashion");
    fs_file_options options = FS_FILE_INIT;
    fs_file_info info = FS_FILE_INFO_INIT;
    fs_file *f;
    *d = *n = 0;
    if (!images && strcmp(source->kind, "file")) return 0;
    if (images) options.format = FS_FILE_IDX;
    options.header_only = 1;
    if (fs_file_open(&f, source->path, &options)) return tell();
    const int bad = fs_file_get_info(f, &info) ? tell() : 0;
    *d = info.rows, *n = info.cols;
    fs_file_close(f);
    return bad;
}
