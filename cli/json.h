/* json.h - results for programs, by cJSON: whole numbers are written exactly, whatever their size. */
#ifndef FLASHSKETCH_CLI_JSON_H
#define FLASHSKETCH_CLI_JSON_H

#include <cjson/cJSON.h>
#include <flashsketch.h>
#include <stdint.h>

/* A member of an object; a NULL object, or no memory, shows in json_print. */
void json_whole(cJSON *object, const char *name, int64_t value);
void json_versions(cJSON *object);
void json_spec(cJSON *object, const fs_spec *spec);

/* Prints an object, indented, with a final newline, and frees it.  Returns the exit code. */
int json_print(cJSON *object);

#endif
