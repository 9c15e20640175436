/* grid.c - the cells of `fsbench grass`: cases, k and methods; those that a record has already are skipped. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/mask.h"
#include "grass.h"
#include "apps/common/progress.h"

enum { CELL = 256, SECTOR = 32, SEED = 42 };

/* The state of a run over the grid. */
typedef struct grid {
    const grass_options *o;
    grass_machine m;
    fs_context *exact; /* a CPU context, with whose results others are compared */
    nla_record record;
    progress bar;
    double start;
    int steps, done, late, failed;
} grid;

/* One case at one k: what is kept, in host memory and in the machine's. */
typedef struct batch {
    const char *name;
    int which;
    int64_t k, kept;
    int64_t *host, *list; /* NULL: all */
    int32_t *pairs;       /* of case `layers`, in the machine's memory; NULL elsewhere */
    int64_t read;         /* bytes of the sectors that hold what is kept, of all samples */
} batch;

static int exists(const grid *g, const grass_method *method, int which, int64_t k)
{
    const char *names = g->o->common.methods;
    const size_t length = strlen(method->name);
    int named = !*names;
    for (const char *at = names; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        named |= strcspn(at, ",") == length && !strncmp(at, method->name, length);
    const int there = g->o->common.cuda ? method->gpu != NULL : method->cpu != NULL;
    if (which == GRASS_LAYERS && grass_layers_parameters(&g->o->layers) != g->o->p) return 0;
    return named && there && (g->o->cases & which) && grass_columns(method, grass_kept(g->o, which, k), k) > 0;
}

/* batches ---------------------------------------------------------------------------------------------------- */

static int64_t bytes_of_sectors(const batch *b, int64_t n, int64_t p)
{
    const int64_t values = SECTOR / (int64_t)sizeof(float);
    int64_t sectors = 0, last = -1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < b->kept; j++) {
            const int64_t sector = (i * p + b->host[j]) / values;
            sectors += sector != last;
            last = sector;
        }
    const int64_t bytes = SECTOR * sectors, all = n * p * (int64_t)sizeof(float);
    return bytes < all ? bytes : all;
}

static int make_pairs(grid *g, batch *b)
{
    nla_machine *base = &g->m.base;
    const size_t bytes = 2 * sizeof *b->pairs * (size_t)b->kept;
    int32_t *host = malloc(bytes);
    b->pairs = base->alloc(bytes);
    for (int64_t i = 0; host && i < b->kept; i++) grass_layers_pair(&g->o->layers, b->host[i], host + 2 * i);
    const int bad = !host || !b->pairs || base->copy(base, b->pairs, bytes, host, bytes, bytes, 1);
    free(host);
    return bad;
}

static int batch_open(grid *g, batch *b, int which, int64_t k)
{
    static const char *const names[] = {
        [GRASS_MASKED] = "masked", [GRASS_RUNS] = "runs", [GRASS_LAYERS] = "layers", [GRASS_ALL] = "all"};
    const grass_options *o = g->o;
    nla_machine *base = &g->m.base;
    *b = (batch){.name = names[which],
                 .which = which,
                 .k = k,
                 .kept = grass_kept(o, which, k),
                 .read = o->n * o->p * (int64_t)sizeof(float)};
    if (which == GRASS_ALL) return 0;
    const size_t bytes = sizeof *b->host * (size_t)b->kept;
    b->host = malloc(bytes), b->list = base->alloc(bytes);
    if (!b->host || !b->list) return 1;
    fsi_mask_choose(SEED, o->p, b->kept, which == GRASS_RUNS ? GRASS_RUN : 1, b->host);
    b->read = bytes_of_sectors(b, o->n, o->p);
    return base->copy(base, b->list, bytes, b->host, bytes, bytes, 1) || (which == GRASS_LAYERS && make_pairs(g, b));
}
static void batch_close(grid *g, batch *b)
{
    free(b->host);
    g->m.base.release(b->pairs);
    g->m.base.release(b->list);
}

/* measuring -------------------------------------------------------------------------------------------------- */

/* Some steps of a projection, as work. */
typedef struct part {
    projection *p;
    int steps;
} part;
static int run_part(void *user, void *from, void *to)
{
    const part *w = user;
    return projection_run(w->p, w->steps, from, to);
}
static int make_S(void *user)
{
    const projection *p = user;
    return p->peer->prepare(p->state);
}

