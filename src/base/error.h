/* error.h - how a function fails: return fs_fail(code, "sentence with the numbers", ...). */
#ifndef FSI_BASE_ERROR_H
#define FSI_BASE_ERROR_H

#include "flashsketch.h"

/* The public function once more, so that compilers compare the format with the arguments. */
fs_result fs_fail(fs_result code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The door's check of one argument. */
#define FSI_REQUIRE(condition, ...) \
    do { \
        if (!(condition)) return fs_fail(FS_EINVAL, __VA_ARGS__); \
    } while (0)

/* Passes a failure on. */
#define FSI_TRY(call) \
    do { \
        const fs_result result_ = (call); \
        if (result_ != FS_OK) return result_; \
    } while (0)

#endif
