/* flashsketch_files.h - matrices in files: opened whole, or streamed in panels where they are larger than memory.
 *
 * A stream is a matrix A in one file, or in several files that are joined (shards).  It returns A in panels within the
 * memory that it may use, and a read-ahead thread loads the next ones while the caller works on a panel:
 *
 *     const char *paths[] = {"part1.npy", "part2.npy"};
 *     fs_stream *stream;  fs_stream_create(&stream, paths, 2, NULL);
 *     fs_panel p = FS_PANEL_INIT;
 *     while (fs_stream_next(stream, &p) == FS_OK && p.A.rows) {
 *         fs_matrix y = Y;                   the columns of Y that the panel belongs to
 *         y.cols = p.A.cols;  y.offset += p.col0 * Y.col_stride;
 *         fs_apply(ctx, S, p.row0, 1.0, &p.A, p.row0 ? 1.0 : 0.0, &y);
 *     }
 *     fs_stream_destroy(stream);
 *
 * fs_file_open opens a single file: its contents, its matrix, its tensors.
 *
 * Input files are untrusted: every header field is validated, lengths are compared with the file before memory is
 * allocated, and malformed files are rejected.  Error messages begin with the name of the file.  A file that another
 * process truncates while it is mapped ends the program with SIGBUS.
 *
 * Link with libflashsketch_files and libflashsketch (pkg-config: flashsketch_files). */
#ifndef FLASHSKETCH_FILES_H
#define FLASHSKETCH_FILES_H

#include <stdint.h>
#include <stdio.h>

#include "flashsketch_solvers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* files ----------------------------------------------------------------------------------------------------- */

typedef enum fs_file_format {
    FS_FILE_NPY = 1,
    FS_FILE_MTX = 2, /* Matrix Market */
    FS_FILE_SAFETENSORS = 3,
    FS_FILE_IDX = 4,
    FS_FILE_CSV = 5, /* numbers as text, separated by commas, semicolons, tabs or spaces */
    FS_FILE_NPZ = 6, /* archives of npy arrays, and SciPy's sparse matrices */
    FS_FILE_RAW = 7  /* elements without a header: little-endian, packed */
} fs_file_format;

/* "npy", "Matrix Market", "safetensors", "IDX", "CSV", "npz", "raw"; "unknown" for any other value. */
FS_API const char *fs_file_format_name(fs_file_format format);

/* The name of an element type in files: "float32", "float64", "float16", "bfloat16"; "?" for any other value.
 * fs_dtype_from_name reads it. */
FS_API const char *fs_file_dtype_name(fs_dtype dtype);

/* How a file is opened.  Start from FS_FILE_INIT.  `progress` is called from time to time while a file is read into
 * memory or a pipe is copied. */
typedef struct fs_file_options {
    size_t size;                /* sizeof(fs_file_options): set by FS_FILE_INIT */
    fs_file_format format;      /* 0: by the first bytes of the file; raw files cannot be recognized */
    const char *tensor;         /* safetensors, npz: the tensor to open; NULL: the only one */
    int64_t rows, cols;         /* raw: the shape, ... */
    fs_dtype dtype;             /* ... the element type ... */
    int by_columns;             /* ... and the order: 0 row-major, 1 column-major */
    int64_t max_rows, max_cols; /* IDX: rows that are read, columns that are accepted; 0: all */
    int header_only;            /* 1: elements of npy, safetensors and raw files are left for fs_file_matrix to read */
    int describe;               /* 1: a valid file without a matrix to open is not an error; fs_file_info.why has the
                                 * reason */
    void (*progress)(void *user, int64_t bytes, int64_t all); /* bytes read, of `all`, 0: unknown; NULL: no callback */
    void *user;                                               /* the first argument of `progress` */
} fs_file_options;
#define FS_FILE_INIT \
    { \
        sizeof(fs_file_options), FS_UNSET(fs_file_format), NULL, 0, 0, FS_UNSET(fs_dtype), 0, 0, 0, 0, 0, NULL, NULL \
    }

