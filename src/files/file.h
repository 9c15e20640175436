/* file.h - a matrix in a file, opened as a view of dense elements or as a sparse matrix.
 *
 * npy, safetensors and raw files are mapped where their elements can be used as stored and there is address space for
 * them; otherwise they are read into memory, as are Matrix Market, IDX and CSV files, with or without gzip, and npz
 * archives.  Files are untrusted: headers have limits, lengths are compared with the file before memory is allocated,
 * and a file that does not fit is refused with a message that names it and the numbers.  A file that another process
 * cuts short while it is mapped ends the program with SIGBUS, as for every program that maps files.
 *
 * The path "-" is standard input.  A pipe is copied to a temporary file in TMPDIR (/tmp), unless it is npy or raw and
 * only located: then it is read in order. */
#ifndef FSI_FILES_FILE_H
#define FSI_FILES_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "flashsketch.h"

typedef enum file_format {
    FILE_GUESS = 0, /* by the first bytes; text of no other format is CSV; raw files cannot be recognized */
    FILE_NPY,
    FILE_MTX,
    FILE_SAFETENSORS,
    FILE_IDX,
    FILE_CSV,
    FILE_NPZ,
    FILE_RAW
} file_format;

enum { FILE_MAX_DIMENSIONS = 32 };
typedef struct file_tensor {
    file_format format;
    const char *name;  /* as in the file; file_printable makes it safe for a terminal */
    const char *dtype; /* the file's name for it: "BF16" */
    int dimensions;
    int64_t shape[FILE_MAX_DIMENSIONS];
} file_tensor;

/* An element as a file has it: letter 'f' floating point, 'i' signed, 'u' unsigned, 'b' boolean; dtype is what it
 * becomes. */
typedef struct file_kind {
    char letter;
    int bytes, big; /* big: big-endian */
    fs_dtype dtype;
} file_kind;

/* Options of opening, where the file alone does not determine them.  All zeros: the format is recognized by the first
 * bytes. */
typedef struct file_options {
    file_format format;
    const char *tensor; /* safetensors, npz: which one; NULL: the only one */
    /* Where `tensor` is NULL, called for every tensor of a safetensors file and every array of an npz file, in their
     * order, after all headers were checked.  NULL: not called. */
    void (*list)(void *user, const file_tensor *tensor);
    int describe;       /* 1: a valid file of which no matrix can be opened is not an error; `why` is the reason */
    int64_t rows, cols; /* raw: the shape, ... */
    fs_dtype dtype;     /* ... the type ... */
    int by_columns;     /* ... and the order: 0 rows one after the other, 1 columns */
    int64_t max_rows, max_cols; /* IDX: rows that are kept, columns that are accepted; 0: all of them */
    /* 1: a matrix that is in the file as it is (npy, safetensors, raw) is only found: dense.data is NULL, `start` is
     * where.  2: of others the header alone is read too: they have a shape, no arrays, and are `whole`. */
    int locate;
    int spool; /* 1: a pipe is always copied to a temporary file */
    int keep;  /* 1: a file that is only located stays open, for file_load */
    /* Called from time to time while a file is read (not while it is mapped), with the bytes read so far, of `all`; 0:
     * unknown.  NULL: no callback. */
    void (*watch)(void *user, int64_t bytes, int64_t all);
    /* safetensors: called for every text of the metadata, after all of the header was checked.  NULL: not called. */
    void (*note)(void *user, const char *key, const char *text);
    void *user; /* for list, watch and note */
} file_options;

/* An open file.  An array of more than two dimensions is the matrix of its first one by all the others; one of a single
 * dimension is a column. */
typedef struct file_matrix {
    file_format format;
    int gzip;        /* the file is compressed */
    int is_sparse;   /* which of the two holds the matrix */
    char stored[48]; /* what the file says it stores: "float32", "uint8", "coordinate real symmetric" */
    char why[200];   /* why there is no matrix, and what to do; empty where there is one */
    int has_shape;   /* the file's array has these sizes */
    int dimensions;
    int64_t shape[FILE_MAX_DIMENSIONS];
    fs_matrix dense;  /* data may lie in a read-only mapping: it must not be written */
    fs_sparse sparse; /* CSR in f64; symmetric halves are written out; indices as they came, repeated ones too */
    int64_t start;    /* of a matrix that is in the file as it is: how many bytes into it the elements begin, ... */
    int64_t bytes;    /* ... the bytes of the file, ... */
    int64_t changed;  /* ... when it was last written to, in ns, ... */
    int kept, fd; /* ... and of one that was only located, on standard input or with options.keep: the open file, ... */
    struct reader_pipe *pipe; /* ... or the pipe, owned; then `bytes` is the number that its header gives */
    file_kind kind;           /* of a matrix that is in the file as it is: its elements there */
    int whole;                /* only its header was read: file_read reads all of it */
    void *map;                /* owned, as is memory: file_close gives them back */
    size_t map_bytes;
    void *memory[3];
} file_matrix;

/* Opens a file; options NULL are all zeros.  FS_EFILE: the message begins with the file's name; then *out holds
 * nothing and need not be closed. */
fs_result file_open(const char *path, const file_options *options, file_matrix *out);

/* Reads all of a file that is open, from its start; `name` is what messages call it.  Otherwise as file_open. */
fs_result file_read(int fd, const char *name, const file_options *options, file_matrix *out);

/* Maps or reads the elements of a file that was located and kept open, and closes it.  After a failure it is as it
 * was. */
fs_result file_load(const char *name, file_matrix *file);

/* Releases the resources of *file and empties it; no-op if it is empty. */
void file_close(file_matrix *file);

/* "npy", "Matrix Market", ... */
const char *file_format_name(file_format format);

/* "float32", ... */
const char *file_dtype_name(fs_dtype dtype);

/* Writes a matrix whose rows are packed as an npy file of the type `dtype`: f16, f32 or f64; a failed write shows when
 * the stream is closed.  Elements of another type are rounded.  Returns the CRC-32 of the elements as written. */
uint32_t file_write_npy(FILE *out, const fs_matrix *m, fs_dtype dtype);

/* The CRC-32 of the elements of a matrix whose rows are packed. */
uint32_t file_crc(const fs_matrix *m);

/* Writes such a matrix as the only tensor of a safetensors file, and a text as the only one in its metadata.  A failed
 * write shows when the stream is closed.  FS_ENOMEM: no memory for the header. */
fs_result file_write_safetensors(FILE *out, const fs_matrix *m, const char *tensor, const char *key, const char *text);

/* Writes `length` bytes of a file's text into out, cut to `bytes` with its final 0, everything but printable ASCII
 * as \xNN: text from a file must not control the terminal.  Returns out. */
const char *file_printable(char *out, size_t bytes, const char *text, size_t length);

#endif
