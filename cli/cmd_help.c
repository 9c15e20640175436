/* cmd_help.c - flashsketch help: the list of commands, or the help of one of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "command.h"

static int help_take(void *options, int code, const char *value)
{
    (void)options, (void)code, (void)value;
    return 0;
}

static int print_list(void)
{
    printf("usage: flashsketch COMMAND [OPTION]...\n\n"
           "Multiplies matrices by random sketches, Y = S A, the same S on every machine.\n\n");
    for (int i = 0; cli_commands[i]; i++) printf("  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    printf("\n'flashsketch help COMMAND' prints the help of a command; 'man flashsketch' is the manual.\n"
           "Exit codes: 0 done, 1 failed, 2 wrong command line.\n");
    return EXIT_SUCCESS;
}

static int help_run(int argc, char **argv)
{
    const cli_command *command = NULL;
    const int code = cli_parse(&help_command, &argc, argv, help_take, NULL);
    if (code) return code;
    if (argc > 2) return cli_usage(argv[0], "it takes one command, but got '%s' too", argv[2]);
    if (argc < 2) return print_list();
    const int found = cli_find(argv[1], &command);
    return found ? found : cli_help(command);
}

static const cli_option options[] = {{0}};
const cli_command help_command = {
    "help",
    "[COMMAND]",
    "print this list, or the help of a command",
    "Prints the list of commands; with a COMMAND, the same as 'flashsketch COMMAND --help'.",
    options,
    NULL,
    help_run};
