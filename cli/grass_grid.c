/* grass_grid.c - see grass_grid.h. */
#include "grass_grid.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "spec_options.h"

/* The shuffle that fs_attribution_create takes where none is given, so that a cell has the full spec. */
static void choose_shuffle(fs_spec *sketch)
{
    if ((sketch->family != 0 && sketch->family != FS_BLOCKPERM) || sketch->shuffle != 0) return;
    sketch->shuffle = FS_SHUFFLE_GROUPS;
    if (sketch->interleave == 0) sketch->interleave = 1;
}

/* the sketches ----------------------------------------------------------------------------------------------- */

static int make_cell(grass_cell *cell, const grass_ask *ask, fs_family family, int64_t k, int64_t seed,
                     int64_t parameters, const char *id)
{
    fs_sketch *S = NULL;
    char runs[40] = "";
    cell->mask = ask->mask >= 0 ? ask->mask : 4 * k < parameters ? 4 * k : parameters;
    if (cell->mask > parameters)
        return cli_fail("a mask of %" PRId64 " coordinates, gradients have %" PRId64, cell->mask, parameters);
    if (cell->mask == parameters && ask->mask < 0) cell->mask -= cell->mask % ask->run;
    if (cell->mask && cell->mask % ask->run)
        return cli_fail("a mask of %" PRId64 " coordinates is not a multiple of the run length %" PRId64, cell->mask,
                        ask->run);
    if (cell->mask && ask->run > 1) snprintf(runs, sizeof runs, " in runs of %" PRId64, ask->run);
    cell->spec = ask->sketch;
    cell->spec.family = family;
    cell->spec.k = k;
    cell->spec.seed += (uint64_t)seed;
    cell->spec.d = cell->mask ? cell->mask : parameters;
    choose_shuffle(&cell->spec);
    const int code = spec_sketch(&cell->spec, &S, &cell->full);
    fs_sketch_describe(S, cell->text, sizeof cell->text);
    snprintf(cell->name, sizeof cell->name, "%s; mask %" PRId64 "%s; %s", cell->text, cell->mask, runs, id);
    fs_sketch_destroy(S);
    return code;
}

int grass_grid_make(grass_grid *grid, const grass_ask *ask, int64_t parameters, const char *id)
{
    const int64_t round = (int64_t)ask->sizes * ask->families;
    grid->ask = ask;
    grid->count = 0;
    grid->cells = cli_array(ask->seeds, round, sizeof *grid->cells);
    if (!grid->cells) return cli_fail("no memory for %" PRId64 " x %" PRId64 " sketches", ask->seeds, round);
    for (int64_t seed = 0; seed < ask->seeds; seed++)
        for (int i = 0; i < ask->sizes; i++)
            for (int f = 0; f < ask->families; f++, grid->count++)
                if (make_cell(&grid->cells[grid->count], ask, ask->family[f], ask->k[i], seed, parameters, id)) {
                    grass_grid_free(grid);
                    return EXIT_FAILURE;
                }
    return 0;
}

void grass_grid_free(grass_grid *grid)
{
    free(grid->cells);
    grid->cells = NULL;
}

double grass_work(const fs_spec *spec) { return (double)spec->k * (spec->family == FS_GAUSSIAN ? 2 : 1); }

/* results of all seeds ---------------------------------------------------------------------------------------- */

static const cJSON *line_of(const grass_record *record, const grass_cell *cell)
{
    return grass_record_find(record, cell->name)->json;
}

/* The LDS of every test image, for each seed of a family at a k, whose first cell this is. */
static int read_values(const grass_grid *grid, const grass_record *record, const grass_cell *first, int64_t tests,
                       double *values)
{
    const int64_t round = (int64_t)grid->ask->sizes * grid->ask->families;
    for (int64_t s = 0; s < grid->ask->seeds; s++) {
        const cJSON *each = cJSON_GetObjectItem(line_of(record, first + s * round), "lds_each"), *value;
        int64_t t = 0;
        cJSON_ArrayForEach(value, each)
        {
            if (t < tests) values[s * tests + t] = cJSON_IsNumber(value) ? value->valuedouble : NAN;
            t++;
        }
        if (t != tests)
            return cli_fail("%s: a line has LDS of %" PRId64 " images, there are %" PRId64 "; remove it: %s",
                            record->path, t, tests, first[s * round].name);
    }
    return 0;
}

/* Values that need no image: means over the seeds' lines. */
static void read_numbers(const grass_grid *grid, const grass_record *record, grass_summary *out)
{
    const int64_t round = (int64_t)grid->ask->sizes * grid->ask->families, seeds = grid->ask->seeds;
    double sum = 0, squares = 0, seconds = 0, batches = 0;
    for (int64_t s = 0; s < seeds; s++) {
        const cJSON *line = line_of(record, out->cell + s * round);
        const double lds = grass_number(line, "lds"), damping = grass_number(line, "damping");
        sum += lds;
        squares += lds * lds;
        seconds += grass_number(line, "project_seconds");
        batches += grass_number(line, "project_batches");
        if (s == 0 || damping < out->damping[0]) out->damping[0] = damping;
        if (s == 0 || damping > out->damping[1]) out->damping[1] = damping;
    }
    const double spread = squares - sum * sum / (double)seeds;
    out->seed_deviation = seeds > 1 ? sqrt(spread > 0 ? spread / (double)(seeds - 1) : 0) : NAN;
    out->batch_ms = 1e3 * seconds / batches; /* NaN without a batch */
}

