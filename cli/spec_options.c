/* spec_options.c - from the command line to a spec. */
#include "spec_options.h"

#include <string.h>

#include "cli.h"

/* In the order of the public enums, which count from 1. */
static const char *const families[] = {"blockperm", "sjlt", "blockrow", "srht", "gaussian", NULL};
static const char *const shuffles[] = {"none", "rows", "groups", NULL};

static int find_name(const char *const *names, const char *text)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], text)) return i + 1;
    return 0;
}

const char *spec_family_name(fs_family family) { return families[family - 1]; }
const char *spec_shuffle_name(fs_shuffle shuffle) { return shuffles[shuffle - 1]; }
fs_family spec_family_of(const char *name) { return (fs_family)find_name(families, name); }
fs_shuffle spec_shuffle_of(const char *name) { return (fs_shuffle)find_name(shuffles, name); }

int spec_shuffle(const char *command, const char *option, const char *text, fs_shuffle *shuffle)
{
    *shuffle = spec_shuffle_of(text);
    return *shuffle ? 0 : cli_usage(command, "%s is none, rows or groups, not '%s'", option, text);
}

static int spec_family(const char *command, const char *text, fs_family *family)
{
    *family = spec_family_of(text);
    if (*family) return 0;
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
