/* json.c - see json.h. */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "spec_options.h"

void json_whole(cJSON *object, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    cJSON_AddRawToObject(object, name, text);
}

void json_real(cJSON *object, const char *name, double value)
{
    if (isfinite(value)) cJSON_AddNumberToObject(object, name, value);
    else cJSON_AddNullToObject(object, name);
}

void json_exact(cJSON *object, const char *name, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    cJSON_AddStringToObject(object, name, text);
}

void json_versions(cJSON *object)
{
    cJSON_AddStringToObject(object, "version", fs_version());
    json_whole(object, "definition", fs_definition_version());
}

void json_spec(cJSON *object, const fs_spec *spec)
{
    cJSON_AddStringToObject(object, "family", fs_family_name(spec->family));
    json_whole(object, "d", spec->d);
    json_whole(object, "k", spec->k);
    json_exact(object, "seed", spec->seed);
    json_whole(object, "M", spec->M);
    json_whole(object, "kappa", spec->kappa);
    json_whole(object, "s", spec->s);
    cJSON_AddStringToObject(object, "shuffle", fs_shuffle_name(spec->shuffle));
    json_whole(object, "interleave", spec->interleave);
}

/* The processor's name in Linux. */
static void machine(char *name, size_t bytes)
{
    char line[256], found[200];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(name, bytes, "unknown processor");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "model name : %199[^\n]", found) == 1) {
            snprintf(name, bytes, "%s", found);
            break;
        }
    if (f) fclose(f);
}

/* fs_context_describe writes "BACKEND (WHY)"; WHY is "asked for", "auto", or "auto: " and why it is not CUDA. */
void json_device(cJSON *object, const fs_context *ctx)
{
    static const char automatic[] = "(auto: ", plain[] = "no CUDA plugin";
    char text[600], *why;
    const char *reason = NULL;
    fs_context_describe(ctx, text, sizeof text);
    if (!(why = strstr(text, " (auto"))) why = strstr(text, " (asked for)");
    if (why) {
        why[strlen(why) - 1] = 0;
        *why++ = 0;
        if (!strncmp(why, automatic, sizeof automatic - 1)) reason = why + sizeof automatic - 1;
    }
    cJSON_AddStringToObject(object, "device", text);
    if (reason && strcmp(reason, plain)) cJSON_AddStringToObject(object, "device_reason", reason);
}

void json_provenance(cJSON *object, const fs_context *ctx, const char *commit)
{
    char text[400];
    struct tm utc;
    const time_t now = time(NULL);
    fs_context_describe(ctx, text, sizeof text);
    cJSON_AddStringToObject(object, "backend", text);
    machine(text, sizeof text);
    cJSON_AddStringToObject(object, "machine", text);
    if (commit) cJSON_AddStringToObject(object, "commit", commit);
    gmtime_r(&now, &utc);
    strftime(text, sizeof text, "%Y-%m-%d", &utc);
    cJSON_AddStringToObject(object, "date", text);
}

static int print(cJSON *object, char *(*text_of)(const cJSON *))
{
    char *text = object ? text_of(object) : NULL;
    const int code = text ? 0 : cli_fail("no memory for the JSON text");
    if (text) puts(text);
    cJSON_free(text);
    cJSON_Delete(object);
    return code;
}

int json_print(cJSON *object) { return print(object, cJSON_Print); }
int json_print_line(cJSON *object) { return print(object, cJSON_PrintUnformatted); }
