/* spec_options.c - from the command line to a spec. */
#include "spec_options.h"

#include <string.h>

#include "cli.h"

int spec_shuffle(const char *command, const char *option, const char *text, fs_shuffle *shuffle)
{
    if (!fs_shuffle_from_name(text, shuffle)) return 0;
    return cli_usage(command, "%s is none, rows or groups, not '%s'", option, text);
}

static int spec_family(const char *command, const char *text, fs_family *family)
{
    if (!fs_family_from_name(text, family)) return 0;
    return cli_usage(command, "--family is blockperm, sjlt, blockrow, srht or gaussian, not '%s'", text);
}

int spec_is_option(int code) { return code < 256 ? code && strchr("kdMs", code) : code < SPEC_OTHER; }

int spec_option(const char *command, int code, const char *text, fs_spec *spec)
{
    switch (code) {
    case 'd': return cli_number(command, "-d", text, 1, (int64_t)1 << 48, &spec->d);
    case 'k': return cli_number(command, "-k", text, 1, INT32_MAX, &spec->k);
    case 'M': return cli_number(command, "--blocks", text, 0, INT32_MAX, &spec->M);
    case 's': return cli_number(command, "-s", text, 0, INT32_MAX, &spec->s);
    case SPEC_KAPPA: return cli_number(command, "--kappa", text, 0, INT32_MAX, &spec->kappa);
    case SPEC_INTERLEAVE: return cli_number(command, "--interleave", text, 0, INT32_MAX, &spec->interleave);
    case SPEC_SHUFFLE: return spec_shuffle(command, "--shuffle", text, &spec->shuffle);
    case SPEC_FAMILY: return spec_family(command, text, &spec->family);
    default: return cli_seed(command, text, &spec->seed);
    }
}

int spec_sketch(const fs_spec *spec, fs_sketch **S, fs_spec *full)
{
    full->size = sizeof *full;
    if (fs_sketch_create(S, spec) || fs_sketch_spec(*S, full)) return cli_library_fail();
    return 0;
}
