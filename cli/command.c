/* command.c - the options of a command line, read by a command's table; and --help, printed from it. */
#include "command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "nearest.h"

enum { COLUMN = 22 };

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

int cli_help(const cli_command *command)
{
    printf("usage: flashsketch %s %s\n\n%s\n\n", command->name, command->arguments, command->text);
    for (const cli_option *option = command->options; option->code; option++) print_option(option);
    print_option(&help_option);
    if (command->notes) printf("\n%s\n", command->notes);
    return CLI_HELPED;
}

/* the command line ------------------------------------------------------------------------------------------- */

static const cli_option *by_name(const cli_command *command, const char *name, size_t length)
{
    for (const cli_option *o = command->options; o->code; o++)
        if (o->name && strlen(o->name) == length && !strncmp(o->name, name, length)) return o;
    return length == 4 && !strncmp(name, "help", 4) ? &help_option : NULL;
}

static const cli_option *by_letter(const cli_command *command, char letter)
{
    for (const cli_option *o = command->options; o->code; o++)
        if (o->code == (unsigned char)letter) return o;
    return letter == 'h' ? &help_option : NULL;
}

/* Reports an unknown option, short or long, with the nearest options. */
static int unknown(const cli_command *command, const char *word)
{
    const int dashes = word[1] == '-' ? 2 : 1;
    char name[64], text[160];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + dashes, "="), word + dashes);
    nearest near = nearest_start(name);
    for (const cli_option *o = command->options; o->code; o++) {
        const char letter[2] = {(char)o->code, 0};
        if (o->code < 256 && !name[1] && tolower(name[0]) == tolower(o->code)) nearest_take(&near, 0, "-", letter);
        if (o->name) nearest_add(&near, "--", o->name);
    }
    nearest_add(&near, "--", help_option.name);
    nearest_text(&near, text, sizeof text);
    if (dashes == 2) return cli_usage(command->name, "unknown option --%s%s", name, text);
    return cli_usage(command->name, "unknown option -%c%s", name[0], text);
}

typedef struct reader {
    const cli_command *command;
    int argc, at; /* at: the next word */
    char **argv;
    int (*take)(void *options, int code, const char *value);
    void *options;
} reader;

/* "--name", "--name VALUE" or "--name=VALUE"; a name must be complete. */
static int read_long(reader *r, const char *word)
{
    const size_t length = strcspn(word + 2, "=");
    const cli_option *o = by_name(r->command, word + 2, length);
    const char *value = word[2 + length] ? word + 3 + length : NULL;
    if (!o) return unknown(r->command, word);
    if (o == &help_option) return cli_help(r->command);
    if (value && !o->argument) return cli_usage(r->command->name, "option --%s takes no value", o->name);
    if (o->argument && !value && r->at < r->argc) value = r->argv[r->at++];
    if (o->argument && !value) return cli_usage(r->command->name, "option --%s needs a value", o->name);
    return r->take(r->options, o->code, value);
}

/* "-x", several of them in one word, or "-x VALUE" or "-xVALUE" as its last. */
static int read_letters(reader *r, const char *word)
{
    for (const char *letter = word + 1; *letter; letter++) {
        const cli_option *o = by_letter(r->command, *letter);
        const char *value = NULL;
        if (!o && letter == word + 1) return unknown(r->command, word);
        if (!o) return cli_usage(r->command->name, "unknown option -%c, in '%s'", *letter, word);
        if (o == &help_option) return cli_help(r->command);
        if (o->argument && letter[1]) value = letter + 1;
        else if (o->argument && r->at < r->argc) value = r->argv[r->at++];
        if (o->argument && !value) return cli_usage(r->command->name, "option -%c needs a value", *letter);
        const int code = r->take(r->options, o->code, value);
        if (code || value) return code;
    }
    return 0;
}

int cli_parse(const cli_command *command, int *argc, char **argv,
              int (*take)(void *options, int code, const char *value), void *options)
{
    reader r = {command, *argc, 1, argv, take, options};
    int kept = 1, code = 0, ended = 0;
    while (r.at < r.argc && !code) {
        char *word = argv[r.at++];
        if (ended || word[0] != '-' || !word[1]) argv[kept++] = word; /* every word before `at` has been read */
        else if (!strcmp(word, "--")) ended = 1;
        else code = word[1] == '-' ? read_long(&r, word) : read_letters(&r, word);
    }
    *argc = kept;
    return code;
}
