/* spec_options.c - from the command line to a spec. */
#include "spec_options.h"

#include <string.h>

#include "cli.h"

const char spec_help[] = "      --family NAME   blockperm, sjlt, blockrow, srht or gaussian\n"
                         "  -d N                rows of A, columns of S\n"
                         "  -k N                rows of S\n"
                         "  -M, --blocks N      blocks\n"
                         "      --kappa N       input blocks of each output block\n"
                         "  -s N                nonzeros of a column in each block\n"
                         "      --shuffle NAME  none (contiguous blocks), rows or lines\n"
                         "      --interleave N  for lines: blocks a line is spread over\n"
                         "      --seed N        64 bits\n";

/* The number of a name in a list, counted from 1 as the public enums are; 0 if it is not there. */
static int find_name(const char *const *names, const char *text)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], text)) return i + 1;
    return 0;
}

int spec_shuffle(const char *command, const char *option, const char *text, fs_shuffle *shuffle)
{
    static const char *const names[] = {"none", "rows", "lines", NULL};
    *shuffle = (fs_shuffle)find_name(names, text);
    return *shuffle ? 0 : cli_usage(command, "%s is none, rows or lines, not '%s'", option, text);
}

static int spec_family(const char *command, const char *text, fs_family *family)
{
    static const char *const names[] = {"blockperm", "sjlt", "blockrow", "srht", "gaussian", NULL};
    *family = (fs_family)find_name(names, text);
    if (*family) return 0;
    return cli_usage(command, "--family is blockperm, sjlt, blockrow, srht or gaussian, not '%s'", text);
}

int spec_is_option(int choice)
{
    return (choice >= SPEC_FAMILY && choice < SPEC_OTHER) || (choice && strchr("kdMs", choice));
}

int spec_option(const char *command, int choice, const char *text, fs_spec *spec)
{
    switch (choice) {
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
