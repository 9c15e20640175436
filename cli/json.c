/* json.c - see json.h. */
#include "json.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli.h"
#include "spec_options.h"

void json_whole(cJSON *object, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    cJSON_AddRawToObject(object, name, text);
}

void json_versions(cJSON *object)
{
    cJSON_AddStringToObject(object, "version", fs_version());
    json_whole(object, "definition", fs_definition_version());
}

void json_spec(cJSON *object, const fs_spec *spec)
{
    char seed[32];
    cJSON_AddStringToObject(object, "family", spec_family_name(spec->family));
    json_whole(object, "d", spec->d);
    json_whole(object, "k", spec->k);
    snprintf(seed, sizeof seed, "%" PRIu64, spec->seed);
    cJSON_AddRawToObject(object, "seed", seed);
    json_whole(object, "M", spec->M);
    json_whole(object, "kappa", spec->kappa);
    json_whole(object, "s", spec->s);
    cJSON_AddStringToObject(object, "shuffle", spec_shuffle_name(spec->shuffle));
    json_whole(object, "interleave", spec->interleave);
}

int json_print(cJSON *object)
{
    char *text = object ? cJSON_Print(object) : NULL;
    const int code = text ? 0 : cli_fail("there is no memory for the JSON text");
    if (text) puts(text);
    cJSON_free(text);
    cJSON_Delete(object);
    return code;
}
