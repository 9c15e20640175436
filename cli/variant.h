/* variant.h - contexts of one variant of the CPU backend, by the environment variable that a user would choose it
 * with. */
#ifndef FSI_CLI_VARIANT_H
#define FSI_CLI_VARIANT_H

#include <flashsketch.h>

/* The plain loops that judge the others first, then from the oldest processor to the newest; the last one is NULL. */
extern const char *const variant_names[];

/* A context of this variant; NULL where this processor cannot run it.  Free it with fs_context_destroy. */
fs_context *variant_context(const char *name);

#endif