/* The contents of a file.  Start from FS_FILE_INFO_INIT.  The pointers are valid until fs_file_close. */
typedef struct fs_file_info {
    size_t size; /* sizeof(fs_file_info): set by FS_FILE_INFO_INIT */
    fs_file_format format;
    int gzip;           /* compressed */
    int is_sparse;      /* the matrix is sparse: fs_file_sparse */
    int by_columns;     /* a dense matrix is column-major in the file */
    fs_dtype dtype;     /* of the matrix in memory; 0: there is none */
    int64_t rows, cols; /* of the matrix */
    int64_t entries;    /* of a sparse one that has been read */
    const char *stored; /* what the file stores: "float32", "uint8", "coordinate real symmetric" */
    const char *why;    /* why there is no matrix, and what to do about it; "": there is one */
    int dimensions;     /* of the array in the file, and their sizes; 0: a scalar, -1: unknown */
    const int64_t *shape;
    int64_t tensors; /* tensors of a safetensors file or arrays of an npz file, unless one was named; 0 for others */
} fs_file_info;
#define FS_FILE_INFO_INIT \
    { \
        sizeof(fs_file_info), FS_UNSET(fs_file_format), 0, 0, 0, FS_UNSET(fs_dtype), 0, 0, 0, NULL, NULL, 0, NULL, 0 \
    }

/* A tensor of a safetensors file or an array of an npz file.  Start from FS_FILE_TENSOR_INIT.  The pointers are valid
 * until fs_file_close. */
typedef struct fs_file_tensor {
    size_t size;       /* sizeof(fs_file_tensor): set by FS_FILE_TENSOR_INIT */
    const char *name;  /* as in the file: it may contain any character; see fs_file_printable */
    const char *dtype; /* the file's name of the type: "BF16", "<f4" */
    int dimensions;
    const int64_t *shape;
} fs_file_tensor;
#define FS_FILE_TENSOR_INIT \
    { \
        sizeof(fs_file_tensor), NULL, NULL, 0, NULL \
    }

/* An open file; for one thread at a time. */
typedef struct fs_file fs_file;

/* Opens a file once; options NULL means FS_FILE_INIT.  "-" is standard input; a pipe is copied to a temporary file in
 * the folder TMPDIR, or /tmp.
 *
 * npy, safetensors and raw files are mapped where their elements can be used as stored and there is address space,
 * otherwise read into memory; Matrix Market, IDX and CSV files, with or without gzip, and npz archives are read into
 * memory.  Types and shapes are those of fs_stream_create.
 *
 * FS_EFILE: the file cannot be read or is malformed.  FS_EINVAL: an option is wrong.  FS_ENOMEM: out of memory.  Free it
 * with fs_file_close. */
FS_API FS_NODISCARD fs_result fs_file_open(fs_file **out, const char *path, const fs_file_options *options);

/* Frees a file and its matrix; NULL is a no-op. */
FS_API void fs_file_close(fs_file *file);

/* Writes the contents of the file to *info. */
FS_API FS_NODISCARD fs_result fs_file_get_info(const fs_file *file, fs_file_info *info);

/* Tensor i of info.tensors, in the order of the file. */
FS_API FS_NODISCARD fs_result fs_file_get_tensor(const fs_file *file, int64_t i, fs_file_tensor *tensor);

/* The text of `key` in the metadata of a safetensors file, valid until fs_file_close; NULL: there is none. */
FS_API const char *fs_file_metadata(const fs_file *file, const char *key);

/* The matrix of a file, in host memory, read-only and valid until fs_file_close.  With options.header_only the first
 * call of fs_file_matrix maps or reads the elements.  A sparse matrix is CSR in f64, with the second halves of
 * symmetric ones written out; indices are in the order of the file, repeated ones included.
 * FS_EINVAL: the file has no matrix, or one of the other kind.  FS_EFILE, FS_ENOMEM: as fs_file_open. */
FS_API FS_NODISCARD fs_result fs_file_matrix(fs_file *file, fs_matrix *A);
FS_API FS_NODISCARD fs_result fs_file_sparse(fs_file *file, fs_sparse *A);

/* Writes `text` to out, at most `bytes` bytes with its final 0, with every character but printable ASCII as \xNN: text
 * of a file must not control the terminal.  Returns out. */
FS_API const char *fs_file_printable(char *out, size_t bytes, const char *text);

/* The CRC-32 of the elements of a host matrix with packed rows. */
FS_API uint32_t fs_file_crc32(const fs_matrix *m);

/* Writes a host matrix with packed rows (fs_row_major) as an npy file of type `dtype`, FS_F16, FS_F32 or FS_F64;
 * elements are rounded to it.  crc32, which may be NULL, becomes the CRC-32 of the elements as written.  The caller
 * checks the stream for write errors when it closes it.  FS_EINVAL: another layout or type. */
