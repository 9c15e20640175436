/* grass_record.h - results of 'flashsketch grass', a JSON object a line: kept in memory, and in a file from which a
 * later call reads them instead of computing them again. */
#ifndef FSI_CLI_GRASS_RECORD_H
#define FSI_CLI_GRASS_RECORD_H

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>

/* A result.  Its "cell" is a text that identifies it; "lds" and "lds_each" are in it. */
typedef struct grass_line {
    char *text;  /* as in the file, without the newline: exact, while cJSON's numbers are doubles */
    cJSON *json; /* the same, parsed */
} grass_line;

typedef struct grass_record {
    const char *path;
    FILE *file; /* NULL: in memory alone */
    grass_line *lines;
    int64_t count, room;
} grass_record;

/* Reads the file, if it exists, and locks it.  An incomplete last line, as a killed process leaves it, is removed: its
 * result is computed again.  path NULL: there is no file.  Returns 0, or EXIT_FAILURE after printing what is wrong;
 * then nothing in the file has changed. */
int grass_record_open(grass_record *r, const char *path);
void grass_record_close(grass_record *r);

/* The line of a cell, or NULL.  It is valid until the next line is added. */
const grass_line *grass_record_find(const grass_record *r, const char *cell);

/* A number of a line; NaN where there is none. */
double grass_number(const cJSON *json, const char *name);

/* Adds a line, and frees the object.  It is on the disk when this returns 0; where it could not be written
 * (EXIT_FAILURE after printing that) the file is unchanged. */
int grass_record_add(grass_record *r, cJSON *object);

#endif
