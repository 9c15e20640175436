/* npy.h - the header of an npy array, for files (npy.c) and the members of archives (npz.c). */
#ifndef FSI_FILES_FORMATS_NPY_H
#define FSI_FILES_FORMATS_NPY_H

#include "files/reader.h"

typedef struct npy_array {
    char descr[64];  /* the dtype as in the file, printable and cut */
    char stored[48]; /* the same in words: "int16", "complex '<c8'" */
    file_kind kind;  /* of its elements, where `why` is empty */
    char why[160];   /* why they are not read, and what to do */
    int64_t element; /* bytes of one; 0: not known */
    int by_columns;
    reader_shape shape;
    int64_t bytes; /* of the header: where the elements begin */
} npy_array;

/* Reads a header from the position of the stream.  FS_EFILE: it is not one. */
fs_result npy_header(reader_stream *stream, npy_array *a);

/* Whether an array whose elements take `there` bytes (-1: not known) is a matrix that is read; out gets its
 * description.  Returns 1; or 0 where it is not, after reader_cannot or a message: then reader_refused has the value to
 * return. */
int npy_is_matrix(const reader_source *in, const npy_array *a, int64_t there, file_matrix *out);

#endif