FS_API FS_NODISCARD fs_result fs_file_write_npy(FILE *out, const fs_matrix *m, fs_dtype dtype, uint32_t *crc32);

/* The same as the only tensor of a safetensors file, in its own type, with one text in the metadata.
 * FS_ENOMEM: no memory for the header. */
FS_API FS_NODISCARD fs_result fs_file_write_safetensors(FILE *out, const fs_matrix *m, const char *tensor,
                                                        const char *key, const char *text);

/* streams --------------------------------------------------------------------------------------------------- */

/* How files are read.  Start from FS_STREAM_INIT. */
typedef struct fs_stream_options {
    size_t size;        /* sizeof(fs_stream_options): set by FS_STREAM_INIT */
    int64_t memory;     /* bytes of A in memory at a time; 0: 64 MiB */
    int threads;        /* that copy a panel, at most FS_THREADS_MAX; 0: OpenMP's own number */
    int batch_major;    /* 1: the files hold n x d, a sample in each row; A is d x n all the same */
    const char *tensor; /* safetensors, npz: the tensor to read; NULL: the only one */
    int64_t rows, cols; /* of each raw file, one without a header; 0: the files have headers */
    fs_dtype dtype;     /* its element type ... */
    int by_columns;     /* ... and order: 0 row-major, 1 column-major */
    int reread;         /* 1: panels are read more than once; a pipe is copied to a temporary file first */
    void (*progress)(void *user, int64_t bytes, int64_t all); /* as in fs_file_options */
    void *user;                                               /* the first argument of `progress` */
} fs_stream_options;
#define FS_STREAM_INIT \
    { \
        sizeof(fs_stream_options), 0, 0, 0, NULL, 0, 0, FS_UNSET(fs_dtype), 0, 0, NULL, NULL \
    }

/* A panel: rows row0 ... row0 + A.rows - 1 and columns col0 ... col0 + A.cols - 1 of the matrix.  Start from
 * FS_PANEL_INIT. */
typedef struct fs_panel {
    size_t size; /* sizeof(fs_panel): set by FS_PANEL_INIT */
    fs_matrix A; /* packed, in the stream's memory, until the next call with the stream; rows 0: the end */
    int64_t row0, col0;
    int is_sparse;    /* 1: A is a shape without data, and the panel is `sparse`, for fs_apply_sparse */
    fs_sparse sparse; /* in the same memory */
} fs_panel;
#define FS_PANEL_INIT \
    { \
        sizeof(fs_panel), {NULL, 0, 0, 0, 0, 0, 0, FS_UNSET(fs_dtype), FS_MEMORY_HOST}, 0, 0, 0, \
        { \
            FS_UNSET(fs_sparse_format), FS_UNSET(fs_index_type), 0, 0, 0, NULL, NULL, NULL, FS_UNSET(fs_dtype), \
                FS_MEMORY_HOST \
        } \
    }

/* A matrix in files; for one thread at a time. */
typedef struct fs_stream fs_stream;

/* Opens files as one matrix; options NULL means FS_STREAM_INIT.  Files are joined along the first dimension of their
 * arrays, in the order given: their rows, or samples where they are batch-major.  They may be of different formats, but
 * of one type and order.  The same file may be given twice.  "-" is standard input, which can be one of them.
 *
 * npy, safetensors and raw files are read one panel at a time.  Matrix Market, IDX and CSV files, with or without gzip,
 * and npz archives must be read whole: a single one when the stream is created, one of several when its first panel is
 * read, and then one of them is in memory at a time, beside the panel; so a large matrix needs many files.  A sparse
 * file (coordinate Matrix Market; csr, csc and coo in npz) is one panel, whatever `memory` is.
 *
 * Elements are f16, bf16, f32 or f64 as they are in the files.  Integers of 8 and 16 bits and booleans (npy, npz, IDX)
 * become f32; integers of 32 and 64 bits become f64, where those beyond 2^53 are rounded to nearest; numbers in text
 * and sparse matrices are f64.  An array of more than two dimensions is the matrix of its first one by all the others:
 * 10 x 4 x 5 is read as 10 x 20; one of a single dimension is a column.
 *
 * A pipe on standard input is read in order where its panels follow one another in it (npy and raw; not where many long
 * samples are cut into segments) and options.reread is 0.  Otherwise it is copied to a temporary file in the folder
 * TMPDIR, or /tmp.
 *
 * Panels are whole rows of A where those are contiguous in the files, otherwise whole columns, as many as fit; where a
 * single one does not fit, or only so few columns that generating S would cost more than reading them, segments of
 * columns.  They depend on the shape of A and `memory` alone, not on where files end, so the same calls give the same
 * bits.
 *
 * Reads the headers of all files and checks them against each other and against the files' lengths; of several files
 * that are read whole, and of a pipe, errors beyond the header show when they are read.
 * FS_EFILE: a file cannot be read, is malformed, or does not fit the others.  FS_EINVAL: an option is wrong.
 * FS_ENOMEM: out of memory.  Free it with fs_stream_destroy. */
