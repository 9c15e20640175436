/* passes.c - see passes.h. */
#include "passes.h"

#include <flashsketch_extend.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "json.h"

#define KEY "flashsketch-solver"
enum { VERSION = 1, READ_FIELDS = 4 };

int passes_start(passes *p, const char *output, double every)
{
    p->is_kept = 1;
    return checkpoint_start(&p->state, output, every);
}

void passes_free(passes *p)
{
    free(p->reads);
    free(p->sums);
    free(p->pairs);
}

void passes_end(const passes *p)
{
    if (p->is_kept) checkpoint_end(&p->state);
}

/* the description -------------------------------------------------------------------------------------------- */

static passes_pair *add_pair(passes *p)
{
    passes_pair *more = p->failed ? NULL : realloc(p->pairs, (size_t)(p->pair_count + 1) * sizeof *more);
    p->failed = !more;
    if (!more) return NULL;
    p->pairs = more;
    more += p->pair_count++;
    memset(more, 0, sizeof *more);
    return more;
}

static void add(passes *p, const char *file, const char *name, const char *value)
{
    passes_pair *pair = p->is_kept ? add_pair(p) : NULL;
    if (!pair) return;
    snprintf(pair->name, sizeof pair->name, "%s", name);
    snprintf(pair->value, sizeof pair->value, "%s", value);
    pair->file = file;
}

static void add_whole(passes *p, const char *file, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    add(p, file, name, text);
}

void passes_text(passes *p, const char *name, const char *value) { add(p, NULL, name, value); }

void passes_whole(passes *p, const char *name, int64_t value) { add_whole(p, NULL, name, value); }

void passes_exact(passes *p, const char *name, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    add(p, NULL, name, text);
}

void passes_real(passes *p, const char *name, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    add(p, NULL, name, text);
}

void passes_files(passes *p, const char *matrix, const sketching *files)
{
    char name[64];
    snprintf(name, sizeof name, "so many files of %s:", matrix);
    passes_whole(p, name, files->files);
    for (int64_t i = 0; i < files->files; i++) {
        fs_stream_file file = FS_STREAM_FILE_INIT;
        if (fs_stream_get_file(files->stream, i, &file)) p->failed = 1;
        add_whole(p, file.path, "length in bytes", file.bytes);
        add_whole(p, file.path, "modification time in ns", file.changed_ns);
        add_whole(p, file.path, "first byte of elements", file.start);
    }
}

/* writing ---------------------------------------------------------------------------------------------------- */

static char *state_text(const passes *p, uint32_t crc)
{
    cJSON *all = cJSON_CreateObject();
    json_whole(all, "version", VERSION);
    json_whole(all, "crc32", crc);
    cJSON *run = cJSON_AddArrayToObject(all, "run"), *reads = cJSON_AddArrayToObject(all, "reads");
    for (int i = 0; i < p->pair_count; i++) {
        const char *const pair[] = {p->pairs[i].name, p->pairs[i].value};
        cJSON_AddItemToArray(run, cJSON_CreateStringArray(pair, 2));
    }
    for (int64_t i = 0; i < p->count; i++) {
        const passes_read *r = &p->reads[i];
        const double fields[READ_FIELDS] = {(double)r->number, (double)r->bytes, (double)r->rows, (double)r->panels};
        cJSON_AddItemToArray(reads, cJSON_CreateDoubleArray(fields, READ_FIELDS));
    }
    char *text = cJSON_PrintUnformatted(all);
    cJSON_Delete(all);
    return text;
}

static int64_t padded(int64_t bytes) { return (bytes + 7) / 8 * 8; }

static fs_result add_read(passes *p, const passes_read *read)
{
    if (p->count == p->room) {
        passes_read *more = realloc(p->reads, (size_t)(p->room + 64) * sizeof *more);
        if (!more) return fs_fail(FS_ENOMEM, "no memory for a read of the state %s", p->state.path);
        p->reads = more;
        p->room += 64;
    }
    char *sums = realloc(p->sums, (size_t)(p->bytes + padded(read->bytes)));
    if (!sums)
        return fs_fail(FS_ENOMEM, "no memory for %" PRId64 " bytes of the state %s", p->bytes + padded(read->bytes),
                       p->state.path);
    p->sums = sums;
    memset(sums + p->bytes, 0, (size_t)padded(read->bytes));
    p->reads[p->count] = *read;
    p->reads[p->count++].at = p->bytes;
    p->bytes += padded(read->bytes);
    return FS_OK;
}

fs_result passes_save(passes *p, const passes_read *read, const void *sums)
{
    const double start = cli_seconds();
    if (!p->count || p->reads[p->count - 1].number != read->number) {
        const fs_result result = add_read(p, read);
        if (result) return result;
    }
    passes_read *last = &p->reads[p->count - 1];
    last->rows = read->rows, last->panels = read->panels;
    memcpy(p->sums + last->at, sums, (size_t)last->bytes);
    if (start < p->state.next) return FS_OK;
    const fs_matrix all = fs_row_major(p->sums, 1, p->bytes / 8, FS_F64);
    char *text = state_text(p, fs_file_crc32(&all));
    checkpoint_write(&p->state, start, &all, "sums", KEY, text);
    free(text);
    return FS_OK;
}

