/* files.c - matrices from files: windows of a sparse matrix and of a model's stacked weights, images, whole files.
 *
 * Everything goes through the readers of src/files, which refuse what does not fit with a sentence. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "base/dtype.h"
#include "files/file.h"
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

/* Copies rows first ... first + count - 1 and n columns from `column` on of a dense file, seen transposed or not. */
static void copy_dense(const fs_matrix *m, int transposed, int64_t first, int64_t count, int64_t column, int64_t n,
                       float *out)
{
    const int64_t by_row = transposed ? m->col_stride : m->row_stride;
    const int64_t by_col = transposed ? m->row_stride : m->col_stride;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < n; j++)
            out[i * n + j] = (float)fsi_load(m->data, m->dtype,
                                             m->offset + (first + i) * by_row + (column + j) * by_col);
}

/* The same of a CSR file in f64: what is repeated adds. */
static void copy_sparse(const fs_sparse *m, int transposed, int64_t first, int64_t count, int64_t column, int64_t n,
                        float *out)
{
    memset(out, 0, sizeof *out * (size_t)(count * n));
    for (int64_t r = 0; r < m->rows; r++) {
        const int64_t end = fsi_index_load(m->ptr, m->index_type, r + 1);
        for (int64_t e = fsi_index_load(m->ptr, m->index_type, r); e < end; e++) {
            const int64_t c = fsi_index_load(m->index, m->index_type, e);
            const int64_t i = (transposed ? c : r) - first, j = (transposed ? r : c) - column;
            if (i >= 0 && i < count && j >= 0 && j < n) out[i * n + j] += (float)fsi_load(m->value, m->dtype, e);
        }
    }
}

static int64_t rows_of(const file_matrix *f) { return f->is_sparse ? f->sparse.rows : f->dense.rows; }
static int64_t cols_of(const file_matrix *f) { return f->is_sparse ? f->sparse.cols : f->dense.cols; }

/* A window of one file; NULL: from the first row and column. */
static int copy_file(const data_set *set, int transposed, float *A)
{
    file_matrix f;
    int64_t at[2] = {0, 0};
    if (file_open(set->source->path, NULL, &f)) return tell();
    const int64_t rows = transposed ? cols_of(&f) : rows_of(&f), cols = transposed ? rows_of(&f) : cols_of(&f);
    const int bad = window(set, rows, cols, at);
    if (!bad && f.is_sparse) copy_sparse(&f.sparse, transposed, at[0], set->d, at[1], set->n, A);
    else if (!bad) copy_dense(&f.dense, transposed, at[0], set->d, at[1], set->n, A);
    file_close(&f);
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

/* The tensors of a file: names and shapes. */
typedef struct tensor_list {
    struct tensor {
        char name[128];
        int64_t rows, cols;
    } * tensors;
    int count, room, full;
} tensor_list;

static void collect(void *user, const file_tensor *t)
{
    tensor_list *list = user;
    if (t->dimensions != 2 || strlen(t->name) >= sizeof list->tensors->name) return;
    if (list->count == list->room) {
        const int room = list->room ? 2 * list->room : 256;
        struct tensor *more = realloc(list->tensors, sizeof *more * (size_t)room);
        if (!more) {
            list->full = 1;
            return;
        }
        list->tensors = more, list->room = room;
    }
    struct tensor *new = &list->tensors[list->count++];
    snprintf(new->name, sizeof new->name, "%s", t->name);
    new->rows = t->shape[0], new->cols = t->shape[1];
}

/* Part p of a layer, with or without the name of the model's body before it; NULL: it is not there. */
static const struct tensor *find(const tensor_list *list, const struct stack *stack, int layer, const char *part)
{
    static const char *const bodies[] = {"", "transformer."};
    for (int body = 0; body < 2; body++) {
        char name[160], begin[64];
        snprintf(begin, sizeof begin, stack->layer, layer);
        snprintf(name, sizeof name, "%s%s%s", bodies[body], begin, part);
        for (int i = 0; i < list->count; i++)
            if (!strcmp(list->tensors[i].name, name)) return &list->tensors[i];
    }
    return NULL;
}

/* Calls `visit` for every part in the order of the stack with its first row; returns the rows of all, or -1 where a
 * layer lacks a part or the widths differ. */
typedef int (*visitor)(void *user, const struct tensor *t, int transposed, int64_t first, int64_t rows);
static int64_t walk(const tensor_list *list, const struct stack *stack, const data_source *source, int64_t *cols,
                    visitor visit, void *user)
{
    int64_t rows = 0;
    *cols = 0;
    for (int layer = 0; find(list, stack, layer, stack->parts[0].tensor); layer++)
        for (const struct part *p = stack->parts; p->tensor; p++) {
            const struct tensor *t = find(list, stack, layer, p->tensor);
            if (!t) {
                fprintf(stderr, "fsbench: %s: layer %d has no tensor %s\n", source->path, layer, p->tensor);
                return -1;
            }
            const int64_t high = p->transposed ? t->cols : t->rows, wide = p->transposed ? t->rows : t->cols;
            if (*cols && wide != *cols) {
                fprintf(stderr, "fsbench: %s: %s is %" PRId64 " wide, the stack is %" PRId64 "\n", source->path,
                        t->name, wide, *cols);
                return -1;
            }
            *cols = wide;
            if (visit && visit(user, t, p->transposed, rows, high)) return -1;
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
static int copy_part(void *user, const struct tensor *t, int transposed, int64_t first, int64_t rows)
{
    const stack_window *w = user;
    const int64_t end = w->row + w->set->d, from = first > w->row ? first : w->row;
    const int64_t to = first + rows < end ? first + rows : end;
    const file_options options = {.format = FILE_SAFETENSORS, .tensor = t->name};
    file_matrix f;
    if (from >= to) return 0;
    if (file_open(w->set->source->path, &options, &f)) return tell();
    copy_dense(&f.dense, transposed, from - first, to - from, w->column, w->set->n, w->A + (from - w->row) * w->set->n);
    file_close(&f);
    return 0;
}

static int copy_stack(const data_set *set, const struct stack *stack, float *A)
{
    tensor_list list = {0};
    const file_options options = {.format = FILE_SAFETENSORS, .list = collect, .user = &list};
    file_matrix f;
    int64_t cols = 0, at[2] = {0, 0};
    int bad = file_open(set->source->path, &options, &f) ? tell() : 0;
    if (!bad) {
        file_close(&f);
        const int64_t rows = walk(&list, stack, set->source, &cols, NULL, NULL);
        bad = list.full || rows < 0;
        if (list.full) fprintf(stderr, "fsbench: there is no memory for the names of tensors\n");
        if (!bad && !rows) {
            fprintf(stderr, "fsbench: %s: there are no layers of %s\n", set->source->path, stack->kind);
            bad = 1;
        }
        if (!bad) bad = window(set, rows, cols, at);
        stack_window w = {set, at[0], at[1], A};
        if (!bad) bad = walk(&list, stack, set->source, &cols, copy_part, &w) < 0;
    }
    free(list.tensors);
    return bad;
}

static int copy_images(const data_set *set, float *A)
{
    file_image_rows images;
    if (file_images(set->source->path, set->d, set->n, &images)) return tell();
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
    const file_options options = {.format = images ? FILE_IDX : FILE_GUESS};
    file_matrix f;
    *d = *n = 0;
    if (!images && strcmp(source->kind, "file")) return 0;
    if (file_open(source->path, &options, &f)) return tell();
    *d = rows_of(&f), *n = cols_of(&f);
    file_close(&f);
    return 0;
}