FS_API FS_NODISCARD fs_result fs_stream_create(fs_stream **out, const char *const *paths, int64_t count,
                                               const fs_stream_options *options);

/* Stops reading ahead and frees a stream; NULL is a no-op. */
FS_API void fs_stream_destroy(fs_stream *stream);

/* Writes rows, columns and type of A to *A, which has no data; col_stride is 1 where panels are row-major. */
FS_API FS_NODISCARD fs_result fs_stream_shape(const fs_stream *stream, fs_matrix *A);

/* Whether the panels are sparse. */
FS_API int fs_stream_is_sparse(const fs_stream *stream);

/* The number of panels. */
FS_API int64_t fs_stream_panels(const fs_stream *stream);

/* Cuts A into panels of `memory` bytes, at least 1, from now on, beginning with the first; INT64_MAX makes one file one
 * panel.  FS_EINVAL: a pipe is being read; give options.reread. */
FS_API FS_NODISCARD fs_result fs_stream_set_memory(fs_stream *stream, int64_t memory);

/* A file of a stream, as it was when the stream was created.  Start from FS_STREAM_FILE_INIT. */
typedef struct fs_stream_file {
    size_t size;        /* sizeof(fs_stream_file): set by FS_STREAM_FILE_INIT */
    const char *path;   /* "standard input" for that; valid until fs_stream_destroy */
    int64_t bytes;      /* its length */
    int64_t changed_ns; /* its modification time in ns */
    int64_t start;      /* the byte at which its elements begin; 0 where it is read whole */
} fs_stream_file;
#define FS_STREAM_FILE_INIT \
    { \
        sizeof(fs_stream_file), NULL, 0, 0, 0 \
    }

/* File i of the stream, from 0. */
FS_API FS_NODISCARD fs_result fs_stream_get_file(const fs_stream *stream, int64_t i, fs_stream_file *file);

/* Makes `panel` (0 to fs_stream_panels) the next one, to resume a run.  A panel of a pipe that has been read cannot be
 * read again: fs_stream_next is FS_EFILE then. */
FS_API FS_NODISCARD fs_result fs_stream_seek(fs_stream *stream, int64_t panel);

/* Reads the next panel, which is read-only; after the last one, panel->A.rows is 0.
 * FS_EFILE: a file cannot be read, or has changed since the stream was created; FS_ENOMEM: no memory for the panel.
 * After a failure the panel is still the next one. */
FS_API FS_NODISCARD fs_result fs_stream_next(fs_stream *stream, fs_panel *panel);

/* The stream as the matrix A of a solver (flashsketch_solvers.h), which it must outlive:
 *
 *     fs_slices slices = FS_SLICES_INIT;                 fs_operand A = FS_OPERAND_INIT;
 *     fs_stream_slices(stream, &slices);                 A.slices = &slices;
 *     fs_lstsq(ctx, &A, &b, NULL, &x, &report);          a pass over the files in each iteration
 *
 * Each read of A is a pass over the files in panels of whole rows, one at least, for which A is cut from now on, in
 * fs_stream_next too; fs_stream_set_memory may be called between two solvers.  Where the files hold columns of A, a
 * panel has some rows of every column, and several files that must be read whole are read once for each panel: set
 * options.memory to the size of A.  A failure of the stream during a pass ends the solver with that failure.
 * FS_EINVAL: a pipe, without options.reread; several files that are batch-major and sparse or in Fortran order. */
FS_API FS_NODISCARD fs_result fs_stream_slices(fs_stream *stream, fs_slices *A);

#ifdef __cplusplus
}
#endif

#endif