/* What was measured of a cell; NaN: nothing. */
typedef struct cell_times {
    grass_times whole;
    double prep_ms, gather_ms, transpose_ms, product_ms, error;
} cell_times;

static int measure_part(grid *g, const batch *b, projection *p, int steps, grass_times *t)
{
    part w = {p, steps};
    const int64_t to = p->n * b->k * (int64_t)sizeof(float), from = p->n * p->pitch * (int64_t)sizeof(float);
    const grass_work work = {from, to, p->pairs ? from : b->read, to, run_part, &w};
    return g->m.measure(&g->m, &work, t);
}

/* The whole, its error, and then the parts, which work on the buffers that the whole has left. */
static int measure(grid *g, const batch *b, projection *p, cell_times *t)
{
    const struct {
        int step;
        double *ms;
    } parts[] = {{GRASS_GATHER, &t->gather_ms}, {GRASS_TRANSPOSE, &t->transpose_ms}, {GRASS_PRODUCT, &t->product_ms}};
    *t = (cell_times){.prep_ms = NAN, .gather_ms = NAN, .transpose_ms = NAN, .product_ms = NAN, .error = NAN};
    if (measure_part(g, b, p, GRASS_STEPS, &t->whole) || projection_error(p, g->exact, b->host, &t->error)) return 1;
    for (int i = 0; i < 3; i++) {
        grass_times alone;
        if (projection_steps(p) == GRASS_PRODUCT || !(projection_steps(p) & parts[i].step)) continue;
        if (measure_part(g, b, p, parts[i].step, &alone)) return 1;
        *parts[i].ms = alone.ms;
    }
    return p->peer && p->peer->prepare && g->m.measure_alone(&g->m, make_S, p, &t->prep_ms);
}

/* lines ------------------------------------------------------------------------------------------------------ */

static void measured(nla_line *l, const char *name, double value)
{
    if (!isnan(value)) nla_line_number(l, name, value);
}

static int write_line(grid *g, const char *cell, const batch *b, const projection *p, const cell_times *t)
{
    static const char *const families[] = {"?", "blockperm", "sjlt", "blockrow", "srht", "gaussian"};
    static const char *const shuffles[] = {"none", "none", "rows", "groups"};
    const fs_spec *spec = &p->problem.spec;
    const nla_machine *base = &g->m.base;
    char backend[256];
    nla_line l;
    nla_line_start(&l, cell);
    nla_line_word(&l, "case", b->name);
    nla_line_word(&l, "op", "project");
    nla_line_word(&l, "method", p->method->name);
    nla_line_word(&l, "by", p->peer ? "peer" : "library");
    nla_line_word(&l, "from", p->pairs ? "layers" : "gradients");
    nla_line_word(&l, "family", families[spec->family]);
    nla_line_whole(&l, "p", p->p);
    nla_line_whole(&l, "mask", b->list ? b->kept : 0);
    if (b->list) nla_line_whole(&l, "run", b->which == GRASS_RUNS ? GRASS_RUN : 1);
    nla_line_whole(&l, "d", spec->d);
    nla_line_whole(&l, "n", p->n);
    nla_line_whole(&l, "k", spec->k);
    nla_line_whole(&l, "M", spec->M);
    nla_line_whole(&l, "kappa", spec->kappa);
    nla_line_whole(&l, "s", spec->s);
    nla_line_word(&l, "shuffle", shuffles[spec->shuffle]);
    nla_line_whole(&l, "interleave", spec->interleave);
    nla_line_word(&l, "layout", "batch");
    nla_line_word(&l, "dtype", "f32");
    nla_line_word(&l, "precision", p->method->product == PRODUCT_TF32 ? "tf32" : "full");
    nla_line_number(&l, "floor_ms", t->whole.floor_ms);
    nla_line_number(&l, "ms", t->whole.ms);
    nla_line_number(&l, "ms_min", t->whole.ms_min);
    nla_line_number(&l, "ratio", t->whole.ms / t->whole.floor_ms);
    measured(&l, "gather_ms", t->gather_ms);
    measured(&l, "transpose_ms", t->transpose_ms);
    measured(&l, "product_ms", t->product_ms);
    measured(&l, "prep_ms", t->prep_ms);
    measured(&l, "call_us", t->whole.call_us);
    nla_line_number(&l, "error", t->error);
    fs_context_describe(base->context, backend, sizeof backend);
    nla_line_word(&l, "backend", backend);
    nla_line_word(&l, "machine", base->name);
    if (base->driver) nla_line_word(&l, "driver", base->driver);
    if (base->cuda) nla_line_word(&l, "cuda", base->cuda);
    nla_line_whole(&l, "threads", g->o->common.threads);
    nla_line_whole(&l, "reps", g->o->common.repetitions);
    nla_line_word(&l, "commit", g->o->common.commit);
    nla_line_word(&l, "date", bench_date());
    return nla_record_write(&g->record, &l);
}

