/* tasks.c - Gram matrices, ridge regression and least squares of an A whose rows are spread over ranks.
 *
 * The sketch, which reads A, is distributed.  [Y C] has k rows whatever d is, so one rank factorizes it, by
 * flashsketch_tasks.h, and broadcasts the result: all ranks have the same bits, on any mixture of machines. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "ranks.h"

/* Which task, and its arguments. */
typedef enum kind { GRAM, SOLVE, RIDGE } kind;
typedef union report {
    fs_gram_report gram;
    fs_fit_report fit;
} report;
typedef struct task {
    kind what;
    const char *who;
    fs_mpi *m;
    fs_workspace *w;
    const fs_sketch *S;
    int64_t row0;
    const fs_matrix *A, *B;
    double number;        /* rcond, lambda */
    const fs_matrix *out; /* G, X */
    fs_gram_report *gram; /* the caller's report, or NULL */
    fs_fit_report *fit;
} task;

static int at_root(const task *t) { return t->m->rank == t->m->options.root; }
static int gets_result(const task *t) { return at_root(t) || t->m->options.output == FS_MPI_ALL; }

/* The checks before anything is computed; sizes of w are checked by the product and by the task. */
static fs_result tasks_check(const task *t, fs_matrix *Y, fs_matrix *C)
{
    if (t->m->options.output == FS_MPI_SCATTER)
        return fs_fail(FS_EUNSUPPORTED, "%s: the result of a task is on all ranks or on one, it cannot be scattered",
                       t->who);
    FSI_REQUIRE(t->S, "%s: S is NULL", t->who);
    FSI_TRY(fs_matrix_check(t->who, "A", t->A));
    if (t->what != GRAM) {
        FSI_TRY(fs_matrix_check(t->who, "B", t->B));
        FSI_REQUIRE(t->B->rows == t->A->rows, "%s: A has %" PRId64 " rows and B %" PRId64, t->who, t->A->rows,
                    t->B->rows);
    }
    if (gets_result(t)) {
        const int64_t rows = t->A->cols, cols = t->what == GRAM ? rows : t->B->cols;
        FSI_TRY(fs_matrix_check_output(t->who, t->what == GRAM ? "G" : "X", t->out));
        FSI_REQUIRE(t->out->rows == rows && t->out->cols == cols,
                    "%s: %s is %" PRId64 " x %" PRId64 ", it must be %" PRId64 " x %" PRId64, t->who,
                    t->what == GRAM ? "G" : "X", t->out->rows, t->out->cols, rows, cols);
        FSI_REQUIRE(rows * cols <= INT_MAX, "%s: a result of %" PRId64 " x %" PRId64 " does not fit a message", t->who,
                    rows, cols);
    }
    if (t->gram) FSI_TRY(fs_struct_check(t->who, "report", t->gram, sizeof *t->gram));
    if (t->fit) FSI_TRY(fs_struct_check(t->who, "report", t->fit, sizeof *t->fit));
    if (!at_root(t)) return FS_OK;
    FSI_REQUIRE(t->w, "%s: w is NULL on the root", t->who);
    return fs_workspace_views(t->w, Y, C);
}

static fs_result run_on_root(const task *t, double sketch_seconds, report *told)
{
    if (t->what == GRAM) {
        const fs_gram_report start = FS_GRAM_REPORT_INIT;
        told->gram = start;
        FSI_TRY(fs_gram(t->w, t->S, t->out, &told->gram));
        told->gram.sketch_seconds = sketch_seconds;
        told->gram.total_seconds = sketch_seconds + told->gram.solve_seconds;
        return FS_OK;
    }
    const fs_fit_report start = FS_FIT_REPORT_INIT;
    told->fit = start;
    FSI_TRY(fs_workspace_set_sketch(t->w, t->S));
    FSI_TRY(t->what == SOLVE ? fs_solve(t->w, t->number, t->out, &told->fit)
                             : fs_ridge(t->w, t->number, t->out, &told->fit));
    told->fit.sketch_seconds = sketch_seconds;
    told->fit.total_seconds = sketch_seconds + told->fit.solve_seconds;
    return FS_OK;
}

