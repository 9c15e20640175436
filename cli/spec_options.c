/* spec_options.c - from the command line to a spec. */
#include "spec_options.h"

#include <flashsketch_solvers.h>
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

static int spec_quality(const char *command, const char *text, fs_quality *quality)
{
    if (!fs_quality_from_name(text, quality)) return 0;
    return cli_usage(command, "--quality is fast, default, high or gaussian, not '%s'", text);
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
    case SPEC_QUALITY: return spec_quality(command, text, &spec->quality);
    case SPEC_FAMILY: return spec_family(command, text, &spec->family);
    default: return cli_seed(command, text, &spec->seed);
    }
}

int spec_error_option(const char *command, const char *text, double *error)
{
    return cli_real(command, "--error", text, 0, 1, error);
}

int spec_error_check(const char *command, const fs_spec *spec, double error, const char *of)
{
    if (!spec->k && !(error > 0)) return cli_usage(command, "give the number of rows of %s, with -k N", of);
    if (!(error > 0)) return 0;
    if (spec->k)
        return cli_usage(command, "-k gives the number of rows of %s, and --error chooses it; leave one out", of);
    if (spec->kappa || spec->s || spec->quality)
        return cli_usage(command,
                         "--error chooses --quality, --kappa and -s too; leave them out, or give -k in place of "
                         "--error");
    if ((spec->family && spec->family != FS_BLOCKPERM) || (spec->shuffle && spec->shuffle != FS_SHUFFLE_ROWS) ||
        spec->M)
        return cli_usage(command, "--error is for --family blockperm with --shuffle rows and blocks of the library's "
                                  "choice; give -k in place of it");
    return 0;
}

int spec_for_error(fs_spec *spec, double error, int64_t d, int64_t n)
{
    const fs_plan_options start = FS_PLAN_INIT;
    fs_plan_options wanted = start;
    fs_plan_report plan = FS_PLAN_REPORT_INIT;
    if (!(error > 0)) return 0;
    wanted.d = spec->d ? spec->d : d, wanted.n = n, wanted.error = error;
    if (fs_plan(&wanted, &plan)) return cli_library_fail();
    spec->k = plan.k, spec->kappa = plan.kappa, spec->s = plan.s;
    return 0;
}

int spec_sketch(const fs_spec *spec, fs_sketch **S, fs_spec *full)
{
    full->size = sizeof *full;
    if (fs_sketch_create(S, spec) || fs_sketch_spec(*S, full)) return cli_library_fail();
    return 0;
}
