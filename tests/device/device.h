/* device.h - what the device tests share: contexts on the GPU beside their references on the CPU, copies of guarded
 * views in device memory, and loops over cases in several host threads.
 *
 * Environment variables, for debugging:
 *     FS_DEVICE_TESTS_DRY=1      the contexts under test are CPU contexts and device memory is malloc's, so that the
 *                                tests themselves can be tried without a GPU; properties of the GPU alone are skipped
 *     FS_DEVICE_TESTS_THREADS=t  host threads, each with its own stream and contexts
 *     FS_DEVICE_TESTS_THIN=c     every p-th case alone, p the first prime from c on that is at least 13 */
#ifndef FSI_TESTS_DEVICE_DEVICE_H
#define FSI_TESTS_DEVICE_DEVICE_H

#include "tests/support/support.h"

#define COUNT(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))

/* --small was given: shapes and numbers of cases for compute-sanitizer, which slows a program tens of times. */
extern int small_set;
extern int dry;

/* Where matrices of the contexts under test are: FS_MEMORY_CUDA, or FS_MEMORY_HOST in a dry run. */
fs_memory device_place(void);

/* lanes ----------------------------------------------------------------------------------------------------- */

/* What one host thread works with.  The references are CPU contexts: the reference implementation, and the tuned
 * variant, which tests/properties compares with ref and which is fast enough for large matrices. */
typedef struct lane {
    void *stream; /* a cudaStream_t of its own, which does not wait for the default stream */
    fs_context *gpu;
    fs_context *ref;
    fs_context *tuned;
} lane;
extern lane lanes[];
extern int lane_count;

/* A context under test on a stream, which must end before the stream does. */
fs_context *gpu_context(void *stream, fs_precision precision);
void *stream_make(void);
void stream_free(void *stream);
void stream_wait(void *stream);

/* Runs check(lane, number, data) for numbers 0 ... count - 1, or for about `few` of them spread evenly when small_set,
 * each in one of the lanes.  A case that fails ends alone; after several the test ends. */
typedef void case_function(const lane *l, int64_t number, const void *data);
void for_each_case(int64_t count, int64_t few, case_function *check, const void *data);

/* Parses the options, leaves with 77 where there is no GPU, otherwise runs the tests with the lanes open. */
#define RUN_DEVICE_TESTS(argc, argv, tests) run_device_tests((argc), (argv), (tests), sizeof(tests) / sizeof(tests)[0])
int run_device_tests(int argc, char **argv, const struct CMUnitTest *tests, size_t count);

/* Ends the test as skipped, with the reason. */
_Noreturn void skip_because(const char *why);

/* memory ---------------------------------------------------------------------------------------------------- */

/* Fails the test with CUDA's message unless the call succeeds; `error` is a cudaError_t. */
#define CUDA(call) must_cuda((int)(call), #call, __FILE__, __LINE__)
void must_cuda(int error, const char *call, const char *file, int line);

/* Device memory for work on a stream, and copies in its order that have ended on return.  Released memory stays with
 * the process once device_keep_memory was called, so that thousands of cases do not wait for the driver. */
void device_keep_memory(void);
void *device_alloc(void *stream, int64_t bytes);
void device_free(void *stream, void *memory);
void copy_in(void *stream, void *device, const void *host, int64_t bytes);
void copy_out(void *stream, void *host, const void *device, int64_t bytes);

/* Page-locked host memory. */
void *pinned_alloc(int64_t bytes);
void pinned_free(void *memory);

/* `bytes` of device memory in which the first `period` repeat; both are multiples of the element. */
void device_repeat(void *stream, void *device, int64_t period, int64_t bytes);

/* A view's whole buffer in device memory, padding too, between two guards of NaN.  Under compute-sanitizer (small_set)
 * there are no guards: it sees every access beyond the buffer itself. */
typedef struct mirror {
    fs_matrix m;
    char *memory;
    int64_t bytes; /* of the buffer */
} mirror;
mirror mirror_make(const lane *l, const view *v);
void mirror_free(const lane *l, mirror *d);

/* The host's buffer to the device again, and the device's into a view made alike; the second fails the test if a guard
 * was written. */
void mirror_load(const lane *l, const mirror *d, const view *v);
void mirror_fetch(const lane *l, const char *what, const mirror *d, view *into);

/* Fails the test if a byte of the device's buffer differs from the host's. */
void expect_mirror_untouched(const lane *l, const char *what, const mirror *d, const view *v);

/* The arrays of a sparse matrix in device memory. */
fs_sparse sparse_mirror(const lane *l, const fs_sparse *A);
void sparse_mirror_free(const lane *l, fs_sparse *A);

/* views ----------------------------------------------------------------------------------------------------- */

/* As view_make for ROWS and COLUMNS, with `pad` elements between lines and `lead` in front; as view_make for every
 * other layout, where both must be 0. */
view view_padded(layout how, int64_t rows, int64_t cols, fs_dtype dtype, int64_t pad, int64_t lead);

/* A second view with the same buffer, what it was sealed with too. */
view view_copy(const view *v);

#endif
