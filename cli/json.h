/* json.h - results for programs, by cJSON: integers are written exactly, whatever their size. */
#ifndef FSI_CLI_JSON_H
#define FSI_CLI_JSON_H

#include <cjson/cJSON.h>
#include <flashsketch.h>
#include <stdint.h>

/* A member of an object; a NULL object, or no memory, shows in json_print. */
void json_whole(cJSON *object, const char *name, int64_t value);
/* A finite number; null for others, which JSON does not have. */
void json_real(cJSON *object, const char *name, double value);
/* A string of digits, because programs that read numbers as doubles would round it. */
void json_exact(cJSON *object, const char *name, uint64_t value);

void json_versions(cJSON *object);
void json_spec(cJSON *object, const fs_spec *spec);

/* Members "device", the backend of ctx, and, where it is the CPU because an installed CUDA plugin could not be used,
 * "device_reason". */
void json_device(cJSON *object, const fs_context *ctx);

/* For records: the version, the machine and the time.  commit NULL: not given. */
void json_provenance(cJSON *object, const fs_context *ctx, const char *commit);

/* Prints an object, indented, with a final newline, and frees it.  Returns the exit code. */
int json_print(cJSON *object);

/* The same in one line, for files of many objects. */
int json_print_line(cJSON *object);

#endif