const passes_read *passes_find(const passes *p, int64_t number)
{
    for (int64_t i = 0; i < p->count; i++)
        if (p->reads[i].number == number) return &p->reads[i];
    return NULL;
}

/* reading ---------------------------------------------------------------------------------------------------- */

static int damaged(const passes *p, const char *what)
{
    return cli_fail("%s is not the state of a solver: %s; remove it to start again", p->state.path, what);
}

/* The value of a pair in the state, or NULL. */
static const char *value_of(const cJSON *pair, const char *name)
{
    const cJSON *first = cJSON_IsArray(pair) ? pair->child : NULL, *second = first ? first->next : NULL;
    if (!cJSON_IsString(first) || strcmp(first->valuestring, name)) return NULL;
    return cJSON_IsString(second) ? second->valuestring : NULL;
}

static int compare(const passes *p, const cJSON *run)
{
    const cJSON *pair = run->child;
    for (int i = 0; i < p->pair_count; i++, pair = pair->next) {
        const passes_pair *now = &p->pairs[i];
        const char *before = pair ? value_of(pair, now->name) : NULL;
        if (!before) return damaged(p, "its description is that of another command or version");
        if (!strcmp(before, now->value)) continue;
        if (now->file)
            return cli_fail("%s has changed since %s was written: its %s was %s and is %s; remove the state to start "
                            "again",
                            now->file, p->state.path, now->name, before, now->value);
        return cli_fail("%s is of a run with %s %s, this one has %s; give the same command as before, or remove it to "
                        "start again",
                        p->state.path, now->name, before, now->value);
    }
    return pair ? damaged(p, "its description is that of another command or version") : 0;
}

/* An item that is an integer from low to 2^53, or -1. */
static int64_t whole_of(const cJSON *item, double low)
{
    const double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
    return value >= low && value <= 0x1p53 && value == floor(value) ? (int64_t)value : -1;
}

static int read_reads(passes *p, const cJSON *list, const fs_matrix *sums)
{
    const int64_t all = sums->cols * 8;
    int64_t at = 0, last = 0;
    const cJSON *one;
    cJSON_ArrayForEach(one, list)
    {
        int64_t field[READ_FIELDS];
        const cJSON *item = one->child;
        for (int i = 0; i < READ_FIELDS; i++, item = item ? item->next : NULL) field[i] = whole_of(item, 1);
        for (int i = 0; i < READ_FIELDS; i++)
            if (field[i] < 1) return damaged(p, "a read has no number, bytes, rows and panels from 1 on");
        if (field[0] <= last || field[1] > all - at) return damaged(p, "its reads do not fit its sums");
        const passes_read read = {field[0], field[1], field[2], field[3], 0};
        if (add_read(p, &read)) return cli_library_fail();
        memcpy(p->sums + at, (const char *)sums->data + at, (size_t)(p->bytes - at));
        at = p->bytes;
        last = field[0];
    }
    return at == all && at ? 0 : damaged(p, "its reads do not fit its sums");
}

static int read_text(passes *p, const char *text, const fs_matrix *sums)
{
    cJSON *all = cJSON_Parse(text);
    const cJSON *run = cJSON_GetObjectItemCaseSensitive(all, "run"),
                *reads = cJSON_GetObjectItemCaseSensitive(all, "reads");
    const int64_t version = whole_of(cJSON_GetObjectItemCaseSensitive(all, "version"), 1),
                  crc = whole_of(cJSON_GetObjectItemCaseSensitive(all, "crc32"), 0);
    int code;
    if (version != VERSION || !cJSON_IsArray(run) || !cJSON_IsArray(reads))
        code = damaged(p, "its text is damaged, or of another version");
    else if (crc != (int64_t)fs_file_crc32(sums))
        code = cli_fail("%s: its elements have the CRC-32 %" PRIu32 ", but were written with %" PRId64
                        "; remove it to start again",
                        p->state.path, fs_file_crc32(sums), crc);
    else code = compare(p, run);
    if (!code) code = read_reads(p, reads, sums);
    cJSON_Delete(all);
    return code;
}

int passes_load(passes *p)
{
    fs_file *file;
    fs_matrix sums;
    if (!p->is_kept) return 0;
    if (p->failed) return cli_fail("no memory for the description of the state %s", p->state.path);
    if (access(p->state.path, F_OK)) return 0;
    if (fs_file_open(&file, p->state.path, NULL)) return cli_fail("%s; remove it to start again", fs_error_message());
    const char *text = fs_file_metadata(file, KEY);
    int code;
    if (!text) code = damaged(p, "it has no description of a solver's run");
    else if (fs_file_matrix(file, &sums)) code = cli_library_fail();
    else if (sums.rows != 1 || sums.dtype != FS_F64 || sums.col_stride != 1)
        code = damaged(p, "its tensor is not a row of float64");
    else code = read_text(p, text, &sums);
    fs_file_close(file);
    return code;
}
