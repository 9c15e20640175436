/* from.c - --from: a task from existing sketches, S A and S B in files with their descriptions beside them. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli.h"
#include "identity.h"
#include "task.h"

enum { MOST = 2 }; /* the sketches of A and of B */

typedef struct source {
    const char *path;
    fs_file *file;
    identity id;
    fs_matrix Y; /* k x n, whatever the order in the file */
} source;

/* A task needs all of A: a sketch of some rows is that of another matrix, with zeros in place of the others. */
static int open_source(source *s, const char *path)
{
    s->path = path;
    if (identity_open_finished(path, &s->file, &s->Y, &s->id)) return cli_library_fail();
    const identity *id = &s->id;
    if (id->count != 1 || id->rows[0].first || id->rows[0].end != id->spec.d) {
        int64_t rows = 0;
        for (int64_t i = 0; i < id->count; i++) rows += id->rows[i].end - id->rows[i].first;
        return cli_fail("%s is the sketch of %" PRId64 " of the %" PRId64 " rows ('flashsketch info' prints which); "
                        "'flashsketch add' puts it together with those of the others",
                        path, rows, id->spec.d);
    }
    if (id->batch_major) s->Y = fs_batch_major(s->Y.data, id->n, id->spec.k, id->dtype);
    return 0;
}

/* The workspace has the type of sums of Y, as if A had been read. */
static int from_fill(task *t, const source *s, int count)
{
    fs_matrix to[MOST];
    int code = task_workspace(t, 0);
    if (!code && fs_workspace_views(t->w, &to[0], &to[1])) code = cli_library_fail();
    for (int i = 0; i < count && !code; i++)
        if (fs_add(t->ctx, &s[i].Y, 1, 0.0, &to[i])) code = cli_library_fail();
    if (!code && fs_workspace_set_sketch(t->w, t->S)) code = cli_library_fail();
    return code;
}

static int open_task(task *t, const source *s, int count)
{
    t->in.name = s[0].path, t->in.d = s[0].id.spec.d, t->in.n = s[0].id.n;
    t->sum = cli_sum_dtype(s[0].id.dtype);
    if (count > 1) {
        t->rhs_name = s[1].path;
        t->B = fs_row_major(NULL, t->in.d, s[1].id.n, s[1].id.dtype);
    }
    int code = spec_sketch(&s[0].id.spec, &t->S, &t->spec);
    if (!code && fs_context_create(&t->ctx, &t->o->where)) code = cli_library_fail();
    return code ? code : from_fill(t, s, count);
}

int task_from(task *t)
{
    const double start = cli_seconds();
    const int count = (int)t->o->files;
    source s[MOST] = {{.path = NULL}};
    int code = 0;
    for (int i = 0; i < count && !code; i++) {
        code = open_source(&s[i], t->o->paths[i]);
        if (!code && identity_same_sketch(s[0].path, &s[0].id, s[i].path, &s[i].id)) code = cli_library_fail();
    }
    if (!code) code = open_task(t, s, count);
    for (int i = 0; i < count; i++) {
        fs_file_close(s[i].file);
        identity_free(&s[i].id);
    }
    t->sketch_seconds = cli_seconds() - start;
    return code;
}
