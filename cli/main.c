/* main.c - the command flashsketch: finds the subcommand in a table and runs it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"demo", cmd_demo, "compare every sketch on a real matrix, by time and by error"},
    {"show", cmd_show, "draw a picture of S"},
    {"version", cmd_version, "print the versions of the library and of the definition of S"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int help(void)
{
    printf("usage: flashsketch COMMAND [OPTION]...\n\n"
           "Multiplies matrices by random sketches, Y = S A, the same S on every machine.\n\n");
    for (int i = 0; i < COMMANDS; i++) printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    printf("\n'flashsketch COMMAND --help' says what a command takes.\n"
           "Exit codes: 0 done, 1 failed, 2 wrong command line.\n");
    return EXIT_SUCCESS;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) return cli_usage(NULL, "say which command to run, for example 'flashsketch demo'");
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) return help();
    if (!strcmp(name, "--version") || !strcmp(name, "-V")) name = "version";
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(name, commands[i].name)) return commands[i].run(argc - 1, argv + 1);
    return cli_usage(NULL, "there is no %s '%s'", name[0] == '-' ? "option" : "command", name);
}

int main(int argc, char **argv)
{
    const int code = dispatch(argc, argv);
    if ((fflush(stdout) || ferror(stdout)) && code == EXIT_SUCCESS)
        return cli_fail("standard output could not be written (%s)", strerror(errno));
    return code;
}
