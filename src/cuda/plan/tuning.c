/* tuning.c - see tuning.h. */
#include "cuda/plan/tuning.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    fsi_problem problem;
    fsi_plan plan;
} entry;
struct fsi_tuning {
    int count;
    entry entries[];
};

/* A new number whenever instances.h numbers instances anew. */
#define HEAD "flashsketch-tuning 5"
#define PROBLEM_FORMAT \
    "rows=%" SCNd64 " n=%" SCNd64 " k=%" SCNd64 " M=%" SCNd64 " kappa=%" SCNd64 " s=%" SCNd64 " interleave=%" SCNd64 \
    " block_rows=%" SCNd64 " slots=%" SCNd64 " shuffle=%d dtype=%d precision=%d across=%d" \
    " down=%d aligned=%d whole=%d mapped=%d once=%d"
#define PLAN_FORMAT \
    "kernel=%d instance=%d parts=%d length=%" SCNd64 " threads=%d team=%d chunk=%d group=%d" \
    " shared=%" SCNd64 " cluster=%d"

void fsi_tuning_write_head(FILE *to, const char *gpu_name) { fprintf(to, HEAD " %s\n", gpu_name); }

void fsi_tuning_write(FILE *to, const fsi_problem *p, const fsi_plan *plan)
{
    fprintf(to, PROBLEM_FORMAT ": " PLAN_FORMAT "\n", p->rows, p->n, p->k, p->M, p->kappa, p->s, p->interleave,
            p->block_rows, p->local_rows, (int)p->shuffle, (int)p->dtype, (int)p->precision, p->across, p->down,
            p->aligned, p->whole, p->mapped, p->once, (int)plan->kernel, plan->instance, plan->slices, plan->length,
            plan->threads, plan->team, plan->chunk, plan->group, plan->shared, plan->cluster);
}

static int read_entry(const char *line, entry *e)
{
    fsi_problem *p = &e->problem;
    fsi_plan *plan = &e->plan;
    int shuffle, dtype, precision, kernel, end = 0;
    memset(e, 0, sizeof *e);
    if (sscanf(line, PROBLEM_FORMAT ": " PLAN_FORMAT "%n", &p->rows, &p->n, &p->k, &p->M, &p->kappa, &p->s,
               &p->interleave, &p->block_rows, &p->local_rows, &shuffle, &dtype, &precision, &p->across, &p->down,
               &p->aligned, &p->whole, &p->mapped, &p->once, &kernel, &plan->instance, &plan->slices, &plan->length,
               &plan->threads, &plan->team, &plan->chunk, &plan->group, &plan->shared, &plan->cluster, &end) != 28 ||
        end == 0 || (line[end] && line[end] != '\n'))
        return 0;
    p->shuffle = shuffle;
    p->dtype = (fs_dtype)dtype;
    p->precision = (fs_precision)precision;
    plan->kernel = (fsi_kernel)kernel;
    return 1;
}

static int same_problem(const fsi_problem *a, const fsi_problem *b)
{
    return a->rows == b->rows && a->n == b->n && a->k == b->k && a->M == b->M && a->kappa == b->kappa && a->s == b->s &&
           a->interleave == b->interleave && a->block_rows == b->block_rows && a->local_rows == b->local_rows &&
           a->shuffle == b->shuffle && a->dtype == b->dtype && a->precision == b->precision && a->across == b->across &&
           a->down == b->down && a->aligned == b->aligned && a->whole == b->whole && a->mapped == b->mapped &&
           a->once == b->once;
}
int fsi_tuning_find(const fsi_tuning *table, const fsi_problem *p, fsi_plan *plan)
{
    for (int i = 0; i < table->count; i++)
        if (same_problem(&table->entries[i].problem, p)) {
            *plan = table->entries[i].plan;
            return 1;
        }
    return 0;
}

fsi_tuning *fsi_tuning_read(const char *path, char *why, size_t bytes)
{
    char line[1024];
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(why, bytes, "%s: %s", path, strerror(errno));
        return NULL;
    }
    fsi_tuning *table = malloc(sizeof *table);
    int number = 1;
    if (table) table->count = 0;
    if (!fgets(line, sizeof line, file) || strncmp(line, HEAD " ", strlen(HEAD) + 1) != 0) {
        snprintf(why, bytes, "%s: line 1 does not begin with '" HEAD "'", path);
        goto bad;
    }
    while (table && fgets(line, sizeof line, file)) {
        number++;
        if (line[0] == '#' || line[0] == '\n') continue;
        fsi_tuning *more = realloc(table, sizeof *table + (size_t)(table->count + 1) * sizeof(entry));
        if (!more) {
            free(table);
            table = NULL;
            break;
        }
        table = more;
        entry *next = &table->entries[table->count];
        if (!read_entry(line, next) || !fsi_plan_sound(&next->problem, &next->plan)) {
            snprintf(why, bytes, "%s: line %d is not an entry of a table of this version", path, number);
            goto bad;
        }
        table->count++;
    }
    if (!table) snprintf(why, bytes, "%s: no memory for its entries", path);
    fclose(file);
    return table;
bad:
    fclose(file);
    free(table);
    return NULL;
}
