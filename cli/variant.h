/* variant.h - contexts of one variant of the CPU backend. */
#ifndef FSI_CLI_VARIANT_H
#define FSI_CLI_VARIANT_H

#include <flashsketch.h>

/* The reference implementation first, then from the oldest instruction set to the newest; the last one is NULL. */
extern const char *const variant_names[];

/* A context of this variant; NULL where this processor cannot run it.  Free it with fs_context_destroy. */
fs_context *variant_context(const char *name);

#endif