int grass_summarise(const grass_grid *grid, const grass_record *record, int64_t tests, uint64_t seed,
                    grass_summary *summaries)
{
    const grass_ask *ask = grid->ask;
    double *values = cli_array(ask->seeds, tests, sizeof *values);
    double *gaussian = cli_array(ask->seeds, tests, sizeof *gaussian);
    double *work = cli_array(1, 2 * tests + LDS_SAMPLES, sizeof *work);
    int code = values && gaussian && work ? 0 : cli_fail("no memory for the LDS of %" PRId64 " images", tests);
    for (int i = 0; i < ask->sizes && !code; i++) {
        const grass_cell *row = grid->cells + i * ask->families, *dense = NULL;
        for (int f = 0; f < ask->families; f++)
            if (ask->family[f] == FS_GAUSSIAN) dense = row + f;
        if (dense) code = read_values(grid, record, dense, tests, gaussian);
        for (int f = 0; f < ask->families && !code; f++) {
            grass_summary *out = &summaries[i * ask->families + f];
            *out = (grass_summary){.cell = row + f, .compared = dense && dense != row + f};
            read_numbers(grid, record, out);
            code = read_values(grid, record, row + f, tests, values);
            if (code) break;
            out->lds = lds_summarise(tests, ask->seeds, values, seed, work);
            for (int64_t j = 0; j < ask->seeds * tests && out->compared; j++) values[j] -= gaussian[j];
            if (out->compared) out->difference = lds_summarise(tests, ask->seeds, values, seed, work);
        }
    }
    free(values);
    free(gaussian);
    free(work);
    return code;
}

/* printing --------------------------------------------------------------------------------------------------- */

void grass_print_table(const grass_grid *grid, const grass_summary *summaries)
{
    int compared = 0;
    printf("\n%-9s %6s %7s %5s %7s %8s  %-17s %11s %9s  %s\n", "family", "k", "mask", "seeds", "LDS", "+-seeds",
           "interval", "damping", "ms/batch", "less the Gaussian's");
    for (int i = 0; i < grid->ask->sizes * grid->ask->families; i++) {
        const grass_summary *s = &summaries[i];
        char mask[32] = "all", seeds[32] = "-", ms[32] = "-", damping[32], difference[96] = "-";
        if (s->cell->mask) snprintf(mask, sizeof mask, "%" PRId64, s->cell->mask);
        if (!isnan(s->seed_deviation)) snprintf(seeds, sizeof seeds, "%.4f", s->seed_deviation);
        if (!isnan(s->batch_ms)) snprintf(ms, sizeof ms, "%.3g", s->batch_ms);
        const int length = snprintf(damping, sizeof damping, "%g", s->damping[0]);
        if (s->damping[0] < s->damping[1])
            snprintf(damping + length, sizeof damping - (size_t)length, "-%g", s->damping[1]);
        if (s->compared)
            snprintf(difference, sizeof difference, "%+.4f, %+.4f to %+.4f", s->difference.mean, s->difference.low,
                     s->difference.high);
        compared |= s->compared;
        printf("%-9s %6" PRId64 " %7s %5" PRId64 " %7.4f %8s  %.4f to %.4f  %11s %9s  %s\n",
               fs_family_name(s->cell->spec.family), s->cell->spec.k, mask, grid->ask->seeds, s->lds.mean, seeds,
               s->lds.low, s->lds.high, damping, ms, difference);
    }
    printf("\n"
           "LDS       mean over %" PRId64 " test images and the seeds\n"
           "+-seeds   deviation of a seed's mean\n"
           "interval  of 95 %% of bootstrap samples of images and seeds\n"
           "ms/batch  to mask and sketch a batch of gradients; -: all features were kept\n",
           summaries[0].lds.count);
    if (compared)
        printf("less the Gaussian's: image by image, at the same models and masks, with its interval;\n"
               "          no difference is seen where it holds 0\n");
}

static void add_number(cJSON *out, const char *name, double value)
{
    if (isnan(value)) cJSON_AddNullToObject(out, name);
    else cJSON_AddNumberToObject(out, name, value);
}

int grass_print_summaries(const grass_grid *grid, const grass_summary *summaries)
{
    int code = 0;
    for (int i = 0; i < grid->ask->sizes * grid->ask->families && !code; i++) {
        const grass_summary *s = &summaries[i];
        cJSON *out = cJSON_CreateObject();
        cJSON_AddStringToObject(out, "summary", fs_family_name(s->cell->spec.family));
        json_whole(out, "k", s->cell->spec.k);
        json_whole(out, "mask", s->cell->mask);
        json_whole(out, "seeds", grid->ask->seeds);
        add_number(out, "lds", s->lds.mean);
        add_number(out, "lds_seed_deviation", s->seed_deviation);
        add_number(out, "lds_low", s->lds.low);
        add_number(out, "lds_high", s->lds.high);
        json_whole(out, "lds_count", s->lds.count);
        add_number(out, "damping_least", s->damping[0]);
        add_number(out, "damping_largest", s->damping[1]);
        add_number(out, "batch_ms", s->batch_ms);
        if (s->compared) {
            add_number(out, "less_gaussian", s->difference.mean);
            add_number(out, "less_gaussian_low", s->difference.low);
            add_number(out, "less_gaussian_high", s->difference.high);
        }
        code = json_print_line(out);
    }
    return code;
}
