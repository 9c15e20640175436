/* spec_options.h - the options that define S, the same for every command with a sketch. */
#ifndef FSI_CLI_SPEC_OPTIONS_H
#define FSI_CLI_SPEC_OPTIONS_H

#include <flashsketch.h>

/* A command puts these in its table of options and numbers its own from SPEC_OTHER on; SPEC_OPTIONS_OF where it takes
 * some of the families only. */
#define SPEC_OPTIONS SPEC_OPTIONS_OF("blockperm (default), sjlt, blockrow, srht or gaussian", SPEC_FAMILIES)
#define SPEC_OPTIONS_OF(family_text, families) \
    {SPEC_FAMILY, "family", "NAME", family_text, families}, {'d', NULL, "N", "rows of A, columns of S", NULL}, \
        {'k', NULL, "N", "rows of S, rows of Y", NULL}, SPEC_QUALITY_OPTION, \
        {'M', "blocks", "N", "number of blocks (default: ceil(k / 128))", NULL}, \
        {SPEC_KAPPA, "kappa", "N", "input blocks of each output block", NULL}, \
        {'s', NULL, "N", "nonzeros of a column in each block", NULL}, \
        {SPEC_SHUFFLE, "shuffle", "NAME", "none (contiguous blocks), rows (default) or groups", "none rows groups"}, \
        {SPEC_INTERLEAVE, "interleave", "N", "for groups: blocks a row group is spread over", NULL}, \
    { \
        SPEC_SEED, "seed", "N", "seed of S: 64 bits, decimal or 0x hexadecimal (default 0)", NULL \
    }
/* The rung, also for commands with a list of their own. */
#define SPEC_QUALITY_OPTION \
    { \
        SPEC_QUALITY, "quality", "NAME", "chooses kappa and s: fast, default, high or gaussian", SPEC_QUALITIES \
    }
/* For commands that know n: an error in place of -k. */
#define SPEC_ERROR_OPTION \
    { \
        SPEC_ERROR, "error", "X", "in place of -k: k, kappa and s for this error, as 'flashsketch plan' chooses them", \
            NULL \
    }
#define SPEC_FAMILIES "blockperm sjlt blockrow srht gaussian"
#define SPEC_QUALITIES "fast default high gaussian"
enum {
    SPEC_FAMILY = 256,
    SPEC_QUALITY,
    SPEC_KAPPA,
    SPEC_SHUFFLE,
    SPEC_INTERLEAVE,
    SPEC_SEED,
    SPEC_OTHER,
    SPEC_ERROR = 1280
};

/* Is this the code of one of these options? */
int spec_is_option(int code);

/* Puts the value of such an option into the spec.  Returns 0, or EXIT_USAGE after printing what is wrong;
 * fs_sketch_create checks whether the fields are consistent. */
int spec_option(const char *command, int code, const char *text, fs_spec *spec);

/* Reads the name of a shuffle.  Returns as spec_option. */
int spec_shuffle(const char *command, const char *option, const char *text, fs_shuffle *shuffle);

/* Reads --error.  Returns as spec_option. */
int spec_error_option(const char *command, const char *text, double *error);

/* Checks that the spec has either a k or an error (0: not given), and that nothing is given that --error chooses; `of`,
 * "S" or "Y", is the matrix with k rows.  Returns as spec_option. */
int spec_error_check(const char *command, const fs_spec *spec, double error, const char *of);

/* With an error, which is not 0, k, kappa and s of the spec for A, d x n.  Returns 0, or EXIT_FAILURE after printing why
 * there is no such sketch. */
int spec_for_error(fs_spec *spec, double error, int64_t d, int64_t n);

/* Creates the sketch of a spec, and writes its full spec to *full.  Returns 0, or EXIT_FAILURE after printing why
 * not. */
int spec_sketch(const fs_spec *spec, fs_sketch **S, fs_spec *full);

#endif
