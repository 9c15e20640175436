/* tuning.c - see tuning.h. */
#include "cuda/plan/tuning.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/plan/kernel.h"
#include "cuda/plan/tuning_format.h"

typedef struct entry {
    fsi_problem problem;
    fsi_plan plan;
} entry;
struct fsi_tuning {
    int count;
    entry entries[];
};

static int read_entry(const char *line, entry *e)
{
    fsi_problem *p = &e->problem;
    fsi_plan *plan = &e->plan;
    char kernel[32];
    int shuffle, dtype, precision, end = 0;
    memset(e, 0, sizeof *e);
    if (sscanf(line, FSI_TUNING_PROBLEM ": " FSI_TUNING_PLAN("31[a-z0-9_]") "%n", &p->rows, &p->n, &p->k, &p->M,
               &p->kappa, &p->s, &p->interleave, &p->block_rows, &p->tiles, &p->tile_rows, &p->tile_nonzeros,
               &p->local_rows, &shuffle, &dtype, &precision, &p->across, &p->down, &p->aligned, &p->whole, &p->mapped,
               &p->packed, kernel, &plan->instance, &plan->slices, &plan->length, &plan->threads, &plan->team,
               &plan->chunk, &plan->group, &plan->shared, &plan->cluster, &end) != 31 ||
        end == 0 || (line[end] && line[end] != '\n'))
        return 0;
    p->shuffle = shuffle;
    p->dtype = (fs_dtype)dtype;
    p->precision = (fs_precision)precision;
    plan->kernel = fsi_kernel_named(kernel);
    return 1;
}

static int same_problem(const fsi_problem *a, const fsi_problem *b)
{
    return a->rows == b->rows && a->n == b->n && a->k == b->k && a->M == b->M && a->kappa == b->kappa && a->s == b->s &&
           a->interleave == b->interleave && a->block_rows == b->block_rows && a->tiles == b->tiles &&
           a->tile_rows == b->tile_rows && a->tile_nonzeros == b->tile_nonzeros && a->local_rows == b->local_rows &&
           a->shuffle == b->shuffle && a->dtype == b->dtype && a->precision == b->precision && a->across == b->across &&
           a->down == b->down && a->aligned == b->aligned && a->whole == b->whole && a->mapped == b->mapped &&
           a->packed == b->packed && a->input == b->input;
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
    if (!fgets(line, sizeof line, file) || strncmp(line, FSI_TUNING_HEAD " ", strlen(FSI_TUNING_HEAD) + 1) != 0) {
        snprintf(why, bytes, "%s: line 1 does not begin with '" FSI_TUNING_HEAD "'", path);
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
