/* grass_record.c - see grass_record.h. */
#include "grass_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "claims.h"
#include "cli.h"

static int is_line(const cJSON *json)
{
    return cJSON_IsString(cJSON_GetObjectItem(json, "cell")) && cJSON_HasObjectItem(json, "lds") &&
           cJSON_IsArray(cJSON_GetObjectItem(json, "lds_each"));
}

static void free_line(grass_line *line)
{
    free(line->text);
    cJSON_Delete(line->json);
}

static int no_memory(const grass_record *r) { return cli_fail("no memory for %" PRId64 " results", r->count + 1); }

/* Takes a text, which it frees where it fails.  *wrong: it is not a line. */
static int keep(grass_record *r, char *text, int *wrong)
{
    cJSON *json = cJSON_Parse(text);
    *wrong = !is_line(json);
    grass_line *more = r->lines;
    if (!*wrong && r->count == r->room) {
        const int64_t room = r->room ? 2 * r->room : 64;
        more = realloc(r->lines, (size_t)room * sizeof *more);
        if (more) r->lines = more, r->room = room;
    }
    if (*wrong || !more) {
        cJSON_Delete(json);
        free(text);
        return *wrong ? EXIT_FAILURE : no_memory(r);
    }
    r->lines[r->count++] = (grass_line){text, json};
    return 0;
}

static int is_no_line(const grass_record *r)
{
    return cli_fail("%s: line %" PRId64 " is not a line of 'flashsketch grass'; name another file", r->path,
                    r->count + 1);
}

/* Reads all lines that have an end; *whole becomes their length in bytes.  The last one may have none, but it is the
 * beginning of an object: other files are not cut. */
static int read_lines(grass_record *r, off_t *whole)
{
    char *line = NULL;
    size_t room = 0;
    int code = 0, wrong = 0;
    *whole = 0;
    for (ssize_t length; !code && (length = getline(&line, &room, r->file)) > 0;) {
        if (line[length - 1] != '\n') {
            if (line[0] != '{') code = is_no_line(r);
            break;
        }
        *whole += length;
        line[length - 1] = 0;
        char *text = strdup(line);
        code = text ? keep(r, text, &wrong) : no_memory(r);
        if (wrong) (void)is_no_line(r);
    }
    if (!code && ferror(r->file)) code = cli_fail("%s: it cannot be read: %s", r->path, strerror(errno));
    free(line);
    return code;
}

int grass_record_open(grass_record *r, const char *path)
{
    memset(r, 0, sizeof *r);
    if (!path) return 0;
    off_t whole = 0;
    struct stat there;
    const int is_there = stat(path, &there) == 0;
    if (is_there && !S_ISREG(there.st_mode))
        return cli_fail("'%s' exists and is not a file; name a file to write", path);
    if (is_there && claims_output(path, &there)) return EXIT_FAILURE;
    const int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    r->path = path;
    r->file = file < 0 ? NULL : fdopen(file, "a+");
    if (!r->file)
        return cli_fail("'%s' cannot be written (%s); name a file in a folder that exists and is yours", path,
                        strerror(errno));
    int code = flock(file, LOCK_EX | LOCK_NB) ? cli_fail("%s: the record is in use by another process", path) : 0;
    if (!code) rewind(r->file);
    if (!code) code = read_lines(r, &whole);
    if (!code && ftruncate(file, whole)) code = cli_fail("%s: it cannot be written: %s", path, strerror(errno));
    if (code) grass_record_close(r);
    return code;
}

void grass_record_close(grass_record *r)
{
    for (int64_t i = 0; i < r->count; i++) free_line(&r->lines[i]);
    free(r->lines);
    if (r->file) fclose(r->file);
    memset(r, 0, sizeof *r);
}

const grass_line *grass_record_find(const grass_record *r, const char *cell)
{
    for (int64_t i = 0; i < r->count; i++)
        if (!strcmp(cJSON_GetObjectItem(r->lines[i].json, "cell")->valuestring, cell)) return &r->lines[i];
    return NULL;
}

double grass_number(const cJSON *json, const char *name)
{
    const cJSON *value = cJSON_GetObjectItem(json, name);
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static int write_line(const grass_record *r, const char *text)
{
    fseeko(r->file, 0, SEEK_END);
    const off_t before = ftello(r->file);
    errno = 0;
    if (fprintf(r->file, "%s\n", text) >= 0 && !fflush(r->file) && !fsync(fileno(r->file))) return 0;
    const int why = errno;
    if (ftruncate(fileno(r->file), before))
        return cli_fail("%s: its last line is incomplete and could not be removed", r->path);
    return cli_fail(
        "'%s' could not be written (%s); make room and give the same command again: finished results are kept", r->path,
        strerror(why ? why : EIO));
}

int grass_record_add(grass_record *r, cJSON *object)
{
    char *text = object ? cJSON_PrintUnformatted(object) : NULL;
    int wrong = 0;
    cJSON_Delete(object);
    if (!text || keep(r, text, &wrong)) return text && !wrong ? EXIT_FAILURE : no_memory(r); /* a part is missing */
    if (!r->file || !write_line(r, text)) return 0;
    free_line(&r->lines[--r->count]);
    return EXIT_FAILURE;
}
