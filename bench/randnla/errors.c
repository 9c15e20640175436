/* errors.c - from S W to the errors of the tasks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "randnla.h"

static const size_t f32 = sizeof(float);

int nla_room_open(nla_machine *m, const nla_matrix *like, int64_t k, unsigned tasks, nla_room *room)
{
    const int64_t n = like->set.n, r = n < NLA_BASIS ? n : NLA_BASIS;
    fs_task_shape fit = FS_TASK_SHAPE_INIT, embed = FS_TASK_SHAPE_INIT;
    *room = (nla_room){.k = k, .n = n, .basis = r, .wide = like->wide};
    fit.k = k, fit.n = n, fit.rhs = NLA_RHS;
    embed.k = k, embed.n = r;
    room->YW = m->alloc(f32 * (size_t)(k * room->wide));
    room->C = m->alloc(f32 * (size_t)(k * NLA_RHS));
    room->X = m->alloc(f32 * (size_t)(n * NLA_RHS));
    room->eye = m->alloc(f32 * (size_t)(r * r));
    room->gram = malloc(sizeof *room->gram * (size_t)(n * n));
    float *eye = calloc((size_t)(r * r), f32);
    int bad = !room->YW || !room->C || !room->X || !room->eye || !room->gram || !eye;
    if (!bad) {
        for (int64_t i = 0; i < r; i++) eye[i * r + i] = 1;
        bad = m->copy(m, room->eye, f32 * (size_t)r, eye, f32 * (size_t)r, f32 * (size_t)r, (size_t)r) ||
              bench_fs_failed(fs_workspace_create(&room->fit, m->context, &fit), "making a workspace") ||
              bench_fs_failed(fs_workspace_create(&room->embed, m->context, &embed), "making a workspace");
    }
    if (!bad && tasks & (1u << TASK_RIDGE | 1u << TASK_SOLVE))
        bad = m->textbook->open(&room->textbook, m->g, k, n, NLA_RHS);
    free(eye);
    return bad;
}

void nla_room_close(nla_machine *m, nla_room *room)
{
    m->textbook->close(room->textbook);
    fs_workspace_destroy(room->fit);
    fs_workspace_destroy(room->embed);
    m->release(room->YW);
    m->release(room->C);
    m->release(room->X);
    m->release(room->eye);
    free(room->gram);
    memset(room, 0, sizeof *room);
}

/* Columns first ... first + width - 1 of S W, packed, as Y of a workspace. */
static int put(nla_machine *m, const nla_room *room, int64_t first, int64_t width, void *to)
{
    return m->copy(m, to, f32 * (size_t)width, room->YW + first, f32 * (size_t)room->wide, f32 * (size_t)width,
                   (size_t)room->k);
}

static int gram_error(nla_room *room, const nla_matrix *a, double *error)
{
    fs_matrix G = fs_row_major(room->gram, room->n, room->n, FS_F64);
    double squares = 0;
    if (bench_fs_failed(fs_gram(room->fit, NULL, &G, NULL), "making Y'Y")) return 1;
#pragma omp parallel for reduction(+ : squares) schedule(static)
    for (int64_t i = 0; i < room->n * room->n; i++) {
        const double gap = room->gram[i] - a->gram[i];
        squares += gap * gap;
    }
    *error = sqrt(squares) / a->gram_norm;
    return 0;
}

/* |(SQ)'SQ - I'I|_2 / |I'I|_2. */
static int ose_error(nla_machine *m, nla_room *room, double *error)
{
    fs_matrix SQ, eye = nla_view(m, room->eye, room->basis, room->basis, room->basis);
    return bench_fs_failed(fs_workspace_views(room->embed, &SQ, NULL), "looking into a workspace") ||
           put(m, room, room->n, room->basis, SQ.data) ||
           bench_fs_failed(fs_gram_error(room->embed, &eye, NULL, error), "making an embedding's error");
}

/* x from Y and C, then |A x - b| / |b|. */
static int fit_error(nla_machine *m, nla_room *room, const nla_matrix *a, int by_textbook, enum nla_task task,
                     double *relative)
{
    fs_matrix Y, C, A = nla_matrix_A(m, a), B = nla_matrix_b(m, a), X = fs_col_major(room->X, room->n, NLA_RHS, FS_F32);
    X.memory = m->memory;
    if (bench_fs_failed(fs_workspace_views(room->fit, &Y, &C), "looking into a workspace") ||
        put(m, room, 0, room->n, Y.data) || put(m, room, room->wide - NLA_PAD, NLA_RHS, C.data))
        return 1;
    int bad = 0;
    if (by_textbook) {
        for (int side = 0; side < NLA_RHS && !bad; side++)
            bad = m->copy(m, room->C + side * room->k, f32, (float *)C.data + side, f32 * NLA_RHS, f32,
                          (size_t)room->k);
        if (!bad)
            bad = task == TASK_RIDGE ? m->textbook->ridge(room->textbook, Y.data, room->C, (float)NLA_LAMBDA, room->X)
                                     : m->textbook->solve(room->textbook, Y.data, room->C, room->X);
    } else
        bad = task == TASK_RIDGE ? bench_fs_failed(fs_ridge(room->fit, NLA_LAMBDA, &X, NULL), "sketch-and-ridge")
                                 : bench_fs_failed(fs_solve(room->fit, 0.0, &X, NULL), "sketch-and-solve");
    if (bad || bench_fs_failed(fs_residual(room->fit, &A, &B, &X, relative), "making residuals")) return 1;
    for (int side = 0; side < NLA_RHS; side++) relative[side] /= a->b_norm[side];
    return 0;
}

int nla_errors_of(nla_machine *m, nla_room *room, const nla_matrix *a, int by_textbook, unsigned tasks,
                  nla_errors *errors)
{
    *errors = (nla_errors){NAN, NAN, {NAN, NAN}, {NAN, NAN}};
    fs_matrix Y;
    if (tasks & 1u << TASK_GRAM &&
        (bench_fs_failed(fs_workspace_views(room->fit, &Y, NULL), "looking into a workspace") ||
         put(m, room, 0, room->n, Y.data) || gram_error(room, a, &errors->gram)))
        return 1;
    if (tasks & 1u << TASK_OSE && a->basis && ose_error(m, room, &errors->ose)) return 1;
    if (tasks & 1u << TASK_RIDGE && fit_error(m, room, a, by_textbook, TASK_RIDGE, errors->ridge)) return 1;
    return tasks & 1u << TASK_SOLVE && fit_error(m, room, a, by_textbook, TASK_SOLVE, errors->solve);
}
