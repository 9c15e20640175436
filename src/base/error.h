/* error.h - how a function fails: return fs_fail(code, "message with the numbers", ...). */
#ifndef FSI_BASE_ERROR_H
#define FSI_BASE_ERROR_H

#include "flashsketch_extend.h"

/* The check of one argument of a public function. */
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