/* [Y C] = S [A B] summed into root's workspace. */
static fs_result sketch(const task *t, fs_matrix *Y, fs_matrix *C)
{
    FSI_TRY(fsi_ranks_apply(t->m, FS_MPI_ROOT, t->S, t->row0, t->A, Y));
    return t->what == GRAM ? FS_OK : fsi_ranks_apply(t->m, FS_MPI_ROOT, t->S, t->row0, t->B, C);
}

/* The result and the report from the root to all; the result in f64, which holds every type. */
static fs_result hand_out(const task *t, report *told)
{
    const int64_t count = t->out->rows * t->out->cols;
    const int root = t->m->options.root;
    fs_result mine = FS_OK;
    double *packed = (double *)(void *)fsi_ranks_scratch(t->m, t->who, (size_t)count * sizeof *packed + 1);
    fs_matrix all = fs_row_major(packed, t->out->rows, t->out->cols, FS_F64);
    if (!packed) mine = FS_ENOMEM;
    else if (at_root(t)) mine = fs_add(t->m->ctx, t->out, 1, 0.0, &all);
    FSI_TRY(fs_mpi_agree(t->m->comm, mine));
    FSI_TRY_MPI(MPI_Bcast(packed, (int)count, MPI_DOUBLE, root, t->m->comm), "broadcasting a result");
    FSI_TRY_MPI(MPI_Bcast(told, (int)sizeof *told, MPI_BYTE, root, t->m->comm), "broadcasting a report");
    if (!at_root(t)) mine = fs_add(t->m->ctx, &all, 1, 0.0, t->out);
    return fs_mpi_agree(t->m->comm, mine);
}

static fs_result tasks_run(const task *t)
{
    fs_matrix Y, C;
    report told;
    const double began = MPI_Wtime();
    FSI_TRY(fs_mpi_agree(t->m->comm, tasks_check(t, &Y, &C)));
    FSI_TRY(sketch(t, at_root(t) ? &Y : NULL, at_root(t) ? &C : NULL));
    memset(&told, 0, sizeof told);
    FSI_TRY(fs_mpi_agree(t->m->comm, at_root(t) ? run_on_root(t, MPI_Wtime() - began, &told) : FS_OK));
    if (t->m->options.output == FS_MPI_ALL) FSI_TRY(hand_out(t, &told));
    if (gets_result(t) && t->gram) fs_struct_write(t->gram, &told.gram, sizeof told.gram);
    if (gets_result(t) && t->fit) fs_struct_write(t->fit, &told.fit, sizeof told.fit);
    return FS_OK;
}

fs_result fs_mpi_gram(fs_mpi *ranks, fs_workspace *w, const fs_sketch *S, int64_t row0, const fs_matrix *A,
                      const fs_matrix *G, fs_gram_report *told)
{
    FSI_REQUIRE(ranks, "fs_mpi_gram: ranks is NULL");
    const task t = {GRAM, "fs_mpi_gram", ranks, w, S, row0, A, NULL, 0.0, G, told, NULL};
    return tasks_run(&t);
}

fs_result fs_mpi_solve(fs_mpi *ranks, fs_workspace *w, const fs_sketch *S, int64_t row0, const fs_matrix *A,
                       const fs_matrix *B, double rcond, const fs_matrix *X, fs_fit_report *told)
{
    FSI_REQUIRE(ranks, "fs_mpi_solve: ranks is NULL");
    const task t = {SOLVE, "fs_mpi_solve", ranks, w, S, row0, A, B, rcond, X, NULL, told};
    return tasks_run(&t);
}

fs_result fs_mpi_ridge(fs_mpi *ranks, fs_workspace *w, const fs_sketch *S, int64_t row0, const fs_matrix *A,
                       const fs_matrix *B, double lambda, const fs_matrix *X, fs_fit_report *told)
{
    FSI_REQUIRE(ranks, "fs_mpi_ridge: ranks is NULL");
    const task t = {RIDGE, "fs_mpi_ridge", ranks, w, S, row0, A, B, lambda, X, NULL, told};
    return tasks_run(&t);
}
