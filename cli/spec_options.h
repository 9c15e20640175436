/* spec_options.h - the options that say what S is, the same for every command that takes a sketch. */
#ifndef FLASHSKETCH_CLI_SPEC_OPTIONS_H
#define FLASHSKETCH_CLI_SPEC_OPTIONS_H

#include <flashsketch.h>
#include <getopt.h>

/* A command puts these in its tables for getopt_long, and spec_help in its help. */
#define SPEC_SHORT "k:d:M:s:"
#define SPEC_LONG                                                                                          \
    {"family", required_argument, NULL, SPEC_FAMILY}, {"blocks", required_argument, NULL, 'M'},            \
    {"kappa", required_argument, NULL, SPEC_KAPPA}, {"shuffle", required_argument, NULL, SPEC_SHUFFLE},    \
    {"interleave", required_argument, NULL, SPEC_INTERLEAVE}, {"seed", required_argument, NULL, SPEC_SEED}
enum { SPEC_FAMILY = 256, SPEC_KAPPA, SPEC_SHUFFLE, SPEC_INTERLEAVE, SPEC_SEED, SPEC_OTHER };
extern const char spec_help[];

/* Is what getopt_long returned one of these options? */
int spec_is_option(int choice);

/* Puts the value of such an option into the spec.  Returns 0, or EXIT_USAGE after saying what was wrong; whether the
 * fields go together is for fs_sketch_create to say. */
int spec_option(const char *command, int choice, const char *text, fs_spec *spec);

/* Reads the name of a shuffle.  Returns as spec_option. */
int spec_shuffle(const char *command, const char *option, const char *text, fs_shuffle *shuffle);

#endif
