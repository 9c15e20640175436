/* identity.h - the description of a sketch in a file: its rows of A, and its S.  docs/sketches.md describes the format.
 *
 * `flashsketch sketch` writes it as JSON beside the npy file, as NAME.npy.json; the state of a run that can be resumed
 * holds it in its metadata.  It is untrusted: every field is checked, against the matrix too. */
#ifndef FSI_CLI_IDENTITY_H
#define FSI_CLI_IDENTITY_H

#include <flashsketch_files.h>

#define IDENTITY_KEY "flashsketch" /* in the metadata of a safetensors file */
enum { IDENTITY_VERSION = 1 };

typedef struct identity_rows {
    int64_t first, end;
} identity_rows; /* first ... end - 1 */

/* A file that a state's run reads: its length, its modification time in ns, and the offset of its elements. */
typedef struct identity_file {
    int64_t bytes, changed, start;
} identity_file;

typedef struct identity {
    int64_t definition;  /* of S */
    fs_spec spec;        /* full */
    int64_t n;           /* columns of A and Y */
    int batch_major;     /* the file holds n x k */
    fs_dtype dtype;      /* of its elements */
    uint32_t crc;        /* CRC-32 of its elements */
    int64_t count;       /* of rows: the rows of A in the sketch Y, ascending, with gaps between them */
    identity_rows *rows; /* owned, as is file */
    /* Of a state: */
    int64_t panels; /* of all; 0: this is not a state */
    int64_t done;   /* the number of them that are in Y */
    int64_t memory; /* by which the panels are cut */
    char reads[32]; /* the type and order of elements: "float32 by rows" */
    int64_t files;
    identity_file *file;
} identity;

void identity_free(identity *id);

/* Writes Y as npy of the type `dtype` into an output that output_open_two opened for it and OUTPUT_IDENTITY, its
 * description into the second file, and closes both; *id need not have type and CRC.  Standard output has no second
 * file.  Returns as output_close. */
int identity_write(FILE *out, const identity *id, const fs_matrix *Y, fs_dtype dtype);

/* The JSON text; NULL where there is no memory.  free is for it. */
char *identity_text(const identity *id);

/* Reads such a text from the file `name`.  FS_EFILE: it is not one; *id is empty then. */
fs_result identity_parse(const char *name, const char *text, size_t length, identity *id);

/* Opens a sketch, npy or safetensors, its matrix and its description, and checks that they belong together.  FS_EFILE:
 * *file is NULL and *id empty then. */
fs_result identity_open(const char *path, fs_file **file, fs_matrix *Y, identity *id);

/* The same for a sketch by this library's definition of S that is not a state.  FS_EFILE: as identity_open. */
fs_result identity_open_finished(const char *path, fs_file **file, fs_matrix *Y, identity *id);

/* The description of an open file, if there is one: *found.  FS_EFILE: the text is wrong, or describes another matrix;
 * the message names the file that the text is in. */
fs_result identity_find(const char *path, fs_file *file, identity *id, int *found);

/* FS_EFILE unless both have the same S; the names are for the message. */
fs_result identity_same_sketch(const char *name_a, const identity *a, const char *name_b, const identity *b);

/* FS_EFILE unless both have the same S, shape, type and order; the names are for the message. */
fs_result identity_agree(const char *name_a, const identity *a, const char *name_b, const identity *b);

#endif
