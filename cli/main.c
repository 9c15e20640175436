/* main.c - the command flashsketch: finds the subcommand in a list and runs it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "command.h"

const cli_command *const cli_commands[] = {&sketch_command, &add_command,  &solve_command,     &ridge_command,
                                           &gram_command,   &ose_command,  &coherence_command, &grass_command,
                                           &info_command,   &spec_command, &show_command,      &check_command,
                                           &demo_command,   &version_command, NULL};

static int help(void)
{
    printf("usage: flashsketch COMMAND [OPTION]...\n\n"
           "Multiplies matrices by random sketches, Y = S A, the same S on every machine.\n\n");
    for (int i = 0; cli_commands[i]; i++) printf("  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    printf("\n'flashsketch COMMAND --help' says what a command takes; 'man flashsketch' says it all.\n"
           "Exit codes: 0 done, 1 failed, 2 wrong command line.\n");
    return EXIT_SUCCESS;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) return cli_usage(NULL, "say which command to run, for example 'flashsketch demo'");
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) return help();
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) name = "version";
    if (!strcmp(name, "--document") && argc == 3) return cli_document(argv[2]); /* for the build */
    for (int i = 0; cli_commands[i]; i++)
        if (!strcmp(name, cli_commands[i]->name)) return cli_commands[i]->run(argc - 1, argv + 1);
    return cli_usage(NULL, "there is no %s '%s'", name[0] == '-' ? "option" : "command", name);
}

int main(int argc, char **argv)
{
    int code = dispatch(argc, argv);
    if (code == CLI_HELPED) code = EXIT_SUCCESS;
    if ((fflush(stdout) || ferror(stdout)) && code == EXIT_SUCCESS)
        return cli_fail("standard output could not be written (%s)", strerror(errno));
    return code;
}