/* the grid --------------------------------------------------------------------------------------------------- */

static void run_cell(grid *g, const batch *b, const grass_method *method)
{
    char cell[CELL];
    projection p;
    cell_times times;
    snprintf(cell, sizeof cell, "grass/%s/%" PRId64 "x%" PRId64 "/k%" PRId64 "/%s", b->name, g->o->n, g->o->p, b->k,
             method->name);
    progress_at(&g->bar, (double)g->done++ / g->steps, "%s", cell);
    if (nla_record_has(&g->record, cell, -1)) return;
    if (g->o->seconds > 0 && bench_now() - g->start > g->o->seconds) {
        g->late++;
        return;
    }
    const int bad = projection_open(&p, &g->m, g->o, method, b->kept, b->list, b->pairs, b->k) ||
                    measure(g, b, &p, &times) || write_line(g, cell, b, &p, &times);
    /* An operation that a device does not support is not an error of the benchmark; it has no line. */
    if (bad && p.unsupported) fprintf(stderr, "fsbench: %s is unsupported: %s\n", cell, fs_error_message());
    else if (bad) fprintf(stderr, "fsbench: %s has no result\n", cell);
    g->failed |= bad && !p.unsupported;
    projection_close(&p);
}

static void run_batch(grid *g, int which, int64_t k)
{
    batch b;
    int any = 0;
    for (int i = 0; i < grass_method_count; i++) any |= exists(g, &grass_methods[i], which, k);
    if (!any) return;
    if (batch_open(g, &b, which, k)) {
        fprintf(stderr, "fsbench: there is no mask of %" PRId64 " coordinates\n", b.kept);
        g->failed = 1;
    } else {
        for (int i = 0; i < grass_method_count; i++)
            if (exists(g, &grass_methods[i], which, k)) run_cell(g, &b, &grass_methods[i]);
    }
    batch_close(g, &b);
}

static int open_exact(grid *g)
{
    fs_context_options where = FS_CONTEXT_INIT;
    where.backend = FS_BACKEND_CPU;
    where.threads = g->o->common.threads;
    return bench_fs_failed(fs_context_create(&g->exact, &where), "opening a CPU context");
}

int grass_grid(const grass_options *o)
{
    grid g = {.o = o, .m = grass_cpu, .start = bench_now()};
    int64_t most_k = 0;
#ifdef FS_BENCH_CUDA
    if (o->common.cuda) g.m = grass_gpu;
#endif
    for (int i = 0; i < o->common.k_count; i++) {
        if (o->common.k[i] > most_k) most_k = o->common.k[i];
        for (int j = 0; j < grass_method_count; j++)
            for (int which = GRASS_MASKED; which <= GRASS_ALL; which *= 2)
                g.steps += exists(&g, &grass_methods[j], which, o->common.k[i]) != 0;
    }
    /* Reads the record first, so that a broken one is refused before anything is measured. */
    int failed = nla_record_open(&g.record, o->common.record, "grass") || open_exact(&g) || g.m.open(&g.m, o, most_k);
    if (!failed) {
        g.bar = progress_start(1, o->common.quiet);
        for (int which = GRASS_MASKED; which <= GRASS_ALL; which *= 2)
            for (int i = 0; i < o->common.k_count; i++) run_batch(&g, which, o->common.k[i]);
        progress_end(&g.bar);
        if (g.late) fprintf(stderr, "fsbench: the time was up before %d of %d cells\n", g.late, g.steps);
    }
    g.m.close(&g.m);
    fs_context_destroy(g.exact);
    failed |= nla_record_close(&g.record);
    return failed | g.failed;
}
