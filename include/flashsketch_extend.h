/* flashsketch_extend.h - helpers for libraries that are built on flashsketch: the same errors and checks.
 *
 * libflashsketch_files and libflashsketch_mpi use them.  Programs need none of them.  These functions are in
 * libflashsketch and exported like all others, but may change with every minor version, also after 1.0. */
#ifndef FLASHSKETCH_EXTEND_H
#define FLASHSKETCH_EXTEND_H

#include "flashsketch.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FS_PRINTF(format, first) __attribute__((__format__(__printf__, format, first)))
#else
#define FS_PRINTF(format, first)
#endif

/* errors ---------------------------------------------------------------------------------------------------- */

/* Formats a message as printf does, keeps it for fs_error_message in this thread and returns `code`. */
FS_API fs_result fs_fail(fs_result code, const char *format, ...) FS_PRINTF(2, 3);

/* checks ---------------------------------------------------------------------------------------------------- */

/* FS_EINVAL, with the numbers, unless *m is a valid view: known types, sizes that are not negative, addresses inside
 * its buffer.  Messages call it `name`, an argument of the function `who`.  fs_matrix_check_output: also that no two of
 * its elements share an address, for a matrix that is written. */
FS_API FS_NODISCARD fs_result fs_matrix_check(const char *who, const char *name, const fs_matrix *m);
FS_API FS_NODISCARD fs_result fs_matrix_check_output(const char *who, const char *name, const fs_matrix *m);

/* Whether two valid views may share a byte.  Slices of one buffer that interleave without sharing an element are
 * recognized where they have the same pitch; other interleavings count as overlap. */
FS_API int fs_matrix_overlap(const fs_matrix *a, const fs_matrix *b);

/* Structs that begin with `size_t size`, their size in the header that the program was compiled with; `known` is their
 * size in this library's.  A smaller one is of an older header: missing fields have their defaults, and outputs are
 * filled as far as they go.  A larger one, up to 4096 bytes, is of a newer header and accepted if all of its
 * unknown tail is 0.
 *
 * fs_struct_check: FS_EINVAL unless the size of *given is accepted.  fs_struct_read checks, and copies all but the size
 * over *full, which holds the defaults.  fs_struct_write copies an output, all but the size, to *given, which has been
 * checked. */
FS_API FS_NODISCARD fs_result fs_struct_check(const char *who, const char *name, const void *given, size_t known);
FS_API FS_NODISCARD fs_result fs_struct_read(const char *who, const char *name, const void *given, void *full,
                                             size_t known);
FS_API void fs_struct_write(void *given, const void *full, size_t known);

/* resources ------------------------------------------------------------------------------------------------- */

/* The number of threads that a parallel region of the calling thread may use where `threads` are wanted (0: OpenMP's
 * own number): at most FS_THREADS_MAX, at most as many as the system has created at once, and 1 in a child process
 * whose OpenMP threads are in the parent. */
FS_API int fs_thread_count(int threads);

/* The allocator to use: *given, or malloc and free where `given` is NULL or its alloc is. */
FS_API fs_allocator fs_allocator_or_malloc(const fs_allocator *given);

#ifdef __cplusplus
}
#endif

#endif
