/* command.c - options read by getopt_long and told by --help, both from a command's table. */
#include "command.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

enum { MOST_OPTIONS = 40, COLUMN = 22 };

int cli_option_text(const cli_option *option, char *text, int bytes)
{
    const char *argument = option->argument ? option->argument : "", *space = option->argument ? " " : "";
    const int has_short = option->code < 256;
    if (!option->name) return snprintf(text, (size_t)bytes, "-%c%s%s", option->code, space, argument);
    if (!has_short) return snprintf(text, (size_t)bytes, "    --%s%s%s", option->name, space, argument);
    return snprintf(text, (size_t)bytes, "-%c, --%s%s%s", option->code, option->name, space, argument);
}

static const cli_option help_option = {'h', "help", NULL, "this text", NULL};

static void print_option(const cli_option *option)
{
    char left[64];
    const int width = cli_option_text(option, left, sizeof left);
    printf("  %s%*s", left, width + 4 > COLUMN ? 2 : COLUMN - 2 - width, "");
    for (const char *at = option->text; *at; at++)
        if (*at == '\n') printf("\n%*s", COLUMN, "");
        else putchar(*at);
    putchar('\n');
}

static int help(const cli_command *command)
{
    printf("usage: flashsketch %s %s\n\n%s\n\n", command->name, command->arguments, command->text);
    for (const cli_option *option = command->options; option->code; option++) print_option(option);
    print_option(&help_option);
    if (command->notes) printf("\n%s\n", command->notes);
    return CLI_HELPED;
}

/* What getopt_long did not understand: choice is '?', or ':' for a missing argument. */
static int bad_option(int choice, char **argv)
{
    const char *word = argv[optind - 1];
    const int is_long = strncmp(word, "--", 2) == 0;
    if (choice == ':' && is_long) return cli_usage(argv[0], "the option %s needs a value", word);
    if (choice == ':') return cli_usage(argv[0], "the option -%c needs a value", optopt);
    if (is_long) return cli_usage(argv[0], "there is no option %s, or it is cut too short or takes no value", word);
    return cli_usage(argv[0], "there is no option -%c", optopt);
}

int cli_parse(const cli_command *command, int argc, char **argv,
              int (*take)(void *options, int code, const char *value), void *options)
{
    struct option longs[MOST_OPTIONS + 2];
    char shorts[2 * MOST_OPTIONS + 8] = ":h";
    int count = 0;
    longs[count++] = (struct option){"help", no_argument, NULL, 'h'};
    for (const cli_option *o = command->options; o->code && count <= MOST_OPTIONS; o++) {
        const size_t end = strlen(shorts);
        if (o->code < 256) snprintf(shorts + end, sizeof shorts - end, "%c%s", o->code, o->argument ? ":" : "");
        if (o->name)
            longs[count++] = (struct option){o->name, o->argument ? required_argument : no_argument, NULL, o->code};
    }
    longs[count] = (struct option){NULL, 0, NULL, 0};
    opterr = 0;
    for (int choice, code; (choice = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        if (choice == 'h') return help(command);
        if (choice == '?' || choice == ':') return bad_option(choice, argv);
        if ((code = take(options, choice, optarg)) != 0) return code;
    }
    return 0;
}
