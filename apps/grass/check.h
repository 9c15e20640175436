/* check.h - error handling of the experiment: fs_fail, and returning the failures of called functions. */
#ifndef FSI_APPS_GRASS_CHECK_H
#define FSI_APPS_GRASS_CHECK_H

#include "flashsketch_extend.h"

/* Returns FS_EINVAL with a message unless the condition holds. */
#define GRASS_REQUIRE(condition, ...) \
    do { \
        if (!(condition)) return fs_fail(FS_EINVAL, __VA_ARGS__); \
    } while (0)

/* Returns the result of a call that failed. */
#define GRASS_TRY(call) \
    do { \
        const fs_result result_ = (call); \
        if (result_ != FS_OK) return result_; \
    } while (0)

#endif
