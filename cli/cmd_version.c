/* cmd_version.c - flashsketch version: two numbers, because S has a version of its own. */
#include <flashsketch.h>
#include <getopt.h>
#include <stdio.h>

#include "cli.h"

int cmd_version(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    opterr = 0;
    for (int choice; (choice = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (choice != 'h') return cli_bad_option(choice, argv);
        printf("usage: flashsketch version\n\n"
               "Prints the version of the library, and that of the definition of S: two machines with the same\n"
               "definition have the same S for every spec.\n");
        return 0;
    }
    if (optind < argc) return cli_usage(argv[0], "it takes no arguments, but got '%s'", argv[optind]);
    printf("flashsketch %s, definition of S %d\n", fs_version(), fs_definition_version());
    return 0;
}
